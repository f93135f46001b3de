//! Chooses commands and their fields by the declarations. A command that is not named here takes
//! part too.

use pinpriq_proto::batches::Bonds;
use pinpriq_proto::choosing::Chosen;
use pinpriq_proto::command::{
    Ack, BatchCommand, Bulk, BulkChange, Bury, Cancel, Command, Deed, Delay, Done, Fail, Filter,
    Held, HeldBy, Peek, Put, QueueCommand, QueueName, Release, Reserve, Selection, Share, Sides,
    Step, Take, TakeMode, TimeToLive, Touch, Transfer, Update, Wait,
};
use pinpriq_proto::export::{Export, Import};
use pinpriq_proto::fanout::{MemberCommand, Publish};
use pinpriq_proto::limits::{CHECKPOINT_BYTES_MAX, PROGRESS_BYTES_MAX};
use pinpriq_proto::looking::{Leases, Scan};
use pinpriq_proto::named_limits::{LimitChange, LimitCommand};
use pinpriq_proto::names::{NamePattern, NamesPage};
use pinpriq_proto::schedule::{NewSchedule, ScheduleCommand};
use pinpriq_proto::settings::Assignment;
use pinpriq_proto::shares::ShareChange;
use pinpriq_proto::task::{Receipt, StateKind, TaskRecord};
use pinpriq_proto::time::Span;

use super::Chooser;

/// One byte longer than the largest checkpoint, and different from payloads.
static BYTES: [u8; CHECKPOINT_BYTES_MAX + 1] = [b'c'; CHECKPOINT_BYTES_MAX + 1];

/// Queues, or topics and a member.
type Several = (&'static [&'static [u8]], Option<&'static [u8]>);

/// What the fields of one command have in common.
#[derive(Default)]
pub(super) struct About {
    /// A queue, and the id of a task that it has, had or might have.
    target: Option<(QueueName<'static>, &'static [u8])>,
    receipt: Option<Receipt>,
    queues: Option<Several>,
    /// Whether its name is that of a batch.
    pub(super) is_batch: bool,
}

impl About {
    pub(super) fn of(target: (QueueName<'static>, &'static [u8])) -> Self {
        Self { target: Some(target), ..Self::default() }
    }
}

/// Chooses values of types by the names of their fields.
macro_rules! chosen {
    ($($type:ty: |$by:ident, $field:pat_param| $value:expr;)*) => {$(
        impl Chosen<Chooser<'_>> for $type {
            fn chosen($by: &mut Chooser<'_>, $field: &'static str) -> Self { $value }
        }
    )*};
}

chosen! {
    Put<'static>: |by, _| by.put();
    &'static Put<'static>: |by, _| Box::leak(Box::new(by.put()));
    Take<'static>: |by, _| by.take();
    Reserve<'static>: |by, _| by.reserve();
    Share<'static>: |by, _| by.share();
    Deed: |by, _| by.deed();
    Peek<'static>: |by, _| by.peek();
    Scan<'static>: |by, _| by.scan();
    Bulk<'static>: |by, _| by.bulk();
    Export<'static>: |by, _| by.export();
    Import<'static>: |by, _| by.import();
    Leases<'static>: |by, _| by.leases();
    Held<'static>: |by, _| by.held();
    Transfer<'static>: |by, _| by.transfer();
    Update<'static>: |by, _| by.update();
    Selection: |by, _| by.selection();
    TakeMode: |by, _| by.mode();
    Wait: |by, _| if by.dice.once_in(2) { Wait::Forever } else { by.wait() };
    Publish<'static>: |by, _| by.publish();
    NewSchedule<'static>: |by, _| { let name = by.schedule_name(); by.new_schedule(name) };
    MemberCommand<'static>: |by, _| by.tend();
    QueueCommand<'static>: |by, _| by.administration();
    ScheduleCommand<'static>: |by, _| by.schedule();
    LimitCommand<'static>: |by, _| by.limit();
    BatchCommand<'static>: |by, _| by.batch();
    LimitChange: |by, _| by.limit_change();
    NamesPage<'static>: |by, _| {
        let (prefix, after) = (Chosen::chosen(by, "prefix"), Chosen::chosen(by, "after"));
        NamesPage { prefix, after, count: Chosen::chosen(by, "count") }
    };
    &'static [Assignment<'static>]: |by, _| by.settings();
    &'static [Done<'static>]: |by, _| by.done();
    &'static [TaskRecord]: |by, _| by.popped();
    &'static [Step<'static>]: |by, _| by.steps();
    &'static [NamePattern<'static>]: |by, _| by.patterns();
    &'static Command<'static>: |by, _| Box::leak(Box::new(by.command()));
    ShareChange: |by, _| by.share_change();
    Sides: |by, _| by.dice.pick(&[Sides::Input, Sides::Output, Sides::Both]);
    bool: |by, _| by.dice.once_in(2);
    usize: |by, _| usize::try_from(by.dice.below(3)).unwrap();
    u64: |by, _| by.number();
    Option<u64>: |by, _| (!by.dice.once_in(3)).then(|| by.dice.below(4));
    StateKind: |by, _| {
        let any = by.dice.pick(&StateKind::ALL);
        if by.dice.once_in(2) { StateKind::Ready } else { any }
    };
    Ack<'static>: |by, _| {
        let (payload, zombie, cost) = (by.payload(), by.maybe_span(), by.spent());
        Ack { payload, zombie, cost, result: by.result(), ..Ack::new(by.held()) }
    };
    Bury<'static>: |by, _| {
        let (payload, reason) = (by.payload(), by.reason());
        Bury { payload, reason, cost: by.spent(), ..Bury::new(by.held()) }
    };
    Cancel<'static>: |by, _| {
        let (queue, id) = if by.dice.once_in(2) { by.endangered() } else { by.aim() };
        Cancel { queue, id, reason: by.reason(), grace: by.maybe_span() }
    };
    Release<'static>: |by, _| {
        let (amendment, tail) = (by.amendment(), by.dice.once_in(4));
        let (delay, cost) = (by.delay(), by.spent());
        let checkpoint = by.checkpoint();
        Release { delay, amendment, tail, cost, checkpoint, ..Release::new(by.held()) }
    };
    Fail<'static>: |by, _| {
        let held = if by.dice.once_in(3) {
            let (queue, id) = by.endangered();
            Held { queue, by: HeldBy::Id(id) }
        } else {
            by.held()
        };
        let (payload, reason) = (by.payload(), by.reason());
        let (delay, cost, checkpoint) = (by.maybe_span(), by.spent(), by.checkpoint());
        Fail { reason, delay, payload, cost, checkpoint, ..Fail::new(held) }
    };
    Touch<'static>: |by, _| {
        let (progress, checkpoint) = (by.progress_text(), by.checkpoint());
        Touch { by: by.maybe_span(), progress, checkpoint, ..Touch::new(by.held()) }
    };
    u32: |by, field| match field {
        // Credit.
        "Command" => by.dice.pick(&[1, 1, 1, 2, 3, 0, u32::MAX]),
        _ => by.moved(),
    };
    Span: |by, field| match field {
        "room" if by.dice.once_in(2) => Span::from_ms(100_000),
        "room" => by.span(),
        _ => by.delay(),
    };
    Option<Span>: |by, field| match field {
        "lease" => by.dice.once_in(2).then(|| by.lease()),
        _ => by.maybe_span(),
    };
    QueueName<'static>: |by, field| match field {
        "QueueCommand" => by.place(),
        _ => by.aim().0,
    };
    Option<QueueName<'static>>: |by, _| (!by.dice.once_in(3)).then(|| by.place());
    &'static [u8]: |by, field| match field {
        "queue" | "to" | "QueueCommand" => by.queue(),
        "id" => by.aim().1,
        "topic" => by.topic(),
        "member" => by.member(),
        "MemberCommand" => if by.dice.once_in(2) { by.member() } else { by.topic() },
        "ScheduleCommand" => by.schedule_name(),
        "BatchCommand" => by.batch_name(),
        "name" if by.about.is_batch => by.batch_name(),
        "LimitCommand" | "name" => by.limit_name(),
        "share" => by.share_name(),
        "prefix" => by.dice.pick(&[b"".as_slice(), b"a", b"ab", b"s", b"b"]),
        _ => by.bytes(),
    };
    Option<&'static [u8]>: |by, field| match field {
        "payload" => by.payload(),
        "reason" => by.reason(),
        "member" => by.several().1,
        "id" => (!by.dice.once_in(3)).then(|| by.aim().1),
        "after" => by.dice.once_in(2).then(|| by.queue()),
        // All tubes, or one.
        "Command" => by.dice.once_in(3).then(|| by.queue()),
        _ => by.dice.once_in(2).then(|| by.bytes()),
    };
    &'static [&'static [u8]]: |by, field| match field {
        "queues" => by.several().0,
        "ids" => {
            let mut ids = vec![by.aim().1];
            ids.extend((0..by.dice.below(2)).map(|_| by.id()));
            Vec::leak(ids)
        }
        _ => by.tubes(),
    };
    Receipt: |by, _| by.about.receipt.unwrap_or_else(|| by.old_receipt().1);
    &'static [Receipt]: |by, _| {
        let known = !by.memory.receipts.is_empty();
        let mut receipts = Vec::from_iter(by.about.receipt);
        receipts.extend((0..if known { by.dice.below(3) } else { 0 }).map(|_| by.old_receipt().1));
        Vec::leak(receipts)
    };
}

impl Chooser<'_> {
    /// Chooses any command that is not made of others.
    pub(super) fn plain_command(&mut self) -> Command<'static> {
        let crowded = self.model.task_count() > 24;
        let kind = self.kind(Command::KINDS, |kind| match kind {
            // These are made of others.
            "Transaction" | "Within" => 0,
            "Put" | "PutInLine" | "PutBuried" | "PutNumbered" | "Publish" if crowded => 0,
            "Put" => 40,
            "Take" if crowded => 66,
            "Take" => 28,
            "Fail" => 14,
            "Queue" => 18,
            "Numbered" | "Touch" => 12,
            "Start" | "StartAll" if self.memory.receipts.is_empty() => 0,
            "Batch" if self.memory.follows_batches => 24,
            "Ack" | "Release" | "PutBack" => 10,
            "Bury" | "Switch" | "Await" | "Move" | "Bulk" | "Schedule" | "Share" => 8,
            "Peek" | "Dig" | "Restart" | "Update" | "Subscribe" | "Credit" => 6,
            "TakeOne" | "TakeDone" | "Kill" | "Cancel" | "Snatch" | "Member" | "Redrive"
            | "Explain" | "Reserve" | "Import" => 4,
            "GiveBack" | "PutInLine" | "PutBuried" | "PutNumbered" | "Head" | "Foremost"
            | "Tubes" => 1,
            _ => 2,
        });
        self.about = About::default();
        match Command::KINDS[kind] {
            "Start" | "StartAll" if let Some((queue, receipt)) = self.taken() => {
                self.about = About { receipt: Some(receipt), ..About::of((queue, b"")) };
            }
            "AckAll" | "GiveBack" | "Start" | "StartAll" if !self.memory.receipts.is_empty() => {
                let (queue, receipt) = self.old_receipt();
                self.about = About { receipt: Some(receipt), ..About::of((queue, b"")) };
            }
            "Await" => self.about = About::of(self.endangered()),
            "Plow" | "Move" | "Redrive" => self.about = About::of((self.place(), b"")),
            _ => {}
        }
        let command = Command::of_kind(kind, self);
        self.made_sensible(command)
    }

    /// Most bulk changes change a few tasks.
    pub(super) fn bulk(&mut self) -> Bulk<'static> {
        let change = match self.dice.below(18) {
            0 => BulkChange::Kill,
            1 | 2 => BulkChange::Cancel,
            3 | 4 => BulkChange::Redrive,
            5..=7 => BulkChange::Move(self.queue()),
            8..=10 => BulkChange::Restart,
            11..=15 => BulkChange::Delay(self.delay()),
            _ => BulkChange::Priority(self.dice.pick(&[None, Some(-8), Some(0), Some(i64::MAX)])),
        };
        let wanted = |by: &mut Self| by.dice.once_in(8);
        let patterns = [b"".as_slice(), b"*", b"b*d", b"*expired", b"\\b*", b"bulk", b"*a*b*c"];
        let filter = if self.dice.once_in(2) {
            Filter::ALL
        } else {
            Filter {
                state: wanted(self).then(|| self.dice.pick(&StateKind::ALL)),
                key: wanted(self).then(|| self.bytes()),
                batch: self.batch_meant(),
                share: wanted(self).then(|| self.share_name()),
                priorities: self.dice.pick(&[None, None, None, Some((-9, 0)), Some((1, 0))]),
                older: wanted(self).then(|| self.span()),
                failures: wanted(self).then(|| self.dice.pick(&[0, 1, 2])),
                reason: wanted(self).then(|| self.dice.pick(&patterns)),
                header: wanted(self).then(|| {
                    let name = self.dice.pick(&[b"a".as_slice(), b"trace", b"b", b"A"]);
                    (name, self.dice.pick(&patterns))
                }),
            }
        };
        let after = if self.dice.once_in(4) { self.number() } else { 0 };
        let dry = self.dice.once_in(4);
        Bulk { queue: self.place(), change, filter, count: self.moved(), after, dry }
    }

    /// Chooses one of these kinds by its weight.
    pub(super) fn kind(&mut self, kinds: &[&str], weight: impl Fn(&str) -> u64) -> usize {
        let mut roll = self.dice.below(kinds.iter().map(|kind| weight(kind)).sum());
        let is_it = |kind: &&str| {
            let weight = weight(kind);
            let is_it = roll < weight;
            roll = roll.saturating_sub(weight);
            is_it
        };
        kinds.iter().position(is_it).unwrap()
    }

    /// Makes fields fit each other where chance alone would hardly ever do so.
    fn made_sensible(&mut self, command: Command<'static>) -> Command<'static> {
        match command {
            Command::Put(put) if self.model.is_full(put.queue) && !self.dice.once_in(4) => {
                let put = Box::leak(Box::new(put));
                Command::PutInLine { put, room: Span::chosen(self, "room") }
            }
            Command::PutBuried { put, reason } => {
                Command::PutBuried { put: self.without_waits(*put), reason }
            }
            // The answer does not tell the id that the engine draws. It must be seen before the
            // task goes elsewhere as a dead letter.
            Command::PutNumbered(put) => {
                let bonds = if self.dice.once_in(8) { put.bonds } else { Bonds::NONE };
                let put = Put { ttl: TimeToLive::Endless, bonds, ..*put };
                Command::PutNumbered(self.without_waits(put))
            }
            Command::Foremost { queue, .. } => {
                let state = self.dice.pick(&[StateKind::Waiting, StateKind::Buried]);
                Command::Foremost { queue, state }
            }
            Command::Switch { transfer, .. } => self.switch(transfer),
            Command::Move { from, count, .. } if self.has_little_room() && self.dice.once_in(2) => {
                let state = self.dice.pick(&StateKind::ALL);
                Command::Move { from, to: b"not there", count, state }
            }
            Command::Subscribe { queues, member, recall: true, .. } if !self.dice.once_in(8) => {
                let mode = TakeMode::Lease { ttr: self.maybe_span() };
                let selection = Selection::DEFAULT;
                Command::Subscribe { queues, member, selection, mode, recall: true }
            }
            Command::Unsubscribe { .. } if self.dice.once_in(2) => {
                let member = self.dice.pick(&[None, None, Some(super::MEMBERS[0])]);
                Command::Unsubscribe { queues: &[], member }
            }
            other => other,
        }
    }

    fn without_waits(&mut self, mut put: Put<'static>) -> &'static Put<'static> {
        if !self.dice.once_in(8) {
            (put.wait, put.unique) = (None, None);
            put.delay = Delay::NONE;
            put = Self::without_after(put);
        }
        Box::leak(Box::new(put))
    }

    /// The queue that this command is about, and the id of a task.
    fn aim(&mut self) -> (QueueName<'static>, &'static [u8]) {
        if self.about.target.is_none() {
            self.about.target = Some(self.target());
        }
        self.about.target.unwrap()
    }

    /// The queues that this command is about, or topics and a member.
    fn several(&mut self) -> Several {
        if self.about.queues.is_none() {
            self.about.queues = Some(self.some_queues());
        }
        self.about.queues.unwrap()
    }

    /// How far the work has come, for people. Some are too long.
    fn progress_text(&mut self) -> Option<&'static [u8]> {
        const MOST: usize = PROGRESS_BYTES_MAX;
        let length = self.dice.pick(&[0, 4, 4, 9, MOST, MOST + 1]);
        self.dice.once_in(2).then(|| &BYTES[..length])
    }

    /// How far the work has come, for who takes the task next. Some are too large.
    fn checkpoint(&mut self) -> Option<&'static [u8]> {
        const MOST: usize = CHECKPOINT_BYTES_MAX;
        let length = self.dice.pick(&[0, 1, 4, 4, 7, 300, 3_000, MOST + 1]);
        let length = if self.dice.once_in(40) { MOST } else { length };
        self.dice.once_in(3).then(|| &BYTES[..length])
    }

    /// What has come of the work. Some are large.
    pub(super) fn result(&mut self) -> Option<&'static [u8]> {
        let length = self.dice.pick(&[0, 0, 2, 2, 5, 60, 60, 3_000]);
        self.dice.once_in(3).then(|| &BYTES[..length])
    }

    /// The tasks of a pop.
    fn popped(&mut self) -> &'static [TaskRecord] {
        if self.memory.popped.is_empty() {
            return &[];
        }
        let index = self.dice.below(self.memory.popped.len() as u64);
        self.memory.popped[usize::try_from(index).unwrap()].clone().leak()
    }
}
