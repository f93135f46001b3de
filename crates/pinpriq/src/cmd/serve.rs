//! `pinpriq serve`: determines the configuration of the server, starts the log, says what may not
//! be meant, and runs the server.

use std::backtrace::Backtrace;

use pinpriq_server::cluster::ClusterConfig;
use pinpriq_server::config::{Config, Durability};
use pinpriq_store::journal::check;
use pinpriq_store::layout::existing_journals;
use pinpriq_store::{RealDisk, StoreError};

use super::places::refuse_data_around;
use crate::args::ServeArgs;
use crate::cluster::engine::{Empty, connect};
use crate::cmd::cluster::through::administer;
use crate::config::Unusable;
use crate::config::cluster::ClusterPlan;
use crate::exit::{Exit, Failure};
use crate::{config, environment, logging, machine};

/// Makes a failed assertion on any thread end the process, since memory may be wrong then. Logs
/// what follows from it, and does this last.
pub(super) fn end_with_a_bug(follows: &'static str, last: impl Fn() + Send + Sync + 'static) {
    std::panic::set_hook(Box::new(move |panic| {
        let backtrace = Backtrace::capture();
        tracing::error!(%panic, %backtrace, "a bug in pinpriq: {follows}");
        logging::finish();
        last();
        std::process::abort();
    }));
}

/// Runs the server until it is stopped.
pub(crate) fn serve(arguments: ServeArgs) -> Result<Exit, Failure> {
    let memory = machine::memory();
    let mut plan =
        config::plan(arguments.settings, arguments.config.as_deref(), memory).map_err(|error| {
            match error {
                // The name may be known a moment later.
                Unusable::Address { .. } => Failure::on_the_way(error.to_string()),
                error => Failure::unusable(error.to_string()),
            }
        })?;
    if plan.config.durability == Durability::Memory && !plan.ignores_data {
        refuse_hidden_tasks(&plan.config)?;
    }
    if let Some(archive) = &plan.config.archive {
        refuse_data_around(&plan.config.data, &archive.place)?;
    }
    logging::start(plan.logging)?;
    // A restart reads the right state.
    end_with_a_bug("the server ends, a restart goes on from the journal", || {});
    let open_files = machine::raise_open_files();
    for warning in warnings(&plan.config, open_files) {
        tracing::warn!("{warning}");
    }
    keep_descriptors(&mut plan.config, open_files);
    let task_bytes_max = plan.config.limits.task_bytes_max;
    tracing::info!(memory, task_bytes_max, open_files, "the bounds of the machine");
    let served = match plan.cluster {
        None => pinpriq_server::run(plan.config),
        Some(cluster) => pinpriq_server::run_node(plan.config, node(cluster)?),
    };
    logging::finish();
    match served {
        Ok(()) => Ok(Exit::Done),
        Err(error) => Err(Failure::new(error.exit_code(), error.to_string())),
    }
}

/// Connects to the engine of a cluster, and returns what the node needs to know.
fn node(plan: ClusterPlan) -> Result<ClusterConfig, Failure> {
    let engine = connect(&plan.url, plan.session_ttl, plan.bytes_max, Empty::Prepare)?;
    let ClusterPlan { data, node, announce, link, announce_link, session_ttl, shards, .. } = plan;
    let administer = administer(&plan.url, engine.clone());
    Ok(ClusterConfig {
        engine,
        administer,
        data,
        node,
        announce,
        link,
        announce_link,
        session_ttl,
        shards,
    })
}

/// Refuses a data directory with tasks for a server that would neither show nor keep them.
fn refuse_hidden_tasks(config: &Config) -> Result<(), Failure> {
    let data = config.data.display();
    let what = match count_tasks(config) {
        Ok((0, false)) => return Ok(()),
        Ok((tasks, false)) => format!("holds {tasks} tasks"),
        Ok((_, true)) => "may hold tasks, but is damaged".to_owned(),
        Err(error) => format!("may hold tasks, but cannot be read ({error})"),
    };
    Err(Failure::unusable(format!(
        "the data directory {data} {what}, and with durability memory the server would ignore \
         them: name another directory with --data, choose another --durability, or start with \
         --ignore-data"
    )))
}

/// Counts the tasks in a data directory, if there is one. Also returns whether it is damaged.
fn count_tasks(config: &Config) -> Result<(u64, bool), StoreError> {
    let (mut tasks, mut damaged) = (0, false);
    for journal in existing_journals(&config.data)? {
        let Ok(disk) = RealDisk::open_read_only(&journal.directory) else { continue };
        match check(&disk) {
            Ok(report) => {
                tasks += report.tasks_by_state.iter().sum::<u64>();
                damaged |= !report.damage.is_empty();
            }
            Err(StoreError::NotAJournal) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((tasks, damaged))
}

/// Returns what may not be meant, in sentences.
fn warnings(config: &Config, open_files: Option<u64>) -> Vec<String> {
    let unknown = environment::unknown(std::env::vars_os().map(|(name, _)| name));
    let mut warnings: Vec<String> = unknown.iter().map(ToString::to_string).collect();
    if config.every_listener().next().is_none() {
        let all_off =
            "all doors are off, so no client can connect: give pinpriq, resp or http an address";
        warnings.push(all_off.to_owned());
    }
    if let Some((limit, needed, most)) = too_few_files(config, open_files) {
        let connections = config.limits.connections_max;
        warnings.push(format!(
            "the limit on open files ({limit}) is too low for {connections} connections, which \
             may need {needed}: {most} are accepted; raise it, for example with LimitNOFILE of \
             systemd, or lower connections-max"
        ));
    }
    warnings
}

/// Lowers the bound of connections if that many could take the file descriptors that the journal
/// needs.
fn keep_descriptors(config: &mut Config, open_files: Option<u64>) {
    if let Some((_, _, most)) = too_few_files(config, open_files) {
        config.limits.connections_max = most;
    }
}

/// Returns the limit on open files, how many may be needed, and for how many connections there are
/// enough, if there are too few.
fn too_few_files(config: &Config, open_files: Option<u64>) -> Option<(u64, u64, usize)> {
    let limit = open_files?;
    let connections = config.limits.connections_max;
    let needed = machine::files_beyond(open_files, connections, config.shards)?;
    Some((limit, needed, machine::connections_within(limit, config.shards)))
}
