//! What the commands refuse, with which exit code, and that nothing has changed then.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use super::{Ran, Room, Server, ran, run};
use crate::files;
use crate::peer::pinpriq;

/// Checks that a command was refused with this code and in these words.
#[track_caller]
fn refused(output: &Ran, code: i32, words: &str) {
    assert_eq!((output.code, output.printed.as_str()), (code, ""), "{output:?}");
    assert!(output.told.starts_with("pinpriq: ") && output.told.contains(words), "{output:?}");
}

#[test]
fn a_place_without_backups_is_exit_4() {
    let room = Room::new();
    let created = Command::new("mkdir").arg(room.path("place")).status().unwrap();
    assert!(created.success());
    for there in [true, false] {
        for command in ["list", "verify"] {
            refused(&room.archive(command, &[]), 4, "");
        }
        refused(&room.archive("prune", &["--archive-keep", "1d"]), 4, "");
        refused(&room.restores("new", &[]), 4, "");
        refused(&room.restores("new", &["--dry-run"]), 4, "");
        assert!(!room.path("new").exists());
        if there {
            assert!(Command::new("rmdir").arg(room.path("place")).status().unwrap().success());
        }
    }
    assert!(!room.path("place").exists(), "a command that only reads has made the place");
}

#[test]
fn wrong_usage_is_exit_2() {
    let room = Room::new();
    let data = room.text("new");
    for line in [
        vec!["backup", "gs://bucket/prefix"],
        vec!["archive", "list", "ftp://host/x"],
        vec!["restore", "gs://bucket", "--data", &data],
        vec!["restore", "place", "--data", &data, "--until", "soon"],
        vec!["restore", "place", "--data", &data, "--line", "xyz"],
        vec!["archive", "prune", "place"],
        vec!["archive", "prune", "place", "--archive-keep", "0"],
        vec!["archive", "prune", "place", "--archive-keep", "7"],
        vec!["archive", "prune", "place", "--archive-keep", "59m"],
        vec!["restore", "place", "--data", "s3://bucket/prefix"],
        vec!["restore", "place", "--data", &data, "--until", "1767323045"],
        vec!["restore", "place", "--data", &data, "--until", "2026-01-02T03:04:05"],
        vec!["backup", "place", "--address", "127.0.0.1"],
        vec!["backup", "place", "--address", "redis://127.0.0.1:1"],
        vec!["backup", "place", "--address", "http://ana:secret@127.0.0.1:1"],
    ] {
        let output = run(&line);
        assert_eq!((output.code, output.printed.as_str()), (2, ""), "{line:?}: {output:?}");
        assert!(!output.told.contains("secret"), "{output:?}");
    }
}

#[test]
fn a_directory_that_is_not_empty_is_exit_2_and_stays_as_it_is() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "x");
    room.back_up(&mut server);
    server.stop();
    let before = files::contents(&room.path("data"));
    refused(&room.restores("data", &[]), 2, "give a new, empty directory");
    refused(&room.restores("data", &["--dry-run"]), 2, "give a new, empty directory");
    assert!(files::contents(&room.path("data")) == before, "the directory was changed");
    // An empty one is as good as none.
    assert!(Command::new("mkdir").arg(room.path("empty")).status().unwrap().success());
    room.restore("empty", &[]);
}

#[test]
fn a_place_in_a_data_directory_is_exit_2_and_so_is_data_in_a_place() {
    let room = Room::new();
    let mut server = room.serve_two("data");
    server.put("jobs", "x");
    for inside in ["data", "data/place", "data/shard-00/place"] {
        refused(&server.backs_up(&room.text(inside), &[]), 2, "lies in the data directory");
    }
    room.back_up(&mut server);
    server.stop();
    let before = room.place();
    for inside in ["place/new", "place/marks/new"] {
        refused(&room.restores(inside, &[]), 2, "give a directory outside");
    }
    assert!(room.place() == before, "the place was changed");
}

#[test]
fn a_restore_that_is_broken_off_says_what_it_leaves() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "x");
    room.back_up(&mut server);
    server.stop();
    let place = room.place();
    let name = place.keys().find(|name| name.contains("/parts/")).unwrap();
    files::flip(&room.path("place").join(name), place[name].len() - 1);
    let output = room.restores("new", &[]);
    let words = format!("{} is unfinished and can be removed\n", room.text("new"));
    refused(&output, 3, &words);
    assert!(!output.told.contains("nothing was changed"), "{output:?}");
    refused(&room.restores("new", &[]), 2, "is what a restore has left that was broken off");
}

#[test]
fn a_backup_that_a_signal_ends_is_ended_in_the_server() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "x");
    // A store that never answers, so that the backup goes on.
    let store = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", store.local_addr().unwrap());
    // Four are the most at once.
    for signal in ["-TERM", "-INT", "-TERM", "-INT"] {
        let mut command = pinpriq(&["backup", "s3://bucket/prefix"]);
        command.env("PINPRIQ_HTTP_ADDRESS", server.serving.door("http"));
        command.env("AWS_ENDPOINT", &endpoint).env("AWS_ALLOW_HTTP", "true");
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
        for proxy in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            command.env_remove(proxy);
        }
        let child = command.spawn().unwrap();
        let asked = store.accept().unwrap();
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let output = child.wait_with_output().unwrap();
        let number = if signal == "-TERM" { 15 } else { 2 };
        assert_eq!(output.status.signal(), Some(number), "{output:?}");
        drop(asked);
    }
    room.back_up(&mut server);
    server.stop();
}

#[test]
fn what_no_backup_has_is_exit_4() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "x");
    let line = room.back_up(&mut server)["line"].as_str().unwrap().to_owned();
    server.stop();
    refused(&room.restores("new", &["--line", "00000000000000aa"]), 4, "line 00000000000000aa");
    let early = room.restores("new", &["--until", "2001-02-03T04:05:06Z"]);
    refused(&early, 4, &format!("the first moment of line {line} that can be restored is 20"));
    assert!(!room.path("new").exists());
}

#[test]
fn the_place_of_another_server_is_refused() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "x");
    room.back_up(&mut server);
    server.stop();
    let before = room.place();
    let stranger = room.serve("stranger");
    refused(&stranger.backs_up(&room.text("place"), &[]), 3, "");
    stranger.stop();
    assert!(room.place() == before, "the place was changed");
}

#[test]
fn an_older_copy_that_was_put_back_is_refused() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "x");
    server.stop();
    let copied = Command::new("cp").arg("-r").args([room.path("data"), room.path("old")]).status();
    assert!(copied.unwrap().success());
    for payload in ["y", "z"] {
        let mut server = room.serve("data");
        server.put("jobs", payload);
        room.back_up(&mut server);
        server.stop();
    }
    let before = room.place();
    let mut server = room.serve("old");
    server.put("jobs", "other");
    server.settled();
    refused(&server.backs_up(&room.text("place"), &[]), 3, "");
    server.stop();
    assert!(room.place() == before, "the place was changed");
    // The one that has gone on may still be backed up.
    let mut server = room.serve("data");
    room.back_up(&mut server);
    server.stop();
}

#[test]
fn a_server_that_is_not_there_or_has_no_files_is_told() {
    let room = Room::new();
    let place = room.text("place");
    let output = run(&["backup", &place, "--address", "127.0.0.1:1"]);
    refused(&output, 1, "no connection to 127.0.0.1:1: ");
    let server = Server::start(&room.path("data"), &["--durability", "memory"]);
    let output = server.backs_up(&place, &[]);
    refused(&output, 5, "");
    let resp = server.serving.door("resp");
    refused(&run(&["backup", &place, "--address", &resp]), 1, "the address of the HTTP door?");
    server.stop();
    assert!(!room.path("place").exists(), "a backup that was refused has made the place");
}

/// Changes the file of users and returns what is printed.
fn user(file: &str, line: &str) -> String {
    let arguments: Vec<&str> = ["user"].into_iter().chain(line.split(' ')).collect();
    let mut command = pinpriq(&arguments);
    let mut child = command.args(["--users", file]).stdin(Stdio::piped()).spawn().unwrap();
    // A command that asks for no password may have ended already.
    let _ = writeln!(child.stdin.take().unwrap(), "correct-horse-battery");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{line}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_backup_needs_the_rights_to_look_and_to_manage() {
    let room = Room::new();
    let users = room.text("users.toml");
    user(&users, "add copier manage:* look:*");
    user(&users, "add looker put:* look:*");
    let (copier, looker) = (user(&users, "token copier add x"), user(&users, "token looker add x"));
    let flags = ["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--users", &users];
    let serving = crate::serving::Serving::start(&room.path("data"), &flags);
    let place = room.text("place");
    let back_up = |variables: &[(&str, &str)]| {
        let mut command = pinpriq(&["backup", &place, "--address", &serving.door("http")]);
        ran(command.envs(variables.iter().copied()))
    };
    refused(&back_up(&[]), 5, "Set PINPRIQ_TOKEN, or PINPRIQ_USER and PINPRIQ_PASSWORD");
    refused(&back_up(&[("PINPRIQ_TOKEN", &looker)]), 5, "NOPERM");
    let wrong = [("PINPRIQ_USER", "copier"), ("PINPRIQ_PASSWORD", "wrong-horse-guess")];
    refused(&back_up(&wrong), 5, "WRONGPASS");
    assert!(!room.path("place").exists(), "a backup that was refused has made the place");
    let password = [("PINPRIQ_USER", "copier"), ("PINPRIQ_PASSWORD", "correct-horse-battery")];
    for who in [&[("PINPRIQ_TOKEN", &*copier)][..], &password] {
        let output = back_up(who);
        assert_eq!((output.code, output.told.as_str()), (0, ""), "{output:?}");
        assert!(output.printed.starts_with("backed up to 20"), "{output:?}");
    }
    serving.stop();
}
