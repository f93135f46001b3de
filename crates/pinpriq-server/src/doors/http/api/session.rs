//! `/v1/session`: a browser signs in and out, and hears who it is.

use std::sync::Arc;

use crate::users::{Pattern, Right, Rights, Rule};
use axum::body::to_bytes;
use axum::extract::{Extension, Request, State};
use axum::http::header::{CONTENT_TYPE, COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use tokio::time::timeout;

use super::super::problem::Problem;
use super::composed::json;
use super::framing::tell_methods;
use super::signing::sign_in;
use super::{Api, Asker, check_origin, refuse};
use crate::access::sessions::LASTS_S;
use crate::access::signing::Shown;
use crate::clock::steady_ms;
use crate::doors::json::{Object, object};

/// The name of the cookie.
const NAME: &str = "pinpriq_session";

/// The most bytes of a request to sign in.
const BODY_BYTES_MAX: usize = 16 << 10;

/// What a browser says to sign in. A token may stand for the password.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    user: String,
    password: String,
}

/// Answers a request about the session of a browser.
pub(super) async fn answer(
    State(api): State<Arc<Api>>,
    Extension(asker): Extension<Asker>,
    request: Request,
) -> Response {
    let answered = match *request.method() {
        Method::GET | Method::HEAD => Ok(tell(&api, &asker)),
        Method::POST => begin(&api, &asker, request).await,
        Method::DELETE => check_origin(&api, request.method(), (request.uri(), request.headers()))
            .map(|()| end(&api, &asker, request.headers())),
        ref other => Ok(tell_methods(other, "DELETE, GET, HEAD, OPTIONS, POST")),
    };
    answered.unwrap_or_else(|problem| refuse(&problem))
}

/// Tells who asks and what they may do. The user is null where there are no users: then everybody
/// may do all, or only look if the server is there for no more. Tells where clients of Redis reach
/// the server, too, for commands to copy.
fn tell(api: &Api, asker: &Asker) -> Response {
    let mut out = Vec::new();
    object(&mut out, |it| {
        let pass = asker.pass.as_ref().filter(|_| api.roster.is_some());
        it.set("user", pass.map(|pass| pass.user.name.as_str()));
        it.set("admin", asker.runs_server());
        match (pass, &api.look) {
            (Some(pass), _) => it.object("rights", |it| rights(it, &pass.user.rights)),
            (None, Some(_)) => it.object("rights", |it| rights(it, &only_looks())),
            (None, None) => it.set("rights", ()),
        };
        it.set("resp_port", api.resp_at.map(|at| at.port));
        it.set("resp_tls", api.resp_at.is_some_and(|at| at.is_encrypted));
        it.set("pinpriq_version", env!("CARGO_PKG_VERSION"));
    });
    json(StatusCode::OK, out)
}

/// What everybody may do where a moment is only looked at.
fn only_looks() -> Rights {
    Rule::on(Right::Look, Pattern::prefix(b"")).iter().collect()
}

/// Writes on which queues and topics each right is given. A name that is a prefix stands for all
/// that begin with it.
fn rights(it: &mut Object<'_>, rights: &Rights) {
    for right in Right::ALL.into_iter().filter(|right| *right != Right::Admin) {
        it.array(right.word(), rights.names_of(right), |out, (name, is_prefix)| {
            object(out, |it| {
                it.bytes("name", name).set("prefix", is_prefix);
            });
        });
    }
}

async fn begin(api: &Api, asker: &Asker, request: Request) -> Result<Response, Problem> {
    check_origin(api, request.method(), (request.uri(), request.headers()))?;
    let Some(roster) = &api.roster else {
        return Err(Problem::new("NOTFOUND", "this server has no users, so nobody signs in"));
    };
    let media_type = request.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let media_type = media_type.and_then(|it| it.split(';').next()).unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new("MEDIATYPE", "the body is application/json"));
    }
    let body = timeout(api.body_timeout, to_bytes(request.into_body(), BODY_BYTES_MAX)).await;
    let late = |_| Problem::new("LATE", "the body did not arrive in time");
    let body = body.map_err(late)?.map_err(|_| Problem::bad("the body is too large"))?;
    // What is wrong is not told in detail, since it may be a password.
    let unreadable = |_| Problem::bad("the body is an object with the texts user and password");
    let Given { user, password } = serde_json::from_slice(&body).map_err(unreadable)?;
    let shown = Shown::Named(user.as_bytes(), password.as_bytes());
    let pass = sign_in((api, roster), asker, shown).await?;
    let secret = api.sessions.begin(pass, steady_ms());
    let secret = secret.ok_or_else(|| Problem::new("STORE", "the system has no random numbers"))?;
    Ok(with_cookie(&secret, LASTS_S, asker))
}

fn end(api: &Api, asker: &Asker, headers: &HeaderMap) -> Response {
    for shown in shown_in(headers) {
        api.sessions.end(shown);
    }
    with_cookie("", 0, asker)
}

/// Returns the answer that sets the cookie of a browser, which lasts this many seconds.
fn with_cookie(secret: &str, seconds: u64, asker: &Asker) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    // A browser would not send it back over a connection that is not encrypted.
    let secure = if asker.way.is_encrypted { "; Secure" } else { "" };
    let lasts = format!("Max-Age={seconds}{secure}");
    let cookie = format!("{NAME}={secret}; Path=/; HttpOnly; SameSite=Strict; {lasts}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// Returns what a request shows as sessions.
pub(super) fn shown_in(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
    let pairs = cookies.flat_map(|cookies| cookies.split(';'));
    pairs.filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == NAME).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_found_among_other_cookies() {
        let table = [
            ("pinpriq_session=abc", &["abc"][..]),
            ("a=b; pinpriq_session=x-_1;c=d", &["x-_1"]),
            ("xpinpriq_session=abc; pinpriq_sessions=1", &[]),
            ("pinpriq_session", &[]),
            ("pinpriq_session=1; pinpriq_session=2", &["1", "2"]),
        ];
        for (cookies, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_static(cookies));
            assert_eq!(shown_in(&headers).collect::<Vec<_>>(), expected, "{cookies}");
        }
    }
}
