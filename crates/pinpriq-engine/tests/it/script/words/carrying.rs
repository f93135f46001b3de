//! Parses the commands that carry queues between servers. Moments are in milliseconds.

use std::sync::Arc;

use pinpriq_proto::batches::{After, OnlyIf};
use pinpriq_proto::change::ScheduleRecord;
use pinpriq_proto::command::Command;
use pinpriq_proto::export::{ExportPlace, Import};
use pinpriq_proto::request::cursors::export::cursor_after;
use pinpriq_proto::request::settings::changes;
use pinpriq_proto::schedule::{Course, OnMissed, Overlap, Plan, Recurrence, Scheduled};
use pinpriq_proto::settings::Paused;
use pinpriq_proto::task::{
    Burial, Bytes, Grant, Lease, Origin, Past, Progress, State, StateKind, TaskId, TaskRecord,
    Terms, Trace,
};
use pinpriq_proto::time::Timestamp;
use pinpriq_proto::unique::WindowRecord;

use super::Words;

impl Words {
    pub(super) fn export_place(&mut self) -> String {
        cursor_after(&match self.text().as_str() {
            "TASK" => ExportPlace::Task(self.number()),
            "WINDOW" => ExportPlace::Window(self.bytes()),
            "SCHEDULE" => ExportPlace::Schedule(self.number()),
            other => panic!("{other:?} is no place"),
        })
    }

    pub(super) fn import(&mut self) -> Command<'static> {
        let word = self.text();
        Command::Import(match word.as_str() {
            "QUEUE" => {
                let paused = self.option("PAUSED", Self::text).unwrap_or_default();
                let (input, output) = (paused.contains('i'), paused.contains('o'));
                let keeps = self.flag("KEEP");
                let queue = self.bytes();
                let settings = changes(&self.list(""), "IMPORT").unwrap();
                let settings = (!keeps).then(|| &*Vec::leak(settings));
                Import::Queue { queue, settings, paused: Paused::endlessly(input, output) }
            }
            "TASK" => {
                let until = self.option("UNTIL", Self::moment);
                Import::Task { task: Box::leak(Box::new(self.imported())), until }
            }
            "WINDOW" => Import::Window(Box::leak(Box::new(WindowRecord {
                number: 0,
                queue: self.bytes().into(),
                key: self.bytes().into(),
                id: self.former_id(),
                until: self.moment(),
            }))),
            "SCHEDULE" => Import::Schedule(Box::leak(Box::new(self.imported_schedule()))),
            other => panic!("{other:?} is nothing to import"),
        })
    }

    fn moment(&mut self) -> Timestamp {
        Timestamp::from_ms(self.number())
    }

    fn former_id(&mut self) -> TaskId {
        let number = self.peek().parse().ok();
        let given = self.bytes();
        number.map_or_else(|| TaskId::Given(given.into()), TaskId::Number)
    }

    fn small(&mut self) -> u32 {
        self.number().try_into().unwrap()
    }

    fn imported(&mut self) -> TaskRecord {
        let kind = self.option("STATE", Self::state).unwrap_or(StateKind::Ready);
        let at = self.option("AT", Self::moment).unwrap_or(Timestamp::ZERO);
        let batch = self.option("BATCH", Self::bytes).map(Bytes::from);
        let after = self.after();
        let state = match kind {
            StateKind::Ready => State::Ready,
            StateKind::Taken => {
                let grant = Grant { incarnation: 1, serial: 1 };
                State::Taken(Lease { grant, holder: None, deadline: Some(at), ttr: None })
            }
            StateKind::Waiting if after.is_some() => State::HELD,
            StateKind::Waiting => State::Waiting { ready_at: Some(at) },
            StateKind::Buried => State::Buried(Burial::UNKNOWN),
            StateKind::Zombie => State::Zombie { purge_at: at },
            StateKind::Done => State::Done,
        };
        let origin = self.option("ORIGIN", |words| Origin {
            queue: words.bytes().into(),
            id: words.former_id(),
            put_at: words.moment(),
            attempts: words.small(),
            failures: words.small(),
            at: words.moment(),
        });
        let scheduled = self.option("SCHEDULE", |words| Scheduled {
            schedule: words.bytes().into(),
            slot: Some(words.moment()),
        });
        let unique = self.option("UNIQUE", Self::bytes).map(Bytes::from);
        let terms = Terms::of(self.option("KEY", Self::bytes), self.option("TTR", Self::span));
        let progress = Progress {
            priority: self.option("PRIORITY", Self::priority).unwrap_or(Some(0)),
            seq: 0,
            expires_at: self.option("EXPIRES", Self::moment),
            attempts: self.option("ATTEMPTS", Self::small).unwrap_or(0),
            failures: self.option("FAILURES", Self::small).unwrap_or(0),
            reason: self.option("REASON", Self::bytes).map(Bytes::from),
            trace: Trace { after, ..Trace::NONE }.kept(),
            state,
        };
        let id = self.option("ID", Self::former_id);
        let put_at = self.option("PUT", Self::moment).unwrap_or(Timestamp::ZERO);
        TaskRecord {
            number: 0,
            queue: self.bytes().into(),
            lane: None,
            id: id.unwrap_or_else(|| TaskId::Given(Arc::default())),
            put_at,
            terms: terms.kept(),
            progress,
            past: Past { origin, scheduled, unique, batch }.kept(),
            payload: self.bytes().into(),
            away: None,
            shared: false,
        }
    }

    /// Reads what a task waits for: names with commas between them after `AFTER`, a condition after
    /// `IF`, and `FAILED` if a task of batches that are done has failed.
    fn after(&mut self) -> Option<After> {
        let names = self.option("AFTER", Self::text)?;
        let names = names.split(',').map(|name| Bytes::from(name.as_bytes())).collect();
        let word = self.option("IF", Self::text);
        let only_if = word.map(|word| {
            let known = OnlyIf::ALL.into_iter().find(|it| it.word() == word);
            known.unwrap_or_else(|| panic!("{word:?} is no condition"))
        });
        let any_failed = self.flag("FAILED");
        Some(After { names, only_if: only_if.unwrap_or_default(), any_failed })
    }

    /// Reads a schedule that has a fixed distance.
    fn imported_schedule(&mut self) -> ScheduleRecord {
        let every = self.option("EVERY", Self::span).expect("EVERY");
        let anchor = self.option("AT", Self::moment).unwrap_or(Timestamp::ZERO);
        let skips = self.flag("SKIP");
        let course = Course {
            done_until: self.option("DONE", Self::moment).unwrap_or(Timestamp::ZERO),
            paused: self.flag("PAUSED"),
            fired: self.option("FIRED", Self::number).unwrap_or(0),
            missed: self.option("MISSED", Self::number).unwrap_or(0),
            last_id: self.option("LAST", Self::former_id),
            last_slot: self.option("SLOT", Self::moment),
            last_number: 0,
        };
        ScheduleRecord {
            number: 0,
            name: self.bytes().into(),
            plan: Plan {
                queue: self.bytes().into(),
                payload: self.bytes().into(),
                terms: Terms::NONE,
                priority: Some(0),
                ttl: None,
                form: Recurrence::Every { every, anchor },
                on_missed: OnMissed::default(),
                overlap: if skips { Overlap::Skip } else { Overlap::Allow },
            },
            course,
        }
    }
}
