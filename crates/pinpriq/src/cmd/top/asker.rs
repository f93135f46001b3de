//! Asks the server: rounds of figures, what there is to see of a queue and a task, and pauses.
//!
//! A round asks for the names of all queues, but for the figures of a bounded number of them: first
//! those on the screen, then the others in turn. So a round costs no more with 10,000
//! queues than with a few hundred. It knows nothing of screens.

use std::collections::HashSet;
use std::time::Duration;

use pinpriq_proto::wire::resp::{Value, Words};

use super::figures::{Figures, Round, Server, server_ms};
use crate::endpoint::Endpoint;
use crate::exit::Failure;
use crate::resp::{Client, Trouble, unexpected};

/// How many queues are looked at.
pub(super) const QUEUES_MAX: usize = 10_000;
/// Of how many queues a round of the screen asks for figures.
pub(super) const ROUND_MAX: usize = 500;
/// How many requests are sent at a time.
const UNDER_WAY_MAX: usize = 100;
/// How many tasks are on a page of a queue.
const PAGE_TASKS: usize = 20;
/// A page with more bytes of payloads than this is not asked for again and again.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// How long a server may take for a reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection, and where the rounds have come to.
#[derive(Debug)]
pub(super) struct Asker {
    client: Client,
    prefix: Option<Vec<u8>>,
    /// The last queue whose turn it was.
    turn: Vec<u8>,
}

/// What is on the screen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Focus {
    /// The queues whose rows are on the screen.
    pub(super) visible: Vec<Vec<u8>>,
    /// The queue that was entered.
    pub(super) page: Option<PageOf>,
    /// The task that was entered, in the queue of the page.
    pub(super) task: Option<Vec<u8>>,
}

/// A page of tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PageOf {
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
    /// The tasks, with all that is known of each.
    pub(super) tasks: Vec<Value>,
    /// Where the next page begins.
    pub(super) next: Option<Vec<u8>>,
}

/// What there is to see of a task. None if it is gone.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sight {
    pub(super) queue: Vec<u8>,
    pub(super) id: Vec<u8>,
    pub(super) task: Option<Value>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Problem {
    /// The connection is of no more use.
    Lost(Failure),
    /// The server refused this, and goes on.
    Refused(String),
}

impl From<Trouble> for Problem {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused(sentence) => Self::Refused(sentence),
            lost @ Trouble::Lost(_) => Self::Lost(lost.into()),
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Lost(failure) => failure,
            Problem::Refused(sentence) => Self::refused(sentence),
        }
    }
}

impl Asker {
    /// Connects.
    pub(super) fn open(endpoint: &Endpoint, prefix: Option<&[u8]>) -> Result<Self, Problem> {
        let mut client = Client::open(endpoint)?;
        client.limit_waiting(Some(PATIENCE));
        Ok(Self { client, prefix: prefix.map(<[u8]>::to_vec), turn: Vec::new() })
    }

    /// Asks for the figures of up to `most` queues, first of those that are `visible`.
    pub(super) fn round(&mut self, visible: &[Vec<u8>], most: usize) -> Result<Round, Problem> {
        let info = self.client.call(&Words::new("INFO"))?;
        let begun = server_ms(&info).ok_or_else(malformed)?;
        let all = self.client.call(&Words::new("STATS"))?;
        let server = Server::of(&info, &all).ok_or_else(malformed)?;
        let (names, more) = self.names()?;
        let (chosen, turn) = choose(&names, visible, &self.turn, most);
        self.turn = turn;
        let figures = self.figures(&chosen)?;
        let info = self.client.call(&Words::new("INFO Server"))?;
        let ended = server_ms(&info).ok_or_else(malformed)?;
        Ok(Round {
            server_ms: begun,
            took_ms: ended.saturating_sub(begun).max(0),
            server,
            names,
            more,
            figures,
        })
    }

    fn names(&mut self) -> Result<(Vec<Vec<u8>>, bool), Problem> {
        let words = Words::new("QUEUE LIST").given("PREFIX", self.prefix.as_ref());
        let answer = self.client.call(&words.option("COUNT", Some(QUEUES_MAX)))?;
        let Some([cursor, names]) = answer.elements() else { return Err(malformed()) };
        let names = names.elements().ok_or_else(malformed)?;
        let names = names.iter().filter_map(Value::as_bytes).map(<[u8]>::to_vec).collect();
        Ok((names, cursor.as_bytes() != Some(b"0")))
    }

    fn figures(&mut self, names: &[Vec<u8>]) -> Result<Vec<(Vec<u8>, Figures)>, Problem> {
        let mut figures = Vec::with_capacity(names.len());
        for chunk in names.chunks(UNDER_WAY_MAX) {
            let mut bytes = Vec::new();
            for name in chunk {
                Words::new("STATS").bytes(name).put(&mut bytes);
            }
            self.client.send(&bytes)?;
            for name in chunk {
                match self.client.reply()? {
                    // In a cluster the owner of a queue may be gone for a moment.
                    Value::Error(_) => {}
                    stats => figures.push((name.clone(), Figures::of(&stats))),
                }
            }
        }
        Ok(figures)
    }

    /// Asks what there is to see of a queue.
    pub(super) fn page(&mut self, of: &PageOf) -> Result<Page, Problem> {
        let settings = self.client.call(&Words::new("QUEUE SHOW").bytes(&of.queue));
        let settings = match settings {
            Ok(settings) => Some(settings),
            Err(Trouble::Refused(sentence)) if sentence.starts_with("NOQUEUE") => None,
            Err(trouble) => return Err(trouble.into()),
        };
        let words = Words::new("SCAN").bytes(&of.queue).bytes("CURSOR").bytes(&of.cursor);
        let words = words.option("COUNT", Some(PAGE_TASKS)).option("STATE", Some(of.state));
        let answer = self.client.call(&words.bytes("WITHMETA"))?;
        let Some([next, tasks]) = answer.elements() else { return Err(malformed()) };
        let tasks = tasks.elements().ok_or_else(malformed)?.to_vec();
        let next = next.as_bytes().filter(|next| *next != b"0").map(<[u8]>::to_vec);
        Ok(Page { of: of.clone(), settings, tasks, next })
    }

    /// Asks for all that is known of a task.
    pub(super) fn sight(&mut self, queue: &[u8], id: &[u8]) -> Result<Sight, Problem> {
        let task = match self.client.call(&Words::new("GET").bytes(queue).bytes(id))? {
            task @ Value::Map(_) => Some(task),
            _ => None,
        };
        Ok(Sight { queue: queue.to_vec(), id: id.to_vec(), task })
    }

    /// Asks why a task is not handed out, or which task of the queue is next.
    pub(super) fn explain(&mut self, queue: &[u8], id: Option<&[u8]>) -> Result<Value, Problem> {
        let words = Words::new("EXPLAIN").bytes(queue);
        Ok(self.client.call(&words.all(id))?)
    }

    /// Pauses a queue for takes, or ends that.
    pub(super) fn pause(&mut self, queue: &[u8], pause: bool) -> Result<(), Problem> {
        let words = Words::new(if pause { "QUEUE PAUSE" } else { "QUEUE RESUME" });
        self.client.call(&words.bytes(queue).bytes("OUT"))?;
        Ok(())
    }
}

impl Page {
    /// Whether it is small enough to be asked for in each round.
    pub(super) fn is_light(&self) -> bool {
        let bytes =
            |task: &Value| task.field("payload").and_then(Value::as_bytes).map_or(0, <[u8]>::len);
        self.tasks.iter().map(bytes).sum::<usize>() <= PAGE_BYTES_MAX
    }
}

fn malformed() -> Problem {
    Problem::Lost(unexpected())
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
