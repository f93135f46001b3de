//! The subscriptions of one client, so that they can be made again at another owner of their shard.
//!
//! A single server keeps none here: its engines know them.

use std::collections::BTreeMap;

use pinpriq_proto::command::{Command, TakeMode};
use pinpriq_proto::letters::encode_command;

/// The subscriptions of one client.
#[derive(Default)]
pub(crate) struct Subscriptions {
    /// For each queue, or topic and member: the encoded command, and whether deliveries are popped.
    each: BTreeMap<Key, (Vec<u8>, bool)>,
}

/// A queue, or a topic and a member.
type Key = (Vec<u8>, Option<Vec<u8>>);

impl Subscriptions {
    /// Notes what this command does to the subscriptions.
    pub(crate) fn note(&mut self, command: &Command<'_>) {
        match *command {
            Command::Subscribe { queues, member, selection, mode } => {
                for queue in queues {
                    let one = Command::Subscribe { queues: &[queue], member, selection, mode };
                    let mut bytes = Vec::new();
                    encode_command(&one, &mut bytes);
                    let pops = matches!(mode, TakeMode::Pop);
                    self.each.insert(key(queue, member), (bytes, pops));
                }
            }
            Command::Unsubscribe { queues: [], .. } => self.each.clear(),
            Command::Unsubscribe { queues, member } => {
                for queue in queues {
                    self.each.remove(&key(queue, member));
                }
            }
            _ => {}
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.each.clear();
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// Whether any delivery is popped, so that one that gets lost is lost for good.
    pub(crate) fn pop(&self) -> bool {
        self.each.values().any(|(_, pops)| *pops)
    }

    /// Returns the commands that make them again.
    pub(crate) fn commands(&self) -> impl Iterator<Item = &[u8]> {
        self.each.values().map(|(bytes, _)| &bytes[..])
    }
}

fn key(queue: &[u8], member: Option<&[u8]>) -> Key {
    (queue.to_vec(), member.map(<[u8]>::to_vec))
}
