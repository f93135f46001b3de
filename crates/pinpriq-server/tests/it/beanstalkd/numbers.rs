//! The numbers of jobs in a conversation, and those that a server with several shards gives: each
//! shard has its own range of them.

use std::collections::BTreeMap;

/// The commands whose first argument is the number of a job.
const NAME_A_JOB: [&[u8]; 8] =
    [b"delete", b"release", b"bury", b"touch", b"peek", b"kick-job", b"reserve-job", b"stats-job"];

/// Which job of the conversation is which of the server, as far as answers have told.
#[derive(Default)]
pub(crate) struct Numbers {
    given: BTreeMap<u64, u64>,
    expected: BTreeMap<u64, u64>,
}

impl Numbers {
    /// Writes requests of a conversation with the numbers of the server.
    pub(crate) fn as_given(&self, requests: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for line in requests.split_inclusive(|byte| *byte == b'\n') {
            let word = line.split(|byte| *byte == b' ').next().unwrap_or_default();
            let rest = &line[word.len()..];
            let begin = rest.iter().position(|byte| *byte != b' ').unwrap_or(rest.len());
            let digits = rest[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let number = std::str::from_utf8(&rest[begin..][..digits]).ok();
            let number = number.and_then(|digits| digits.parse::<u64>().ok());
            let given = number.and_then(|number| self.given.get(&number));
            match given.filter(|_| NAME_A_JOB.contains(&word)) {
                Some(given) => {
                    out.extend_from_slice(word);
                    out.extend_from_slice(&rest[..begin]);
                    out.extend_from_slice(given.to_string().as_bytes());
                    out.extend_from_slice(&rest[begin + digits..]);
                }
                None => out.extend_from_slice(line),
            }
        }
        out
    }

    /// Writes the lines of answers with the numbers of the conversation, as far as the answers that
    /// were expected tell which job is which. Each is always the same one.
    pub(crate) fn as_expected(&mut self, expected: &[String], got: Vec<String>) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for (at, line) in got.into_iter().enumerate() {
            let expected = expected.get(at).and_then(|line| number_in(line));
            let Some((before, given, after)) = number_in(&line) else {
                lines.push(line);
                continue;
            };
            if let Some((_, number, _)) = expected
                && !self.given.contains_key(&number)
            {
                self.expected.entry(given).or_insert_with(|| {
                    self.given.insert(number, given);
                    number
                });
            }
            let Some(number) = self.expected.get(&given) else {
                lines.push(line);
                continue;
            };
            let shorter = given.to_string().len().saturating_sub(number.to_string().len());
            if before == "id: "
                && let Some(head) = lines.iter_mut().rev().find(|line| line.starts_with("OK "))
                && let Ok(length) = head[3..].parse::<usize>()
            {
                *head = format!("OK {}", length - shorter);
            }
            lines.push(format!("{before}{number}{after}"));
        }
        lines
    }
}

/// Returns the number of the job that a line names, with what is before and after it.
fn number_in(line: &str) -> Option<(&str, u64, &str)> {
    let words = ["INSERTED ", "RESERVED ", "FOUND ", "id: "];
    let word = words.into_iter().find(|word| line.starts_with(word))?;
    let rest = &line[word.len()..];
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    Some((&line[..word.len()], rest[..end].parse().ok()?, &rest[end..]))
}
