//! What is old goes in two steps, and nothing goes that anything needs.

use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{
    ArchiveError, Catalogue, ErrorKind, LineId, Order, Place as _, PlaceError, Pruned, Until, plan,
    prune, restore,
};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::restore::Wishes;
use pinpriq_testing::Dice;

use crate::backups::expect_whole;
use crate::server::{Server, options};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn prune_at(place: &MemoryPlace, keep_ms: u64, now_ms: u64) -> Result<Pruned, ArchiveError> {
    let (keep, now) = (Span::from_ms(keep_ms), Timestamp::from_ms(now_ms));
    let before = place.objects();
    let planned = prune(place, keep, now, true)?;
    assert!(place.objects() == before, "a dry run changes nothing");
    let pruned = prune(place, keep, now, false)?;
    assert_eq!(pruned, planned);
    Ok(pruned)
}

/// The names of all objects but those that prunes note.
fn names(place: &MemoryPlace) -> Vec<String> {
    place.objects().into_keys().filter(|name| !name.starts_with("pruned/")).collect()
}

#[test]
fn marks_go_at_once_and_what_they_needed_an_hour_later() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(1));
    let mut server = Server::new(1, 2);
    for _ in 0..6 {
        server.turns(&mut dice, 25);
        server.back_up(&place).unwrap();
    }
    let (all, now) = (names(&place), server.now().ms() + 1);
    let first = prune_at(&place, 0, now).unwrap();
    assert_eq!((&first.marks[..], first.kept_marks), (&[1, 2, 3, 4, 5][..], 1));
    assert!(first.objects.is_empty() && first.waiting.len() > 5, "{first:?}");
    assert_eq!(names(&place).len(), all.len() - 5);
    expect_whole(&place);
    let early = prune_at(&place, 0, now + HOUR - 1).unwrap();
    assert_eq!((early.marks.len(), early.objects.len()), (0, 0));
    assert_eq!(early.waiting, first.waiting);
    let second = prune_at(&place, 0, now + HOUR).unwrap();
    assert_eq!(second.objects, first.waiting);
    assert!(second.bytes > 0 && second.waiting.is_empty());
    expect_whole(&place);
    let left = names(&place);
    assert_eq!(left.len(), all.len() - 5 - second.objects.len());
    // Nothing else is left to do, and the notes of prunes go too.
    prune_at(&place, 0, now + 2 * HOUR).unwrap();
    prune_at(&place, 0, now + 4 * HOUR).unwrap();
    assert_eq!(place.objects().len(), left.len());
    server.turn(&mut dice);
    assert_eq!(server.back_up(&place).unwrap().mark, 7);
    expect_whole(&place);
}

#[test]
fn what_a_backup_under_way_has_written_stays() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(2));
    let mut server = Server::new(2, 1);
    server.turns(&mut dice, 5);
    server.back_up(&place).unwrap();
    // Once it has come as far as whole segments, and once as far as parts.
    for (turns, changes) in [(45, 3), (1, 1)] {
        server.turns(&mut dice, turns);
        let before = names(&place);
        place.stop_after(changes);
        server.back_up(&place).unwrap_err();
        place.heal();
        let written: Vec<String> =
            names(&place).into_iter().filter(|name| !before.contains(name)).collect();
        assert_eq!(written.len() as u64, changes);
        for hours in [0, 2, 5] {
            let now = server.now().ms() + hours * HOUR;
            prune_at(&place, 0, now).unwrap();
            let left = names(&place);
            assert!(written.iter().all(|name| left.contains(name)), "after {hours} hours");
        }
        let backup = server.back_up(&place).unwrap();
        assert!(turns == 1 || backup.segments_there >= 2, "{backup:?}");
        expect_whole(&place);
    }
}

#[test]
fn a_prune_that_ends_anywhere_is_finished_by_later_ones() {
    for left in 0.. {
        let (place, mut dice) = (MemoryPlace::new(), Dice::new(3));
        let mut server = Server::new(3, 1);
        for _ in 0..4 {
            server.turns(&mut dice, 25);
            server.back_up(&place).unwrap();
        }
        let now = server.now().ms() + 1;
        let keep = Span::ZERO;
        let mut has_ended = true;
        // Steps before the hour and after it may be cut off.
        for hours in [0, 1, 3, 6] {
            place.stop_after(left);
            let pruned = prune(&place, keep, Timestamp::from_ms(now + hours * HOUR), false);
            place.heal();
            has_ended &= pruned.is_ok();
            expect_whole(&place);
        }
        for hours in [10, 12, 14] {
            prune_at(&place, 0, now + hours * HOUR).unwrap();
        }
        let newest = Catalogue::read(&place).unwrap().newest().unwrap();
        // The mark, the line, and what it names.
        let parts = newest.shards[0].parts[0].each_object().count() as u64;
        assert_eq!(names(&place).len() as u64, 2 + newest.segments() - 1 + parts);
        expect_whole(&place);
        if has_ended {
            assert!(left > 3, "{left} changes were enough");
            break;
        }
    }
}

/// Backups, interrupted ones, prunes and time in any order.
#[test]
fn nothing_that_a_kept_mark_needs_is_ever_removed() {
    let mut removed = 0;
    for seed in 0..6 {
        let (place, mut dice) = (MemoryPlace::new(), Dice::new(seed));
        let mut server = Server::new(seed + 1, 2);
        server.turn(&mut dice);
        server.back_up(&place).unwrap();
        for round in 0..40 {
            match dice.below(8) {
                0 => server.pass(dice.below(3 * HOUR)),
                1 => server = server.restarted(round),
                2 => {
                    place.stop_after(dice.below(6));
                    drop(server.back_up(&place));
                    place.heal();
                }
                3 | 4 => {
                    let (keep, now) = (dice.below(4 * HOUR), server.now().ms());
                    let pruned = prune_at(&place, keep, now).unwrap();
                    removed += pruned.objects.len();
                    let bound = Timestamp::from_ms(now.saturating_sub(keep));
                    check_moments(&place, &mut dice, bound);
                }
                _ => {
                    server.turns(&mut dice, 10);
                    server.back_up(&place).unwrap();
                }
            }
            expect_whole(&place);
        }
    }
    assert!(removed > 5, "{removed} objects were removed");
}

/// Moments from the bound on can be restored.
fn check_moments(place: &MemoryPlace, dice: &mut Dice, bound: Timestamp) {
    let newest = Catalogue::read(place).unwrap().newest().unwrap().at_ms;
    for _ in 0..3 {
        let moment = bound.ms() + dice.below(newest.saturating_sub(bound.ms()) + 1);
        let until = Until::At(Timestamp::from_ms(moment));
        let chosen = Catalogue::read(place).unwrap().choose(None, until);
        match chosen {
            Ok(choice) => _ = plan(place, &choice).unwrap(),
            // Before everything there is.
            Err(error) => assert_eq!(error.kind(), ErrorKind::NothingThere, "{error}"),
        }
    }
}

#[test]
fn a_line_that_another_went_on_from_goes_with_all_its_objects() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(4));
    let mut server = Server::new(4, 1);
    server.turns(&mut dice, 30);
    server.back_up(&place).unwrap();
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let choice = Catalogue::read(&place).unwrap().choose(None, Until::Latest).unwrap();
    let now = server.now();
    let order =
        Order { data: &data, journal: options(1), wishes: Wishes::default(), now, announces: true };
    let restored = restore(&place, &choice, &order, &mut |_| {}).unwrap();
    let mut heir = Server::of_directory(&data, restored.line.0, 1);
    for _ in 0..3 {
        heir.pass(HOUR);
        heir.turns(&mut dice, 5);
        heir.back_up(&place).unwrap();
    }
    let now = heir.now().ms() + 1;
    let first = prune_at(&place, 90 * MINUTE, now).unwrap();
    assert_eq!(first.marks, [1]);
    let second = prune_at(&place, 90 * MINUTE, now + HOUR).unwrap();
    let old = LineId(4).to_string();
    assert!(second.objects.iter().all(|name| name.starts_with(&old)), "{:?}", second.objects);
    let of_old: Vec<String> =
        names(&place).into_iter().filter(|name| name.starts_with(&old)).collect();
    assert_eq!(of_old, [format!("{old}/line")]);
    heir.turn(&mut dice);
    heir.back_up(&place).unwrap();
    expect_whole(&place);
    let lines = Catalogue::read(&place).unwrap().lines().unwrap();
    assert_eq!(lines.iter().map(|line| line.line).collect::<Vec<_>>(), [LineId(4), restored.line]);
}

#[test]
fn nothing_goes_where_removing_is_not_allowed_or_a_mark_is_damaged() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(5));
    let mut server = Server::new(5, 1);
    for _ in 0..3 {
        server.turns(&mut dice, 5);
        server.back_up(&place).unwrap();
    }
    let (now, all) = (Timestamp::from_ms(server.now().ms() + 1), names(&place));
    place.keep_all();
    let refused = prune(&place, Span::ZERO, now, false).unwrap_err();
    assert!(matches!(refused, ArchiveError::Place(PlaceError::Denied { .. })), "{refused}");
    assert_eq!(names(&place), all);
    place.heal();
    place.put("marks/000000000/002", b"no mark".to_vec());
    let refused = prune(&place, Span::ZERO, now, false).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damaged);
    assert_eq!(names(&place), all);
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(6));
    let mut server = Server::new(6, 1);
    for _ in 0..3 {
        server.turns(&mut dice, 25);
        server.back_up(&place).unwrap();
    }
    let line = LineId(6);
    let foreign = [
        "notes.txt".to_owned(),
        format!("{line}/notes.txt"),
        format!("{line}/shard-00/0000000001-1/notes.txt"),
        format!("{line}/parts/000000000/notes.txt"),
        "marks/000000000/notes.txt".to_owned(),
    ];
    // A file that a crash has left means nothing, and goes.
    let unfinished = [
        format!("{line}/parts/000000000/.new-0123456789abcdef"),
        "marks/000000000/.new-0123456789abcdef".to_owned(),
    ];
    for name in foreign.iter().chain(&unfinished) {
        place.create(name, b"x").unwrap();
    }
    let now = server.now().ms() + 1;
    prune_at(&place, 0, now).unwrap();
    prune_at(&place, 0, now + HOUR).unwrap();
    let left = names(&place);
    assert!(foreign.iter().all(|name| left.contains(name)));
    assert!(!unfinished.iter().any(|name| left.contains(name)));
    expect_whole(&place);
}
