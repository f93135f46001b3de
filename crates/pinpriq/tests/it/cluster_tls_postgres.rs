//! A node on a PostgreSQL that encrypts and asks for a password and a certificate. Where PostgreSQL
//! is not installed the test passes without having tested anything, unless
//! `PINPRIQ_ENGINES=required` is set.

#![expect(clippy::disallowed_methods, reason = "a test writes files of its own")]

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::thread;

use pinpriq_testing::engines::PostgresPrograms;

use crate::authority::Authority;
use crate::cluster::{BETWEEN_TRIES, Process, TRIES};
use crate::peer::pinpriq;

/// What must never be shown.
const SECRET: &str = "s3cr3t";

/// Anna needs a password and a certificate.
const RULES: &str = "hostssl all anna all scram-sha-256 clientcert=verify-full\n";

/// Makes Anna, with her password.
const ANNA: &str = "CREATE ROLE anna LOGIN PASSWORD 's3cr3t of anna';\n\
                    GRANT CREATE ON DATABASE postgres TO anna;\n";

/// Starts a server, whose files are in this directory, and returns it with its port. Its
/// certificate is for 127.0.0.1.
fn start(directory: &Path, authority: &Authority) -> Option<(Process, u16)> {
    let programs = PostgresPrograms::find_or_skip()?;
    let server = authority.sign("server", &["127.0.0.1"]);
    for (name, text) in [
        ("ca.pem", &*authority.certificate),
        ("cert.pem", &server.certificate),
        ("key.pem", &server.key),
        ("rules", RULES),
    ] {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    programs.give(directory).unwrap();
    let data = directory.join("data");
    let initdb = programs
        .command("initdb")
        .args(["--username=pinpriq", "--auth=trust", "--no-sync", "--locale=C", "-D"])
        .arg(&data)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(initdb.status.success(), "{}", String::from_utf8_lossy(&initdb.stderr));
    let roles = directory.join("roles");
    std::fs::write(&roles, ANNA).unwrap();
    let single = programs
        .command("postgres")
        .args(["--single", "-j", "-D"])
        .arg(&data)
        .arg("postgres")
        .stdin(std::fs::File::open(&roles).unwrap())
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(single.status.success(), "{}", String::from_utf8_lossy(&single.stderr));
    // It is free once the listener is dropped.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = programs.command("postgres");
    command.args(["-h", "127.0.0.1", "-k", "", "-p", &port.to_string(), "-D"]).arg(&data);
    command.current_dir(directory).args(["-c", "ssl=on"]);
    for (setting, file) in [
        ("ssl_cert_file", "cert.pem"),
        ("ssl_key_file", "key.pem"),
        ("ssl_ca_file", "ca.pem"),
        ("hba_file", "rules"),
    ] {
        command.args(["-c", &format!("{setting}={}", directory.join(file).display())]);
    }
    let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    Some((Process(process), port))
}

#[test]
fn a_node_serves_on_a_postgresql_with_certificates_and_passwords() {
    let (dir, servers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let authority = Authority::new("authority of the tests");
    let Some((_server, port)) = start(servers.path(), &authority) else { return };
    let own = authority.sign("anna", &[]);
    let path = |name: &str| dir.path().join(name).display().to_string();
    for (name, text) in [
        ("ca.pem", &*authority.certificate),
        ("own.pem", &own.certificate),
        ("own.key", &own.key),
        ("password", "s3cr3t of anna\n"),
    ] {
        std::fs::write(path(name), text).unwrap();
    }
    let url = format!(
        "postgres://anna@127.0.0.1:{port}/postgres?schema=tls&channel_binding=require\
         &sslmode=verify-full&sslrootcert={}&sslcert={}&sslkey={}&passwordfile={}",
        path("ca.pem"),
        path("own.pem"),
        path("own.key"),
        path("password"),
    );
    let ask = |url: &str| {
        let output = pinpriq(&["cluster", "status"]).env("PINPRIQ_CLUSTER", url).output().unwrap();
        let (text, complaint) = (output.stdout, String::from_utf8(output.stderr).unwrap());
        assert!(!complaint.contains(SECRET), "{complaint}");
        (output.status.code().unwrap(), String::from_utf8(text).unwrap(), complaint)
    };
    // The server starts.
    let is_there = (0..TRIES).any(|_| {
        thread::park_timeout(BETWEEN_TRIES);
        ask(&url).0 == 3
    });
    assert!(is_there, "{:?}", ask(&url));
    let log = path("log");
    let mut command = pinpriq(&["serve", "--pinpriq", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
    command.args(["--link", "127.0.0.1:0", "--node", "n1", "--session-ttl", "2s"]);
    command.args(["--shards", "2", "--log-level", "trace", "--data", &path("n1")]);
    command.env("PINPRIQ_CLUSTER", &url).stderr(std::fs::File::create(&log).unwrap());
    let node = Process(command.stdout(Stdio::null()).spawn().unwrap());
    let is_served = (0..TRIES).any(|_| {
        thread::park_timeout(BETWEEN_TRIES);
        ask(&url).1.starts_with("all shards are served: 2 by 1 node\n")
    });
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(is_served && !text.contains(SECRET), "{text}");
    drop(node);
    for (from, to, sentence) in [
        ("sslmode=verify-full", "sslmode=disable", "sslmode=disable uses no certificates"),
        ("@127.0.0.1", "@localhost", "its certificate is not for the host localhost"),
        ("own.key", "nothing", "nothing cannot be read"),
        ("&sslkey=", "&passwordfile=", "it names passwordfile twice"),
    ] {
        let (code, _, complaint) = ask(&url.replace(from, to));
        assert!(code == 2 && complaint.contains(sentence), "{complaint}");
    }
    std::fs::write(path("password"), "s3cr3t of bert\n").unwrap();
    let (_, _, complaint) = ask(&url);
    assert!(complaint.contains("password authentication failed"), "{complaint}");
}
