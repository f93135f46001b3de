//! A running server as something that can be copied: a cut of it, over its HTTP door.
//!
//! The server keeps the files of a cut until a minute after the last request for it. A thread asks
//! for a byte from time to time, so that a slow place does not end the backup.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use pinpriq_archive::{CutInfo, SegmentEnd, Source, SourceError};
use pinpriq_proto::time::Timestamp;
use serde_json::Value;

use super::super::signals::Heeding;
use super::ending::{end_on_signals, in_time};
use super::pace::Pace;
use crate::cmd::pass;
use crate::endpoint::Endpoint;
use crate::exit::Failure;
use crate::http::Http;
use crate::moments::ms_of;
use crate::resp::{Trouble, unexpected};

/// Where cuts are made.
const PATH: &str = "/v1/backups";

/// The largest description of a cut that is read: some hundred thousand segments.
const CUT_BYTES_MAX: usize = 32 << 20;

/// How often the server is reminded of the cut.
const REMINDED_EVERY: Duration = Duration::from_secs(20);

/// How long to wait before each further try, when the connection was lost.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(15),
];

/// A cut of a server, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Running {
    http: Arc<Mutex<Http>>,
    /// The path of the cut.
    path: String,
    cut: CutInfo,
    pace: Pace,
    /// Why the server refused to hand out more of it, if it did.
    refusal: Option<String>,
    /// The thread that reminds the server, and what ends that.
    reminder: Option<(SyncSender<()>, JoinHandle<()>)>,
    /// What ends the cut when a signal ends the command.
    _ending: Heeding,
}

impl Running {
    /// Asks the server for a cut of this moment, which is read at a pace.
    pub(super) fn cut(endpoint: Endpoint, pace: Pace) -> Result<Self, Failure> {
        let mut http = Http::to(endpoint.clone())?;
        let body = http.post(PATH, CUT_BYTES_MAX)?;
        let (id, cut) = described(&body).ok_or_else(unexpected)?;
        let path = format!("{PATH}/{id}");
        let ending = end_on_signals(endpoint, path.clone())?;
        let http = Arc::new(Mutex::new(http));
        let reminder = remind(http.clone(), &path, &cut);
        Ok(Self { http, path, cut, pace, refusal: None, reminder, _ending: ending })
    }

    /// Why the server refused to go on, if it did.
    pub(super) fn refusal(&self) -> Option<Failure> {
        self.refusal.clone().map(Failure::refused)
    }
}

impl Source for Running {
    fn cut(&self) -> &CutInfo {
        &self.cut
    }

    fn read(
        &mut self,
        shard: usize,
        segment: u32,
        from: u64,
        to: u64,
        into: &mut Vec<u8>,
    ) -> Result<(), SourceError> {
        let path = format!("{}/{shard}/{segment}", self.path);
        let (mut at, mut pauses) = (from, PAUSES.iter());
        while at < to {
            let end = self.pace.end_of_part(at, to);
            let part = locked(&self.http).part(&path, at, end);
            match part {
                Ok(part) if part.is_empty() => {
                    let what = format!("the server has no more bytes of {path}, which it promised");
                    return Err(SourceError { what });
                }
                Ok(part) => {
                    into.extend_from_slice(&part);
                    at += part.len() as u64;
                    self.pace.rest(part.len() as u64);
                    pauses = PAUSES.iter();
                }
                Err(Trouble::Lost(what)) => match pauses.next() {
                    Some(pause) => pass(*pause),
                    None => return Err(SourceError { what }),
                },
                Err(Trouble::Refused(what)) => {
                    self.refusal = Some(what.clone());
                    return Err(SourceError { what });
                }
            }
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((ended, thread)) = self.reminder.take() {
            drop(ended);
            let _ = thread.join();
        }
        let (http, path) = (self.http.clone(), self.path.clone());
        in_time(move || {
            // If this fails, the cut ends by itself a minute later.
            let _ = locked(&http).delete(&path);
        });
    }
}

fn locked(http: &Mutex<Http>) -> MutexGuard<'_, Http> {
    http.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to remind the server of a cut.
fn remind(
    http: Arc<Mutex<Http>>,
    path: &str,
    cut: &CutInfo,
) -> Option<(SyncSender<()>, JoinHandle<()>)> {
    let (shard, segments) = cut.shards.iter().enumerate().find(|(_, it)| !it.is_empty())?;
    let path = format!("{path}/{shard}/{}", segments.first()?.number);
    let (ended, end) = sync_channel(0);
    let work = move || {
        while end.recv_timeout(REMINDED_EVERY) == Err(RecvTimeoutError::Timeout) {
            // Whoever reads the next part hears of it if something is wrong.
            let _ = locked(&http).part(&path, 0, 1);
        }
    };
    Some((ended, std::thread::spawn(work)))
}

/// Reads how the server describes a cut: its id, and what belongs to it.
fn described(body: &[u8]) -> Option<(String, CutInfo)> {
    let made: Value = serde_json::from_slice(body).ok()?;
    let id = text(made.get("id")?).filter(|id| is_plain(id))?;
    let at = made.get("at")?;
    let at = at.as_str().and_then(ms_of).or_else(|| number(at))?;
    let mut shards = Vec::new();
    for described in made.get("shards")?.as_array()? {
        if number(described.get("shard")?)? != shards.len() as u64 {
            return None;
        }
        let segments = described.get("segments")?.as_array()?.iter().map(segment);
        shards.push(segments.collect::<Option<Vec<_>>>()?);
    }
    (!shards.is_empty()).then_some((id, CutInfo { at: Timestamp::from_ms(at), shards }))
}

fn segment(described: &Value) -> Option<SegmentEnd> {
    Some(SegmentEnd {
        number: u32::try_from(number(described.get("number")?)?).ok()?,
        incarnation: number(described.get("incarnation")?)?,
        bytes: number(described.get("bytes")?)?,
    })
}

/// A number, which may be a text so that no reader loses digits.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()))
}

/// Whether a name can be a part of a path as it is.
fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty() && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_read_as_the_server_describes_it() {
        let body = br#"{"id":"a-1","at":"2026-01-02T03:04:05.678Z","expires_at":"x","shards":[
            {"shard":0,"segments":[{"number":1,"incarnation":7,"bytes":9000},
                                   {"number":2,"incarnation":"8","bytes":8192}]},
            {"shard":1,"segments":[]}]}"#;
        let (id, cut) = described(body).unwrap();
        assert_eq!((id.as_str(), cut.at.ms()), ("a-1", 1_767_323_045_678));
        let [first, second] = &cut.shards[0][..] else { panic!("{cut:?}") };
        assert_eq!((first.number, first.incarnation, first.bytes), (1, 7, 9_000));
        assert_eq!((second.number, second.incarnation, second.bytes), (2, 8, 8_192));
        assert!(cut.shards[1].is_empty());
    }

    #[test]
    fn what_is_no_description_of_a_cut_is_refused() {
        for body in [
            "",
            "{}",
            r#"{"id":"a","at":1,"shards":[]}"#,
            r#"{"id":"a/b","at":1,"shards":[{"shard":0,"segments":[]}]}"#,
            r#"{"id":"a","at":"soon","shards":[{"shard":0,"segments":[]}]}"#,
            r#"{"id":"a","at":1,"shards":[{"shard":1,"segments":[]}]}"#,
            r#"{"id":"a","at":1,"shards":[{"shard":0,"segments":[{"number":-1}]}]}"#,
        ] {
            assert!(described(body.as_bytes()).is_none(), "{body}");
        }
        let body = r#"{"id":"a","at":1,"shards":[{"shard":0,"segments":[]}]}"#;
        assert!(described(body.as_bytes()).is_some());
    }
}
