//! How many tasks a place hands out: at most so many at once, and at most so many in a time.

use pinpriq_proto::reply::RefusalKind;
use pinpriq_proto::settings::Rate;
use pinpriq_proto::task::{StateKind, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};

use super::{Home, Model, Place, fits};

/// The tokens of a place, a key or a share, in parts: a token has as many parts as the rate has
/// milliseconds. There may be less than none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    rate: Rate,
    parts: i128,
    /// When the parts were counted.
    at: Timestamp,
}

impl Bucket {
    /// A bucket of this rate. It is full, or has what the former one had.
    pub(super) fn of(rate: Rate, former: Option<Self>, now: Timestamp) -> Self {
        let mut bucket = Self { rate, parts: 0, at: now };
        let full = bucket.full();
        bucket.parts = former.map_or(full, |former| {
            let parts = (former.parts_at(now) * bucket.token()).div_euclid(former.token());
            parts.min(full)
        });
        bucket
    }

    /// A bucket without a token, which has one after a minute at the latest.
    pub(super) fn empty(rate: Rate, now: Timestamp) -> Self {
        let mut bucket = Self { rate, parts: 0, at: now };
        while bucket.opens_at(now).is_some_and(|at| at.since(now) > Span::from_ms(60_000)) {
            bucket.parts = bucket.token() - i128::from(rate.count) * 60_000;
        }
        bucket
    }

    fn token(&self) -> i128 {
        self.rate.per.ms().into()
    }

    fn full(&self) -> i128 {
        i128::from(self.rate.count) * self.token()
    }

    fn parts_at(&self, now: Timestamp) -> i128 {
        let gained = i128::from(now.ms() - self.at.ms()) * i128::from(self.rate.count);
        self.full().min(self.parts + gained)
    }

    /// Adds tokens, or takes some out.
    pub(super) fn change(&mut self, now: Timestamp, tokens: i128) {
        let parts = self.parts_at(now) + tokens * self.token();
        self.at = now;
        self.parts = self.full().min(parts);
    }

    /// The whole tokens in it, below zero in debt.
    pub(super) fn whole_tokens(&self, now: Timestamp) -> i64 {
        i64::try_from(self.parts_at(now).div_euclid(self.token())).unwrap_or(i64::MIN)
    }

    pub(super) fn is_full(&self, now: Timestamp) -> bool {
        self.parts_at(now) == self.full()
    }

    pub(super) fn is_in_debt(&self, now: Timestamp) -> bool {
        self.parts_at(now) < 0
    }

    /// Whether it holds a token.
    pub(super) fn is_open(&self, now: Timestamp) -> bool {
        self.parts_at(now) >= self.token()
    }

    /// The next moment at which it holds a token, if it holds none.
    pub(super) fn opens_at(&self, now: Timestamp) -> Option<Timestamp> {
        let missing = (self.token() - self.parts_at(now)).max(0).unsigned_abs();
        let wait_ms = missing.div_ceil(self.rate.count.into());
        let wait_ms = u64::try_from(wait_ms).unwrap_or(u64::MAX);
        (wait_ms > 0).then(|| now.after(Span::from_ms(wait_ms)))
    }
}

impl Home {
    /// Whether the limits of the place allow one more task to be taken.
    pub(super) fn is_open(&self, now: Timestamp) -> bool {
        self.has_room_to_take() && self.bucket.is_none_or(|bucket| bucket.is_open(now))
    }

    /// The next moment at which the place gets a token, if it has none.
    pub(super) fn next_token(&self, now: Timestamp) -> Option<Timestamp> {
        self.bucket?.opens_at(now)
    }

    /// Lets all buckets begin empty.
    pub(super) fn begin_empty(&mut self, now: Timestamp) {
        self.bucket = self.settings.rate.map(|rate| Bucket::empty(rate, now));
        self.empty_keys_and_shares(now);
    }

    /// Lets all buckets hold what those of another one hold.
    pub(super) fn go_on_with_tokens(&mut self, former: &Self) {
        self.bucket = former.bucket;
        self.turns.go_on_with_tokens(&former.turns);
    }

    /// The next moment from which keys and shares let a task go, if they let none go now.
    fn next_turn(&self, now: Timestamp) -> Option<Timestamp> {
        let goes = |at| self.next_in_turn(false, at).is_some();
        let mut moments: Vec<Timestamp> =
            self.openings(now).filter(|_| self.has_turns() && !goes(now)).collect();
        moments.sort_unstable();
        moments.into_iter().find(|at| goes(*at))
    }

    fn has_room_to_take(&self) -> bool {
        let is_taken = |task: &&TaskRecord| task.progress.state.kind() == StateKind::Taken;
        let taken = self.tasks.values().filter(is_taken).count() as u64;
        self.settings.limit.is_none_or(|limit| taken < limit)
    }
}

impl Model {
    /// The next moment from which a task of a place may go, if none may go now.
    fn next_opening_of(&self, home: &Home) -> Option<Timestamp> {
        let now = self.now;
        let tokens = home.next_token(now).into_iter().chain(self.limit_tokens(home));
        if !home.has_turns() {
            return tokens.max();
        }
        let goes = |at: Timestamp| {
            home.is_open(at)
                && self.limits_allow(home, at)
                && home.next_in_turn(false, at).is_some()
        };
        let mut moments: Vec<Timestamp> =
            home.openings(now).chain(tokens).filter(|_| !goes(now)).collect();
        moments.sort_unstable();
        moments.into_iter().find(|at| goes(*at))
    }

    /// Charges a task that is about to be handed out.
    pub(super) fn pay(&mut self, number: u64) {
        let (task, now) = (self.task(number).clone(), self.now);
        self.pay_rates(number);
        self.home(&Place::of(&task)).charge(&task, now);
    }

    /// Charges the rates of a task alone.
    pub(super) fn pay_rates(&mut self, number: u64) {
        let (task, now) = (self.task(number).clone(), self.now);
        let place = Place::of(&task);
        if let Some(bucket) = &mut self.home(&place).bucket {
            bucket.change(now, -i128::from(task.terms.cost()));
        }
        self.change_tokens(&place, -i128::from(task.terms.cost()));
    }

    /// Refuses what a holder says that its task did cost, if no task of the place could cost that.
    pub(super) fn spent_fits(&self, number: u64, cost: Option<u32>) -> Result<(), RefusalKind> {
        let most = self.settings(&self.places[&number]).cost_max;
        fits(cost.is_none_or(|cost| cost > 0 && u64::from(cost) <= most))
    }

    /// Charges what a task did cost, if that is said, instead of what it was put with.
    pub(super) fn note_spent(&mut self, number: u64, cost: Option<u32>) {
        let Some(cost) = cost else { return };
        let (task, now) = (self.task(number).clone(), self.now);
        let tokens = i128::from(task.terms.cost()) - i128::from(cost);
        let place = Place::of(&task);
        self.change_tokens(&place, tokens);
        let home = self.home(&place);
        if let Some(bucket) = &mut home.bucket {
            bucket.change(now, tokens);
        }
        home.correct(&task, tokens, now);
    }

    /// Returns what a task was charged that did not arrive. It may be gone by now.
    pub(super) fn refund(&mut self, task: &TaskRecord) {
        let now = self.now;
        let Some(home) = self.homes.get_mut(&Place::of(task)) else { return };
        if let Some(bucket) = &mut home.bucket {
            bucket.change(now, task.terms.cost().into());
        }
        home.uncharge(task, now);
        self.change_tokens(&Place::of(task), task.terms.cost().into());
    }

    /// Lets a place obey its settings, and the rules of its shares.
    pub(super) fn obey(&mut self, place: &Place) {
        let (now, own) = (self.now, self.own_rules(place));
        if let Some(home) = self.homes.get_mut(place) {
            let bucket = home.bucket;
            home.bucket = home.settings.rate.map(|rate| Bucket::of(rate, bucket, now));
            home.follow(own, now);
        }
        self.refuse_misfits(place);
    }

    /// The next moment at which something opens that holds back a task for which a consumer waits.
    pub(super) fn next_opening(&self) -> Option<Timestamp> {
        let could_give = |home: &Home| {
            let has_room = home.has_room_to_take() && self.limits_have_room(home);
            has_room && home.has_tasks_for_anyone(self.now)
        };
        let next = |(place, home): (&Place, &Home)| {
            if self.has_consumers(place) {
                return self.next_opening_of(home);
            }
            // What is called back needs no token of the place.
            home.next_turn(self.now).filter(|_| self.has_unstarted(place))
        };
        self.homes.iter().filter(|(_, home)| could_give(home)).filter_map(next).min()
    }
}
