//! The API: from a request over HTTP to a visit, and from its answer to a response.
//!
//! Everything here may run on any thread: it knows no shard, and asks by a channel.

pub(crate) mod asking;
mod backups;
mod batch;
mod body;
mod composed;
mod configuration;
mod dead;
pub(crate) mod framing;
pub(crate) mod given;
mod host;
mod live;
mod names;
mod ranking;
mod rates;
pub(crate) mod route;
mod session;
mod signing;
pub(crate) mod table;
mod topics;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, MatchedPath, Request as HttpRequest, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, ORIGIN, RETRY_AFTER};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use tokio::sync::{mpsc, oneshot};
use tower_http::cors::{AllowHeaders, AllowMethods, CorsLayer};

use self::asking::Request;
use self::body::{Room, Streamed, read_body};
use self::framing::tell_methods;
use self::given::Values;
use self::names::{decode, split_verb};
use self::ranking::{Kept, Ranked};
use self::rates::Looks;
use self::route::{Body as Wanted, Does, Own, Route};
use self::table::ROUTES;
use super::backups::{Backups, OrWhyNot};
use super::exchange::{Asked, Content, FIELDS, HEADER_FIELD, Question};
use super::metrics;
use super::metrics::sight::{Highest, Sight};
use super::page as dashboard;
use super::problem::Problem;
use super::visit::{Answer, Questions, Visit};
use crate::access::audit::Audit;
use crate::access::pass::Pass;
use crate::access::roster::Roster;
use crate::access::sessions::Sessions;
use crate::config::{Config, Limits, Look};
use crate::doors::RespAt;
use crate::facts::tally::HttpRefusals;
use crate::monitor::Monitor;
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::request::code::Code;
use pinpriq_proto::request::form::Form;

/// The header that makes a put unique for a day.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Api {
    /// The largest body that is no stream, in bytes.
    pub(crate) body_bytes_max: usize,
    pub(crate) payload_bytes_max: usize,
    /// How long a body may take from its first byte to its last.
    pub(crate) body_timeout: Duration,
    looks: Looks,
    ranking: Kept<Arc<Vec<Ranked>>>,
    dead_letters: Kept<Vec<u8>>,
    room: Room,
    monitor: Arc<Monitor>,
    backups: OrWhyNot<Arc<Backups>>,
    /// The moment that is only looked at, if the server is there for no more.
    look: Option<Look>,
    /// How the server was set, as JSON.
    configuration: Vec<u8>,
    /// The origin whose pages may use the server besides its own.
    cors_origin: Option<HeaderValue>,
    /// The names of the server, besides those of this machine.
    hosts: Vec<String>,
    refusals: Arc<HttpRefusals>,
    /// The users, if the server has some.
    roster: Option<Arc<Roster>>,
    /// The audit, if there is one.
    audit: Option<Arc<Audit>>,
    /// Where clients of Redis reach the server.
    resp_at: Option<RespAt>,
    /// The browsers that have signed in.
    sessions: Sessions,
    /// What metrics have told of all queues that they do not show.
    highest: Highest,
    data: PathBuf,
}

impl Api {
    /// Returns what requests share. Refusals are counted there if no shard has counted them.
    ///
    /// The limits are those of this place, which may have a share of what is configured.
    pub(crate) fn new(
        (config, limits): (&Config, &Limits),
        (monitor, backups): (Arc<Monitor>, OrWhyNot<Arc<Backups>>),
        refusals: Arc<HttpRefusals>,
        (roster, audit, resp_at): (Option<Arc<Roster>>, Option<Arc<Audit>>, Option<RespAt>),
    ) -> Self {
        // A payload in base64 or with escapes, and names beside it. A transaction has 16 MiB.
        let body_bytes_max = (limits.payload_bytes_max * 6).max(32 << 20);
        Self {
            body_bytes_max,
            payload_bytes_max: limits.payload_bytes_max,
            body_timeout: limits.frame_timeout,
            looks: Looks::default(),
            ranking: Kept::default(),
            dead_letters: Kept::default(),
            room: Room::default(),
            monitor,
            backups,
            look: config.look.clone(),
            configuration: configuration::as_json(config),
            cors_origin: config.http.cors_origin.as_ref().and_then(|it| it.parse().ok()),
            hosts: config.http.hosts.clone(),
            refusals,
            roster,
            audit,
            resp_at,
            sessions: Sessions::default(),
            highest: Highest::default(),
            data: config.data.clone(),
        }
    }

    /// Looks at the server for its metrics, as somebody may see it. `None` if it stops.
    pub(crate) async fn sight(&self, asker: &Asker) -> Option<Sight> {
        let (survey, details) = self.monitor.details().await?;
        let others = survey.others.as_ref().map(|others| self.highest.raised(others));
        let others = others.filter(|_| asker.looks_at_all());
        let shows_server = asker.runs_server();
        let seen = asker.pass.as_ref().filter(|_| !asker.sees_all());
        let (survey, details) = match seen.map(|pass| &pass.user.rights) {
            None => (survey, details),
            Some(rights) => {
                (Arc::new(survey.seen_with(rights)), Arc::new(details.seen_with(rights)))
            }
        };
        Some(Sight { survey, details, others, disk_free: self.disk_free(), shows_server })
    }

    /// Returns the bytes that are free where the data directory is, if there is one.
    fn disk_free(&self) -> Option<u64> {
        rustix::fs::statvfs(&self.data).ok().map(|disk| disk.f_bavail * disk.f_frsize)
    }
}

/// The way to the shards for the requests of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    visits: mpsc::Sender<Visit>,
    way: Way,
    /// Who asks, if the server has users.
    pass: Option<Pass>,
}

/// The way on which requests come.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// Where the connection comes from.
    pub(crate) peer: SocketAddr,
    /// Whether it is encrypted.
    pub(crate) is_encrypted: bool,
    /// The common name of the client's certificate, if it has shown one: empty unless there is
    /// exactly one.
    pub(crate) certificate: Option<Arc<str>>,
}

impl Asker {
    /// Returns what asks for the requests of a connection.
    pub(crate) const fn new(visits: mpsc::Sender<Visit>, way: Way) -> Self {
        Self { visits, way, pass: None }
    }

    /// Asks, and waits for the beginning of the answer.
    async fn ask(&self, questions: Questions, form: Form) -> Result<Answer, Problem> {
        let (answer, answered) = oneshot::channel();
        let gone = || Problem::new("CLOSING", "the server is stopping");
        let visit = Visit { questions, form, answer, pass: self.pass.clone() };
        self.visits.send(visit).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// Asks a single question, whose answer becomes the response.
    async fn respond(&self, question: Question, form: Form) -> Result<Response, Problem> {
        respond(self.ask(Questions::All(vec![question]), form).await?)
    }

    /// Asks for the replies to these commands as the engine gives them, or why they were refused.
    async fn replies(
        &self,
        commands: impl IntoIterator<Item = Asked>,
    ) -> Result<Vec<Result<Reply, Problem>>, Problem> {
        let all = commands.into_iter().map(Question::Command).collect();
        Ok(self.ask(Questions::All(all), Form::Value).await?.replies)
    }

    /// Asks for the reply to one command as the engine gives it.
    async fn reply(&self, command: Asked) -> Result<Reply, Problem> {
        let reply = self.replies([command]).await?.pop();
        reply.unwrap_or_else(|| unreachable!("a command has a reply"))
    }
}

/// Returns the router of the API.
pub(crate) fn router(api: Api) -> Router {
    let refusals = api.refusals.clone();
    let mut router = Router::new();
    let mut known: Vec<String> = Vec::new();
    for route in &*ROUTES {
        // A verb behind a name is part of what the name matches.
        let path =
            if route.path.ends_with('}') { format!("/v1{}", route.path) } else { route.written() };
        if !known.contains(&path) {
            router = router.route(&path, any(handle));
            known.push(path);
        }
    }
    let cors = api.cors_origin.clone().map(cors);
    let api = Arc::new(api);
    let router = router
        .route("/", any(dashboard::answer))
        .route("/assets/{*file}", any(dashboard::answer))
        .route("/openapi.json", any(document).layer(from_fn(framing::only_reads)))
        .route("/healthz", any(alive).layer(from_fn(framing::only_reads)))
        .route("/readyz", any(ready).layer(from_fn(framing::only_reads)))
        .route("/metrics", any(metrics::answer).layer(from_fn(framing::only_reads)))
        .route("/v1/session", any(session::answer))
        .fallback(|request: HttpRequest| async move {
            let path = given::shown(request.uri().path());
            refuse(&Problem::new("NOTFOUND", format!("there is no path {path}")))
        })
        .layer(from_fn_with_state(api.clone(), signing::check))
        .layer(from_fn_with_state(api.clone(), host::check))
        .layer(map_response(move |response| {
            let refusals = refusals.clone();
            async move { counted(response, &refusals) }
        }))
        .with_state(api);
    let router = match cors {
        Some(cors) => router.layer(cors),
        None => router,
    };
    router.layer(from_fn(framing::complete))
}

/// Lets pages of this origin use the server.
fn cors(origin: HeaderValue) -> CorsLayer {
    let exposed =
        FIELDS.into_iter().map(|(name, _)| HeaderName::from_static(name)).chain([RETRY_AFTER]);
    CorsLayer::new()
        .allow_origin(origin)
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(exposed.collect::<Vec<_>>())
        .max_age(Duration::from_hours(1))
}

/// Counts a refusal that no shard has counted.
fn counted(response: Response, refusals: &HttpRefusals) -> Response {
    if let Some(Refused(code)) = response.extensions().get() {
        refusals.refuse(*code);
    }
    response
}

/// Says that a response is a refusal of this module.
#[derive(Clone, Copy, Debug)]
struct Refused(Code);

/// Answers with the `OpenAPI` document, which is printed from the tables.
async fn document() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], include_str!("api/openapi.json"))
}

/// Says that the process serves.
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// Says whether changes are accepted.
async fn ready(Extension(asker): Extension<Asker>) -> Response {
    match asker.respond(Question::Health, Form::Nothing).await {
        Ok(response) if response.status() == StatusCode::NO_CONTENT => "ok\n".into_response(),
        Ok(mut response) => {
            response.extensions_mut().insert(Refused(RefusalKind::Store.into()));
            response
        }
        Err(problem) => refuse(&problem),
    }
}

async fn handle(
    State(api): State<Arc<Api>>,
    Extension(asker): Extension<Asker>,
    matched: MatchedPath,
    request: HttpRequest,
) -> Response {
    let answered = answer(&api, &asker, matched.as_str(), request).await;
    answered.unwrap_or_else(|problem| refuse(&problem))
}

/// What is asked for: the routes of a path, and the names in it as they came.
type Found = (Vec<&'static Route>, Vec<(String, String)>);

/// Finds the routes of a request, given the path of the router that has matched.
fn routes_of(matched: &str, path: &str) -> Found {
    let ends_with_name = matched.ends_with('}');
    let (path, verb) = if ends_with_name { split_verb(path) } else { (path, None) };
    let (template, literal) = if ends_with_name { (matched, None) } else { split_verb(matched) };
    let verb = verb.or(literal);
    let pairs = template.split('/').zip(path.split('/'));
    let name = |(segment, given): (&str, &str)| {
        let name = segment.strip_prefix('{')?.strip_suffix('}')?;
        Some((name.to_owned(), given.to_owned()))
    };
    let names = pairs.filter_map(name).collect();
    let template = template.strip_prefix("/v1").unwrap_or(template);
    let routes = ROUTES.iter().filter(|it| it.path == template && it.verb == verb);
    (routes.collect(), names)
}

async fn answer(
    api: &Api,
    asker: &Asker,
    matched: &str,
    request: HttpRequest,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let (routes, names) = routes_of(matched, head.uri.path());
    if routes.is_empty() {
        let verb = split_verb(head.uri.path()).1.unwrap_or_default();
        let sentence = format!(
            "there is no verb {} here; a colon within a name is written %3A",
            given::shown(verb)
        );
        return Err(Problem::new("NOTFOUND", sentence));
    }
    let method = if head.method == Method::HEAD { &Method::GET } else { &head.method };
    let Some(route) = routes.iter().find(|route| route.method == *method) else {
        let mut methods: Vec<&str> = routes.iter().map(|route| route.method.as_str()).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.push("OPTIONS");
        return Ok(tell_methods(&head.method, &methods.join(", ")));
    };
    check_origin(api, &head.method, (&head.uri, &head.headers))?;
    let wants_octets = accepts_octets(&head.headers);
    let mut values = Values::of_query(head.uri.query())?;
    let headers = headers_of(&head.headers)?;
    let once = head.headers.get(IDEMPOTENCY_KEY).map(|key| key.as_bytes().to_vec());
    if route.does == Does::Own(Own::Lines) {
        body::check_lines(&head.headers)?;
        let request = Request { route, names, values, payload: None, once: None, headers };
        return batch::answer(api, asker, request, body).await;
    }
    // Its room is taken until the request is answered.
    let mut read = read_body(api, route, &head.headers, body).await?;
    let body = read.bytes.take();
    let payload = match route.body {
        Wanted::Json if route.does != Does::Own(Own::Multi) => {
            body.iter().try_for_each(|body| values.add_object(body))?;
            None
        }
        Wanted::None => {
            body.iter().try_for_each(|body| values.add_names(body))?;
            None
        }
        _ => body,
    };
    let request = Request { route, names, values, payload, once, headers };
    match route.does {
        Does::Command(name) => {
            let form = match (route.form, wants_octets) {
                (Form::Task, true) => Form::TaskOctets,
                (Form::Tasks, true) => {
                    one_at_most(&request)?;
                    Form::Octets
                }
                (form, _) => form,
            };
            asker.respond(Question::Command(request.asked(name)?), form).await
        }
        Does::Own(own @ (Own::BeginBackup | Own::Segment | Own::EndBackup)) => {
            backups::answer((api, asker), own, request, &head.headers).await
        }
        Does::Own(own) => composed::answer((api, asker), own, request).await,
    }
}

/// Checks that a take whose answer is a payload takes one task.
fn one_at_most(request: &Request<'_>) -> Result<(), Problem> {
    if request.values.has("count") || request.values.has("group") {
        let sentence =
            "an answer in application/octet-stream is one task: leave out count and group";
        return Err(Problem::bad(sentence));
    }
    Ok(())
}

/// Returns the headers of a task that are header fields of a request.
fn headers_of(fields: &HeaderMap) -> Result<Vec<(String, Vec<u8>)>, Problem> {
    let mut headers = Vec::new();
    for (field, value) in fields {
        let Some(name) = field.as_str().strip_prefix(HEADER_FIELD) else { continue };
        let wrong = || Problem::bad(format!("{field} is percent-encoded text"));
        let text = value.to_str().map_err(|_| wrong())?;
        headers.push((name.to_owned(), decode(text).map_err(|_| wrong())?));
    }
    Ok(headers)
}

fn accepts_octets(headers: &HeaderMap) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accepts.is_some_and(|accept| accept.trim().starts_with("application/octet-stream"))
}

/// Refuses changes that a page of another origin asks for.
fn check_origin(
    api: &Api,
    method: &Method,
    (uri, headers): (&Uri, &HeaderMap),
) -> Result<(), Problem> {
    if [Method::GET, Method::HEAD].contains(method) {
        return Ok(());
    }
    if api.cors_origin.is_some() && headers.get(ORIGIN) == api.cors_origin.as_ref() {
        return Ok(());
    }
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let is_foreign = match (text("origin"), text("sec-fetch-site")) {
        (Some(origin), _) => {
            // HTTP/2 names it before the header fields.
            let host = uri.authority().map(Authority::as_str).or_else(|| text("host"));
            let host = host.unwrap_or_default();
            origin.split_once("://").is_none_or(|(_, origin)| origin != host)
        }
        (None, site) => site == Some("cross-site"),
    };
    if is_foreign {
        let sentence = "a page of another origin must not change anything here";
        return Err(Problem::new("NOPERM", sentence));
    }
    Ok(())
}

/// Returns a refusal as a response.
pub(crate) fn refuse(problem: &Problem) -> Response {
    let mut response = Response::new(Body::from(problem.body()));
    let status = StatusCode::from_u16(problem.status());
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let media_type = Content::Problem.media_type().unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    if let Some(code) = Code::of_word(problem.code).filter(|_| !problem.is_counted) {
        response.extensions_mut().insert(Refused(code));
    }
    add_retry(&mut response);
    response
}

/// Says when to try again, where that makes sense.
fn add_retry(response: &mut Response) {
    if matches!(response.status().as_u16(), 429 | 503) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
}

/// Says that an answer hands tasks over, so that nothing may keep it back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandsOver;

/// Says that the bytes of an answer go out as they are, without compression.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsItIs;

/// Returns the answer to a visit as a response.
fn respond(answer: Answer) -> Result<Response, Problem> {
    let Answer { head, first, rest, .. } = answer;
    let Some(head) = head else { unreachable!("only lines have no head") };
    let mut response = Response::new(Body::new(Streamed::new(first, rest)));
    *response.status_mut() =
        StatusCode::from_u16(head.status).map_err(|_| Problem::bad("the status is unknown"))?;
    let headers = response.headers_mut();
    if let Some(media_type) = head.content.media_type() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    }
    for (name, value) in &head.fields {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    if head.hands_over {
        response.extensions_mut().insert(HandsOver);
    }
    add_retry(&mut response);
    Ok(response)
}
