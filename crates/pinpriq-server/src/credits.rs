//! The credits of one connection, of which the engine is told only so many at a time.
//!
//! A client that grants a million credits and then stops reading would otherwise pin a million
//! deliveries. The rest waits here until deliveries have left.

use crate::shard::Session;

/// The credits of one connection.
#[derive(Debug)]
pub(crate) struct Credits {
    /// How many deliveries may be under way.
    most: u64,
    /// Credits that the engine was not told of yet.
    banked: u32,
    /// Credits that the engine was told of, on top of the deliveries before.
    drawn: u64,
}

impl Credits {
    /// None yet. Deliveries made before are none of its business.
    pub(crate) fn new(deliveries_max: usize, session: &Session) -> Self {
        Self { most: deliveries_max as u64, banked: 0, drawn: session.delivered() }
    }

    pub(crate) const fn add(&mut self, credits: u32) {
        self.banked = self.banked.saturating_add(credits);
    }

    /// Whether there are none, and never were any.
    pub(crate) const fn is_unused(&self) -> bool {
        self.banked == 0 && self.drawn == 0
    }

    /// Takes out those that the engine was not told of.
    pub(crate) const fn withdraw(&mut self) -> u32 {
        std::mem::replace(&mut self.banked, 0)
    }

    /// Whether there are any that the engine was not told of.
    pub(crate) const fn has_banked(&self) -> bool {
        self.banked > 0
    }

    /// Takes out as many as the engine may be told of now.
    pub(crate) fn draw(&mut self, session: &Session) -> u32 {
        let unspent = self.drawn - session.delivered();
        let room = u32::try_from(self.most.saturating_sub(unspent)).unwrap_or(u32::MAX);
        let credits = if planted!(CreditsAllAtOnce) { self.banked } else { self.banked.min(room) };
        self.banked -= credits;
        self.drawn += u64::from(credits);
        credits
    }

    /// All credits that no delivery has spent.
    pub(crate) fn outstanding(&self, session: &Session) -> u32 {
        let unspent = u32::try_from(self.drawn - session.delivered()).unwrap_or(u32::MAX);
        self.banked.saturating_add(unspent)
    }
}
