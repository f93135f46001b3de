//! Who asks: the user of each request, by its `Authorization`.
//!
//! What the user may do is checked where it is done: by the desk for commands, and by the handlers
//! of what no command shows.

use std::sync::{Arc, Mutex, PoisonError};

use crate::users::Right;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt as _;

use super::super::problem::Problem;
use super::session::shown_in;
use super::{Api, Asker, refuse};
use crate::access::audit::{Event, What};
use crate::access::pass::Pass;
use crate::access::roster::Roster;
use crate::access::signing::{Begun, Outcome, Shown, claimed};
use crate::access::usage::Counted;
use crate::clock::steady_ms;
use crate::config::DoorName;
use crate::monitor::seen::sees_all;

/// Tells requests of pages apart from those that a browser makes for itself.
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// What the requests of the dashboard have, and no page of another origin can add.
const REQUEST: HeaderName = HeaderName::from_static("pinpriq-request");

/// Answers a request if a user has signed in with it, or if that is not needed.
pub(super) async fn check(
    State(api): State<Arc<Api>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(roster) = &api.roster else { return next.run(request).await };
    let asker = request.extensions().get::<Asker>().cloned();
    let Some(mut asker) = asker else { unreachable!("a request has come without its asker") };
    let is_free = is_free(request.method(), request.uri().path());
    asker.pass = if is_free {
        // It tells nothing but whether the server serves.
        Some(Pass::of_server())
    } else {
        let found = user_of((&api, roster), &asker, request.method(), request.headers()).await;
        match found {
            Ok(pass) => Some(pass),
            Err(problem) => return challenge(&problem, request.headers()),
        }
    };
    let counted = match &asker.pass {
        Some(pass) if !is_free => match roster.usages.connect(&pass.user) {
            Ok(counted) => Some(counted),
            Err(refusal) => return refuse(&Problem::new("BUSY", refusal.sentence)),
        },
        _ => None,
    };
    request.extensions_mut().insert(asker);
    let counted = Arc::new(Mutex::new(counted));
    let request = weighed(request, &counted);
    let response = next.run(request).await;
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    // An answer without an end is under way as long as it is read.
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _counted = &counted;
            frame
        }))
    })
}

/// Counts the bytes of a request as they arrive, until its answer has been made.
fn weighed(request: Request, counted: &Arc<Mutex<Option<Counted>>>) -> Request {
    let counted = Arc::clone(counted);
    let mut bytes = 0;
    request.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let counted = &mut *counted.lock().unwrap_or_else(PoisonError::into_inner);
            if let (Some(counted), Some(data)) = (counted, frame.data_ref()) {
                bytes += data.len() as u64;
                counted.weigh(bytes);
            }
            frame
        }))
    })
}

/// Whether everybody may ask for this.
fn is_free(method: &Method, path: &str) -> bool {
    let is_file = path == "/" || path.starts_with("/assets/");
    let signs_in = method == Method::POST && path == "/v1/session";
    method == Method::OPTIONS || is_file || signs_in || ["/healthz", "/readyz"].contains(&path)
}

async fn user_of(
    (api, roster): (&Api, &Arc<Roster>),
    asker: &Asker,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Pass, Problem> {
    let Some(shown) = headers.get(AUTHORIZATION) else {
        let certificate = asker.way.certificate.as_deref();
        return match certificate.filter(|_| shown_in(headers).next().is_none()) {
            Some(name) => user_of_certificate(roster, name),
            None => user_of_session((api, roster), method, headers),
        };
    };
    let (scheme, rest) = split(shown.as_bytes());
    let pair;
    let shown = if scheme.eq_ignore_ascii_case(b"bearer") {
        Shown::Alone(rest)
    } else if scheme.eq_ignore_ascii_case(b"basic") {
        let unreadable = || Problem::bad("Authorization: Basic has user:password in base64");
        pair = STANDARD.decode(rest).map_err(|_| unreadable())?;
        let colon = pair.iter().position(|byte| *byte == b':').ok_or_else(unreadable)?;
        Shown::Named(&pair[..colon], &pair[colon + 1..])
    } else {
        return Err(Problem::new("NOAUTH", "Authorization is Basic or Bearer"));
    };
    sign_in((api, roster), asker, shown).await
}

/// Returns the user that a certificate was made for.
fn user_of_certificate(roster: &Roster, name: &str) -> Result<Pass, Problem> {
    let unknown = || Problem::new("NOAUTH", "the certificate of the client is that of no user");
    roster.certified(name).ok_or_else(unknown)
}

/// Returns the user of a browser that has signed in.
fn user_of_session(
    (api, roster): (&Api, &Arc<Roster>),
    method: &Method,
    headers: &HeaderMap,
) -> Result<Pass, Problem> {
    let found = shown_in(headers).find_map(|it| api.sessions.find(it, roster, steady_ms()));
    let Some(pass) = found else {
        let sentence = "sign in with Authorization: Basic or Bearer, or with POST /v1/session";
        return Err(Problem::new("NOAUTH", sentence));
    };
    // A page of another origin can have a browser send its cookie, but not this field.
    let changes = ![Method::GET, Method::HEAD].contains(method);
    if changes && headers.get(REQUEST).is_none_or(|it| it != "1") {
        let sentence = "with a cookie, what changes something needs the field Pinpriq-Request: 1";
        return Err(Problem::new("NOPERM", sentence));
    }
    Ok(pass)
}

/// Signs a user in.
pub(super) async fn sign_in(
    (api, roster): (&Api, &Arc<Roster>),
    asker: &Asker,
    shown: Shown<'_>,
) -> Result<Pass, Problem> {
    let outcome = match roster.sign_in(shown, asker.way.peer.ip()) {
        Begun::Known(outcome) => outcome,
        Begun::Later(outcome) => outcome.await,
    };
    match outcome {
        Outcome::In(pass) => {
            api.tell_audit(asker, What::SignedIn, pass.user.name.to_string());
            Ok(pass)
        }
        Outcome::Wrong => {
            api.tell_audit(asker, What::SignInFailed, claimed(shown));
            Err(Problem::new("WRONGPASS", "the user, the password or the token is wrong"))
        }
        Outcome::Busy => Err(Problem::new("BUSY", "too many others are signing in: try again")),
    }
}

/// Returns the first word of a value, and the rest.
fn split(value: &[u8]) -> (&[u8], &[u8]) {
    let value = value.trim_ascii();
    let end = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
    let (word, rest) = value.split_at(end);
    (word, rest.trim_ascii())
}

/// Refuses a request, and says how to sign in. A browser that hears of Basic asks its user by
/// itself, which is not wanted for the requests of a page.
fn challenge(problem: &Problem, headers: &HeaderMap) -> Response {
    let mut response = refuse(problem);
    if problem.status() == 401 {
        let ways = response.headers_mut();
        if !headers.contains_key(FETCH_MODE) {
            let basic = "Basic realm=\"pinpriq\", charset=\"UTF-8\"";
            ways.append(WWW_AUTHENTICATE, HeaderValue::from_static(basic));
        }
        let bearer = HeaderValue::from_static("Bearer realm=\"pinpriq\"");
        ways.append(WWW_AUTHENTICATE, bearer);
    }
    response
}

impl Api {
    /// Tells that something has happened to a user over HTTP, if there is an audit.
    fn tell_audit(&self, asker: &Asker, what: What, user: String) {
        let Some(audit) = &self.audit else { return };
        let (user, from) = (Some(user), Some(asker.way.peer));
        audit.note(Event { user, from, door: Some(DoorName::Http.word()), ..Event::new(what) });
    }
}

impl Asker {
    /// Whether the user may see all there is.
    pub(crate) fn sees_all(&self) -> bool {
        self.pass.as_ref().is_none_or(|pass| sees_all(&pass.user.rights))
    }

    /// Whether the user may run the server.
    pub(crate) fn runs_server(&self) -> bool {
        self.pass.as_ref().is_none_or(|pass| pass.user.rights.is_admin())
    }

    /// Whether the user may look at every queue.
    pub(crate) fn looks_at_all(&self) -> bool {
        self.pass.as_ref().is_none_or(|pass| pass.user.rights.allows_all(Right::Look))
    }

    /// Whether the user may look at this queue or topic.
    pub(crate) fn may_look_at(&self, name: &[u8]) -> bool {
        self.pass.as_ref().is_none_or(|pass| pass.user.rights.allows(Right::Look, name))
    }

    /// Refuses to show a queue that the user may not look at.
    pub(crate) fn check_look(&self, name: &[u8]) -> Result<(), Problem> {
        if self.may_look_at(name) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(name);
        let name: String = name.chars().take(100).collect();
        let sentence = format!("the user may not do this: it needs the right look on {name:?}");
        Err(Problem::new("NOPERM", sentence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_tells_nothing_is_free() {
        for path in ["/", "/assets/app.js", "/healthz", "/readyz"] {
            assert!(is_free(&Method::GET, path), "{path}");
        }
        for path in ["/metrics", "/v1/server", "/openapi.json", "/assets", "/healthz/", "//"] {
            assert!(!is_free(&Method::GET, path), "{path}");
            assert!(is_free(&Method::OPTIONS, path), "{path}");
        }
    }

    #[test]
    fn a_value_has_a_scheme_and_the_rest() {
        let table = [
            ("Basic  abc ", "Basic", "abc"),
            ("bearer x y", "bearer", "x y"),
            ("Basic", "Basic", ""),
            ("", "", ""),
        ];
        for (value, scheme, rest) in table {
            assert_eq!(split(value.as_bytes()), (scheme.as_bytes(), rest.as_bytes()));
        }
    }
}
