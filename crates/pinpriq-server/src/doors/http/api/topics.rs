//! Topics page by page. No command lists them: a topic is where some member has a lane. In a
//! cluster, only the lanes of the shards that this node serves are known.

use axum::http::StatusCode;
use axum::response::Response;

use super::super::exchange::Asked;
use super::super::json::object;
use super::super::problem::Problem;
use super::asking::Request;
use super::composed::{PAGE, PAGE_MAX, count_of, json};
use super::{Api, Asker};
use pinpriq_proto::reply::Reply;
use pinpriq_proto::request::cursors::name::{
    cursor_after as names_cursor, place_at as names_after,
};
use pinpriq_proto::request::options::{COUNT, CURSOR, PREFIX};
use pinpriq_proto::task::Bytes;

/// Shows topics page by page, with the figures of all their lanes together.
pub(super) async fn answer(
    (api, asker): (&Api, &Asker),
    mut request: Request<'_>,
) -> Result<Response, Problem> {
    let values = &mut request.values;
    let prefix = values.option(PREFIX)?.unwrap_or_default();
    let cursor = values.option(CURSOR)?.map(|cursor| names_after(&cursor)).transpose()?.flatten();
    let count = values.option(COUNT)?.map_or(Ok(PAGE), |value| count_of(&value))?.min(PAGE_MAX);
    request.values.end("the list")?;
    let topics = api.monitor.topics().await;
    let topics = topics.ok_or_else(|| Problem::new("CLOSING", "the server is stopping"))?;
    let is_after = |name: &[u8]| cursor.as_deref().is_none_or(|cursor| name > cursor);
    let is_meant = |name: &[u8]| name.starts_with(&prefix) && is_after(name);
    let mut names = topics.iter().filter(|name| is_meant(name) && asker.may_look_at(name));
    let page: Vec<&Bytes> = names.by_ref().take(count).collect();
    let members = |name: &&Bytes| Asked::of("MEMBERS").words([&***name]);
    let replies = asker.replies(page.iter().map(members)).await?.into_iter();
    let members = replies.map(|reply| match reply {
        Ok(Reply::Members(members)) => members,
        _ => Vec::new(),
    });
    let mut shown: Vec<_> = page.into_iter().zip(members).collect();
    let last = shown.last().filter(|_| names.next().is_some());
    let cursor = last.map_or_else(|| "0".to_owned(), |(name, _)| names_cursor(name));
    // The last lane of some may have ended meanwhile.
    shown.retain(|(_, members)| !members.is_empty());
    let mut out = Vec::new();
    object(&mut out, |it| {
        it.text("cursor", &cursor);
        it.array("topics", &shown, |out, (name, members)| {
            object(out, |it| {
                it.bytes("topic", name).number("members", members.len());
                it.number("ready", members.iter().map(|it| it.ready).sum::<u64>());
                it.number("taken", members.iter().map(|it| it.taken).sum::<u64>());
            });
        });
    });
    Ok(json(StatusCode::OK, out))
}
