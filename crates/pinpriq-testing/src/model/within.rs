//! Commands that keep within names. Which names a user has is not decided here.

use pinpriq_proto::command::{BatchCommand, Bulk, BulkChange, Command, QueueCommand, QueueName};
use pinpriq_proto::export::Import;
use pinpriq_proto::fanout::MemberCommand;
use pinpriq_proto::limits::{NAME_BYTES_MAX, WITHIN_NAMES_MAX};
use pinpriq_proto::looking::Leases;
use pinpriq_proto::named_limits::LimitCommand;
use pinpriq_proto::names::{NamePattern, NamesPage};
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::schedule::ScheduleCommand;
use pinpriq_proto::task::{Bytes, ClientId, StateKind};

use super::{Answer, Model, Place, fits};

/// Whether one of the names is meant.
pub(super) fn match_one(names: &[NamePattern<'_>], name: &[u8]) -> bool {
    names.iter().any(|pattern| match pattern {
        NamePattern { bytes, is_prefix: true } => name.starts_with(bytes),
        NamePattern { bytes, is_prefix: false } => name == *bytes,
    })
}

/// A page of names. Of each it is said which queue or limit has to be one of those to keep within.
pub(super) fn page_of<'n>(
    names: impl Iterator<Item = (&'n Bytes, &'n Bytes)>,
    NamesPage { prefix, count, after }: NamesPage<'_>,
    within: Option<&[NamePattern<'_>]>,
) -> Reply {
    let mut names: Vec<_> = names
        .filter(|(_, kept)| within.is_none_or(|within| match_one(within, kept)))
        .map(|(name, _)| name.clone())
        .filter(|name| name.starts_with(prefix))
        .filter(|name| after.is_none_or(|after| **name > *after))
        .collect();
    names.sort();
    let more = names.len() > count;
    names.truncate(count);
    Reply::Names { names, more }
}

fn permitted(is_permitted: bool) -> Result<(), RefusalKind> {
    if is_permitted { Ok(()) } else { Err(RefusalKind::NoPerm) }
}

impl Model {
    pub(super) fn within(
        &mut self,
        client: ClientId,
        names: &[NamePattern<'_>],
        command: &Command<'_>,
    ) -> Answer {
        fits(match command {
            Command::Leases(Leases { queue: None, .. })
            | Command::Queue(QueueCommand::List { .. } | QueueCommand::Stats(None))
            | Command::Member(
                MemberCommand::Join { .. } | MemberCommand::Beat { .. } | MemberCommand::Leave(_),
            )
            | Command::Schedule(_)
            | Command::Limit(LimitCommand::List { .. })
            | Command::Batch(BatchCommand::List { .. })
            | Command::Import(Import::Schedule(_))
            | Command::Numbered { .. }
            | Command::Tubes(None)
            | Command::Redrive { .. }
            | Command::Bulk(Bulk { change: BulkChange::Redrive, .. }) => {
                names.len() <= WITHIN_NAMES_MAX
            }
            _ => false,
        })?;
        self.room_suffices(command)?;
        match command {
            Command::Leases(leases) => self.leases(leases, Some(names)),
            Command::Numbered { number, deed } => {
                self.numbered(client, *number, *deed, Some(names))
            }
            Command::Tubes(queue) => self.tubes(*queue, Some(names)),
            Command::Queue(QueueCommand::List(page)) => {
                Ok(Some(self.list_queues(*page, Some(names))))
            }
            Command::Queue(_) => {
                Ok(Some(Reply::Figures(Box::new(self.total_figures(Some(names))))))
            }
            Command::Schedule(ScheduleCommand::List(page)) => {
                Ok(Some(self.list_schedules(*page, Some(names))))
            }
            Command::Limit(LimitCommand::List(page)) => {
                Ok(Some(self.list_limits(*page, Some(names))))
            }
            Command::Batch(BatchCommand::List(page)) => {
                Ok(Some(self.list_batches(*page, Some(names))))
            }
            Command::Schedule(command) => {
                self.schedule_is_within(names, command)?;
                self.keep_schedules(command)
            }
            Command::Import(import @ Import::Schedule(schedule)) => {
                fits(import.queue().len() <= NAME_BYTES_MAX)?;
                self.name_is_within(names, &schedule.name, true)?;
                self.import(import)
            }
            Command::Member(command) => {
                self.member_is_within(names, command)?;
                self.tend(command)
            }
            Command::Redrive { queue, count } => {
                self.origins_are_within(names, *queue, *count)?;
                self.redrive(*queue, *count)
            }
            Command::Bulk(bulk) => self.bulk(bulk, Some(names)),
            _ => Err(RefusalKind::BadArgument),
        }
    }

    fn schedule_is_within(
        &self,
        names: &[NamePattern<'_>],
        command: &ScheduleCommand<'_>,
    ) -> Result<(), RefusalKind> {
        let (name, makes) = match *command {
            ScheduleCommand::Set(ref new) => {
                fits(new.queue.len() <= NAME_BYTES_MAX && new.name.len() <= NAME_BYTES_MAX)?;
                self.schedule_fits(new)?;
                (new.name, true)
            }
            ScheduleCommand::Show(name)
            | ScheduleCommand::Pause(name)
            | ScheduleCommand::Resume(name)
            | ScheduleCommand::Drop(name)
            | ScheduleCommand::Fire(name) => (name, false),
            ScheduleCommand::List(_) => return Ok(()),
        };
        self.name_is_within(names, name, makes)
    }

    fn name_is_within(
        &self,
        names: &[NamePattern<'_>],
        name: &[u8],
        makes: bool,
    ) -> Result<(), RefusalKind> {
        fits(name.len() <= NAME_BYTES_MAX)?;
        let known = self.schedules.values().find(|known| *known.name == *name);
        permitted(known.map_or(makes, |known| match_one(names, &known.plan.queue)))
    }

    fn member_is_within(
        &self,
        names: &[NamePattern<'_>],
        command: &MemberCommand<'_>,
    ) -> Result<(), RefusalKind> {
        let member = match *command {
            MemberCommand::Beat { member, lease } => {
                fits(member.len() <= NAME_BYTES_MAX)?;
                self.span_fits(lease, false)?;
                member
            }
            MemberCommand::Join { topic, member, lease } => {
                fits(topic.len() <= NAME_BYTES_MAX && member.len() <= NAME_BYTES_MAX)?;
                self.span_fits(lease, false)?;
                member
            }
            MemberCommand::Leave(member) => member,
            _ => return Err(RefusalKind::BadArgument),
        };
        let Some(incarnation) = self.alive(member) else { return Ok(()) };
        let lanes = self
            .homes
            .values()
            .filter(|home| home.lane.as_ref().is_some_and(|lane| lane.incarnation == incarnation));
        permitted(lanes.into_iter().all(|home| match_one(names, &home.name)))
    }

    /// The first dead letters must all come from queues that match, whether or not all of them will
    /// find room there.
    fn origins_are_within(
        &self,
        names: &[NamePattern<'_>],
        queue: QueueName<'_>,
        count: u32,
    ) -> Result<(), RefusalKind> {
        let from = self.place_of_moved(queue, count)?;
        let letters = self.oldest(&from, StateKind::Ready).into_iter();
        let origins = letters.filter_map(|number| self.task(number).origin());
        let mut elsewhere = origins
            .map(|origin| &origin.queue)
            .filter(|origin| Place::Queue((*origin).clone()) != from);
        permitted(elsewhere.by_ref().take(count as usize).all(|it| match_one(names, it)))
    }
}
