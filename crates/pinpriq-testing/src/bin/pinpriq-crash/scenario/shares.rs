//! The scenarios of fair shares and limits against the real server, in real time, with a kill in
//! the one that has a restart. Prints a table.
//!
//! Who asks is one thread with one connection. Tasks come and are worked on ten times slower than
//! in simulated time, so that what the asking and the disk take does not count for much.

use std::path::PathBuf;
use std::time::Duration;

use pinpriq_client::blocking::Resp;
use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_testing::shares::{self, Fault, SCENARIOS, table};

use crate::args::Wanted;
use crate::clock::{Clock, let_pass};
use crate::fault::{Fallible, Verdict};
use crate::files;
use crate::report::say;
use crate::server::{Program, Server};
use crate::wire;

/// How long each scenario lasts, unless that is said.
const SECONDS: u64 = 30;
/// How many times slower everything happens than in simulated time.
const SLOWNESS: u64 = 10;

/// A server, and the connection to it.
struct Real {
    program: Program,
    data: PathBuf,
    server: Server,
    wire: Resp,
    clock: Clock,
}

pub(crate) fn run(wanted: &Wanted) -> Fallible<Verdict> {
    let lasts_ms = wanted.seconds.unwrap_or(SECONDS) * 1_000;
    let mut played = Vec::new();
    for scenario in SCENARIOS {
        let scenario = scenario.in_real_time(lasts_ms);
        let scratch = files::scratch(&wanted.scratch)?;
        let data = scratch.path().join("data");
        let program = wanted.program.clone();
        let server = program.start(&data)?;
        let wire = wire::connect(server.address)?;
        let mut real = Real { program, data, server, wire, clock: Clock::starting() };
        let figures = shares::run(&scenario, &mut real);
        played.push((scenario, figures.map_err(|fault| format!("{}: {fault}", scenario.name))?));
        real.server.kill()?;
    }
    let text = table(&played);
    say(&text);
    let figures = played.iter().flat_map(|(_, figures)| figures);
    let wrong = figures.clone().filter(|figure| !figure.holds);
    let failures: Vec<String> =
        wrong.map(|it| format!("{}: {}, not {}", it.what, it.measured, it.bound)).collect();
    Ok(Verdict::of(format!("{} figures", figures.count()), &failures))
}

fn told(error: impl std::fmt::Display) -> Fault {
    error.to_string()
}

impl shares::Server for Real {
    fn ask(&mut self, requests: &[Words]) -> Result<Vec<Value>, Fault> {
        self.wire.send(requests.iter()).map_err(told)?;
        requests.iter().map(|_| self.wire.reply().map_err(told)).collect()
    }

    fn now_us(&self) -> u64 {
        self.clock.us()
    }

    fn wait_until_us(&mut self, at_us: u64) -> Result<(), Fault> {
        let left_us = at_us.saturating_sub(self.clock.us());
        if left_us > 0 {
            let_pass(Duration::from_micros(left_us));
        }
        Ok(())
    }

    fn restart(&mut self) -> Result<(), Fault> {
        self.server.kill().map_err(told)?;
        self.server = self.program.start(&self.data).map_err(told)?;
        self.wire = wire::connect(self.server.address).map_err(told)?;
        Ok(())
    }

    fn slowness(&self) -> u64 {
        SLOWNESS
    }
}
