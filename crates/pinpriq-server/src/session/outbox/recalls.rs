//! Deliveries that are called back before they were sent.
//!
//! What was sent already is called back by an output of its own, which this module does not write.

use pinpriq_proto::reply::Output;
use pinpriq_proto::task::Receipt;

use super::{Answer, Outbox, leases_in};
use crate::letters::letter::Part;

impl Outbox {
    /// Drops the delivery of this lease, if nothing of it was sent and no answer behind it counts
    /// it. Returns whether it was dropped: then the client need not hear that it was called back.
    pub(crate) fn call_back(&mut self, receipt: Receipt) -> bool {
        let begun = usize::from(self.progress > 0);
        for waiting in self.waiting.iter_mut().skip(begun).rev() {
            if waiting.answer.may_tell_credit() {
                return false;
            }
            // Payloads that were left in the store may be on their way.
            if let Answer::Output(output @ Output::Delivery { .. }) = &waiting.answer
                && waiting.holds.is_empty()
                && leases_in(output).any(|it| it == receipt)
            {
                self.waiting_bytes -= waiting.bytes;
                (waiting.answer, waiting.bytes) = (Answer::Bytes(Vec::new()), 0);
                return true;
            }
        }
        false
    }
}

impl Answer {
    /// Whether it may say how much credit was left, after all deliveries before it.
    const fn may_tell_credit(&self) -> bool {
        match self {
            Self::Bytes(bytes) => !bytes.is_empty(),
            Self::Part(part) => matches!(part, Part::Delivered(_)),
            _ => false,
        }
    }
}
