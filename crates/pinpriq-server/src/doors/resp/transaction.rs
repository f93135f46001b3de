//! Transactions: the requests between MULTI and EXEC, which the connection keeps.
//!
//! Their words are kept as they came, and turned into commands by EXEC: a moment such as that of
//! `AT` is understood when the commands are carried out. What can be refused before is refused at
//! once. The engine carries out all commands or none.

use pinpriq_proto::command::Step;
use pinpriq_proto::letters::Steps;
use pinpriq_proto::limits::TRANSACTION_STEPS_MAX;
use pinpriq_proto::reply::RefusalKind;

use super::call::{Call, Shape, Talk};
use super::collected::{Transaction, WORD_OVERHEAD_BYTES};
use super::entry_of_step;
use super::guard::not_before_sign_in;
use super::runs::run;
use crate::home::desk::Desk;
use pinpriq_proto::request::fault::Fault;
use pinpriq_proto::request::options::{ROOM, STATE_BURIED, WAIT};
use pinpriq_proto::request::parts::Parts;
use pinpriq_proto::request::table::TABLE;
use pinpriq_proto::request::table::places::place_of;

type Done = Result<(), Fault>;

/// The most bytes that the words of one transaction may have.
const BYTES_MAX: usize = 16 << 20;

#[expect(clippy::unnecessary_wraps, reason = "all commands are functions of one type")]
pub(super) fn multi(call: &mut Call<'_, '_>) -> Done {
    call.talk.transaction = Some(Box::default());
    call.answer_ok();
    Ok(())
}

pub(super) fn exec(_: &mut Call<'_, '_>) -> Done {
    Err(Fault::err("EXEC without MULTI"))
}

pub(super) fn discard(_: &mut Call<'_, '_>) -> Done {
    Err(Fault::err("DISCARD without MULTI"))
}

pub(super) fn watch(_: &mut Call<'_, '_>) -> Done {
    Err(Fault::err(
        "WATCH is not supported: if a command of a transaction is refused, nothing of the \
         transaction has happened",
    ))
}

#[expect(clippy::unnecessary_wraps, reason = "all commands are functions of one type")]
pub(super) fn unwatch(call: &mut Call<'_, '_>) -> Done {
    call.answer_ok();
    Ok(())
}

/// Handles a request while a transaction is open.
#[cold]
pub(super) fn handle(talk: &mut Talk, given: &[&[u8]], desk: &mut Desk) -> Done {
    let done = handle_words(talk, given, desk);
    if done.is_err() {
        spoil(talk);
    }
    done
}

/// Makes EXEC carry out nothing of the transaction that is open, if one is.
#[cold]
pub(super) fn spoil(talk: &mut Talk) {
    if let Some(transaction) = &mut talk.transaction {
        // Nothing of it is needed now.
        **transaction = Transaction { is_spoilt: true, ..Transaction::default() };
    }
}

fn handle_words(talk: &mut Talk, given: &[&[u8]], desk: &mut Desk) -> Done {
    let known = entry_of_step(given).map_err(|fault| not_before_sign_in(desk, fault));
    let (spec, place, taken) = known?;
    // What is kept for later has its own time when the transaction is carried out.
    if spec.name == "EXEC" {
        desk.note(place);
    } else {
        desk.count_kept(place);
    }
    let mut parts = Parts::of(spec);
    let sorted = parts.sort_step(&given[taken..]);
    if let Err(fault) = &sorted
        && fault.code != RefusalKind::BadArgument.into()
    {
        return sorted;
    }
    match spec.name {
        "EXEC" => execute(talk, desk),
        "DISCARD" => {
            talk.transaction = None;
            talk.say(desk, |writer| writer.simple("OK"));
            Ok(())
        }
        "MULTI" => {
            talk.refuse(desk, &Fault::err("MULTI calls can not be nested"));
            Ok(())
        }
        "WATCH" => {
            talk.refuse(desk, &Fault::err("WATCH inside MULTI is not allowed"));
            Ok(())
        }
        "RESET" | "QUIT" => {
            talk.transaction = None;
            run(place, &mut Call { desk, talk, parts: &parts })
        }
        "UNWATCH" => keep(talk, given, desk),
        _ if spec.is_step => {
            if sorted.is_ok() {
                check(talk, desk, place, &parts)?;
            }
            keep(talk, given, desk)
        }
        _ => Err(Fault::err(format!("{} cannot be part of a transaction", spec.full_name()))),
    }
}

/// Refuses a command that waits, or that concerns another shard than those before it.
fn check(talk: &mut Talk, desk: &mut Desk, place: usize, parts: &Parts<'_>) -> Done {
    if parts.spec().name == "PUT"
        && let Some(option) = [WAIT, ROOM].into_iter().find(|option| parts.has(*option))
    {
        let (word, rest) = (option.word, "cannot be part of a transaction, in which nothing waits");
        return Err(Fault::err(format!("PUT with {word} {rest}")));
    }
    if parts.spec().name == "PUT" && parts.has(STATE_BURIED) {
        return Err(Fault::err("PUT with STATE cannot be part of a transaction"));
    }
    talk.steps = Some(Steps::default());
    let done = run(place, &mut Call { desk, talk, parts });
    let steps = talk.steps.take().unwrap_or_default();
    let Some(transaction) = &mut talk.transaction else { return Ok(()) };
    if done.is_err() || transaction.is_spoilt {
        // An argument that makes no sense is refused by EXEC.
        return Ok(());
    }
    let queue = &mut transaction.queue;
    match steps.decode(|command| desk.check_step(queue, command)) {
        Ok(checked) => checked.or_else(|undone| talk.note_undone(undone)),
        Err(malformed) => unreachable!("a step is malformed: {malformed}"),
    }
}

/// Keeps a request until EXEC.
fn keep(talk: &mut Talk, given: &[&[u8]], desk: &Desk) -> Done {
    let Some(transaction) = &mut talk.transaction else { return Ok(()) };
    if !transaction.is_spoilt {
        if transaction.requests.len() == TRANSACTION_STEPS_MAX {
            return Err(busy(&format!("{TRANSACTION_STEPS_MAX} commands")));
        }
        let more: usize = given.iter().map(|word| word.len() + WORD_OVERHEAD_BYTES).sum();
        if transaction.bytes() + more > BYTES_MAX {
            return Err(busy(&format!("{BYTES_MAX} bytes")));
        }
        transaction.add(given);
        let kept = transaction.kept.get_or_insert_with(|| desk.kept().kept().share());
        kept.set(transaction.words.len() + transaction.lengths.len() * size_of::<usize>());
        if kept.is_too_much() {
            return Err(kept.kept().refusal().into());
        }
    }
    talk.say(desk, |writer| writer.simple("QUEUED"));
    Ok(())
}

fn busy(most: &str) -> Fault {
    let sentence = format!("a transaction has at most {most}: split it");
    Fault { code: RefusalKind::Busy.into(), sentence }
}

/// Carries out the transaction, which is closed whatever becomes of it.
fn execute(talk: &mut Talk, desk: &mut Desk) -> Done {
    let Some(transaction) = talk.transaction.take() else { return Ok(()) };
    if transaction.is_spoilt {
        let sentence = "Transaction discarded because of previous errors.".to_owned();
        return Err(Fault { code: RefusalKind::ExecAbort.into(), sentence });
    }
    talk.steps = Some(Steps::default());
    for request in transaction.requests() {
        let done = add_step(talk, desk, &request);
        if let (Err(fault), Some(steps)) = (done, &mut talk.steps) {
            steps.push(&Step::Bad(&fault.sentence));
        }
    }
    drop(transaction);
    ask_steps(talk, desk)
}

/// Asks for the steps that were collected, as one command.
pub(crate) fn ask_steps(talk: &mut Talk, desk: &mut Desk) -> Done {
    const EXEC: usize = place_of("EXEC");
    let steps = talk.steps.take().unwrap_or_default();
    let mut call = Call { desk, talk, parts: &Parts::of(&TABLE[EXEC]) };
    match steps.decode(|command| call.ask(Shape::Plain, command)) {
        Ok(done) => done,
        Err(malformed) => unreachable!("a transaction is malformed: {malformed}"),
    }
}

/// Adds a request to the steps that are being collected.
fn add_step(talk: &mut Talk, desk: &mut Desk, given: &[&[u8]]) -> Done {
    let (spec, place, taken) = entry_of_step(given)?;
    if spec.name == "UNWATCH" {
        talk.steps.iter_mut().for_each(|steps| steps.push(&Step::Nothing));
        return Ok(());
    }
    let mut parts = Parts::of(spec);
    parts.sort_step(&given[taken..])?;
    run(place, &mut Call { desk, talk, parts: &parts })
}
