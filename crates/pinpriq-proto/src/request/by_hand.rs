//! The requests that fields cannot describe: each is read by a function, and [`write`] writes them.

use super::fault::{Fault, shown};
use super::options::{
    self, AT, COST_SPENT, COUNT, DELAY, GROUP, MEMBER, ONDUP, PAYLOAD, POP, REASON, RECALL, ROOM,
    STATE_BURIED, TTL, TTR, UNIQUE, WINDOW, ZOMBIE,
};
use super::parts::{self, Parts, number};
use super::reading::{Arguments, Key as _, Room, Value as _, held, selection};
use super::spec::Word;
use super::writing::Writing;
use crate::batches::{Bonds, OnlyIf};
use crate::command::{
    Ack, Command, Delay, Put, QueueName, Selection, Take, TakeMode, TimeToLive, Transfer, Wait,
};
use crate::fanout::MemberCommand;
use crate::task::{Receipt, StateKind, Terms};
use crate::time::Span;
use crate::unique::{OnDuplicate, Unique};

type Read<'a> = Result<Command<'a>, Fault>;

/// The options of `PUT` that few puts have.
pub const RARE_OF_PUT: u64 = EXTRAS_OF_PUT | SPECIAL_OF_PUT;

/// Those of them that are terms of the task.
const EXTRAS_OF_PUT: u64 = options::SHARE.bit
    | options::COST.bit
    | options::HEADERS.bit
    | options::ATTEMPTS.bit
    | options::BACKOFF.bit
    | options::BACKOFFMAX.bit;

/// The others of them.
pub const SPECIAL_OF_PUT: u64 = UNIQUE.bit
    | WINDOW.bit
    | ONDUP.bit
    | ROOM.bit
    | AT.bit
    | STATE_BURIED.bit
    | REASON.bit
    | options::HELD.bit
    | options::RESULT_WANTED.bit
    | options::BATCH.bit
    | options::AFTER.bit
    | options::IF.bit;

/// The options of `ACK` beside the lane.
const OPTIONS_OF_ACK: u64 = PAYLOAD.bit | ZOMBIE.bit | COST_SPENT.bit | options::RESULT.bit;

/// Reads a put that may have any options.
#[inline(never)]
pub fn put<'a>(parts: &'a Parts<'a>, room: &'a Room<'a>) -> Read<'a> {
    let delay = match parts.moment(AT)? {
        Some(_) if parts.has(DELAY) => {
            return Err(Fault::bad("AT and DELAY exclude each other: give one of them"));
        }
        // A moment stays one until the put is carried out, so that tasks with the same moment are
        // ready together.
        Some(at) => Some(Delay::Until(at)),
        None => None,
    };
    let delay = if parts.has(options::HELD) {
        let others = [DELAY, AT, options::AFTER, STATE_BURIED];
        if let Some(other) = others.into_iter().find(|it| parts.has(*it)) {
            return Err(exclude(options::HELD, other));
        }
        Some(Delay::Held)
    } else {
        delay
    };
    let (unique, put) = (unique(parts)?, put_with_extras(parts)?);
    let result = parts.has(options::RESULT_WANTED);
    if result && put.wait.is_none() {
        return Err(Fault::bad("RESULT asks for what comes of the task: give WAIT too"));
    }
    let bonds = Bonds { batch: parts.option(options::BATCH), after: parts.after() };
    let only_if = only_if(parts)?;
    let delay = delay.unwrap_or(put.delay);
    let put = Put { delay, unique, result, bonds, only_if, ..put };
    if let Some(state) = parts.option(STATE_BURIED) {
        if parts::state(state)? != StateKind::Buried {
            let rule = "a task can be put with STATE B, and with no other";
            return Err(parts::no_value(rule, state));
        }
        if parts.has(ROOM) {
            return Err(Fault::bad("a put with STATE B does not wait for room"));
        }
        if parts.has(options::AFTER) {
            return Err(exclude(options::AFTER, STATE_BURIED));
        }
        let reason = parts.option(REASON);
        return Ok(Command::PutBuried { put: room.put.get_or_init(|| put), reason });
    }
    if parts.has(REASON) {
        return Err(Fault::bad("REASON says why a task is put with STATE B: give that too"));
    }
    Ok(match parts.span(ROOM)? {
        None => Command::Put(put),
        Some(wait) => Command::PutInLine { put: room.put.get_or_init(|| put), room: wait },
    })
}

/// Reads of a put all but what [`SPECIAL_OF_PUT`] say.
#[inline]
pub fn put_with_extras<'a>(parts: &'a Parts<'a>) -> Result<Put<'a>, Fault> {
    let put = plain_put(parts)?;
    Ok(Put { terms: put.terms.with_extras(parts)?, ..put })
}

/// Reads a put without any of [`RARE_OF_PUT`].
#[inline(always)]
#[expect(clippy::inline_always, reason = "it is part of every put")]
pub fn plain_put<'a>(parts: &Parts<'a>) -> Result<Put<'a>, Fault> {
    Ok(Put {
        queue: parts.word(0),
        payload: parts.word(1),
        delay: Delay::For(parts.span(DELAY)?.unwrap_or(Span::ZERO)),
        ttl: parts.span(TTL)?.map_or(TimeToLive::Default, TimeToLive::For),
        id: parts.option(options::ID),
        wait: parts.wait()?,
        priority: parts.priority()?.or(Some(0)),
        terms: Terms::read_plain(parts)?,
        unique: None,
        result: false,
        bonds: Bonds::NONE,
        only_if: OnlyIf::Done,
    })
}

/// The refusal of two options that say different things.
fn exclude(one: options::Opt, other: options::Opt) -> Fault {
    let (one, other) = (one.word, other.word);
    Fault::bad(format!("{one} and {other} exclude each other: give one of them"))
}

/// Returns whether a task is worth doing once the batches are done that it waits for.
fn only_if(parts: &Parts<'_>) -> Result<OnlyIf, Fault> {
    match parts.value(options::IF)? {
        Some(_) if parts.after().is_none() => {
            Err(Fault::bad("IF says more about AFTER: give that too"))
        }
        given => Ok(given.unwrap_or_default()),
    }
}

fn unique<'a>(parts: &Parts<'a>) -> Result<Option<Unique<'a>>, Fault> {
    let Some(key) = parts.option(UNIQUE) else {
        if parts.has(WINDOW) || parts.has(ONDUP) {
            return Err(Fault::bad("WINDOW and ONDUP say more about UNIQUE: give that too"));
        }
        return Ok(None);
    };
    let on_duplicate = parts.value(ONDUP)?.unwrap_or_default();
    Ok(Some(Unique { key, window: parts.span(WINDOW)?, on_duplicate }))
}

pub(crate) fn take<'a>(parts: &'a Parts<'a>, _: &'a Room<'a>) -> Read<'a> {
    take_in(parts, TakeMode::Lease { ttr: parts.span(TTR)? })
}

/// Reads a take in this mode, which may be one of a single task.
#[inline(never)]
pub fn take_in<'a>(parts: &'a Parts<'a>, mode: TakeMode) -> Read<'a> {
    if parts.has(options::ID_TAKEN) {
        return take_one(parts, mode);
    }
    Ok(done_first(parts, take_of(parts, mode)?))
}

/// `TAKE queue ID id` takes that task, and says nothing about others.
fn take_one<'a>(parts: &'a Parts<'a>, mode: TakeMode) -> Read<'a> {
    const OTHERS: [options::Opt; 6] =
        [COUNT, options::WAIT, options::FROM, options::ORDER, GROUP, options::DONE];
    let is_given = |it: &options::Opt| {
        if *it == options::DONE { !parts.done.is_empty() } else { parts.has(*it) }
    };
    if let Some(other) = OTHERS.into_iter().find(is_given) {
        let sentence = format!("ID names one task: {} does not go with it", other.word);
        return Err(Fault::bad(sentence));
    }
    let &[name] = parts.words else {
        return Err(Fault::bad("ID names a task of one queue: give one queue"));
    };
    let queue = QueueName { name, member: parts.option(MEMBER) };
    let id = parts.option(options::ID_TAKEN).unwrap_or_default();
    Ok(Command::TakeOne { queue, id, mode })
}

pub(crate) fn pop<'a>(parts: &'a Parts<'a>, _: &'a Room<'a>) -> Read<'a> {
    take_of(parts, TakeMode::Pop).map(Command::Take)
}

/// Reads what is to be taken in this mode.
#[inline]
pub fn take_of<'a>(parts: &Parts<'a>, mode: TakeMode) -> Result<Take<'a>, Fault> {
    let count = parts.count(COUNT)?.unwrap_or(1);
    let wait = parts.wait()?.unwrap_or(Wait::No);
    let selection = selection(parts, parts.has(GROUP))?;
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let member = parts.option(MEMBER);
    Ok(Take { queues: parts.words, member, count, wait, selection, mode })
}

/// Returns the command that takes after what is done.
#[inline]
#[must_use]
pub fn done_first<'a>(parts: &'a Parts<'a>, take: Take<'a>) -> Command<'a> {
    if parts.done.is_empty() {
        return Command::Take(take);
    }
    Command::TakeDone { done: &parts.done, take }
}

/// Reads an ack of one task or of several.
pub fn ack<'a>(parts: &'a Parts<'a>, room: &'a Room<'a>) -> Read<'a> {
    if !are_several(parts) {
        return ack_of(parts).map(Command::Ack);
    }
    if !parts.has_none_of(OPTIONS_OF_ACK) {
        return Err(Fault::bad("options go with one receipt only"));
    }
    Ok(Command::AckAll { queue: parts.queue(), receipts: receipts(parts, room)? })
}

/// Reads the receipts that follow the name of a queue.
fn receipts<'a>(parts: &Parts<'_>, room: &'a Room<'a>) -> Result<&'a [Receipt], Fault> {
    let receipts = parts.words[1..].iter().map(|text| parts::receipt(text));
    let receipts = receipts.collect::<Result<_, _>>()?;
    Ok(room.receipts.get_or_init(|| receipts))
}

/// Reads the start of one task or of several.
pub(crate) fn start<'a>(parts: &'a Parts<'a>, room: &'a Room<'a>) -> Read<'a> {
    let queue = parts.queue();
    Ok(match receipts(parts, room)? {
        [receipt] => Command::Start { queue, receipt: *receipt },
        receipts => Command::StartAll { queue, receipts },
    })
}

/// Whether an ack names several tasks.
#[inline]
#[must_use]
pub const fn are_several(parts: &Parts<'_>) -> bool {
    parts.words.len() > 2 && !parts.by_id
}

/// Reads an ack of one task.
#[inline]
pub fn ack_of<'a>(parts: &Parts<'a>) -> Result<Ack<'a>, Fault> {
    let ack = Ack::new(held(parts)?);
    if parts.has_none_of(OPTIONS_OF_ACK) {
        return Ok(ack);
    }
    let (payload, zombie) = (parts.option(PAYLOAD), parts.span(ZOMBIE)?);
    let (cost, result) = (parts.value(COST_SPENT)?, parts.option(options::RESULT));
    Ok(Ack { payload, zombie, cost, result, ..ack })
}

/// `KICK queue ID id` is DIG, and `KICK queue n` is PLOW with a count.
pub(crate) fn kick<'a>(parts: &'a Parts<'a>, _: &'a Room<'a>) -> Read<'a> {
    let queue = parts.queue();
    if parts.by_id {
        return Ok(Command::Dig(Transfer::new(queue, parts.named())));
    }
    let count = number(parts.word(1)).filter(|count| *count > 0);
    if count.is_none() {
        let given = shown(parts.word(1));
        return Err(Fault::bad(format!("KICK needs ID and an id, or a number, not {given}")));
    }
    Ok(Command::Plow { queue, count, delay: Span::ZERO, ttl: None })
}

/// `SUBSCRIBE` takes a TTR or RECALL for leases, and neither with `POP`.
pub fn subscribe<'a>(parts: &'a Parts<'a>, _: &'a Room<'a>) -> Read<'a> {
    let mode = match (parts.has(POP), parts.span(TTR)?) {
        (true, Some(_)) => return Err(Fault::bad("POP takes no TTR: a popped task has no lease")),
        (true, None) => TakeMode::Pop,
        (false, ttr) => TakeMode::Lease { ttr },
    };
    let (member, selection, recall) = (parts.option(MEMBER), Selection::DEFAULT, parts.has(RECALL));
    if recall && mode == TakeMode::Pop {
        return Err(Fault::bad("POP takes no RECALL: a popped task is gone"));
    }
    Ok(Command::Subscribe { queues: parts.words, member, selection, mode, recall })
}

pub(crate) fn credit<'a>(parts: &'a Parts<'a>, _: &'a Room<'a>) -> Read<'a> {
    let given = parts.word(0);
    let credit = number(given).and_then(|credit| u32::try_from(credit).ok());
    credit.filter(|credit| *credit > 0).map(Command::Credit).ok_or_else(|| {
        let most = u32::MAX;
        Fault::bad(format!("CREDIT is a number from 1 to {most}, not {}", shown(given)))
    })
}

#[expect(clippy::unnecessary_wraps, reason = "all requests are read by such functions")]
pub(crate) fn ready<'a>(_: &'a Parts<'a>, _: &'a Room<'a>) -> Read<'a> {
    Ok(Command::Credit(1))
}

#[expect(clippy::unnecessary_wraps, reason = "all requests are read by such functions")]
pub(crate) fn leave<'a>(parts: &'a Parts<'a>, _: &'a Room<'a>) -> Read<'a> {
    Ok(Command::Member(match *parts.words {
        [topic, member] => MemberCommand::LeaveTopic { topic, member },
        _ => MemberCommand::Leave(parts.word(0)),
    }))
}

/// Writes a request that is read by a function of this module.
pub(crate) fn write(command: &Command<'_>, to: &mut Writing) {
    match *command {
        Command::Put(put) => write_put(&put, to),
        Command::PutInLine { put, room } => {
            write_put(put, to);
            to.option(ROOM, Some(room));
        }
        Command::PutBuried { put, reason } => {
            write_put(put, to);
            to.option(STATE_BURIED, Some(StateKind::Buried));
            to.option(REASON, reason);
        }
        Command::Take(take) => write_take(&take, to),
        Command::TakeOne { queue, id, mode } => {
            to.all(&[b"TAKE", queue.name]);
            to.option(options::ID_TAKEN, Some(id));
            to.mode(mode);
            to.option(MEMBER, queue.member);
            to.is_unsayable |= mode == TakeMode::Pop;
        }
        Command::TakeDone { done, take } => {
            write_take(&take, to);
            for done in done {
                to.done(done);
            }
            to.is_unsayable |= done.is_empty() || take.mode == TakeMode::Pop;
        }
        Command::Ack(Ack { held, payload, zombie, cost, result }) => {
            to.word(b"ACK");
            held.write(to);
            to.option(PAYLOAD, payload);
            to.option(ZOMBIE, zombie);
            to.option(COST_SPENT, cost);
            to.option(options::RESULT, result);
        }
        Command::AckAll { queue, receipts } => {
            write_several(b"ACK", queue, receipts, to);
        }
        Command::Start { queue, receipt } => {
            to.word(b"START");
            queue.write(to);
            to.word(&receipt.text());
        }
        Command::StartAll { queue, receipts } => {
            write_several(b"START", queue, receipts, to);
        }
        Command::Subscribe { queues, member, selection, mode, recall } => {
            to.word(b"SUBSCRIBE");
            to.list(Word::Queues, queues);
            to.option(MEMBER, member);
            to.mode(mode);
            to.flag(POP, mode == TakeMode::Pop);
            to.flag(RECALL, recall);
            to.is_unsayable |= selection != Selection::DEFAULT;
        }
        Command::Credit(credit) => to.all(&[b"CREDIT", &credit.text()]),
        Command::Member(MemberCommand::Leave(member)) => to.all(&[b"LEAVE", member]),
        Command::Member(MemberCommand::LeaveTopic { topic, member }) => {
            to.all(&[b"LEAVE", topic, member]);
        }
        _ => to.is_unsayable = true,
    }
}

/// Writes what is asked of several leases.
fn write_several(word: &[u8], queue: QueueName<'_>, receipts: &[Receipt], to: &mut Writing) {
    to.word(word);
    queue.write(to);
    for receipt in receipts {
        to.word(&receipt.text());
    }
    to.is_unsayable |= receipts.len() < 2;
}

fn write_put(put: &Put<'_>, to: &mut Writing) {
    let Put { queue, payload, terms, priority, delay, ttl, id, wait, unique, .. } = *put;
    let Put { result, bonds, only_if, .. } = *put;
    to.all(&[b"PUT", queue, payload]);
    terms.write(to);
    to.option(options::PRIORITY, Some(priority).filter(|it| *it != Some(0)));
    match delay {
        Delay::For(Span::ZERO) => {}
        Delay::For(delay) => to.option(DELAY, Some(delay)),
        Delay::Until(at) => to.option(AT, Some(at)),
        Delay::Held => to.flag(options::HELD, true),
    }
    match ttl {
        TimeToLive::Default => {}
        TimeToLive::For(ttl) => to.option(TTL, Some(ttl)),
        TimeToLive::Endless | TimeToLive::Instant => to.is_unsayable = true,
    }
    to.option(options::ID, id);
    to.option(options::WAIT, wait);
    to.flag(options::RESULT_WANTED, result);
    to.is_unsayable |= wait == Some(Wait::No) || (result && wait.is_none());
    to.option(options::BATCH, bonds.batch);
    to.after(bonds.after);
    to.option(options::IF, Some(only_if).filter(|it| *it != OnlyIf::Done));
    to.is_unsayable |= only_if != OnlyIf::Done && bonds.after.is_none();
    if let Some(Unique { key, window, on_duplicate }) = unique {
        to.option(UNIQUE, Some(key));
        to.option(WINDOW, window);
        to.option(ONDUP, Some(on_duplicate).filter(|it| *it != OnDuplicate::default()));
    }
}

fn write_take(take: &Take<'_>, to: &mut Writing) {
    let Take { queues, member, count, wait, selection, mode } = *take;
    to.word(if mode == TakeMode::Pop { b"POP" } else { b"TAKE" });
    to.list(Word::Queues, queues);
    to.option(COUNT, Some(count).filter(|count| *count != 1));
    to.option(options::WAIT, Some(wait).filter(|wait| *wait != Wait::No));
    to.mode(mode);
    selection.write(to);
    to.option(MEMBER, member);
}

impl Writing {
    /// Writes the time to release.
    fn mode(&mut self, mode: TakeMode) {
        match mode {
            TakeMode::Lease { ttr } => self.option(TTR, ttr),
            TakeMode::Pop => {}
            TakeMode::Unheld { .. } => self.is_unsayable = true,
        }
    }
}
