//! Damage between two runs of the server: it must refuse, with file and offset, or show everything
//! that was acknowledged.
//!
//! The last request of a client before the end puts a task into a queue of its own. It cannot be
//! noticed that the very last write was cut off, so what is missing there is counted separately.
//! The same is true of whole tails of the newest segment, and of a whole directory replaced with an
//! older copy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use pinpriq_testing::history::{Event, Report};

use crate::args::Wanted;
use crate::client::Client;
use crate::drain::drain;
use crate::fault::{Fallible, Fault, Verdict};
use crate::files;
use crate::ledger::Ledger;
use crate::payload::Payloads;
use crate::server::Started;
use crate::workload::{QUEUES, Size, play};
use pinpriq_testing::Dice;
use pinpriq_testing::history::request::{PutOptions, put};

/// The queue of the last request in each life of the server before the damage. Each life begins a
/// segment.
const FENCES: [&str; 4] = ["fence-1", "fence-2", "fence-3", "fence-4"];
/// The queue of the very last request.
const FENCE: &str = FENCES[3];
/// The workload of each life.
const SIZE: Size = Size { operations: 60, payload_bytes: 400 };
/// The exit code for a directory that is damaged.
const REFUSED: i32 = 3;
/// The number of bytes that are zeroed.
const BLOCK_BYTES: usize = 4_096;
/// The offset of the first batch in a segment.
const BATCHES_AT: usize = 8_192;

/// A kind of damage to the directory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Damage {
    BitFlipped,
    BlockZeroed,
    SegmentDeleted,
    SegmentsSwapped,
    OlderSegment,
    OldTruncated,
    NewestTruncated,
    NewestDeleted,
    NewestOlder,
    DirectoryOlder,
}

impl Damage {
    const ALL: [Self; 10] = [
        Self::BitFlipped,
        Self::BlockZeroed,
        Self::SegmentDeleted,
        Self::SegmentsSwapped,
        Self::OlderSegment,
        Self::OldTruncated,
        Self::NewestTruncated,
        Self::NewestDeleted,
        Self::NewestOlder,
        Self::DirectoryOlder,
    ];

    /// Whether it cuts off the end of the log, which nothing that is left can reveal.
    const fn cuts_the_end(self) -> bool {
        matches!(
            self,
            Self::NewestTruncated | Self::NewestDeleted | Self::NewestOlder | Self::DirectoryOlder
        )
    }
}

/// How often a kind of damage had each result.
#[derive(Default)]
struct Count {
    refused: usize,
    harmless: usize,
    only_last_write: usize,
    end_cut: usize,
    silent: usize,
}

/// A data directory, and an older copy of it.
struct Made {
    data: PathBuf,
    /// A copy of the directory from the middle of the run.
    older: PathBuf,
}

pub(crate) fn run(wanted: &Wanted) -> Fallible<Verdict> {
    let mut dice = Dice::new(wanted.seed);
    let mut counts: BTreeMap<Damage, Count> = BTreeMap::new();
    let mut violations = Vec::new();
    for number in 0..wanted.kills {
        let scratch = files::scratch(&wanted.scratch)?;
        let ledger = Ledger::new(scratch.path(), "history.jsonl", wanted.tolerance)?;
        let made = make(wanted, scratch.path(), &ledger, &mut dice)?;
        let damage = Damage::ALL[usize::try_from(number)? % Damage::ALL.len()];
        let done = inflict(damage, &made, &mut dice)?;
        let told = &done.told;
        let count = counts.entry(damage).or_default();
        if let Some(why) = judge(wanted, done.cuts_the_end, &made.data, &ledger, count)? {
            let name = format!("damage-seed-{}-{number}.jsonl", wanted.seed);
            let kept = ledger.keep(&name)?;
            violations.push(format!("{damage:?}, {told}, {}: {why}", kept.display()));
        }
    }
    let mut lines = vec![format!("{} damages", wanted.kills)];
    for (damage, count) in &counts {
        let Count { refused, harmless, only_last_write, end_cut, silent } = count;
        lines.push(format!(
            "  {damage:?}: {refused} refused, {harmless} harmless, {only_last_write} cost the last \
             write only, {end_cut} cut off the end, {silent} silent changes"
        ));
    }
    lines.append(&mut violations.clone());
    let figures = lines.join("\n");
    Ok(if violations.is_empty() { Verdict::Passed(figures) } else { Verdict::Failed(figures) })
}

/// Runs a server several times, each time with one more task in a queue of its own at the end.
fn make(wanted: &Wanted, root: &Path, ledger: &Ledger, dice: &mut Dice) -> Fallible<Made> {
    let made = Made { data: root.join("data"), older: root.join("older") };
    let payloads = Payloads::default();
    for (life, fence) in FENCES.into_iter().enumerate() {
        let mut server = wanted.program.start(&made.data)?;
        ledger.event(Event::ServerStarted)?;
        if !play(server.address, ledger, &payloads, SIZE)?.is_whole {
            return Err(Fault::from(format!("the server is gone: {}", server.process.text())));
        }
        let mut client = Client::connect(server.address, ledger).ok_or("no server listens")?;
        client.ask_one(put(fence, &payloads.sized(50), PutOptions::default()))?;
        client.close()?;
        ledger.event(Event::ServerKilled)?;
        if dice.chance(50) {
            server.kill()?;
        } else {
            server.stop()?;
        }
        if life == FENCES.len() / 2 {
            files::copy_directory(&made.data, &made.older)?;
        }
    }
    Ok(made)
}

/// The damage that was done.
struct Done {
    told: String,
    cuts_the_end: bool,
}

/// Damages the directory, and describes where.
fn inflict(damage: Damage, made: &Made, dice: &mut Dice) -> Fallible<Done> {
    let segments = files::segments(&made.data)?;
    let (newest, old) = segments.split_last().ok_or("no segment")?;
    let some_old = old.get(dice.index(old.len())).ok_or("one segment only")?;
    let any = &segments[dice.index(segments.len())];
    let mut cuts_the_end = damage.cuts_the_end();
    let told = match damage {
        Damage::BitFlipped => {
            let mut bytes = files::read(any)?;
            let at = dice.index(used(&bytes));
            let bit = dice.below(8);
            bytes[at] ^= 1 << bit;
            files::write(any, &bytes)?;
            format!("{}: bit {bit} of byte {at}", files::name_of(any))
        }
        Damage::BlockZeroed => {
            let mut bytes = files::read(any)?;
            let blocks = used(&bytes).div_ceil(BLOCK_BYTES);
            let at = dice.index(blocks) * BLOCK_BYTES;
            let end = bytes.len().min(at + BLOCK_BYTES);
            cuts_the_end = any == newest && end >= used(&bytes);
            bytes[at..end].fill(0);
            files::write(any, &bytes)?;
            format!("{}: bytes {at} to {end}", files::name_of(any))
        }
        Damage::SegmentDeleted => removed(some_old)?,
        Damage::NewestDeleted => removed(newest)?,
        Damage::SegmentsSwapped => {
            let other = old.iter().find(|it| *it != some_old).unwrap_or(newest);
            files::swap(some_old, other)?;
            format!("{} and {}", files::name_of(some_old), files::name_of(other))
        }
        Damage::OldTruncated | Damage::NewestTruncated => {
            let segment = if damage == Damage::OldTruncated { some_old } else { newest };
            let length = used(&files::read(segment)?);
            let at = dice.below(u64::try_from(length)?);
            files::truncate(segment, at)?;
            format!("{} cut to {at} bytes", files::name_of(segment))
        }
        Damage::OlderSegment | Damage::NewestOlder => {
            let copies = files::segments(&made.older)?;
            let (newest_copy, old_copies) = copies.split_last().ok_or("no copy")?;
            if damage == Damage::OlderSegment {
                // A file of an earlier number under the name of a later one.
                let copy = old_copies.get(dice.index(old_copies.len())).unwrap_or(newest_copy);
                let target = old.last().unwrap_or(newest);
                files::copy(copy, target)?;
                format!("{} over {}", files::name_of(copy), files::name_of(target))
            } else {
                // The newest segment as it was when it was half as long.
                let mut bytes = files::read(newest)?;
                let end = used(&bytes);
                let at = BATCHES_AT.min(end) + dice.index(end.saturating_sub(BATCHES_AT));
                bytes[at..].fill(0);
                files::write(newest, &bytes)?;
                format!("{} zero from byte {at} on", files::name_of(newest))
            }
        }
        Damage::DirectoryOlder => {
            files::copy_directory(&made.older, &made.data)?;
            "the whole directory".to_owned()
        }
    };
    Ok(Done { told, cuts_the_end })
}

fn removed(path: &Path) -> Fallible<String> {
    files::remove(path)?;
    Ok(files::name_of(path))
}

/// The end of the used part of a file.
fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1)
}

/// Starts the server on what is left, and returns what is wrong, if anything.
fn judge(
    wanted: &Wanted,
    cuts_the_end: bool,
    data: &Path,
    ledger: &Ledger,
    count: &mut Count,
) -> Fallible<Option<String>> {
    let mut server = match wanted.program.try_start(data)? {
        Started::Ended(status, log) => {
            count.refused += 1;
            return Ok(refusal(status, &log));
        }
        Started::Listening(server) => server,
    };
    ledger.event(Event::ServerStarted)?;
    let queues: Vec<&str> = FENCES.into_iter().chain(QUEUES).collect();
    drain(&server, ledger, &queues)?;
    server.stop()?;
    let report = ledger.check()?;
    if report.is_clean() {
        count.harmless += 1;
    } else if is_of_fence(&report) {
        count.only_last_write += 1;
    } else if cuts_the_end {
        count.end_cut += 1;
    } else {
        count.silent += 1;
        return Ok(Some(report.text(3)));
    }
    Ok(None)
}

/// Checks a refusal: it must give the exit code, the file and, where there is one, the offset.
fn refusal(status: ExitStatus, log: &str) -> Option<String> {
    let names_a_file = log.contains("segment-") || log.contains("spare-");
    let is_told = status.code() == Some(REFUSED) && names_a_file;
    (!is_told).then(|| format!("refused with {status} and without a file: {log}"))
}

/// Whether only the last write is affected.
fn is_of_fence(report: &Report) -> bool {
    let name = format!("of queue {FENCE:?}");
    report.violations.iter().all(|violation| violation.detail.contains(&name))
}
