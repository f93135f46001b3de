//! `pinpriq dig`, `plow`, `kill`, `switch`, `snatch`, `restart`, `update`, `move` and `redrive`:
//! changing tasks by their ids or states, also those that are held.

use pinpriq_proto::wire::resp::Words;

use super::asking::{ask, order};
use crate::args::tasks::{
    DigArgs, IdArgs, KillArgs, MoveArgs, PlowArgs, RedriveArgs, RestartArgs, SnatchArgs,
    SwitchArgs, UpdateArgs,
};
use crate::exit::{Exit, Failure};
use crate::words::OsWords as _;

/// Brings a buried task back.
pub(crate) fn dig(arguments: &DigArgs) -> Result<Exit, Failure> {
    ask(&arguments.task.client, &dig_words(arguments), "state")
}

/// Brings buried tasks back.
pub(crate) fn plow(arguments: &PlowArgs) -> Result<Exit, Failure> {
    ask(&arguments.client, &plow_words(arguments), "count")
}

/// Removes tasks.
pub(crate) fn kill(arguments: &KillArgs) -> Result<Exit, Failure> {
    ask(&arguments.client, &kill_words(arguments), "count")
}

/// Changes the state of a task.
pub(crate) fn switch(arguments: &SwitchArgs) -> Result<Exit, Failure> {
    ask(&arguments.task.client, &switch_words(arguments), "state")
}

/// Takes a task away from its holder.
pub(crate) fn snatch(arguments: &SnatchArgs) -> Result<Exit, Failure> {
    ask(&arguments.task.client, &snatch_words(arguments), "state")
}

/// Brings a waiting, buried or finished task back.
pub(crate) fn restart(arguments: &RestartArgs) -> Result<Exit, Failure> {
    ask(&arguments.task.client, &restart_words(arguments), "state")
}

/// Changes a task in place.
pub(crate) fn update(arguments: &UpdateArgs) -> Result<Exit, Failure> {
    order(&arguments.task.client, &update_words(arguments))
}

/// Moves tasks to another queue.
pub(crate) fn move_tasks(arguments: &MoveArgs) -> Result<Exit, Failure> {
    ask(&arguments.client, &move_words(arguments), "count")
}

/// Moves dead letters back.
pub(crate) fn redrive(arguments: &RedriveArgs) -> Result<Exit, Failure> {
    ask(&arguments.client, &redrive_words(arguments), "count")
}

pub(super) fn dig_words(arguments: &DigArgs) -> Words {
    arguments.given.after(task("DIG", &arguments.task))
}

pub(super) fn plow_words(arguments: &PlowArgs) -> Words {
    arguments.given.after(Words::new("PLOW").name(&arguments.queue))
}

pub(super) fn kill_words(arguments: &KillArgs) -> Words {
    let words = Words::new("KILL").name(&arguments.queue);
    arguments.given.after(arguments.ids.iter().fold(words, |words, id| words.name(id)))
}

pub(super) fn switch_words(arguments: &SwitchArgs) -> Words {
    arguments.given.after(task("SWITCH", &arguments.task).name(&arguments.to))
}

pub(super) fn snatch_words(arguments: &SnatchArgs) -> Words {
    arguments.given.after(task("SNATCH", &arguments.task))
}

pub(super) fn restart_words(arguments: &RestartArgs) -> Words {
    arguments.given.after(task("RESTART", &arguments.task))
}

pub(super) fn update_words(arguments: &UpdateArgs) -> Words {
    arguments.given.after(task("UPDATE", &arguments.task))
}

pub(super) fn move_words(arguments: &MoveArgs) -> Words {
    arguments.given.after(Words::new("MOVE").name(&arguments.from).name(&arguments.to))
}

pub(super) fn redrive_words(arguments: &RedriveArgs) -> Words {
    arguments.given.after(Words::new("REDRIVE").name(&arguments.queue))
}

/// A command on a task by its id.
pub(super) fn task(command: &str, task: &IdArgs) -> Words {
    Words::new(command).name(&task.queue).name(&task.id)
}
