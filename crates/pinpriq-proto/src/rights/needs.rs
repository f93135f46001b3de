//! What a command needs, on which queues and topics. A lane counts as its topic, and a schedule as
//! its queue. Who has which rights is not known here.

use super::Right;

/// What a command needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need<'c> {
    /// A right on this queue or topic.
    On(Right, &'c [u8]),
    /// A right on all that it touches, which only the engine knows. Lists leave out the rest.
    Wherever(Right),
}
