//! The program `pinpriq-crash`: starts the real server, crashes it in every available way, and
//! checks the result with the history of its clients.
//!
//! It judges from outside: it links none of the server's code except the codec of the wire, and
//! keeps what was acknowledged in its own process. Its results are recorded in
//! `docs/internals/trust.md`.

mod archive;
mod args;
mod batches;
mod client;
mod clock;
mod cluster;
mod contestant;
mod drain;
mod fault;
mod files;
mod jobs;
mod ledger;
mod load;
mod loop_disk;
mod payload;
mod process;
mod report;
mod rounds;
mod scenario;
mod server;
mod strace;
mod totals;
mod traced;
mod wire;
mod workload;

use std::process::ExitCode;

use args::Wanted;
use fault::{Fallible, Verdict};
use report::say;

const VIOLATIONS: u8 = 1;
const WRONG_USAGE: u8 = 2;
const HARNESS_FAILED: u8 = 3;
const NOT_RUN: u8 = 4;

fn main() -> ExitCode {
    let Some(wanted) = args::wanted(std::env::args().skip(1)) else { return usage() };
    let scenario: fn(&Wanted) -> Fallible<Verdict> = match wanted.scenario.as_str() {
        "kill" => scenario::kill::run,
        "cluster" => scenario::cluster::run,
        "archive" => scenario::archive::run,
        "jobs" => scenario::jobs::run_kills,
        "jobs-power" => scenario::jobs::run_power_losses,
        "errors" => scenario::errors::run,
        "full" => scenario::full::run,
        "power" => scenario::power::run,
        "peers" => scenario::peers::run,
        "policies" => scenario::policies::run,
        "batches" => scenario::batches::run,
        "damage" => scenario::damage::run,
        "shares" => scenario::shares::run,
        "syscalls" => scenario::syscalls::run,
        _ => return usage(),
    };
    let (name, seed) = (&wanted.scenario, wanted.seed);
    match scenario(&wanted) {
        Ok(Verdict::Passed(figures)) => {
            say(format_args!("{name}: PASSED, seed {seed}: {figures}"));
            ExitCode::SUCCESS
        }
        Ok(Verdict::Failed(figures)) => {
            say(format_args!("{name}: FAILED, seed {seed}: {figures}"));
            ExitCode::from(VIOLATIONS)
        }
        Ok(Verdict::NotRun(why)) => {
            say(format_args!("{name}: NOT RUN: {why}"));
            ExitCode::from(if wanted.allow_missing { 0 } else { NOT_RUN })
        }
        Err(error) => {
            say(format_args!("{name}: the harness failed, seed {seed}: {error}"));
            ExitCode::from(HARNESS_FAILED)
        }
    }
}

fn usage() -> ExitCode {
    say(args::USAGE);
    ExitCode::from(WRONG_USAGE)
}
