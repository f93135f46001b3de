//! The kinds of faults, and how often each has struck.

use std::fmt;

pinpriq_proto::worded! {
    /// A kind of fault.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    #[expect(missing_docs, reason = "the words say what each is")]
    pub enum Kind {
        PowerLoss => "power loss",
        Kill => "process killed",
        StopInOperation => "machine stopped in a disk operation",
        StopInRecovery => "machine stopped in recovery",
        LostSectors => "unsynced sectors lost",
        TornWrite => "unsynced writes torn",
        LostEntry => "directory entries lost",
        WriteError => "a write failed",
        WriteOutage => "every write failed",
        SyncError => "a sync failed",
        SyncOutage => "every sync failed",
        DirectoryError => "a directory sync failed",
        FullDisk => "disk full",
        ShortRead => "short read",
        ShortWrite => "short write",
        BitFlip => "bit flipped at rest",
        SlowDisk => "disk answers late",
        SlowThread => "a shard reads letters late",
        WallForward => "wall clock set forward",
        WallBack => "wall clock set back",
        CutInRequest => "cut in a request",
        CutInReply => "cut in a reply",
        Cut => "cut between messages",
        HalfClose => "client ended its side",
        Stall => "client stopped reading",
        Silence => "client stopped in a request",
        Stop => "server stopped in order",
        Archived => "moment archived",
        Restored => "archived moment compared",
        ArchiveAway => "archive out of reach",
        ArchiveRefused => "object not archived",
        ArchiveAnswerLost => "answer about an object lost",
        ArchiveUnread => "archive not read",
        ArchiveKill => "process killed while it archived",
        ArchiveLate => "object of a killed process came late",
        ArchiveRemoval => "archive emptied by hand",
        ArchiveGap => "segments given up before they were archived",
    }

    /// Returns the word by which reports and arguments know it.
    fn word -> &'static str
}

/// How often each kind has struck.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counts {
    counts: Vec<u64>,
}

impl Default for Counts {
    fn default() -> Self {
        Self { counts: vec![0; Kind::ALL.len()] }
    }
}

impl Counts {
    /// Counts one more.
    pub fn note(&mut self, kind: Kind) {
        self.add(kind, 1);
    }

    /// Counts `times` more.
    pub fn add(&mut self, kind: Kind, times: u64) {
        self.counts[kind as usize] += times;
    }

    /// How often this kind has struck.
    #[must_use]
    pub fn of(&self, kind: Kind) -> u64 {
        self.counts[kind as usize]
    }

    /// The total of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Adds the counts of another run.
    pub fn merge(&mut self, other: &Self) {
        for (own, others) in self.counts.iter_mut().zip(&other.counts) {
            *own += others;
        }
    }

    /// The kinds that never struck.
    #[must_use]
    pub fn missing(&self) -> Vec<Kind> {
        Kind::ALL.into_iter().filter(|kind| self.of(*kind) == 0).collect()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kind in Kind::ALL {
            writeln!(f, "{:>9}  {}", self.of(kind), kind.word())?;
        }
        Ok(())
    }
}
