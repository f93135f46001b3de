//! How many bytes everything occupies, and whether there is room for more. The sums are computed
//! anew for each question.
//!
//! Payloads that the engine has left in the store count here as if they were in memory.

use std::collections::BTreeMap;

use pinpriq_proto::command::{Amendment, Assign};
use pinpriq_proto::limits::{
    LANE_OVERHEAD_BYTES, MEMBER_OVERHEAD_BYTES, ORIGIN_OVERHEAD_BYTES, QUEUE_OVERHEAD_BYTES,
    TASK_OVERHEAD_BYTES, UNIQUE_OVERHEAD_BYTES, WAIT_OVERHEAD_BYTES, given_id_bytes,
};
use pinpriq_proto::reply::RefusalKind;
use pinpriq_proto::room::Room;
use pinpriq_proto::settings::{Ids, Settings};
use pinpriq_proto::task::{Bytes, TaskId, TaskRecord};

use pinpriq_proto::shares::ShareRecord;
use pinpriq_proto::unique::WindowRecord;

use super::bonds::bytes_of_bonds;
use super::schedules::bytes_of;
use super::{Model, Place, is_placeholder};

/// The length of a UUID as text, which is the id of a task of a schedule where clients give ids.
const UUID_TEXT_BYTES: usize = 36;

/// Which copies share a publication.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// The bytes of each publication, by the number of its first copy.
    pub(super) publications: BTreeMap<u64, u64>,
    /// The publication of each copy that has no payload of its own, freed or not.
    pub(super) shares: BTreeMap<u64, u64>,
    /// The same for copies as they were popped last.
    popped: BTreeMap<u64, u64>,
    /// The payloads of publications that the engine handed out, as reported by the caller.
    handed_out: BTreeMap<u64, Bytes>,
}

impl Kept {
    pub(super) fn publish(&mut self, first: u64, copies: u64, content: u64) {
        if copies > 0 {
            self.publications.insert(first, content);
            self.shares.extend((first..first + copies).map(|number| (number, first)));
        }
    }

    /// Ends a copy's share in its publication.
    pub(super) fn part(&mut self, number: u64) {
        let Some(first) = self.shares.remove(&number) else { return };
        if self.sharers(first) == 0 {
            self.publications.remove(&first);
            self.handed_out.remove(&first);
        }
    }

    fn sharers(&self, first: u64) -> usize {
        self.shares.values().filter(|own| **own == first).count()
    }

    pub(super) fn pop(&mut self, number: u64) {
        match self.shares.get(&number) {
            Some(first) => self.popped.insert(number, *first),
            None => self.popped.remove(&number),
        };
    }

    /// Returns a popped copy, which shares its publication again if that still exists. The engine
    /// recognizes the copy by its payload. A caller that does not report payloads may put back only
    /// what was popped last.
    pub(super) fn put_back(&mut self, task: &TaskRecord) {
        let by_payload = self
            .handed_out
            .iter()
            .find(|(_, payload)| Bytes::ptr_eq(payload, &task.payload))
            .map(|(first, _)| *first);
        let by_number = self.popped.remove(&task.number).filter(|first| {
            self.publications.contains_key(first) && !self.handed_out.contains_key(first)
        });
        if let Some(first) = by_payload.or(by_number) {
            self.shares.insert(task.number, first);
        }
    }
}

/// What a task is to get in place of what it has.
#[derive(Clone, Copy)]
pub(super) struct New<'a> {
    pub(super) payload: Option<&'a [u8]>,
    /// The bytes of a reason.
    pub(super) reason: Option<usize>,
    pub(super) headers: Option<&'a [u8]>,
    pub(super) progress_text: Option<&'a [u8]>,
    pub(super) checkpoint: Option<&'a [u8]>,
    pub(super) result: Option<&'a [u8]>,
}

impl New<'_> {
    pub(super) const NOTHING: Self = Self {
        payload: None,
        reason: None,
        headers: None,
        progress_text: None,
        checkpoint: None,
        result: None,
    };
}

impl Model {
    /// Records the payload of a popped task as the engine handed it out. A caller that puts back
    /// anything but the last pop must report each pop.
    pub fn note_handed_out(&mut self, task: &TaskRecord) {
        if let Some(first) = self.kept.popped.get(&task.number)
            && self.kept.publications.contains_key(first)
        {
            self.kept.handed_out.insert(*first, task.payload.clone());
        }
    }

    /// The bytes that tasks, queues, members, lanes and schedules occupy.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let tasks = self.tasks().map(|task| TASK_OVERHEAD_BYTES + self.own_bytes(task));
        let emptied = self.emptied.iter().map(|gone| TASK_OVERHEAD_BYTES + gone.own_bytes);
        let published = self.kept.publications.values().copied();
        let members = self.members.values().map(|it| MEMBER_OVERHEAD_BYTES + it.name.len() as u64);
        let homes = self.homes.values().map(|home| {
            named_in(&home.settings)
                + match home.lane {
                    None => queue_bytes(&home.name),
                    Some(_) => LANE_OVERHEAD_BYTES + home.name.len() as u64,
                }
        });
        let schedules = self.schedules.values().map(bytes_of);
        let tasks = tasks.chain(emptied).chain(published);
        let windows = self.windows.values().map(WindowRecord::bytes);
        let shares = self.own_shares.values().map(ShareRecord::bytes);
        let limits = self.named_limits.values().map(|limit| limit.record.bytes());
        let batches = self.batches.values().map(|batch| batch.record.bytes());
        let details = windows.chain(shares).chain(limits).chain(batches);
        tasks.chain(members).chain(homes).chain(schedules).chain(details).sum()
    }

    /// The bytes that all blocked requests and subscriptions occupy.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        let takers = self.takers.iter().map(|taker| self.take_bytes(&taker.places));
        let subscriptions = self.subscriptions.iter();
        let subscriptions = subscriptions.map(|known| self.subscription_bytes(&known.place));
        let awaiters = self.awaiters.len() + self.batch_awaiters.len();
        let awaiters = std::iter::repeat_n(WAIT_OVERHEAD_BYTES, awaiters);
        let putters = self.putters.iter().map(crate::model::Putter::bytes);
        takers.chain(subscriptions).chain(awaiters).chain(putters).sum()
    }

    /// The bytes that a task occupies alone.
    pub(super) fn own_bytes(&self, task: &TaskRecord) -> u64 {
        let shares = self.kept.shares.contains_key(&task.number);
        let content = if shares { 0 } else { content_bytes(task, task.payload.len()) };
        content
            + bytes_of_bonds(task)
            + (self.id_bytes(task)
                + reason_of(task)
                + task.progress.cancelled().map_or(0, |cancelled| cancelled.reason.len())
                + text_of(task)
                + task.progress.told_bytes()
                + origin_of(task)
                + schedule_of(task)
                + unique_of(task)) as u64
    }

    /// The bytes that the id of a task occupies beside it.
    fn id_bytes(&self, task: &TaskRecord) -> usize {
        let place = || Place::Queue(task.queue.clone());
        match &task.id {
            TaskId::Given(id) => given_id_bytes(id.len()),
            // A slot or an import has put it, and the model learns the text of the id later.
            id if is_placeholder(id) && self.settings(&place()).ids == Ids::Given => {
                given_id_bytes(UUID_TEXT_BYTES)
            }
            _ => 0,
        }
    }

    /// Checks whether tasks and queues may occupy this many more bytes.
    pub(super) fn has_room(&self, bytes: u64) -> Result<(), RefusalKind> {
        let fits = self.bytes().saturating_add(bytes) <= self.limits.bytes_max;
        if fits && self.room == Room::Enough { Ok(()) } else { Err(RefusalKind::Busy) }
    }

    /// The bytes that a queue needs if it does not exist yet.
    pub(super) fn room_of_queue(&self, name: &[u8]) -> u64 {
        let is_there = self.homes.contains_key(&Place::Queue(name.into()));
        if is_there { 0 } else { queue_bytes(name) }
    }

    /// Checks whether a queue or lane may get these settings, or be paused if it gets none.
    pub(super) fn may_set(&self, place: &Place, new: Option<&Settings>) -> Result<(), RefusalKind> {
        let former = self.settings(place);
        let more = new.map_or(0, |new| named_in(new).saturating_sub(named_in(&former)));
        let of_queue = match place {
            Place::Queue(name) => self.room_of_queue(name),
            Place::Lane(_) => 0,
        };
        let needed = of_queue + more;
        if needed > 0 { self.has_room(needed) } else { Ok(()) }
    }

    /// Checks whether a task may get another payload, and another reason of this many bytes.
    pub(super) fn may_grow(
        &self,
        number: u64,
        payload: Option<&[u8]>,
        reason: Option<usize>,
    ) -> Result<(), RefusalKind> {
        self.may_change(number, New { payload, reason, ..New::NOTHING })
    }

    /// The same for all that a task can get. A copy of a publication gets a payload of its own with
    /// other headers.
    pub(super) fn may_change(&self, number: u64, new: New<'_>) -> Result<(), RefusalKind> {
        let New { payload, reason, headers, progress_text, checkpoint, result } = new;
        let task = self.task(number);
        let reason = reason.unwrap_or_else(|| reason_of(task));
        let shared = self.kept.shares.get(&number);
        let mut former = self.own_bytes(task);
        let mut current = former - reason_of(task) as u64 + reason as u64;
        if let Some(payload) = payload {
            current += content_bytes(task, payload.len());
            match shared {
                None => current -= content_bytes(task, task.payload.len()),
                // No other lane needs what it shared.
                Some(first) if self.kept.sharers(*first) == 1 => {
                    former += self.kept.publications[first];
                }
                Some(_) => {}
            }
        }
        if let Some(headers) = headers {
            former += task.terms.header_bytes().len() as u64;
            current += headers.len() as u64;
        }
        if let Some(text) = progress_text {
            former += text_of(task) as u64;
            current += text.len() as u64;
        }
        if let Some(checkpoint) = checkpoint {
            former += task.progress.checkpoint_bytes() as u64;
            current += checkpoint.len() as u64;
        }
        current += result.map_or(0, |result| result.len() as u64);
        if current > former { self.has_room(current - former) } else { Ok(()) }
    }

    /// Like `may_grow`, for a task that is to be brought back, unless its TTL is over by then.
    pub(super) fn may_return(
        &self,
        number: u64,
        amendment: &Amendment<'_>,
    ) -> Result<(), RefusalKind> {
        self.may_return_with(number, amendment, None)
    }

    /// The same with a checkpoint, which a task keeps as a dead letter too.
    pub(super) fn may_return_with(
        &self,
        number: u64,
        amendment: &Amendment<'_>,
        checkpoint: Option<&[u8]>,
    ) -> Result<(), RefusalKind> {
        let expires_at = match amendment.ttl {
            Assign::To(ttl) => ttl.map(|ttl| self.now.after(ttl)),
            Assign::Keep => self.task(number).progress.expires_at,
        };
        let is_over = expires_at.is_some_and(|at| at <= self.now);
        let payload = amendment.payload.filter(|_| !is_over);
        self.may_change(number, New { payload, checkpoint, ..New::NOTHING })
    }

    /// Gives a task a payload of its own.
    pub(super) fn give_payload(&mut self, number: u64, payload: &[u8]) {
        self.task_mut(number).payload = payload.into();
        self.kept.part(number);
    }

    /// Checks whether consumers may occupy this many more bytes.
    pub(super) fn has_waiting_room(&self, bytes: u64) -> Result<(), RefusalKind> {
        let fits = self.waiting_bytes().saturating_add(bytes) <= self.limits.waiting_bytes_max;
        if fits { Ok(()) } else { Err(RefusalKind::Busy) }
    }

    /// The bytes that a blocked take of these places occupies. Each place is named once.
    pub(super) fn take_bytes(&self, places: &[Place]) -> u64 {
        WAIT_OVERHEAD_BYTES + places.iter().map(|place| self.place_bytes(place)).sum::<u64>()
    }

    pub(super) fn subscription_bytes(&self, place: &Place) -> u64 {
        WAIT_OVERHEAD_BYTES + self.place_bytes(place)
    }

    fn place_bytes(&self, place: &Place) -> u64 {
        match place {
            Place::Queue(name) => queue_bytes(name),
            Place::Lane(_) => queue_bytes(&self.homes[place].name),
        }
    }
}

const fn queue_bytes(name: &[u8]) -> u64 {
    QUEUE_OVERHEAD_BYTES + name.len() as u64
}

/// The bytes of the key of a task and a payload of this length.
fn content_bytes(task: &TaskRecord, payload: usize) -> u64 {
    (payload + task.terms.bytes()) as u64
}

/// The length of the reason of a task.
fn reason_of(task: &TaskRecord) -> usize {
    task.progress.reason.as_ref().map_or(0, |reason| reason.len())
}

/// The length of what its holder has said about how far the work has come.
fn text_of(task: &TaskRecord) -> usize {
    task.progress.text().map_or(0, |text| text.len())
}

/// The length of the name of the schedule that has put a task.
fn schedule_of(task: &TaskRecord) -> usize {
    task.scheduled().map_or(0, |scheduled| scheduled.schedule.len())
}

/// The length of the names of the origin of a task.
fn origin_of(task: &TaskRecord) -> usize {
    let Some(origin) = task.origin() else { return 0 };
    let id = if let TaskId::Given(id) = &origin.id { id.len() } else { 0 };
    ORIGIN_OVERHEAD_BYTES + origin.queue.len() + id
}

/// The length of the key that makes a task unique.
fn unique_of(task: &TaskRecord) -> usize {
    task.unique().map_or(0, |key| key.len() + UNIQUE_OVERHEAD_BYTES)
}

/// The bytes of the names in settings.
fn named_in(settings: &Settings) -> u64 {
    let names = [&settings.dead_letter, &settings.uses];
    names.into_iter().flatten().map(|name| name.len() as u64).sum()
}
