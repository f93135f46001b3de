//! Which rights a command needs, on which queues and topics. A lane counts as its topic, and a
//! schedule as its queue.
//!
//! The match has an arm for each command, so a new one does not compile before somebody has decided
//! what it needs. Who has which rights is not known here.

use crate::command::{
    Ack, Command, Deed, Done, Fail, Held, HeldBy, Put, QueueCommand, Release, Reserve, Share, Step,
    Take,
};
use crate::export::Import;
use crate::fanout::MemberCommand;
use crate::rights::Right;
use crate::schedule::ScheduleCommand;
use crate::settings::{Assignment, DEADLETTER, Value};

/// What a command needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need<'c> {
    /// A right on this queue or topic.
    On(Right, &'c [u8]),
    /// A right on all that it touches, which only the engine knows. Lists leave out the rest.
    Wherever(Right),
}

/// Tells all that a command needs. One that needs nothing is free.
pub fn each_need<'c>(command: &Command<'c>, tell: &mut dyn FnMut(Need<'c>)) {
    use Right::{Look, Manage, Put as Puts, Take as Takes};
    match *command {
        Command::Put(put) | Command::PutInLine { put, .. } => of_put(&put, tell),
        Command::PutNumbered(put) => of_put(put, tell),
        Command::PutBuried { put, .. } => {
            of_put(put, tell);
            tell(Need::On(Manage, put.queue));
        }
        Command::Reserve(Reserve { queues, .. }) | Command::Head(queues) => of_taken(queues, tell),
        Command::Numbered { deed, .. } => tell(Need::Wherever(right_for(deed))),
        Command::Kick { queue, .. } => tell(Need::On(Manage, queue)),
        Command::Foremost { queue, .. } => tell(Need::On(Look, queue)),
        Command::Tubes(queue) => tell(of_look(queue)),
        Command::Publish(publish) => tell(Need::On(Puts, publish.topic)),
        Command::Take(take) => of_taken(take.queues, tell),
        Command::TakeDone { done, take } => of_done(done, &take, tell),
        Command::Share(share) => of_share(&share, tell),
        Command::Subscribe { queues, .. } | Command::Unsubscribe { queues, .. } => {
            of_taken(queues, tell);
        }
        Command::AckAll { queue, .. } => tell(Need::On(Takes, queue.name)),
        Command::Ack(Ack { held, .. })
        | Command::Release(Release { held, .. })
        | Command::Fail(Fail { held, .. })
        | Command::Bury { held, .. } => tell(Need::On(Takes, held.queue.name)),
        Command::Touch { held, .. } => tell(of_held(&held)),
        Command::Update(update) => {
            let right = if update.receipt.is_some() { Takes } else { Manage };
            tell(Need::On(right, update.queue.name));
        }
        Command::Peek(peek) => tell(Need::On(Look, peek.queue.name)),
        Command::Scan(scan) => tell(Need::On(Look, scan.queue.name)),
        Command::Export(export) => tell(Need::On(Look, export.queue)),
        Command::Get { queue, .. }
        | Command::Explain { queue, .. }
        | Command::Await { queue, .. } => tell(Need::On(Look, queue.name)),
        Command::Leases(leases) => tell(of_look(leases.queue.map(|queue| queue.name))),
        Command::Kill { queue, .. } | Command::Plow { queue, .. } => {
            tell(Need::On(Manage, queue.name));
        }
        Command::Dig(transfer)
        | Command::Switch { transfer, .. }
        | Command::Snatch(transfer)
        | Command::Restart(transfer) => tell(Need::On(Manage, transfer.queue.name)),
        Command::Move { from, to, .. } => {
            tell(Need::On(Manage, from.name));
            tell(Need::On(Puts, to));
        }
        Command::Redrive { queue, .. } => {
            tell(Need::On(Manage, queue.name));
            tell(Need::Wherever(Puts));
        }
        Command::Import(import) => of_import(import, tell),
        Command::Queue(command) => of_queue(command, tell),
        Command::Member(command) => of_member(command, tell),
        Command::Schedule(command) => of_schedule(command, tell),
        Command::Transaction(steps) => {
            for step in steps {
                if let Step::Command(command) = step {
                    each_need(command, tell);
                }
            }
        }
        // To keep within names takes nothing away from what the command needs.
        Command::Within { command, .. } => each_need(command, tell),
        // Each asks for nothing that was not allowed before.
        Command::Credit(_) | Command::PutBack(_) | Command::GiveBack(_) | Command::LetGo => {}
    }
}

/// The needs of a take that acknowledges tasks first.
fn of_done<'c>(done: &'c [Done<'c>], take: &Take<'c>, tell: &mut dyn FnMut(Need<'c>)) {
    for Done { queue, .. } in done {
        tell(Need::On(Right::Take, queue));
    }
    of_taken(take.queues, tell);
}

/// The needs of one shard's part of a take. Popping what is held asks for nothing new.
fn of_share<'c>(share: &Share<'c>, tell: &mut dyn FnMut(Need<'c>)) {
    match share {
        Share::Look { done, take } => of_done(done, take, tell),
        Share::Wait { take, .. } => of_taken(take.queues, tell),
        Share::Pop(_) => {}
    }
}

/// The need of looking at one queue, or at all.
const fn of_look(queue: Option<&[u8]>) -> Need<'_> {
    match queue {
        Some(queue) => Need::On(Right::Look, queue),
        None => Need::Wherever(Right::Look),
    }
}

/// The right to do this with a task that only its number names.
const fn right_for(deed: Deed) -> Right {
    match deed {
        Deed::Read => Right::Look,
        Deed::Kick => Right::Manage,
        // Whoever may take a task may acknowledge it afterwards.
        Deed::Take | Deed::Delete | Deed::Release { .. } | Deed::Bury { .. } | Deed::Touch => {
            Right::Take
        }
    }
}

/// The lease of a member keeps its lanes in all topics.
fn of_member<'c>(command: MemberCommand<'c>, tell: &mut dyn FnMut(Need<'c>)) {
    match command {
        MemberCommand::Join { topic, .. } => {
            tell(Need::On(Right::Take, topic));
            tell(Need::Wherever(Right::Take));
        }
        MemberCommand::LeaveTopic { topic, .. } => tell(Need::On(Right::Take, topic)),
        MemberCommand::Beat { .. } | MemberCommand::Leave(_) => tell(Need::Wherever(Right::Take)),
        MemberCommand::List(topic) => tell(Need::On(Right::Look, topic)),
    }
}

fn of_put<'c>(put: &Put<'c>, tell: &mut dyn FnMut(Need<'c>)) {
    tell(Need::On(Right::Put, put.queue));
    if put.wait.is_some() {
        // The reply says what became of the task.
        tell(Need::On(Right::Look, put.queue));
    }
}

fn of_taken<'c>(queues: &[&'c [u8]], tell: &mut dyn FnMut(Need<'c>)) {
    for queue in queues {
        tell(Need::On(Right::Take, queue));
    }
}

/// By its id alone, a task can be touched that nobody has taken.
const fn of_held<'c>(held: &Held<'c>) -> Need<'c> {
    match held.by {
        HeldBy::Receipt(_) => Need::On(Right::Take, held.queue.name),
        HeldBy::Id(_) => Need::On(Right::Manage, held.queue.name),
    }
}

fn of_queue<'c>(command: QueueCommand<'c>, tell: &mut dyn FnMut(Need<'c>)) {
    match command {
        QueueCommand::Create { queue, settings } => of_settings(queue, settings, tell),
        QueueCommand::Set { queue, settings } => of_settings(queue.name, settings, tell),
        QueueCommand::Drop(queue) | QueueCommand::Hold { queue, .. } => {
            tell(Need::On(Right::Manage, queue));
        }
        QueueCommand::Truncate(queue)
        | QueueCommand::Pause { queue, .. }
        | QueueCommand::Resume { queue, .. } => tell(Need::On(Right::Manage, queue.name)),
        QueueCommand::Show(queue) | QueueCommand::Stats(Some(queue)) => {
            tell(Need::On(Right::Look, queue.name));
        }
        QueueCommand::List { .. } | QueueCommand::Stats(None) => {
            tell(Need::Wherever(Right::Look));
        }
    }
}

/// Whoever says where dead letters go puts them there.
fn of_settings<'c>(queue: &'c [u8], settings: &[Assignment<'c>], tell: &mut dyn FnMut(Need<'c>)) {
    tell(Need::On(Right::Manage, queue));
    for (setting, value) in settings {
        if let (true, Value::Bytes(dead_letters)) = (*setting == DEADLETTER, value) {
            tell(Need::On(Right::Put, dead_letters));
        }
    }
}

fn of_schedule<'c>(command: ScheduleCommand<'c>, tell: &mut dyn FnMut(Need<'c>)) {
    match command {
        ScheduleCommand::Set(new) => {
            tell(Need::On(Right::Manage, new.queue));
            tell(Need::On(Right::Put, new.queue));
            // One of this name may put into another queue so far.
            tell(Need::Wherever(Right::Manage));
        }
        ScheduleCommand::Show(_) | ScheduleCommand::List { .. } => {
            tell(Need::Wherever(Right::Look));
        }
        ScheduleCommand::Pause(_)
        | ScheduleCommand::Resume(_)
        | ScheduleCommand::Drop(_)
        | ScheduleCommand::Fire(_) => tell(Need::Wherever(Right::Manage)),
    }
}

fn of_import<'c>(import: Import<'c>, tell: &mut dyn FnMut(Need<'c>)) {
    match import {
        Import::Queue { queue, settings, .. } => {
            of_settings(queue, settings.unwrap_or_default(), tell);
        }
        Import::Schedule(schedule) => {
            tell(Need::On(Right::Manage, &schedule.plan.queue));
            tell(Need::On(Right::Put, &schedule.plan.queue));
            // One of this name may belong to another queue.
            tell(Need::Wherever(Right::Manage));
        }
        Import::Task { .. } | Import::Window(_) => {
            tell(Need::On(Right::Manage, import.queue()));
        }
    }
}
