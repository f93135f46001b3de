//! The loop: it waits for readiness, hands replies to their slots, and sends the slots' next
//! requests.
//!
//! A slot has one request under way at a time and repeats the plan's cycle. In a closed loop it
//! starts again at once. In an open loop it waits until a job is due. A job that is due while no
//! slot is free waits for one, which counts as latency.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use mio::{Events, Poll};

use crate::clock::Clock;
use crate::connection::{Connection, Received, UnderWay};
use crate::dialect::{Answer, Dialect, Outcome, Slot, Token};
use crate::plan::{Bound, Move, Pace, Plan, Step};
use crate::schedule::Schedule;
use crate::tally::Figures;
use fastrand::Rng;

/// How many bytes are read at once.
const INBOX_BYTES: usize = 256 << 10;

/// The most connections that one wait reports.
const EVENTS_MAX: usize = 1024;

/// How often the time is checked when nothing happens.
const TICK_NS: u64 = 100_000_000;

/// The precision of waits. For a shorter time the loop runs without waiting.
const WAIT_GRAIN_NS: u64 = 1_000_000;

/// A server that sends nothing for this long is given up.
const SILENCE_MAX_NS: u64 = 30 * 1_000_000_000;

/// Why a run did not complete.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The server does not exist, or refuses connections.
    #[error("no connection to {0}: {1}")]
    Connect(SocketAddr, #[source] io::Error),
    /// The connection broke.
    #[error("the connection to {0} was lost: {1}")]
    Lost(SocketAddr, #[source] io::Error),
    /// The server closed the connection.
    #[error("{0} closed the connection")]
    Closed(SocketAddr),
    /// The server sent what it should not have.
    #[error("wrong answer: {0}")]
    Wrong(String),
    /// The server does not answer.
    #[error("{0} has not answered for {seconds} seconds", seconds = SILENCE_MAX_NS / 1_000_000_000)]
    Silent(SocketAddr),
    /// The machine has no means to wait for connections.
    #[error("cannot wait for connections: {0}")]
    Wait(#[source] io::Error),
}

/// Carries out `plan`, and adds to `jobs_done` meanwhile.
pub fn run<D: Dialect>(
    plan: &Plan,
    dialect: &mut D,
    jobs_done: &AtomicU64,
) -> Result<Figures, Trouble> {
    let mut poll = Poll::new().map_err(Trouble::Wait)?;
    let opening = dialect.opening();
    let mut connections = Vec::new();
    for number in 0..plan.connections.max(1) {
        let opened = Connection::open((plan.address, plan.encryption.as_ref()), &opening).and_then(
            |mut connection| {
                connection.register(poll.registry(), number)?;
                Ok(connection)
            },
        );
        connections.push(opened.map_err(|error| Trouble::Connect(plan.address, error))?);
    }
    let mut run = Run::new(plan, dialect, connections);
    run.start()?;
    attend(&mut run, &mut poll, jobs_done)?;
    run.finish_held()?;
    attend(&mut run, &mut poll, jobs_done)?;
    Ok(run.figures)
}

/// Waits for replies and handles them until there is no more to do.
fn attend<D: Dialect>(
    run: &mut Run<'_, D>,
    poll: &mut Poll,
    jobs_done: &AtomicU64,
) -> Result<(), Trouble> {
    let mut events = Events::with_capacity(EVENTS_MAX);
    let mut inbox = vec![0; INBOX_BYTES];
    let mut told = run.figures.jobs;
    while run.goes_on() {
        let patience = run.patience();
        if patience.is_zero() {
            // The server may need this processor.
            thread::yield_now();
        }
        match poll.poll(&mut events, Some(patience)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(Trouble::Wait(error));
            }
            _ => {}
        }
        run.look_at_the_time()?;
        for event in &events {
            run.turn(event.token().0, &mut inbox)?;
        }
        jobs_done.fetch_add(run.figures.jobs - told, Ordering::Relaxed);
        told = run.figures.jobs;
    }
    Ok(())
}

/// The state of a slot in its cycle.
#[derive(Clone, Debug)]
struct State {
    slot: Slot,
    /// The move of the cycle that is under way.
    at: usize,
    /// The moment from which the latency of its job counts.
    job_since_ns: u64,
    /// How many of its latest jobs in a row found nothing to take.
    empty_in_a_row: u32,
}

struct Run<'a, D> {
    plan: &'a Plan,
    dialect: &'a mut D,
    connections: Vec<Connection>,
    /// The slots, those of each connection together.
    slots: Vec<State>,
    /// Slots that wait for a job, in the order in which they became free.
    free: VecDeque<u32>,
    schedule: Option<Schedule>,
    random: Rng,
    clock: Clock,
    /// The last reading of the clock.
    now_ns: u64,
    last_answer_ns: u64,
    cycles_begun: u64,
    cycles_under_way: u64,
    /// Whether no further cycle begins.
    over: bool,
    time_was_up: bool,
    /// Whether only what slots hold is still to be finished.
    ends: bool,
    figures: Figures,
}

impl<'a, D: Dialect> Run<'a, D> {
    fn new(plan: &'a Plan, dialect: &'a mut D, connections: Vec<Connection>) -> Self {
        let slots = connections.len() * plan.depth.max(1);
        let slot = Slot { queue: 0, priority: 0, member: 0, token: Token::empty(), token_queue: 0 };
        let state = State { slot, at: 0, job_since_ns: 0, empty_in_a_row: 0 };
        Self {
            plan,
            dialect,
            connections,
            slots: vec![state; slots],
            free: VecDeque::new(),
            schedule: match plan.pace {
                Pace::AtOnce => None,
                Pace::PerSecond(rate) => Some(Schedule::new(rate)),
            },
            random: Rng::with_seed(plan.seed),
            clock: Clock::start(),
            now_ns: 0,
            last_answer_ns: 0,
            cycles_begun: 0,
            cycles_under_way: 0,
            over: matches!(plan.bound, Bound::Cycles(0)) || plan.cycle.is_empty(),
            time_was_up: false,
            ends: false,
            figures: Figures::default(),
        }
    }

    /// Gives every slot its first job if one is due.
    fn start(&mut self) -> Result<(), Trouble> {
        self.clock = Clock::start();
        // The first jobs go to one slot of each connection, the next ones to another.
        let depth = self.plan.depth.max(1);
        for number in 0..depth {
            for connection in 0..self.connections.len() {
                self.begin_or_wait(connection * depth + number);
            }
        }
        (0..self.connections.len()).try_for_each(|connection| self.flush(connection))
    }

    fn goes_on(&self) -> bool {
        self.cycles_under_way > 0 || (!self.over && !self.free.is_empty())
    }

    /// Returns how long to wait for the next event.
    fn patience(&self) -> Duration {
        let mut until_ns = self.now_ns.saturating_add(TICK_NS);
        if let Bound::Nanoseconds(end_ns) = self.plan.bound
            && !self.over
        {
            until_ns = until_ns.min(end_ns);
        }
        if let Some(schedule) = &self.schedule
            && !self.over
            && !self.free.is_empty()
        {
            until_ns = until_ns.min(schedule.next_ns());
        }
        let wait_ns = until_ns.saturating_sub(self.now_ns);
        // Waits are rounded up, so the last part is left out.
        Duration::from_nanos(wait_ns - wait_ns % WAIT_GRAIN_NS)
    }

    /// Reads the clock, ends the run when its time has passed, and begins the jobs that are due.
    fn look_at_the_time(&mut self) -> Result<(), Trouble> {
        self.now_ns = self.clock.ns();
        if let Bound::Nanoseconds(end_ns) = self.plan.bound
            && self.now_ns >= end_ns
            && !self.time_was_up
        {
            self.time_was_up = true;
            self.over = true;
            self.figures.time_is_up(self.now_ns);
        }
        if self.cycles_under_way == 0 {
            self.last_answer_ns = self.now_ns;
        } else if self.now_ns.saturating_sub(self.last_answer_ns) > SILENCE_MAX_NS {
            return Err(Trouble::Silent(self.plan.address));
        }
        while !self.over
            && let Some(slot) = self.free.front().copied()
            && let Some(due_ns) = self.schedule.as_mut().and_then(|it| it.start(self.now_ns))
        {
            self.free.pop_front();
            self.begin(slot as usize, due_ns);
            self.flush(slot as usize / self.plan.depth.max(1))?;
        }
        Ok(())
    }

    /// Begins the next job of a slot that has none, or makes it wait for one.
    fn begin_or_wait(&mut self, slot: usize) {
        if self.over {
            return;
        }
        let since_ns = match &mut self.schedule {
            None => Some(self.now_ns),
            Some(schedule) => schedule.start(self.now_ns),
        };
        match since_ns {
            Some(since_ns) => self.begin(slot, since_ns),
            None => self.free.push_back(u32::try_from(slot).unwrap_or(u32::MAX)),
        }
    }

    fn begin(&mut self, slot: usize, since_ns: u64) {
        self.cycles_begun += 1;
        self.cycles_under_way += 1;
        if let Bound::Cycles(count) = self.plan.bound {
            self.over |= self.cycles_begun >= count;
        }
        let priority = self.random.u32(..self.plan.priorities.max(1));
        let turn = if self.plan.keeps_queue {
            (slot / self.plan.depth.max(1)) as u64
        } else {
            self.cycles_begun
        };
        let queue = turn % u64::from(self.plan.queues.max(1));
        let state = &mut self.slots[slot];
        state.at = 0;
        state.job_since_ns = since_ns;
        state.slot.queue = u32::try_from(queue).unwrap_or(0);
        state.slot.priority = priority;
        self.request(slot, since_ns);
    }

    /// Adds the current request of a slot to those of its connection.
    fn request(&mut self, slot: usize, since_ns: u64) {
        let state = &mut self.slots[slot];
        let Move { step, member } = self.plan.cycle[state.at];
        state.slot.member = member;
        self.send(step, slot, since_ns);
    }

    fn send(&mut self, step: Step, slot: usize, since_ns: u64) {
        let state = &self.slots[slot];
        let connection = &mut self.connections[slot / self.plan.depth.max(1)];
        self.dialect.request(step, &state.slot, &mut connection.out);
        let slot = u32::try_from(slot).unwrap_or(u32::MAX);
        connection.under_way.push_back(UnderWay { slot, step, since_ns });
    }

    /// Reads what a connection has received, handles each reply, and sends what follows.
    fn turn(&mut self, number: usize, inbox: &mut Vec<u8>) -> Result<(), Trouble> {
        loop {
            let address = self.plan.address;
            let connection = &mut self.connections[number];
            let received = connection.receive(inbox).map_err(|error| lost(address, error))?;
            let (Received::More(bytes) | Received::Last(bytes)) = received;
            if bytes > 0 {
                self.now_ns = self.clock.ns();
                self.last_answer_ns = self.now_ns;
            }
            let mut unread = inbox.get(..bytes).unwrap_or_default();
            while !unread.is_empty() {
                let used = self.answer(number, unread)?;
                if used == 0 {
                    self.connections[number].keep(unread);
                    break;
                }
                unread = unread.get(used..).unwrap_or_default();
            }
            self.flush(number)?;
            if matches!(received, Received::Last(_)) {
                return Ok(());
            }
        }
    }

    /// Handles the reply at the front of `bytes`, and returns its length, or 0 if it is incomplete.
    fn answer(&mut self, number: usize, bytes: &[u8]) -> Result<usize, Trouble> {
        let under_way = &mut self.connections[number].under_way;
        let Some(UnderWay { slot, step, since_ns }) = under_way.front().copied() else {
            return Err(Trouble::Wrong("an answer to no request".to_owned()));
        };
        let index = slot as usize;
        let state = &mut self.slots[index];
        let answer = self.dialect.answer(step, &mut state.slot, bytes).map_err(Trouble::Wrong)?;
        let Answer::Whole { outcome, length } = answer else { return Ok(0) };
        under_way.pop_front();
        if self.ends {
            if let Outcome::Refused(sentence) = outcome {
                self.figures.count_refusal(sentence);
            }
            self.cycles_under_way -= 1;
            return Ok(length);
        }
        match outcome {
            Outcome::Done => {
                self.figures.count(step, self.now_ns.saturating_sub(since_ns));
                state.at += 1;
                if state.at < self.plan.cycle.len() {
                    self.request(index, self.now_ns);
                    return Ok(length);
                }
                self.figures.jobs += 1;
                state.empty_in_a_row = 0;
                let job_ns = self.now_ns.saturating_sub(state.job_since_ns);
                self.figures.job_latency.record(job_ns);
            }
            Outcome::Empty => {
                self.figures.empty += 1;
                state.empty_in_a_row += 1;
                let queues = if self.plan.keeps_queue { 1 } else { self.plan.queues };
                if self.plan.until_empty && state.empty_in_a_row >= queues {
                    self.cycles_under_way -= 1;
                    return Ok(length);
                }
            }
            Outcome::Refused(sentence) => self.figures.count_refusal(sentence),
        }
        self.cycles_under_way -= 1;
        self.begin_or_wait(index);
        Ok(length)
    }

    fn flush(&mut self, number: usize) -> Result<(), Trouble> {
        self.connections[number].flush().map_err(|error| lost(self.plan.address, error))
    }

    /// Ends the measurement, and finishes the tasks that slots hold in order to finish them with a
    /// next take.
    fn finish_held(&mut self) -> Result<(), Trouble> {
        if !self.time_was_up {
            self.time_was_up = true;
            self.figures.time_is_up(self.last_answer_ns);
        }
        self.over = true;
        self.ends = true;
        if self.plan.cycle.iter().all(|it| it.step != Step::DoneTake) {
            return Ok(());
        }
        for slot in 0..self.slots.len() {
            let state = &mut self.slots[slot];
            if !state.slot.token.is_empty() {
                state.slot.queue = state.slot.token_queue;
                self.cycles_under_way += 1;
                self.send(Step::Ack, slot, self.now_ns);
            }
        }
        (0..self.connections.len()).try_for_each(|connection| self.flush(connection))
    }
}

fn lost(address: SocketAddr, error: io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Trouble::Closed(address),
        _ => Trouble::Lost(address, error),
    }
}

#[cfg(test)]
mod tests;
