//! Windows of any size find the same as a search of the whole file.

use super::super::reader::{Behind, Walk, walk};
use super::super::segment::{FORMAT_VERSION, SEGMENT_START, aligned};
use super::*;
use crate::RealDisk;
use crate::disk::write_all_at;
use pinpriq_testing::Dice;

const NAME: &str = "segment-0000000003.log";

const HEADER: SegmentHeader = SegmentHeader {
    version: FORMAT_VERSION,
    number: 3,
    oldest: 1,
    salt: 77,
    first_lsn: 10,
    previous_end: 8192,
    incarnation: 4,
    now: 5,
    identity: None,
};

/// A batch of this file, as it is at `offset`.
fn batch(offset: u64, lsn: u64, durable_lsn: u64, body: &[u8]) -> Vec<u8> {
    let header = BatchHeader {
        body_bytes: u32::try_from(body.len()).unwrap(),
        lsn,
        durable_lsn,
        incarnation: HEADER.incarnation,
        oldest: 2,
        ..BatchHeader::default()
    };
    let mut bytes = vec![0; BATCH_HEADER_BYTES];
    bytes.extend_from_slice(body);
    header.seal(&mut bytes, HEADER.salt, offset);
    bytes.resize(usize::try_from(aligned(bytes.len() as u64)).unwrap(), 0);
    bytes
}

fn window(file: &[u8], size: usize) -> Window {
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(directory.path()).unwrap();
    write_all_at(&*disk.open(NAME, OpenMode::CreateNew).unwrap(), 0, file).unwrap();
    Window::with_size(&disk, NAME, u64::MAX, size).unwrap()
}

/// What is found: the batches with their contents, where they end, and what follows.
#[derive(PartialEq, Eq, Debug)]
struct Found {
    batches: Vec<(u64, u64, Vec<u8>)>,
    end: u64,
    next: Option<(u64, u64)>,
    later: bool,
    proof: Option<u64>,
}

fn found_in(file: &[u8], size: usize) -> Found {
    let mut window = window(file, size);
    let mut batches = Vec::new();
    let start = (SEGMENT_START, HEADER.first_lsn);
    let stop = walk(&mut window, &HEADER, start, &mut |offset, batch, body| {
        batches.push((offset, batch.lsn, body.to_vec()));
        Ok(())
    })
    .unwrap();
    assert!(window.buffer.len() <= size.max(4_096), "{} bytes", window.buffer.len());
    let behind = Behind::search(&mut window, &HEADER, &stop).unwrap();
    let Walk { end, .. } = stop;
    let next = behind.next.map(|(at, batch)| (at, batch.lsn));
    Found { batches, end, next, later: behind.later, proof: behind.proof }
}

/// The same by searching the whole file, in the simplest way.
fn found_in_whole(file: &[u8]) -> Found {
    let at = |offset: usize| {
        let rest = file.get(offset..)?;
        let batch = BatchHeader::verify(rest, HEADER.salt, offset as u64)?;
        (1..=HEADER.number).contains(&batch.oldest).then(|| (batch, &rest[..batch.batch_bytes()]))
    };
    let (mut batches, mut end, mut due) = (Vec::new(), 8_192, HEADER.first_lsn);
    while let Some((_, bytes)) = at(end).filter(|(batch, _)| batch.lsn == due) {
        batches.push((end as u64, due, bytes[BATCH_HEADER_BYTES..].to_vec()));
        end = (end + bytes.len()).next_multiple_of(8);
        due += 1;
    }
    let all = (end..file.len()).step_by(8).filter_map(|offset| at(offset).map(|it| (offset, it.0)));
    let behind: Vec<(u64, BatchHeader)> = all
        .map(|(offset, batch)| (offset as u64, batch))
        .filter(|(_, batch)| batch.incarnation == HEADER.incarnation && batch.lsn >= due)
        .collect();
    let proof = behind.iter().position(|(_, batch)| batch.durable_lsn >= due);
    let seen = &behind[..proof.map_or(behind.len(), |at| at + 1)];
    Found {
        batches,
        end: end as u64,
        next: seen.first().map(|(at, batch)| (*at, batch.lsn)),
        later: seen.iter().any(|(_, batch)| batch.lsn > due),
        proof: proof.map(|at| behind[at].0),
    }
}

/// A segment with batches of all sizes, some of them damaged, with holes and garbage between them.
fn random_segment(dice: &mut Dice) -> Vec<u8> {
    let mut file = vec![0; 8_192];
    for lsn in HEADER.first_lsn..HEADER.first_lsn + dice.below(40) {
        let length = [0, 8, 100, 700, 5_000][usize::try_from(dice.below(5)).unwrap()];
        let body: Vec<u8> =
            (0..dice.below(length + 1)).map(|_| dice.roll().to_le_bytes()[0]).collect();
        let durable = lsn.saturating_sub(dice.below(6));
        let offset = file.len() as u64;
        let mut bytes = batch(offset, lsn, durable.min(lsn - 1), &body);
        match dice.below(40) {
            0 => bytes[usize::try_from(dice.below(60)).unwrap()] ^= 4,
            1 => bytes[4..8].copy_from_slice(&(1_u32 << dice.below(32)).to_le_bytes()),
            2 => bytes.fill(0),
            3 => bytes.resize(aligned(dice.below(20_000)).try_into().unwrap(), 0),
            _ => {}
        }
        file.extend_from_slice(&bytes);
    }
    file.resize(file.len() + usize::try_from(dice.below(9_000)).unwrap(), 0);
    file
}

#[test]
fn windows_of_any_size_find_what_is_in_the_whole_file() {
    let (mut proofs, mut torn) = (0, 0);
    for seed in 0..300 {
        let file = random_segment(&mut Dice::new(seed));
        let whole = found_in_whole(&file);
        for size in [64, 72, 200, 1_000, 4_096, WINDOW_BYTES] {
            assert_eq!(found_in(&file, size), whole, "seed {seed}, windows of {size} bytes");
        }
        proofs += u32::from(whole.proof.is_some());
        torn += u32::from(whole.proof.is_none() && whole.later);
    }
    assert!(proofs > 50 && torn > 5, "{proofs} proofs, {torn} torn tails");
}

#[test]
fn a_proof_is_found_at_every_place_behind_a_hole() {
    let first = batch(SEGMENT_START, HEADER.first_lsn, HEADER.first_lsn - 1, b"here");
    for shift in (0..1_024).step_by(8) {
        let at = SEGMENT_START + 40_000 + shift;
        let mut file = vec![0; 8_192];
        file.extend_from_slice(&first);
        file.resize(usize::try_from(at).unwrap(), 0);
        file.extend_from_slice(&batch(at, HEADER.first_lsn + 5, HEADER.first_lsn + 3, b"there"));
        for size in [64, 1_000, WINDOW_BYTES] {
            let found = found_in(&file, size);
            assert_eq!((found.batches.len(), found.proof), (1, Some(at)), "windows of {size}");
        }
    }
}

#[test]
fn a_proof_is_found_far_behind_the_end_without_reading_the_hole_before_it() {
    const FAR: u64 = 60 << 30;
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(directory.path()).unwrap();
    let file = disk.open(NAME, OpenMode::CreateNew).unwrap();
    let first = batch(SEGMENT_START, HEADER.first_lsn, 0, b"here");
    write_all_at(&*file, SEGMENT_START, &first).unwrap();
    let last = batch(FAR, HEADER.first_lsn + 5, HEADER.first_lsn + 3, b"there");
    write_all_at(&*file, FAR, &last).unwrap();
    file.set_len(FAR + (4 << 30)).unwrap();
    let mut window = Window::open(&disk, NAME, u64::MAX).unwrap();
    let stop = walk(&mut window, &HEADER, (SEGMENT_START, HEADER.first_lsn), &mut |_, _, _| Ok(()));
    let behind = Behind::search(&mut window, &HEADER, &stop.unwrap()).unwrap();
    assert_eq!(behind.proof, Some(FAR));
}

#[test]
fn a_length_that_is_only_announced_gets_no_memory() {
    let mut file = vec![0; 8_192];
    let mut bytes = batch(SEGMENT_START, HEADER.first_lsn, 0, &[1; 1_000]);
    file.append(&mut bytes);
    file.resize(3 << 20, 0);
    for announced in [1_000, 9_000, 1 << 20, (3 << 20) - 8_256, 1 << 30, u32::MAX] {
        let mut forged = file.clone();
        forged[8_196..8_200].copy_from_slice(&announced.to_le_bytes());
        let mut window = window(&forged, 4_096);
        let start = (SEGMENT_START, HEADER.first_lsn);
        let stop = walk(&mut window, &HEADER, start, &mut |_, _, _| Ok(())).unwrap();
        assert_eq!(stop.last.is_some(), announced == 1_000);
        assert!(window.buffer.len() <= 4_096, "{announced}: {} bytes", window.buffer.len());
    }
}

#[test]
fn a_large_batch_gives_its_memory_back() {
    let mut file = vec![0; 8_192];
    file.extend(batch(SEGMENT_START, HEADER.first_lsn, 0, &vec![9; 100_000]));
    for lsn in 1..=100 {
        let offset = file.len() as u64;
        file.extend(batch(offset, HEADER.first_lsn + lsn, 0, &[3; 100]));
    }
    let mut window = window(&file, 1_000);
    let mut largest = 0;
    let start = (SEGMENT_START, HEADER.first_lsn);
    let stop = walk(&mut window, &HEADER, start, &mut |_, _, body| {
        largest = largest.max(body.len());
        Ok(())
    });
    assert_eq!((stop.unwrap().next_lsn, largest), (HEADER.first_lsn + 101, 100_000));
    assert!(window.buffer.capacity() < 2_000, "{} bytes", window.buffer.capacity());
}
