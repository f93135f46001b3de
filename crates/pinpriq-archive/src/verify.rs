//! Reads everything that marks name, and says what is missing or damaged.
//!
//! Each object is read once for each segment in it, whatever the number of marks that name it.
//! Nothing is changed, and nothing is brought back: a directory is made by
//! [`restore`](mod@crate::restore).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use pinpriq_store::StoreError;
use pinpriq_store::disk;
use pinpriq_store::journal::raw::{HEADER_BYTES, RawHeader, RawWalk, Walker};

use crate::catalogue::Catalogue;
use crate::error::ArchiveError;
use crate::fetch::{self, Wanted};
use crate::line::{Line, lines};
use crate::listed;
use crate::mark::{Mark, Objects, Part, ShardMark};
use crate::names::{self, LineId, SegmentId};
use crate::place::Place;
use crate::progress::{Meter, Progress};

/// How many missing objects of one shard are named for a mark.
const MISSING_MAX: usize = 100;

/// What was read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verified {
    /// How many marks there are.
    pub marks: u64,
    /// How many lines there are.
    pub lines: u64,
    /// How many objects with segments were found whole.
    pub objects: u64,
    /// How many bytes these objects have.
    pub bytes: u64,
    /// What is missing or damaged, by the names of the objects.
    pub faults: Vec<Fault>,
}

/// An object that is missing, or is not as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The object.
    pub name: String,
    /// What is wrong.
    pub what: String,
    /// Whether a newer version wrote it.
    pub is_newer: bool,
    /// The marks that need it.
    pub marks: Vec<u64>,
}

/// A segment of a shard of a line.
type Key = (LineId, usize, SegmentId);

/// A segment that is there in parts, and the object that it begins in: its mark, and which one.
type PartKey = (Key, (u64, u32));

/// The marks that name a part of a segment: the part, and the place of the mark in the list.
type Named<'a> = Vec<(&'a Part, usize)>;

/// What there is to read in parts.
type Groups<'a> = BTreeMap<PartKey, Named<'a>>;

struct Check<'a> {
    place: &'a dyn Place,
    found: Verified,
    faults: BTreeMap<String, Fault>,
    /// What walks over whole segments have found.
    whole: BTreeMap<Key, RawWalk>,
    /// The same for segments in parts, with their lengths.
    parts: BTreeMap<(PartKey, u64), RawWalk>,
}

/// Reads every mark of a place, and everything that they name: checksums, commits, and whether the
/// segments follow each other. Holds one segment in memory, and some hundred bytes for each.
///
/// What is missing or damaged is no error, but is returned. Refuses a place without any mark.
pub fn verify(
    place: &dyn Place,
    progress: &mut dyn FnMut(Progress),
) -> Result<Verified, ArchiveError> {
    let (found, faults) = (Verified::default(), BTreeMap::new());
    let mut check = Check { place, found, faults, whole: BTreeMap::new(), parts: BTreeMap::new() };
    let marks = check.read_marks()?;
    check.read_lines(&marks)?;
    let (whole, parts) = check.look_for_objects(&marks)?;
    let in_parts: usize = parts.values().map(Vec::len).sum();
    let mut meter = Meter::new((whole.len() + in_parts) as u64, progress);
    for key in whole {
        check.read_whole(&marks, key)?;
        meter.pass(1);
    }
    let mut objects = BTreeMap::new();
    for (key, mut named) in parts {
        check.read_parts(&marks, key, &mut named, &mut objects)?;
        meter.pass(named.len() as u64);
    }
    for mark in &marks {
        check.follow(mark);
    }
    let mut found = check.found;
    // Shards share objects with parts.
    found.objects += objects.len() as u64;
    found.bytes += objects.values().sum::<u64>();
    found.faults = check.faults.into_values().collect();
    Ok(found)
}

impl Check<'_> {
    fn read_marks(&mut self) -> Result<Vec<Mark>, ArchiveError> {
        let mut marks = Vec::new();
        let mut damaged = Vec::new();
        Catalogue::read(self.place)?.each(&mut |number, mark| {
            match mark {
                Ok(mark) => marks.push(mark),
                Err(error) => damaged.push((number, error)),
            }
            ControlFlow::Continue(())
        })?;
        self.found.marks = (marks.len() + damaged.len()) as u64;
        for (number, error) in damaged {
            self.note(&names::mark(number), error, vec![number])?;
        }
        Ok(marks)
    }

    fn read_lines(&mut self, marks: &[Mark]) -> Result<(), ArchiveError> {
        let mut all: BTreeSet<LineId> = lines(self.place)?.into_iter().collect();
        all.extend(marks.iter().map(|mark| mark.line));
        self.found.lines = all.len() as u64;
        for line in all {
            let of_line = marks.iter().filter(|mark| mark.line == line);
            let needed: Vec<u64> = of_line.map(|mark| mark.number).collect();
            let name = names::line(line);
            match Line::read(self.place, line) {
                Ok(None) if needed.is_empty() => {}
                Ok(None) => self.note(&name, ArchiveError::missing(&name), needed)?,
                Ok(Some(_)) => {}
                Err(error) => self.note(&name, error, needed)?,
            }
        }
        Ok(())
    }

    /// Returns the whole segments that marks name and that are there, and the parts, grouped by the
    /// object that they begin in. Notes what is missing.
    fn look_for_objects<'m>(
        &mut self,
        marks: &'m [Mark],
    ) -> Result<(BTreeSet<Key>, Groups<'m>), ArchiveError> {
        let (mut whole, mut parts) = (BTreeSet::new(), Groups::new());
        let mut listed: BTreeMap<(LineId, usize), BTreeSet<SegmentId>> = BTreeMap::new();
        for (index, mark) in marks.iter().enumerate() {
            for (shard, needs) in mark.shards.iter().enumerate() {
                let there = match listed.remove(&(mark.line, shard)) {
                    Some(there) => there,
                    None => listed::segments(self.place, mark.line, shard)?,
                };
                let of_mark = there.iter().filter(|segment| needs.has_whole(**segment));
                whole.extend(of_mark.map(|segment| (mark.line, shard, *segment)));
                let missing = needs.whole_segments().filter(|segment| !there.contains(segment));
                let missing: Vec<SegmentId> = missing.take(MISSING_MAX).collect();
                listed.insert((mark.line, shard), there);
                for segment in missing {
                    self.note_missing(marks, (mark.line, shard, segment))?;
                }
                for part in &needs.parts {
                    let key = (mark.line, shard, part.segment());
                    parts.entry((key, beginning(part))).or_default().push((part, index));
                }
            }
        }
        Ok((whole, parts))
    }

    fn read_whole(&mut self, marks: &[Mark], key: Key) -> Result<(), ArchiveError> {
        let wanted = wanted(marks, key);
        let name = wanted.name();
        let read = fetch::whole(self.place, &wanted).and_then(|fetched| {
            let fetched = fetched.ok_or_else(|| ArchiveError::missing(&name))?;
            Ok((wanted.check(&name, &fetched.bytes)?, fetched.objects))
        });
        match read {
            Ok((walk, objects)) => {
                self.found.objects += 1;
                self.found.bytes += objects.iter().map(|(_, bytes)| bytes).sum::<u64>();
                self.whole.insert(key, walk);
                Ok(())
            }
            Err(error) => self.note(&name, error, needing(marks, key)),
        }
    }

    fn note_missing(&mut self, marks: &[Mark], key: Key) -> Result<(), ArchiveError> {
        let name = wanted(marks, key).name();
        if self.faults.contains_key(&name) {
            return Ok(());
        }
        self.note(&name, ArchiveError::missing(&name), needing(marks, key))
    }

    /// Reads what marks name of a segment that was not full. A server that archives names a little
    /// more of it each second: those that begin alike are read once, as far as the longest goes.
    fn read_parts(
        &mut self,
        marks: &[Mark],
        key: PartKey,
        named: &mut Named<'_>,
        objects: &mut BTreeMap<String, u64>,
    ) -> Result<(), ArchiveError> {
        named.sort_by_key(|(part, _)| std::cmp::Reverse(part.bytes));
        let wanted = wanted(marks, key.0);
        let mut rest: Named<'_> = named.clone();
        while let Some((longest, index)) = rest.first().copied() {
            match fetch::part(self.place, &wanted, longest) {
                Ok(fetched) => {
                    objects.extend(fetched.objects);
                    let (mut alike, others): (Named<'_>, Named<'_>) =
                        rest.into_iter().partition(|(part, _)| begins(longest, part));
                    alike.reverse();
                    self.walk_alike(marks, key, &wanted, &alike, &fetched.bytes)?;
                    rest = others;
                }
                Err(error) => {
                    let last = longest.last_name(wanted.line);
                    let name = name_of(&error).unwrap_or(last);
                    // The others that need the same object have the same fault.
                    let bad = longest
                        .each_object()
                        .find(|(mark, object)| names::parts(wanted.line, *mark, *object) == name);
                    let has_it = |part: &Part| {
                        part == longest || bad.is_some_and(|bad| has_object(part, bad))
                    };
                    let (faulty, others): (Named<'_>, Named<'_>) =
                        rest.into_iter().partition(|(part, _)| has_it(part));
                    let mut needed = vec![marks[index].number];
                    needed.extend(faulty.iter().map(|(_, index)| marks[*index].number));
                    self.note(&name, error, needed)?;
                    rest = others;
                }
            }
        }
        Ok(())
    }

    /// Checks the commits of parts that begin alike, shortest first, in one walk. The bytes are
    /// those of the longest.
    fn walk_alike(
        &mut self,
        marks: &[Mark],
        key: PartKey,
        wanted: &Wanted,
        alike: &[(&Part, usize)],
        bytes: &[u8],
    ) -> Result<(), ArchiveError> {
        let (mut walker, mut at) = (None, 0);
        let mut bad: Option<ArchiveError> = None;
        for (part, index) in alike.iter().copied() {
            let name = part.last_name(wanted.line);
            let end = disk::index(part.bytes);
            if bad.is_none() {
                let more = bytes.get(at..end).unwrap_or_default();
                match walk_on(walker.take(), wanted, &name, more) {
                    Ok(next) => {
                        self.parts.insert((key, part.bytes), next.walk());
                        (walker, at) = (Some(next), end);
                    }
                    Err(error) => bad = Some(error),
                }
            }
            if let Some(error) = &bad {
                self.note(&name, error.clone(), vec![marks[index].number])?;
            }
        }
        Ok(())
    }

    /// Checks that the segments of a mark follow each other, and that nothing before them is
    /// needed. What could not be read was noted before.
    fn follow(&mut self, mark: &Mark) {
        for (shard, needs) in mark.shards.iter().enumerate() {
            let Some(what) = self.does_not_follow(mark.line, shard, needs) else { continue };
            let name = names::mark(mark.number);
            let what = format!("shard {shard}: {what}");
            let fault =
                Fault { name: name.clone(), what, is_newer: false, marks: vec![mark.number] };
            self.faults.entry(name).or_insert(fault);
        }
    }

    fn does_not_follow(&self, line: LineId, shard: usize, needs: &ShardMark) -> Option<String> {
        let whole = needs.whole_segments().map(|segment| self.whole.get(&(line, shard, segment)));
        let parts = needs.parts.iter().map(|part| {
            let key = (line, shard, part.segment());
            self.parts.get(&((key, beginning(part)), part.bytes))
        });
        let mut before: Option<&RawWalk> = None;
        let mut oldest = None;
        for walk in whole.chain(parts) {
            // What is missing is a fault of its own.
            let walk = walk?;
            if let Some(before) = before.filter(|before| !before.goes_on_with(&walk.header)) {
                return Some(gap(before, &walk.header));
            }
            before = Some(walk);
            oldest = walk.last.map(|last| last.oldest).or(oldest);
        }
        let needed = oldest.filter(|oldest| *oldest < needs.first())?;
        Some(format!("it needs segment {needed}, and begins with {}", needs.first()))
    }

    /// Notes what is wrong with an object. A place that cannot be reached is no fault of an object.
    fn note(
        &mut self,
        name: &str,
        error: ArchiveError,
        marks: Vec<u64>,
    ) -> Result<(), ArchiveError> {
        let (what, is_newer) = match error {
            ArchiveError::Damaged { what, .. } => (what, false),
            ArchiveError::Newer { what, .. } => (what, true),
            other => return Err(other),
        };
        let fault = Fault { name: name.to_owned(), what, is_newer, marks: Vec::new() };
        let fault = self.faults.entry(name.to_owned()).or_insert(fault);
        fault.marks.extend(marks);
        fault.marks.sort_unstable();
        fault.marks.dedup();
        Ok(())
    }
}

/// Says how a segment does not go on where the one before it ends.
fn gap(before: &RawWalk, header: &RawHeader) -> String {
    format!(
        "segment {} goes on after offset {} with commit {}, and the one before it ends at {} \
         before commit {}",
        header.number,
        header.previous_end,
        header.first_lsn,
        before.end,
        before.next_lsn()
    )
}

/// The object that a part begins in.
fn beginning(part: &Part) -> (u64, u32) {
    part.objects.first().map_or((0, 0), |run| (run.first, run.object))
}

/// A segment that some mark names.
fn wanted(marks: &[Mark], (line, shard, segment): Key) -> Wanted {
    let of_line = marks.iter().find(|mark| mark.line == line);
    Wanted { line, shard, shards: of_line.map_or(0, |mark| mark.shards.len()), segment }
}

/// The marks that need a whole segment.
fn needing(marks: &[Mark], (line, shard, segment): Key) -> Vec<u64> {
    let needs = |mark: &&Mark| {
        mark.line == line && mark.shards.get(shard).is_some_and(|it| it.has_whole(segment))
    };
    marks.iter().filter(needs).map(|mark| mark.number).collect()
}

/// Whether a part begins as another one does that is at least as long.
fn begins(longest: &Part, part: &Part) -> bool {
    let count = part.count_objects();
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    count <= longest.count_objects() && part.each_object().eq(longest.each_object().take(most))
}

/// Whether a part has pieces in an object.
fn has_object(part: &Part, (mark, object): (u64, u32)) -> bool {
    let has = |run: &Objects| run.object == object && (run.first..=run.last).contains(&mark);
    part.objects.iter().any(has)
}

/// Checks the next bytes of a segment, which begin with its header if nothing was checked before.
fn walk_on(
    walker: Option<Walker>,
    wanted: &Wanted,
    name: &str,
    more: &[u8],
) -> Result<Walker, ArchiveError> {
    let unfit = |error: StoreError| ArchiveError::of_segment(name, error);
    let (mut walker, commits) = if let Some(walker) = walker {
        (walker, more)
    } else {
        let (header, commits) = more.split_at(more.len().min(HEADER_BYTES));
        let begun = Walker::begin(name, header).map_err(unfit)?;
        wanted.check_header(name, &begun.walk().header)?;
        (begun, commits)
    };
    walker.push(name, commits, &mut |_| {}).map_err(unfit)?;
    if walker.walk().last.is_none() {
        return Err(ArchiveError::damaged(name, "it holds no commit"));
    }
    Ok(walker)
}

/// The object that is not as it should be.
fn name_of(error: &ArchiveError) -> Option<String> {
    match error {
        ArchiveError::Damaged { name, .. } | ArchiveError::Newer { name, .. } => Some(name.clone()),
        _ => None,
    }
}
