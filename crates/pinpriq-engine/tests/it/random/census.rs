//! Counts what the random runs have reached.

use std::collections::{BTreeMap, BTreeSet};

use pinpriq_engine::{Applied, transition_listing};
use pinpriq_proto::change::RecordKey;
use pinpriq_proto::command::{
    BatchCommand, Bulk, BulkChange, Command, Deed, Filter, Held, HeldBy, Put, QueueCommand,
    QueueName, Wait,
};
use pinpriq_proto::details::DetailKind;
use pinpriq_proto::fanout::MemberCommand;
use pinpriq_proto::reply::{Output, RefusalKind, Reply};
use pinpriq_proto::request::reading::Room;
use pinpriq_proto::request::table::{Found, READS, TABLE, find, read};
use pinpriq_proto::schedule::{Recurrence, ScheduleCommand};
use pinpriq_proto::settings::SETTINGS;
use pinpriq_proto::task::{ClientId, Receipt, RequestId, State, StateKind, TaskRecord};
use pinpriq_proto::time::Timestamp;
use pinpriq_proto::unique::{Awaited, OnDuplicate, PutUnique, Unique, WindowRecord};
use pinpriq_testing::model::{Home, Model, Place};

/// How often each thing happened.
#[derive(Debug, Default)]
pub(super) struct Census {
    cells: BTreeMap<(String, &'static str), u64>,
    refusals: BTreeMap<RefusalKind, u64>,
    outcomes: BTreeMap<(&'static str, &'static str), u64>,
    deliveries: u64,
    /// Deliveries that were called back, by what has caused it.
    recalls: BTreeMap<&'static str, u64>,
    cancels: u64,
    restarts: u64,
    /// Transactions that were carried out, and that were not.
    transactions: [u64; 2],
    compactions: u64,
    /// The kinds of commands that were not refused, each with the name of its type.
    carried_out: BTreeSet<(&'static str, &'static str)>,
    /// The names of the requests that were read as the commands for which they were written.
    requests: BTreeSet<String>,
    /// Commands that were refused because there was no room.
    busy: BTreeSet<&'static str>,
    fan_out: BTreeMap<&'static str, u64>,
    schedules: BTreeSet<&'static str>,
    unique: BTreeSet<&'static str>,
    turns: BTreeSet<&'static str>,
    /// The settings that were given to a queue or lane.
    settings: BTreeSet<&'static str>,
    /// Commands that were refused because of the names that they keep within.
    no_perm: BTreeSet<&'static str>,
}

/// Every kind of command. Each must have been carried out.
const KINDS: [(&str, &[&str]); 5] = [
    ("Command", Command::KINDS),
    ("Queue", QueueCommand::KINDS),
    ("Member", MemberCommand::KINDS),
    ("Schedule", ScheduleCommand::KINDS),
    ("Batch", BatchCommand::KINDS),
];

/// Commands that must have been refused for lack of room.
const NEED_ROOM: [&str; 22] = [
    "Put",
    "PutBuried",
    "Reserve",
    "Share",
    "Take",
    "Ack",
    "Release",
    "Bury",
    "Fail",
    "Move",
    "Dig",
    "Switch",
    "Snatch",
    "Restart",
    "Update",
    "Await",
    "Subscribe",
    "Queue",
    "Publish",
    "Member",
    "Schedule",
    "Import",
];

/// Commands that must have been refused because of names.
const NEED_NAMES: [&str; 6] = ["Numbered", "Schedule", "Join", "Beat", "Leave", "Redrive"];

/// Everything that must have happened in fan-out.
const FAN_OUT: [&str; 21] = [
    "a member rejoins",
    "a member joins while its former lanes are cleaned",
    "a publication reaches several lanes",
    "a publication reaches no member",
    "a publication reaches a queue's namesake",
    "a lane misses a publication",
    "a lane is left with tasks",
    "a member leaves with tasks",
    "a lease of a member runs out with tasks",
    "a taker of a lane is sent away",
    "a pop of a lane is undone",
    "a pop of a lane that is gone is not undone",
    "a receipt alone names its lane",
    "a receipt comes with another member",
    "a restart finds lanes",
    "a restart finds lanes that are to be cleaned",
    "Task is written again in a lane",
    "Published is written again",
    "Lane is written again",
    "Member is written again",
    "an awaiter of a lane hears killed",
];

/// Everything that must have happened to schedules.
const SCHEDULES: [&str; 8] = [
    "a slot puts a task",
    "a slot is missed",
    "a schedule with figures is paused",
    "a schedule puts a task by hand",
    "a restart makes up a slot",
    "a restart makes up several slots",
    "a restart misses slots",
    "Schedule is written again",
];

/// Everything that must have happened to unique tasks.
const UNIQUE: [&str; 8] = [
    "a put meets a task",
    "a put meets only a window",
    "a put waits for the first task",
    "a put hears of the first task",
    "a put into a full queue meets a task",
    "a restart finds a window without its task",
    "a window ends with its task there",
    "Window is written again",
];

/// Everything that must have happened where tasks take turns.
const TURNS: [&str; 24] = [
    "an older task waits for the turn of its share",
    "a share has its turn at several numbers",
    "the limit of a key is reached",
    "the bucket of a key is shut",
    "a task holds its key",
    "several tasks hold a key",
    "the limit of a share is reached",
    "the capacity of a share is reached",
    "the bucket of a share is shut",
    "the bucket of a queue is in debt",
    "a consumer waits for an opening",
    "a lane has turns",
    "what was charged is given back",
    "a task did cost more than its put said",
    "a task did cost less than its put said",
    "a share pays by a weight of its own",
    "a share has a limit of its own",
    "a share has a rate of its own",
    "a taker of another order is sent away",
    "a task goes before a more urgent one",
    "a task ages by a former AGEING",
    "a task began to age after its put",
    "tasks of a key age",
    "a lane ages",
];

impl Census {
    fn note_put_back(&mut self, model: &Model, client: ClientId, records: &[TaskRecord]) {
        for record in records {
            if record.lane.is_some() && !is_open(model, &Place::of(record)) {
                self.fan_out("a pop of a lane that is gone is not undone");
                continue;
            }
            if record.lane.is_some() {
                self.fan_out("a pop of a lane is undone");
            }
            self.cell("put back", standing(numbered(model, record.number), client));
        }
    }

    /// Counts the cells of the table that a command is about to reach.
    pub(super) fn note_command(&mut self, model: &Model, client: ClientId, command: &Command<'_>) {
        let by_id = |queue: QueueName<'_>, id: &[u8]| task_of(model, queue, id);
        match command {
            Command::Put(put) => self.note_put(model, client, put),
            Command::PutInLine { put, .. } => self.note_put(model, client, put),
            Command::PutBack(records) => self.note_put_back(model, client, records),
            Command::Ack(ack) => self.note_held(model, client, "ack", ack.held),
            Command::AckAll { queue, receipts } => {
                self.note_receipts(model, client, "ack", (*queue, receipts));
            }
            Command::Release(release) => self.note_held(model, client, "release", release.held),
            Command::Bury(bury) => self.note_held(model, client, "bury", bury.held),
            Command::Fail(fail) => self.note_held(model, client, "fail", fail.held),
            Command::Move { from, state, .. } => {
                let is_moved = |task: &&TaskRecord| task.progress.state.kind() == *state;
                let place = model.place_of(*from).ok();
                let home = place.and_then(|place| model.homes.get(&place));
                if let Some(task) = home.and_then(|home| home.tasks.values().find(is_moved)) {
                    self.cell("move to another queue", standing(Some(task), client));
                    self.cell("arrive by import or from another queue", "X");
                }
            }
            Command::Touch(touch) => self.note_held(model, client, "touch", touch.held),
            Command::Start { queue, receipt } => {
                self.note_receipts(model, client, "start", (*queue, &[*receipt]));
            }
            Command::StartAll { queue, receipts } => {
                self.note_receipts(model, client, "start", (*queue, receipts));
            }
            Command::Kill { queue, ids } => {
                for id in *ids {
                    self.cell("kill", standing(by_id(*queue, id), client));
                }
            }
            Command::Cancel(cancel) => {
                self.cell("cancel", standing(by_id(cancel.queue, cancel.id), client));
            }
            Command::TakeOne { queue, id, .. } | Command::Await { queue, id, .. } => {
                let takes = matches!(command, Command::TakeOne { .. });
                let row = if takes { "take by id" } else { "await" };
                self.cell(row, standing(by_id(*queue, id), client));
            }
            Command::Update(update) => {
                self.cell("update", standing(by_id(update.queue, update.id), client));
            }
            Command::Dig(transfer)
            | Command::Snatch(transfer)
            | Command::Restart(transfer)
            | Command::Switch { transfer, .. } => {
                let row = match command {
                    Command::Dig(_) => "dig",
                    Command::Snatch(_) => "snatch",
                    Command::Restart(_) => "restart",
                    _ => "switch",
                };
                self.cell(row, standing(by_id(transfer.queue, transfer.id), client));
            }
            Command::Numbered { number, deed } => {
                let task = numbered(model, *number).filter(|task| task.lane.is_none());
                let row = match deed {
                    Deed::Take => "take by number",
                    Deed::Kick => "kick",
                    _ => return,
                };
                self.cell(row, standing(task, client));
            }
            Command::Publish(publish) => self.note_publish(model, publish.topic),
            Command::Member(command) => self.note_member(model, command),
            _ => self.note_bulk(model, client, command),
        }
    }

    fn note_bulk(&mut self, model: &Model, client: ClientId, command: &Command<'_>) {
        let Command::Bulk(Bulk { queue, change: BulkChange::Delay(_), filter, dry: false, .. }) =
            command
        else {
            return;
        };
        if *filter == Filter::ALL {
            let place = model.place_of(*queue).ok();
            let home = place.and_then(|place| model.homes.get(&place));
            let tasks = home.into_iter().flat_map(|home| home.tasks.values().map(Some));
            for task in tasks.chain([None]) {
                self.cell("delayed in bulk", standing(task, client));
            }
        }
    }

    fn note_receipts(
        &mut self,
        model: &Model,
        client: ClientId,
        row: &'static str,
        (queue, receipts): (QueueName<'_>, &[Receipt]),
    ) {
        for receipt in receipts {
            let held = Held { queue, by: HeldBy::Receipt(*receipt) };
            self.note_held(model, client, row, held);
        }
    }

    fn note_put(&mut self, model: &Model, client: ClientId, put: &Put<'_>) {
        let content = put.payload.len() + put.terms.bytes();
        let home = model.homes.get(&Place::Queue(put.queue.into()));
        let gone = home.and_then(|home| home.make_room(put.priority, content as u64));
        if gone.is_some_and(|gone| !gone.is_empty()) {
            self.cell("make room for a more urgent one", "R");
        }
        if let Some(unique) = &put.unique {
            self.note_unique(model, client, put, unique);
        }
        if let Some(id) = put.id {
            let task = task_of(model, put.queue.into(), id);
            self.cell("put with that id", standing(task, client));
        }
    }

    fn note_unique(&mut self, model: &Model, client: ClientId, put: &Put<'_>, unique: &Unique<'_>) {
        match model.duplicate(put.queue, unique.key) {
            Some((_, Some(number))) => {
                self.unique("a put meets a task");
                if unique.on_duplicate == OnDuplicate::Replace {
                    self.cell(
                        "put again, to replace it",
                        standing(numbered(model, number), client),
                    );
                }
                if put.wait.is_some_and(Wait::blocks) {
                    self.unique("a put waits for the first task");
                }
                let home = model.homes.get(&Place::Queue(put.queue.into()));
                if home.is_some_and(|home| home.make_room(put.priority, 1 << 40).is_none()) {
                    self.unique("a put into a full queue meets a task");
                }
            }
            Some((_, None)) => {
                self.unique("a put meets only a window");
            }
            None => {}
        }
    }

    /// Counts a command by what has become of it.
    pub(super) fn note_applied(&mut self, command: &Command<'_>, applied: Applied) {
        if let Command::Queue(
            QueueCommand::Create { settings, .. } | QueueCommand::Set { settings, .. },
        ) = command
            && applied == Applied::Answered
        {
            self.settings.extend(settings.iter().map(|(setting, _)| setting.name));
        }
        match (command, applied) {
            (Command::Within { command, .. }, Applied::Refused(RefusalKind::NoPerm)) => {
                self.no_perm.extend(kinds_of(command).map(|(_, kind)| kind));
            }
            (Command::Within { command, .. }, _) => self.note_applied(command, applied),
            (_, Applied::Refused(RefusalKind::Busy)) => {
                self.busy.insert(Command::KINDS[command.kind()]);
            }
            (_, Applied::Refused(_)) => {}
            _ => self.carried_out.extend(kinds_of(command)),
        }
    }

    /// Checks that what is written as a request is read as the same command.
    pub(super) fn note_request(&mut self, command: &Command<'_>) {
        let Some(words) = command.words() else { return };
        let words: Vec<&[u8]> = words.as_slice().iter().map(Vec::as_slice).collect();
        // Some commands that only the engine refuses are no request.
        if let Ok(Some(read)) = read(&words, &Room::default()) {
            assert_eq!(read, *command, "a request is read otherwise than it was written");
            if let Found::Spec(spec, ..) = find(&words) {
                self.requests.insert(spec.full_name());
            }
        }
    }

    fn note_publish(&mut self, model: &Model, topic: &[u8]) {
        let lanes = model.homes.iter().filter(|(_, home)| *home.name == *topic);
        let open = lanes.clone().filter(|(place, home)| {
            home.lane.is_some() && !model.has_ended(place) && !home.paused.input.is_on()
        });
        match open.count() {
            0 => self.fan_out("a publication reaches no member"),
            1 => {}
            _ => self.fan_out("a publication reaches several lanes"),
        }
        if lanes.clone().any(|(_, home)| home.lane.is_none()) {
            self.fan_out("a publication reaches a queue's namesake");
        }
        if lanes.clone().any(|(_, home)| home.lane.as_ref().is_some_and(|lane| lane.missed > 0)) {
            self.fan_out("a lane misses a publication");
        }
    }

    fn note_member(&mut self, model: &Model, command: &MemberCommand<'_>) {
        match *command {
            MemberCommand::Join { member, .. } => {
                if model.alive(member).is_some() {
                    self.fan_out("a member rejoins");
                } else if model.members.values().any(|known| *known.name == *member) {
                    self.fan_out("a member joins while its former lanes are cleaned");
                }
            }
            MemberCommand::LeaveTopic { topic, member } => {
                let lane = model.place_of(QueueName { name: topic, member: Some(member) });
                if lane.is_ok_and(|lane| !model.homes[&lane].tasks.is_empty()) {
                    self.fan_out("a lane is left with tasks");
                }
            }
            MemberCommand::Leave(member) => {
                let has_tasks = |task: &TaskRecord| {
                    let lane = task.lane.as_ref();
                    model.is_live(task.number) && lane.is_some_and(|lane| *lane.member == *member)
                };
                if model.tasks().any(has_tasks) {
                    self.fan_out("a member leaves with tasks");
                }
            }
            MemberCommand::Beat { .. } | MemberCommand::List(_) => {}
        }
    }

    /// Counts what the moment of a timeout does to members.
    pub(super) fn note_timeout(&mut self, model: &Model, now: Timestamp) {
        let ends =
            |(number, window): (&u64, &WindowRecord)| window.until <= now && model.is_live(*number);
        if model.windows.iter().any(ends) {
            self.unique("a window ends with its task there");
        }
        let is_over = |home: &Home| {
            let member = home.lane.as_ref().map(|lane| &model.members[&lane.incarnation]);
            member.is_some_and(|member| !member.ended && member.lease_until <= now)
        };
        if model.homes.values().any(|home| is_over(home) && !home.tasks.is_empty()) {
            self.fan_out("a lease of a member runs out with tasks");
        }
    }

    fn unique(&mut self, what: &'static str) {
        assert!(UNIQUE.contains(&what), "{what:?} is in the list");
        self.unique.insert(what);
    }

    /// Counts what holds tasks back where they take turns.
    pub(super) fn note_turns(&mut self, model: &Model) {
        self.turns(&model.seen_of_turns());
    }

    fn turns(&mut self, seen: &[&'static str]) {
        assert!(seen.iter().all(|what| TURNS.contains(what)), "{seen:?} are in the list");
        self.turns.extend(seen);
    }

    fn schedule(&mut self, what: &'static str) {
        assert!(SCHEDULES.contains(&what), "{what:?} is in the list");
        self.schedules.insert(what);
    }

    /// Counts what has become of schedules, after everything was compared.
    pub(super) fn note_schedules(&mut self, model: &Model, has_restarted: bool) {
        for known in model.schedules.values() {
            let course = &known.course;
            if course.last_slot.is_some() {
                self.schedule("a slot puts a task");
            }
            if course.missed > 0 {
                self.schedule("a slot is missed");
            }
            if course.paused && course.fired > 0 {
                self.schedule("a schedule with figures is paused");
            }
        }
        let by_hand = |task: &TaskRecord| task.scheduled().is_some_and(|it| it.slot.is_none());
        if model.tasks().any(by_hand) {
            self.schedule("a schedule puts a task by hand");
        }
        if has_restarted {
            self.note_made_up(model);
        }
    }

    fn note_made_up(&mut self, model: &Model) {
        for known in model.schedules.values().filter(|known| !known.course.paused) {
            let Recurrence::Every { every, .. } = known.plan.form else { continue };
            let behind = model.now.since(known.course.done_until).ms() / every.ms();
            match behind {
                0 if known.course.done_until == model.now => {
                    self.schedule("a restart misses slots");
                }
                0 => {}
                1 => self.schedule("a restart makes up a slot"),
                _ => self.schedule("a restart makes up several slots"),
            }
        }
    }

    fn fan_out(&mut self, what: &'static str) {
        assert!(FAN_OUT.contains(&what), "{what:?} is in the list");
        *self.fan_out.entry(what).or_default() += 1;
    }

    fn note_held(&mut self, model: &Model, client: ClientId, word: &str, held: Held<'_>) {
        let (form, task) = match held.by {
            HeldBy::Id(id) => ("id", task_of(model, held.queue, id)),
            HeldBy::Receipt(Receipt { number, grant }) => {
                let task = numbered(model, number);
                let receipt = Some(Receipt { number, grant });
                let is_meant = |task: &TaskRecord| {
                    let member = task.lane.as_ref().map(|lane| &*lane.member);
                    let named = held.queue.member;
                    *task.queue == *held.queue.name && (named.is_none() || named == member)
                };
                let is_held =
                    task.is_some_and(|task| task.receipt() == receipt && model.is_live(number));
                let is_current = is_held && task.is_some_and(is_meant);
                if is_held && task.is_some_and(|task| task.lane.is_some()) {
                    match held.queue.member {
                        None => self.fan_out("a receipt alone names its lane"),
                        Some(_) if !is_current => {
                            self.fan_out("a receipt comes with another member");
                        }
                        Some(_) => {}
                    }
                }
                (if is_current { "receipt" } else { "another receipt" }, task)
            }
        };
        // A task that no client can reach is in no column.
        let task = task.filter(|task| model.is_live(task.number));
        self.cell(&format!("{word} by {form}"), standing(task, client));
    }

    fn cell(&mut self, row: &str, standing: &'static str) {
        *self.cells.entry((row.to_owned(), standing)).or_default() += 1;
    }

    /// Counts an output.
    pub(super) fn note_output(&mut self, output: &Output, asked: Option<RequestId>) {
        if let Output::Reply { request, reply: Reply::Refused(refusal), .. } = output
            && refusal.kind == RefusalKind::NotFound
            && Some(*request) != asked
        {
            self.fan_out("a taker of a lane is sent away");
        }
        if let Output::Reply { request, reply: Reply::Refused(refusal), .. } = output
            && refusal.kind == RefusalKind::BadArgument
            && Some(*request) != asked
        {
            self.turns(&["a taker of another order is sent away"]);
        }
        if let Output::Reply { request, reply, .. } = output
            && Some(*request) != asked
        {
            self.note_late(reply);
        }
        let (tasks, popped) = match output {
            Output::Delivery { tasks, popped, .. } => {
                self.deliveries += 1;
                (tasks, *popped)
            }
            Output::Notice(notice) if !notice.is_recall() => {
                self.cancels += 1;
                return;
            }
            Output::Notice(_) => {
                let place = if asked.is_none() { "by time" } else { "by a command" };
                *self.recalls.entry(place).or_default() += 1;
                return;
            }
            Output::Reply { reply, .. } => match reply.bare() {
                Reply::Tasks { tasks, popped } => (tasks, *popped),
                Reply::Transaction(replies) => {
                    self.transactions[0] += u64::from(replies.len() > 2);
                    return;
                }
                Reply::Refused(refusal) => {
                    let is_late = refusal.kind == RefusalKind::ExecAbort
                        && !refusal.sentence.starts_with("1 ");
                    self.transactions[1] += u64::from(is_late);
                    *self.refusals.entry(refusal.kind).or_default() += 1;
                    return;
                }
                Reply::PutOutcome(_, outcome) => {
                    *self.outcomes.entry(("put", outcome.word())).or_default() += 1;
                    return;
                }
                Reply::PutUnique(PutUnique { new: false, awaited: Awaited::Known(_), .. }) => {
                    self.unique("a put hears of the first task");
                    return;
                }
                Reply::Outcome(outcome, _) => {
                    *self.outcomes.entry(("await", outcome.word())).or_default() += 1;
                    return;
                }
                _ => return,
            },
        };
        for _ in tasks {
            self.cell(if popped { "pop" } else { "take" }, "R");
        }
    }

    /// Counts what became of puts that have waited for room.
    fn note_late(&mut self, reply: &Reply) {
        let what = match reply {
            Reply::Put(_) | Reply::PutUnique(PutUnique { new: true, awaited: Awaited::No, .. }) => {
                "enters"
            }
            Reply::Refused(refusal) if refusal.kind == RefusalKind::Full => "waits in vain",
            _ => return,
        };
        *self.outcomes.entry(("put in line", what)).or_default() += 1;
    }

    pub(super) fn note_restart(&mut self, model: &Model) {
        self.restarts += 1;
        if model.windows.keys().any(|number| !model.is_live(*number)) {
            self.unique("a restart finds a window without its task");
        }
        let mut lanes = model.tasks().filter(|task| task.lane.is_some());
        if lanes.clone().any(|task| model.is_live(task.number)) {
            self.fan_out("a restart finds lanes");
        }
        if lanes.any(|task| !model.is_live(task.number)) {
            self.fan_out("a restart finds lanes that are to be cleaned");
        }
    }

    pub(super) fn note_compaction(&mut self, model: &Model, written: &[RecordKey]) {
        self.compactions += 1;
        for key in written {
            match key {
                RecordKey::Published(_) => self.fan_out("Published is written again"),
                RecordKey::Lane(_) => self.fan_out("Lane is written again"),
                RecordKey::Member(_) => self.fan_out("Member is written again"),
                RecordKey::Detail(DetailKind::Window, _) => self.unique("Window is written again"),
                RecordKey::Schedule(_) => self.schedule("Schedule is written again"),
                RecordKey::Task(number) => {
                    if numbered(model, *number).is_some_and(|task| task.lane.is_some()) {
                        self.fan_out("Task is written again in a lane");
                    }
                }
                RecordKey::Queue(_) | RecordKey::Detail(..) => {}
            }
        }
    }

    /// Counts the awaiters of tasks that were removed with their lane.
    pub(super) fn note_killed(&mut self, model: &Model) {
        let mut hidden = model.tasks().filter(|task| !model.is_live(task.number));
        if hidden.any(|task| model.is_awaited(task.number)) {
            self.fan_out("an awaiter of a lane hears killed");
        }
    }

    /// Counts what time and the ends of connections caused.
    pub(super) fn note_happened(&mut self, model: &Model) {
        for ((row, kind), times) in &model.happened {
            for standing in standings_of(*kind) {
                *self.cells.entry(((*row).to_owned(), standing)).or_default() += times;
            }
        }
    }

    /// Asserts that everything that can happen has happened.
    #[expect(clippy::too_many_lines, reason = "one table after the other")]
    pub(super) fn assert_complete(&self) {
        let mut missing = Vec::new();
        let listing = transition_listing();
        let head: Vec<&str> = cells(listing.lines().next().unwrap_or_default());
        for line in listing.lines().skip(2) {
            let row = cells(line);
            for (cell, standing) in row.iter().zip(&head).skip(1) {
                let known = self.cells.keys().any(|(name, at)| name == row[0] && at == standing);
                // Nothing happens to a buried task when its TTL passes, so it cannot be counted.
                let is_silent = row[0] == "its deadline passes" && *cell == "=";
                if *cell != "—" && !is_silent && !known {
                    missing.push(format!("{} in {standing}", row[0]));
                }
            }
        }
        for kind in RefusalKind::ALL {
            // The engine knows nothing about failures of the store, shards and stops.
            use RefusalKind::{
                Closing, ClusterDown, CrossShard, ReadOnly, Store, TryAgain, Unknown,
            };
            let is_the_servers = matches!(kind, Store | Closing | CrossShard | ReadOnly)
                || matches!(kind, TryAgain | ClusterDown | Unknown);
            let is_the_engines = !is_the_servers;
            if is_the_engines && !self.refusals.contains_key(&kind) {
                missing.push(kind.word().to_owned());
            }
        }
        for request in ["put", "await"] {
            let common = ["acked", "buried", "expired", "killed", "dead", "moved", "timeout"];
            let outcomes = common.into_iter().chain(["skipped"]);
            for outcome in outcomes {
                if !self.outcomes.contains_key(&(request, outcome)) {
                    missing.push(format!("{request} {outcome}"));
                }
            }
        }
        for outcome in ["enters", "waits in vain"] {
            if !self.outcomes.contains_key(&("put in line", outcome)) {
                missing.push(format!("a put that waited for room {outcome}"));
            }
        }
        for (spec, read) in TABLE.iter().zip(READS) {
            // The others are written for KICK and READY.
            let is_other = ["KICK", "READY"].contains(&spec.name);
            if read.is_some() && !is_other && !self.requests.contains(&spec.full_name()) {
                missing.push(format!("{} is written and read", spec.full_name()));
            }
        }
        for (of, kinds) in KINDS {
            for kind in kinds.iter().filter(|kind| **kind != "Within") {
                if !self.carried_out.contains(&(of, *kind)) {
                    missing.push(format!("{of}::{kind} is carried out"));
                }
            }
        }
        for what in NEED_ROOM {
            if !self.busy.contains(what) {
                missing.push(format!("{what} finds no room"));
            }
        }
        for what in NEED_NAMES {
            if !self.no_perm.contains(what) {
                missing.push(format!("{what} goes beyond its names"));
            }
        }
        for what in SCHEDULES {
            if !self.schedules.contains(what) {
                missing.push(what.to_owned());
            }
        }
        for what in UNIQUE {
            if !self.unique.contains(what) {
                missing.push(what.to_owned());
            }
        }
        for what in TURNS {
            if !self.turns.contains(what) {
                missing.push(what.to_owned());
            }
        }
        for setting in SETTINGS {
            if !self.settings.contains(setting.name) {
                missing.push(format!("{} is set", setting.name));
            }
        }
        for what in FAN_OUT {
            if !self.fan_out.contains_key(what) {
                missing.push(what.to_owned());
            }
        }
        assert!(missing.is_empty(), "never seen: {missing:?}\nseen: {self:#?}");
        assert!(self.transactions.iter().all(|count| *count > 200), "{:?}", self.transactions);
        assert!(self.cancels > 0, "no holder was asked to stop");
        assert_eq!(self.recalls.len(), 2, "{:?}", self.recalls);
        assert!(self.deliveries > 0 && self.restarts > 0 && self.compactions > 0, "{self:#?}");
    }
}

/// The kind of a command, and that of the command in it.
fn kinds_of(command: &Command<'_>) -> impl Iterator<Item = (&'static str, &'static str)> {
    let within = match command {
        Command::Queue(it) => Some((1, it.kind())),
        Command::Member(it) => Some((2, it.kind())),
        Command::Schedule(it) => Some((3, it.kind())),
        Command::Batch(it) => Some((4, it.kind())),
        _ => None,
    };
    let kinds = [Some((0, command.kind())), within];
    kinds.into_iter().flatten().map(|(of, kind)| (KINDS[of].0, KINDS[of].1[kind]))
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// Returns the task of this id, if it and its queue exist.
fn task_of<'a>(model: &'a Model, queue: QueueName<'_>, id: &[u8]) -> Option<&'a TaskRecord> {
    model.find(queue, id).ok().flatten().map(|number| model.task(number))
}

fn numbered(model: &Model, number: u64) -> Option<&TaskRecord> {
    model.knows(number).then(|| model.task(number))
}

/// Whether tasks can still be returned to a place.
fn is_open(model: &Model, place: &Place) -> bool {
    model.homes.contains_key(place) && !model.has_ended(place)
}

/// The column of a task for a client.
fn standing(task: Option<&TaskRecord>, client: ClientId) -> &'static str {
    match task.map(|task| &task.progress.state) {
        None => "X",
        Some(State::Taken(lease)) if lease.is_held_by(client) => "T, held here",
        Some(State::Taken(_)) => "T, held elsewhere",
        Some(other) => standings_of(other.kind())[0],
    }
}

/// The columns of a state, for all clients.
fn standings_of(kind: StateKind) -> &'static [&'static str] {
    match kind {
        StateKind::Ready => &["R"],
        StateKind::Taken => &["T, held here", "T, held elsewhere"],
        StateKind::Waiting => &["W"],
        StateKind::Buried => &["B"],
        StateKind::Zombie => &["Z"],
        StateKind::Done => &["D"],
    }
}
