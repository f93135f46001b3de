//! `pinpriq restore`: a new data directory with the state that a server had at a moment.
//!
//! Which moments there are, and how a directory is written, is the archive's business.

use std::fmt::Write as _;
use std::path::Path;

use pinpriq_archive::{
    ArchiveError, Catalogue, Choice, LineId, Order, Place, PlaceError, Until, Why, plan,
};
use pinpriq_proto::time::Timestamp;
use pinpriq_server::clock::SystemClock;
use pinpriq_store::StoreError;
use pinpriq_store::layout::shards_in;
use pinpriq_store::restore::Wishes;

use super::archive::{failure, opened};
use super::check;
use super::follow::follow;
use super::places::refuse_in_place;
use super::salvage::options;
use crate::args::archives::RestoreArgs;
use crate::exit::{Exit, Failure};
use crate::json::Json;
use crate::logging::tell;
use crate::moments::{self, Moment};
use crate::output::print_text;
use crate::progress::Progress;
use crate::units::counted;

/// What was restored, or would be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Report {
    at: Timestamp,
    from: LineId,
    mark: u64,
    shards: usize,
    why: Why,
    /// The new directory, once there is one.
    made: Option<Made>,
}

/// A new directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Made {
    line: LineId,
    tasks: u64,
    queues: u64,
}

/// Writes the new directory and prints which moment it has.
pub(crate) fn restore(arguments: &RestoreArgs) -> Result<Exit, Failure> {
    refuse_in_place(&arguments.data, &arguments.place)?;
    if arguments.follow.follow {
        return follow(arguments);
    }
    refuse_unless_empty(&arguments.data)?;
    let place = opened(&arguments.place)?;
    let (choice, is_newest) = chosen(&*place, arguments).map_err(|error| failure(&error))?;
    if let Some(sentence) = too_late(arguments.until, &choice) {
        tell(sentence);
    }
    let report = if arguments.dry_run {
        let plan = plan(&*place, &choice).map_err(|error| failure(&error))?;
        let (at, from, mark, shards) = (plan.at, plan.line, plan.mark, plan.shards);
        Report { at, from, mark, shards, why: choice.why, made: None }
    } else {
        // With the newest moment, a schedule goes on as after any stop of the server.
        let wishes = Wishes { paused: arguments.paused, skips_slots: !is_newest };
        written(&*place, &choice, &arguments.data, wishes)?
    };
    let text = if arguments.json {
        format!("{}\n", as_json(&report))
    } else {
        in_words(&report, &arguments.data)
    };
    print_text(text.as_bytes())?;
    Ok(Exit::Done)
}

/// Refuses a directory with something in it, in the same words as elsewhere, before the place is
/// asked for anything.
fn refuse_unless_empty(data: &Path) -> Result<(), Failure> {
    let Some(file) = first_in(data) else { return Ok(()) };
    if let Err(error @ StoreError::Following) = shards_in(data) {
        return Err(check::failure(&data.display().to_string(), &error));
    }
    if is_unfinished(data) {
        return Err(Failure::unusable(format!(
            "{} is what a restore has left that was broken off: remove it and restore again, or \
             give another directory",
            data.display()
        )));
    }
    Err(check::failure(&data.display().to_string(), &StoreError::NotEmpty { file }))
}

/// One of the names in a directory, if there is any.
fn first_in(data: &Path) -> Option<String> {
    let entry = data.read_dir().ok()?.next()?.ok()?;
    Some(entry.file_name().to_string_lossy().into_owned())
}

/// Whether a tool was interrupted that wrote this directory.
fn is_unfinished(data: &Path) -> bool {
    matches!(shards_in(data), Err(StoreError::Unfinished))
}

/// Says that a moment was asked for which comes after the newest backup, if it does.
pub(super) fn too_late(asked: Moment, choice: &Choice) -> Option<String> {
    let Moment::At(asked) = asked else { return None };
    (choice.why == Why::Latest && asked > choice.until).then(|| {
        format!(
            "the newest backup is of {}, before the moment that was asked for, {}",
            moments::shown(choice.until),
            moments::shown(asked)
        )
    })
}

/// Returns the moment as the archive is asked for it.
pub(super) const fn until_of(moment: Moment) -> Until {
    match moment {
        Moment::Latest => Until::Latest,
        Moment::At(at) => Until::At(at),
        Moment::Before(span) => Until::Before(span),
    }
}

/// Finds the backup that has the moment, and whether that is the newest of its line.
fn chosen(place: &dyn Place, arguments: &RestoreArgs) -> Result<(Choice, bool), ArchiveError> {
    let until = until_of(arguments.until);
    let mut catalogue = Catalogue::read(place)?;
    let choice = catalogue.choose(arguments.line.map(LineId), until)?;
    // If a newer backup cannot be read, this is an earlier moment.
    let mut newest = || catalogue.choose(Some(choice.mark.line), Until::Latest);
    let is_newest =
        choice.why == Why::Latest || newest().is_ok_and(|newest| newest.until == choice.until);
    Ok((choice, is_newest))
}

fn written(
    place: &dyn Place,
    choice: &Choice,
    data: &Path,
    wishes: Wishes,
) -> Result<Report, Failure> {
    let (journal, now) = (options(), SystemClock::wall());
    let order = Order { data, journal, wishes, now, announces: true };
    let progress = Progress::before_output("segments restored");
    let restored = pinpriq_archive::restore(place, choice, &order, &mut |it| {
        progress.note(it.done, it.total);
    });
    drop(progress);
    let restored = restored.map_err(|error| broken_off(&error, data))?;
    if let Some(error) = &restored.unannounced {
        tell_unannounced(error);
    }
    Ok(Report {
        at: restored.at,
        from: restored.from,
        mark: restored.mark,
        shards: restored.reports.len(),
        why: choice.why,
        made: Some(Made {
            line: restored.line,
            tasks: restored.reports.iter().map(|report| report.tasks).sum(),
            queues: restored.reports.iter().map(|report| report.queues).sum(),
        }),
    })
}

/// Says that the place does not know of the new directory.
pub(super) fn tell_unannounced(error: &PlaceError) {
    tell(format_args!(
        "the place was not told of the new directory ({error}): a backup of it there will be \
         refused, so give it a place of its own"
    ));
}

/// How a restore ends that has failed, perhaps after it began to write.
fn broken_off(error: &ArchiveError, data: &Path) -> Failure {
    let failure = failure(error);
    // Some say themselves what is to be done with it.
    if !is_unfinished(data) || failure.to_string().contains("remove the new directory") {
        return failure;
    }
    // That is so of the place, and sounds as if it were of the directory too.
    let sentence = failure.to_string().replace("; nothing was changed", "");
    let sentence = sentence.trim_end_matches('.');
    let data = data.display();
    Failure::new(failure.code(), format!("{sentence}. {data} is unfinished and can be removed"))
}

/// The report for people.
fn in_words(report: &Report, data: &Path) -> String {
    let Report { from, mark, shards, .. } = report;
    let (at, data) = (moments::shown(report.at), data.display());
    let mut text = match report.made {
        None => format!("would restore {at} of line {from}, by mark {mark}\n"),
        Some(Made { line, tasks, queues }) => format!(
            "restored {at} of line {from}, by mark {mark}\n\
             {data} is line {line}: {}, {}\n",
            counted(tasks, "task"),
            counted(queues, "queue")
        ),
    };
    if report.why == Why::BeforeGap {
        text += "there is no copy of the moment that was asked for: this is the last one before\n";
    }
    if *shards > 1 {
        let _ = writeln!(text, "it has {shards} shards: start the server with --shards {shards}");
    }
    text
}

/// Why it is this moment, for programs.
pub(super) fn why_as_json(why: Why) -> Json {
    Json::text(match why {
        Why::Exact => "exact",
        Why::Latest => "latest",
        Why::BeforeGap => "before-gap",
    })
}

/// The report for programs.
fn as_json(report: &Report) -> Json {
    let made = |member: fn(Made) -> Json| report.made.map_or(Json::Null, member);
    let [at, at_ms] = moments::members("at", "at_ms", report.at);
    Json::Object(vec![
        ("dry_run", Json::Bool(report.made.is_none())),
        at,
        at_ms,
        ("why", why_as_json(report.why)),
        ("from", Json::text(report.from.to_string())),
        ("mark", Json::Number(report.mark)),
        ("shards", Json::Number(report.shards as u64)),
        ("line", made(|made| Json::text(made.line.to_string()))),
        ("tasks", made(|made| Json::Number(made.tasks))),
        ("queues", made(|made| Json::Number(made.queues))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_says_which_moment_and_how_to_start() {
        let report = Report {
            at: Timestamp::from_ms(2_500),
            from: LineId(1),
            mark: 3,
            shards: 1,
            why: Why::Latest,
            made: None,
        };
        let text = in_words(&report, Path::new("d"));
        let moment = "1970-01-01T00:00:02.500Z of line 0000000000000001, by mark 3\n";
        assert_eq!(text, format!("would restore {moment}"));
        let made = Some(Made { line: LineId(2), tasks: 5, queues: 1 });
        let report = Report { made, why: Why::BeforeGap, shards: 4, ..report };
        let text = in_words(&report, Path::new("d"));
        let made = "d is line 0000000000000002: 5 tasks, 1 queue\n";
        assert!(text.starts_with(&format!("restored {moment}{made}")), "{text}");
        assert!(text.contains("the last one before\n") && text.ends_with("--shards 4\n"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&as_json(&report).to_string()).unwrap();
        assert_eq!((&json["why"], &json["at_ms"]), (&"before-gap".into(), &2_500.into()));
    }
}
