//! What `check` and `salvage` say about members, lanes and publications.

use std::sync::Arc;

use pinpriq_store::journal::{Report, SalvageReport, check, salvage};
use pinpriq_store::{Disk, Journal, JournalOptions, Runner, Urgency};
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};
use pinpriq_testing::stores::{
    Caller, Change, sample_lane, sample_lane_task, sample_member, sample_publication, sample_task,
};

use super::super::salvage::in_words as salvage_in_words;
use super::{as_json, in_words};

const OPTIONS: JournalOptions = JournalOptions {
    level: pinpriq_store::Level::Sync,
    segment_bytes: 24 << 10,
    salt_seed: 1,
    slack_bytes: 48 << 10,
    leaves_payloads: false,
    gathers: false,
    watches: false,
};

/// A journal with these batches. Returns where each of them begins in the first segment.
fn write(disk: &FaultyDisk, batches: &[Vec<Change>]) -> Vec<u64> {
    use pinpriq_store::Store as _;

    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let journal = Journal::open(shared, OPTIONS, Runner::Inline).unwrap();
    let mut caller = Caller::start(Box::new(journal)).unwrap();
    let mut offsets = Vec::new();
    for changes in batches {
        offsets.push(caller.store.figures().bytes_used);
        caller.append(changes, Urgency::Soon).unwrap();
        caller.turn().unwrap();
    }
    drop(caller);
    disk.crash(CrashPolicy::KeepAll);
    offsets
}

/// Two members of the topic `news`, one of them with a name that is no text, and one publication.
fn members() -> Vec<Vec<Change>> {
    let mut lane = sample_lane(4, "news", 3);
    if let Change::Lane(record) = &mut lane {
        record.topic = b"\xff\x00".as_slice().into();
    }
    vec![
        vec![sample_task(1, "jobs", 10)],
        vec![sample_member(2, "anna"), sample_member(3, "ben")],
        vec![lane, sample_lane(5, "news", 2), sample_lane(6, "news", 3)],
        vec![sample_publication(7, &[5, 6], 100)],
        vec![sample_publication(9, &[5], 100)],
        vec![sample_lane_task(8, 6, None)],
        vec![sample_task(10, "jobs", 10)],
    ]
}

fn report() -> Report {
    let disk = FaultyDisk::new(1);
    write(&disk, &members());
    check(&disk).unwrap()
}

fn salvaged(disk: &FaultyDisk) -> SalvageReport {
    let to: Arc<dyn Disk> = Arc::new(FaultyDisk::new(2));
    salvage(disk, &to, OPTIONS).unwrap()
}

#[test]
fn check_names_lanes_with_their_topic_and_member() {
    let text = in_words(&report());
    let expected = "5 tasks, 4 ready, 1 buried\n\
                    1 queues with tasks, 0 with settings or a pause\n\
                    queue \"jobs\": 2 tasks\n\
                    2 members with 3 lanes, 2 published payloads are kept\n\
                    lane of \"anna\" in topic \"news\": 2 tasks\n\
                    lane of \"ben\" in topic \"news\": 1 tasks\n";
    assert!(text.contains(expected), "{text}");
    assert!(text.starts_with("format 4, "), "{text}");
}

#[test]
fn check_says_nothing_of_members_where_there_are_none() {
    let disk = FaultyDisk::new(1);
    write(&disk, &[vec![sample_task(1, "jobs", 10)]]);
    let text = in_words(&check(&disk).unwrap());
    assert!(!text.contains("member") && !text.contains("lane"), "{text}");
}

#[test]
fn check_names_the_largest_lanes_and_counts_the_others() {
    let mut batch = vec![sample_member(1, "m")];
    for lane in 0..22 {
        batch.push(sample_lane(2 + lane, &format!("t{lane:02}"), 1));
    }
    for lane in 0..22 {
        batch.push(sample_publication(100 + lane, &[2 + lane], 10));
    }
    batch.push(sample_publication(200, &[20], 10));
    let disk = FaultyDisk::new(1);
    write(&disk, &[batch]);
    let text = in_words(&check(&disk).unwrap());
    let first = "payloads are kept\nlane of \"m\" in topic \"t18\": 2 tasks\n\
                 lane of \"m\" in topic \"t00\": 1 tasks\n";
    assert!(text.contains(first), "{text}");
    assert!(text.contains("\nand 2 lanes more; --json names all of them\n"), "{text}");
    assert_eq!(text.matches("lane of").count(), 20, "{text}");
}

#[test]
fn check_tells_programs_of_every_lane() {
    let json = as_json(&report()).to_string();
    let expected = "\"tasks_by_lane\":[{\"topic\":\"news\",\"member\":\"anna\",\"tasks\":2},\
                    {\"topic\":\"news\",\"member\":\"ben\",\"tasks\":1}],\
                    \"members\":2,\"lanes\":3,\"publications\":2,";
    assert!(json.contains(expected), "{json}");
}

#[test]
fn names_that_are_no_text_are_escaped_and_told_in_digits() {
    let mut batches = members();
    batches.push(vec![sample_publication(11, &[4], 10)]);
    let disk = FaultyDisk::new(1);
    write(&disk, &batches);
    let report = check(&disk).unwrap();
    let text = in_words(&report);
    assert!(text.contains("lane of \"ben\" in topic \"\\xff\\u{0}\": 1 tasks\n"), "{text}");
    let json = as_json(&report).to_string();
    assert!(json.contains("{\"topic_hex\":\"FF00\",\"member\":\"ben\",\"tasks\":1}"), "{json}");
}

#[test]
fn salvage_counts_what_was_saved() {
    let disk = FaultyDisk::new(1);
    write(&disk, &members());
    let text = salvage_in_words(&salvaged(&disk));
    let expected = "saved 5 tasks and the settings of 0 queues, from 8 commits\n\
                    saved 2 members, 3 lanes, 2 publications\n";
    assert_eq!(text, expected);
}

#[test]
fn salvage_names_tasks_that_lost_their_home() {
    let disk = FaultyDisk::new(1);
    let offsets = write(&disk, &members());
    disk.flip("segment-0000000001.log", offsets[3] + 57, 1);
    let text = salvage_in_words(&salvaged(&disk));
    let saved = "saved 3 tasks and the settings of 0 queues, from 7 commits\n\
                 saved 2 members, 3 lanes, 1 publications\n\
                 damage: segment-0000000001.log at offset ";
    assert!(text.starts_with(saved), "{text}");
    let lost = "missing: commits 5 to 5\n\
                left out: task 8 of a lane, whose payload, lane or member is lost\n";
    assert!(text.ends_with(lost), "{text}");
}

#[test]
fn salvage_says_nothing_of_members_where_there_are_none() {
    let disk = FaultyDisk::new(1);
    write(&disk, &[vec![sample_task(1, "jobs", 10)]]);
    let text = salvage_in_words(&salvaged(&disk));
    assert_eq!(text, "saved 1 tasks and the settings of 0 queues, from 2 commits\n");
}

#[test]
fn salvage_names_the_first_tasks_with_unfit_ids_and_counts_the_others() {
    let mut first = sample_task(1, "jobs\x07", 10);
    let Change::Task(first) = &mut first else { panic!("this is no task") };
    let with_its_id = |number| {
        let mut task = first.clone();
        task.number = number;
        Change::Task(task)
    };
    let disk = FaultyDisk::new(1);
    write(&disk, &[(1..=23).map(with_its_id).collect()]);
    let text = salvage_in_words(&salvaged(&disk));
    assert!(text.starts_with("saved 1 tasks and the settings of 1 queues"), "{text}");
    let named =
        "left out: task 22 of queue \"jobs\\u{7}\", for its id \"1\": a newer task has it\n";
    assert!(text.contains(named), "{text}");
    assert_eq!(text.matches("left out: task").count(), 20, "{text}");
    assert!(text.ends_with("left out for their ids: 2 more tasks\n"), "{text}");
}

#[test]
fn salvage_names_the_lane_of_a_task_with_an_unfit_id() {
    let mut task = sample_lane_task(8, 6, Some(9));
    let Change::Task(record) = &mut task else { panic!("this is no task") };
    let mut newer = record.clone();
    newer.number = 9;
    let batch = [sample_member(3, "ben"), sample_lane(6, "news", 3), task, Change::Task(newer)];
    let disk = FaultyDisk::new(1);
    write(&disk, &[batch.into()]);
    let text = salvage_in_words(&salvaged(&disk));
    let named = "left out: task 8 of the lane of \"ben\" in topic \"news\", for its id \"8\": ";
    assert!(text.contains(named), "{text}");
}
