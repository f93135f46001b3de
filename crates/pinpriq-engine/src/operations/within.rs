//! Keeps commands within names: what touches queues that it does not name.
//!
//! Who may do what is decided elsewhere. The sentence of a refusal does not tell which queue it is
//! about, because the command did not name it either.

use std::ops::Bound::{Excluded, Unbounded};

use crate::engine::{Answered, Engine};
use crate::operations::admin::page_of_names;
use crate::operations::arguments::bad;
use pinpriq_proto::command::{BatchCommand, Command, QueueCommand};
use pinpriq_proto::export::Import;
use pinpriq_proto::fanout::MemberCommand;
use pinpriq_proto::limits::WITHIN_NAMES_MAX;
use pinpriq_proto::named_limits::LimitCommand;
use pinpriq_proto::names::{NamePattern, NamesPage};
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::schedule::ScheduleCommand;
use pinpriq_proto::stats::Figures;
use pinpriq_proto::task::ClientId;

/// Names in order, of which no two match the same.
pub(crate) struct Within<'a>(Vec<NamePattern<'a>>);

impl<'a> Within<'a> {
    fn of(names: &[NamePattern<'a>]) -> Self {
        let mut sorted = names.to_vec();
        sorted.sort_unstable_by_key(|pattern| (pattern.bytes, !pattern.is_prefix));
        // Whatever a prefix matches comes right after it.
        sorted.dedup_by(|next, kept| {
            next == kept || (kept.is_prefix && next.bytes.starts_with(kept.bytes))
        });
        Self(sorted)
    }

    /// Whether one of the names is meant. Costs O(log n).
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        let after = self.0.partition_point(|pattern| pattern.bytes <= name);
        after.checked_sub(1).is_some_and(|at| self.0[at].matches(name))
    }

    /// All of them. What they match comes in the order of the names.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = NamePattern<'a>> {
        self.0.iter().copied()
    }

    /// Those that match names with this prefix, narrowed down to that.
    fn beginning<'p>(&self, prefix: &'p [u8]) -> impl Iterator<Item = NamePattern<'p>>
    where
        'a: 'p,
    {
        self.patterns().filter_map(move |pattern| {
            if pattern.bytes.starts_with(prefix) {
                return Some(pattern);
            }
            pattern.matches(prefix).then(|| NamePattern::beginning(prefix))
        })
    }
}

impl Engine {
    /// Carries out a command that keeps within names.
    #[inline(never)]
    pub(crate) fn within(
        &mut self,
        client: ClientId,
        names: &[NamePattern<'_>],
        command: &Command<'_>,
    ) -> Answered {
        if !command.can_be_within() {
            return Err(no_part());
        }
        if names.len() > WITHIN_NAMES_MAX {
            let given = names.len();
            return Err(bad(format!(
                "a command is kept within {WITHIN_NAMES_MAX} names at most, and not {given}"
            )));
        }
        command.check_names()?;
        self.check_store(command)?;
        let names = &Within::of(names);
        match *command {
            Command::Leases(ref leases) => self.leases(leases, Some(names)),
            Command::Queue(QueueCommand::List(page)) => Ok(Some(self.list_within(names, page))),
            Command::Queue(QueueCommand::Stats(None)) => {
                Ok(Some(Reply::Figures(Box::new(self.figures_within(names)))))
            }
            Command::Schedule(ScheduleCommand::List(page)) => {
                Ok(Some(self.list_schedules_within(names, page)))
            }
            Command::Limit(LimitCommand::List(NamesPage { prefix, count, after })) => {
                let found = self.named_limits.names_after(prefix, after);
                Ok(Some(page_of_names(found.filter(|name| names.matches(name)), count)))
            }
            Command::Batch(BatchCommand::List(NamesPage { prefix, count, after })) => {
                let found = self.batches.names_after(prefix, after);
                Ok(Some(page_of_names(found.filter(|name| names.matches(name)), count)))
            }
            Command::Schedule(ref command) => {
                self.check_schedule_within(names, command)?;
                self.keep_schedules(command)
            }
            Command::Import(ref import @ Import::Schedule(schedule)) => {
                self.check_schedule_named(names, &schedule.name, true)?;
                self.import(import)
            }
            Command::Member(command) => {
                self.check_member_within(names, command)?;
                self.tend(command)
            }
            Command::Redrive { queue, count } => self.redrive(queue, count, Some(names)),
            Command::Bulk(ref bulk) => self.bulk(bulk, Some(names)),
            Command::Numbered { number, deed } => self.numbered(client, number, deed, Some(names)),
            Command::Tubes(queue) => Ok(Some(self.tubes(queue, Some(names)))),
            _ => Err(no_part()),
        }
    }

    /// Lists names of queues. Costs a step for each name on the page, and for each name to keep
    /// within.
    fn list_within(&self, names: &Within<'_>, page: NamesPage<'_>) -> Reply {
        let NamesPage { prefix, count, after } = page;
        let from = after.map_or(Unbounded, Excluded);
        let found = names.beginning(prefix).flat_map(|it| self.queues.matching(it, from));
        let found = found.filter(|(_, slot)| self.queues[*slot].exists());
        page_of_names(found.map(|(name, _)| name), count)
    }

    /// Returns the figures of the queues and lanes that match. Costs a step for each of them, and
    /// for each request that is blocked anywhere.
    fn figures_within(&self, names: &Within<'_>) -> Figures {
        let queues = names.patterns().flat_map(|it| self.queues.matching(it, Unbounded));
        let lanes = names.patterns().flat_map(|it| self.members.lanes_matching(it));
        let mut sum = Figures::default();
        for slot in queues.map(|(_, slot)| slot).chain(lanes) {
            let queue = &self.queues[slot];
            if let Some(counters) = self.queues.known_counters(slot, self.now) {
                sum.counters.add_counts(counters);
            }
            sum.subscribers += queue.subscribers.len() as u64;
            sum.paused_queues += u64::from(queue.paused.any());
            sum.queues += u64::from(queue.lane.is_none() && queue.exists());
        }
        // A request that waits for several queues is one.
        let waits = self.consumers.takers.values().filter(|taker| {
            let mut queues = taker.queues.iter().map(|queue| &self.queues[*queue]);
            !taker.standing.is_echo && queues.any(|queue| names.matches(&queue.name))
        });
        sum.takers = waits.count() as u64;
        sum
    }

    /// Lists names of schedules. Costs at most as many steps as there are names on the page, for
    /// each queue that matches and has schedules.
    fn list_schedules_within(&self, names: &Within<'_>, page: NamesPage<'_>) -> Reply {
        let NamesPage { prefix, count, after } = page;
        let most = count.saturating_add(1);
        let found = self.schedules.first_matching(names.patterns(), (prefix, after), most);
        page_of_names(found.into_iter(), count)
    }

    /// Refuses to touch a schedule whose queue does not match, and one that is not there: otherwise
    /// refusals would tell which names others have used. A new one can be made.
    fn check_schedule_within(
        &self,
        names: &Within<'_>,
        command: &ScheduleCommand<'_>,
    ) -> Result<(), Refusal> {
        let (name, makes) = match *command {
            ScheduleCommand::Set(ref new) => {
                self.check_schedule(new)?;
                (new.name, true)
            }
            ScheduleCommand::Show(name)
            | ScheduleCommand::Pause(name)
            | ScheduleCommand::Resume(name)
            | ScheduleCommand::Drop(name)
            | ScheduleCommand::Fire(name) => (name, false),
            ScheduleCommand::List(_) => return Ok(()),
        };
        self.check_schedule_named(names, name, makes)
    }

    /// Refuses to touch the schedule of this name if its queue does not match, or if there is none,
    /// unless the command makes one.
    fn check_schedule_named(
        &self,
        names: &Within<'_>,
        name: &[u8],
        makes: bool,
    ) -> Result<(), Refusal> {
        let known = self.schedules.find(name).map(|number| self.schedules.schedule(number));
        match known {
            Some(schedule) if names.matches(&schedule.plan.queue) => Ok(()),
            None if makes => Ok(()),
            _ => Err(not_permitted("the schedule of this name, if there is one")),
        }
    }

    /// Refuses to touch a member that has a lane in a topic that does not match.
    fn check_member_within(
        &mut self,
        names: &Within<'_>,
        command: MemberCommand<'_>,
    ) -> Result<(), Refusal> {
        let member = match command {
            MemberCommand::Beat { member, lease } | MemberCommand::Join { member, lease, .. } => {
                self.check_lease(lease)?;
                member
            }
            MemberCommand::Leave(member) => member,
            MemberCommand::LeaveTopic { .. } | MemberCommand::List(_) => return Err(no_part()),
        };
        let Some(incarnation) = self.find_member(member) else { return Ok(()) };
        let mut topics = self.members.registered[&incarnation].lanes.keys();
        match topics.find(|topic| !names.matches(topic)) {
            Some(_) => Err(not_permitted("a topic that the member has joined")),
            None => Ok(()),
        }
    }
}

/// The refusal of what touches a queue that does not match.
pub(crate) fn not_permitted(what: &str) -> Refusal {
    let sentence = format!("this user may not do this with {what}");
    Refusal::new(RefusalKind::NoPerm, sentence)
}

fn no_part() -> Refusal {
    bad("this command cannot be kept within names".to_owned())
}
