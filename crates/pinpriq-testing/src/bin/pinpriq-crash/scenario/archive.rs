//! SIGKILL at random moments under load while the server archives, and random moments restored.
//!
//! The history is cut at each of these moments, goes on with whatever the restored server hands
//! out, and is checked as a whole. What becomes of an archive whose place is away, that is damaged,
//! or that two servers write into, is left to `scripts/archive-check`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinpriq_testing::Dice;
use pinpriq_testing::history::request::{PutOptions, put};
use pinpriq_testing::history::{Event, Outcome, Report, cut};

use crate::archive::bulk::{BULK, churn};
use crate::archive::clocks::Ahead;
use crate::archive::given::Given;
use crate::archive::info::Info;
use crate::archive::lives::{Life, Lives};
use crate::archive::place::Place;
use crate::args::Wanted;
use crate::client::Client;
use crate::clock::{Clock, let_pass};
use crate::drain::drain;
use crate::fault::{Fallible, Fault, Objection, Verdict};
use crate::files;
use crate::ledger::Ledger;
use crate::load::{Load, QUEUES};
use crate::payload::Payloads;
use crate::process::GUARD;
use crate::report::say;
use crate::server::{Program, Server, Started};
use crate::totals::Totals;
use crate::wire;

/// The number of kills of a directory with an archive of its own.
const ROUNDS: u64 = 20;
/// From so many kills on, each shard must have had tasks.
const ROUNDS_OF_ALL: u64 = 5;
/// The longest time that the load goes on alone before a kill. It is enough for some marks.
const LOAD_MS: u64 = 400;
/// The most large tasks that come and go before that: a segment has room for some forty.
const BULK_MAX: u64 = 48;
/// The most moments of one archive. Each restore takes one in 1,024 of the numbers of a shard.
const MOMENTS_MAX: u64 = 500;
/// How uncertain the difference of clocks may be.
const WIDTH_MAX_US: u64 = 100_000;
/// How long to wait before it is asked again whether everything is archived.
const PACE: Duration = Duration::from_millis(20);
/// What a server logs that stops archiving, or stops altogether.
const ERROR: &str = "\"level\":\"ERROR\"";

pub(crate) fn run(wanted: &Wanted) -> Fallible<Verdict> {
    Verdict::unless_objected(run_all(wanted))
}

fn run_all(wanted: &Wanted) -> Fallible<Verdict> {
    let clock = Clock::starting();
    let mut dice = Dice::new(wanted.seed);
    let mut found = Found::default();
    let all_kills = wanted.kills.max(1);
    let archives = all_kills.div_ceil(ROUNDS);
    for number in 0..archives {
        if !wanted.has_time(clock) {
            break;
        }
        let kills = ROUNDS.min(all_kills - number * ROUNDS);
        // Those that are left over are divided among the first ones.
        let moments = (wanted.moments + archives - 1 - number) / archives;
        if moments > MOMENTS_MAX {
            let told = format!("{moments} moments of one archive are too many: ask for more kills");
            return Err(told.into());
        }
        let scratch = files::scratch(&wanted.scratch)?;
        let trial = Trial {
            wanted,
            number,
            place: place(wanted, scratch.path(), number)?,
            scratch: scratch.path(),
            ledger: Ledger::new(scratch.path(), "history.jsonl", wanted.tolerance)?,
            payloads: Payloads::default(),
        };
        trial.run(kills, moments, &mut dice, &mut found)?;
        say(format_args!("{}: {found}", wanted.scenario));
    }
    Ok(Verdict::Passed(found.to_string()))
}

/// The place of one of several archives.
fn place(wanted: &Wanted, scratch: &Path, number: u64) -> Fallible<Place> {
    let around = match &wanted.place {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => scratch.join("archives").to_string_lossy().into_owned(),
    };
    if !around.contains("://") {
        files::make_directory(Path::new(&around))?;
    }
    Ok(Place { program: wanted.program.path.clone(), url: format!("{around}/{number}") })
}

/// What was found until now.
#[derive(Default)]
struct Found {
    kills: u64,
    moments: u64,
    marks: u64,
    objects: u64,
    /// Of whole histories.
    whole: Totals,
    /// Of those that end at a moment.
    cut: Totals,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, moments, marks, objects, whole, cut } = self;
        write!(f, "{kills} kills, {marks} marks with {objects} objects; at the end {whole}; ")?;
        write!(f, "at {moments} moments {cut}")
    }
}

/// A directory and its archive.
struct Trial<'a> {
    wanted: &'a Wanted,
    /// Its number among several.
    number: u64,
    place: Place,
    scratch: &'a Path,
    ledger: Ledger,
    payloads: Payloads,
}

impl Trial<'_> {
    fn run(&self, kills: u64, moments: u64, dice: &mut Dice, found: &mut Found) -> Fallible<()> {
        let (lives, ahead) = self.live(kills, dice)?;
        found.kills += kills;
        if ahead.width_us() > WIDTH_MAX_US {
            let width_us = ahead.width_us();
            return Err(format!("servers differ in their time by up to {width_us} us").into());
        }
        let newest_ms = self.place.newest_ms(&self.restored())?;
        let records = self.ledger.records_after(0)?;
        let given = Given::of(&records);
        for turn in 0..moments {
            let (kind, chosen_us) = lives.some_moment(turn, dice);
            // The last server, which had no load, may have lived on after that.
            let at_ms = ahead.moment_ms(chosen_us).min(newest_ms.saturating_sub(1));
            let what = format!("moment {at_ms}, {kind}");
            self.restore(&at_ms.to_string(), at_ms, "exact", &what)?;
            let before = cut(&records, ahead.between(at_ms));
            let ledger = self.ledger.another("cut.jsonl", &before)?;
            let report = self.empty(&ledger, before.len(), &given, &what)?;
            found.cut.add(&report);
            found.moments += 1;
        }
        let (marks, objects) = self.place.verify()?;
        found.marks += marks;
        found.objects += objects;
        let what = format!("newest moment {newest_ms}");
        self.restore("latest", newest_ms, "latest", &what)?;
        found.whole.add(&self.empty(&self.ledger, records.len(), &given, &what)?);
        Ok(())
    }

    /// Where moments are restored, one after the other.
    fn restored(&self) -> PathBuf {
        self.scratch.join("restored")
    }

    /// Lets servers live under load and be killed, and then one without load, which archives what
    /// is left.
    fn live(&self, kills: u64, dice: &mut Dice) -> Fallible<(Lives, Ahead)> {
        let Self { wanted, ledger, payloads, .. } = self;
        let archive = Some(self.place.url.clone());
        let program = Program { archive, ..wanted.program.clone() };
        let data = self.scratch.join("data");
        let load = Load::new(ledger, payloads);
        let mut killed = Vec::new();
        let mut all_ahead: Option<Ahead> = None;
        loop {
            let mut server = program.start(&data)?;
            ledger.event(Event::ServerStarted)?;
            let address = server.address;
            if killed.is_empty() {
                load.prepare(address)?;
            }
            let own = Ahead::of_server(address, ledger)?;
            let ahead = all_ahead.map_or(own, |others| others.or(own));
            all_ahead = Some(ahead);
            let from_us = ledger.us();
            if u64::try_from(killed.len())? == kills {
                self.archive_rest(server)?;
                let reached = load.shards_reached();
                if usize::try_from(reached)? < wanted.program.shards && kills >= ROUNDS_OF_ALL {
                    return Err(format!("only {reached} shards had any tasks").into());
                }
                return Ok((Lives { killed, last_us: from_us }, ahead));
            }
            let (bulk, alone_us) = (dice.below(BULK_MAX), dice.below(LOAD_MS * 1_000));
            let to_us = load.run(address, dice, || {
                let churned = churn(address, ledger, payloads, bulk);
                let_pass(Duration::from_micros(alone_us));
                let to_us = ledger.us();
                let noted = ledger.event(Event::ServerKilled);
                // Without this the clients would never end.
                server.kill()?;
                churned.and(noted)?;
                Ok(to_us)
            })?;
            self.refuse_errors(&server)?;
            killed.push(Life { from_us, to_us });
        }
    }

    /// Waits until a server has archived everything, and stops it.
    fn archive_rest(&self, mut server: Server) -> Fallible<()> {
        let mut wire = wire::connect(server.address)?;
        let clock = Clock::starting();
        loop {
            let info = Info::ask(&mut wire)?;
            let state = info.text("archive_state")?;
            let behind = info.number("archive_behind_bytes")?;
            if state == "ok" && behind == 0 {
                break;
            }
            if clock.elapsed() > GUARD {
                let told = format!("the archive still lacks {behind} bytes: {state}");
                return Err(self.objection(&self.ledger, &told));
            }
            let_pass(PACE);
        }
        drop(wire);
        self.ledger.event(Event::ServerKilled)?;
        let status = server.stop()?;
        self.refuse_errors(&server)?;
        if status.success() {
            return Ok(());
        }
        Err(self.objection(&self.ledger, &format!("an orderly stop ended with {status}")))
    }

    /// Neither kills nor a place that makes trouble are errors of the server.
    fn refuse_errors(&self, server: &Server) -> Fallible<()> {
        let log = server.process.text();
        match log.lines().find(|line| line.contains(ERROR)) {
            Some(line) => Err(self.objection(&self.ledger, &format!("the server logged {line}"))),
            None => Ok(()),
        }
    }

    /// Restores a moment, which must be exactly the one that is meant.
    fn restore(&self, until: &str, at_ms: u64, why: &str, what: &str) -> Fallible<()> {
        let data = self.restored();
        files::remove_directory(&data)?;
        let said = self.place.restore(&data, until)?;
        if (said.at_ms, said.why.as_str()) == (at_ms, why) {
            return Ok(());
        }
        Err(self.objection(&self.ledger, &format!("{what}: restore says {said:?}")))
    }

    /// Starts a server on what was restored and takes everything out of it, as the end of a history
    /// that has `before` records of the time before.
    fn empty(&self, ledger: &Ledger, before: usize, given: &Given, what: &str) -> Fallible<Report> {
        let data = self.restored();
        let mut server = match self.wanted.program.try_start(&data)? {
            Started::Listening(server) => server,
            Started::Ended(status, log) => {
                let told = format!("{what}: no server starts on it ({status}): {log}");
                return Err(self.objection(ledger, &told));
            }
        };
        ledger.event(Event::ServerStarted)?;
        self.put_into_all(&server, ledger, what)?;
        let queues: Vec<&str> = QUEUES.into_iter().chain([BULK]).collect();
        drain(&server, ledger, &queues)?;
        let status = server.stop()?;
        let report = ledger.check()?;
        if let Some(again) = given.again(&ledger.records_after(before)?) {
            let told = format!("{what}: {again} is given a second time");
            return Err(self.objection(ledger, &told));
        }
        if !report.is_clean() || !status.success() {
            let told = format!("{what} ({status}): {}", report.text(5));
            return Err(self.objection(ledger, &told));
        }
        Ok(report)
    }

    /// Puts a task into each queue: the first requests that a restored server gets.
    fn put_into_all(&self, server: &Server, ledger: &Ledger, what: &str) -> Fallible<()> {
        let mut client = Client::connect(server.address, ledger).ok_or("no server listens")?;
        for queue in QUEUES {
            let request = put(queue, &self.payloads.next(), PutOptions::default());
            let outcome = client.ask_one(request)?;
            if !matches!(outcome, Some(Outcome::Put { .. })) {
                let told = format!("{what}: the first put into {queue} is answered {outcome:?}");
                return Err(self.objection(ledger, &told));
            }
        }
        client.close()
    }

    /// An objection to the server, with a copy of the history.
    fn objection(&self, ledger: &Ledger, told: &str) -> Fault {
        let Self { wanted, number, .. } = self;
        match ledger.keep(&format!("archive-seed-{}-{number}.jsonl", wanted.seed)) {
            Ok(kept) => Objection(format!("{}: {told}", kept.display())).into(),
            Err(fault) => fault,
        }
    }
}
