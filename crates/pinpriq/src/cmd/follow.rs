//! `pinpriq restore --follow`: a data directory that gets what a server archives, until a signal
//! ends it.
//!
//! What a round does is the archive's business. Here is when there is one, what is told of it, and
//! what becomes of trouble.

mod health;
mod listening;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use pinpriq_archive::{ArchiveError, ErrorKind, Follower, LineId, PlaceError, Round, Turn};
use pinpriq_proto::time::Timestamp;
use pinpriq_server::clock::SystemClock;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::emulate_default_handler;

use self::health::{Health, StatusFile};
use super::archive::{failure, opened};
use super::restore::tell_unannounced;
use super::salvage::options;
use super::signals::Heeding;
use crate::args::archives::RestoreArgs;
use crate::args::following::FollowArgs;
use crate::exit::{Exit, Failure};
use crate::logging::tell;
use crate::moments;
use crate::progress::Progress;

/// How long it waits after the first round that failed. Each further one doubles it.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// The longest that it waits after rounds that failed.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Follows until a signal, until somebody has gone on from the line, or until something fails that
/// does not pass.
pub(super) fn follow(arguments: &RestoreArgs) -> Result<Exit, Failure> {
    let RestoreArgs { data, line, follow, .. } = arguments;
    let place = opened(&arguments.place)?;
    let stop = Stop::on_signals()?;
    let follower = Follower::open(&*place, data, line.map(LineId));
    let mut follower = follower.map_err(|error| failure(&error))?;
    let mut telling = Telling::begin(follow, &arguments.place)?;
    loop {
        let began = SystemClock::wall();
        let round = turned(&mut follower, &stop);
        telling.note(began, &follower, round.as_ref());
        let pause = match round {
            Ok(Round::Stopped) => return Ok(telling.stopped()),
            Ok(Round::Ended { by }) => {
                return Err(telling.given_up(ended(&follower, by, data)));
            }
            Ok(Round::Same | Round::New { .. }) => Duration::from_millis(follow.every),
            Err(error) if passes(&error, has_state(&follower)) => telling.pause,
            Err(error) => return Err(telling.given_up(failure(&error))),
        };
        if stop.comes_within(pause) {
            return Ok(telling.stopped());
        }
    }
}

fn turned(follower: &mut Follower<'_>, stop: &Stop) -> Result<Round, ArchiveError> {
    // Later rounds are short.
    let progress = (!has_state(follower)).then(|| Progress::before_output("segments are here"));
    let mut turn = Turn {
        now: SystemClock::wall(),
        drawn: options().salt_seed,
        stops: &|| stop.is_asked(),
        progress: &mut |it| {
            if let Some(progress) = &progress {
                progress.note(it.done, it.total);
            }
        },
    };
    follower.round(&mut turn)
}

/// Whether something may pass by itself, in the place or with a newer mark. What was followed may
/// be back when the place is, so a directory with a state waits for it.
fn passes(error: &ArchiveError, has_state: bool) -> bool {
    match error {
        ArchiveError::Directory(_) | ArchiveError::Place(PlaceError::Bad { .. }) => false,
        ArchiveError::Damaged { .. } | ArchiveError::Empty { .. } => true,
        ArchiveError::NoLine { .. } => has_state,
        other => other.kind() == ErrorKind::Failed,
    }
}

/// Whether the directory has the state of a mark.
fn has_state(follower: &Follower<'_>) -> bool {
    follower.followed().is_some_and(|known| known.mark > 0)
}

/// Says that there is nothing to follow any more.
fn ended(follower: &Follower<'_>, by: LineId, data: &Path) -> Failure {
    let line = follower.followed().map_or_else(String::new, |known| format!(" {}", known.line));
    Failure::on_the_way(format!(
        "somebody has restored line{line} and gone on as line {by}, so there is nothing to follow \
         any more: follow that with an empty directory. What {} has is kept",
        data.display()
    ))
}

/// What is told: on stderr only what changes.
struct Telling<'a> {
    place: &'a str,
    health: Arc<Health>,
    status: Option<StatusFile>,
    /// Whether it was told that it follows.
    follows: bool,
    /// Whether it was told that the place does not know of the directory.
    is_unannounced: bool,
    /// The trouble that was told last, if it goes on.
    trouble: Option<String>,
    /// The same of the file.
    status_trouble: Option<String>,
    /// How long to wait after a round that failed.
    pause: Duration,
}

impl<'a> Telling<'a> {
    fn begin(follow: &FollowArgs, place: &'a str) -> Result<Self, Failure> {
        let health = Arc::<Health>::default();
        let status = follow.status.as_deref().map(StatusFile::open).transpose()?;
        if let Some(address) = follow.http {
            let at = listening::listen(address, Arc::clone(&health))?;
            tell(format_args!("listening: http://{at}/healthz tells how far it is"));
        }
        if let Some(status) = &status {
            status.write(&health.report(SystemClock::wall()).0).map_err(Failure::unusable)?;
        }
        Ok(Self {
            place,
            health,
            status,
            follows: false,
            is_unannounced: false,
            trouble: None,
            status_trouble: None,
            pause: PAUSE_MIN,
        })
    }

    /// Notes what has come of a round that began at this moment.
    fn note(
        &mut self,
        began: Timestamp,
        follower: &Follower<'_>,
        round: Result<&Round, &ArchiveError>,
    ) {
        if let Some(error) = follower.unannounced().filter(|_| !self.is_unannounced) {
            tell_unannounced(error);
            self.is_unannounced = true;
        }
        let error = round.err().map(ToString::to_string);
        self.health.note(began, follower.followed(), error.clone());
        self.write_status();
        match error {
            Some(told) => {
                // What does not pass ends the command, which says why.
                if round.err().is_some_and(|error| passes(error, has_state(follower))) {
                    self.note_trouble(told);
                }
            }
            None => self.note_success(follower),
        }
    }

    fn note_trouble(&mut self, error: String) {
        let before = self.trouble.is_some();
        self.pause = if before { (self.pause * 2).min(PAUSE_MAX) } else { PAUSE_MIN };
        if self.trouble.as_ref() != Some(&error) {
            tell(format_args!("{}. Waiting, and trying again", error.trim_end_matches('.')));
        }
        self.trouble = Some(error);
    }

    fn note_success(&mut self, follower: &Follower<'_>) {
        let was_in_trouble = self.trouble.take().is_some();
        let Some(known) = follower.followed().filter(|known| known.mark > 0) else { return };
        if was_in_trouble || !self.follows {
            let at = moments::shown(known.at);
            tell(format_args!("following line {} in {}, now at {at}", known.line, self.place));
        }
        self.follows = true;
    }

    /// Says last that it does not follow any more, since it was asked to end.
    fn stopped(&mut self) -> Exit {
        self.health.end(None);
        self.write_status();
        Exit::Done
    }

    /// Says last that it does not follow any more, and why.
    fn given_up(&mut self, failure: Failure) -> Failure {
        self.health.end(Some(failure.to_string()));
        self.write_status();
        failure
    }

    fn write_status(&mut self) {
        let Some(status) = &self.status else { return };
        let (report, _) = self.health.report(SystemClock::wall());
        let trouble = status.write(&report).err();
        if trouble != self.status_trouble {
            if let Some(trouble) = &trouble {
                tell(trouble);
            }
            self.status_trouble = trouble;
        }
    }
}

/// Whether a signal has asked to end.
struct Stop {
    asked: Arc<AtomicBool>,
    told: Receiver<()>,
    _heeding: Heeding,
}

impl Stop {
    /// Listens to signals from now on. A second one ends the process at once, which does no harm:
    /// the directory then has the state of before.
    fn on_signals() -> Result<Self, Failure> {
        let asked = Arc::<AtomicBool>::default();
        let (tell, told) = sync_channel(1);
        let flag = Arc::clone(&asked);
        let heeding = Heeding::begin(&[SIGHUP, SIGINT, SIGTERM], move |signal| {
            if flag.swap(true, Ordering::Relaxed) {
                let _ = emulate_default_handler(signal);
            }
            // If nobody waits any more, the command is ending.
            let _ = tell.try_send(());
        })?;
        Ok(Self { asked, told, _heeding: heeding })
    }

    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Waits, but not longer than until a signal comes. Returns whether one has.
    fn comes_within(&self, time: Duration) -> bool {
        // The thread that sends does not end.
        self.told.recv_timeout(time).is_ok() || self.is_asked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_with_the_place_passes_and_that_of_the_directory_does_not() {
        let name = "s3://b".to_owned();
        let away = |error: PlaceError| ArchiveError::from(error);
        let why = "no".to_owned();
        let passing = [
            away(PlaceError::NotThere { place: name.clone() }),
            away(PlaceError::Away { what: "read", name: name.clone(), why: why.clone() }),
            away(PlaceError::Denied { what: "read", name: name.clone(), why: why.clone() }),
            ArchiveError::Empty { place: name.clone() },
            ArchiveError::Damaged { name: name.clone(), what: why.clone() },
            ArchiveError::Taken { what: why.clone() },
        ];
        assert!(passing.iter().all(|error| passes(error, false) && passes(error, true)));
        let lasting = [
            away(PlaceError::Bad { what: why.clone() }),
            ArchiveError::Newer { name: name.clone(), what: why.clone() },
            ArchiveError::CannotGoOn { what: why },
        ];
        assert!(!lasting.iter().any(|error| passes(error, false) || passes(error, true)));
        // A line that was never there is a mistake, and one that was followed may come back.
        let no_line = ArchiveError::NoLine { place: name, line: LineId(1) };
        assert!(!passes(&no_line, false) && passes(&no_line, true));
    }
}
