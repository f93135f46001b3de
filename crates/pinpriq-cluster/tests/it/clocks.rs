//! What a node makes of its own clock while others come and go.

use pinpriq_cluster::clocks::Trust;

/// Ten years in milliseconds.
const DECADE: i64 = 315_576_000_000;

#[test]
fn a_wrong_clock_stays_wrong_when_the_others_are_gone() {
    for off in [DECADE, -DECADE] {
        let mut trust = Trust::NEW;
        let wall = |steady: u64| (2_000_000_000_000 + steady).saturating_add_signed(off);
        assert_eq!(trust.judge(&[], wall(0), 0), 0, "a lone node is not off");
        assert_eq!(trust.judge(&[-off, -off], wall(10), 10), off.unsigned_abs());
        for (steady, others) in [(20, vec![-off]), (1_000_000, vec![]), (2_000_000, vec![0])] {
            let off_ms = trust.judge(&others, wall(steady), steady);
            assert!(off_ms > off.unsigned_abs() - 100, "{off_ms} with {others:?}");
        }
        // It was set right, or two others agree with it.
        let right = 2_000_000_000_000 + 3_000_000;
        let mut other = trust;
        assert!(trust.judge(&[], right, 3_000_000) <= 10);
        assert_eq!(trust.judge(&[], right + 1, 3_000_001), 0);
        assert_eq!(other.judge(&[5, 5], wall(3_000_000), 3_000_000), 5);
        assert_eq!(other.judge(&[], wall(3_000_001), 3_000_001), 0);
    }
}

#[test]
fn a_node_that_begins_is_unsure_until_it_has_heard_the_clocks() {
    let mut trust = Trust::NEW;
    assert!(!trust.is_unsure((0, 0), 100, 5_000), "it is alone");
    assert!(trust.is_unsure((0, 2), 200, 5_000));
    assert!(trust.is_unsure((1, 2), 5_199, 5_000));
    assert!(!trust.is_unsure((1, 2), 5_200, 5_000), "it waits only for so long");
    let mut trust = Trust::NEW;
    assert!(trust.is_unsure((0, 3), 200, 5_000));
    assert!(!trust.is_unsure((2, 3), 300, 5_000), "that is enough");
    assert!(!trust.is_unsure((0, 3), 400, 5_000));
    let mut trust = Trust::NEW;
    assert!(!trust.is_unsure((1, 1), 0, 5_000));
}
