//! What must be true of the logs in the engine: they are read before and after each trouble.
//!
//! Of each shard, the term and the head never fall, entries have consecutive numbers and terms that
//! never fall, no entry has a later term than the fence, and none that was read before has changed.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::board::Board;
use super::engine::Engine;
use super::http::post;
use super::{NAME, SHARDS};
use crate::fault::Fallible;
use crate::process::field;

/// Where an entry has its term, its number and its checksum.
const TERM_AT: usize = 8;
const SEQ_AT: usize = 16;
const CHECKSUM_AT: usize = 32;

/// The logs as they were read last.
#[derive(Default)]
pub(crate) struct Logs {
    shards: BTreeMap<u16, Log>,
    /// How many entries were read, each time anew.
    pub(crate) entries: usize,
}

/// The log of one shard: entries by their numbers, each with its term and its checksum.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Log {
    term: u64,
    head: u64,
    entries: BTreeMap<u64, (u64, u64)>,
}

impl Logs {
    /// Reads all logs, and notes on the board what is wrong.
    pub(crate) fn read(&mut self, engine: &Engine, member: usize, board: &Board) -> Fallible<()> {
        // What was served before the logs are read must be in them.
        let served: Vec<u64> = (0..SHARDS).map(|shard| board.term(shard)).collect();
        let mut logs = engine.logs(member)?;
        for (shard, served) in (0..SHARDS).zip(served) {
            let log = logs.remove(&shard).unwrap_or_default();
            self.entries += log.entries.len();
            let before = self.shards.insert(shard, log.clone()).unwrap_or_default();
            if served > log.term {
                board.fail(format!("shard {shard} was served in term {served}, beyond its fence"));
            }
            for what in log.objections(&before) {
                board.fail(format!("the log of shard {shard}: {what}"));
            }
        }
        Ok(())
    }
}

impl Log {
    /// Reads the log of one shard from a member of etcd, at one moment.
    pub(crate) fn of_etcd(member: SocketAddr, shard: u16) -> Fallible<Self> {
        let prefix = format!("pinpriq/{NAME}/s/{shard:04}/");
        let end = format!("pinpriq/{NAME}/s/{shard:04}0");
        let (key, end) = (STANDARD.encode(&prefix), STANDARD.encode(end));
        let body = format!("{{\"key\":\"{key}\",\"range_end\":\"{end}\"}}");
        let answer = post(member, "/v3/kv/range", &body)?;
        let mut log = Self::default();
        for pair in answer.split("\"key\":").skip(1) {
            let pair = format!("\"key\":{pair}");
            let read = |name: &str| field(&pair, name).and_then(|it| STANDARD.decode(it).ok());
            let (key, value) = read("key").zip(read("value")).ok_or("no pair in the answer")?;
            let key = String::from_utf8(key)?;
            let text = || String::from_utf8_lossy(&value).into_owned();
            match key.strip_prefix(&prefix).unwrap_or_default() {
                "fence" => log.term = text().split(':').next().unwrap_or_default().parse()?,
                "head" => log.head = text().parse()?,
                name if name.starts_with("e/") => {
                    log.add(name[2..].parse()?, &value)?;
                }
                _ => {}
            }
        }
        Ok(log)
    }

    /// Reads the rows of PostgreSQL. A log is `log SHARD TERM HEAD`, and an entry is
    /// `entry SHARD SEQ 0 HEADER`.
    pub(crate) fn of_rows(rows: &str) -> Fallible<BTreeMap<u16, Self>> {
        let mut logs = BTreeMap::<u16, Self>::new();
        for row in rows.lines() {
            let values: Vec<&str> = row.split_whitespace().collect();
            match *values.as_slice() {
                ["log", shard, term, head] => {
                    let log = logs.entry(shard.parse()?).or_default();
                    (log.term, log.head) = (term.parse()?, head.parse()?);
                }
                ["entry", shard, seq, _, header] => {
                    let log = logs.entry(shard.parse()?).or_default();
                    log.add(seq.parse()?, &bytes_of(header).ok_or("a header is no bytes")?)?;
                }
                _ => return Err(format!("a row of the logs is {row:?}").into()),
            }
        }
        Ok(logs)
    }

    /// Adds an entry that is there under this number.
    fn add(&mut self, at: u64, header: &[u8]) -> Fallible<()> {
        let number = |place| number_at(header, place).ok_or("an entry is cut short");
        let (term, seq, sum) = (number(TERM_AT)?, number(SEQ_AT)?, number(CHECKSUM_AT)?);
        if seq != at {
            return Err(format!("entry {seq} is there as {at}").into());
        }
        self.entries.insert(seq, (term, sum));
        Ok(())
    }

    /// What is wrong with it, given how it was before.
    fn objections(&self, before: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.term < before.term || self.head < before.head {
            found.push(format!("term and head fell from {before:?} to {self:?}"));
        }
        let mut last: Option<(u64, u64)> = None;
        for (seq, (term, _)) in &self.entries {
            if let Some((number, earlier)) = last
                && (*seq != number + 1 || *term < earlier)
            {
                found.push(format!("{seq} of term {term} follows {number} of term {earlier}"));
            }
            last = Some((*seq, *term));
        }
        if let Some((seq, term)) = last
            && (seq != self.head || term > self.term)
        {
            let (head, fence) = (self.head, self.term);
            found.push(format!("it ends with {seq} of {term}: head {head}, fence {fence}"));
        }
        for (seq, entry) in &self.entries {
            if before.entries.get(seq).is_some_and(|earlier| earlier != entry) {
                found.push(format!("entry {seq} has changed"));
            }
        }
        found
    }
}

fn number_at(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..at + 8)?.try_into().ok()?;
    Some(u64::from_le_bytes(eight))
}

/// The bytes of a text of hexadecimal digits.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::Log;

    fn log(term: u64, entries: &[(u64, u64, u64)]) -> Log {
        let head = entries.last().map_or(0, |it| it.0);
        let entries = entries.iter().map(|(seq, term, sum)| (*seq, (*term, *sum))).collect();
        Log { term, head, entries }
    }

    #[test]
    fn rows_become_logs() {
        let numbers = [0_u64, 5, 2, 0, 0x0102];
        let bytes = numbers.iter().flat_map(|it| it.to_le_bytes());
        let header = bytes.map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let rows = format!("log 3 6 2 \nentry 3 2 0 {header}\nlog 4 7 0\n");
        let logs = Log::of_rows(&rows).unwrap();
        assert_eq!(logs[&3], Log { term: 6, ..log(6, &[(2, 5, 0x0102)]) });
        assert_eq!(logs[&4], log(7, &[]));
        for wrong in ["log 3 6", "entry 3 2 0 00", &format!("entry 3 1 0 {header}")] {
            assert!(Log::of_rows(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn logs_that_grow_are_right() {
        let before = log(5, &[(1, 4, 7), (2, 5, 8)]);
        assert!(before.objections(&Log::default()).is_empty());
        assert!(log(6, &[(2, 5, 8), (3, 6, 9)]).objections(&before).is_empty());
    }

    #[test]
    fn what_no_fence_allows_is_wrong() {
        let before = log(5, &[(1, 4, 7), (2, 5, 8)]);
        for wrong in [
            log(4, &[(1, 4, 7), (2, 4, 8)]),
            log(5, &[(1, 4, 7)]),
            log(6, &[(1, 4, 7), (2, 5, 8), (3, 4, 9)]),
            log(6, &[(1, 4, 7), (2, 5, 8), (4, 6, 9)]),
            log(6, &[(1, 4, 7), (2, 5, 9)]),
            log(6, &[(2, 5, 8), (3, 7, 9)]),
        ] {
            assert!(!wrong.objections(&before).is_empty(), "{wrong:?}");
        }
    }
}
