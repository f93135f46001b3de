//! Which commands only look. This follows from their facts, so a new command need not say it.
//!
//! Where only such commands are carried out is the server's business.

use crate::command::Command;
use crate::rights::{Need, Right};

impl Command<'_> {
    /// Whether it leaves everything as it is: it is not there to change anything, and it needs no
    /// right but the one to look. A take is no [change](Command::is_change), and yet it does not
    /// only look.
    #[must_use]
    pub fn only_looks(&self) -> bool {
        let mut looks = !self.is_change();
        self.each_need(&mut |need| {
            let (Need::On(right, _) | Need::Wherever(right)) = need;
            looks &= right == Right::Look;
        });
        looks
    }
}

#[cfg(test)]
mod tests {
    use crate::command::{BatchCommand, Command, QueueCommand, QueueName, Wait};

    #[test]
    fn what_takes_puts_or_manages_does_not_only_look() {
        let queue = QueueName { name: b"q", member: None };
        let looks = [
            Command::Get { queue, id: b"1" },
            Command::Explain { queue, id: None },
            Command::Await { queue, id: b"1", wait: Wait::No, result: false },
            Command::Queue(QueueCommand::Stats(None)),
            Command::Queue(QueueCommand::Show(queue)),
            Command::Batch(BatchCommand::Show(b"b")),
            Command::Tubes(None),
        ];
        for command in looks {
            assert!(command.only_looks(), "{command:?}");
            assert!(Command::Within { names: &[], command: &command }.only_looks(), "{command:?}");
        }
        let others = [
            Command::Head(&[b"q"]),
            Command::Kick { queue: b"q", count: 1 },
            Command::Kill { queue, ids: &[b"1"] },
            Command::LetGo,
            Command::Transaction(&[]),
            Command::Unsubscribe { queues: &[b"q"], member: None },
            Command::Queue(QueueCommand::Truncate(queue)),
            Command::Batch(BatchCommand::Close(b"b")),
        ];
        for command in others {
            assert!(!command.only_looks(), "{command:?}");
            assert!(!Command::Within { names: &[], command: &command }.only_looks(), "{command:?}");
        }
    }
}
