//! The commands of the program against a server that encrypts, and what they say if that fails.

use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::authority::{Authority, Papers};
use crate::files::write;
use crate::peer::{check, pinpriq};
use crate::serving::{Serving, address_in};

/// A directory with the certificate of a server for `localhost`, and of who has signed it.
struct Folder {
    folder: TempDir,
    authority: Authority,
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own = Self { folder, authority: Authority::new("of servers") };
        write(&own.path("ca.pem"), own.authority.certificate.as_bytes());
        own.keep("server", &own.authority.sign("server", &["localhost"]));
        own.keep("ana", &own.authority.sign("ana", &[]));
        own
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn keep(&self, name: &str, papers: &Papers) {
        write(&self.path(&format!("{name}.pem")), papers.certificate.as_bytes());
        write(&self.path(&format!("{name}.key")), papers.key.as_bytes());
    }

    /// Starts a server that encrypts, with more flags.
    fn serve(&self, more: &[&str]) -> Serving {
        let (cert, key) = (self.text("server.pem"), self.text("server.key"));
        let mut flags = vec!["--durability", "memory"];
        flags.extend(["--pinpriqs", "127.0.0.1:0", "--resps", "127.0.0.1:0"]);
        flags.extend(["--tls-cert", &cert, "--tls-key", &key]);
        flags.extend(more);
        Serving::launch(self.folder.path(), &flags)
    }

    /// Runs a command that believes whom our authority has signed for.
    fn run(&self, address: &str, line: &str) -> Output {
        let (words, ca) = (line.split(' '), self.text("ca.pem"));
        let mut arguments: Vec<&str> = words.collect();
        arguments.extend(["--address", address, "--ca", &ca]);
        pinpriq(&arguments).output().unwrap()
    }
}

/// Where a door listens for encrypted connections.
fn encrypted_door(server: &Serving, door: &str) -> String {
    address_in(&server.logged(&format!("\"door\":\"{door}\",\"tls\":true")))
}

/// The address of a door under the name that its certificate has.
fn named(server: &Serving, scheme: &str, door: &str) -> String {
    let address = encrypted_door(server, door);
    format!("{scheme}localhost:{}", address.rsplit_once(':').unwrap().1)
}

#[test]
fn commands_encrypt_when_they_are_told_to() {
    let folder = Folder::new();
    let server = folder.serve(&[]);
    let resp = named(&server, "rediss://", "resp");
    check(&folder.run(&resp, "put q payload"), 0, b"1\n");
    check(&folder.run(&resp, "pop q"), 0, b"payload\n");
    let plain = named(&server, "", "resp");
    check(&folder.run(&plain, "put q payload"), 0, b"2\n");
    let told = folder.run(&plain, "take q --count 1 --exec env").stdout;
    let told = String::from_utf8(told).unwrap();
    assert!(told.contains(&format!("PINPRIQ_RESP_ADDRESS={resp}\n")), "{told}");
    let wire = named(&server, "pinpriqs://", "pinpriq");
    check(&folder.run(&wire, "wire push w packet"), 0, b"");
    check(&folder.run(&wire, "wire pop w"), 0, b"packet\n");
    let bench = folder.run(&resp, "bench mixed --count 1000 --connections 2 --depth 2");
    assert_eq!(bench.status.code(), Some(0), "{bench:?}");
    let output = pinpriq(&["put", "q", "x", "--address", &plain, "--insecure"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("it is unknown who answers"));
}

#[test]
fn a_backup_is_asked_for_over_https() {
    let folder = Folder::new();
    let server = folder.serve(&["--https", "127.0.0.1:0"]);
    let https = named(&server, "https://", "http");
    let line = format!("backup {}", folder.text("place"));
    // It gets through, and a server without files says so.
    let told = check(&folder.run(&https, &line), 5, b"");
    assert!(!told.contains("is this the HTTP door"), "{told}");
    write(&folder.path("other.pem"), Authority::new("other").certificate.as_bytes());
    let (place, other) = (folder.text("place"), folder.text("other.pem"));
    let told = complaint(&["backup", &place, "--address", &https, "--ca", &other], 1);
    assert!(told.contains("not signed by an authority that is trusted here"), "{told}");
    let plain = named(&server, "", "http");
    let told = complaint(&["backup", &place, "--address", &plain], 1);
    assert!(told.contains("give --tls"), "{told}");
}

#[test]
fn a_certificate_says_who_a_command_is() {
    let folder = Folder::new();
    write(&folder.path("users.toml"), b"[users.ana]\nrules = [\"put:*\"]\n");
    let (users, ca) = (folder.text("users.toml"), folder.text("ca.pem"));
    let server = folder.serve(&["--users", &users, "--tls-client-ca", &ca]);
    let resp = named(&server, "rediss://", "resp");
    let (cert, key) = (folder.text("ana.pem"), folder.text("ana.key"));
    let own = format!("put q payload --client-cert {cert} --client-key {key}");
    check(&folder.run(&resp, &own), 0, b"1\n");
    let complaint = check(&folder.run(&resp, "put q payload"), 1, b"");
    assert!(complaint.contains("--client-cert and --client-key"), "{complaint}");
}

/// Runs a command that fails, and returns its complaint.
#[track_caller]
fn complaint(arguments: &[&str], code: i32) -> String {
    let output = pinpriq(arguments).output().unwrap();
    check(&output, code, b"");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_is_wrong_with_an_encrypted_connection_is_said() {
    let folder = Folder::new();
    let server = folder.serve(&[]);
    let address = encrypted_door(&server, "resp");
    let (encrypted, named) = (format!("rediss://{address}"), named(&server, "rediss://", "resp"));
    let ca = folder.text("ca.pem");
    let told = complaint(&["put", "q", "x", "--address", &encrypted, "--ca", &ca], 1);
    assert!(told.contains("not for the host 127.0.0.1, but for localhost"), "{told}");
    write(&folder.path("other.pem"), Authority::new("other").certificate.as_bytes());
    let other = folder.text("other.pem");
    let told = complaint(&["put", "q", "x", "--address", &named, "--ca", &other], 1);
    assert!(told.contains("not signed by an authority that is trusted here"), "{told}");
    assert!(told.contains("--ca"), "{told}");
    let told = complaint(&["put", "q", "x", "--address", &address], 1);
    assert!(told.contains("--tls"), "{told}");
    let told = complaint(&["put", "q", "x", "--address", "rediss://a:secret@b:1"], 2);
    assert!(told.contains("PINPRIQ_TOKEN") && !told.contains("secret"), "{told}");
}

#[test]
fn settings_that_encrypt_nothing_are_refused() {
    let folder = Folder::new();
    let (cert, key) = (folder.text("server.pem"), folder.text("server.key"));
    let data = folder.text("data");
    let serve = |flags: &[&str]| {
        let all: Vec<&str> = ["serve", "--data", &data].iter().chain(flags).copied().collect();
        complaint(&all, 2)
    };
    let told = serve(&["--resps", "127.0.0.1:0"]);
    assert!(told.contains("tls-cert is missing"), "{told}");
    let told = serve(&["--resps", "127.0.0.1:0", "--tls-cert", &cert]);
    assert!(told.contains("tls-key is missing"), "{told}");
    let told = serve(&["--tls-cert", &cert, "--tls-key", &key]);
    assert!(told.contains("has no use"), "{told}");
    let told = serve(&["--tls-client", "optional"]);
    assert!(told.contains("tls-client-ca"), "{told}");
    let told = serve(&["--resps", "127.0.0.1:0", "--tls-cert", &cert, "--tls-key", &cert]);
    assert!(told.contains("holds no private key"), "{told}");
    assert!(!Path::new(&data).exists(), "nothing was touched");
}
