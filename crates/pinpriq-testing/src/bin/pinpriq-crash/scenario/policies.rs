//! SIGKILL at random moments under load on what queues do by themselves.
//!
//! A slot of a schedule puts one task, a transaction happens as a whole or not at all, a task that
//! has failed too often becomes a dead letter, and a unique task is put once. The histories of the
//! other scenarios know neither schedules nor unique tasks. Here the queues are emptied after each
//! kill, and what they held is compared with the replies.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use pinpriq_client::blocking::Resp;
use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_testing::Dice;

use crate::args::Wanted;
use crate::clock::{Clock, let_pass};
use crate::fault::{Fallible, Verdict};
use crate::files;
use crate::report::say;
use crate::rounds::LOAD_MS;
use crate::wire;

/// The part in braces keeps all of them in one shard, which transactions need.
const STEPS: &str = "{p}steps";
const WORK: &str = "{p}work";
const DEAD: &str = "{p}dead";
const ONCE: &str = "{p}once";
const SLOTS: &str = "{p}slots";
const SCHEDULE: &str = "{p}tick";
/// The time between two slots, the shortest that there is.
const SLOT_MS: u64 = 100;
/// The tasks of one transaction.
const PARTS: usize = 3;
/// After so many failures a task becomes a dead letter.
const ATTEMPTS: usize = 2;
const PAGE: u64 = 1_000;
/// The number of kills between two lines of the report.
const LINE: u64 = 100;

/// The reply to a request of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Done,
    Refused,
    /// The connection ended before the answer.
    Nothing,
}

/// A task that fails until it is dead.
#[derive(Clone, Copy, Debug)]
struct Failing {
    put: Told,
    /// What the reply to the last failure said: whether the task is dead.
    dead: Option<bool>,
    /// Whether a failure was not answered.
    unclear: bool,
}

/// The replies of one round, by the payloads.
#[derive(Default)]
struct Round {
    transactions: BTreeMap<u64, Told>,
    failing: BTreeMap<u64, Failing>,
    once: BTreeMap<u64, Told>,
}

/// What was found until now.
#[derive(Default)]
struct Found {
    transactions: u64,
    dead: u64,
    once: BTreeSet<u64>,
    slots: BTreeSet<u64>,
    failures: Vec<String>,
}

pub(crate) fn run(wanted: &Wanted) -> Fallible<Verdict> {
    let scratch = files::scratch(&wanted.scratch)?;
    let data = scratch.path().join("data");
    let clock = Clock::starting();
    let mut dice = Dice::new(wanted.seed);
    let mut found = Found::default();
    let mut struck = 0;
    let mut next = 0;
    let mut unsure = Vec::new();
    while struck < wanted.kills && wanted.has_time(clock) && found.failures.is_empty() {
        let (round, after) = strike(wanted, &data, (next, &unsure), &mut dice)?;
        (struck, next) = (struck + 1, after);
        unsure = round.once.iter().filter(|it| *it.1 == Told::Nothing).map(|it| *it.0).collect();
        let mut server = wanted.program.start(&data)?;
        found.compare(&mut wire::connect(server.address)?, &round)?;
        let status = server.stop()?;
        if !status.success() {
            found.failures.push(format!("an orderly stop ended with {status}"));
        }
        if struck.is_multiple_of(LINE) {
            say(format_args!("{}: {}", wanted.scenario, found.figures(struck)));
        }
    }
    if found.failures.is_empty() && struck > 0 {
        let server = wanted.program.start(&data)?;
        found.compare_slots(&mut wire::connect(server.address)?)?;
    }
    Ok(Verdict::of(found.figures(struck), &found.failures))
}

/// Starts the server, kills it under load, and returns the replies, and the next number.
fn strike(
    wanted: &Wanted,
    data: &Path,
    (first, unsure): (u64, &[u64]),
    dice: &mut Dice,
) -> Fallible<(Round, u64)> {
    let mut server = wanted.program.start(data)?;
    let address = server.address;
    if first == 0 {
        prepare(&mut wire::connect(address)?)?;
    }
    let load = Duration::from_millis(dice.below(LOAD_MS));
    std::thread::scope(|scope| {
        let transactions = scope.spawn(move || transact(address, first));
        let failing = scope.spawn(move || fail(address, first));
        let once = scope.spawn(move || put_once(address, first, unsure));
        let_pass(load);
        let killed = server.kill();
        let panicked = "a client panicked";
        let round = Round {
            transactions: transactions.join().map_err(|_| panicked)??,
            failing: failing.join().map_err(|_| panicked)??,
            once: once.join().map_err(|_| panicked)??,
        };
        killed?;
        let last = [
            round.transactions.last_key_value().map(|it| *it.0),
            round.failing.last_key_value().map(|it| *it.0),
            round.once.last_key_value().map(|it| *it.0),
        ];
        Ok((round, last.into_iter().flatten().max().unwrap_or(first) + 1))
    })
}

fn prepare(wire: &mut Resp) -> Fallible<()> {
    let create = words("QUEUE CREATE", &[WORK]).option("ATTEMPTS", Some(ATTEMPTS));
    asked(wire, &create.option("DEADLETTER", Some(DEAD)))?;
    let set = words("SCHEDULE SET", &[SCHEDULE, SLOTS, "tick"]).option("EVERY", Some(SLOT_MS));
    asked(wire, &set.option("MISSED", Some("all"))).map(drop)
}

/// Puts several tasks at once, again and again. Every fourth transaction has to be refused.
fn transact(address: SocketAddr, first: u64) -> Fallible<BTreeMap<u64, Told>> {
    let mut told = BTreeMap::new();
    let Ok(mut wire) = wire::connect(address) else { return Ok(told) };
    for number in first.. {
        let mut steps = vec![Words::new("MULTI")];
        for _ in 0..PARTS {
            steps.push(words("PUT", &[STEPS, &number.to_string()]));
        }
        let has_to_fail = number % 4 == 3;
        if has_to_fail {
            steps.push(words("ACK", &[STEPS, "1-1-1"]));
        }
        steps.push(Words::new("EXEC"));
        let sent = wire.send(steps.iter()).is_ok();
        let replies = steps.iter().map_while(|_| if sent { wire.reply().ok() } else { None });
        let replies: Vec<Value> = replies.collect();
        let answer = match replies.get(steps.len() - 1) {
            None => Told::Nothing,
            Some(Value::Array(parts)) if parts.len() == PARTS && !has_to_fail => Told::Done,
            Some(Value::Error(text)) if text.starts_with("EXECABORT") && has_to_fail => {
                Told::Refused
            }
            Some(other) => return Err(format!("EXEC is answered {other:?}").into()),
        };
        told.insert(number, answer);
        if answer == Told::Nothing {
            break;
        }
    }
    Ok(told)
}

/// Puts tasks, and lets each fail until it is dead.
fn fail(address: SocketAddr, first: u64) -> Fallible<BTreeMap<u64, Failing>> {
    let mut told = BTreeMap::new();
    let Ok(mut wire) = wire::connect(address) else { return Ok(told) };
    for number in first.. {
        let mut failing = Failing { put: Told::Nothing, dead: None, unclear: false };
        let put = wire.ask(&words("PUT", &[WORK, &number.to_string()]));
        if put.is_ok() {
            failing.put = Told::Done;
        }
        told.insert(number, failing);
        if put.is_err() {
            break;
        }
        for _ in 0..ATTEMPTS {
            let take = words("TAKE", &[WORK]).option("TTR", Some(600_000));
            let Ok(taken) = wire.ask(&take) else { return Ok(told) };
            let receipt = tasks(&taken)?.first().and_then(|task| text(task.get(2)));
            let receipt = receipt.ok_or_else(|| format!("nothing to take: {taken:?}"))?;
            let answer = wire.ask(&words("FAIL", &[WORK, &receipt]).option("REASON", Some("no")));
            failing.unclear = answer.is_err();
            if let Ok(answer) = &answer {
                failing.dead = Some(text(Some(answer)).as_deref() == Some("X"));
            }
            told.insert(number, failing);
            if answer.is_err() {
                return Ok(told);
            }
        }
    }
    Ok(told)
}

/// Puts unique tasks. Those of which nothing was heard in the last round are put again first.
fn put_once(address: SocketAddr, first: u64, unsure: &[u64]) -> Fallible<BTreeMap<u64, Told>> {
    let mut told: BTreeMap<u64, Told> = unsure.iter().map(|it| (*it, Told::Nothing)).collect();
    let Ok(mut wire) = wire::connect(address) else { return Ok(told) };
    for number in unsure.iter().copied().chain(first..) {
        let text = number.to_string();
        let put = words("PUT", &[ONCE, &text]).option("UNIQUE", Some(&text));
        told.insert(number, Told::Nothing);
        match wire.ask(&put.option("WINDOW", Some(3_600_000))) {
            Ok(Value::Array(_)) => told.insert(number, Told::Done),
            Ok(other) => return Err(format!("PUT … UNIQUE is answered {other:?}").into()),
            Err(_) => break,
        };
    }
    Ok(told)
}

impl Found {
    fn figures(&self, struck: u64) -> String {
        let Self { transactions, dead, once, slots, .. } = self;
        format!(
            "{struck} kills, {transactions} transactions as a whole, {dead} dead letters, \
             {} unique tasks once, {} slots once",
            once.len(),
            slots.len()
        )
    }

    /// Empties the queues, and compares what they held with the replies.
    fn compare(&mut self, wire: &mut Resp, round: &Round) -> Fallible<()> {
        self.compare_transactions(&emptied(wire, STEPS)?, round);
        let left = asked(wire, &words("SCAN", &[WORK]).option("COUNT", Some(PAGE)))?;
        let left = match &left {
            Value::Array(page) => tasks(page.last().unwrap_or(&Value::Null))?,
            other => return Err(format!("SCAN is answered {other:?}").into()),
        };
        let left: Vec<u64> = left.iter().filter_map(|task| number_of(task)).collect();
        asked(wire, &words("QUEUE TRUNCATE", &[WORK]))?;
        self.compare_failing(&emptied(wire, DEAD)?, &left, round);
        self.compare_once(&emptied(wire, ONCE)?, round);
        self.note_slots(wire)
    }

    fn compare_transactions(&mut self, there: &[u64], round: &Round) {
        for (number, told) in &round.transactions {
            let parts = there.iter().filter(|it| *it == number).count();
            let is_right = match told {
                Told::Done => parts == PARTS,
                Told::Refused => parts == 0,
                Told::Nothing => parts == 0 || parts == PARTS,
            };
            if !is_right {
                let sentence = format!("transaction {number}, {told:?}: {parts} of {PARTS} tasks");
                self.failures.push(sentence);
            }
            self.transactions += u64::from(parts == PARTS);
        }
        let unknown = there.iter().find(|it| !round.transactions.contains_key(it));
        self.failures.extend(unknown.map(|it| format!("transaction {it} is there again")));
    }

    fn compare_failing(&mut self, dead: &[u64], left: &[u64], round: &Round) {
        for (number, failing) in &round.failing {
            let count = |there: &[u64]| there.iter().filter(|it| *it == number).count();
            let (dead, left) = (count(dead), count(left));
            let is_there = match failing.put {
                Told::Done => dead + left == 1,
                _ => dead + left <= 1,
            };
            let is_told = match failing.dead {
                Some(told) if !failing.unclear => told == (dead == 1),
                _ => true,
            };
            if !(is_there && is_told) {
                let sentence = format!("task {number}, {failing:?}: {dead} dead, {left} not");
                self.failures.push(sentence);
            }
            self.dead += dead as u64;
        }
        let unknown = dead.iter().find(|it| !round.failing.contains_key(it));
        self.failures.extend(unknown.map(|it| format!("dead letter {it} is there again")));
    }

    fn compare_once(&mut self, there: &[u64], round: &Round) {
        for number in there {
            if !self.once.insert(*number) {
                self.failures.push(format!("the unique task {number} was put twice"));
            }
        }
        let done = round.once.iter().filter(|it| *it.1 == Told::Done).map(|it| it.0);
        let lost = done.filter(|number| !self.once.contains(number)).collect::<Vec<_>>();
        self.failures.extend(lost.iter().map(|it| format!("the unique task {it} is lost")));
    }

    /// Notes the slots for which tasks were put.
    fn note_slots(&mut self, wire: &mut Resp) -> Fallible<()> {
        loop {
            let pop = words("POP", &[SLOTS]).option("COUNT", Some(PAGE)).bytes("WITHMETA");
            let popped = asked(wire, &pop)?;
            let popped = tasks(&popped)?;
            if popped.is_empty() {
                return Ok(());
            }
            for task in popped {
                let at = task.iter().position(|it| text(Some(it)).as_deref() == Some("slot"));
                let Some(Value::Integer(slot)) = at.and_then(|at| task.get(at + 1)) else {
                    return Err(format!("a task without its slot: {task:?}").into());
                };
                if !self.slots.insert(slot.unsigned_abs()) {
                    self.failures.push(format!("the slot {slot} has put two tasks"));
                }
            }
        }
    }

    /// Checks that no slot is missing, and that the schedule has counted them.
    fn compare_slots(&mut self, wire: &mut Resp) -> Fallible<()> {
        asked(wire, &words("SCHEDULE PAUSE", &[SCHEDULE]))?;
        self.note_slots(wire)?;
        let shown = asked(wire, &words("SCHEDULE SHOW", &[SCHEDULE]))?;
        let fired = shown.field("fired").and_then(Value::integer);
        let fired = fired.ok_or_else(|| format!("SCHEDULE SHOW is answered {shown:?}"))?;
        let fired = fired.unsigned_abs();
        let count = self.slots.len() as u64;
        if fired != count {
            self.failures.push(format!("{count} slots have put a task, and {fired} are counted"));
        }
        let (first, last) = (self.slots.first(), self.slots.last());
        let span = last.copied().unwrap_or(0) - first.copied().unwrap_or(0);
        if count > 0 && span != (count - 1) * SLOT_MS {
            self.failures.push(format!("{count} slots of {SLOT_MS} ms within {span} ms"));
        }
        Ok(())
    }
}

fn words(command: &str, parts: &[&str]) -> Words {
    Words::new(command).all(parts)
}

/// Asks a server that stays. A refusal is a failure of the harness.
fn asked(wire: &mut Resp, words: &Words) -> Fallible<Value> {
    match wire.ask(words)? {
        Value::Error(sentence) => Err(sentence.into()),
        value => Ok(value),
    }
}

/// Pops all tasks of a queue, and returns their numbers.
fn emptied(wire: &mut Resp, queue: &str) -> Fallible<Vec<u64>> {
    let mut numbers = Vec::new();
    loop {
        let popped = asked(wire, &words("POP", &[queue]).option("COUNT", Some(PAGE)))?;
        let popped = tasks(&popped)?;
        if popped.is_empty() {
            return Ok(numbers);
        }
        numbers.extend(popped.iter().filter_map(|task| number_of(task)));
    }
}

/// The tasks of a reply, each with its parts: queue, id, receipt, payload.
fn tasks(value: &Value) -> Fallible<Vec<&[Value]>> {
    let Value::Array(tasks) = value else { return Err(format!("no tasks: {value:?}").into()) };
    let mut found = Vec::new();
    for task in tasks {
        match task {
            Value::Array(parts) => found.push(parts.as_slice()),
            other => return Err(format!("no task: {other:?}").into()),
        }
    }
    Ok(found)
}

/// The number in the payload of a task.
fn number_of(task: &[Value]) -> Option<u64> {
    text(task.get(3)).and_then(|text| text.parse().ok())
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_bytes).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}
