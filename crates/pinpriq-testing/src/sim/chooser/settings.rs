//! Chooses settings of queues: mostly one, with what it needs to have an effect.

use pinpriq_proto::settings::{
    AFTERACK, AGEING, ATTEMPTS, AfterAck, Assignment, BACKOFF, BACKOFFMAX, CAPACITY, CAPACITYBYTES,
    COSTMAX, DEADLETTER, IDS, Ids, LIMIT, ONEXPIRY, OVERFLOW, RANKING, RATE, RELEASEFAILS, Ranking,
    Rate, SETTINGS, TTL, TTR, USES, Value,
};
use pinpriq_proto::time::Span;

use super::Chooser;

impl Chooser<'_> {
    pub(super) fn settings(&mut self) -> Vec<Assignment<'static>> {
        let once_none = |chooser: &mut Self| (!chooser.once_in(3)).then(|| chooser.span());
        if self.once_in(2) {
            return self.policies();
        }
        let (setting, value) = match self.dice.below(6) {
            0 => (IDS, Ids::ALL[self.index(4)].into()),
            1 => (TTL, once_none(self).map(|span| Span::from_ms(span * 4)).into()),
            2 => (TTR, once_none(self).map(Span::from_ms).into()),
            3 | 4 => {
                let stay = Span::from_ms(self.span());
                let kinds = [AfterAck::Delete, AfterAck::Keep, AfterAck::Zombie(stay)];
                (AFTERACK, kinds[self.index(3)].into())
            }
            _ => (CAPACITY, (!self.once_in(2)).then(|| 1 + self.dice.below(20)).into()),
        };
        vec![(setting, value)]
    }

    fn policies(&mut self) -> Vec<Assignment<'static>> {
        let has_one = !self.once_in(4);
        let (setting, value) = match self.dice.below(12) {
            9 => (CAPACITY, has_one.then(|| 1 + self.dice.below(6)).into()),
            10 => (CAPACITYBYTES, has_one.then(|| 1 + self.dice.below(300)).into()),
            11 => (OVERFLOW, Value::Word(u8::from(has_one))),
            // Consumers wait for room where there is little.
            6 => (LIMIT, has_one.then(|| 1 + self.dice.below(4).min(self.dice.below(4))).into()),
            7 | 8 => (RATE, has_one.then(|| self.rate()).into()),
            0 | 1 => (ATTEMPTS, has_one.then(|| 1 + self.dice.below(3)).into()),
            2 => (BACKOFF, has_one.then(|| Span::from_ms(self.span())).into()),
            3 => (BACKOFFMAX, Span::from_ms(self.span() * 2).into()),
            4 if has_one => (DEADLETTER, Value::Bytes(self.dead())),
            4 => (DEADLETTER, Value::None),
            _ => (ONEXPIRY, Value::Word(u8::from(has_one))),
        };
        let dead_letters = (DEADLETTER, Value::Bytes(self.dead()));
        let also = setting != DEADLETTER && self.once_in(2);
        let mut settings = vec![(setting, value)];
        // What evicts needs a capacity, and little is evicted where only few settings meet.
        if (setting == CAPACITY || setting == CAPACITYBYTES) && self.once_in(2) {
            settings.push((OVERFLOW, Value::Word(1)));
        }
        if setting == ATTEMPTS && self.once_in(2) {
            settings.push((RELEASEFAILS, Value::Word(u8::from(has_one))));
        }
        if setting == OVERFLOW && has_one {
            settings.push((CAPACITY, Some(1 + self.dice.below(6)).into()));
        }
        settings.extend(also.then_some(dead_letters));
        if self.once_in(6) {
            settings.push((COSTMAX, COSTMAX.example(self.dice.below(60))));
        }
        if self.once_in(3) {
            settings.extend(self.turns());
        }
        settings.sort_by_key(|(setting, _)| setting.tag);
        settings
    }

    /// Settings of fair queues and of keys and shares, and those that came later. From time to time
    /// all of them end, so that there are plain queues too.
    fn turns(&mut self) -> Vec<Assignment<'static>> {
        let ends = self.once_in(3);
        let mut changes: Vec<Assignment<'static>> = Vec::new();
        for setting in SETTINGS.into_iter().filter(|it| it.tag > COSTMAX.tag) {
            if ends {
                changes.push((setting, setting.usual()));
            } else if setting == USES {
                changes.extend(self.once_in(3).then(|| (USES, self.uses())));
            } else if self.once_in(4) {
                changes.push((setting, setting.example(self.dice.below(60))));
            }
        }
        if changes.contains(&(RANKING, Ranking::Ageing.into())) && !self.once_in(8) {
            changes.retain(|(setting, _)| *setting != AGEING);
            changes.push((AGEING, Some(Span::from_ms(1 + self.span())).into()));
        }
        changes
    }

    fn uses(&mut self) -> Value<'static> {
        let all: [&[u8]; 3] = if self.knobs.shards > 1 {
            [b"l{0}", b"m{0}", b"l{0},m{0}"]
        } else {
            [b"l", b"m", b"l,m"]
        };
        Value::Bytes(all[self.index(3)])
    }

    pub(super) fn rate(&mut self) -> Rate {
        let count = u32::try_from(1 + self.index(4)).unwrap_or(1);
        Rate { count, per: Span::from_ms(self.span().max(1)) }
    }
}
