//! Users of the HTTP door.

mod each_path;
mod rubbish;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinpriq_server::config::{Config, Look};

use super::{Address, Visitor, with_site_of};
use crate::people::{People, Person};
use crate::world::{START, START_MS, in_memory};

/// Runs a test with a server that has this door and these users.
fn with_people(people: &[Person], body: impl AsyncFnOnce(Address, &mut People)) {
    let mut people = People::new(people);
    with_site_of(people.at(in_memory()), async |address| body(address, &mut people).await);
}

pub(super) fn basic(pair: &str) -> String {
    format!("Authorization: Basic {}\r\n", STANDARD.encode(pair))
}

/// Asks with these header fields, on a connection of its own.
async fn ask(address: Address, line: &str, fields: &str) -> (u16, Vec<String>, String) {
    let mut visitor = Visitor::at(address).await;
    visitor.send(line, fields, b"").await;
    visitor.whole_answer().await
}

async fn status(address: Address, line: &str, fields: &str) -> u16 {
    ask(address, line, fields).await.0
}

/// The requests in the tables of the page, such as `GET /v1/queues/{queue}`.
fn documented() -> impl Iterator<Item = &'static str> {
    let page = include_str!("../../../../../docs/http.md");
    let tables = page.split("<!-- http:").nth(1).unwrap();
    tables.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next())
}

#[test]
fn every_path_but_a_few_wants_a_user() {
    with_people(&[Person::new("ana", "put:*")], async |address, _| {
        for path in ["/healthz", "/readyz", "/"] {
            assert_eq!(status(address, &format!("GET {path}"), "").await, 200, "{path}");
        }
        assert_eq!(status(address, "OPTIONS /v1/queues", "").await, 204);
        let mut tried = 0;
        for request in documented() {
            let (method, path) = request.split_once(' ').unwrap();
            let path = path.replace(['{', '}'], "");
            let line = format!("{method} {path}");
            let (code, _, body) = ask(address, &line, "").await;
            assert_eq!(code, 401, "{line}: {body}");
            assert!(body.contains("\"NOAUTH\""), "{body}");
            tried += 1;
        }
        assert!(tried > 40, "{tried} paths");
        for path in ["/metrics", "/openapi.json", "/v1/nothing", "/nothing"] {
            assert_eq!(status(address, &format!("GET {path}"), "").await, 401, "{path}");
        }
    });
}

#[test]
fn a_password_and_a_token_sign_in() {
    let (ana, token) = Person::with_token("ana", "put:*");
    with_people(&[ana], async |address, _| {
        let put = "PUT /v1/queues/q/nothing";
        let ways = [
            basic("ana:password"),
            basic(&format!("ana:{token}")),
            format!("Authorization: Bearer {token}\r\n"),
            format!("authorization: bearer   {token}\r\n"),
        ];
        for way in ways {
            assert_ne!(status(address, put, &way).await, 401, "{way}");
        }
        let wrong = [
            basic("ana:wrong"),
            basic("nemo:password"),
            "Authorization: Bearer pinpriq_x\r\n".to_owned(),
            "Authorization: Digest x\r\n".to_owned(),
            "Authorization: Basic\r\n".to_owned(),
            "Authorization:\r\n".to_owned(),
        ];
        for way in wrong {
            let code = status(address, "GET /v1/queues", &way).await;
            assert!([400, 401].contains(&code), "{way}: {code}");
        }
    });
}

#[test]
fn unknown_names_of_the_server_are_refused() {
    let mut config = in_memory();
    config.http.hosts = vec!["queues.example".to_owned()];
    with_site_of(config, async |address| {
        let asked = async |path: &str, host: &str| {
            let mut visitor = Visitor::at(address).await;
            visitor.send_to(host, &format!("GET {path}"), "", b"").await;
            visitor.answer().await.0
        };
        for host in ["localhost:1", "127.0.0.1", "[::1]:7252", "queues.example", "x.localhost"] {
            assert_eq!(asked("/v1/queues", host).await, 200, "{host}");
        }
        for path in ["/v1/queues", "/", "/metrics", "/assets/app.js", "/nothing"] {
            assert_eq!(asked(path, "evil.example").await, 421, "{path}");
        }
        assert_eq!(asked("/v1/queues", "").await, 400);
        for path in ["/healthz", "/readyz"] {
            assert_eq!(asked(path, "evil.example").await, 200, "{path}");
        }
    });
}

/// Signs in as a browser does, and returns the status and the cookie.
async fn begin(address: Address, user: &str, password: &str) -> (u16, String) {
    let body = format!(r#"{{"user":"{user}","password":"{password}"}}"#);
    let mut visitor = Visitor::at(address).await;
    visitor.send("POST /v1/session", "Content-Type: application/json\r\n", body.as_bytes()).await;
    let (status, fields, _) = visitor.whole_answer().await;
    let cookie = fields.iter().find_map(|field| field.strip_prefix("set-cookie: "));
    (status, cookie.unwrap_or_default().to_owned())
}

#[test]
fn a_browser_signs_in_and_out() {
    let people = [Person::new("ana", "put:q look:q"), Person::new("ben", "")];
    with_people(&people, async |address, people| {
        assert_eq!(begin(address, "ana", "wrong").await.0, 401);
        assert_eq!(begin(address, "nemo", "password").await.0, 401);
        let (status, cookie) = begin(address, "ana", "password").await;
        assert_eq!(status, 204);
        for part in ["path=/", "httponly", "samesite=strict", "max-age=43200"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        // Header fields are read in small letters here, and secrets have both.
        let mut visitor = Visitor::at(address).await;
        let body = br#"{"user":"ana","password":"password"}"#;
        visitor.send("POST /v1/session", "Content-Type: application/json\r\n", body).await;
        let secret = visitor.cookie().await;
        let with = |more: &str| format!("Cookie: a=b; pinpriq_session={secret}\r\n{more}");
        let (status, _, body) = ask(address, "GET /v1/session", &with("")).await;
        assert_eq!(status, 200);
        let told = r#""user":"ana","admin":false,"rights":{"#;
        assert!(body.contains(told), "{body}");
        let own = r#"[{"name":"q","prefix":false}]"#;
        let rights = format!(r#"{{"put":{own},"take":[],"look":{own},"manage":[]}}"#);
        assert!(body.contains(&rights), "{body}");
        assert_eq!(status_of(address, "GET /v1/queues", &with("")).await, 200);
        assert_eq!(status_of(address, "GET /v1/queues/other", &with("")).await, 403);
        let put = "PUT /v1/queues/q/nothing";
        assert_eq!(status_of(address, put, &with("")).await, 403, "without the field");
        for other in ["0", "", "1, 1", "yes"] {
            let field = with(&format!("Pinpriq-Request: {other}\r\n"));
            assert_eq!(status_of(address, put, &field).await, 403, "{other}");
        }
        assert_eq!(status_of(address, put, &with("Pinpriq-Request: 1\r\n")).await, 404);
        let foreign = with("Pinpriq-Request: 1\r\nOrigin: http://evil.example\r\n");
        assert_eq!(status_of(address, "DELETE /v1/session", &foreign).await, 403);
        let own = with("Pinpriq-Request: 1\r\n");
        assert_eq!(status_of(address, "DELETE /v1/session", &own).await, 204);
        assert_eq!(status_of(address, "GET /v1/queues", &with("")).await, 401);

        let mut visitor = Visitor::at(address).await;
        visitor.send("POST /v1/session", "Content-Type: application/json\r\n", body_of_ben()).await;
        let secret = visitor.cookie().await;
        let with = format!("Cookie: pinpriq_session={secret}\r\n");
        assert_eq!(status_of(address, "GET /v1/session", &with).await, 200);
        people.write(&[Person::new("ana", "put:q")]);
        let mut status = 200;
        for _ in 0..20_000 {
            if status == 200 {
                status = status_of(address, "GET /v1/session", &with).await;
            }
        }
        assert_eq!(status, 401, "the user is gone, and so is the session");
    });
}

fn body_of_ben() -> &'static [u8] {
    br#"{"user":"ben","password":"password"}"#
}

use self::status as status_of;

#[test]
fn what_is_no_sign_in_is_refused() {
    with_people(&[Person::new("ana", "")], async |address, _| {
        let json = "Content-Type: application/json\r\n";
        let table: [(&str, &[u8], u16); 7] = [
            (json, b"", 400),
            (json, b"{", 400),
            (json, br#"{"user":"ana"}"#, 400),
            (json, br#"{"user":"ana","password":"password","more":1}"#, 400),
            (json, br#"{"user":1,"password":"password"}"#, 400),
            ("Content-Type: text/plain\r\n", br#"{"user":"ana","password":"password"}"#, 415),
            (
                "Content-Type: application/json\r\nOrigin: http://evil.example\r\n",
                br#"{"user":"ana","password":"password"}"#,
                403,
            ),
        ];
        for (fields, body, expected) in table {
            let mut visitor = Visitor::at(address).await;
            visitor.send("POST /v1/session", fields, body).await;
            let (status, body) = visitor.answer().await;
            assert_eq!(status, expected, "{body}");
            assert!(!body.contains("password\":\""), "{body}");
        }
        assert_eq!(status(address, "GET /v1/session", "").await, 401);
        assert_eq!(status(address, "DELETE /v1/session", "").await, 401);
        assert_eq!(status(address, "PUT /v1/session", &basic("ana:password")).await, 405);
    });
}

#[test]
fn without_users_no_one_signs_in() {
    super::with_site(async |address| {
        let (status, _, body) = ask(address, "GET /v1/session", "").await;
        assert_eq!(status, 200);
        assert!(body.contains(r#""user":null,"admin":true,"rights":null"#), "{body}");
        assert_eq!(begin(address, "ana", "password").await.0, 404);
        let (_, _, body) = ask(address, "GET /v1/server", "").await;
        assert!(body.contains(r#""look_at_ms":null"#), "{body}");
    });
}

#[test]
fn a_server_that_only_shows_a_moment_tells_it_and_that_everybody_only_looks() {
    let look = Some(Look { at: START, shown: "then".to_owned() });
    with_site_of(Config { look, ..in_memory() }, async |address| {
        let (_, _, body) = ask(address, "GET /v1/session", "").await;
        let rights = r#"{"put":[],"take":[],"look":[{"name":"","prefix":true}],"manage":[]}"#;
        let expected = format!(r#""user":null,"admin":true,"rights":{rights}"#);
        assert!(body.contains(&expected), "{body}");
        let (_, _, body) = ask(address, "GET /v1/server", "").await;
        assert!(body.contains(&format!("\"look_at_ms\":{START_MS}")), "{body}");
    });
}

#[test]
fn browsers_are_not_told_to_ask_by_themselves() {
    with_people(&[], async |address, _| {
        let is_basic = |fields: &[String]| {
            fields.iter().any(|it| it.starts_with("www-authenticate: basic realm"))
        };
        let (_, fields, _) = ask(address, "GET /v1/queues", "").await;
        assert!(is_basic(&fields), "{fields:?}");
        let (_, fields, _) = ask(address, "GET /v1/queues", "Sec-Fetch-Mode: cors\r\n").await;
        assert!(!is_basic(&fields), "{fields:?}");
        assert!(fields.iter().any(|it| it.starts_with("www-authenticate: bearer")), "{fields:?}");
    });
}

#[test]
fn rights_are_those_of_every_door() {
    let people = [
        Person::new("ana", "put:a* look:a* manage:c"),
        Person::new("boss", "put:* look:* manage:* admin"),
    ];
    with_people(&people, async |address, _| {
        let (ana, boss) = (basic("ana:password"), basic("boss:password"));
        let put = async |queue: &str, user: &str| {
            let mut visitor = Visitor::at(address).await;
            visitor.send(&format!("POST /v1/queues/{queue}/tasks"), user, b"x").await;
            visitor.answer().await.0
        };
        assert_eq!(put("a1", &ana).await, 201);
        assert_eq!(put("b1", &ana).await, 403);
        assert_eq!(put("b1", &boss).await, 201);
        let get = async |path: &str, user: &str| ask(address, &format!("GET {path}"), user).await;
        for path in [
            "/v1/server",
            "/v1/connections",
            "/v1/queues/b1",
            "/v1/queues/b1/tasks",
            "/v1/history?queue=b1",
            "/v1/events?queue=b1",
        ] {
            assert_eq!(get(path, &ana).await.0, 403, "{path}");
        }
        for path in ["/v1/server", "/v1/connections", "/v1/history?queue=b1"] {
            assert_eq!(get(path, &boss).await.0, 200, "{path}");
        }
        assert_eq!(status(address, "DELETE /v1/connections/1", &ana).await, 403);
        // Even if another made a ranking first, users see what they may see.
        for list in ["/v1/queues", "/v1/queues?sort=ready", "/v1/queues?sort=name"] {
            let (_, _, all) = get(list, &boss).await;
            assert!(all.contains("\"a1\"") && all.contains("\"b1\""), "{list}: {all}");
            let (_, _, some) = get(list, &ana).await;
            assert!(some.contains("\"a1\"") && !some.contains("b1"), "{list}: {some}");
        }
        let mut visitor = Visitor::at(address).await;
        let kind = format!("{boss}Content-Type: application/json\r\n");
        visitor.send("POST /v1/queues/b1/tasks/2:switch", &kind, b"{\"state\":\"B\"}").await;
        assert_eq!(visitor.answer().await.0, 200);
        let (_, _, all) = get("/v1/dead-letters", &boss).await;
        assert!(all.contains("\"b1\""), "{all}");
        let (_, _, some) = get("/v1/dead-letters", &ana).await;
        assert!(!some.contains("b1"), "{some}");
        let (_, _, all) = get("/metrics", &boss).await;
        assert!(all.contains("queue=\"b1\"") && all.contains("pinpriq_connections"), "{all}");
        let (_, _, some) = get("/metrics", &ana).await;
        assert!(some.contains("queue=\"a1\"") && !some.contains("b1"), "{some}");
        assert!(!some.contains("pinpriq_connections"), "{some}");
        assert!(some.contains("pinpriq_queues 1"), "{some}");
        let mut visitor = Visitor::at(address).await;
        let kind = format!("{ana}Content-Type: application/json\r\n");
        visitor.send("PUT /v1/queues/c", &kind, b"{}").await;
        assert_eq!(visitor.answer().await.0, 204, "it was made, and must not be shown");
    });
}

#[test]
fn requests_under_way_are_connections_of_their_user() {
    let ana = Person::new("ana", "look:*").within(&[("max_connections", 1)]);
    with_people(&[ana], async |address, _| {
        let ana = basic("ana:password");
        for _ in 0..3 {
            assert_eq!(status(address, "GET /v1/queues", &ana).await, 200);
        }
        let mut events = Visitor::at(address).await;
        events.send("GET /v1/events", &ana, b"").await;
        assert_eq!(events.line().await, "HTTP/1.1 200 OK");
        assert_eq!(status(address, "GET /v1/queues", &ana).await, 429);
        drop(events);
        while status(address, "GET /v1/queues", &ana).await != 200 {}
    });
}

#[test]
fn bodies_under_way_are_bytes_in_flight() {
    let ana = Person::new("ana", "put:*").within(&[("max_bytes_in_flight", 20_000)]);
    with_people(&[ana], async |address, _| {
        let ana = basic("ana:password");
        let put = "POST /v1/queues/q/tasks";
        let large = async || {
            let mut visitor = Visitor::at(address).await;
            visitor.send(put, &ana, &[b'x'; 15_000]).await;
            visitor.answer().await.0
        };
        for _ in 0..3 {
            assert_eq!(large().await, 201);
        }
        let mut slow = Visitor::at(address).await;
        let head = format!(
            "{put} HTTP/1.1\r\nHost: localhost\r\n{ana}Content-Type: text/plain\r\n\
             Content-Length: 10000\r\n\r\n"
        );
        slow.send_bytes(head.as_bytes()).await;
        slow.send_bytes(&[b'x'; 9_000]).await;
        while large().await != 429 {}
        slow.send_bytes(&[b'x'; 1_000]).await;
        assert_eq!(slow.answer().await.0, 201);
        assert_eq!(large().await, 201);
    });
}

#[test]
fn tasks_that_are_put_are_those_of_their_user() {
    let ana = Person::new("ana", "put:* take:*").within(&[("max_tasks", 2)]);
    with_people(&[ana], async |address, _| {
        let ana = basic("ana:password");
        let put = async || {
            let mut visitor = Visitor::at(address).await;
            visitor.send("POST /v1/queues/q/tasks", &ana, b"x").await;
            visitor.answer().await.0
        };
        assert_eq!((put().await, put().await, put().await), (201, 201, 429));
        assert_eq!(status(address, "POST /v1/queues/q:pop", &ana).await, 200);
        assert_eq!((put().await, put().await), (201, 429));
    });
}

#[test]
fn events_show_what_may_be_looked_at_and_end_with_the_right() {
    let boss = || Person::new("boss", "put:*");
    let people = [boss(), Person::new("ana", "look:a*")];
    with_people(&people, async |address, people| {
        let put = async |queue: &str| {
            let mut visitor = Visitor::at(address).await;
            let line = format!("POST /v1/queues/{queue}/tasks");
            visitor.send(&line, &basic("boss:password"), b"x").await;
            assert_eq!(visitor.answer().await.0, 201);
        };
        put("b").await;
        put("a").await;
        let mut events = Visitor::at(address).await;
        events.send("GET /v1/events", &basic("ana:password"), b"").await;
        let mut seen = String::new();
        while !seen.contains("event: figures") || !seen.ends_with("\n\n") {
            seen += &events.line().await;
            seen.push('\n');
        }
        assert!(seen.contains("\"queues\":1"), "{seen}");
        people.write(&[boss()]);
        for _ in 0..50 {
            if !seen.contains("NOPERM") {
                seen += &events.line().await;
            }
        }
        assert!(seen.contains("NOPERM"), "{seen}");
        assert!(!seen.contains("\"b\""), "{seen}");
    });
}

#[test]
fn metrics_tell_of_shares_and_limits_that_may_be_looked_at() {
    let people =
        [Person::new("ana", "look:a*"), Person::new("boss", "put:* look:* manage:* admin")];
    with_people(&people, async |address, _| {
        let (ana, boss) = (basic("ana:password"), basic("boss:password"));
        let kind = format!("{boss}Content-Type: application/json\r\n");
        for name in ["a1", "b1"] {
            let mut visitor = Visitor::at(address).await;
            for (line, body) in [
                (format!("PUT /v1/queues/{name}"), r#"{"sharemetrics": 1}"#),
                (format!("PUT /v1/limits/{name}"), r#"{"max": 1}"#),
                (format!("POST /v1/queues/{name}/tasks"), r#"{"payload": "x"}"#),
            ] {
                visitor.send(&line, &kind, body.as_bytes()).await;
                assert!([201, 204].contains(&visitor.answer().await.0), "{line}");
            }
        }
        let get = async |user: &str| ask(address, "GET /metrics", user).await.2;
        let all = get(&boss).await;
        for of in ["share_tasks{queue=\"b1\"", "limit_taken{limit=\"b1\""] {
            assert!(all.contains(of), "{all}");
        }
        let some = get(&ana).await;
        for of in ["share_tasks{queue=\"a1\"", "limit_taken{limit=\"a1\""] {
            assert!(some.contains(of), "{some}");
        }
        assert!(!some.contains("b1"), "{some}");
    });
}
