//! `pinpriq bulk`: the pages of a bulk change, one after the other.
//!
//! What would change many tasks is counted first, and asks the person at the terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::atomic::Ordering;

use pinpriq_proto::wire::resp::{Value, Words};

use crate::args::asked::{Asked, Caution};
use crate::exit::{Exit, Failure};
use crate::printer::{Printer, shown};
use crate::progress::Progress;
use crate::resp::{Client, unexpected};

/// More changes than this need a yes.
const UNASKED_MAX: u64 = 1_000;

/// What the pages have come to.
#[derive(Default)]
struct Sum {
    looked: u64,
    changed: u64,
}

/// Changes the tasks, or only counts them, and prints how many they are.
pub(super) fn change(asked: &Asked) -> Result<Exit, Failure> {
    let mut client = Client::open(&asked.client.endpoint()?)?;
    if asked.caution == Caution::Ask {
        let counted = Progress::before_output("tasks counted");
        let mut sum = Sum::default();
        pages(&mut client, |cursor| asked.page(cursor).flag("DRY", true), &mut sum, &counted)?;
        drop(counted);
        if sum.changed > UNASKED_MAX && !agrees(sum.changed)? {
            return Err(Failure::on_the_way("nothing has changed"));
        }
    }
    let is_dry = asked.caution == Caution::Dry;
    let what = if is_dry { "tasks counted" } else { "tasks changed" };
    let progress = Progress::before_output(what);
    let mut sum = Sum::default();
    let ended = pages(&mut client, |cursor| asked.page(cursor), &mut sum, &progress);
    drop(progress);
    let mut printer = Printer::to_stdout(asked.client.json);
    let number = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let (looked, changed) = (number(sum.looked), number(sum.changed));
    if ended.is_ok() || sum.changed > 0 {
        printer.fields(&[shown("changed", &changed), shown("looked", &looked)])?;
        printer.flush()?;
    }
    ended.map(|()| Exit::Done)
}

/// Sends the request of each page, until the last one or one that is refused.
fn pages(
    client: &mut Client,
    words: impl Fn(&[u8]) -> Words,
    sum: &mut Sum,
    progress: &Progress,
) -> Result<(), Failure> {
    let mut cursor = b"0".to_vec();
    loop {
        let answer = client.call(&words(&cursor))?;
        let parts = answer.elements().ok_or_else(unexpected)?;
        let [next, Value::Integer(looked), Value::Integer(changed)] = parts else {
            return Err(unexpected());
        };
        sum.looked += looked.unsigned_abs();
        sum.changed += changed.unsigned_abs();
        progress.count().store(sum.changed, Ordering::Relaxed);
        cursor = next.as_bytes().ok_or_else(unexpected)?.to_vec();
        if cursor == b"0" {
            return Ok(());
        }
    }
}

/// Asks the person at the terminal.
fn agrees(count: u64) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        let sentence = format!("this would change {count} tasks: give --yes to do it");
        return Err(Failure::unusable(sentence));
    }
    let mut stderr = io::stderr();
    // Without stderr the question is not seen, and can be answered all the same.
    let _ =
        write!(stderr, "This changes {count} tasks. Go on? [y/N] ").and_then(|()| stderr.flush());
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Failure::on_the_way(format!("stdin cannot be read: {error}")))?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
