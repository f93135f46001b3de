//! Servers that archive while they serve: what is in the place when they have stopped, and what
//! they tell meanwhile.

use std::path::Path;
use std::time::Duration;

use pinpriq_archive::Catalogue;
use pinpriq_server::config::{ArchiveTo, Config, Durability};
use pinpriq_server::{ServeError, Server, Stop};
use pinpriq_store::RealDisk;
use pinpriq_store::journal::raw::at_rest;
use pinpriq_store::layout::existing_journals;

use super::{LOOKS_MAX, Visitor, with_site, with_site_of};
use crate::world::{in_memory, test};

/// A configuration with an archive that gets what is new so often.
fn archived(data: &Path, place: &str, every: Duration) -> Config {
    let place = place.to_owned();
    let archive = ArchiveTo { place, every, keep: None, backlog_bytes: None, scrub_every: None };
    let data = data.to_owned();
    Config { data, durability: Durability::Sync, archive: Some(archive), ..in_memory() }
}

async fn put(visitor: &mut Visitor, count: usize) {
    for _ in 0..count {
        let (status, _) = visitor.ask("POST /v1/queues/q/tasks", "", b"payload").await;
        assert_eq!(status, 201);
    }
}

/// Asks for the figures of the server until they hold this text.
async fn look_for(visitor: &mut Visitor, text: &str) {
    for _ in 0..LOOKS_MAX {
        let (_, figures) = visitor.ask("GET /v1/server", "", b"").await;
        if figures.contains(text) {
            return;
        }
    }
    panic!("there is never {text}");
}

#[test]
fn a_server_that_has_stopped_has_archived_everything() {
    for shards in [1, 2] {
        let (data, around) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let place = around.path().join("place").display().to_string();
        // The last mark is the only one that can have the tasks.
        let config = archived(data.path(), &place, Duration::from_hours(1));
        with_site_of(Config { shards, ..config }, async |address| {
            let mut visitor = Visitor::at(address).await;
            look_for(&mut visitor, "\"archive_state\":\"ok\"").await;
            put(&mut visitor, 10).await;
        });
        let place = pinpriq_archive::open(&place).unwrap();
        let newest = Catalogue::read(&*place).unwrap().newest().unwrap();
        assert_eq!(newest.shards.len(), shards);
        let journals = existing_journals(data.path()).unwrap();
        for (mark, journal) in newest.shards.iter().zip(journals) {
            let disk = RealDisk::open_read_only(&journal.directory).unwrap();
            let rest = at_rest(&disk).unwrap().unwrap();
            let (last, end) = (mark.parts.last().unwrap(), rest.segments.last().unwrap());
            assert_eq!((last.number, last.bytes), (end.number, end.bytes));
            assert!(newest.at() >= rest.at);
        }
    }
}

#[test]
fn a_server_archives_while_it_serves() {
    let (data, around) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = around.path().join("place").display().to_string();
    let config = archived(data.path(), &place, Duration::from_millis(100));
    with_site_of(config, async |address| {
        let mut visitor = Visitor::at(address).await;
        look_for(&mut visitor, "\"archive_state\":\"ok\"").await;
        put(&mut visitor, 3).await;
        let opened = pinpriq_archive::open(&place).unwrap();
        let has = |number: u64| {
            let mark = Catalogue::read(&*opened).unwrap().newest().unwrap();
            mark.shards[0].last_number >= number
        };
        while !has(3) {
            look_for(&mut visitor, "\"archive_failures\":0").await;
        }
    });
}

#[test]
fn a_server_without_an_archive_says_so() {
    with_site(async |address| {
        let mut visitor = Visitor::at(address).await;
        look_for(&mut visitor, "\"archive_state\":\"off\"").await;
    });
}

#[test]
fn a_place_that_is_none_is_refused_before_anything_is_touched() {
    test(async || {
        let around = tempfile::tempdir().unwrap();
        let data = around.path().join("data");
        let config = archived(&data, "gs://bucket", Duration::from_secs(1));
        match Server::bind(config, Stop::default()).await {
            Err(error @ ServeError::Archive { .. }) => assert_eq!(error.exit_code(), 2),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it has started"),
        }
        assert!(!data.exists());
    });
}
