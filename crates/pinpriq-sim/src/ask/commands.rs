//! The commands that the engine must receive for what a virtual client asks.

use pinpriq_proto::command::{
    Ack, Assign, Command, Delay, Done, Fail, Peek, Put, QueueCommand, Release, Selection, Step,
    Take, TakeMode, TimeToLive, Transfer, Update, Wait,
};
use pinpriq_proto::export::{Export, ExportPlace, Import};
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::looking::{Leases, Scan};
use pinpriq_proto::schedule::ScheduleCommand;
use pinpriq_proto::task::{StateKind, Terms};
use pinpriq_proto::time::{Span, Timestamp};

use super::{Ask, Name, Text, Uniqueness};

impl Ask {
    /// Calls `run` with the command, if the engine must receive one.
    #[expect(clippy::too_many_lines, reason = "one arm for each request")]
    pub(crate) fn with_command<T>(&self, run: impl FnOnce(&Command<'_>) -> T) -> Option<T> {
        let command = match self {
            Self::Put {
                queue,
                payload,
                key,
                priority,
                delay,
                at,
                ttl,
                ttr,
                id,
                wait,
                room,
                unique,
            } => {
                let put = Put {
                    queue,
                    payload,
                    terms: Terms::of(key.as_deref(), ttr.map(Span::from_ms)),
                    priority: priority.unwrap_or(Some(0)),
                    delay: at.map_or_else(
                        || Delay::For(Span::from_ms(*delay)),
                        |at| Delay::Until(Timestamp::from_ms(at)),
                    ),
                    ttl: ttl.map_or(TimeToLive::Default, |ms| TimeToLive::For(Span::from_ms(ms))),
                    id: id.as_deref(),
                    wait: wait.map(wait_of),
                    unique: unique.as_ref().map(Uniqueness::command),
                };
                match room {
                    None => Command::Put(put),
                    Some(room) => Command::PutInLine { put, room: Span::from_ms(*room) },
                }
            }
            Self::Take { queues, member, count, wait, wish, pop, ttr, done } => {
                let queues = borrowed(queues);
                let take = Take {
                    queues: &queues,
                    member: member.as_deref(),
                    count: *count,
                    wait: wait.map_or(Wait::No, wait_of),
                    selection: wish.selection(),
                    mode: mode_of(*pop, *ttr),
                };
                if done.is_empty() {
                    return Some(run(&Command::Take(take)));
                }
                let done = done.iter().map(|(queue, receipt)| Done { queue, receipt: *receipt });
                let done: Vec<Done<'_>> = done.collect();
                return Some(run(&Command::TakeDone { done: &done, take }));
            }
            Self::Peek { queue, wish, state, count } => Command::Peek(Peek {
                queue: queue.borrow(),
                selection: wish.selection(),
                state: *state,
                count: *count,
            }),
            Self::Get { queue, id } => Command::Get { queue: queue.borrow(), id },
            Self::Ack { queue, by, payload, zombie } => Command::Ack(Ack {
                held: by.held(queue),
                payload: payload.as_deref(),
                zombie: zombie.map(Span::from_ms),
            }),
            Self::AckAll { queue, receipts } => Command::AckAll { queue: queue.borrow(), receipts },
            Self::Release { queue, by, change, tail } => Command::Release(Release {
                held: by.held(queue),
                delay: Span::from_ms(change.delay),
                amendment: change.amendment(),
                tail: *tail,
            }),
            Self::Bury { queue, by, payload, reason } => Command::Bury {
                held: by.held(queue),
                payload: payload.as_deref(),
                reason: reason.as_deref(),
            },
            Self::Fail { queue, by, payload, reason, delay } => Command::Fail(Fail {
                held: by.held(queue),
                reason: reason.as_deref(),
                delay: delay.map(Span::from_ms),
                payload: payload.as_deref(),
            }),
            Self::Touch { queue, by, span } => {
                Command::Touch { held: by.held(queue), by: span.map(Span::from_ms) }
            }
            Self::Dig { queue, id, change } => Command::Dig(change.transfer(queue, id)),
            Self::KickOne { queue, id } => Command::Dig(Transfer::new(queue.borrow(), id)),
            Self::Plow { queue, count, delay, ttl } => Command::Plow {
                queue: queue.borrow(),
                count: *count,
                delay: Span::from_ms(*delay),
                ttl: ttl.map(Span::from_ms),
            },
            Self::Kick { queue, count } => Command::Plow {
                queue: queue.borrow(),
                count: Some(*count),
                delay: Span::ZERO,
                ttl: None,
            },
            Self::Kill { queue, ids } => {
                let ids = borrowed(ids);
                return Some(run(&Command::Kill { queue: queue.borrow(), ids: &ids }));
            }
            Self::Switch { queue, id, to, change } => {
                Command::Switch { transfer: change.transfer(queue, id), to: *to }
            }
            Self::Snatch { queue, id, change } => Command::Snatch(change.transfer(queue, id)),
            Self::Restart { queue, id, change } => Command::Restart(change.transfer(queue, id)),
            Self::Update { queue, id, change, receipt } => Command::Update(Update {
                queue: queue.borrow(),
                id,
                amendment: change.amendment(),
                receipt: *receipt,
            }),
            Self::Await { queue, id, wait } => {
                Command::Await { queue: queue.borrow(), id, wait: wait.map_or(Wait::No, wait_of) }
            }
            _ => return self.with_the_rest(run),
        };
        Some(run(&command))
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each request")]
    fn with_the_rest<T>(&self, run: impl FnOnce(&Command<'_>) -> T) -> Option<T> {
        let command = match self {
            Self::Move { from, to, count, state } => Command::Move {
                from: from.borrow(),
                to,
                count: count.unwrap_or(1_000),
                state: state.unwrap_or(StateKind::Ready),
            },
            Self::Explain { queue, id } => {
                Command::Explain { queue: queue.borrow(), id: id.as_deref() }
            }
            Self::Scan { queue, after, count, state, key, meta: _ } => Command::Scan(Scan {
                queue: queue.borrow(),
                after: *after,
                count: *count,
                state: *state,
                key: key.as_deref(),
            }),
            Self::Export { queue, after, count } => Command::Export(Export {
                queue,
                after: after.map_or(ExportPlace::Start, ExportPlace::Task),
                count: *count,
            }),
            Self::Import(imported) => {
                let (task, until) = imported.record();
                return Some(run(&Command::Import(Import::Task { task: &task, until })));
            }
            Self::Leases { queue, count } => Command::Leases(Leases {
                queue: queue.as_ref().map(Name::borrow),
                after: None,
                count: *count,
            }),
            Self::Redrive { queue, count } => {
                Command::Redrive { queue: queue.borrow(), count: count.unwrap_or(1_000) }
            }
            Self::Subscribe { queues, member, ttr, pop } => {
                let queues = borrowed(queues);
                return Some(run(&Command::Subscribe {
                    queues: &queues,
                    member: member.as_deref(),
                    selection: Selection::DEFAULT,
                    mode: mode_of(*pop, *ttr),
                }));
            }
            Self::Unsubscribe { queues, member } => {
                let queues = borrowed(queues);
                let member = member.as_deref();
                return Some(run(&Command::Unsubscribe { queues: &queues, member }));
            }
            Self::Create { queue, settings } => {
                Command::Queue(QueueCommand::Create { queue, settings })
            }
            Self::Set { queue, settings } => {
                Command::Queue(QueueCommand::Set { queue: queue.borrow(), settings })
            }
            Self::Show(queue) => Command::Queue(QueueCommand::Show(queue.borrow())),
            Self::List { prefix, count } => {
                let count = usize::try_from(count.unwrap_or(100)).unwrap_or(usize::MAX);
                Command::Queue(QueueCommand::List { prefix, after: None, count })
            }
            Self::Truncate(queue) => Command::Queue(QueueCommand::Truncate(queue.borrow())),
            Self::Drop(queue) => Command::Queue(QueueCommand::Drop(queue)),
            Self::Pause { queue, sides, length } => {
                let (queue, length) = (queue.borrow(), length.map(Span::from_ms));
                Command::Queue(QueueCommand::Pause { queue, sides: *sides, length })
            }
            Self::Resume { queue, sides } => {
                Command::Queue(QueueCommand::Resume { queue: queue.borrow(), sides: *sides })
            }
            Self::Stats(queue) => {
                Command::Queue(QueueCommand::Stats(queue.as_ref().map(Name::borrow)))
            }
            Self::Publish { topic, payload, key, priority, deadline, ttl } => {
                Command::Publish(Publish {
                    topic,
                    payload,
                    terms: Terms { key: key.as_deref(), ..Terms::NONE },
                    priority: priority.unwrap_or(Some(0)),
                    deadline: match (deadline, ttl) {
                        (Some(at), _) => Deadline::At(Timestamp::from_ms(*at)),
                        (None, Some(ttl)) => Deadline::After(Span::from_ms(*ttl)),
                        (None, None) => Deadline::OfLane,
                    },
                })
            }
            Self::Join { topic, member, lease } => {
                let lease = lease.map(Span::from_ms);
                Command::Member(MemberCommand::Join { topic, member, lease })
            }
            Self::Beat { member, lease } => {
                let lease = lease.map(Span::from_ms);
                Command::Member(MemberCommand::Beat { member, lease })
            }
            Self::LeaveTopic { topic, member } => {
                Command::Member(MemberCommand::LeaveTopic { topic, member })
            }
            Self::Leave(member) => Command::Member(MemberCommand::Leave(member)),
            Self::Members(topic) => Command::Member(MemberCommand::List(topic)),
            Self::Schedule(new) => Command::Schedule(ScheduleCommand::Set(new.command())),
            Self::Schedules { prefix, count } => {
                let count = usize::try_from(count.unwrap_or(100)).unwrap_or(usize::MAX);
                Command::Schedule(ScheduleCommand::List { prefix, after: None, count })
            }
            Self::ShowSchedule(name) => Command::Schedule(ScheduleCommand::Show(name)),
            Self::PauseSchedule(name) => Command::Schedule(ScheduleCommand::Pause(name)),
            Self::ResumeSchedule(name) => Command::Schedule(ScheduleCommand::Resume(name)),
            Self::DropSchedule(name) => Command::Schedule(ScheduleCommand::Drop(name)),
            Self::Fire(name) => Command::Schedule(ScheduleCommand::Fire(name)),
            Self::Exec(asks) => {
                let (mut run, mut made) = (Some(run), None);
                gather(asks, &[], &mut |command| made = run.take().map(|run| run(command)));
                return made;
            }
            _ => return None,
        };
        Some(run(&command))
    }
}

/// Calls `run` with the transaction of these steps and those of these requests.
fn gather(asks: &[Ask], steps: &[Step<'_>], run: &mut dyn FnMut(&Command<'_>)) {
    let Some((ask, others)) = asks.split_first() else {
        return run(&Command::Transaction(steps));
    };
    ask.with_command(|command| {
        let mut steps = steps.to_vec();
        steps.push(Step::Command(*command));
        gather(others, &steps, run);
    });
}

fn borrowed(texts: &[Text]) -> Vec<&[u8]> {
    texts.iter().map(Vec::as_slice).collect()
}

fn wait_of(ms: i64) -> Wait {
    match u64::try_from(ms) {
        Ok(ms) => Wait::For(Span::from_ms(ms)),
        Err(_) => Wait::Forever,
    }
}

fn mode_of(pop: bool, ttr: Option<u64>) -> TakeMode {
    if pop { TakeMode::Pop } else { TakeMode::Lease { ttr: ttr.map(Span::from_ms) } }
}

pub(super) fn assign<T>(value: Option<T>) -> Assign<T> {
    value.map_or(Assign::Keep, Assign::To)
}
