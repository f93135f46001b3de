//! The bugs about tubes: what the engine does for the beanstalkd door, and the door itself.

/// Lists these bugs, and those of accidents, after others.
macro_rules! with_those_of_tubes {
    ($($others:tt)*) => {
        with_those_of_accidents! {
            $($others)*
            DeadlineSoonTooLate "deadline-soon-too-late"
                "Who waits for a job hears of a deadline of its own only when that is over."
                [Engine("scripts::"), Server("beanstalkd::"), Simulator]
            FirstTubeFirst "first-tube-first"
                "A job is reserved from the tube that was watched first, whatever is more urgent."
                [Engine("scripts::"), Server("beanstalkd::"), Simulator]
            FirstShardFirst "first-shard-first"
                "A job is reserved from the shard that was asked first, whatever is more urgent."
                [Server("beanstalkd::")]
            LeastUrgentHeadTaken "least-urgent-head-taken"
                "A take over several shards gets the least urgent of their first tasks."
                [Server("shards::choosing::the_most_urgent")]
            SecondGrantKept "second-grant-kept"
                "What a second shard hands over to a take that has its answer stays taken."
                [Server("shards::late::")]
            SecondShardNotAsked "second-shard-not-asked"
                "A take over several shards with a count gets only what the first of them has."
                [Server("shards::choosing::a_reply")]
            UnfinishedReplyLost "unfinished-reply-lost"
                "What shards have added to a reply whose connection ends too early is lost."
                [Server("shards::late::")]
            UnknownPopHidden "unknown-pop-hidden"
                "Of a pop over several shards, what a dead node may have popped is lost unnoticed."
                [Server("cluster::choosing::")]
            WithdrawnPopsLost "withdrawn-pops-lost"
                "Tasks that were popped for a reply that is refused in the end are lost."
                [Server("cluster::choosing::")]
            FormerPartGoesBack "former-part-goes-back"
                "What a former owner has added to a reply of several shards goes to the next one."
                [InServer("session::outbox::")]
            WaitWithoutOwnerGoesOn "wait-without-owner-goes-on"
                "A client that was served by one shard is held up by another that has no owner."
                [Server("cluster::choosing::")]
            UnchosenPopFails "unchosen-pop-fails"
                "A task that was held for a pop has failed when the connection ends."
                [Engine("scripts::")]
            ExtraJobKept "extra-job-kept"
                "What a second shard hands over to a client that has been served stays reserved."
                [Server("beanstalkd::")]
            WaitElsewhereGoesOn "wait-elsewhere-goes-on"
                "A client that has got a job from one shard still waits in others."
                [Server("beanstalkd::")]
            DeletesOthersJobs "deletes-others-jobs"
                "A job is deleted although another client has reserved it."
                [Engine("scripts::"), Server("beanstalkd::"), Simulator]
            LaneTasksNumbered "lane-tasks-numbered"
                "A task of a lane is found by its number."
                [Engine("scripts::"), Simulator]
            LastTubeIgnored "last-tube-ignored"
                "A connection may watch no tube at all."
                [Server("beanstalkd::")]
            DrainingAccepts "draining-accepts"
                "A server that drains still accepts jobs."
                [Server("beanstalkd::")]
            DrainedForGood "drained-for-good"
                "A server that drains never accepts jobs again."
                [InServer("doors::beanstalkd::shared::")]
            IdleTubesUnbounded "idle-tubes-unbounded"
                "Every tube that was ever used is remembered."
                [InServer("doors::beanstalkd::shared::")]
            EarlyPutNotCounted "early-put-not-counted"
                "A put whose body never comes is not counted."
                [Server("beanstalkd::")]
        }
    };
}
