//! How a task has ended, for those who wait for its end.

/// How a task ended for a client that awaited it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum Outcome {
    /// It was acknowledged.
    Acked = 0,
    /// It was buried.
    Buried = 1,
    /// Its TTL passed.
    Expired = 2,
    /// It was killed.
    Killed = 3,
    /// It was moved to the queue for dead letters.
    Dead = 4,
    /// It made room for a more urgent task.
    Evicted = 5,
    /// It was moved to another queue by hand.
    Moved = 6,
    /// It did not end in time.
    Timeout = 7,
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
