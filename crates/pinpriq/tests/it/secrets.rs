//! Passwords, tokens and hashes are in nothing that a server prints, writes or answers.

use std::io::Write as _;
use std::process::Stdio;

use pinpriq_client::blocking::{Line, Resp};
use pinpriq_proto::wire::resp::{Value, Words};

use crate::files::{read, write};
use crate::http::browser::Browser;
use crate::peer::pinpriq;
use crate::serving::Serving;

/// Secrets that are right, and what a client without one shows.
const PASSWORD: &str = "correct-horse-battery";
const GUESS: &str = "wrong-horse-guess";
const TYPED_INTO_THE_FILE: &str = "staple-typed-into-the-file";

/// The base64 of `boss:correct-horse-battery` and `boss:wrong-horse-guess`.
const BASIC: &str = "Ym9zczpjb3JyZWN0LWhvcnNlLWJhdHRlcnk=";
const BASIC_GUESS: &str = "Ym9zczp3cm9uZy1ob3JzZS1ndWVzcw==";

/// Runs a command on the file of users, and returns what it prints.
fn user(file: &str, line: &str) -> String {
    let arguments: Vec<&str> = ["user"].into_iter().chain(line.split(' ')).collect();
    let mut command = pinpriq(&arguments);
    command.args(["--users", file]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let _ = writeln!(child.stdin.take().unwrap(), "{PASSWORD}");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{line}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn secrets_are_in_no_output() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    let file = path.to_str().unwrap();
    user(file, "add boss admin put:* take:* look:* manage:*");
    let token = user(file, "token boss add machine");
    let text = String::from_utf8(read(&path)).unwrap();
    let salt_and_hash = text.split('"').find(|part| part.contains("$argon2id")).unwrap().to_owned();
    let digest = text.split('"').find(|part| part.contains("sha256:")).unwrap().to_owned();

    let audit = folder.path().join("audit");
    let data = folder.path().join("data");
    let flags = [
        "--resp",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
        "--log-level",
        "trace",
        "--users",
        file,
        "--audit",
        audit.to_str().unwrap(),
    ];
    let server = Serving::start(&data, &flags);
    let mut seen = over_resp(&server, &token);
    seen.extend(over_http(&server, &token));

    // A password that stands where its hash belongs.
    let broken = format!("[users.ana]\npassword = \"{TYPED_INTO_THE_FILE}\"\n");
    write(&path, broken.as_bytes());
    server.send("-HUP");
    server.logged("the users stay as they were");
    server.send("-USR1");
    server.logged("\"section\":\"Cluster\"");
    for about in ["cmdline", "environ"] {
        let about = format!("/proc/{}/{about}", server.id());
        seen.push(String::from_utf8_lossy(&read(about.as_ref())).into_owned());
    }
    let (_, log) = server.signal_logged("-TERM");
    seen.push(log);
    seen.push(String::from_utf8(read(&audit)).unwrap());

    assert!(seen.iter().any(|text| text.contains("sign_in_failed")), "the audit was looked at");
    let base64 = salt_and_hash.rsplit('$').next().unwrap();
    let secrets =
        [PASSWORD, GUESS, TYPED_INTO_THE_FILE, BASIC, BASIC_GUESS, &token, &digest[7..], base64];
    for text in seen {
        for secret in secrets {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
    }
}

/// Signs in over RESP, in every way and with what is wrong, and returns all that was answered.
fn over_resp(server: &Serving, token: &str) -> Vec<String> {
    let address = server.door("resp");
    let mut seen = Vec::new();
    let mut resp = Resp::over(Line::connect(&address).unwrap());
    for line in [
        format!("AUTH boss {GUESS}"),
        format!("AUTH {GUESS}"),
        format!("AUTH {PASSWORD} {GUESS} {token}"),
        format!("AUTH {token}x"),
        format!("HELLO 3 AUTH boss {GUESS}"),
        format!("HELLO 3 AUTH boss {PASSWORD} NONSENSE"),
        format!("AUTHENTICATE {token}"),
        format!("AUTH {token}"),
        format!("HELLO 3 AUTH boss {PASSWORD}"),
        "MULTI".to_owned(),
        format!("AUTH boss {PASSWORD}"),
        "DISCARD".to_owned(),
        "CLIENT LIST".to_owned(),
        "INFO".to_owned(),
        "ACL LIST".to_owned(),
        "ACL USERS".to_owned(),
        "ACL WHOAMI".to_owned(),
        "COMMAND DOCS AUTH".to_owned(),
    ] {
        let reply = resp.ask(&Words::new(&line)).unwrap();
        // An unknown command is named with its arguments, as in Redis, to its sender alone.
        if !line.starts_with("AUTHENTICATE") {
            seen.push(format!("{reply:?}"));
        }
        if let Some(bytes) = Value::as_bytes(&reply) {
            seen.push(String::from_utf8_lossy(bytes).into_owned());
        }
    }
    seen
}

/// The same over HTTP.
fn over_http(server: &Serving, token: &str) -> Vec<String> {
    let address = server.door("http");
    let mut seen = Vec::new();
    let mut ask = |line: &str, fields: &str, body: &str| {
        let mut browser = Browser::connect(&address);
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        browser.send_bytes(head.as_bytes());
        seen.push(String::from_utf8_lossy(&browser.rest()).into_owned());
    };
    let json = "Content-Type: application/json";
    let session = |password: &str| format!(r#"{{"user":"boss","password":"{password}"}}"#);
    ask("POST /v1/session", json, &session(GUESS));
    ask("POST /v1/session", json, &format!("{}x", session(PASSWORD)));
    ask("POST /v1/session", json, &session(token));
    for way in [
        format!("Bearer {GUESS}"),
        format!("Basic {BASIC_GUESS}"),
        format!("Basic {GUESS}"),
        token.to_owned(),
    ] {
        ask("GET /v1/queues", &format!("Authorization: {way}"), "");
    }
    for path in ["/v1/server", "/v1/connections", "/metrics", "/v1/session", "/v1/history"] {
        for way in [format!("Basic {BASIC}"), format!("Bearer {token}")] {
            ask(&format!("GET {path}"), &format!("Authorization: {way}"), "");
        }
    }
    let worked = seen.iter().filter(|text| text.starts_with("HTTP/1.1 200")).count();
    assert_eq!(worked, 10, "not everybody has signed in: {seen:?}");
    seen
}
