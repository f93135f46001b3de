//! What differs from seed to seed: sizes, mixes, limits, rates of faults.
//!
//! Every knob has a name, a way to draw it, and a calmest value towards which a failing run is
//! shrunk. The knobs alone determine a run, so a line of them replays it even if the way in which
//! they are drawn changes.

use std::fmt::{self, Write as _};

use crate::Dice;

macro_rules! knobs {
    ($($(#[doc = $doc:literal])* $name:ident = $calm:literal, $draw:expr;)*) => {
        /// All knobs of one run.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Knobs {
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        impl Knobs {
            /// The names of all knobs.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The knobs that follow from a seed.
            #[must_use]
            pub fn draw(seed: u64) -> Self {
                let dice = &mut Dice::new(seed ^ 0x006b_6e6f_6273);
                let mut knobs = Self { $($name: ($draw as fn(&mut Dice) -> u64)(dice),)* };
                knobs.seed = seed;
                knobs
            }

            /// Returns the value of the knob of this name.
            #[must_use]
            pub fn value(&self, name: &str) -> Option<u64> {
                match name {
                    $(stringify!($name) => Some(self.$name),)*
                    _ => None,
                }
            }

            /// Sets the knob of this name. Returns whether it exists.
            pub fn set(&mut self, name: &str, value: u64) -> bool {
                match name {
                    $(stringify!($name) => self.$name = value,)*
                    _ => return false,
                }
                true
            }

            /// Returns the calmest value of the knob of this name.
            #[must_use]
            pub fn calm(name: &str) -> u64 {
                match name {
                    $(stringify!($name) => $calm,)*
                    _ => 0,
                }
            }
        }
    };
}

knobs! {
    /// The seed of everything else.
    seed = 0, |_| 0;
    /// The number of requests that clients make before the final calm.
    operations = 100, |_| 4_000;
    /// The number of clients that speak RESP.
    resp_clients = 1, |dice| 1 + dice.below(6);
    /// The number of clients that speak pinpriq.
    pinpriq_clients = 0, |dice| dice.below(4);
    /// The number of queues.
    queues = 1, |dice| 1 + dice.below(6);
    /// The number of topics.
    topics = 1, |dice| 1 + dice.below(3);
    /// The number of members.
    members = 1, |dice| 1 + dice.below(4);
    /// The number of keys, 0 for none.
    keys = 0, |dice| dice.below(5);
    /// The number of priorities.
    priorities = 1, |dice| 1 + dice.below(8);
    /// The longest usual payload.
    payload_bytes = 8, |dice| dice.pick(&[8, 32, 200, 1_000, 3_000]);
    /// How many of a thousand payloads are a hundred times as long.
    large_payloads = 0, |dice| dice.pick(&[0, 0, 2, 10]);
    /// The longest usual TTL, TTR, delay and wait.
    span_ms = 50, |dice| dice.pick(&[20, 100, 1_000, 20_000]);
    /// The largest step of the clock in each round.
    step_ms = 1, |dice| dice.pick(&[1, 5, 50, 500]);
    /// The number of tasks above which clients prefer to take.
    crowd = 20, |dice| dice.pick(&[20, 40, 80, 200]);
    /// The weight of puts among the requests of clients.
    puts = 10, |dice| weight(dice, 10);
    /// The weight of takes and pops.
    takes = 10, |dice| weight(dice, 10);
    /// The weight of what holders of a lease do.
    holds = 10, |dice| weight(dice, 12);
    /// The weight of moves of tasks by id.
    transfers = 0, |dice| weight(dice, 5);
    /// The weight of awaits.
    awaits = 0, |dice| weight(dice, 2);
    /// The weight of subscriptions and credit.
    subscriptions = 0, |dice| weight(dice, 5);
    /// The weight of settings, pauses and drops.
    administration = 0, |dice| weight(dice, 2);
    /// The weight of requests that change nothing.
    looks = 1, |dice| weight(dice, 4);
    /// The weight of publishing and membership.
    fan_out = 0, |dice| weight(dice, 6);
    /// The weight of nonsense.
    nonsense = 0, |dice| weight(dice, 1);
    /// How many of a hundred takes block.
    waits = 0, |dice| dice.pick(&[0, 10, 40]);
    /// The most requests that a client sends at once.
    pipeline = 1, |dice| dice.pick(&[1, 2, 8, 32]);
    /// The most bytes that arrive at once, 0 for all.
    chunk_in = 0, |dice| dice.pick(&[0, 0, 1, 16, 300]);
    /// The most bytes that leave at once, 0 for all.
    chunk_out = 0, |dice| dice.pick(&[0, 0, 1, 16, 300]);
    /// The most requests of a client that are under way.
    in_flight_max = 1_024, |dice| dice.pick(&[1_024, 1_024, 8, 3]);
    /// The most bytes of replies that are encoded ahead.
    out_bytes_max = 262_144, |dice| dice.pick(&[262_144, 262_144, 512, 60]);
    /// The most bytes of all tasks, 0 for no limit.
    task_bytes_max = 0, |dice| dice.pick(&[0, 0, 0, 20_000]);
    /// The most subscriptions of a client, and the most queues of a take.
    queues_per_client_max = 1_024, |dice| dice.pick(&[1_024, 1_024, 2]);
    /// How long the figures of a queue are kept after its end, in milliseconds.
    queue_linger = 600_000, |dice| dice.pick(&[600_000, 50, 0]);
    /// Whether a reply means the disk (0) or the operating system (1).
    interval = 0, |dice| u64::from(dice.chance(25));
    /// Whether the disk responds later (1) or at once (0).
    gated = 0, |dice| u64::from(dice.chance(60));
    /// The size of a segment.
    segment_bytes = 65_536, |dice| dice.pick(&[24_576, 24_576, 65_536, 262_144]);
    /// How many segments the journal may hold beyond twice what counts. With fewer than two it
    /// would have to be compacted for ever.
    slack_segments = 4, |dice| dice.pick(&[2, 2, 3, 4]);
    /// How framing, TTL 0 and putting back are set for pinpriq: three bits.
    pinpriq_options = 0, |dice| if dice.chance(50) { 0 } else { dice.below(8) };
    /// The rate, in rounds out of a thousand, at which the machine loses its power.
    power_losses = 0, |dice| fault(dice, 4);
    /// The rate at which the process is killed.
    kills = 0, |dice| fault(dice, 4);
    /// The rate at which the machine stops in the middle of a disk operation.
    stops_in_operation = 0, |dice| fault(dice, 4);
    /// How many of a hundred starts stop in the middle.
    stops_in_recovery = 0, |dice| dice.pick(&[0, 0, 30, 60]);
    /// The percentage of unsynced data that survives a power loss; above 100 a random part.
    survival = 0, |dice| dice.pick(&[0, 50, 90, 101, 101]);
    /// The rate at which a write fails once.
    write_errors = 0, |dice| fault(dice, 2);
    /// The rate at which every write starts to fail.
    write_outages = 0, |dice| fault(dice, 2);
    /// The rate at which a sync fails once.
    sync_errors = 0, |dice| fault(dice, 2);
    /// The rate at which every sync starts to fail.
    sync_outages = 0, |dice| fault(dice, 2);
    /// The rate at which a sync of the directory fails.
    directory_errors = 0, |dice| fault(dice, 2);
    /// The rate at which the disk becomes full for a while, across all starts.
    full_disks = 0, |dice| fault(dice, 3);
    /// How many of a hundred reads are short.
    short_reads = 0, |dice| dice.pick(&[0, 20, 60]);
    /// How many of a hundred writes are short.
    short_writes = 0, |dice| dice.pick(&[0, 0, 10, 40]);
    /// How many of a hundred starts find a bit flipped.
    bit_flips = 0, |dice| dice.pick(&[0, 0, 30]);
    /// The rate at which the disk stops responding for a while.
    slow_disks = 0, |dice| fault(dice, 30);
    /// The rate at which the wall clock is set.
    wall_jumps = 0, |dice| fault(dice, 6);
    /// The rate at which a connection breaks.
    cuts = 0, |dice| fault(dice, 12);
    /// The rate at which a client closes its sending side.
    half_closes = 0, |dice| fault(dice, 6);
    /// The rate at which a client stops reading for a while.
    stalls = 0, |dice| fault(dice, 10);
    /// The rate at which a client stops in the middle of a request.
    silences = 0, |dice| fault(dice, 4);
    /// The rate at which the server is stopped in order.
    stops = 0, |dice| fault(dice, 2);
    /// The number of shards. All queues live in one of them, and clients connect to any.
    shards = 1, |dice| 1 + u64::from(dice.chance(50));
    /// The rate at which a shard stops reading for a while what others write to it.
    slow_threads = 0, |dice| fault(dice, 30);
    /// The bytes that tasks may occupy before payloads are left on the disk, 0 for no such limit.
    /// Has no effect if the bytes of all tasks are limited.
    memory_bytes = 0, |dice| dice.pick(&[0, 3_000, 20_000]);
    /// The number of clients that speak the protocol of beanstalkd.
    beanstalkd_clients = 0, |dice| dice.pick(&[0, 0, 0, 1, 2, 3]);
    /// How many of a hundred rounds ask for a cut for the archive, 0 without an archive.
    archive = 0, |dice| dice.pick(&[0, 0, 0, 0, 5, 20]);
    /// How many of a thousand operations at the place of the archive fail.
    archive_troubles = 0, |dice| dice.pick(&[0, 5, 30, 100]);
    /// The rate at which the place is out of reach for a while.
    archive_outages = 0, |dice| fault(dice, 6);
    /// How many of a hundred cuts end with the server killed while they are sent.
    archive_kills = 0, |dice| dice.pick(&[0, 10, 25]);
    /// The rate at which somebody removes marks, or everything, from the place.
    archive_removals = 0, |dice| fault(dice, 4);
}

/// Draws a weight around the usual one: sometimes 0, sometimes a multiple.
fn weight(dice: &mut Dice, usual: u64) -> u64 {
    match dice.below(8) {
        0 => 0,
        1 => usual * 4,
        _ => usual,
    }
}

/// Draws the rate of a fault: 0 in half of the runs.
fn fault(dice: &mut Dice, usual: u64) -> u64 {
    match dice.below(8) {
        0..=3 => 0,
        4 => usual * 4,
        _ => usual,
    }
}

impl Knobs {
    /// Whether files that are only kept may be given up because of a fault of the disk, while the
    /// journal fails for another one.
    pub(crate) const fn may_give_up_files(&self) -> bool {
        let errors = self.write_errors + self.sync_errors + self.directory_errors;
        self.full_disks + self.write_outages + self.sync_outages + errors > 0
    }

    /// Parses a line of `name=value`. Knobs that are not named are drawn from the seed.
    pub fn parse(line: &str) -> Result<Self, String> {
        let mut pairs = Vec::new();
        for word in line.split_whitespace() {
            let (name, value) = word.split_once('=').ok_or_else(|| format!("{word} is no knob"))?;
            let value: u64 = value.parse().map_err(|_| format!("{word} has no number"))?;
            pairs.push((name, value));
        }
        let seed = pairs.iter().find(|(name, _)| *name == "seed").map_or(0, |(_, seed)| *seed);
        let mut knobs = Self::draw(seed);
        for (name, value) in pairs {
            if !knobs.set(name, value) {
                return Err(format!("there is no knob {name}"));
            }
        }
        Ok(knobs)
    }

    /// The knobs that differ from what the seed draws, in a form that [`Knobs::parse`] reads.
    #[must_use]
    pub fn differences(&self) -> String {
        let drawn = Self::draw(self.seed);
        let mut line = format!("seed={}", self.seed);
        for name in Self::NAMES {
            let value = self.value(name);
            if value != drawn.value(name) {
                let _ = write!(line, " {name}={}", value.unwrap_or_default());
            }
        }
        line
    }
}

impl fmt::Display for Knobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in Self::NAMES.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{name}={}", self.value(name).unwrap_or_default())?;
        }
        Ok(())
    }
}
