//! A store that keeps its changes in a list, like a journal of several files.
//!
//! It compacts like one: the records that are still in the oldest file are reported again. Then
//! that file is removed with everything else in it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;

use pinpriq_engine::Engine;
use pinpriq_proto::carried::Carried;
use pinpriq_proto::change::{Change, Place, RecordKey};
use pinpriq_proto::details::DetailRecord;
use pinpriq_proto::limits::Limits;
use pinpriq_proto::task::TaskId;
use pinpriq_proto::time::{Span, Timestamp};

const CHANGES_PER_VOLUME: u32 = 40;

#[derive(Default)]
pub(super) struct Store {
    log: VecDeque<Entry>,
    volume: u32,
    offset: u32,
    /// The number of the latest entries whose place the engine does not know yet.
    unplaced: usize,
    /// Places that the engine knows and has not returned.
    held: BTreeSet<Place>,
}

struct Entry {
    volume: u32,
    change: Change,
    place: Option<Place>,
}

impl Store {
    /// Writes what the engine reports, and notes which places it gives up.
    pub(super) fn collect(&mut self, engine: &mut Engine) {
        let mut changes = Vec::new();
        engine.take_changes(&mut changes);
        for change in changes {
            self.write(change);
        }
        self.collect_obsolete(engine);
    }

    fn write(&mut self, change: Change) {
        if self.offset == CHANGES_PER_VOLUME {
            self.volume += 1;
            self.offset = 0;
        }
        self.offset += 1;
        let (volume, offset) = (self.volume, self.offset);
        let place = change.key().map(|_| Place { volume, offset, length: NonZeroU32::MIN });
        self.log.push_back(Entry { volume, change, place });
        self.unplaced += 1;
    }

    /// Tells the engine where its records are, some time after they were written.
    pub(super) fn place(&mut self, engine: &mut Engine) {
        let start = self.log.len() - self.unplaced;
        self.unplaced = 0;
        for entry in self.log.range(start..) {
            if let Some(place) = entry.place {
                engine.placed(&entry.change, place);
                assert!(self.held.insert(place), "{place:?} is handed out once");
            }
        }
        self.collect_obsolete(engine);
    }

    fn collect_obsolete(&mut self, engine: &mut Engine) {
        let mut places = Vec::new();
        engine.take_obsolete(&mut places);
        for place in places {
            assert!(self.held.remove(&place), "{place:?} is given back once");
        }
    }

    /// Returns the ids under which tasks with a higher number were written.
    pub(super) fn ids_above(&self, number: u64) -> BTreeMap<u64, TaskId> {
        let written = self.log.iter().filter_map(|entry| match &entry.change {
            Change::Task(task) => Some((task.number, task.id.clone())),
            _ => None,
        });
        written.filter(|(known, _)| *known > number).collect()
    }

    /// The details of a kind that are kept, by number.
    pub(super) fn details<R: DetailRecord>(&self) -> BTreeMap<u64, R> {
        let mut all = BTreeMap::new();
        for entry in &self.log {
            match &entry.change {
                Change::Detail(detail) => {
                    if let Some(record) = R::of(detail) {
                        all.insert(detail.number(), record.clone());
                    }
                }
                Change::DetailGone(kind, number) if *kind == R::KIND => drop(all.remove(number)),
                _ => {}
            }
        }
        all
    }

    /// Moves what is still needed out of the oldest file, and removes that file. Returns the
    /// records that were written again, or `None` if there was no file but the one being written.
    pub(super) fn compact(&mut self, engine: &mut Engine) -> Option<Vec<RecordKey>> {
        self.place(engine);
        let oldest = self.log.front().map(|entry| entry.volume)?;
        if oldest == self.volume {
            return None;
        }
        let records: Vec<(RecordKey, Place)> = self
            .log
            .iter()
            .filter(|entry| entry.volume == oldest)
            .filter_map(|entry| Some((entry.change.key()?, entry.place?)))
            .collect();
        for (key, place) in records {
            engine.rewrite(&key, place);
        }
        let before = self.log.len();
        self.collect(engine);
        self.place(engine);
        let left = self.held.iter().find(|place| place.volume == oldest);
        assert_eq!(left, None, "nothing is left in the oldest file");
        let written = self.log.range(before..).filter_map(|entry| entry.change.key()).collect();
        self.log.retain(|entry| entry.volume != oldest);
        Some(written)
    }

    /// Creates a new engine from what is stored.
    pub(super) fn restart(
        &mut self,
        engine: &Engine,
        limits: Limits,
        now: Timestamp,
        (incarnation, grace, carried): (u64, Option<Span>, Option<Carried>),
    ) -> Engine {
        let mut fresh = Engine::new(limits, 3);
        self.unplaced = 0;
        self.held = self.log.iter().filter_map(|entry| entry.place).collect();
        for entry in &self.log {
            fresh.restore(entry.change.clone(), entry.place);
        }
        if let Some(grace) = grace {
            fresh.set_grace(grace);
        }
        if let Some(carried) = carried {
            let mut bytes = Vec::new();
            carried.put_in(&mut bytes);
            let read = Carried::take_from(&mut &bytes[..]).expect("it is what was written");
            assert_eq!(read, carried, "the bytes say the same");
            fresh.set_carried(read);
        }
        fresh.start(now, incarnation, engine.header());
        self.collect(&mut fresh);
        fresh
    }

    /// Asserts that nothing is stored that is no longer needed.
    pub(super) fn assert_all_given_back(&self) {
        assert_eq!(self.held, BTreeSet::new(), "every place is given back in the end");
    }
}
