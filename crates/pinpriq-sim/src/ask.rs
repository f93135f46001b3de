//! What a virtual client asks: its words on the wire, and the command that the engine must receive
//! for it.
//!
//! Both are derived here independently from the page on the protocol, and the door of the server is
//! compared with them. Nonsense is asked too, as long as the engine has to refuse it.

mod carrying;
mod commands;
mod schedules;
mod unique;
mod words;

use pinpriq_proto::command::{
    Amendment, End, Held, HeldBy, Order, QueueName, Selection, Sides, Transfer,
};
use pinpriq_proto::settings::Assignment;
use pinpriq_proto::task::{Receipt, StateKind};
use pinpriq_proto::time::Span;
use pinpriq_proto::wire::resp::Words;

pub(crate) use self::carrying::Imported;
pub(crate) use self::schedules::{Due, NewSchedule};
pub(crate) use self::unique::Uniqueness;
use self::words::Phrases as _;
pub(crate) use self::words::receipt_text;

/// A queue in the other of two shards.
pub(crate) const ELSEWHERE: &[u8] = b"{a}";

/// Bytes that an ask owns.
pub(crate) type Text = Vec<u8>;

/// The name of a queue or, with a member, of a lane.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Name {
    pub(crate) queue: Text,
    pub(crate) member: Option<Text>,
}

/// How the holder of a task names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum By {
    Receipt(Receipt),
    Id(Text),
}

/// A new TTL, its removal, or no change.
pub(crate) type NewTtl = Option<Option<u64>>;

/// A new priority, its removal, or no change.
pub(crate) type NewPriority = Option<Option<i64>>;

/// What changes along with a move.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Change {
    pub(crate) delay: u64,
    pub(crate) ttl: NewTtl,
    pub(crate) priority: NewPriority,
    pub(crate) payload: Option<Text>,
}

/// Which tasks are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Wish {
    pub(crate) from_max: bool,
    /// Oldest, newest, or the default.
    pub(crate) oldest: Option<bool>,
    pub(crate) group: bool,
    pub(crate) meta: bool,
}

/// One request of a RESP client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    Put {
        queue: Text,
        payload: Text,
        key: Option<Text>,
        priority: NewPriority,
        delay: u64,
        /// The moment at which the delay ends, by the wall clock, instead of a delay.
        at: Option<u64>,
        ttl: Option<u64>,
        ttr: Option<u64>,
        id: Option<Text>,
        wait: Option<i64>,
        room: Option<u64>,
        unique: Option<Uniqueness>,
    },
    Take {
        queues: Vec<Text>,
        member: Option<Text>,
        count: u32,
        wait: Option<i64>,
        wish: Wish,
        /// Popped, or leased with this TTR.
        pop: bool,
        ttr: Option<u64>,
        /// The leases that are done. A pop names none.
        done: Vec<(Text, Receipt)>,
    },
    Peek {
        queue: Name,
        wish: Wish,
        state: Option<StateKind>,
        count: u32,
    },
    Get {
        queue: Name,
        id: Text,
    },
    Explain {
        queue: Name,
        id: Option<Text>,
    },
    Scan {
        queue: Name,
        after: u64,
        count: u32,
        state: Option<StateKind>,
        key: Option<Text>,
        meta: bool,
    },
    Leases {
        queue: Option<Name>,
        count: u32,
    },
    /// From the start, or after the task of this seq.
    Export {
        queue: Text,
        after: Option<u64>,
        count: u32,
    },
    Import(Box<Imported>),
    Ack {
        queue: Name,
        by: By,
        payload: Option<Text>,
        zombie: Option<u64>,
    },
    AckAll {
        queue: Name,
        receipts: Vec<Receipt>,
    },
    Release {
        queue: Name,
        by: By,
        change: Change,
        tail: bool,
    },
    Bury {
        queue: Name,
        by: By,
        payload: Option<Text>,
        reason: Option<Text>,
    },
    Fail {
        queue: Name,
        by: By,
        payload: Option<Text>,
        reason: Option<Text>,
        delay: Option<u64>,
    },
    Touch {
        queue: Name,
        by: By,
        span: Option<u64>,
    },
    Dig {
        queue: Name,
        id: Text,
        change: Change,
    },
    KickOne {
        queue: Name,
        id: Text,
    },
    Plow {
        queue: Name,
        count: Option<u64>,
        delay: u64,
        ttl: Option<u64>,
    },
    Kick {
        queue: Name,
        count: u64,
    },
    Kill {
        queue: Name,
        ids: Vec<Text>,
    },
    Switch {
        queue: Name,
        id: Text,
        to: StateKind,
        change: Change,
    },
    Snatch {
        queue: Name,
        id: Text,
        change: Change,
    },
    Restart {
        queue: Name,
        id: Text,
        change: Change,
    },
    Update {
        queue: Name,
        id: Text,
        change: Change,
        receipt: Option<Receipt>,
    },
    Move {
        from: Name,
        to: Text,
        count: Option<u32>,
        state: Option<StateKind>,
    },
    Redrive {
        queue: Name,
        count: Option<u32>,
    },
    Await {
        queue: Name,
        id: Text,
        wait: Option<i64>,
    },
    Subscribe {
        queues: Vec<Text>,
        member: Option<Text>,
        ttr: Option<u64>,
        pop: bool,
    },
    Unsubscribe {
        queues: Vec<Text>,
        member: Option<Text>,
    },
    Credit(u32),
    Create {
        queue: Text,
        settings: Settings,
    },
    Set {
        queue: Name,
        settings: Settings,
    },
    Show(Name),
    List {
        prefix: Text,
        count: Option<u64>,
    },
    Truncate(Name),
    Drop(Text),
    Pause {
        queue: Name,
        sides: Sides,
        length: Option<u64>,
    },
    Resume {
        queue: Name,
        sides: Sides,
    },
    Stats(Option<Name>),
    Publish {
        topic: Text,
        payload: Text,
        key: Option<Text>,
        priority: NewPriority,
        deadline: Option<u64>,
        ttl: Option<u64>,
    },
    Join {
        topic: Text,
        member: Text,
        lease: Option<u64>,
    },
    Beat {
        member: Text,
        lease: Option<u64>,
    },
    LeaveTopic {
        topic: Text,
        member: Text,
    },
    Leave(Text),
    Members(Text),
    Schedule(NewSchedule),
    Schedules {
        prefix: Text,
        count: Option<u64>,
    },
    ShowSchedule(Text),
    PauseSchedule(Text),
    ResumeSchedule(Text),
    DropSchedule(Text),
    Fire(Text),
    Ping(Option<Text>),
    Hello(u8),
    Reset,
    /// The beginning of a transaction.
    Multi,
    /// A request that is kept until the transaction is carried out.
    Queued(Box<Self>),
    /// Carries out the transaction of these requests.
    Exec(Vec<Self>),
    /// A task in a queue of another shard, where there is none.
    Elsewhere,
    /// Something that the door itself refuses, with this word.
    Nonsense(Vec<Text>, &'static str),
}

/// Settings to make.
pub(crate) type Settings = Vec<Assignment<'static>>;

/// Who replies to an ask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answerer {
    Engine,
    Door,
}

impl Ask {
    /// Appends the bytes of the request.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        self.words().put(out);
    }

    /// Returns who replies to it.
    pub(crate) const fn answerer(&self) -> Answerer {
        use Ask::{Credit, Elsewhere, Hello, Multi, Nonsense, Ping, Queued, Reset};
        match self {
            Ping(_) | Hello(_) | Reset | Credit(_) | Multi | Queued(_) | Elsewhere
            | Nonsense(..) => Answerer::Door,
            _ => Answerer::Engine,
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each request")]
    fn words(&self) -> Words {
        match self {
            Self::Put {
                queue,
                payload,
                key,
                priority,
                delay,
                at,
                ttl,
                ttr,
                id,
                wait,
                room,
                unique,
            } => {
                let words = Words::new("PUT")
                    .bytes(queue)
                    .bytes(payload)
                    .given("KEY", key.as_deref())
                    .or_none("PRIORITY", *priority)
                    .option("DELAY", (*delay > 0).then_some(*delay))
                    .option("AT", *at)
                    .option("TTL", *ttl)
                    .option("TTR", *ttr)
                    .given("ID", id.as_deref())
                    .option("WAIT", *wait)
                    .option("ROOM", *room);
                unique.iter().fold(words, |words, unique| unique.words(words))
            }
            Self::Take { queues, member, count, wait, wish, pop, ttr, done } => {
                let words = Words::new(if *pop { "POP" } else { "TAKE" }).queue_names(queues);
                let words = done.iter().fold(words, |words, (queue, receipt)| {
                    words.bytes("DONE").bytes(queue).bytes(receipt_text(*receipt))
                });
                words
                    .option("COUNT", (*count != 1).then_some(*count))
                    .option("WAIT", *wait)
                    .option("TTR", ttr.filter(|_| !pop))
                    .wish(*wish)
                    .given("MEMBER", member.as_deref())
            }
            Self::Peek { queue, wish, state, count } => Words::new("PEEK")
                .name(queue)
                .wish(*wish)
                .option("STATE", state.map(StateKind::letter))
                .option("COUNT", (*count != 1).then_some(*count))
                .member(queue),
            Self::Get { queue, id } => Words::new("GET").name(queue).bytes(id).member(queue),
            Self::Ack { queue, by, payload, zombie } => Words::new("ACK")
                .name(queue)
                .by(by)
                .given("PAYLOAD", payload.as_deref())
                .option("ZOMBIE", *zombie)
                .member(queue),
            Self::AckAll { queue, receipts } => {
                let receipts = receipts.iter().map(|receipt| receipt_text(*receipt));
                Words::new("ACK").name(queue).all(receipts).member(queue)
            }
            Self::Release { queue, by, change, tail } => Words::new("RELEASE")
                .name(queue)
                .by(by)
                .change(change)
                .flag("TAIL", *tail)
                .member(queue),
            Self::Bury { queue, by, payload, reason } => Words::new("BURY")
                .name(queue)
                .by(by)
                .given("PAYLOAD", payload.as_deref())
                .given("REASON", reason.as_deref())
                .member(queue),
            Self::Fail { queue, by, payload, reason, delay } => Words::new("FAIL")
                .name(queue)
                .by(by)
                .given("REASON", reason.as_deref())
                .option("DELAY", *delay)
                .given("PAYLOAD", payload.as_deref())
                .member(queue),
            Self::Touch { queue, by, span } => {
                Words::new("TOUCH").name(queue).by(by).option("BY", *span).member(queue)
            }
            Self::Dig { queue, id, change } => {
                Words::new("DIG").name(queue).bytes(id).change(change).member(queue)
            }
            Self::KickOne { queue, id } => {
                Words::new("KICK").name(queue).bytes("ID").bytes(id).member(queue)
            }
            Self::Plow { queue, count, delay, ttl } => Words::new("PLOW")
                .name(queue)
                .option("COUNT", *count)
                .option("DELAY", (*delay > 0).then_some(*delay))
                .option("TTL", *ttl)
                .member(queue),
            Self::Kick { queue, count } => {
                Words::new("KICK").name(queue).bytes(count.to_string()).member(queue)
            }
            Self::Kill { queue, ids } => Words::new("KILL").name(queue).all(ids).member(queue),
            Self::Switch { queue, id, to, change } => Words::new("SWITCH")
                .name(queue)
                .bytes(id)
                .bytes(to.letter().to_string())
                .change(change)
                .member(queue),
            Self::Snatch { queue, id, change } => {
                Words::new("SNATCH").name(queue).bytes(id).change(change).member(queue)
            }
            Self::Restart { queue, id, change } => {
                Words::new("RESTART").name(queue).bytes(id).change(change).member(queue)
            }
            Self::Update { queue, id, change, receipt } => Words::new("UPDATE")
                .name(queue)
                .bytes(id)
                .change(change)
                .option("RECEIPT", receipt.map(receipt_text))
                .member(queue),
            Self::Await { queue, id, wait } => {
                Words::new("AWAIT").name(queue).bytes(id).option("WAIT", *wait).member(queue)
            }
            _ => self.words_of_looks().unwrap_or_else(|| self.words_of_the_rest()),
        }
    }

    /// The words of what looks at a whole queue.
    fn words_of_looks(&self) -> Option<Words> {
        Some(match self {
            Self::Explain { queue, id } => {
                let words = Words::new("EXPLAIN").name(queue);
                let words = if let Some(id) = id { words.bytes(id) } else { words };
                words.member(queue)
            }
            Self::Scan { queue, after, count, state, key, meta } => Words::new("SCAN")
                .name(queue)
                .option("CURSOR", (*after > 0).then_some(*after))
                .option("COUNT", Some(*count))
                .option("STATE", state.map(StateKind::letter))
                .given("KEY", key.as_deref())
                .flag("WITHMETA", *meta)
                .member(queue),
            Self::Leases { queue: Some(queue), count } => {
                Words::new("LEASES").name(queue).option("COUNT", Some(*count)).member(queue)
            }
            Self::Export { queue, after, count } => Words::new("EXPORT")
                .bytes(queue)
                .option("CURSOR", after.map(|seq| format!("t{seq}")))
                .option("COUNT", Some(*count)),
            Self::Import(imported) => imported.words(),
            Self::Leases { queue: None, count } => {
                Words::new("LEASES").option("COUNT", Some(*count))
            }
            _ => return None,
        })
    }

    fn words_of_the_rest(&self) -> Words {
        match self {
            Self::Move { from, to, count, state } => Words::new("MOVE")
                .name(from)
                .bytes(to)
                .option("COUNT", *count)
                .option("STATE", state.map(StateKind::letter))
                .member(from),
            Self::Redrive { queue, count } => {
                Words::new("REDRIVE").name(queue).option("COUNT", *count).member(queue)
            }
            Self::Subscribe { queues, member, ttr, pop } => Words::new("SUBSCRIBE")
                .queue_names(queues)
                .option("TTR", ttr.filter(|_| !pop))
                .flag("POP", *pop)
                .given("MEMBER", member.as_deref()),
            Self::Unsubscribe { queues, member } => {
                let words = Words::new("UNSUBSCRIBE");
                let words = if queues.is_empty() { words } else { words.queue_names(queues) };
                words.given("MEMBER", member.as_deref())
            }
            Self::Credit(1) => Words::new("READY"),
            Self::Credit(credits) => Words::new("CREDIT").bytes(credits.to_string()),
            Self::Create { queue, settings } => {
                Words::new("QUEUE CREATE").bytes(queue).settings(settings)
            }
            Self::Set { queue, settings } => {
                Words::new("QUEUE SET").name(queue).settings(settings).member(queue)
            }
            Self::Show(queue) => Words::new("QUEUE SHOW").name(queue).member(queue),
            Self::List { prefix, count } => Words::new("QUEUE LIST")
                .given("PREFIX", (!prefix.is_empty()).then_some(prefix))
                .option("COUNT", *count),
            Self::Truncate(queue) => Words::new("QUEUE TRUNCATE").name(queue).member(queue),
            Self::Drop(queue) => Words::new("QUEUE DROP").bytes(queue),
            Self::Pause { queue, sides, length } => sided("QUEUE PAUSE", queue, (*sides, *length)),
            Self::Resume { queue, sides } => sided("QUEUE RESUME", queue, (*sides, None)),
            Self::Stats(None) => Words::new("STATS"),
            Self::Stats(Some(queue)) => Words::new("STATS").name(queue).member(queue),
            Self::Publish { topic, payload, key, priority, deadline, ttl } => Words::new("PUBLISH")
                .bytes(topic)
                .bytes(payload)
                .given("KEY", key.as_deref())
                .or_none("PRIORITY", *priority)
                .option("DEADLINE", *deadline)
                .option("TTL", *ttl),
            Self::Join { topic, member, lease } => {
                Words::new("JOIN").bytes(topic).bytes(member).option("LEASE", *lease)
            }
            Self::Beat { member, lease } => {
                Words::new("BEAT").bytes(member).option("LEASE", *lease)
            }
            Self::LeaveTopic { topic, member } => Words::new("LEAVE").bytes(topic).bytes(member),
            Self::Leave(member) => Words::new("LEAVE").bytes(member),
            Self::Members(topic) => Words::new("MEMBERS").bytes(topic),
            Self::Ping(None) => Words::new("PING"),
            Self::Ping(Some(text)) => Words::new("PING").bytes(text),
            Self::Hello(version) => Words::new("HELLO").bytes(version.to_string()),
            Self::Reset => Words::new("RESET"),
            Self::Multi => Words::new("MULTI"),
            Self::Queued(ask) => ask.words(),
            Self::Exec(_) => Words::new("EXEC"),
            Self::Elsewhere => Words::new("GET").bytes(ELSEWHERE).bytes(b"x"),
            Self::Nonsense(words, _) => words.iter().collect(),
            _ => self.words_about_schedules(),
        }
    }

    fn words_about_schedules(&self) -> Words {
        match self {
            Self::Schedule(new) => new.words(),
            Self::Schedules { prefix, count } => Words::new("SCHEDULE LIST")
                .given("PREFIX", (!prefix.is_empty()).then_some(prefix))
                .option("COUNT", *count),
            Self::ShowSchedule(name) => Words::new("SCHEDULE SHOW").bytes(name),
            Self::PauseSchedule(name) => Words::new("SCHEDULE PAUSE").bytes(name),
            Self::ResumeSchedule(name) => Words::new("SCHEDULE RESUME").bytes(name),
            Self::DropSchedule(name) => Words::new("SCHEDULE DROP").bytes(name),
            Self::Fire(name) => Words::new("SCHEDULE FIRE").bytes(name),
            _ => unreachable!("{self:?} has its words elsewhere"),
        }
    }
}

impl Name {
    pub(crate) const fn queue(queue: Text) -> Self {
        Self { queue, member: None }
    }

    fn borrow(&self) -> QueueName<'_> {
        QueueName { name: &self.queue, member: self.member.as_deref() }
    }
}

impl By {
    fn held<'a>(&'a self, queue: &'a Name) -> Held<'a> {
        let by = match self {
            Self::Receipt(receipt) => HeldBy::Receipt(*receipt),
            Self::Id(id) => HeldBy::Id(id),
        };
        Held { queue: queue.borrow(), by }
    }
}

impl Change {
    fn amendment(&self) -> Amendment<'_> {
        Amendment {
            payload: self.payload.as_deref(),
            priority: commands::assign(self.priority),
            ttl: commands::assign(self.ttl.map(|ttl| ttl.map(Span::from_ms))),
        }
    }

    fn transfer<'a>(&'a self, queue: &'a Name, id: &'a [u8]) -> Transfer<'a> {
        Transfer {
            queue: queue.borrow(),
            id,
            delay: Span::from_ms(self.delay),
            amendment: self.amendment(),
        }
    }
}

impl Wish {
    const fn selection(self) -> Selection {
        let from = if self.from_max { End::Max } else { End::Min };
        let oldest = match self.oldest {
            Some(oldest) => oldest,
            None => !self.from_max,
        };
        let order = if oldest { Order::Oldest } else { Order::Newest };
        Selection { from, order, group: self.group, narrow: false }
    }
}

fn sided(command: &str, queue: &Name, (sides, length): (Sides, Option<u64>)) -> Words {
    Words::new(command).name(queue).sides(sides).option("FOR", length).member(queue)
}
