//! Chooses commands on schedules. Their slots are far apart compared with other spans, so that most
//! of them are alone.

use pinpriq_proto::schedule::{NewSchedule, OnMissed, Overlap, ScheduleCommand, When};
use pinpriq_proto::task::Terms;
use pinpriq_proto::time::{Span, Timestamp};

use super::{Chooser, LONG_NAME};

pub(crate) const SCHEDULES: [&[u8]; 3] = [b"s", b"a", b""];

impl Chooser<'_> {
    pub(super) fn schedule(&mut self) -> ScheduleCommand<'static> {
        let kind = self.kind(ScheduleCommand::KINDS, |kind| match kind {
            "Set" => 8,
            "Fire" => 3,
            "Drop" => 1,
            _ => 2,
        });
        ScheduleCommand::of_kind(kind, self)
    }

    pub(super) fn schedule_name(&mut self) -> &'static [u8] {
        if self.dice.once_in(100) { &LONG_NAME } else { self.dice.pick(&SCHEDULES) }
    }

    pub(super) fn new_schedule(&mut self, name: &'static [u8]) -> NewSchedule<'static> {
        let now = self.model.now.ms();
        let every = Span::from_ms(self.dice.pick(&[100, 100, 101, 150, 700, 99, u64::MAX]));
        let at = self.dice.pick(&[now.saturating_sub(250), now, now + 120]);
        let at = self.dice.once_in(2).then(|| Timestamp::from_ms(at));
        let when = if self.dice.once_in(20) {
            When::Cron { expression: b"* * * * *", zone: None }
        } else {
            When::Every { every, at }
        };
        let queue = if self.dice.once_in(100) { &LONG_NAME } else { self.queue() };
        NewSchedule {
            name,
            queue,
            payload: self.bytes(),
            terms: {
                let key = self.dice.pick(&[None, Some(b"k".as_slice())]);
                let ttr = self.maybe_ttr();
                self.with_extras(Terms::of(key, ttr))
            },
            priority: self.priority(),
            ttl: self.dice.once_in(3).then(|| self.span()),
            when,
            on_missed: self.dice.pick(&OnMissed::ALL),
            overlap: self.dice.pick(&Overlap::ALL),
        }
    }

    fn maybe_ttr(&mut self) -> Option<Span> {
        self.dice.once_in(4).then(|| self.span())
    }
}
