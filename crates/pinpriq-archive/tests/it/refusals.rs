//! What a backup refuses, and that it has written nothing then.

use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{ArchiveError, By, Mark, Place as _};
use pinpriq_testing::Dice;

use crate::backups::{expect_whole, mark};
use crate::server::{Cut, HEADER_BYTES, Server};

/// Tries to take a backup, which must change nothing. Returns why it was refused.
#[track_caller]
fn refuse(place: &MemoryPlace, cut: &mut Cut) -> ArchiveError {
    let before = place.objects();
    let refused = cut.back_up(place).unwrap_err();
    assert!(place.objects() == before, "something was written");
    refused
}

#[test]
fn a_stranger_is_refused() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(1));
    let mut server = Server::new(1, 1);
    server.turn(&mut dice);
    server.back_up(&place).unwrap();
    for shards in [1, 2] {
        let mut other = Server::new(2, shards);
        other.turn(&mut dice);
        let refused = refuse(&place, &mut other.cut());
        assert!(matches!(refused, ArchiveError::Stranger { .. }), "{refused}");
    }
    // That a first backup was interrupted does not make a stranger known.
    let other = Server::new(2, 1);
    let both = MemoryPlace::new();
    both.stop_after(1);
    other.back_up(&both).unwrap_err();
    both.heal();
    server.back_up(&both).unwrap();
    let refused = refuse(&both, &mut other.cut());
    assert!(matches!(refused, ArchiveError::Stranger { .. }), "{refused}");
}

#[test]
fn an_older_copy_is_refused() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(2));
    let mut server = Server::new(1, 2);
    server.turns(&mut dice, 5);
    let mut early = server.cut();
    let copy = server.copied(5);
    server.turn(&mut dice);
    server.back_up(&place).unwrap();
    // It was started in between, so its own newest incarnation is higher, but bytes are missing.
    for cut in [&mut early, &mut copy.cut()] {
        let refused = refuse(&place, cut);
        assert!(matches!(refused, ArchiveError::OlderCopy { .. }), "{refused}");
    }
    let mut server = server.restarted(9);
    let mut before = server.cut();
    server.turns(&mut dice, 40);
    server.back_up(&place).unwrap();
    let refused = refuse(&place, &mut before);
    assert!(matches!(refused, ArchiveError::OlderCopy { .. }), "{refused}");
    server.back_up(&place).unwrap();
}

/// Both were started once since the copy was made, so that number and incarnation are the same.
#[test]
fn a_copy_that_went_another_way_is_refused() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(3));
    let mut server = Server::new(1, 1);
    server.turns(&mut dice, 3);
    let mut copy = server.copied(5);
    let mut server = server.restarted(6);
    server.turn(&mut dice);
    copy.turns(&mut dice, 9);
    server.back_up(&place).unwrap();
    let refused = refuse(&place, &mut copy.cut());
    assert!(matches!(refused, ArchiveError::OlderCopy { .. }), "{refused}");
    let mut copy = copy.restarted(7);
    copy.turn(&mut dice);
    let refused = refuse(&place, &mut copy.cut());
    assert!(matches!(refused, ArchiveError::OlderCopy { .. }), "{refused}");
}

/// The header of the newest segment.
fn newest_header(server: &Server) -> Vec<u8> {
    let newest = server.cut().bytes.remove(0).into_values().next_back();
    newest.unwrap()[..HEADER_BYTES].to_vec()
}

fn newest_number(server: &Server) -> u32 {
    server.cut().info.shards[0].last().unwrap().number
}

/// A start takes the place of one before it only if that one wrote nothing.
#[test]
fn a_copy_that_was_started_under_the_number_of_a_later_segment_is_refused() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(7));
    let mut server = Server::new(1, 1);
    server.turns(&mut dice, 2);
    let mut copy = server.copied(5);
    let number = newest_number(&server) + 1;
    for server in [&mut server, &mut copy] {
        while newest_number(server) < number {
            server.turn(&mut dice);
        }
    }
    server.back_up(&place).unwrap();
    let refused = refuse(&place, &mut copy.cut());
    assert!(matches!(refused, ArchiveError::OlderCopy { .. }), "{refused}");
    server.turn(&mut dice);
    server.back_up(&place).unwrap();
    expect_whole(&place);
}

/// The copy is started twice, so that its second start takes the place of the first.
#[test]
fn a_start_goes_on_from_one_that_wrote_nothing_after_the_same() {
    for (before, after) in [(1, 0), (0, 1), (0, 0)] {
        let (place, mut dice) = (MemoryPlace::new(), Dice::new(7));
        let mut server = Server::new(1, 1);
        server.turn(&mut dice);
        let copy = server.copied(5);
        server.turns(&mut dice, before);
        let mut server = server.restarted(6);
        server.turns(&mut dice, after);
        server.back_up(&place).unwrap();
        let copy = copy.restarted(7);
        assert_eq!(newest_number(&copy), newest_number(&server));
        if (before, after) == (0, 0) {
            // It lacks nothing.
            copy.back_up(&place).unwrap();
        } else {
            let refused = refuse(&place, &mut copy.cut());
            assert!(matches!(refused, ArchiveError::OlderCopy { .. }), "{refused}");
        }
        expect_whole(&place);
    }
}

/// Both have done the same, so that their newest segments go on in the same place.
#[test]
fn a_copy_of_the_same_length_is_refused() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(8));
    let mut server = Server::new(1, 1);
    server.turns(&mut dice, 2);
    let [server, copy] = [5, 6].map(|seed| {
        let mut copy = server.copied(seed);
        copy.turn(&mut Dice::new(9));
        copy.restarted(seed + 2)
    });
    server.back_up(&place).unwrap();
    let copy = copy.restarted(9);
    // The number of the first commit, and where the segment before ends.
    let [ours, theirs] = [&server, &copy].map(|it| newest_header(it)[32..48].to_vec());
    assert_eq!(ours, theirs);
    let refused = refuse(&place, &mut copy.cut());
    assert!(matches!(refused, ArchiveError::OlderCopy { .. }), "{refused}");
    let server = server.restarted(10);
    server.back_up(&place).unwrap();
    expect_whole(&place);
}

#[test]
fn a_place_in_which_the_server_archives_is_left_to_it() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(4));
    let mut server = Server::new(1, 1);
    server.turn(&mut dice);
    server.back_up(&place).unwrap();
    let by_server = Mark { number: 2, by: By::Serve, ..mark(&place, 1) };
    place.put("marks/000000000/002", by_server.encode());
    let refused = refuse(&place, &mut server.cut());
    assert!(matches!(refused, ArchiveError::ArchivesItself { .. }), "{refused}");
}

#[test]
fn segments_without_an_identity_or_of_others_are_refused() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(5));
    let mut server = Server::new(1, 2);
    server.turn(&mut dice);
    let mut swapped = server.cut();
    swapped.info.shards.swap(0, 1);
    swapped.bytes.swap(0, 1);
    let mut alone = server.cut();
    alone.info.shards.truncate(1);
    let mut none = server.cut();
    none.info.shards.clear();
    let mut gap = server.cut();
    gap.info.shards[0][0].bytes = HEADER_BYTES as u64 - 1;
    for cut in [&mut swapped, &mut alone, &mut none, &mut gap] {
        let refused = refuse(&place, cut);
        assert!(matches!(refused, ArchiveError::Source(_)), "{refused}");
    }
    // A header of the second version, which has no identity.
    let mut old = server.cut();
    for bytes in old.bytes[1].values_mut() {
        for copy in [0, 4_096] {
            bytes[copy + 8..copy + 12].copy_from_slice(&2_u32.to_le_bytes());
            let sum = xxh3(&bytes[copy..copy + 64]);
            bytes[copy + 64..copy + 72].copy_from_slice(&sum.to_le_bytes());
        }
    }
    let refused = refuse(&place, &mut old);
    assert!(matches!(refused, ArchiveError::NoIdentity { shard: 1 }), "{refused}");
    assert_eq!(place.changes(), 0);
}

/// A mark that is damaged could be the newest of this line, so nothing can be compared with it.
#[test]
fn a_damaged_newest_mark_ends_backups() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(6));
    let mut server = Server::new(1, 1);
    server.turn(&mut dice);
    server.back_up(&place).unwrap();
    let mut bytes = place.get("marks/000000000/001").unwrap().unwrap();
    bytes[20] ^= 1;
    place.put("marks/000000000/001", bytes);
    let refused = refuse(&place, &mut server.cut());
    assert!(matches!(refused, ArchiveError::Damaged { .. }), "{refused}");
}

fn xxh3(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}
