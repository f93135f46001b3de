//! How far a directory that follows is, as a JSON object: in a file, and for whoever asks.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pinpriq_archive::Followed;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::RealDisk;
use pinpriq_store::layout::replace_file;

use crate::exit::Failure;
use crate::json::Json;

/// If the last round that worked is longer ago than this, all is not well.
const FRESH_MS: u64 = 60_000;

/// How far it is. The rounds note it, and others ask.
#[derive(Debug, Default)]
pub(super) struct Health {
    state: Mutex<State>,
}

#[derive(Clone, Debug, Default)]
struct State {
    followed: Option<Followed>,
    /// Why the last round has failed, if it has.
    error: Option<String>,
    /// When a round has worked last: everything that was in the place by then is here.
    worked_at: Option<Timestamp>,
    /// Whether the command has ended.
    has_ended: bool,
}

/// The file that says it.
pub(super) struct StatusFile {
    disk: RealDisk,
    /// Its path, as users give it.
    shown: String,
    name: String,
    new_name: String,
}

impl Health {
    /// Notes what has come of a round that began at this moment.
    pub(super) fn note(&self, began: Timestamp, followed: Option<Followed>, error: Option<String>) {
        let mut state = self.state();
        let worked_at = if error.is_none() { Some(began) } else { state.worked_at };
        *state = State { followed, error, worked_at, has_ended: false };
    }

    /// Notes that the command ends, and why if nobody asked for that.
    pub(super) fn end(&self, error: Option<String>) {
        let mut state = self.state();
        (state.error, state.has_ended) = (error, true);
    }

    /// Returns the object, and whether all is well.
    pub(super) fn report(&self, now: Timestamp) -> (String, bool) {
        let State { followed, error, worked_at, has_ended } = self.state().clone();
        let of_mark = followed.filter(|known| known.mark > 0);
        let behind = worked_at.filter(|_| of_mark.is_some());
        let behind = behind.map(|worked| now.ms().saturating_sub(worked.ms()));
        let is_following = error.is_none() && behind.is_some() && !has_ended;
        let is_well = is_following && behind.is_some_and(|behind| behind <= FRESH_MS);
        let state = match (has_ended, is_following) {
            (true, _) => "stopped",
            (false, true) => "following",
            (false, false) => "waiting",
        };
        let number = |it: Option<u64>| it.map_or(Json::Null, Json::Number);
        let line = followed.map_or(Json::Null, |known| Json::text(known.line.to_string()));
        let object = Json::Object(vec![
            ("state", Json::text(state)),
            ("line", line),
            ("mark", number(of_mark.map(|known| known.mark))),
            ("at_ms", number(of_mark.map(|known| known.at.ms()))),
            ("behind_ms", number(behind)),
            ("error", error.map_or(Json::Null, Json::Text)),
            ("written_at_ms", Json::Number(now.ms())),
        ]);
        (format!("{object}\n"), is_well)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StatusFile {
    /// Prepares to write a file. Its directory must exist.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let shown = path.display().to_string();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name else {
            return Err(Failure::unusable(format!("--status {shown} names no file")));
        };
        let around = path.parent().filter(|around| !around.as_os_str().is_empty());
        let disk = RealDisk::open(around.unwrap_or_else(|| Path::new("."))).map_err(|error| {
            Failure::unusable(format!("--status {shown}: its directory cannot be opened: {error}"))
        })?;
        let (name, new_name) = (name.to_owned(), format!(".{name}.new"));
        Ok(Self { disk, shown, name, new_name })
    }

    /// Replaces the file. Returns why not as a sentence.
    pub(super) fn write(&self, text: &str) -> Result<(), String> {
        let names = (self.name.as_str(), self.new_name.as_str());
        let written = replace_file(&self.disk, names, text.as_bytes());
        written.map_err(|error| format!("--status {} is not written: {error}", self.shown))
    }
}

#[cfg(test)]
mod tests {
    use pinpriq_archive::LineId;

    use super::*;

    fn report(health: &Health, now_ms: u64) -> (String, bool) {
        let (text, is_well) = health.report(Timestamp::from_ms(now_ms));
        (text.trim_end().to_owned(), is_well)
    }

    #[test]
    fn the_object_says_how_far_it_is() {
        let health = Health::default();
        let nothing = r#""line":null,"mark":null,"at_ms":null,"behind_ms":null,"error":null"#;
        let waiting = format!(r#"{{"state":"waiting",{nothing},"written_at_ms":5}}"#);
        assert_eq!(report(&health, 5), (waiting, false));
        let at = Timestamp::from_ms(100_000);
        let known = Followed { line: LineId(0xabc), own: LineId(1), mark: 7, at };
        let began = Timestamp::from_ms(130_000);
        health.note(began, Some(known), None);
        let of = |behind: u64, now: u64| {
            let known = r#""line":"0000000000000abc","mark":7,"at_ms":100000"#;
            let rest = format!(r#""behind_ms":{behind},"error":null,"written_at_ms":{now}}}"#);
            format!(r#"{{"state":"following",{known},{rest}"#)
        };
        // What is older in the place does not matter: nothing may have happened since.
        assert_eq!(report(&health, 120_000), (of(0, 120_000), true));
        assert_eq!(report(&health, 190_000), (of(60_000, 190_000), true));
        assert_eq!(report(&health, 190_001), (of(60_001, 190_001), false));
        health.note(Timestamp::from_ms(140_000), Some(known), Some("away".to_owned()));
        let (text, is_well) = report(&health, 150_000);
        assert!(text.contains(r#""behind_ms":20000"#), "{text}");
        assert!(text.starts_with(r#"{"state":"waiting","line":"0000000000000abc","mark":7"#));
        assert!(text.contains(r#""error":"away","#) && !is_well, "{text}");
        health.end(None);
        let (text, is_well) = report(&health, 150_000);
        assert!(text.starts_with(r#"{"state":"stopped","#) && !is_well, "{text}");
    }
}
