//! Copies what a log holds, and fills a log with what something else holds, for tools.
//!
//! [`read_until`] reads the beginning of a log whose owner may be at work. [`Filling`] writes a
//! whole state into a log. Where the state comes from and goes to, and which logs belong together,
//! is decided elsewhere.

use crate::{StoreError, Urgency};
use pinpriq_proto::change::{Change, Header, Place};

use crate::ledger::accounts::Accounts;
use crate::ledger::interface::{
    Answer, Call, Ledger, Seized, Seq, Tenure, Term, Trimmed, Unreachable,
};
use crate::ledger::reader::Reader;
use crate::ledger::running::Running;
use crate::ledger::store::{LedgerOptions, Loading, PATIENCE, ask, read, seize};
use crate::ledger::watermark::Watermark;

/// How many bytes wait before they are written.
const WRITE_BYTES: u64 = 4 << 20;

/// Reads a log from its first entry that is kept to `head`, and passes every change that counts
/// then to `sink`, oldest first. Both must have been found at the same time. Returns the highest
/// term, the latest moment and the highest number in it.
///
/// Seizes nothing, and the owner of the log may go on meanwhile. Returns none if it has removed
/// entries that were not read yet: then the sink must forget what it has, and the log be read again
/// with a later head. A batch whose end is behind `head` does not count. Refuses a damaged log.
/// Costs one pass over the log, and blocks for as long as the engine takes.
pub fn read_until(
    ledger: &mut dyn Ledger,
    (first, head): (Seq, Seq),
    sink: &mut dyn FnMut(Change, Option<Place>),
) -> Result<Option<Header>, StoreError> {
    let mut loading = Loading::new(Header::default(), sink);
    let mut reader = Reader::default();
    let mut next = first;
    while next <= head {
        let entries = read(ledger, next)?;
        if entries.is_empty() {
            return Ok(None);
        }
        for (seq, bytes) in entries {
            next = Seq(seq.0 + 1);
            if seq <= head {
                reader.take(seq, &bytes)?.into_iter().try_for_each(|it| loading.take(it))?;
            }
        }
    }
    Ok(Some(Header { incarnation: reader.term().0, ..loading.loaded.header }))
}

/// A log that was seized in order to fill it. Nothing can be written by anybody else, and nothing
/// is written by this one once another writer has seized the log.
pub struct Filling {
    ledger: Box<dyn Ledger>,
    seized: Seized,
}

impl Filling {
    /// Seizes a log, with a term of at least `at_least`. Changes nothing in it. Blocks.
    pub fn seize(mut ledger: Box<dyn Ledger>, at_least: Term) -> Result<Self, StoreError> {
        let seized = seize(&mut *ledger, at_least)?;
        Ok(Self { ledger, seized })
    }

    /// The tenure.
    #[must_use]
    pub const fn tenure(&self) -> Tenure {
        self.seized.tenure
    }

    /// Removes everything that is in the log. Its numbers go on. Blocks.
    pub fn clear(&mut self) -> Result<(), StoreError> {
        let Seized { tenure, head, first } = self.seized;
        if first > head {
            return Ok(());
        }
        let before = Seq(head.0 + 1);
        let trimmed =
            ask(&mut *self.ledger, &Call::Trim { tenure, before }, |answer| match answer {
                Answer::Trimmed(Trimmed::Unknown) => {
                    Err(Unreachable { why: "it is not known what was removed".to_owned() })
                }
                Answer::Trimmed(trimmed) => Ok(trimmed),
                other => unreachable!("a trim was answered by {other:?}"),
            })?;
        if trimmed == Trimmed::Fenced {
            return Err(StoreError::Fenced { incarnation: tenure.term.0 });
        }
        self.seized.first = before;
        Ok(())
    }

    /// Writes batches into the log, which must be empty, and ends the tenure in order. The term
    /// counts as the incarnation; the other facts are those of every batch. All is durable when
    /// this returns. If it fails, a part may be there.
    ///
    /// # Panics
    /// If the log is not empty: see [`Filling::clear`].
    pub fn fill(
        self,
        facts: &Header,
        batches: impl Iterator<Item = Vec<Change>>,
    ) -> Result<(), StoreError> {
        let Seized { tenure, head, first } = self.seized;
        assert!(first > head, "the log is not empty");
        let facts = Header { incarnation: tenure.term.0, ..*facts };
        // A reader begins behind what was removed, and compares no checksum with it.
        let last = Watermark { term: tenure.term, head, checksum: 0 };
        let slack_bytes = LedgerOptions::default().slack_bytes;
        let known = (Accounts::default(), last, None);
        let mut running = Running::new(self.ledger, tenure, known, (slack_bytes, None), facts);
        running.append(&facts, &[], Urgency::Soon, &mut |_, _| {})?;
        running.finish(facts.now, PATIENCE)?;
        for batch in batches {
            running.append(&facts, &batch, Urgency::Lazy, &mut |_, _| {})?;
            if running.pending_bytes() >= WRITE_BYTES {
                running.finish(facts.now, PATIENCE)?;
            }
        }
        running.end(facts.now, &[], PATIENCE)
    }
}
