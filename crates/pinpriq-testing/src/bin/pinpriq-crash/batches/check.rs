//! What is left of batches after a crash, compared with what is known of them.
//!
//! Nothing else speaks to the server meanwhile. All batches are closed and all tasks are finished,
//! so that every batch must be done, and what waited for it must have come or have been skipped.

use std::net::SocketAddr;
use std::time::Duration;

use pinpriq_client::blocking::Resp;
use pinpriq_proto::wire::resp::{Value, Words};

use super::asks::{Ask, What};
use super::book::{Book, Known, Pages};
use super::chores::{Held, acknowledged, plowed};
use super::judge::Shown;
use super::talk::{delivered, exchange, text};
use super::{FAMILIES, Kind, Queue};
use crate::clock::let_pass;
use crate::fault::Fallible;

/// The number of requests that are sent together.
const TOGETHER: usize = 200;
/// The number of tasks that are asked for together.
const PAGE: u64 = 1_000;
/// How often a family is looked at until nothing is left of it, and the time between.
const TRIES_MAX: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// Sets the settings of the queues.
pub(crate) fn prepare(address: SocketAddr) -> Fallible<()> {
    let mut wire = crate::wire::connect(address)?;
    for family in 0..FAMILIES.len() {
        let name = |kind| Queue { family, kind }.name();
        let create = Words::new("QUEUE CREATE").bytes(name(Kind::Work));
        match wire.ask(&create.given("DEADLETTER", Some(name(Kind::Dead))))? {
            Value::Simple(_) => {}
            other => return Err(format!("QUEUE CREATE was answered {other:?}").into()),
        }
    }
    Ok(())
}

/// Closes all batches, finishes all tasks, and judges both. Nothing is left of them.
pub(crate) fn settle(address: SocketAddr, book: &Book) -> Fallible<()> {
    let mut wire = crate::wire::connect(address)?;
    close_all(&mut wire, book)?;
    for family in 0..FAMILIES.len() {
        drain(&mut wire, book, family)?;
    }
    judge(&mut wire, book)?;
    let names = batches_left(&mut wire)?;
    if let Some(name) = names.first() {
        book.fail(format!("{} batches are left, the first is {name}", names.len()));
    }
    book.with(Pages::forget);
    Ok(())
}

/// Closes all batches of which it is not known for certain that they are closed.
fn close_all(wire: &mut Resp, book: &Book) -> Fallible<()> {
    let asks: Vec<Ask> = book.with(|pages| {
        let open = pages.batches.iter().filter(|(_, batch)| batch.closed < Known::Yes);
        open.map(|(number, _)| Ask::about_batch(pages, What::Close(*number), None)).collect()
    });
    for some in asks.chunks(TOGETHER) {
        exchange(wire, book, some, some.len())?;
    }
    Ok(())
}

/// Finishes all tasks of a family.
fn drain(wire: &mut Resp, book: &Book, family: usize) -> Fallible<()> {
    let mut left = None;
    for _ in 0..TRIES_MAX {
        let mut count = 0;
        for kind in [Kind::Work, Kind::Odd, Kind::Then] {
            count += finish(wire, book, Queue { family, kind })?;
        }
        read_letters(wire, book, Queue { family, kind: Kind::Dead })?;
        if count > 0 {
            continue;
        }
        left = first_left(wire, family)?;
        if left.is_none() {
            return Ok(());
        }
        // Leases with a TTR and delays run out.
        let_pass(PAUSE);
    }
    book.fail(format!("the queues of {} keep tasks: {left:?}", FAMILIES[family]));
    Ok(())
}

/// Finishes the tasks of a queue that somebody can have. Returns how many came.
fn finish(wire: &mut Resp, book: &Book, queue: Queue) -> Fallible<usize> {
    exchange(wire, book, &[plowed(queue)], 1)?;
    let take = Words::new("TAKE").bytes(queue.name()).option("COUNT", Some(PAGE));
    let mut count = 0;
    loop {
        let sent_at = book.with(Pages::moment);
        let reply = wire.ask(&take)?;
        let tasks = delivered(&reply).ok_or_else(|| format!("no tasks came: {reply:?}"))?;
        if tasks.is_empty() {
            return Ok(count);
        }
        count += tasks.len();
        let held = book.with(|pages| Held::all(pages, (queue, sent_at), tasks));
        let asks: Vec<Ask> = acknowledged(&held).into_iter().collect();
        exchange(wire, book, &asks, asks.len())?;
    }
}

/// Takes the dead letters of a family out.
fn read_letters(wire: &mut Resp, book: &Book, queue: Queue) -> Fallible<()> {
    let pop = Words::new("POP").bytes(queue.name()).option("COUNT", Some(PAGE));
    loop {
        let reply = wire.ask(&pop)?;
        let tasks = delivered(&reply).ok_or_else(|| format!("no letters came: {reply:?}"))?;
        if tasks.is_empty() {
            return Ok(());
        }
        book.with(|pages| tasks.iter().for_each(|task| pages.note_letter(queue, &task.payload)));
    }
}

/// The first task that is left in any queue of a family, whatever its state.
fn first_left(wire: &mut Resp, family: usize) -> Fallible<Option<Value>> {
    for kind in [Kind::Work, Kind::Odd, Kind::Then, Kind::Dead] {
        let queue = Queue { family, kind };
        let scan = Words::new("SCAN").bytes(queue.name()).option("COUNT", Some(1));
        let reply = wire.ask(&scan.bytes("WITHMETA"))?;
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
fn judge(wire: &mut Resp, book: &Book) -> Fallible<()> {
    let asks: Vec<(u64, Ask)> = book.with(|pages| {
        let about = |number| Ask::about_batch(pages, What::Show(number), None);
        pages.batches.keys().map(|number| (*number, about(*number))).collect()
    });
    for some in asks.chunks(TOGETHER) {
        wire.send(some.iter().flat_map(|(_, ask)| &ask.words))?;
        let mut drops = Vec::new();
        for (number, _) in some {
            let reply = wire.reply()?;
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
        drop_all(wire, book, &drops)?;
    }
    book.with(Pages::finish_tasks);
    Ok(())
}

/// Has the server forget batches.
fn drop_all(wire: &mut Resp, book: &Book, names: &[String]) -> Fallible<()> {
    let words: Vec<Words> = names.iter().map(|name| Words::new("BATCH DROP").bytes(name)).collect();
    wire.send(&words)?;
    for name in names {
        let reply = wire.reply()?;
        if reply.integer() != Some(1) {
            book.fail(format!("the batch {name} was not dropped: {reply:?}"));
        }
    }
    Ok(())
}

/// The names of the batches that the server knows.
fn batches_left(wire: &mut Resp) -> Fallible<Vec<String>> {
    let mut names = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let reply = wire.ask(&Words::new("BATCH LIST").given("CURSOR", cursor))?;
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
