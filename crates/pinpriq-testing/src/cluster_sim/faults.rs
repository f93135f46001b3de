//! The kinds of faults, and how often each has struck.

use std::collections::BTreeMap;
use std::fmt;

pinpriq_proto::worded! {
    /// A kind of fault that the world itself makes. The engine and the registry have more.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Kind {
        /// A process ends at once.
        Killed => "node killed",
        /// A machine disappears without a word.
        Vanished => "machine vanished",
        /// A process stands still, and goes on before its session has ended.
        ShortPause => "node paused",
        /// A process stands still for longer than its session.
        LongPause => "node paused past its session",
        /// A node hands everything over and ends.
        StoppedInOrder => "node stopped in order",
        /// The registry asks a node to drain.
        Drained => "node drained",
        /// Nothing passes between two nodes.
        Cut => "nodes cut from each other",
        /// Nothing passes in one direction.
        CutOneWay => "nodes cut in one direction",
        /// A node does not reach the engine.
        EngineCut => "node cut from the engine",
        /// No node reaches the engine.
        EngineOutage => "engine unreachable for all",
        /// The engine has no room.
        EngineFull => "engine without room",
        /// A node does not reach the registry.
        RegistryCut => "node cut from the registry",
        /// A wall clock is set.
        ClockSet => "wall clock set",
        /// A client closes its connection while requests are under way.
        ClientGone => "client gone",
        /// All logs lose their newest entries, and the registry is as it was, while nodes run.
        RolledBack => "engine rolled back under its nodes",
        /// The same while nodes are down.
        RolledBackUnseen => "engine rolled back while nodes were down",
        /// One log loses its newest entries.
        LogRolledBack => "one log rolled back",
        /// The engine and the registry lose everything.
        Wiped => "engine wiped",
        /// The registry is as it was before a roll-back was accepted.
        RegistryRolledBack => "registry rolled back to a former generation",
    }

    /// Returns the word by which reports and arguments know it.
    fn word -> &'static str
}

impl Kind {
    /// Those that may strike at any time, and again and again.
    pub(crate) const COMMON: &'static [Self] = Self::ALL.split_at(14).0;

    /// The losses that an operator has to accept.
    pub(crate) const LOSSES: [Self; 4] =
        [Self::RolledBack, Self::RolledBackUnseen, Self::LogRolledBack, Self::Wiped];
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
