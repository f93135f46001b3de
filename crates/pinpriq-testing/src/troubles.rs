//! The troubles of an engine in memory, which follow from a seed, and how often each has struck.
//!
//! They only decide: the engine knows what then happens.

use std::collections::BTreeMap;

use crate::Dice;

/// What becomes of a call whose answer is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loss {
    /// It is carried out.
    Applied,
    /// It is never carried out.
    Never,
    /// It is tried only after the caller knows that its answer is lost.
    Later,
}

/// Decides which trouble strikes, and counts.
#[derive(Debug)]
pub(crate) struct Troubles<K> {
    /// How often each kind of trouble strikes.
    pub(crate) knobs: K,
    /// Decides everything.
    pub(crate) dice: Dice,
    struck: BTreeMap<&'static str, u64>,
}

impl<K> Troubles<K> {
    /// Creates the troubles of a seed, with the names of all of them.
    pub(crate) fn new(seed: u64, knobs: K, names: impl IntoIterator<Item = &'static str>) -> Self {
        let struck = names.into_iter().map(|name| (name, 0)).collect();
        Self { knobs, dice: Dice::new(seed), struck }
    }

    /// Counts a trouble that has struck.
    pub(crate) fn count(&mut self, name: &'static str) {
        *self.struck.entry(name).or_default() += 1;
    }

    /// Whether a trouble strikes, which is counted.
    pub(crate) fn strikes(&mut self, percent: u64, name: &'static str) -> bool {
        let strikes = self.dice.chance(percent);
        if strikes {
            self.count(name);
        }
        strikes
    }

    /// Whether the answer to a call is lost, and how. Each loss has its percentage and its name, in
    /// the order of [`Loss`].
    pub(crate) fn loss(&mut self, losses: [(u64, &'static str); 3]) -> Option<Loss> {
        let [(applied, made), (never, lost), (later, tried)] = losses;
        if self.strikes(applied, made) {
            Some(Loss::Applied)
        } else if self.strikes(never, lost) {
            Some(Loss::Never)
        } else {
            self.strikes(later, tried).then_some(Loss::Later)
        }
    }

    /// How often each trouble has struck, by name.
    #[must_use]
    pub(crate) fn struck(&self) -> Vec<(&'static str, u64)> {
        self.struck.iter().map(|(name, count)| (*name, *count)).collect()
    }
}
