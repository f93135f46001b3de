//! Chooses what clients ask: few names, keys and priorities, which collide, and occasionally
//! nonsense.

mod jobs;

use pinpriq_dice::Dice;
use pinpriq_model::{Model, is_placeholder};
use pinpriq_proto::command::Sides;
use pinpriq_proto::schedule::{OnMissed, Overlap};
use pinpriq_proto::settings::{
    AFTERACK, ATTEMPTS, AfterAck, BACKOFF, BACKOFFMAX, CAPACITY, CAPACITYBYTES, DEADLETTER, IDS,
    Ids, LIMIT, ONEXPIRY, OVERFLOW, RATE, RELEASEFAILS, Rate, SETTINGS, TTL, TTR, Value,
};
use pinpriq_proto::task::{Receipt, StateKind, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::OnDuplicate;

use crate::ask::{
    Ask, By, Change, Due, Imported, Name, NewPriority, NewSchedule, Settings, Text, Uniqueness,
    Wish,
};
use crate::client::{Client, Knowledge, id_text, invented_receipt};
use crate::jobs::DEFAULT;
use crate::knobs::Knobs;
use crate::packet::Packet;

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
            let is_step = ask.with_command(|command| command.is_step()) == Some(true);
            // KICK is another word for DIG, and no part of transactions.
            if is_step && !matches!(ask, Ask::KickOne { .. }) {
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
        let at = (delay > 0 && delay % 3 == 0).then(|| self.wall.ms() + delay);
        Ask::Put {
            queue,
            payload: self.payload(),
            key: self.key(),
            priority: self.priority(),
            delay: if at.is_some() { 0 } else { delay },
            at,
            ttl,
            ttr: self.once_in(6).then(|| self.span()),
            id: given.then(|| format!("t{}", self.dice.below(30)).into_bytes()),
            wait: waits.then(|| self.wait()),
            room,
            unique,
        }
    }

    fn unique(&mut self, queue: &[u8]) -> Uniqueness {
        if self.once_in(4) {
            // There are few tasks that have failed and can be replaced.
            let failed = self.model.tasks().filter(|task| task.progress.failures > 0);
            let key = failed.filter(|task| *task.queue == *queue).find_map(TaskRecord::unique);
            if let Some(key) = key {
                let on_duplicate = Some(OnDuplicate::Replace);
                return Uniqueness { key: key.to_vec(), window: None, on_duplicate };
            }
        }
        let keys: [&[u8]; 4] = [b"u", b"v\r\n", b"", b"w"];
        let key = if self.once_in(40) { vec![b'u'; 256] } else { keys[self.index(4)].to_vec() };
        let on_duplicate = OnDuplicate::ALL[self.index(3)].0;
        Uniqueness {
            key,
            window: self.once_in(3).then(|| self.span() * if self.once_in(3) { 20 } else { 1 }),
            on_duplicate: self.once_in(2).then_some(on_duplicate),
        }
    }

    fn take(&mut self) -> Ask {
        let lane = self.knobs.fan_out > 0 && self.once_in(3);
        let count = if self.once_in(6) { 3 } else { 1 };
        let several = if self.once_in(4) { 2 } else { 1 };
        let queues = (0..several).map(|_| if lane { self.topic() } else { self.queue() });
        let queues = queues.collect();
        let waits = self.dice.chance(self.knobs.waits);
        let pop = self.once_in(3);
        let count_done = if pop { 0 } else { self.dice.below(8).saturating_sub(5) };
        let done = (0..count_done).map(|_| {
            let (name, receipt, _) = self.receipt();
            (name.queue, receipt)
        });
        let done = done.collect();
        Ask::Take {
            queues,
            member: lane.then(|| self.member()),
            count,
            wait: waits.then(|| self.wait()),
            wish: self.wish(),
            pop,
            ttr: (!self.once_in(4)).then(|| self.span()),
            done,
        }
    }

    fn hold(&mut self) -> Ask {
        let (queue, by) = self.held();
        if self.once_in(4) {
            return Ask::Fail {
                queue,
                by,
                payload: self.once_in(8).then(|| self.payload()),
                reason: self.reason(),
                delay: self.once_in(4).then(|| self.span()),
            };
        }
        match self.dice.below(12) {
            0..=4 => Ask::Ack {
                queue,
                by,
                payload: self.once_in(8).then(|| self.payload()),
                zombie: self.once_in(8).then(|| self.span()),
            },
            5 => {
                let receipts = (0..2).map(|_| self.receipt().1).collect();
                Ask::AckAll { queue, receipts }
            }
            6..=8 => {
                let change = self.change();
                Ask::Release { queue, by, change, tail: self.once_in(4) }
            }
            9 => Ask::Bury {
                queue,
                by,
                payload: self.once_in(6).then(|| self.payload()),
                reason: self.reason(),
            },
            _ => Ask::Touch { queue, by, span: self.once_in(2).then(|| self.span()) },
        }
    }

    fn reason(&mut self) -> Option<Text> {
        self.once_in(2).then(|| if self.once_in(6) { Text::new() } else { b"why".to_vec() })
    }

    fn moving(&mut self) -> Ask {
        let count = (!self.once_in(4)).then(|| u32::try_from(1 + self.index(4)).unwrap_or(1));
        if self.once_in(2) {
            let queue = if self.once_in(3) { self.name() } else { Name::queue(self.dead().into()) };
            return Ask::Redrive { queue, count };
        }
        let state = self.once_in(2).then(|| StateKind::ALL[self.index(6)]);
        Ask::Move { from: self.name(), to: self.queue(), count, state }
    }

    /// The name of a queue for dead letters.
    fn dead(&mut self) -> &'static [u8] {
        match (self.knobs.shards > 1, self.wants_tubes(), self.once_in(4)) {
            (false, _, false) => b"dead",
            (false, _, true) => b"a",
            (true, false, false) => b"dead{0}",
            (true, false, true) => b"a{0}",
            (true, true, false) => b"dead+",
            (true, true, true) => b"a/",
        }
    }

    fn transfer(&mut self) -> Ask {
        if self.once_in(5) {
            return self.moving();
        }
        let (queue, id) = self.known_id();
        match self.dice.below(10) {
            0 => Ask::Dig { queue, id, change: self.change() },
            1 => Ask::KickOne { queue, id },
            2 => Ask::Plow {
                queue,
                count: self.once_in(2).then(|| 1 + self.dice.below(3)),
                delay: if self.once_in(4) { self.span() } else { 0 },
                ttl: self.once_in(4).then(|| self.span()),
            },
            3 => Ask::Kick { queue, count: 1 + self.dice.below(3) },
            4 => {
                let (other, second) = self.known_id();
                let second = if other == queue { second } else { id.clone() };
                Ask::Kill { queue, ids: vec![id, second] }
            }
            5 => {
                let to = StateKind::ALL[self.index(StateKind::ALL.len())];
                let delays = matches!(to, StateKind::Waiting | StateKind::Zombie);
                let delay = if delays && !self.once_in(8) { self.span() } else { 0 };
                Ask::Switch { queue, id, to, change: Change { delay, ..Change::default() } }
            }
            6 => {
                let change = Change { payload: None, priority: None, ..self.plain_change() };
                Ask::Snatch { queue, id, change }
            }
            7 => {
                let change = Change { payload: None, priority: None, ..self.plain_change() };
                Ask::Restart { queue, id, change }
            }
            8 => Ask::Kill { queue, ids: vec![id] },
            _ => {
                let receipt = self.once_in(3).then(|| self.receipt().1);
                let change = Change { delay: 0, ..self.change() };
                Ask::Update { queue, id, change, receipt }
            }
        }
    }

    fn wait_for(&mut self) -> Ask {
        let (queue, id) = self.known_id();
        Ask::Await { queue, id, wait: Some(self.wait()) }
    }

    fn subscription(&mut self, client: &Client) -> Ask {
        let lane = self.knobs.fan_out > 0 && self.once_in(3);
        let member = lane.then(|| self.member());
        match self.dice.below(12) {
            0..=2 => {
                let several = if self.once_in(3) { 2 } else { 1 };
                let queues = (0..several).map(|_| if lane { self.topic() } else { self.queue() });
                let queues = queues.collect();
                let pop = self.once_in(3);
                Ask::Subscribe { queues, member, ttr: self.once_in(2).then(|| self.span()), pop }
            }
            3 if lane => Ask::Unsubscribe { queues: vec![self.topic()], member },
            3 => {
                // Of several shards, the one with the subscriptions is asked. If none has any, a
                // shard other than the watched one replies.
                let all = self.once_in(3) && self.knobs.shards == 1;
                let queues = if all { Vec::new() } else { vec![self.queue()] };
                Ask::Unsubscribe { queues, member: None }
            }
            4 if client.only_subscribes => Ask::Ping(None),
            5..=6 if client.only_subscribes => {
                let (queue, by) = self.held();
                Ask::Ack { queue, by, payload: None, zombie: None }
            }
            7 => Ask::Credit(if self.once_in(20) { 5_000 } else { 3 }),
            _ => Ask::Credit(1),
        }
    }

    fn administration(&mut self) -> Ask {
        if self.once_in(4) {
            return self.schedule();
        }
        let name = self.name();
        let sides = [Sides::Input, Sides::Output, Sides::Both][self.index(3)];
        match self.dice.below(12) {
            0 => Ask::Create { queue: self.queue(), settings: self.settings() },
            1..=3 => Ask::Set { queue: name, settings: self.settings() },
            4 => Ask::Truncate(name),
            5 => Ask::Drop(self.queue()),
            6 => {
                let length = (!self.once_in(3)).then(|| self.span());
                Ask::Pause { queue: name, sides, length }
            }
            7..=8 if self.once_in(3) => Ask::Import(Box::new(self.imported())),
            _ => Ask::Resume { queue: name, sides: Sides::Both },
        }
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
        match self.dice.below(12) {
            0..=4 => Ask::Schedule(self.new_schedule(name)),
            5 => Ask::PauseSchedule(name),
            6..=7 => Ask::ResumeSchedule(name),
            8 if self.once_in(2) => {
                let prefix = if self.once_in(3) { b"s".to_vec() } else { Text::new() };
                Ask::Schedules { prefix, count: self.once_in(3).then_some(1) }
            }
            8..=9 => Ask::ShowSchedule(name),
            10 => Ask::DropSchedule(name),
            _ => Ask::Fire(name),
        }
    }

    fn new_schedule(&mut self, name: Text) -> NewSchedule {
        // Slots are further apart than most other moments.
        let ms = if self.once_in(20) { 99 } else { 100 + self.knobs.span_ms + self.span() };
        let at = self.once_in(3).then(|| (self.wall.ms() + self.span()).saturating_sub(ms * 2));
        let due = match self.dice.below(8) {
            0 => Due::Cron { expression: "*/2 * * * *", zone: None },
            1 => Due::Cron { expression: "@hourly", zone: Some("Europe/Berlin") },
            _ => Due::Every { ms, at },
        };
        let queue = pick(self.dice, &QUEUES, self.knobs.queues);
        let (missed, overlap) = (self.index(3), self.index(2));
        NewSchedule {
            name,
            queue: self.in_the_shard(queue),
            payload: self.payload(),
            due,
            key: self.key(),
            priority: self.priority(),
            ttl: self.once_in(4).then(|| self.span() * 4),
            ttr: self.once_in(6).then(|| self.span()),
            on_missed: self.once_in(2).then_some(OnMissed::ALL[missed]),
            overlap: self.once_in(2).then_some(Overlap::ALL[overlap]),
        }
    }

    fn look(&mut self, client: &Client) -> Ask {
        if self.knobs.administration > 0 && self.once_in(12) {
            return self.schedule();
        }
        match self.dice.below(16) {
            12..=13 => {
                let (queue, id) = self.known_id();
                Ask::Explain { queue, id: (!self.once_in(3)).then_some(id) }
            }
            14 => Ask::Scan {
                queue: self.name(),
                after: if self.once_in(2) { self.dice.below(40) } else { 0 },
                count: [1, 2, 5, 100, 1_001][self.index(5)],
                state: self.once_in(3).then(|| StateKind::ALL[self.index(6)]),
                key: if self.once_in(3) { self.key() } else { None },
                meta: self.once_in(2),
            },
            15 => {
                let is_of_all = self.knobs.shards == 1 && self.once_in(2);
                Ask::Leases {
                    queue: (!is_of_all).then(|| self.name()),
                    count: [1, 2, 100, 1_001][self.index(4)],
                }
            }
            0..=2 => Ask::Stats((!self.once_in(3)).then(|| self.name())),
            3..=5 => {
                let state = self.once_in(2).then(|| StateKind::ALL[self.index(6)]);
                let wish = Wish { group: false, ..self.wish() };
                let count = u32::try_from(1 + self.dice.below(5)).unwrap_or(1);
                Ask::Peek { queue: self.name(), wish, state, count }
            }
            6..=7 => {
                let (queue, id) = self.known_id();
                Ask::Get { queue, id }
            }
            8 => Ask::Show(self.name()),
            9 => {
                let prefix = if self.once_in(3) { b"a".to_vec() } else { Text::new() };
                Ask::List { prefix, count: self.once_in(3).then_some(2) }
            }
            10 if self.once_in(4) && !client.only_subscribes => Ask::Reset,
            10 => Ask::Hello(3),
            11 if self.once_in(6) => Ask::Export {
                queue: self.queue(),
                after: self.once_in(2).then(|| self.dice.below(40)),
                count: [1, 2, 100, 1_001][self.index(4)],
            },
            _ => Ask::Ping(self.once_in(2).then(|| self.payload())),
        }
    }

    fn fan_out(&mut self, crowded: bool) -> Ask {
        match self.dice.below(16) {
            0..=6 if !crowded => Ask::Publish {
                topic: self.topic(),
                payload: self.payload(),
                key: self.key(),
                priority: self.priority(),
                deadline: self
                    .once_in(8)
                    .then(|| (self.wall.ms() + self.span()).saturating_sub(self.knobs.span_ms / 8)),
                ttl: None,
            },
            7 if !crowded => Ask::Publish {
                topic: self.topic(),
                payload: self.payload(),
                key: None,
                priority: None,
                deadline: None,
                ttl: Some(self.span()),
            },
            8..=10 => Ask::Join { topic: self.topic(), member: self.member(), lease: self.lease() },
            11 => Ask::Beat { member: self.member(), lease: self.lease() },
            12 if self.once_in(2) => Ask::Leave(self.member()),
            12 => Ask::LeaveTopic { topic: self.topic(), member: self.member() },
            13 => Ask::Members(self.topic()),
            _ => {
                let lane = Name { queue: self.topic(), member: Some(self.member()) };
                if self.once_in(2) { Ask::Stats(Some(lane)) } else { Ask::Show(lane) }
            }
        }
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

    fn settings(&mut self) -> Settings {
        let once_none = |chooser: &mut Self| (!chooser.once_in(3)).then(|| chooser.span());
        if self.once_in(2) {
            return self.policies();
        }
        let (setting, value) = match self.dice.below(6) {
            0 => (IDS, Ids::ALL[self.index(4)].into()),
            1 => (TTL, once_none(self).map(|span| Span::from_ms(span * 4)).into()),
            2 => (TTR, once_none(self).map(Span::from_ms).into()),
            3 | 4 => {
                let stay = Span::from_ms(self.span());
                let kinds = [AfterAck::Delete, AfterAck::Keep, AfterAck::Zombie(stay)];
                (AFTERACK, kinds[self.index(3)].into())
            }
            _ => (CAPACITY, (!self.once_in(2)).then(|| 1 + self.dice.below(20)).into()),
        };
        vec![(setting, value)]
    }

    fn policies(&mut self) -> Settings {
        let has_one = !self.once_in(4);
        let (setting, value) = match self.dice.below(12) {
            9 => (CAPACITY, has_one.then(|| 1 + self.dice.below(6)).into()),
            10 => (CAPACITYBYTES, has_one.then(|| 1 + self.dice.below(300)).into()),
            11 => (OVERFLOW, Value::Word(u8::from(has_one))),
            // Consumers wait for room where there is little.
            6 => (LIMIT, has_one.then(|| 1 + self.dice.below(4).min(self.dice.below(4))).into()),
            7 | 8 => (RATE, has_one.then(|| self.rate()).into()),
            0 | 1 => (ATTEMPTS, has_one.then(|| 1 + self.dice.below(3)).into()),
            2 => (BACKOFF, has_one.then(|| Span::from_ms(self.span())).into()),
            3 => (BACKOFFMAX, Span::from_ms(self.span() * 2).into()),
            4 if has_one => (DEADLETTER, Value::Bytes(self.dead())),
            4 => (DEADLETTER, Value::None),
            _ => (ONEXPIRY, Value::Word(u8::from(has_one))),
        };
        let dead_letters = (DEADLETTER, Value::Bytes(self.dead()));
        let also = setting != DEADLETTER && self.once_in(2);
        let mut settings = vec![(setting, value)];
        // What evicts needs a capacity, and little is evicted where only few settings meet.
        if (setting == CAPACITY || setting == CAPACITYBYTES) && self.once_in(2) {
            settings.push((OVERFLOW, Value::Word(1)));
        }
        if setting == ATTEMPTS && self.once_in(2) {
            settings.push((RELEASEFAILS, Value::Word(u8::from(has_one))));
        }
        if setting == OVERFLOW && has_one {
            settings.push((CAPACITY, Some(1 + self.dice.below(6)).into()));
        }
        settings.extend(also.then_some(dead_letters));
        for setting in SETTINGS.into_iter().filter(|it| it.tag > RELEASEFAILS.tag) {
            if self.once_in(4) {
                settings.push((setting, setting.example(self.dice.below(60))));
            }
        }
        settings.sort_by_key(|(setting, _)| setting.tag);
        settings
    }

    fn rate(&mut self) -> Rate {
        let count = u32::try_from(1 + self.index(4)).unwrap_or(1);
        Rate { count, per: Span::from_ms(self.span().max(1)) }
    }

    fn change(&mut self) -> Change {
        if self.once_in(2) {
            return Change::default();
        }
        Change {
            priority: self.once_in(4).then(|| self.a_priority()),
            payload: self.once_in(6).then(|| self.payload()),
            ..self.plain_change()
        }
    }

    fn plain_change(&mut self) -> Change {
        let delay = if self.once_in(3) { self.span() } else { 0 };
        let ttl = self.once_in(4).then(|| Some(delay + self.span()));
        Change { delay, ttl, ..Change::default() }
    }

    fn held(&mut self) -> (Name, By) {
        let (name, receipt, id) = self.receipt();
        let by = if self.once_in(10) { By::Id(id) } else { By::Receipt(receipt) };
        (name, by)
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

    fn priority(&mut self) -> NewPriority {
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

    fn wait(&mut self) -> i64 {
        match self.dice.below(10) {
            0 => -1,
            1 => 0,
            _ => i64::try_from(self.span()).unwrap_or(1),
        }
    }

    fn lease(&mut self) -> Option<u64> {
        (!self.once_in(3)).then(|| self.span() * 8)
    }

    fn wish(&mut self) -> Wish {
        Wish {
            from_max: self.once_in(5),
            oldest: self.once_in(5).then(|| self.once_in(2)),
            group: self.knobs.keys > 0 && self.once_in(4),
            meta: self.once_in(4),
        }
    }

    const fn once_in(&mut self, cases: u64) -> bool {
        self.dice.below(cases) == 0
    }

    fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.dice.below(count as u64)).unwrap_or_default()
    }
}

fn pick(dice: &mut Dice, names: &[&[u8]], count: u64) -> Text {
    let count = count.clamp(1, names.len() as u64);
    names[usize::try_from(dice.below(count)).unwrap_or_default()].to_vec()
}
