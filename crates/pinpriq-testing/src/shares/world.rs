//! Plays a scenario: tasks come, workers take them, and finish or fail them when their time is up.
//!
//! All of it happens over one connection, in the order of time. Whoever asks is not measured: with
//! a simulated server asking takes no time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pinpriq_proto::wire::resp::{Value, Words};

use super::Fault;
use super::figures::{Figure, Got, Measured};
use super::scenarios::{Arrival, Keys, Scenario, Tenant};
use crate::Dice;

/// A server that is asked over RESP, and its clock.
pub trait Server {
    /// Sends these requests at once, and returns all replies.
    fn ask(&mut self, requests: &[Words]) -> Result<Vec<Value>, Fault>;

    /// Microseconds since some moment.
    fn now_us(&self) -> u64;

    /// Waits until a moment.
    fn wait_until_us(&mut self, at_us: u64) -> Result<(), Fault>;

    /// Kills the server and starts it again with what it has kept.
    fn restart(&mut self) -> Result<(), Fault>;

    /// How many times slower than in the scenario tasks come and are worked on, so that what the
    /// machine and the asking take does not count for much.
    fn slowness(&self) -> u64;
}

const QUEUE: &str = "work";

/// Longer than any scenario, so that no lease runs out.
const TTR_MS: u64 = 7_200_000;

/// How many requests are sent at once where there are many.
const AT_ONCE: usize = 500;

/// How long an idle worker waits before it asks again, where tasks are held back.
const ASK_AGAIN_US: u64 = 1_000;

/// A task, in the order of the puts.
struct Put {
    tenant: usize,
    /// The number of its key, if it has one.
    key: Option<u64>,
    cost: u64,
    /// The index of its share.
    share: usize,
    came_us: u64,
    is_taken: bool,
}

/// A task that someone works on.
struct Job {
    put: usize,
    receipt: String,
    /// How many takes there had been.
    taken: u64,
}

enum Event {
    Arrives { tenant: usize },
    Ends(Job),
    HalfWay,
}

/// A share that has tasks, or had some.
#[derive(Default)]
struct Share {
    /// How many of its tasks are not taken. After a restart it may be below 0, since a lease that
    /// has ended then is noted later than the next one.
    waiting: i64,
    /// How many takes there had been when it got its turn.
    begun: u64,
    /// How many shares had tasks then, besides those that had come before.
    others: i64,
}

struct World<'a, S> {
    scenario: &'a Scenario,
    server: &'a mut S,
    dice: Dice,
    puts: Vec<Put>,
    /// The ids of tasks that will be removed.
    ids: Vec<String>,
    events: BTreeMap<(u64, u64), Event>,
    serial: u64,
    idle: usize,
    shares: Vec<Share>,
    share_places: HashMap<String, usize>,
    /// How many shares have tasks that are not taken, and how often one has come to have some.
    waiting_shares: i64,
    came: i64,
    takes: u64,
    /// The sum of [`Share::waiting`].
    waiting: i64,
    /// The last put that was finished, by key.
    finished: HashMap<(usize, u64), usize>,
    /// Tasks that were put before this one are removed, if their tenant is purged.
    purged: usize,
    /// When the server was there again after a kill. What waited for that does not count.
    back_us: u64,
    measured: Measured,
}

/// Plays a scenario, and returns what was measured.
pub fn run<S: Server>(scenario: &Scenario, server: &mut S) -> Result<Vec<Figure>, Fault> {
    let got = vec![Got { overtaken_beyond: i64::MIN, ..Got::default() }; scenario.tenants.len()];
    let slowness = server.slowness();
    let mut world = World {
        scenario,
        server,
        dice: Dice::new(38),
        puts: Vec::new(),
        ids: Vec::new(),
        events: BTreeMap::new(),
        serial: 0,
        idle: scenario.workers,
        shares: Vec::new(),
        share_places: HashMap::new(),
        waiting_shares: 0,
        came: 0,
        takes: 0,
        waiting: 0,
        finished: HashMap::new(),
        purged: 0,
        back_us: 0,
        measured: Measured { got, slowness, ..Measured::default() },
    };
    world.prepare()?;
    world.play()?;
    Ok(world.measured.judge(scenario))
}

impl<S: Server> World<'_, S> {
    fn tenant(&self, tenant: usize) -> &'static Tenant {
        &self.scenario.tenants[tenant]
    }

    fn schedule(&mut self, at_us: u64, event: Event) {
        self.serial += 1;
        self.events.insert((at_us, self.serial), event);
    }

    /// Makes the queue, and puts what is there first.
    fn prepare(&mut self) -> Result<(), Fault> {
        let create = format!("QUEUE CREATE {QUEUE} {}", self.scenario.settings);
        let rules = self.scenario.rules.iter().map(|rule| format!("QUEUE SHARE {QUEUE} {rule}"));
        let made: Vec<Words> =
            std::iter::once(create).chain(rules).map(|it| Words::new(&it)).collect();
        for reply in self.server.ask(&made)? {
            expect(&reply, |reply| matches!(reply, Value::Simple(_) | Value::Integer(1)))?;
        }
        for (tenant, it) in self.scenario.tenants.iter().enumerate() {
            let count = match it.arrival {
                Arrival::Flood(count) | Arrival::Purged(count) => {
                    count.min(self.scenario.flood_max)
                }
                Arrival::Always(count) => count,
                Arrival::Every(_) => 0,
            };
            self.put(tenant, count)?;
        }
        let begun_us = self.server.now_us();
        for put in &mut self.puts {
            put.came_us = begun_us;
        }
        for (tenant, it) in self.scenario.tenants.iter().enumerate() {
            if let Arrival::Every(ms) = it.arrival {
                self.schedule(begun_us + ms * 1_000, Event::Arrives { tenant });
            }
        }
        let is_purged = |it: &Tenant| matches!(it.arrival, Arrival::Purged(_));
        if self.scenario.restarts || self.scenario.tenants.iter().any(is_purged) {
            self.schedule(begun_us + self.scenario.lasts_ms * 500, Event::HalfWay);
        }
        Ok(())
    }

    fn put(&mut self, tenant: usize, count: u64) -> Result<(), Fault> {
        let mut left = usize::try_from(count).unwrap_or(usize::MAX);
        while left > 0 {
            let some = left.min(AT_ONCE);
            let requests: Vec<Words> = (0..some).map(|_| self.new_put(tenant)).collect();
            let replies = self.server.ask(&requests)?;
            self.note_puts(tenant, &replies)?;
            left -= some;
        }
        Ok(())
    }

    /// The request for another task.
    fn new_put(&mut self, tenant: usize) -> Words {
        let it = self.tenant(tenant);
        let number = self.puts.len();
        let key = match it.keys {
            Keys::None => None,
            Keys::Of(count) => Some(self.dice.below(count)),
            Keys::Endless => Some(number as u64),
        };
        let cost = it.costs.0 + self.dice.below(it.costs.1 - it.costs.0 + 1);
        let name = key.map(|key| format!("{}-{key}", it.name));
        let share = it.share.or(name.as_deref()).unwrap_or_default();
        let share = self.share(share);
        let came_us = self.server.now_us();
        self.puts.push(Put { tenant, key, cost, share, came_us, is_taken: false });
        self.note_waiting(share);
        let words = Words::new("PUT").bytes(QUEUE).bytes(number.to_string());
        let words = words.given("KEY", name).given("SHARE", it.share);
        let cost = (cost > 1).then_some(cost);
        words.option("COST", cost).option("PRIORITY", Some(it.priority))
    }

    fn share(&mut self, name: &str) -> usize {
        if let Some(place) = self.share_places.get(name) {
            return *place;
        }
        self.shares.push(Share::default());
        self.share_places.insert(name.to_owned(), self.shares.len() - 1);
        self.shares.len() - 1
    }

    /// Notes that a share has another task that is not taken.
    fn note_waiting(&mut self, share: usize) {
        self.waiting += 1;
        let share = &mut self.shares[share];
        share.waiting += 1;
        if share.waiting == 1 {
            self.came += 1;
            share.begun = self.takes;
            share.others = self.waiting_shares - self.came;
            self.waiting_shares += 1;
        }
    }

    fn note_puts(&mut self, tenant: usize, replies: &[Value]) -> Result<(), Fault> {
        let keeps_ids = matches!(self.tenant(tenant).arrival, Arrival::Purged(_));
        for reply in replies {
            let id = text(reply).ok_or_else(|| format!("a put was answered {reply:?}"))?;
            if keeps_ids {
                self.ids.push(id);
            }
        }
        Ok(())
    }

    /// Lets time pass to the end.
    fn play(&mut self) -> Result<(), Fault> {
        let begun_us = self.server.now_us();
        let end_us = begun_us + self.scenario.lasts_ms * 1_000;
        loop {
            self.hand_out()?;
            let now_us = self.server.now_us();
            let next_us = self.events.first_key_value().map_or(end_us, |((at_us, _), _)| *at_us);
            let again_us = now_us + ASK_AGAIN_US;
            let asks_again = self.idle > 0 && self.waiting > 0;
            let next_us = if asks_again { next_us.min(again_us) } else { next_us };
            if next_us >= end_us {
                break;
            }
            self.server.wait_until_us(next_us)?;
            self.pass()?;
        }
        self.measured.lasted_us = end_us - begun_us - self.measured.away_us;
        // What they still work on was begun in time.
        for ((at_us, _), event) in &self.events {
            if let Event::Ends(_) = event {
                self.measured.busy_us -= at_us.saturating_sub(end_us).min(self.measured.busy_us);
            }
        }
        self.measured.left = self.waiting.max(0).unsigned_abs();
        Ok(())
    }

    /// A time between half and one and a half times this, in whole milliseconds.
    fn about_us(&mut self, ms: u64) -> u64 {
        let ms = ms * self.measured.slowness;
        (ms / 2 + self.dice.below(ms + 1)) * 1_000
    }

    /// Does what is due.
    fn pass(&mut self) -> Result<(), Fault> {
        let now_us = self.server.now_us();
        let mut requests = Vec::new();
        let mut jobs = Vec::new();
        let mut arrived = Vec::new();
        while let Some(((at_us, serial), event)) = self.events.pop_first() {
            if at_us > now_us {
                self.events.insert((at_us, serial), event);
                break;
            }
            match event {
                Event::Ends(job) => {
                    requests.push(self.end(&job));
                    jobs.push(job);
                }
                Event::Arrives { tenant } => {
                    if let Arrival::Every(ms) = self.tenant(tenant).arrival {
                        let next_us = at_us + self.about_us(ms);
                        self.schedule(next_us, Event::Arrives { tenant });
                    }
                    arrived.push(tenant);
                }
                Event::HalfWay => self.half_way()?,
            }
        }
        let ended = jobs.len();
        for tenant in &arrived {
            let put = self.new_put(*tenant);
            requests.push(put);
        }
        let replies = self.server.ask(&requests)?;
        let (ends, puts) = replies.split_at(ended.min(replies.len()));
        for ((job, request), reply) in jobs.into_iter().zip(&requests).zip(ends) {
            self.note_end(&job, request, reply)?;
        }
        for (tenant, reply) in arrived.into_iter().zip(puts) {
            self.note_puts(tenant, std::slice::from_ref(reply))?;
        }
        Ok(())
    }

    /// The request that ends a job.
    fn end(&mut self, job: &Job) -> Words {
        let fails = self.tenant(self.puts[job.put].tenant).fails_percent;
        let command = if self.dice.chance(fails) { "FAIL" } else { "ACK" };
        Words::new(command).bytes(QUEUE).bytes(&job.receipt)
    }

    fn note_end(&mut self, job: &Job, request: &Words, reply: &Value) -> Result<(), Fault> {
        self.idle += 1;
        let has_failed = request.as_slice().first().is_some_and(|word| word == b"FAIL");
        let put = &self.puts[job.put];
        let (tenant, share) = (put.tenant, put.share);
        let key = put.key.map(|key| (tenant, key));
        let is_lost = match reply {
            Value::Error(text) => text.starts_with("STALE") || text.starts_with("NOTFOUND"),
            _ => false,
        };
        if is_lost {
            // A crash has ended the lease, or the task was removed.
            let is_purged = matches!(self.tenant(tenant).arrival, Arrival::Purged(_));
            if !is_purged || job.put >= self.purged {
                self.note_waiting(share);
            }
            return Ok(());
        }
        expect(reply, |reply| !matches!(reply, Value::Error(_)))?;
        self.serial += 1;
        if let Some(key) = key {
            self.measured.held.push((key, job.taken, self.serial));
        }
        if has_failed {
            self.note_waiting(share);
        } else if let Some(key) = key {
            let last = self.finished.entry(key).or_insert(job.put);
            self.measured.out_of_order += u64::from(*last > job.put);
            *last = job.put;
        }
        Ok(())
    }

    /// Idle workers take what there is.
    fn hand_out(&mut self) -> Result<(), Fault> {
        if self.idle == 0 || self.waiting <= 0 {
            return Ok(());
        }
        let take = Words::new("TAKE").bytes(QUEUE).option("COUNT", Some(self.idle));
        let reply = self.server.ask(&[take.option("TTR", Some(TTR_MS))])?;
        let Some(Value::Array(tasks)) = reply.first() else {
            return Err(format!("a take was answered {reply:?}"));
        };
        let now_us = self.server.now_us();
        let mut again = Vec::new();
        for task in tasks {
            let job = self.job(task).ok_or_else(|| format!("a take brought {task:?}"))?;
            let is_first = self.note_take(job.put, now_us);
            let tenant = self.puts[job.put].tenant;
            let it = self.tenant(tenant);
            let service_us = self.about_us(it.service_ms);
            self.measured.busy_us += service_us;
            self.idle -= 1;
            self.schedule(now_us + service_us, Event::Ends(job));
            if is_first && matches!(it.arrival, Arrival::Always(_)) {
                again.push(tenant);
            }
        }
        let requests: Vec<Words> = again.iter().map(|tenant| self.new_put(*tenant)).collect();
        let replies = self.server.ask(&requests)?;
        for (tenant, reply) in again.into_iter().zip(&replies) {
            self.note_puts(tenant, std::slice::from_ref(reply))?;
        }
        Ok(())
    }

    fn job(&mut self, task: &Value) -> Option<Job> {
        let parts = task.elements()?;
        let put: usize = text(parts.get(3)?)?.parse().ok()?;
        self.serial += 1;
        (put < self.puts.len()).then_some(Job {
            put,
            receipt: text(parts.get(2)?)?,
            taken: self.serial,
        })
    }

    /// Notes that a task was taken. Returns whether for the first time.
    fn note_take(&mut self, put: usize, now_us: u64) -> bool {
        let Put { tenant, cost, share, came_us, .. } = self.puts[put];
        let is_first = !std::mem::replace(&mut self.puts[put].is_taken, true);
        let got = &mut self.measured.got[tenant];
        if is_first && came_us >= self.back_us {
            got.waits_us.push(now_us.saturating_sub(came_us));
        }
        (got.takes, got.cost) = (got.takes + 1, got.cost + cost);
        let share = &mut self.shares[share];
        let overtaken = self.takes - share.begun;
        let beyond = i64::try_from(overtaken).unwrap_or(i64::MAX) - share.others - self.came;
        got.overtaken = overtaken.max(got.overtaken);
        got.overtaken_beyond = beyond.max(got.overtaken_beyond);
        self.waiting -= 1;
        self.takes += 1;
        share.waiting -= 1;
        share.begun = self.takes;
        if share.waiting == 0 {
            self.waiting_shares -= 1;
        }
        share.others = self.waiting_shares - 1 - self.came;
        let costs = self.measured.got.iter().map(|got| got.cost);
        let (least, most) =
            costs.fold((u64::MAX, 0), |(least, most), cost| (least.min(cost), most.max(cost)));
        self.measured.uneven = self.measured.uneven.max(most - least);
        is_first
    }

    /// Half of the time has passed.
    fn half_way(&mut self) -> Result<(), Fault> {
        if self.scenario.restarts {
            let killed_us = self.server.now_us();
            self.server.restart()?;
            self.back_us = self.server.now_us();
            self.measured.away_us = self.back_us - killed_us;
        }
        let is_purged = |it: &Tenant| matches!(it.arrival, Arrival::Purged(_));
        let Some(purged) = self.scenario.tenants.iter().position(is_purged) else { return Ok(()) };
        let ids = std::mem::take(&mut self.ids);
        for some in ids.chunks(AT_ONCE) {
            for reply in self.server.ask(&[Words::new("KILL").bytes(QUEUE).all(some)])? {
                expect(&reply, |reply| matches!(reply, Value::Integer(_)))?;
            }
        }
        self.purged = self.puts.len();
        let removed = self.puts.iter().filter(|put| put.tenant == purged);
        for share in removed.map(|put| put.share).collect::<BTreeSet<usize>>() {
            let waiting = std::mem::take(&mut self.shares[share].waiting);
            self.waiting -= waiting;
            self.waiting_shares -= i64::from(waiting > 0);
        }
        self.measured.got[purged].waits_us.clear();
        self.put(purged, 1)
    }
}

fn expect(reply: &Value, is_right: impl FnOnce(&Value) -> bool) -> Result<(), Fault> {
    if is_right(reply) { Ok(()) } else { Err(format!("a request was answered {reply:?}")) }
}

fn text(value: &Value) -> Option<String> {
    Some(String::from_utf8_lossy(value.as_bytes()?).into_owned())
}
