//! The kinds of faults, and how often each has struck.

use std::collections::BTreeMap;
use std::fmt;

/// A kind of fault that the world itself makes. The engine and the registry have more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A process ends at once.
    Killed,
    /// A machine disappears without a word.
    Vanished,
    /// A process stands still, and goes on before its session has ended.
    ShortPause,
    /// A process stands still for longer than its session.
    LongPause,
    /// A node hands everything over and ends.
    StoppedInOrder,
    /// The registry asks a node to drain.
    Drained,
    /// Nothing passes between two nodes.
    Cut,
    /// Nothing passes in one direction.
    CutOneWay,
    /// A node does not reach the engine.
    EngineCut,
    /// No node reaches the engine.
    EngineOutage,
    /// The engine has no room.
    EngineFull,
    /// A node does not reach the registry.
    RegistryCut,
    /// A wall clock is set.
    ClockSet,
    /// A client closes its connection while requests are under way.
    ClientGone,
    /// All logs lose their newest entries, and the registry is as it was, while nodes run.
    RolledBack,
    /// The same while nodes are down.
    RolledBackUnseen,
    /// One log loses its newest entries.
    LogRolledBack,
    /// The engine and the registry lose everything.
    Wiped,
    /// The registry is as it was before a roll-back was accepted.
    RegistryRolledBack,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 19] = [
        Self::Killed,
        Self::Vanished,
        Self::ShortPause,
        Self::LongPause,
        Self::StoppedInOrder,
        Self::Drained,
        Self::Cut,
        Self::CutOneWay,
        Self::EngineCut,
        Self::EngineOutage,
        Self::EngineFull,
        Self::RegistryCut,
        Self::ClockSet,
        Self::ClientGone,
        Self::RolledBack,
        Self::RolledBackUnseen,
        Self::LogRolledBack,
        Self::Wiped,
        Self::RegistryRolledBack,
    ];

    /// Those that may strike at any time, and again and again.
    pub(crate) const COMMON: [Self; 14] = {
        let (mut common, mut at) = ([Self::Killed; 14], 0);
        while at < common.len() {
            common[at] = Self::ALL[at];
            at += 1;
        }
        common
    };

    /// The losses that an operator has to accept.
    pub(crate) const LOSSES: [Self; 4] =
        [Self::RolledBack, Self::RolledBackUnseen, Self::LogRolledBack, Self::Wiped];

    /// Its name in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Killed => "node killed",
            Self::Vanished => "machine vanished",
            Self::ShortPause => "node paused",
            Self::LongPause => "node paused past its session",
            Self::StoppedInOrder => "node stopped in order",
            Self::Drained => "node drained",
            Self::Cut => "nodes cut from each other",
            Self::CutOneWay => "nodes cut in one direction",
            Self::EngineCut => "node cut from the engine",
            Self::EngineOutage => "engine unreachable for all",
            Self::EngineFull => "engine without room",
            Self::RegistryCut => "node cut from the registry",
            Self::ClockSet => "wall clock set",
            Self::ClientGone => "client gone",
            Self::RolledBack => "engine rolled back under its nodes",
            Self::RolledBackUnseen => "engine rolled back while nodes were down",
            Self::LogRolledBack => "one log rolled back",
            Self::Wiped => "engine wiped",
            Self::RegistryRolledBack => "registry rolled back to a former generation",
        }
    }
}

/// How often each fault has struck, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    counts: BTreeMap<String, u64>,
}

impl Faults {
    /// Counts a fault.
    pub fn note(&mut self, kind: Kind) {
        self.add(kind.word(), 1);
    }

    /// Counts a fault by its name, also if it has not struck.
    pub fn add(&mut self, word: &str, times: u64) {
        *self.counts.entry(word.to_owned()).or_default() += times;
    }

    /// Adds the counts of another run.
    pub fn merge(&mut self, other: &Self) {
        for (word, times) in &other.counts {
            self.add(word, *times);
        }
    }

    /// The faults that never struck.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let own = Kind::ALL.iter().map(|kind| kind.word().to_owned());
        let own = own.filter(|word| !self.counts.contains_key(word));
        let others = self.counts.iter().filter(|(_, times)| **times == 0);
        own.chain(others.map(|(word, _)| word.clone())).collect()
    }

    /// How many kinds have struck.
    #[must_use]
    pub fn kinds(&self) -> usize {
        self.counts.values().filter(|times| **times > 0).count()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (word, times) in &self.counts {
            writeln!(f, "{times:>9}  {word}")?;
        }
        Ok(())
    }
}
