//! The scenarios: who puts what, who works, and what is promised.

/// Tenants, workers, and what they may expect.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The word by which it is chosen.
    pub name: &'static str,
    /// What happens, for people.
    pub what: &'static str,
    /// The settings of the queue.
    pub settings: &'static str,
    /// Rules of their own that shares have.
    pub rules: &'static [&'static str],
    /// Those who put tasks.
    pub(super) tenants: &'static [Tenant],
    /// How many tasks may be worked on at once.
    pub(super) workers: usize,
    /// How long it lasts.
    pub(super) lasts_ms: u64,
    /// Where no time is simulated: other settings, and a shorter time.
    pub(super) in_real_time: Option<(&'static str, u64)>,
    /// Whether the server is killed half-way, and started again.
    pub(super) restarts: bool,
    /// The most tasks that a tenant puts at once.
    pub(super) flood_max: u64,
    pub(super) promises: &'static [Promise],
}

/// Someone who puts tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tenant {
    pub(super) name: &'static str,
    /// Without one, its keys are its shares.
    pub(super) share: Option<&'static str>,
    pub(super) keys: Keys,
    /// The least and the most that a task costs.
    pub(super) costs: (u64, u64),
    pub(super) priority: i64,
    pub(super) arrival: Arrival,
    /// How long a worker needs for a task, give or take a half.
    pub(super) service_ms: u64,
    /// How many of a hundred jobs fail.
    pub(super) fails_percent: u64,
}

/// The keys of a tenant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keys {
    None,
    /// One of so many.
    Of(u64),
    /// Each task has another one.
    Endless,
}

/// When tasks come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arrival {
    /// This many are there first.
    Flood(u64),
    /// One each so many milliseconds, give or take a half.
    Every(u64),
    /// This many are there at any time.
    Always(u64),
    /// This many are there first. Half-way all are removed, and one is put.
    Purged(u64),
}

/// Something that must hold.
#[derive(Clone, Copy, Debug)]
pub(super) enum Promise {
    /// Of the tasks of this tenant, 99 in 100 wait at most this long.
    Wait { tenant: usize, at_most_ms: u64 },
    /// This tenant gets this part of all takes, within 1 % of that.
    Part { tenant: usize, percent: u64 },
    /// Workers are busy for at least this part of the time.
    Busy { percent: u64 },
    /// What two tenants have got never differs by more than one task.
    EvenCosts,
    /// A tenant's task that is the first of its share waits at most until each of the others that
    /// are there, or come meanwhile, has been served. It has this many turns in a minute.
    Turns { tenant: usize, at_least: u64 },
    /// Tasks of a key are finished in the order in which they were put.
    OrderInKeys,
    /// So many tasks of a key are taken at once at most.
    TakenOfKey(u64),
    /// At the end at most so many tasks are left that are not being worked on.
    Left(u64),
    /// What was taken costs as much as the rate of the queue allows, within the cost of one task.
    Rate { costs_at_most: u64 },
}

/// A minute in milliseconds.
pub(super) const MINUTE_MS: u64 = 60_000;

/// One who puts tasks of cost 1 and priority 0 without keys, which take 10 ms.
const TENANT: Tenant = Tenant {
    name: "",
    share: None,
    keys: Keys::None,
    costs: (1, 1),
    priority: 0,
    arrival: Arrival::Flood(0),
    service_ms: 10,
    fails_percent: 0,
};

const FLOOD: Tenant =
    Tenant { name: "flood", share: Some("flood"), arrival: Arrival::Flood(100_000), ..TENANT };

const QUIET: Tenant =
    Tenant { name: "quiet", share: Some("quiet"), arrival: Arrival::Every(10), ..TENANT };

const SCENARIO: Scenario = Scenario {
    name: "",
    what: "",
    settings: "RANKING fair",
    rules: &[],
    tenants: &[],
    workers: 4,
    lasts_ms: MINUTE_MS,
    in_real_time: None,
    restarts: false,
    flood_max: u64::MAX,
    promises: &[],
};

/// All of them.
pub const SCENARIOS: [Scenario; 12] = [
    Scenario {
        name: "flood",
        what: "100,000 tasks of one share; a quiet one puts one each 10 ms",
        tenants: &[FLOOD, QUIET],
        promises: &[Promise::Wait { tenant: 1, at_most_ms: 20 }, Promise::Busy { percent: 99 }],
        ..SCENARIO
    },
    Scenario {
        name: "flood-of-keys",
        what: "the same, under 100,000 keys of one share",
        tenants: &[Tenant { keys: Keys::Endless, ..FLOOD }, QUIET],
        promises: &[Promise::Wait { tenant: 1, at_most_ms: 20 }, Promise::Busy { percent: 99 }],
        ..SCENARIO
    },
    Scenario {
        name: "keys-as-shares",
        what: "100,000 tasks of 1,000 keys without SHARE, and 200 new keys a second",
        tenants: &[
            Tenant { share: None, keys: Keys::Of(1_000), ..FLOOD },
            Tenant { name: "new", keys: Keys::Endless, arrival: Arrival::Every(5), ..TENANT },
            Tenant { name: "old", share: Some("old"), arrival: Arrival::Always(3), ..TENANT },
        ],
        promises: &[Promise::Turns { tenant: 2, at_least: 10 }, Promise::Busy { percent: 99 }],
        ..SCENARIO
    },
    Scenario {
        name: "alone",
        what: "one share alone",
        tenants: &[Tenant { name: "one", arrival: Arrival::Always(32), ..QUIET }],
        workers: 8,
        promises: &[Promise::Busy { percent: 99 }, Promise::Part { tenant: 0, percent: 100 }],
        ..SCENARIO
    },
    Scenario {
        name: "purge",
        what: "a tenant removes its 1,000,000 tasks, and puts one",
        tenants: &[
            Tenant {
                name: "purger",
                share: Some("purger"),
                arrival: Arrival::Purged(1_000_000),
                ..TENANT
            },
            Tenant { arrival: Arrival::Always(32), ..QUIET },
        ],
        promises: &[Promise::Wait { tenant: 0, at_most_ms: 15 }],
        ..SCENARIO
    },
    Scenario {
        name: "weights",
        what: "weights 1, 2 and 7 under load",
        rules: &["one WEIGHT 1", "two WEIGHT 2", "seven WEIGHT 7"],
        tenants: &[
            Tenant { name: "1", share: Some("one"), arrival: Arrival::Always(32), ..TENANT },
            Tenant { name: "2", share: Some("two"), arrival: Arrival::Always(32), ..TENANT },
            Tenant { name: "7", share: Some("seven"), arrival: Arrival::Always(32), ..TENANT },
        ],
        promises: &[
            Promise::Part { tenant: 0, percent: 10 },
            Promise::Part { tenant: 1, percent: 20 },
            Promise::Part { tenant: 2, percent: 70 },
        ],
        ..SCENARIO
    },
    Scenario {
        name: "costs",
        what: "two shares whose tasks cost 1 and 100",
        tenants: &[
            Tenant { name: "1", share: Some("cheap"), arrival: Arrival::Always(32), ..TENANT },
            Tenant {
                name: "100",
                share: Some("dear"),
                costs: (100, 100),
                arrival: Arrival::Always(32),
                ..TENANT
            },
        ],
        workers: 8,
        promises: &[Promise::EvenCosts],
        ..SCENARIO
    },
    Scenario {
        name: "order-in-keys",
        what: "KEYLIMIT 1 and KEYHOLD: 1,000 keys, a tenth of the jobs fail and wait for a second",
        settings: "KEYLIMIT 1 KEYHOLD on BACKOFF 1000 BACKOFFMAX 1000",
        tenants: &[Tenant { keys: Keys::Of(1_000), fails_percent: 10, ..FLOOD }],
        workers: 8,
        promises: &[Promise::OrderInKeys, Promise::TakenOfKey(1), Promise::Busy { percent: 99 }],
        ..SCENARIO
    },
    Scenario {
        name: "two-failed",
        what: "KEYLIMIT 2 and KEYHOLD: 10 keys, half of the jobs fail, also two of a key at once",
        settings: "KEYLIMIT 2 KEYHOLD on BACKOFF 50 BACKOFFMAX 50",
        tenants: &[Tenant {
            name: "keys",
            keys: Keys::Of(10),
            arrival: Arrival::Every(50),
            fails_percent: 50,
            ..TENANT
        }],
        workers: 16,
        promises: &[Promise::TakenOfKey(2), Promise::Left(20)],
        ..SCENARIO
    },
    Scenario {
        name: "rate",
        what: "RATE 60 a minute, and costs 1 to 50, for an hour",
        settings: "RATE 60/60000",
        tenants: &[Tenant { name: "one", costs: (1, 50), arrival: Arrival::Always(32), ..TENANT }],
        workers: 8,
        lasts_ms: 60 * MINUTE_MS,
        in_real_time: Some(("RATE 60/1000", MINUTE_MS)),
        promises: &[Promise::Rate { costs_at_most: 50 }],
        ..SCENARIO
    },
    Scenario {
        name: "urgent",
        what: "the share that floods also has urgent work, each 50 ms; another one has none",
        tenants: &[
            Tenant { priority: 10, ..FLOOD },
            Tenant { name: "urgent", arrival: Arrival::Every(50), ..FLOOD },
            Tenant { name: "other", priority: 10, arrival: Arrival::Always(32), ..QUIET },
        ],
        promises: &[Promise::Wait { tenant: 1, at_most_ms: 15 }, Promise::Busy { percent: 99 }],
        ..SCENARIO
    },
    Scenario {
        name: "restart",
        what: "a flood of 500 keys that fail, weights 1 and 2, a quiet share, and a kill half-way",
        settings: "RANKING fair KEYLIMIT 1 KEYHOLD on BACKOFF 200 BACKOFFMAX 200",
        rules: &["two WEIGHT 2"],
        tenants: &[
            Tenant { keys: Keys::Of(500), fails_percent: 5, ..FLOOD },
            Tenant { name: "two", share: Some("two"), arrival: Arrival::Always(64), ..TENANT },
            Tenant { arrival: Arrival::Every(20), ..QUIET },
        ],
        restarts: true,
        promises: &[
            Promise::OrderInKeys,
            Promise::TakenOfKey(1),
            Promise::Wait { tenant: 2, at_most_ms: 20 },
            Promise::Busy { percent: 99 },
        ],
        ..SCENARIO
    },
];

impl Scenario {
    /// Whether it needs a server that keeps its tasks.
    #[must_use]
    pub const fn restarts(&self) -> bool {
        self.restarts
    }

    /// The same in small: no longer than this, and with no more tasks that are put at once.
    #[must_use]
    pub fn in_small(mut self, at_most_ms: u64, flood_max: u64) -> Self {
        (self.lasts_ms, self.flood_max) = (self.lasts_ms.min(at_most_ms), flood_max);
        self
    }

    /// The rate of the queue: the tokens, and the milliseconds in which they come.
    pub(super) fn rate(&self) -> Option<(u64, u64)> {
        let rate = self.settings.split("RATE ").nth(1)?.split(' ').next()?;
        let (count, per_ms) = rate.split_once('/')?;
        Some((count.parse().ok()?, per_ms.parse().ok()?))
    }

    /// The same where no time is simulated, and no longer than this.
    #[must_use]
    pub fn in_real_time(mut self, at_most_ms: u64) -> Self {
        if let Some((settings, lasts_ms)) = self.in_real_time {
            (self.settings, self.lasts_ms) = (settings, lasts_ms);
        }
        self.lasts_ms = self.lasts_ms.min(at_most_ms);
        self
    }
}
