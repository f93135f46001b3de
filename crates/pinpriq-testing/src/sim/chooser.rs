//! Chooses what clients ask: few names, keys and priorities, which collide, and occasionally
//! nonsense.

mod batches;
mod holding;
mod jobs;
mod limits;
mod moving;
mod settings;
mod shares;

use crate::Dice;
use crate::model::{Model, is_placeholder};
use pinpriq_proto::batches::Bonds;
use pinpriq_proto::command::{
    Ack, Amendment, Assign, Cancel, Command, Delay, Done, End, Held, HeldBy, Order, Peek, Put,
    QueueCommand, QueueName, Selection, Sides, Take, TakeMode, TimeToLive, Transfer, Update, Wait,
};
use pinpriq_proto::export::{Export, ExportPlace};
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::limits::NAMES_DEFAULT;
use pinpriq_proto::looking::{Leases, Scan};
use pinpriq_proto::names::NamesPage;
use pinpriq_proto::schedule::{NewSchedule, OnMissed, Overlap, ScheduleCommand, When};
use pinpriq_proto::task::{Receipt, StateKind, TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{OnDuplicate, Unique};

use crate::sim::ask::{Ask, Imported, Name, Text};
use crate::sim::client::{Client, Knowledge, id_text, invented_receipt};
use crate::sim::jobs::DEFAULT;
use crate::sim::knobs::Knobs;
use crate::sim::packet::Packet;

const QUEUES: [&[u8]; 6] = [b"a", b"dead", b"", b"ab", b"q\xff\x00", b"TTL"];
/// The end of every name when there are several shards.
pub(crate) const SHARD_TAG: &[u8] = b"{0}";
/// What the names that tubes can have become instead, if clients want tubes: no tube has braces in
/// its name. All of them are in the shard of the tag, as is `default`.
pub(crate) const TUBES_IN_THE_SHARD: [(&[u8], &[u8]); 4] =
    [(b"a", b"a/"), (b"dead", b"dead+"), (b"ab", b"ab-1"), (b"TTL", b"TTL")];
const TOPICS: [&[u8]; 3] = [b"news", b"a", b""];
const MEMBERS: [&[u8]; 4] = [b"m", b"1", b"10", b""];
const KEYS: [&[u8]; 4] = [b"k", b"", b"key\r\n", b"l"];
const PRIORITIES: [i64; 8] = [0, 1, 1, 2, 255, -1, i64::MIN, i64::MAX];

pub(crate) struct Chooser<'a> {
    pub(crate) dice: &'a mut Dice,
    pub(crate) knobs: &'a Knobs,
    pub(crate) known: &'a Knowledge,
    pub(crate) model: &'a Model,
    /// The time of the wall clock.
    pub(crate) wall: Timestamp,
    /// Rises with each payload, so that no two are equal.
    pub(crate) serial: &'a mut u64,
}

impl Chooser<'_> {
    /// Chooses a request of a RESP client.
    pub(crate) fn ask(&mut self, client: &Client) -> Ask {
        if client.only_subscribes {
            return self.subscription(client);
        }
        if self.once_in(14) {
            return self.transaction(client);
        }
        self.plain_ask(client)
    }

    /// Chooses the requests of a transaction.
    fn transaction(&mut self, client: &Client) -> Ask {
        let mut steps = Vec::new();
        for _ in 0..self.dice.below(12) {
            let ask = self.plain_ask(client);
            #[expect(
                clippy::redundant_closure_for_method_calls,
                reason = "the method itself has only one lifetime"
            )]
            if ask.with_command(|command| command.is_step()) == Some(true) {
                steps.push(ask);
            }
        }
        // Without a queue it is carried out in any shard, perhaps in one that is not watched.
        if steps.is_empty() { self.plain_ask(client) } else { Ask::Exec(steps) }
    }

    fn plain_ask(&mut self, client: &Client) -> Ask {
        let crowded = self.model.task_count() as u64 > self.knobs.crowd;
        let puts = if crowded { 0 } else { self.knobs.puts };
        let takes = self.knobs.takes + if crowded { self.knobs.puts } else { 0 };
        let subscriptions = if client.speaks == 3 { self.knobs.subscriptions } else { 0 };
        let weights = [
            puts,
            takes,
            self.knobs.holds,
            self.knobs.transfers,
            self.knobs.awaits,
            subscriptions,
            self.knobs.administration,
            self.knobs.looks,
            self.knobs.fan_out,
            self.knobs.nonsense,
        ];
        match self.weighed(&weights) {
            Some(0) => self.put(),
            Some(2) => self.hold(),
            Some(3) => self.transfer(),
            Some(4) => self.wait_for(),
            Some(5) => self.subscription(client),
            Some(6) => self.administration(),
            Some(7) => self.look(client),
            Some(8) => self.fan_out(crowded),
            Some(9) => self.nonsense(),
            _ => self.take(),
        }
    }

    /// Chooses one of these weights.
    fn weighed(&mut self, weights: &[u64]) -> Option<usize> {
        let mut roll = self.dice.below(weights.iter().sum());
        weights.iter().position(|weight| {
            let hit = roll < *weight;
            roll = roll.saturating_sub(*weight);
            hit
        })
    }

    /// Chooses a request of a pinpriq client.
    pub(crate) fn packet(&mut self, zero_is_forever: bool) -> Packet {
        let crowded = self.model.task_count() as u64 > self.knobs.crowd;
        let puts = if crowded { 0 } else { self.knobs.puts };
        let takes = self.knobs.takes + if crowded { self.knobs.puts } else { 0 };
        let roll = self.dice.below(puts + takes + self.knobs.subscriptions);
        if roll < puts {
            return self.push(zero_is_forever);
        }
        if roll < puts + takes || self.knobs.subscriptions == 0 {
            return Packet::Pop(self.queue());
        }
        match self.dice.below(8) {
            0..=1 => Packet::Subscribe(self.queue()),
            2 => Packet::Unsubscribe(self.queue()),
            _ => Packet::Ready,
        }
    }

    fn push(&mut self, zero_is_forever: bool) -> Packet {
        let most = u16::MAX.into();
        let ttl_ms = if self.once_in(5) { 0 } else { self.span().min(most) };
        let priority = if self.once_in(6) { 0 } else { 1 + self.dice.below(self.knobs.priorities) };
        Packet::Push {
            queue: self.queue(),
            ttl_ms: u16::try_from(ttl_ms * 20 % (most + 1)).unwrap_or(u16::MAX),
            zero_is_forever,
            priority: u8::try_from(priority).unwrap_or(u8::MAX),
            key: self.key().unwrap_or_default(),
            payload: self.payload(),
        }
    }

    fn put(&mut self) -> Ask {
        let waits = self.knobs.awaits > 0 && self.once_in(6);
        let delay = if !waits && self.once_in(5) { self.span() } else { 0 };
        let queue = self.queue();
        let for_room =
            self.knobs.waits > 0 && self.once_in(if self.model.is_full(&queue) { 2 } else { 40 });
        let room = for_room.then(|| self.span() * if self.once_in(3) { 20 } else { 1 });
        let given = self.model.gives_ids(&queue) != self.once_in(40);
        let ttl = self.once_in(4).then(|| self.span() + if self.once_in(9) { 0 } else { delay });
        let unique = self.once_in(6).then(|| self.unique(&queue));
        let (batch, after, only_if) = self.ties();
        let at = (delay > 0 && delay % 3 == 0 && after.is_none()).then(|| self.wall.ms() + delay);
        let is_held = delay == 0 && after.is_none() && self.once_in(20);
        let bonds = Bonds { batch: batch.as_deref(), after: after.as_deref() };
        let (payload, key, priority) = (self.payload(), self.key(), self.priority());
        let ttr = self.once_in(6).then(|| self.span());
        let ((share, cost), headers) = (self.share(), self.headers());
        let retries = self.retries();
        let id = given.then(|| format!("t{}", self.dice.below(30)).into_bytes());
        let put = Put {
            queue: &queue,
            payload: &payload,
            terms: Terms::of(key.as_deref(), ttr.map(Span::from_ms))
                .with_all(share.as_deref(), cost, headers.as_deref())
                .with_retries(retries),
            priority: priority.unwrap_or(Some(0)),
            delay: match at {
                None if is_held => Delay::Held,
                None => Delay::For(Span::from_ms(delay)),
                Some(at) => Delay::Until(Timestamp::from_ms(at)),
            },
            ttl: ttl.map_or(TimeToLive::Default, |ms| TimeToLive::For(Span::from_ms(ms))),
            id: id.as_deref(),
            wait: waits.then(|| self.wait()),
            unique: unique.as_ref().map(|(key, window, on_duplicate)| Unique {
                key,
                window: *window,
                on_duplicate: *on_duplicate,
            }),
            result: waits && self.once_in(2),
            bonds,
            only_if,
        };
        Ask::of(&match room {
            None => Command::Put(put),
            Some(room) => Command::PutInLine { put: &put, room: Span::from_ms(room) },
        })
    }

    fn unique(&mut self, queue: &[u8]) -> (Text, Option<Span>, OnDuplicate) {
        if self.once_in(4) {
            // There are few tasks that have failed and can be replaced.
            let failed = self.model.tasks().filter(|task| task.progress.failures > 0);
            let key = failed.filter(|task| *task.queue == *queue).find_map(TaskRecord::unique);
            if let Some(key) = key {
                return (key.to_vec(), None, OnDuplicate::Replace);
            }
        }
        let keys: [&[u8]; 4] = [b"u", b"v\r\n", b"", b"w"];
        let key = if self.once_in(40) { vec![b'u'; 256] } else { keys[self.index(4)].to_vec() };
        let on_duplicate = OnDuplicate::ALL[self.index(3)].0;
        let window = self.once_in(3).then(|| self.span() * if self.once_in(3) { 20 } else { 1 });
        let on_duplicate = if self.once_in(2) { on_duplicate } else { OnDuplicate::default() };
        (key, window.map(Span::from_ms), on_duplicate)
    }

    fn take(&mut self) -> Ask {
        let lane = self.knobs.fan_out > 0 && self.once_in(3);
        let count = if self.once_in(6) { 3 } else { 1 };
        let several = if self.once_in(4) { 2 } else { 1 };
        let queues = (0..several).map(|_| if lane { self.topic() } else { self.queue() });
        let queues: Vec<Text> = queues.collect();
        let waits = self.dice.chance(self.knobs.waits);
        let pop = self.once_in(3);
        let count_done = if pop { 0 } else { self.dice.below(8).saturating_sub(5) };
        let done: Vec<_> = (0..count_done).map(|_| (self.receipt(), self.result())).collect();
        let done: Vec<Done<'_>> = done
            .iter()
            .map(|((name, receipt, _), result)| Done {
                queue: &name.queue,
                receipt: *receipt,
                result: result.as_deref(),
            })
            .collect();
        let member = lane.then(|| self.member());
        let wait = if waits { self.wait() } else { Wait::No };
        let (selection, meta) = self.wish(self.knobs.keys > 0);
        let ttr = (!self.once_in(4)).then(|| Span::from_ms(self.span()));
        let take = Take {
            queues: &borrowed(&queues),
            member: member.as_deref(),
            count,
            wait,
            selection,
            mode: if pop { TakeMode::Pop } else { TakeMode::Lease { ttr } },
        };
        let command = match &done[..] {
            [] => Command::Take(take),
            done => Command::TakeDone { done, take },
        };
        Ask::of(&command).with_meta(meta)
    }

    fn reason(&mut self) -> Option<&'static [u8]> {
        self.once_in(2).then(|| if self.once_in(6) { b"".as_slice() } else { b"why" })
    }

    fn maybe_span(&mut self, cases: u64) -> Option<Span> {
        self.once_in(cases).then(|| Span::from_ms(self.span()))
    }

    fn transfer(&mut self) -> Ask {
        if self.once_in(5) {
            return self.moving();
        }
        let (name, id) = self.known_id();
        let queue = name.borrow();
        let plain = |change: Change| Change { payload: None, priority: Assign::Keep, ..change };
        Ask::of(&match self.dice.below(14) {
            12.. => {
                let mode = TakeMode::Lease { ttr: self.maybe_span(2) };
                return Ask::of(&Command::TakeOne { queue, id: &id, mode })
                    .with_meta(self.once_in(2));
            }
            10.. => {
                let (reason, grace) = (self.reason(), self.maybe_span(3));
                return Ask::of(&Command::Cancel(Cancel { queue, id: &id, reason, grace }));
            }
            0 => return Ask::of(&Command::Dig(self.change().transfer(queue, &id))),
            1 => Command::Dig(Transfer::new(queue, &id)),
            2..=3 => Command::Plow {
                queue,
                count: self.once_in(2).then(|| 1 + self.dice.below(3)),
                delay: self.maybe_span(4).unwrap_or(Span::ZERO),
                ttl: self.maybe_span(4),
            },
            4 => {
                let (other, second) = self.known_id();
                let second = if other == name { second } else { id.clone() };
                return Ask::of(&Command::Kill { queue, ids: &[&id, &second] });
            }
            5 => {
                let to = StateKind::ALL[self.index(StateKind::ALL.len())];
                let delays = matches!(to, StateKind::Waiting | StateKind::Zombie);
                let delay = if delays && !self.once_in(8) { self.span() } else { 0 };
                let transfer =
                    Transfer { delay: Span::from_ms(delay), ..Transfer::new(queue, &id) };
                Command::Switch { transfer, to }
            }
            6 => {
                let change = plain(self.plain_change());
                return Ask::of(&Command::Snatch(change.transfer(queue, &id)));
            }
            7 => {
                let change = plain(self.plain_change());
                return Ask::of(&Command::Restart(change.transfer(queue, &id)));
            }
            8 => return Ask::of(&Command::Kill { queue, ids: &[&id] }),
            _ => {
                let receipt = self.once_in(3).then(|| self.receipt().1);
                let change = self.change();
                let amendment = change.amendment();
                let headers = if self.once_in(6) { Some(Vec::new()) } else { self.headers() };
                let headers = headers.as_deref();
                let update = Update { queue, id: &id, amendment, receipt, headers };
                return Ask::of(&Command::Update(update));
            }
        })
    }

    fn subscription(&mut self, client: &Client) -> Ask {
        let lane = self.knobs.fan_out > 0 && self.once_in(3);
        let member = lane.then(|| self.member());
        match self.dice.below(12) {
            0..=2 => {
                let several = if self.once_in(3) { 2 } else { 1 };
                let queues = (0..several).map(|_| if lane { self.topic() } else { self.queue() });
                let queues: Vec<Text> = queues.collect();
                let pops = self.once_in(3);
                let lease = TakeMode::Lease { ttr: self.maybe_span(2) };
                Ask::of(&Command::Subscribe {
                    queues: &borrowed(&queues),
                    member: member.as_deref(),
                    selection: Selection::DEFAULT,
                    mode: if pops { TakeMode::Pop } else { lease },
                    recall: !pops && self.once_in(2),
                })
            }
            3 => {
                // Of several shards, the one with the subscriptions is asked. If none has any, a
                // shard other than the watched one replies.
                let all = !lane && self.once_in(3) && self.knobs.shards == 1;
                let queue = if lane { self.topic() } else { self.queue() };
                let queues: &[&[u8]] = if all { &[] } else { &[&queue] };
                Ask::of(&Command::Unsubscribe { queues, member: member.as_deref() })
            }
            4 if client.only_subscribes => Ask::Ping(None),
            5..=6 if client.only_subscribes => {
                let (name, receipt, id) = self.receipt();
                let by = if self.once_in(10) { HeldBy::Id(&id) } else { HeldBy::Receipt(receipt) };
                let held = Held { queue: name.borrow(), by };
                let ack = Command::Ack(Ack::new(held));
                let receipts = [receipt, self.receipt().1];
                let start = match self.dice.below(2) {
                    0 => Command::Start { queue: held.queue, receipt },
                    _ => Command::StartAll { queue: held.queue, receipts: &receipts },
                };
                Ask::of(if self.once_in(3) { &start } else { &ack })
            }
            7 => Ask::Credit(if self.once_in(20) { 5_000 } else { 3 }),
            _ => Ask::Credit(1),
        }
    }

    fn administration(&mut self) -> Ask {
        match self.dice.below(40) {
            0..=9 => return self.schedule(),
            10..=12 => return self.limit(),
            13..=17 => return self.batch(),
            _ => {}
        }
        let (name, other) = (self.name(), self.queue());
        let queue = name.borrow();
        let sides = [Sides::Input, Sides::Output, Sides::Both][self.index(3)];
        let command = match self.dice.below(12) {
            0 => {
                let settings = &self.settings();
                return Ask::of(&QueueCommand::Create { queue: &other, settings }.into());
            }
            1..=3 => {
                let settings = &self.settings();
                return Ask::of(&QueueCommand::Set { queue, settings }.into());
            }
            4 => QueueCommand::Truncate(queue),
            5 => QueueCommand::Drop(&other),
            6 => {
                let length = (!self.once_in(3)).then(|| Span::from_ms(self.span()));
                QueueCommand::Pause { queue, sides, length }
            }
            9 if self.once_in(2) => {
                let share = &pick(self.dice, &KEYS, KEYS.len() as u64);
                let change = self.share_change();
                return Ask::of(&QueueCommand::Share { queue: &other, share, change }.into());
            }
            7..=8 if self.once_in(3) => return Ask::Import(Box::new(self.imported())),
            _ => QueueCommand::Resume { queue, sides: Sides::Both },
        };
        Ask::of(&command.into())
    }

    fn imported(&mut self) -> Imported {
        // Unlike those of a PUT, moments of records are by the time of the server.
        let now = self.model.now.ms();
        let moment = |it: &mut Self| (now + it.span()).saturating_sub(it.span());
        let keys = ["u", "v"];
        let unique = self.once_in(4).then(|| keys[self.index(2)]);
        let payload = self.payload();
        Imported {
            queue: self.queue(),
            id: ["", "x", "y", "7"][self.index(4)],
            // A record with a large payload in it would be too long for an argument.
            beside: self.once_in(2) || payload.len() > 10_000,
            payload,
            state: StateKind::ALL[self.index(6)],
            at: moment(self),
            put_at: moment(self),
            expires_at: self.once_in(3).then(|| moment(self)),
            priority: self.priority().unwrap_or(Some(0)),
            key: self.key(),
            failures: u32::from(self.once_in(3)),
            unique: unique.map(|key| (key, self.once_in(2).then(|| moment(self)))),
        }
    }

    /// Of several shards, only a schedule in the watched one has its queue there.
    fn schedule(&mut self) -> Ask {
        let names: [&[u8]; 3] = [b"s", b"a", b""];
        let name = pick(self.dice, &names, 3);
        let name = self.in_the_shard(name);
        let command = match self.dice.below(12) {
            0..=4 => return self.new_schedule(&name),
            5 => ScheduleCommand::Pause(&name),
            6..=7 => ScheduleCommand::Resume(&name),
            8 if self.once_in(2) => {
                let prefix: &[u8] = if self.once_in(3) { b"s" } else { b"" };
                let count = if self.once_in(3) { 1 } else { NAMES_DEFAULT };
                ScheduleCommand::List(NamesPage { prefix, count, after: None })
            }
            8..=9 => ScheduleCommand::Show(&name),
            10 => ScheduleCommand::Drop(&name),
            _ => ScheduleCommand::Fire(&name),
        };
        Ask::of(&command.into())
    }

    fn new_schedule(&mut self, name: &[u8]) -> Ask {
        // Slots are further apart than most other moments.
        let ms = if self.once_in(20) { 99 } else { 100 + self.knobs.span_ms + self.span() };
        let at = self.once_in(3).then(|| (self.wall.ms() + self.span()).saturating_sub(ms * 2));
        let when = match self.dice.below(8) {
            0 => When::Cron { expression: b"*/2 * * * *", zone: None },
            1 => When::Cron { expression: b"@hourly", zone: Some(b"Europe/Berlin") },
            _ => When::Every { every: Span::from_ms(ms), at: at.map(Timestamp::from_ms) },
        };
        let queue = pick(self.dice, &QUEUES, self.knobs.queues);
        let queue = self.in_the_shard(queue);
        let (payload, key, ttr) = (self.payload(), self.key(), self.maybe_span(6));
        let ((share, cost), headers) = (self.share(), self.headers());
        Ask::of(&Command::Schedule(ScheduleCommand::Set(NewSchedule {
            name,
            queue: &queue,
            payload: &payload,
            terms: Terms::of(key.as_deref(), ttr).with_all(
                share.as_deref(),
                cost,
                headers.as_deref(),
            ),
            priority: self.priority().unwrap_or(Some(0)),
            ttl: self.once_in(4).then(|| Span::from_ms(self.span() * 4)),
            when,
            on_missed: OnMissed::ALL[self.index(3)],
            overlap: Overlap::ALL[self.index(2)],
        })))
    }

    fn look(&mut self, client: &Client) -> Ask {
        if self.knobs.administration > 0 && self.once_in(12) {
            return self.schedule();
        }
        let name = self.name();
        let queue = name.borrow();
        let (known, id) = self.known_id();
        match self.dice.below(16) {
            12..=13 => {
                let id = (!self.once_in(3)).then_some(&id[..]);
                Ask::of(&Command::Explain { queue: known.borrow(), id })
            }
            14 => {
                let key = if self.once_in(3) { self.key() } else { None };
                let batch = self.once_in(6).then(|| self.batch_name());
                let scan = Scan {
                    queue,
                    after: if self.once_in(2) { self.dice.below(40) } else { 0 },
                    count: [1, 2, 5, 100, 1_001][self.index(5)],
                    state: self.once_in(3).then(|| StateKind::ALL[self.index(6)]),
                    key: key.as_deref(),
                    batch: batch.as_deref(),
                };
                Ask::of(&Command::Scan(scan)).with_meta(self.once_in(2))
            }
            15 => {
                let is_of_all = self.knobs.shards == 1 && self.once_in(2);
                let count = [1, 2, 100, 1_001][self.index(4)];
                let queue = (!is_of_all).then_some(queue);
                Ask::of(&Command::Leases(Leases { queue, after: None, count }))
            }
            0..=2 => Ask::of(&QueueCommand::Stats((!self.once_in(3)).then_some(queue)).into()),
            3..=5 => {
                let state = self.once_in(2).then(|| StateKind::ALL[self.index(6)]);
                let (selection, meta) = self.wish(false);
                let count = u32::try_from(1 + self.dice.below(5)).unwrap_or(1);
                Ask::of(&Command::Peek(Peek { queue, selection, state, count })).with_meta(meta)
            }
            6..=7 => Ask::of(&Command::Get { queue: known.borrow(), id: &id }),
            8 if self.once_in(2) => {
                let (count, from) = (1 + u32::from(self.once_in(2)) * 9, None);
                let top = self.once_in(3);
                Ask::of(&QueueCommand::Shares { queue, count, from, top }.into())
            }
            8 => Ask::of(&QueueCommand::Show(queue).into()),
            9 => {
                let prefix: &[u8] = if self.once_in(3) { b"a" } else { b"" };
                let count = if self.once_in(3) { 2 } else { NAMES_DEFAULT };
                let page = NamesPage { prefix, count, after: None };
                Ask::of(&QueueCommand::List(page).into())
            }
            10 if self.once_in(4) && !client.only_subscribes => Ask::Reset,
            10 => Ask::Hello(3),
            11 if self.once_in(6) => {
                let after = self.once_in(2).then(|| ExportPlace::Task(self.dice.below(40)));
                let (after, count) = (after.unwrap_or_default(), [1, 2, 100, 1_001][self.index(4)]);
                Ask::of(&Command::Export(Export { queue: &self.queue(), after, count }))
            }
            _ => Ask::Ping(self.once_in(2).then(|| self.payload())),
        }
    }

    fn fan_out(&mut self, crowded: bool) -> Ask {
        let (topic, member) = (&self.topic()[..], &self.member()[..]);
        let lease = (!self.once_in(3)).then(|| Span::from_ms(self.span() * 8));
        Ask::of(&match self.dice.below(16) {
            kind @ 0..=7 if !crowded => {
                let (payload, key, priority) = (self.payload(), self.key(), self.priority());
                let ((share, cost), headers) = (self.share(), self.headers());
                let wall = (self.wall.ms() + self.span()).saturating_sub(self.knobs.span_ms / 8);
                let deadline = match kind {
                    7 => Deadline::After(Span::from_ms(self.span())),
                    _ if self.once_in(8) => Deadline::At(Timestamp::from_ms(wall)),
                    _ => Deadline::OfLane,
                };
                return Ask::of(&Command::Publish(Publish {
                    topic,
                    payload: &payload,
                    terms: Terms::of(key.as_deref(), None).with_all(
                        share.as_deref(),
                        cost,
                        headers.as_deref(),
                    ),
                    priority: priority.unwrap_or(Some(0)),
                    deadline,
                }));
            }
            8..=10 => MemberCommand::Join { topic, member, lease }.into(),
            11 => MemberCommand::Beat { member, lease }.into(),
            12 if self.once_in(2) => MemberCommand::Leave(member).into(),
            12 => MemberCommand::LeaveTopic { topic, member }.into(),
            13 => MemberCommand::List(topic).into(),
            _ => {
                let lane = QueueName { name: topic, member: Some(member) };
                let shows = self.once_in(2);
                let stats = QueueCommand::Stats(Some(lane));
                Command::Queue(if shows { QueueCommand::Show(lane) } else { stats })
            }
        })
    }

    fn nonsense(&mut self) -> Ask {
        let words: (&[&str], &'static str) = match self.dice.below(7) {
            0 => (&["NOSUCH", "a"], "ERR"),
            1 => (&["PUT", "a"], "ERR"),
            2 => (&["PUT", "a", "b", "TTL", "01"], "BADARG"),
            3 => (&["ACK", "a", "x-y"], "BADARG"),
            4 => (&["TAKE", "a", "COUNT", "0"], "BADARG"),
            5 => (&["QUEUE", "SET", "a", "AFTERACK", "zombie"], "BADARG"),
            _ => (&["HELLO", "7"], "NOPROTO"),
        };
        let (words, refusal) = words;
        Ask::Nonsense(words.iter().map(|word| word.as_bytes().to_vec()).collect(), refusal)
    }

    fn change(&mut self) -> Change {
        if self.once_in(2) {
            return Change::default();
        }
        Change {
            priority: self.once_in(4).then(|| self.a_priority()).into(),
            payload: self.once_in(6).then(|| self.payload()),
            ..self.plain_change()
        }
    }

    fn plain_change(&mut self) -> Change {
        let delay = if self.once_in(3) { self.span() } else { 0 };
        let ttl = self.once_in(4).then(|| Some(Span::from_ms(delay + self.span())));
        Change { delay: Span::from_ms(delay), ttl: ttl.into(), ..Change::default() }
    }

    /// A receipt that some client received, usually a recent one.
    fn receipt(&mut self) -> (Name, Receipt, Vec<u8>) {
        let count = self.known.receipts.len();
        if count == 0 || self.once_in(30) {
            let receipt = invented_receipt(self.dice.below(50), self.dice.below(50));
            return (self.name(), receipt, b"1".to_vec());
        }
        let back = self.index(count).min(self.index(count));
        let mut known = self.known.receipts[count - 1 - back].clone();
        if known.0.member.is_some() && self.once_in(2) {
            known.0.member = None;
        }
        known
    }

    /// A task by its id, usually an existing one.
    fn known_id(&mut self) -> (Name, Vec<u8>) {
        let count = self.model.task_count();
        if count > 0 && !self.once_in(4) {
            let nth = self.index(count);
            let task = self.model.tasks().nth(nth).filter(|task| !is_placeholder(&task.id));
            if let Some(task) = task {
                let member = task.lane.as_ref().map(|lane| lane.member.to_vec());
                return (Name { queue: task.queue.to_vec(), member }, id_text(&task.id));
            }
        }
        let count = self.known.ids.len();
        if count == 0 || self.once_in(20) {
            return (self.name(), self.dice.below(100).to_string().into_bytes());
        }
        self.known.ids[self.index(count)].clone()
    }

    fn name(&mut self) -> Name {
        if self.knobs.fan_out > 0 && self.once_in(3) {
            return Name { queue: self.topic(), member: Some(self.member()) };
        }
        Name::queue(self.queue())
    }

    fn queue(&mut self) -> Text {
        if self.wants_tubes() && self.once_in(8) {
            return DEFAULT.to_vec();
        }
        let name = pick(self.dice, &QUEUES, self.knobs.queues);
        self.in_the_shard(name)
    }

    fn topic(&mut self) -> Text {
        let name = pick(self.dice, &TOPICS, self.knobs.topics);
        self.in_the_shard(name)
    }

    /// Whether any client wants the tubes of beanstalkd.
    const fn wants_tubes(&self) -> bool {
        self.knobs.beanstalkd_clients > 0
    }

    /// Changes a name so that it is in the simulated shard.
    fn in_the_shard(&self, mut name: Text) -> Text {
        let tube = TUBES_IN_THE_SHARD.iter().find(|(known, _)| **known == *name);
        if self.knobs.shards > 1 {
            if let Some((_, tube)) = tube.filter(|_| self.wants_tubes()) {
                return tube.to_vec();
            }
            name.extend_from_slice(SHARD_TAG);
        }
        name
    }

    fn member(&mut self) -> Text {
        pick(self.dice, &MEMBERS, self.knobs.members)
    }

    fn key(&mut self) -> Option<Text> {
        let keyed = self.knobs.keys > 0 && !self.once_in(3);
        keyed.then(|| pick(self.dice, &KEYS, self.knobs.keys))
    }

    #[expect(clippy::option_option, reason = "not given, none, or a value")]
    fn priority(&mut self) -> Option<Option<i64>> {
        (!self.once_in(3)).then(|| self.a_priority())
    }

    fn a_priority(&mut self) -> Option<i64> {
        let count = usize::try_from(self.knobs.priorities).unwrap_or(1).min(PRIORITIES.len());
        (!self.once_in(12)).then(|| PRIORITIES[self.index(count)])
    }

    fn payload(&mut self) -> Text {
        *self.serial += 1;
        let large = self.dice.below(1_000) < self.knobs.large_payloads;
        let most = self.knobs.payload_bytes * if large { 100 } else { 1 };
        let length = usize::try_from(self.dice.below(most + 1)).unwrap_or_default();
        let mut payload = self.serial.to_string().into_bytes();
        let filler = u8::try_from(*self.serial % 251).unwrap_or_default();
        payload.resize(payload.len().max(length.min(65_535)), filler);
        payload
    }

    /// A span in milliseconds, short or about as long as usual.
    fn span(&mut self) -> u64 {
        let most = self.knobs.span_ms;
        match self.dice.below(40) {
            0 if self.knobs.nonsense > 0 => 0,
            0..=9 => 1 + self.dice.below(4),
            10..=24 => 1 + self.dice.below(most / 4 + 1),
            _ => 1 + self.dice.below(most),
        }
    }

    fn wait(&mut self) -> Wait {
        match self.dice.below(10) {
            0 => Wait::Forever,
            1 => Wait::For(Span::ZERO),
            _ => Wait::For(Span::from_ms(self.span())),
        }
    }

    /// Which tasks are wanted, and whether with all that is known of them.
    fn wish(&mut self, may_group: bool) -> (Selection, bool) {
        let from = if self.once_in(5) { End::Max } else { End::Min };
        let newest = if self.once_in(5) { self.once_in(2) } else { from == End::Max };
        let order = if newest { Order::Newest } else { Order::Oldest };
        let group = may_group && self.once_in(4);
        (Selection { from, order, group, narrow: false }, self.once_in(4))
    }

    const fn once_in(&mut self, cases: u64) -> bool {
        self.dice.once_in(cases)
    }

    fn index(&mut self, count: usize) -> usize {
        self.dice.index(count)
    }
}

fn borrowed(texts: &[Text]) -> Vec<&[u8]> {
    texts.iter().map(Vec::as_slice).collect()
}

/// What changes along with a move.
#[derive(Default)]
struct Change {
    delay: Span,
    ttl: Assign<Option<Span>>,
    priority: Assign<Option<i64>>,
    payload: Option<Text>,
}

impl Change {
    fn amendment(&self) -> Amendment<'_> {
        Amendment { payload: self.payload.as_deref(), priority: self.priority, ttl: self.ttl }
    }

    fn transfer<'a>(&'a self, queue: QueueName<'a>, id: &'a [u8]) -> Transfer<'a> {
        Transfer { queue, id, delay: self.delay, amendment: self.amendment() }
    }
}

fn pick(dice: &mut Dice, names: &[&[u8]], count: u64) -> Text {
    let count = count.clamp(1, names.len() as u64);
    names[usize::try_from(dice.below(count)).unwrap_or_default()].to_vec()
}
