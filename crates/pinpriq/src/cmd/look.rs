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
use super::restore::{too_late, until_of, why_as_json};
use super::salvage::options;
use super::serve::end_with_a_bug;
use crate::args::archives::LookArgs;
use crate::exit::{Exit, Failure};
use crate::json::Json;
use crate::logging::{self, Logging, tell};
use crate::moments::{self, Moment};
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
    why: Why,
    from: Origin,
    shards: usize,
    tasks: u64,
    queues: u64,
}

/// Where what is shown comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Origin {
    /// This data directory.
    Directory(String),
    /// This line of a place, by this mark.
    Line(LineId, u64),
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
    let why = match *until {
        Moment::Latest => Why::Latest,
        Moment::At(asked) if asked > copied.at => Why::Latest,
        Moment::At(_) | Moment::Before(_) => Why::Exact,
    };
    Ok(Shown::of((copied.at, why), Origin::Directory(place.clone()), &copied.reports))
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
    let from = Origin::Line(restored.from, restored.mark);
    Ok(Shown::of((restored.at, choice.why), from, &restored.reports))
}

impl Shown {
    fn of((at, why): (Timestamp, Why), from: Origin, reports: &[ReshardReport]) -> Self {
        Self {
            at,
            why,
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
        let doors = addresses(server);
        let text = if arguments.json {
            format!("{}\n", as_json(shown, &doors))
        } else {
            in_words(shown, &doors)
        };
        printed = print_text(text.as_bytes());
    });
    served.map_err(|error| Failure::new(error.exit_code(), error.to_string()))?;
    printed
}

/// Returns where RESP and HTTP are spoken.
fn addresses(server: &Server) -> [String; 2] {
    [DoorName::Resp, DoorName::Http]
        .map(|door| server.address(door).map_or_else(String::new, |address| address.to_string()))
}

/// What is shown, and where, for people.
fn in_words(shown: &Shown, [resp, http]: &[String; 2]) -> String {
    let Shown { from, tasks, queues, .. } = shown;
    let at = moments::shown(shown.at);
    let from = match from {
        Origin::Directory(name) => format!("of {name}"),
        Origin::Line(line, mark) => format!("of line {line}, by mark {mark}"),
    };
    let (tasks, queues) = (counted(*tasks, "task"), counted(*queues, "queue"));
    let mut text = format!("{at} {from}: {tasks}, {queues}\n");
    let _ = writeln!(text, "RESP: {resp}, as in `pinpriq export --all --address {resp}`");
    let _ = writeln!(text, "dashboard: http://{http}/");
    text += "time stands there, and nothing can be changed; Ctrl-C ends the look\n";
    text
}

/// The same for programs.
fn as_json(shown: &Shown, [resp, http]: &[String; 2]) -> Json {
    let [at, at_ms] = moments::members("at", "at_ms", shown.at);
    let (from, mark) = match &shown.from {
        Origin::Directory(_) => (Json::Null, Json::Null),
        Origin::Line(line, mark) => (Json::text(line.to_string()), Json::Number(*mark)),
    };
    Json::Object(vec![
        at,
        at_ms,
        ("why", why_as_json(shown.why)),
        ("from", from),
        ("mark", mark),
        ("shards", Json::Number(shown.shards as u64)),
        ("tasks", Json::Number(shown.tasks)),
        ("queues", Json::Number(shown.queues)),
        ("resp", Json::text(resp)),
        ("http", Json::text(http)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_shown_and_where() {
        let shown = Shown {
            at: Timestamp::from_ms(2_500),
            why: Why::Exact,
            from: Origin::Directory("old".to_owned()),
            shards: 1,
            tasks: 1,
            queues: 2,
        };
        let doors = ["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()];
        let text = in_words(&shown, &doors);
        let expected = "\
1970-01-01T00:00:02.500Z of old: 1 task, 2 queues
RESP: 127.0.0.1:1, as in `pinpriq export --all --address 127.0.0.1:1`
dashboard: http://127.0.0.1:2/
time stands there, and nothing can be changed; Ctrl-C ends the look
";
        assert_eq!(text, expected);
        let from = Origin::Line(LineId(0xab), 3);
        let shown = Shown { from, why: Why::BeforeGap, ..shown };
        let text = in_words(&shown, &doors);
        assert!(text.contains("Z of line 00000000000000ab, by mark 3: 1 task, "), "{text}");
        let expected = concat!(
            r#"{"at":"1970-01-01T00:00:02.500Z","at_ms":2500,"why":"before-gap","#,
            r#""from":"00000000000000ab","mark":3,"shards":1,"tasks":1,"queues":2,"#,
            r#""resp":"127.0.0.1:1","http":"127.0.0.1:2"}"#
        );
        assert_eq!(as_json(&shown, &doors).to_string(), expected);
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
