//! The bugs about users: who signs in, and who may do what.

/// Lists these bugs, and those of doors, after others.
macro_rules! with_those_of_users {
    ($($others:tt)*) => {
        with_those_of_doors! {
            $($others)*
            OpenBeyondLoopback "open-beyond-loopback"
                "A server without users listens beyond loopback without being told that it may."
                [Server("starting::")]
            NobodyLetIn "nobody-let-in"
                "Commands that touch no queue are carried out before somebody has signed in."
                [Server("resp::users::nothing_is_done")]
            LackOverlooked "lack-overlooked"
                "A user who lacks a right is let through."
                [Server("resp::users::each_command::")]
            ListsNotKeptWithin "lists-not-kept-within"
                "Lists and sums show queues that the user may not look at."
                [Server("resp::users::lists_and_sums")]
            AdminNotChecked "admin-not-checked"
                "Everybody who has signed in may run the server."
                [Server("resp::users::what_runs")]
            OldRightsKept "old-rights-kept"
                "A connection keeps the rights with which its user has signed in."
                [Server("resp::users::changes::a_right")]
            RevokedStaysSignedIn "revoked-stays-signed-in"
                "A connection stays signed in by a token that was revoked."
                [InServer("access::pass::")]
            VerifiedOutlivesChange "verified-outlives-change"
                "A password that was right is accepted for a minute after it has changed."
                [Server("resp::users::changes::a_password_and")]
            BlockedOutlivesRight "blocked-outlives-right"
                "A request that waits goes on waiting when its user may no longer do it."
                [Server("resp::users::changes::what_waits")]
            SubscriptionOutlivesRight "subscription-outlives-right"
                "Tasks are delivered to a user who may no longer take them."
                [Server("resp::users::changes::a_subscription")]
            EventsOutliveRight "events-outlive-right"
                "A stream of events goes on when its user is gone."
                [Server("http::users::events")]
            UnseenShown "unseen-shown"
                "Metrics show queues that the user may not look at."
                [Server("http::users::rights")]
            KeptForAnother "kept-for-another"
                "Dead letters that were found for one user are shown to another."
                [Server("http::users::rights")]
            DeniedNotTold "denied-not-told"
                "The audit does not hear of commands that were refused for want of a right."
                [Server("resp::users::audit::")]
            ForeignHostAccepted "foreign-host-accepted"
                "A page that gives its own name an address of the server may use the server."
                [Server("http::users::names")]
            CookieSuffices "cookie-suffices"
                "A page of another origin can have a browser change something with its cookie."
                [Server("http::users::a_browser")]
            SessionNeverEnds "session-never-ends"
                "A browser stays signed in for longer than half a day."
                [InServer("access::sessions::")]
            SignInUnbounded "sign-in-unbounded"
                "Any number of clients may wait for their passwords to be checked."
                [Server("resp::users::guessing::")]
            ConnectionsOfUserUnbounded "connections-of-user-unbounded"
                "A user may have any number of connections, whatever its limit is."
                [Server("resp::users::limits::")]
            BytesOfUserUnbounded "bytes-of-user-unbounded"
                "A user may have any number of bytes in flight, whatever its limit is."
                [Server("resp::users::limits::")]
            TasksOfUserUnbounded "tasks-of-user-unbounded"
                "A user may have any number of tasks, whatever its limit is."
                [Server("resp::users::limits::")]
            EndedTaskStillCharged "ended-task-still-charged"
                "A task counts for the user who has put it although it has ended."
                [Engine("accounts::")]
            ChargesNotUndone "charges-not-undone"
                "The tasks of a transaction that is refused count for its user."
                [Engine("accounts::")]
            MovedTaskNotCharged "moved-task-not-charged"
                "A task that moves to another queue does not count any more."
                [Engine("accounts::")]
            RequestsOfUserUnbounded "requests-of-user-unbounded"
                "A user may make any number of requests, whatever its limit is."
                [Server("resp::users::limits::")]
            GuessingNotSlowed "guessing-not-slowed"
                "An address from which many wrong passwords come is not slowed down."
                [Server("resp::users::guessing::")]
        }
    };
}
