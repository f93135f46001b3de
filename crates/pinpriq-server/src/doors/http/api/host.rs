//! Which host a request is for. A page of another site can give its own name an address of this
//! machine, and would then be of the same origin as the server: DNS rebinding. So names that were
//! not given to this server are refused.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Version};
use axum::middleware::Next;
use axum::response::Response;

use super::super::problem::Problem;
use super::framing::{close_after, is_http_1};
use super::{Api, given, refuse};

/// Answers a request if it is for this host. Questions about health are for any.
pub(super) async fn check(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let is_about_health = ["/healthz", "/readyz"].contains(&request.uri().path());
    let authority = (request.version(), request.uri().authority());
    match host_of(authority, request.headers()) {
        Err(problem) => {
            // A proxy on the way may have understood another host.
            let mut response = refuse(&problem);
            if is_http_1(&request) {
                close_after(&mut response);
            }
            response
        }
        Ok(_) if is_about_health => next.run(request).await,
        Ok(host) if is_ours(&host, &api.hosts) => next.run(request).await,
        Ok(host) => {
            let sentence = format!(
                "this server is not called {}: give it that name with --http-host",
                given::shown(&host)
            );
            refuse(&Problem::new("HOST", sentence))
        }
    }
}

/// Returns the host that a request names, without its port. Only HTTP/1.0 may name none, which is
/// the empty one.
fn host_of(
    (version, authority): (Version, Option<&Authority>),
    headers: &HeaderMap,
) -> Result<String, Problem> {
    let unclear = || Problem::bad("a request has one Host, a name or an address");
    let mut hosts = headers.get_all(HOST).iter();
    let named: Option<Authority> = match (hosts.next(), hosts.next()) {
        (Some(host), None) => {
            Some(host.to_str().ok().and_then(|host| host.parse().ok()).ok_or_else(unclear)?)
        }
        (None, _) if version != Version::HTTP_11 => None,
        _ => return Err(unclear()),
    };
    // HTTP/2, and HTTP/1.1 with a whole address, name it before the header fields.
    match authority.or(named.as_ref()) {
        Some(host) => Ok(host.host().to_owned()),
        None if version < Version::HTTP_11 => Ok(String::new()),
        None => Err(unclear()),
    }
}

/// Whether this server goes by that name.
fn is_ours(host: &str, names: &[String]) -> bool {
    let plain = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let address = plain.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(&plain);
    address.parse::<IpAddr>().is_ok()
        || plain == "localhost"
        || plain.ends_with(".localhost")
        || names.iter().any(|name| name.eq_ignore_ascii_case(&plain))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn addresses_local_names_and_given_names_are_ours() {
        let names = ["queues.example".to_owned()];
        for host in [
            "127.0.0.1",
            "10.1.2.3",
            "[::1]",
            "[2001:db8::1]",
            "localhost",
            "LOCALHOST",
            "localhost.",
            "a.localhost",
            "queues.example",
            "Queues.Example",
            "queues.example.",
        ] {
            assert!(is_ours(host, &names), "{host}");
        }
        for host in [
            "example",
            "xlocalhost",
            "localhost.example",
            "a.queues.example",
            "queues.example.evil",
            "127.0.0.1.example",
            "",
            "[::1",
            "1.2.3",
        ] {
            assert!(!is_ours(host, &names), "{host}");
        }
    }

    #[test]
    fn a_request_names_one_host() {
        let of = |version, authority: Option<&'static str>, hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, HeaderValue::from_str(host).unwrap());
            }
            let authority = authority.map(Authority::from_static);
            host_of((version, authority.as_ref()), &headers).map_err(|problem| problem.code)
        };
        let with = |hosts: &[&str]| of(Version::HTTP_11, None, hosts);
        assert_eq!(with(&["localhost:7252"]), Ok("localhost".to_owned()));
        assert_eq!(with(&["[::1]:7252"]), Ok("[::1]".to_owned()));
        for hosts in [&[][..], &["a", "b"], &["a b"], &[""], &["a/b"]] {
            assert_eq!(with(hosts), Err("BADARG"), "{hosts:?}");
        }
        let named = Some("queues.example:80");
        let example = Ok("queues.example".to_owned());
        assert_eq!(of(Version::HTTP_11, named, &["localhost"]), example);
        assert_eq!(of(Version::HTTP_2, named, &[]), example);
        for (version, authority, hosts) in [
            (Version::HTTP_11, named, &[][..]),
            (Version::HTTP_11, named, &["a", "a"]),
            (Version::HTTP_2, named, &["a", "b"]),
            (Version::HTTP_2, None, &[]),
            (Version::HTTP_10, None, &["a", "b"]),
        ] {
            assert_eq!(of(version, authority, hosts), Err("BADARG"), "{version:?} {hosts:?}");
        }
        assert_eq!(of(Version::HTTP_10, None, &[]), Ok(String::new()));
    }
}
