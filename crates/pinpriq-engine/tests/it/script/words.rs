//! Parses the command of a line in a script.
//!
//! The words are those of the command set. For what the engine can do and a client cannot request,
//! scripts have additional words: `TTL NONE`, `TTL INSTANT`, `NARROW` and `PINPRIQ`. A byte that is
//! not a printable character is written as `\xff`.

mod carrying;

use pinpriq_proto::command::{
    Ack, Amendment, Assign, Command, Deed, Delay, Done, End, Fail, Held, HeldBy, Order, Peek, Put,
    QueueCommand, QueueName, Release, Reserve, Selection, Share, Sides, Step, Take, TakeMode,
    TimeToLive, Transfer, Update, Wait,
};
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::looking::{LeasePlace, Leases, Scan};
use pinpriq_proto::names::NamePattern;
use pinpriq_proto::schedule::{NewSchedule, OnMissed, Overlap, ScheduleCommand, When};
use pinpriq_proto::settings::{Assignment, Kind, Rate, SETTINGS, Setting, Value};
use pinpriq_proto::task::{Receipt, StateKind, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{OnDuplicate, Unique};

/// The rest of a line.
pub(super) struct Words {
    words: std::collections::VecDeque<String>,
}

/// Finds the receipt of this name in the script.
type Receipts<'a> = &'a dyn Fn(&str) -> Receipt;

const OPTIONS: [&str; 42] = [
    "KEY", "PRIORITY", "DELAY", "TTL", "TTR", "TTROR", "ID", "WAIT", "COUNT", "FROM", "ORDER",
    "GROUP", "NARROW", "PINPRIQ", "STATE", "PAYLOAD", "ZOMBIE", "TAIL", "REASON", "BY", "RECEIPT",
    "POP", "DONE", "PREFIX", "AFTER", "IN", "OUT", "BOTH", "MEMBER", "LEASE", "DEADLINE", "BYTES",
    "LINGER", "KEPT", "WAITING", "EVERY", "MISSED", "OVERLAP", "UNIQUE", "WINDOW", "ONDUP", "DO",
];

impl Words {
    /// Splits a line at its spaces. Text in quotes is one word.
    pub(super) fn of(line: &str) -> Self {
        let mut words = std::collections::VecDeque::new();
        for (index, part) in line.split('"').enumerate() {
            if index % 2 == 1 {
                words.push_back(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        Self { words }
    }

    pub(super) fn peek(&self) -> String {
        self.words.front().cloned().unwrap_or_default()
    }

    pub(super) fn text(&mut self) -> String {
        self.words.pop_front().expect("a further word")
    }

    pub(super) fn number(&mut self) -> u64 {
        let word = self.text();
        word.parse().unwrap_or_else(|_| panic!("{word:?} is no number"))
    }

    /// Returns a word as bytes. `70000*x` is seventy thousand times the letter x.
    fn bytes(&mut self) -> &'static [u8] {
        let word = self.text();
        if word.contains("\\x") {
            return keep(unescaped(&word));
        }
        if let Some((count, byte)) = word.split_once('*')
            && let Ok(count) = count.parse()
        {
            return keep(byte.repeat(count).into_bytes());
        }
        keep(word.into_bytes())
    }

    fn span(&mut self) -> Span {
        Span::from_ms(self.number())
    }

    /// Removes `word` from the rest. Returns whether it was there.
    fn flag(&mut self, word: &str) -> bool {
        let at = self.words.iter().position(|other| other == word);
        at.is_some_and(|at| self.words.remove(at).is_some())
    }

    /// Reads the words after the option `name`. The first of them is its value.
    fn option<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let at = self.words.iter().position(|other| other == name)?;
        let mut rest = Self { words: self.words.split_off(at) };
        rest.words.pop_front();
        let value = read(&mut rest);
        self.words.append(&mut rest.words);
        Some(value)
    }

    /// Reads the name of a queue, or of a topic if a member is named somewhere after it.
    fn queue_name(&mut self) -> QueueName<'static> {
        QueueName { name: self.bytes(), member: self.member() }
    }

    fn member(&mut self) -> Option<&'static [u8]> {
        self.option("MEMBER", Self::bytes)
    }

    /// Reads all words up to the first option.
    fn list(&mut self) -> &'static [&'static [u8]] {
        let mut list = Vec::new();
        while !self.words.is_empty() && !OPTIONS.contains(&self.peek().as_str()) {
            list.push(self.bytes());
        }
        Vec::leak(list)
    }

    pub(super) fn limits(mut self) -> Limits {
        let usual = Limits::default();
        let size = |words: &mut Self| usize::try_from(words.number()).unwrap();
        Limits {
            payload_bytes_max: self.option("PAYLOAD", size).unwrap_or(usual.payload_bytes_max),
            bytes_max: self.option("BYTES", Self::number).unwrap_or(usual.bytes_max),
            waiting_bytes_max: self
                .option("WAITING", Self::number)
                .unwrap_or(usual.waiting_bytes_max),
            memory_bytes: usual.memory_bytes,
            waits_per_client_max: self.option("WAITS", size).unwrap_or(usual.waits_per_client_max),
            queues_per_client_max: self
                .option("QUEUES", size)
                .unwrap_or(usual.queues_per_client_max),
            queue_linger: self.option("LINGER", Self::span).unwrap_or(usual.queue_linger),
            unique_max: self.option("UNIQUE", Self::number).unwrap_or(usual.unique_max),
            topic_lanes_max: usual.topic_lanes_max,
            lingering_queues_max: self.option("KEPT", size).unwrap_or(usual.lingering_queues_max),
        }
    }

    /// Reads a transaction: commands with a semicolon between them. `NOTHING` and `BAD` are steps
    /// too.
    pub(super) fn transaction(mut self, receipts: Receipts<'_>) -> Command<'static> {
        self.text();
        let mut steps = Vec::new();
        while !self.words.is_empty() {
            let end = self.words.iter().position(|word| word == ";");
            let rest = end.map(|at| self.words.split_off(at));
            let step = std::mem::take(&mut self.words);
            self.words = rest.unwrap_or_default();
            self.words.pop_front();
            let step = Self { words: step };
            steps.push(match step.peek().as_str() {
                "NOTHING" => Step::Nothing,
                "BAD" => Step::Bad("a word makes no sense"),
                _ => Step::Command(step.command(receipts)),
            });
        }
        Command::Transaction(Vec::leak(steps))
    }

    /// Reads names, of which one with a star at its end is a prefix, and the command after `DO`.
    fn within(mut self, receipts: Receipts<'_>) -> Command<'static> {
        self.text();
        let names = self.list().iter().map(|name| match name.strip_suffix(b"*") {
            Some(prefix) => NamePattern::beginning(prefix),
            None => NamePattern::exactly(name),
        });
        let names = Vec::leak(names.collect());
        assert_eq!(self.text(), "DO", "a command comes after the names");
        Command::Within { names, command: Box::leak(Box::new(self.command(receipts))) }
    }

    /// Reads the whole rest as a command.
    #[expect(clippy::too_many_lines, reason = "one arm for each command")]
    pub(super) fn command(mut self, receipts: Receipts<'_>) -> Command<'static> {
        if self.peek() == "EXEC" {
            return self.transaction(receipts);
        }
        if self.peek() == "WITHIN" {
            return self.within(receipts);
        }
        let word = self.text();
        let command = match word.as_str() {
            "PUT" => match self.option("ROOM", Self::span) {
                None => Command::Put(self.put()),
                Some(room) => Command::PutInLine { put: self.put(), room },
            },
            "TAKE" => match self.done(receipts) {
                [] => Command::Take(self.take(false)),
                done => Command::TakeDone { done, take: self.take(false) },
            },
            "POP" => Command::Take(self.take(true)),
            "PUTBURIED" => {
                let reason = self.option("REASON", Self::bytes);
                Command::PutBuried { put: Box::leak(Box::new(self.put())), reason }
            }
            "PUTNUMBERED" => Command::PutNumbered(Box::leak(Box::new(self.put()))),
            "RESERVE" => {
                let wait = self.option("WAIT", Self::wait).unwrap_or(Wait::No);
                let is_echo = self.flag("ECHO");
                Command::Reserve(Reserve { queues: self.list(), wait, is_echo })
            }
            "HEAD" => Command::Head(self.list()),
            "LOOK" => {
                let done = self.done(receipts);
                Command::Share(Share::Look { done, take: self.take(false) })
            }
            "WAITTOO" => {
                let (pops, is_echo) = (self.flag("POP"), self.flag("ECHO"));
                Command::Share(Share::Wait { take: self.take(pops), is_echo })
            }
            "GIVEBACK" => {
                let receipts =
                    self.list().iter().map(|text| receipts(std::str::from_utf8(text).unwrap()));
                Command::GiveBack(Vec::leak(receipts.collect()))
            }
            "POPHELD" => {
                let receipts =
                    self.list().iter().map(|text| receipts(std::str::from_utf8(text).unwrap()));
                Command::Share(Share::Pop(Vec::leak(receipts.collect())))
            }
            "PERMIT" => {
                let (count, holds) = (self.number(), self.flag("HOLDS"));
                let deliveries = u32::try_from(count).unwrap();
                Command::Share(Share::Permit { deliveries, holds })
            }
            "NEXT" => Command::Share(Share::Next),
            "NUMBER" => Command::Numbered { number: self.number(), deed: self.deed() },
            "KICK" => {
                let (queue, count) = (self.bytes(), self.number());
                Command::Kick { queue, count: u32::try_from(count).unwrap() }
            }
            "FOREMOST" => Command::Foremost { queue: self.bytes(), state: self.state() },
            "TUBES" => Command::Tubes((!self.words.is_empty()).then(|| self.bytes())),
            "LETGO" => Command::LetGo,
            "PEEK" => Command::Peek(self.look()),
            "GET" => Command::Get { queue: self.queue_name(), id: self.bytes() },
            "EXPLAIN" => {
                let queue = self.queue_name();
                let id = (!self.words.is_empty()).then(|| self.bytes());
                Command::Explain { queue, id }
            }
            "SCAN" => Command::Scan(Scan {
                queue: self.queue_name(),
                after: self.option("AFTER", Self::number).unwrap_or(0),
                count: self.page(),
                state: self.option("STATE", Self::state),
                key: self.option("KEY", Self::bytes),
            }),
            "EXPORT" => self.export(),
            "IMPORT" => self.import(),
            "LEASES" => self.leases(),
            "ACK" => self.ack(receipts),
            "RELEASE" => Command::Release(Release {
                held: self.held(receipts),
                delay: self.delay(),
                amendment: self.amendment(),
                tail: self.flag("TAIL"),
            }),
            "BURY" => Command::Bury {
                held: self.held(receipts),
                payload: self.option("PAYLOAD", Self::bytes),
                reason: self.option("REASON", Self::bytes),
            },
            "FAIL" => Command::Fail(Fail {
                held: self.held(receipts),
                reason: self.option("REASON", Self::bytes),
                delay: self.option("DELAY", Self::span),
                payload: self.option("PAYLOAD", Self::bytes),
            }),
            "MOVE" => Command::Move {
                from: self.queue_name(),
                to: self.bytes(),
                count: self.moved(),
                state: self.option("STATE", Self::state).unwrap_or(StateKind::Ready),
            },
            "REDRIVE" => Command::Redrive { queue: self.queue_name(), count: self.moved() },
            "TOUCH" => {
                Command::Touch { held: self.held(receipts), by: self.option("BY", Self::span) }
            }
            "DIG" => Command::Dig(self.transfer()),
            "SNATCH" => Command::Snatch(self.transfer()),
            "RESTART" => Command::Restart(self.transfer()),
            "PLOW" => Command::Plow {
                queue: self.queue_name(),
                count: self.option("COUNT", Self::number),
                delay: self.delay(),
                ttl: self.option("TTL", Self::span),
            },
            "KILL" => Command::Kill { queue: self.queue_name(), ids: self.list() },
            "SWITCH" => self.switch(),
            "UPDATE" => Command::Update(Update {
                queue: self.queue_name(),
                id: self.bytes(),
                amendment: self.amendment(),
                receipt: self.option("RECEIPT", |words| receipts(&words.text())),
            }),
            "AWAIT" => Command::Await {
                queue: self.queue_name(),
                id: self.bytes(),
                wait: self.option("WAIT", Self::wait).unwrap_or(Wait::No),
            },
            "SUBSCRIBE" => {
                let (member, queues) = (self.member(), self.list());
                let (selection, mode) = (self.selection(), self.mode());
                Command::Subscribe { queues, member, selection, mode }
            }
            "UNSUBSCRIBE" => {
                let member = self.member();
                Command::Unsubscribe { queues: self.list(), member }
            }
            "CREDIT" => Command::Credit(u32::try_from(self.number()).unwrap()),
            "QUEUE" => Command::Queue(self.queue()),
            "STATS" => {
                let queue = (!self.words.is_empty()).then(|| self.queue_name());
                Command::Queue(QueueCommand::Stats(queue))
            }
            "SCHEDULE" => Command::Schedule(self.schedule()),
            "PUBLISH" => Command::Publish(self.publish()),
            "JOIN" | "BEAT" | "LEAVE" | "MEMBERS" => Command::Member(self.tend(&word)),
            other => panic!("{other:?} is no command"),
        };
        assert!(self.words.is_empty(), "{word} does not know {:?}", self.words);
        command
    }

    /// Reads what to do with the task of a number.
    fn deed(&mut self) -> Deed {
        let delay = self.delay();
        let word = self.text();
        let mut priority = || i64::try_from(self.number()).unwrap();
        match word.as_str() {
            "READ" => Deed::Read,
            "TAKE" => Deed::Take,
            "DELETE" => Deed::Delete,
            "RELEASE" => Deed::Release { priority: priority(), delay },
            "BURY" => Deed::Bury { priority: priority() },
            "TOUCH" => Deed::Touch,
            "KICK" => Deed::Kick,
            other => panic!("{other:?} is no deed"),
        }
    }

    /// Reads all words as receipts.
    pub(super) fn receipts(&mut self, receipts: Receipts<'_>) -> Vec<Receipt> {
        self.words.drain(..).map(|word| receipts(&word)).collect()
    }

    fn page(&mut self) -> u32 {
        self.option("COUNT", Self::number).map_or(100, |count| count.try_into().unwrap())
    }

    /// Reads a page of leases. A place is written as the name of the queue and a seq, with the
    /// number of the lane between them if it is one.
    fn leases(&mut self) -> Command<'static> {
        let count = self.page();
        let place = |words: &mut Self| {
            let (queue, first) = (words.bytes(), words.number());
            let second = words.peek().parse().ok();
            let (lane, seq) = second.map_or((None, first), |seq| (Some(first), seq));
            words.words.clear();
            LeasePlace { lane, queue, seq }
        };
        let after = self.option("AFTER", place);
        let queue = (!self.words.is_empty()).then(|| self.queue_name());
        Command::Leases(Leases { queue, after, count })
    }

    fn moved(&mut self) -> u32 {
        self.option("COUNT", Self::number).map_or(1_000, |count| count.try_into().unwrap())
    }

    fn put(&mut self) -> Put<'static> {
        let plain = Put::new(self.bytes(), self.bytes());
        Put {
            delay: self.delay_of_put(),
            ttl: self.option("TTL", Self::time_to_live).unwrap_or(plain.ttl),
            id: self.option("ID", Self::bytes),
            wait: self.option("WAIT", Self::wait),
            priority: self.option("PRIORITY", Self::priority).unwrap_or(plain.priority),
            terms: Terms::of(self.option("KEY", Self::bytes), self.option("TTR", Self::span)),
            unique: self.unique(),
            ..plain
        }
    }

    fn unique(&mut self) -> Option<Unique<'static>> {
        let window = self.option("WINDOW", Self::span);
        let on_duplicate = self.option("ONDUP", |words| {
            let word = words.text();
            let known = OnDuplicate::ALL.iter().find(|(_, known)| *known == word);
            known.unwrap_or_else(|| panic!("ONDUP has no {word}")).0
        });
        let key = self.option("UNIQUE", Self::bytes)?;
        Some(Unique { key, window, on_duplicate: on_duplicate.unwrap_or_default() })
    }

    fn publish(&mut self) -> Publish<'static> {
        let deadline = self.option("DEADLINE", |words| Timestamp::from_ms(words.number()));
        let ttl = self.option("TTL", Self::span);
        Publish {
            topic: self.bytes(),
            payload: self.bytes(),
            deadline: match (deadline, ttl) {
                (Some(at), _) => Deadline::At(at),
                (None, Some(ttl)) => Deadline::After(ttl),
                (None, None) => Deadline::OfLane,
            },
            priority: self.option("PRIORITY", Self::priority).unwrap_or(Some(0)),
            terms: Terms { key: self.option("KEY", Self::bytes), ..Terms::NONE },
        }
    }

    fn tend(&mut self, word: &str) -> MemberCommand<'static> {
        let lease = self.option("LEASE", Self::span);
        match word {
            "JOIN" => MemberCommand::Join { topic: self.bytes(), member: self.bytes(), lease },
            "BEAT" => MemberCommand::Beat { member: self.bytes(), lease },
            "LEAVE" if self.words.len() == 1 => MemberCommand::Leave(self.bytes()),
            "LEAVE" => MemberCommand::LeaveTopic { topic: self.bytes(), member: self.bytes() },
            _ => MemberCommand::List(self.bytes()),
        }
    }

    fn take(&mut self, pops: bool) -> Take<'static> {
        Take {
            member: self.member(),
            queues: self.list(),
            count: self.option("COUNT", Self::number).map_or(1, |count| count.try_into().unwrap()),
            wait: self.option("WAIT", Self::wait).unwrap_or(Wait::No),
            selection: self.selection(),
            mode: if pops { TakeMode::Pop } else { self.mode() },
        }
    }

    fn done(&mut self, receipts: Receipts<'_>) -> &'static [Done<'static>] {
        let mut done = Vec::new();
        while let Some(one) = self.option("DONE", |words| {
            let (queue, text) = (words.bytes(), words.text());
            Done { queue, receipt: receipts(&text) }
        }) {
            done.push(one);
        }
        Vec::leak(done)
    }

    fn look(&mut self) -> Peek<'static> {
        Peek {
            queue: self.queue_name(),
            state: self.option("STATE", Self::state),
            count: self.option("COUNT", Self::number).map_or(1, |count| count.try_into().unwrap()),
            selection: self.selection(),
        }
    }

    fn ack(&mut self, receipts: Receipts<'_>) -> Command<'static> {
        let member = self.member();
        let several = self.words.len() > 2 && self.words.iter().skip(1).all(|w| is_receipt(w));
        if several {
            let queue = QueueName { name: self.bytes(), member };
            let list: Vec<Receipt> = self.words.drain(..).map(|word| receipts(&word)).collect();
            return Command::AckAll { queue, receipts: Vec::leak(list) };
        }
        let mut held = self.held(receipts);
        held.queue.member = member;
        Command::Ack(Ack {
            held,
            payload: self.option("PAYLOAD", Self::bytes),
            zombie: self.option("ZOMBIE", Self::span),
        })
    }

    fn switch(&mut self) -> Command<'static> {
        let (queue, id, to) = (self.queue_name(), self.bytes(), self.state());
        let delay = self.delay();
        let amendment = self.amendment();
        Command::Switch { transfer: Transfer { queue, id, delay, amendment }, to }
    }

    fn transfer(&mut self) -> Transfer<'static> {
        let plain = Transfer::new(self.queue_name(), self.bytes());
        Transfer { delay: self.delay(), amendment: self.amendment(), ..plain }
    }

    fn held(&mut self, receipts: Receipts<'_>) -> Held<'static> {
        let queue = self.queue_name();
        let word = self.text();
        let by =
            if word == "ID" { HeldBy::Id(self.bytes()) } else { HeldBy::Receipt(receipts(&word)) };
        Held { queue, by }
    }

    fn amendment(&mut self) -> Amendment<'static> {
        Amendment {
            payload: self.option("PAYLOAD", Self::bytes),
            priority: self.option("PRIORITY", Self::priority).map_or(Assign::Keep, Assign::To),
            ttl: self.option("TTL", Self::span_or_none).map_or(Assign::Keep, Assign::To),
        }
    }

    fn selection(&mut self) -> Selection {
        if self.flag("PINPRIQ") {
            return Selection::PINPRIQ;
        }
        let from = match self.option("FROM", Self::text).as_deref() {
            Some("MAX") => End::Max,
            _ => End::Min,
        };
        // Without a given order, the end decides: from the top the newest goes first.
        let order = match (self.option("ORDER", Self::text).as_deref(), from) {
            (Some("NEWEST"), _) | (None, End::Max) => Order::Newest,
            _ => Order::Oldest,
        };
        Selection { from, order, group: self.flag("GROUP"), narrow: self.flag("NARROW") }
    }

    fn mode(&mut self) -> TakeMode {
        if self.flag("POP") {
            return TakeMode::Pop;
        }
        let ttr = self.option("TTR", Self::span);
        match self.option("TTROR", Self::span) {
            Some(otherwise) => TakeMode::Unheld { ttr, otherwise },
            None => TakeMode::Lease { ttr },
        }
    }

    fn delay(&mut self) -> Span {
        self.option("DELAY", Self::span).unwrap_or(Span::ZERO)
    }

    fn delay_of_put(&mut self) -> Delay {
        let at = self.option("AT", |words| Timestamp::from_ms(words.number()));
        at.map_or_else(|| Delay::For(self.delay()), Delay::Until)
    }

    fn priority(&mut self) -> Option<i64> {
        let word = self.text();
        (word != "NONE").then(|| word.parse().unwrap())
    }

    fn span_or_none(&mut self) -> Option<Span> {
        let word = self.text();
        (word != "NONE").then(|| Span::from_ms(word.parse().unwrap()))
    }

    fn time_to_live(&mut self) -> TimeToLive {
        match self.text().as_str() {
            "NONE" => TimeToLive::Endless,
            "INSTANT" => TimeToLive::Instant,
            word => TimeToLive::For(Span::from_ms(word.parse().unwrap())),
        }
    }

    fn wait(&mut self) -> Wait {
        match self.text().as_str() {
            "-1" => Wait::Forever,
            word => Wait::For(Span::from_ms(word.parse().unwrap())),
        }
    }

    fn state(&mut self) -> StateKind {
        let word = self.text();
        let kind = StateKind::ALL.into_iter().find(|kind| kind.to_string() == word);
        kind.unwrap_or_else(|| panic!("{word:?} is no state"))
    }

    fn schedule(&mut self) -> ScheduleCommand<'static> {
        let word = self.text();
        match word.as_str() {
            "SET" => ScheduleCommand::Set(self.new_schedule()),
            "SHOW" => ScheduleCommand::Show(self.bytes()),
            "LIST" => ScheduleCommand::List {
                prefix: self.option("PREFIX", Self::bytes).unwrap_or_default(),
                after: self.option("AFTER", Self::bytes),
                count: self
                    .option("COUNT", Self::number)
                    .map_or(100, |count| count.try_into().unwrap()),
            },
            "PAUSE" => ScheduleCommand::Pause(self.bytes()),
            "RESUME" => ScheduleCommand::Resume(self.bytes()),
            "DROP" => ScheduleCommand::Drop(self.bytes()),
            "FIRE" => ScheduleCommand::Fire(self.bytes()),
            other => panic!("SCHEDULE does not know {other:?}"),
        }
    }

    fn new_schedule(&mut self) -> NewSchedule<'static> {
        let every = self.option("EVERY", Self::span);
        let at = self.option("AT", |words| Timestamp::from_ms(words.number()));
        let cron = self.option("CRON", Self::bytes);
        let when = match (every, cron) {
            (Some(every), _) => When::Every { every, at },
            (None, cron) => When::Cron { expression: cron.expect("EVERY or CRON"), zone: None },
        };
        let on_missed = match self.option("MISSED", Self::text).as_deref() {
            None | Some("one") => OnMissed::One,
            Some("all") => OnMissed::All,
            Some(_) => OnMissed::None,
        };
        let skips = self.option("OVERLAP", Self::text).is_some_and(|word| word == "skip");
        NewSchedule {
            ttl: self.option("TTL", Self::span),
            terms: Terms::of(self.option("KEY", Self::bytes), self.option("TTR", Self::span)),
            priority: self.option("PRIORITY", Self::priority).unwrap_or(Some(0)),
            name: self.bytes(),
            queue: self.bytes(),
            payload: self.bytes(),
            when,
            on_missed,
            overlap: if skips { Overlap::Skip } else { Overlap::Allow },
        }
    }

    fn queue(&mut self) -> QueueCommand<'static> {
        let word = self.text();
        match word.as_str() {
            "CREATE" => QueueCommand::Create { queue: self.bytes(), settings: self.settings() },
            "SET" => QueueCommand::Set { queue: self.queue_name(), settings: self.settings() },
            "SHOW" => QueueCommand::Show(self.queue_name()),
            "LIST" => QueueCommand::List {
                prefix: self.option("PREFIX", Self::bytes).unwrap_or_default(),
                after: self.option("AFTER", Self::bytes),
                count: self.option("COUNT", Self::number).map_or(10, |n| n.try_into().unwrap()),
            },
            "TRUNCATE" => QueueCommand::Truncate(self.queue_name()),
            "DROP" => QueueCommand::Drop(self.bytes()),
            "HOLD" => {
                let makes = !self.flag("EXISTING");
                let length = self.option("FOR", Self::span);
                QueueCommand::Hold { queue: self.bytes(), length, makes }
            }
            "PAUSE" => {
                let (queue, sides) = (self.queue_name(), self.sides());
                let length = self.option("FOR", Self::span);
                QueueCommand::Pause { queue, sides, length }
            }
            "RESUME" => QueueCommand::Resume { queue: self.queue_name(), sides: self.sides() },
            other => panic!("{other:?} is nothing that queues do"),
        }
    }

    fn sides(&mut self) -> Sides {
        match (self.flag("IN"), self.flag("OUT")) {
            (true, false) => Sides::Input,
            (false, true) => Sides::Output,
            _ => Sides::Both,
        }
    }

    fn settings(&mut self) -> &'static [Assignment<'static>] {
        let mut changes = Vec::new();
        for setting in SETTINGS {
            let stay = setting.length().and_then(|length| self.option(length.name, Self::span));
            let value = self.option(setting.name, |words| setting_value(setting, &words.text()));
            changes.extend(stay.map(Value::Span).or(value).map(|value| (setting, value)));
        }
        Vec::leak(changes)
    }
}

fn setting_value(setting: &Setting, word: &str) -> Value<'static> {
    match &setting.kind {
        _ if word == "NONE" => Value::None,
        Kind::Number => Value::Number(word.parse().unwrap()),
        Kind::Span => Value::Span(Span::from_ms(word.parse().unwrap())),
        Kind::Rate => {
            let (count, ms) = word.split_once('/').expect("a rate");
            let per = Span::from_ms(ms.parse().unwrap());
            Value::Rate(Rate { count: count.parse().unwrap(), per })
        }
        Kind::Name => Value::Bytes(keep(word.as_bytes().to_vec())),
        Kind::Words(_) | Kind::WordsOrSpan(..) => {
            let place = setting.words().position(|known| known.word == word);
            Value::Word(u8::try_from(place.expect("a word that is known")).unwrap())
        }
    }
}

fn is_receipt(word: &str) -> bool {
    word.strip_prefix('r').is_some_and(|serial| serial.parse::<u64>().is_ok())
}

/// Returns the bytes of a word in which some are written as `\xff`.
fn unescaped(word: &str) -> Vec<u8> {
    let mut parts = word.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).unwrap());
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

/// Keeps bytes as long as the tests run, since commands borrow theirs.
fn keep(bytes: Vec<u8>) -> &'static [u8] {
    Vec::leak(bytes)
}
