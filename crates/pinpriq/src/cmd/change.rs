//! `pinpriq dig`, `plow`, `kill`, `switch`, `snatch`, `restart`, `update`, `move` and `redrive`:
//! changing tasks by their ids or states, also those that are held.

use pinpriq_proto::wire::resp::Words;

use super::asking::{ask, order};
use crate::args::tasks::{
    AmendmentArgs, BackArgs, DigArgs, IdArgs, KillArgs, LaneArgs, MoveArgs, PlowArgs, RedriveArgs,
    SwitchArgs, TransferArgs, UpdateArgs,
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
pub(crate) fn snatch(arguments: &TransferArgs) -> Result<Exit, Failure> {
    ask(&arguments.task.client, &transfer_words("SNATCH", arguments), "state")
}

/// Brings a waiting, buried or finished task back.
pub(crate) fn restart(arguments: &TransferArgs) -> Result<Exit, Failure> {
    ask(&arguments.task.client, &transfer_words("RESTART", arguments), "state")
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
    let words = back(task("DIG", &arguments.task), &arguments.back);
    lane(amendment(words, &arguments.amendment), &arguments.task.lane)
}

pub(super) fn plow_words(arguments: &PlowArgs) -> Words {
    let words = Words::new("PLOW").name(&arguments.queue).option("COUNT", arguments.count);
    lane(back(words, &arguments.back), &arguments.lane)
}

pub(super) fn kill_words(arguments: &KillArgs) -> Words {
    let words = Words::new("KILL").name(&arguments.queue);
    let words = arguments.ids.iter().fold(words, |words, id| words.name(id));
    lane(words, &arguments.lane)
}

pub(super) fn switch_words(arguments: &SwitchArgs) -> Words {
    let words = task("SWITCH", &arguments.task).bytes(arguments.to.to_string());
    lane(back(words, &arguments.back), &arguments.task.lane)
}

pub(super) fn transfer_words(command: &str, arguments: &TransferArgs) -> Words {
    lane(back(task(command, &arguments.task), &arguments.back), &arguments.task.lane)
}

pub(super) fn update_words(arguments: &UpdateArgs) -> Words {
    let words = amendment(task("UPDATE", &arguments.task), &arguments.amendment)
        .option("TTL", arguments.ttl_ms)
        .named("RECEIPT", arguments.receipt.as_deref());
    lane(words, &arguments.task.lane)
}

pub(super) fn move_words(arguments: &MoveArgs) -> Words {
    Words::new("MOVE")
        .name(&arguments.from)
        .name(&arguments.to)
        .option("COUNT", arguments.count)
        .option("STATE", arguments.state)
        .named("MEMBER", arguments.member.as_deref())
}

pub(super) fn redrive_words(arguments: &RedriveArgs) -> Words {
    let words = Words::new("REDRIVE").name(&arguments.queue).option("COUNT", arguments.count);
    lane(words, &arguments.lane)
}

/// A command on a task by its id.
fn task(command: &str, task: &IdArgs) -> Words {
    Words::new(command).name(&task.queue).name(&task.id)
}

/// Adds what a task can be given when it goes back to its queue.
pub(super) fn back(words: Words, back: &BackArgs) -> Words {
    words.option("DELAY", back.delay_ms).option("TTL", back.ttl_ms)
}

/// Adds what a task can be given besides.
pub(super) fn amendment(words: Words, amendment: &AmendmentArgs) -> Words {
    words.option("PRIORITY", amendment.priority).named("PAYLOAD", amendment.payload.as_deref())
}

/// Adds whose lane is meant, if one is.
pub(super) fn lane(words: Words, lane: &LaneArgs) -> Words {
    words.named("MEMBER", lane.member.as_deref())
}
