//! Which marks a place has, and which of them has the state at a moment.
//!
//! The newest mark is found by two listings, whose order does not matter. Others are read one after
//! the other, newest first, as far as is necessary. What the objects of a mark hold is not read.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use pinpriq_proto::time::{Span, Timestamp};

use crate::error::ArchiveError;
use crate::line::{Line, Parent, lines};
use crate::mark::{By, Knows, Mark};
use crate::names::{self, LineId, MARKS, mark_in, number_of};
use crate::place::Place;

/// The marks of a place. What others add while this is used is not seen.
pub struct Catalogue<'a> {
    place: &'a dyn Place,
    /// The blocks that were not listed yet, newest last.
    blocks: Vec<u64>,
    /// The numbers in the blocks that were listed, newest first.
    numbers: Vec<u64>,
    damage: Vec<ArchiveError>,
}

/// Which moment is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// The newest.
    Latest,
    /// This one. If it has not come yet, that is the newest.
    At(Timestamp),
    /// This long before the newest moment that was archived of the line.
    Before(Span),
}

/// Why it is this moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// It was asked for.
    Exact,
    /// It is the newest.
    Latest,
    /// What was asked for lies in a gap, and this is the last moment before it.
    BeforeGap,
}

/// The moment that can be restored, and from what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The mark that has its state.
    pub mark: Mark,
    /// The moment: every commit up to it counts, and none after it.
    pub until: Timestamp,
    /// Why it is this one.
    pub why: Why,
}

/// What a place has of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineSummary {
    /// Which line it is.
    pub line: LineId,
    /// Where it comes from, if it was restored.
    pub parent: Option<Parent>,
    /// When it was first seen in this place.
    pub made: Timestamp,
    /// How many shards it has.
    pub shards: usize,
    /// How many marks it has.
    pub marks: u64,
    /// The number of the newest of them. A line that was restored and never backed up has none.
    pub newest_mark: Option<u64>,
    /// What wrote the newest of them.
    pub by: Option<By>,
    /// From when to when any moment can be restored, oldest first.
    pub ranges: Vec<Range>,
}

/// Moments without a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The first moment.
    pub from: Timestamp,
    /// The last moment.
    pub to: Timestamp,
    /// How many marks have them.
    pub marks: u64,
}

/// The highest that a place knows of any line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Highest {
    /// For each shard.
    pub shards: Vec<Knows>,
    /// The latest moment.
    pub latest: Timestamp,
    /// How many marks that are newer than what was read, and how many lines, are damaged. They may
    /// have known more.
    pub lost: u64,
}

impl<'a> Catalogue<'a> {
    /// Looks which marks there are. Refuses a place without any.
    pub fn read(place: &'a dyn Place) -> Result<Self, ArchiveError> {
        let mut catalogue = Self::look(place)?;
        if catalogue.newest_number()?.is_none() {
            return Err(ArchiveError::Empty { place: place.name() });
        }
        Ok(catalogue)
    }

    /// Looks which marks there are, if any.
    pub(crate) fn look(place: &'a dyn Place) -> Result<Self, ArchiveError> {
        let listing = place.list(MARKS)?;
        let mut blocks: Vec<u64> = listing.prefixes.iter().filter_map(|it| number_of(it)).collect();
        blocks.sort_unstable();
        Ok(Self { place, blocks, numbers: Vec::new(), damage: Vec::new() })
    }

    /// Reads the newest mark, whatever its line.
    pub fn newest(&mut self) -> Result<Mark, ArchiveError> {
        let newest = self.newest_if_any()?;
        newest.ok_or_else(|| ArchiveError::Empty { place: self.place.name() })
    }

    /// Reads the newest mark, if there is any.
    pub(crate) fn newest_if_any(&mut self) -> Result<Option<Mark>, ArchiveError> {
        self.find(&mut |_| true)
    }

    /// Reads the newest mark of a line, if there is any. Refuses if a newer mark is damaged, since
    /// it could be of this line.
    pub(crate) fn newest_of(&mut self, line: LineId) -> Result<Option<Mark>, ArchiveError> {
        self.find(&mut |mark| mark.line == line)
    }

    fn find(
        &mut self,
        is_wanted: &mut dyn FnMut(&Mark) -> bool,
    ) -> Result<Option<Mark>, ArchiveError> {
        let mut found = None;
        self.each_sound(&mut |mark| {
            if !is_wanted(&mark) {
                return ControlFlow::Continue(());
            }
            found = Some(mark);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Passes on every mark, newest first, until `each` has enough. Refuses one that is damaged.
    pub(crate) fn each_sound(
        &mut self,
        each: &mut dyn FnMut(Mark) -> ControlFlow<()>,
    ) -> Result<(), ArchiveError> {
        let mut damage = None;
        self.each(&mut |_, mark| match mark {
            Ok(mark) => each(mark),
            Err(error) => {
                damage = Some(error);
                ControlFlow::Break(())
            }
        })?;
        damage.map_or(Ok(()), Err)
    }

    /// Passes on every mark, newest first, until `each` has enough. One that is damaged is passed
    /// on as what is wrong with it. One that was removed meanwhile is left out.
    pub(crate) fn each(
        &mut self,
        each: &mut dyn FnMut(u64, Result<Mark, ArchiveError>) -> ControlFlow<()>,
    ) -> Result<(), ArchiveError> {
        let mut index = 0;
        while let Some(number) = self.number_at(index)? {
            let name = names::mark(number);
            if let Some(bytes) = self.place.get(&name)? {
                let mark = Mark::decode(&name, &bytes).and_then(|mark| {
                    let is_it = mark.number == number;
                    let other = || ArchiveError::damaged(&name, "it says that it is another mark");
                    is_it.then_some(mark).ok_or_else(other)
                });
                if each(number, mark).is_break() {
                    return Ok(());
                }
            }
            index += 1;
        }
        Ok(())
    }

    /// The number of the newest mark, if there is any. Reads none.
    pub(crate) fn newest_number(&mut self) -> Result<Option<u64>, ArchiveError> {
        self.number_at(0)
    }

    /// The numbers of the newest marks, newest first: those in two blocks, and at most so many.
    pub(crate) fn recent(&mut self, most: usize) -> Result<Vec<u64>, ArchiveError> {
        self.newest_number()?;
        if self.numbers.len() < most {
            self.number_at(self.numbers.len())?;
        }
        Ok(self.numbers.iter().take(most).copied().collect())
    }

    /// The number of a mark, counted from the newest. Lists what was not listed yet.
    fn number_at(&mut self, index: usize) -> Result<Option<u64>, ArchiveError> {
        while index >= self.numbers.len() {
            let Some(block) = self.blocks.pop() else { return Ok(None) };
            let listing = self.place.list(&names::mark_block(block))?;
            let numbers = listing.objects.iter().filter_map(|(name, _)| mark_in(block, name));
            let mut numbers: Vec<u64> = numbers.collect();
            numbers.sort_unstable_by(|one, other| other.cmp(one));
            self.numbers.extend(numbers);
        }
        Ok(self.numbers.get(index).copied())
    }

    /// Chooses the moment to restore, and the mark that has its state. Without a line, it is that
    /// of the newest mark.
    pub fn choose(&mut self, line: Option<LineId>, until: Until) -> Result<Choice, ArchiveError> {
        let mut search = Search { line, until, wanted: None, first: None, damage: None };
        let mut choice = None;
        self.each(&mut |_, mark| match search.look(mark) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(found) => {
                choice = found;
                ControlFlow::Break(())
            }
        })?;
        search.conclude(choice, &self.place.name())
    }

    /// Reads every mark and returns the lines, that of the newest mark last. Marks that are damaged
    /// are left out: see [`Catalogue::damage`].
    pub fn lines(&mut self) -> Result<Vec<LineSummary>, ArchiveError> {
        let mut found: BTreeMap<LineId, LineSummary> = BTreeMap::new();
        let mut damage = Vec::new();
        self.each(&mut |_, mark| {
            match mark {
                Ok(mark) => {
                    let line = found.entry(mark.line);
                    line.or_insert_with(|| LineSummary::empty(mark.line)).add_older(&mark);
                }
                Err(error) => damage.push(error),
            }
            ControlFlow::Continue(())
        })?;
        for line in lines(self.place)? {
            match Line::read(self.place, line) {
                Ok(Some(known)) => {
                    let summary = found.entry(line).or_insert_with(|| LineSummary::empty(line));
                    summary.parent = known.parent;
                    summary.made = Timestamp::from_ms(known.made_at_ms);
                    summary.shards = known.shards();
                }
                Ok(None) => {}
                Err(error @ ArchiveError::Place(_)) => return Err(error),
                Err(error) => damage.push(error),
            }
        }
        self.damage = damage;
        let mut lines: Vec<LineSummary> = found.into_values().collect();
        for line in &mut lines {
            line.ranges.reverse();
        }
        lines.sort_by_key(|line| (line.newest_mark, line.made));
        Ok(lines)
    }

    /// What [`Catalogue::lines`] left out because it was damaged.
    #[must_use]
    pub fn damage(&self) -> &[ArchiveError] {
        &self.damage
    }
}

impl LineSummary {
    const fn empty(line: LineId) -> Self {
        Self {
            line,
            parent: None,
            made: Timestamp::ZERO,
            shards: 0,
            marks: 0,
            newest_mark: None,
            by: None,
            ranges: Vec::new(),
        }
    }

    /// Adds a mark that is older than those before. The ranges are newest first meanwhile.
    fn add_older(&mut self, mark: &Mark) {
        self.marks += 1;
        self.newest_mark.get_or_insert(mark.number);
        self.by.get_or_insert(mark.by);
        self.shards = mark.shards.len();
        let (from, to) = (mark.since(), mark.at());
        match self.ranges.last_mut() {
            Some(later) if to >= later.from => {
                (later.from, later.to) = (later.from.min(from), later.to.max(to));
                later.marks += 1;
            }
            _ => self.ranges.push(Range { from, to, marks: 1 }),
        }
    }
}

/// The search for the mark that has the state at a moment.
struct Search {
    line: Option<LineId>,
    until: Until,
    /// The moment, once the newest mark of the line is known.
    wanted: Option<Timestamp>,
    /// The first moment so far that can be restored.
    first: Option<Timestamp>,
    /// The first mark that is damaged, if there is one.
    damage: Option<ArchiveError>,
}

impl Search {
    /// Looks at the next mark, newest first. Ends with what was found, or with nothing if that
    /// cannot be known.
    fn look(&mut self, mark: Result<Mark, ArchiveError>) -> ControlFlow<Option<Choice>> {
        let mark = match mark {
            Ok(mark) => mark,
            Err(error) => {
                self.damage.get_or_insert(error);
                // Only the newest mark says what is the newest, and whose.
                let needs_newest = self.line.is_none() || !matches!(self.until, Until::At(_));
                return if self.wanted.is_none() && needs_newest {
                    ControlFlow::Break(None)
                } else {
                    ControlFlow::Continue(())
                };
            }
        };
        if *self.line.get_or_insert(mark.line) != mark.line {
            return ControlFlow::Continue(());
        }
        let is_newest = self.wanted.is_none();
        let wanted = *self.wanted.get_or_insert_with(|| match self.until {
            Until::Latest => mark.at(),
            Until::At(moment) => moment,
            Until::Before(span) => Timestamp::from_ms(mark.at_ms.saturating_sub(span.ms())),
        });
        let since = mark.since();
        self.first = Some(self.first.map_or(since, |first| first.min(since)));
        let why = if is_newest && (self.until == Until::Latest || wanted > mark.at()) {
            Why::Latest
        } else if wanted > mark.at() {
            Why::BeforeGap
        } else if wanted >= mark.since() {
            Why::Exact
        } else {
            return ControlFlow::Continue(());
        };
        ControlFlow::Break(Some(Choice { until: wanted.min(mark.at()), mark, why }))
    }

    fn conclude(self, choice: Option<Choice>, place: &str) -> Result<Choice, ArchiveError> {
        // A mark that is damaged might have what was asked for, or something newer.
        match (choice, self.damage) {
            (Some(choice), None) => Ok(choice),
            (Some(choice), Some(_)) if choice.why == Why::Exact => Ok(choice),
            (_, Some(damage)) => Err(damage),
            (None, None) => Err(match (self.line, self.first) {
                (Some(line), Some(first)) => ArchiveError::BeforeFirst { line, first },
                (Some(line), None) => ArchiveError::NoLine { place: place.to_owned(), line },
                (None, _) => ArchiveError::Empty { place: place.to_owned() },
            }),
        }
    }
}

/// Returns the highest that the place knows of any line, also of those that were restored from it
/// and never came back. Passes over what is damaged, and counts it. Refuses a newer format.
pub fn highest(place: &dyn Place) -> Result<Highest, ArchiveError> {
    let (mut newest, mut lost) = (Err(ArchiveError::Empty { place: place.name() }), 0);
    Catalogue::read(place)?.each(&mut |_, mark| {
        newest = mark;
        if matches!(newest, Err(ArchiveError::Damaged { .. })) {
            lost += 1;
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(())
    })?;
    let newest = newest?;
    let mut shards = newest.highest;
    for line in lines(place)? {
        let known = match Line::read(place, line) {
            Ok(Some(known)) => known,
            Ok(None) => continue,
            Err(ArchiveError::Damaged { .. }) => {
                lost += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        for (shard, start) in shards.iter_mut().zip(known.starts) {
            *shard = shard.and(start);
        }
    }
    Ok(Highest { shards, latest: Timestamp::from_ms(newest.latest_ms), lost })
}
