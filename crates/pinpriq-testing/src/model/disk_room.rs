//! Which commands are refused, and who blocks, while the disk is nearly full. The caller reports
//! how full it is.

use pinpriq_proto::command::{
    BatchCommand, Command, Deed, QueueCommand, Share, TakeMode, Touch, Transfer,
};
use pinpriq_proto::export::Import;
use pinpriq_proto::fanout::MemberCommand;
use pinpriq_proto::limits::NAME_BYTES_MAX;
use pinpriq_proto::named_limits::LimitCommand;
use pinpriq_proto::reply::RefusalKind;
use pinpriq_proto::room::Room;
use pinpriq_proto::schedule::ScheduleCommand;
use pinpriq_proto::time::Span;

use super::{Model, fits};

impl Model {
    /// Sets the room that the store has. Consumers that block for a lease may be served again.
    pub fn set_room(&mut self, room: Room) {
        let former = std::mem::replace(&mut self.room, room);
        if former == Room::Least && room != Room::Least {
            self.serve();
        }
    }

    pub(super) fn hands_out(&self, mode: TakeMode) -> bool {
        mode == TakeMode::Pop || self.room != Room::Least
    }

    /// A lease of a member that differs from the one that is written down.
    pub(super) fn new_lease_fits(
        &self,
        known: Span,
        lease: Option<Span>,
    ) -> Result<(), RefusalKind> {
        let is_new = lease.is_some_and(|lease| lease != known);
        if is_new && self.room >= Room::Scarce { Err(RefusalKind::Busy) } else { Ok(()) }
    }

    /// Whether there is room for what is done with a task by its number.
    fn deed_fits(&self, deed: Deed) -> Result<(), RefusalKind> {
        match deed {
            Deed::Read | Deed::Delete => Ok(()),
            Deed::Take if self.room != Room::Least => Ok(()),
            _ => Err(RefusalKind::Busy),
        }
    }

    /// Only names are checked before this.
    #[expect(clippy::too_many_lines, reason = "an arm for each kind of command")]
    pub(super) fn room_suffices(&self, command: &Command<'_>) -> Result<(), RefusalKind> {
        if self.room < Room::Scarce {
            return Ok(());
        }
        let (names, member): (&[&[u8]], _) = match command {
            Command::Take(take) | Command::Share(Share::Wait { take, .. })
                if !self.hands_out(take.mode) =>
            {
                (take.queues, take.member)
            }
            Command::TakeDone { done, take } | Command::Share(Share::Look { done, take })
                if !self.hands_out(take.mode) =>
            {
                fits(done.iter().all(|done| done.queue.len() <= NAME_BYTES_MAX))?;
                (take.queues, take.member)
            }
            Command::Start { queue: it, .. }
            | Command::StartAll { queue: it, .. }
            | Command::TakeOne { queue: it, .. }
                if self.room == Room::Least =>
            {
                (&[it.name], it.member)
            }
            Command::Reserve(reserve) if self.room == Room::Least => (reserve.queues, None),
            Command::Numbered { deed, .. } => return self.deed_fits(*deed),
            Command::Touch(Touch { held, .. }) => (&[held.queue.name], held.queue.member),
            Command::Bury(bury) => (&[bury.held.queue.name], bury.held.queue.member),
            Command::Fail(fail) => (&[fail.held.queue.name], fail.held.queue.member),
            Command::Move { from, to, .. } => {
                fits(to.len() <= NAME_BYTES_MAX)?;
                (&[from.name], from.member)
            }
            Command::Release(release) => (&[release.held.queue.name], release.held.queue.member),
            Command::Update(update) => (&[update.queue.name], update.queue.member),
            Command::Member(MemberCommand::Join { topic, member, .. }) => {
                (&[*topic], Some(*member))
            }
            Command::Kick { queue, .. }
            | Command::Queue(
                QueueCommand::Create { queue, .. }
                | QueueCommand::Share { queue, .. }
                | QueueCommand::Hold { queue, length: Some(_), .. },
            ) => (&[*queue], None),
            Command::Dig(Transfer { queue: it, .. })
            | Command::Snatch(Transfer { queue: it, .. })
            | Command::Restart(Transfer { queue: it, .. })
            | Command::Switch { transfer: Transfer { queue: it, .. }, .. }
            | Command::Plow { queue: it, .. }
            | Command::Redrive { queue: it, .. }
            | Command::Queue(
                QueueCommand::Set { queue: it, .. } | QueueCommand::Pause { queue: it, .. },
            ) => (&[it.name], it.member),
            Command::Import(Import::Schedule(schedule)) => {
                fits(schedule.name.len() <= NAME_BYTES_MAX)?;
                (&[&*schedule.plan.queue], None)
            }
            Command::Import(import) => (&[import.queue()], None),
            Command::Schedule(ScheduleCommand::Set(new)) => {
                fits(new.queue.len() <= NAME_BYTES_MAX)?;
                (&[new.name], None)
            }
            Command::Limit(LimitCommand::Set { name, .. })
            | Command::Batch(BatchCommand::Open { name, .. })
            | Command::Schedule(
                ScheduleCommand::Pause(name)
                | ScheduleCommand::Resume(name)
                | ScheduleCommand::Fire(name),
            ) => (&[*name], None),
            _ => return Ok(()),
        };
        fits(names.iter().copied().chain(member).all(|name| name.len() <= NAME_BYTES_MAX))?;
        Err(RefusalKind::Busy)
    }
}
