//! The dashboard over HTTP: its files at `/` and under `/assets`, with the headers that keep a
//! browser from running anything else. What is in the files is up to `crate::dashboard`.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;

use super::api::framing::tell_methods;
use super::api::{given, refuse};
use super::problem::Problem;

/// The headers of every file. A browser asks each time whether it has changed, so that a page never
/// mixes the files of two versions for long.
const HEADERS: [(HeaderName, &str); 3] = [
    (CACHE_CONTROL, "no-cache"),
    (CONTENT_SECURITY_POLICY, crate::dashboard::CONTENT_SECURITY_POLICY),
    (REFERRER_POLICY, "no-referrer"),
];

/// Answers with a file.
pub(super) async fn answer(request: Request) -> Response {
    let path = request.uri().path();
    let Some((file, tag)) = crate::dashboard::file(path) else {
        return refuse(&Problem::new(
            "NOTFOUND",
            format!("there is no path {}", given::shown(path)),
        ));
    };
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return tell_methods(request.method(), "GET, HEAD");
    }
    let known = request.headers().get_all(IF_NONE_MATCH).iter();
    let is_known = known.filter_map(|it| it.to_str().ok()).any(|it| names(it, tag));
    let body = if is_known { Body::empty() } else { Body::from(file.bytes) };
    let mut response = Response::new(body);
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.media_type));
    headers.insert(ETAG, HeaderValue::from_static(tag));
    response
}

/// Whether a list of tags names this one. What was compressed on its way has a weak tag.
fn names(list: &str, tag: &str) -> bool {
    let strong = |it: &str| it.trim().trim_start_matches("W/").to_owned();
    list.split(',').any(|it| it.trim() == "*" || strong(it) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_tags() {
        assert!(names("\"a\", W/\"b\"", "\"b\""));
        assert!(names("*", "\"b\""));
        assert!(!names("\"a\", \"c\"", "\"b\""));
    }
}
