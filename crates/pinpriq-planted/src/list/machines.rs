//! Some of the bugs about several machines: what a node does when it cannot trust its engine, its
//! answers, or its clock.

/// Lists these bugs after others.
macro_rules! with_those_of_machines {
    ($($others:tt)*) => {
        bugs! {
            $($others)*
            QuotaNotKept "quota-not-kept"
                "Some nodes are to own two shards more than others."
                [Cluster("placement::")]
            RoomAskedAfterAppendsOnly "room-asked-after-appends-only"
                "An owner whose engine is full asks for room only once it has appended more."
                [Ledger("room::")]
            SlackKeptWhenLow "slack-kept-when-low"
                "While the engine is nearly full, each log holds on to as much waste as ever."
                [Ledger("room::")]
            EmptyTablesCountAsFull "empty-tables-count-as-full"
                "On PostgreSQL, the room of entries that were removed counts as used for ever."
                [Postgres("logs::room_comes_back")]
            FullEngineIsADisk "full-engine-is-a-disk"
                "While the engine under a cluster is full, clients hear that a disk is."
                [Ledger("room::")]
            QuotaMetForEver "quota-met-for-ever"
                "An etcd that has reached its own quota is left as it is, and takes no changes."
                [Etcd("trouble::a_cluster_that_has_reached")]
            RenewedThoughNothingIsAnswered "renewed-though-nothing-is-answered"
                "A node whose answers from the registry are lost keeps its session for ever."
                [Cluster("ownership::sessions::who_is_not_answered")]
            SuspendedShardKept "suspended-shard-kept"
                "A shard whose log does not answer its owner stays there though others reach it."
                [Cluster("ownership::sessions::a_shard_whose_log")]
            WrongClockForgotten "wrong-clock-forgotten"
                "A node whose clock is wrong trusts it when those that have told so are gone."
                [Cluster("clocks::")]
            ClaimedBeforeClocksAreKnown "claimed-before-clocks-are-known"
                "A node that begins claims shards before it knows whether its clock is right."
                [Cluster("clocks::")]
            OtherShardsIgnored "other-shards-ignored"
                "A node joins a cluster with another number of shards than it was given."
                [InServer("cluster::founding::tests::a_cluster_with_another")]
        }
    };
}
