//! Limits that several places use together. What is taken is counted anew at each look.

use pinpriq_proto::command::Selection;
use pinpriq_proto::limits::NAME_BYTES_MAX;
use pinpriq_proto::looking::Reason;
use pinpriq_proto::named_limits::{
    LIMIT_QUEUES_MAX, LimitCommand, LimitRecord, LimitShown, USED_MAX, used,
};
use pinpriq_proto::names::{NamePattern, NamesPage};
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::settings::{Rate, Settings};
use pinpriq_proto::task::{StateKind, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};

use super::gate::Bucket;
use super::within::page_of;
use super::{Answer, Home, Model, Place, fits};

/// A limit with its tokens.
#[derive(Clone, Debug)]
pub struct NamedLimit {
    /// What is kept of it.
    pub record: LimitRecord,
    pub(super) bucket: Option<Bucket>,
    /// For how long it was closed.
    pub(super) closed: Span,
}

impl Model {
    pub(super) fn keep_limits(&mut self, command: &LimitCommand<'_>) -> Answer {
        match *command {
            LimitCommand::Set { name, change } => {
                let is_word = name.eq_ignore_ascii_case(b"none");
                fits((1..=255).contains(&name.len()) && !name.contains(&b',') && !is_word)?;
                let known = self.limit_of(name).map(|limit| limit.record.clone());
                let former = known.as_ref().map(|known| known.rules).unwrap_or_default();
                let mut rules = former;
                rules.max = change.max.map_or(rules.max, |it| it.0);
                rules.rate = change.rate.map_or(rules.rate, |it| it.0);
                fits(rules.max.is_none_or(|max| (1..1 << 63).contains(&max)))?;
                if let Some(Rate { count, per }) = rules.rate {
                    fits(count > 0)?;
                    self.span_fits(Some(per), false)?;
                }
                let mut record = LimitRecord { number: 0, name: name.into(), rules };
                record.number = if let Some(known) = known {
                    known.number
                } else {
                    self.has_room(record.bytes())?;
                    self.last_number += 1;
                    self.last_number
                };
                let now = self.now;
                let known = self.named_limits.remove(&record.number);
                let closed = known.as_ref().map_or(Span::ZERO, |known| known.closed);
                let known = known.and_then(|it| it.bucket);
                let bucket = rules.rate.map(|rate| Bucket::of(rate, known, now));
                self.named_limits.insert(record.number, NamedLimit { record, bucket, closed });
                Ok(Some(Reply::Done))
            }
            LimitCommand::Show(name) => {
                fits(name.len() <= NAME_BYTES_MAX)?;
                let limit = self.limit_of(name).ok_or(RefusalKind::NotFound)?;
                let taken = self.taken_of(limit);
                let has_room = limit.record.rules.max.is_none_or(|max| taken < max);
                let open_at = limit.bucket.and_then(|bucket| bucket.opens_at(self.now));
                Ok(Some(Reply::Limit(Box::new(LimitShown {
                    name: name.into(),
                    rules: limit.record.rules,
                    taken,
                    tokens: limit.bucket.map(|bucket| bucket.whole_tokens(self.now)),
                    open_at: open_at.filter(|_| has_room),
                    queues: self.users_of(limit).count() as u64,
                    closed: limit.closed,
                }))))
            }
            LimitCommand::List(page) => Ok(Some(self.list_limits(page, None))),
            LimitCommand::Drop(name) => {
                fits(name.len() <= NAME_BYTES_MAX)?;
                let Some(limit) = self.limit_of(name) else { return Ok(Some(Reply::Count(0))) };
                if self.users_of(limit).next().is_some() {
                    return Err(RefusalKind::WrongState);
                }
                let number = limit.record.number;
                self.named_limits.remove(&number);
                Ok(Some(Reply::Count(1)))
            }
        }
    }

    pub(super) fn list_limits(
        &self,
        page: NamesPage<'_>,
        within: Option<&[NamePattern<'_>]>,
    ) -> Reply {
        let names = self.named_limits.values().map(|limit| &limit.record.name);
        page_of(names.map(|name| (name, name)), page, within)
    }

    /// Counts for how long limits are closed up to this moment, before which nothing happens.
    pub(super) fn count_closed(&mut self, until: Timestamp) {
        let closed_until = |limit: &NamedLimit| {
            let is_full = limit.record.rules.max.is_some_and(|max| self.taken_of(limit) >= max);
            let opens_at = limit.bucket.and_then(|bucket| bucket.opens_at(self.now));
            if is_full { until } else { opens_at.map_or(self.now, |at| at.min(until)) }
        };
        let closed: Vec<Span> =
            self.named_limits.values().map(|it| closed_until(it).since(self.now)).collect();
        for (limit, more) in self.named_limits.values_mut().zip(closed) {
            limit.closed = Span::from_ms(limit.closed.ms() + more.ms());
        }
    }

    fn limit_of(&self, name: &[u8]) -> Option<&NamedLimit> {
        self.named_limits.values().find(|limit| *limit.record.name == *name)
    }

    /// The places that use a limit.
    fn users_of(&self, limit: &NamedLimit) -> impl Iterator<Item = &Home> {
        let name = limit.record.name.clone();
        let uses = move |home: &&Home| names_in(&home.settings).any(|it| *it == *name);
        self.homes.values().filter(uses)
    }

    fn taken_of(&self, limit: &NamedLimit) -> u64 {
        let tasks = self.users_of(limit).flat_map(|home| home.tasks.values());
        let is_taken = |task: &&TaskRecord| task.progress.state.kind() == StateKind::Taken;
        tasks.filter(is_taken).count() as u64
    }

    /// The limits that a place uses.
    fn limits_of<'m>(&'m self, home: &'m Home) -> impl Iterator<Item = &'m NamedLimit> {
        names_in(&home.settings).filter_map(|name| self.limit_of(name))
    }

    pub(super) fn limits_have_room(&self, home: &Home) -> bool {
        self.limits_of(home)
            .all(|limit| limit.record.rules.max.is_none_or(|max| self.taken_of(limit) < max))
    }

    /// Whether the limits that a place uses with others allow one more task to be taken, if nothing
    /// happens until then.
    pub(super) fn limits_allow(&self, home: &Home, at: Timestamp) -> bool {
        let has_token = |limit: &NamedLimit| limit.bucket.is_none_or(|bucket| bucket.is_open(at));
        self.limits_have_room(home) && self.limits_of(home).all(has_token)
    }

    /// The moments at which limits of a place hold a token that have none now.
    pub(super) fn limit_tokens<'m>(
        &'m self,
        home: &'m Home,
    ) -> impl Iterator<Item = Timestamp> + 'm {
        self.limits_of(home).filter_map(|limit| limit.bucket?.opens_at(self.now))
    }

    /// What limits of a place hold its tasks back now.
    pub(super) fn shut_limits<'m>(&'m self, home: &'m Home) -> impl Iterator<Item = Reason> + 'm {
        self.limits_of(home).filter_map(|limit| {
            let (name, taken) = (limit.record.name.clone(), self.taken_of(limit));
            let (reached, open_at) = match limit.record.rules.max {
                Some(max) if taken >= max => (Some((taken, max)), None),
                _ => (None, Some(limit.bucket?.opens_at(self.now)?)),
            };
            Some(Reason::NamedLimit { name, reached, open_at })
        })
    }

    /// Whether a place has a task that may go now.
    pub(super) fn gives(&self, home: &Home, selection: Selection) -> bool {
        home.has(selection, self.now) && self.limits_allow(home, self.now)
    }

    /// Takes tokens from the limits of a place, or adds some.
    pub(super) fn change_tokens(&mut self, place: &Place, tokens: i128) {
        let settings = self.settings(place);
        let now = self.now;
        for limit in self.named_limits.values_mut() {
            let is_used = names_in(&settings).any(|name| *name == *limit.record.name);
            if let Some(bucket) = limit.bucket.as_mut().filter(|_| is_used) {
                bucket.change(now, tokens);
            }
        }
    }

    /// Refuses settings that name limits which cannot be used.
    pub(super) fn uses_fit(&self, place: &Place, new: &Settings) -> Result<(), RefusalKind> {
        let former = self.settings(place);
        for name in names_in(new) {
            let limit = self.limit_of(name).ok_or(RefusalKind::NotFound)?;
            let is_used = names_in(&former).any(|known| *known == *name);
            if !is_used && self.users_of(limit).count() >= LIMIT_QUEUES_MAX {
                return Err(RefusalKind::Busy);
            }
        }
        Ok(())
    }
}

/// Refuses what cannot be names of limits.
pub(super) fn names_fit(uses: &[u8]) -> Result<(), RefusalKind> {
    let mut names: Vec<&[u8]> = used(uses).collect();
    let fits_alone =
        |name: &&[u8]| (1..=255).contains(&name.len()) && !name.eq_ignore_ascii_case(b"none");
    fits(names.len() <= USED_MAX && names.iter().all(fits_alone))?;
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    fits(names.len() == count)
}

fn names_in(settings: &Settings) -> impl Iterator<Item = &[u8]> {
    settings.uses.iter().flat_map(|uses| used(uses))
}
