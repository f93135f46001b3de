//! The tolerance for differences between two clocks.

/// How much the clocks of the client and the server may differ when they measure the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tolerance {
    /// The fixed part, for a time of any length.
    pub fixed_us: u64,
    /// The proportional part: one in this many parts of the time.
    pub one_in: u64,
    /// How much longer a lease may last than it should: a node of a cluster prolongs leases when it
    /// takes over.
    pub prolonged_us: u64,
}

impl Default for Tolerance {
    /// 50 ms, and one part in 500. Leases are not prolonged.
    fn default() -> Self {
        Self { fixed_us: 50_000, one_in: 500, prolonged_us: 0 }
    }
}

impl Tolerance {
    /// The tolerance for a time of this length.
    pub(crate) const fn of_us(self, length_us: u64) -> u64 {
        self.fixed_us.saturating_add(length_us / if self.one_in == 0 { 1 } else { self.one_in })
    }
}
