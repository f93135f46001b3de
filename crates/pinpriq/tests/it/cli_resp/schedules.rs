//! The commands on schedules, each once or more.

use pinpriq_client::blocking::Resp;
use pinpriq_proto::wire::resp::{Value, Words};

use super::{Server, member_of};
use crate::peer::check;
use crate::wire::connect;

/// A moment that no test reaches, on a whole day.
const FAR: &str = "4102444800000";

#[test]
fn a_schedule_is_set_shown_listed_paused_and_dropped() {
    let server = Server::start();
    let at = ["--every", "1d", "--at", FAR, "--key", "k", "--priority", "-3", "--ttl", "1h"];
    let more = ["--ttr", "5s", "--missed", "all", "--overlap", "skip"];
    let set = [&["schedule", "set", "beat", "health", "check"][..], &at, &more].concat();
    assert_eq!(server.printed(&set), format!("{FAR}\n"));
    let shown = server.printed(&["schedule", "show", "beat"]);
    for (member, expected) in [
        ("queue", "health"),
        ("payload", "check"),
        ("every", "86400000"),
        ("at", FAR),
        ("cron", "-"),
        ("key", "k"),
        ("priority", "-3"),
        ("ttl", "3600000"),
        ("ttr", "5000"),
        ("on_missed", "all"),
        ("overlap", "skip"),
        ("paused", "no"),
    ] {
        assert_eq!(member_of(&shown, member), expected, "{member}");
    }

    server.done(&["schedule", "pause", "beat"]);
    assert_eq!(server.printed(&["schedule", "resume", "beat", "--json"]), "{\"ok\":true}\n");
    server.done(&["schedule", "pause", "beat"]);
    let shown = server.printed(&["schedule", "show", "beat", "--json"]);
    assert!(shown.starts_with("{\"name\":\"beat\",\"queue\":\"health\","), "{shown}");
    assert!(shown.contains("\"cron\":null,"), "{shown}");
    let own = "\"attempts_max\":null,\"backoff\":null,\"backoff_max\":null}\n";
    assert!(shown.ends_with(&format!("\"paused\":\"yes\",\"headers\":{{}},{own}")), "{shown}");

    assert_eq!(server.printed(&["schedule", "list"]), "beat\n");
    assert_eq!(server.printed(&["schedule", "list", "--json"]), "{\"schedule\":\"beat\"}\n");
    assert_eq!(server.printed(&["schedule", "drop", "beat"]), "1\n");
    assert_eq!(server.printed(&["schedule", "drop", "beat", "--json"]), "{\"count\":0}\n");
    assert_eq!(server.printed(&["schedule", "list"]), "");
}

#[test]
fn firing_puts_a_task_also_during_a_pause() {
    let server = Server::start();
    let set = ["schedule", "set", "nightly", "mail", "--cron", "30 2 * * *"];
    let zone = ["--zone", "Europe/Berlin", "--json"];
    let set = server.run_with(&[&set[..], &zone].concat(), b"from\nstdin\n");
    let next = String::from_utf8(set.stdout).unwrap();
    assert!(next.starts_with("{\"next_at\":") && set.status.success(), "{next}");
    let id = server.printed(&["schedule", "fire", "nightly"]);
    assert_eq!(server.known("mail", id.trim_end(), "schedule"), "nightly");
    assert_eq!(server.known("mail", id.trim_end(), "slot"), "-");
    server.done(&["schedule", "pause", "nightly"]);
    let fired = server.printed(&["schedule", "fire", "nightly", "--json"]);
    assert!(fired.starts_with("{\"id\":\""), "{fired}");
    check(&server.run(&["pop", "mail"]), 0, b"from\nstdin\n\n");
    let shown = server.printed(&["schedule", "show", "nightly"]);
    assert_eq!(member_of(&shown, "fired"), "2");
    assert_eq!(member_of(&shown, "payload"), "from\\nstdin\\n");
    assert_eq!(member_of(&shown, "zone"), "Europe/Berlin");

    let again = ["schedule", "set", "nightly", "mail", "-", "--every", "1h"];
    check(&server.run_with(&[&again[..], &["--at", FAR]].concat(), b"new"), 0, b"4102444800000\n");
}

#[test]
fn slots_put_tasks() {
    let server = Server::start();
    let at = server.printed(&["schedule", "set", "beat", "jobs", "tick", "--every", "100"]);
    let taken = server.printed(&["take", "jobs", "--wait", "-1", "--json"]);
    let end = format!("\"schedule\":\"beat\",\"slot\":{},\"headers\":{{}},", at.trim_end());
    assert!(taken.contains(&end), "{taken}");
}

#[test]
fn all_names_are_printed_page_by_page() {
    let server = Server::start();
    let names: Vec<String> = (1_000..2_001).map(|number| format!("s{number}")).collect();
    let set = |name: &String| Words::new(&format!("SCHEDULE SET {name} q p CRON @yearly"));
    let mut client = Resp::over(connect(&server.address));
    client.send(&names.iter().map(set).collect::<Vec<_>>()).unwrap();
    for _ in &names {
        assert!(matches!(client.reply().unwrap(), Value::Integer(_)));
    }
    server.printed(&["schedule", "set", "other", "q", "p", "--cron", "@yearly"]);
    let expected = names.join("\n") + "\n";
    assert_eq!(server.printed(&["schedule", "list", "--prefix", "s"]), expected);
    assert_eq!(server.printed(&["schedule", "list"]), format!("other\n{expected}"));
    assert_eq!(server.printed(&["schedule", "list", "--prefix", "x"]), "");
}

#[test]
fn the_server_checks_names_expressions_and_zones() {
    let server = Server::start();
    for command in ["show", "pause", "resume", "fire"] {
        server.refused(&["schedule", command, "no"], "NOTFOUND there is no schedule \"no\"");
    }
    let set = |more: &[&'static str]| [&["schedule", "set", "s", "q", "p"][..], more].concat();
    server.refused(&set(&["--cron", "61 0 * * *"]), "BADARG minute is 0 to 59, not \"61\"");
    let zone = ["--cron", "@daily", "--zone", "Europe/Nowhere"];
    server.refused(&set(&zone), "BADARG a zone is an IANA name");
    for wrong in [&[][..], &["--every", "99"], &["--every", "1s", "--cron", "@daily"]] {
        check(&server.run(&set(wrong)), 2, b"");
    }
}
