//! `pinpriq user`: the file of users, changed from the outside.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

use crate::files::{read, write};
use crate::peer::{check, pinpriq};
use crate::serving::Serving;

/// A directory with a file of users in it, or without.
struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("users.toml")
    }

    fn text(&self) -> String {
        String::from_utf8(read(&self.file())).unwrap()
    }

    fn command(&self, line: &str) -> Command {
        let arguments: Vec<&str> = ["user"].into_iter().chain(line.split(' ')).collect();
        let mut command = pinpriq(&arguments);
        command.env("PINPRIQ_USERS", self.file());
        command
    }

    fn run(&self, line: &str, stdin: &str) -> Output {
        let mut child = self.command(line).stdin(Stdio::piped()).spawn().unwrap();
        // A command that needs no password may have ended before.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Runs what succeeds without a complaint, and returns what it prints.
    #[track_caller]
    fn done(&self, line: &str) -> String {
        let output = self.run(line, "swordfish\n");
        check(&output, 0, &output.stdout);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs what is refused, and returns the complaint.
    #[track_caller]
    fn refused(&self, line: &str, stdin: &str, code: i32) -> String {
        let before = self.file().exists().then(|| self.text());
        let output = self.run(line, stdin);
        check(&output, code, b"");
        assert_eq!(self.file().exists().then(|| self.text()), before, "nothing was changed");
        String::from_utf8(output.stderr).unwrap()
    }
}

fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o7777
}

#[test]
fn users_are_added_changed_listed_and_removed() {
    let directory = Directory::new();
    let added = directory.done("add orders put:orders.* look:*");
    assert_eq!(added, "added orders with a password and 2 rules\n");
    assert_eq!(mode(&directory.file()), 0o600);
    let text = directory.text();
    assert!(text.contains("password = \"$argon2id$v=19$m=19456,t=2,p=1$"), "{text}");
    assert!(!text.contains("swordfish"), "{text}");

    directory.done("add anonymous put:jobs --no-password");
    assert_eq!(directory.done("rights orders take:a%20b"), "orders has the rights take:a%20b\n");
    let limits = directory.done("limits orders max_tasks=5 max_connections=9");
    assert_eq!(limits, "orders has the limits max_connections=9 max_tasks=5\n");
    assert_eq!(
        directory.done("list"),
        "user       password  tokens  limits                         rules\n\
         anonymous  -         -       -                              put:jobs\n\
         orders     yes       -       max_connections=9 max_tasks=5  take:a%20b\n"
    );
    assert_eq!(
        directory.done("limits orders share=acme"),
        format!("{} share=acme\n", limits.trim())
    );
    assert_eq!(
        directory.done("limits orders max_tasks=none max_connections=none share=none"),
        "orders has no limits\n"
    );
    assert_eq!(
        directory.done("list --json").lines().next_back().unwrap(),
        "{\"name\":\"orders\",\"password\":true,\"tokens\":[],\"rules\":[\"take:a%20b\"],\
         \"limits\":{\"max_connections\":null,\"max_bytes_in_flight\":null,\"max_tasks\":null,\
         \"max_requests_per_second\":null,\"share\":null}}"
    );
    assert_eq!(directory.done("rights orders --none"), "orders has no rights\n");
    let removed = directory.done("remove orders");
    assert_eq!(removed, "removed orders, who had a password, no rules and no tokens\n");
    assert!(directory.text().ends_with("[users.anonymous]\nrules = [\"put:jobs\"]\n"));
}

#[test]
fn a_token_is_printed_once_and_alone() {
    let directory = Directory::new();
    directory.done("add a --no-password");
    let output = directory.run("token a add ci", "");
    let token = String::from_utf8(output.stdout).unwrap();
    let explanation = String::from_utf8(output.stderr).unwrap();
    assert!(token.starts_with("pinpriq_") && token.len() == 52 && token.ends_with('\n'), "{token}");
    assert!(explanation.contains("not shown again") && !explanation.contains(token.trim()));
    assert!(!directory.text().contains(token.trim()));
    assert!(directory.text().contains("ci = \"sha256:"));
    assert_eq!(directory.done("token a list"), "ci\n");
    assert!(directory.refused("token a add ci", "", 2).contains("has a token ci already"));
    assert_eq!(directory.done("token a revoke ci"), "revoked the token ci of a\n");
    assert_eq!(directory.done("token a list"), "");
    assert!(directory.refused("token a revoke ci", "", 2).contains("has no token ci"));
}

#[test]
fn what_cannot_be_done_is_refused_in_words() {
    let directory = Directory::new();
    for line in ["list", "passwd a", "rights a put:b", "token a add t", "remove a"] {
        let complaint = directory.refused(line, "x\n", 2);
        assert!(complaint.contains("`pinpriq user add` makes one"), "{line}: {complaint}");
    }
    assert!(directory.refused("add a", "", 2).contains("stdin has no password"));
    assert!(directory.refused("add a", "\n", 2).contains("stdin has no password"));
    for short in ["p\n", "seven77\n", "\u{e4}\u{f6}\u{fc}\u{e4}\u{f6}\u{fc}\n"] {
        assert!(directory.refused("add a", short, 2).contains("at least 8 characters"), "{short}");
    }
    assert!(directory.refused("add a", &"x".repeat(1_025), 2).contains("longer than 1024 bytes"));
    directory.done("add a");
    let table = [
        ("add a", "there is a user a already"),
        ("passwd b", "there is no user b"),
        ("rights a puts:b", "\"puts:b\" is no rule"),
        ("rights a", "<RULE>"),
        ("limits a max_tasks=0", "from 1 to"),
        ("limits a share=", "no value"),
        ("token a add", "<TOKEN>"),
        ("token a list t", "`list` takes no name"),
        ("add b/c", "is no name"),
    ];
    for (line, words) in table {
        let complaint = directory.refused(line, "x\n", 2);
        assert!(complaint.contains(words), "{line}: {complaint}");
    }
    let broken = Directory::new();
    write(&broken.file(), b"[users.a]\npassword = \"swordfish\"\n");
    let complaint = broken.refused("list", "", 2);
    assert!(complaint.contains("cannot be used: line 2: "), "{complaint}");
    assert!(!complaint.contains("swordfish"), "{complaint}");
    let nowhere = pinpriq(&["user", "add", "a", "--no-password", "--users", "/nowhere/users.toml"]);
    check(&{ nowhere }.output().unwrap(), 1, b"");
}

/// What a command in a terminal shows while these answers are typed, and its exit code.
fn typed(mut command: Command, answers: &[(&str, &str)]) -> (String, Option<i32>) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let far = openpt(flags).unwrap();
    grantpt(&far).unwrap();
    unlockpt(&far).unwrap();
    let near = ioctl_tiocgptpeer(&far, flags).unwrap();
    command.stdin(near.try_clone().unwrap()).stderr(near.try_clone().unwrap());
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    // It holds copies of its own, which would keep the terminal open.
    drop(command);
    let (mut far, mut shown) = (File::from(far), String::new());
    for (prompt, answer) in answers {
        let from = shown.len();
        while !shown[from..].contains(prompt) {
            let mut bytes = [0; 256];
            let count = far.read(&mut bytes).unwrap();
            shown += std::str::from_utf8(&bytes[..count]).unwrap();
        }
        far.write_all(answer.as_bytes()).unwrap();
    }
    let code = child.wait().unwrap().code();
    let modes = tcgetattr(&near).unwrap().local_modes;
    assert!(modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG));
    drop(near);
    let mut bytes = [0; 4096];
    // At the end of a terminal there may be an error instead of an end.
    while let Ok(count @ 1..) = far.read(&mut bytes) {
        shown += std::str::from_utf8(&bytes[..count]).unwrap();
    }
    (shown, code)
}

#[test]
fn a_terminal_asks_twice_and_shows_nothing() {
    let directory = Directory::new();
    let (ask, again) = ("Password for a: ", "The same again: ");
    let typing = [(ask, "swordfisx\x7fh\r"), (again, "swordfish\r")];
    let (shown, code) = typed(directory.command("add a"), &typing);
    assert_eq!((shown.as_str(), code), ("Password for a: \r\nThe same again: \r\n", Some(0)));
    let before = directory.text();
    let (shown, code) =
        typed(directory.command("passwd a"), &[(ask, "one for all\r"), (again, "all for one\r")]);
    assert!(shown.contains("the two passwords differ") && code == Some(2), "{shown}");
    let (shown, code) = typed(directory.command("passwd a"), &[(ask, "p\r")]);
    assert!(shown.contains("at least 8 characters") && code == Some(2), "{shown}");
    let (shown, code) = typed(directory.command("passwd a"), &[(ask, "one\x03")]);
    assert!(shown.contains("nothing was changed") && code == Some(1), "{shown}");
    assert_eq!(directory.text(), before);
    let (_, code) =
        typed(directory.command("passwd a"), &[(ask, "one for all\r"), (again, "one for all\r")]);
    assert_eq!(code, Some(0));
    assert_ne!(directory.text(), before);
}

/// Runs a client command of a user, whose secret stands in this variable.
fn as_user(server: &Serving, line: &str, variables: &[(&str, &str)]) -> Output {
    let arguments: Vec<&str> = line.split(' ').collect();
    let mut command = pinpriq(&arguments);
    command.env("PINPRIQ_RESP_ADDRESS", server.door("resp")).envs(variables.iter().copied());
    command.output().unwrap()
}

#[test]
fn a_server_lets_its_users_in_and_reads_them_again() {
    let directory = Directory::new();
    directory.done("add ana put:orders.* look:orders.*");
    let added = directory.run("token ana add laptop", "");
    let token = String::from_utf8(added.stdout).unwrap();
    let file = directory.file();
    let flags = ["--resp", "127.0.0.1:0", "--users", file.to_str().unwrap()];
    let data = tempfile::tempdir().unwrap();
    let server = Serving::start(data.path(), &flags);
    let by_password = [("PINPRIQ_USER", "ana"), ("PINPRIQ_PASSWORD", "swordfish")];
    let by_token = [("PINPRIQ_TOKEN", token.trim())];
    for variables in [&by_password[..], &by_token[..]] {
        let output = as_user(&server, "put orders.new x", variables);
        check(&output, 0, &output.stdout);
    }
    let address = server.door("resp");
    let bench = format!("bench put --count 10 --queue orders.bench --address {address}");
    for (variables, code) in [(&by_token[..], 0), (&by_password, 0), (&[], 5)] {
        assert_eq!(as_user(&server, &bench, variables).status.code(), Some(code));
    }
    let told = |output: &Output| String::from_utf8(output.stderr.clone()).unwrap();
    let denied = as_user(&server, "put secrets x", &by_token);
    assert_eq!(denied.status.code(), Some(5));
    assert!(told(&denied).contains("NOPERM") && told(&denied).contains("put:secrets"));
    let stranger = as_user(&server, "put orders.new x", &[]);
    assert!(told(&stranger).contains("NOAUTH") && told(&stranger).contains("PINPRIQ_TOKEN"));
    let wrong = [("PINPRIQ_USER", "ana"), ("PINPRIQ_PASSWORD", "wrong")];
    assert!(told(&as_user(&server, "put orders.new x", &wrong)).contains("WRONGPASS"));

    directory.done("token ana revoke laptop");
    server.send("-HUP");
    server.logged("a user has changed");
    let revoked = told(&as_user(&server, "put orders.new x", &by_token));
    assert!(revoked.contains("WRONGPASS"), "{revoked}");
    write(&file, b"[users.ana]\nrules = 7\n");
    server.send("-HUP");
    server.logged("the users stay as they were");
    let (code, log) = server.signal_logged("-TERM");
    assert_eq!(code, Some(0));
    for secret in ["swordfish", token.trim(), "$argon2id"] {
        assert!(!log.contains(secret), "{secret} is in the log: {log}");
    }
}

#[test]
fn a_start_beyond_loopback_without_users_ends_with_a_sentence_that_helps() {
    let data = tempfile::tempdir().unwrap();
    let mut command =
        pinpriq(&["serve", "--pinpriq", "off", "--http", "off", "--resp", "0.0.0.0:0"]);
    let output = command.arg("--data").arg(data.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("pinpriq user add") && told.contains("--insecure-open"), "{told}");
}
