//! Where the names are in a request that decide which node of a cluster has to carry it out. Redis
//! calls them keys, and its cluster clients look for them.
//!
//! They are the names of queues, topics, schedules and batches. The table of commands marks them,
//! apart from the batches that a put names. Nothing here knows another command.

use pinpriq_proto::named_limits::used;
use pinpriq_proto::request::fault::Fault;
use pinpriq_proto::request::options;
use pinpriq_proto::request::parts::Parts;
use pinpriq_proto::request::spec::{Spec, Word};
use pinpriq_proto::request::table::{Found, find};
use pinpriq_proto::settings::{DEADLETTER, Setting, USES};

/// Where the keys of a command are, as Redis tells it: places count from 1, after the command word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Positions {
    /// The place of the first key, or 0.
    pub(crate) first: i64,
    /// The place of the last key, or 0.
    pub(crate) last: i64,
    /// From each key to the next one, or 0.
    pub(crate) step: i64,
    /// Whether a request may have other keys, so that only `COMMAND GETKEYS` knows.
    pub(crate) are_movable: bool,
}

impl Positions {
    /// Returns the positions of the keys of a command. Where they differ from request to request,
    /// they are those of the most usual form, if that has any.
    pub(crate) fn of(spec: &Spec) -> Self {
        let are_movable =
            spec.words.iter().any(is_movable) || spec.options.contains(&options::DONE);
        let usual = |word: &&Word| {
            matches!(word, Word::Key(_) | Word::MaybeKey(_) | Word::Queues | Word::AnyQueues)
        };
        let keys = spec.words.iter().take_while(usual).count();
        let keys = i64::try_from(keys).unwrap_or(0);
        if keys == 0 {
            return Self { are_movable, ..Self::default() };
        }
        let first = 1 + i64::from(spec.sub.is_some());
        Self { first, last: first + keys - 1, step: 1, are_movable }
    }
}

/// Whether a word moves keys, or is one that may be missing.
const fn is_movable(word: &Word) -> bool {
    match word {
        Word::MaybeKey(_)
        | Word::MaybeKeyFirst(_)
        | Word::Queues
        | Word::AnyQueues
        | Word::Settings
        | Word::AnySettings => true,
        Word::One(_)
        | Word::Key(_)
        | Word::Maybe(_)
        | Word::Some(_)
        | Word::Any(_)
        | Word::Held
        | Word::CountOrId
        | Word::HeldOrMore => false,
    }
}

/// Returns the keys of a request, in order. Refuses what is no request, or has no keys, in the
/// wording of Redis.
pub(crate) fn keys_of<'a>(given: &'a [&'a [u8]]) -> Result<Vec<&'a [u8]>, Fault> {
    let Found::Spec(spec, _, taken) = find(given) else {
        return Err(Fault::err("Invalid command specified"));
    };
    let mut parts = Parts::of(spec);
    // The node with the queue refuses a request with wrong options.
    let is_sorted = parts.sort(&given[taken..]).is_ok();
    if !is_sorted && parts.words.is_empty() && !spec.words.is_empty() {
        return Err(Fault::err("Invalid arguments specified for command"));
    }
    let mut keys = Vec::new();
    let mut rest = parts.words;
    for word in spec.words {
        let (count, most) = match word {
            Word::Key(_) => (1, 1),
            Word::MaybeKey(_) => (1, usize::from(!rest.is_empty())),
            // The name after it is always there.
            Word::MaybeKeyFirst(_) => (1, usize::from(rest.len() > 1)),
            Word::Queues | Word::AnyQueues => (rest.len(), rest.len()),
            Word::Settings | Word::AnySettings => {
                keys.extend(named_in(rest));
                break;
            }
            _ => break,
        };
        let (of_word, others) = rest.split_at(most.min(rest.len()).min(count));
        keys.extend_from_slice(of_word);
        rest = others;
    }
    keys.extend(parts.done.iter().map(|done| done.queue));
    if spec.options.contains(&options::AFTER) {
        keys.extend(parts.option(options::BATCH));
        keys.extend(parts.after_words);
    }
    if keys.is_empty() {
        return Err(Fault::err("The command has no key arguments"));
    }
    Ok(keys)
}

/// Returns the queue for dead letters and the limits that these pairs of a setting and a value
/// name, if any. They have to be in the same shard.
fn named_in<'a>(pairs: &[&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
    let value = |setting: &Setting| {
        let name = setting.name.as_bytes();
        let mut named = pairs.chunks_exact(2).filter(|pair| pair[0].eq_ignore_ascii_case(name));
        named.next().map(|pair| pair[1]).filter(|value| !value.eq_ignore_ascii_case(b"none"))
    };
    value(DEADLETTER).into_iter().chain(value(USES).into_iter().flat_map(used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinpriq_proto::request::table::TABLE;

    fn positions(name: &str, sub: Option<&str>) -> (i64, i64, i64, bool) {
        let spec = TABLE.iter().find(|spec| spec.name == name && spec.sub == sub);
        let Positions { first, last, step, are_movable } =
            Positions::of(spec.unwrap_or_else(|| panic!("{name} is not in the table")));
        (first, last, step, are_movable)
    }

    fn keys(line: &str) -> Result<String, String> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let found = keys_of(&words).map_err(|fault| fault.sentence)?;
        let shown: Vec<_> = found.iter().map(|key| String::from_utf8_lossy(key)).collect();
        Ok(shown.join(" "))
    }

    #[test]
    fn what_names_a_queue_is_marked_in_the_table() {
        let names = ["queue", "topic", "schedule", "limit", "batch", "from", "to"];
        for spec in TABLE {
            let mut keys_have_ended = false;
            for word in spec.words {
                match word {
                    Word::Key(name) | Word::MaybeKey(name) | Word::MaybeKeyFirst(name) => {
                        assert!(names.contains(name), "{}: {name}", spec.full_name());
                        assert!(!keys_have_ended, "{}", spec.full_name());
                    }
                    Word::One(name) | Word::Maybe(name) | Word::Some(name) | Word::Any(name) => {
                        assert!(!names.contains(name), "{}: {name}", spec.full_name());
                        keys_have_ended = true;
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn fixed_positions_are_told() {
        assert_eq!(positions("PUT", None), (1, 1, 1, false));
        assert_eq!(positions("MOVE", None), (1, 2, 1, false));
        assert_eq!(positions("SCHEDULE", Some("SET")), (2, 3, 1, false));
        assert_eq!(positions("QUEUE", Some("SHOW")), (2, 2, 1, false));
        assert_eq!(positions("QUEUE", Some("SET")), (2, 2, 1, true));
        assert_eq!(positions("TAKE", None), (1, 1, 1, true));
        assert_eq!(positions("STATS", None), (1, 1, 1, true));
        assert_eq!(positions("LEAVE", None), (0, 0, 0, true));
        for without in ["BEAT", "CREDIT", "MULTI", "PING", "INFO", "AUTH"] {
            assert_eq!(positions(without, None), (0, 0, 0, false), "{without}");
        }
    }

    #[test]
    fn keys_of_requests_are_found() {
        for (request, wanted) in [
            ("PUT q p PRIORITY 7", "q"),
            ("put q p NOSUCH", "q"),
            ("TAKE q WAIT 5", "q"),
            ("TAKE QUEUES 2 a b TTR 1 DONE c 1-1-1 DONE d 2-1-1", "a b c d"),
            ("TAKE QUEUES", "QUEUES"),
            ("UNSUBSCRIBE q", "q"),
            ("MOVE a b COUNT 2", "a b"),
            ("ACK q 1-1-1 2-1-1", "q"),
            ("LEAVE t m", "t"),
            ("STATS q", "q"),
            ("STATS t MEMBER m", "t"),
            ("LEASES q COUNT 3", "q"),
            ("QUEUE CREATE q DeadLetter d IDS uuid", "q d"),
            ("QUEUE SET q DEADLETTER none", "q"),
            ("QUEUE SET q USES l,m DEADLETTER d", "q d l m"),
            ("LIMIT SHOW l", "l"),
            ("QUEUE SET q IDS uuid", "q"),
            ("SCHEDULE SET s q p EVERY 5", "s q"),
            ("schedule show s", "s"),
            ("PUBLISH t p", "t"),
        ] {
            assert_eq!(keys(request).as_deref(), Ok(wanted), "{request}");
        }
    }

    #[test]
    fn what_has_no_keys_is_refused_as_in_redis() {
        for request in ["LEAVE m", "STATS", "LEASES COUNT 3", "UNSUBSCRIBE", "PING", "QUEUE LIST"] {
            let told = "The command has no key arguments";
            assert_eq!(keys(request), Err(told.to_owned()), "{request}");
        }
        for request in ["PUT q", "TAKE", "TAKE QUEUES 3 a b", "MOVE a", "SCHEDULE SET s q"] {
            let told = "Invalid arguments specified for command";
            assert_eq!(keys(request), Err(told.to_owned()), "{request}");
        }
        for request in ["NOSUCH q", "QUEUE", "QUEUE NOSUCH q", ""] {
            let told = "Invalid command specified";
            assert_eq!(keys(request), Err(told.to_owned()), "{request}");
        }
    }
}
