//! Decides when it is worthwhile on a full disk to write the log again, although its oldest segment
//! is full of records that count.
//!
//! Segments go oldest first, so useless records in later ones can only be reached by writing
//! everything before them again. That is done in passes over the log as it is when the pass begins,
//! and only once enough has become useless since the last pass began. So every pass gains room, and
//! passes do not go on for ever. This module only keeps sums. The journal decides whether there is
//! room for a pass, and when one is worthwhile.

/// How far the current pass goes, and how much has become useless since it began.
#[derive(Debug, Default)]
pub(crate) struct Rotation {
    /// The last segment of the pass.
    until: u32,
    useless: u64,
}

impl Rotation {
    /// Creates the state for a log in which this many bytes do not count.
    pub(crate) const fn new(useless: u64) -> Self {
        Self { until: 0, useless }
    }

    /// Adds this many bytes of the log that do not count, or no longer count.
    pub(crate) const fn add(&mut self, bytes: u64) {
        self.useless += bytes;
    }

    /// Whether the segment belongs to the current pass, or a new pass would gain at least this many
    /// bytes.
    pub(crate) const fn covers(&self, segment: u32, gain: u64) -> bool {
        segment <= self.until || self.useless >= gain
    }

    /// Notes that the segment is being written again, and where the log ends.
    pub(crate) const fn begin(&mut self, segment: u32, active: u32) {
        if segment > self.until {
            (self.until, self.useless) = (active, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_ends_with_the_log_as_it_stood_and_the_next_one_needs_a_gain() {
        let mut rotation = Rotation::new(99);
        assert!(!rotation.covers(3, 100));
        rotation.add(1);
        assert!(rotation.covers(3, 100));
        rotation.begin(3, 7);
        rotation.add(50);
        rotation.begin(4, 9);
        assert!(rotation.covers(7, 100) && !rotation.covers(8, 100));
        rotation.add(50);
        assert!(rotation.covers(8, 100));
    }
}
