//! The interface to a distributed engine that keeps one fenced log for each shard.
//!
//! All safety of several machines rests on this: the one that *seizes* a log gets a tenure, and
//! from then on no entry of an earlier tenure is added, however late it arrives. An entry is
//! compared with the tenure and with the last entry in the same transaction that adds it. Who
//! should seize a log, and when, is decided elsewhere and may be wrong: then work is lost, and no
//! task.
//!
//! A call is started and answered later, so that the loop of a shard never waits for a network.
//! Nothing here reads a clock.

use std::sync::Arc;

/// The number of a tenure. It only rises. It is the incarnation of the server that has the tenure.
/// Engines keep terms below 2^63.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Term(pub u64);

/// The lower bits of a term, which count the tenures of one generation.
const TENURE_BITS: u32 = 40;

impl Term {
    /// The lowest term of a generation, which is the number of roll-backs of the engine that were
    /// accepted. So the terms of a generation are above all of the generations before, also above
    /// those that are lost, and so are the receipts that contain them.
    #[must_use]
    pub const fn first_of(generation: u32) -> Self {
        Self((generation as u64) << TENURE_BITS)
    }

    /// The generation of the term.
    #[must_use]
    pub const fn generation(self) -> u64 {
        self.0 >> TENURE_BITS
    }
}

/// The number of an entry. The first entry of a log has 1. 0 is the place before it. Engines keep
/// numbers below 2^63, and refuse an append with a higher one as [`Appended::Fenced`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Seq(pub u64);

/// Who writes. Each process draws its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Writer(pub u128);

/// The right to append to a log. It ends when anybody seizes the log. Only the ledger that has
/// seized it uses it: used through another ledger of the same writer, it may be refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tenure {
    /// Its number.
    pub term: Term,
    /// Who has it.
    pub writer: Writer,
}

/// What [`Call::Seize`] has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seized {
    /// The new tenure.
    pub tenure: Tenure,
    /// The last entry, which stays the last one until this tenure appends. 0 if there never was
    /// one.
    pub head: Seq,
    /// The first entry that is still kept. It is one above the head if none is.
    pub first: Seq,
}

/// The largest entry that every engine accepts, in bytes.
pub const ENTRY_BYTES_MAX: usize = 1 << 20;

/// What an engine is asked to do. Of each kind, one call is under way at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// Begins a tenure with a term of at least `at_least`, and above all terms before. Once it is
    /// answered, no entry of an earlier tenure is added. If the answer is lost, the log
    /// may still have been seized: seize it again. That ends a tenure of the same writer
    /// too. An engine that has lost its newest entries may begin a term again: a call for a
    /// term above all of its own never gets the same tenure twice.
    Seize {
        /// The lowest term to begin.
        at_least: Term,
    },
    /// Adds an entry behind the entry `seq - 1`, which must be the last one. At another place it
    /// changes nothing, and the tenure goes on.
    ///
    /// After [`Appended::Unknown`], no other call may append until [`Call::Resolve`] has been
    /// answered for the same entry.
    Append {
        /// The tenure that appends.
        tenure: Tenure,
        /// The number of the entry.
        seq: Seq,
        /// The entry, at most [`ENTRY_BYTES_MAX`].
        bytes: Arc<[u8]>,
    },
    /// Finds out what became of an entry whose append was [`Appended::Unknown`], by a change that
    /// is as durable as an append. It is not enough to read: what is read may be lost yet. Any
    /// entry may be asked of: one up to the head is committed, also if it was trimmed or is of an
    /// earlier tenure, and one above is absent. The tenure goes on.
    ///
    /// Whatever is answered but [`Resolved::Unknown`] was found after the call was started, by what
    /// compares the tenure and sees every seizure that was answered before. So for an entry that is
    /// known to be there, this renews a tenure. It should cost little then.
    ///
    /// No append of the tenure may be under way meanwhile. After [`Resolved::Unknown`] none may be
    /// started until this was asked again and is answered.
    Resolve {
        /// The tenure that has appended it.
        tenure: Tenure,
        /// The number of the entry.
        seq: Seq,
    },
    /// Reads entries from `from` on: at least one if there is one, and no more once they have
    /// `bytes` together. Fewer may be returned. Anybody may read, and sees what is in the log at
    /// that time, with all that was answered before. From before the first entry that is kept,
    /// nothing is read.
    Read {
        /// The first entry to read.
        from: Seq,
        /// How many bytes are wanted.
        bytes: usize,
    },
    /// Removes all entries before `before`, which is no higher than one above the head. The head
    /// stays. If all of them are gone already, it is done.
    Trim {
        /// The tenure that removes them.
        tenure: Tenure,
        /// The first entry that is kept.
        before: Seq,
    },
    /// Asks how much room there is.
    Status,
}

/// The answer to a [`Call`]. It comes once, or never if the ledger is dropped before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// To [`Call::Seize`].
    Seized(Result<Seized, Unreachable>),
    /// To [`Call::Append`].
    Appended(Appended),
    /// To [`Call::Resolve`].
    Resolved(Resolved),
    /// To [`Call::Read`]: entries without gaps, the first of them `from`, or none.
    Read(Result<Vec<(Seq, Vec<u8>)>, Unreachable>),
    /// To [`Call::Trim`].
    Trimmed(Trimmed),
    /// To [`Call::Status`].
    Status(Result<Status, Unreachable>),
}

/// What became of an append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Appended {
    /// The entry is in the log, as durable as the engine makes anything.
    Done,
    /// It is not, and never will be: the tenure has ended, or the log is not what its owner thinks.
    Fenced,
    /// It may be in the log, or come into it later.
    Unknown,
    /// It is not, and never will be: the engine has no room.
    Full,
    /// It is not, and never will be: the engine accepts no entry of this size.
    TooLarge,
}

/// What became of an entry whose append was unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolved {
    /// It is in the log.
    Committed,
    /// It is not, and no copy that is still on its way can come into it. Another entry may be
    /// appended in its place.
    Absent,
    /// The tenure has ended. The entry may be in the log.
    Fenced,
    /// Still not known. Ask again.
    Unknown,
}

/// What became of a trim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trimmed {
    /// The entries are gone.
    Done,
    /// The tenure has ended.
    Fenced,
    /// Some, all or none of them are gone.
    Unknown,
}

/// How much room an engine has, for all logs together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// The bytes of all logs, with every entry that was answered [`Appended::Done`] before. What a
    /// trim has freed may count for a while.
    pub bytes_used: u64,
    /// The most bytes that they may have.
    pub bytes_max: u64,
}

/// The engine has not answered. Nothing is known of what the call has done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the engine does not answer: {why}")]
pub struct Unreachable {
    /// What happened, for people.
    pub why: String,
}

/// The log of one shard, as one process sees it.
pub trait Ledger: Send {
    /// Starts a call. It must be the only one of its kind under way. Never waits.
    fn start(&mut self, call: Call);

    /// Returns the next answer, if there is one. Never waits.
    fn poll(&mut self) -> Option<Answer>;

    /// Waits until [`Ledger::poll`] has an answer, if a call is under way. Otherwise it returns at
    /// once. Every call is answered after a time that the engine bounds.
    fn wait(&mut self);

    /// How large entries should be for a good throughput, in bytes, at most [`ENTRY_BYTES_MAX`].
    fn target_bytes(&self) -> usize;
}
