//! A data directory that follows an archive: a warm standby, which gets what a server archives.
//!
//! A round looks for a newer mark of the line and adds what the directory lacks of it. Between two
//! rounds the directory has the state of one mark, whenever the process ends. When a server is
//! started on the directory, `pinpriq_store::restore` makes it one of its own, and it follows no
//! more. When rounds are made, and what is told of them, is not decided here.

mod applying;
mod numbers;
mod objects;
mod search;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::StoreError;
use pinpriq_store::journal::raw::Walker;
use pinpriq_store::layout::{Following, FollowingShard, FollowingStart, Phase};
use pinpriq_store::reshard::DirectoryError;
use pinpriq_store::restore::Standby;

use crate::error::ArchiveError;
use crate::mark::Mark;
use crate::names::{self, LineId, SegmentId};
use crate::place::{Place, PlaceError};
use crate::progress::Progress;

use self::numbers::{Chosen, Numbers};
use self::search::Found;

/// How often the marks are listed, although the next number is not there: marks in between may have
/// been removed.
const LIST_EVERY: Span = Span::from_ms(60_000);

/// A data directory that follows a line of an archive.
pub struct Follower<'a> {
    place: &'a dyn Place,
    data: PathBuf,
    /// The line that was asked for.
    asked: Option<LineId>,
    /// The directory, once it follows.
    standby: Option<Standby>,
    /// Segments that grow, as far as they were checked, by their shard.
    walkers: BTreeMap<(usize, SegmentId), Walker>,
    /// When the marks were listed, unless a round failed since.
    listed: Option<Timestamp>,
    /// What became of the numbers of the directory.
    numbers: Numbers,
}

/// What a round needs to know.
pub struct Turn<'a> {
    /// What the clock says.
    pub now: Timestamp,
    /// A random number. The directory gets it, if it needs one.
    pub drawn: u64,
    /// Whether to end soon. It is asked between segments.
    pub stops: &'a dyn Fn() -> bool,
    /// Is told how many segments of the new mark are here.
    pub progress: &'a mut dyn FnMut(Progress),
}

/// What has come of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Round {
    /// Nothing was new.
    Same,
    /// The directory has the state of a newer mark.
    New {
        /// How many bytes of segments were written for it.
        bytes: u64,
    },
    /// It was stopped, and the directory has the state of before.
    Stopped,
    /// Another line comes from this one, and has a newer mark: somebody has restored it and gone
    /// on. There is nothing to follow any more.
    Ended {
        /// The other line.
        by: LineId,
    },
}

/// How far a directory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Followed {
    /// The line that it follows.
    pub line: LineId,
    /// Its own line, once a server has gone on from it.
    pub own: LineId,
    /// The mark whose state it has. 0 if it has none yet.
    pub mark: u64,
    /// The moment of that.
    pub at: Timestamp,
}

impl<'a> Follower<'a> {
    /// Prepares to follow with a directory: one that does so already, or one that is empty or not
    /// there. Asks the place for nothing yet. Nobody else can use a directory that follows.
    ///
    /// Without a line, an empty directory follows that of the newest mark. Refuses another line
    /// than the directory follows, and any other directory.
    pub fn open(
        place: &'a dyn Place,
        data: &Path,
        line: Option<LineId>,
    ) -> Result<Self, ArchiveError> {
        let standby = Standby::open(data)?;
        if let Some((known, asked)) = standby.as_ref().map(Standby::known).zip(line)
            && known.line != asked.0
        {
            let followed = LineId(known.line);
            let what = format!(
                "it follows line {followed}, and line {asked} was asked for: give an empty \
                 directory"
            );
            let source = StoreError::Mixed { what };
            return Err(DirectoryError { directory: data.to_owned(), source }.into());
        }
        Ok(Self {
            place,
            data: data.to_owned(),
            asked: line,
            standby,
            walkers: BTreeMap::new(),
            listed: None,
            numbers: Numbers::default(),
        })
    }

    /// How far the directory is. None if it is still empty.
    #[must_use]
    pub fn followed(&self) -> Option<Followed> {
        let known = self.standby.as_ref()?.known();
        Some(Followed {
            line: LineId(known.line),
            own: LineId(known.number),
            mark: known.mark,
            at: known.at(),
        })
    }

    /// Why the place was not told of the directory, if it does not allow that: since this process
    /// began. Then backups of it there will be refused.
    #[must_use]
    pub const fn unannounced(&self) -> Option<&PlaceError> {
        self.numbers.denied.as_ref()
    }

    /// Looks for a newer mark, and brings the directory to its state. Blocks until that is on the
    /// disk. Holds one segment in memory, and objects of some 64 MiB.
    ///
    /// After a failure the directory has the state of before, and the next round begins anew. After
    /// one of the directory itself ([`ArchiveError::Directory`]) there must be none.
    pub fn round(&mut self, turn: &mut Turn<'_>) -> Result<Round, ArchiveError> {
        let round = self.attempt(turn);
        if round.is_err() {
            self.listed = None;
        }
        round
    }

    fn attempt(&mut self, turn: &mut Turn<'_>) -> Result<Round, ArchiveError> {
        let (line, known) = match &self.standby {
            Some(standby) => (Some(LineId(standby.known().line)), standby.known().mark),
            None => (self.asked, 0),
        };
        let is_due = |listed: Timestamp| listed.after(LIST_EVERY) <= turn.now;
        let lists = known == 0 || self.listed.is_none_or(is_due);
        let Found { mark, went_on } = search::newer(self.place, (line, known), lists)?;
        if lists {
            self.listed = Some(turn.now);
        }
        let bytes = match mark {
            None => None,
            Some(mark) => {
                let Some(bytes) = self.apply(&mark, turn)? else { return Ok(Round::Stopped) };
                Some(bytes)
            }
        };
        Ok(match (went_on, bytes) {
            (Some(by), _) => Round::Ended { by },
            (None, Some(bytes)) => Round::New { bytes },
            (None, None) => Round::Same,
        })
    }

    /// Brings the directory to the state of a mark. Returns how many bytes were written, or nothing
    /// if it was stopped.
    fn apply(&mut self, mark: &Mark, turn: &mut Turn<'_>) -> Result<Option<u64>, ArchiveError> {
        if self.standby.is_none() {
            let known = self.beginning(mark, turn)?;
            self.standby = Some(Standby::begin(&self.data, known)?);
        }
        let place = self.place;
        let Self { standby: Some(standby), walkers, numbers, .. } = self else {
            return Ok(None);
        };
        if standby.known().shards.len() != mark.shards.len() {
            let name = names::mark(mark.number);
            return Err(ArchiveError::damaged(&name, "the line had another number of shards"));
        }
        // Before anything of it is here, so that no state is ever beyond the numbers.
        numbers.keep_ahead(place, standby, mark, turn)?;
        applying::apply(place, standby, walkers, mark, turn)
    }

    /// What an empty directory knows. The place is told of it.
    fn beginning(&mut self, mark: &Mark, turn: &Turn<'_>) -> Result<Following, ArchiveError> {
        let Chosen { number, starts } = self.numbers.begin(self.place, mark, turn)?;
        let shard = |start| FollowingShard {
            start,
            highest: FollowingStart::default(),
            segments: Vec::new(),
            ahead: Vec::new(),
        };
        Ok(Following {
            format: Following::FORMAT,
            phase: Phase::Following,
            place: self.place.name(),
            line: mark.line.0,
            number,
            mark: 0,
            at_ms: 0,
            shards: starts.into_iter().map(shard).collect(),
        })
    }
}
