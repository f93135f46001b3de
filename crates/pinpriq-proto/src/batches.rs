//! Batches: tasks that are followed together until none of them is left, and what waits for that.
//! Their records, what is shown of them, and what a put says about them.
//!
//! What they do to tasks is in `operations/batches.rs` of the engine.

use crate::records::primitives::{put_bytes, take_bytes};
use crate::refusal::{Refusal, RefusalKind};
use crate::task::Bytes;
use crate::time::{Span, Timestamp};

/// The longest name of a batch, in bytes. The shortest has one.
pub const BATCH_NAME_BYTES_MAX: usize = 255;

/// The most batches that one task waits for.
pub const AFTER_MAX: usize = 16;

/// The most tasks that wait for one batch.
pub const BATCH_WAITERS_MAX: usize = 1_000;

/// The most tasks that one call frees or cancels because of batches. The others come in later
/// calls.
pub const BATCH_STEPS_MAX: usize = 1_000;

/// What a batch counts against [`crate::limits::Limits::bytes_max`] in addition to its name. An
/// estimate.
pub const BATCH_OVERHEAD_BYTES: u64 = 512;

/// What it counts that a task is in a batch.
pub const MEMBER_OF_BATCH_BYTES: u64 = LINK_BYTES as u64;

/// What it takes to follow a task.
const LINK_BYTES: usize = 16;

/// What it counts that a task waits for a batch, in addition to the name. An estimate.
pub const AFTER_OVERHEAD_BYTES: usize = 64;

worded! {
    /// How far a batch is.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
    pub enum BatchState {
        /// Nobody has said yet that it has all its tasks.
        Open = 0 => "open",
        /// It is done as soon as none of its tasks is pending.
        Closed = 1 => "closed",
        /// None of its tasks is pending, or it was given up.
        Done = 2 => "done",
    }

    /// The word for the state.
    fn word -> &'static str
}

worded! {
    /// Whether a task that waits for batches is worth doing once they are done.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
    pub enum OnlyIf {
        /// However their tasks have ended.
        #[default]
        Done = 0 => "done",
        /// If no task of theirs has failed.
        Acked = 1 => "acked",
        /// If a task of theirs has failed.
        Failed = 2 => "failed",
    }

    /// The word for the condition.
    fn word -> &'static str
}

impl OnlyIf {
    /// Whether a task with this condition is skipped, if a task of its batches has failed or none
    /// has.
    #[must_use]
    pub const fn skips(self, any_failed: bool) -> bool {
        match self {
            Self::Done => false,
            Self::Acked => any_failed,
            Self::Failed => !any_failed,
        }
    }
}

/// What a put says about batches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub struct Bonds<'a> {
    /// The batch that the task is in.
    #[letter(1)]
    pub batch: Option<&'a [u8]>,
    /// The names of the batches that it waits for, as [`encode_names`] writes them.
    #[letter(2)]
    pub after: Option<&'a [u8]>,
}

/// The batches that a task waits for before it is ready. As long as it waits, there is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct After {
    /// The names of those that are not done.
    pub names: Vec<Bytes>,
    /// Whether it is worth doing then.
    pub only_if: OnlyIf,
    /// Whether a task has failed of those that are done.
    pub any_failed: bool,
}

impl After {
    /// What it occupies.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.names.iter().map(|name| name.len() + AFTER_OVERHEAD_BYTES).sum()
    }
}

/// Writes names one behind the other.
pub fn encode_names<'n>(names: impl IntoIterator<Item = &'n [u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    names.into_iter().for_each(|name| put_bytes(&mut bytes, name));
    bytes
}

/// Returns the names that [`encode_names`] has written. After bytes that are none, nothing follows.
pub fn decode_names(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || take_bytes(&mut bytes).ok())
}

impl<'a> Bonds<'a> {
    /// Those of a task that has nothing to do with batches.
    pub const NONE: Self = Self { batch: None, after: None };

    /// Whether the task has nothing to do with batches.
    #[must_use]
    pub const fn are_none(&self) -> bool {
        self.batch.is_none() && self.after.is_none()
    }

    /// All batches that it names.
    pub fn names(self) -> impl Iterator<Item = &'a [u8]> {
        self.batch.into_iter().chain(self.names_after())
    }

    /// The batches that it waits for.
    pub fn names_after(self) -> impl Iterator<Item = &'a [u8]> {
        decode_names(self.after.unwrap_or_default())
    }

    /// Says what is wrong with it.
    pub fn check(&self) -> Result<(), Refusal> {
        let bad = |sentence: String| Err(Refusal::new(RefusalKind::BadArgument, sentence));
        self.names().try_for_each(check_batch_name)?;
        if self.after.is_none() {
            return Ok(());
        }
        let names: Vec<&[u8]> = self.names_after().collect();
        if names.is_empty() || names.len() > AFTER_MAX {
            let given = names.len();
            return bad(format!("a task waits for 1 to {AFTER_MAX} batches, and not for {given}"));
        }
        if self.batch.is_some_and(|batch| names.contains(&batch)) {
            return bad("a task cannot wait for the batch that it is in".to_owned());
        }
        if (1..names.len()).any(|at| names[..at].contains(&names[at])) {
            return bad("AFTER names a batch twice".to_owned());
        }
        Ok(())
    }

    /// What it occupies.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let batch = self.batch.map_or(0, |_| LINK_BYTES);
        batch + self.names_after().map(|name| name.len() + AFTER_OVERHEAD_BYTES).sum::<usize>()
    }
}

/// How the tasks of a batch are being cancelled.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
#[letter(closed)]
pub struct Cancelling {
    /// Why, if that was said.
    pub reason: Option<Bytes>,
    /// How long holders of its tasks may go on at most.
    pub grace: Option<Span>,
}

/// A batch, for the store. How many tasks are pending is what remains of the total.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
#[letter(closed)]
pub struct BatchRecord {
    /// Distinguishes it from every other batch that has or had its name.
    pub number: u64,
    /// Its name.
    pub name: Bytes,
    /// How far it is.
    pub state: BatchState,
    /// Whether it was given up: its TTL has passed, or nothing has happened in it for too long.
    pub given_up: bool,
    /// When it was made.
    pub opened_at: Timestamp,
    /// When anything about it has changed last.
    pub changed_at: Timestamp,
    /// When it was done.
    pub done_at: Option<Timestamp>,
    /// When it is given up, if it is not done before.
    pub expires_at: Option<Timestamp>,
    /// How many tasks have been in it.
    pub total: u64,
    /// How many of them were acknowledged.
    pub acked: u64,
    /// How many of them have ended otherwise.
    pub failed: u64,
    /// How its tasks are being cancelled, if they are.
    pub cancelling: Option<Cancelling>,
}

impl BatchRecord {
    /// A batch that is made at this moment.
    #[must_use]
    pub fn new(number: u64, name: &[u8], now: Timestamp, expires_at: Option<Timestamp>) -> Self {
        Self {
            number,
            name: name.into(),
            state: BatchState::Open,
            given_up: false,
            opened_at: now,
            changed_at: now,
            done_at: None,
            expires_at,
            total: 0,
            acked: 0,
            failed: 0,
            cancelling: None,
        }
    }

    /// How many of its tasks have not ended. Those of a batch that was given up do not count.
    #[must_use]
    pub const fn pending(&self) -> u64 {
        self.total - self.acked - self.failed
    }

    /// Whether it is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == BatchState::Done
    }

    /// Whether a task of this number is pending in it if its record names it. An older task names
    /// one of the same name that was given up: a batch has a lower number than its tasks.
    #[must_use]
    pub fn may_have(&self, task: u64) -> bool {
        !self.is_done() && self.number < task
    }

    /// Whether a task of it has failed, or it was given up.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.failed > 0 || self.given_up
    }

    /// What it occupies.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let reason = self.cancelling.as_ref().and_then(|it| it.reason.as_ref());
        batch_bytes(self.name.len()) + reason.map_or(0, |reason| reason.len() as u64)
    }
}

/// What a batch with a name of this many bytes occupies.
#[must_use]
pub const fn batch_bytes(name: usize) -> u64 {
    BATCH_OVERHEAD_BYTES + name as u64
}

/// A batch, as it is shown.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct BatchShown {
    /// Its name.
    pub name: Bytes,
    /// How far it is.
    pub state: BatchState,
    /// How many tasks have been in it.
    pub total: u64,
    /// How many of them have not ended.
    pub pending: u64,
    /// How many of those are buried.
    pub buried: u64,
    /// How many were acknowledged.
    pub acked: u64,
    /// How many have ended otherwise.
    pub failed: u64,
    /// How many tasks wait for it.
    pub waiting: u64,
    /// When it was made.
    pub opened_at: Timestamp,
    /// When it was done.
    #[letter(1)]
    pub done_at: Option<Timestamp>,
}

impl BatchShown {
    /// The word for what became of a wait for it.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        if self.state == BatchState::Done { BatchState::Done.word() } else { "timeout" }
    }
}

/// Refuses a name that no batch can have.
pub fn check_batch_name(name: &[u8]) -> Result<(), Refusal> {
    if (1..=BATCH_NAME_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    let length = name.len();
    let sentence =
        format!("the name of a batch has 1 to {BATCH_NAME_BYTES_MAX} bytes, and this one {length}");
    Err(Refusal::new(RefusalKind::BadArgument, sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let longest = [b'n'; BATCH_NAME_BYTES_MAX];
        let names = [&b"a"[..], b"", &longest];
        let encoded = encode_names(names);
        assert!(decode_names(&encoded).eq(names));
        assert_eq!(decode_names(&encoded[..encoded.len() - 1]).count(), 2);
    }

    #[test]
    fn a_put_names_each_batch_once() {
        let check = |batch, after: &[&[u8]]| {
            let names = encode_names(after.iter().copied());
            Bonds { batch, after: Some(&names) }.check()
        };
        assert_eq!(check(None, &[b"a", b"b"]), Ok(()));
        assert_eq!(check(Some(b"c"), &[b"a", b"b"]), Ok(()));
        let many: Vec<[u8; 1]> = (0..=16).map(|name| [name]).collect();
        let many: Vec<&[u8]> = many.iter().map(|name| &name[..]).collect();
        assert_eq!(check(None, &many[1..]), Ok(()));
        let (a, none): (&[u8], &[u8]) = (b"a", b"");
        for (batch, after) in
            [(None, &[][..]), (None, &[a, a][..]), (Some(a), &[a][..]), (None, &[none][..])]
        {
            assert!(check(batch, after).is_err(), "{batch:?} {after:?}");
        }
        assert!(check(None, &many).is_err());
    }
}
