//! The commands, one file for each or for a few that belong together.

mod archive;
mod asking;
mod backup;
mod bench;
mod bulk;
mod carrying;
mod check;
mod cluster;
mod completions;
mod fanout;
mod figures;
mod follow;
mod look;
mod man;
mod ping;
mod places;
mod put;
mod reshard;
mod restore;
mod rounds;
mod salvage;
mod sending;
mod serve;
mod signals;
mod status;
mod take;
mod top;
mod user;
mod wire;

#[cfg(test)]
mod tests;

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use crate::args::Command;
use crate::exit::{Exit, Failure};

/// Runs one command to its end.
pub(crate) fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Asked(asked) => asking::ask(&asked),
        Command::Serve(arguments) => serve::serve(*arguments),
        Command::Put(arguments) => put::put(&arguments),
        Command::Take(arguments) => take::take(&arguments),
        Command::Ping(arguments) => ping::ping(&arguments),
        Command::Status(arguments) => status::status(&arguments),
        Command::Top(arguments) => top::top(&arguments),
        Command::Export(arguments) => carrying::export(&arguments),
        Command::Import(arguments) => carrying::import(&arguments),
        Command::Publish(arguments) => fanout::publish(&arguments),
        Command::Listen(arguments) => take::listen(&arguments),
        Command::Wire(command) => wire::wire(command),
        Command::Cluster(command) => cluster::cluster(&command),
        Command::User(command) => user::user(&command),
        Command::Backup(arguments) => backup::backup(&arguments),
        Command::Archive(command) => archive::archive(&command),
        Command::Restore(arguments) => restore::restore(&arguments),
        Command::Look(arguments) => look::look(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Salvage(arguments) => salvage::salvage(&arguments),
        Command::Reshard(arguments) => reshard::reshard(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Completions(arguments) => completions::completions(&arguments),
        Command::Man(arguments) => man::man(&arguments),
    }
}

/// Lets time pass.
fn pass(time: Duration) {
    // Nothing is ever sent: this waits until the time has passed.
    let (_kept, never) = sync_channel::<()>(0);
    let _ = never.recv_timeout(time);
}
