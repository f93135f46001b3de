//! `pinpriq look`: what a server had at a moment, shown read-only on this machine.
//!
//! The state is put into a directory for temporary files, and a server runs over it for which time
//! stands at that moment. What it refuses is the server's business. `segments.rs` copies a data
//! directory, and the archive brings back what lies in a place.

mod ending;
mod folder;
mod segments;

use std::fmt::Write as _;
use std::path::Path;

use pinpriq_archive::{Catalogue, LineId, Order, Why, restore};
use pinpriq_proto::time::Timestamp;
use pinpriq_server::clock::SystemClock;
use pinpriq_server::config::{Config, DoorName, Durability, Limits, Listener, Look};
use pinpriq_server::{Server, run_and_tell};
use pinpriq_store::layout::shards_in;
use pinpriq_store::reshard::ReshardReport;
use pinpriq_store::restore::Wishes;

use self::ending::Ending;
use self::folder::{Folder, watch_over};
use super::archive::{failure, opened};
use super::restore::{too_late, until_of};
use super::salvage::options;
use super::serve::end_with_a_bug;
use crate::args::archives::LookArgs;
use crate::exit::{Exit, Failure};
use crate::logging::{self, Logging, tell};
use crate::moments;
use crate::output::print_text;
use crate::progress::Progress;
use crate::settings::{LogFormat, LogLevel};
use crate::units::counted;

/// What the copy differs in: nothing goes on by itself.
const WISHES: Wishes = Wishes { paused: false, skips_slots: true };

/// The memory for tasks beyond which payloads stay on the disk. A look runs beside the server that
/// has the same tasks in memory, and whoever looks reads few of them.
const MEMORY_BYTES: u64 = 256 << 20;

/// What is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Shown {
    /// The moment.
    at: Timestamp,
    /// Where it comes from, in words.
    from: String,
    shards: usize,
    tasks: u64,
    queues: u64,
}

/// Shows the moment until a signal comes.
pub(crate) fn look(arguments: &LookArgs) -> Result<Exit, Failure> {
    let folder = Folder::new()?;
    let watching = watch_over(&folder)?;
    let shown = if is_data(&arguments.place) {
        of_directory(arguments, &folder.data())?
    } else {
        of_place(arguments, &folder.data())?
    };
    // Before nobody watches any more, so that no signal is lost.
    let ending = Ending::begin()?;
    drop(watching);
    logging::start(Logging { level: LogLevel::Warn, format: LogFormat::Text })?;
    end_with_a_bug("the look ends, and its copy is removed", folder.remover());
    let served = serve(&shown, arguments, &folder, &ending);
    logging::finish();
    served.map(|()| Exit::Done)
}

/// Whether this is a data directory, as far as its files tell. A place has marks.
fn is_data(place: &str) -> bool {
    let path = Path::new(place);
    if place.contains("://") || !path.is_dir() || path.join("marks").is_dir() {
        return false;
    }
    // What is wrong with one is told when it is read.
    shards_in(path).map_or(true, |shards| shards.is_some())
}

/// Copies a data directory as it was at the moment.
fn of_directory(arguments: &LookArgs, data: &Path) -> Result<Shown, Failure> {
    let LookArgs { place, line, until, .. } = arguments;
    if line.is_some() {
        let sentence = format!("{place} is a data directory, and only a place has a --line");
        return Err(Failure::unusable(sentence));
    }
    let copied = segments::copy(Path::new(place), *until, data)?;
    Ok(Shown::of(copied.at, format!("of {place}"), &copied.reports))
}

/// Brings back the moment from a place, into which nothing is written.
fn of_place(arguments: &LookArgs, data: &Path) -> Result<Shown, Failure> {
    let LookArgs { line, until, .. } = arguments;
    let place = opened(&arguments.place)?;
    let mut catalogue = Catalogue::read(&*place).map_err(|error| failure(&error))?;
    let choice = catalogue.choose(line.map(LineId), until_of(*until));
    let choice = choice.map_err(|error| failure(&error))?;
    if let Some(sentence) = too_late(*until, &choice) {
        tell(sentence);
    }
    if choice.why == Why::BeforeGap {
        tell("there is no copy of the moment that was asked for: this is the last one before");
    }
    let (journal, now) = (options(), SystemClock::wall());
    let order = Order { data, journal, wishes: WISHES, now, announces: false };
    let progress = Progress::before_output("segments read");
    let restored = restore(&*place, &choice, &order, &mut |it| progress.note(it.done, it.total));
    drop(progress);
    let restored = restored.map_err(|error| failure(&error))?;
    let from = format!("of line {}, by mark {}", restored.from, restored.mark);
    Ok(Shown::of(restored.at, from, &restored.reports))
}

impl Shown {
    fn of(at: Timestamp, from: String, reports: &[ReshardReport]) -> Self {
        Self {
            at,
            from,
            shards: reports.len(),
            tasks: reports.iter().map(|report| report.tasks).sum(),
            queues: reports.iter().map(|report| report.queues).sum(),
        }
    }
}

/// Runs the server, and prints where it answers.
fn serve(
    shown: &Shown,
    arguments: &LookArgs,
    folder: &Folder,
    ending: &Ending,
) -> Result<(), Failure> {
    let doors = [(DoorName::Resp, arguments.resp), (DoorName::Http, arguments.http)];
    let config = Config {
        data: folder.data(),
        durability: Durability::Interval,
        shards: shown.shards,
        listeners: doors.map(|(door, address)| Listener { door, address }).to_vec(),
        look: Some(Look { at: shown.at, shown: moments::shown(shown.at) }),
        limits: Limits { memory_limit: Some(MEMORY_BYTES), ..Limits::default() },
        ..Config::default()
    };
    let mut printed = Ok(());
    let served = run_and_tell(config, |server| {
        ending.pass_on();
        printed = print_text(in_words(shown, &addresses(server)).as_bytes());
    });
    served.map_err(|error| Failure::new(error.exit_code(), error.to_string()))?;
    printed
}

/// Returns where RESP and HTTP are spoken.
fn addresses(server: &Server) -> [String; 2] {
    [DoorName::Resp, DoorName::Http]
        .map(|door| server.address(door).map_or_else(String::new, |address| address.to_string()))
}

/// What is shown, and where.
fn in_words(shown: &Shown, [resp, http]: &[String; 2]) -> String {
    let Shown { from, tasks, queues, .. } = shown;
    let at = moments::shown(shown.at);
    let (tasks, queues) = (counted(*tasks, "task"), counted(*queues, "queue"));
    let mut text = format!("{at} {from}: {tasks}, {queues}\n");
    let _ = writeln!(text, "RESP: {resp}, as in `pinpriq export --all --address {resp}`");
    let _ = writeln!(text, "dashboard: http://{http}/");
    text += "time stands there, and nothing can be changed; Ctrl-C ends the look\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_shown_and_where() {
        let shown = Shown {
            at: Timestamp::from_ms(2_500),
            from: "of old".to_owned(),
            shards: 1,
            tasks: 1,
            queues: 2,
        };
        let text = in_words(&shown, &["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()]);
        let expected = "\
1970-01-01T00:00:02.500Z of old: 1 task, 2 queues
RESP: 127.0.0.1:1, as in `pinpriq export --all --address 127.0.0.1:1`
dashboard: http://127.0.0.1:2/
time stands there, and nothing can be changed; Ctrl-C ends the look
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_directory_without_a_journal_and_a_url_are_places() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        assert!(!is_data(path) && !is_data("s3://bucket/prefix") && !is_data("/nowhere/at-all"));
        let segment = folder.path().join("segment-0000000001.log");
        assert!(std::process::Command::new("touch").arg(segment).status().unwrap().success());
        assert!(is_data(path));
        let marks = folder.path().join("marks");
        assert!(std::process::Command::new("mkdir").arg(marks).status().unwrap().success());
        assert!(!is_data(path));
    }
}
