//! The bugs about figures: what is counted, and what is told apart.

/// Lists these bugs after others.
macro_rules! with_those_of_figures {
    ($($others:tt)*) => {
        with_those_of_access! {
            $($others)*
            AckOfKeptNotCounted "ack-of-kept-not-counted"
                "A task that is kept after its acknowledgement does not count as acknowledged."
                [Engine("scripts::")]
            PutBackCountsAsPut "put-back-counts-as-put"
                "A pop that is put back counts as another put."
                [Engine("scripts::")]
            FormerDeadLettersStaySuch "former-dead-letters-stay-such"
                "A queue counts as one for dead letters though no queue has it for that any more."
                [Engine("scripts::")]
            DeadLettersNotToldApart "dead-letters-not-told-apart"
                "The alerts for old tasks and those that nobody takes fire for dead letters."
                [InServer("doors::http::metrics::")]
            DeadLettersGrowOld "dead-letters-grow-old"
                "The oldest ready task of the dashboard is a dead letter."
                [InServer("monitor::")]
        }
    };
}
