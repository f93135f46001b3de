//! A server that archives by itself: what it sends, what becomes of trouble, and that of two
//! servers never both go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{
    ArchiveError, Archiver, By, Catalogue, Concluded, CutInfo, Fault, Mark, Offered, Place,
    PlaceError, SegmentEnd, Until, scrub, verify,
};
use pinpriq_proto::time::Timestamp;
use pinpriq_testing::Dice;

use crate::backups::{expect_whole, mark};
use crate::meddled::{Gate, Meddled};
use crate::restores::{expect_state, restore_to};
use crate::server::{Cut, Server, ends};

/// No thread takes longer for what it does in these tests.
const BOUND: Duration = Duration::from_mins(1);

/// More than a server goes on after without looking.
pub(crate) const LONG_MS: u64 = 700_000;

pub(crate) fn archiver(place: &Arc<MemoryPlace>) -> Archiver {
    let place: Arc<MemoryPlace> = Arc::clone(place);
    Archiver::new(place)
}

/// An archiver to a place in which something happens before an object of this name is created.
pub(crate) fn hooked(
    place: &Arc<MemoryPlace>,
    before: impl Fn(&MemoryPlace, &str) + Send + Sync + 'static,
) -> Archiver {
    let shared = Arc::clone(place);
    let before = move |name: &str, _: &[u8]| before(&shared, name);
    Archiver::new(Arc::new(Meddled::before_creating(Arc::clone(place), before)))
}

/// Waits until nothing is under way.
pub(crate) fn settle(archiver: &mut Archiver) -> Result<Vec<Concluded>, ArchiveError> {
    let mut all = Vec::new();
    while archiver.under_way() > 0 {
        let some = archiver.concluded(BOUND)?;
        assert!(!some.is_empty(), "a draft is under way for too long");
        all.extend(some);
    }
    all.extend(archiver.concluded(Duration::ZERO)?);
    Ok(all)
}

/// Changes something, and archives it.
pub(crate) fn archive(
    archiver: &mut Archiver,
    server: &mut Server,
    dice: &mut Dice,
) -> Vec<Concluded> {
    server.turn(dice);
    assert_eq!(archiver.offer(&mut server.cut(), 0).unwrap(), Offered::Sending);
    settle(archiver).unwrap()
}

pub(crate) fn newest(place: &MemoryPlace) -> Mark {
    Catalogue::read(place).unwrap().newest().unwrap()
}

/// The mark of this number, if it is there.
pub(crate) fn has_mark(place: &MemoryPlace, number: u64) -> bool {
    place.objects().contains_key(&format!("marks/000000000/{number:03}"))
}

#[test]
fn an_offer_sends_only_what_is_new_and_lists_nothing() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(1));
    let mut server = Server::new(0xabc, 2);
    server.turns(&mut dice, 20);
    let mut archiver = archiver(&place);
    assert!(archiver.newest().is_none());
    let cut = server.cut();
    let bytes: u64 = cut.info.shards.iter().flatten().map(|segment| segment.bytes).sum();
    assert_eq!(archiver.missing_bytes(&cut.info), bytes);
    assert_eq!(archiver.offer(&mut server.cut(), 7).unwrap(), Offered::Sending);
    let first = settle(&mut archiver).unwrap();
    assert_eq!((first.len(), first[0].token, first[0].mark), (1, 7, 1));
    assert_eq!(mark(&place, 1).by, By::Serve);
    let (listings, reads) = (place.listings(), place.reads());
    for number in 2..40 {
        let changes = place.changes();
        assert_eq!(archiver.offer(&mut server.cut(), 0).unwrap(), Offered::Nothing);
        assert_eq!(place.changes(), changes);
        let done = archive(&mut archiver, &mut server, &mut dice);
        assert_eq!((done.len(), done[0].mark, done[0].at), (1, number, server.now()));
        assert_eq!(place.changes() - changes, done[0].objects + 1);
        assert_eq!(archiver.missing_bytes(&server.cut().info), 0);
        assert_eq!(archiver.newest(), Some(&mark(&place, number)));
    }
    // The mark before each, and what this test reads.
    assert_eq!((place.listings(), place.reads() - 2 * 38), (listings, reads), "what a tick costs");
    expect_whole(&place);
    let known = newest(&place);
    let (incarnation, numbers) = server.highest();
    assert!(known.shards.iter().all(|shard| shard.incarnation == incarnation));
    assert!(known.shards.iter().map(|shard| shard.last_number).eq(numbers));
}

/// Trouble of every kind, at any moment: whatever is there is whole and right.
#[test]
fn every_moment_that_was_archived_has_its_state() {
    let (mut exact, mut thinned) = (0, 0);
    for seed in 0..8 {
        let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(seed));
        let mut server = Server::new(seed + 1, 1 + dice.index(2));
        let mut archiver = archiver(&place);
        for round in 0..70 {
            match dice.below(14) {
                0 => place.stop_after(dice.below(6)),
                1 | 2 => place.heal(),
                3 => place.lose_answers(1 + dice.below(2)),
                4 => {
                    // Killed: nobody waits for what is under way.
                    server = server.restarted(round);
                    archiver = self::archiver(&place);
                }
                5 => server.pass(dice.below(2 * LONG_MS)),
                6 => drop(settle(&mut archiver)),
                _ => {
                    let count = 1 + dice.below(6);
                    server.turns(&mut dice, count);
                    if let Err(error) = archiver.offer(&mut server.cut(), round) {
                        assert!(!error.is_final(), "seed {seed}, round {round}: {error}");
                    }
                }
            }
        }
        place.heal();
        server.turn(&mut dice);
        // What was under way may fail once more, and then its trouble is over.
        let is_there = (0..5).any(|_| {
            let offered = archiver.offer(&mut server.cut(), 0);
            offered.is_ok() && settle(&mut archiver).is_ok()
        });
        assert!(is_there, "seed {seed}");
        assert_eq!(newest(&place).at(), server.now());
        expect_whole(&place);
        let marks = Catalogue::read(&*place).unwrap().lines().unwrap()[0].marks;
        thinned += newest(&place).number - marks;
        exact += check_moments(&place, &server, &mut dice);
    }
    assert!(exact > 8 && thinned > 0, "{exact} moments, {thinned} marks");
}

/// Restores some moments. Returns how many there were.
fn check_moments(place: &MemoryPlace, server: &Server, dice: &mut Dice) -> u64 {
    let (root, moments) = (tempfile::tempdir().unwrap(), server.moments());
    let mut count = 0;
    for index in 0..5_u64 {
        let moment = if index == 0 { server.now() } else { dice.pick(&moments) };
        let chosen = Catalogue::read(place).unwrap().choose(None, Until::At(moment));
        let Ok(choice) = chosen else { continue };
        let data = root.path().join(index.to_string());
        restore_to(place, &choice, &data, 900 + index).unwrap();
        expect_state(&data, server, choice.until);
        count += 1;
    }
    count
}

/// An object of the first draft is slow, and those of the others are not.
#[test]
fn marks_come_in_order_and_only_four_drafts_are_under_way() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(2));
    let gate = Gate::default();
    let closed = gate.clone();
    let mut archiver = hooked(&place, move |_, name| {
        if name.ends_with("/002-0") {
            closed.pass();
        }
    });
    let mut server = Server::new(2, 1);
    archive(&mut archiver, &mut server, &mut dice);
    for token in 2..=5 {
        server.turn(&mut dice);
        archiver.offer(&mut server.cut(), token).unwrap();
    }
    assert_eq!(archiver.under_way(), 4);
    // The objects of the last one are there, and no mark.
    wait_until(|| place.objects().keys().any(|name| name.ends_with("/005-0")));
    assert!(archiver.concluded(Duration::ZERO).unwrap().is_empty());
    assert!((2..=5).all(|number| !has_mark(&place, number)));
    assert!(archiver.missing_bytes(&server.cut().info) > 0);
    gate.open();
    let done = settle(&mut archiver).unwrap();
    let numbers: Vec<(u64, u64)> = done.iter().map(|done| (done.token, done.mark)).collect();
    assert_eq!(numbers, [(2, 2), (3, 3), (4, 4), (5, 5)]);
    expect_whole(&place);
}

/// Waits for something that a thread does soon.
#[track_caller]
pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool) {
    let is_there = (0..10_000_000_u64).any(|_| {
        std::thread::yield_now();
        is_so()
    });
    assert!(is_there, "it has not come");
}

#[test]
fn a_draft_without_an_object_has_no_mark_nor_has_any_after_it() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(3));
    let mut archiver = hooked(&place, |place, name| {
        // The object of the second mark fails, and everything else could be done.
        if name.ends_with("/002-0") && !has_mark(place, 2) {
            place.stop_after(0);
        } else {
            place.heal();
        }
    });
    let mut server = Server::new(3, 1);
    archive(&mut archiver, &mut server, &mut dice);
    server.turn(&mut dice);
    archiver.offer(&mut server.cut(), 2).unwrap();
    let failed = settle(&mut archiver).unwrap_err();
    assert!(matches!(failed, ArchiveError::Place(PlaceError::Away { .. })), "{failed}");
    assert!(!failed.is_final());
    assert_eq!((archiver.under_way(), newest(&place).number), (0, 1));
    expect_whole(&place);
}

#[test]
fn objects_that_failed_drafts_have_left_are_passed_over() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(4));
    let mut archiver = archiver(&place);
    let mut server = Server::new(4, 1);
    archive(&mut archiver, &mut server, &mut dice);
    // As if three drafts had come as far as their objects.
    for number in 2..=4 {
        place.put(&format!("0000000000000004/parts/000000000/{number:03}-0"), vec![1]);
    }
    let mut archiver = self::archiver(&place);
    let mut server = server.restarted(5);
    for _ in 0..3 {
        archive(&mut archiver, &mut server, &mut dice);
    }
    let objects: Vec<(u64, u32)> = newest(&place).shards[0].parts[0].each_object().collect();
    assert_eq!(objects, [(2, 1), (3, 1), (4, 1)]);
    expect_whole(&place);
}

#[test]
fn a_lost_answer_about_a_mark_is_no_other_server() {
    for at in [1, 2] {
        let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(5));
        let wanted = format!("marks/000000000/{at:03}");
        let mut archiver = hooked(&place, move |place, name| {
            if name == wanted {
                place.lose_answers(1);
            }
        });
        let mut server = Server::new(5, 1);
        let mut failures = 0;
        for _ in 0..4 {
            server.turn(&mut dice);
            let offered = archiver.offer(&mut server.cut(), 0);
            let done = offered.and_then(|_| settle(&mut archiver));
            if let Err(error) = done {
                assert!(!error.is_final(), "{error}");
                failures += 1;
            }
        }
        assert_eq!((failures, newest(&place).number), (1, 4));
        expect_whole(&place);
    }
}

/// A create that nobody waits for any more is carried out late.
#[test]
fn a_mark_of_an_earlier_start_is_no_other_server() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(6));
    let mut archiver = archiver(&place);
    let mut server = Server::new(6, 1);
    archive(&mut archiver, &mut server, &mut dice);
    let early = Mark { number: 3, ..mark(&place, 1) };
    let mut server = server.restarted(7);
    let mut archiver = self::archiver(&place);
    archive(&mut archiver, &mut server, &mut dice);
    place.put("marks/000000000/003", early.encode());
    server.turn(&mut dice);
    archiver.offer(&mut server.cut(), 0).unwrap();
    let failed = settle(&mut archiver).unwrap_err();
    assert!(matches!(failed, ArchiveError::LookAgain { .. }) && !failed.is_final(), "{failed}");
    assert_eq!(archive(&mut archiver, &mut server, &mut dice)[0].mark, 4);
    expect_whole(&place);
}

#[test]
fn of_two_servers_the_one_that_finds_its_number_taken_stops() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(7));
    let mut archiver = archiver(&place);
    let mut server = Server::new(7, 1);
    archive(&mut archiver, &mut server, &mut dice);
    // The copy has started once more, and knows all that was archived.
    let mut copy = server.copied(5);
    let mut other = self::archiver(&place);
    archive(&mut other, &mut copy, &mut dice);
    server.turn(&mut dice);
    archiver.offer(&mut server.cut(), 0).unwrap();
    let failed = settle(&mut archiver).unwrap_err();
    assert!(matches!(failed, ArchiveError::TakenByAnother { .. }), "{failed}");
    assert!(failed.is_final());
    let before = place.objects();
    let failed = archiver.offer(&mut server.cut(), 0).unwrap_err();
    assert!(failed.is_final(), "{failed}");
    assert!(place.objects() == before, "nothing was written");
    archive(&mut other, &mut copy, &mut dice);
    expect_whole(&place);
}

/// Both copies have started as often, so that neither is older than the other.
#[test]
fn of_two_servers_of_one_start_only_one_goes_on() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(8));
    let mut archiver = archiver(&place);
    let mut server = Server::new(8, 1);
    archive(&mut archiver, &mut server, &mut dice);
    let mut copy = server.copied(5);
    let mut server = server.restarted(6);
    let mut archiver = self::archiver(&place);
    archive(&mut archiver, &mut server, &mut dice);
    copy.turn(&mut dice);
    let before = place.objects();
    let failed = self::archiver(&place).offer(&mut copy.cut(), 0).unwrap_err();
    assert!(matches!(failed, ArchiveError::TakenByAnother { .. }), "{failed}");
    assert!(place.objects() == before, "nothing was written");
    archive(&mut archiver, &mut server, &mut dice);
    expect_whole(&place);
}

/// The other one comes after this one has looked.
#[test]
fn of_two_servers_that_begin_at_once_only_one_goes_on() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(9));
    let mut server = Server::new(9, 1);
    server.turn(&mut dice);
    let copy = server.copied(5);
    let server = server.restarted(6);
    let (mut other, mut others) = (archiver(&place), copy.cut());
    let mut cut = server.cut();
    cut.on_read = Some(Box::new(move |reads| {
        if reads == 1 {
            other.offer(&mut others, 0).unwrap();
        }
    }));
    let mut archiver = archiver(&place);
    let failed = archiver.offer(&mut cut, 0).unwrap_err();
    assert!(matches!(failed, ArchiveError::Taken { .. }) && !failed.is_final(), "{failed}");
    let failed = archiver.offer(&mut server.cut(), 0).unwrap_err();
    assert!(matches!(failed, ArchiveError::TakenByAnother { .. }), "{failed}");
    assert_eq!(newest(&place).number, 1);
    expect_whole(&place);
}

#[test]
fn an_older_copy_and_a_stranger_are_refused_for_good() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(10));
    let mut server = Server::new(10, 1);
    server.turn(&mut dice);
    let copy = server.copied(5);
    let mut server = server.restarted(6);
    server.turns(&mut dice, 9);
    archive(&mut archiver(&place), &mut server, &mut dice);
    let before = place.objects();
    for other in [copy.restarted(7).restarted(8), Server::new(11, 1)] {
        let failed = archiver(&place).offer(&mut other.cut(), 0).unwrap_err();
        assert!(failed.is_final(), "{failed}");
    }
    assert!(place.objects() == before, "nothing was written");
}

/// Whoever has emptied it: marks that name what is gone would be worth nothing.
#[test]
fn a_place_that_was_emptied_gets_everything_with_the_next_cuts() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(19));
    let mut server = Server::new(19, 2);
    let mut archiver = archiver(&place);
    for _ in 0..4 {
        archive(&mut archiver, &mut server, &mut dice);
    }
    for name in place.objects().into_keys() {
        assert!(place.remove(&name).unwrap());
    }
    server.turn(&mut dice);
    let offered = archiver.offer(&mut server.cut(), 0).and_then(|_| settle(&mut archiver));
    let error = offered.unwrap_err();
    assert!(!error.is_final() && error.to_string().contains("marks/000000000/004"), "{error}");
    assert!(Catalogue::read(&*place).is_err(), "there is no mark");
    archive(&mut archiver, &mut server, &mut dice);
    expect_whole(&place);
    assert_eq!(newest(&place).at(), server.now());
}

/// A standby took the place of its line, and archives on a line of its own.
#[test]
fn who_was_replaced_does_not_take_the_place_back() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(17));
    let mut old = Server::new(17, 2);
    let mut first = archiver(&place);
    archive(&mut first, &mut old, &mut dice);
    let choice = Catalogue::read(&*place).unwrap().choose(None, Until::Latest).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let restored = restore_to(&*place, &choice, &folder.path().join("data"), 18).unwrap();
    let mut new = Server::new(restored.line.0, 2);
    new.pass(LONG_MS);
    let mut second = archiver(&place);
    for _ in 0..2 {
        archive(&mut second, &mut new, &mut dice);
    }
    old.turns(&mut dice, 3);
    for (mut archiver, is_new) in
        [(first, false), (archiver(&place), false), (archiver(&place), true)]
    {
        if is_new {
            // Its marks are those of an earlier start then.
            old = old.restarted(20);
            old.turn(&mut dice);
        }
        let offered = archiver.offer(&mut old.cut(), 0).and_then(|_| settle(&mut archiver));
        let error = offered.unwrap_err();
        assert!(error.is_final(), "{error}");
        // Nor later, whatever it tries.
        let error = archiver.offer(&mut old.cut(), 0).unwrap_err();
        assert!(error.is_final(), "{error}");
    }
    assert_eq!(newest(&place).line, restored.line);
    archive(&mut second, &mut new, &mut dice);
    expect_whole(&place);
}

/// The number that it would go on with is free again: the mark of the other one was removed.
#[test]
fn a_server_that_was_stopped_for_long_looks_before_it_goes_on() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(12));
    let mut archiver = archiver(&place);
    let mut server = Server::new(12, 1);
    archive(&mut archiver, &mut server, &mut dice);
    let mut copy = server.copied(5);
    let mut other = self::archiver(&place);
    archive(&mut other, &mut copy, &mut dice);
    archive(&mut other, &mut copy, &mut dice);
    copy.pass(LONG_MS);
    archive(&mut other, &mut copy, &mut dice);
    archive(&mut other, &mut copy, &mut dice);
    wait_until(|| !has_mark(&place, 2) && !has_mark(&place, 3));
    assert_eq!(newest(&place).number, 5);
    expect_whole(&place);
    let before = place.objects();
    server.pass(LONG_MS);
    server.turn(&mut dice);
    let failed = archiver.offer(&mut server.cut(), 0).unwrap_err();
    assert!(failed.is_final(), "{failed}");
    assert!(place.objects() == before, "nothing was written");
}

#[test]
fn archiving_goes_on_where_marks_may_not_be_removed() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(13));
    let mut archiver = archiver(&place);
    let mut server = Server::new(13, 1);
    place.keep_all();
    for _ in 0..5 {
        server.pass(LONG_MS);
        archive(&mut archiver, &mut server, &mut dice);
    }
    // What a thread was refused is known a little later.
    wait_until(|| {
        drop(archiver.concluded(Duration::ZERO));
        !archiver.may_remove()
    });
    assert!((1..=5).all(|number| has_mark(&place, number)));
    archive(&mut archiver, &mut server, &mut dice);
    assert_eq!(newest(&place).number, 6);
}

#[test]
fn a_new_base_begins_when_the_newest_mark_is_gone() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(14));
    let mut archiver = archiver(&place);
    let mut server = Server::new(14, 2);
    assert!(archiver.look().unwrap());
    server.turns(&mut dice, 30);
    for _ in 0..3 {
        archive(&mut archiver, &mut server, &mut dice);
        assert!(archiver.look().unwrap());
    }
    // Somebody has emptied the bucket.
    for name in place.objects().into_keys() {
        place.take_away(&name);
    }
    assert!(!archiver.look().unwrap());
    assert!(archiver.newest().is_none());
    assert_eq!(archiver.offer(&mut server.cut(), 0).unwrap(), Offered::Sending);
    assert_eq!(settle(&mut archiver).unwrap()[0].mark, 1);
    expect_whole(&place);
    archive(&mut archiver, &mut server, &mut dice);
    // And somebody has removed the newest mark alone.
    place.take_away("marks/000000000/002");
    assert!(!archiver.look().unwrap());
    assert_eq!(archive(&mut archiver, &mut server, &mut dice)[0].mark, 2);
    expect_whole(&place);
}

/// Of a log with one segment, the cut after each commit.
fn cuts(server: &Server) -> impl Iterator<Item = Cut> {
    let whole = server.cut();
    let segment = whole.info.shards[0][0];
    let bytes = whole.bytes[0][&segment.number].clone();
    let at = whole.info.at;
    ends(&bytes).into_iter().map(move |(end, _)| {
        let segment = SegmentEnd { bytes: end as u64, ..segment };
        let of_shard = [(segment.number, bytes[..end].to_vec())];
        let info = CutInfo { at, shards: vec![vec![segment]] };
        Cut { info, bytes: vec![of_shard.into()], reads: 0, on_read: None }
    })
}

#[test]
fn a_segment_in_a_thousand_objects_is_sent_anew_and_verified_in_one_reading() {
    let place = Arc::new(MemoryPlace::new());
    let mut archiver = archiver(&place);
    let mut server = Server::with_segments(15, 1, 1 << 20);
    for _ in 0..1_010 {
        server.tick();
    }
    assert_eq!(server.cut().info.shards[0].len(), 1);
    let (mut longest, mut last) = (0, 0);
    for mut cut in cuts(&server) {
        archiver.offer(&mut cut, 0).unwrap();
        settle(&mut archiver).unwrap();
        let mark = archiver.newest().unwrap();
        last = mark.shards[0].parts[0].each_object().count();
        longest = longest.max(last);
    }
    assert_eq!(longest, 1_000);
    assert!(last < 50, "{last} objects");
    // Each mark names a little more of the same objects.
    let (objects, reads) = (place.objects().len() as u64, place.reads());
    let found = verify(&*place, &mut |_| {}).unwrap();
    assert!(found.faults.is_empty(), "{:?}", found.faults);
    let reads = place.reads() - reads;
    assert!(reads <= objects, "{reads} of {objects} objects");
    // One that is gone is noted for all marks that need it, and what does not is read once more.
    let name = "000000000000000f/parts/000000000/500-0";
    place.take_away(name);
    let reads = place.reads();
    let found = verify(&*place, &mut |_| {}).unwrap();
    let faults: Vec<(&str, usize)> =
        found.faults.iter().map(|fault| (fault.name.as_str(), fault.marks.len())).collect();
    assert_eq!(faults, [(name, 501)]);
    assert!(place.reads() - reads <= 3 * objects);
}

#[test]
fn a_scrub_finds_what_has_rotted_on_either_side() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(16));
    let mut archiver = archiver(&place);
    let mut server = Server::new(16, 2);
    server.turns(&mut dice, 30);
    for _ in 0..5 {
        archive(&mut archiver, &mut server, &mut dice);
    }
    let known = archiver.newest().unwrap().clone();
    server.turn(&mut dice);
    let look = |cut: &mut Cut| -> Vec<Fault> {
        let mut pieces = 0;
        let faults = scrub(cut, &*place, &known, &mut || pieces += 1).unwrap();
        assert!(pieces >= known.segments(), "{pieces} pieces");
        faults
    };
    assert!(look(&mut server.cut()).is_empty());
    // Segments that the server has removed since are checked for themselves.
    let mut fewer = server.cut();
    fewer.info.shards[0].remove(0);
    assert!(look(&mut fewer).is_empty());
    let mut count = 0;
    let needed = |name: &str| name.ends_with("/whole") || name.contains("/parts/");
    for (name, bytes) in place.objects().into_iter().filter(|(name, _)| needed(name)) {
        let mut damaged = bytes.clone();
        damaged[dice.index(bytes.len())] ^= 1;
        place.put(&name, damaged);
        let found = look_for(&place, &known, &mut server.cut());
        place.take_away(&name);
        let missing = look_for(&place, &known, &mut server.cut());
        place.put(&name, bytes);
        // Some belong to segments that are obsolete by now, as a whole or in part.
        if !found.is_empty() {
            assert_eq!(found, [name.as_str()]);
            assert_eq!(missing, [name.as_str()]);
            count += 1;
        }
    }
    assert!(count > 3, "{count} objects");
    let mut rotten = server.cut();
    let (number, bytes) = rotten.bytes[1].iter_mut().next().unwrap();
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    let expected = format!("segment {number} of shard 1 of this server");
    assert_eq!(look_for(&place, &known, &mut rotten), [expected]);
}

fn look_for(place: &MemoryPlace, known: &Mark, cut: &mut Cut) -> Vec<String> {
    let faults = scrub(cut, place, known, &mut || {}).unwrap();
    faults.into_iter().map(|fault| fault.name).collect()
}

/// A scrub takes hours, and what it looks for may be pruned meanwhile.
#[test]
fn what_was_pruned_during_a_scrub_is_no_fault() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(17));
    let mut archiver = archiver(&place);
    let mut server = Server::new(17, 1);
    for _ in 0..3 {
        archive(&mut archiver, &mut server, &mut dice);
    }
    let known = archiver.newest().unwrap().clone();
    let mut server = server.restarted(5);
    archive(&mut self::archiver(&place), &mut server, &mut dice);
    let part = "0000000000000011/parts/000000000/002-0";
    place.take_away(part);
    assert_eq!(look_for(&place, &known, &mut server.cut()), [part]);
    // The segment is there whole by now, and no mark is left that needs its parts.
    for number in 1..=3 {
        place.take_away(&format!("marks/000000000/{number:03}"));
    }
    assert!(look_for(&place, &known, &mut server.cut()).is_empty());
}

#[test]
fn what_the_source_does_not_give_ends_the_draft_and_the_next_one_goes_on() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(18));
    let mut archiver = archiver(&place);
    let mut server = Server::new(18, 1);
    archive(&mut archiver, &mut server, &mut dice);
    server.turn(&mut dice);
    let [mut damaged, mut gone, mut late] = [(); 3].map(|()| server.cut());
    let bytes = damaged.bytes[0].values_mut().next_back().unwrap();
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    gone.bytes[0].clear();
    late.info.at = Timestamp::ZERO;
    late.info.shards[0].clear();
    for cut in [&mut damaged, &mut gone, &mut late] {
        let failed = archiver.offer(cut, 0).unwrap_err();
        assert!(matches!(failed, ArchiveError::Source(_)) && !failed.is_final(), "{failed}");
        assert_eq!((archiver.under_way(), newest(&place).number), (0, 1));
    }
    archive(&mut archiver, &mut server, &mut dice);
    assert_eq!(newest(&place).number, 2);
    expect_whole(&place);
}

/// It is dropped while objects are on their way.
#[test]
fn an_archiver_that_is_dropped_leaves_a_whole_place() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(19));
    let has_ended = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&has_ended);
    let mut archiver = hooked(&place, move |_, name| {
        if name == "marks/000000000/003" {
            flag.store(true, Ordering::SeqCst);
        }
    });
    let mut server = Server::new(19, 1);
    archive(&mut archiver, &mut server, &mut dice);
    for _ in 0..2 {
        server.turn(&mut dice);
        archiver.offer(&mut server.cut(), 0).unwrap();
    }
    drop(archiver);
    // What was complete is still created.
    wait_until(|| has_ended.load(Ordering::SeqCst) && has_mark(&place, 3));
    expect_whole(&place);
}

/// Archives many small changes of a server whose segments have this size. Returns how often
/// segments became full, and how many bytes were read that had been sent already. Those that the
/// archiver has begun with do not count: it has not sent all of them in parts.
fn read_twice(segment_bytes: u32, changes: u64) -> (u64, u64) {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(3));
    let mut server = Server::with_segments(0xabc, 2, segment_bytes);
    let mut archiver = archiver(&place);
    archive(&mut archiver, &mut server, &mut dice);
    let numbers = |mark: &Mark| mark.shards.iter().map(|it| it.parts[0].number).collect();
    let firsts: Vec<u32> = numbers(&newest(&place));
    let (mut filled, mut read_twice) = (0, 0);
    for _ in 0..changes {
        let known: Vec<u32> = numbers(&newest(&place));
        server.turn(&mut dice);
        let mut cut = server.cut();
        let new = archiver.missing_bytes(&cut.info);
        let lasts = cut.info.shards.iter().map(|segments| segments.last().unwrap().number);
        let are_full = lasts.zip(&known).any(|(last, known)| last > *known);
        assert_eq!(archiver.offer(&mut cut, 0).unwrap(), Offered::Sending);
        let done = settle(&mut archiver).unwrap();
        if known.iter().zip(&firsts).all(|(known, first)| known > first) {
            filled += u64::from(are_full);
            read_twice += done.iter().map(|done| done.bytes_read).sum::<u64>() - new;
        }
    }
    expect_whole(&place);
    check_moments(&place, &server, &mut dice);
    (filled, read_twice)
}

#[test]
fn what_was_sent_of_a_segment_in_a_few_parts_becomes_its_object() {
    let (filled, read_twice) = read_twice(24 << 10, 60);
    assert!(filled > 4, "{filled} segments");
    assert_eq!(read_twice, 0, "bytes were read twice");
}

#[test]
fn a_segment_of_many_parts_is_compressed_anew_when_it_is_full() {
    let (filled, read_twice) = read_twice(96 << 10, 200);
    assert!(filled > 0, "{filled} segments");
    assert!(read_twice > 64 << 10, "{read_twice} bytes were read twice");
}
