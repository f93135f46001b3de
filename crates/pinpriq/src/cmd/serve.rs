//! `pinpriq serve`: works out what the server is told, starts the log, and runs it.

use crate::args::ServeArgs;
use crate::config;
use crate::exit::{Exit, Failure};
use crate::logging;

/// Runs the server until it is told to stop.
pub(crate) fn serve(arguments: ServeArgs) -> Result<Exit, Failure> {
    let plan = config::plan(arguments.settings, arguments.config.as_deref())
        .map_err(|error| Failure::unusable(error.to_string()))?;
    logging::start(plan.logging)?;
    match pinpriq_server::run(plan.config) {
        Ok(()) => Ok(Exit::Done),
        Err(error) => Err(Failure::new(error.exit_code(), error.to_string())),
    }
}
