//! What a virtual client asks: its words on the wire, and the command that the engine must receive
//! for it.
//!
//! The words of a command come from its declaration, as the reading of the server does. So that
//! both cannot be wrong alike, [`check`] reads the most usual ones by hand, from the page on the
//! protocol. Nonsense is asked too, as long as the engine has to refuse it.

mod carrying;

use std::fmt;

use pinpriq_proto::batches::decode_names;
use pinpriq_proto::command::{
    BatchCommand, Command, Delay, Held, HeldBy, QueueName, Step, TakeMode, TimeToLive, Wait,
};
use pinpriq_proto::export::Import;
use pinpriq_proto::letters::{decode_command, encode_command};
use pinpriq_proto::task::Receipt;
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::wire::resp::Words;

pub(crate) use self::carrying::Imported;

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

/// One request of a RESP client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// A command of the engine. Tasks come with all that is known of them, if `meta` says so.
    Command {
        command: Kept,
        meta: bool,
    },
    Import(Box<Imported>),
    Credit(u32),
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

/// A command that owns its bytes: as a letter.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Kept(Vec<u8>);

/// Who replies to an ask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answerer {
    Engine,
    Door,
}

impl Ask {
    pub(crate) fn of(command: &Command<'_>) -> Self {
        let mut letter = Vec::new();
        encode_command(command, &mut letter);
        Self::Command { command: Kept(letter), meta: false }
    }

    /// The same, with all that is known of each task, or not.
    pub(crate) fn with_meta(self, meta: bool) -> Self {
        match self {
            Self::Command { command, .. } => Self::Command { command, meta },
            other => other,
        }
    }

    /// Appends the bytes of the request.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        self.words().put(out);
    }

    /// Returns who replies to it.
    pub(crate) const fn answerer(&self) -> Answerer {
        match self {
            Self::Command { .. } | Self::Import(_) | Self::Exec(_) => Answerer::Engine,
            _ => Answerer::Door,
        }
    }

    fn words(&self) -> Words {
        match self {
            Self::Command { command, meta } => command.with(|command| {
                let Some(words) = command.words() else { panic!("{command:?} is no request") };
                check(words.as_slice(), command);
                words.flag("WITHMETA", *meta)
            }),
            Self::Import(imported) => imported.words(),
            Self::Credit(1) => Words::new("READY"),
            Self::Credit(credits) => Words::new("CREDIT").bytes(credits.to_string()),
            Self::Ping(text) => Words::new("PING").all(text),
            Self::Hello(version) => Words::new("HELLO").bytes(version.to_string()),
            Self::Reset => Words::new("RESET"),
            Self::Multi => Words::new("MULTI"),
            Self::Queued(ask) => ask.words(),
            Self::Exec(_) => Words::new("EXEC"),
            Self::Elsewhere => Words::new("GET").bytes(ELSEWHERE).bytes(b"x"),
            Self::Nonsense(words, _) => words.iter().collect(),
        }
    }

    /// Calls `run` with the command, if the engine must receive one.
    pub(crate) fn with_command<T>(&self, run: impl FnOnce(&Command<'_>) -> T) -> Option<T> {
        match self {
            Self::Command { command, .. } => Some(command.with(run)),
            Self::Import(imported) => {
                let (task, until) = imported.record();
                Some(run(&Command::Import(Import::Task { task: &task, until })))
            }
            Self::Exec(asks) => {
                let (mut run, mut made) = (Some(run), None);
                gather(asks, &[], &mut |command| made = run.take().map(|run| run(command)));
                made
            }
            _ => None,
        }
    }
}

impl Kept {
    fn with<T>(&self, run: impl FnOnce(&Command<'_>) -> T) -> T {
        match decode_command(&self.0, run) {
            Ok(done) => done,
            Err(malformed) => panic!("{:?} was written and is malformed: {malformed}", self.0),
        }
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|command| command.fmt(f))
    }
}

/// Calls `run` with the transaction of these steps and those of these requests.
fn gather(asks: &[Ask], steps: &[Step<'_>], run: &mut dyn FnMut(&Command<'_>)) {
    let Some((ask, others)) = asks.split_first() else {
        return run(&Command::Transaction(steps));
    };
    ask.with_command(|command| {
        let mut steps = steps.to_vec();
        steps.push(Step::Command(*command));
        gather(others, &steps, run);
    });
}

impl Name {
    pub(crate) const fn queue(queue: Text) -> Self {
        Self { queue, member: None }
    }

    pub(crate) fn borrow(&self) -> QueueName<'_> {
        QueueName { name: &self.queue, member: self.member.as_deref() }
    }
}

/// The text of a receipt.
pub(crate) fn receipt_text(Receipt { number, grant }: Receipt) -> String {
    format!("{number}-{}-{}", grant.incarnation, grant.serial)
}

/// Reads a request by hand, and compares it with the command.
#[expect(clippy::too_many_lines, reason = "an arm for each request")]
fn check(words: &[Vec<u8>], command: &Command<'_>) {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let [name, first, rest @ ..] = &words[..] else { return };
    // Behind the first two words, or another one, come options.
    let option = |name: &str| {
        let at = rest.iter().position(|word| *word == name.as_bytes())?;
        rest.get(at + 1).copied()
    };
    let number = |name: &str| {
        let text = option(name).map(|text| String::from_utf8_lossy(text).into_owned());
        text.map(|text| text.parse::<i128>().unwrap_or_else(|_| panic!("{name} is {text}")))
    };
    let span = |name: &str| number(name).map(|ms| Span::from_ms(u64::try_from(ms).unwrap_or(0)));
    let waits = || match number("WAIT") {
        None => Wait::No,
        Some(-1) => Wait::Forever,
        Some(_) => Wait::For(span("WAIT").unwrap_or(Span::ZERO)),
    };
    let holds = |held: Held<'_>| {
        assert_eq!((*first, option("MEMBER")), (held.queue.name, held.queue.member));
        match held.by {
            HeldBy::Receipt(receipt) => assert_eq!(rest[0], receipt_text(receipt).as_bytes()),
            HeldBy::Id(id) => assert_eq!(rest[..2], [b"ID", id]),
        }
    };
    let spends = |cost: Option<u32>| assert_eq!(number("COST"), cost.map(i128::from));
    match (*name, *command) {
        (b"PUT", Command::Put(put)) => {
            assert_eq!((*first, rest[0]), (put.queue, put.payload));
            let cost = option("COST").map_or(1, |_| number("COST").unwrap_or(0));
            assert_eq!((option("KEY"), span("TTR")), (put.terms.key, put.terms.ttr));
            assert_eq!(
                (option("SHARE"), cost),
                (put.terms.share().copied(), put.terms.cost().into())
            );
            let moment = |name| span(name).map(|at| Delay::Until(Timestamp::from_ms(at.ms())));
            let delay = Delay::For(span("DELAY").unwrap_or(Span::ZERO));
            let delay = if rest.contains(&&b"HELD"[..]) { Delay::Held } else { delay };
            assert_eq!(moment("AT").unwrap_or(delay), put.delay);
            let ttl = span("TTL").map_or(TimeToLive::Default, TimeToLive::For);
            assert_eq!((ttl, option("ID")), (put.ttl, put.id));
            let ranks = option("PRIORITY") != Some(b"NONE");
            let priority = || number("PRIORITY").unwrap_or(0);
            assert_eq!(ranks.then(priority), put.priority.map(i128::from));
            assert_eq!(option("BATCH"), put.bonds.batch);
            let after = put.bonds.after.map(|names| decode_names(names).count() as i128);
            assert_eq!(number("AFTER"), after);
        }
        (b"TAKE" | b"POP", Command::Take(take)) if *first != b"QUEUES" => {
            assert_eq!((&[*first][..], option("MEMBER")), (take.queues, take.member));
            assert_eq!(number("COUNT").unwrap_or(1), i128::from(take.count));
            assert_eq!((waits(), rest.contains(&&b"GROUP"[..])), (take.wait, take.selection.group));
            let lease = TakeMode::Lease { ttr: span("TTR") };
            assert_eq!(if *name == b"POP" { TakeMode::Pop } else { lease }, take.mode);
        }
        (b"TAKE", Command::TakeOne { queue, id, mode }) => {
            assert_eq!((*first, option("MEMBER")), (queue.name, queue.member));
            assert_eq!(option("ID"), Some(id));
            assert_eq!(TakeMode::Lease { ttr: span("TTR") }, mode);
        }
        (b"ACK", Command::Ack(ack)) => {
            holds(ack.held);
            assert_eq!((option("PAYLOAD"), span("ZOMBIE")), (ack.payload, ack.zombie));
            assert_eq!(option("RESULT"), ack.result);
            spends(ack.cost);
        }
        (b"RELEASE", Command::Release(release)) => {
            holds(release.held);
            assert_eq!(span("DELAY").unwrap_or(Span::ZERO), release.delay);
            assert_eq!(option("CHECKPOINT"), release.checkpoint);
            spends(release.cost);
        }
        (b"BURY", Command::Bury(bury)) => {
            holds(bury.held);
            assert_eq!(option("REASON"), bury.reason);
            spends(bury.cost);
        }
        (b"FAIL", Command::Fail(fail)) => {
            holds(fail.held);
            assert_eq!((option("REASON"), span("DELAY")), (fail.reason, fail.delay));
            assert_eq!(option("CHECKPOINT"), fail.checkpoint);
            spends(fail.cost);
        }
        (b"TOUCH", Command::Touch(touch)) => {
            holds(touch.held);
            assert_eq!(span("BY"), touch.by);
            let told = (option("PROGRESS"), option("CHECKPOINT"));
            assert_eq!(told, (touch.progress, touch.checkpoint));
        }
        (b"KILL", Command::Kill { queue, ids }) => {
            assert_eq!((*first, &rest[..ids.len()]), (queue.name, ids));
        }
        (b"CANCEL", Command::Cancel(cancel)) => {
            assert_eq!((*first, rest[0]), (cancel.queue.name, cancel.id));
            assert_eq!((option("REASON"), span("GRACE")), (cancel.reason, cancel.grace));
        }
        (b"AWAIT", Command::Await { queue, id, wait, result }) => {
            assert_eq!((*first, rest[0], waits()), (queue.name, id, wait));
            assert_eq!(rest.contains(&&b"RESULT"[..]), result);
        }
        (b"BATCH", Command::Batch(BatchCommand::Cancel { name, reason, grace })) => {
            assert_eq!((*first, rest[0]), (&b"CANCEL"[..], name));
            assert_eq!((option("REASON"), span("GRACE")), (reason, grace));
        }
        _ => {}
    }
}
