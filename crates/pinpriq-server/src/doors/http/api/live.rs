//! What a monitor has seen: events as they happen, and the history of the last 15 minutes.

use std::convert::Infallible;
use std::sync::Arc;

use crate::users::Right;
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream::{StreamExt as _, unfold};
use pinpriq_proto::stats::Figures;
use pinpriq_proto::survey::{QueueChange, QueueNews};
use pinpriq_proto::task::StateKind;

use super::super::problem::Problem;
use super::asking::Request;
use super::{Api, Asker};
use crate::access::pass::Pass;
use crate::access::roster::Roster;
use crate::doors::json::{Object, object, rounded};
use crate::figures::stats::paused_word;
use crate::monitor::history::{History, Sample};
use crate::monitor::seen::sees_all;
use crate::monitor::{Listening, Notice, Second};

/// Answers with events until the client goes or the server stops.
pub(super) fn events(
    (api, asker): (&Api, &Asker),
    request: Request<'_>,
) -> Result<Response, Problem> {
    let queue = queue_of(asker, request)?;
    let looker = asker.pass.clone().zip(api.roster.clone());
    let listening = api.monitor.listen(queue);
    let listening = listening.ok_or_else(|| Problem::new("CLOSING", "the server is stopping"))?;
    let looker = Some(Looker { listening, user: looker });
    let watching = Watching { looker, has_begun: false };
    let mut response = Response::new(Body::from_stream(unfold(watching, next).fuse()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// Answers with the history of all queues together, or of one of them.
pub(super) fn history(
    (api, asker): (&Api, &Asker),
    request: Request<'_>,
) -> Result<Response, Problem> {
    let queue = queue_of(asker, request)?;
    // That of all queues together can no longer be told apart.
    let is_shown = queue.is_some() || asker.sees_all();
    let body = is_shown.then(|| api.monitor.history(queue.as_ref(), columns)).flatten();
    let body = body.unwrap_or_else(|| columns(&History::default()));
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Returns the queue that is asked for in particular, which the user may look at.
fn queue_of(asker: &Asker, request: Request<'_>) -> Result<Option<Arc<[u8]>>, Problem> {
    let mut values = request.values;
    let queue = values.bytes("queue")?;
    values.end("it")?;
    queue.iter().try_for_each(|queue| asker.check_look(queue))?;
    Ok(queue.map(Into::into))
}

/// A listener, and its user if the server has users.
struct Looker {
    listening: Listening,
    user: Option<(Pass, Arc<Roster>)>,
}

/// What is to come.
enum Next {
    /// The next second, as far as it may be seen.
    Second(Arc<Second>),
    /// The user may no longer look.
    Denied,
    /// Nothing.
    End,
}

impl Looker {
    /// Waits for the next second, or until the user may no longer look.
    async fn next(&mut self) -> Next {
        let Self { listening, user } = self;
        let Some((pass, roster)) = user else {
            return listening.next().await.map_or(Next::End, Next::Second);
        };
        loop {
            let second = tokio::select! {
                second = listening.next() => Some(second),
                () = roster.changed_since(pass.version) => None,
            };
            let Some(second) = second else {
                let may_look = |pass: &Pass| {
                    let queue = listening.queue();
                    queue.is_none_or(|queue| pass.user.rights.allows(Right::Look, queue))
                };
                match roster.renewed(pass).filter(may_look) {
                    Some(renewed) => *pass = renewed,
                    None => return Next::Denied,
                }
                continue;
            };
            let Some(second) = second else { return Next::End };
            let rights = &pass.user.rights;
            if sees_all(rights) {
                return Next::Second(second);
            }
            return Next::Second(Arc::new(second.seen_with(rights)));
        }
    }
}

/// What a stream of events goes on with: nothing after its end, and at first no listener is waited
/// for.
struct Watching {
    looker: Option<Looker>,
    has_begun: bool,
}

/// Returns the events of the next second. There is never more than that in memory.
async fn next(mut watching: Watching) -> Option<(Result<Bytes, Infallible>, Watching)> {
    if !std::mem::replace(&mut watching.has_begun, true) {
        return Some((Ok(Bytes::from_static(b"retry: 1000\n\n")), watching));
    }
    let looker = watching.looker.as_mut()?;
    let text = match looker.next().await {
        Next::End => return None,
        Next::Denied => {
            watching.looker = None;
            denied().into()
        }
        Next::Second(second) => {
            if let Some(queue) = looker.listening.queue() {
                events_of(&second, Some(queue)).into()
            } else {
                // The same text goes to many clients, so it is written once.
                let text = second.told.get_or_init(|| events_of(&second, None).into());
                Bytes::from_owner(text.clone())
            }
        }
    };
    Some((Ok(text), watching))
}

/// Returns the last event of a user who may no longer look.
fn denied() -> Vec<u8> {
    let mut out = Vec::new();
    event(&mut out, "notice", |it| {
        it.set("code", "NOPERM").set("text", "the user may no longer look at this");
    });
    out
}

/// Returns the events of a second, for a viewer of all queues or of one.
fn events_of(second: &Second, queue: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::with_capacity(1_024);
    event(&mut out, "figures", |it| figures(it, second, queue));
    let is_of_interest = |news: &&QueueNews| queue.is_none_or(|queue| *queue == *news.queue);
    for news in second.news.iter().filter(is_of_interest) {
        event(&mut out, "queue", |it| {
            it.bytes("name", &news.queue).set("what", word(news.what));
        });
    }
    for Notice { code, text } in &second.notices {
        event(&mut out, "notice", |it| {
            it.set("code", code).set("text", text);
        });
    }
    out
}

fn event(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Object<'_>)) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    // JSON has no line breaks that were not written on purpose.
    object(out, write);
    out.extend_from_slice(b"\n\n");
}

const fn word(what: QueueChange) -> &'static str {
    match what {
        QueueChange::Came => "came",
        QueueChange::Went => "went",
        QueueChange::Paused => "paused",
        QueueChange::Resumed => "resumed",
        QueueChange::Set => "set",
    }
}

fn figures(it: &mut Object<'_>, second: &Second, queue: Option<&[u8]>) {
    let (survey, sample) = (&second.survey, &second.sample);
    let (totals, facts) = (&survey.totals, &survey.facts);
    it.moment("at", sample.at);
    rates_and_counts(it, sample);
    it.object("journal", |it| {
        it.ratio("writes", Some(second.writes)).ratio("commit_ms", sample.commit_ms);
        it.set("bytes_used", facts.figures.bytes_used);
        it.set("bytes_live", facts.figures.bytes_live);
    });
    it.object("memory", |it| {
        it.set("task_bytes", facts.task_bytes);
        it.set("task_bytes_max", facts.task_bytes_max);
    });
    it.set("connections", survey.connections);
    waiting(it, totals);
    it.set("queues", totals.queues);
    let Some(queue) = queue else { return };
    match second.of_queues.get(queue).and_then(Option::as_ref) {
        None => {
            it.set("queue", ());
        }
        Some(one) => {
            it.object("queue", |it| {
                rates_and_counts(it, &one.sample);
                it.ratio("waited_ms", one.sample.waited_ms);
                waiting(it, &one.figures);
                it.set("paused", paused_word(one.figures.paused));
            });
        }
    }
}

fn rates_and_counts(it: &mut Object<'_>, sample: &Sample) {
    it.object("counts", |it| {
        for state in StateKind::ALL {
            it.set(&state.letter().to_string(), sample.counts[state as usize]);
        }
    });
    let rates = sample.rates;
    it.object("rates", |it| {
        it.ratio("in", Some(rates.came)).ratio("out", Some(rates.left));
        it.ratio("taken", Some(rates.taken)).ratio("failed", Some(rates.failed));
    });
    it.set("oldest_ready_ms", sample.oldest_ready_ms);
    it.set("dead_letters", sample.dead_letters);
}

fn waiting(it: &mut Object<'_>, figures: &Figures) {
    it.set("takers", figures.takers).set("subscribers", figures.subscribers);
}

/// Reads a figure that may be unknown.
type ReadRatio = fn(&Sample) -> Option<f64>;

/// Returns a history: a column for each figure.
fn columns(history: &History) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 << 10);
    object(&mut out, |it| {
        it.set("step_ms", 1_000);
        it.moment("at", history.samples().next_back().map(|last| last.at));
        let ratios: [(&str, ReadRatio); 6] = [
            ("in", |it| Some(it.rates.came)),
            ("out", |it| Some(it.rates.left)),
            ("taken", |it| Some(it.rates.taken)),
            ("failed", |it| Some(it.rates.failed)),
            ("commit_ms", |it| it.commit_ms),
            ("waited_ms", |it| it.waited_ms),
        ];
        for (name, read) in ratios {
            it.set(name, column(history, |sample| rounded(read(sample))));
        }
        for state in StateKind::ALL {
            let counts = column(history, |sample| sample.counts[state as usize]);
            it.set(&state.letter().to_string(), counts);
        }
        it.set("dead_letters", column(history, |sample| sample.dead_letters));
        it.set("oldest_ready_ms", column(history, |sample| sample.oldest_ready_ms));
    });
    out
}

fn column<T>(history: &History, read: impl Fn(&Sample) -> T) -> Vec<T> {
    history.samples().map(read).collect()
}
