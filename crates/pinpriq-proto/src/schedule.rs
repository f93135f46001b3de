//! Schedules: what they are made of, the commands on them, and who computes their slots.
//!
//! A slot is a moment of the server's time line at which a schedule puts a task. The engine decides
//! what happens at a slot. Which moments are slots is computed by [`Calendars`], which the engine
//! is given: apart from a fixed distance it knows no calendar.

use std::fmt::Debug;

use crate::facts::{Anywhere, Called, Destination, Joining};
use crate::names::NamesPage;
use crate::task::{Bytes, GivenTerms, TaskId, Terms};
use crate::time::{Span, Timestamp};

/// The shortest time between the slots of [`Recurrence::Every`].
pub const EVERY_MIN: Span = Span::from_ms(100);

/// The most slots of the time while the server was down that one schedule makes up.
pub const MADE_UP_MAX: usize = 1_000;

/// When a schedule is due. [`Calendars`] know what it means.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum Recurrence {
    /// At a moment, and again after each time of this length.
    #[letter(0, closed)]
    Every {
        /// The time from one slot to the next.
        every: Span,
        /// The first slot.
        anchor: Timestamp,
    },
    /// As a cron expression says.
    #[letter(1, closed)]
    Cron {
        /// The expression, as it was given.
        expression: Bytes,
        /// The name of the time zone, unless none was given.
        zone: Option<Bytes>,
    },
}

/// Computes slots. It must be deterministic, and must read no clock and no file: after a restart
/// the same recurrence has to have the same slots.
pub trait Calendars: Debug + Send + Sync {
    /// Returns the first slot after a moment, or `None` if there is none.
    fn next_after(&self, recurrence: &Recurrence, moment: Timestamp) -> Option<Timestamp>;

    /// Returns how many slots come after `from`, and not after `to`.
    fn count_between(&self, recurrence: &Recurrence, from: Timestamp, to: Timestamp) -> u64;

    /// Returns the latest slots after `from` and not after `to`, at most `most` of them, in rising
    /// order.
    fn latest_between(
        &self,
        recurrence: &Recurrence,
        from: Timestamp,
        to: Timestamp,
        most: usize,
    ) -> Vec<Timestamp>;

    /// Returns the moment by which slots of this recurrence go at this moment of the engine. It
    /// differs if the engine's time is ahead of the wall clock and the recurrence is about the wall
    /// clock. It never falls while the engine's moments rise.
    fn slot_time(&self, _recurrence: &Recurrence, moment: Timestamp) -> Timestamp {
        moment
    }

    /// Returns the first moment of the engine at which this slot has come: see
    /// [`Calendars::slot_time`].
    fn moment_of(&self, _recurrence: &Recurrence, slot: Timestamp) -> Timestamp {
        slot
    }
}

/// Knows [`Recurrence::Every`] only. A cron expression has no slots here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EveryOnly;

worded! {
    /// What is done about slots of the time while the server was down.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
    pub enum OnMissed {
        /// One task is put, for the last of them.
        #[default]
        One = 0 => "one",
        /// A task is put for each of the latest [`MADE_UP_MAX`].
        All = 1 => "all",
        /// Nothing.
        None = 2 => "none",
    }

    /// The stable word for programs.
    fn word -> &'static str
}

worded! {
    /// What is done at a slot while the task of the slot before is not finished.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
    pub enum Overlap {
        /// A task is still put.
        #[default]
        Allow = 0 => "allow",
        /// The slot is skipped.
        Skip = 1 => "skip",
    }

    /// The stable word for programs.
    fn word -> &'static str
}

/// What a client has decided about a schedule.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
#[letter(closed)]
pub struct Plan {
    /// The queue that gets the tasks.
    pub queue: Bytes,
    /// The key and TTR of each task.
    pub terms: Terms,
    /// The priority of each task.
    pub priority: Option<i64>,
    /// The TTL of each task. Without it, that of the queue at the moment of the put.
    pub ttl: Option<Span>,
    /// When it is due.
    pub form: Recurrence,
    /// What is done about slots of the time while the server was down.
    pub on_missed: OnMissed,
    /// What is done while the task of the slot before is not finished.
    pub overlap: Overlap,
    /// What each task carries.
    pub payload: Bytes,
}

/// How far a schedule has come.
#[derive(Clone, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
#[letter(closed)]
pub struct Course {
    /// Every slot up to this moment, which is one of [slots](Calendars::slot_time), is done: it has
    /// put its task or was missed. While the schedule
    /// is paused, this is the moment at which its slots ceased to count.
    pub done_until: Timestamp,
    /// Whether it is paused.
    pub paused: bool,
    /// The number of tasks that it has put.
    pub fired: u64,
    /// The number of slots that have put no task.
    pub missed: u64,
    /// The id of the last task that it has put.
    pub last_id: Option<TaskId>,
    /// The last slot that has put a task.
    pub last_slot: Option<Timestamp>,
    /// The number of the task of that slot, or 0.
    pub last_number: u64,
}

/// Where a task comes from that a schedule has put.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
#[letter(closed)]
pub struct Scheduled {
    /// The name of the schedule.
    pub schedule: Bytes,
    /// The slot, unless the schedule was fired by hand.
    pub slot: Option<Timestamp>,
}

/// The commands on schedules. The name of each schedule is unique.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Command, pinpriq_derive::Letter)]
pub enum ScheduleCommand<'a> {
    /// Creates a schedule, or replaces its plan. The reply is the next slot.
    #[command(
        needs(manage = it.queue, put = it.queue, manage = Anywhere),
        shard = Destination::Schedule(it.name, it.queue),
        names = (it.queue, Called("name of a schedule", it.name)), disk = Refused, change,
        within, audit = it.name, care = LongWork
    )]
    #[letter(1)]
    #[request(
        Spec::new("SCHEDULE", Group::Schedules,
            "Puts a task into a queue again and again, or changes when and which",
            "the next slot in Unix milliseconds")
        .sub("SET")
        .options(&[
            options::EVERY, options::AT_SLOT, options::CRON, options::ZONE, options::KEY,
            options::PRIORITY, options::TTL, options::TTR, options::MISSED, options::OVERLAP,
            options::SHARE, options::COST, options::HEADERS, options::ATTEMPTS,
            options::BACKOFF, options::BACKOFFMAX,
        ])
    )]
    Set(NewSchedule<'a>),
    /// Shows a schedule.
    #[command(
        needs(look = Anywhere), shard = it, names = Called("name of a schedule", it),
        disk = Served, within, care = LongReply
    )]
    #[letter(2)]
    #[request(
        Spec::new("SCHEDULE", Group::Schedules,
            "Tells what a schedule does and what it has done",
            "a map")
        .sub("SHOW")
    )]
    Show(#[key("schedule")] &'a [u8]),
    /// Lists the names of schedules, in order.
    #[command(
        needs(look = Anywhere), shard = Destination::Everywhere(Joining::Names(it.count)),
        names = (), disk = Served, within, care = LongReply
    )]
    #[letter(3)]
    #[request(
        Spec::new("SCHEDULE", Group::Schedules,
            "Tells the names of the schedules, page by page",
            "the cursor of the next page (0 after the last) and the names in order")
        .sub("LIST")
    )]
    List(NamesPage<'a>),
    /// From now on slots put no tasks.
    #[command(
        needs(manage = Anywhere), shard = it, names = Called("name of a schedule", it),
        disk = Refused, change, within, audit = it, care = LongWork
    )]
    #[letter(4)]
    #[request(
        Spec::new("SCHEDULE", Group::Schedules,
            "Lets slots pass without a task",
            "OK")
        .sub("PAUSE")
        .http(Form::Nothing)
    )]
    Pause(#[key("schedule")] &'a [u8]),
    /// From now on slots put tasks again.
    #[command(
        needs(manage = Anywhere), shard = it, names = Called("name of a schedule", it),
        disk = Refused, change, within, audit = it, care = LongWork
    )]
    #[letter(5)]
    #[request(
        Spec::new("SCHEDULE", Group::Schedules,
            "Ends a pause of a schedule",
            "OK")
        .sub("RESUME")
        .http(Form::Nothing)
    )]
    Resume(#[key("schedule")] &'a [u8]),
    /// Removes a schedule. Its tasks stay. The reply is the number of schedules removed.
    #[command(
        needs(manage = Anywhere), shard = it, names = Called("name of a schedule", it),
        disk = Served, change, within, audit = it, care = LongWork
    )]
    #[letter(6)]
    #[request(
        Spec::new("SCHEDULE", Group::Schedules,
            "Removes a schedule; its tasks stay",
            "1, or 0 if there is none")
        .sub("DROP")
    )]
    Drop(#[key("schedule")] &'a [u8]),
    /// Puts a task now, also while the schedule is paused. The reply is its id.
    #[command(
        needs(manage = Anywhere), shard = it, names = Called("name of a schedule", it),
        disk = Refused, change, within, audit = it, care = LongWork
    )]
    #[letter(7)]
    #[request(
        Spec::new("SCHEDULE", Group::Schedules,
            "Puts a task of a schedule now, also while it is paused",
            "the id")
        .sub("FIRE")
        .http(Form::Fired)
    )]
    Fire(#[key("schedule")] &'a [u8]),
}

/// See [`ScheduleCommand::Set`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct NewSchedule<'a> {
    /// The name of the schedule.
    #[key("schedule")]
    pub name: &'a [u8],
    /// See [`Plan::queue`].
    #[key]
    pub queue: &'a [u8],
    /// See [`Plan::payload`].
    #[word]
    pub payload: &'a [u8],
    /// See [`Plan::terms`].
    #[letter(1)]
    #[flat]
    pub terms: GivenTerms<'a>,
    /// See [`Plan::priority`].
    #[letter(2, default = Some(0))]
    #[option(default = Some(0))]
    pub priority: Option<i64>,
    /// See [`Plan::ttl`].
    #[letter(3)]
    #[option]
    pub ttl: Option<Span>,
    /// When it is due.
    #[flat]
    pub when: When<'a>,
    /// See [`Plan::on_missed`].
    #[letter(4)]
    #[option(MISSED, default = OnMissed::One)]
    pub on_missed: OnMissed,
    /// See [`Plan::overlap`].
    #[letter(5)]
    #[option(default = Overlap::Allow)]
    pub overlap: Overlap,
}

/// When a new schedule is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum When<'a> {
    /// Again after each time of this length.
    #[letter(1)]
    Every {
        /// The time from one slot to the next, at least [`EVERY_MIN`].
        every: Span,
        /// Any slot. Without it, the first slot is `every` after now.
        #[letter(1)]
        at: Option<Timestamp>,
    },
    /// As a cron expression says.
    #[letter(2)]
    Cron {
        /// The expression.
        expression: &'a [u8],
        /// The name of the time zone.
        #[letter(1)]
        zone: Option<&'a [u8]>,
    },
}

/// The reply to [`ScheduleCommand::Show`].
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct ShownSchedule {
    /// Its name.
    pub name: Bytes,
    /// What was decided about it.
    pub plan: Plan,
    /// How far it has come. The slots that have passed while it is paused count as missed.
    pub course: Course,
    /// The next slot, if there is one.
    #[letter(1)]
    pub next_at: Option<Timestamp>,
}

impl Plan {
    /// The number of bytes that clients have supplied.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let form = match &self.form {
            Recurrence::Every { .. } => 0,
            Recurrence::Cron { expression, zone } => {
                expression.len() + zone.as_ref().map_or(0, |zone| zone.len())
            }
        };
        self.queue.len() + self.payload.len() + self.terms.bytes() + form
    }
}

impl OnMissed {
    /// The most slots that are made up.
    #[must_use]
    pub const fn made_up(self) -> usize {
        match self {
            Self::One => 1,
            Self::All => MADE_UP_MAX,
            Self::None => 0,
        }
    }
}

impl Calendars for EveryOnly {
    fn next_after(&self, recurrence: &Recurrence, moment: Timestamp) -> Option<Timestamp> {
        let Recurrence::Every { every, anchor } = recurrence else { return None };
        let passed = slots_until(*every, *anchor, moment);
        let ms = passed.checked_mul(every.ms())?.checked_add(anchor.ms())?;
        (ms <= Timestamp::MAX.ms()).then(|| Timestamp::from_ms(ms))
    }

    fn count_between(&self, recurrence: &Recurrence, from: Timestamp, to: Timestamp) -> u64 {
        let Recurrence::Every { every, anchor } = recurrence else { return 0 };
        let until = |moment| slots_until(*every, *anchor, moment);
        until(to).saturating_sub(until(from))
    }

    fn latest_between(
        &self,
        recurrence: &Recurrence,
        from: Timestamp,
        to: Timestamp,
        most: usize,
    ) -> Vec<Timestamp> {
        let Recurrence::Every { every, anchor } = recurrence else { return Vec::new() };
        let count = self.count_between(recurrence, from, to).min(most as u64);
        let last = slots_until(*every, *anchor, to);
        let slots = (last - count..last).map(|index| anchor.ms() + index * every.ms());
        slots.map(Timestamp::from_ms).collect()
    }
}

/// The number of slots that are not after a moment.
fn slots_until(every: Span, anchor: Timestamp, moment: Timestamp) -> u64 {
    if moment < anchor { 0 } else { moment.since(anchor).ms() / every.ms().max(1) + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    fn every(ms: u64, anchor: u64) -> Recurrence {
        Recurrence::Every { every: Span::from_ms(ms), anchor: at(anchor) }
    }

    #[test]
    fn slots_of_a_distance_lie_on_its_anchor() {
        let recurrence = every(100, 1_050);
        for (moment, next) in [(0, 1_050), (1_049, 1_050), (1_050, 1_150), (1_149, 1_150)] {
            assert_eq!(EveryOnly.next_after(&recurrence, at(moment)), Some(at(next)), "{moment}");
        }
        assert_eq!(EveryOnly.count_between(&recurrence, at(0), at(1_249)), 2);
        assert_eq!(EveryOnly.count_between(&recurrence, at(1_050), at(1_250)), 2);
        assert_eq!(
            EveryOnly.latest_between(&recurrence, at(0), at(1_250), 2),
            [at(1_150), at(1_250)]
        );
        assert_eq!(EveryOnly.latest_between(&recurrence, at(1_150), at(1_250), 9), [at(1_250)]);
        assert_eq!(EveryOnly.latest_between(&recurrence, at(0), at(1_250), 0), []);
    }

    #[test]
    fn slots_end_with_time() {
        let last = every(100, Timestamp::MAX.ms());
        assert_eq!(EveryOnly.next_after(&last, at(0)), Some(Timestamp::MAX));
        assert_eq!(EveryOnly.next_after(&last, Timestamp::MAX), None);
        let far = Recurrence::Every { every: Span::MAX, anchor: at(1) };
        assert_eq!(EveryOnly.next_after(&far, at(1)), None);
    }
}
