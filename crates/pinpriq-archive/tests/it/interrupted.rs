//! Backups that end anywhere: what is there is whole, and the next one goes on.

use std::sync::Arc;

use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{ArchiveError, Catalogue, Place as _, PlaceError};
use pinpriq_testing::Dice;

use crate::backups::{expect_whole, mark};
use crate::meddled::Meddled;
use crate::server::Server;

#[test]
fn a_backup_that_ends_anywhere_is_nothing_and_the_next_one_goes_on() {
    let mut dice = Dice::new(1);
    let mut server = Server::new(1, 2);
    server.turns(&mut dice, 40);
    let mut went_on = 0;
    for left in 0.. {
        let place = MemoryPlace::new();
        place.stop_after(left);
        let stopped = server.back_up(&place);
        let Err(error) = stopped else {
            assert!(left > 4, "{left} changes were enough");
            break;
        };
        assert!(matches!(error, ArchiveError::Place(PlaceError::Away { .. })), "{error}");
        assert!(matches!(Catalogue::read(&place), Err(ArchiveError::Empty { .. })));
        place.heal();
        let backup = server.back_up(&place).unwrap();
        assert_eq!(backup.mark, 1);
        went_on += backup.segments_there;
        expect_whole(&place);
    }
    assert!(went_on > 2, "{went_on} segments were there");
}

/// The server goes on between the attempts, so that the parts that were left are not used.
#[test]
fn parts_without_a_mark_are_passed_over() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(2));
    let mut server = Server::new(1, 1);
    server.turn(&mut dice);
    server.back_up(&place).unwrap();
    for attempt in 1..=3 {
        server.turn(&mut dice);
        // The parts are written, and the mark is not.
        place.stop_after(1);
        server.back_up(&place).unwrap_err();
        place.heal();
        let parts = place.list("0000000000000001/parts/000000000").unwrap();
        assert_eq!(parts.objects.len(), 1 + attempt);
    }
    server.turn(&mut dice);
    server.back_up(&place).unwrap();
    let known = mark(&place, 2);
    let objects: Vec<(u64, u32)> = known.shards[0].parts[0].each_object().collect();
    assert_eq!(objects, [(1, 0), (2, 3)]);
    expect_whole(&place);
}

#[test]
fn a_damaged_segment_that_no_mark_names_is_reported() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(3));
    let mut server = Server::new(1, 1);
    server.turns(&mut dice, 25);
    place.stop_after(2);
    server.back_up(&place).unwrap_err();
    place.heal();
    let whole = place.objects().into_iter().find(|(name, _)| name.ends_with("/whole"));
    let (name, mut bytes) = whole.unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    place.put(&name, bytes);
    let changes = place.changes();
    let refused = server.back_up(&place);
    assert!(matches!(refused, Err(ArchiveError::LeftOver { name: it, .. }) if it == name));
    assert_eq!(place.changes(), changes, "nothing was written");
    place.take_away(&name);
    server.back_up(&place).unwrap();
    expect_whole(&place);
}

/// The other one comes before this one has sent anything, and when it has sent nearly all.
#[test]
fn a_number_that_is_taken_ends_the_backup() {
    for at in [1, 2] {
        let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(4));
        let mut server = Server::new(1, 1);
        server.turns(&mut dice, 3);
        let mut slow = server.cut();
        server.turn(&mut dice);
        let (mut fast, other) = (server.cut(), Arc::clone(&place));
        slow.on_read = Some(Box::new(move |reads| {
            if reads == at {
                fast.back_up(&*other).unwrap();
            }
        }));
        let refused = slow.back_up(&*place);
        assert!(matches!(refused, Err(ArchiveError::Taken { .. })), "{refused:?}");
        assert!(slow.reads > at, "the other one came");
        let newest = Catalogue::read(&*place).unwrap().newest().unwrap();
        assert_eq!((newest.number, newest.at()), (1, server.now()));
        expect_whole(&place);
    }
}

/// A prune may have removed what the backup found when it began.
#[test]
fn an_object_that_goes_while_a_backup_runs_ends_it() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(6));
    let mut server = Server::new(6, 1);
    server.turns(&mut dice, 40);
    server.back_up(&*place).unwrap();
    let rehearsal = MemoryPlace::new();
    for (name, bytes) in place.objects() {
        rehearsal.put(&name, bytes);
    }
    let mut cut = server.cut();
    cut.back_up(&rehearsal).unwrap();
    let (last, other) = (cut.reads - 1, Arc::clone(&place));
    let name = place.objects().into_keys().rfind(|name| name.ends_with("/whole")).unwrap();
    let mut cut = server.cut();
    cut.on_read = Some(Box::new(move |reads| {
        if reads == last {
            other.take_away(&name);
        }
    }));
    let refused = cut.back_up(&*place);
    assert!(matches!(refused, Err(ArchiveError::Taken { .. })), "{refused:?}");
    assert_eq!(Catalogue::read(&*place).unwrap().newest().unwrap().number, 1);
    assert_eq!(server.back_up(&*place).unwrap().mark, 2);
    expect_whole(&place);
}

/// It goes after it was looked for.
#[test]
fn an_object_that_goes_as_the_mark_is_created_ends_the_backup() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(7));
    let mut server = Server::new(7, 1);
    server.turns(&mut dice, 40);
    server.back_up(&place).unwrap();
    let name = place.objects().into_keys().rfind(|name| name.ends_with("/whole")).unwrap();
    let before = |created: &str, _: &[u8]| {
        if created.starts_with("marks/") {
            place.take_away(&name);
        }
    };
    let refused = server.back_up(&Meddled::before_creating(&place, before));
    assert!(matches!(refused, Err(ArchiveError::Taken { .. })), "{refused:?}");
    // The next one sends it again.
    assert_eq!(server.back_up(&place).unwrap().mark, 3);
    expect_whole(&place);
}

#[test]
fn a_source_that_gives_too_little_or_something_else_ends_the_backup() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(5));
    let mut server = Server::new(1, 1);
    server.turns(&mut dice, 40);
    let segments = server.cut().info.shards[0].clone();
    for (index, segment) in segments.iter().enumerate() {
        // A commit is damaged, a segment is gone, and one is another than its number says.
        let [mut damaged, mut gone, mut other] = [(); 3].map(|()| server.cut());
        let bytes = damaged.bytes[0].get_mut(&segment.number).unwrap();
        let last = bytes.len() - 20;
        bytes[last] ^= 1;
        gone.bytes[0].remove(&segment.number);
        let another = segments[usize::from(index == 0)];
        let bytes = other.bytes[0][&another.number].clone();
        other.bytes[0].insert(segment.number, bytes);
        other.info.shards[0][index].bytes = another.bytes;
        for cut in [&mut damaged, &mut gone, &mut other] {
            let refused = cut.back_up(&place);
            assert!(matches!(refused, Err(ArchiveError::Source(_))), "{refused:?}");
            assert!(matches!(Catalogue::read(&place), Err(ArchiveError::Empty { .. })));
        }
    }
    server.back_up(&place).unwrap();
    expect_whole(&place);
}
