//! What a backup sends, what it leaves out, and what it says.

use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{By, Catalogue, Mark, Place as _, verify};
use pinpriq_testing::Dice;

use crate::server::Server;

/// The mark of this number.
pub(crate) fn mark(place: &MemoryPlace, number: u64) -> Mark {
    let name = format!("marks/{:09}/{:03}", number / 1_000, number % 1_000);
    Mark::decode(&name, &place.get(&name).unwrap().unwrap()).unwrap()
}

#[track_caller]
pub(crate) fn expect_whole(place: &MemoryPlace) {
    let found = verify(place, &mut |_| {}).unwrap();
    assert!(found.faults.is_empty(), "{:?}", found.faults);
}

#[test]
fn a_backup_has_every_segment_and_the_next_one_only_what_is_new() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(1));
    let mut server = Server::new(0xabc, 2);
    server.turns(&mut dice, 40);
    let first = server.back_up(&place).unwrap();
    assert_eq!((first.mark, first.at, first.shards), (1, server.now(), 2));
    assert!(first.segments > 4, "{} segments", first.segments);
    assert_eq!((first.segments_there, first.line.0), (0, 0xabc));
    // The line, the whole segments, and one object with both parts.
    assert_eq!(first.objects, 1 + (first.segments - 2) + 1);
    assert_eq!(place.changes(), first.objects + 1);
    let known = mark(&place, 1);
    assert_eq!((known.by, known.segments()), (By::Backup, first.segments));
    let (incarnation, numbers) = server.highest();
    assert!(known.shards.iter().all(|shard| shard.incarnation == incarnation));
    let known_numbers = known.shards.iter().map(|shard| shard.last_number);
    assert!(known_numbers.eq(numbers.iter().copied()));
    expect_whole(&place);

    // Nothing is new: only a mark is written, with its later moment.
    let second = server.back_up(&place).unwrap();
    assert_eq!((second.mark, second.objects, second.bytes_sent), (2, 0, 0));
    assert_eq!(second.segments_there, second.segments - 2);

    server.turn(&mut dice);
    let third = server.back_up(&place).unwrap();
    assert!(third.bytes_sent < first.bytes_sent / 2, "{} bytes", third.bytes_sent);
    assert!(third.segments_there >= 2);
    expect_whole(&place);
    let newest = Catalogue::read(&place).unwrap().newest().unwrap();
    assert_eq!(newest.number, 3);
}

#[test]
fn parts_grow_until_their_segment_is_full() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(2));
    let mut server = Server::new(1, 1);
    let mut longest = 0;
    for number in 1..=60 {
        server.turn(&mut dice);
        server.back_up(&place).unwrap();
        let known = mark(&place, number);
        let part = &known.shards[0].parts[0];
        longest = longest.max(part.each_object().count());
        // What the newest segment has is spread over the marks since it was begun.
        assert!(part.objects.iter().all(|run| run.object == 0 && run.last <= number));
    }
    assert!(longest > 2, "{longest} objects");
    expect_whole(&place);
    // All segments but the newest are there whole, and as often as marks name them only once.
    let whole = place.objects().keys().filter(|name| name.ends_with("/whole")).count();
    assert!(whole > 2, "{whole} segments");
}

#[test]
fn a_restart_makes_a_part_whole() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(3));
    let mut server = Server::new(1, 1);
    server.turns(&mut dice, 3);
    server.back_up(&place).unwrap();
    let before = mark(&place, 1).shards[0].parts[0].clone();
    let mut server = server.restarted(77);
    server.turn(&mut dice);
    server.back_up(&place).unwrap();
    let known = mark(&place, 2);
    assert!(known.shards[0].has_whole(before.segment()));
    let now = known.shards[0].parts[0].segment();
    assert_eq!((now.number, now.incarnation), (before.number + 1, before.incarnation + 1));
    expect_whole(&place);
}

#[test]
fn what_is_lost_in_the_place_is_sent_again() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(4));
    let mut server = Server::new(1, 1);
    server.turns(&mut dice, 40);
    server.back_up(&place).unwrap();
    let names: Vec<String> = place.objects().into_keys().collect();
    let parts = names.iter().find(|name| name.contains("/parts/")).unwrap();
    let whole = names.iter().rfind(|name| name.ends_with("/whole")).unwrap();
    for lost in [parts, whole] {
        place.take_away(lost);
        server.turn(&mut dice);
        server.back_up(&place).unwrap();
    }
    assert!(place.objects().contains_key(whole));
    let newest = Catalogue::read(&place).unwrap().newest().unwrap();
    let found = verify(&place, &mut |_| {}).unwrap();
    // The older marks lost a part for good, which the newest does not need.
    assert!(found.faults.iter().all(|fault| !fault.marks.contains(&newest.number)));
    assert_eq!(found.faults.len(), 1);
}

/// Where it was found may have gone with the segment whose place a start has taken.
#[test]
fn the_earliest_moment_is_looked_for_again_after_a_start() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(6));
    let mut server = Server::new(1, 1);
    server.turn(&mut dice);
    let server = server.restarted(7);
    server.back_up(&place).unwrap();
    let since = mark(&place, 1).since_ms;
    let mut known = mark(&place, 1);
    assert!(since < known.at_ms);
    (known.since_ms, known.shards[0].since_ms) = (known.at_ms, known.at_ms);
    place.put("marks/000000000/001", known.encode());
    server.back_up(&place).unwrap();
    assert_eq!(mark(&place, 2).since_ms, known.at_ms, "it is taken over");
    let server = server.restarted(8);
    server.back_up(&place).unwrap();
    assert_eq!(mark(&place, 3).since_ms, since);
}

#[test]
fn marks_remember_the_highest_of_every_line_and_moment() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(5));
    let mut server = Server::new(1, 2);
    let mut before = (0, vec![0, 0]);
    for number in 1..=10 {
        server.turns(&mut dice, 5);
        if number % 3 == 0 {
            server = server.restarted(number);
        }
        server.back_up(&place).unwrap();
        let known = mark(&place, number);
        let numbers: Vec<u64> = known.highest.iter().map(|known| known.last_number).collect();
        assert!(known.latest_ms >= before.0);
        assert!(numbers.iter().zip(&before.1).all(|(now, before)| now >= before));
        before = (known.latest_ms, numbers);
    }
}
