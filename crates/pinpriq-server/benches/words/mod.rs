//! What clients of two doors say to have the same done.

use pinpriq_server::config::DoorName;

use crate::talk::{PAYLOAD, resp_acks, resp_puts, resp_puts_with_headers, resp_takes};

/// What a client says to put tasks, take them and finish them.
pub(crate) struct Words {
    pub(crate) door: DoorName,
    /// This number of puts.
    pub(crate) puts: fn(u64) -> Vec<u8>,
    /// This number of takes under a lease.
    pub(crate) takes: fn(u64) -> Vec<u8>,
    /// An ack for each task in the answers to takes.
    pub(crate) acks: fn(&[u8]) -> Vec<u8>,
    /// What an ack is answered.
    pub(crate) acked: &'static [u8],
}

const OF_RESP: Words = Words {
    door: DoorName::Resp,
    puts: resp_puts,
    takes: resp_takes,
    acks: resp_acks,
    acked: b"+OK",
};

pub(crate) static RESP: Words = OF_RESP;

/// Puts with headers, which a plain take does not show.
pub(crate) static RESP_WITH_HEADERS: Words = Words { puts: resp_puts_with_headers, ..OF_RESP };

pub(crate) static TUBES: Words = Words {
    door: DoorName::Beanstalkd,
    puts: tube_puts,
    takes: |times| b"reserve-with-timeout 0\r\n".repeat(times_of(times)),
    acks: tube_deletes,
    acked: b"DELETED",
};

fn times_of(times: u64) -> usize {
    usize::try_from(times).unwrap_or(usize::MAX)
}

/// This number of puts of beanstalkd's protocol.
fn tube_puts(times: u64) -> Vec<u8> {
    let mut put = format!("put 5 0 60 {}\r\n", PAYLOAD.len()).into_bytes();
    put.extend_from_slice(&PAYLOAD);
    put.extend_from_slice(b"\r\n");
    put.repeat(times_of(times))
}

/// A delete for each job that was reserved.
fn tube_deletes(answers: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(answers).expect("the jobs are text");
    let mut bytes = Vec::new();
    for line in text.split("\r\n").filter(|line| line.starts_with("RESERVED ")) {
        let id = line.split(' ').nth(1).expect("a job has an id");
        bytes.extend_from_slice(format!("delete {id}\r\n").as_bytes());
    }
    bytes
}
