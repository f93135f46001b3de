//! What goes next where that is not decided by number and age alone: in fair queues, and in those
//! that limit keys and shares.
//!
//! Every answer is found by going through all tasks. Kept are only the things that do not follow
//! from them: the tokens of keys and shares, and in a fair queue what each share has had.

mod forecast;

use std::collections::BTreeMap;

use pinpriq_proto::command::{End, Order, Selection};
use pinpriq_proto::limits::NARROW_PAYLOAD_BYTES_MAX;
use pinpriq_proto::reply::RefusalKind;
use pinpriq_proto::settings::{Ranking, Rate, Settings};
use pinpriq_proto::shares::{Own, ShareRules};
use pinpriq_proto::task::{Bytes, Holds, Progress, State, StateKind, TaskRecord, Terms, Trace};
use pinpriq_proto::time::{Span, Timestamp};

use super::ageing::ages;
use super::gate::Bucket;
use super::{Home, Model, Place, fits};

/// What a take of cost 1 counts for a share of weight 1.
const UNIT: u128 = 1 << 20;

/// The most tasks of a queue that may change whether it has turns, and of which kind.
const TASKS_MAX: usize = 100_000;

/// What a place remembers beside its tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    /// S and the last take of each share that has its turn at a number.
    had: BTreeMap<(Bytes, i64), Had>,
    /// V of each number.
    reached: BTreeMap<i64, u128>,
    /// How many takes there have been.
    served: u64,
    /// The rules of their own that shares have.
    own: BTreeMap<Bytes, ShareRules>,
    /// Whether the place is fair, is by key and ages, as it was last told.
    kind: Kind,
    /// The buckets of keys and of shares that are not full.
    keys: BTreeMap<Bytes, Bucket>,
    shares: BTreeMap<Bytes, Bucket>,
    /// Those of all keys, and of all shares without a rate of their own, that have none there.
    /// They are full if there is none here either.
    every_key: Option<Bucket>,
    every_share: Option<Bucket>,
    /// Whether a share has ever got back what it was charged.
    gave_back: bool,
    /// Whether a task did ever cost more or less than its put said.
    spent_more: bool,
    spent_less: bool,
}

/// What a share has had at a number.
#[derive(Clone, Copy, Debug)]
struct Had {
    start: u128,
    /// Which take of the place its last one was. 0 if there was none since it got its turn.
    served: u64,
    /// The weights by which it pays for its next turn, and by which it has paid for its last one.
    weight: u16,
    paid: u16,
}

/// Whether a place is fair, whether it is by key, and whether its tasks age.
type Kind = (bool, bool, bool);

impl Had {
    /// What a share has had that gets its turn.
    const fn new(start: u128, weight: u16) -> Self {
        Self { start, served: 0, weight, paid: weight }
    }
}

/// The share of a task with these terms.
pub(super) fn share_of<B: AsRef<[u8]>, S: Holds<B>>(terms: &Terms<B, S>) -> Bytes {
    terms.share().or(terms.key.as_ref()).map_or_else(Bytes::default, |it| it.as_ref().into())
}

/// What has been left on a task.
pub(super) fn trace_of(progress: &Progress) -> Trace {
    progress.trace.as_deref().cloned().unwrap_or(Trace::NONE)
}

/// What a take of a task counts for a share of this weight.
fn charge_of(task: &TaskRecord, weight: u16) -> u128 {
    u128::from(task.terms.cost()) * UNIT / u128::from(weight)
}

fn is_fair(settings: &Settings) -> bool {
    settings.ranking == Ranking::Fair
}

fn is_by_key(settings: &Settings, own: &BTreeMap<Bytes, ShareRules>) -> bool {
    let Settings { key_limit, key_rate, key_hold, share_limit, share_rate, .. } = settings;
    let has_limit = key_limit.is_some() || share_limit.is_some();
    let has_rate = key_rate.is_some() || share_rate.is_some();
    let limits = |rules: &ShareRules| {
        matches!(rules.limit, Own::Is(Some(_))) || matches!(rules.rate, Own::Is(Some(_)))
    };
    has_limit || has_rate || *key_hold || own.values().any(limits)
}

fn is_taken(task: &TaskRecord) -> bool {
    task.progress.state.kind() == StateKind::Taken
}

fn is_selectable(task: &TaskRecord) -> bool {
    task.progress.state == State::Ready && task.progress.priority.is_some()
}

/// Whether a task holds back the others of its key until it is finished, buried or gone.
fn holds(task: &TaskRecord) -> bool {
    let kind = task.progress.state.kind();
    let is_there = matches!(kind, StateKind::Ready | StateKind::Waiting | StateKind::Taken);
    is_there && task.progress.priority.is_some() && task.progress.is_held()
}

impl Turns {
    /// Lets all buckets hold what those of another place hold.
    pub(super) fn go_on_with_tokens(&mut self, former: &Self) {
        (self.keys, self.shares) = (former.keys.clone(), former.shares.clone());
        (self.every_key, self.every_share) = (former.every_key, former.every_share);
    }
}

impl Home {
    fn place_of(&self, task: &TaskRecord) -> (Option<i128>, u64) {
        (self.number_of(task), task.progress.seq)
    }

    /// Whether its tasks go in turns: whether it is fair or by key.
    #[must_use]
    pub fn has_turns(&self) -> bool {
        is_fair(&self.settings) || self.is_by_key()
    }

    /// Whether it, its keys or any of its shares may have a rate, also by a limit that it uses.
    #[must_use]
    pub fn is_rated(&self) -> bool {
        let Settings { rate, key_rate, share_rate, .. } = self.settings;
        let uses = self.settings.uses.is_some();
        let has_own = |rules: &ShareRules| matches!(rules.rate, Own::Is(Some(_)));
        let is_set = rate.is_some() || key_rate.is_some() || share_rate.is_some();
        uses || is_set || self.turns.own.values().any(has_own)
    }

    /// What it is with these settings.
    fn kind(&self, settings: &Settings) -> Kind {
        (is_fair(settings), is_by_key(settings, &self.turns.own), ages(settings))
    }

    fn is_by_key(&self) -> bool {
        is_by_key(&self.settings, &self.turns.own)
    }

    fn rules_of(&self, share: &Bytes) -> ShareRules {
        self.turns.own.get(share).copied().unwrap_or_default()
    }

    fn share_limit(&self, share: &Bytes) -> Option<u64> {
        match self.rules_of(share).limit {
            Own::Default => self.settings.share_limit,
            Own::Is(limit) => limit,
        }
    }

    fn share_rate(&self, share: &Bytes) -> Option<Rate> {
        match self.rules_of(share).rate {
            Own::Default => self.settings.share_rate,
            Own::Is(rate) => rate,
        }
    }

    /// The tasks that may go as far as their keys are concerned.
    fn going(&self, now: Timestamp) -> Vec<&TaskRecord> {
        let ready = self.tasks.values().filter(|task| is_selectable(task));
        if !self.is_by_key() {
            return ready.collect();
        }
        let (mut keys, mut going) = (Vec::new(), Vec::new());
        for task in ready {
            match &task.terms.key {
                None => going.push(task),
                Some(key) if keys.contains(&key) => {}
                Some(key) => {
                    keys.push(key);
                    going.extend(self.going_of_key(key, now));
                }
            }
        }
        going
    }

    /// The task of a key that may go, if one may.
    fn going_of_key(&self, key: &Bytes, now: Timestamp) -> Option<&TaskRecord> {
        let of_key = self.tasks.values().filter(|task| task.terms.key.as_ref() == Some(key));
        let taken = of_key.clone().filter(|task| is_taken(task)).count() as u64;
        let is_full = self.settings.key_limit.is_some_and(|limit| taken >= limit);
        if is_full || self.bucket_of_key(key).is_some_and(|bucket| !bucket.is_open(now)) {
            return None;
        }
        let holders = of_key.clone().filter(|task| self.settings.key_hold && holds(task));
        match holders.min_by_key(|task| task.progress.seq) {
            Some(holder) => Some(holder).filter(|task| is_selectable(task)),
            None => {
                of_key.filter(|task| is_selectable(task)).min_by_key(|task| self.place_of(task))
            }
        }
    }

    /// Whether a share may go.
    fn share_is_open(&self, share: &Bytes, now: Timestamp) -> bool {
        let of_share = self.tasks.values().filter(|task| share_of(&task.terms) == *share);
        let taken = of_share.filter(|task| is_taken(task)).count() as u64;
        let is_full = self.share_limit(share).is_some_and(|limit| taken >= limit);
        !is_full && self.bucket_of_share(share).is_none_or(|bucket| bucket.is_open(now))
    }

    /// The bucket of a key, unless it is full.
    pub(super) fn bucket_of_key(&self, key: &Bytes) -> Option<Bucket> {
        self.turns.keys.get(key).copied().or(self.turns.every_key)
    }

    /// The bucket of a share, unless it is full.
    pub(super) fn bucket_of_share(&self, share: &Bytes) -> Option<Bucket> {
        let has_rate = self.rules_of(share).rate != Own::Default;
        let in_common = self.turns.every_share.filter(|_| !has_rate);
        self.turns.shares.get(share).copied().or(in_common)
    }

    /// Lets the buckets of all keys and shares begin empty.
    pub(super) fn empty_keys_and_shares(&mut self, now: Timestamp) {
        let Settings { key_rate, share_rate, .. } = self.settings;
        let empty = |rate| Bucket::empty(rate, now);
        (self.turns.every_key, self.turns.every_share) =
            (key_rate.map(empty), share_rate.map(empty));
        for (share, rules) in &self.turns.own {
            if let Own::Is(Some(rate)) = rules.rate {
                self.turns.shares.insert(share.clone(), empty(rate));
            }
        }
        self.settle(now);
    }

    /// The first task of each share that may go, of the lowest number at which it has one, in the
    /// order in which they go.
    pub(super) fn in_turn(&self, now: Timestamp) -> Vec<&TaskRecord> {
        let mut firsts: BTreeMap<Bytes, &TaskRecord> = BTreeMap::new();
        for task in self.going(now) {
            let first = firsts.entry(share_of(&task.terms)).or_insert(task);
            if self.place_of(task) < self.place_of(first) {
                *first = task;
            }
        }
        firsts.retain(|share, _| self.share_is_open(share, now));
        let mut line: Vec<&TaskRecord> = firsts.into_values().collect();
        line.sort_by_key(|task| {
            let (number, seq) = self.place_of(task);
            let (turn, served) = self.turn_of(task);
            (number, turn, served, seq)
        });
        line
    }

    /// F of a share of which this is the first task at its number, and its last take.
    fn turn_of(&self, first: &TaskRecord) -> (u128, u64) {
        if !is_fair(&self.settings) {
            return (0, 0);
        }
        let number = first.progress.priority.unwrap_or_default();
        let share = share_of(&first.terms);
        let had = self.turns.had.get(&(share.clone(), number));
        // Before the end of the step in which it gets its turn, it has had what the others have.
        let reached = self.turns.reached.get(&number).copied().unwrap_or(0);
        let weight = self.rules_of(&share).weight;
        let had = had.copied().unwrap_or_else(|| Had::new(reached, weight));
        (had.start + charge_of(first, had.weight), had.served)
    }

    /// The task that goes next.
    pub(super) fn next_in_turn(&self, is_narrow: bool, now: Timestamp) -> Option<&TaskRecord> {
        let fits = |task: &&TaskRecord| task.payload.len() <= NARROW_PAYLOAD_BYTES_MAX;
        self.in_turn(now).into_iter().find(|task| !is_narrow || fits(task))
    }

    /// Ends a step: gives turns to the shares that get one, and forgets those that have none, and
    /// what is full.
    pub(super) fn settle(&mut self, now: Timestamp) {
        self.end_delays(now);
        self.turns.keys.retain(|_, bucket| !bucket.is_full(now));
        self.turns.shares.retain(|_, bucket| !bucket.is_full(now));
        for in_common in [&mut self.turns.every_key, &mut self.turns.every_share] {
            *in_common = in_common.filter(|bucket| !bucket.is_full(now));
        }
        if !is_fair(&self.settings) {
            self.turns.had.clear();
            self.turns.reached.clear();
            return;
        }
        let number = |task: &&TaskRecord| task.progress.priority.unwrap_or_default();
        let pairs: Vec<(Bytes, i64)> =
            self.going(now).iter().map(|task| (share_of(&task.terms), number(task))).collect();
        let Turns { had, reached, own, .. } = &mut self.turns;
        for pair in &pairs {
            let start = *reached.entry(pair.1).or_insert(0);
            let weight = own.get(&pair.0).copied().unwrap_or_default().weight;
            had.entry(pair.clone()).or_insert_with(|| Had::new(start, weight));
        }
        had.retain(|pair, _| pairs.contains(pair));
        reached.retain(|number, _| pairs.iter().any(|pair| pair.1 == *number));
    }

    /// Adds tokens to the buckets of the share and the key of a task, or takes some out.
    pub(super) fn add_tokens(&mut self, task: &TaskRecord, tokens: i128, now: Timestamp) {
        let share = share_of(&task.terms);
        if let Some(rate) = self.share_rate(&share) {
            let mut bucket =
                self.bucket_of_share(&share).unwrap_or_else(|| Bucket::of(rate, None, now));
            bucket.change(now, tokens);
            self.turns.shares.insert(share, bucket);
        }
        if let (Some(rate), Some(key)) = (self.settings.key_rate, &task.terms.key) {
            let mut bucket = self.bucket_of_key(key).unwrap_or_else(|| Bucket::of(rate, None, now));
            bucket.change(now, tokens);
            self.turns.keys.insert(key.clone(), bucket);
        }
    }

    /// Charges a task that is about to be handed out.
    pub(super) fn charge(&mut self, task: &TaskRecord, now: Timestamp) {
        let share = share_of(&task.terms);
        self.add_tokens(task, -i128::from(task.terms.cost()), now);
        let own_weight = self.rules_of(&share).weight;
        let Turns { had, reached, served, .. } = &mut self.turns;
        let number = task.progress.priority.filter(|_| is_fair(&self.settings));
        // Where no task may go, there is no V.
        let Some((number, reached)) = number.and_then(|it| Some((it, reached.get_mut(&it)?)))
        else {
            return;
        };
        let had = had.get_mut(&(share, number));
        let (start, weight) =
            had.as_ref().map_or((*reached, own_weight), |had| (had.start, had.weight));
        *reached = (*reached).max(start + charge_of(task, weight));
        *served += 1;
        // A new weight counts from the next charge.
        if let Some(had) = had {
            *had = Had { start: *reached, served: *served, weight: own_weight, paid: weight };
        }
    }

    /// Returns what a task was charged that did not arrive.
    pub(super) fn uncharge(&mut self, task: &TaskRecord, now: Timestamp) {
        let share = share_of(&task.terms);
        self.add_tokens(task, task.terms.cost().into(), now);
        // Its key may open by that.
        self.settle(now);
        let number = task.progress.priority.unwrap_or_default();
        if let Some(had) = self.turns.had.get_mut(&(share, number)) {
            self.turns.gave_back |= had.start > 0;
            had.start = had.start.saturating_sub(charge_of(task, had.paid));
        }
    }

    /// Gives buckets the difference between what a task was put with and what it did cost.
    pub(super) fn correct(&mut self, task: &TaskRecord, tokens: i128, now: Timestamp) {
        self.add_tokens(task, tokens, now);
        self.settle(now);
        self.turns.spent_more |= tokens < 0;
        self.turns.spent_less |= tokens > 0;
    }

    /// Follows a change of settings, or of the rules of shares, which are these from now on.
    /// Fairness begins anew where turns are of another kind.
    pub(super) fn follow(&mut self, own: BTreeMap<Bytes, ShareRules>, now: Timestamp) {
        self.turns.own = own;
        let kind = self.kind(&self.settings);
        if std::mem::replace(&mut self.turns.kind, kind) != kind {
            self.turns.had.clear();
            self.turns.reached.clear();
        }
        let at = |(name, bucket), rate: Option<Rate>| {
            rate.map(|rate| (name, Bucket::of(rate, Some(bucket), now)))
        };
        let Settings { key_rate, share_rate, .. } = self.settings;
        let in_common = |bucket: Option<Bucket>, rate: Option<Rate>| {
            Some(Bucket::of(rate?, Some(bucket?), now))
        };
        self.turns.every_key = in_common(self.turns.every_key, key_rate);
        self.turns.every_share = in_common(self.turns.every_share, share_rate);
        let keys = std::mem::take(&mut self.turns.keys).into_iter();
        self.turns.keys = keys.filter_map(|it| at(it, self.settings.key_rate)).collect();
        let shares = std::mem::take(&mut self.turns.shares).into_iter();
        let at_share = |it: (Bytes, Bucket)| {
            let rate = self.share_rate(&it.0);
            at(it, rate)
        };
        self.turns.shares = shares.filter_map(at_share).collect();
        self.settle(now);
    }

    /// The moments at which keys and shares open that are shut.
    pub(super) fn openings(&self, now: Timestamp) -> impl Iterator<Item = Timestamp> {
        let Turns { keys, shares, every_key, every_share, .. } = &self.turns;
        let buckets = keys.values().chain(shares.values()).chain(every_key).chain(every_share);
        buckets.filter_map(move |bucket| bucket.opens_at(now))
    }

    fn kind_may_change(&self, kind: Kind) -> Result<(), RefusalKind> {
        let is_same = self.kind(&self.settings) == kind;
        if is_same || self.tasks.len() <= TASKS_MAX { Ok(()) } else { Err(RefusalKind::WrongState) }
    }

    /// Whether a selection asks for another order than the one in which its tasks take turns.
    fn is_misfit(&self, selection: Selection) -> bool {
        let Selection { from, order, group, narrow } = selection;
        let is_other = from == End::Max || order == Order::Newest || group;
        self.has_turns() && is_other && !narrow
    }
}

impl Model {
    /// Ends a step that concerns a place.
    pub(super) fn settle(&mut self, place: &Place) {
        let now = self.now;
        if let Some(home) = self.homes.get_mut(place) {
            home.settle(now);
        }
    }

    /// Lets open what has opened by now.
    pub(super) fn settle_all(&mut self) {
        let now = self.now;
        self.homes.values_mut().for_each(|home| home.settle(now));
    }

    /// Notes whether a task holds back the others of its key.
    pub(super) fn set_held(&mut self, number: u64, is_held: bool) {
        let progress = &mut self.task_mut(number).progress;
        progress.trace = Trace { is_held, ..trace_of(progress) }.kept();
    }

    /// A task that is about to be returned with a delay holds back the others of its key.
    pub(super) fn note_put_off(&mut self, number: u64, delay: Span) {
        if !delay.is_zero() && self.settings(&self.places[&number]).key_hold {
            self.set_held(number, true);
        }
    }

    /// Refuses a selection that asks for another order than these places have.
    pub(super) fn order_fits(
        &self,
        places: &[Place],
        selection: Selection,
    ) -> Result<(), RefusalKind> {
        let mut homes = places.iter().filter_map(|place| self.homes.get(place));
        fits(!homes.any(|home| home.is_misfit(selection)))
    }

    /// Refuses a change of whether and how a queue has turns while it has very many tasks.
    pub(super) fn turns_may_change(
        &self,
        place: &Place,
        settings: &Settings,
    ) -> Result<(), RefusalKind> {
        let Some(home) = self.homes.get(place) else { return Ok(()) };
        let counts = home.settings.share_capacity.is_none() && settings.share_capacity.is_some();
        if counts && home.tasks.len() > TASKS_MAX {
            return Err(RefusalKind::WrongState);
        }
        home.kind_may_change(home.kind(settings))
    }

    /// The same if a share gets these rules.
    pub(super) fn turns_may_change_by(
        &self,
        place: &Place,
        (share, rules): (&[u8], ShareRules),
    ) -> Result<(), RefusalKind> {
        let Some(home) = self.homes.get(place) else { return Ok(()) };
        let mut own = home.turns.own.clone();
        own.insert(share.into(), rules);
        let kind = (is_fair(&home.settings), is_by_key(&home.settings, &own), ages(&home.settings));
        home.kind_may_change(kind)
    }

    /// Refuses everyone who waits for the tasks of a place in an order that it does not have now.
    pub(super) fn refuse_misfits(&mut self, place: &Place) {
        let Some(home) = self.homes.get(place).cloned() else { return };
        let is_misfit =
            |taker: &super::Taker| taker.places.contains(place) && home.is_misfit(taker.selection);
        while let Some(at) = self.takers.iter().position(is_misfit) {
            let taker = self.takers.remove(at);
            self.refuse(taker.client, taker.request, RefusalKind::BadArgument);
        }
    }
}

/// Queries for the census of what random tests have reached.
impl Model {
    /// What is so now of all that turns can do.
    #[must_use]
    pub fn seen_of_turns(&self) -> Vec<&'static str> {
        let mut seen = Vec::new();
        for home in self.homes.values() {
            seen.extend(home.seen_of_ageing(self.now));
        }
        for (place, home) in self.homes.iter().filter(|(_, home)| home.has_turns()) {
            seen.extend(home.seen_of_turns(self.now));
            seen.extend(home.seen_of_charges(self.now));
            if self.waits_for(place) && home.openings(self.now).next().is_some() {
                seen.push("a consumer waits for an opening");
            }
        }
        if self.homes.values().any(Home::has_a_full_share) {
            seen.push("the capacity of a share is reached");
        }
        seen
    }
}

impl Home {
    fn seen_of_turns(&self, now: Timestamp) -> impl Iterator<Item = &'static str> {
        let Settings { key_limit, key_hold, .. } = self.settings;
        let tasks = || self.tasks.values();
        let ready = || tasks().filter(|task| is_selectable(task));
        let taken = |is_one: &dyn Fn(&TaskRecord) -> bool| {
            tasks().filter(|task| is_taken(task)).filter(|task| is_one(task)).count() as u64
        };
        let of_same_key = |task: &TaskRecord| {
            let key = task.terms.key.clone();
            taken(&move |other| key.is_some() && other.terms.key == key)
        };
        let of_same_share = |task: &TaskRecord| {
            let share = share_of(&task.terms);
            taken(&move |other| share_of(&other.terms) == share)
        };
        let holders = |key: &Bytes| {
            let of_key = tasks().filter(|task| task.terms.key.as_ref() == Some(key));
            of_key.filter(|task| key_hold && holds(task)).count()
        };
        let keys = || ready().filter_map(|task| task.terms.key.as_ref());
        let is_shut = |bucket: Option<Bucket>| bucket.is_some_and(|bucket| !bucket.is_open(now));
        let next = self.next_in_turn(false, now);
        let is_older = |task: &TaskRecord| {
            next.is_some_and(|next| {
                self.place_of(task) < self.place_of(next) && is_fair(&self.settings)
            })
        };
        let numbers = |share: &Bytes| self.turns.had.keys().filter(|it| it.0 == *share).count();
        [
            (ready().any(is_older), "an older task waits for the turn of its share"),
            (
                self.turns.had.keys().any(|(share, _)| numbers(share) > 1),
                "a share has its turn at several numbers",
            ),
            (
                ready().any(|task| key_limit.is_some_and(|most| of_same_key(task) >= most)),
                "the limit of a key is reached",
            ),
            (keys().any(|key| is_shut(self.bucket_of_key(key))), "the bucket of a key is shut"),
            (keys().any(|key| holders(key) > 0), "a task holds its key"),
            (keys().any(|key| holders(key) > 1), "several tasks hold a key"),
            (
                ready().any(|task| {
                    let limit = self.share_limit(&share_of(&task.terms));
                    limit.is_some_and(|most| of_same_share(task) >= most)
                }),
                "the limit of a share is reached",
            ),
            (
                ready().any(|task| is_shut(self.bucket_of_share(&share_of(&task.terms)))),
                "the bucket of a share is shut",
            ),
        ]
        .into_iter()
        .filter_map(|(is_so, what)| is_so.then_some(what))
    }

    fn seen_of_charges(&self, now: Timestamp) -> impl Iterator<Item = &'static str> {
        [
            (
                self.bucket.is_some_and(|bucket| bucket.is_in_debt(now)),
                "the bucket of a queue is in debt",
            ),
            (self.lane.is_some(), "a lane has turns"),
            (self.turns.gave_back, "what was charged is given back"),
            (self.turns.spent_more, "a task did cost more than its put said"),
            (self.turns.spent_less, "a task did cost less than its put said"),
            (
                self.turns.had.values().any(|had| had.weight != 1),
                "a share pays by a weight of its own",
            ),
            (
                self.turns.own.values().any(|rules| matches!(rules.limit, Own::Is(Some(_)))),
                "a share has a limit of its own",
            ),
            (
                self.turns.own.values().any(|rules| matches!(rules.rate, Own::Is(Some(_)))),
                "a share has a rate of its own",
            ),
        ]
        .into_iter()
        .filter_map(|(is_so, what)| is_so.then_some(what))
    }
}
