//! Topics page by page. No command lists them: a topic is where some member has a lane. In a
//! cluster, only the lanes of the shards that this node serves are known.

use axum::http::StatusCode;
use axum::response::Response;

use super::super::exchange::Asked;
use super::super::problem::Problem;
use super::asking::Request;
use super::composed::{PAGE, PAGE_MAX, count_of, json};
use super::{Api, Asker};
use crate::doors::json::object;
use pinpriq_proto::fanout::MemberFigures;
use pinpriq_proto::reply::Reply;
use pinpriq_proto::request::cursors::name::{
    cursor_after as names_cursor, place_at as names_after,
};
use pinpriq_proto::request::options::{COUNT, CURSOR, PREFIX};
use pinpriq_proto::task::Bytes;

/// How many topics are asked about at once.
const AT_ONCE: usize = 8;

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
    let last = page.last().filter(|_| names.next().is_some());
    let cursor = last.map_or_else(|| "0".to_owned(), |name| names_cursor(name));
    let mut shown = Vec::with_capacity(page.len());
    // Topics may have very many members, which need not be in memory together.
    for part in page.chunks(AT_ONCE) {
        let members = part.iter().map(|name| Asked::of("MEMBERS").words([&***name]));
        for (name, reply) in part.iter().zip(asker.replies(members).await?) {
            let Ok(Reply::Members(members)) = reply else { continue };
            let sum = |read: fn(&MemberFigures) -> u64| members.iter().map(read).sum::<u64>();
            // The last lane of some may have ended meanwhile.
            if !members.is_empty() {
                shown.push((name, members.len(), sum(|it| it.ready), sum(|it| it.taken)));
            }
        }
    }
    let mut out = Vec::new();
    object(&mut out, |it| {
        it.set("cursor", cursor);
        it.array("topics", &shown, |out, (name, members, ready, taken)| {
            object(out, |it| {
                it.bytes("topic", name).set("members", *members);
                it.set("ready", *ready).set("taken", *taken);
            });
        });
    });
    Ok(json(StatusCode::OK, out))
}
