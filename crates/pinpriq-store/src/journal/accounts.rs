//! The accounts of the front half: which segments exist, how much in each still counts, and which
//! may go.
//!
//! Segments go oldest first. One may go once nothing in it counts *and* a batch that says
//! so is durable: as long as the newest durable batch names a segment, its loss is damage. Only
//! sums are kept here; the engine alone knows which records count.

use std::collections::VecDeque;

use pinpriq_proto::change::Place;

use super::segment::SegmentHeader;

/// A segment that is needed, or was until just now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) header: SegmentHeader,
    /// Where its batches end at present.
    pub(crate) end: u64,
    /// The bytes of records in it that still count.
    pub(crate) live: u64,
    /// Whether the file has the usual size, so that it can be reused.
    pub(crate) usual_size: bool,
}

/// All segments, oldest first. Batches are appended to the last one.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    segments: VecDeque<Segment>,
    /// The number of segments at the front that hold nothing that counts.
    emptied: usize,
    /// Pairs of a batch and a segment: once that batch is durable, the segments before that one may
    /// go.
    notes: VecDeque<(u64, u32)>,
    /// The newest such segment that a batch names.
    noted: u32,
    /// Segments before this one may go.
    released: u32,
    live: u64,
    used: u64,
}

impl Accounts {
    pub(crate) fn push(&mut self, segment: Segment) {
        self.live += segment.live;
        self.used += segment.end;
        self.segments.push_back(segment);
        if self.noted == 0 {
            self.noted = segment.header.number;
            self.released = segment.header.number;
        }
        self.skip_emptied();
    }

    /// Adds a segment before all others, of which there are some. Nothing in it counts, and a
    /// durable batch says so.
    pub(crate) fn push_left_over(&mut self, segment: Segment) {
        self.segments.push_front(segment);
        self.emptied += 1;
    }

    /// Replaces the last segment, in which nothing counts.
    pub(crate) fn replace_active(&mut self, segment: Segment) {
        if let Some(active) = self.segments.back_mut() {
            self.used = self.used + segment.end - active.end;
            *active = segment;
        }
    }

    /// Adds a batch of this many bytes, padding included, with `live` bytes of records that count.
    pub(crate) fn add_batch(&mut self, bytes: u64, live: u64) {
        if let Some(active) = self.segments.back_mut() {
            active.end += bytes;
            active.live += live;
            self.used += bytes;
            self.live += live;
        }
    }

    pub(crate) fn obsolete(&mut self, place: Place) {
        let first = self.segments.front().map_or(0, |segment| segment.header.number);
        let known = place.volume.checked_sub(first).map(|index| index as usize);
        let length = u64::from(place.length.get());
        let segment = known.and_then(|index| self.segments.get_mut(index));
        let Some(segment) = segment.filter(|segment| segment.live >= length) else {
            debug_assert!(false, "a record became obsolete twice: {place:?}");
            return;
        };
        segment.live -= length;
        self.live -= length;
        if segment.live == 0 {
            self.skip_emptied();
        }
    }

    /// Skips segments in which nothing counts. The last one always stays.
    fn skip_emptied(&mut self) {
        while self.emptied + 1 < self.segments.len() && self.segments[self.emptied].live == 0 {
            self.used -= self.segments[self.emptied].end;
            self.emptied += 1;
        }
    }

    /// The oldest segment that is still needed.
    pub(crate) fn oldest(&self) -> Option<&Segment> {
        self.segments.get(self.emptied)
    }

    pub(crate) fn oldest_number(&self) -> u32 {
        self.oldest().map_or(0, |segment| segment.header.number)
    }

    pub(crate) fn active(&self) -> Option<&Segment> {
        self.segments.back()
    }

    /// Notes that the batch of this number says that everything before [`Accounts::oldest_number`]
    /// may go.
    pub(crate) fn note(&mut self, lsn: u64) {
        let oldest = self.oldest_number();
        if oldest > self.noted {
            self.noted = oldest;
            self.notes.push_back((lsn, oldest));
        }
    }

    /// Whether segments could go if a batch said so.
    pub(crate) fn wants_note(&self) -> bool {
        self.oldest_number() > self.noted
    }

    /// Whether a batch that says so is not durable yet.
    pub(crate) fn awaits_note(&self) -> bool {
        !self.notes.is_empty()
    }

    /// Notes that everything up to this batch is durable.
    pub(crate) fn durable(&mut self, lsn: u64) {
        while let Some(&(note, oldest)) = self.notes.front()
            && note <= lsn
        {
            self.released = oldest;
            self.notes.pop_front();
        }
    }

    /// Removes and returns the next segment that may go.
    pub(crate) fn take_released(&mut self) -> Option<Segment> {
        let front = self.segments.front()?;
        if self.emptied == 0 || front.header.number >= self.released {
            return None;
        }
        self.emptied -= 1;
        self.segments.pop_front()
    }

    /// The number of the next segment that may go.
    pub(crate) fn released_front(&self) -> Option<u32> {
        let front = self.segments.front().map(|front| front.header.number);
        front.filter(|front| self.emptied > 0 && *front < self.released)
    }

    /// The number of the first segment that may not go: the newest durable batch names it.
    pub(crate) const fn released(&self) -> u32 {
        self.released
    }

    /// The segments that exist from this number on, oldest first.
    pub(crate) fn segments_from(&self, first: u32) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(move |segment| segment.header.number >= first)
    }

    /// Bytes in the segments that are needed.
    pub(crate) const fn used_bytes(&self) -> u64 {
        self.used
    }

    /// Bytes in the segments that hold nothing that counts and still exist. Those are left out that
    /// may go and are there only since everything from `kept_from` on is kept: no batch brings
    /// them back.
    pub(crate) fn emptied_bytes(&self, kept_from: u32) -> u64 {
        let emptied = self.segments.iter().take(self.emptied);
        let counted = emptied.filter(|segment| {
            let number = segment.header.number;
            number < kept_from || number >= self.released
        });
        counted.map(|segment| segment.end).sum()
    }

    /// Bytes of records that count.
    pub(crate) const fn live_bytes(&self) -> u64 {
        self.live
    }

    /// The number of segments that are needed.
    pub(crate) fn count(&self) -> usize {
        self.segments.len() - self.emptied
    }

    /// Whether the log holds more than twice what counts plus this constant.
    pub(crate) fn is_wasteful(&self, slack_bytes: u64) -> bool {
        self.count() > 1 && self.used > 2 * self.live + slack_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::SEGMENT_START;
    use super::*;

    fn segment(number: u32, live: u64) -> Segment {
        let header = SegmentHeader {
            version: 1,
            number,
            oldest: 1,
            salt: 0,
            first_lsn: 1,
            previous_end: 0,
            incarnation: 1,
            now: 0,
            identity: None,
        };
        Segment { header, end: SEGMENT_START + live, live, usual_size: true }
    }

    fn place(volume: u32, length: u32) -> Place {
        Place { volume, offset: 8192, length: length.try_into().unwrap() }
    }

    #[test]
    fn a_segment_goes_only_after_a_durable_note_and_never_from_the_middle() {
        let mut accounts = Accounts::default();
        for number in 3..=5 {
            accounts.push(segment(number, 100));
        }
        accounts.obsolete(place(4, 100));
        assert!(!accounts.wants_note(), "segment 3 stands before it");
        accounts.obsolete(place(3, 100));
        assert_eq!(accounts.oldest_number(), 5);
        assert!(accounts.wants_note());
        accounts.note(9);
        accounts.durable(8);
        assert!(accounts.take_released().is_none());
        accounts.durable(9);
        assert_eq!(accounts.take_released().map(|gone| gone.header.number), Some(3));
        assert_eq!(accounts.take_released().map(|gone| gone.header.number), Some(4));
        assert!(accounts.take_released().is_none());
        assert_eq!((accounts.used_bytes(), accounts.live_bytes()), (SEGMENT_START + 100, 100));
    }

    #[test]
    fn what_an_earlier_start_has_kept_is_not_needed_and_goes_first() {
        let mut accounts = Accounts::default();
        for number in [5, 6] {
            accounts.push(segment(number, 100));
        }
        for number in [4, 3] {
            accounts.push_left_over(segment(number, 0));
        }
        assert_eq!((accounts.count(), accounts.oldest_number()), (2, 5));
        assert_eq!(accounts.used_bytes(), 2 * (SEGMENT_START + 100));
        let numbers =
            |first| accounts.segments_from(first).map(|it| it.header.number).collect::<Vec<u32>>();
        assert_eq!((numbers(0), numbers(4)), (vec![3, 4, 5, 6], vec![4, 5, 6]));
        assert!(!accounts.wants_note() && accounts.released() == 5);
        assert_eq!(accounts.emptied_bytes(u32::MAX), 2 * SEGMENT_START);
        assert_eq!(accounts.emptied_bytes(4), SEGMENT_START, "only one of them is kept");
        accounts.obsolete(place(5, 100));
        accounts.note(9);
        let full = SEGMENT_START + 100;
        assert_eq!(accounts.emptied_bytes(0), full, "a batch has to be durable");
        accounts.durable(9);
        assert_eq!(accounts.emptied_bytes(0), 0);
        let mut gone = Vec::new();
        while let Some(front) = accounts.released_front() {
            assert_eq!(accounts.take_released().map(|it| it.header.number), Some(front));
            gone.push(front);
        }
        assert_eq!(gone, [3, 4, 5]);
        assert_eq!(accounts.used_bytes(), full);
    }
}
