//! How a client speaks: it notes what it is about to ask, sends it, and notes the answers.

use pinpriq_client::blocking::{Lost, Resp};
use pinpriq_proto::wire::resp::Value;

use super::asks::Ask;
use super::book::Book;
use crate::fault::Fallible;

/// A task that was handed out.
pub(super) struct Delivered {
    pub(super) id: String,
    /// None if it was popped.
    pub(super) receipt: Option<String>,
    pub(super) payload: Vec<u8>,
}

/// Sends requests together, and waits for the answers to the first ones, at most so many. Fails if
/// the connection ends before.
pub(super) fn exchange(wire: &mut Resp, book: &Book, asks: &[Ask], answers: usize) -> Fallible<()> {
    if asks.is_empty() {
        return Ok(());
    }
    book.with(|pages| asks.iter().for_each(|ask| pages.note_ask(&ask.what)));
    wire.send(asks.iter().flat_map(|ask| &ask.words))?;
    let mut heard = Vec::new();
    let mut outcome = Ok(());
    for ask in asks.iter().take(answers) {
        match replies(wire, ask) {
            Ok(replies) => heard.push(replies),
            Err(lost) => {
                outcome = Err(lost.into());
                break;
            }
        }
    }
    book.with(|pages| {
        for (ask, replies) in asks.iter().zip(&heard) {
            pages.note_answer(&ask.what, replies);
        }
    });
    outcome
}

/// Waits for the replies to all that a request sends.
fn replies(wire: &mut Resp, ask: &Ask) -> Result<Vec<Value>, Lost> {
    ask.words.iter().map(|_| wire.reply()).collect()
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
