//! The first start of a data directory that was restored to an earlier moment: slots of schedules
//! up to then are not made up.

use std::path::Path;

use pinpriq_proto::time::Span;
use pinpriq_server::config::{Config, Durability};

use super::client::{World, number};
use crate::world::{START, in_memory, test};

/// The seconds between the two starts.
const SLOTS: u64 = 3_600;

/// Writes what a restore leaves in a data directory.
#[expect(clippy::disallowed_methods, reason = "a restore has written this file")]
fn mark_as_restored(data: &Path) {
    std::fs::write(data.join("restored"), "skip slots\n").unwrap();
}

/// Returns how often the schedule has fired, and how many slots it has missed.
async fn course(world: &World) -> (i64, i64) {
    let shown = world.connect().await.ask("SCHEDULE SHOW beat").await;
    (number(&shown, "fired"), number(&shown, "missed"))
}

#[test]
fn slots_before_the_first_start_after_a_restore_are_missed() {
    for is_restored in [false, true] {
        test(async || {
            let data = tempfile::tempdir().unwrap();
            let (durability, at) = (Durability::Sync, data.path().to_owned());
            let config = Config { data: at, durability, ..in_memory() };
            let world = World::start(config.clone()).await;
            let mut client = world.connect().await;
            client.ask("SCHEDULE SET beat jobs tick EVERY 1000 MISSED one").await;
            world.end().await;
            if is_restored {
                mark_as_restored(data.path());
            }

            let first_start = START.after(Span::from_ms(SLOTS * 1_000));
            let world = World::start_at(config.clone(), first_start).await;
            assert!(!data.path().join("restored").exists());
            let (fired, missed) = course(&world).await;
            assert_eq!(fired, i64::from(!is_restored));
            assert_eq!(fired + missed, i64::try_from(SLOTS).unwrap());
            world.end().await;

            // From then on, slots are made up as the schedule says.
            let second_start = first_start.after(Span::from_ms(2_000));
            let world = World::start_at(config, second_start).await;
            assert_eq!(course(&world).await, (fired + 1, missed + 1));
            world.end().await;
        });
    }
}
