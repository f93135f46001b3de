//! A task of another server as a client imports it: its words, and the record for the engine.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinpriq_proto::task::{
    Burial, Grant, Lease, Past, Progress, State, StateKind, TaskId, TaskRecord, Terms,
};
use pinpriq_proto::time::Timestamp;
use pinpriq_proto::wire::resp::Words;

use super::Text;

/// What `IMPORT` says about a task. Its moments are in milliseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Imported {
    pub(crate) queue: Text,
    pub(crate) id: &'static str,
    pub(crate) payload: Text,
    /// Whether the payload comes beside the record.
    pub(crate) beside: bool,
    pub(crate) state: StateKind,
    /// The end of the delay of a waiting task, or of the stay of a zombie.
    pub(crate) at: u64,
    pub(crate) put_at: u64,
    pub(crate) expires_at: Option<u64>,
    pub(crate) priority: Option<i64>,
    pub(crate) key: Option<Text>,
    pub(crate) failures: u32,
    /// A unique key, and the end of its window.
    pub(crate) unique: Option<(&'static str, Option<u64>)>,
}

impl Imported {
    pub(super) fn words(&self) -> Words {
        let mut fields = vec![r#""type":"task""#.to_owned()];
        let (state, at) = match self.state {
            StateKind::Ready => ("ready", None),
            StateKind::Taken => ("taken", None),
            StateKind::Waiting => ("waiting", Some("ready_at")),
            StateKind::Buried => ("buried", None),
            StateKind::Zombie => ("zombie", Some("purge_at")),
            StateKind::Done => ("done", None),
        };
        fields.push(format!(r#""state":"{state}""#));
        fields.extend(at.map(|name| format!(r#""{name}":{}"#, self.at)));
        fields.push(format!(r#""id":"{}""#, self.id));
        fields.push(format!(r#""put_at":{}"#, self.put_at));
        fields.extend(self.expires_at.map(|at| format!(r#""expires_at":{at}"#)));
        let priority = self.priority.map_or_else(|| "null".to_owned(), |it| it.to_string());
        fields.push(format!(r#""priority":{priority}"#));
        let key = self.key.as_deref().map(|key| STANDARD.encode(key));
        fields.extend(key.map(|key| format!(r#""key_base64":"{key}""#)));
        fields.push(format!(r#""failures":{}"#, self.failures));
        if let Some((key, until)) = self.unique {
            fields.push(format!(r#""unique":"{key}""#));
            fields.extend(until.map(|until| format!(r#""unique_until":{until}"#)));
        }
        if !self.beside {
            fields.push(format!(r#""payload_base64":"{}""#, STANDARD.encode(&self.payload)));
        }
        let record = format!("{{{}}}", fields.join(","));
        let words = Words::new("IMPORT").bytes(&self.queue).bytes(record);
        words.given("PAYLOAD", self.beside.then_some(&self.payload))
    }

    /// The task, and the end of its window.
    pub(super) fn record(&self) -> (TaskRecord, Option<Timestamp>) {
        let at = Timestamp::from_ms(self.at);
        let state = match self.state {
            StateKind::Ready => State::Ready,
            // Nothing is said about its lease.
            StateKind::Taken => {
                let grant = Grant { incarnation: 0, serial: 0 };
                State::Taken(Lease { grant, holder: None, deadline: None, ttr: None })
            }
            StateKind::Waiting => State::Waiting { ready_at: Some(at) },
            StateKind::Buried => State::Buried(Burial::UNKNOWN),
            StateKind::Zombie => State::Zombie { purge_at: at },
            StateKind::Done => State::Done,
        };
        let task = TaskRecord {
            number: 0,
            queue: self.queue.as_slice().into(),
            lane: None,
            id: TaskId::Given(self.id.as_bytes().into()),
            put_at: Timestamp::from_ms(self.put_at),
            terms: Terms::of(self.key.as_deref(), None).kept(),
            progress: Progress {
                expires_at: self.expires_at.map(Timestamp::from_ms),
                failures: self.failures,
                state,
                ..Progress::fresh(0, self.priority)
            },
            past: Past::of(None, None, self.unique.map(|(key, _)| key.as_bytes().into())),
            payload: self.payload.as_slice().into(),
            away: None,
            shared: false,
        };
        (task, self.unique.and_then(|(_, until)| until).map(Timestamp::from_ms))
    }
}
