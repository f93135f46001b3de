//! `pinpriq top`: the state of a server in a terminal, and the same figures for scripts.
//!
//! A thread asks the server (`gatherer.rs`), a model knows what is on the screen (`model.rs`), a
//! view draws it (`view.rs`), and a thin shell brings keys in and the picture out (`shell.rs`).

use crate::args::top::TopArgs;
use crate::exit::{Exit, Failure};

mod asker;
mod explain;
mod figures;
mod gatherer;
mod history;
mod keys;
mod model;
mod plain;
mod screen;
mod shell;
mod view;

/// Shows the state of a server.
pub(crate) fn top(arguments: &TopArgs) -> Result<Exit, Failure> {
    if arguments.once || arguments.client.json {
        plain::print(arguments)
    } else {
        shell::run(arguments)
    }
}
