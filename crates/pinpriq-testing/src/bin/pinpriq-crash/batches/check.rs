//! What is left of batches after a crash, or in a cluster after some troubles, compared with what
//! is known of them.
//!
//! Nothing else speaks to the server meanwhile. All batches are closed and all tasks are finished,
//! so that every batch must be done, and what waited for it must have come or have been skipped.

use std::net::SocketAddr;
use std::time::Duration;

use pinpriq_proto::wire::resp::{Value, Words};

use super::asks::{Ask, What};
use super::book::{Book, Known, Pages};
use super::chores::{Held, acknowledged, plowed};
use super::judge::Shown;
use super::talk::{Talk, delivered, text};
use super::{Kind, Queue};
use crate::clock::let_pass;
use crate::fault::Fallible;

/// The number of requests that are sent together.
const TOGETHER: usize = 200;
/// The number of tasks that are asked for together.
const PAGE: u64 = 1_000;
/// How often a family is looked at until nothing is left of it, and the time between.
const TRIES_MAX: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);
/// How long a lease lasts in a cluster meanwhile. The tasks are acknowledged at once.
const TTR_MS: u64 = 4_000;

/// Sets the settings of the queues.
pub(crate) fn prepare(address: SocketAddr, book: &Book) -> Fallible<()> {
    let mut talk = Talk::connect(address, book)?;
    for family in talk.plan.families.iter().copied() {
        let name = |kind| Queue { family, kind }.name();
        let create = Words::new("QUEUE CREATE").bytes(name(Kind::Work));
        match talk.insist_on(&create.given("DEADLETTER", Some(name(Kind::Dead))))? {
            Value::Simple(_) => {}
            // An attempt before this one may have made it.
            Value::Error(sentence) if sentence.starts_with("EXISTS") && talk.doubts > 0 => {}
            other => return Err(format!("QUEUE CREATE was answered {other:?}").into()),
        }
    }
    Ok(())
}

/// Closes all batches, finishes all tasks, and judges both. Nothing is left of them.
pub(crate) fn settle(address: SocketAddr, book: &Book) -> Fallible<()> {
    let mut talk = Talk::connect(address, book)?;
    close_all(&mut talk)?;
    for family in talk.plan.families.iter().copied() {
        drain(&mut talk, family)?;
    }
    judge(&mut talk)?;
    let names = batches_left(&mut talk)?;
    if let Some(name) = names.first() {
        book.fail(format!("{} batches are left, the first is {name}", names.len()));
    }
    book.with(Pages::forget);
    Ok(())
}

/// Closes all batches of which it is not known for certain that they are closed.
fn close_all(talk: &mut Talk<'_>) -> Fallible<()> {
    let book = talk.book;
    let asks: Vec<Ask> = book.with(|pages| {
        let open = pages.batches.iter().filter(|(_, batch)| batch.closed < Known::Yes);
        open.map(|(number, _)| Ask::about_batch(pages, What::Close(*number), None)).collect()
    });
    for some in asks.chunks(TOGETHER) {
        book.with(|pages| some.iter().for_each(|ask| pages.note_ask(&ask.what)));
        let commands: Vec<Words> = some.iter().flat_map(|ask| ask.words.clone()).collect();
        let replies = talk.insist(&commands)?;
        book.with(|pages| {
            for (ask, reply) in some.iter().zip(replies) {
                pages.note_answer(&ask.what, &[reply]);
            }
        });
    }
    Ok(())
}

/// Finishes all tasks of a family.
fn drain(talk: &mut Talk<'_>, family: &'static str) -> Fallible<()> {
    let mut left = None;
    for _ in 0..TRIES_MAX {
        let mut count = 0;
        for kind in [Kind::Work, Kind::Odd, Kind::Then] {
            count += finish(talk, Queue { family, kind })?;
        }
        read_letters(talk, Queue { family, kind: Kind::Dead })?;
        if count > 0 {
            continue;
        }
        left = first_left(talk, family)?;
        if left.is_none() {
            return Ok(());
        }
        // Leases with a TTR and delays run out.
        let_pass(PAUSE);
    }
    talk.book.fail(format!("the queues of {family} keep tasks: {left:?}"));
    Ok(())
}

/// Finishes the tasks of a queue that somebody can have. Returns how many came.
fn finish(talk: &mut Talk<'_>, queue: Queue) -> Fallible<usize> {
    let book = talk.book;
    talk.exchange(&[plowed(queue)], 1)?;
    let take = Words::new("TAKE").bytes(queue.name()).option("COUNT", Some(PAGE));
    let take = take.option("TTR", talk.plan.is_cluster.then_some(TTR_MS));
    let mut count = 0;
    loop {
        let sent_at = book.with(Pages::moment);
        let reply = talk.insist_on(&take)?;
        let tasks = delivered(&reply).ok_or_else(|| format!("no tasks came: {reply:?}"))?;
        if tasks.is_empty() {
            return Ok(count);
        }
        count += tasks.len();
        let held = book.with(|pages| Held::all(pages, (queue, sent_at), tasks));
        let asks: Vec<Ask> = acknowledged(&held).into_iter().collect();
        talk.exchange(&asks, asks.len())?;
    }
}

/// Takes the dead letters of a family out.
fn read_letters(talk: &mut Talk<'_>, queue: Queue) -> Fallible<()> {
    let pop = Words::new("POP").bytes(queue.name()).option("COUNT", Some(PAGE));
    loop {
        let reply = talk.insist_on(&pop)?;
        let tasks = delivered(&reply).ok_or_else(|| format!("no letters came: {reply:?}"))?;
        if tasks.is_empty() {
            return Ok(());
        }
        let note = |pages: &mut Pages| {
            for task in &tasks {
                pages.note_letter(queue, &task.payload);
            }
        };
        talk.book.with(note);
    }
}

/// The first task that is left in any queue of a family, whatever its state.
fn first_left(talk: &mut Talk<'_>, family: &'static str) -> Fallible<Option<Value>> {
    for kind in [Kind::Work, Kind::Odd, Kind::Then, Kind::Dead] {
        let queue = Queue { family, kind };
        let scan = Words::new("SCAN").bytes(queue.name()).option("COUNT", Some(1));
        let reply = talk.insist_on(&scan.bytes("WITHMETA"))?;
        let Some([_, Value::Array(tasks)]) = reply.elements() else {
            return Err(format!("SCAN was answered {reply:?}").into());
        };
        if let Some(first) = tasks.first() {
            return Ok(Some(first.clone()));
        }
    }
    Ok(None)
}

/// Compares what is shown of all batches with what is known, and drops them.
fn judge(talk: &mut Talk<'_>) -> Fallible<()> {
    let book = talk.book;
    let asks: Vec<(u64, Ask)> = book.with(|pages| {
        let about = |number| Ask::about_batch(pages, What::Show(number), None);
        pages.batches.keys().map(|number| (*number, about(*number))).collect()
    });
    for some in asks.chunks(TOGETHER) {
        let commands: Vec<Words> = some.iter().flat_map(|(_, ask)| ask.words.clone()).collect();
        let mut drops = Vec::new();
        for ((number, _), reply) in some.iter().zip(talk.insist(&commands)?) {
            let shown = Shown::of(&reply);
            let is_unknown = matches!(&reply, Value::Error(it) if it.starts_with("NOTFOUND"));
            if shown.is_none() && !is_unknown {
                return Err(format!("BATCH SHOW was answered {reply:?}").into());
            }
            book.with(|pages| pages.finish(*number, shown.as_ref()));
            if shown.is_some() {
                drops.push(book.with(|pages| pages.name_of(*number)));
            }
        }
        drop_all(talk, &drops)?;
    }
    book.with(Pages::finish_tasks);
    Ok(())
}

/// Has the server forget batches.
fn drop_all(talk: &mut Talk<'_>, names: &[String]) -> Fallible<()> {
    let words: Vec<Words> = names.iter().map(|name| Words::new("BATCH DROP").bytes(name)).collect();
    let before = talk.doubts;
    for (name, reply) in names.iter().zip(talk.insist(&words)?) {
        // The first attempt of two may have done it.
        let is_gone = match reply.integer() {
            Some(0) => talk.doubts > before,
            count => count == Some(1),
        };
        if !is_gone {
            talk.book.fail(format!("the batch {name} was not dropped: {reply:?}"));
        }
    }
    Ok(())
}

/// The names of the batches that the server knows.
fn batches_left(talk: &mut Talk<'_>) -> Fallible<Vec<String>> {
    let mut names = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let reply = talk.insist_on(&Words::new("BATCH LIST").given("CURSOR", cursor))?;
        let Some([next, Value::Array(page)]) = reply.elements() else {
            return Err(format!("BATCH LIST was answered {reply:?}").into());
        };
        names.extend(page.iter().filter_map(text));
        cursor = text(next).filter(|next| next != "0");
        if cursor.is_none() {
            return Ok(names);
        }
    }
}
