//! Measures the cost of the codecs for a message with a payload of 100 bytes.
//!
//! Each iteration reads or writes a thousand consecutive messages, as a pipelining client sends
//! them, or a thousand letters between shards. What a server does with them is not measured here.
//! Nothing here judges the results.

#![expect(clippy::expect_used, reason = "a bench that cannot go on has nothing to tell")]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};

use pinpriq_proto::command::{
    Ack, Command, Held, HeldBy, Put, QueueName, Selection, Take, TakeMode, Wait,
};
use pinpriq_proto::letters::{decode_command, encode_command};
use pinpriq_proto::task::{Grant, Receipt};
use pinpriq_proto::time::Span;
use pinpriq_proto::wire::resp::{
    self, Protocol, RequestDecoder, RequestLimits, Writer, put_command,
};
use pinpriq_proto::wire::{Decoded, Request, decode_request, put_count, put_packet};

const MESSAGES: usize = 1_000;
const PAYLOAD: [u8; 100] = [b'x'; 100];

fn main() {
    divan::main();
}

fn resp_puts() -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..MESSAGES {
        put_command(&mut bytes, &[b"PUT", b"jobs", &PAYLOAD, b"PRIORITY", b"5"]);
    }
    bytes
}

fn push() -> Request<'static> {
    Request::Push { queue: b"jobs", ttl_ms: 1_000, priority: 5, key: b"k", payload: &PAYLOAD }
}

/// Every argument is read.
#[divan::bench]
fn resp_request_decoded(bencher: Bencher<'_, '_>) {
    let bytes = resp_puts();
    let mut decoder = RequestDecoder::new(RequestLimits::default());
    bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
        let mut rest = black_box(bytes.as_slice());
        let mut requests = 0;
        while let Ok(resp::Decoded::Request { length }) = decoder.decode(rest) {
            decoder.arguments(rest).iter().for_each(|argument| {
                black_box(argument);
            });
            rest = &rest[length..];
            requests += 1;
        }
        assert_eq!((requests, rest.len()), (MESSAGES, 0));
    });
}

/// The reply to a take: one task of four parts.
#[divan::bench]
fn resp_reply_encoded(bencher: Bencher<'_, '_>) {
    let mut out = Vec::new();
    bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
        out.clear();
        for number in 1..=MESSAGES as u64 {
            let mut writer = Writer::new(&mut out, Protocol::Resp2);
            writer.array(1);
            writer.array(4);
            writer.bulk(b"jobs");
            writer.bulk_number(black_box(number));
            writer.bulk_numbers(&[number, 1, 1_000_000 + number], b'-');
            writer.bulk(&PAYLOAD);
        }
        black_box(&out);
    });
}

#[divan::bench]
fn pinpriq_request_decoded(bencher: Bencher<'_, '_>) {
    let mut bytes = Vec::new();
    for _ in 0..MESSAGES {
        push().put(&mut bytes).expect("it is short enough");
    }
    bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
        let mut rest = black_box(bytes.as_slice());
        let mut requests = 0;
        while let Ok(Decoded::Message { request, length }) = decode_request(rest) {
            black_box(request);
            rest = &rest[length..];
            requests += 1;
        }
        assert_eq!((requests, rest.len()), (MESSAGES, 0));
    });
}

/// The reply to a pop: one packet.
#[divan::bench]
fn pinpriq_reply_encoded(bencher: Bencher<'_, '_>) {
    let mut out = Vec::new();
    bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
        out.clear();
        for _ in 0..MESSAGES {
            put_count(&mut out, 1);
            put_packet(&mut out, b"k", black_box(&PAYLOAD)).expect("it is short enough");
        }
        black_box(&out);
    });
}

/// The commands that most letters carry.
const LETTERS: [&str; 3] = ["PUT", "TAKE", "ACK"];

fn command(name: &str) -> Command<'static> {
    let held = Held {
        queue: QueueName { name: b"jobs", member: None },
        by: HeldBy::Receipt(Receipt {
            number: 70_000,
            grant: Grant { incarnation: 3, serial: 90_000 },
        }),
    };
    match name {
        "PUT" => Command::Put(Put { priority: Some(5), ..Put::new(b"jobs", &PAYLOAD) }),
        "TAKE" => Command::Take(Take {
            queues: &[b"jobs"],
            member: None,
            count: 1,
            wait: Wait::For(Span::from_ms(1_000)),
            selection: Selection::DEFAULT,
            mode: TakeMode::Lease { ttr: None },
        }),
        _ => Command::Ack(Ack { held, payload: None, zombie: None }),
    }
}

#[divan::bench(args = LETTERS)]
fn letter_encoded(bencher: Bencher<'_, '_>, name: &str) {
    let command = command(name);
    let mut out = Vec::new();
    bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
        out.clear();
        for _ in 0..MESSAGES {
            encode_command(black_box(&command), &mut out);
        }
        black_box(&out);
    });
}

#[divan::bench(args = LETTERS)]
fn letter_decoded(bencher: Bencher<'_, '_>, name: &str) {
    let mut letter = Vec::new();
    encode_command(&command(name), &mut letter);
    bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
        for _ in 0..MESSAGES {
            let kind = decode_command(black_box(&letter), |command| {
                black_box(command);
            });
            assert_eq!(kind, Ok(()));
        }
    });
}
