//! A node on an etcd that encrypts, asks for certificates and has users; and passwords, which are
//! in no message. Where etcd is not installed the first test passes without having tested anything,
//! unless `PINPRIQ_ENGINES=required` is set.

#![expect(clippy::disallowed_methods, reason = "a test writes files of its own")]

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use pinpriq_testing::engines::has_etcd;

use crate::authority::Authority;
use crate::cluster::{BETWEEN_TRIES, Process, TRIES, gateway};
use crate::peer::{check, pinpriq};

/// What must never be shown.
const SECRET: &str = "s3cr3t";

/// An etcd with the user root alone, and the files of a node in `directory`.
struct Etcd<'d> {
    _process: Process,
    directory: &'d Path,
    secure: SocketAddr,
}

impl<'d> Etcd<'d> {
    fn start(directory: &'d Path) -> Option<Self> {
        if !has_etcd() {
            return None;
        }
        // They are free once the listeners are dropped.
        let listeners = [0; 3].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let [plain, secure, peer] = listeners.each_ref().map(|it| it.local_addr().unwrap());
        drop(listeners);
        let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
        let authority = Authority::new("authority of the tests");
        let server = authority.sign("etcd", &["127.0.0.1"]);
        let node = authority.sign("node", &[]);
        for (name, text) in [
            ("ca.pem", &*authority.certificate),
            ("cert.pem", &server.certificate),
            ("key.pem", &server.key),
            ("node.pem", &node.certificate),
            ("node.key", &node.key),
            ("password", "s3cr3t of root\n"),
        ] {
            std::fs::write(path(name), text).unwrap();
        }
        let mut command = Command::new("etcd");
        command.args(["--name=m0", "--client-cert-auth"]);
        for (name, value) in [
            ("data-dir", path("etcd")),
            ("listen-client-urls", format!("http://{plain},https://{secure}")),
            ("advertise-client-urls", format!("https://{secure}")),
            ("listen-peer-urls", format!("http://{peer}")),
            ("initial-advertise-peer-urls", format!("http://{peer}")),
            ("initial-cluster", format!("m0=http://{peer}")),
            ("cert-file", path("cert.pem")),
            ("key-file", path("key.pem")),
            ("trusted-ca-file", path("ca.pem")),
        ] {
            command.arg(format!("--{name}={value}"));
        }
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let etcd = Self { _process: Process(process), directory, secure };
        wait(plain);
        for (path, body) in [
            ("user/add", r#"{"name":"root","password":"s3cr3t of root"}"#),
            ("user/grant", r#"{"user":"root","role":"root"}"#),
            ("enable", "{}"),
        ] {
            let answer = gateway(plain, &format!("auth/{path}"), body);
            assert!(answer.contains("200 OK"), "{path}: {answer}");
        }
        Some(etcd)
    }

    /// The address of a cluster on it, for the user before the `@`, with these options.
    fn url(&self, user: &str, more: &str) -> String {
        let path = |name| self.directory.join(name).display().to_string();
        let (ca, cert, key) = (path("ca.pem"), path("node.pem"), path("node.key"));
        format!("etcds://{user}@{}/tls?cacert={ca}&cert={cert}&key={key}{more}", self.secure)
    }

    fn with_file(&self) -> String {
        let file = self.directory.join("password");
        self.url("root", &format!("&passwordfile={}", file.display()))
    }
}

fn wait(member: SocketAddr) {
    for _ in 0..TRIES {
        let is_there = TcpStream::connect(member).is_ok();
        if is_there && gateway(member, "kv/range", r#"{"key":"YQ=="}"#).contains("200 OK") {
            return;
        }
        thread::park_timeout(BETWEEN_TRIES);
    }
    panic!("etcd does not answer");
}

fn ask(url: &str, arguments: &[&str]) -> Output {
    let output = pinpriq(&["cluster"]).args(arguments).env("PINPRIQ_CLUSTER", url).output();
    let output = output.unwrap();
    for text in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(text);
        assert!(!text.contains(SECRET), "{text}");
    }
    output
}

#[test]
fn a_node_serves_on_an_etcd_with_certificates_and_users() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(dir.path()) else { return };
    let log = dir.path().join("log");
    let file = std::fs::File::create(&log).unwrap();
    let mut command = pinpriq(&["serve", "--pinpriq", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
    command.args(["--link", "127.0.0.1:0", "--node", "n1", "--session-ttl", "2s"]);
    command.args(["--shards", "2", "--log-level", "trace", "--data"]);
    command.arg(dir.path().join("n1")).env("PINPRIQ_CLUSTER", etcd.with_file());
    let node = Process(command.stdout(Stdio::null()).stderr(file).spawn().unwrap());
    let served = "all shards are served: 2 by 1 node\n";
    // The password may be in the address too.
    let given = etcd.url("root:s3cr3t%20of%20root", "");
    let is_served = (0..TRIES).any(|_| {
        let output = ask(&given, &["status"]);
        if output.status.code() == Some(0) {
            return String::from_utf8(output.stdout).unwrap().starts_with(served);
        }
        thread::park_timeout(BETWEEN_TRIES);
        false
    });
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(is_served, "{text}");
    assert!(text.contains("serving") && !text.contains(SECRET), "{text}");
    drop(node);
    for (url, sentence) in [
        (etcd.url("root:s3cr3t", ""), "it does not know this user with this password"),
        (
            etcd.url("root:s3cr3t", "").replace("127.0.0.1", "localhost"),
            "not for the host localhost",
        ),
        (etcd.url("root:s3cr3t", "").replace("node.key", "key.pem"), "node.pem and the key in"),
        (etcd.url("root:s3cr3t", "").replace("node.key", "password"), "holds no private key"),
        (etcd.url("root:s3cr3t", "").replace("node.key", "nothing"), "nothing cannot be read"),
    ] {
        let output = ask(&url, &["status"]);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(complaint.contains(sentence), "{complaint}");
    }
}

#[test]
fn addresses_that_cannot_be_used_are_not_repeated() {
    let dir = tempfile::tempdir().unwrap();
    for (place, wrong) in [
        "postgres://anna:s3cr3t@a/db",
        "postgres://anna:s3cr3t@a/db?schema=a.b",
        "postgres://anna:s3cr3t@a/db?schema=a&sslmode=nonsense",
        "etcds://anna:s3cr3t@a:1/x?nonsense=1",
        "etcd://anna:s3cr3t@a/x",
        "mysql://anna:s3cr3t@a/x",
    ]
    .into_iter()
    .enumerate()
    {
        let output = pinpriq(&["cluster", "status", "--cluster", wrong]).output().unwrap();
        is_silent(&output, 2);
        is_silent(&ask(wrong, &["status"]), 2);
        is_silent(&pinpriq(&["serve"]).env("PINPRIQ_CLUSTER", wrong).output().unwrap(), 2);
        let file = dir.path().join(place.to_string());
        std::fs::write(&file, format!("shards = 1\ncluster = \"{wrong}\"\n")).unwrap();
        let output = pinpriq(&["serve", "--config"]).arg(&file).output().unwrap();
        is_silent(&output, 2);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(complaint.contains("line 2: "), "{complaint}");
    }
    let given = "etcd://anna:s3cr3t@b:1/x";
    let help = pinpriq(&["serve", "--help"]).env("PINPRIQ_CLUSTER", given).output();
    is_silent(&help.unwrap(), 0);
}

/// The output has no password, and the exit code is this one.
#[track_caller]
fn is_silent(output: &Output, code: i32) {
    for text in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(text);
        assert!(!text.contains(SECRET), "{text}");
    }
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    if code != 0 {
        check(output, code, b"");
    }
}
