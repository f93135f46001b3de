//! Reads records of exports. Any bytes are a record, or a sentence that says what is wrong.
//!
//! Whether values make sense together is decided by the engine. A cron expression is checked here,
//! since the engine knows none.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinpriq_proto::change::ScheduleRecord;
use pinpriq_proto::command::Assign;
use pinpriq_proto::fields::{Carried, Draft, Field, FieldKind, Value as Given, carried};
use pinpriq_proto::request::settings::rate_of;
use pinpriq_proto::schedule::{Course, OnMissed, Overlap, Plan, Recurrence};
use pinpriq_proto::settings::{Pause, Paused};
use pinpriq_proto::shares::{Own, ShareRecord, ShareRules};
use pinpriq_proto::task::history::{Attempt, Contact, End, How};
use pinpriq_proto::task::{Bytes, ClientId, StateKind, TaskId, TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::WindowRecord;
use serde_json::{Map, Value};

use crate::calendars::cron;
use crate::doors::json::{bytes_of_item, headers_of};
use crate::figures::stats::{paused_until, paused_word};

/// A record that was read, with owned bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Record {
    /// Settings, each as a name and a value in words, and a pause.
    Queue(Option<Vec<[Vec<u8>; 2]>>, Paused),
    /// A task, and the end of the window of its unique key.
    Task(Box<TaskRecord>, Option<Timestamp>),
    /// A window that has outlived its task.
    Window(WindowRecord),
    /// A schedule.
    Schedule(Box<ScheduleRecord>),
    /// The rules of a share.
    Share(ShareRecord),
}

/// What is wrong with a record.
type Wrong = String;

/// The fields of a record that were not read yet.
struct Fields {
    fields: Map<String, Value>,
}

/// Reads a record of a queue of this name. A payload that comes beside it is not in it.
pub(crate) fn record(text: &[u8], queue: &[u8], payload: Option<&[u8]>) -> Result<Record, Wrong> {
    let value: Value =
        serde_json::from_slice(text).map_err(|wrong| format!("it is no JSON: {wrong}"))?;
    let Value::Object(fields) = value else { return Err("it is no object".to_owned()) };
    let mut fields = Fields { fields };
    // The one that is asked for counts.
    fields.bytes("queue")?;
    let queue = Bytes::from(queue);
    let kind = fields.text("type")?.ok_or("it has no type")?;
    let record = match &*kind {
        "queue" => Record::Queue(fields.settings()?, fields.paused()?),
        "task" => fields.task(queue, payload)?,
        "window" => Record::Window(fields.window(queue)?),
        "schedule" => Record::Schedule(Box::new(fields.schedule(queue, payload)?)),
        "share" => Record::Share(fields.share(queue)?),
        other => return Err(format!("there is no type '{}'", other.escape_debug())),
    };
    let has_none = matches!(record, Record::Queue(..) | Record::Window(_) | Record::Share(_));
    if payload.is_some() && has_none {
        return Err(format!("a {kind} has no payload"));
    }
    fields.end(&format!("a {kind}"))?;
    Ok(record)
}

impl Fields {
    /// Refuses fields that `what` does not have.
    fn end(&self, what: &str) -> Result<(), Wrong> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(field) => Err(format!("{what} has no field '{}'", field.escape_debug())),
        }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name)
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Wrong> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("'{name}' is a string")),
        }
    }

    fn bytes(&mut self, name: &str) -> Result<Option<Bytes>, Wrong> {
        let coded = format!("{name}_base64");
        match (self.text(name)?, self.text(&coded)?) {
            (Some(_), Some(_)) => Err(format!("it has '{name}' and '{coded}'")),
            (None, Some(text)) => {
                let bytes = STANDARD.decode(&text);
                let bytes = bytes.map_err(|_| format!("'{coded}' is no Base64"))?;
                Ok(Some(bytes.into()))
            }
            (text, None) => Ok(text.map(|text| text.into_bytes().into())),
        }
    }

    fn needed(&mut self, name: &str) -> Result<Bytes, Wrong> {
        self.bytes(name)?.ok_or_else(|| format!("it has no '{name}'"))
    }

    /// Reads the id that a task has, or had elsewhere.
    fn id(&mut self, name: &str) -> Result<Option<TaskId>, Wrong> {
        Ok(self.bytes(name)?.map(|bytes| id_of(&bytes)))
    }

    fn number(&mut self, name: &str) -> Result<Option<u64>, Wrong> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.as_u64().map(Some).ok_or_else(|| format!("'{name}' is a number from 0 to 2^64 - 1"))
    }

    fn truth(&mut self, name: &str) -> Result<Option<bool>, Wrong> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| format!("'{name}' is true or false"))
    }

    fn count(&mut self, name: &str) -> Result<Option<u64>, Wrong> {
        match self.number(name)? {
            Some(number) if number > u32::MAX.into() => {
                Err(format!("'{name}' is a number from 0 to 2^32 - 1"))
            }
            number => Ok(number),
        }
    }

    fn moment(&mut self, name: &str) -> Result<Option<Timestamp>, Wrong> {
        match self.number(name)? {
            Some(ms) if ms > Timestamp::MAX.ms() => Err(format!("'{name}' is after the year 9999")),
            ms => Ok(ms.map(Timestamp::from_ms)),
        }
    }

    fn span(&mut self, name: &str) -> Result<Option<Span>, Wrong> {
        match self.number(name)? {
            Some(ms) if ms > Span::MAX.ms() => Err(format!("'{name}' is too long a time")),
            ms => Ok(ms.map(Span::from_ms)),
        }
    }

    /// Reads a number that may be null, and is `usual` if it was left out.
    fn integer(&mut self, name: &str, usual: Option<i64>) -> Result<Option<i64>, Wrong> {
        match self.take(name) {
            None => Ok(usual),
            Some(Value::Null) => Ok(None),
            Some(value) => {
                let wrong = || format!("'{name}' is null or a number from -2^63 to 2^63 - 1");
                value.as_i64().map(Some).ok_or_else(wrong)
            }
        }
    }

    fn flag(&mut self, name: &str) -> Result<bool, Wrong> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(format!("'{name}' is true or false")),
        }
    }

    /// Reads one of some words. The first is the usual one.
    fn one_of<T: Copy>(
        &mut self,
        name: &str,
        all: &[T],
        word: fn(T) -> &'static str,
    ) -> Result<T, Wrong> {
        let Some(text) = self.text(name)? else { return Ok(all[0]) };
        let known = all.iter().find(|one| word(**one) == text);
        known.copied().ok_or_else(|| {
            let words: Vec<&str> = all.iter().map(|one| word(*one)).collect();
            format!("'{name}' is one of {}", words.join(", "))
        })
    }

    /// Reads a payload that is in the record or beside it.
    fn payload(&mut self, beside: Option<&[u8]>) -> Result<Bytes, Wrong> {
        match (self.bytes("payload")?, beside) {
            (Some(_), Some(_)) => Err("it has a payload, and another comes with it".to_owned()),
            (Some(payload), None) => Ok(payload),
            (None, Some(payload)) => Ok(payload.into()),
            (None, None) => Err("it has no 'payload'".to_owned()),
        }
    }

    fn terms(&mut self) -> Result<Terms, Wrong> {
        let terms = Terms::of(self.bytes("key")?, self.span("ttr_ms")?);
        let cost = self.count("cost")?.map_or_else(|| Ok(terms.cost()), u32::try_from);
        let cost = cost.map_err(|_| "'cost' is a number from 1 to 2^32 - 1".to_owned())?;
        let headers = self.headers("headers")?;
        let terms = terms.with_all(self.bytes("share")?, cost, headers.map(Bytes::from));
        self.retries(terms)
    }

    /// Adds what a record says about failures, as the field table reads it.
    fn retries(&mut self, terms: Terms) -> Result<Terms, Wrong> {
        let mut draft = Draft::of(Bytes::default());
        for (field, carried) in carried() {
            if ["attempts_max", "backoff", "backoff_max"].contains(&field.name) {
                self.field(field, carried, None, &mut draft)?;
            }
        }
        let (task, _) = draft.finish()?;
        Ok(terms.with_retries(task.terms.retries()))
    }

    /// Reads what may be none, which is null there. What is left out is not read.
    fn or_none<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self, &str) -> Result<Option<T>, Wrong>,
    ) -> Result<Assign<Option<T>>, Wrong> {
        match self.fields.get(name) {
            Some(Value::Null) => {
                self.take(name);
                Ok(Assign::To(None))
            }
            _ => Ok(read(self, name)?.map_or(Assign::Keep, |given| Assign::To(Some(given)))),
        }
    }

    fn headers(&mut self, name: &str) -> Result<Option<Vec<u8>>, Wrong> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let rule = "is an object of texts, or {\"base64\": \"…\"} for other bytes";
        headers_of(value).map(Some).ok_or_else(|| format!("'{name}' {rule}"))
    }

    /// Reads names.
    fn names(&mut self, name: &str) -> Result<Option<Vec<Bytes>>, Wrong> {
        let items = match self.take(name) {
            None => return Ok(None),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(format!("'{name}' is an array")),
        };
        let named = items.into_iter().map(bytes_of_item).collect::<Option<Vec<_>>>();
        let rule = "has texts, or {\"base64\": \"…\"} for other bytes";
        let named = named.ok_or_else(|| format!("'{name}' {rule}"))?;
        Ok(Some(named.into_iter().map(Bytes::from).collect()))
    }

    /// Reads attempts that have ended.
    fn attempts(&mut self, name: &str) -> Result<Option<Vec<Attempt>>, Wrong> {
        let items = match self.take(name) {
            None => return Ok(None),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(format!("'{name}' is an array")),
        };
        items.into_iter().map(attempt_of).collect::<Result<_, _>>().map(Some)
    }

    fn paused(&mut self) -> Result<Paused, Wrong> {
        let sides = [(false, false), (true, false), (false, true), (true, true)];
        let all = sides.map(|(input, output)| Paused::endlessly(input, output));
        let mut paused = self.one_of("paused", &all, paused_word)?;
        for (side, (name, _)) in
            [&mut paused.input, &mut paused.output].into_iter().zip(paused_until(Paused::default()))
        {
            match self.moment(name)? {
                Some(_) if !side.is_on() => {
                    return Err(format!("it has '{name}', and that side is not paused"));
                }
                Some(at) => *side = Pause::Until(at),
                None => {}
            }
        }
        Ok(paused)
    }

    /// Reads settings as words, which the same code reads that reads those of `QUEUE SET`.
    fn settings(&mut self) -> Result<Option<Vec<[Vec<u8>; 2]>>, Wrong> {
        let fields = match self.take("settings") {
            None => return Ok(None),
            Some(Value::Object(fields)) => fields,
            Some(_) => return Err("'settings' is an object".to_owned()),
        };
        let mut settings = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            let wrong = || format!("the setting '{}' has no such value", name.escape_debug());
            let (name, value) = match (name.strip_suffix("_base64"), value) {
                (Some(name), Value::String(text)) => {
                    (name, STANDARD.decode(&text).map_err(|_| wrong())?)
                }
                (None, Value::String(text)) => (&*name, text.into_bytes()),
                (None, Value::Number(number)) => (&*name, number.to_string().into_bytes()),
                (None, Value::Null) => (&*name, b"none".to_vec()),
                _ => return Err(wrong()),
            };
            settings.push([name.as_bytes().to_vec(), value]);
        }
        Ok(Some(settings))
    }

    fn task(&mut self, queue: Bytes, payload: Option<&[u8]>) -> Result<Record, Wrong> {
        let mut draft = Draft::of(queue);
        for (field, carried) in carried() {
            self.field(field, carried, payload, &mut draft)?;
        }
        draft.finish().map(|(task, until)| Record::Task(Box::new(task), until))
    }

    /// Reads one field of a task. A payload may be beside the record.
    fn field(
        &mut self,
        field: &Field,
        Carried { name, usual, write, .. }: &Carried,
        beside: Option<&[u8]>,
        draft: &mut Draft,
    ) -> Result<(), Wrong> {
        let usually = |value: Option<_>| value.unwrap_or(*usual);
        match field.kind {
            FieldKind::Bytes => {
                let bytes = self.bytes(name)?;
                write(draft, usually(bytes.as_deref().map(Given::Bytes)));
            }
            FieldKind::Payload => write(draft, Given::Bytes(&self.payload(beside)?)),
            FieldKind::Id => {
                let id = self.id(name)?;
                write(draft, usually(id.as_ref().map(Given::Id)));
            }
            FieldKind::State => {
                let state = self.one_of(name, &StateKind::ALL, StateKind::word)?;
                write(draft, Given::State(state));
            }
            FieldKind::Integer => {
                let number = self.integer(name, usual.integer())?;
                write(draft, number.map_or(Given::Missing, Given::Integer));
            }
            FieldKind::Count => {
                write(draft, usually(self.count(name)?.map(Given::Number)));
            }
            FieldKind::Number => {
                write(draft, usually(self.number(name)?.map(Given::Number)));
            }
            FieldKind::Moment => {
                write(draft, usually(self.moment(name)?.map(Given::Moment)));
            }
            FieldKind::Span => write(draft, usually(self.span(name)?.map(Given::Span))),
            FieldKind::Headers => {
                let headers = self.headers(name)?;
                write(draft, usually(headers.as_deref().map(Given::Headers)));
            }
            FieldKind::Names => {
                let names = self.names(name)?;
                write(draft, usually(names.as_deref().map(Given::Names)));
            }
            FieldKind::Attempts => {
                let attempts = self.attempts(name)?;
                write(draft, usually(attempts.as_deref().map(Given::Attempts)));
            }
            FieldKind::Truth => write(draft, usually(self.truth(name)?.map(Given::Truth))),
            FieldKind::NumberOrNone => {
                let number = self.or_none(name, Self::number)?;
                write(draft, Given::own(number, Given::Number));
            }
            FieldKind::SpanOrNone => {
                let span = self.or_none(name, Self::span)?;
                write(draft, Given::own(span, Given::Span));
            }
            FieldKind::Receipt | FieldKind::Address => {}
        }
        Ok(())
    }

    fn window(&mut self, queue: Bytes) -> Result<WindowRecord, Wrong> {
        Ok(WindowRecord {
            number: 0,
            queue,
            key: self.needed("unique")?,
            id: self.id("id")?.ok_or("it has no 'id'")?,
            until: self.moment("unique_until")?.ok_or("it has no 'unique_until'")?,
        })
    }

    fn share(&mut self, queue: Bytes) -> Result<ShareRecord, Wrong> {
        let share = self.needed("share")?;
        let weight = self.number("weight")?.unwrap_or(1);
        let limit = match self.take("limit") {
            None => Own::Default,
            Some(Value::Null) => Own::Is(None),
            Some(value) => Own::Is(Some(value.as_u64().ok_or("'limit' is null or a number")?)),
        };
        let rate = match self.take("rate") {
            None => Own::Default,
            Some(Value::Null) => Own::Is(None),
            Some(value) => {
                let rate = value.as_str().and_then(|text| rate_of(text.as_bytes()));
                Own::Is(Some(rate.ok_or("'rate' is null or n/ms, such as 100/1000")?))
            }
        };
        let weight = u16::try_from(weight).map_err(|_| "'weight' is a number from 1 to 1000")?;
        Ok(ShareRecord { number: 0, queue, share, rules: ShareRules { weight, limit, rate } })
    }

    fn schedule(&mut self, queue: Bytes, payload: Option<&[u8]>) -> Result<ScheduleRecord, Wrong> {
        let plan = Plan {
            queue,
            payload: self.payload(payload)?,
            terms: self.terms()?,
            priority: self.integer("priority", Some(0))?,
            ttl: self.span("ttl_ms")?,
            form: self.form()?,
            on_missed: self.one_of("on_missed", &OnMissed::ALL, OnMissed::word)?,
            overlap: self.one_of("overlap", &Overlap::ALL, Overlap::word)?,
        };
        let course = Course {
            done_until: self.moment("done_until")?.unwrap_or(Timestamp::MAX),
            paused: self.flag("paused")?,
            fired: self.number("fired")?.unwrap_or(0),
            missed: self.number("missed")?.unwrap_or(0),
            last_id: self.id("last_id")?,
            last_slot: self.moment("last_slot")?,
            last_number: 0,
        };
        Ok(ScheduleRecord { number: 0, name: self.needed("schedule")?, plan, course })
    }

    fn form(&mut self) -> Result<Recurrence, Wrong> {
        let (every, at) = (self.span("every_ms")?, self.moment("at")?);
        let (expression, zone) = (self.bytes("cron")?, self.bytes("zone")?);
        match (every, at, expression) {
            (Some(every), Some(anchor), None) if zone.is_none() => {
                Ok(Recurrence::Every { every, anchor })
            }
            (None, None, Some(expression)) => {
                cron(&expression, zone.as_deref()).map_err(|refusal| refusal.to_string())?;
                Ok(Recurrence::Cron { expression, zone })
            }
            _ => Err("a schedule has 'every_ms' and 'at', or 'cron' and perhaps 'zone'".to_owned()),
        }
    }
}

/// The id that a text stands for: a number or a uuid, if it is the text of one.
fn id_of(text: &[u8]) -> TaskId {
    let number = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    let known = number.map(TaskId::Number).or_else(|| uuid_of(text));
    let known = known.filter(|id| id.to_string().as_bytes() == text);
    known.unwrap_or_else(|| TaskId::Given(text.into()))
}

/// The uuid that a text may be, apart from the places of its hyphens.
fn uuid_of(text: &[u8]) -> Option<TaskId> {
    let digits: String = str::from_utf8(text).ok()?.chars().filter(|it| *it != '-').collect();
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| text.len() == 36)?;
    Some(TaskId::Uuid(number.to_be_bytes()))
}

fn attempt_of(item: Value) -> Result<Attempt, Wrong> {
    let Value::Object(fields) = item else { return Err("an attempt is an object".to_owned()) };
    let mut fields = Fields { fields };
    if !fields.fields.contains_key("how") {
        return Err("an attempt has 'how'".to_owned());
    }
    let contact = Contact {
        name: fields.bytes("name")?.unwrap_or_default(),
        address: fields.bytes("address")?.unwrap_or_default(),
    };
    let end = End {
        at: fields.moment("ended_at")?.ok_or("an attempt has 'ended_at'")?,
        how: fields.one_of("how", &How::ALL, How::word)?,
        reason: fields.bytes("reason")?,
    };
    let attempt = Attempt {
        client: fields.number("client")?.map(ClientId),
        contact,
        taken_at: fields.moment("taken_at")?.ok_or("an attempt has 'taken_at'")?,
        end: Some(end),
    };
    fields.end("an attempt")?;
    Ok(attempt)
}
