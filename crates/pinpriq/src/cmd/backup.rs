//! `pinpriq backup`: one cut of a running server, copied into a place.
//!
//! What is copied, and what has to be there, is the archive's business. `running.rs` is the server,
//! and `pace.rs` says how fast it goes.

mod ending;
mod pace;
mod running;

use pinpriq_archive::{Backup, back_up};

use self::pace::{Pace, Paced};
use self::running::Running;
use super::archive::{failure, opened};
use super::places::refuse_data_directory;
use crate::args::archives::BackupArgs;
use crate::exit::{Exit, Failure};
use crate::json::Json;
use crate::moments;
use crate::output::print_text;
use crate::progress::Progress;
use crate::units::{counted, with_commas};

/// How far others go before a backup, which may run on the machine of the server.
const NICENESS: i32 = 10;

/// Copies the server and prints what the backup has become.
pub(crate) fn backup(arguments: &BackupArgs) -> Result<Exit, Failure> {
    // Threads that are started later go after others too. Where it is not allowed, the backup is
    // taken anyway.
    let _ = rustix::process::nice(NICENESS);
    let rate = Pace::new(arguments.max_rate.bytes_per_second());
    let place = Paced { place: opened(&arguments.place)?, pace: rate };
    refuse_data_directory(&arguments.place)?;
    let mut server = Running::cut(arguments.door.endpoint()?, rate)?;
    let progress = Progress::before_output("bytes copied");
    let outcome = back_up(&mut server, &place, &mut |it| progress.note(it.done, it.total));
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
    let (sent, read) = (counted(*bytes_sent, "byte"), counted(*bytes_read, "byte"));
    let (objects, segments) = (counted(*objects, "object"), counted(*segments, "segment"));
    let there = with_commas(*segments_there);
    let were = if *segments_there == 1 { "was" } else { "were" };
    format!(
        "backed up to {at}: mark {mark} of line {line}\n\
         sent {sent} in {objects}, of {read} in the server; of {segments} {there} {were} there \
         already\n"
    )
}

/// The report for programs.
fn as_json(backup: &Backup) -> Json {
    let [at, at_ms] = moments::members("at", "at_ms", backup.at);
    let [since, since_ms] = moments::members("since", "since_ms", backup.since);
    Json::Object(vec![
        ("mark", Json::Number(backup.mark)),
        ("line", Json::text(backup.line.to_string())),
        at,
        at_ms,
        since,
        since_ms,
        ("shards", Json::Number(backup.shards as u64)),
        ("objects", Json::Number(backup.objects)),
        ("bytes_read", Json::Number(backup.bytes_read)),
        ("bytes_sent", Json::Number(backup.bytes_sent)),
        ("segments", Json::Number(backup.segments)),
        ("segments_there", Json::Number(backup.segments_there)),
    ])
}

#[cfg(test)]
mod tests {
    use pinpriq_archive::LineId;
    use pinpriq_proto::time::Timestamp;

    use super::*;

    #[test]
    fn the_report_counts_in_words_and_has_every_moment_twice() {
        let backup = Backup {
            mark: 1,
            line: LineId(0xab),
            at: Timestamp::from_ms(2_000),
            since: Timestamp::from_ms(1_000),
            shards: 1,
            objects: 1,
            bytes_read: 1_234,
            bytes_sent: 1,
            segments: 1,
            segments_there: 0,
        };
        let expected = "\
backed up to 1970-01-01T00:00:02.000Z: mark 1 of line 00000000000000ab
sent 1 byte in 1 object, of 1,234 bytes in the server; of 1 segment 0 were there already
";
        assert_eq!(in_words(&backup), expected);
        let text = in_words(&Backup { objects: 2, segments: 2, segments_there: 1, ..backup });
        assert!(text.contains("in 2 objects") && text.contains("of 2 segments 1 was "), "{text}");
        let json: serde_json::Value = serde_json::from_str(&as_json(&backup).to_string()).unwrap();
        for (name, moment, ms) in [
            ("at", "1970-01-01T00:00:02.000Z", 2_000),
            ("since", "1970-01-01T00:00:01.000Z", 1_000),
        ] {
            assert_eq!(json[name], moment);
            assert_eq!(json[format!("{name}_ms")], ms);
        }
    }
}
