//! How a client speaks: it notes what it is about to ask, sends it, and notes the answers.
//!
//! What a cluster has not carried out is only asked again by who insists on it.

use std::net::SocketAddr;
use std::time::Duration;

use pinpriq_client::blocking::{Lost, Resp};
use pinpriq_proto::wire::resp::{Value, Words};

use super::Plan;
use super::asks::{Ask, What};
use super::book::Book;
use crate::clock::let_pass;
use crate::fault::Fallible;

/// How often something is asked again at most, and the time between.
const AGAIN_MAX: u32 = 300;
const AGAIN: Duration = Duration::from_millis(100);

/// A connection of a client.
pub(crate) struct Talk<'a> {
    wire: Resp,
    pub(super) book: &'a Book,
    pub(super) plan: Plan,
    /// Tells whether nothing can become durable at the moment. None if it always can.
    is_mute: Option<&'a dyn Fn() -> bool>,
    /// How often something was asked again that may have been carried out.
    pub(super) doubts: u64,
}

/// A task that was handed out.
pub(super) struct Delivered {
    pub(super) id: String,
    /// None if it was popped.
    pub(super) receipt: Option<String>,
    pub(super) payload: Vec<u8>,
}

/// What a cluster says of a request that it has not carried out for certain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Excuse {
    /// Nothing has happened.
    Refused,
    /// It may have happened, or may happen still.
    Unknown,
}

impl Excuse {
    /// Reads it. Returns none if the reply is another one.
    pub(super) fn of(reply: &Value) -> Option<Self> {
        let Value::Error(sentence) = reply else { return None };
        let mut words = sentence.split(' ');
        let first = words.next()?;
        // Behind the position of a part is its own refusal.
        let word = if first == "EXECABORT" { words.nth(1)? } else { first };
        match word {
            "TRYAGAIN" | "CLUSTERDOWN" => Some(Self::Refused),
            "UNKNOWN" => Some(Self::Unknown),
            _ => None,
        }
    }
}

impl<'a> Talk<'a> {
    /// Connects.
    pub(crate) fn connect(address: SocketAddr, book: &'a Book) -> Fallible<Self> {
        let wire = crate::wire::connect(address)?;
        let plan = book.with(|pages| pages.plan);
        Ok(Self { wire, book, plan, is_mute: None, doubts: 0 })
    }

    /// Objects to what is confirmed although nothing can become durable.
    pub(crate) fn watching(self, is_mute: &'a dyn Fn() -> bool) -> Self {
        Self { is_mute: Some(is_mute), ..self }
    }

    fn is_mute(&self) -> bool {
        self.is_mute.is_some_and(|is_mute| is_mute())
    }

    /// Sends requests together, and waits for the answers to the first ones, at most so many. Fails
    /// if the connection ends before.
    pub(super) fn exchange(&mut self, asks: &[Ask], answers: usize) -> Fallible<()> {
        if asks.is_empty() {
            return Ok(());
        }
        self.book.with(|pages| asks.iter().for_each(|ask| pages.note_ask(&ask.what)));
        let was_mute = self.is_mute();
        self.wire.send(asks.iter().flat_map(|ask| &ask.words))?;
        let mut heard = Vec::new();
        let mut outcome = Ok(());
        for ask in asks.iter().take(answers) {
            match self.replies(ask.words.len()) {
                Ok(replies) => heard.push(replies),
                Err(lost) => {
                    outcome = Err(lost.into());
                    break;
                }
            }
        }
        let is_mute = was_mute && self.is_mute();
        self.book.with(|pages| {
            for (ask, replies) in asks.iter().zip(&heard) {
                let what = &ask.what;
                let is_read = matches!(what, What::Show(_) | What::Await(_));
                if is_mute && !is_read && replies.last().is_some_and(is_confirmed) {
                    let sentence = "while nothing is accepted";
                    pages.fail(format!("{what:?} was answered {replies:?} {sentence}"));
                }
                pages.note_answer(what, replies);
            }
        });
        outcome
    }

    /// Waits for so many replies.
    fn replies(&mut self, count: usize) -> Result<Vec<Value>, Lost> {
        (0..count).map(|_| self.wire.reply()).collect()
    }

    /// Sends a command without waiting for the reply.
    pub(super) fn send(&mut self, words: &Words) -> Fallible<()> {
        Ok(self.wire.send([words])?)
    }

    /// Sends a take and waits for the reply.
    pub(super) fn take(&mut self, words: &Words) -> Fallible<Value> {
        let was_mute = self.is_mute();
        let reply = self.wire.ask(words)?;
        if was_mute && self.is_mute() && is_confirmed(&reply) {
            self.book.fail(format!("{reply:?} came while nothing is accepted"));
        }
        Ok(reply)
    }

    /// Sends commands together, and each again until a cluster does not refuse it. Returns the
    /// replies. Some commands may be carried out twice.
    pub(super) fn insist(&mut self, commands: &[Words]) -> Fallible<Vec<Value>> {
        self.wire.send(commands)?;
        let heard = self.replies(commands.len())?;
        let both = commands.iter().zip(heard);
        both.map(|(words, reply)| self.again(words, reply)).collect()
    }

    /// Does so with one command.
    pub(super) fn insist_on(&mut self, words: &Words) -> Fallible<Value> {
        let reply = self.wire.ask(words)?;
        self.again(words, reply)
    }

    /// Sends a command again for as long as the reply is an excuse.
    fn again(&mut self, words: &Words, mut reply: Value) -> Fallible<Value> {
        let mut tries = 0;
        while let Some(excuse) = self.book.with(|pages| pages.excuse(&reply)) {
            tries += 1;
            if tries > AGAIN_MAX {
                let words = words.as_slice().join(&b' ');
                let words = String::from_utf8_lossy(&words).into_owned();
                return Err(format!("{words} is still answered {reply:?}").into());
            }
            self.doubts += u64::from(excuse == Excuse::Unknown);
            let_pass(AGAIN);
            reply = self.wire.ask(words)?;
        }
        Ok(reply)
    }
}

/// Whether a reply to a command that may change something confirms that it has.
fn is_confirmed(reply: &Value) -> bool {
    match reply {
        Value::Error(_) | Value::Null => false,
        Value::Integer(count) => *count > 0,
        Value::Array(parts) => parts.iter().any(is_confirmed),
        _ => true,
    }
}

/// The tasks of the reply to a take or a pop. Returns none if it is no such reply.
pub(super) fn delivered(reply: &Value) -> Option<Vec<Delivered>> {
    let Value::Array(tasks) = reply else { return None };
    tasks.iter().map(task).collect()
}

fn task(value: &Value) -> Option<Delivered> {
    let Value::Array(parts) = value else { return None };
    let [_, id, receipt, payload] = parts.as_slice() else { return None };
    let payload = payload.as_bytes()?.to_vec();
    Some(Delivered { id: text(id)?, receipt: text(receipt), payload })
}

/// A text.
pub(super) fn text(value: &Value) -> Option<String> {
    value.as_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Excuse, Value, is_confirmed};

    #[test]
    fn an_excuse_is_also_read_behind_the_position_of_a_part() {
        for (sentence, excuse) in [
            ("TRYAGAIN shard 1 has no owner", Some(Excuse::Refused)),
            ("CLUSTERDOWN the engine", Some(Excuse::Refused)),
            ("UNKNOWN the owner", Some(Excuse::Unknown)),
            ("EXECABORT 2 CLUSTERDOWN the engine", Some(Excuse::Refused)),
            ("EXECABORT 2 UNKNOWN the owner", Some(Excuse::Unknown)),
            ("EXECABORT 2 STALE that lease", None),
            ("STALE that lease", None),
        ] {
            assert_eq!(Excuse::of(&Value::Error(sentence.to_owned())), excuse, "{sentence}");
        }
        assert_eq!(Excuse::of(&Value::Simple("UNKNOWN".to_owned())), None);
    }

    #[test]
    fn what_changes_nothing_confirms_nothing() {
        let refused = || Value::Error("STALE …".to_owned());
        let done = || Value::Simple("OK".to_owned());
        for (reply, expected) in [
            (refused(), false),
            (Value::Integer(0), false),
            (Value::Array(Vec::new()), false),
            (Value::Array(vec![refused(), refused()]), false),
            (Value::Array(vec![refused(), done()]), true),
            (Value::Integer(1), true),
            (Value::Bulk(b"7".to_vec()), true),
        ] {
            assert_eq!(is_confirmed(&reply), expected, "{reply:?}");
        }
    }
}
