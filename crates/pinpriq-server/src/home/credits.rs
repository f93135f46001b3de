//! The credits of one connection. The engine only gets a limited number of them at a time.
//!
//! A client that grants a million credits and then stops reading would otherwise pin a million
//! deliveries. The rest waits here until deliveries were sent.

/// The credits of one connection. Deliveries are counted from when these began.
#[derive(Debug)]
pub(crate) struct Credits {
    /// The most deliveries that may be under way.
    most: u64,
    /// Credits that the engine has not got yet.
    banked: u32,
    /// Credits that the engine has got.
    drawn: u64,
}

impl Credits {
    /// No credits yet.
    pub(crate) const fn new(deliveries_max: usize) -> Self {
        Self { most: deliveries_max as u64, banked: 0, drawn: 0 }
    }

    pub(crate) const fn add(&mut self, credits: u32) {
        self.banked = self.banked.saturating_add(credits);
    }

    /// Whether there are none, and never were any.
    pub(crate) const fn is_unused(&self) -> bool {
        self.banked == 0 && self.drawn == 0
    }

    /// Removes the credits that the engine has not got, and returns their number.
    pub(crate) const fn withdraw(&mut self) -> u32 {
        std::mem::replace(&mut self.banked, 0)
    }

    /// Whether there are credits that the engine has not got.
    pub(crate) const fn has_banked(&self) -> bool {
        self.banked > 0
    }

    /// Removes the credits that the engine may get now, after this number of deliveries, and
    /// returns their number.
    pub(crate) fn draw(&mut self, delivered: u64) -> u32 {
        let unspent = self.drawn - delivered;
        let room = u32::try_from(self.most.saturating_sub(unspent)).unwrap_or(u32::MAX);
        let credits = self.banked.min(room);
        self.banked -= credits;
        self.drawn += u64::from(credits);
        credits
    }

    /// Returns all credits that are not spent after this number of deliveries.
    pub(crate) fn outstanding(&self, delivered: u64) -> u32 {
        outstanding(self.given(), delivered)
    }

    /// Returns the credits that may be spent.
    pub(crate) const fn drawn(&self) -> u64 {
        self.drawn
    }

    /// Returns all credits ever given.
    pub(crate) fn given(&self) -> u64 {
        self.drawn + u64::from(self.banked)
    }
}

/// Returns the number of given credits that are not spent after this number of deliveries.
pub(crate) fn outstanding(given: u64, delivered: u64) -> u32 {
    u32::try_from(given - delivered).unwrap_or(u32::MAX)
}
