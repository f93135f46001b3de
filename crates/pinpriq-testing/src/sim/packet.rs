//! What a virtual client of the pinpriq door asks, its bytes, the command that it means, and the
//! bytes that the client must read.
//!
//! The bytes are laid out here by hand from the page on the protocol, without the codec that the
//! server uses.

use pinpriq_proto::command::{Command, Put, Selection, Take, TakeMode, TimeToLive, Wait};
use pinpriq_proto::task::{TaskRecord, Terms};
use pinpriq_proto::time::Span;

/// One request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Packet {
    Push {
        queue: Vec<u8>,
        /// The TTL on the wire, and whether 0 means for ever.
        ttl_ms: u16,
        zero_is_forever: bool,
        priority: u8,
        key: Vec<u8>,
        payload: Vec<u8>,
    },
    Pop(Vec<u8>),
    Subscribe(Vec<u8>),
    Unsubscribe(Vec<u8>),
    Ready,
}

impl Packet {
    /// Appends the bytes of the request.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let (op, queue) = match self {
            Self::Push { queue, ttl_ms, priority, key, payload, .. } => {
                out.push(b'p');
                out.extend_from_slice(&length_of(queue));
                out.extend_from_slice(&ttl_ms.to_be_bytes());
                out.push(*priority);
                out.extend_from_slice(&length_of(key));
                out.extend_from_slice(&length_of(payload));
                out.extend_from_slice(key);
                out.extend_from_slice(payload);
                out.extend_from_slice(queue);
                return;
            }
            Self::Ready => {
                out.push(b'A');
                return;
            }
            Self::Pop(queue) => (b'P', queue),
            Self::Subscribe(queue) => (b's', queue),
            Self::Unsubscribe(queue) => (b'u', queue),
        };
        out.push(op);
        out.extend_from_slice(&length_of(queue));
        out.extend_from_slice(queue);
    }

    /// Calls `run` with the command, if the engine must receive one.
    pub(crate) fn with_command<T>(&self, run: impl FnOnce(&Command<'_>) -> T) -> Option<T> {
        let (selection, mode) = (Selection::PINPRIQ, TakeMode::Pop);
        Some(match self {
            Self::Push { queue, ttl_ms, zero_is_forever, priority, key, payload } => {
                let ttl = match (ttl_ms, zero_is_forever) {
                    (0, false) => TimeToLive::Instant,
                    (0, true) => TimeToLive::Endless,
                    (ms, _) => TimeToLive::For(Span::from_ms(u64::from(*ms))),
                };
                let priority = (*priority > 0).then_some(i64::from(*priority));
                run(&Command::Put(Put {
                    ttl,
                    priority,
                    terms: Terms { key: Some(key), ..Terms::NONE },
                    ..Put::new(queue, payload)
                }))
            }
            Self::Pop(queue) => run(&Command::Take(Take {
                queues: &[queue],
                member: None,
                count: 1,
                wait: Wait::No,
                selection,
                mode,
            })),
            Self::Subscribe(queue) => {
                let (queues, recall) = (&[&queue[..]][..], false);
                run(&Command::Subscribe { queues, member: None, selection, mode, recall })
            }
            Self::Unsubscribe(queue) => {
                run(&Command::Unsubscribe { queues: &[queue], member: None })
            }
            Self::Ready => return None,
        })
    }
}

/// The bytes of a reply or delivery.
pub(crate) fn frame_bytes(tasks: &[TaskRecord], counted: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if counted {
        let count = u16::try_from(tasks.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&count.to_be_bytes());
    }
    for task in tasks {
        let key = task.terms.key.as_deref().unwrap_or_default();
        out.extend_from_slice(&length_of(key));
        out.extend_from_slice(&length_of(&task.payload));
        out.extend_from_slice(key);
        out.extend_from_slice(&task.payload);
    }
    out
}

fn length_of(bytes: &[u8]) -> [u8; 2] {
    u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_be_bytes()
}
