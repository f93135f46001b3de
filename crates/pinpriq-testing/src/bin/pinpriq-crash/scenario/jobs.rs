//! SIGKILL, or a power loss, at random moments under load on the door for beanstalkd's protocol.
//!
//! After each of them every job that was inserted and not deleted must be there, with its state,
//! priority, tube and body; reserved ones are ready again, and deleted ones are gone. Histories
//! know nothing of the states of this protocol, so the replies to clients are compared with what
//! the server shows.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pinpriq_testing::Dice;

use crate::args::Wanted;
use crate::clock::{Clock, let_pass};
use crate::fault::{Fallible, Verdict};
use crate::files;
use crate::jobs::check::{drain, look};
use crate::jobs::load::Load;
use crate::report::say;
use crate::rounds::{Catastrophe, LOAD_MS};
use crate::scenario::kill::Kill;
use crate::scenario::power::on_a_disk_of_its_own;
use crate::server::{Door, Program};

/// The number of kills, or power losses, for a directory before it is drained.
const ROUNDS: u64 = 20;

/// What all replies said.
#[derive(Default)]
struct Totals {
    struck: u64,
    inserted: u64,
    reserved: u64,
    deleted: u64,
}

impl Totals {
    fn add(&mut self, load: &Load) {
        let read = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        self.inserted += read(&load.inserted);
        self.reserved += read(&load.reserved);
        self.deleted += read(&load.deleted);
    }

    fn text(&self) -> String {
        let Self { struck, inserted, reserved, deleted } = self;
        format!("{struck} times, {inserted} jobs inserted, {reserved} reserved, {deleted} deleted")
    }
}

pub(crate) fn run_kills(wanted: &Wanted) -> Fallible<Verdict> {
    let scratch = files::scratch(&wanted.scratch)?;
    run(wanted, &scratch.path().join("data"), &mut Kill)
}

pub(crate) fn run_power_losses(wanted: &Wanted) -> Fallible<Verdict> {
    on_a_disk_of_its_own(wanted, |_, data, disk| run(wanted, data, disk))
}

fn run(wanted: &Wanted, data: &Path, catastrophe: &mut impl Catastrophe) -> Fallible<Verdict> {
    let program = Program { door: Door::Beanstalkd, ..wanted.program.clone() };
    let clock = Clock::starting();
    let mut dice = Dice::new(wanted.seed);
    let mut totals = Totals::default();
    while totals.struck < wanted.kills && wanted.has_time(clock) {
        files::remove_directory(data)?;
        let load = Load::default();
        let last = wanted.kills.min(totals.struck + ROUNDS);
        let mut server = program.start(data)?;
        while totals.struck < last && load.book.failures().is_empty() {
            let moment = Duration::from_micros(dice.below(LOAD_MS * 1_000));
            load.run(server.address, &mut dice, || {
                let_pass(moment);
                catastrophe.strike(&mut server)
            })?;
            catastrophe.recover()?;
            totals.struck += 1;
            server = program.start(data)?;
            look(server.address, &load.book)?;
        }
        if load.book.failures().is_empty() {
            drain(server.address, &load.book)?;
            let status = server.stop()?;
            if !status.success() {
                load.book.fail(format!("an orderly stop ended with {status}"));
            }
        }
        totals.add(&load);
        if !load.book.failures().is_empty() {
            return Ok(Verdict::of(totals.text(), &load.book.failures()));
        }
        say(format_args!("{}: {}", wanted.scenario, totals.text()));
    }
    Ok(Verdict::Passed(totals.text()))
}
