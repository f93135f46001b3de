//! Parses the command of a line in a script.
//!
//! The words are those of requests, and read as such, but several queues need no number before
//! them. For what the engine can do and a client cannot request, scripts have additional words:
//! commands of their own, `TTL NONE`, `TTL INSTANT`, `TTROR`, `NARROW`, `PINPRIQ`, `FROM` of a
//! subscription, what changes with a `SWITCH`, `SNATCH` or `RESTART`, and `AFTER` with the place of
//! a page. A byte that is not a printable character is written as `\xff`.

mod carrying;

use pinpriq_proto::command::{
    Amendment, Assign, Command, Deed, Done, End, Order, Put, QueueCommand, Reserve, Selection,
    Share, Step, Take, TakeMode, TimeToLive, Wait,
};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::looking::LeasePlace;
use pinpriq_proto::names::NamePattern;
use pinpriq_proto::request::cursors;
use pinpriq_proto::request::options;
use pinpriq_proto::request::parts::{receipt_numbers, state};
use pinpriq_proto::request::table::{Found, find, read};
use pinpriq_proto::task::{Receipt, StateKind};
use pinpriq_proto::time::Span;

/// The rest of a line.
pub(super) struct Words {
    words: std::collections::VecDeque<String>,
}

/// Finds the receipt of this name in the script.
type Receipts<'a> = &'a dyn Fn(&str) -> Receipt;

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

    /// Reads all words before this one.
    fn list(&mut self, end: &str) -> Vec<&'static [u8]> {
        let mut list = Vec::new();
        while !self.words.is_empty() && self.peek() != end {
            list.push(self.bytes());
        }
        list
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
            endings_max: self.option("REMEMBER", size).unwrap_or(usual.endings_max),
            batches_max: self.option("BATCHES", size).unwrap_or(usual.batches_max),
            batch_retain: self.option("RETAIN", Self::span).unwrap_or(usual.batch_retain),
            batch_abandon: self.option("ABANDON", Self::span).unwrap_or(usual.batch_abandon),
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
        let names = self.list("DO").into_iter().map(|name| match name.strip_suffix(b"*") {
            Some(prefix) => NamePattern::beginning(prefix),
            None => NamePattern::exactly(name),
        });
        let names = Vec::leak(names.collect());
        assert_eq!(self.text(), "DO", "a command comes after the names");
        Command::Within { names, command: Box::leak(Box::new(self.command(receipts))) }
    }

    /// Reads the whole rest as a command.
    pub(super) fn command(mut self, receipts: Receipts<'_>) -> Command<'static> {
        let word = self.peek();
        match word.as_str() {
            "EXEC" => return self.transaction(receipts),
            "WITHIN" => return self.within(receipts),
            _ => {}
        }
        if !is_of_scripts(&self.words) {
            return self.request(receipts);
        }
        self.text();
        let command = match word.as_str() {
            "PUTBURIED" => {
                let reason = self.option("REASON", Self::bytes);
                return Command::PutBuried { put: Box::leak(Box::new(self.put(receipts))), reason };
            }
            "PUTNUMBERED" => {
                return Command::PutNumbered(Box::leak(Box::new(self.put(receipts))));
            }
            "LOOK" => {
                let (done, take) = self.take("TAKE", receipts);
                return Command::Share(Share::Look { done, take });
            }
            "WAITTOO" => {
                let (pops, is_echo) = (self.flag("POP"), self.flag("ECHO"));
                let (_, take) = self.take(if pops { "POP" } else { "TAKE" }, receipts);
                return Command::Share(Share::Wait { take, is_echo });
            }
            "RESERVE" => {
                let wait = self.option("WAIT", |words| match words.text().as_str() {
                    "-1" => Wait::Forever,
                    ms => Wait::For(Span::from_ms(ms.parse().unwrap())),
                });
                let (is_echo, wait) = (self.flag("ECHO"), wait.unwrap_or(Wait::No));
                Command::Reserve(Reserve { queues: Vec::leak(self.list("")), wait, is_echo })
            }
            "HEAD" => Command::Head(Vec::leak(self.list(""))),
            "GIVEBACK" => Command::GiveBack(Vec::leak(self.receipts(receipts))),
            "POPHELD" => Command::Share(Share::Pop(Vec::leak(self.receipts(receipts)))),
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
            "QUEUE" => {
                self.text();
                let makes = !self.flag("EXISTING");
                let length = self.option("FOR", Self::span);
                Command::Queue(QueueCommand::Hold { queue: self.bytes(), length, makes })
            }
            _ => self.import(),
        };
        assert!(self.words.is_empty(), "{word} does not know {:?}", self.words);
        command
    }

    /// Reads a request, with what exists only in scripts.
    fn request(mut self, receipts: Receipts<'_>) -> Command<'static> {
        let first = self.peek();
        let selection = self.flag("PINPRIQ").then_some(Selection::PINPRIQ);
        let is_narrow = self.flag("NARROW");
        let is_subscription = first == "SUBSCRIBE";
        let from_max = is_subscription && self.option("FROM", Self::text).as_deref() == Some("MAX");
        let otherwise = self.option("TTROR", Self::span);
        let ends = self.words.iter().zip(self.words.iter().skip(1));
        let is_end = |(word, value): (&String, &String)| {
            word == "TTL" && matches!(value.as_str(), "NONE" | "INSTANT")
        };
        let has_end = first != "UPDATE" && first != "QUEUE" && ends.clone().any(is_end);
        let life = if has_end { self.option("TTL", Self::text) } else { None };
        let ttl = life.map(|word| match word.as_str() {
            "NONE" => TimeToLive::Endless,
            _ => TimeToLive::Instant,
        });
        let changes = ["SWITCH", "SNATCH", "RESTART"].contains(&first.as_str());
        let payload = if changes { self.option("PAYLOAD", Self::bytes) } else { None };
        let priority = if changes { self.option("PRIORITY", Self::priority) } else { None }.into();
        self.place();
        let mut command = self.plain(receipts);
        match &mut command {
            Command::Put(put) => put.ttl = ttl.unwrap_or(put.ttl),
            Command::PutInLine { put, .. } if ttl.is_some() => {
                *put = Box::leak(Box::new(Put { ttl: ttl.unwrap_or(put.ttl), ..**put }));
            }
            Command::Take(take) | Command::TakeDone { take, .. } => {
                take.selection = selection.unwrap_or(take.selection);
                take.selection.narrow |= is_narrow;
                if let (Some(otherwise), TakeMode::Lease { ttr }) = (otherwise, take.mode) {
                    take.mode = TakeMode::Unheld { ttr, otherwise };
                }
            }
            Command::Peek(peek) => {
                peek.selection = selection.unwrap_or(peek.selection);
                peek.selection.narrow |= is_narrow;
            }
            Command::Subscribe { selection: own, .. } => {
                *own = selection.unwrap_or(*own);
                if from_max {
                    (own.from, own.order) = (End::Max, Order::Newest);
                }
            }
            Command::Release(release) => {
                amend(&mut release.amendment, ttl.is_some(), payload, priority);
            }
            Command::Dig(transfer)
            | Command::Snatch(transfer)
            | Command::Restart(transfer)
            | Command::Switch { transfer, .. } => {
                amend(&mut transfer.amendment, ttl.is_some(), payload, priority);
            }
            _ => {}
        }
        command
    }

    /// Writes `AFTER` and a place as a cursor. For a put it means something else.
    fn place(&mut self) {
        let first = self.peek();
        if first == "PUT" {
            return;
        }
        let cursor = self.option("AFTER", |words| match first.as_str() {
            "SCAN" => words.text(),
            // The name of the queue and a seq, with the number of the lane between them if it is
            // one.
            "LEASES" => {
                let (queue, first) = (words.bytes(), words.number());
                let second = words.peek().parse().ok();
                let (lane, seq) = second.map_or((None, first), |seq| (Some(first), seq));
                words.words.clear();
                cursors::lease::cursor_after(&LeasePlace { lane, queue, seq })
            }
            "EXPORT" => words.export_place(),
            _ => cursors::name::cursor_after(words.bytes()),
        });
        self.words.extend(cursor.into_iter().flat_map(|cursor| ["CURSOR".to_owned(), cursor]));
    }

    /// Reads a request as clients write it, except that several queues need no number.
    fn plain(mut self, receipts: Receipts<'_>) -> Command<'static> {
        let first = self.peek();
        let is_put = ["PUT", "PUBLISH", "QUEUE", "SCHEDULE"].contains(&first.as_str());
        let mut words = Vec::new();
        while !self.words.is_empty() {
            let is_receipt = !is_put && is_receipt(&self.peek());
            words.push(if is_receipt {
                let numbers = receipt_numbers(receipts(&self.text()));
                keep(numbers.map(|number| number.to_string()).join("-").into_bytes())
            } else {
                self.bytes()
            });
        }
        if let (true, Found::Spec(spec, ..)) = (takes_queues(&first), find(&words)) {
            let known = |word: &&&[u8]| options::find(spec.options, word).is_none();
            let queues = words[1..].iter().take_while(known).count();
            if queues > 1 {
                words.splice(1..1, [b"QUEUES", keep(queues.to_string().into_bytes())]);
            }
        }
        let room = Box::leak(Box::default());
        match read(Vec::leak(words), room) {
            Ok(Some(command)) => command,
            Ok(None) => panic!("{first:?} is no command"),
            Err(fault) => panic!("{first} is no request: {}", fault.sentence),
        }
    }

    fn put(mut self, receipts: Receipts<'_>) -> Put<'static> {
        self.words.push_front("PUT".to_owned());
        match self.request(receipts) {
            Command::Put(put) => put,
            other => panic!("{other:?} is no plain put"),
        }
    }

    fn take(
        mut self,
        word: &str,
        receipts: Receipts<'_>,
    ) -> (&'static [Done<'static>], Take<'static>) {
        // The part of an engine may name no queue.
        let is_bare = ["", "DONE", "WAIT"].contains(&self.peek().as_str());
        if is_bare {
            self.words.push_front("-".to_owned());
        }
        self.words.push_front(word.to_owned());
        let command = self.request(receipts);
        let queues = |take: Take<'static>| if is_bare { &[] } else { take.queues };
        match command {
            Command::Take(take) => (&[], Take { queues: queues(take), ..take }),
            Command::TakeDone { done, take } => (done, Take { queues: queues(take), ..take }),
            other => panic!("{other:?} is no take"),
        }
    }

    fn priority(&mut self) -> Option<i64> {
        let word = self.text();
        (word != "NONE").then(|| word.parse().unwrap())
    }

    fn state(&mut self) -> StateKind {
        state(self.bytes()).unwrap_or_else(|fault| panic!("{}", fault.sentence))
    }

    /// Reads what to do with the task of a number.
    fn deed(&mut self) -> Deed {
        let delay = self.option("DELAY", Self::span).unwrap_or(Span::ZERO);
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
}

/// Makes the changes that the request itself cannot have.
fn amend(
    amendment: &mut Amendment<'static>,
    is_endless: bool,
    payload: Option<&'static [u8]>,
    priority: Assign<Option<i64>>,
) {
    if is_endless {
        amendment.ttl = Assign::To(None);
    }
    amendment.payload = payload.or(amendment.payload);
    if priority != Assign::Keep {
        amendment.priority = priority;
    }
}

/// Whether a line begins with a word that no client says, or means something else by it.
fn is_of_scripts(words: &std::collections::VecDeque<String>) -> bool {
    let own = [
        "PUTBURIED",
        "PUTNUMBERED",
        "LOOK",
        "WAITTOO",
        "RESERVE",
        "HEAD",
        "GIVEBACK",
        "POPHELD",
        "PERMIT",
        "NEXT",
        "NUMBER",
        "KICK",
        "FOREMOST",
        "TUBES",
        "LETGO",
        "IMPORT",
    ];
    let is_hold = words.iter().take(2).eq(["QUEUE", "HOLD"]);
    is_hold || words.front().is_some_and(|word| own.contains(&word.as_str()))
}

fn takes_queues(word: &str) -> bool {
    ["TAKE", "POP", "SUBSCRIBE", "UNSUBSCRIBE"].contains(&word)
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
