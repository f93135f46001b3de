//! Whatever is missing or damaged in a place is found, and named.

use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{ArchiveError, Verified, verify};
use pinpriq_testing::Dice;

use crate::server::Server;

fn look(place: &MemoryPlace) -> Verified {
    let mut last = 0;
    let found = verify(place, &mut |progress| {
        assert!(progress.done <= progress.total && progress.done > last, "{progress:?}");
        last = progress.done;
    });
    found.unwrap()
}

/// A place with several marks, some of which share objects.
fn filled(seed: u64) -> MemoryPlace {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(seed));
    let mut server = Server::new(seed, 2);
    for round in 0..6 {
        server.turns(&mut dice, 8);
        if round == 3 {
            server = server.restarted(5);
        }
        server.back_up(&place).unwrap();
    }
    place
}

#[test]
fn a_whole_place_has_no_faults() {
    let place = filled(1);
    let found = look(&place);
    assert!(found.faults.is_empty(), "{:?}", found.faults);
    assert_eq!((found.marks, found.lines), (6, 1));
    let objects = place.objects();
    assert_eq!(found.objects + found.marks + found.lines, objects.len() as u64);
    let of_segments =
        objects.iter().filter(|(name, _)| name.contains("/parts/") || name.contains("/shard-"));
    let bytes: usize = of_segments.map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(found.bytes, bytes as u64, "an object that two shards share counts once");
}

#[test]
fn each_object_that_is_missing_or_damaged_is_named() {
    let place = filled(2);
    let mut dice = Dice::new(2);
    for (name, bytes) in place.objects() {
        let mut damaged = bytes.clone();
        let at = dice.index(bytes.len());
        damaged[at] ^= 1 << dice.below(8);
        place.put(&name, damaged);
        let found = look(&place);
        let names: Vec<&str> = found.faults.iter().map(|fault| fault.name.as_str()).collect();
        assert_eq!(names, [name.as_str()], "byte {at}");
        assert!(!found.faults[0].marks.is_empty(), "{name}");
        // A mark that is gone was pruned, as far as can be known.
        if !name.starts_with("marks/") {
            place.take_away(&name);
            let found = look(&place);
            let names: Vec<&str> = found.faults.iter().map(|fault| fault.name.as_str()).collect();
            assert_eq!(names, [name.as_str()]);
            assert_eq!(found.faults[0].what, "it is missing");
        }
        place.put(&name, bytes);
    }
    assert!(look(&place).faults.is_empty());
}

#[test]
fn a_segment_under_another_name_is_a_fault() {
    let place = filled(3);
    let objects = place.objects();
    let of_shard = |shard: &str| {
        let mut names = objects.keys().filter(|it| it.contains(shard) && it.ends_with("/whole"));
        names.next().unwrap().clone()
    };
    let (one, other) = (of_shard("/shard-00/"), of_shard("/shard-01/"));
    place.put(&one, objects[&other].clone());
    let found = look(&place);
    assert_eq!(found.faults.len(), 1);
    assert_eq!(found.faults[0].name, one);
}

#[test]
fn an_empty_place_has_nothing_to_verify() {
    let refused = verify(&MemoryPlace::new(), &mut |_| {});
    assert!(matches!(refused, Err(ArchiveError::Empty { .. })));
}
