//! Putting tasks, and putting popped ones back.

use pinpriq_engine::command::{Put, TimeToLive, Wait};
use pinpriq_engine::limits::{NAME_BYTES_MAX, TASK_OVERHEAD_BYTES, WAIT_OVERHEAD_BYTES};
use pinpriq_engine::reply::{Outcome, RefusalKind, Reply};
use pinpriq_engine::settings::{Ids, Settings};
use pinpriq_engine::task::{ClientId, RequestId, State, StateKind, TaskId, TaskRecord};
use pinpriq_engine::time::Timestamp;

use super::{Answer, Awaiter, Exit, Home, Model, fits, home_of, id_fits, is_in};

impl Model {
    pub(super) fn put(&mut self, client: ClientId, request: RequestId, put: &Put<'_>) -> Answer {
        let home = Home::of_queue(put.queue);
        let settings = self.settings(&home);
        let expires_at = self.put_fits(put, settings)?;
        if put.id.is_some_and(|id| self.find(&home, id).is_some()) {
            return Err(RefusalKind::Exists);
        }
        if self.is_full(&home) {
            return Err(RefusalKind::Full);
        }
        if self.paused(&home).input {
            return Err(RefusalKind::Paused);
        }
        let given = put.key.into_iter().chain(put.id).map(<[u8]>::len).sum::<usize>();
        let content = (put.payload.len() + given) as u64;
        self.has_room(self.room_of_queue(&home) + TASK_OVERHEAD_BYTES + content)?;
        let until = match put.wait {
            None | Some(Wait::No) => None,
            Some(Wait::For(span)) => (!span.is_zero()).then(|| Some(self.now.after(span))),
            Some(Wait::Forever) => Some(None),
        };
        if until.is_some() {
            self.may_wait(client, WAIT_OVERHEAD_BYTES)?;
        }

        self.last_number += 1;
        let number = self.last_number;
        let id = match put.id {
            Some(id) => TaskId::Given(id.into()),
            None => self.new_id(settings.ids, number),
        };
        let ready_at = self.now.after(put.delay);
        let state = if put.delay.is_zero() { State::Ready } else { State::Waiting { ready_at } };
        self.enter(TaskRecord {
            number,
            queue: put.queue.into(),
            lane: None,
            id: id.clone(),
            seq: number,
            priority: put.priority,
            key: put.key.map(Into::into),
            payload: put.payload.into(),
            away: None,
            put_at: self.now,
            expires_at,
            ttr: put.ttr,
            attempts: 0,
            state,
        });
        match (put.wait, until) {
            (None, _) => self.reply(client, request, Reply::Put(id)),
            (Some(_), None) => {
                self.reply(client, request, Reply::PutOutcome(id, Outcome::Timeout));
            }
            (Some(_), Some(until)) => {
                let turn = self.draw();
                let put = Some(id);
                self.awaiters.push(Awaiter { turn, client, request, number, until, put });
            }
        }
        if put.ttl == TimeToLive::Instant {
            self.end_instant(number);
        }
        Ok(None)
    }

    /// The id of a new task, which the engine drew where nobody can tell it.
    pub(super) fn new_id(&mut self, ids: Ids, number: u64) -> TaskId {
        if ids == Ids::Sequence {
            return TaskId::Number(number);
        }
        let id = self.drawn.remove(&number).expect("the engine drew an id");
        assert!(self.known_ids.insert(id.clone()), "the id {id} came twice");
        id
    }

    /// Whether a queue holds as many unfinished tasks as it may.
    pub(super) fn is_full(&self, home: &Home) -> bool {
        let unfinished = |task: &&TaskRecord| {
            !matches!(task.state, State::Zombie { .. } | State::Done) && is_in(task, home)
        };
        let present = self.tasks.iter().filter(unfinished).count() as u64;
        self.settings(home).capacity.is_some_and(|most| present >= most)
    }

    /// The instant of a task that lives for no longer is over.
    fn end_instant(&mut self, number: u64) {
        self.serve();
        let Some(at) = self.at(number) else { return };
        match self.tasks[at].state.kind() {
            StateKind::Ready => self.leave(at, Exit::Expired),
            StateKind::Taken => self.tasks[at].expires_at = Some(self.now),
            _ => {}
        }
    }

    /// The arguments of a put; answers when its TTL is over.
    fn put_fits(
        &self,
        put: &Put<'_>,
        settings: Settings,
    ) -> Result<Option<Timestamp>, RefusalKind> {
        let key_fits = put.key.is_none_or(|key| key.len() <= NAME_BYTES_MAX);
        fits(key_fits)?;
        self.payload_fits(Some(put.payload))?;
        self.span_fits(put.ttr, false)?;
        self.span_fits(Some(put.delay), true)?;
        if let Some(Wait::For(wait)) = put.wait {
            self.span_fits(Some(wait), true)?;
        }
        let delays = !put.delay.is_zero();
        fits(!(delays && (put.wait.is_some() || put.ttl == TimeToLive::Instant)))?;
        match (settings.ids, put.id) {
            (Ids::Given, None) => return Err(RefusalKind::IdRequired),
            (Ids::Given, Some(id)) => id_fits(id)?,
            (_, Some(_)) => return Err(RefusalKind::BadArgument),
            (_, None) => {}
        }
        let ttl = match put.ttl {
            TimeToLive::Default => settings.ttl,
            TimeToLive::For(ttl) => Some(ttl),
            TimeToLive::Endless | TimeToLive::Instant => None,
        };
        self.ttl_fits(ttl, put.delay)?;
        Ok(ttl.map(|ttl| self.now.after(ttl)))
    }

    pub(super) fn put_back(&mut self, records: &[TaskRecord]) -> Reply {
        let mut count = 0;
        for record in records {
            let home = home_of(record);
            if home.lane.is_some() && !self.is_lane(&home) {
                continue;
            }
            if let Some(at) = self.at(record.number) {
                // It was kept after the pop. If somebody brought it back since, it stays.
                if matches!(self.tasks[at].state, State::Zombie { .. } | State::Done) {
                    self.shift(at, State::Ready);
                    self.expire_if_over(at);
                    count += 1;
                }
                continue;
            }
            self.tell_emptied(|number| number == record.number);
            let ids = self.settings(&home).ids;
            let fits = match (ids, &record.id) {
                (Ids::Sequence, id) => *id == TaskId::Number(record.number),
                (Ids::Time64, TaskId::Number(_))
                | (Ids::Uuid, TaskId::Uuid(_))
                | (Ids::Given, TaskId::Given(_)) => true,
                _ => false,
            };
            let is_same = |task: &TaskRecord| is_in(task, &home) && task.id == record.id;
            if !fits || self.tasks.iter().any(is_same) {
                continue;
            }
            self.bring_in_again(TaskRecord { state: State::Ready, ..record.clone() });
            count += 1;
        }
        Reply::Count(count)
    }

    /// X to R, by which a task no longer counts as acknowledged.
    fn bring_in_again(&mut self, record: TaskRecord) {
        let queue = self.queues.entry(home_of(&record)).or_default();
        for tally in [&mut queue.tally, &mut self.totals] {
            // The figures of the queue may have begun anew since.
            if tally.acked > 0 {
                tally.acked -= 1;
            } else {
                tally.put += 1;
            }
            tally.note(None, Some(StateKind::Ready));
        }
        self.kept.put_back(&record);
        self.tasks.push(record);
        self.expire_if_over(self.tasks.len() - 1);
    }

    fn expire_if_over(&mut self, at: usize) {
        if self.is_over(at) {
            self.leave(at, Exit::Expired);
        }
    }
}
