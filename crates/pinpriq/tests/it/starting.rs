//! Starts that are given up: signals while a server loads.

use crate::files;
use crate::serving::Serving;
use crate::wire::push;

/// How many tasks there are to be loaded: many enough that it takes a while.
const TASKS: usize = 300_000;

/// How many are pushed at a time.
const AT_ONCE: usize = 10_000;

#[test]
fn figures_of_all_shards_go_to_the_log_on_a_signal_and_a_hang_up_does_nothing() {
    for shards in ["1", "2"] {
        let data = tempfile::tempdir().unwrap();
        let server = Serving::start(data.path(), &["--shards", shards]);
        server.send("-HUP");
        server.send("-USR1");
        let line = server.logged("\"section\":\"Server\"");
        assert!(line.contains(&format!(" shards:{shards} ")), "{line}");
        server.logged("\"section\":\"Traffic\"");
        server.stop();
    }
}

#[test]
fn a_signal_while_tasks_are_loaded_ends_the_start_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server =
        Serving::start(dir.path(), &["--durability", "interval", "--pinpriq-ttl-zero", "forever"]);
    let mut wire = server.connect();
    let tasks = push(b"q", 0, 1, b"", b"payload").repeat(AT_ONCE);
    for _ in 0..TASKS / AT_ONCE {
        wire.fenced(&tasks);
    }
    server.stop();
    let before = files::contents(dir.path());
    for signal in ["-TERM", "-INT"] {
        let server = Serving::launch(dir.path(), &[]);
        server.logged("\"loading\"");
        let (code, log) = server.signal_logged(signal);
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains("\"stopped while loading\""), "{log}");
        assert!(!log.contains("\"opened\"") && !log.contains("\"listening\""), "{log}");
        assert!(files::contents(dir.path()) == before);
    }
}
