//! The bugs about what doors hand on, and in which words they refuse.

/// Lists these bugs, and those of the wire, after others.
macro_rules! with_those_of_doors {
    ($($others:tt)*) => {
        with_those_of_the_wire! {
            $($others)*
            EqualMomentsDrift "equal-moments-drift"
                "Tasks that are held back until the same moment are ready some milliseconds apart."
                [Server("resp::put_until::equal_moments")]
            MomentCountedFromRoom "moment-counted-from-room"
                "A put that waits for room is held back longer than until the moment that it names."
                [Engine("scripts::")]
            VisitorHoldsById "visitor-holds-by-id"
                "Over HTTP, the connection that took a task may change it without its receipt."
                [Engine("scripts::"), Server("http::receipts::")]
            CloseNotTold "close-not-told"
                "An answer over HTTP does not say that the connection ends after it."
                [Server("http::framing::a_refusal")]
            UnknownToldToNobody "unknown-told-to-nobody"
                "Somebody who has not signed in hears which commands there are."
                [Server("resp::users::nothing_is_done")]
            SettingNotShownAsStored "setting-not-shown-as-stored"
                "A setting takes a number that it cannot show."
                [Engine("scripts::")]
            PauseTakenForFull "pause-taken-for-full"
                "A put that waits for room during a pause hears that there was no room."
                [Engine("scripts::")]
            JoinTakesMembersOver "join-takes-members-over"
                "Whoever may take from one topic ends a member of others by joining under its name."
                [Engine("scripts::"), Server("resp::users::what_names_no_queue")]
        }
    };
}
