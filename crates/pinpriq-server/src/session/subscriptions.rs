//! The subscriptions of one client in other shards, so that they can be made again at another owner
//! of their shard, and so that it is known which are new.

use std::collections::BTreeMap;

use pinpriq_proto::command::{Command, TakeMode};
use pinpriq_proto::letters::{decode_command, encode_command};

/// The subscriptions of one client.
#[derive(Default)]
pub(crate) struct Subscriptions {
    /// For each queue, or topic and member: the encoded command, and whether deliveries are popped.
    each: BTreeMap<Key, (Vec<u8>, bool)>,
}

/// A queue, or a topic and a member.
type Key = (Vec<u8>, Option<Vec<u8>>);

impl Subscriptions {
    /// Notes what this command has done to the subscriptions in its shard, which is the one that
    /// this holds of.
    pub(crate) fn note(&mut self, command: &Command<'_>, is_there: impl Fn(&[u8]) -> bool) {
        match *command {
            Command::Subscribe { queues, member, selection, mode, recall } => {
                for queue in queues {
                    let queues = &[*queue][..];
                    let one = Command::Subscribe { queues, member, selection, mode, recall };
                    let mut bytes = Vec::new();
                    encode_command(&one, &mut bytes);
                    let pops = matches!(mode, TakeMode::Pop);
                    self.each.insert(key(queue, member), (bytes, pops));
                }
            }
            Command::Unsubscribe { queues: [], .. } => {
                self.each.retain(|(queue, _), _| !is_there(queue));
            }
            Command::Unsubscribe { queues, member } => {
                for queue in queues {
                    self.each.remove(&key(queue, member));
                }
            }
            _ => {}
        }
    }

    /// Notes the same of an encoded command.
    pub(crate) fn note_encoded(&mut self, command: &[u8], is_there: impl Fn(&[u8]) -> bool) {
        let noted = decode_command(command, |command| self.note(command, is_there));
        debug_assert!(noted.is_ok(), "what was encoded here can be decoded here");
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.each.clear();
    }

    /// Whether this one is there.
    pub(crate) fn has(&self, queue: &[u8], member: Option<&[u8]>) -> bool {
        self.each.contains_key(&key(queue, member))
    }

    /// Returns the command that makes this one again, if it is there.
    pub(crate) fn command(&self, queue: &[u8], member: Option<&[u8]>) -> Option<&[u8]> {
        self.each.get(&key(queue, member)).map(|(bytes, _)| &bytes[..])
    }

    /// Returns those to queues of which `is_there` holds: the command that makes each again, and
    /// whether its deliveries are popped, so that one that gets lost is lost for good.
    pub(crate) fn to(
        &self,
        is_there: impl Fn(&[u8]) -> bool,
    ) -> impl Iterator<Item = (&[u8], bool)> {
        let each = self.each.iter().filter(move |((queue, _), _)| is_there(queue));
        each.map(|(_, (bytes, pops))| (&bytes[..], *pops))
    }
}

fn key(queue: &[u8], member: Option<&[u8]>) -> Key {
    (queue.to_vec(), member.map(<[u8]>::to_vec))
}
