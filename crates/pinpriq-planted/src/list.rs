//! The list of the bugs: what each is called, what goes wrong, and which tests ought to object.
//!
//! Suites are named as narrowly as that takes little time. `docs/internals/planted.md` shows the
//! same list. Kinds of bugs that came later are in files of their own.

use crate::Suite::{
    self, Cluster, ClusterSimulator, Engine, Etcd, InLedger, InServer, InStore, Ledger, Postgres,
    Server, Simulator, Store, Wire,
};

#[macro_use]
mod accidents;
#[macro_use]
mod doors;
#[macro_use]
mod figures;
#[macro_use]
mod machines;
#[macro_use]
mod tls;
#[macro_use]
mod tubes;
#[macro_use]
mod users;
#[macro_use]
mod wire;
#[macro_use]
mod bounds;

with_those_of_bounds! {
    ReleaseResetsPriority "release-resets-priority"
        "A release gives the task priority 0."
        [Engine("scripts::"), Simulator]
    DigLosesDelay "dig-loses-delay"
        "A task that is dug up with a delay is ready at once."
        [Engine("scripts::"), Simulator]
    DeadlineOneLate "deadline-one-late"
        "Deadlines are due after their moment and not at it."
        [Engine("scripts::"), Simulator]
    PassedLeaseStillHeld "passed-lease-still-held"
        "While many deadlines are due, a lease that is over is still accepted."
        [Engine("bounds::receipt_is_stale")]
    DelayEndsOneEarly "delay-ends-one-early"
        "A delayed task is ready a millisecond too early."
        [Engine("scripts::"), Simulator]
    TtlEndsLease "ttl-ends-lease"
        "The TTL of a task ends its lease."
        [Engine("scripts::"), Simulator]
    OthersInLineForgotten "others-in-line-forgotten"
        "After the first consumer in line was served, the others are forgotten."
        [Engine("scripts::"), Simulator]
    WaitingPutOvertaken "waiting-put-overtaken"
        "A put overtakes those that wait for room in its queue."
        [Engine("scripts::")]
    RoomNotNoticed "room-not-noticed"
        "A put that waits for room does not notice that a task has left."
        [Engine("scripts::"), Simulator]
    DeadPutterServed "dead-putter-served"
        "A put waits for room although its connection has ended."
        [Engine("scripts::"), Simulator]
    PausedPutWaits "paused-put-waits"
        "A put with ROOM into a full queue waits although the queue is paused for puts."
        [Engine("scripts::")]
    WaitCountedFromPut "wait-counted-from-put"
        "The time for which a task was ready counts from its put, whatever happened since."
        [Engine("scripts::"), Simulator]
    LimitedUntilNoticed "limited-until-noticed"
        "A queue with a rate counts as limited until somebody asks, not until its next token."
        [Engine("scripts::")]
    DeadTakerServed "dead-taker-served"
        "A blocked take stays in line when its connection has ended, and swallows a task."
        [Engine("scripts::"), Simulator]
    LeaseOutlivesConnection "lease-outlives-connection"
        "A lease without a TTR does not end with its connection."
        [Engine("scripts::"), Simulator]
    UnsubscribedStillServed "unsubscribed-still-served"
        "Who has unsubscribed is still served."
        [Engine("scripts::"), Simulator]
    TakerStaysInOtherLines "taker-stays-in-other-lines"
        "A take that was served from one queue stays in the lines of the others."
        [Engine("scripts::"), Simulator]
    CreditNotSpent "credit-not-spent"
        "A delivery spends no credit."
        [Engine("scripts::"), Simulator]
    ServedStaysFirst "served-stays-first"
        "The queue that served a subscriber last does not go behind its other queues."
        [Engine("scripts::"), Simulator]
    ExpiryCountedTwice "expiry-counted-twice"
        "A task whose TTL has passed is counted twice."
        [Engine("scripts::"), Simulator]
    ExpiredStillPresent "expired-still-present"
        "What a deadline moves still counts where it was."
        [Engine("scripts::"), Simulator]
    AwaiterNotToldOfExpiry "awaiter-not-told-of-expiry"
        "Who awaits a task is not told that its TTL has passed."
        [Engine("scripts::"), Simulator]
    TiesNewestFirst "ties-newest-first"
        "Among tasks of one priority the newest is taken, and not the oldest."
        [Engine("scripts::"), Simulator]
    LargePayloadsLast "large-payloads-last"
        "A task with a small payload goes before a more urgent one with a large payload."
        [Engine("random::engine_does_what_the_model_does")]
    GroupWithoutUnranked "group-without-unranked"
        "A group leaves without those of its tasks that have no priority."
        [Engine("scripts::"), Simulator]
    ExpiredCompanionHandedOver "expired-companion-handed-over"
        "A group takes along tasks whose TTL has passed, before that deadline was fired."
        [Engine("bounds::group_leaves_out")]
    ExpiredTaskHandedOver "expired-task-handed-over"
        "A take hands out a task whose TTL has passed, before that deadline was fired."
        [Engine("bounds::take_passes_over")]
    TimeoutBeforeTask "timeout-before-task"
        "A blocked take is told that there is nothing in the moment in which a task becomes ready."
        [Engine("scripts::"), Simulator]
    MemberOutlivesItsLease "member-outlives-its-lease"
        "While many deadlines are due, a member whose lease is over can still beat and take."
        [Engine("fan_out::cleaning::members_whose_lease_is_over")]
    ReceiptOutlivesItsMember "receipt-outlives-its-member"
        "While many deadlines are due, a receipt of a member whose lease is over counts."
        [Engine("fan_out::cleaning::members_whose_lease_is_over")]
    LookIsSignOfLife "look-is-sign-of-life"
        "A look at a lane renews the lease of its member."
        [Engine("scripts::"), Simulator]
    ScanSkipsOne "scan-skips-one"
        "A scan goes on behind the task that follows its cursor."
        [Engine("scripts::"), Simulator]
    ExportWithoutWindows "export-without-windows"
        "An export leaves out the windows of tasks that are there."
        [Engine("carrying::")]
    ImportForgetsFailures "import-forgets-failures"
        "A task that is imported has never failed."
        [Engine("scripts::"), Simulator]
    ImportForgetsPause "import-forgets-pause"
        "A queue that is imported is not paused."
        [Engine("scripts::")]
    ImportIntoFullQueue "import-into-full-queue"
        "A task comes into a full queue if it is imported."
        [Engine("scripts::")]
    ImportedIdTwice "imported-id-twice"
        "A task is imported under an id that another one has."
        [Engine("scripts::")]
    ScanSeesWaitingTwice "scan-sees-waiting-twice"
        "A scan shows each waiting task twice."
        [Engine("scripts::"), Simulator]
    ExplainForgetsTheLimit "explain-forgets-the-limit"
        "An explanation says nothing about a limit that is reached."
        [Engine("scripts::")]
    BehindCountsTheTaskItself "behind-counts-the-task-itself"
        "An explanation counts a task among those that come before it."
        [Engine("scripts::"), Simulator]
    SinceThePut "since-the-put"
        "A look says that a task has been in its state since its put, though it has changed since."
        [Engine("scripts::"), Simulator]
    LeasesShowExpired "leases-show-expired"
        "While many deadlines are due, leases that are over are shown."
        [Engine("looking::lease_that_is_over")]
    ServedWithinTransaction "served-within-transaction"
        "Consumers are served between the steps of a transaction."
        [Engine("scripts::"), Simulator]
    RefusedReceiptPassed "refused-receipt-passed"
        "A step that acknowledges several tasks passes although a receipt was refused."
        [Engine("scripts::"), Simulator]
    TasksNotUndone "tasks-not-undone"
        "The tasks of a transaction that is refused stay as its steps left them."
        [Engine("scripts::"), Simulator]
    PublicationNotUndone "publication-not-undone"
        "A payload published by a transaction that is refused stays in memory."
        [Engine("scripts::")]
    TotalsNotUndone "totals-not-undone"
        "The figures count what a refused transaction would have done."
        [Engine("scripts::"), Simulator]
    PositionsFromZero "positions-from-zero"
        "The refusal of a transaction counts its steps from 0."
        [Engine("scripts::"), Server("resp::golden::transactions")]
    AbortedChangesReported "aborted-changes-reported"
        "The changes of a transaction that is refused are saved."
        [Engine("scripts::"), Simulator]
    AwaiterToldOfUndone "awaiter-told-of-undone"
        "Awaiters are told of an end although the transaction is refused afterwards."
        [Engine("scripts::"), Simulator]
    SlotNotDone "slot-not-done"
        "A slot is not recorded as done, so it puts another task after a restart."
        [Engine("scripts::"), Simulator]
    PausedScheduleFires "paused-schedule-fires"
        "A schedule puts tasks while it is paused."
        [Engine("scripts::"), Simulator]
    OverlapIgnored "overlap-ignored"
        "A slot puts a task though the one before is unfinished and OVERLAP is skip."
        [Engine("scripts::"), Simulator]
    TwoSlotsMadeUp "two-slots-made-up"
        "At least two slots are made up for after a time without a server."
        [Engine("scripts::"), Simulator]
    MissedNotCounted "missed-not-counted"
        "Slots that passed during a pause do not count as missed."
        [Engine("scripts::"), Simulator]
    DroppedScheduleKept "dropped-schedule-kept"
        "A schedule that was dropped is there again after a restart."
        [Engine("random::"), Simulator]
    FormerSlotsDue "former-slots-due"
        "A schedule that is set again after a pause makes up for slots from before."
        [Engine("scripts::"), Simulator]
    ScheduleNotNamed "schedule-not-named"
        "A task does not tell the schedule that it comes from."
        [Engine("scripts::"), Simulator]
    TakeNeverTimesOut "take-never-times-out"
        "A blocked take waits for ever, whatever it said."
        [Engine("scripts::"), Simulator]
    PauseNotKept "pause-not-kept"
        "A paused queue hands out tasks."
        [Engine("scripts::"), Simulator]
    GrantNotCompared "grant-not-compared"
        "A receipt of an earlier lease is taken for that of the current one."
        [Engine("scripts::"), Simulator]
    QueueOfReceiptNotCompared "queue-of-receipt-not-compared"
        "A receipt is accepted in any queue."
        [Engine("scripts::"), Simulator]
    UnsentLeaseEndsAnother "unsent-lease-ends-another"
        "A lease that could not be sent ends the next lease of the same task."
        [Engine("random::engine_does_what_the_model_does")]
    UpdateByAnyReceipt "update-by-any-receipt"
        "An update accepts any receipt."
        [Engine("scripts::"), Simulator]
    OnlyFirstIdChecked "only-first-id-checked"
        "Of the ids of a kill only the first is checked."
        [Engine("scripts::")]
    GivenIdTwice "given-id-twice"
        "Two tasks of one queue may be given the same id."
        [Engine("scripts::")]
    CapacityNotKept "capacity-not-kept"
        "A queue takes more tasks than its capacity."
        [Engine("scripts::"), Simulator]
    UpdateNeedsNoRoom "update-needs-no-room"
        "A task may get a larger payload, or a reason to be buried, whatever the room."
        [Engine("room::"), Engine("scripts::")]
    SameTaskDoneTwice "same-task-done-twice"
        "A take that acknowledges the same task twice is accepted."
        [Engine("scripts::")]
    DoneBeforeSync "done-before-sync"
        "A take that acknowledges tasks is answered before the acks are on the disk."
        [Store("takes::")]
    FailureNotCounted "failure-not-counted"
        "A failure of a task is not counted, so it is tried for ever."
        [Engine("scripts::"), Simulator]
    PauseNeverEnds "pause-never-ends"
        "A pause with a length goes on until somebody ends it."
        [Engine("scripts::"), Simulator]
    ReleaseNeverFails "release-never-fails"
        "A release is no failure, whatever its queue says."
        [Engine("scripts::")]
    LastAttemptTriedAgain "last-attempt-tried-again"
        "A task may fail once more than its queue says."
        [Engine("scripts::"), Simulator]
    BackOffIgnored "back-off-ignored"
        "A task that has failed does not wait for the back-off of its queue."
        [Engine("scripts::"), Simulator]
    BackOffFromTheStart "back-off-from-the-start"
        "A lease that ended while the server was down begins its back-off at the start."
        [Engine("random::")]
    DeadLetterLost "dead-letter-lost"
        "A task that has failed too often is removed, although there is a queue for it."
        [Engine("scripts::"), Simulator]
    DeadLetterKeepsItsTtl "dead-letter-keeps-its-ttl"
        "A dead letter keeps its TTL, and expires."
        [Engine("scripts::"), Simulator]
    DeadLetterKeepsItsFailures "dead-letter-keeps-its-failures"
        "A dead letter has failed already in the queue that it comes to."
        [Engine("scripts::"), Simulator]
    FullQueueRefusesDeadLetters "full-queue-refuses-dead-letters"
        "A dead letter is removed when the queue for it is full."
        [Engine("scripts::")]
    ExpiredIsNoDeadLetter "expired-is-no-dead-letter"
        "A task whose TTL has passed is removed, although it is to become a dead letter."
        [Engine("scripts::"), Simulator]
    UnsentLeaseFails "unsent-lease-fails"
        "A task that was never sent has failed when the connection ends."
        [Engine("scripts::"), Simulator]
    StopIsAFailure "stop-is-a-failure"
        "A task that is taken without a TTR when the server stops has failed."
        [Engine("scripts::"), Simulator]
    ReasonKeptByDig "reason-kept-by-dig"
        "A task that is dug up keeps the reason of its failure."
        [Engine("scripts::"), Simulator]
    RedriveKeepsTheOrigin "redrive-keeps-the-origin"
        "A task that was moved back still looks like a dead letter."
        [Engine("scripts::"), Simulator]
    OneDeadLetterChecked "one-dead-letter-checked"
        "Of the dead letters to be moved within names, only the first is checked."
        [Engine("scripts::")]
    OneTopicChecked "one-topic-checked"
        "A member with lanes within names and beyond is checked by its first lane only."
        [Engine("scripts::")]
    CursorTellsTopic "cursor-tells-topic"
        "The cursor of a page of leases tells the topic of a lane that is not to be shown."
        [Engine("looking::")]
    MoveIntoAFullQueue "move-into-a-full-queue"
        "Tasks are moved into a queue beyond its capacity."
        [Engine("scripts::")]
    MovedTaskLeftBehind "moved-task-left-behind"
        "The end of a task that was moved is not written, so a restart finds it in both queues."
        [Engine("random::"), Simulator]
    OriginForgottenAtStart "origin-forgotten-at-start"
        "A restart forgets where dead letters come from."
        [Engine("random::"), Simulator]
    DuplicateNotSeen "duplicate-not-seen"
        "A put does not see that there is such a task already."
        [Engine("scripts::"), Simulator]
    FinishedTaskKeepsItsKey "finished-task-keeps-its-key"
        "A task that is kept after its end goes on to make others duplicates."
        [Engine("scripts::"), Simulator]
    MovedTaskKeepsItsKey "moved-task-keeps-its-key"
        "A task that was moved makes puts into its new queue duplicates."
        [Engine("scripts::"), Simulator]
    ReplacedTaskKeepsItsFailures "replaced-task-keeps-its-failures"
        "A task that a later put has replaced has failed already."
        [Engine("scripts::"), Simulator]
    WindowSurvivesDrop "window-survives-drop"
        "The windows of a queue that was dropped make puts duplicates."
        [Engine("scripts::"), Simulator]
    WindowForgottenAtStart "window-forgotten-at-start"
        "A restart forgets the windows of unique tasks."
        [Engine("scripts::"), Simulator]
    EvictsMoreUrgentTasks "evicts-more-urgent-tasks"
        "A put into a full queue evicts tasks that are more urgent."
        [Engine("scripts::"), Simulator]
    EvictedTaskLost "evicted-task-lost"
        "A task that makes room is removed, although there is a queue for dead letters."
        [Engine("scripts::"), Simulator]
    LimitNotKept "limit-not-kept"
        "More tasks are taken at once than the limit of the queue allows."
        [Engine("scripts::"), Simulator]
    FreedRoomNotNoticed "freed-room-not-noticed"
        "A consumer that waits for room under the limit is not served when a lease ends."
        [Engine("scripts::"), Simulator]
    TokenNotAwaited "token-not-awaited"
        "A consumer that waits for a token is not served when there is one."
        [Engine("scripts::"), Simulator]
    TokenNotReturned "token-not-returned"
        "A task that was not sent costs a token."
        [Engine("scripts::")]
    GroupBeyondItsTokens "group-beyond-its-tokens"
        "A group is taken whole, however few tokens there are."
        [Engine("scripts::"), Simulator]
    AttemptsKeptByDig "attempts-kept-by-dig"
        "A task that is dug up keeps the number of its attempts."
        [Engine("scripts::"), Simulator]
    FiguresLingerForEver "figures-linger-for-ever"
        "The figures of a queue that has ceased to exist are kept for ever."
        [Engine("scripts::"), Simulator]
    QueueNameNotGivenBack "queue-name-not-given-back"
        "The memory of a queue that is gone stays accounted for."
        [Engine("room::"), Engine("scripts::"), Simulator]
    TimeIdsRepeat "time-ids-repeat"
        "Two ids made from the clock in one millisecond are equal."
        [Engine("scripts::")]
    LastLaneMissed "last-lane-missed"
        "A publication misses the lane that was made last."
        [Engine("scripts::"), Simulator]
    CopyNotRecorded "copy-not-recorded"
        "The record of a publication leaves one lane out, so that a crash loses it there."
        [Engine("scripts::"), Simulator]
    PublishedTooLate "published-too-late"
        "What is published after its deadline is still put into lanes."
        [Engine("scripts::"), Simulator]
    PublishedToEndedMember "published-to-ended-member"
        "A publication goes to a member that has ended and is not cleaned yet."
        [Engine("scripts::"), Simulator]
    EndedMemberFound "ended-member-found"
        "A member that has ended is still found by its name, and a beat revives it."
        [Engine("scripts::"), Simulator]
    LaneMemoryLeaks "lane-memory-leaks"
        "The memory of a lane that has ended stays accounted for."
        [Engine("scripts::"), Simulator]
    CleaningHitsNamesake "cleaning-hits-namesake"
        "Cleaning up a member that ended forgets one of the same name that joined meanwhile."
        [Engine("scripts::"), Simulator]
    TopicGoesWithOneLane "topic-goes-with-one-lane"
        "When one lane ends, the topic forgets the others."
        [Engine("scripts::"), Simulator]
    EndsForgottenAtStart "ends-forgotten-at-start"
        "Acknowledged tasks are back after a restart."
        [Engine("scripts::"), Simulator]
    GrantsForgottenAtStart "grants-forgotten-at-start"
        "Leases are forgotten in a restart, although they were durable."
        [Engine("scripts::"), Simulator]
    NumbersGivenTwice "numbers-given-twice"
        "Numbers of tasks that are gone are given again after a restart."
        [Engine("bounds::drawn_ids")]
    TailForgottenAtStart "tail-forgotten-at-start"
        "A task that was released to the tail is back in its old place after a restart."
        [Engine("fan_out::crashes::"), Simulator]
    CompactionLosesSettings "compaction-loses-settings"
        "Compaction gives the settings of a queue up instead of writing them again."
        [Engine("random::engine_does_what_the_model_does"), Simulator]
    CompactionLosesCopies "compaction-loses-copies"
        "Compaction writes a publication again without its copies."
        [Simulator]
    AnswerBeforeSync "answer-before-sync"
        "An answer leaves before its change is durable."
        [Simulator]
    TakeBeforePutIsDurable "take-before-put-is-durable"
        "A task is handed over under a lease before its put is durable."
        [Store("takes::"), Simulator]
    TakeAfterUnsavedMove "take-after-unsaved-move"
        "A take does not wait for what became of other tasks that were ready before it."
        [Store("takes::"), Simulator]
    SyncSkipped "sync-skipped"
        "Files are not synced."
        [Simulator]
    GatheringNeverEnds "gathering-never-ends"
        "After a sync, the next one waits for more changes for ever."
        [Store("threads::what_comes_until"), Simulator]
    MuchIsGathered "much-is-gathered"
        "After a sync, the next one waits for more changes however much waits already."
        [Store("threads::nothing_is_gathered")]
    FailedSyncIgnored "failed-sync-ignored"
        "A sync that failed is taken for success."
        [Simulator, Store("faults::after_a_failed")]
    FailedSyncRetried "failed-sync-retried"
        "A sync that failed is tried again, and then believed."
        [Store("faults::after_a_failed")]
    DirectoryNotSynced "directory-not-synced"
        "The directory is not synced."
        [Simulator]
    TailNotSecured "tail-not-secured"
        "What was read at the start is relied on before it is durable."
        [Simulator]
    DamageTakenForTheEnd "damage-taken-for-the-end"
        "The log ends at the first bad checksum, whatever stands behind it."
        [Simulator]
    EndOfSegmentNotCompared "end-of-segment-not-compared"
        "It goes unnoticed that a segment ends before the place that its successor names."
        [Simulator]
    IncarnationForgotten "incarnation-forgotten"
        "The incarnation starts again from 1 after a restart, and receipts come again."
        [Simulator]
    MomentForgotten "moment-forgotten"
        "The latest moment of the log is forgotten, so that time goes back in a restart."
        [Store("conformance::the_journal_on_a_disk"), Simulator]
    SegmentGoesTooEarly "segment-goes-too-early"
        "A segment is put away before it is durable that nobody needs it."
        [InStore("journal::accounts::")]
    SegmentGoesWithItsLastRecord "segment-goes-with-its-last-record"
        "A segment is put away while a small record in it still counts."
        [Simulator, Store("compaction::")]
    CompactionSkipsRecord "compaction-skips-record"
        "Where the list of an old segment is interrupted, one record is passed over."
        [Store("compaction::a_batch_of_more_records")]
    GroupCommitCountsTooMuch "group-commit-counts-too-much"
        "What was appended during a write is taken to be durable with it."
        [Store("threads::what_comes_while"), Simulator]
    LengthIn16Bits "length-in-16-bits"
        "Lengths in records are cut to 16 bits."
        [Store("compaction::a_batch_larger")]
    PayloadSkippedTwoShort "payload-skipped-two-short"
        "Whoever skips the payload of a record goes two bytes wrong."
        [Store("compaction::one_ancient_task")]
    FetchedPayloadNotCompared "fetched-payload-not-compared"
        "A payload that was left on the disk is handed out without a look at its checksum."
        [Store("memory_limit::a_payload_that_the_disk_spoilt")]
    RewrittenPayloadStaysAway "rewritten-payload-stays-away"
        "A payload in the store is sought at its new place before it is written there."
        [Store("memory_limit::"), Simulator]
    HeldSegmentUsedAgain "held-segment-used-again"
        "A segment is used again while an answer waits for a payload in it."
        [Store("memory_limit::")]
    PayloadLeftTooEarly "payload-left-too-early"
        "A payload is dropped from memory before its record is on the disk."
        [Store("memory_limit::a_payload_stays")]
    CompactionLosesPayload "compaction-loses-payload"
        "Compaction writes a task again without the payload that was left on the disk."
        [Store("memory_limit::compaction")]
    GoneSegmentsKeptOpen "gone-segments-kept-open"
        "Segments that are gone are kept open while memory is short."
        [Store("memory_limit::segments_that_are_gone")]
    RoomTakenForCertain "room-taken-for-certain"
        "More is accepted than room was reserved for, while nobody knows whether the disk is full."
        [Store("full_disk::who_is_faster")]
    SpareWithoutRoom "spare-without-room"
        "A spare is filled without its room being reserved."
        [Store("faults::the_room_of_a_spare")]
    LostSegmentsNotNoticed "lost-segments-not-noticed"
        "A journal without its newest segments passes for a whole one."
        [Store("mixed::a_journal_that_lacks")]
    MixedShardsNotNoticed "mixed-shards-not-noticed"
        "A journal in the place of another shard is accepted."
        [Store("mixed::a_journal_in_the_place")]
    OldCopyNotNoticed "old-copy-not-noticed"
        "An older copy of a journal, or an emptied directory, is accepted."
        [Store("mixed::an_older_copy")]
    CarryOverDropped "carry-over-dropped"
        "What a reader has of a batch at the end of its window is lost when the window moves on."
        [InStore("journal::window::"), Store("windows::batches_across")]
    HoleSkippedTooFar "hole-skipped-too-far"
        "Behind a hole in a file the first batch is passed over."
        [InStore("journal::window::")]
    ClosingBatchLeftOut "closing-batch-left-out"
        "An orderly stop does not say that the last write is on the disk."
        [Store("closing::damage")]
    FullDiskNotNoticed "full-disk-not-noticed"
        "Puts are accepted although the disk is nearly full."
        [Store("fan_out_faults::a_full_disk")]
    StartReservesWholeSegment "start-reserves-whole-segment"
        "A start reserves a whole segment, or is refused, however little room there is."
        [Store("full_disk::starts")]
    TouchOnFullDisk "touch-on-full-disk"
        "Leases are renewed on a full disk until acks have no room."
        [Engine("room::"), Store("full_disk::what_makes_no_room")]
    NewTakenForWhole "new-taken-for-whole"
        "A new directory of several shards is accepted before a tool has written all of it."
        [InStore("layout::")]
    ReshardEndsLeases "reshard-ends-leases"
        "Tasks that are taken become ready when the number of shards changes."
        [Store("reshard::")]
    BlockedToldOfStop "blocked-told-of-stop"
        "A stop refuses blocked requests that have changed nothing, instead of closing."
        [Server("resp::blocking::a_server_that_stops"), Simulator]
    OutBufferUnbounded "out-buffer-unbounded"
        "Answers are encoded without bound while the client does not read."
        [InServer("outbox::")]
    SentBytesKept "sent-bytes-kept"
        "What a slow client has read of its answers stays in memory until it has read all of them."
        [InServer("outbox::")]
    UnsentPopsLost "unsent-pops-lost"
        "Popped tasks that could not be sent are not put back."
        [Simulator, Server("resp::blocking::a_reply_that_could")]
    UnsentLeasesKept "unsent-leases-kept"
        "Leases of which the client never heard do not end with its connection."
        [Server("resp::members::a_reply_that_could")]
    SpoiltTransactionCarriedOut "spoilt-transaction-carried-out"
        "EXEC carries out what fitted, though a command was refused at once."
        [Server("resp::golden::transactions")]
    TransactionOutlivesReset "transaction-outlives-reset"
        "RESET leaves a transaction open."
        [Server("resp::golden::transactions")]
    ConnectionsUnbounded "connections-unbounded"
        "There may be more connections than the limit says."
        [Server("limits::connections_that_come")]
    EncodedTakenForSent "encoded-taken-for-sent"
        "Popped tasks are let go of once they are encoded, and not once they are sent."
        [Simulator, Server("resp::blocking::a_reply_that_could")]
    CreditsAllAtOnce "credits-all-at-once"
        "The engine is told of all credits of a client at once."
        [Server("slow::a_subscriber")]
    NewestPlaceFilled "newest-place-filled"
        "A reply of another shard goes to the newest request for it, and not to the oldest."
        [Simulator]
    DeliveryBehindAll "delivery-behind-all"
        "A delivery of another shard is sent behind all replies that the shard still owes."
        [Simulator]
    AcceptedNotTold "accepted-not-told"
        "Other shards are not told that their answers were sent, and stop answering."
        [Simulator]
    CutNotTold "cut-not-told"
        "Other shards are not told that a connection has gone, and its leases there stay."
        [Simulator]
    LateOutputsKept "late-outputs-kept"
        "What another shard hands to a connection that has gone is not sent back to it."
        [Simulator]
    BlockedAbroadPassed "blocked-abroad-passed"
        "A request is carried out while one before it is blocked in another shard."
        [Server("shards::nothing_is_done_behind")]
    AllShardsPassed "all-shards-passed"
        "What follows a request to all shards is done before it: who joins again is gone."
        [Server("shards::a_member_that_leaves")]
    ResetNotAwaited "reset-not-awaited"
        "RESET is answered before the other shards have done what they ask."
        [Simulator]
    EarlyCreditsLost "early-credits-lost"
        "Credits that were granted before the first subscription do not reach its shard."
        [Simulator]
    UnderWayUnbounded "under-way-unbounded"
        "A connection may have any number of bytes under way to a shard that does not read."
        [Server("shards::a_connection_has_only")]
    ReadTakenForDone "read-taken-for-done"
        "Requests count as done when another shard has read them, though they wait for room there."
        [Server("shards::what_was_sent")]
    EndUnseenBehindInput "end-unseen-behind-input"
        "The end of a connection is not seen while nothing is read from it."
        [Server("resp::closing::a_client_that_closes")]
    KeepAliveNotSet "keep-alive-not-set"
        "Idle connections are not probed, so that a host that vanished is never noticed."
        [InServer("keepalive::")]
    ListensBeforeLoading "listens-before-loading"
        "Clients can connect before the tasks are loaded."
        [Server("starting::nobody_can_connect")]
    ReadyBeforeLoaded "ready-before-loaded"
        "A server that still loads its tasks says over HTTP that it is ready."
        [Server("starting::a_server_that_loads")]
    StopUnheardWhileLoading "stop-unheard-while-loading"
        "A server that is to stop loads all its tasks first."
        [Server("starting::a_stop"), Store("opening::a_load_that_is_told_to_stop")]
    TimeFollowsTheWallClock "time-follows-the-wall-clock"
        "When the wall clock is set, time jumps along with it."
        [Simulator]
    TimeNotDrawnBack "time-not-drawn-back"
        "Time is not drawn back to a wall clock that is behind it."
        [Server("time_line::")]
    TimeDrawnTooFast "time-drawn-too-fast"
        "Time is drawn to the wall clock a thousand times too fast."
        [Server("time_line::")]
    DeadlineNotTranslated "deadline-not-translated"
        "A deadline by the wall clock is taken for one by the server's time."
        [Server("resp::members::a_deadline_is_meant")]
    BytesInTheLog "bytes-in-the-log"
        "The log shows the bytes of a malformed request."
        [Server("resp::logging::")]
    FrameNumberNotChecked "frame-number-not-checked"
        "A frame between two nodes may be repeated or left out."
        [InServer("frame::")]
    EntriesTrimmedTooEarly "entries-trimmed-too-early"
        "Entries are removed before the batches that replace their records are in the log."
        [Ledger("store::what_was")]
    UnknownTakenForDone "unknown-taken-for-done"
        "An entry of which nobody knows what became of it counts as appended."
        [Ledger("store::what_was")]
    UnknownTakenForFailed "unknown-taken-for-failed"
        "An entry of which nobody knows what became of it is appended again, and not resolved."
        [Ledger("store::what_was")]
    AbsentTakenForDone "absent-taken-for-done"
        "An entry that is not in the log is not appended again."
        [Ledger("store::what_was")]
    PartOfBatchCounted "part-of-batch-counted"
        "A batch that was left incomplete counts as far as it goes."
        [InLedger("reader::"), Ledger("store::what_was")]
    EntryBeforeNotCompared "entry-before-not-compared"
        "An entry is read though it does not follow the one before it."
        [InLedger("reader::")]
    LedgerRecordsLeftBehind "ledger-records-left-behind"
        "Old entries are never written again, and the log grows without bound."
        [Ledger("store::one_ancient")]
    AnswerNotConfirmed "answer-not-confirmed"
        "An answer that changed nothing leaves though another server may own the log by now."
        [Ledger("answers::")]
    GrantBeforeItIsDurable "grant-before-it-is-durable"
        "A lease is handed out before its grant is in a log that another server may take over."
        [Ledger("answers::")]
    TermNotRaised "term-not-raised"
        "Who seizes a log on etcd gets the term that its former owner has."
        [Etcd("suites::it_passes_the_suite_for_ledgers")]
    FenceOutsideOfTransaction "fence-outside-of-transaction"
        "An append on etcd does not compare the fence in its own transaction."
        [Etcd("suites::it_passes_the_suite_for_ledgers")]
    NoBarAfterAbsent "no-bar-after-absent"
        "An entry on etcd that was said not to be in the log may still come."
        [Etcd("lost::an_entry_that_comes_after_a_bar")]
    HeadNotCompared "head-not-compared"
        "An append on PostgreSQL does not compare the last entry."
        [Postgres("logs::it_passes_all_cases")]
    ResolvedByReading "resolved-by-reading"
        "What became of an entry on PostgreSQL is read, and not found out by a commit."
        [Postgres("trouble::an_append_whose_wait_was_cancelled")]
    TrimNotFenced "trim-not-fenced"
        "Who has lost a log on PostgreSQL can still remove its entries."
        [Postgres("logs::it_passes_all_cases")]
    RecordTakenForHost "record-taken-for-host"
        "A node believes a record of its own that a lost claim left behind, and hosts nothing."
        [Cluster("ownership::claims::"), Cluster("walk::")]
    ForeignRecordReplaced "foreign-record-replaced"
        "A node writes its record over that of another node that has claimed its shard."
        [Cluster("ownership::sessions::")]
    HostBeforeClaim "host-before-claim"
        "A shard is seized before the registry has answered the claim."
        [Cluster("ownership::claims::")]
    SilenceTakenForDone "silence-taken-for-done"
        "A claim that was not answered counts as done."
        [Cluster("ownership::claims::")]
    RankNotWaited "rank-not-waited"
        "All nodes claim a shard at once, and not the one first that it belongs to."
        [Cluster("ownership::claims::")]
    WrongClockClaims "wrong-clock-claims"
        "A node whose wall clock is far off those of the others claims shards."
        [Cluster("ownership::claims::")]
    ClaimedAgainAtOnce "claimed-again-at-once"
        "A node whose host has failed claims its shard again without a pause."
        [Cluster("ownership::claims::")]
    DrainingNodeClaims "draining-node-claims"
        "A node that drains claims shards."
        [Cluster("ownership::moves::")]
    TwoMovesAtOnce "two-moves-at-once"
        "A node hands several shards over at once to be in balance."
        [Cluster("ownership::moves::")]
    MovedAtOnce "moved-at-once"
        "Shards move as soon as a node comes, and do not wait until the members stay the same."
        [Cluster("ownership::moves::")]
    HandOverWithoutEnd "hand-over-without-end"
        "A shard whose host does not stop is never served again."
        [Cluster("ownership::moves::"), Cluster("walk::")]
    SessionEndUnnoticed "session-end-unnoticed"
        "A node whose session has ended does not open another one."
        [Cluster("ownership::sessions::"), Cluster("walk::")]
    WindowFromTheAnswer "window-from-the-answer"
        "The time in which answers may leave counts from the answer of the engine."
        [Ledger("window::")]
    WindowFromTheUnknown "window-from-the-unknown"
        "An append of which nobody knows what became of it lets answers leave."
        [Ledger("window::")]
    RenewalWithoutFence "renewal-without-fence"
        "A tenure counts as renewed though another server has seized the log."
        [Ledger("window::")]
    EndTakenForOrderly "end-taken-for-orderly"
        "A log whose owner has vanished counts as one that has ended in order."
        [Ledger("takeover::")]
    LeaseCutAtTakeover "lease-cut-at-takeover"
        "A take-over shortens the leases that would have lasted longer."
        [Engine("scripts::"), Ledger("takeover::")]
    TimeLeapsAtTakeover "time-leaps-at-takeover"
        "After a take-over the time line follows a wall clock that is far ahead."
        [InStore("takeover::")]
    MovedToFormerOwner "moved-to-former-owner"
        "Cluster clients are sent to the node that once had the shard, whoever has it now."
        [InServer("letters::owners::")]
    StaleRoute "stale-route"
        "A node of an older term is asked for a shard, though one of a newer term was known."
        [InServer("cluster::exchange::")]
    FormerTermServed "former-term-served"
        "What the former host of a shard was asked reaches the next one of the same node."
        [InServer("cluster::exchange::")]
    FormerOwnerHeard "former-owner-heard"
        "What the former owner of a shard says to a client is believed."
        [InServer("cluster::exchange::")]
    GuestsKeptAfterLink "guests-kept-after-link"
        "The clients of a node whose link is lost keep what they have here."
        [InServer("cluster::exchange::"), Server("cluster::")]
    SuspendedHostSpeaks "suspended-host-speaks"
        "A shard that another node may own by now answers all the same."
        [Server("cluster::")]
    WatermarkNotCompared "watermark-not-compared"
        "A log is loaded though it has lost entries that it had."
        [InLedger("watermark::"), Ledger("takeover::")]
    WatermarkFromTheUnknown "watermark-from-the-unknown"
        "An append of which nobody knows what became of it makes a watermark."
        [Ledger("watermarks::")]
    AnswerBeforeWatermark "answer-before-watermark"
        "An answer leaves before the watermark behind it is kept."
        [Ledger("watermarks::")]
    LostNumbersGivenAgain "lost-numbers-given-again"
        "After a roll-back that was accepted, tasks get the numbers of those that were lost."
        [Ledger("watermarks::"), ClusterSimulator]
    GenerationNotInTerm "generation-not-in-term"
        "After a roll-back that was accepted, terms may be begun that were begun before."
        [InServer("cluster::terms::")]
    ClusterMadeAgain "cluster-made-again"
        "A node makes its cluster again if the engine does not know it any more."
        [InServer("cluster::founding::")]
    HalfImportServed "half-import-served"
        "A node serves a cluster whose import was interrupted."
        [InServer("cluster::founding::")]
    ImportNotMarked "import-not-marked"
        "The record of a cluster is complete before its import is."
        [InServer("cluster::whole::")]
    SupersededImportGoesOn "superseded-import-goes-on"
        "An import goes on writing though another one has taken its place."
        [InServer("cluster::whole::")]
    FormerReadKept "former-read-kept"
        "What an export read of a log before it had to begin anew is kept."
        [InServer("cluster::whole::")]
    GenerationNotRaised "generation-not-raised"
        "A roll-back is accepted, and the cluster stays in its generation."
        [InServer("cluster::acceptance::"), ClusterSimulator]
    FencedNotCompared "fenced-not-compared"
        "A log that was rolled back refuses an append, and its node lets another one have it."
        [ClusterSimulator]
    RollBackNotHeeded "roll-back-not-heeded"
        "Nodes go on serving when another one has found that the engine was rolled back."
        [Cluster("ownership::sessions::"), ClusterSimulator]
    StaleClaim "stale-claim"
        "A node that has not seen that a roll-back was accepted claims a shard all the same."
        [Cluster("ownership::claims::")]
    PieceCountedUnsent "piece-counted-unsent"
        "Tasks in an answer over HTTP count as sent before they have left."
        [InServer("doors::http::visit::")]
    GoneVisitorKept "gone-visitor-kept"
        "A visitor over HTTP that has gone goes on waiting, and gets the next task."
        [Server("http::")]
    VisitorLeaseNeverEnds "visitor-lease-never-ends"
        "A lease over HTTP has no end if nobody has named one."
        [Server("http::")]
    IdempotencyKeyLost "idempotency-key-lost"
        "A put over HTTP happens twice though it has an idempotency key."
        [Server("http::")]
    SiteNotLookedAt "site-not-looked-at"
        "A page of another origin may ask for changes over HTTP if its browser does not name it."
        [Server("http::")]
    OthersFall "others-fall"
        "Counters of the queues that are not shown fall when one of them is shown."
        [InServer("monitor::")]
    QueueNewsLost "queue-news-lost"
        "Nobody hears which queues come and go."
        [Server("http::")]
    BegunPopSentAgain "begun-pop-sent-again"
        "A request that its former owner may have carried out is sent to the next one."
        [ClusterSimulator]
}
