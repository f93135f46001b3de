//! Users whose certificates sign them in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::certificates::asking;
use super::{HTTP, RESP, Stage, WIRE, on_stage};
use crate::client::{named_bytes, push_bytes};
use crate::people::{People, Person};

/// Runs a test with users, whose certificates the server may ask for.
fn with_people(people: &[Person], body: impl AsyncFnOnce(&Stage, &mut People)) {
    let mut people = People::new(people);
    let users = people.at(crate::world::in_memory()).users;
    let change = |config: &mut pinpriq_server::config::Config, encryption: &_| {
        asking(false)(config, encryption);
        config.users = users;
    };
    on_stage(change, async |stage| body(stage, &mut people).await);
}

#[test]
fn a_certificate_signs_its_user_in() {
    let people = [Person::new("ana", "put:q take:q"), Person::new("ben", "look:q")];
    with_people(&people, async |stage, _| {
        let authority = &stage.encryption.authority;
        let mut ana = stage.connect(RESP, Some(&authority.sign("ana", &[]))).await;
        ana.expect(b"ACL WHOAMI\r\n", "$3\r\nana\r\n").await;
        ana.expect(b"PUT q p\r\n", "$1\r\n1\r\n").await;
        ana.expect(b"PUT other p\r\n", "-NOPERM ").await;

        let mut stranger = stage.connect(RESP, Some(&authority.sign("cleo", &[]))).await;
        stranger.expect(b"PUT q p\r\n", "-NOAUTH ").await;
        let mut nameless = stage.connect(RESP, None).await;
        nameless.expect(b"PUT q p\r\n", "-NOAUTH ").await;
    });
}

#[test]
fn who_signs_in_as_somebody_else_is_that_user_until_a_reset() {
    let people = [Person::new("ana", "put:q"), Person::new("ben", "look:q")];
    with_people(&people, async |stage, people| {
        let papers = stage.encryption.authority.sign("ana", &[]);
        let mut talk = stage.connect(RESP, Some(&papers)).await;
        talk.expect(b"AUTH ben password\r\n", "+OK\r\n").await;
        talk.expect(b"ACL WHOAMI\r\n", "$3\r\nben\r\n").await;
        talk.expect(b"RESET\r\n", "+RESET\r\n").await;
        talk.expect(b"ACL WHOAMI\r\n", "$3\r\nana\r\n").await;
        // A removed user has no rights, whatever the certificate.
        people.write(&[Person::new("ben", "look:q")]);
        loop {
            stage.advance(1_000);
            talk.send(b"PUT q p\r\n").await;
            let told = talk.line().await;
            if told.starts_with("-NOAUTH ") {
                break;
            }
            if told.starts_with('$') {
                talk.line().await;
            }
        }
    });
}

#[test]
fn the_wire_knows_its_clients_by_their_certificates() {
    let people = [Person::new("ana", "put:q take:q"), Person::new("anonymous", "take:open")];
    with_people(&people, async |stage, _| {
        let authority = &stage.encryption.authority;
        let mut ana = stage.connect(WIRE, Some(&authority.sign("ana", &[]))).await;
        ana.send(&push_bytes(b"q", 60_000, 1, b"k", b"v")).await;
        ana.expect(&named_bytes(b'P', b"q"), "\0\u{1}\0\u{1}\0\u{1}kv").await;
        // Without a certificate the door acts as anonymous, with that of an unknown user as no one.
        let mut anonymous = stage.connect(WIRE, None).await;
        anonymous.expect(&named_bytes(b'P', b"open"), "\0\0").await;
        anonymous.send(&named_bytes(b'P', b"q")).await;
        let mut rest = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut anonymous.0, &mut rest).await.unwrap();
        assert_eq!(rest, b"");
        let mut stranger = stage.connect(WIRE, Some(&authority.sign("cleo", &[]))).await;
        stranger.send(&named_bytes(b'P', b"open")).await;
        tokio::io::AsyncReadExt::read_to_end(&mut stranger.0, &mut rest).await.unwrap();
        assert_eq!(rest, b"");
    });
}

#[test]
fn http_knows_its_clients_by_their_certificates() {
    let people = [Person::new("ana", "put:q"), Person::new("ben", "")];
    with_people(&people, async |stage, _| {
        let authority = &stage.encryption.authority;
        let papers = authority.sign("ana", &[]);
        let ask = async |own, line: &str, fields: &str| {
            stage.connect(HTTP, own).await.ask_http(line, fields, "").await
        };
        let session = "GET /v1/session";
        assert!(ask(Some(&papers), session, "").await.contains("\"user\":\"ana\""));
        let ben = format!("Authorization: Basic {}\r\n", STANDARD.encode("ben:password"));
        assert!(ask(Some(&papers), session, &ben).await.contains("\"user\":\"ben\""));
        let stranger = authority.sign("cleo", &[]);
        for own in [None, Some(&stranger)] {
            assert!(ask(own, session, "").await.starts_with("HTTP/1.1 401 "));
        }
        // A page of somebody else cannot use the certificate of a browser.
        let foreign = "Origin: https://evil.example\r\n";
        let answer = ask(Some(&papers), "DELETE /v1/queues/q", foreign).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    });
}

#[test]
fn a_browser_keeps_the_cookie_of_an_encrypted_connection_to_such() {
    with_people(&[Person::new("ana", "put:q")], async |stage, _| {
        let body = r#"{"user":"ana","password":"password"}"#;
        let fields = "Content-Type: application/json\r\n";
        let talk = stage.connect(HTTP, None).await;
        let answer = talk.ask_http("POST /v1/session", fields, body).await;
        let cookie = answer.lines().find(|line| line.starts_with("set-cookie: ")).unwrap();
        assert!(cookie.ends_with("; Secure"), "{cookie}");
    });
}
