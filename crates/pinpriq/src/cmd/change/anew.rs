//! Bringing buried tasks back with their attempts at 0, as if they had never been taken.
//!
//! The server sets the attempts of a waiting task back, and not those of a buried one. So each task
//! is dug up with a delay, and what it was to come back with is given to it in the next command. If
//! that does not come, the task is ready after the delay, with its old attempts.

use pinpriq_wire::resp::{Value, Words};

use super::{amendment, lane};
use crate::args::tasks::{BackArgs, ClientArgs, DigArgs, PlowArgs};
use crate::exit::{Exit, Failure};
use crate::printer::{Printer, shown};
use crate::resp::{Client, unexpected};
use crate::words::OsWords as _;

/// How long a task waits for the second command.
const HOLD_MS: u64 = 60_000;

/// How many tasks are brought back at a time.
const PAGE_TASKS: u64 = 100;

/// Brings one task back.
pub(super) fn dig(arguments: &DigArgs) -> Result<Exit, Failure> {
    let task = &arguments.task;
    let held = Words::new("DIG").name(&task.queue).name(&task.id);
    let held = amendment(hold(held, &arguments.back), &arguments.amendment);
    let words = Words::new("RESTART").name(&task.queue).name(&task.id);
    let words = restarted(words, &arguments.back);
    let mut client = Client::open(&task.client.address)?;
    let mut state = client.call(&lane(held, &task.lane))?;
    if state.as_bytes() != Some(b"X") {
        state = client.call(&lane(words, &task.lane))?;
    }
    print(&task.client, "state", &state)
}

/// Brings the oldest tasks back.
pub(super) fn plow(arguments: &PlowArgs) -> Result<Exit, Failure> {
    let mut client = Client::open(&arguments.client.address)?;
    let mut left = arguments.count.unwrap_or(u64::MAX);
    let mut done = 0;
    loop {
        let ids = buried(&mut client, arguments, left.min(PAGE_TASKS))?;
        let dug = bring_back(&mut client, arguments, &ids).map_err(|failure| {
            let sentence = format!("{failure} ({done} tasks brought back before)");
            Failure::new(failure.code(), sentence)
        })?;
        done += dug;
        left = left.saturating_sub(dug);
        // Somebody else may dig at the same time.
        if dug == 0 || left == 0 {
            let done = Value::Integer(i64::try_from(done).unwrap_or(i64::MAX));
            return print(&arguments.client, "count", &done);
        }
    }
}

/// Returns the ids of the oldest buried tasks.
fn buried(client: &mut Client, plow: &PlowArgs, count: u64) -> Result<Vec<Vec<u8>>, Failure> {
    let words = Words::new("PEEK").name(&plow.queue).option("STATE", Some("B"));
    let words = lane(words.option("COUNT", Some(count)), &plow.lane);
    let Value::Array(tasks) = client.call(&words)? else { return Err(unexpected()) };
    let id = |task: &Value| match task {
        Value::Array(parts) => parts.get(1).and_then(Value::as_bytes).map(<[u8]>::to_vec),
        _ => None,
    };
    tasks.iter().map(|task| id(task).ok_or_else(unexpected)).collect()
}

/// Brings these tasks back, and returns how many were still buried.
fn bring_back(client: &mut Client, plow: &PlowArgs, ids: &[Vec<u8>]) -> Result<u64, Failure> {
    let mut bytes = Vec::new();
    for id in ids {
        let held = hold(Words::new("DIG").name(&plow.queue).bytes(id), &plow.back);
        lane(held, &plow.lane).put(&mut bytes);
        let words = restarted(Words::new("RESTART").name(&plow.queue).bytes(id), &plow.back);
        lane(words, &plow.lane).put(&mut bytes);
    }
    client.send(&bytes)?;
    let (mut dug, mut refusal) = (0, None);
    for _ in ids {
        match client.reply()? {
            Value::Error(sentence) if is_gone(&sentence) => {}
            Value::Error(sentence) => refusal = Some(sentence),
            _ => dug += 1,
        }
        match client.reply()? {
            Value::Error(sentence) if !is_gone(&sentence) => refusal = Some(sentence),
            _ => {}
        }
    }
    refusal.map_or(Ok(dug), |sentence| Err(Failure::refused(sentence)))
}

/// Adds what a task is given that is dug up to wait.
fn hold(words: Words, back: &BackArgs) -> Words {
    let delay = back.delay_ms.unwrap_or_default().max(HOLD_MS);
    let ttl = back.ttl_ms.map(|ttl| ttl.saturating_add(delay));
    words.option("DELAY", Some(delay)).option("TTL", ttl)
}

/// Adds what it is given then.
fn restarted(words: Words, back: &BackArgs) -> Words {
    words.option("DELAY", Some(back.delay_ms.unwrap_or_default())).option("TTL", back.ttl_ms)
}

/// Whether a refusal says that somebody else was faster, or that the task has expired.
fn is_gone(sentence: &str) -> bool {
    matches!(sentence.split(' ').next(), Some("NOTFOUND" | "WRONGSTATE" | "TAKEN"))
}

fn print(client: &ClientArgs, name: &str, value: &Value) -> Result<Exit, Failure> {
    let mut printer = Printer::to_stdout(client.json);
    printer.fields(&[shown(name, value)])?;
    printer.flush()?;
    Ok(Exit::Done)
}
