//! The arguments on the command line.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pinpriq_testing::history::Tolerance;

use crate::clock::Clock;
use crate::cluster::engine::Kind;
use crate::load::SHARDS_MAX;
use crate::server::{Door, Program};

pub(crate) const USAGE: &str = "\
usage: pinpriq-crash --server PROGRAM SCENARIO [OPTION VALUE]...

Starts the real program on the loopback interface, crashes it, and checks what is left.

scenarios
  kill       SIGKILL at random moments under load
  jobs       the same at the door for beanstalkd's protocol
  jobs-power power loss under the load of jobs, on a file system of its own
  policies   the same under load on schedules, transactions, dead letters and unique tasks
  batches    the same under load on batches, while clients drop their connections too
  archive    the load of kill on a server that archives, and moments of it restored
  syscalls   SIGKILL at each system call that writes, with strace
  errors     EIO and ENOSPC at each system call that writes, with strace
  damage     flipped bits, cut, missing, swapped and old files between two runs
  full       a small file system that the server fills itself
  power      power loss on a file system of its own
  cluster    three nodes on an engine: kills, pauses, cuts, hand-overs, and troubles of the engine
  shares     fair shares and limits: who waits, and who gets how much; one scenario kills the
             server, and another the owner in a cluster on etcd; prints a table
  peers      the same kills and power losses for Redis and beanstalkd; prints a table

options
  --kills N         how many kills, or power losses, or damages          [100]
  --batches N       the scenario batches goes on until so many were made   [0]
  --place PLACE     where the scenario archive archives: nothing may be there yet
                    [a new directory]
  --moments N       how many moments it restores                         [10]
  --engine E         of a cluster: etcd, three members, or postgres, with a standby  [etcd]
  --rounds N        how many troubles of a cluster                       [10]
  --slack N         how many times longer than alone on the machine a cluster may
                    take to serve a queue again after a trouble          [1]
  --durability L    the server's setting; with less than sync, losses show  [sync]
  --shards N        how many shards the server has, at most 4            [1]
  --seconds N       stop after this time; for shares, each scenario      [no limit; 30]
  --seed S          where random choices start                           [1]
  --operations N    requests in the workload of syscalls and errors      [300]
  --every N         of the calls of syscalls and errors, only each N-th  [1]
  --tolerance-ms N  how far the clocks of server and harness may differ  [50]
  --scratch DIR     where the directories of servers are made            [the temporary directory]
  --allow-missing   exit with 0 also if something could not be run

exit codes
  0 nothing to object to, 1 violations, 2 wrong usage, 3 the harness itself failed, 4 not run
";

/// The parsed arguments.
pub(crate) struct Wanted {
    pub(crate) program: Program,
    pub(crate) scenario: String,
    pub(crate) kills: u64,
    pub(crate) batches: u64,
    pub(crate) place: Option<String>,
    pub(crate) moments: u64,
    pub(crate) engine: Kind,
    pub(crate) rounds: u64,
    pub(crate) slack: u64,
    pub(crate) seconds: Option<u64>,
    pub(crate) seed: u64,
    pub(crate) operations: usize,
    pub(crate) every: usize,
    pub(crate) tolerance: Tolerance,
    pub(crate) scratch: PathBuf,
    pub(crate) allow_missing: bool,
}

impl Wanted {
    /// Whether there is time for more, on a clock that was started with the scenario.
    pub(crate) fn has_time(&self, clock: Clock) -> bool {
        self.seconds.is_none_or(|most| clock.elapsed() < Duration::from_secs(most))
    }
}

/// Parses the arguments. Returns none if they make no sense.
pub(crate) fn wanted(mut arguments: impl Iterator<Item = String>) -> Option<Wanted> {
    let mut wanted = Wanted {
        program: Program {
            path: PathBuf::new(),
            durability: "sync".to_owned(),
            shards: 1,
            door: Door::Resp,
            archive: None,
            starts: Arc::default(),
        },
        scenario: String::new(),
        kills: 100,
        batches: 0,
        place: None,
        moments: 10,
        engine: Kind::Etcd,
        rounds: 10,
        slack: 1,
        seconds: None,
        seed: 1,
        operations: 300,
        every: 1,
        tolerance: Tolerance::default(),
        scratch: std::env::temp_dir(),
        allow_missing: false,
    };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--server" => wanted.program.path = PathBuf::from(arguments.next()?),
            "--durability" => wanted.program.durability = arguments.next()?,
            "--shards" => {
                let shards: usize = arguments.next()?.parse().ok()?;
                wanted.program.shards = Some(shards).filter(|it| (1..=SHARDS_MAX).contains(it))?;
            }
            "--kills" => wanted.kills = arguments.next()?.parse().ok()?,
            "--batches" => wanted.batches = arguments.next()?.parse().ok()?,
            "--place" => wanted.place = Some(arguments.next()?),
            "--moments" => wanted.moments = arguments.next()?.parse().ok()?,
            "--engine" => wanted.engine = Kind::of(&arguments.next()?)?,
            "--rounds" => wanted.rounds = arguments.next()?.parse().ok()?,
            "--slack" => wanted.slack = arguments.next()?.parse().ok().filter(|it| *it > 0)?,
            "--seconds" => wanted.seconds = Some(arguments.next()?.parse().ok()?),
            "--seed" => wanted.seed = arguments.next()?.parse().ok()?,
            "--operations" => wanted.operations = arguments.next()?.parse().ok()?,
            "--every" => wanted.every = arguments.next()?.parse().ok().filter(|it| *it > 0)?,
            "--tolerance-ms" => {
                let ms: u64 = arguments.next()?.parse().ok()?;
                wanted.tolerance.fixed_us = ms.checked_mul(1_000)?;
            }
            "--scratch" => wanted.scratch = PathBuf::from(arguments.next()?),
            "--allow-missing" => wanted.allow_missing = true,
            word if !word.starts_with("--") && wanted.scenario.is_empty() => {
                word.clone_into(&mut wanted.scenario);
            }
            _ => return None,
        }
    }
    let complete = !wanted.scenario.is_empty() && !wanted.program.path.as_os_str().is_empty();
    complete.then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::{Kind, wanted};

    fn parsed(line: &str) -> Option<super::Wanted> {
        wanted(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_stand_anywhere_and_have_defaults() {
        let wanted = parsed("--server s kill --kills 7 --tolerance-ms 9 --allow-missing").unwrap();
        assert_eq!((wanted.scenario.as_str(), wanted.kills, wanted.seed), ("kill", 7, 1));
        assert_eq!((wanted.tolerance.fixed_us, wanted.allow_missing), (9_000, true));
        assert_eq!((wanted.program.durability.as_str(), wanted.program.shards), ("sync", 1));
        let cluster = parsed("--server s cluster --rounds 3 --engine postgres --slack 2").unwrap();
        assert_eq!((cluster.rounds, cluster.engine, cluster.slack), (3, Kind::Postgres, 2));
        assert_eq!(parsed("--server s kill --shards 2").unwrap().program.shards, 2);
        assert_eq!(parsed("--server s batches --batches 5").unwrap().batches, 5);
        let archive = parsed("--server s archive --place s3://b/p --moments 7").unwrap();
        assert_eq!((archive.place.as_deref(), archive.moments), (Some("s3://b/p"), 7));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "",
            "kill",
            "--server s",
            "--server s kill more",
            "--server s kill --every 0",
            "--server s kill --kills",
            "--server s kill --shards 0",
            "--server s kill --shards 5",
            "--server s cluster --engine sqlite",
            "--server s kill --nothing 1",
        ] {
            assert!(parsed(line).is_none(), "{line}");
        }
    }
}
