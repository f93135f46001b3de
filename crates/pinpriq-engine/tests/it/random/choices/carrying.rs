//! Chooses exports, and imports of records that resemble what is there.

use pinpriq_proto::change::ScheduleRecord;
use pinpriq_proto::export::{Export, ExportPlace, Import};
use pinpriq_proto::schedule::{Course, OnMissed, Overlap, Plan, Recurrence, Scheduled};
use pinpriq_proto::settings::Paused;
use pinpriq_proto::shares::{ShareRecord, ShareRules};
use pinpriq_proto::task::{
    Burial, Bytes, Counts, Grant, Lease, Origin, Past, Progress, State, TaskId, TaskRecord, Terms,
    Trace,
};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::WindowRecord;

use super::Chooser;

impl Chooser<'_> {
    pub(super) fn export(&mut self) -> Export<'static> {
        let seq = self.model.last_number.saturating_sub(self.dice.below(30));
        let after = match self.dice.below(7) {
            0..=2 => ExportPlace::Start,
            6 => ExportPlace::Share(self.dice.pick(&[b"".as_slice(), b"k", b"s"])),
            3 => ExportPlace::Task(seq),
            4 => ExportPlace::Window(self.dice.pick(&[b"".as_slice(), b"u", b"v"])),
            _ => ExportPlace::Schedule(seq),
        };
        let count = self.dice.pick(&[1, 1, 2, 5, 100, 1_000, 0, 1_001]);
        Export { queue: self.queue(), after, count }
    }

    pub(super) fn import(&mut self) -> Import<'static> {
        match self.dice.below(13) {
            12 => {
                let (queue, share) = (self.queue().into(), self.share_name().into());
                let rules = self.share_change().applied_to(ShareRules::default());
                let record = ShareRecord { number: 0, queue, share, rules };
                Import::Share(Box::leak(Box::new(record)))
            }
            0 => Import::Queue {
                queue: self.queue(),
                settings: (!self.dice.once_in(4)).then(|| self.settings()),
                paused: Paused::endlessly(self.dice.once_in(4), self.dice.once_in(4)),
            },
            1..=2 => Import::Window(Box::leak(Box::new(self.imported_window()))),
            3 => Import::Schedule(Box::leak(Box::new(self.imported_schedule()))),
            _ => {
                let until = self.dice.once_in(2).then(|| self.some_moment());
                Import::Task { task: Box::leak(Box::new(self.imported_task())), until }
            }
        }
    }

    fn some_moment(&mut self) -> Timestamp {
        let earlier = Timestamp::from_ms(self.model.now.ms().saturating_sub(4));
        earlier.after(Span::from_ms(self.dice.below(20)))
    }

    fn former_id(&mut self) -> TaskId {
        match self.dice.below(4) {
            0 => TaskId::Number(self.dice.below(5)),
            1 => TaskId::Uuid([7; 16]),
            2 if self.dice.once_in(10) => {
                let wrong: [&[u8]; 2] = [b"", &[b'i'; 256]];
                TaskId::Given(self.dice.pick(&wrong).into())
            }
            _ => TaskId::Given(self.given_id().into()),
        }
    }

    fn small(&mut self) -> u32 {
        self.dice.pick(&[0, 0, 1, 2, u32::MAX])
    }

    fn imported_task(&mut self) -> TaskRecord {
        let at = self.some_moment();
        let state = match self.dice.below(9) {
            0..=2 => State::Ready,
            3 => {
                let grant = Grant { incarnation: 1, serial: 1 };
                State::Taken(Lease { grant, holder: None, deadline: Some(at), ttr: None })
            }
            4..=5 => State::Waiting { ready_at: (!self.dice.once_in(4)).then_some(at) },
            6 => State::Buried(self.dice.pick(&[0, 1, 1 << 40, u64::MAX].map(Burial::of_number))),
            7 => State::Zombie { purge_at: at },
            _ => State::Done,
        };
        let queue = self.queue();
        let unique = self.dice.once_in(2).then(|| Bytes::from(self.unique(queue).key));
        let origin = self.dice.once_in(4).then(|| Origin {
            queue: self.queue().into(),
            id: self.former_id(),
            put_at: self.some_moment(),
            attempts: self.small(),
            failures: self.small(),
            at: self.some_moment(),
        });
        let names: [&[u8]; 3] = [b"s", b"a", b""];
        let scheduled = self.dice.once_in(4).then(|| Scheduled {
            schedule: self.dice.pick(&names).into(),
            slot: self.dice.once_in(2).then(|| Timestamp::from_ms(1)),
        });
        let key = self.dice.pick(&[None, Some(b"k".as_slice())]);
        let batch = self.batch_meant();
        let after = if state == State::HELD { self.imported_after(batch) } else { None };
        let counts = Counts { kicks: self.small(), ..Counts::NONE };
        let trace = Trace { delay: self.delay(), counts, after, ..Trace::NONE };
        TaskRecord {
            number: 0,
            queue: queue.into(),
            lane: None,
            id: self.former_id(),
            put_at: self.some_moment(),
            terms: {
                let ttr = self.dice.once_in(4).then(|| self.span());
                self.with_extras(Terms::of(key, ttr)).kept()
            },
            progress: Progress {
                priority: self.priority(),
                seq: 0,
                expires_at: self.dice.once_in(3).then(|| self.some_moment()),
                attempts: self.small(),
                failures: self.small(),
                reason: self.reason().map(Bytes::from),
                trace: trace.kept(),
                state,
            },
            past: Past { origin, scheduled, unique, batch: batch.map(Bytes::from) }.kept(),
            payload: self.bytes().into(),
            away: None,
            shared: false,
        }
    }

    fn imported_window(&mut self) -> WindowRecord {
        let queue = self.queue();
        WindowRecord {
            number: 0,
            queue: queue.into(),
            key: self.unique(queue).key.into(),
            id: self.former_id(),
            until: self.some_moment(),
        }
    }

    fn imported_schedule(&mut self) -> ScheduleRecord {
        let now = self.model.now.ms();
        let every = Span::from_ms(self.dice.pick(&[100, 150, 700, 99]));
        let anchor = Timestamp::from_ms(self.dice.pick(&[now.saturating_sub(250), now + 120]));
        let names: [&[u8]; 3] = [b"s", b"a", b""];
        let done_until = self.dice.pick(&[now.saturating_sub(300), now, now + 50]);
        ScheduleRecord {
            number: 0,
            name: self.dice.pick(&names).into(),
            plan: Plan {
                queue: self.queue().into(),
                payload: self.bytes().into(),
                terms: Terms::NONE,
                priority: self.priority(),
                ttl: self.dice.once_in(3).then(|| self.span()),
                form: Recurrence::Every { every, anchor },
                on_missed: self.dice.pick(&OnMissed::ALL),
                overlap: self.dice.pick(&Overlap::ALL),
            },
            course: Course {
                done_until: Timestamp::from_ms(done_until),
                paused: self.dice.once_in(3),
                fired: self.dice.pick(&[3, 3, 3, 3, 1 << 53, u64::MAX]),
                missed: 1,
                last_id: self.dice.once_in(2).then(|| self.former_id()),
                last_slot: self.dice.once_in(2).then(|| Timestamp::from_ms(1)),
                last_number: 0,
            },
        }
    }
}
