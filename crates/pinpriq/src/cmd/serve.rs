//! `pinpriq serve`: determines the configuration of the server, starts the log, and runs the
//! server.

use crate::args::ServeArgs;
use crate::config;
use crate::exit::{Exit, Failure};
use crate::logging;

/// Makes a failed assertion on any thread end the process. Memory may be wrong then, and a restart
/// reads the right state from the journal.
fn end_with_a_bug() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!("a bug in pinpriq: the server ends, a restart goes on from the journal");
        report(panic);
        std::process::abort();
    }));
}

/// Runs the server until it is stopped.
pub(crate) fn serve(arguments: ServeArgs) -> Result<Exit, Failure> {
    let plan = config::plan(arguments.settings, arguments.config.as_deref())
        .map_err(|error| Failure::unusable(error.to_string()))?;
    logging::start(plan.logging)?;
    end_with_a_bug();
    match pinpriq_server::run(plan.config) {
        Ok(()) => Ok(Exit::Done),
        Err(error) => Err(Failure::new(error.exit_code(), error.to_string())),
    }
}
