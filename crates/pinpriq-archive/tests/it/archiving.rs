//! A server that archives by itself and meets trouble: what is not done twice, what is not
//! forgotten, and whom it makes way for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{ArchiveError, Archiver, By, Catalogue, Until};
use pinpriq_testing::Dice;

use crate::archiver::{LONG_MS, archive, archiver, has_mark, hooked, newest, settle, wait_until};
use crate::backups::expect_whole;
use crate::meddled::{Asked, Gate, Meddled, away};
use crate::restores::restore_to;
use crate::server::Server;

/// Which objects were read, and whether none can be removed.
#[derive(Default)]
struct Notes {
    reads: Mutex<Vec<String>>,
    removes_nothing: AtomicBool,
}

/// An archiver to a place of which this is noted.
fn noted(place: &Arc<MemoryPlace>) -> (Archiver, Arc<Notes>) {
    let notes = Arc::<Notes>::default();
    let kept = Arc::clone(&notes);
    let before = move |asked: &Asked<'_>| match asked {
        Asked::Remove(name) if kept.removes_nothing.load(Ordering::SeqCst) => {
            Err(away("remove", name))
        }
        Asked::Get(name) => {
            kept.reads.lock().unwrap().push((*name).to_owned());
            Ok(())
        }
        _ => Ok(()),
    };
    (Archiver::new(Arc::new(Meddled::new(Arc::clone(place), before))), notes)
}

/// Makes a small change, and archives it.
fn archive_a_little(archiver: &mut Archiver, server: &mut Server) {
    server.tick();
    archiver.offer(&mut server.cut(), 0).unwrap();
    settle(archiver).unwrap();
}

/// Two standbys of one server were both made servers.
#[test]
fn of_two_lines_with_one_origin_the_one_that_was_overtaken_stops() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(21));
    let mut origin = Server::new(21, 1);
    archive(&mut archiver(&place), &mut origin, &mut dice);
    let choice = Catalogue::read(&*place).unwrap().choose(None, Until::Latest).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [mut one, mut other] = [22_u64, 23].map(|seed| {
        let data = folder.path().join(seed.to_string());
        let restored = restore_to(&*place, &choice, &data, seed).unwrap();
        let mut server = Server::new(restored.line.0, 1);
        server.pass(LONG_MS);
        server
    });
    let (mut first, mut second) = (archiver(&place), archiver(&place));
    archive(&mut first, &mut one, &mut dice);
    archive(&mut second, &mut other, &mut dice);
    // It is still there, but it is not the newest one any more.
    assert!(first.look().unwrap());
    one.turn(&mut dice);
    for _ in 0..2 {
        let failed = first.offer(&mut one.cut(), 0).unwrap_err();
        assert!(matches!(failed, ArchiveError::TakenByAnother { .. }), "{failed}");
        assert!(failed.is_final(), "{failed}");
    }
    assert!(second.look().unwrap());
    archive(&mut second, &mut other, &mut dice);
    expect_whole(&place);
}

#[test]
fn a_backup_in_between_is_gone_on_from() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(24));
    let mut archiver = archiver(&place);
    let mut server = Server::new(24, 1);
    archive(&mut archiver, &mut server, &mut dice);
    // As a backup would leave it that was under way when the server began.
    let mut early = newest(&place);
    (early.number, early.by) = (2, By::Backup);
    place.put("marks/000000000/002", early.encode());
    assert!(archiver.look().unwrap());
    assert_eq!(archive(&mut archiver, &mut server, &mut dice)[0].mark, 3);
    expect_whole(&place);
}

#[test]
fn a_new_beginning_does_not_read_back_what_was_sent_and_compared() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(25));
    let (mut archiver, notes) = noted(&place);
    let mut server = Server::new(25, 1);
    for _ in 0..200 {
        if server.cut().info.shards[0].len() >= 3 {
            break;
        }
        server.turn(&mut dice);
    }
    assert!(server.cut().info.shards[0].len() >= 3);
    // The line and one segment.
    place.stop_after(2);
    archiver.offer(&mut server.cut(), 0).unwrap_err();
    let is_whole = |name: &&String| name.ends_with("/whole");
    let objects = place.objects();
    let sent: Vec<&String> = objects.keys().filter(is_whole).collect();
    assert_eq!(sent.len(), 1);
    place.heal();
    notes.reads.lock().unwrap().clear();
    archiver.offer(&mut server.cut(), 0).unwrap();
    let reads = notes.reads.lock().unwrap().clone();
    assert!(!reads.contains(sent[0]), "it was read once more");
    // The others are compared, as always.
    let full = server.cut().info.shards[0].len() - 1;
    assert_eq!(reads.iter().filter(is_whole).count(), full - 1);
    expect_whole(&place);
}

#[test]
fn marks_that_could_not_be_removed_go_later() {
    let place = Arc::new(MemoryPlace::new());
    let (mut archiver, notes) = noted(&place);
    let mut server = Server::new(26, 1);
    for _ in 0..3 {
        archive_a_little(&mut archiver, &mut server);
    }
    server.pass(LONG_MS);
    notes.removes_nothing.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        archive_a_little(&mut archiver, &mut server);
    }
    // A draft that fails forgets none of them either.
    place.stop_after(0);
    server.tick();
    archiver.offer(&mut server.cut(), 0).and_then(|_| settle(&mut archiver)).unwrap_err();
    place.heal();
    assert!((1..=6).all(|number| has_mark(&place, number)));
    notes.removes_nothing.store(false, Ordering::SeqCst);
    for _ in 0..3 {
        archive_a_little(&mut archiver, &mut server);
    }
    wait_until(|| (1..=2).all(|number| !has_mark(&place, number)));
    assert!(archiver.may_remove());
    expect_whole(&place);
}

#[test]
fn marks_of_an_earlier_process_are_thinned_too() {
    let place = Arc::new(MemoryPlace::new());
    let mut server = Server::new(27, 1);
    let mut before = archiver(&place);
    for _ in 0..20 {
        archive_a_little(&mut before, &mut server);
    }
    drop(before);
    let mut server = server.restarted(5);
    server.pass(LONG_MS);
    let mut archiver = archiver(&place);
    let is_left = || (1..=19).any(|number| has_mark(&place, number));
    for _ in 0..200 {
        if !is_left() {
            break;
        }
        archive_a_little(&mut archiver, &mut server);
    }
    wait_until(|| !is_left());
    expect_whole(&place);
}

/// The server stops, and does not give what a draft needs.
#[test]
fn drafts_before_one_that_cannot_be_read_still_arrive() {
    let (place, mut dice) = (Arc::new(MemoryPlace::new()), Dice::new(28));
    let gate = Gate::default();
    let closed = gate.clone();
    let mut archiver = hooked(&place, move |_, name| {
        if name.ends_with("/002-0") {
            closed.pass();
        }
    });
    let mut server = Server::new(28, 1);
    archive(&mut archiver, &mut server, &mut dice);
    for _ in 0..2 {
        server.turn(&mut dice);
        archiver.offer(&mut server.cut(), 0).unwrap();
    }
    server.turn(&mut dice);
    let mut gone = server.cut();
    gone.bytes[0].clear();
    gone.on_read = Some(Box::new(move |_| gate.open()));
    let failed = archiver.offer(&mut gone, 0).unwrap_err();
    assert!(matches!(failed, ArchiveError::Source(_)), "{failed}");
    let done = settle(&mut archiver).unwrap();
    assert_eq!(done.iter().map(|done| done.mark).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(archive(&mut archiver, &mut server, &mut dice)[0].mark, 4);
    expect_whole(&place);
}
