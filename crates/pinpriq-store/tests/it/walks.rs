//! Segments that come bit by bit, and what there is to copy of a journal that does not run.

use std::slice::from_ref;

use pinpriq_store::journal::raw::{self, AtRest, HEADER_BYTES, RawCommit, Walker, at_rest};
use pinpriq_store::{Runner, Store};
use pinpriq_testing::Dice;
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};

use crate::driving::options;
use crate::tap::{Tapped, commits, name};

/// The bytes of a batch before its records.
const BATCH_HEADER_BYTES: usize = 64;

/// The segments of random work.
fn worked(seed: u64) -> Vec<Vec<u8>> {
    let mut tapped = Tapped::start(seed);
    let _first = tapped.cut();
    tapped.work(&mut Dice::new(seed), 120, &mut |_| ());
    let cut = tapped.cut();
    tapped.segments(&cut)
}

/// Where the commits of a segment begin, and where the last one ends.
fn bounds(bytes: &[u8]) -> Vec<usize> {
    let mut at = HEADER_BYTES;
    let mut bounds = vec![at];
    while at < bytes.len() {
        let body = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap());
        at += (BATCH_HEADER_BYTES + usize::try_from(body).unwrap()).next_multiple_of(8);
        bounds.push(at);
    }
    bounds
}

#[test]
fn a_segment_that_comes_in_any_pieces_is_the_same() {
    let segments = worked(1);
    assert!(segments.len() > 3, "{} segments", segments.len());
    for bytes in &segments {
        let whole = raw::walk("a segment", bytes, None).unwrap();
        let all = commits(from_ref(bytes));
        let bounds = bounds(bytes);
        assert_eq!(bounds.len(), all.len() + 1);
        let begun = Walker::begin("a segment", &bytes[..HEADER_BYTES]).unwrap();
        assert_eq!((begun.walk().end, begun.walk().last), (HEADER_BYTES, None));
        let mut single = begun.clone();
        for (index, &at) in bounds.iter().enumerate() {
            let (mut walker, mut seen) = (begun.clone(), Vec::new());
            let mut each = |commit: &RawCommit| seen.push(*commit);
            walker.push("a segment", &bytes[HEADER_BYTES..at], &mut each).unwrap();
            assert_eq!(walker.walk().end, at);
            walker.push("a segment", &bytes[at..], &mut each).unwrap();
            assert_eq!((walker.walk(), &seen), (whole, &all), "in two at {at}");
            if index > 0 {
                let piece = &bytes[bounds[index - 1]..at];
                single.push("a segment", piece, &mut |_| ()).unwrap();
                assert_eq!((single.walk().end, single.walk().last), (at, Some(all[index - 1])));
            }
        }
        assert_eq!(single.walk(), whole);
    }
}

#[test]
fn pieces_that_are_no_whole_commits_are_refused() {
    for bytes in worked(2) {
        let bounds = bounds(&bytes);
        for short in [0, HEADER_BYTES - 1, HEADER_BYTES + 8] {
            assert!(Walker::begin("a segment", &bytes[..short]).is_err(), "{short}");
        }
        let begun = Walker::begin("a segment", &bytes[..HEADER_BYTES]).unwrap();
        let refuses = |piece: &[u8]| {
            let pushed = begun.clone().push("a segment", piece, &mut |_| ());
            let refused = pushed.unwrap_err().to_string();
            assert!(refused.contains("is missing, broken or not whole"), "{refused}");
        };
        for &end in &bounds[1..] {
            // The first is at most the padding after a commit.
            for cut in [1, 8, 30] {
                refuses(&bytes[HEADER_BYTES..end - cut]);
            }
        }
        if let [_, second, third, ..] = *bounds {
            refuses(&bytes[second..third]);
        }
    }
}

/// What a cut lists of the bytes on the disk.
fn bytes_of(disk: &FaultyDisk, rest: &AtRest) -> Vec<Vec<u8>> {
    let files = disk.files();
    let bytes = rest.segments.iter().map(|segment| {
        files[&name(segment.number)][..usize::try_from(segment.bytes).unwrap()].to_vec()
    });
    bytes.collect()
}

#[test]
fn at_rest_a_journal_is_what_its_last_cut_says() {
    let mut missing = 0;
    for seed in 1..7 {
        let disk = FaultyDisk::new(seed);
        let mut tapped = Tapped::start_with(&disk, options(seed), Runner::Inline);
        tapped.work(&mut Dice::new(seed), 150, &mut |_| ());
        let cut = tapped.cut();
        let before = commits(&tapped.segments(&cut));
        let is_closed = seed % 2 == 0;
        if is_closed {
            tapped.caller.store.close(tapped.caller.header.now).unwrap();
        }
        drop(tapped);
        disk.crash(CrashPolicy::KeepAll);
        let rest = at_rest(&disk).unwrap().unwrap();
        let mut after = commits(&bytes_of(&disk, &rest));
        assert!(after.is_sorted_by(|one, other| one.lsn + 1 == other.lsn));
        let last = *after.last().unwrap();
        assert_eq!(rest.at, last.now);
        after.retain(|commit| commit.lsn >= before[0].lsn);
        if is_closed {
            // The last commit says that all others are on the disk.
            after.pop();
        } else {
            assert!(rest.segments.ends_with(&cut.segments), "{rest:?}, {:?}", cut.segments);
        }
        assert_eq!(after, before, "seed {seed}");
        if last.oldest < rest.segments.last().unwrap().number {
            disk.take_away(&name(last.oldest));
            let refused = at_rest(&disk).unwrap_err().to_string();
            assert!(refused.contains("the file is missing"), "{refused}");
            missing += 1;
        }
    }
    assert!(missing > 0, "no journal needs more than one segment");
}

#[test]
fn at_rest_everything_counts_that_lies_before_the_log() {
    let disk = FaultyDisk::new(1);
    assert_eq!(at_rest(&disk).unwrap(), None);
    let (mut tapped, _keep) = Tapped::start_keeping(&disk, options(1));
    tapped.churn(100);
    let cut = tapped.cut();
    let segments = tapped.segments(&cut);
    assert!(cut.segments[0].number == 1 && cut.needed_from > 2, "{:?}", cut.segments);
    drop(tapped);
    let rest = at_rest(&disk).unwrap().unwrap();
    assert_eq!(rest.segments, cut.segments);
    // A segment without a commit is no part of it.
    let [.., before, newest] = &*segments else { panic!("{} segments", segments.len()) };
    let number = cut.segments.last().unwrap().number;
    disk.put(&name(number), newest[..HEADER_BYTES].to_vec());
    let rest = at_rest(&disk).unwrap().unwrap();
    assert_eq!(rest.segments, cut.segments[..cut.segments.len() - 1]);
    assert_eq!(Some(rest.at), commits(from_ref(before)).last().map(|commit| commit.now));
}
