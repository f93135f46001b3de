//! `pinpriq backup`: one cut of a running server, copied into a place.
//!
//! What is copied, and what has to be there, is the archive's business. `running.rs` is the server.

mod running;

use pinpriq_archive::{Backup, back_up};

use self::running::Running;
use super::archive::{failure, opened, with_commas};
use crate::args::archives::BackupArgs;
use crate::exit::{Exit, Failure};
use crate::http::Http;
use crate::json::Json;
use crate::moments;
use crate::output::print_text;
use crate::progress::Progress;

/// Copies the server and prints what the backup has become.
pub(crate) fn backup(arguments: &BackupArgs) -> Result<Exit, Failure> {
    let place = opened(&arguments.place)?;
    let mut server = Running::cut(Http::to(arguments.door.endpoint()?)?)?;
    let progress = Progress::before_output("bytes copied");
    let outcome = back_up(&mut server, &*place, &mut |it| progress.note(it.done, it.total));
    drop(progress);
    let backup = outcome.map_err(|error| server.refusal().unwrap_or_else(|| failure(&error)))?;
    let text = if arguments.json { format!("{}\n", as_json(&backup)) } else { in_words(&backup) };
    print_text(text.as_bytes())?;
    Ok(Exit::Done)
}

/// The report for people.
fn in_words(backup: &Backup) -> String {
    let Backup { mark, line, objects, bytes_read, bytes_sent, segments, segments_there, .. } =
        backup;
    let at = moments::shown(backup.at);
    let sent = with_commas(*bytes_sent);
    let read = with_commas(*bytes_read);
    format!(
        "backed up to {at}: mark {mark} of line {line}\n\
         sent {sent} bytes in {objects} objects, of {read} bytes in the server; of {segments} \
         segments {segments_there} were there already\n"
    )
}

/// The report for programs.
fn as_json(backup: &Backup) -> Json {
    Json::Object(vec![
        ("mark", Json::Number(backup.mark)),
        ("line", Json::text(backup.line.to_string())),
        ("at", Json::text(moments::shown(backup.at))),
        ("at_ms", Json::Number(backup.at.ms())),
        ("since", Json::text(moments::shown(backup.since))),
        ("shards", Json::Number(backup.shards as u64)),
        ("objects", Json::Number(backup.objects)),
        ("bytes_read", Json::Number(backup.bytes_read)),
        ("bytes_sent", Json::Number(backup.bytes_sent)),
        ("segments", Json::Number(backup.segments)),
        ("segments_there", Json::Number(backup.segments_there)),
    ])
}
