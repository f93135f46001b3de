//! The bugs about accidents of operators: files that disappear, logs that nobody reads.

/// Lists these bugs, and those about several machines, after others.
macro_rules! with_those_of_accidents {
    ($($others:tt)*) => {
        with_those_of_machines! {
            $($others)*
            LockInFileAlone "lock-in-file-alone"
                "Removing the file LOCK lets a second process into the directory."
                [Store("places::a_directory_is_locked")]
            RemovalUnnoticed "removal-unnoticed"
                "A journal goes on in files that somebody has removed."
                [Store("places::a_journal_fails")]
            AnyShortageIsSpace "any-shortage-is-space"
                "When no file can be opened, clients hear that the disk is nearly full."
                [Store("places::without_descriptors")]
            MissingScheduleTold "missing-schedule-told"
                "A user learns which names the schedules of others have."
                [Engine("scripts::")]
            LogUnbounded "log-unbounded"
                "What is not read of the log is kept in memory, however much it is."
                [InServer("log::")]
            AuditKeepsLongNames "audit-keeps-long-names"
                "A refused command writes a name of any length into the audit."
                [InServer("access::audit::lines::")]
            GuesserTakesAllPlaces "guesser-takes-all-places"
                "An address that guesses passwords keeps everybody else from signing in."
                [InServer("access::signing::")]
            SessionsOfOthersEnd "sessions-of-others-end"
                "A user who signs in often ends the sessions of other users."
                [InServer("access::sessions::")]
            LaterStartsStayWrong "later-starts-stay-wrong"
                "After one start with a wrong clock, cron expressions stay off by as much."
                [InServer("calendars::")]
            DeadLettersElsewhere "dead-letters-elsewhere"
                "A queue for dead letters may live in another shard."
                [Server("resp::golden::shards")]
        }
    };
}
