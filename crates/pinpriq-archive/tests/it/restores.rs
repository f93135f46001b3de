//! What is restored is what there was at the moment, and no number is ever given again.

use std::path::Path;

use pinpriq_archive::line::Line;
use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{
    ArchiveError, Catalogue, Choice, ErrorKind, LineId, Mark, Order, Place, Restored, Until, Why,
    highest, plan, restore,
};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::layout::shards_in;
use pinpriq_store::reshard::read_directory;
use pinpriq_store::restore::Wishes;
use pinpriq_testing::Dice;

use crate::backups::expect_whole;
use crate::meddled::Meddled;
use crate::server::{Server, options};

/// What the clock says in these tests.
const NOW: Timestamp = Timestamp::from_ms(1 << 40);

fn choose(place: &MemoryPlace, until: Until) -> Choice {
    Catalogue::read(place).unwrap().choose(None, until).unwrap()
}

/// Restores into a directory. The seed decides its number.
pub(crate) fn restore_to(
    place: &dyn Place,
    choice: &Choice,
    data: &Path,
    seed: u64,
) -> Result<Restored, ArchiveError> {
    let order = Order {
        data,
        journal: options(seed),
        wishes: Wishes::default(),
        now: NOW,
        announces: true,
    };
    let mut last = 0;
    restore(place, choice, &order, &mut |progress| {
        assert_eq!(progress.done, last + 1);
        last += 1;
    })
}

/// Checks that a directory holds what the server held at a moment.
#[track_caller]
pub(crate) fn expect_state(data: &Path, server: &Server, moment: Timestamp) {
    let held = read_directory(data).unwrap();
    let expected = server.states_at(moment);
    assert_eq!(held.contents.len(), expected.len());
    for (shard, (found, expected)) in held.contents.iter().zip(&expected).enumerate() {
        assert!(found.fold.without_places() == *expected, "shard {shard} at {moment}");
    }
}

#[test]
fn every_moment_that_is_reached_has_its_state() {
    let (mut exact, mut gaps) = (0, 0);
    for (seed, shards) in [(1, 1), (2, 2), (3, 3)] {
        let (place, mut dice) = (MemoryPlace::new(), Dice::new(seed));
        let mut server = Server::new(seed, shards);
        for round in 0..8 {
            server.turns(&mut dice, 12);
            if round == 4 {
                server = server.restarted(round);
            }
            server.back_up(&place).unwrap();
        }
        expect_whole(&place);
        let root = tempfile::tempdir().unwrap();
        let moments = server.moments();
        for index in 0..12_u64 {
            let moment = if index == 0 { server.now() } else { dice.pick(&moments) };
            let chosen = Catalogue::read(&place).unwrap().choose(None, Until::At(moment));
            let Ok(choice) = chosen else { continue };
            assert!(choice.until <= moment);
            assert_eq!(choice.until == moment, choice.why != Why::BeforeGap, "{:?}", choice.why);
            let data = root.path().join(index.to_string());
            let restored = restore_to(&place, &choice, &data, 100 + index).unwrap();
            assert_eq!((restored.at, restored.from), (choice.until, LineId(seed)));
            assert_eq!(shards_in(&data).unwrap(), Some(shards));
            expect_state(&data, &server, choice.until);
            let tasks: Vec<usize> =
                server.states_at(choice.until).iter().map(|fold| fold.tasks.len()).collect();
            let reported = restored.reports.iter().map(|report| report.tasks);
            assert!(reported.eq(tasks.iter().map(|count| *count as u64)));
            exact += u32::from(choice.why != Why::BeforeGap);
            gaps += u32::from(choice.why == Why::BeforeGap);
        }
    }
    assert!(exact > 5, "{exact} moments, {gaps} in gaps");
}

#[test]
fn a_restored_directory_goes_on_beyond_everything_that_the_place_knows() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(7));
    let mut server = Server::new(7, 2);
    server.turns(&mut dice, 10);
    server.back_up(&place).unwrap();
    let root = tempfile::tempdir().unwrap();
    let (mut incarnation, mut numbers) = server.highest();
    let mut lines = vec![LineId(7)];
    for attempt in 0..3_u64 {
        let choice = choose(&place, Until::Latest);
        let planned = plan(&place, &choice).unwrap();
        let data = root.path().join(attempt.to_string());
        let restored = restore_to(&place, &choice, &data, attempt).unwrap();
        assert_eq!(restored.unannounced, None);
        assert!(!lines.contains(&restored.line), "a line of its own");
        lines.push(restored.line);
        let held = read_directory(&data).unwrap();
        for (shard, contents) in held.contents.iter().enumerate() {
            let header = contents.header;
            assert_eq!(header, planned.starts[shard]);
            assert!(header.incarnation >= incarnation + (1 << 16));
            assert!(header.last_number >= numbers[shard] + (1 << 36));
            assert!(header.now >= server.now());
            numbers[shard] = header.last_number;
        }
        incarnation = held.contents[0].header.incarnation;
        // The place knows the line, though it was never backed up.
        let name = format!("{}/line", restored.line);
        let line = Line::decode(&name, &place.get(&name).unwrap().unwrap()).unwrap();
        let parent = line.parent.unwrap();
        assert_eq!((parent.line, parent.mark, parent.at_ms), (LineId(7), 1, choice.until.ms()));
        assert_eq!(line.made_at_ms, NOW.ms());
        let known = highest(&place).unwrap();
        assert!(known.shards.iter().all(|known| known.incarnation == incarnation));
    }
}

#[test]
fn a_restored_directory_goes_on_in_the_same_place_on_its_own_line() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(8));
    let mut server = Server::new(8, 2);
    server.turns(&mut dice, 30);
    server.back_up(&place).unwrap();
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let choice = choose(&place, Until::Latest);
    let restored = restore_to(&place, &choice, &data, 1).unwrap();
    let mut heir = Server::of_directory(&data, restored.line.0, 2);
    heir.turns(&mut dice, 10);
    let first = heir.back_up(&place).unwrap();
    assert_eq!((first.mark, first.line, first.segments_there), (2, restored.line, 0));
    heir.turns(&mut dice, 10);
    heir.back_up(&place).unwrap();
    expect_whole(&place);
    let again = root.path().join("again");
    let choice = choose(&place, Until::Latest);
    let second = restore_to(&place, &choice, &again, 2).unwrap();
    assert_eq!(second.from, restored.line);
    expect_state(&again, &heir, choice.until);
    // The old line is still there, and its server is not hindered.
    let old = Catalogue::read(&place).unwrap().choose(Some(LineId(8)), Until::Latest).unwrap();
    assert_eq!(old.mark.number, 1);
    server.turn(&mut dice);
    assert_eq!(server.back_up(&place).unwrap().mark, 4);
}

#[test]
fn a_place_that_may_not_be_told_of_the_line_gives_a_directory_all_the_same() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(9));
    let mut server = Server::new(9, 1);
    server.turns(&mut dice, 3);
    server.back_up(&place).unwrap();
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    place.keep_out();
    let restored = restore_to(&place, &choose(&place, Until::Latest), &data, 1).unwrap();
    place.heal();
    assert!(restored.unannounced.is_some());
    expect_state(&data, &server, restored.at);
    let heir = Server::of_directory(&data, restored.line.0, 1);
    let refused = heir.back_up(&place).unwrap_err();
    assert!(matches!(refused, ArchiveError::Stranger { .. }), "{refused}");
    // One that fails may be told of it later.
    place.stop_after(0);
    let other = root.path().join("other");
    let refused = restore_to(&place, &choose(&place, Until::Latest), &other, 2).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Failed, "{refused}");
    assert!(shards_in(&other).is_err(), "it is unfinished");
}

/// It needs no right to write, and leaves the place as it is.
#[test]
fn a_directory_to_look_at_is_made_without_a_word_to_the_place() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(14));
    let mut server = Server::new(14, 2);
    server.turns(&mut dice, 40);
    server.back_up(&place).unwrap();
    let (choice, before) = (choose(&place, Until::Latest), place.objects());
    place.keep_out();
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let order = Order {
        data: &data,
        journal: options(1),
        wishes: Wishes::default(),
        now: NOW,
        announces: false,
    };
    let restored = restore(&place, &choice, &order, &mut |_| {}).unwrap();
    assert_eq!(restored.unannounced, None);
    assert!(place.objects() == before, "nothing was written");
    expect_state(&data, &server, choice.until);
    let held = read_directory(&data).unwrap();
    assert!(held.contents.iter().all(|contents| contents.header.now == choice.until));
}

/// Another one has read the same, and tells of its line at the same moment.
#[test]
fn a_restore_beside_another_is_refused() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(13));
    let mut server = Server::new(13, 1);
    server.turns(&mut dice, 5);
    server.back_up(&place).unwrap();
    let root = tempfile::tempdir().unwrap();
    let choice = choose(&place, Until::Latest);
    let before = |name: &str, bytes: &[u8]| {
        let other = Line { line: LineId(5), ..Line::decode(name, bytes).unwrap() };
        place.create("0000000000000005/line", &other.encode()).unwrap();
    };
    let beside = Meddled::before_creating(&place, before);
    let data = root.path().join("one");
    let refused = restore_to(&beside, &choice, &data, 1).unwrap_err();
    assert!(matches!(refused, ArchiveError::Taken { .. }), "{refused}");
    assert!(shards_in(&data).is_err(), "it is unfinished");
    // Once it is known, there is room beyond it.
    let known = highest(&place).unwrap().shards[0];
    let data = root.path().join("other");
    restore_to(&place, &choice, &data, 2).unwrap();
    let start = read_directory(&data).unwrap().contents[0].header;
    assert!(start.incarnation > known.incarnation && start.last_number > known.last_number);
}

#[test]
fn damage_that_a_restore_steps_over_is_left_room_for() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(12));
    let mut server = Server::new(12, 1);
    server.turns(&mut dice, 5);
    server.back_up(&place).unwrap();
    let ((incarnation, numbers), until) = (server.highest(), server.now());
    server.turns(&mut dice, 5);
    server.back_up(&place).unwrap();
    let damage = |name: &str| {
        let mut bytes = place.get(name).unwrap().unwrap();
        bytes[20] ^= 1;
        place.put(name, bytes);
    };
    let root = tempfile::tempdir().unwrap();
    damage("marks/000000000/002");
    let mut catalogue = Catalogue::read(&place).unwrap();
    let choice = catalogue.choose(Some(LineId(12)), Until::At(until)).unwrap();
    // First the newest mark is lost, and then the line that was restored first, too.
    for lost in 1..=2_u64 {
        let data = root.path().join(lost.to_string());
        let restored = restore_to(&place, &choice, &data, lost).unwrap();
        expect_state(&data, &server, until);
        let start = read_directory(&data).unwrap().contents[0].header;
        assert_eq!(start.incarnation, incarnation + ((1 + lost) << 16));
        assert_eq!(start.last_number, numbers[0] + ((1 + lost) << 36));
        damage(&format!("{}/line", restored.line));
    }
    // A newer format is no damage.
    let newer = Mark { format: 2, number: 2, ..choice.mark.clone() };
    place.put("marks/000000000/002", newer.encode());
    assert!(matches!(plan(&place, &choice), Err(ArchiveError::Newer { .. })));
}

#[test]
fn what_is_refused_leaves_the_directory_as_it_was() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(10));
    let mut server = Server::new(10, 1);
    server.turns(&mut dice, 3);
    server.back_up(&place).unwrap();
    let root = tempfile::tempdir().unwrap();
    let choice = choose(&place, Until::Latest);
    let data = root.path().join("data");
    restore_to(&place, &choice, &data, 1).unwrap();
    let before = place.objects();
    let refused = restore_to(&place, &choice, &data, 2).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unusable);
    assert!(place.objects() == before, "nothing was written");
    // The numbers of the shard have come to their end.
    let mut mark = choice.mark.clone();
    mark.number = 2;
    mark.highest[0].last_number = (1 << 46) - 5;
    place.put("marks/000000000/002", mark.encode());
    let other = root.path().join("other");
    let choice = choose(&place, Until::Latest);
    for refused in [
        restore_to(&place, &choice, &other, 3).map(|_| ()).unwrap_err(),
        plan(&place, &choice).map(|_| ()).unwrap_err(),
    ] {
        assert!(matches!(refused, ArchiveError::CannotGoOn { .. }), "{refused}");
        assert_eq!(refused.kind(), ErrorKind::Damaged);
    }
    assert!(!other.exists(), "nothing was made");
}

#[test]
fn damage_is_found_and_nothing_accepts_the_directory() {
    let (place, mut dice) = (MemoryPlace::new(), Dice::new(11));
    let mut server = Server::new(11, 2);
    server.turns(&mut dice, 40);
    server.back_up(&place).unwrap();
    let choice = choose(&place, Until::Latest);
    let root = tempfile::tempdir().unwrap();
    let names = place.objects().into_keys();
    let names = names.filter(|name| name.ends_with("/whole") || name.contains("/parts/"));
    for (index, name) in names.enumerate() {
        let bytes = place.get(&name).unwrap().unwrap();
        let mut damaged = bytes.clone();
        damaged[dice.index(bytes.len())] ^= 1 << dice.below(8);
        place.put(&name, damaged);
        let data = root.path().join(index.to_string());
        // Each has a number of its own, since the place is told of all.
        let seed = 2 * index as u64;
        let refused = restore_to(&place, &choice, &data, seed).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Damaged, "{refused}");
        assert!(refused.to_string().contains(&name), "{refused}");
        assert!(shards_in(&data).is_err(), "it is unfinished");
        place.take_away(&name);
        let data = root.path().join(format!("{index}-missing"));
        let refused = restore_to(&place, &choice, &data, seed + 1).unwrap_err();
        assert!(refused.to_string().contains(&name), "{refused}");
        let planned = plan(&place, &choice).unwrap_err();
        assert!(planned.to_string().contains(&name), "{planned}");
        place.put(&name, bytes);
    }
}
