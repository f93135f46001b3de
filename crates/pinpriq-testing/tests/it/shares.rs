//! The scenarios of fair shares and limits, in small. The program plays them at full size.

use pinpriq_testing::shares::{SCENARIOS, Simulated, run, table};

/// How long each lasts here, and how many tasks a flood has.
const LASTS_MS: u64 = 10_000;
const FLOOD: u64 = 10_000;

#[test]
fn scenarios_keep_what_they_promise() {
    let mut played = Vec::new();
    for scenario in SCENARIOS {
        let scenario = scenario.in_small(LASTS_MS, FLOOD);
        let mut server = Simulated::new(scenario.restarts()).unwrap();
        played.push((scenario.what, run(&scenario, &mut server).unwrap()));
    }
    let is_kept = played.iter().flat_map(|(_, figures)| figures).all(|figure| figure.holds);
    assert!(is_kept, "{}", table(&played));
}
