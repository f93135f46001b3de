//! What a RESP client must read, derived from the replies of the model.
//!
//! Sentences for people are not compared, only the words before them. An id that the model could
//! not predict is taken from the reply, and must be new.

use std::num::NonZeroU64;

use crate::model::Model;
use pinpriq_proto::batches::{BatchShown, BatchState};
use pinpriq_proto::command::{Assign, Command, QueueCommand};
use pinpriq_proto::fanout::MemberFigures;
use pinpriq_proto::fields::told::{ATTEMPT, Holder};
use pinpriq_proto::fields::{self, Field, Seen, TASK};
use pinpriq_proto::histogram::TimeHistogram;
use pinpriq_proto::looking::{Ending, Explanation, LeaseShown, Reason};
use pinpriq_proto::named_limits::LimitShown;
use pinpriq_proto::reply::{Notice, RefusalKind, Reply};
use pinpriq_proto::schedule::{Recurrence, ShownSchedule};
use pinpriq_proto::settings::{Paused, SETTINGS, Setting, Settings, Shown};
use pinpriq_proto::shares::{Own, ShareShown};
use pinpriq_proto::stats::Figures;
use pinpriq_proto::task::{Bytes, ClientId, State, StateKind, TaskId, TaskRecord, headers};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{Awaited, PutUnique};
use pinpriq_proto::wire::resp::Value;
use pinpriq_server::parts::at_home;

use crate::sim::ask::{Ask, receipt_text};

/// A value as far as it can be predicted.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    Ok,
    /// A refusal that begins with this word.
    Word(&'static str),
    /// The refusal of a transaction: these are the position and the word of the step.
    Words(String),
    Text(Vec<u8>),
    Number(u64),
    Signed(i64),
    Null,
    /// The id of the task of this number.
    Id(u64, TaskId),
    List(Vec<Self>),
    Map(Vec<(&'static str, Self)>),
    /// A map whose keys are not known in advance.
    Pairs(Vec<(String, Self)>),
    Anything,
}

use Wanted::{Id, List, Map, Null, Number, Pairs, Text};

/// The state needed to check what a client reads.
pub(crate) struct Reader<'a> {
    pub(crate) model: &'a mut Model,
    /// Whether maps are sent as maps.
    pub(crate) resp3: bool,
}

/// Compares what was read with what was expected, and describes the difference.
pub(crate) fn differ(wanted: &Wanted, read: &Value, reader: &mut Reader<'_>) -> Result<(), String> {
    let same = match (wanted, read) {
        (Wanted::Anything, _) | (Null, Value::Null) => true,
        (Wanted::Ok, Value::Simple(text)) => text == "OK",
        (Wanted::Word(word), Value::Error(text)) => {
            let mut parts = text.splitn(2, ' ');
            parts.next() == Some(*word) && parts.next().is_some_and(|rest| !rest.is_empty())
        }
        (Wanted::Words(words), Value::Error(text)) => text
            .strip_prefix("EXECABORT ")
            .is_some_and(|rest| rest.strip_prefix(&**words).is_some_and(|rest| rest.len() > 1)),
        (Text(text), Value::Bulk(read)) => text == read,
        (Text(text), Value::Simple(read)) => text == read.as_bytes(),
        (Number(number), Value::Integer(read)) => i64::try_from(*number) == Ok(*read),
        (Wanted::Signed(number), Value::Integer(read)) => number == read,
        (Id(number, id), Value::Bulk(read)) => id_is(*number, id, read, reader.model),
        (List(wanted), Value::Array(read) | Value::Push(read)) => {
            return differ_all(wanted, read, reader);
        }
        (Map(wanted), Value::Map(_) | Value::Array(_)) => {
            let pairs = wanted.iter().map(|(key, value)| (key.as_bytes(), value));
            return differ_map(&pairs.collect::<Vec<_>>(), read, reader);
        }
        (Pairs(wanted), Value::Map(_) | Value::Array(_)) => {
            let pairs = wanted.iter().map(|(key, value)| (key.as_bytes(), value));
            return differ_map(&pairs.collect::<Vec<_>>(), read, reader);
        }
        _ => false,
    };
    if same { Ok(()) } else { Err(format!("wanted {wanted:?} and read {read:?}")) }
}

fn differ_all(wanted: &[Wanted], read: &[Value], reader: &mut Reader<'_>) -> Result<(), String> {
    if wanted.len() != read.len() {
        return Err(format!("wanted {} values, {wanted:?}, and read {read:?}", wanted.len()));
    }
    wanted.iter().zip(read).try_for_each(|(wanted, read)| differ(wanted, read, reader))
}

/// A map of RESP3, or the flat array that represents it in RESP2.
fn differ_map(
    wanted: &[(&[u8], &Wanted)],
    read: &Value,
    reader: &mut Reader<'_>,
) -> Result<(), String> {
    let flat: Vec<&Value> = match read {
        Value::Map(pairs) if reader.resp3 => {
            pairs.iter().flat_map(|(key, value)| [key, value]).collect()
        }
        Value::Array(values) if !reader.resp3 => values.iter().collect(),
        _ => Vec::new(),
    };
    if flat.len() != 2 * wanted.len() {
        return Err(format!("wanted {} fields and read {read:?}", wanted.len()));
    }
    for ((key, value), pair) in wanted.iter().zip(flat.chunks(2)) {
        let [read_key, read_value] = pair else { continue };
        if read_key.as_bytes() != Some(*key) {
            return Err(format!("wanted {} and read {read_key:?}", key.escape_ascii()));
        }
        differ(value, read_value, reader)
            .map_err(|message| format!("{}: {message}", key.escape_ascii()))?;
    }
    Ok(())
}

fn id_is(number: u64, id: &TaskId, read: &[u8], model: &mut Model) -> bool {
    if let Some(known) = model.resolve(id) {
        return text_of(&known) == read;
    }
    let text = String::from_utf8_lossy(read);
    parse_made(&text).is_some_and(|id| model.bind(number, &id))
}

/// Parses an id that the server made, in a queue with uuids or clock readings.
fn parse_made(text: &str) -> Option<TaskId> {
    if let Ok(number) = text.parse() {
        return Some(TaskId::Number(number));
    }
    let digits: String = text.split('-').collect();
    let bytes = u128::from_str_radix(&digits, 16).ok()?.to_be_bytes();
    let id = TaskId::Uuid(bytes);
    (id.to_string() == text).then_some(id)
}

fn text_of(id: &TaskId) -> Vec<u8> {
    match id {
        TaskId::Number(number) => number.to_string().into_bytes(),
        TaskId::Uuid(_) => id.to_string().into_bytes(),
        TaskId::Given(bytes) => bytes.to_vec(),
    }
}

/// The expected reply to an ask.
pub(crate) fn answer(ask: &Ask, reply: &Reply) -> Wanted {
    match reply {
        Reply::Done => Wanted::Ok,
        Reply::Put(id) => made_id(id),
        Reply::PutOutcome(..)
        | Reply::PutUnique(_)
        | Reply::Outcome(..)
        | Reply::WithResult { .. } => List(ending(reply)),
        Reply::Tasks { tasks, popped } => tasks_of(ask, tasks, *popped),
        Reply::Shown(tasks) => tasks_of(ask, tasks, true),
        Reply::Ended(_) => Null,
        Reply::Task(task) => task.as_ref().map_or(Null, |task| meta(task, None)),
        Reply::Explained(explanation) => explained(explanation),
        Reply::Scanned { tasks, next } => {
            let cursor = Text(next.map_or(0, NonZeroU64::get).to_string().into_bytes());
            List(vec![cursor, tasks_of(ask, tasks, true)])
        }
        // What the records say is compared when they are imported, and by the tests of the server.
        Reply::Exported(page) => {
            let cursor = if page.next.is_some() { Wanted::Anything } else { word("0") };
            List(vec![cursor, List(vec![Wanted::Anything; page.len()])])
        }
        Reply::Leases { leases, next } => {
            let cursor = if next.is_some() { Wanted::Anything } else { word("0") };
            List(vec![cursor, List(leases.iter().map(lease).collect())])
        }
        Reply::Shares { shares, next } => {
            let cursor = if next.is_some() { Wanted::Anything } else { word("0") };
            List(vec![cursor, List(shares.iter().map(share).collect())])
        }
        Reply::State(state) => letter(*state),
        Reply::Deadline(at) => moment(*at),
        Reply::Count(count) | Reply::Joined(count) => Number(*count),
        Reply::Bulked { next, looked, changed } => {
            let cursor = Text(next.map_or(0, NonZeroU64::get).to_string().into_bytes());
            List(vec![cursor, Number(*looked), Number(*changed)])
        }
        Reply::Acks(answers) => List(
            answers
                .iter()
                .map(|answer| match answer {
                    Ok(()) => Wanted::Ok,
                    Err(refusal) => Wanted::Word(refusal.kind.word()),
                })
                .collect(),
        ),
        Reply::Settings { settings, paused, .. } => settings_map(settings, *paused),
        Reply::Names { names, more } => {
            let cursor = if *more { Wanted::Anything } else { word("0") };
            List(vec![cursor, List(names.iter().map(|name| Text(name.to_vec())).collect())])
        }
        Reply::Figures(figures) => {
            let of_one = |command: &Command<'_>| {
                matches!(command, Command::Queue(QueueCommand::Stats(Some(_))))
            };
            figures_map(figures, ask.with_command(of_one) == Some(true))
        }
        Reply::Members(members) => List(members.iter().map(member).collect()),
        Reply::Schedule(shown) => schedule(shown),
        Reply::Limit(shown) => limit(shown),
        Reply::Batch(shown) => batch(shown),
        Reply::BatchAwaited(shown) => awaited(shown),
        Reply::Transaction(replies) => {
            List(replies.iter().map(|reply| answer(ask, reply)).collect())
        }
        Reply::Refused(refusal) if refusal.kind == RefusalKind::ExecAbort => {
            Wanted::Words(refusal.sentence.clone())
        }
        Reply::Refused(refusal) => Wanted::Word(refusal.kind.word()),
        Reply::DeadlineSoon | Reply::Tubes(_) => unreachable!("no client asks for that over RESP"),
    }
}

/// The parts of a reply about the end of a task.
fn ending(reply: &Reply) -> Vec<Wanted> {
    match reply {
        Reply::PutOutcome(id, outcome) => vec![made_id(id), word(outcome.word())],
        Reply::PutUnique(PutUnique { id, new, awaited }) => {
            let mut parts = vec![made_id(id), Number(u64::from(*new))];
            match awaited {
                Awaited::No => {}
                Awaited::Unknown => parts.push(Null),
                Awaited::Known(outcome) => parts.push(word(outcome.word())),
            }
            parts
        }
        Reply::Outcome(outcome, state) => vec![word(outcome.word()), letter(*state)],
        Reply::WithResult { reply, result } => {
            let mut parts = ending(reply);
            parts.push(result.as_ref().map_or(Null, |result| Text(result.to_vec())));
            parts
        }
        _ => unreachable!("this says nothing about the end of a task"),
    }
}

/// The expected delivery to a subscriber.
pub(crate) fn delivery(task: &TaskRecord) -> Wanted {
    List(vec![
        word("task"),
        Text(task.queue.to_vec()),
        id_of(task),
        receipt(task, false),
        Text(task.payload.to_vec()),
    ])
}

/// What a subscriber hears when a delivery is called back.
pub(crate) fn recall(recalled: &Notice) -> Wanted {
    let Notice { queue, id, receipt, .. } = recalled;
    let id = Id(receipt.number, id.clone());
    let receipt = Text(receipt_text(*receipt).into_bytes());
    List(vec![word("recall"), Text(queue.to_vec()), id, receipt])
}

fn tasks_of(ask: &Ask, tasks: &[TaskRecord], hidden: bool) -> Wanted {
    let with_meta = matches!(ask, Ask::Command { meta: true, .. });
    let wanted = tasks.iter().map(|task| {
        if with_meta {
            return meta(task, Some(hidden));
        }
        List(vec![
            Text(task.queue.to_vec()),
            id_of(task),
            receipt(task, hidden),
            Text(task.payload.to_vec()),
        ])
    });
    List(wanted.collect())
}

/// The map of a task. Whether its receipt is hidden is none if it is not shown at all.
fn meta(task: &TaskRecord, hidden: Option<bool>) -> Wanted {
    let hides_receipt = hidden.unwrap_or(false);
    // No client takes a name.
    let seen =
        Seen { task, hides_receipt, client_name: b"", client_address: None, unique_until: None };
    let holder = match &task.progress.state {
        State::Taken(lease) => lease.client(),
        _ => None,
    };
    let wanted = |field: &Field| match (field.name, (field.read)(&seen)) {
        ("id", _) => id_of(task),
        ("client", _) => self::holder(holder),
        // The model does not know which of them are still connected.
        ("client_address", _) => holder.map_or(Null, |_| Wanted::Anything),
        (_, value) => told(value),
    };
    Map(TASK
        .iter()
        .filter(|field| field.shown.is_in(hidden.is_none()))
        .map(|field| (field.name, wanted(field)))
        .collect())
}

fn told(value: fields::Value<'_>) -> Wanted {
    match value {
        fields::Value::Missing => Null,
        fields::Value::Bytes(bytes) => Text(bytes.to_vec()),
        fields::Value::Id(id) => made_id(id),
        fields::Value::Receipt(receipt) => Text(receipt_text(receipt).into_bytes()),
        fields::Value::State(state) => letter(Some(state)),
        fields::Value::Integer(number) => Wanted::Signed(number),
        fields::Value::Number(number) => Number(number),
        fields::Value::Moment(at) => moment(Some(at)),
        fields::Value::Span(span) => Number(span.ms()),
        fields::Value::Headers(bytes) => headers(bytes),
        fields::Value::Attempts(attempts) => {
            let nobody = Holder::default();
            let attempt =
                |it| Map(ATTEMPT.iter().map(|f| (f.name, told((f.read)(it, &nobody)))).collect());
            List(attempts.iter().map(attempt).collect())
        }
        fields::Value::Names(names) => List(names.iter().map(|name| Text(name.to_vec())).collect()),
        fields::Value::None => word("none"),
        fields::Value::Address(_) | fields::Value::Truth(_) | fields::Value::Rate(_) => {
            Wanted::Anything
        }
    }
}

/// Headers, which are a map by name.
fn headers(bytes: &[u8]) -> Wanted {
    let pairs = headers::decode(bytes);
    let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    Pairs(pairs.map(|(key, value)| (name(key), Text(value.to_vec()))).collect())
}

fn limit(shown: &LimitShown) -> Wanted {
    let rate = shown.rules.rate.map_or(Null, |rate| Text(rate.to_string().into_bytes()));
    Map(vec![
        ("name", Text(shown.name.to_vec())),
        ("max", shown.rules.max.map_or(Null, Number)),
        ("rate", rate),
        ("taken", Number(shown.taken)),
        ("tokens", shown.tokens.map_or(Null, Wanted::Signed)),
        ("open_at", moment(shown.open_at)),
        ("queues", Number(shown.queues)),
        ("closed_ms", Number(shown.closed.ms())),
    ])
}

/// A batch that may not be done in time.
fn awaited(shown: &BatchShown) -> Wanted {
    let is_done = shown.state == BatchState::Done;
    List(vec![word(if is_done { "done" } else { "timeout" }), batch(shown)])
}

fn batch(shown: &BatchShown) -> Wanted {
    Map(vec![
        ("name", Text(shown.name.to_vec())),
        ("state", word(shown.state.word())),
        ("total", Number(shown.total)),
        ("pending", Number(shown.pending)),
        ("buried", Number(shown.buried)),
        ("acked", Number(shown.acked)),
        ("failed", Number(shown.failed)),
        ("waiting", Number(shown.waiting)),
        ("opened_at", moment(Some(shown.opened_at))),
        ("done_at", moment(shown.done_at)),
    ])
}

fn schedule(shown: &ShownSchedule) -> Wanted {
    let ShownSchedule { name, plan, course, next_at } = shown;
    let text = |bytes: Option<&Bytes>| bytes.map_or(Null, |bytes| Text(bytes.to_vec()));
    let ms = |span: Option<Span>| span.map_or(Null, |span| Number(span.ms()));
    let retries = plan.terms.retries();
    let (every, at, cron, zone) = match &plan.form {
        Recurrence::Every { every, anchor } => (Some(*every), Some(*anchor), None, None),
        Recurrence::Cron { expression, zone } => (None, None, Some(expression), zone.as_ref()),
    };
    Map(vec![
        ("name", text(Some(name))),
        ("queue", text(Some(&plan.queue))),
        ("payload", text(Some(&plan.payload))),
        ("cron", text(cron)),
        ("zone", text(zone)),
        ("key", text(plan.terms.key.as_ref())),
        ("share", text(plan.terms.share())),
        ("cost", Number(plan.terms.cost().into())),
        ("priority", plan.priority.map_or(Null, Wanted::Signed)),
        ("every", ms(every)),
        ("at", moment(at)),
        ("ttl", ms(plan.ttl)),
        ("ttr", ms(plan.terms.ttr)),
        ("fired", Number(course.fired)),
        ("missed", Number(course.missed)),
        ("last_slot", moment(course.last_slot)),
        ("next_at", moment(*next_at)),
        ("last_id", course.last_id.as_ref().map_or(Null, made_id)),
        ("on_missed", word(plan.on_missed.word())),
        ("overlap", word(plan.overlap.word())),
        ("paused", word(if course.paused { "yes" } else { "no" })),
        ("headers", headers(plan.terms.header_bytes())),
        ("attempts_max", own(retries.attempts, |most| Number(most.into()))),
        ("backoff", own(retries.backoff, |span| Number(span.ms()))),
        ("backoff_max", ms(retries.backoff_max)),
    ])
}

/// What a schedule says of its own about failures.
fn own<T>(own: Assign<Option<T>>, wanted: fn(T) -> Wanted) -> Wanted {
    own.given().map_or(Null, |own| own.map_or_else(|| word("none"), wanted))
}

fn receipt(task: &TaskRecord, hidden: bool) -> Wanted {
    match task.receipt().filter(|_| !hidden) {
        Some(receipt) => Text(receipt_text(receipt).into_bytes()),
        None => Null,
    }
}

fn settings_map(settings: &Settings, paused: Paused) -> Wanted {
    let shown = |setting: &'static Setting| setting.shown((setting.read)(settings));
    let entries = SETTINGS.into_iter().flat_map(shown).map(|(name, shown)| {
        let value = match shown {
            Shown::None => Null,
            Shown::Number(number) => Number(number),
            Shown::Text(text) => Text(text.to_vec()),
            Shown::Rate(rate) => Text(rate.to_string().into_bytes()),
        };
        (name.to_ascii_lowercase(), value)
    });
    let until = |at: Option<Timestamp>| at.map_or(Null, |at| Number(at.ms()));
    let fields = [
        ("paused".to_owned(), paused_word(paused)),
        ("paused_in_until".to_owned(), until(paused.input.until())),
        ("paused_out_until".to_owned(), until(paused.output.until())),
    ];
    Pairs(entries.chain(fields).collect())
}

fn figures_map(figures: &Figures, of_one_queue: bool) -> Wanted {
    let counters = &figures.counters;
    let counts = StateKind::ALL
        .into_iter()
        .map(|kind| (kind.letter().to_string(), Number(counters.count(kind))));
    let mut moves = counters.moves.clone();
    moves.sort_unstable();
    let moves = moves.into_iter().map(|(step, times)| {
        let letter = |kind: Option<StateKind>| kind.map_or('X', StateKind::letter);
        (format!("{}-{}", letter(step.from()), letter(step.to())), Number(times))
    });
    let paused =
        if of_one_queue { paused_word(figures.paused) } else { Number(figures.paused_queues) };
    let mut fields = vec![
        ("counts", Pairs(counts.collect())),
        ("transitions", Pairs(moves.collect())),
        // A task that was sent to the tail is older than its seq suggests, and either age is
        // correct.
        ("oldest_ready_ms", Wanted::Anything),
        ("paused", paused),
        ("takers", Number(figures.takers)),
        ("subscribers", Number(figures.subscribers)),
        ("bytes", Number(counters.bytes)),
        ("put", Number(counters.put)),
        ("acked", Number(counters.acked)),
        ("expired", Number(counters.expired)),
        ("killed", Number(counters.killed)),
        ("dead", Number(counters.dead)),
        ("evicted", Number(counters.evicted)),
        ("moved", Number(counters.moved)),
        ("failures", Number(counters.failures)),
        ("duplicates", Number(counters.duplicates)),
        ("present", Number(counters.present())),
        ("purged", Number(counters.purged)),
        ("revived", Number(counters.revived)),
        ("cancelled", Number(counters.cancelled)),
        ("skipped", Number(counters.skipped)),
    ];
    if of_one_queue {
        let priorities = figures.priorities.iter();
        let priorities = priorities.map(|(it, count)| (it.to_string(), Number(*count)));
        let times = counters.times.clone().unwrap_or_default();
        fields.extend([
            ("priorities", Pairs(priorities.collect())),
            ("waited_ms", Pairs(histogram(&times.waited))),
            ("held_ms", Pairs(histogram(&times.held))),
            // The model does not measure this.
            ("limited_ms", Wanted::Anything),
            ("holds_dead_letters", Number(u64::from(figures.holds_dead_letters))),
        ]);
    }
    fields.extend(figures.missed.map(|missed| ("missed", Number(missed))));
    Map(fields)
}

fn histogram(histogram: &TimeHistogram) -> Vec<(String, Wanted)> {
    let bound = |bound: Option<u64>| match bound {
        Some(ms) => format!("le_{ms}"),
        None => "le_inf".to_owned(),
    };
    let buckets = histogram.up_to().map(|(ms, count)| (bound(ms), Number(count)));
    let totals = [("count", histogram.count()), ("sum", histogram.sum_ms)];
    let totals = totals.map(|(name, number)| (name.to_owned(), Number(number)));
    totals.into_iter().chain(buckets).collect()
}

fn explained(explanation: &Explanation) -> Wanted {
    let Explanation { id, state, since, reasons, eta } = explanation;
    let ms = |span: Option<Span>| span.map_or(Null, |span| Number(span.ms()));
    Map(vec![
        ("id", id.as_ref().map_or(Null, made_id)),
        ("state", state.map_or(Null, |state| letter(Some(state)))),
        ("since", moment(*since)),
        ("reasons", List(reasons.iter().map(reason).collect())),
        ("eta_ms", ms(eta.map(|eta| eta.mean))),
        ("eta_low", ms(eta.map(|eta| eta.low))),
        ("eta_high", ms(eta.and_then(|eta| eta.high))),
    ])
}

fn reason(reason: &Reason) -> Wanted {
    let mut fields = vec![("code", word(reason.code()))];
    match reason {
        Reason::Delayed { until } => fields.push(("until", moment(Some(*until)))),
        Reason::Taken { client, since, until, progress } => fields.extend([
            ("client", holder(*client)),
            ("since", moment(*since)),
            ("until", moment(*until)),
            ("progress", progress.as_ref().map_or(Null, |text| Text(text.to_vec()))),
        ]),
        Reason::Buried { reason } => {
            let text = reason.as_ref().map_or(Null, |reason| Text(reason.to_vec()));
            fields.push(("reason", text));
        }
        Reason::Limit { taken, most } => {
            fields.extend([("taken", Number(*taken)), ("n", Number(*most))]);
        }
        Reason::NamedLimit { name, reached, open_at } => {
            fields.push(("name", Text(name.to_vec())));
            if let Some((taken, most)) = reached {
                fields.extend([("taken", Number(*taken)), ("n", Number(*most))]);
            }
            fields.extend(open_at.map(|at| ("open_at", moment(Some(at)))));
        }
        Reason::After { batch, pending } => {
            fields.extend([("batch", Text(batch.to_vec())), ("pending", Number(*pending))]);
        }
        Reason::Rate { next_at } => fields.push(("next_at", moment(Some(*next_at)))),
        Reason::KeyLimit { key, taken, most } => {
            fields.push(("key", Text(key.to_vec())));
            fields.extend([("taken", Number(*taken)), ("n", Number(*most))]);
        }
        Reason::KeyRate { key, open_at } => {
            fields.extend([("key", Text(key.to_vec())), ("open_at", moment(Some(*open_at)))]);
        }
        Reason::KeyHeld { key, by } => {
            fields.extend([("key", Text(key.to_vec())), ("by", made_id(by))]);
        }
        Reason::ShareLimit { share, taken, most } => {
            fields.push(("share", Text(share.to_vec())));
            fields.extend([("taken", Number(*taken)), ("n", Number(*most))]);
        }
        Reason::ShareRate { share, open_at } => {
            fields.extend([("share", Text(share.to_vec())), ("open_at", moment(Some(*open_at)))]);
        }
        Reason::ShareTurn { share, ahead } => {
            fields.extend([("share", Text(share.to_vec())), ("ahead", Number(*ahead))]);
        }
        Reason::Behind { at_least } => fields.push(("at_least", Number(*at_least))),
        Reason::Ended(Ending { outcome, at, reason, became }) => fields.extend([
            ("outcome", word(outcome.word())),
            ("at", moment(Some(*at))),
            ("reason", reason.as_ref().map_or(Null, |reason| Text(reason.to_vec()))),
            ("queue", became.as_ref().map_or(Null, |(queue, _)| Text(queue.to_vec()))),
            ("id", became.as_ref().map_or(Null, |(_, id)| made_id(id))),
        ]),
        Reason::Held
        | Reason::Expired
        | Reason::Paused
        | Reason::NoPriority
        | Reason::NoConsumer
        | Reason::Next => {}
    }
    Map(fields)
}

fn share(shown: &ShareShown) -> Wanted {
    let ms = |span: Option<Span>| span.map_or(Null, |span| Number(span.ms()));
    Map(vec![
        ("share", Text(shown.share.to_vec())),
        ("weight", Number(shown.rules.weight.into())),
        (
            "limit",
            match shown.rules.limit {
                Own::Default => Null,
                Own::Is(None) => word("none"),
                Own::Is(Some(limit)) => Number(limit),
            },
        ),
        (
            "rate",
            match shown.rules.rate {
                Own::Default => Null,
                Own::Is(None) => word("none"),
                Own::Is(Some(rate)) => Text(rate.to_string().into_bytes()),
            },
        ),
        ("ready", Number(shown.ready)),
        ("taken", Number(shown.taken)),
        ("waited_ms", ms(shown.waited)),
        ("oldest_ready_ms", ms(shown.oldest_ready)),
        ("acked", Number(shown.acked)),
        ("failed", Number(shown.failed)),
    ])
}

fn lease(lease: &LeaseShown) -> Wanted {
    let member = lease.member.as_ref();
    Map(vec![
        ("queue", Text(lease.place.queue.to_vec())),
        ("member", member.map_or(Null, |member| Text(member.to_vec()))),
        ("id", made_id(&lease.id)),
        ("client", holder(lease.holder)),
        // No client takes a name.
        ("name", Null),
        // The model does not know which of them are still connected.
        ("address", lease.holder.map_or(Null, |_| Wanted::Anything)),
        ("door", lease.holder.map_or(Null, |_| Wanted::Anything)),
        ("since", moment(lease.since)),
        ("until", moment(lease.until)),
        ("progress", lease.progress.as_ref().map_or(Null, |text| Text(text.to_vec()))),
    ])
}

fn holder(client: Option<ClientId>) -> Wanted {
    client.map_or(Null, |client| Number(at_home(client).0))
}

fn member(figures: &MemberFigures) -> Wanted {
    Map(vec![
        ("member", Text(figures.member.to_vec())),
        ("incarnation", Number(figures.incarnation)),
        ("lease_until", moment(Some(figures.lease_until))),
        ("ready", Number(figures.ready)),
        ("taken", Number(figures.taken)),
    ])
}

fn id_of(task: &TaskRecord) -> Wanted {
    Id(task.number, task.id.clone())
}

/// The expected id of a task that was just put. A placeholder names the task itself.
fn made_id(id: &TaskId) -> Wanted {
    Id(crate::model::number_of(id).unwrap_or_default(), id.clone())
}

fn paused_word(paused: Paused) -> Wanted {
    word(match (paused.input.is_on(), paused.output.is_on()) {
        (false, false) => "none",
        (true, false) => "in",
        (false, true) => "out",
        (true, true) => "both",
    })
}

fn word(word: &str) -> Wanted {
    Text(word.as_bytes().to_vec())
}

fn letter(state: Option<StateKind>) -> Wanted {
    Text(state.map_or('X', StateKind::letter).to_string().into_bytes())
}

fn moment(at: Option<Timestamp>) -> Wanted {
    at.map_or(Null, |at| Number(at.ms()))
}
