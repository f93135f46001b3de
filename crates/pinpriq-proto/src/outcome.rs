//! How a task has ended, for those who wait for its end.

worded! {
    /// How a task ended for a client that awaited it.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
    pub enum Outcome {
        /// It was acknowledged.
        Acked = 0 => "acked",
        /// It was buried.
        Buried = 1 => "buried",
        /// Its TTL passed.
        Expired = 2 => "expired",
        /// It was killed.
        Killed = 3 => "killed",
        /// It was moved to the queue for dead letters.
        Dead = 4 => "dead",
        /// It made room for a more urgent task.
        Evicted = 5 => "evicted",
        /// It was moved to another queue by hand.
        Moved = 6 => "moved",
        /// It was cancelled.
        Cancelled = 8 => "cancelled",
        /// The batches that it waited for have ended in a way for which it was not meant.
        Skipped = 9 => "skipped",
        /// It did not end in time.
        Timeout = 7 => "timeout",
    }

    /// The stable word for programs.
    fn word -> &'static str
}
