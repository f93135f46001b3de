//! What may become of a damaged journal.
//!
//! A journal that loads is as it was after one of its batches. The server then starts on it, keeps
//! its invariants and continues. A journal that does not load is refused, and can be salvaged: the
//! result loads and starts too, and holds nothing that was never written. The tests of the store
//! check how much must be saved; this module does not.

use std::sync::Arc;

use crate::faulty_disk::FaultyDisk;
use pinpriq_proto::change::{LaneRecord, QueueRecord};
use pinpriq_proto::command::{Command, Put};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::settings::{Ids, Settings};
use pinpriq_proto::task::{Bytes, ClientId, RequestId};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::journal::{Report, SalvageReport, check, salvage};
use pinpriq_store::{Disk, Durable, Fold, Store as _, StoreError};

use super::written::{Content, Written};
use super::{Files, journal, options, shown};

/// Reads the files in every possible way. The result is ignored, but reading must end.
pub(super) fn survives(files: &Files) {
    let disk = FaultyDisk::with_files(1, files);
    let loaded = load(&disk);
    let checked = check(&disk);
    let salvaged = salvaged(&disk);
    assert_eq!(&disk.files(), files, "nothing was changed");
    agrees(files, &loaded, &checked);
    if let Ok((_, rescued)) = salvaged {
        assert!(load(&rescued).is_ok(), "what was salvaged can be read");
    }
}

/// Checks the recovery of the files that a journal has become.
pub(super) fn recovers(journal: &Written, files: &Files) {
    let disk = FaultyDisk::with_files(1, files);
    let loaded = load(&disk);
    let checked = check(&disk);
    let salvaged = salvaged(&disk);
    assert_eq!(&disk.files(), files, "nothing was changed");
    agrees(files, &loaded, &checked);
    if let Ok((report, rescued)) = &salvaged {
        let Ok(found) = load(rescued) else { panic!("what was salvaged can be read") };
        nothing_is_invented(journal, &found);
        counts_agree(report, &found);
        starts(journal, rescued);
        if let Ok(loaded) = &loaded {
            assert_eq!(loaded, &found, "all of a sound journal is salvaged");
        }
    }
    if let Ok(loaded) = loaded {
        let is_state = journal.states.contains(&loaded);
        assert!(is_state, "what was loaded is as it was after some batch: {loaded:#?}");
        starts(journal, &disk);
    }
}

/// Returns what a server would begin with.
fn load(disk: &FaultyDisk) -> Result<Fold, StoreError> {
    let mut fold = Fold::new();
    journal(disk)?.load(&mut |change, place| fold.apply(&change, place, &mut Vec::new()))?;
    fold.forget_unshared(&mut Vec::new());
    Ok(fold.without_places())
}

/// Returns a new disk with what can be salvaged.
fn salvaged(disk: &FaultyDisk) -> Result<(SalvageReport, FaultyDisk), StoreError> {
    let rescued = FaultyDisk::new(2);
    let to: Arc<dyn Disk> = Arc::new(rescued.clone());
    Ok((salvage(disk, &to, options(11))?, rescued))
}

/// Checks that a server starts on exactly the journals in which no damage is found. Without any
/// segment it begins a new journal, and there is nothing to check.
fn agrees(files: &Files, loaded: &Result<Fold, StoreError>, checked: &Result<Report, StoreError>) {
    match checked {
        Ok(report) => assert_eq!(
            loaded.is_ok(),
            report.damage.is_empty(),
            "loading gives {:?}, checking {report:#?} for {:?}",
            loaded.as_ref().err(),
            files.keys()
        ),
        Err(StoreError::NotAJournal) => assert!(loaded.is_ok(), "an empty directory is a start"),
        Err(error) => assert!(loaded.is_err(), "what {error} prevents cannot be loaded"),
    }
}

/// Starts a server, puts one more task, and starts it again.
fn starts(written: &Written, disk: &FaultyDisk) {
    let disk = FaultyDisk::with_files(3, &disk.files());
    let payload: &[u8] = b"one more";
    for start in 0..2 {
        let Ok(journal) = journal(&disk) else { panic!("no other journal uses the disk") };
        let opened = Durable::open(journal, Limits::default(), Timestamp::ZERO, 5);
        let Ok((mut durable, _)) = opened else { panic!("a journal that loads can be begun") };
        durable.engine().check();
        let mut is_there = false;
        for task in shown::tasks(&mut durable) {
            if *task.payload == *payload {
                is_there = true;
                continue;
            }
            let content = (task.queue.to_vec(), task.terms.key.clone(), task.payload.clone());
            assert!(was_written(written, task.number, &content), "{task:?} was never put");
        }
        assert_eq!(is_there, start == 1, "a task that was put is there after a start");
        let put = Command::Put(Put::new(b"jobs", payload));
        durable.apply(durable.now(), ClientId(1), RequestId(1), &put);
        assert!(durable.finish(durable.now()).is_ok(), "the disk is sound");
        durable.engine().check();
    }
}

fn was_written(journal: &Written, number: u64, content: &Content) -> bool {
    journal.contents.get(&number).is_some_and(|known| known.contains(content))
}

/// Checks that every record is one that was written, under the same number.
fn nothing_is_invented(journal: &Written, found: &Fold) {
    for (number, (task, _)) in &found.tasks {
        let Some(lane) = &task.lane else {
            let content = (task.queue.to_vec(), task.terms.key.clone(), task.payload.clone());
            assert!(was_written(journal, *number, &content), "{task:?} was never put");
            continue;
        };
        let Some((lane, _)) = found.lanes.get(&lane.number) else { panic!("{task:?} has no lane") };
        let published = found.publications.range(..=number).next_back();
        let shared = published.filter(|(_, (known, _))| known.last >= *number);
        let (key, payload): (Option<Bytes>, Bytes) = match (task.shared, shared) {
            (false, _) => (task.terms.key.clone(), task.payload.clone()),
            (true, Some((_, (known, _)))) => (known.terms.key.clone(), known.payload.clone()),
            (true, None) => panic!("{task:?} has no content"),
        };
        let content = (lane.topic.to_vec(), key, payload);
        assert!(was_written(journal, *number, &content), "{task:?} was never published");
    }
    let ever = |is_there: &dyn Fn(&Fold) -> bool| journal.states.iter().any(is_there);
    // If the record of a queue's kind of ids is lost, its tasks may determine it.
    for (name, (queue, _)) in &found.queues {
        let mut queue = queue.clone();
        queue.settings.ids = Ids::default();
        let is_lost = queue.created && queue.settings == Settings::default();
        let same = |known: &QueueRecord| {
            let settings = Settings { ids: Ids::default(), ..known.settings.clone() };
            QueueRecord { settings, ..known.clone() } == queue
        };
        let known = |state: &Fold| state.queues.get(name).is_some_and(|known| same(&known.0));
        assert!((is_lost && !queue.paused.any()) || ever(&known), "{queue:?} was never set up so");
    }
    for (number, (lane, _)) in &found.lanes {
        let same = |known: &LaneRecord| {
            let settings = Settings { ids: lane.settings.ids, ..known.settings.clone() };
            LaneRecord { settings, ..known.clone() } == *lane
        };
        let known = |state: &Fold| state.lanes.get(number).is_some_and(|known| same(&known.0));
        assert!(ever(&known), "{lane:?} was never there");
    }
    for (number, (member, _)) in &found.members {
        let same = |state: &Fold| {
            state.members.get(number).is_some_and(|known| known.0.name == member.name)
        };
        assert!(ever(&same), "{member:?} was never registered");
    }
}

fn counts_agree(report: &SalvageReport, found: &Fold) {
    let told = (report.tasks, report.queues, report.members, report.lanes, report.publications);
    let there = (
        found.tasks.len() as u64,
        found.queues.len() as u64,
        found.members.len() as u64,
        found.lanes.len() as u64,
        found.publications.len() as u64,
    );
    assert_eq!(told, there, "the report counts what is there");
}
