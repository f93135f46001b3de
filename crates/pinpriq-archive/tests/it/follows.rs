//! A directory that follows has the state of a mark whenever its process ends, and a server goes on
//! from there with numbers that nobody has.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pinpriq_archive::line::Line;
use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{
    ArchiveError, Catalogue, ErrorKind, Follower, LineId, Mark, Order, Place, PlaceError, Round,
    Turn, Until, restore,
};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::disk::{Disk as _, OpenMode, read_full_at};
use pinpriq_store::layout::{FollowingSegment, Phase, read_following, replace_file, shards_in};
use pinpriq_store::reshard::{DirectoryError, ReshardReport, read_directory};
use pinpriq_store::restore::{Wishes, finish_following};
use pinpriq_store::{RealDisk, StoreError};
use pinpriq_testing::Dice;

use crate::backups::mark;
use crate::meddled::{Asked, Meddled, away};
use crate::server::{Server, options};

/// What the clock says in these tests.
const NOW_MS: u64 = 1 << 40;

/// A place that answers so many times, and is away then.
fn limited<'a>(place: &'a MemoryPlace, left: &'a AtomicU64) -> Meddled<'a, &'a MemoryPlace> {
    Meddled::new(place, |asked| {
        if matches!(asked, Asked::Remove(_)) {
            return Ok(());
        }
        let less = |left: u64| left.checked_sub(1);
        let answers = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        answers.map(|_| ()).map_err(|_| away("ask", "x"))
    })
}

/// What happens once.
type Happening<'a> = Box<dyn FnOnce() + Send + 'a>;

/// A place in which something happens before the first object is created. It may be away after an
/// object.
fn meddled<'a>(
    place: &'a MemoryPlace,
    before: impl FnOnce() + Send + 'a,
    ends: bool,
) -> Meddled<'a, &'a MemoryPlace> {
    let happening: Happening<'a> = Box::new(before);
    let (happening, is_away) = (Mutex::new(Some(happening)), AtomicBool::new(false));
    Meddled::new(place, move |asked| {
        let creates = matches!(asked, Asked::Create(..));
        let first = happening.lock().unwrap().take_if(|_| creates);
        if let Some(first) = first {
            first();
        }
        if is_away.load(Ordering::Relaxed) && !matches!(asked, Asked::Remove(_)) {
            return Err(away("ask", "x"));
        }
        is_away.fetch_or(creates && ends, Ordering::Relaxed);
        Ok(())
    })
}

/// A round at a moment. The number is that of the directory, if it needs one.
fn turned(follower: &mut Follower<'_>, drawn: u64, now_ms: u64) -> Result<Round, ArchiveError> {
    let mut last = 0;
    let mut turn = Turn {
        now: Timestamp::from_ms(now_ms),
        drawn,
        stops: &|| false,
        progress: &mut |it| {
            assert_eq!(it.done, last + 1);
            last += 1;
        },
    };
    follower.round(&mut turn)
}

/// One round of a process of its own.
fn follow(place: &dyn Place, data: &Path, drawn: u64) -> Result<Round, ArchiveError> {
    turned(&mut Follower::open(place, data, None)?, drawn, NOW_MS)
}

/// What a server does first.
fn finish(data: &Path, shards: usize) -> Result<Option<Vec<ReshardReport>>, DirectoryError> {
    finish_following(data, shards, options(77), &Arc::default())
}

#[track_caller]
fn finished(data: &Path, shards: usize) -> Vec<ReshardReport> {
    finish(data, shards).unwrap().unwrap()
}

/// How many lines a place knows.
fn lines(place: &MemoryPlace) -> usize {
    place.objects().keys().filter(|name| name.ends_with("/line")).count()
}

/// The number with which the first shard of a line goes on.
fn first_start(place: &MemoryPlace, own: u64) -> u64 {
    let name = format!("{own:016x}/line");
    let line = Line::decode(&name, &place.get(&name).unwrap().unwrap()).unwrap();
    line.starts[0].last_number
}

#[track_caller]
fn expect_state(data: &Path, server: &Server, moment: Timestamp) {
    let held = read_directory(data).unwrap();
    let expected = server.states_at(moment);
    assert_eq!(held.contents.len(), expected.len());
    for (shard, (found, expected)) in held.contents.iter().zip(&expected).enumerate() {
        assert!(found.fold.without_places() == *expected, "shard {shard} at {moment}");
    }
}

/// Copies a directory. Another process would hold locks of other tests until it begins.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in from.read_dir().unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

#[test]
fn a_directory_has_the_state_of_a_mark_whenever_it_ends() {
    let (mut drawn, mut ended, mut compared) = (0x1000, 0, 0);
    for (seed, shards) in [(1, 1), (2, 2), (3, 3)] {
        let (place, mut dice) = (MemoryPlace::new(), Dice::new(seed));
        let mut server = Server::new(seed, shards);
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        for step in 0..10 {
            let turns = 1 + dice.below(14);
            server.turns(&mut dice, turns);
            if step % 4 == 3 {
                server = server.restarted(100 + step);
            }
            server.back_up(&place).unwrap();
            let mut left = 0;
            loop {
                drawn += 1;
                let answers = AtomicU64::new(left);
                let Err(error) = follow(&limited(&place, &answers), &data, drawn) else { break };
                // Each first try leaves a line, which all later ones read.
                left += if step == 0 { 1 + left / 3 } else { 1 };
                assert!(matches!(error, ArchiveError::Place(PlaceError::Away { .. })), "{error}");
                ended += 1;
                let known = read_following(&data).unwrap().filter(|known| known.mark > 0);
                if let Some(known) = known.filter(|_| dice.below(6) == 0) {
                    assert_eq!(known.mark, step);
                    let beside = root.path().join(format!("beside-{drawn}"));
                    copy(&data, &beside);
                    finished(&beside, shards);
                    expect_state(&beside, &server, known.at());
                    compared += 1;
                }
            }
            let known = read_following(&data).unwrap().unwrap();
            assert_eq!((known.mark, known.at()), (step + 1, server.now()));
            assert_eq!(follow(&place, &data, 1).unwrap(), Round::Same);
        }
        let (incarnation, numbers) = server.highest();
        for (report, number) in finished(&data, shards).iter().zip(numbers) {
            assert!(report.header.incarnation >= incarnation + (1 << 16));
            assert!(report.header.last_number >= number + (1 << 36));
            assert!(report.header.now >= server.now());
        }
        expect_state(&data, &server, server.now());
        assert_eq!(read_following(&data).unwrap(), None);
    }
    assert!(ended > 60 && compared > 5, "{ended} ended, {compared} compared");
}

/// A cut has one moment for all shards, and some may have gone on until it was taken.
#[test]
fn what_came_after_the_moment_is_cut_off() {
    let mut compared = 0;
    for seed in 20..26 {
        let (place, mut dice) = (MemoryPlace::new(), Dice::new(seed));
        let mut server = Server::new(seed, 2);
        server.turns(&mut dice, 20);
        let at = server.now();
        let later = dice.pick(&[1, 3, 8]);
        server.turns(&mut dice, later);
        let mut cut = server.cut();
        cut.info.at = at;
        cut.back_up(&place).unwrap();
        let name = "marks/000000000/001";
        // The journal may have gone on without what there was then.
        if Mark::decode(name, &place.get(name).unwrap().unwrap()).is_err() {
            continue;
        }
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        follow(&place, &data, 0x10).unwrap();
        assert_eq!(read_following(&data).unwrap().unwrap().at(), at);
        finished(&data, 2);
        expect_state(&data, &server, at);
        compared += 1;
    }
    assert!(compared >= 3, "{compared} compared");
}

/// One process all along, which reads only what is new.
#[test]
fn a_round_asks_for_what_is_new_and_for_nothing_else() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(4));
    let mut server = Server::new(4, 2);
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let answers = AtomicU64::new(1 << 20);
    let many = limited(&place, &answers);
    let mut follower = Follower::open(&many, &data, None).unwrap();
    server.turns(&mut dice, 40);
    server.back_up(&place).unwrap();
    assert!(matches!(turned(&mut follower, 9, NOW_MS), Ok(Round::New { .. })));
    let left = || answers.load(Ordering::Relaxed);
    let before = left();
    assert_eq!(turned(&mut follower, 9, NOW_MS).unwrap(), Round::Same);
    assert_eq!(before - left(), 1, "only the next mark was looked for");
    let mut least = u64::MAX;
    for _ in 0..20 {
        server.turn(&mut dice);
        server.back_up(&place).unwrap();
        let before = left();
        assert!(matches!(turned(&mut follower, 9, NOW_MS), Ok(Round::New { bytes: 1.. })));
        least = least.min(before - left());
    }
    // The mark, one object for both shards, and the mark that is not there yet.
    assert_eq!(least, 3);
    drop(follower);
    finished(&data, 2);
    expect_state(&data, &server, server.now());
}

#[test]
fn marks_that_were_removed_in_between_do_not_end_following() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(5));
    let mut server = Server::new(5, 1);
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    server.turns(&mut dice, 9);
    server.back_up(&place).unwrap();
    let mut follower = Follower::open(&place, &data, None).unwrap();
    turned(&mut follower, 9, NOW_MS).unwrap();
    for _ in 0..20 {
        server.turns(&mut dice, 3);
        server.back_up(&place).unwrap();
    }
    for number in 2..=20 {
        place.take_away(&format!("marks/000000000/{number:03}"));
    }
    // Only a listing tells, and there is one each minute.
    assert_eq!(turned(&mut follower, 9, NOW_MS + 59_999).unwrap(), Round::Same);
    let later = turned(&mut follower, 9, NOW_MS + 60_000);
    assert!(matches!(later, Ok(Round::New { .. })), "{later:?}");
    assert_eq!(follower.followed().map(|known| known.mark), Some(21));
    drop(follower);
    finished(&data, 1);
    expect_state(&data, &server, server.now());
}

/// The numbers of a mark, as if much more had been given by then.
fn raise(place: &MemoryPlace, number: u64, change: impl Fn(&mut Mark)) {
    let mut raised = mark(place, number);
    change(&mut raised);
    place.put(&format!("marks/000000000/{number:03}"), raised.encode());
}

#[test]
fn numbers_are_drawn_anew_before_they_are_reached() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(6));
    let mut server = Server::new(6, 1);
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let mut follower = Follower::open(&place, &data, None).unwrap();
    let starts = |own: u64| {
        let name = format!("{own:016x}/line");
        Line::decode(&name, &place.get(&name).unwrap().unwrap()).unwrap().starts[0]
    };
    server.turn(&mut dice);
    server.back_up(&place).unwrap();
    turned(&mut follower, 0x10, NOW_MS).unwrap();
    let (incarnation, numbers) = server.highest();
    let first = starts(0x10);
    assert_eq!(first.last_number, numbers[0] + (2 << 36));
    assert_eq!(first.incarnation, incarnation + (2 << 16));
    for (number, drawn, more, other) in
        [(2, 0x11, 1_u64 << 36, false), (3, 0x12, (1 << 36) + 9, true), (4, 0x13, 0, false)]
    {
        server.turn(&mut dice);
        server.back_up(&place).unwrap();
        let before = follower.followed().unwrap().own;
        // The next backups know of what was raised before.
        raise(&place, number, |mark| {
            let known = &mut mark.highest[0].last_number;
            *known = (*known).max(numbers[0] + more);
        });
        turned(&mut follower, drawn, NOW_MS).unwrap();
        let own = follower.followed().unwrap().own;
        assert_eq!(own == LineId(drawn), other, "mark {number}");
        assert_eq!(own == before, !other, "mark {number}");
    }
    let second = starts(0x12);
    assert!(second.last_number >= first.last_number + (1 << 36), "{second:?}");
    drop(follower);
    let report = finished(&data, 1)[0];
    assert_eq!(report.header.last_number, second.last_number);
    assert_eq!(report.header.incarnation, second.incarnation);
    expect_state(&data, &server, server.now());
    // The directory is the line that was announced last, and its backups are accepted.
    let mut other = Server::of_directory(&data, 0x12, 1);
    other.turn(&mut dice);
    other.back_up(&place).unwrap();
}

#[test]
fn rounds_that_fail_use_up_no_more_numbers() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(14));
    let mut server = Server::new(14, 1);
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    server.turns(&mut dice, 5);
    server.back_up(&place).unwrap();
    let mut follower = Follower::open(&place, &data, None).unwrap();
    // The place knows the line, and says that it failed.
    place.lose_answers(1);
    let failed = turned(&mut follower, 0x10, NOW_MS).unwrap_err();
    assert!(matches!(failed, ArchiveError::Place(PlaceError::Away { .. })), "{failed}");
    assert!(matches!(turned(&mut follower, 0x11, NOW_MS), Ok(Round::New { .. })));
    let known = read_following(&data).unwrap().unwrap();
    assert_eq!((known.number, known.mark, lines(&place)), (0x10, 1, 2));

    let before = place.objects();
    server.turns(&mut dice, 5);
    server.back_up(&place).unwrap();
    raise(&place, 2, |mark| mark.highest[0].last_number += (1 << 36) + 9);
    let mut missing = place.objects();
    missing.retain(|name, _| !before.contains_key(name) && !name.starts_with("marks/"));
    assert!(!missing.is_empty());
    for name in missing.keys() {
        place.take_away(name);
    }
    for drawn in 0x12..0x14 {
        let failed = turned(&mut follower, drawn, NOW_MS).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Damaged, "{failed}");
    }
    drop(follower);
    assert_eq!(follow(&place, &data, 0x14).unwrap_err().kind(), ErrorKind::Damaged);
    let known = read_following(&data).unwrap().unwrap();
    assert_eq!((known.number, known.mark, lines(&place)), (0x12, 1, 3));
    assert_eq!(known.shards[0].start.last_number, first_start(&place, 0x12));
    for (name, bytes) in missing {
        place.put(&name, bytes);
    }
    assert!(matches!(follow(&place, &data, 0x15), Ok(Round::New { .. })));
    assert_eq!(lines(&place), 3);
    assert_eq!(finished(&data, 1)[0].header.last_number, first_start(&place, 0x12));
    expect_state(&data, &server, server.now());
}

#[test]
fn two_that_begin_together_get_numbers_of_their_own() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(15));
    let mut server = Server::new(15, 1);
    let root = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| root.path().join(name));
    server.turns(&mut dice, 5);
    server.back_up(&place).unwrap();
    // One tells the place of its numbers after the other has chosen them too.
    let begin = || {
        let ending = meddled(&place, || {}, true);
        let ended = follow(&ending, &one, 0x10).unwrap_err();
        assert!(matches!(ended, ArchiveError::Place(PlaceError::Away { .. })), "{ended}");
    };
    let refused = follow(&meddled(&place, begin, false), &other, 0x20).unwrap_err();
    assert!(matches!(refused, ArchiveError::Taken { .. }), "{refused}");
    let first = first_start(&place, 0x10);
    assert_eq!(first_start(&place, 0x20), first);

    // The same happens when they choose anew, and then they get apart.
    let again = || assert!(matches!(follow(&place, &one, 0x11), Ok(Round::New { .. })));
    let round = follow(&meddled(&place, again, false), &other, 0x22);
    assert!(matches!(round, Ok(Round::New { .. })), "{round:?}");
    assert_eq!(first_start(&place, 0x11), first + (4 << 36));
    assert_eq!(first_start(&place, 0x22), first + (2 << 36));

    // From then on they keep them.
    server.turns(&mut dice, 5);
    server.back_up(&place).unwrap();
    for (data, drawn, own) in [(&one, 0x12, 0x11), (&other, 0x23, 0x22)] {
        assert!(matches!(follow(&place, data, drawn), Ok(Round::New { .. })));
        assert_eq!(read_following(data).unwrap().unwrap().number, own);
    }
    assert_eq!(lines(&place), 5);
}

#[test]
fn a_place_without_what_was_followed_is_trouble_until_it_is_back() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(12));
    let mut server = Server::new(12, 1);
    let root = tempfile::tempdir().unwrap();
    let [data, empty] = ["data", "empty"].map(|name| root.path().join(name));
    let mut follower = Follower::open(&place, &data, None).unwrap();
    for _ in 0..2 {
        server.turns(&mut dice, 5);
        server.back_up(&place).unwrap();
        assert!(matches!(turned(&mut follower, 0x10, NOW_MS), Ok(Round::New { .. })));
    }
    let known = read_following(&data).unwrap();
    let objects = place.objects();
    // Only a listing tells.
    let mut looked = || turned(&mut follower, 0x11, NOW_MS + 60_000);
    for name in objects.keys() {
        place.take_away(name);
    }
    let emptied = looked().unwrap_err();
    assert!(matches!(emptied, ArchiveError::Empty { .. }), "{emptied}");
    let (second, line) = ("marks/000000000/002", "000000000000000c/line");
    for (name, bytes) in objects.iter().filter(|(name, _)| *name != second) {
        place.put(name, bytes.clone());
    }
    let older = looked().unwrap_err();
    assert!(matches!(older, ArchiveError::LacksFollowed { .. }), "{older}");
    assert!(older.to_string().starts_with("mark 2 was followed, and the newest in"), "{older}");
    place.put(second, objects[second].clone());
    place.take_away(line);
    let gone = looked().unwrap_err();
    assert!(matches!(gone, ArchiveError::NoLine { line: LineId(12), .. }), "{gone}");
    place.put(line, objects[line].clone());
    assert_eq!(looked().unwrap(), Round::Same);
    drop(follower);

    // Another place may have higher numbers.
    let (place, mut server) = (MemoryPlace::new(), Server::new(13, 1));
    for _ in 0..3 {
        server.turns(&mut dice, 5);
        server.back_up(&place).unwrap();
    }
    let other = follow(&place, &data, 0x12).unwrap_err();
    assert!(matches!(other, ArchiveError::NoLine { line: LineId(12), .. }), "{other}");
    assert_eq!(read_following(&data).unwrap(), known);
    // Nothing was followed yet.
    let mut follower = Follower::open(&place, &empty, Some(LineId(12))).unwrap();
    let other = turned(&mut follower, 0x13, NOW_MS).unwrap_err();
    assert!(matches!(other, ArchiveError::NoLine { .. }), "{other}");
}

#[test]
fn following_ends_when_somebody_has_gone_on() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(7));
    let mut server = Server::new(7, 1);
    let root = tempfile::tempdir().unwrap();
    let [data, other] = ["data", "other"].map(|name| root.path().join(name));
    server.turns(&mut dice, 9);
    server.back_up(&place).unwrap();
    let mut follower = Follower::open(&place, &data, None).unwrap();
    turned(&mut follower, 0x10, NOW_MS).unwrap();
    let choice = Catalogue::read(&place).unwrap().choose(None, Until::Latest).unwrap();
    let order = Order {
        data: &other,
        journal: options(8),
        announces: true,
        wishes: Wishes::default(),
        now: Timestamp::from_ms(NOW_MS),
    };
    let restored = restore(&place, &choice, &order, &mut |_| {}).unwrap();
    // Nobody has gone on before there is a mark.
    assert_eq!(turned(&mut follower, 0x11, NOW_MS).unwrap(), Round::Same);
    let mut gone_on = Server::of_directory(&other, restored.line.0, 1);
    gone_on.turn(&mut dice);
    gone_on.back_up(&place).unwrap();
    let ended = Round::Ended { by: restored.line };
    assert_eq!(turned(&mut follower, 0x12, NOW_MS).unwrap(), ended);
    drop(follower);
    assert_eq!(follow(&place, &data, 0x13).unwrap(), ended);
    // An empty directory follows the newest line.
    let empty = root.path().join("empty");
    assert!(matches!(follow(&place, &empty, 0x14), Ok(Round::New { .. })));
    let known = read_following(&empty).unwrap().unwrap();
    assert_eq!(known.line, restored.line.0);
}

#[test]
fn a_server_goes_on_with_a_start_that_was_interrupted() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(8));
    let mut server = Server::new(8, 2);
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    server.turns(&mut dice, 30);
    server.back_up(&place).unwrap();
    follow(&place, &data, 0x10).unwrap();
    // The first shard begins, and the second one cannot.
    let second = RealDisk::open(&data.join("shard-01")).unwrap();
    let guard = second.lock().unwrap();
    for _ in 0..2 {
        let failed = finish(&data, 2).unwrap_err();
        assert!(matches!(failed.source, StoreError::Locked { .. }), "{failed}");
        assert!(matches!(shards_in(&data), Err(StoreError::Following)));
    }
    drop(guard);
    // It follows no more.
    let refused = Follower::open(&place, &data, None).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("a server has gone on from here"), "{refused}");
    let disk = RealDisk::open(&data).unwrap();
    let reports = finished(&data, 2);
    let incarnations: Vec<u64> = reports.iter().map(|it| it.header.incarnation).collect();
    assert_eq!(incarnations[0], incarnations[1] + 2, "each try has an incarnation of its own");
    expect_state(&data, &server, server.now());
    // The file may be left behind when all is done.
    let left = disk.list().unwrap().into_iter().any(|entry| entry.name == "following");
    assert!(!left);
    assert_eq!(finish(&data, 2).unwrap(), None);
    expect_state(&data, &server, server.now());
}

#[test]
fn the_next_start_goes_on_where_one_was_stopped() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(16));
    let mut server = Server::new(16, 2);
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let stop = Arc::new(AtomicBool::new(true));
    let expect_stopped = || {
        let stopped = finish_following(&data, 2, options(77), &stop).unwrap_err();
        assert!(matches!(stopped.source, StoreError::Stopped), "{stopped}");
    };
    server.turns(&mut dice, 20);
    server.back_up(&place).unwrap();
    follow(&place, &data, 0x110).unwrap();
    let before = read_following(&data).unwrap();
    expect_stopped();
    // Nothing has changed, and it still follows.
    assert_eq!(read_following(&data).unwrap(), before);
    server.turns(&mut dice, 20);
    server.back_up(&place).unwrap();
    assert!(matches!(follow(&place, &data, 0x111), Ok(Round::New { .. })));
    // The first shard has begun.
    let second = RealDisk::open(&data.join("shard-01")).unwrap();
    let guard = second.lock().unwrap();
    finish(&data, 2).unwrap_err();
    drop(guard);
    expect_stopped();
    assert!(matches!(shards_in(&data), Err(StoreError::Following)));
    finished(&data, 2);
    expect_state(&data, &server, server.now());
}

#[test]
fn what_is_left_of_following_is_removed_when_all_was_done() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(9));
    let mut server = Server::new(9, 2);
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    server.turns(&mut dice, 5);
    server.back_up(&place).unwrap();
    follow(&place, &data, 0x10).unwrap();
    let second = RealDisk::open(&data.join("shard-01")).unwrap();
    let guard = second.lock().unwrap();
    let failed = finish(&data, 2).unwrap_err();
    assert!(matches!(failed.source, StoreError::Locked { .. }), "{failed}");
    drop(guard);
    let finishing = read_following(&data).unwrap().unwrap();
    assert_eq!(finishing.phase, Phase::Finishing);
    let disk = RealDisk::open(&data).unwrap();
    let file = disk.open("following", OpenMode::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    read_full_at(&*file, 0, &mut bytes).unwrap();
    finished(&data, 2);
    replace_file(&disk, ("following", "following.new"), &bytes).unwrap();
    assert_eq!(finish(&data, 2).unwrap(), None);
    assert_eq!(read_following(&data).unwrap(), None);
    expect_state(&data, &server, server.now());
}

#[test]
fn a_directory_that_follows_is_for_nothing_else() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(10));
    let mut server = Server::new(10, 2);
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    // There is nothing to follow yet, and nothing is made.
    let refused = follow(&place, &data, 0x10).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NothingThere);
    assert!(!data.exists());
    server.turns(&mut dice, 5);
    server.back_up(&place).unwrap();
    let mut follower = Follower::open(&place, &data, None).unwrap();
    turned(&mut follower, 0x10, NOW_MS).unwrap();
    for refused in [
        Follower::open(&place, &data, None).map(|_| ()).unwrap_err().to_string(),
        finish(&data, 2).unwrap_err().to_string(),
    ] {
        assert!(refused.contains("another process uses this directory"), "{refused}");
    }
    assert!(matches!(shards_in(&data), Err(StoreError::Following)));
    let read = read_directory(&data).map(|_| ()).unwrap_err();
    assert!(matches!(read.source, StoreError::Following), "{read}");
    drop(follower);
    let other = Follower::open(&place, &data, Some(LineId(5))).map(|_| ()).unwrap_err();
    assert!(other.to_string().contains("it follows line 000000000000000a"), "{other}");
    let shards = finish(&data, 3).unwrap_err();
    assert!(matches!(shards.source, StoreError::ShardsDiffer { found: 2, asked: 3 }), "{shards}");
    finished(&data, 2);
    // Once it was served it never follows again.
    let refused = Follower::open(&place, &data, None).map(|_| ()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unusable, "{refused}");
}

#[test]
fn damage_in_the_place_is_not_written() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(11));
    let mut server = Server::new(11, 1);
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    server.turns(&mut dice, 40);
    server.back_up(&place).unwrap();
    follow(&place, &data, 0x10).unwrap();
    let before = read_following(&data).unwrap();
    server.turns(&mut dice, 40);
    server.back_up(&place).unwrap();
    let known: Vec<FollowingSegment> = before.as_ref().unwrap().shards[0].segments.clone();
    let newest = |name: &&String| name.ends_with("/whole") || name.contains("/parts/");
    let objects = place.objects();
    let new = objects.iter().filter(|(name, _)| newest(name) && !is_known(name, &known));
    for (name, bytes) in new {
        let mut damaged = bytes.clone();
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        place.put(name, damaged);
        let refused = follow(&place, &data, 0x11).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Damaged, "{refused}");
        assert_eq!(read_following(&data).unwrap(), before);
        place.put(name, bytes.clone());
    }
    assert!(matches!(follow(&place, &data, 0x12), Ok(Round::New { .. })));
    finished(&data, 1);
    expect_state(&data, &server, server.now());
}

/// Whether an object is one that the directory does not need any more: of the first mark, or a
/// whole segment that is here.
fn is_known(name: &str, known: &[FollowingSegment]) -> bool {
    let is_here = |it: &FollowingSegment| {
        it.whole && name.contains(&format!("/{:010}-{}/", it.number, it.incarnation))
    };
    name.ends_with("/001-0") || known.iter().any(is_here)
}
