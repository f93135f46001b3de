//! Answers that are made of several commands, or of none of the table.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::value::RawValue;

use super::super::form::Form;
use super::super::frame::{Asked, Frame};
use super::super::head::{Content, Head};
use super::super::json::{Object, array, object};
use super::super::problem::Problem;
use super::super::write::names_of;
use super::asking::{self, Request, of_queue};
use super::ranking::ranked;
use super::rates::{Flow, Rates};
use super::route::{CONTAINS, OFFSET, SORT};
use super::route::{Own, Word};
use super::topics;
use super::{Api, Asker, given, live, respond};
use crate::clock::steady_ms;
use crate::doors::http::visit::Frames;
use pinpriq_proto::request::options::{COUNT, CURSOR, Opt, PREFIX};

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
            Ok(json(200, api.dead_letters.told(asker).await?))
        }
        Own::Topics => topics::answer((api, asker), request).await,
        Own::Queues => queues((api, asker), request).await,
        Own::Queue => queue(asker, request).await,
        Own::CreateQueue => change_queue(asker, request, "QUEUE CREATE").await,
        Own::SetQueue => change_queue(asker, request, "QUEUE SET").await,
        Own::Schedules => schedules(asker, request).await,
        Own::Multi => multi(asker, request).await,
        Own::Server => server((api, asker), request).await,
        Own::Connections => alone(asker, request, Frame::Connections).await,
        Own::EndConnection => end_connection(asker, request).await,
        Own::Events => live::events((api, asker), request),
        Own::History => live::history((api, asker), request),
        Own::Batch => unreachable!("a batch is read line by line"),
    }
}

async fn pass(asker: &Asker, frame: Frame, form: Form) -> Result<Response, Problem> {
    respond(asker.ask(Frames::One(frame.encode()), form).await?)
}

async fn alone(asker: &Asker, request: Request<'_>, frame: Frame) -> Result<Response, Problem> {
    request.values.end("it")?;
    pass(asker, frame, Form::Nothing).await
}

/// Shows tasks page by page, or with `peek` those that would be next.
async fn tasks(asker: &Asker, mut request: Request<'_>) -> Result<Response, Problem> {
    let command = if request.values.flag("peek")? { "PEEK" } else { "SCAN" };
    let frame = Frame::Command(request.asked((command, &[Word::Path("queue")]))?);
    pass(asker, frame, Form::Page).await
}

async fn end_connection(asker: &Asker, mut request: Request<'_>) -> Result<Response, Problem> {
    let name = request.name("connection")?;
    request.values.end("it")?;
    let number = std::str::from_utf8(&name).ok().and_then(|text| text.parse().ok());
    let number = number.ok_or_else(|| Problem::bad("a connection is a number"))?;
    pass(asker, Frame::EndConnection(number), Form::Nothing).await
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
        let (step, form) = asking::step(&name, values)?;
        all.push((step, form as u8));
    }
    if all.is_empty() {
        return Ok(json(200, b"{\"answers\":[]}".to_vec()));
    }
    pass(asker, Frame::Multi(all), Form::Multi).await
}

/// Returns one page of names, as `QUEUE LIST` and `SCHEDULE LIST` give them.
async fn page(
    asker: &Asker,
    request: &mut Request<'_>,
    command: &str,
) -> Result<Result<(String, Vec<Vec<u8>>), Response>, Problem> {
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
    let (head, body) = asker.whole(&Frame::Command(list), Form::Names).await?;
    if head.status != 200 {
        return Ok(Err(response(&head, body)));
    }
    let page = names_of(&body);
    Ok(Ok(page.unwrap_or_else(|| unreachable!("a page of names was written here"))))
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
        match page(asker, &mut request, "QUEUE LIST").await? {
            Ok((cursor, names)) => (cursor, None, names),
            Err(refused) => return Ok(refused),
        }
    };
    let mut shown = Vec::with_capacity(names.len());
    for name in names {
        let figures = of_queue("STATS", &name, None);
        let (head, body) = asker.whole(&figures, Form::Figures).await?;
        if head.status == 200 {
            shown.push((name, body));
        }
    }
    let (mut out, now_ms) = (Vec::new(), steady_ms());
    object(&mut out, |it| {
        it.text("cursor", &cursor);
        if let Some(total) = total {
            it.number("total", total);
        }
        it.array("queues", &shown, |out, (name, figures)| {
            let figures: Shown = serde_json::from_slice(figures).unwrap_or_default();
            let rates = rates_of(api, name, flow_of(&figures), now_ms);
            object(out, |it| summary(it, name, &figures, rates));
        });
    });
    Ok(json(200, out))
}

/// Returns how many queues there are of those that are asked for, and the names on this page.
async fn ordered(
    (api, asker): (&Api, &Asker),
    request: &mut Request<'_>,
) -> Result<(usize, Vec<Vec<u8>>), Problem> {
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

/// Returns the rates of a queue: as somebody who watches sees them, else since the last look.
pub(super) fn rates_of(api: &Api, name: &[u8], flow: Flow, now_ms: u64) -> Option<Rates> {
    let noted = api.looks.note(name, flow, now_ms);
    let seen = api.monitor.rates_of(name);
    seen.map(|it| Rates { came: it.came, left: it.left }).or(noted)
}

/// Tells about the server, its disk, and how it was set.
async fn server((api, asker): (&Api, &Asker), request: Request<'_>) -> Result<Response, Problem> {
    request.values.end("it")?;
    let (head, mut body) = asker.whole(&Frame::Server, Form::Nothing).await?;
    if head.status == 200 && body.pop() == Some(b'}') {
        if let Some(free) = api.disk_free() {
            body.extend_from_slice(format!(",\"disk_free_bytes\":{free}").as_bytes());
        }
        body.extend_from_slice(b",\"configuration\":");
        body.extend_from_slice(&api.configuration);
        body.push(b'}');
    }
    Ok(response(&head, body))
}

/// The members of an object, each as it was written.
type Shown = BTreeMap<String, Box<RawValue>>;

/// Returns how many tasks have come into a queue and left it.
fn flow_of(figures: &Shown) -> Flow {
    let number =
        |name: &str| figures.get(name).and_then(|text| text.get().parse().ok()).unwrap_or_default();
    Flow::of(number("put"), number("revived"), number("present"))
}

/// Writes the figures of a queue that a list shows.
fn summary(it: &mut Object<'_>, name: &[u8], figures: &Shown, rates: Option<Rates>) {
    let copy = |it: &mut Object<'_>, member: &str| {
        let text = figures.get(member).map_or("null", |text| text.get());
        it.member(member, |out| out.extend_from_slice(text.as_bytes()));
    };
    it.bytes("name", name);
    copy(it, "counts");
    match rates {
        Some(Rates { came, left }) => {
            it.object("rates", |it| {
                it.ratio("in", Some(came)).ratio("out", Some(left));
            });
        }
        None => {
            it.null("rates");
        }
    }
    copy(it, "oldest_ready_ms");
    copy(it, "paused");
    copy(it, "holds_dead_letters");
}

/// Shows the settings and figures of a queue or lane.
async fn queue(asker: &Asker, mut request: Request<'_>) -> Result<Response, Problem> {
    let (queue, member) = (request.name("queue")?, request.values.bytes("member")?);
    request.values.end("it")?;
    show(asker, &queue, member.as_deref(), 200).await
}

async fn show(
    asker: &Asker,
    queue: &[u8],
    member: Option<&[u8]>,
    status: u16,
) -> Result<Response, Problem> {
    let settings = of_queue("QUEUE SHOW", queue, member);
    let (head, settings) = asker.whole(&settings, Form::Settings).await?;
    if head.status != 200 {
        return Ok(response(&head, settings));
    }
    let (head, figures) = asker.whole(&of_queue("STATS", queue, member), Form::Figures).await?;
    if head.status != 200 {
        return Ok(response(&head, figures));
    }
    let mut out = Vec::new();
    object(&mut out, |it| {
        it.bytes("name", queue);
        if let Some(member) = member {
            it.bytes("member", member);
        }
        it.member("settings", |out| out.extend_from_slice(&settings));
        it.member("stats", |out| out.extend_from_slice(&figures));
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
    let Frame::Command(change) = of_queue(command, &queue, member.as_deref()) else {
        unreachable!("this is a command");
    };
    let frame = Frame::Command(change.words(settings));
    let (head, body) = asker.whole(&frame, Form::Nothing).await?;
    if head.status != 204 {
        return Ok(response(&head, body));
    }
    if !asker.may_look_at(&queue) {
        return Ok(response(&Head::new(204, Content::Nothing), Vec::new()));
    }
    show(asker, &queue, member.as_deref(), if creates { 201 } else { 200 }).await
}

/// Shows schedules page by page. One that has gone meanwhile is left out.
async fn schedules(asker: &Asker, mut request: Request<'_>) -> Result<Response, Problem> {
    let (cursor, names) = match page(asker, &mut request, "SCHEDULE LIST").await? {
        Ok(page) => page,
        Err(refused) => return Ok(refused),
    };
    let mut shown = Vec::with_capacity(names.len());
    for name in names {
        let frame = Frame::Command(Asked::of("SCHEDULE SHOW").words([name]));
        let (head, body) = asker.whole(&frame, Form::Schedule).await?;
        if head.status == 200 {
            shown.push(body);
        }
    }
    let mut out = Vec::new();
    object(&mut out, |it| {
        it.text("cursor", &cursor);
        it.member("schedules", |out| array(out, &shown, |out, one| out.extend_from_slice(one)));
    });
    Ok(json(200, out))
}

pub(super) fn json(status: u16, body: Vec<u8>) -> Response {
    response(&Head::new(status, Content::Json), body)
}

/// Returns a whole answer as a response.
fn response(head: &Head, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() =
        StatusCode::from_u16(head.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(media_type) = head.content.media_type() {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    }
    super::add_retry(&mut response);
    response
}
