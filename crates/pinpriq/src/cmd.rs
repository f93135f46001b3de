//! The commands, one file for each or for a few that belong together.

mod asking;
mod bench;
mod carrying;
mod change;
mod check;
mod cluster;
mod completions;
mod fanout;
mod held;
mod look;
mod looking;
mod man;
mod names;
mod ping;
mod put;
mod queue;
mod reshard;
mod salvage;
mod schedule;
mod sending;
mod serve;
mod status;
mod take;
mod top;
mod user;
mod wire;

#[cfg(test)]
mod tests;

use crate::args::Command;
use crate::exit::{Exit, Failure};

/// Runs one command to its end.
pub(crate) fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Other(arguments) => asking::print_any(&arguments),
        Command::Serve(arguments) => serve::serve(*arguments),
        Command::Put(arguments) => put::put(&arguments),
        Command::Take(arguments) => take::take(&arguments),
        Command::Pop(arguments) => take::pop(&arguments),
        Command::Ack(arguments) => held::ack(&arguments),
        Command::Release(arguments) => held::release(&arguments),
        Command::Bury(arguments) => held::bury(&arguments),
        Command::Fail(arguments) => held::fail(&arguments),
        Command::Touch(arguments) => held::touch(&arguments),
        Command::Peek(arguments) => look::peek(&arguments),
        Command::Get(arguments) => look::get(&arguments),
        Command::Explain(arguments) => looking::explain(&arguments),
        Command::Scan(arguments) => looking::scan(&arguments),
        Command::Leases(arguments) => looking::leases(&arguments),
        Command::Await(arguments) => look::await_task(&arguments),
        Command::Dig(arguments) => change::dig(&arguments),
        Command::Plow(arguments) => change::plow(&arguments),
        Command::Kill(arguments) => change::kill(&arguments),
        Command::Switch(arguments) => change::switch(&arguments),
        Command::Snatch(arguments) => change::snatch(&arguments),
        Command::Restart(arguments) => change::restart(&arguments),
        Command::Update(arguments) => change::update(&arguments),
        Command::Move(arguments) => change::move_tasks(&arguments),
        Command::Redrive(arguments) => change::redrive(&arguments),
        Command::Queue(command) => queue::queue(&command),
        Command::Schedule(command) => schedule::schedule(&command),
        Command::Stats(arguments) => look::stats(&arguments),
        Command::Ping(arguments) => ping::ping(&arguments),
        Command::Status(arguments) => status::status(&arguments),
        Command::Top(arguments) => top::top(&arguments),
        Command::Export(arguments) => carrying::export(&arguments),
        Command::Import(arguments) => carrying::import(&arguments),
        Command::Publish(arguments) => fanout::publish(&arguments),
        Command::Listen(arguments) => take::listen(&arguments),
        Command::Join(arguments) => fanout::join(&arguments),
        Command::Beat(arguments) => fanout::beat(&arguments),
        Command::Leave(arguments) => fanout::leave(&arguments),
        Command::Members(arguments) => fanout::members(&arguments),
        Command::Wire(command) => wire::wire(command),
        Command::Cluster(command) => cluster::cluster(&command),
        Command::User(command) => user::user(&command),
        Command::Check(arguments) => check::check(&arguments),
        Command::Salvage(arguments) => salvage::salvage(&arguments),
        Command::Reshard(arguments) => reshard::reshard(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Completions(arguments) => completions::completions(&arguments),
        Command::Man(arguments) => man::man(&arguments),
    }
}
