//! What was measured, and what was promised.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::scenarios::{MINUTE_MS, Promise, Scenario};

/// Something measured, with its bound.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What was measured.
    pub what: String,
    /// What came out.
    pub measured: String,
    /// What it must be.
    pub bound: String,
    /// Whether it is that.
    pub holds: bool,
}

/// What one tenant has got.
#[derive(Clone, Debug, Default)]
pub(super) struct Got {
    /// How long its tasks waited for their first take.
    pub(super) waits_us: Vec<u64>,
    pub(super) takes: u64,
    pub(super) cost: u64,
    /// How many takes of others there were before one of its own, at most, beyond the shares that
    /// were there or came meanwhile.
    pub(super) overtaken_beyond: i64,
    /// How many takes of others there were before one of its own, at most.
    pub(super) overtaken: u64,
}

/// A lease that was ended by who had it: the key of its task, and the numbers of take and end.
pub(super) type Held = ((usize, u64), u64, u64);

/// All that is measured while a scenario is played.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    pub(super) got: Vec<Got>,
    /// How long workers had something to do, all together.
    pub(super) busy_us: u64,
    pub(super) lasted_us: u64,
    /// What the costs of two tenants differed by at most.
    pub(super) uneven: u64,
    /// How many tasks were finished before one of their key that was put before them.
    pub(super) out_of_order: u64,
    pub(super) held: Vec<Held>,
    /// How many tasks are left that are not being worked on.
    pub(super) left: u64,
    /// For how long the server was not there.
    pub(super) away_us: u64,
    /// How many times slower everything happened.
    pub(super) slowness: u64,
}

impl Measured {
    /// Compares with what the scenario promises.
    pub(super) fn judge(&mut self, scenario: &Scenario) -> Vec<Figure> {
        scenario.promises.iter().map(|promise| self.figure(scenario, *promise)).collect()
    }

    fn figure(&mut self, scenario: &Scenario, promise: Promise) -> Figure {
        match promise {
            Promise::Wait { tenant, at_most_ms } => {
                let at_most_ms = at_most_ms * self.slowness;
                let what = format!("p99 wait of {}", scenario.tenants[tenant].name);
                let wait_us = self.wait_us(tenant);
                let holds = wait_us.is_some_and(|us| us <= at_most_ms * 1_000);
                let measured = wait_us.map_or_else(|| "none came".to_owned(), ms);
                Figure { what, measured, bound: format!("at most {at_most_ms} ms"), holds }
            }
            Promise::Part { tenant, percent } => {
                let all: u64 = self.got.iter().map(|got| got.takes).sum();
                let takes = self.got[tenant].takes;
                // Takes of a hundredth of a percent of what is due.
                let is_near = (takes * 10_000).abs_diff(all * percent * 100) <= all * percent;
                let what = format!("part of {}", scenario.tenants[tenant].name);
                let measured = format!("{takes} of {all} takes, {}", part(takes, all));
                Figure { what, measured, bound: format!("{percent} %"), holds: is_near && all > 0 }
            }
            Promise::Busy { percent } => self.busy(scenario, percent),
            Promise::EvenCosts => self.even_costs(scenario),
            Promise::Turns { tenant, at_least } => {
                let got = &self.got[tenant];
                let at_least = at_least * scenario.lasts_ms / MINUTE_MS / self.slowness;
                let measured = format!("{} turns, at most {} before", got.takes, got.overtaken);
                let what = format!("turns of {}", scenario.tenants[tenant].name);
                let bound = format!("{at_least} turns, and no share is served twice before one");
                let holds = got.takes >= at_least && got.overtaken_beyond <= 0;
                Figure { what, measured, bound, holds }
            }
            Promise::OrderInKeys => {
                let what = "finished out of order in a key".to_owned();
                let holds = self.out_of_order == 0 && !self.held.is_empty();
                Figure { what, measured: self.out_of_order.to_string(), bound: "0".into(), holds }
            }
            Promise::TakenOfKey(most) => {
                let taken = most_at_once(&self.held);
                let what = "taken of a key at once".to_owned();
                let (measured, bound) = (format!("at most {taken}"), format!("at most {most}"));
                Figure { what, measured, bound, holds: taken <= most && taken > 0 }
            }
            Promise::Left(most) => {
                let (what, measured) = ("tasks left at the end".to_owned(), self.left.to_string());
                let (bound, holds) = (format!("at most {most}"), self.left <= most);
                Figure { what, measured, bound, holds }
            }
            Promise::Rate { costs_at_most } => self.rate(scenario, costs_at_most),
        }
    }

    /// How long 99 in 100 tasks of a tenant waited at most.
    fn wait_us(&mut self, tenant: usize) -> Option<u64> {
        let waits_us = &mut self.got[tenant].waits_us;
        waits_us.sort_unstable();
        let place = (waits_us.len() * 99).div_ceil(100).saturating_sub(1);
        waits_us.get(place).copied()
    }

    fn busy(&self, scenario: &Scenario, percent: u64) -> Figure {
        let all_us = self.lasted_us * scenario.workers as u64;
        // In real time they wait for answers.
        let percent = if self.slowness == 1 { percent } else { percent.min(80) };
        let holds = self.busy_us * 100 >= all_us * percent;
        let measured = part(self.busy_us, all_us);
        let bound = format!("at least {percent} %");
        Figure { what: "workers are busy".to_owned(), measured, bound, holds }
    }

    fn even_costs(&self, scenario: &Scenario) -> Figure {
        let dearest = scenario.tenants.iter().map(|it| it.costs.1).max().unwrap_or(0);
        let costs: Vec<u64> = self.got.iter().map(|got| got.cost).collect();
        let measured = format!("{costs:?}, never more than {} apart", self.uneven);
        let holds = self.uneven <= dearest && costs.iter().all(|cost| *cost > 0);
        let bound = format!("at most {dearest} apart");
        Figure { what: "costs served".to_owned(), measured, bound, holds }
    }

    fn rate(&self, scenario: &Scenario, costs_at_most: u64) -> Figure {
        let cost: u64 = self.got.iter().map(|got| got.cost).sum();
        let (count, per_ms) = scenario.rate().unwrap_or_default();
        let due = count + count * scenario.lasts_ms / per_ms.max(1);
        let holds = cost.abs_diff(due) <= costs_at_most;
        let (what, bound) =
            ("cost of what was taken".to_owned(), format!("{due}, within {costs_at_most}"));
        Figure { what, measured: cost.to_string(), bound, holds }
    }
}

fn ms(us: u64) -> String {
    format!("{}.{} ms", us / 1_000, us % 1_000 / 100)
}

fn part(count: u64, all: u64) -> String {
    let hundredths = count * 10_000 / all.max(1);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// How many leases of a key there were at once at most.
fn most_at_once(held: &[Held]) -> u64 {
    let mut moments: HashMap<(usize, u64), Vec<(u64, bool)>> = HashMap::new();
    for (key, taken, ended) in held {
        moments.entry(*key).or_default().extend([(*taken, true), (*ended, false)]);
    }
    let mut most = 0;
    for of_key in moments.values_mut() {
        of_key.sort_unstable();
        let mut taken = 0_u64;
        for (_, is_take) in of_key {
            taken = if *is_take { taken + 1 } else { taken.saturating_sub(1) };
            most = taken.max(most);
        }
    }
    most
}

/// A row of a table for each figure of these scenarios.
#[must_use]
pub fn table(played: &[(&str, Vec<Figure>)]) -> String {
    let mut text =
        "| scenario | what is measured | it is | it must be |\n|---|---|---|---|\n".to_owned();
    for (scenario, figures) in played {
        for (place, Figure { what, measured, bound, holds }) in figures.iter().enumerate() {
            let first = if place == 0 { *scenario } else { "" };
            let wrong = if *holds { "" } else { " **NO**" };
            // Writing into a string cannot fail.
            let _ = writeln!(text, "| {first} | {what} | {measured}{wrong} | {bound} |");
        }
    }
    text
}
