//! Some of the bugs about several machines: what a node does when it cannot trust its engine, its
//! answers, or its clock.

/// Lists these bugs after others.
macro_rules! with_those_of_machines {
    ($($others:tt)*) => {
        bugs! {
            $($others)*
            RoomAskedAfterAppendsOnly "room-asked-after-appends-only"
                "An owner whose engine is full asks for room only once it has appended more."
                [Ledger("room::")]
            SlackKeptWhenLow "slack-kept-when-low"
                "While the engine is nearly full, each log holds on to as much waste as ever."
                [Ledger("room::")]
            EmptyTablesCountAsFull "empty-tables-count-as-full"
                "On PostgreSQL, the room of entries that were removed counts as used for ever."
                [Postgres("logs::room_comes_back")]
        }
    };
}
