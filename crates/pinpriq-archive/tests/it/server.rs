//! Servers without sockets: their journals are on disks in memory, and do random work. A cut copies
//! the files as they are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinpriq_archive::{
    ArchiveError, Backup, CutInfo, Place, SegmentEnd, Source, SourceError, back_up,
};
use pinpriq_proto::change::Change;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::disk::{Disk, EntryKind, OpenMode, read_full_at};
use pinpriq_store::journal::Expected;
use pinpriq_store::layout::shard_name;
use pinpriq_store::shards::first_number;
use pinpriq_store::{Fold, Journal, JournalOptions, Level, RealDisk, Runner, Urgency};
use pinpriq_testing::Dice;
use pinpriq_testing::faulty_disk::FaultyDisk;
use pinpriq_testing::stores::{Caller, sample_queue, sample_task};

/// The size of a segment in these tests.
const SEGMENT_BYTES: u32 = 24 << 10;

/// The bytes before the first commit of a segment.
pub(crate) const HEADER_BYTES: usize = 8_192;

/// Options whose random numbers come from a seed.
pub(crate) fn options(salt_seed: u64) -> JournalOptions {
    JournalOptions {
        level: Level::Sync,
        segment_bytes: SEGMENT_BYTES,
        salt_seed,
        slack_bytes: 2 * u64::from(SEGMENT_BYTES),
        leaves_payloads: false,
        gathers: false,
        watches: false,
    }
}

/// A server with the shards of one data directory.
pub(crate) struct Server {
    directory: u64,
    shards: Vec<Shard>,
    now: Timestamp,
}

struct Shard {
    disk: FaultyDisk,
    caller: Caller<Journal>,
    /// The state after each batch, with its moment.
    states: Vec<(Timestamp, Fold)>,
}

impl Server {
    /// A new data directory.
    pub(crate) fn new(directory: u64, shards: usize) -> Self {
        Self::with_segments(directory, shards, SEGMENT_BYTES)
    }

    /// A new data directory whose segments have another size.
    pub(crate) fn with_segments(directory: u64, shards: usize, segment_bytes: u32) -> Self {
        let disks = (0..shards).map(|shard| FaultyDisk::new(shard as u64)).collect();
        let slack_bytes = 2 * u64::from(segment_bytes);
        let options = JournalOptions { segment_bytes, slack_bytes, ..options(directory) };
        Self::on(directory, disks, options)
    }

    /// A server on the files of a directory.
    pub(crate) fn of_directory(data: &Path, directory: u64, shards: usize) -> Self {
        let disks = (0..shards).map(|shard| {
            let path: PathBuf =
                if shards == 1 { data.to_owned() } else { data.join(shard_name(shard)) };
            FaultyDisk::with_files(shard as u64, &files(&path))
        });
        Self::on(directory, disks.collect(), options(directory ^ 5))
    }

    fn on(directory: u64, disks: Vec<FaultyDisk>, options: JournalOptions) -> Self {
        let count = disks.len();
        let start = |(shard, disk): (usize, FaultyDisk)| {
            let at: Arc<dyn Disk> = Arc::new(disk.clone());
            let journal = Journal::open(at, options, Runner::Inline).unwrap();
            let expected = Expected {
                directory: Some(directory),
                shard: u32::try_from(shard).unwrap(),
                shards: u32::try_from(count).unwrap(),
                served: 0,
            };
            let journal = journal.expecting(expected).numbering_after(first_number(shard));
            let mut caller = Caller::start(Box::new(journal)).unwrap();
            caller.settle().unwrap();
            let states = vec![(caller.loaded.header.now, caller.fold.without_places())];
            Shard { disk, caller, states }
        };
        let shards: Vec<Shard> = disks.into_iter().enumerate().map(start).collect();
        let now = shards.iter().map(|shard| shard.caller.header.now).max().unwrap();
        Self { directory, shards, now }
    }

    /// The same directory after a restart. What was there before is still known.
    pub(crate) fn restarted(self, salt_seed: u64) -> Self {
        let (directory, now) = (self.directory, self.now);
        let (mut disks, mut known) = (Vec::new(), Vec::new());
        for Shard { disk, caller, states } in self.shards {
            drop(caller);
            disks.push(disk);
            known.push(states);
        }
        let mut server = Self::on(directory, disks, options(salt_seed));
        for (shard, mut states) in server.shards.iter_mut().zip(known) {
            std::mem::swap(&mut shard.states, &mut states);
        }
        server.now = server.now.max(now);
        server
    }

    /// Another server on a copy of the files.
    pub(crate) fn copied(&self, salt_seed: u64) -> Self {
        let copy = |shard: &Shard| FaultyDisk::with_files(9, &shard.disk.files());
        let mut server =
            Self::on(self.directory, self.shards.iter().map(copy).collect(), options(salt_seed));
        server.now = server.now.max(self.now);
        server
    }

    /// Changes something in each shard, later than everything so far.
    pub(crate) fn turn(&mut self, dice: &mut Dice) {
        let now = Timestamp::from_ms(self.now.ms() + 1 + dice.below(20));
        for shard in &mut self.shards {
            let mut gone = Vec::new();
            let changes = (0..=dice.below(5)).map(|_| shard.change(dice, &mut gone));
            let changes: Vec<Change> = changes.collect();
            shard.caller.header.now = shard.caller.header.now.max(now);
            shard.caller.append(&changes, Urgency::Soon).unwrap();
            shard.states.push((shard.caller.header.now, shard.caller.fold.without_places()));
            shard.caller.settle().unwrap();
            self.now = self.now.max(shard.caller.header.now);
        }
    }

    /// Makes one small change in each shard.
    pub(crate) fn tick(&mut self) {
        let now = Timestamp::from_ms(self.now.ms() + 1);
        for shard in &mut self.shards {
            shard.caller.header.now = shard.caller.header.now.max(now);
            shard.caller.append(&[sample_queue("a", true)], Urgency::Soon).unwrap();
            shard.states.push((shard.caller.header.now, shard.caller.fold.without_places()));
            shard.caller.settle().unwrap();
            self.now = self.now.max(shard.caller.header.now);
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.now = Timestamp::from_ms(self.now.ms() + ms);
    }

    pub(crate) fn turns(&mut self, dice: &mut Dice, count: u64) {
        for _ in 0..count {
            self.turn(dice);
        }
    }

    /// Everything up to this moment. What comes later has later moments.
    pub(crate) fn cut(&self) -> Cut {
        let (mut shards, mut bytes) = (Vec::new(), Vec::new());
        for shard in &self.shards {
            let (ends, of_shard) = segments(&shard.disk.files());
            shards.push(ends);
            bytes.push(of_shard);
        }
        Cut { info: CutInfo { at: self.now, shards }, bytes, reads: 0, on_read: None }
    }

    /// Takes a backup.
    pub(crate) fn back_up(&self, place: &dyn Place) -> Result<Backup, ArchiveError> {
        self.cut().back_up(place)
    }

    /// What each shard held at a moment.
    pub(crate) fn states_at(&self, moment: Timestamp) -> Vec<Fold> {
        let at = |shard: &Shard| {
            let before = shard.states.iter().rev().find(|(at, _)| *at <= moment);
            before.map(|(_, fold)| fold.clone()).unwrap_or_default()
        };
        self.shards.iter().map(at).collect()
    }

    /// The moments of all changes.
    pub(crate) fn moments(&self) -> Vec<Timestamp> {
        let states = self.shards.iter().flat_map(|shard| &shard.states);
        states.map(|(at, _)| *at).collect()
    }

    pub(crate) const fn now(&self) -> Timestamp {
        self.now
    }

    /// The highest incarnation, and the highest number of each shard.
    pub(crate) fn highest(&self) -> (u64, Vec<u64>) {
        let headers: Vec<_> = self.shards.iter().map(|shard| shard.caller.header).collect();
        let incarnation = headers.iter().map(|header| header.incarnation).max().unwrap();
        (incarnation, headers.iter().map(|header| header.last_number).collect())
    }
}

impl Shard {
    /// A change for the next batch, from which these tasks are gone already.
    fn change(&mut self, dice: &mut Dice, gone: &mut Vec<u64>) -> Change {
        let number = self.caller.header.last_number + 1;
        let known = self.caller.fold.tasks.keys().filter(|number| !gone.contains(number));
        let known: Vec<u64> = known.copied().collect();
        match dice.below(10) {
            0 => sample_queue(dice.pick(&["a", "b", "c"]), true),
            1..=4 if known.len() > 5 => {
                gone.push(dice.pick(&known));
                Change::Gone(gone[gone.len() - 1])
            }
            _ => {
                // What is appended next has the next number, also within one batch.
                self.caller.header.last_number = number;
                sample_task(number, dice.pick(&["a", "b"]), dice.index(1_500))
            }
        }
    }
}

/// A cut of a server, as a source of backups.
pub(crate) struct Cut {
    pub(crate) info: CutInfo,
    /// The bytes of each segment of each shard, by its number.
    pub(crate) bytes: Vec<BTreeMap<u32, Vec<u8>>>,
    /// How many times something was read.
    pub(crate) reads: u64,
    /// Called before each reading, with the number of those before.
    pub(crate) on_read: Option<Box<dyn FnMut(u64)>>,
}

impl Cut {
    pub(crate) fn back_up(&mut self, place: &dyn Place) -> Result<Backup, ArchiveError> {
        let mut told = (0, 0);
        let backup = back_up(self, place, &mut |progress| {
            assert!(progress.done <= progress.total && progress.done >= told.0, "{progress:?}");
            told = (progress.done, progress.total);
        });
        if backup.is_ok() {
            assert_eq!(told.0, told.1, "all is done");
        }
        backup
    }
}

impl Source for Cut {
    fn cut(&self) -> &CutInfo {
        &self.info
    }

    fn read(
        &mut self,
        shard: usize,
        segment: u32,
        from: u64,
        to: u64,
        into: &mut Vec<u8>,
    ) -> Result<(), SourceError> {
        if let Some(on_read) = &mut self.on_read {
            on_read(self.reads);
        }
        self.reads += 1;
        let [from, to] = [from, to].map(|at| usize::try_from(at).unwrap());
        assert!(to - from <= 8 << 20, "no more than 8 MiB at once");
        let found = self.bytes[shard].get(&segment).and_then(|bytes| bytes.get(from..to));
        let found = found.ok_or_else(|| SourceError { what: "it is gone".to_owned() })?;
        into.extend_from_slice(found);
        Ok(())
    }
}

/// The segments among the files of a journal that its last commit needs, and how far they go.
fn segments(files: &BTreeMap<String, Vec<u8>>) -> (Vec<SegmentEnd>, BTreeMap<u32, Vec<u8>>) {
    let number = |name: &str| -> Option<u32> {
        name.strip_prefix("segment-")?.strip_suffix(".log")?.parse().ok()
    };
    let found = files.iter().filter_map(|(name, bytes)| Some((number(name)?, bytes)));
    let mut found: BTreeMap<u32, (usize, u32, &Vec<u8>)> = found
        .map(|(number, bytes)| {
            let (end, oldest) = end_of(bytes);
            (number, (end, oldest, bytes))
        })
        .collect();
    // One that was just begun may have no commit yet.
    found.retain(|_, (_, oldest, _)| *oldest > 0);
    let oldest = found.last_key_value().map_or(0, |(_, (_, oldest, _))| *oldest);
    found.retain(|number, _| *number >= oldest);
    let mut ends = Vec::new();
    for (number, (end, _, bytes)) in &found {
        let incarnation = u64_at(bytes, 48);
        ends.push(SegmentEnd { number: *number, incarnation, bytes: *end as u64 });
    }
    let bytes = found.into_iter().map(|(number, (end, _, bytes))| (number, bytes[..end].to_vec()));
    (ends, bytes.collect())
}

/// Where the commits of a segment end, and the oldest segment that the last of them needs.
fn end_of(bytes: &[u8]) -> (usize, u32) {
    let ends = ends(bytes);
    ends.last().copied().unwrap_or((HEADER_BYTES, 0))
}

/// Where each commit of a segment ends, and the oldest segment that it needs. Written a second
/// time, from the page on the journal.
pub(crate) fn ends(bytes: &[u8]) -> Vec<(usize, u32)> {
    let (mut at, mut ends, mut due) = (HEADER_BYTES, Vec::new(), u64_at(bytes, 32));
    while bytes.len() >= at + 64 && u32_at(bytes, at) == 0x5051_4231 && u64_at(bytes, at + 8) == due
    {
        let oldest = u32_at(bytes, at + 48);
        at = (at + 64 + usize::try_from(u32_at(bytes, at + 4)).unwrap()).next_multiple_of(8);
        ends.push((at, oldest));
        due += 1;
    }
    ends
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The files of a directory.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let disk = RealDisk::open_read_only(directory).unwrap();
    let mut found = BTreeMap::new();
    for entry in disk.list().unwrap() {
        if entry.kind == EntryKind::File {
            let file = disk.open(&entry.name, OpenMode::Read).unwrap();
            let mut bytes = vec![0; usize::try_from(entry.bytes).unwrap()];
            read_full_at(&*file, 0, &mut bytes).unwrap();
            found.insert(entry.name, bytes);
        }
    }
    found
}
