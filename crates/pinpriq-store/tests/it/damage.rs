//! Torn tails are cut off silently, damage is reported, and neither changes a file.

use pinpriq_proto::change::Change;
use pinpriq_store::{Fold, Journal, Store, StoreError, Urgency};
use pinpriq_testing::Dice;
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};
use pinpriq_testing::stores::{Caller, sample_task};

use crate::driving::{journal, options, start};

/// Appends one batch and waits until it is durable.
fn commit(caller: &mut Caller<Journal>, changes: &[Change]) {
    caller.append(changes, Urgency::Soon).unwrap();
    caller.turn().unwrap();
    assert_eq!(caller.reached, caller.last);
}

/// A journal with a few batches. Returns the state before and after the last one, the name of the
/// last file, and where in it the last batch begins and ends.
fn with_last_batch(disk: &FaultyDisk) -> (Fold, Fold, String, usize, usize) {
    let mut caller = start(disk, options(5)).unwrap();
    for number in 1..20 {
        commit(&mut caller, &[sample_task(number, "q", 50)]);
    }
    let before = caller.fold.clone();
    let from = usize::try_from(caller.store.figures().bytes_used).unwrap();
    commit(&mut caller, &[sample_task(20, "q", 30), Change::Gone(3)]);
    let to = usize::try_from(caller.store.figures().bytes_used).unwrap();
    (before, caller.fold.clone(), "segment-0000000001.log".to_owned(), from, to)
}

/// Loads and, if that works, begins. Returns the state that was loaded.
fn reload(disk: &FaultyDisk) -> Result<Fold, StoreError> {
    Ok(start(disk, options(6))?.fold)
}

#[test]
fn a_torn_last_batch_is_cut_off_at_every_byte() {
    let disk = FaultyDisk::new(1);
    let (before, after, file, from, to) = with_last_batch(&disk);
    disk.crash(CrashPolicy::KeepAll);
    let files = disk.files();
    let whole = &files[&file];
    let mut dice = Dice::new(3);
    for cut in from..to {
        let truncated = whole[..cut].to_vec();
        let mut zeroed = truncated.clone();
        zeroed.resize(to + 4_096, 0);
        let mut garbage = truncated.clone();
        garbage.extend((cut..to + 4_096).map(|_| dice.roll().to_le_bytes()[0]));
        // A recycled file: old batches of another life, right behind and at the same places.
        let mut recycled = truncated.clone();
        recycled.extend_from_slice(&whole[cut.min(9_000)..]);
        for (kind, bytes) in [
            ("truncated", truncated),
            ("zeroed", zeroed),
            ("garbage", garbage),
            ("recycled", recycled),
        ] {
            let torn = FaultyDisk::with_files(2, &files);
            torn.put(&file, bytes.clone());
            let found = reload(&torn).unwrap_or_else(|error| panic!("{kind} at {cut}: {error}"));
            // The padding after the last record does not count.
            let kept = found == after && bytes.get(..cut) == whole.get(..cut);
            assert!(found == before || kept, "{kind} at {cut}");
            if cut + 8 < to {
                assert!(found == before, "{kind} at {cut}: half a batch was taken for a whole one");
            }
            // And the next incarnation finds the same.
            torn.crash(CrashPolicy::LoseUnsynced);
            assert_eq!(reload(&torn).unwrap(), found, "{kind} at {cut}, opened twice");
        }
    }
}

/// A journal of several segments in which every batch counts.
fn several_segments(disk: &FaultyDisk) -> Fold {
    let mut caller = start(disk, options(5)).unwrap();
    for number in 1..=90 {
        commit(&mut caller, &[sample_task(number, "q", 700)]);
    }
    assert!(caller.store.figures().segments >= 4);
    caller.fold.clone()
}

/// The offsets of the batches of a segment, found by their magic.
fn batches(bytes: &[u8]) -> Vec<usize> {
    let magic = 0x5051_4231_u32.to_le_bytes();
    (8_192..bytes.len()).step_by(8).filter(|&at| bytes[at..].starts_with(&magic)).collect()
}

#[test]
fn a_flipped_bit_in_any_batch_is_reported_with_file_and_offset() {
    let disk = FaultyDisk::new(1);
    several_segments(&disk);
    disk.crash(CrashPolicy::KeepAll);
    let files = disk.files();
    let segments: Vec<&String> = files.keys().filter(|name| name.starts_with("segment-")).collect();
    let mut dice = Dice::new(8);
    let mut flipped = 0;
    for name in &segments {
        let offsets = batches(&files[*name]);
        // The very last batch is the only one whose loss nothing can prove.
        let provable =
            if segments.last() == Some(name) { offsets.len() - 1 } else { offsets.len() };
        for (index, &at) in offsets[..provable].iter().enumerate() {
            let damaged = FaultyDisk::with_files(2, &files);
            // Up to seven bytes of padding follow a batch. They do not count.
            let end = offsets.get(index + 1).map_or(at + 64, |next| next - 7);
            let byte = at as u64 + dice.below((end - at) as u64);
            damaged.flip(name, byte, 5);
            let untouched = damaged.files();
            let mut store = journal(&damaged, options(6)).unwrap();
            match store.load(&mut |_, _| {}) {
                Err(StoreError::Corrupt { file, offset, .. }) => {
                    assert_eq!((&file, offset), (*name, at as u64), "bit flipped at {byte}");
                }
                other => panic!("{name} with a bit flipped at {byte}: {other:?}"),
            }
            drop(store);
            assert!(damaged.files() == untouched, "loading changed a file");
            flipped += 1;
        }
    }
    assert!(flipped >= 90, "only {flipped} batches were tried");
}

#[test]
fn a_flipped_bit_in_a_header_costs_nothing_while_the_other_copy_stands() {
    let disk = FaultyDisk::new(1);
    let fold = several_segments(&disk);
    disk.crash(CrashPolicy::KeepAll);
    for offset in [0, 9, 20, 30, 4_096, 4_096 + 66] {
        let damaged = FaultyDisk::with_files(2, &disk.files());
        damaged.flip("segment-0000000002.log", offset, 1);
        assert_eq!(reload(&damaged).unwrap(), fold, "offset {offset}");
    }
    disk.flip("segment-0000000002.log", 30, 1);
    disk.flip("segment-0000000002.log", 4_096 + 30, 1);
    let error = reload(&disk).unwrap_err().to_string();
    assert!(error.contains("segment-0000000002.log"), "{error}");
}

#[test]
fn missing_and_shortened_segments_are_damage() {
    let disk = FaultyDisk::new(1);
    several_segments(&disk);
    disk.crash(CrashPolicy::KeepAll);
    let files = disk.files();
    for number in 1..=3 {
        let name = format!("segment-{number:010}.log");
        let missing = FaultyDisk::with_files(2, &files);
        missing.take_away(&name);
        let error = reload(&missing).unwrap_err().to_string();
        assert!(error.contains(&name) && error.contains("missing"), "{error}");
        for length in [0, 100, 8_192, 12_000] {
            let short = FaultyDisk::with_files(2, &files);
            short.put(&name, files[&name][..length].to_vec());
            let error = reload(&short).unwrap_err();
            assert!(matches!(error, StoreError::Corrupt { .. }), "{name} cut to {length}: {error}");
            assert!(error.to_string().contains(&name), "{error}");
        }
    }
}

#[test]
fn a_batch_inside_a_payload_is_never_taken_for_one() {
    let disk = FaultyDisk::new(1);
    several_segments(&disk);
    disk.crash(CrashPolicy::KeepAll);
    // Whole batches of this very journal become payloads of the last batch, which is then broken.
    let images = disk.files()["segment-0000000002.log"][8_192..20_000].to_vec();
    let mut caller = start(&disk, options(5)).unwrap();
    let before = caller.fold.clone();
    let Change::Task(mut task) = sample_task(500, "q", 0) else { panic!("a task") };
    for shift in 0..8 {
        let mut payload = vec![0; shift];
        payload.extend_from_slice(&images);
        task.payload = payload.into();
        task.number += 1;
        caller.append(&[Change::Task(task.clone())], Urgency::Soon).unwrap();
    }
    caller.turn().unwrap();
    drop(caller);
    disk.crash(CrashPolicy::KeepAll);
    let files = disk.files();
    let last = files.keys().rfind(|name| name.starts_with("segment-")).unwrap().clone();
    let first_lost = batches(&files[&last])[0];
    let broken = FaultyDisk::with_files(2, &files);
    broken.flip(&last, first_lost as u64 + 70, 3);
    let found = reload(&broken).unwrap();
    let numbers = |fold: &Fold| fold.tasks.keys().copied().collect::<Vec<u64>>();
    let known = numbers(&found).iter().all(|number| *number <= 90 || *number > 500);
    assert!(known && numbers(&found).len() >= numbers(&before).len(), "{:?}", numbers(&found));
}
