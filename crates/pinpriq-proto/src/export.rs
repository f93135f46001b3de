//! Carrying queues to other servers: what a queue is made of, as it leaves one server and enters
//! another. How it is written down in between belongs to the doors.

use crate::change::ScheduleRecord;
use crate::facts::{Anywhere, Called, Destination, Subject};
use crate::limits::PAGE_DEFAULT;
use crate::rights::{Need, Right};
use crate::settings::{Assignment, Paused, Settings, destination_of, each_need_of};
use crate::shares::ShareRecord;
use crate::task::{Bytes, TaskRecord};
use crate::time::Timestamp;
use crate::unique::WindowRecord;

/// See [`Command::Export`](crate::command::Command::Export).
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct Export<'a> {
    /// The queue.
    #[key]
    pub queue: &'a [u8],
    /// Where the page begins.
    #[option(CURSOR, with = cursors::export)]
    pub after: ExportPlace<&'a [u8]>,
    /// The most records to return, at most [`LOOKED_MAX`](crate::limits::LOOKED_MAX).
    #[option(default = PAGE_DEFAULT)]
    pub count: u32,
}

/// A place in an export: first what was decided about the queue, then the rules of its shares by
/// name, then its tasks by seq, then the windows that have outlived their tasks by key, then its
/// schedules by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub enum ExportPlace<B = Bytes> {
    /// Before everything.
    #[default]
    #[letter(1)]
    Start,
    /// After the task of this seq. 0 is before the first.
    #[letter(2)]
    Task(u64),
    /// After the window of this key. The empty key is before the first.
    #[letter(3)]
    Window(B),
    /// After the schedule of this number. 0 is before the first.
    #[letter(4)]
    Schedule(u64),
    /// After the rules of this share.
    #[letter(5)]
    Share(B),
}

/// A page of an export.
#[derive(Clone, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub struct Exported {
    /// What was decided about the queue, if anything was.
    #[letter(1)]
    pub queue: Option<Box<QueueExported>>,
    /// Its tasks, by seq.
    #[letter(2)]
    pub tasks: Vec<TaskRecord>,
    /// The ends of the windows of those tasks that have one, by number.
    #[letter(3)]
    pub ends: Vec<(u64, Timestamp)>,
    /// The windows that have outlived their tasks, by key.
    #[letter(4)]
    pub windows: Vec<WindowRecord>,
    /// The schedules that put tasks into the queue, by number.
    #[letter(5)]
    pub schedules: Vec<ScheduleRecord>,
    /// Where the next page begins; `None` after the last.
    #[letter(6)]
    pub next: Option<ExportPlace>,
    /// The rules of its shares, by name.
    #[letter(7)]
    pub shares: Vec<ShareRecord>,
}

/// What was decided about a queue.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct QueueExported {
    /// Its name.
    pub name: Bytes,
    /// Its settings, unless only its pause keeps it in being.
    #[letter(1)]
    pub settings: Option<Settings>,
    /// Its pause.
    #[letter(2)]
    pub paused: Paused,
}

/// One record of an export, for another server. Its parts keep what they have been through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum Import<'a> {
    /// Settings and pause of a queue. They replace all that the queue had.
    #[letter(1)]
    Queue {
        /// The queue.
        queue: &'a [u8],
        /// The settings that differ from the defaults. If missing, the queue keeps its settings.
        #[letter(1)]
        settings: Option<&'a [Assignment<'a>]>,
        /// The pause.
        #[letter(2)]
        paused: Paused,
    },
    /// A task. It gets another number, and another seq. Where ids are given it keeps its id, of
    /// which only the text counts; an empty one stands for none. Elsewhere it gets another one. A
    /// taken task comes in as a ready one, and one that was put later than now was put now.
    #[letter(2)]
    Task {
        /// The task.
        task: &'a TaskRecord,
        /// The end of the window of its unique key.
        #[letter(1)]
        until: Option<Timestamp>,
    },
    /// A window that has outlived its task. It gets another number.
    #[letter(3)]
    Window(&'a WindowRecord),
    /// A schedule. It gets another number. Slots that have passed since are those of a time
    /// without a server.
    #[letter(4)]
    Schedule(&'a ScheduleRecord),
    /// The rules of a share. They replace those that it had, and get another number.
    #[letter(5)]
    Share(&'a ShareRecord),
}

impl<'a> Import<'a> {
    /// A schedule of this name may belong to another queue so far.
    pub(crate) fn each_need(&self, tell: &mut dyn FnMut(Need<'a>)) {
        match *self {
            Self::Queue { queue, settings, .. } => {
                each_need_of(queue, settings.unwrap_or_default(), tell);
            }
            Self::Schedule(schedule) => {
                let queue: &[u8] = &schedule.plan.queue;
                queue.each(Right::Manage, tell);
                queue.each(Right::Put, tell);
                Anywhere.each(Right::Manage, tell);
            }
            Self::Task { task, .. } => {
                self.queue().each(Right::Manage, tell);
                if let Some(batch) = task.batch() {
                    (&**batch).each(Right::Put, tell);
                }
                for name in task.names_after() {
                    (&**name).each(Right::Look, tell);
                }
            }
            Self::Window(_) | Self::Share(_) => self.queue().each(Right::Manage, tell),
        }
    }

    /// What is imported lives where it would if it had been made here.
    pub(crate) fn destination(&self) -> Destination<'a> {
        match *self {
            Self::Queue { queue, settings: Some(settings), .. } => destination_of(queue, settings),
            Self::Schedule(schedule) => Destination::Schedule(&schedule.name, &schedule.plan.queue),
            Self::Task { task, .. } => Destination::Record {
                queue: &task.queue,
                batch: task.batch().map(|batch| &**batch),
                after: task.names_after(),
            },
            _ => self.queue().into(),
        }
    }

    pub(crate) fn names(&self) -> (Option<Called<'a>>, &'a [u8]) {
        let schedule = match *self {
            Self::Schedule(schedule) => Some(Called("name of a schedule", &schedule.name)),
            _ => None,
        };
        (schedule, self.queue())
    }

    /// Returns the queue of which it replaces the settings, if it does.
    pub(crate) const fn changed_queue(&self) -> Option<&'a [u8]> {
        match *self {
            Self::Queue { queue, .. } => Some(queue),
            _ => None,
        }
    }

    /// The queue that it belongs to.
    #[must_use]
    pub fn queue(&self) -> &'a [u8] {
        match *self {
            Self::Queue { queue, .. } => queue,
            Self::Task { task, .. } => &task.queue,
            Self::Window(window) => &window.queue,
            Self::Schedule(schedule) => &schedule.plan.queue,
            Self::Share(share) => &share.queue,
        }
    }
}

impl Exported {
    /// The number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        let Self { queue, tasks, ends: _, windows, schedules, next: _, shares } = self;
        let decided = usize::from(queue.is_some()) + shares.len();
        decided + tasks.len() + windows.len() + schedules.len()
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The end of the window of the task of this number.
    #[must_use]
    pub fn end_of(&self, number: u64) -> Option<Timestamp> {
        let known = self.ends.iter().find(|(of, _)| *of == number);
        known.map(|(_, until)| *until)
    }
}

impl ExportPlace<&[u8]> {
    /// The same place with owned bytes.
    #[must_use]
    pub fn kept(self) -> ExportPlace {
        match self {
            Self::Start => ExportPlace::Start,
            Self::Task(seq) => ExportPlace::Task(seq),
            Self::Window(key) => ExportPlace::Window(key.into()),
            Self::Schedule(number) => ExportPlace::Schedule(number),
            Self::Share(share) => ExportPlace::Share(share.into()),
        }
    }
}

impl ExportPlace {
    /// The same place with borrowed bytes.
    #[must_use]
    pub fn borrowed(&self) -> ExportPlace<&[u8]> {
        match self {
            Self::Start => ExportPlace::Start,
            Self::Task(seq) => ExportPlace::Task(*seq),
            Self::Window(key) => ExportPlace::Window(key),
            Self::Schedule(number) => ExportPlace::Schedule(*number),
            Self::Share(share) => ExportPlace::Share(share),
        }
    }
}
