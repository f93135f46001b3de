//! Which terms the tenures of shards get, how long a host may say anything, and how it has ended.

use pinpriq_cluster::ownership::HostEnd;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::StoreError;
use pinpriq_store::ledger::Term;

/// The start of 2026 in milliseconds since the Unix epoch: terms are at least the seconds since.
const TERMS_BEGAN_MS: u64 = 1_767_225_600_000;

/// A host may say anything for this many tenths of the session after it has asked its log. The rest
/// is for clocks that run apart.
const WINDOW_IN_10: u64 = 7;

/// How long a host may say anything after it has asked its log, for sessions of this time to live.
#[must_use]
pub const fn window_ms(session_ttl_ms: u64) -> u64 {
    session_ttl_ms * WINDOW_IN_10 / 10
}

/// The lowest term of a tenure that begins at this time.
#[must_use]
pub fn lowest_term_at(generation: u32, wall: Timestamp) -> Term {
    lowest_term(generation, wall.ms().saturating_sub(TERMS_BEGAN_MS) / 1_000)
}

/// The lowest term of a tenure that begins this many seconds after terms began.
fn lowest_term(generation: u32, seconds: u64) -> Term {
    Term(Term::first_of(generation).0 + seconds)
}

/// How a host has ended that has failed like this.
#[must_use]
pub fn end_of(failure: &StoreError) -> HostEnd {
    match failure {
        StoreError::Fenced { .. } => HostEnd::Fenced,
        StoreError::NoAnswer { .. } => HostEnd::Silent,
        StoreError::Poisoned { cause } => end_of(cause),
        _ => HostEnd::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::{Term, lowest_term};

    #[test]
    fn a_term_is_above_all_of_the_generations_before() {
        assert_eq!(lowest_term(0, 5), Term(5));
        let century = 100 * 366 * 24 * 3_600;
        for generation in [1, 2, 70_000] {
            let before = lowest_term(generation - 1, century);
            assert!(lowest_term(generation, 0) > before, "generation {generation}");
            assert_eq!(lowest_term(generation, century).generation(), u64::from(generation));
        }
    }
}
