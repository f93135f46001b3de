//! Chooses what clients of the beanstalkd door ask: the same queues as others, as far as tubes can
//! have their names, and numbers of tasks of any door.

use pinpriq_proto::task::{ClientId, State};
use pinpriq_proto::wire::beanstalkd::is_tube_name;
use pinpriq_server::parts::at_home;

use super::{Chooser, QUEUES, Text};
use crate::sim::client::Client;
use crate::sim::jobs::{Call, DEFAULT};

/// 1,023 is the last urgent one.
const PRIORITIES: [u32; 8] = [0, 1, 1, 2, 1_023, 1_024, 255, u32::MAX];

impl Chooser<'_> {
    /// Chooses a request of a beanstalkd client.
    pub(crate) fn call(&mut self, client: &Client) -> Call {
        let crowded = self.model.task_count() as u64 > self.knobs.crowd;
        let puts = if crowded { 0 } else { self.knobs.puts };
        let takes = self.knobs.takes + if crowded { self.knobs.puts } else { 0 };
        let weights = [
            puts,
            takes,
            self.knobs.holds,
            self.knobs.transfers,
            self.knobs.administration,
            self.knobs.looks + 1,
            3,
            self.knobs.nonsense,
        ];
        match self.weighed(&weights) {
            Some(0) => self.put_job(),
            Some(1) => self.reserve(),
            Some(2) => self.hold_job(client.id),
            Some(3) => self.move_job(client.id),
            Some(4) => {
                let delay_s = self.small(4);
                Call::PauseTube { tube: self.tube(), delay_s }
            }
            Some(5) => self.look_at_jobs(),
            Some(6) => self.choose_tubes(),
            _ => self.no_request(),
        }
    }

    fn put_job(&mut self) -> Call {
        Call::Put {
            priority: self.job_priority(),
            delay_s: if self.once_in(5) { self.small(3) } else { 0 },
            ttr_s: 1 + self.small(2),
            body: self.payload(),
        }
    }

    fn reserve(&mut self) -> Call {
        if self.once_in(8) {
            return Call::ReserveJob(self.job());
        }
        if !self.dice.chance(self.knobs.waits) {
            return Call::Reserve(Some(0));
        }
        Call::Reserve((!self.once_in(4)).then(|| 1 + self.small(3)))
    }

    fn hold_job(&mut self, client: ClientId) -> Call {
        let id = self.own_job(client);
        match self.dice.below(12) {
            0..=5 => Call::Delete(id),
            6..=8 => {
                let delay_s = if self.once_in(3) { self.small(3) } else { 0 };
                Call::Release { id, priority: self.job_priority(), delay_s }
            }
            9 => Call::Bury { id, priority: self.job_priority() },
            _ => Call::Touch(id),
        }
    }

    /// What needs no reservation, or lacks one.
    fn move_job(&mut self, client: ClientId) -> Call {
        match self.dice.below(8) {
            0..=1 => Call::Kick(self.small(4)),
            2..=3 => Call::KickJob(self.job()),
            4..=5 => Call::Delete(self.job()),
            6 => Call::Bury { id: self.job(), priority: self.job_priority() },
            _ => Call::KickJob(self.own_job(client)),
        }
    }

    fn look_at_jobs(&mut self) -> Call {
        match self.dice.below(12) {
            0..=1 => Call::Peek(self.job()),
            2 => Call::PeekReady,
            3 => Call::PeekDelayed,
            4 => Call::PeekBuried,
            5..=7 => Call::StatsJob(self.job()),
            8..=9 => Call::StatsTube(self.tube()),
            _ => Call::ListTubes,
        }
    }

    fn choose_tubes(&mut self) -> Call {
        match self.dice.below(16) {
            0..=4 => Call::Use(self.tube()),
            5..=9 => Call::Watch(self.tube()),
            10..=12 => Call::Ignore(self.tube()),
            13 => Call::ListTubeUsed,
            14 if self.once_in(4) => Call::Quit,
            _ => Call::ListTubesWatched,
        }
    }

    fn no_request(&mut self) -> Call {
        let (bytes, answer): (&[u8], &'static [u8]) = match self.dice.below(6) {
            0 => (b"nosuch 1\r\n", b"UNKNOWN_COMMAND\r\n"),
            1 => (b"delete x\r\n", b"BAD_FORMAT\r\n"),
            2 => (b"use {0}\r\n", b"BAD_FORMAT\r\n"),
            3 => (b"put 0 0 1 3\r\nabcde", b"EXPECTED_CRLF\r\n"),
            4 => (b"reserve-with-timeout -1\r\n", b"BAD_FORMAT\r\n"),
            _ => {
                let mut line = vec![b'u'; 300];
                line.extend_from_slice(b"\r\n");
                return Call::Nonsense(line, b"BAD_FORMAT\r\n");
            }
        };
        Call::Nonsense(bytes.to_vec(), answer)
    }

    /// The name of a tube that is in the simulated shard.
    fn tube(&mut self) -> Text {
        if self.once_in(5) {
            return DEFAULT.to_vec();
        }
        let name = QUEUES[self.index(QUEUES.len())];
        // The first queue can be a tube, and is always there.
        let is_there = QUEUES.iter().take_while(|it| **it != name).count() < self.queues();
        let name = if is_there && is_tube_name(name) { name } else { QUEUES[0] };
        self.in_the_shard(name.to_vec())
    }

    fn queues(&self) -> usize {
        usize::try_from(self.knobs.queues).unwrap_or(usize::MAX)
    }

    /// The number of a task that this client has reserved, or of any.
    fn own_job(&mut self, client: ClientId) -> u64 {
        let is_own = |state: &State| match state {
            State::Taken(lease) => lease.client().map(at_home) == Some(client),
            _ => false,
        };
        let own = self.model.tasks().filter(|task| is_own(&task.progress.state));
        let own: Vec<u64> = own.map(|task| task.number).collect();
        if own.is_empty() || self.once_in(12) { self.job() } else { own[self.index(own.len())] }
    }

    /// The number of a task, usually of an existing one.
    fn job(&mut self) -> u64 {
        let count = self.model.task_count();
        if count > 0 && !self.once_in(4) {
            let nth = self.index(count);
            if let Some(task) = self.model.tasks().nth(nth) {
                return task.number;
            }
        }
        let count = self.known.jobs.len();
        if count == 0 || self.once_in(20) {
            return self.dice.below(100);
        }
        self.known.jobs[self.index(count)]
    }

    fn job_priority(&mut self) -> u32 {
        let count = usize::try_from(self.knobs.priorities).unwrap_or(1).min(PRIORITIES.len());
        PRIORITIES[self.index(count)]
    }

    /// A number below this one.
    fn small(&mut self, end: u64) -> u32 {
        u32::try_from(self.dice.below(end)).unwrap_or(0)
    }
}
