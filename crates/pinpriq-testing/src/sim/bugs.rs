//! Bugs that are planted on purpose, to check that the simulator detects them.
//!
//! Each is a wrapper around something real: the store, the disk, the wire, or what drives the
//! archive. None of them is in the product.

pinpriq_proto::worded! {
    /// A planted bug.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    #[expect(missing_docs, reason = "the words say what each is")]
    pub enum Bug {
        LoseTask => "lose-task-on-load",
        Resurrect => "resurrect-on-load",
        HalfBatch => "half-a-commit-on-load",
        ForgetGrant => "forget-grant-on-load",
        ForgetExpiry => "forget-expiry-on-load",
        PriorityOnLoad => "priority-lost-on-load",
        PayloadOnLoad => "payload-damaged-on-load",
        LoseLane => "lose-one-lane-of-a-publish",
        EarlyAck => "answer-before-the-sync",
        NoSync => "no-sync-of-files",
        NoDirectorySync => "no-sync-of-the-directory",
        IgnoreSyncError => "failed-sync-taken-for-success",
        StaleAccepted => "stale-receipt-accepted",
        SwappedTasks => "two-tasks-in-the-wrong-order",
        DroppedReply => "reply-dropped",
        RepeatedReply => "reply-sent-twice",
        DamagedReply => "byte-of-a-reply-damaged",
        DeafTimer => "timer-never-fires",
        DeafStore => "wake-up-of-the-store-lost",
        NothingPutBack => "unsent-pops-not-put-back",
        MissingDeleted => "missing-job-said-to-be-deleted",
        DelayForgotten => "delay-of-a-job-not-told",
        MomentTooLate => "archived-as-of-a-later-moment",
        UnsentNotKept => "segments-not-kept-until-archived",
    }

    /// Returns the word by which reports and arguments know it.
    fn word -> &'static str
}

impl Bug {
    /// The bug of this name.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bug| bug.word() == word)
    }
}
