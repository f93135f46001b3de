//! Answers that are made of several commands, or of none of the table.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};

use super::super::exchange::{Asked, Question};
use super::super::problem::Problem;
use super::super::write::{self, figure_of};
use super::asking::{self, Request, of_queue};
use super::dead::{KEPT_MS, look};
use super::ranking::{all_figures, cursor_after, ranked};
use super::rates::{Flow, Rates, rates_of};
use super::route::{CONTAINS, OFFSET, Own, SORT};
use super::topics;
use super::{Api, Asker, given, live};
use crate::clock::steady_ms;
use crate::doors::json::{Object, object};
use pinpriq_proto::reply::Reply;
use pinpriq_proto::request::form::Form;
use pinpriq_proto::request::options::{COUNT, CURSOR, Opt, PREFIX};
use pinpriq_proto::stats::Figures;
use pinpriq_proto::task::Bytes;

/// The number of queues or schedules on a page: by default, and at most.
pub(super) const PAGE: usize = 100;
pub(super) const PAGE_MAX: usize = 1_000;

/// Answers a request that is no single command.
pub(super) async fn answer(
    (api, asker): (&Api, &Asker),
    own: Own,
    request: Request<'_>,
) -> Result<Response, Problem> {
    match own {
        Own::Tasks => tasks(asker, request).await,
        Own::DeadLetters => {
            request.values.end("it")?;
            Ok(json(StatusCode::OK, api.dead_letters.latest(asker, KEPT_MS, look(asker)).await?))
        }
        Own::Topics => topics::answer((api, asker), request).await,
        Own::Queues => queues((api, asker), request).await,
        Own::Queue => queue(asker, request).await,
        Own::CreateQueue => change_queue(asker, request, "QUEUE CREATE").await,
        Own::SetQueue => change_queue(asker, request, "QUEUE SET").await,
        Own::Schedules => {
            named(asker, request, ("SCHEDULE LIST", "SCHEDULE SHOW", "schedules")).await
        }
        Own::Limits => named(asker, request, ("LIMIT LIST", "LIMIT SHOW", "limits")).await,
        Own::Batches => named(asker, request, ("BATCH LIST", "BATCH SHOW", "batches")).await,
        Own::OpenBatch => open_batch(asker, request).await,
        Own::Multi => multi(asker, request).await,
        Own::Server => server((api, asker), request).await,
        Own::Connections => connections(asker, request).await,
        Own::EndConnection => end_connection(asker, request).await,
        Own::Events => live::events((api, asker), request),
        Own::History => live::history((api, asker), request),
        Own::Lines => unreachable!("lines are read one by one"),
        Own::BeginBackup | Own::Segment | Own::EndBackup => {
            unreachable!("backups have nothing to do with commands")
        }
    }
}

async fn connections(asker: &Asker, request: Request<'_>) -> Result<Response, Problem> {
    request.values.end("it")?;
    asker.respond(Question::Connections, Form::Nothing).await
}

/// Shows tasks page by page, or with `peek` those that would be next.
async fn tasks(asker: &Asker, mut request: Request<'_>) -> Result<Response, Problem> {
    let command = if request.values.flag("peek")? { "PEEK" } else { "SCAN" };
    let question = Question::Command(request.asked(command)?);
    asker.respond(question, Form::Page).await
}

async fn end_connection(asker: &Asker, mut request: Request<'_>) -> Result<Response, Problem> {
    let name = request.name("connection")?;
    request.values.end("it")?;
    let number = std::str::from_utf8(&name).ok().and_then(|text| text.parse().ok());
    let number = number.ok_or_else(|| Problem::bad("a connection is a number"))?;
    asker.respond(Question::EndConnection(number), Form::Nothing).await
}

async fn multi(asker: &Asker, request: Request<'_>) -> Result<Response, Problem> {
    request.values.end("multi")?;
    let body = request.payload.unwrap_or_default();
    let commands = given::commands(&body)?;
    if commands.len() > pinpriq_proto::limits::TRANSACTION_STEPS_MAX {
        let most = pinpriq_proto::limits::TRANSACTION_STEPS_MAX;
        return Err(Problem::new("BUSY", format!("a transaction has at most {most} commands")));
    }
    let mut all = Vec::with_capacity(commands.len());
    for (name, values) in commands {
        all.push(asking::step(&name, values)?);
    }
    if all.is_empty() {
        return Ok(json(StatusCode::OK, b"{\"answers\":[]}".to_vec()));
    }
    asker.respond(Question::Multi(all), Form::Multi).await
}

/// Returns one page of names, as `QUEUE LIST`, `BATCH LIST` and others give them.
async fn page(
    asker: &Asker,
    request: &mut Request<'_>,
    command: &str,
) -> Result<(String, Vec<Bytes>), Problem> {
    let mut list = Asked::of(command);
    for option in [PREFIX, CURSOR, COUNT] {
        let mut value = request.values.option(option)?;
        if option == COUNT {
            let count = value.map_or(Ok(PAGE), |value| count_of(&value))?;
            value = Some(count.min(PAGE_MAX).to_string().into_bytes());
        }
        list.option(option, value);
    }
    std::mem::take(&mut request.values).end("the list")?;
    match asker.reply(list).await? {
        Reply::Names { names, more } => Ok((cursor_after(&names, more), names)),
        _ => unreachable!("a list is answered with names"),
    }
}

pub(super) fn count_of(value: &[u8]) -> Result<usize, Problem> {
    let count = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    count.filter(|count| *count > 0).ok_or_else(|| Problem::bad("count is a number of at least 1"))
}

/// Shows queues page by page, with their figures. A queue that has gone meanwhile is left out.
async fn queues(
    (api, asker): (&Api, &Asker),
    mut request: Request<'_>,
) -> Result<Response, Problem> {
    let is_ordered = ["sort", "contains", "desc", "offset"].map(|it| request.values.has(it));
    let (cursor, total, names) = if is_ordered.contains(&true) {
        let (total, names) = ordered((api, asker), &mut request).await?;
        ("0".to_owned(), Some(total), names)
    } else {
        let (cursor, names) = page(asker, &mut request, "QUEUE LIST").await?;
        (cursor, None, names)
    };
    let shown = all_figures(asker, names).await?;
    let (mut out, now_ms) = (Vec::new(), steady_ms());
    object(&mut out, |it| {
        it.set("cursor", cursor);
        if let Some(total) = total {
            it.set("total", total);
        }
        it.array("queues", &shown, |out, (name, figures)| {
            let rates = rates_of(api, name, Flow::of(&figures.counters), now_ms);
            object(out, |it| summary(it, name, figures, rates));
        });
    });
    Ok(json(StatusCode::OK, out))
}

/// Returns how many queues there are of those that are asked for, and the names on this page.
async fn ordered(
    (api, asker): (&Api, &Asker),
    request: &mut Request<'_>,
) -> Result<(usize, Vec<Bytes>), Problem> {
    let values = &mut request.values;
    let order = values.option(SORT)?.unwrap_or_else(|| b"name".to_vec());
    let orders = SORT.value.unwrap_or_default();
    let order = orders.split('|').find(|known| known.as_bytes() == order);
    let order = order.ok_or_else(|| Problem::bad(format!("sort is one of {orders}")))?;
    let descending = values.flag("desc")?;
    let contains = values.option(CONTAINS)?.unwrap_or_default();
    let offset = values.option(OFFSET)?.map_or(Ok(0), |value| number_of(OFFSET, &value))?;
    let count = values.option(COUNT)?.map_or(Ok(PAGE), |value| count_of(&value))?;
    std::mem::take(values).end("a list in an order")?;
    let names = ranked((api, asker), (order, descending), &contains).await?;
    let total = names.len();
    Ok((total, names.into_iter().skip(offset).take(count.min(PAGE_MAX)).collect()))
}

fn number_of(option: Opt, value: &[u8]) -> Result<usize, Problem> {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    let name = option.word.to_ascii_lowercase();
    number.ok_or_else(|| Problem::bad(format!("{name} is a whole number")))
}

/// Tells about the server, its disk, and how it was set.
async fn server((api, asker): (&Api, &Asker), request: Request<'_>) -> Result<Response, Problem> {
    request.values.end("it")?;
    let mut more = Vec::new();
    if let Some(free) = api.disk_free() {
        more.extend_from_slice(format!(",\"disk_free_bytes\":{free}").as_bytes());
    }
    more.extend_from_slice(b",\"configuration\":");
    more.extend_from_slice(&api.configuration);
    asker.respond(Question::Server(more), Form::Nothing).await
}

/// Writes the figures of a queue that a list shows.
fn summary(it: &mut Object<'_>, name: &[u8], figures: &Figures, rates: Option<Rates>) {
    it.bytes("name", name);
    figure_of(it, "counts", figures);
    match rates {
        Some(Rates { came, left }) => {
            it.object("rates", |it| {
                it.ratio("in", Some(came)).ratio("out", Some(left));
            });
        }
        None => {
            it.set("rates", ());
        }
    }
    for figure in ["oldest_ready_ms", "paused", "holds_dead_letters"] {
        figure_of(it, figure, figures);
    }
}

/// Shows the settings and figures of a queue or lane.
async fn queue(asker: &Asker, mut request: Request<'_>) -> Result<Response, Problem> {
    let (queue, member) = (request.name("queue")?, request.values.bytes("member")?);
    request.values.end("it")?;
    show(asker, &queue, member.as_deref(), StatusCode::OK).await
}

async fn show(
    asker: &Asker,
    queue: &[u8],
    member: Option<&[u8]>,
    status: StatusCode,
) -> Result<Response, Problem> {
    let commands = ["QUEUE SHOW", "STATS"].map(|command| of_queue(command, queue, member));
    let mut replies = asker.replies(commands).await?.into_iter();
    let mut next = || replies.next().unwrap_or_else(|| unreachable!("both have a reply"));
    let (Reply::Settings { settings, paused, .. }, Reply::Figures(figures)) = (next()?, next()?)
    else {
        unreachable!("a queue is shown by its settings and figures");
    };
    let mut out = Vec::new();
    object(&mut out, |it| {
        it.bytes("name", queue);
        if let Some(member) = member {
            it.bytes("member", member);
        }
        it.member("settings", |out| write::settings(out, &settings, paused));
        it.member("stats", |out| write::figures(out, &figures, true));
    });
    Ok(json(status, out))
}

/// Makes or changes a queue, and shows it.
async fn change_queue(
    asker: &Asker,
    mut request: Request<'_>,
    command: &str,
) -> Result<Response, Problem> {
    let queue = request.name("queue")?;
    let creates = command == "QUEUE CREATE";
    let member = if creates { None } else { request.values.bytes("member")? };
    let settings = request.values.settings()?;
    if settings.is_empty() && !creates {
        return Err(Problem::bad("the body has at least one setting"));
    }
    let change = of_queue(command, &queue, member.as_deref()).words(settings);
    asker.reply(change).await?;
    if !asker.may_look_at(&queue) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let status = if creates { StatusCode::CREATED } else { StatusCode::OK };
    show(asker, &queue, member.as_deref(), status).await
}

/// Makes a batch, and shows it.
async fn open_batch(asker: &Asker, request: Request<'_>) -> Result<Response, Problem> {
    let open = request.asked("BATCH OPEN")?;
    let show = Asked::of("BATCH SHOW").words(&open.words);
    asker.reply(open).await?;
    if !show.words.iter().all(|name| asker.may_look_at(name)) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let Reply::Batch(batch) = asker.reply(show).await? else {
        unreachable!("a batch is shown as one");
    };
    let mut out = Vec::new();
    write::batch(&mut out, &batch);
    Ok(json(StatusCode::CREATED, out))
}

/// Shows what one command lists and another one shows, page by page. What has gone meanwhile is
/// left out.
async fn named(
    asker: &Asker,
    mut request: Request<'_>,
    (list, show, what): (&str, &str, &str),
) -> Result<Response, Problem> {
    let (cursor, names) = page(asker, &mut request, list).await?;
    let show = names.iter().map(|name| Asked::of(show).words([name]));
    let shown = asker.replies(show).await?;
    let mut out = Vec::new();
    object(&mut out, |it| {
        it.set("cursor", cursor);
        let shown = shown.iter().filter_map(|reply| reply.as_ref().ok());
        it.array(what, shown, |out, one| match one {
            Reply::Schedule(schedule) => write::schedule(out, schedule),
            Reply::Limit(limit) => write::limit(out, limit),
            Reply::Batch(batch) => write::batch(out, batch),
            _ => unreachable!("what is listed is shown"),
        });
    });
    Ok(json(StatusCode::OK, out))
}

pub(super) fn json(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}
