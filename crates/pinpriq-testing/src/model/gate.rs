//! How many tasks a place hands out: at most so many at once, and at most so many in a time.

use pinpriq_proto::settings::Rate;
use pinpriq_proto::task::StateKind;
use pinpriq_proto::time::{Span, Timestamp};

use super::{Home, Model, Place};

/// The tokens of a place, in parts: a token has as many parts as the rate has milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    rate: Rate,
    parts: u128,
    /// When the parts were counted.
    at: Timestamp,
}

impl Bucket {
    /// A bucket of this rate. It is full, or has what the former one had.
    pub(super) fn of(rate: Rate, former: Option<Self>, now: Timestamp) -> Self {
        let mut bucket = Self { rate, parts: 0, at: now };
        let full = bucket.full();
        bucket.parts = former.map_or(full, |former| {
            let parts = former.parts_at(now) * bucket.token() / former.token();
            parts.min(full)
        });
        bucket
    }

    fn token(&self) -> u128 {
        self.rate.per.ms().into()
    }

    fn full(&self) -> u128 {
        u128::from(self.rate.count) * self.token()
    }

    fn parts_at(&self, now: Timestamp) -> u128 {
        let gained = u128::from(now.ms() - self.at.ms()) * u128::from(self.rate.count);
        self.full().min(self.parts + gained)
    }

    fn change(&mut self, now: Timestamp, tokens: i8) {
        let parts = self.parts_at(now);
        self.at = now;
        self.parts = match tokens {
            1 => self.full().min(parts + self.token()),
            _ => parts - self.token(),
        };
    }
}

impl Home {
    /// Whether the limits of the place allow one more task to be taken.
    pub(super) fn is_open(&self, now: Timestamp) -> bool {
        let has_token = self.bucket.is_none_or(|bucket| bucket.parts_at(now) >= bucket.token());
        self.has_room_to_take() && has_token
    }

    /// The next moment at which the place gets a token, if it has none.
    pub(super) fn next_token(&self, now: Timestamp) -> Option<Timestamp> {
        let bucket = self.bucket?;
        let missing = bucket.token().checked_sub(bucket.parts_at(now))?;
        let wait_ms = missing.div_ceil(bucket.rate.count.into());
        let wait_ms = u64::try_from(wait_ms).unwrap_or(u64::MAX);
        (wait_ms > 0).then(|| now.after(Span::from_ms(wait_ms)))
    }

    fn has_room_to_take(&self) -> bool {
        let is_taken = |task: &&pinpriq_proto::task::TaskRecord| {
            task.progress.state.kind() == StateKind::Taken
        };
        let taken = self.tasks.values().filter(is_taken).count() as u64;
        self.settings.limit.is_none_or(|limit| taken < limit)
    }
}

impl Model {
    /// Takes a token of a place for a task that it hands out.
    pub(super) fn pay(&mut self, place: &Place) {
        let now = self.now;
        if let Some(bucket) = &mut self.home(place).bucket {
            bucket.change(now, -1);
        }
    }

    /// Returns the token of a task that did not arrive.
    pub(super) fn refund(&mut self, place: &Place) {
        let now = self.now;
        let home = self.homes.get_mut(place);
        if let Some(bucket) = home.and_then(|home| home.bucket.as_mut()) {
            bucket.change(now, 1);
        }
    }

    /// Makes the bucket that the settings of a place ask for.
    pub(super) fn set_bucket(&mut self, place: &Place) {
        let now = self.now;
        if let Some(home) = self.homes.get_mut(place) {
            let former = home.bucket;
            home.bucket = home.settings.rate.map(|rate| Bucket::of(rate, former, now));
        }
    }

    /// The next moment at which a place that is short of tokens gets one, while a consumer waits
    /// for its tasks.
    pub(super) fn next_token(&self) -> Option<Timestamp> {
        let waited_for = |place: &Place, home: &Home| {
            self.waits_for(place) && home.has_tasks_for_anyone(self.now) && home.has_room_to_take()
        };
        let homes = self.homes.iter().filter(|(place, home)| waited_for(place, home));
        homes.filter_map(|(_, home)| home.next_token(self.now)).min()
    }
}
