//! Formats the outputs of the engine in the words of a script.

mod batches;
mod carrying;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroU64;

use pinpriq_proto::change::Change;
use pinpriq_proto::command::Assign;
use pinpriq_proto::details::{Detail, DetailKind};
use pinpriq_proto::fanout::MemberFigures;
use pinpriq_proto::looking::{Ending, Eta, Explanation, LeasePlace, LeaseShown, Reason};
use pinpriq_proto::named_limits::{LimitRules, LimitShown};
use pinpriq_proto::reply::{Output, Refusal, Reply, TubeShown, TubesShown};
use pinpriq_proto::schedule::{Recurrence, ShownSchedule};
use pinpriq_proto::settings::{AfterAck, Ids, Paused, Settings, Shown};
use pinpriq_proto::shares::{Own, ShareRules, ShareShown};
use pinpriq_proto::stats::{Figures, Times};
use pinpriq_proto::task::history::{Attempt, End};
use pinpriq_proto::task::{
    Bytes, ClientId, Counts, Progress, Receipt, RequestId, Retries, State, StateKind, TaskRecord,
};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{Awaited, PutUnique};

/// The names of clients and receipts in a script.
#[derive(Default)]
pub(super) struct Names {
    clients: Vec<String>,
    receipts: BTreeMap<String, Receipt>,
}

impl Names {
    /// Returns the client of this name. The first use of a name creates the client.
    pub(super) fn client(&mut self, name: &str) -> ClientId {
        let known = self.clients.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            self.clients.push(name.to_owned());
            self.clients.len() - 1
        });
        ClientId(index as u64 + 1)
    }

    /// Returns the receipt of this name. One that was never issued is well-formed too.
    pub(super) fn receipt(&self, name: &str) -> Receipt {
        self.receipts.get(name).copied().unwrap_or_else(|| {
            let serial = name.strip_prefix('r').and_then(|serial| serial.parse().ok());
            super::made_up(serial.unwrap_or_else(|| panic!("{name:?} is no receipt")))
        })
    }

    /// Gives the receipt of a taken task its name.
    pub(super) fn learn(&mut self, task: &TaskRecord) {
        let receipt = task.receipt().expect("the task is taken");
        let known = self.receipts.values().any(|known| *known == receipt);
        if !known {
            let name = format!("r{}", self.receipts.len() + 1);
            self.receipts.insert(name, receipt);
        }
    }

    /// Formats one output as one line. The reply to the command above the line has no name.
    pub(super) fn output(&self, output: &Output, asked: Option<(ClientId, RequestId)>) -> String {
        match output {
            Output::Reply { client, request, reply } if asked == Some((*client, *request)) => {
                format!("-> {}", self.reply(reply))
            }
            Output::Reply { client, reply, .. } => {
                format!("{} -> {}", self.name_of(*client), self.reply(reply))
            }
            Output::Delivery { client, tasks, .. } => {
                format!("{} <- {}", self.name_of(*client), self.tasks(tasks))
            }
            Output::Notice(notice) => {
                let name = self.receipts.iter().find(|(_, known)| **known == notice.receipt);
                let name = name.map_or("?", |(name, _)| name);
                let client = self.name_of(notice.client);
                let why = notice.cancelled.as_deref();
                let why = why.map(|reason| format!(" \"{}\"", reason.escape_ascii()));
                let (what, why) = why.map_or(("recall", String::new()), |why| ("cancel", why));
                format!("{client} <- {what} {} {name}{why}", notice.id)
            }
        }
    }

    fn name_of(&self, client: ClientId) -> &str {
        let index = usize::try_from(client.0 - 1).unwrap();
        &self.clients[index]
    }

    fn reply(&self, reply: &Reply) -> String {
        match reply {
            Reply::Done => "OK".to_owned(),
            Reply::Put(id) => id.to_string(),
            Reply::PutUnique(put) => put_unique(put),
            Reply::PutOutcome(id, outcome) => format!("{id} {}", outcome.word()),
            Reply::Tasks { tasks, .. } | Reply::Shown(tasks) => self.tasks(tasks),
            Reply::DeadlineSoon => "deadline soon".to_owned(),
            Reply::Tubes(shown) => tubes(shown),
            Reply::Ended(ending) => format!("null: {}", ended(ending)),
            Reply::Task(Some(task)) => whole(task),
            Reply::Explained(explanation) => self.explanation(explanation),
            Reply::Scanned { tasks, next } => {
                let shown: Vec<String> = tasks.iter().map(|task| self.scanned(task)).collect();
                format!("[{}]{}", shown.join(", "), more(*next))
            }
            Reply::Bulked { next, looked, changed } => {
                format!("{changed} of {looked}{}", more(*next))
            }
            Reply::Exported(page) => carrying::exported(page),
            Reply::Leases { leases, next } => {
                let shown: Vec<String> = leases.iter().map(|lease| self.lease(lease)).collect();
                let next = next.as_ref();
                let next =
                    next.map_or_else(String::new, |it| format!(", and more after {}", place(it)));
                format!("[{}]{next}", shown.join("; "))
            }
            Reply::Shares { shares, next } => {
                let shown: Vec<String> = shares.iter().map(share).collect();
                let more = |it| format!(", and more after {}", quoted(it));
                format!("[{}]{}", shown.join("; "), next.as_ref().map_or_else(String::new, more))
            }
            Reply::State(state) => letter(*state),
            Reply::Task(None) | Reply::Deadline(None) => "null".to_owned(),
            Reply::Deadline(Some(at)) => format!("until {}", at.ms()),
            Reply::Count(count) => count.to_string(),
            Reply::Outcome(outcome, state) => format!("{} {}", outcome.word(), letter(*state)),
            Reply::Acks(acks) => acks.iter().map(ack).collect::<Vec<_>>().join(", "),
            Reply::Settings { settings, paused, created } => {
                let created = if *created { "created" } else { "not created" };
                format!("{}, paused {}, {created}", self::settings(settings), sides(*paused))
            }
            Reply::Names { names, more } => {
                let names: Vec<String> = names.iter().map(quoted).collect();
                let more = if *more { " and more" } else { "" };
                format!("[{}]{more}", names.join(", "))
            }
            Reply::Figures(figures) => self::figures(figures),
            Reply::Joined(incarnation) => format!("incarnation {incarnation}"),
            Reply::Members(members) if members.is_empty() => "nobody".to_owned(),
            Reply::Members(members) => members.iter().map(member).collect::<Vec<_>>().join("; "),
            Reply::Schedule(shown) => schedule(shown),
            Reply::Limit(shown) => limit(shown),
            Reply::Batch(shown) => batches::batch(shown),
            Reply::BatchAwaited(shown) => batches::awaited(shown),
            Reply::Transaction(replies) => {
                let replies: Vec<String> = replies.iter().map(|reply| self.reply(reply)).collect();
                format!("({})", replies.join("; "))
            }
            Reply::WithResult { reply, result } => {
                let result = result.as_ref().map_or_else(|| "null".to_owned(), quoted);
                format!("{}, result {result}", self.reply(reply))
            }
            Reply::Refused(refusal) => refusal.to_string(),
        }
    }

    fn tasks(&self, tasks: &[TaskRecord]) -> String {
        if tasks.is_empty() {
            return "nothing".to_owned();
        }
        tasks.iter().map(|task| self.task(task)).collect::<Vec<_>>().join(", ")
    }

    /// Formats what matters about a task to the client that took it.
    fn task(&self, task: &TaskRecord) -> String {
        let mut text = format!("{} {}", task.id, quoted(&task.payload));
        if let State::Taken(lease) = &task.progress.state {
            let _ = write!(text, " under {}", self.name_of_receipt(task));
            match lease.deadline {
                Some(at) => {
                    let _ = write!(text, " until {}", at.ms());
                }
                None => text.push_str(" while connected"),
            }
        }
        text
    }

    fn scanned(&self, task: &TaskRecord) -> String {
        format!("{} {}", self.task(task), task.progress.state.kind())
    }

    fn lease(&self, lease: &LeaseShown) -> String {
        let mut text = format!("{} in {}", lease.id, place(&lease.place));
        if let Some(member) = &lease.member {
            let _ = write!(text, " of {}", quoted(member));
        }
        let _ = write!(text, ", {}", self.holder(lease.holder, lease.since, lease.until));
        text.push_str(&tells(lease.progress.as_ref()));
        text
    }

    fn holder(
        &self,
        client: Option<ClientId>,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> String {
        let client = client.map_or("somebody", |client| self.name_of(client));
        format!("by {client} since {} until {}", moment(since), moment(until))
    }

    fn explanation(&self, explanation: &Explanation) -> String {
        let Explanation { id, state, since, reasons, eta } = explanation;
        let mut parts = Vec::new();
        match (id, state) {
            (Some(id), Some(state)) => parts.push(format!("{id} {state} since {}", moment(*since))),
            (Some(id), None) => parts.push(format!("{id} X since {}", moment(*since))),
            _ => parts.push("null".to_owned()),
        }
        for reason in reasons {
            let code = reason.code();
            parts.push(match reason {
                Reason::Held => "held".to_owned(),
                Reason::After { batch, pending } => {
                    format!("{code} {} {pending} pending", quoted(batch))
                }
                Reason::Delayed { until } => format!("{code} until {}", until.ms()),
                Reason::Taken { client, since, until, progress } => {
                    let holder = self.holder(*client, *since, *until);
                    format!("{code} {holder}{}", tells(progress.as_ref()))
                }
                Reason::Buried { reason: Some(reason) } => format!("{code} {}", quoted(reason)),
                Reason::Limit { taken, most } => format!("{code} {taken} of {most}"),
                Reason::NamedLimit { name, reached, open_at } => {
                    let reached = reached.map(|(taken, most)| format!(" {taken} of {most}"));
                    let open_at = open_at.map(|at| format!(" open at {}", at.ms()));
                    let held = reached.or(open_at).unwrap_or_default();
                    format!("{code} {}{held}", quoted(name))
                }
                Reason::Rate { next_at } => format!("{code} next at {}", next_at.ms()),
                Reason::Behind { at_least } => format!("{code} at least {at_least}"),
                Reason::KeyLimit { key: name, taken, most }
                | Reason::ShareLimit { share: name, taken, most } => {
                    format!("{code} {} {taken} of {most}", quoted(name))
                }
                Reason::KeyRate { key, open_at } => {
                    format!("{code} {} open at {}", quoted(key), open_at.ms())
                }
                Reason::KeyHeld { key, by } => format!("{code} {} by {by}", quoted(key)),
                Reason::ShareRate { share, open_at } => {
                    format!("{code} {} open at {}", quoted(share), open_at.ms())
                }
                Reason::ShareTurn { share, ahead } => format!("{code} {} {ahead}", quoted(share)),
                Reason::Buried { reason: None }
                | Reason::Expired
                | Reason::Paused
                | Reason::NoPriority
                | Reason::NoConsumer
                | Reason::Next => code.to_owned(),
                Reason::Ended(ending) => ended(ending),
            });
        }
        if let Some(Eta { mean, low, high }) = eta {
            let high = high.map_or("unknown".to_owned(), |high| high.ms().to_string());
            parts.push(format!("eta {} from {} to {high}", mean.ms(), low.ms()));
        }
        parts.join(", ")
    }

    fn name_of_receipt(&self, task: &TaskRecord) -> &str {
        let receipt = task.receipt();
        let found = self.receipts.iter().find(|(_, known)| Some(**known) == receipt);
        found.map_or("a lease", |(name, _)| name)
    }
}

/// Formats where the next page of tasks begins.
fn more(next: Option<NonZeroU64>) -> String {
    next.map_or_else(String::new, |next| format!(", and more after {next}"))
}

/// Formats what has happened to a task.
fn trace(progress: &Progress) -> String {
    let mut text = String::new();
    let Counts { timeouts, releases, buries, kicks } = progress.counts();
    if progress.failures > 0 {
        let _ = write!(text, ", failed {} times", progress.failures);
    }
    if !progress.delay().is_zero() {
        let _ = write!(text, ", delay {}", progress.delay().ms());
    }
    let counts =
        [("timed out", timeouts), ("released", releases), ("buried", buries), ("kicked", kicks)];
    for (what, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        let _ = write!(text, ", {what} {count} times");
    }
    if let Some(checkpoint) = progress.checkpoint() {
        let _ = write!(text, ", checkpoint {}", quoted(checkpoint));
    }
    if let Some(result) = progress.result() {
        let _ = write!(text, ", result {}", quoted(result));
    }
    if let attempts @ [_, ..] = progress.history() {
        let attempts: Vec<String> = attempts.iter().map(attempt).collect();
        let _ = write!(text, ", tried by {}", attempts.join(" and "));
    }
    if let Some(ageing) = progress.trace.as_ref().and_then(|trace| trace.aged.ageing) {
        let _ = write!(text, ", ages by {}", ageing.ms());
    }
    text
}

/// Formats who had a task, when, and how that ended.
fn attempt(attempt: &Attempt) -> String {
    let Attempt { client, contact, taken_at, end } = attempt;
    let name = match client {
        None => "nobody".to_owned(),
        Some(_) => String::from_utf8_lossy(&contact.name).into_owned(),
    };
    let mut text = format!("{name} from {}", taken_at.ms());
    if let Some(End { at, how, reason }) = end {
        let _ = write!(text, " to {}: {}", at.ms(), how.word());
        let _ = reason.as_ref().map_or(Ok(()), |reason| write!(text, " {}", quoted(reason)));
    }
    text
}

/// Formats everything about a task. Fields that are not set are left out.
fn whole(task: &TaskRecord) -> String {
    let mut text = format!("{} {} {}", task.id, quoted(&task.payload), task.progress.state.kind());
    match task.progress.priority {
        Some(priority) => {
            let _ = write!(text, ", priority {priority}");
        }
        None => text.push_str(", priority none"),
    }
    if task.progress.seq != task.number {
        let _ = write!(text, ", seq {}", task.progress.seq);
    }
    if let Some(key) = &task.terms.key {
        let _ = write!(text, ", key {}", quoted(key));
    }
    if let Some(lane) = &task.lane {
        let (topic, member) = (quoted(&task.queue), quoted(&lane.member));
        let _ = write!(text, ", in the lane of {member} in {topic}");
    }
    let _ = write!(text, ", put at {}", task.put_at.ms());
    if let Some(at) = task.progress.expires_at {
        let _ = write!(text, ", expires at {}", at.ms());
    }
    if let Some(ttr) = task.terms.ttr {
        let _ = write!(text, ", TTR {}", ttr.ms());
    }
    text.push_str(&retries(task.terms.retries()));
    if task.progress.attempts > 0 {
        let _ = write!(text, ", taken {} times", task.progress.attempts);
    }
    match &task.progress.state {
        State::Waiting { ready_at } => match ready_at {
            Some(at) => _ = write!(text, ", ready at {}", at.ms()),
            None => text.push_str(&batches::held(task.progress.after())),
        },
        State::Taken(lease) => {
            let until = lease.deadline.map_or_else(
                || ", while connected".to_owned(),
                |at| format!(", until {}", at.ms()),
            );
            text.push_str(&until);
            text.push_str(&tells(task.progress.text()));
            if let Some(cancelled) = task.progress.cancelled() {
                let _ = write!(text, ", cancelled {}", quoted(&cancelled.reason));
            }
        }
        State::Zombie { purge_at } => {
            let _ = write!(text, ", purged at {}", purge_at.ms());
        }
        State::Ready | State::Buried(_) | State::Done => {}
    }
    text.push_str(&trace(&task.progress));
    if let Some(reason) = &task.progress.reason {
        let _ = write!(text, ", because {}", quoted(reason));
    }
    text.push_str(&past(task));
    text
}

/// Formats how a task has come to be where it is, and the batch in which it is pending.
fn past(task: &TaskRecord) -> String {
    let mut text = String::new();
    if let Some(origin) = task.origin() {
        let (queue, id, put_at) = (quoted(&origin.queue), &origin.id, origin.put_at.ms());
        let (attempts, failures, at) = (origin.attempts, origin.failures, origin.at.ms());
        let _ = write!(text, ", was {id} in {queue} from {put_at} to {at}");
        let _ = write!(text, ", taken {attempts} and failed {failures} times there");
    }
    if let Some(key) = task.unique() {
        let _ = write!(text, ", unique as {}", quoted(key));
    }
    if let Some(name) = task.batch() {
        let _ = write!(text, ", in batch {}", quoted(name));
    }
    if let Some(scheduled) = task.scheduled() {
        let name = quoted(&scheduled.schedule);
        let _ = match scheduled.slot {
            Some(slot) => write!(text, ", put by {name} for {}", slot.ms()),
            None => write!(text, ", put by {name} by hand"),
        };
    }
    text
}

/// What a holder has said for people about how far the work has come.
fn tells(progress: Option<&Bytes>) -> String {
    progress.map_or_else(String::new, |text| format!(", tells {}", quoted(text)))
}

fn place(place: &LeasePlace) -> String {
    let lane = place.lane.map_or_else(String::new, |lane| format!(" {lane}"));
    format!("{}{lane} {}", quoted(&place.queue), place.seq)
}

fn moment(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "null".to_owned(), |at| at.ms().to_string())
}

/// Formats what time caused, as it is reported to the store.
pub(super) fn change(change: &Change) -> String {
    match change {
        Change::Task(task) => format!("task {} is {}", task.number, task.progress.state.kind()),
        Change::Moved(moved) => format!("task {} is {}", moved.number, moved.progress.state.kind()),
        Change::Granted(granted) => format!("task {} is T", granted.number),
        Change::Gone(number) => format!("task {number} is gone"),
        Change::Queue(queue) => format!("queue {} is set", quoted(&queue.name)),
        Change::QueueGone(name) => format!("queue {} is gone", quoted(name)),
        Change::Emptied(name) => format!("queue {} is emptied", quoted(name)),
        Change::Published(publication, _) => {
            format!("tasks {} to {} are published", publication.first, publication.last)
        }
        Change::Lane(lane) => format!("lane {} in {} is set", lane.number, quoted(&lane.topic)),
        Change::LaneGone(number) => format!("lane {number} is gone"),
        Change::LaneEmptied(number) => format!("lane {number} is emptied"),
        Change::Member(member) => {
            let (name, incarnation) = (quoted(&member.name), member.incarnation);
            let standing = if member.ended { "has ended" } else { "is registered" };
            format!("member {name}, incarnation {incarnation}, {standing}")
        }
        Change::MemberGone(incarnation) => {
            format!("incarnation {incarnation} is not registered any more")
        }
        Change::Schedule(schedule) => format!("schedule {} is set", quoted(&schedule.name)),
        Change::ScheduleMoved(moved) => {
            let (course, number) = (&moved.course, moved.number);
            let (fired, missed) = (course.fired, course.missed);
            let until = course.done_until.ms();
            format!("schedule {number} is done until {until}: fired {fired}, missed {missed}")
        }
        Change::ScheduleGone(number) => format!("schedule {number} is gone"),
        Change::Detail(detail) => match &**detail {
            Detail::Window(window) => {
                format!("the window of {} is open until {}", quoted(&window.key), window.until.ms())
            }
            Detail::Share(record) => format!(
                "share {} of {}: {}",
                quoted(&record.share),
                quoted(&record.queue),
                rules(record.rules)
            ),
            Detail::Limit(record) => {
                format!("limit {}: {}", quoted(&record.name), limit_rules(record.rules))
            }
            Detail::Batch(record) => batches::change(record),
        },
        Change::DetailGone(DetailKind::Limit, _) => "a limit is gone".to_owned(),
        Change::DetailGone(DetailKind::Batch, _) => "a batch is gone".to_owned(),
        Change::DetailGone(DetailKind::Window, number) => {
            format!("the window of task {number} is gone")
        }
        Change::DetailGone(DetailKind::Share, _) => "the rules of a share are gone".to_owned(),
    }
}

fn limit(shown: &LimitShown) -> String {
    let tokens = shown.tokens.map_or_else(String::new, |tokens| format!(", {tokens} tokens"));
    let open_at = shown.open_at.map_or_else(String::new, |at| format!(", open at {}", at.ms()));
    let (rules, taken, queues) = (limit_rules(shown.rules), shown.taken, shown.queues);
    let closed = match shown.closed.ms() {
        0 => String::new(),
        ms => format!(", closed {ms}"),
    };
    format!("{rules}, taken {taken}{tokens}{open_at}, queues {queues}{closed}")
}

fn limit_rules(rules: LimitRules) -> String {
    let none = || "none".to_owned();
    let max = rules.max.map_or_else(none, |max| max.to_string());
    let rate = rules.rate.map_or_else(none, |rate| rate.to_string());
    format!("max {max}, rate {rate}")
}

fn share(shown: &ShareShown) -> String {
    let oldest = shown.oldest_ready.map_or_else(String::new, |it| format!(", oldest {}", it.ms()));
    let (name, rules) = (quoted(&shown.share), rules(shown.rules));
    format!("{name} {rules}, ready {}, taken {}{oldest}", shown.ready, shown.taken)
}

fn rules(rules: ShareRules) -> String {
    let own = |name: &str, own: Own<String>| match own {
        Own::Default => String::new(),
        Own::Is(None) => format!(", no {name}"),
        Own::Is(Some(value)) => format!(", {name} {value}"),
    };
    let limit = match rules.limit {
        Own::Default => Own::Default,
        Own::Is(limit) => Own::Is(limit.map(|limit| limit.to_string())),
    };
    let rate = match rules.rate {
        Own::Default => Own::Default,
        Own::Is(rate) => Own::Is(rate.map(|rate| rate.to_string())),
    };
    format!("weight {}{}{}", rules.weight, own("limit", limit), own("rate", rate))
}

fn schedule(shown: &ShownSchedule) -> String {
    let ShownSchedule { name, plan, course, next_at } = shown;
    let form = match &plan.form {
        Recurrence::Every { every, anchor } => format!("every {} from {}", every.ms(), anchor.ms()),
        Recurrence::Cron { expression, .. } => format!("at {}", quoted(expression)),
    };
    let moment =
        |at: Option<Timestamp>| at.map_or_else(|| "never".to_owned(), |at| at.ms().to_string());
    format!(
        "{} puts {} into {} {form}, missed {}, overlap {}, fired {}, missed {}, last {} for {}, \
         next {}{}",
        quoted(name),
        quoted(&plan.payload),
        quoted(&plan.queue),
        plan.on_missed.word(),
        plan.overlap.word(),
        course.fired,
        course.missed,
        course.last_id.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string),
        moment(course.last_slot),
        moment(*next_at),
        if course.paused { ", paused" } else { "" }
    )
}

fn member(figures: &MemberFigures) -> String {
    format!(
        "{}, incarnation {}, lives until {}, ready {}, taken {}",
        quoted(&figures.member),
        figures.incarnation,
        figures.lease_until.ms(),
        figures.ready,
        figures.taken
    )
}

fn ack(answer: &Result<(), Refusal>) -> String {
    match answer {
        Ok(()) => "OK".to_owned(),
        Err(refusal) => refusal.kind.word().to_owned(),
    }
}

fn letter(state: Option<StateKind>) -> String {
    state.map_or_else(|| "X".to_owned(), |kind| kind.to_string())
}

fn quoted(bytes: &Bytes) -> String {
    if bytes.len() > 40 {
        return format!("({} bytes)", bytes.len());
    }
    format!("\"{}\"", bytes.escape_ascii())
}

fn span(span: Option<Span>) -> String {
    span.map_or_else(|| "none".to_owned(), |span| span.ms().to_string())
}

fn sides(paused: Paused) -> String {
    let mut text = match (paused.input.is_on(), paused.output.is_on()) {
        (false, false) => "none",
        (true, false) => "in",
        (false, true) => "out",
        (true, true) => "both",
    }
    .to_owned();
    for (side, pause) in [("in", paused.input), ("out", paused.output)] {
        if let Some(at) = pause.until() {
            let _ = write!(text, ", {side} until {at}");
        }
    }
    text
}

fn settings(settings: &Settings) -> String {
    let ids = match settings.ids {
        Ids::Sequence => "sequence",
        Ids::Time64 => "time64",
        Ids::Uuid => "uuid",
        Ids::Given => "given",
    };
    let after_ack = match settings.after_ack {
        AfterAck::Delete => "delete".to_owned(),
        AfterAck::Keep => "keep".to_owned(),
        AfterAck::Zombie(stay) => format!("zombie for {}", stay.ms()),
    };
    let capacity = settings.capacity.map_or_else(|| "none".to_owned(), |most| most.to_string());
    let (ttl, ttr) = (span(settings.ttl), span(settings.ttr));
    let mut text =
        format!("ids {ids}, TTL {ttl}, TTR {ttr}, after ack {after_ack}, capacity {capacity}");
    let usual = ["IDS", "TTL", "TTR", "AFTERACK", "CAPACITY"];
    for (setting, value) in settings.changed().filter(|(it, _)| !usual.contains(&it.name)) {
        for (name, shown) in setting.shown(value) {
            let value = match shown {
                Shown::None => "none".to_owned(),
                Shown::Number(number) => number.to_string(),
                Shown::Text(text) => text.escape_ascii().to_string(),
                Shown::Rate(rate) => rate.to_string(),
            };
            let _ = write!(text, ", {name} {value}");
        }
    }
    text
}

/// The times that are not zero.
fn time_sums(times: &Times) -> String {
    let mut text = String::new();
    for (name, histogram) in [("waited", &times.waited), ("held", &times.held)] {
        if histogram.sum_ms > 0 {
            let _ = write!(text, ", {name} {} in {}", histogram.sum_ms, histogram.count());
        }
    }
    if times.limited_ms > 0 {
        let _ = write!(text, ", limited {}", times.limited_ms);
    }
    text
}

fn figures(figures: &Figures) -> String {
    let counters = &figures.counters;
    let mut text = String::new();
    for kind in StateKind::ALL {
        let _ = write!(text, "{kind} {}, ", counters.count(kind));
    }
    let mut moves: Vec<(String, u64)> = counters
        .moves
        .iter()
        .map(|(step, times)| (format!("{}-{}", letter(step.from()), letter(step.to())), *times))
        .collect();
    moves.sort();
    for (step, times) in moves {
        let _ = write!(text, "{step} {times}, ");
    }
    let _ = write!(text, "put {} ", counters.put);
    if counters.revived > 0 {
        let _ = write!(text, "+ revived {} ", counters.revived);
    }
    let _ = write!(
        text,
        "= acked {} + expired {} + killed {} + ",
        counters.acked, counters.expired, counters.killed
    );
    let others = [
        ("dead", counters.dead),
        ("evicted", counters.evicted),
        ("moved", counters.moved),
        ("cancelled", counters.cancelled),
        ("skipped", counters.skipped),
    ];
    for (name, count) in others.into_iter().filter(|(_, count)| *count > 0) {
        let _ = write!(text, "{name} {count} + ");
    }
    let _ = write!(text, "present {}, bytes {}", counters.present(), counters.bytes);
    if counters.purged > 0 {
        let _ = write!(text, ", purged {}", counters.purged);
    }
    if counters.failures > 0 {
        let _ = write!(text, ", failures {}", counters.failures);
    }
    if counters.duplicates > 0 {
        let _ = write!(text, ", duplicates {}", counters.duplicates);
    }
    if let Some(age) = figures.oldest_ready {
        let _ = write!(text, ", oldest ready {}", age.ms());
    }
    if figures.priorities.len() > 1 {
        let counts = figures.priorities.iter();
        let counts: Vec<String> = counts.map(|(it, count)| format!("{it}: {count}")).collect();
        let _ = write!(text, ", by priority {}", counts.join(" "));
    }
    if let Some(times) = &counters.times {
        text += &time_sums(times);
    }
    if figures.holds_dead_letters {
        text += ", for dead letters";
    }
    let _ = write!(text, ", takers {}, subscribers {}", figures.takers, figures.subscribers);
    let _ = write!(text, ", paused {}", sides(figures.paused));
    if figures.queues != 1 || figures.paused_queues > 0 {
        let _ = write!(text, ", {} of {} queues paused", figures.paused_queues, figures.queues);
    }
    if let Some(missed) = figures.missed {
        let _ = write!(text, ", missed {missed}");
    }
    text
}

fn tubes(shown: &TubesShown) -> String {
    let tubes: Vec<String> = shown.tubes.iter().map(tube).collect();
    let (put, timeouts) = (shown.put, shown.timeouts);
    let waiting = match shown.reserves {
        0 => String::new(),
        count => format!(", {count} reserves"),
    };
    format!("put {put}, timed out {timeouts}{waiting}: {}", tubes.join("; "))
}

fn tube(tube: &TubeShown) -> String {
    let gone = if tube.exists { "" } else { " was there," };
    let mut text = format!("{}{gone} put {}", quoted(&tube.name), tube.put);
    for (kind, count) in StateKind::ALL.into_iter().zip(tube.counts) {
        if count > 0 {
            let _ = write!(text, ", {count} {kind}");
        }
    }
    for (what, count) in
        [("urgent", tube.urgent), ("reserves", tube.reserves), ("deletes", tube.deletes)]
    {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    if let Some(at) = tube.paused.output.until() {
        let _ = write!(text, ", paused until {} for {}", at.ms(), tube.paused_for.ms());
    }
    let _ = write!(text, ", came at {} after {}", tube.came_at.ms(), tube.came_after);
    text
}

/// What a task says about failures, if it says anything.
fn retries(retries: Retries) -> String {
    let mut text = String::new();
    let or_none = |count: Option<u64>| count.map_or_else(|| "none".to_owned(), |it| it.to_string());
    if let Assign::To(attempts) = retries.attempts {
        let _ = write!(text, ", ATTEMPTS {}", or_none(attempts.map(u64::from)));
    }
    if let Assign::To(backoff) = retries.backoff {
        let _ = write!(text, ", BACKOFF {}", or_none(backoff.map(Span::ms)));
    }
    if let Some(longest) = retries.backoff_max {
        let _ = write!(text, ", BACKOFFMAX {}", longest.ms());
    }
    text
}

fn put_unique(PutUnique { id, new, awaited }: &PutUnique) -> String {
    let new = if *new { "new" } else { "there already" };
    match awaited {
        Awaited::No => format!("{id} {new}"),
        Awaited::Unknown => format!("{id} {new}, null"),
        Awaited::Known(outcome) => format!("{id} {new}, {}", outcome.word()),
    }
}

fn ended(ending: &Ending) -> String {
    let Ending { outcome, at, reason, became } = ending;
    let mut text = format!("{} at {}", outcome.word(), at.ms());
    if let Some(reason) = reason {
        let _ = write!(text, ", because {}", quoted(reason));
    }
    if let Some((queue, id)) = became {
        let _ = write!(text, ", is {id} in {} now", quoted(queue));
    }
    text
}
