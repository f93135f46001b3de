//! `pinpriq take`: takes tasks and prints them, or works on them. `pinpriq listen` works in the
//! same way.

use pinpriq_proto::wire::resp::Words;

use super::asking::{ask_and, print_tasks};
use crate::args::more::TaskField;
use crate::args::tasks::TakeArgs;
use crate::exit::{Exit, Failure};
use crate::words::OsWords as _;

mod child;
mod init;
mod job;
mod listen;
mod membership;
mod stderr;
mod stop;
mod timer;
mod worker;

pub(crate) use self::listen::listen;
#[cfg(test)]
pub(super) use self::listen::take_words as listen_words;

/// Takes.
pub(crate) fn take(arguments: &TakeArgs) -> Result<Exit, Failure> {
    if let Some(command) = &arguments.worker.exec {
        return worker::work(arguments, command);
    }
    ask_and(&arguments.client, &words(arguments), |printer, answer| {
        let fields = [TaskField::Queue, TaskField::Receipt, TaskField::Payload];
        print_tasks(printer, &answer, &fields, arguments.queues.len() > 1)
    })
}

/// What is sent by a command that prints.
pub(super) fn words(arguments: &TakeArgs) -> Words {
    selecting(arguments)
        .option("COUNT", arguments.count)
        .option("WAIT", arguments.wait_ms)
        .flag("WITHMETA", arguments.client.json)
}

/// What is sent by a worker, which may wait this long for a task.
pub(super) fn worker_words(arguments: &TakeArgs, wait_ms: Option<u64>) -> Words {
    selecting(arguments).option("WAIT", wait_ms).flag("WITHMETA", true)
}

fn selecting(arguments: &TakeArgs) -> Words {
    let words = Words::new("TAKE").queues(&arguments.queues).option("TTR", Some(arguments.ttr_ms));
    arguments.given.after(words)
}
