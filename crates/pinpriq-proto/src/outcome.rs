//! How a task has ended, for those who wait for its end.

/// How a task ended for a client that awaited it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was acknowledged.
    Acked,
    /// It was buried.
    Buried,
    /// Its TTL passed.
    Expired,
    /// It was killed.
    Killed,
    /// It was moved to the queue for dead letters.
    Dead,
    /// It made room for a more urgent task.
    Evicted,
    /// It was moved to another queue by hand.
    Moved,
    /// It did not end in time.
    Timeout,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 8] = [
        Self::Acked,
        Self::Buried,
        Self::Expired,
        Self::Killed,
        Self::Dead,
        Self::Evicted,
        Self::Moved,
        Self::Timeout,
    ];

    /// The stable word for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Acked => "acked",
            Self::Buried => "buried",
            Self::Expired => "expired",
            Self::Killed => "killed",
            Self::Dead => "dead",
            Self::Evicted => "evicted",
            Self::Moved => "moved",
            Self::Timeout => "timeout",
        }
    }
}
