//! One server's end of an archive: it sends what is new of cut after cut, and a mark for each.
//!
//! It begins as a backup does: it looks at the place, and refuses the same. Then it only adds.
//! What is new of a cut becomes a draft (`stream`), which a thread sends (`sending`) while the next
//! cut is taken, and marks are created in the order of their cuts. What goes wrong ends all drafts
//! that are under way; the next offer looks at the place anew. Marks that a later one stands for
//! are removed after a while (`thinning`). Now and then [`scrub`](scrub()) compares both sides.
//!
//! When cuts are taken, how often, and what is done about trouble is the business of the caller.
//! No clock is read here, and no socket opened.

mod scrub;
mod sending;
mod stream;
mod thinning;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pinpriq_proto::time::{Span, Timestamp};

use crate::backup::ground::{Ground, id};
use crate::backup::{send, write_mark};
use crate::catalogue::Catalogue;
use crate::error::ArchiveError;
use crate::mark::{By, Mark};
use crate::names;
use crate::ours::{Ours, rival};
use crate::place::Place;
use crate::source::{CutInfo, SegmentEnd, Source};

pub use self::scrub::scrub;
use self::sending::{Draft, Failed, Flow};
use self::stream::Stream;
use self::thinning::Thinning;

/// A server that was stopped for longer than this looks whether another has written meanwhile. The
/// numbers of the other's marks may be free again, but only later: see `thinning`.
const STOPPED: Span = Span::from_ms(300_000);

/// How many marks of earlier processes are looked at, so that they can be thinned too.
const EARLIER_MAX: usize = 600;

/// How long it waits at a time for drafts.
const PATIENCE: Duration = Duration::from_secs(1);

/// One server's end of an archive.
///
/// Holds one segment in memory while it reads, objects of 32 MiB together, or one, which are being
/// sent, and up to 32 MiB of pieces that belong to segments which are not full yet.
pub struct Archiver {
    place: Arc<dyn Place>,
    /// What the next draft goes on from. None: look at the place first.
    stream: Option<Stream>,
    flow: Flow,
    ours: Ours,
    /// The newest mark that was created.
    newest: Option<Mark>,
    thinning: Thinning,
    /// Marks of which the caller was not told yet.
    concluded: VecDeque<Concluded>,
    /// Why a draft failed, if the caller was not told yet.
    failure: Option<ArchiveError>,
}

/// What became of an offer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offered {
    /// Nothing is new since the last offer, and nothing was sent.
    Nothing,
    /// It is being sent, or was.
    Sending,
}

/// A mark that was created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Concluded {
    /// What the caller gave with its cut.
    pub token: u64,
    /// The number of the mark.
    pub mark: u64,
    /// Every commit up to this moment is there.
    pub at: Timestamp,
    /// How many objects were written, besides the mark.
    pub objects: u64,
    /// How many bytes of segments were read for them.
    pub bytes_read: u64,
    /// How many bytes the objects have.
    pub bytes_sent: u64,
}

impl Archiver {
    /// Creates one that has looked at nothing yet.
    #[must_use]
    pub fn new(place: Arc<dyn Place>) -> Self {
        let ours = Ours::default();
        Self {
            flow: Flow::new(Arc::clone(&place), ours.wholes()),
            place,
            stream: None,
            ours,
            newest: None,
            thinning: Thinning::default(),
            concluded: VecDeque::new(),
            failure: None,
        }
    }

    /// Sends what is new of a cut, which is later than those before. `token` is the caller's own.
    ///
    /// The first time, and after a failure, it looks at the place as
    /// [`back_up`](crate::backup::back_up()) does, sends all that is missing, and returns when the
    /// mark is there. Later it reads only what is new, hands it to a thread, and returns. It waits
    /// while four drafts are under way.
    ///
    /// A failure of an earlier draft may be told here or by [`Archiver::concluded`].
    pub fn offer(&mut self, source: &mut dyn Source, token: u64) -> Result<Offered, ArchiveError> {
        self.collect(Duration::ZERO);
        self.tell_failure()?;
        if self.stream.as_ref().is_some_and(|stream| stream.is_at(source.cut())) {
            return Ok(Offered::Nothing);
        }
        if self.was_overtaken(source.cut())? {
            self.stream = None;
        }
        let Some(mut stream) = self.stream.take() else { return self.begin(source, token) };
        let Some(post) = self.flow.begin()? else {
            self.collect(Duration::ZERO);
            self.tell_failure()?;
            return Err(look_again("what was under way has ended"));
        };
        let drafted = stream.draft(source, &*self.place, &mut |parcel| post.send(parcel));
        match drafted {
            Ok(drafted) => {
                self.ours.note(&drafted.mark);
                if !self.flow.has_obsolete() {
                    self.flow.remove(self.thinning.due());
                }
                post.conclude(Draft { token, drafted });
                self.stream = Some(stream);
                Ok(Offered::Sending)
            }
            Err(error) => {
                // What was drafted before is sound, and may still arrive.
                while matches!(error, ArchiveError::Source(_)) && self.flow.under_way() > 1 {
                    self.collect(PATIENCE);
                }
                // If a thread has failed, that is the reason.
                drop(post);
                self.collect(Duration::ZERO);
                self.flow.give_up();
                Err(self.failure.take().unwrap_or(error))
            }
        }
    }

    /// Returns the marks that were created since, in order. If there is none yet, and some are
    /// under way, it waits up to `within` for one.
    ///
    /// A failure is told after the marks that came before it. It has given up all that was under
    /// way, and the next offer looks at the place anew.
    pub fn concluded(&mut self, within: Duration) -> Result<Vec<Concluded>, ArchiveError> {
        let knows_any = !self.concluded.is_empty() || self.failure.is_some();
        self.collect(if knows_any { Duration::ZERO } else { within });
        if self.concluded.is_empty() {
            self.tell_failure()?;
        }
        Ok(self.concluded.drain(..).collect())
    }

    /// How many drafts are under way: offered, and neither concluded nor given up.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.flow.under_way()
    }

    /// Looks whether the newest mark of this archiver is still there. If it is not, the next offer
    /// begins anew with all that the place lacks. If the newest mark of the place is another's, the
    /// next offer looks at the place anew, and refuses to go on if it must.
    pub fn look(&mut self) -> Result<bool, ArchiveError> {
        self.collect(Duration::ZERO);
        let Some(newest) = &self.newest else { return Ok(true) };
        let found = self.place.get(&names::mark(newest.number))?;
        if found.is_some_and(|found| found == newest.encode()) {
            if self.is_newest_anothers()? {
                self.flow.give_up();
                self.stream = None;
            }
            return Ok(true);
        }
        self.flow.give_up();
        (self.stream, self.newest) = (None, None);
        self.forget_marks();
        Ok(false)
    }

    /// The newest mark that was created: everything up to its moment is there.
    #[must_use]
    pub const fn newest(&self) -> Option<&Mark> {
        self.newest.as_ref()
    }

    /// How many bytes of a cut are not there yet, as far as the newest mark says.
    #[must_use]
    pub fn missing_bytes(&self, cut: &CutInfo) -> u64 {
        let missing = |(shard, segment): (usize, &SegmentEnd)| {
            let known = self.newest.as_ref().and_then(|mark| mark.shards.get(shard));
            let Some(known) = known else { return segment.bytes };
            if known.has_whole(id(segment)) {
                return 0;
            }
            let part = known.parts.iter().find(|part| part.segment() == id(segment));
            segment.bytes.saturating_sub(part.map_or(0, |part| part.bytes))
        };
        let shards = cut.shards.iter().enumerate();
        shards.flat_map(|(shard, all)| all.iter().map(move |it| (shard, it))).map(missing).sum()
    }

    /// Whether the place lets marks be removed, as far as is known. If it does not, it keeps one
    /// for each cut that had something new.
    #[must_use]
    pub const fn may_remove(&self) -> bool {
        self.thinning.may_remove()
    }

    /// Sends a first cut, or the first one after trouble.
    fn begin(&mut self, source: &mut dyn Source, token: u64) -> Result<Offered, ArchiveError> {
        // What is on its way could still be created after this has looked.
        for done in self.flow.renew() {
            self.note_created(&done.drafted.mark);
        }
        let place = Arc::clone(&self.place);
        let ground = Ground::look(source, &*place, Some(&self.ours))?;
        let earlier = self.find_earlier()?;
        let newest = self.newest.as_ref();
        if newest.is_none_or(|newest| newest.number >= ground.next_mark()) {
            // Marks were removed by others, and their numbers come again.
            self.forget_marks();
        }
        let sent = send(source, &*place, &ground, &mut |_| {})?;
        let stream = Stream::after(sent.mark.clone(), ground.cut, &*place)?;
        self.ours.note(&sent.mark);
        write_mark(&*place, &sent.mark)?;
        self.note_created(&sent.mark);
        if !earlier.is_empty() {
            self.flow.read(earlier);
        }
        self.concluded.push_back(Concluded {
            token,
            mark: sent.mark.number,
            at: sent.mark.at(),
            objects: sent.objects,
            bytes_read: sent.bytes_read,
            bytes_sent: sent.bytes_written,
        });
        self.stream = Some(stream);
        Ok(Offered::Sending)
    }

    /// Whether another server may have written while this one was stopped.
    fn was_overtaken(&self, cut: &CutInfo) -> Result<bool, ArchiveError> {
        let Some(newest) = &self.newest else { return Ok(false) };
        if newest.at().after(STOPPED) >= cut.at {
            return Ok(false);
        }
        self.is_newest_anothers()
    }

    /// Whether the newest mark of the place is none that this archiver has drafted. Says no if the
    /// next offer looks at the place anyway.
    fn is_newest_anothers(&self) -> Result<bool, ArchiveError> {
        let Some((stream, newest)) = self.stream.as_ref().zip(self.newest.as_ref()) else {
            return Ok(false);
        };
        let found = Catalogue::look(&*self.place)?.newest_number()?;
        let own = newest.number..=stream.number();
        Ok(!found.is_some_and(|found| own.contains(&found)))
    }

    /// The numbers of marks that an earlier process may have left, newest last. They are looked for
    /// once, and in two listings of a thousand at most.
    fn find_earlier(&self) -> Result<Vec<u64>, ArchiveError> {
        if self.ours.has_written() || !self.thinning.may_remove() {
            return Ok(Vec::new());
        }
        let mut numbers = Catalogue::look(&*self.place)?.recent(EARLIER_MAX)?;
        numbers.reverse();
        Ok(numbers)
    }

    fn forget_marks(&mut self) {
        self.thinning.forget();
        self.flow.forget_marks();
    }

    /// Takes note of what the threads have done. Waits for it up to `within`.
    fn collect(&mut self, within: Duration) {
        let collected = self.flow.collect(within);
        for done in collected.done {
            self.note_created(&done.drafted.mark);
            self.concluded.push_back(Concluded {
                token: done.token,
                mark: done.drafted.mark.number,
                at: done.drafted.mark.at(),
                objects: done.drafted.objects,
                bytes_read: done.drafted.bytes_read,
                bytes_sent: done.drafted.bytes_sent,
            });
        }
        let line = self.newest.as_ref().map(|newest| newest.line);
        for mark in &collected.earlier {
            if mark.by == By::Serve && Some(mark.line) == line {
                self.thinning.note(mark);
            }
        }
        if collected.is_denied {
            self.thinning.end();
        }
        if let Some(failed) = collected.failed {
            self.flow.give_up();
            self.stream = None;
            let error = match failed {
                Failed::Of(error) => error,
                Failed::Taken(number) => self.judge(number).unwrap_or_else(|error| error),
            };
            self.failure = Some(error);
        }
    }

    /// Tells why a draft has failed, once.
    fn tell_failure(&mut self) -> Result<(), ArchiveError> {
        self.failure.take().map_or(Ok(()), Err)
    }

    fn note_created(&mut self, mark: &Mark) {
        self.ours.settle(mark);
        self.thinning.note(mark);
        self.newest = Some(mark.clone());
    }

    /// Says what it means that the number of a mark, or the name of an object of it, is taken.
    fn judge(&self, number: u64) -> Result<ArchiveError, ArchiveError> {
        let name = names::mark(number);
        let Some(bytes) = self.place.get(&name)? else {
            return Ok(look_again("a draft that failed has left objects"));
        };
        let found = Mark::decode(&name, &bytes)?;
        if self.ours.has(&found) {
            return Ok(look_again("the answer about a mark was lost, and it is there"));
        }
        let Some(newest) = &self.newest else { return Ok(look_again("a mark is there")) };
        // An earlier start of this server may have left one on its way. Of a backup of this server
        // that has come in between, the next look decides.
        let is_earlier = found.shards.len() == newest.shards.len()
            && found
                .shards
                .iter()
                .zip(&newest.shards)
                .all(|(found, own)| found.incarnation < own.incarnation);
        if found.line == newest.line && (is_earlier || found.by == By::Backup) {
            return Ok(look_again("an earlier start or a backup has written a mark meanwhile"));
        }
        Ok(rival(&*self.place, &found))
    }
}

/// What is in the place is not what was expected, for which there is a harmless reason.
fn look_again(what: &str) -> ArchiveError {
    ArchiveError::LookAgain { what: what.to_owned() }
}
