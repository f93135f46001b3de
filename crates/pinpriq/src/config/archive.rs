//! The part of the configuration about the archive that a server writes while it serves.
//!
//! The place is not looked at here. Whether it lies where it may needs the file system, and what
//! kind of place it is only the crate of archives knows.

use std::time::Duration;

use pinpriq_server::config::ArchiveTo;

use super::{Unusable, time, time_or_off};
use crate::settings::{Durability, Settings, Size};

/// How often what is new is sent by default.
const EVERY: Duration = Duration::from_secs(1);

/// Returns what the settings say about an archive, if there is to be one. Refuses a server that has
/// nothing to archive, and settings that have no use without a place.
pub(super) fn plan(settings: &Settings) -> Result<Option<ArchiveTo>, Unusable> {
    let Some(place) = &settings.archive else {
        return match without_place(settings) {
            Some(setting) => Err(Unusable::OnlyWithArchive { setting }),
            None => Ok(None),
        };
    };
    if settings.cluster.is_some() {
        return Err(Unusable::ArchiveInCluster);
    }
    if settings.durability == Some(Durability::Memory) {
        return Err(Unusable::NothingToArchive);
    }
    Ok(Some(ArchiveTo {
        place: place.0.clone(),
        every: time(settings.archive_every, EVERY),
        keep: settings.archive_keep.map(|keep| Duration::from_millis(keep.ms())),
        backlog_bytes: settings.archive_backlog.map(Size::bytes),
        scrub_every: time_or_off(settings.scrub_every, None),
    }))
}

/// The first setting that is about an archive, of those that name no place.
fn without_place(settings: &Settings) -> Option<&'static str> {
    let given = [
        ("archive-every", settings.archive_every.is_some()),
        ("archive-keep", settings.archive_keep.is_some()),
        ("archive-backlog", settings.archive_backlog.is_some()),
        ("scrub-every", settings.scrub_every.is_some()),
    ];
    given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
}
