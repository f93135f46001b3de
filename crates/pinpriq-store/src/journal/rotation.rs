//! When a full disk is worth writing the log again, although its oldest segment is full of what
//! counts.
//!
//! Segments go oldest first, so what became useless in later ones can only be reached by writing
//! all before it again. That is done in passes over the log as it stands when the pass begins, and
//! only once so much has become useless since the last pass began: so every pass gains room, and
//! there is no pass for ever. Here are only sums; whether there is room for a pass, and when one
//! is worth while, the journal decides.

/// How far the pass in hand goes, and what has become useless since it began.
#[derive(Debug, Default)]
pub(crate) struct Rotation {
    /// The last segment of the pass.
    until: u32,
    useless: u64,
}

impl Rotation {
    /// For a log in which this many bytes do not count.
    pub(crate) const fn new(useless: u64) -> Self {
        Self { until: 0, useless }
    }

    /// So many bytes of the log do not count, or count no longer.
    pub(crate) const fn add(&mut self, bytes: u64) {
        self.useless += bytes;
    }

    /// Whether the segment belongs to a pass, or a new one would gain at least this many bytes.
    pub(crate) const fn covers(&self, segment: u32, gain: u64) -> bool {
        segment <= self.until || self.useless >= gain
    }

    /// Notes that the segment is written again, and where the log ends.
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
