//! A task as a worker knows it: its origin, its lease, and the variables for the command.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt as _;

use pinpriq_proto::wire::resp::{Value, Words};

use super::variables::{Variable, of_headers};
use crate::endpoint::Endpoint;
use crate::exit::Failure;
use crate::output::escaped;
use crate::resp::unexpected;

/// A task that was taken.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Task {
    queue: Vec<u8>,
    /// Whose lane it is in, if the queue is a topic.
    member: Option<Vec<u8>>,
    id: Vec<u8>,
    receipt: Vec<u8>,
    key: Option<Vec<u8>>,
    /// How often it was taken.
    pub(super) attempts: u64,
    /// How often it has failed.
    pub(super) failures: u64,
    /// Why it has failed the last time.
    pub(super) reason: Option<Vec<u8>>,
    /// Everything that is known about it, as it came.
    pub(super) known: Value,
}

impl Task {
    /// Returns the first of the tasks in the reply to a take with metadata, if there is one.
    pub(super) fn from_answer(answer: Value) -> Result<Option<Self>, Failure> {
        let Value::Array(tasks) = answer else { return Err(unexpected()) };
        match tasks.into_iter().next() {
            None => Ok(None),
            Some(task) => Self::from_known(task).map(Some).ok_or_else(unexpected),
        }
    }

    fn from_known(known: Value) -> Option<Self> {
        let bytes = |name| known.field(name).and_then(Value::as_bytes).map(<[u8]>::to_vec);
        let number = |name| {
            u64::try_from(known.field(name).and_then(Value::integer).unwrap_or_default()).ok()
        };
        Some(Self {
            queue: bytes("queue").unwrap_or_default(),
            member: bytes("member"),
            id: bytes("id").unwrap_or_default(),
            // Without a receipt nothing could be reported about it.
            receipt: bytes("receipt").filter(|receipt| !receipt.is_empty())?,
            key: bytes("key"),
            attempts: number("attempts")?,
            failures: number("failures")?,
            reason: bytes("reason"),
            known,
        })
    }

    /// Returns its payload.
    pub(super) fn payload(&self) -> &[u8] {
        self.known.field("payload").and_then(Value::as_bytes).unwrap_or_default()
    }

    /// Returns a command about the lease of the task.
    pub(super) fn words(&self, command: &str) -> Words {
        Words::new(command).bytes(&self.queue).bytes(&self.receipt)
    }

    /// Returns the words of a take that acknowledges the task as well.
    pub(super) fn done_by(&self, take: &Words) -> Words {
        take.clone().bytes("DONE").bytes(&self.queue).bytes(&self.receipt)
    }

    /// Returns a command that shows the settings of its queue.
    pub(super) fn show_words(&self) -> Words {
        let words = Words::new("QUEUE").bytes("SHOW").bytes(&self.queue);
        words.given("MEMBER", self.member.as_deref())
    }

    /// Returns the reason, if a message of the server says that the task was cancelled.
    pub(super) fn is_cancelled_by(&self, message: &[Value]) -> Option<String> {
        let [word, _, _, receipt, reason] = message else { return None };
        let is_it = word.as_bytes() == Some(b"cancel") && receipt.as_bytes() == Some(&self.receipt);
        let reason = reason.as_bytes().filter(|_| is_it)?;
        Some(String::from_utf8_lossy(reason).into_owned())
    }

    /// Returns its headers.
    fn headers(&self) -> Vec<(&[u8], &[u8])> {
        let pairs = self.known.field("headers").and_then(Value::pairs).into_iter().flatten();
        pairs.filter_map(|(name, value)| Some((name.as_bytes()?, value.as_bytes()?))).collect()
    }

    /// Returns how far the last attempt came, if that said so and a variable can hold it.
    fn checkpoint(&self) -> Option<&[u8]> {
        self.known.field("checkpoint")?.as_bytes().filter(|bytes| !bytes.contains(&0))
    }

    /// Returns the environment variables for the command.
    pub(super) fn variables(&self, endpoint: &Endpoint) -> Vec<Variable> {
        let text = |bytes: &[u8]| Some(OsString::from_vec(bytes.to_vec()));
        let plain = [
            ("PINPRIQ_QUEUE", text(&self.queue)),
            ("PINPRIQ_ID", text(&self.id)),
            ("PINPRIQ_RECEIPT", text(&self.receipt)),
            ("PINPRIQ_ATTEMPTS", Some(self.attempts.to_string().into())),
            ("PINPRIQ_FAILURES", Some(self.failures.to_string().into())),
            ("PINPRIQ_KEY", self.key.as_deref().and_then(text)),
            ("PINPRIQ_MEMBER", self.member.as_deref().and_then(text)),
            ("PINPRIQ_CHECKPOINT", self.checkpoint().and_then(text)),
            ("PINPRIQ_RESP_ADDRESS", Some(endpoint.to_string().into())),
        ];
        let names = std::env::vars_os().map(|(name, _)| name);
        let headers = of_headers(&self.headers(), names);
        plain.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(headers).collect()
    }
}

/// Says which task it is.
impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {} of {}", escaped(&self.id), escaped(&self.queue))
    }
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::wire::resp::{Value, Words};

    use super::{Task, unexpected};
    use crate::args::encryption::EncryptionArgs;
    use crate::endpoint::{self, Endpoint};
    use crate::printer::text;
    use crate::words::OsWords as _;

    #[test]
    fn a_task_is_read_from_its_metadata() {
        let members = vec![
            (text("queue"), text("q\n")),
            (text("member"), Value::Null),
            (text("id"), text("7")),
            (text("receipt"), text("7-1-2")),
            (text("payload"), text(b"\xff")),
            (text("key"), Value::Null),
            (text("attempts"), Value::Integer(3)),
            (text("failures"), Value::Integer(2)),
            (text("reason"), text("why")),
            (text("headers"), Value::Map(vec![(text("a"), text("b"))])),
            (text("checkpoint"), text("row 7")),
        ];
        let answer = Value::Array(vec![Value::Map(members)]);
        let task = Task::from_answer(answer).unwrap().unwrap();
        assert_eq!(task.words("ACK").shown(), "ACK q\\n 7-1-2");
        let take = task.done_by(&Words::new("TAKE a"));
        assert_eq!(take.shown(), "TAKE a DONE q\\n 7-1-2");
        assert_eq!(task.to_string(), "task 7 of q\\n");
        assert_eq!((task.payload(), task.attempts), (&b"\xff"[..], 3));
        assert_eq!((task.failures, task.reason.as_deref()), (2, Some(&b"why"[..])));
        assert_eq!(task.show_words().shown(), "QUEUE SHOW q\\n");
        let (encryption, schemes) = (EncryptionArgs::default(), endpoint::RESP);
        let endpoint = Endpoint::of("a:1", &encryption, schemes).unwrap();
        let variables = task.variables(&endpoint);
        for (name, value) in [
            ("PINPRIQ_ATTEMPTS", Some("3")),
            ("PINPRIQ_FAILURES", Some("2")),
            ("PINPRIQ_KEY", None),
            ("PINPRIQ_MEMBER", None),
            ("PINPRIQ_CHECKPOINT", Some("row 7")),
            ("PINPRIQ_HEADER_A", Some("b")),
            ("TRACEPARENT", None),
        ] {
            let variable = (name.to_owned(), value.map(Into::into));
            assert!(variables.contains(&variable), "{variable:?} is in {variables:?}");
        }
    }

    #[test]
    fn no_task_is_told_from_no_answer() {
        assert_eq!(Task::from_answer(Value::Array(vec![])), Ok(None));
        for wrong in [Value::Null, Value::Array(vec![Value::Null])] {
            assert_eq!(Task::from_answer(wrong), Err(unexpected()));
        }
        let without_receipt = Value::Array(vec![Value::Map(vec![])]);
        assert_eq!(Task::from_answer(without_receipt), Err(unexpected()));
    }
}
