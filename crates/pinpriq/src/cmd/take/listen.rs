//! `pinpriq listen`: a member of a topic that prints what is published, or runs a command for it.
//!
//! It works as `pinpriq take --exec` does, and stays a member meanwhile.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use pinpriq_proto::wire::resp::Words;

use super::init;
use super::membership::{Membership, own_name};
use super::stop::signals;
use super::worker::{Plan, ROUND_MS, Work, run};
use crate::args::fanout::ListenArgs;
use crate::exit::{Exit, Failure};
use crate::logging::tell;
use crate::output::escaped;
use crate::resp::Client;
use crate::words::OsWords as _;

/// Joins, and works until it is stopped or has done what was requested.
pub(crate) fn listen(arguments: &ListenArgs) -> Result<Exit, Failure> {
    if arguments.worker.exec.is_some() {
        init::work_below_if_first()?;
    }
    let worker = &arguments.worker;
    let endpoint = &arguments.client.endpoint()?;
    let signals = signals()?;
    let mut first = Client::open(endpoint)?;
    first.hear_of_cancels()?;
    let member = match &arguments.member {
        Some(member) => member.clone(),
        None => own_name(&mut first, &arguments.topic)?,
    };
    let lease = Duration::from_millis(arguments.lease_ms);
    let membership = Membership::begin((endpoint, &mut first), &arguments.topic, member, lease)?;
    tell(format!(
        "listening to {} as {}",
        escaped(arguments.topic.as_encoded_bytes()),
        escaped(membership.member().as_encoded_bytes())
    ));
    // Each round is a sign of life too.
    let round_ms = ROUND_MS.min(arguments.lease_ms / 3);
    let take = take_words(arguments, membership.member(), Some(round_ms));
    let take_at_once = take_words(arguments, membership.member(), None);
    let plan = Plan {
        endpoint,
        work: match &worker.exec {
            Some(command) => Work::Running(command),
            None => Work::Printing { json: arguments.client.json },
        },
        take,
        take_at_once,
        round: Duration::from_millis(round_ms),
        ttr: Duration::from_millis(worker.ttr_ms),
        effort: worker.effort,
        once: false,
        left: arguments.count.map(AtomicU64::new),
        membership: Some(membership),
    };
    let outcome = run(&plan, signals, first);
    if let Some(membership) = &plan.membership {
        membership.end(arguments.stay);
    }
    outcome
}

/// Returns the command that takes a task. If tasks are printed, the lease is that of the
/// connection, so it lasts as long as the printing, and ends with the process.
pub(in crate::cmd) fn take_words(
    arguments: &ListenArgs,
    member: &std::ffi::OsStr,
    round_ms: Option<u64>,
) -> Words {
    let ttr = arguments.worker.exec.as_ref().map(|_| arguments.worker.ttr_ms);
    Words::new("TAKE")
        .queues(&[&arguments.topic])
        .option("TTR", ttr)
        .option("WAIT", round_ms)
        .flag("WITHMETA", true)
        .named("MEMBER", Some(member))
}
