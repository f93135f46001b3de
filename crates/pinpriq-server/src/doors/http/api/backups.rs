//! `/v1/backups`: a running server is copied, segment by segment.
//!
//! What is kept, and for how long, is decided in [`backups`](super::super::backups). What is done
//! with the copy is up to the client.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, IF_RANGE, RANGE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{StreamExt as _, unfold};
use pinpriq_proto::reply::Refusal;

use super::super::backups::{Backup, Backups, Reading};
use super::super::exchange::Content;
use super::super::problem::Problem;
use super::asking::Request;
use super::composed::json;
use super::route::Own;
use super::{Api, AsItIs, Asker, refuse};
use crate::access::audit::{Event, What};
use crate::access::pass::Pass;
use crate::config::DoorName;
use crate::doors::json::{array, object};
use crate::users::Right;

/// The rights that each request here needs on all queues. A copy shows everything, and keeps files
/// on the disk.
const NEEDED: [Right; 2] = [Right::Manage, Right::Look];

/// What the audit calls these requests.
const BEGIN: &str = "BACKUP";
const READ: &str = "BACKUP READ";
const END: &str = "BACKUP END";

/// Answers a request about backups with these header fields.
pub(super) async fn answer(
    who: (&Api, &Asker),
    own: Own,
    request: Request<'_>,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    if let Some(look) = &who.0.look {
        let Refusal { kind, sentence } = look.refusal();
        return Err(Problem::new(kind.word(), sentence));
    }
    match own {
        Own::BeginBackup => begin(who, request).await,
        Own::Segment => segment(who, request, headers).await,
        _ => end(who, request),
    }
}

/// Begins a backup.
async fn begin((api, asker): (&Api, &Asker), request: Request<'_>) -> Result<Response, Problem> {
    check((api, asker), BEGIN)?;
    request.values.end("it")?;
    let backup = backups_of(api)?.begin().await?;
    tell((api, asker), What::Command, BEGIN, Some(backup.id.clone()));
    Ok(json(StatusCode::CREATED, shown(&backup)))
}

/// Ends a backup.
fn end((api, asker): (&Api, &Asker), mut request: Request<'_>) -> Result<Response, Problem> {
    check((api, asker), END)?;
    let id = text(&mut request, "backup")?;
    request.values.end("it")?;
    backups_of(api)?.end(&id)?;
    tell((api, asker), What::Command, END, Some(id));
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Answers with the bytes of a segment, or with a range of them.
async fn segment(
    (api, asker): (&Api, &Asker),
    mut request: Request<'_>,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    check((api, asker), READ)?;
    let [id, shard, number] = ["backup", "shard", "segment"].map(|name| text(&mut request, name));
    let (id, shard, number) = (id?, shard?, number?);
    request.values.end("it")?;
    let wrong = |what: &str| Problem::bad(format!("a {what} is a number"));
    let shard: usize = shard.parse().map_err(|_| wrong("shard"))?;
    let number: u32 = number.parse().map_err(|_| wrong("segment"))?;
    let backups = backups_of(api)?;
    let backup = backups.find(&id)?;
    let segment = backup.segment(shard, number)?;
    let all = segment.bytes;
    let (status, bytes) = match wanted(headers, all) {
        Wanted::All => (StatusCode::OK, 0..all),
        Wanted::Part(bytes) => (StatusCode::PARTIAL_CONTENT, bytes),
        Wanted::Nothing => return Ok(out_of_range(all)),
    };
    let reading = backups.read(&backup, (shard, segment), bytes.clone()).await?;
    let mut response = Response::new(body_of(reading).await?);
    *response.status_mut() = status;
    response.extensions_mut().insert(AsItIs);
    let headers = response.headers_mut();
    let octets = Content::Octets.media_type().unwrap_or_default();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(octets));
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.end - bytes.start));
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {}-{}/{all}", bytes.start, bytes.end - 1);
        headers.extend(HeaderValue::from_str(&range).ok().map(|range| (CONTENT_RANGE, range)));
    }
    Ok(response)
}

/// Refuses who may not copy the server.
fn check((api, asker): (&Api, &Asker), command: &str) -> Result<(), Problem> {
    let lacks = |pass: &Pass| {
        let rights = &pass.user.rights;
        NEEDED.into_iter().find(|right| !rights.allows_all(*right))
    };
    let Some(right) = asker.pass.as_ref().and_then(lacks) else { return Ok(()) };
    tell((api, asker), What::Denied, command, None);
    let sentence = format!("the user may not do this: it needs the right {right}:*");
    Err(Problem::new("NOPERM", sentence))
}

/// Tells the audit, if there is one.
fn tell((api, asker): (&Api, &Asker), what: What, command: &str, detail: Option<String>) {
    let Some(audit) = &api.audit else { return };
    audit.note(Event {
        user: asker.pass.as_ref().map(|pass| pass.user.name.to_string()),
        from: Some(asker.way.peer),
        door: Some(DoorName::Http.word()),
        command: Some(command.to_owned()),
        detail,
        ..Event::new(what)
    });
}

/// Returns the backups, where there can be some.
fn backups_of(api: &Api) -> Result<&Arc<Backups>, Problem> {
    api.backups.as_ref().map_err(|why| Problem::new("WRONGSTATE", *why))
}

/// Returns a name of the path that is text.
fn text(request: &mut Request<'_>, name: &str) -> Result<String, Problem> {
    Ok(String::from_utf8_lossy(&request.name(name)?).into_owned())
}

fn shown(backup: &Backup) -> Vec<u8> {
    let mut out = Vec::new();
    object(&mut out, |it| {
        it.set("id", &backup.id).moment("at", backup.at).moment("expires_at", backup.ends_at());
        it.array("shards", backup.shards().enumerate(), |out, (shard, segments)| {
            object(out, |it| {
                it.set("shard", shard);
                it.member("segments", |out| {
                    array(out, segments, |out, segment| {
                        object(out, |it| {
                            it.set("number", segment.number);
                            it.set("incarnation", segment.incarnation);
                            it.set("bytes", segment.bytes);
                        });
                    });
                });
            });
        });
    });
    out
}

/// Which bytes a request wants.
#[derive(PartialEq, Eq, Debug)]
enum Wanted {
    All,
    Part(Range<u64>),
    /// A range without bytes that there are.
    Nothing,
}

/// Returns which of so many bytes a request wants. What is no single range means all of them, and
/// so does one that depends on a version: there are none.
fn wanted(headers: &HeaderMap, all: u64) -> Wanted {
    let mut ranges = headers.get_all(RANGE).iter();
    let (Some(range), None) = (ranges.next(), ranges.next()) else { return Wanted::All };
    if headers.contains_key(IF_RANGE) {
        return Wanted::All;
    }
    range.to_str().ok().and_then(|range| part(range, all)).unwrap_or(Wanted::All)
}

/// Returns what a range means, if it is a single one.
fn part(range: &str, all: u64) -> Option<Wanted> {
    let (unit, range) = range.trim().split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let number = |digits: &str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        // One that is too high is beyond all bytes.
        is_number.then(|| digits.parse().unwrap_or(u64::MAX))
    };
    let bytes = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(all),
        (Some(first), None) if last.is_empty() => first..all,
        (None, Some(count)) if first.is_empty() => all.saturating_sub(count)..all,
        _ => return None,
    };
    Some(if bytes.is_empty() { Wanted::Nothing } else { Wanted::Part(bytes) })
}

/// The refusal of a range that has none of so many bytes.
fn out_of_range(all: u64) -> Response {
    let mut response = refuse(&Problem::new("RANGE", format!("the segment has {all} bytes")));
    let range = HeaderValue::from_str(&format!("bytes */{all}")).ok();
    response.headers_mut().extend(range.map(|range| (CONTENT_RANGE, range)));
    response
}

/// A segment on its way to a client.
struct Sending {
    /// The first piece, until it has left.
    first: Option<Vec<u8>>,
    /// Where the others come from. Nothing after a failure.
    reading: Option<Reading>,
}

/// Returns a body with the bytes that are read. Fails if there is not even a first piece. If a
/// later one fails, the body has no end.
async fn body_of(mut reading: Reading) -> Result<Body, Problem> {
    let first = reading.next().await?;
    let sending = Sending { first, reading: Some(reading) };
    Ok(Body::from_stream(unfold(sending, next).fuse()))
}

/// Returns the next piece of a body. One at most is in memory besides what is being sent.
async fn next(mut sending: Sending) -> Option<(io::Result<Bytes>, Sending)> {
    if let Some(first) = sending.first.take() {
        return Some((Ok(first.into()), sending));
    }
    let piece = match sending.reading.as_mut()?.next().await {
        Ok(piece) => Ok(piece?.into()),
        Err(problem) => {
            sending.reading = None;
            Err(io::Error::other(problem.sentence))
        }
    };
    Some((piece, sending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_standard() {
        let table = [
            ("bytes=0-99", Wanted::Part(0..100)),
            ("bytes=0-0", Wanted::Part(0..1)),
            ("Bytes = 10-", Wanted::Part(10..1_000)),
            ("bytes=990-5000", Wanted::Part(990..1_000)),
            ("bytes=-10", Wanted::Part(990..1_000)),
            ("bytes=-5000", Wanted::Part(0..1_000)),
            ("bytes=999-99999999999999999999999", Wanted::Part(999..1_000)),
            ("bytes=1000-", Wanted::Nothing),
            ("bytes=1000-2000", Wanted::Nothing),
            ("bytes=99999999999999999999999-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=5-4", Wanted::All),
            ("bytes=0-1,5-6", Wanted::All),
            ("bytes=-", Wanted::All),
            ("bytes=x-y", Wanted::All),
            ("bytes=+1-2", Wanted::All),
            ("lines=1-2", Wanted::All),
            ("", Wanted::All),
        ];
        for (range, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, HeaderValue::from_static(range));
            assert_eq!(wanted(&headers, 1_000), expected, "{range}");
            headers.insert(IF_RANGE, HeaderValue::from_static("\"x\""));
            assert_eq!(wanted(&headers, 1_000), Wanted::All, "{range}");
        }
        assert_eq!(wanted(&HeaderMap::new(), 1_000), Wanted::All);
    }
}
