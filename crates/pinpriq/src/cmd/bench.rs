//! `pinpriq bench`: loads a server with requests, and reports how fast it was.
//!
//! The load generator is a separate crate. This module turns the command line into its plan, and
//! its measurements into a report. It does not judge whether the result is fast enough.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{SocketAddr, ToSocketAddrs as _};

use pinpriq_load::{Bound, Dialect, Figures, Http, Move, Pace, Pinpriq, Plan, Resp, Step, Trouble};
use pinpriq_tls::Peer;

use crate::args::bench::{BenchArgs, Door, Workload};
use crate::endpoint::{self, Endpoint, ServerAddress};
use crate::environment::{Credentials, credentials};
use crate::exit::{Exit, Failure};
use crate::output::print_text;
use crate::progress::Progress;

use self::report::Report;
use self::usage::ProcessUsage;

mod report;
mod usage;

/// The default size of the backlog to drain.
const DRAINED: u64 = 100_000;

/// How the backlog is put: as fast as possible within a server's limits.
const BACKLOG_CONNECTIONS: usize = 4;
const BACKLOG_DEPTH: usize = 64;

/// The default number of members of a topic.
const MEMBERS: u32 = 10;

/// What the pinpriq protocol can carry.
const NAME_BYTES_MAX: usize = 65_535;
const PINPRIQ_PAYLOAD_BYTES_MAX: u32 = 65_535;
const PINPRIQ_PRIORITIES_MAX: u32 = 255;

/// Measures, and prints the report.
pub(crate) fn bench(arguments: &BenchArgs) -> Result<Exit, Failure> {
    check(arguments)?;
    let plan = plan(arguments)?;
    let size = usize::try_from(arguments.size).unwrap_or(usize::MAX);
    let payload = pinpriq_load::payload(size, arguments.seed);
    let names: Vec<_> = (0..arguments.queues).map(|number| name(arguments, number)).collect();
    let report = match arguments.door {
        Door::Resp => {
            let members: Vec<_> =
                (0..members(arguments)).map(|number| member(arguments, number)).collect();
            let priorities = arguments.priorities;
            let mut dialect = Resp::with_members(&names, &payload, priorities, &members);
            if let Some(Credentials { user, secret, .. }) = credentials() {
                dialect = dialect.signing_in(&user, &secret);
            }
            measure(arguments, &plan, &mut dialect)?
        }
        Door::Http => {
            let mut dialect = match credentials() {
                Some(Credentials { user, secret, .. }) => {
                    Http::signing_in(&names, &payload, &user, &secret)
                }
                None => Http::new(&names, &payload),
            };
            measure(arguments, &plan, &mut dialect)?
        }
        Door::Pinpriq => {
            // Packets with one key leave together, so no run may use the keys of another one.
            let key = RandomState::new().hash_one(std::process::id());
            measure(arguments, &plan, &mut Pinpriq::new(&names, &payload, key))?
        }
    };
    let text = if arguments.json { report.json() } else { report.text() };
    print_text(text.as_bytes())?;
    Ok(if report.figures.refused() > 0 { Exit::Refused } else { Exit::Done })
}

/// Refuses what cannot be measured.
fn check(arguments: &BenchArgs) -> Result<(), Failure> {
    let unusable = |sentence: String| Err(Failure::unusable(sentence));
    if arguments.queue.len() > NAME_BYTES_MAX - 10 {
        return unusable("the name of the queue is too long".to_owned());
    }
    if arguments.members.is_some() && arguments.workload != Workload::FanOut {
        return unusable("only fan-out has --members".to_owned());
    }
    if arguments.done && arguments.workload != Workload::Mixed {
        return unusable("only mixed has --done: leave it out, or measure mixed".to_owned());
    }
    if arguments.door == Door::Http && (arguments.workload == Workload::FanOut || arguments.done) {
        return unusable("fan-out and --done are measured with --door resp".to_owned());
    }
    if arguments.door != Door::Pinpriq {
        return Ok(());
    }
    if arguments.workload == Workload::FanOut {
        return unusable("the pinpriq protocol has no fan-out: use --door resp".to_owned());
    }
    if !matches!(arguments.workload, Workload::Put | Workload::Pop) {
        return unusable(
            "the pinpriq protocol has no leases: measure put or pop, or use --door resp".to_owned(),
        );
    }
    if arguments.size > PINPRIQ_PAYLOAD_BYTES_MAX {
        return unusable(format!(
            "the pinpriq protocol carries payloads of at most {PINPRIQ_PAYLOAD_BYTES_MAX} bytes"
        ));
    }
    if arguments.priorities > PINPRIQ_PRIORITIES_MAX {
        return unusable(format!(
            "the pinpriq protocol has at most {PINPRIQ_PRIORITIES_MAX} priorities"
        ));
    }
    Ok(())
}

/// Returns the plan for the command line.
fn plan(arguments: &BenchArgs) -> Result<Plan, Failure> {
    let at_most = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let (address, encryption) = endpoint(arguments)?;
    Ok(Plan {
        address,
        encryption,
        connections: at_most(arguments.connections),
        depth: at_most(arguments.depth),
        cycle: cycle(arguments),
        queues: arguments.queues,
        keeps_queue: arguments.keep_queue,
        priorities: arguments.priorities,
        seed: arguments.seed,
        pace: arguments.rate.map_or(Pace::AtOnce, Pace::PerSecond),
        bound: arguments
            .count
            .map_or(Bound::Nanoseconds(arguments.seconds * 1_000_000_000), Bound::Cycles),
        until_empty: arguments.workload == Workload::Drain,
    })
}

/// Returns the moves of a job.
fn cycle(arguments: &BenchArgs) -> Vec<Move> {
    let steps: &[Step] = match arguments.workload {
        Workload::Put => &[Step::Put],
        Workload::Drain => &[Step::Take, Step::Ack],
        Workload::Mixed if arguments.done => &[Step::Put, Step::DoneTake],
        Workload::Mixed => &[Step::Put, Step::Take, Step::Ack],
        Workload::Pop => &[Step::Put, Step::Pop],
        Workload::FanOut => {
            // A slot takes no more copies of a member than it has published before, so there is
            // always one, from any publisher.
            let of_members = (0..members(arguments))
                .flat_map(|member| [Step::Take, Step::Ack].map(|step| Move { step, member }));
            return [Step::Publish.into()].into_iter().chain(of_members).collect();
        }
    };
    steps.iter().copied().map(Move::from).collect()
}

/// Returns the number of members of each topic.
fn members(arguments: &BenchArgs) -> u32 {
    match arguments.workload {
        Workload::FanOut => arguments.members.unwrap_or(MEMBERS),
        _ => 0,
    }
}

/// Returns a name of a member that no other program would choose.
fn member(arguments: &BenchArgs, number: u32) -> String {
    format!("{}-member-{number}", arguments.queue)
}

/// Returns where the server is: as given, from the environment, or the default of its door.
fn endpoint(arguments: &BenchArgs) -> Result<(SocketAddr, Option<Peer>), Failure> {
    let (variable, default, schemes) = match arguments.door {
        Door::Resp => (Some("PINPRIQ_RESP_ADDRESS"), "127.0.0.1:7251", endpoint::RESP),
        Door::Pinpriq => (Some("PINPRIQ_ADDRESS"), "127.0.0.1:7250", endpoint::PINPRIQ),
        Door::Http => (None, "127.0.0.1:7252", endpoint::HTTP),
    };
    let given = arguments.address.clone().or_else(|| std::env::var(variable?).ok());
    let given = given.as_deref().unwrap_or(default);
    let ServerAddress { address, peer } =
        Endpoint::of(given, &arguments.encryption, schemes)?.only()?;
    let found = address.to_socket_addrs().map(|mut addresses| addresses.next());
    match found {
        Ok(Some(found)) => Ok((found, peer)),
        Ok(None) => {
            Err(Failure::on_the_way(format!("no connection to {address}: there is no such host")))
        }
        Err(error) => Err(Failure::on_the_way(format!("no connection to {address}: {error}"))),
    }
}

/// Returns the name of a queue. The first is as given, so that a single one is easy to find.
fn name(arguments: &BenchArgs, number: u32) -> String {
    if number == 0 { arguments.queue.clone() } else { format!("{}-{number}", arguments.queue) }
}

/// Puts the backlog, then runs the plan and checks the server before and after. Members join before
/// that, and leave after it.
fn measure<'a>(
    arguments: &'a BenchArgs,
    plan: &Plan,
    dialect: &mut impl Dialect,
) -> Result<Report<'a>, Failure> {
    let drains = arguments.workload == Workload::Drain;
    let backlog = arguments.backlog.unwrap_or(if drains { DRAINED } else { 0 });
    if members(arguments) > 0 {
        tend_members(arguments, Step::Join, plan, dialect)?;
    }
    if backlog > 0 {
        put_backlog(arguments, backlog, plan, dialect)?;
    }
    let before = arguments.pid.map(ProcessUsage::of).transpose()?;
    let progress = Progress::before_output("jobs");
    let figures = run(plan, dialect, &progress)?;
    drop(progress);
    let after = arguments.pid.map(ProcessUsage::of).transpose()?;
    if members(arguments) > 0 {
        tend_members(arguments, Step::Leave, plan, dialect)?;
    }
    let slots = plan.connections * plan.depth;
    Ok(Report { arguments, slots, members: members(arguments), figures, before, after })
}

/// Puts what should be there before anything is measured.
fn put_backlog(
    arguments: &BenchArgs,
    backlog: u64,
    plan: &Plan,
    dialect: &mut impl Dialect,
) -> Result<(), Failure> {
    let fans_out = arguments.workload == Workload::FanOut;
    let step = if fans_out { Step::Publish } else { Step::Put };
    let putting = Plan {
        connections: BACKLOG_CONNECTIONS,
        depth: BACKLOG_DEPTH,
        cycle: vec![step.into()],
        pace: Pace::AtOnce,
        bound: Bound::Cycles(backlog),
        until_empty: false,
        keeps_queue: false,
        ..plan.clone()
    };
    let progress = Progress::before_output("tasks of the backlog");
    let figures = run(&putting, dialect, &progress)?;
    match figures.refusals.first_key_value() {
        None => Ok(()),
        Some((word, count)) => {
            Err(Failure::refused(format!("{count} tasks of the backlog were refused: {word}")))
        }
    }
}

/// Makes every member join every topic, or leave them all.
fn tend_members(
    arguments: &BenchArgs,
    step: Step,
    plan: &Plan,
    dialect: &mut impl Dialect,
) -> Result<(), Failure> {
    let tending = Plan {
        connections: 1,
        depth: BACKLOG_DEPTH,
        cycle: (0..members(arguments)).map(|member| Move { step, member }).collect(),
        pace: Pace::AtOnce,
        // Each cycle is about the next topic; a member that leaves, leaves all of them.
        bound: Bound::Cycles(if step == Step::Join { plan.queues.into() } else { 1 }),
        until_empty: false,
        keeps_queue: false,
        ..plan.clone()
    };
    let progress = Progress::before_output("members");
    let figures = run(&tending, dialect, &progress)?;
    match figures.refusals.first_key_value() {
        None => Ok(()),
        Some((word, _)) => Err(Failure::refused(format!("a {} was refused: {word}", step.word()))),
    }
}

fn run(plan: &Plan, dialect: &mut impl Dialect, progress: &Progress) -> Result<Figures, Failure> {
    pinpriq_load::run(plan, dialect, progress.count())
        .map_err(|trouble: Trouble| Failure::on_the_way(trouble.to_string()))
}
