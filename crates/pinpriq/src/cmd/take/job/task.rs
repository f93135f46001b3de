//! A task as a worker knows it: where it comes from, its lease, and what the command is told.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt as _;

use pinpriq_wire::resp::Value;

use crate::output::escaped;
use crate::words::Words;

/// A task that was taken.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Task {
    queue: Vec<u8>,
    id: Vec<u8>,
    receipt: Vec<u8>,
    key: Option<Vec<u8>>,
    pub(super) payload: Vec<u8>,
    /// How often it was taken.
    pub(super) attempts: u64,
}

/// An answer that no take gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unexpected;

impl Task {
    /// The first of the tasks that a take with metadata was answered with, if there is one.
    pub(super) fn from_answer(answer: Value) -> Result<Option<Self>, Unexpected> {
        let Value::Array(tasks) = answer else { return Err(Unexpected) };
        match tasks.into_iter().next() {
            None => Ok(None),
            Some(Value::Map(members)) => Self::from_members(members).map(Some).ok_or(Unexpected),
            Some(_) => Err(Unexpected),
        }
    }

    fn from_members(members: Vec<(Value, Value)>) -> Option<Self> {
        let mut task = Self::default();
        for (name, value) in members {
            match (name.as_bytes()?, value) {
                (b"queue", Value::Bulk(queue)) => task.queue = queue,
                (b"id", Value::Bulk(id)) => task.id = id,
                (b"receipt", Value::Bulk(receipt)) => task.receipt = receipt,
                (b"key", Value::Bulk(key)) => task.key = Some(key),
                (b"payload", Value::Bulk(payload)) => task.payload = payload,
                (b"attempts", Value::Integer(attempts)) => {
                    task.attempts = u64::try_from(attempts).ok()?;
                }
                _ => {}
            }
        }
        // Without a receipt nothing could be told about it.
        (!task.receipt.is_empty()).then_some(task)
    }

    /// A command about the lease of the task.
    pub(super) fn words(&self, command: &str) -> Words {
        Words::new(command).bytes(&self.queue).bytes(&self.receipt)
    }

    /// What the command finds in its environment.
    pub(super) fn variables(&self, address: &str) -> [(&'static str, Option<OsString>); 6] {
        let text = |bytes: &[u8]| Some(OsString::from_vec(bytes.to_vec()));
        [
            ("PINPRIQ_QUEUE", text(&self.queue)),
            ("PINPRIQ_ID", text(&self.id)),
            ("PINPRIQ_RECEIPT", text(&self.receipt)),
            ("PINPRIQ_ATTEMPTS", Some(self.attempts.to_string().into())),
            ("PINPRIQ_KEY", self.key.as_deref().and_then(text)),
            ("PINPRIQ_RESP_ADDRESS", Some(address.into())),
        ]
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
    use pinpriq_wire::resp::Value;

    use super::{Task, Unexpected};
    use crate::printer::text;

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
        ];
        let answer = Value::Array(vec![Value::Map(members)]);
        let task = Task::from_answer(answer).unwrap().unwrap();
        assert_eq!(task.words("ACK").shown(), "ACK q\\n 7-1-2");
        assert_eq!(task.to_string(), "task 7 of q\\n");
        assert_eq!((task.payload.as_slice(), task.attempts), (&b"\xff"[..], 3));
        assert_eq!(task.variables("a:1")[4], ("PINPRIQ_KEY", None));
        assert_eq!(task.variables("a:1")[3], ("PINPRIQ_ATTEMPTS", Some("3".into())));
    }

    #[test]
    fn no_task_is_told_from_no_answer() {
        assert_eq!(Task::from_answer(Value::Array(vec![])), Ok(None));
        for wrong in [Value::Null, Value::Array(vec![Value::Null])] {
            assert_eq!(Task::from_answer(wrong), Err(Unexpected));
        }
        let without_receipt = Value::Array(vec![Value::Map(vec![])]);
        assert_eq!(Task::from_answer(without_receipt), Err(Unexpected));
    }
}
