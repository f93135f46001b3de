//! Asks a server for rounds of figures, for pages of tasks, for shares and for limits.
//!
//! A round asks for the names of all queues, but for the figures of a bounded number of them: first
//! those on the screen, then the others in turn. So a round costs no more with 10,000
//! queues than with a few hundred. It knows nothing of screens.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::time::Duration;

use pinpriq_proto::wire::resp::{Value, Words};

use super::figures::{Figures, Server, server_ms};
use crate::endpoint::Endpoint;
use crate::resp::{Client, Trouble, unexpected};
use crate::words::OsWords as _;

/// How many queues are looked at.
pub(super) const QUEUES_MAX: u64 = 10_000;
/// How many requests are sent at a time.
const UNDER_WAY_MAX: usize = 100;
/// How many tasks are on a page of a queue.
const PAGE_TASKS: usize = 20;
/// How many shares of a queue are shown, and how many limits.
const SHARES: usize = 100;
const LIMITS: usize = 100;
/// How long a server may take for a reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection, and where the rounds have come to.
#[derive(Debug)]
pub(super) struct Asker {
    client: Client,
    /// What is asked for the names of queues.
    list: Words,
    /// The last queue whose turn it was.
    turn: Vec<u8>,
}

/// What was learnt in one round.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Round {
    /// The time of the server at the beginning of the round.
    pub(super) server_ms: i64,
    /// How long the round took.
    pub(super) took_ms: i64,
    /// The figures of the server.
    pub(super) server: Server,
    /// The names of the queues, in the order of their bytes.
    pub(super) names: Vec<Vec<u8>>,
    /// Whether there are more queues than are looked at.
    pub(super) more: bool,
    /// The figures of those that were asked for.
    pub(super) figures: Vec<(Vec<u8>, Figures)>,
    /// Why some have none, if not because they came to an end.
    pub(super) refusal: Option<String>,
}

/// A page of tasks, or of shares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PageOf {
    /// Whether it is about the shares of the queue, those with the longest wait first.
    pub(super) shares: bool,
    pub(super) queue: Vec<u8>,
    /// The letter of the state.
    pub(super) state: &'static str,
    /// Where the page begins; `0` is the first.
    pub(super) cursor: Vec<u8>,
}

/// What there is to see of a queue.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Page {
    pub(super) of: PageOf,
    /// The reply to `QUEUE SHOW`; none if the queue is gone.
    pub(super) settings: Option<Value>,
    /// The tasks or shares, with all that is known of each.
    pub(super) tasks: Vec<Value>,
    /// Where the next page begins. If it is about shares, some tasks were not counted yet.
    pub(super) next: Option<Vec<u8>>,
}

/// What asks for the names of up to `count` queues.
pub(super) fn list_words(prefix: Option<&OsStr>, count: u64) -> Words {
    Words::new("QUEUE LIST").named("PREFIX", prefix).option("COUNT", Some(count))
}

impl Asker {
    /// Connects, to ask for up to `count` queues.
    pub(super) fn open(
        endpoint: &Endpoint,
        prefix: Option<&OsStr>,
        count: u64,
    ) -> Result<Self, Trouble> {
        let mut client = Client::open(endpoint)?;
        client.limit_waiting(Some(PATIENCE));
        Ok(Self { client, list: list_words(prefix, count), turn: Vec::new() })
    }

    /// Asks for the figures of up to `most` queues, first of those that are `visible`.
    pub(super) fn round(&mut self, visible: &[Vec<u8>], most: usize) -> Result<Round, Trouble> {
        let info = self.client.call(&Words::new("INFO"))?;
        let begun = server_ms(&info).ok_or_else(malformed)?;
        let all = self.client.call(&Words::new("STATS"))?;
        let server = Server::of(&info, &all).ok_or_else(malformed)?;
        let (names, more) = self.names()?;
        let (chosen, turn) = choose(&names, visible, &self.turn, most);
        self.turn = turn;
        let mut round = Round { server_ms: begun, server, names, more, ..Round::default() };
        self.ask_for_figures(&mut round, &chosen)?;
        let info = self.client.call(&Words::new("INFO Server"))?;
        let ended = server_ms(&info).ok_or_else(malformed)?;
        round.took_ms = ended.saturating_sub(begun).max(0);
        Ok(round)
    }

    fn names(&mut self) -> Result<(Vec<Vec<u8>>, bool), Trouble> {
        let answer = self.client.call(&self.list)?;
        let Some([cursor, names]) = answer.elements() else { return Err(malformed()) };
        let names = names.elements().ok_or_else(malformed)?;
        let names = names.iter().filter_map(Value::as_bytes).map(<[u8]>::to_vec).collect();
        Ok((names, cursor.as_bytes() != Some(b"0")))
    }

    fn ask_for_figures(&mut self, round: &mut Round, names: &[Vec<u8>]) -> Result<(), Trouble> {
        for chunk in names.chunks(UNDER_WAY_MAX) {
            let mut bytes = Vec::new();
            for name in chunk {
                Words::new("STATS").bytes(name).put(&mut bytes);
            }
            self.client.send(&bytes)?;
            for name in chunk {
                match self.client.reply()? {
                    Value::Error(sentence) if sentence.starts_with("NOQUEUE") => {}
                    Value::Error(sentence) => round.refusal = Some(sentence),
                    stats => round.figures.push((name.clone(), Figures::of(&stats))),
                }
            }
        }
        Ok(())
    }

    /// Asks what there is to see of a queue.
    pub(super) fn page(&mut self, of: &PageOf) -> Result<Page, Trouble> {
        let settings = match self.client.call(&Words::new("QUEUE SHOW").bytes(&of.queue)) {
            Ok(settings) => Some(settings),
            Err(Trouble::Refused(sentence)) if sentence.starts_with("NOQUEUE") => None,
            Err(trouble) => return Err(trouble),
        };
        let (tasks, next) = if of.shares { self.shares(&of.queue)? } else { self.scan(of)? };
        Ok(Page { of: of.clone(), settings, tasks, next })
    }

    /// Asks for the shares of a queue that wait longest. There is a cursor while not all of its
    /// tasks are counted.
    pub(super) fn shares(&mut self, queue: &[u8]) -> Result<Paged, Trouble> {
        let words = Words::new("QUEUE SHARES").bytes(queue).option("COUNT", Some(SHARES));
        paged(&self.client.call(&words.bytes("TOP"))?)
    }

    /// Asks for the first limits by name.
    pub(super) fn limits(&mut self) -> Result<Vec<Value>, Trouble> {
        let list = Words::new("LIMIT LIST").option("COUNT", Some(LIMITS));
        let (names, _) = paged(&self.client.call(&list)?)?;
        let mut bytes = Vec::new();
        for name in &names {
            Words::new("LIMIT SHOW").bytes(name.as_bytes().unwrap_or_default()).put(&mut bytes);
        }
        self.client.send(&bytes)?;
        let mut limits = Vec::new();
        for _ in &names {
            match self.client.reply()? {
                // It has gone meanwhile, or may not be seen.
                Value::Error(_) => {}
                limit => limits.push(limit),
            }
        }
        Ok(limits)
    }

    fn scan(&mut self, of: &PageOf) -> Result<Paged, Trouble> {
        let words = Words::new("SCAN").bytes(&of.queue).bytes("CURSOR").bytes(&of.cursor);
        let words = words.option("COUNT", Some(PAGE_TASKS)).option("STATE", Some(of.state));
        paged(&self.client.call(&words.bytes("WITHMETA"))?)
    }
}

/// What a page has, and where the next one begins.
type Paged = (Vec<Value>, Option<Vec<u8>>);

fn paged(answer: &Value) -> Result<Paged, Trouble> {
    let Some([next, found]) = answer.elements() else { return Err(malformed()) };
    let found = found.elements().ok_or_else(malformed)?.to_vec();
    Ok((found, next.as_bytes().filter(|next| *next != b"0").map(<[u8]>::to_vec)))
}

fn malformed() -> Trouble {
    Trouble::Lost(unexpected().to_string())
}

/// Chooses whose figures are asked for: those that are visible, and then the others in turn after
/// the one whose turn it was. Returns whose turn it was then.
fn choose(
    names: &[Vec<u8>],
    visible: &[Vec<u8>],
    turn: &[u8],
    most: usize,
) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut chosen: Vec<Vec<u8>> = visible.iter().take(most).cloned().collect();
    let seen: HashSet<&[u8]> = visible.iter().map(Vec::as_slice).collect();
    let start = names.partition_point(|name| name.as_slice() <= turn);
    let (before, after) = names.split_at_checked(start).unwrap_or((names, &[]));
    let mut turn = turn.to_vec();
    for name in after.iter().chain(before) {
        if chosen.len() >= most {
            break;
        }
        if !seen.contains(name.as_slice()) {
            chosen.push(name.clone());
        }
        turn.clone_from(name);
    }
    (chosen, turn)
}

#[cfg(test)]
mod tests {
    use super::choose;

    fn names(names: &str) -> Vec<Vec<u8>> {
        names.split_whitespace().map(|name| name.as_bytes().to_vec()).collect()
    }

    #[test]
    fn every_queue_has_its_turn_and_the_visible_ones_always() {
        let (all, visible) = (names("a b c d e f"), names("c"));
        let mut turn = Vec::new();
        let mut rounds = Vec::new();
        for _ in 0..3 {
            let (chosen, next) = choose(&all, &visible, &turn, 3);
            rounds.push(chosen);
            turn = next;
        }
        assert_eq!(rounds, [names("c a b"), names("c d e"), names("c f a")]);
    }

    #[test]
    fn a_few_queues_are_all_asked_for_in_each_round() {
        let all = names("a b c");
        let (chosen, turn) = choose(&all, &names("b"), b"", 500);
        assert_eq!(chosen, names("b a c"));
        assert_eq!(choose(&all, &[], &turn, 500).0, all);
        // A queue that has come to an end is no reason to stop.
        assert_eq!(choose(&all, &[], b"bb", 2).0, names("c a"));
    }
}
