//! The commands on batches, each once or more, and the options of puts that name batches.

use super::{Server, member_of};
use crate::peer::check;

#[test]
fn a_batch_is_opened_shown_listed_closed_and_dropped() {
    let server = Server::start();
    server.done(&["batch", "open", "b", "--ttl", "1h"]);
    assert_eq!(server.printed(&["batch", "open", "a", "--json"]), "{\"ok\":true}\n");
    server.printed(&["put", "jobs", "p", "--batch", "b", "--count", "2"]);
    let shown = server.printed(&["batch", "show", "b"]);
    let opened = member_of(&shown, "opened_at");
    let expected = format!(
        "name: b\nstate: open\ntotal: 2\npending: 2\nburied: 0\nacked: 0\nfailed: 0\nwaiting: 0\n\
         opened_at: {opened}\ndone_at: -\n"
    );
    assert_eq!(shown, expected);
    let shown = server.printed(&["batch", "show", "b", "--json"]);
    let expected = format!(
        "{{\"name\":\"b\",\"state\":\"open\",\"total\":2,\"pending\":2,\"buried\":0,\"acked\":0,\
         \"failed\":0,\"waiting\":0,\"opened_at\":{opened},\"done_at\":null}}\n"
    );
    assert_eq!(shown, expected);

    assert_eq!(server.printed(&["batch", "list"]), "a\nb\n");
    assert_eq!(server.printed(&["batch", "list", "--page", "1"]), "a\nb\n");
    let listed = server.printed(&["batch", "list", "--prefix", "b", "--json"]);
    assert_eq!(listed, "{\"batch\":\"b\"}\n");
    assert_eq!(server.printed(&["batch", "list", "--prefix", "c"]), "");

    assert_eq!(server.printed(&["batch", "close", "b"]), "2\n");
    assert_eq!(server.printed(&["batch", "close", "b", "--json"]), "{\"pending\":0}\n");
    let receipt = server.take("jobs");
    server.done(&["ack", "jobs", &receipt]);
    let receipt = server.take("jobs");
    server.done(&["bury", "jobs", &receipt]);
    let shown = server.printed(&["batch", "show", "b"]);
    let of = |member| member_of(&shown, member);
    assert_eq!([of("state"), of("pending"), of("buried"), of("acked")], ["closed", "1", "1", "1"]);

    server.refused(&["batch", "drop", "b"], "WRONGSTATE the batch \"b\" is not done");
    assert_eq!(server.printed(&["kill", "jobs", "4"]), "1\n");
    let shown = server.printed(&["batch", "show", "b"]);
    let of = |member| member_of(&shown, member);
    assert_eq!([of("state"), of("pending"), of("acked"), of("failed")], ["done", "0", "1", "1"]);
    assert_ne!(of("done_at"), "-");
    assert_eq!(server.printed(&["batch", "drop", "b"]), "1\n");
    assert_eq!(server.printed(&["batch", "drop", "b", "--json"]), "{\"count\":0}\n");
    assert_eq!(server.printed(&["batch", "list"]), "a\n");
}

#[test]
fn lines_join_a_batch_and_other_puts_wait_for_it() {
    let server = Server::start();
    let lines = ["put", "thumbs", "--lines", "--batch", "album"];
    check(&server.run_with(&lines, b"1.png\n2.png\n"), 0, b"2\n3\n");
    server.done(&["batch", "open", "other"]);
    let ready = ["put", "albums", "ready", "--after", "album", "--after", "other"];
    assert_eq!(server.printed(&[&ready[..], &["--if", "acked"]].concat()), "5\n");
    let sorry = ["put", "albums", "sorry", "--after", "album", "--if", "FAILED", "--json"];
    assert_eq!(server.printed(&sorry), "{\"id\":\"6\"}\n");
    check(&server.run(&["take", "albums"]), 4, b"");
    assert_eq!(server.known("albums", "5", "after"), "album other");
    assert_eq!(server.known("albums", "5", "ready_at"), "-");
    assert_eq!(server.known("thumbs", "2", "batch"), "album");
    assert_eq!(server.printed(&["scan", "thumbs", "--batch", "album"]), "2\t1.png\n3\t2.png\n");
    check(&server.run(&["scan", "thumbs", "--batch", "other"]), 4, b"");
    let bulk = ["bulk", "thumbs", "--kill", "--batch", "other", "--dry", "--json"];
    assert_eq!(server.printed(&bulk), "{\"changed\":0,\"looked\":2}\n");

    assert_eq!(server.printed(&["batch", "close", "other"]), "0\n");
    let explained = server.printed(&["explain", "albums", "5"]);
    assert!(explained.starts_with("5\tW\t"), "{explained}");
    assert!(explained.ends_with("\nafter\talbum\t2\n"), "{explained}");
    assert_eq!(server.printed(&["batch", "close", "album"]), "2\n");
    assert_eq!(server.printed(&["pop", "thumbs", "--count", "2"]), "1.png\n2.png\n");
    assert_eq!(server.printed(&["pop", "albums", "--wait", "-1"]), "ready\n");
    check(&server.run(&["await", "albums", "6"]), 18, b"skipped\tX\n");
}

#[test]
fn the_exit_code_tells_that_a_put_was_skipped() {
    let server = Server::start();
    server.done(&["batch", "open", "b"]);
    let put = ["put", "jobs", "p", "--after", "b", "--if", "failed", "--wait", "-1"];
    let waiting = server.client(&put).spawn().unwrap();
    assert_eq!(server.printed(&["batch", "close", "b"]), "0\n");
    check(&waiting.wait_with_output().unwrap(), 18, b"2\tskipped\n");
    check(&server.run(&["await", "jobs", "2"]), 18, b"skipped\tX\n");
    let json = b"{\"id\":\"3\",\"outcome\":\"skipped\"}\n";
    check(&server.run(&[&put[..], &["--json"]].concat()), 18, json);
    assert_eq!(server.figure("jobs", "skipped"), "2");
}

#[test]
fn awaiting_ends_when_a_batch_is_done_or_the_time_is_up() {
    let server = Server::start();
    server.printed(&["put", "jobs", "p", "--batch", "b"]);
    check(&server.run(&["batch", "await", "b", "--wait", "0"]), 13, b"timeout\n");
    check(&server.run(&["batch", "await", "b", "--wait-ms", "1"]), 13, b"timeout\n");
    let late = server.run(&["batch", "await", "b", "--wait", "0", "--json"]);
    assert_eq!(late.status.code(), Some(13));
    let told = String::from_utf8(late.stdout).unwrap();
    let start = "{\"outcome\":\"timeout\",\"batch\":{\"name\":\"b\",\"state\":\"open\",";
    assert!(told.starts_with(start) && told.ends_with(",\"done_at\":null}}\n"), "{told}");

    let awaiting = server.client(&["batch", "await", "b"]).spawn().unwrap();
    let json = server.client(&["batch", "await", "b", "--wait", "1h", "--json"]).spawn().unwrap();
    assert_eq!(server.printed(&["batch", "close", "b"]), "1\n");
    assert_eq!(server.printed(&["kill", "jobs", "2"]), "1\n");
    // It is done, although its task has failed.
    check(&awaiting.wait_with_output().unwrap(), 0, b"done\n");
    let told = String::from_utf8(json.wait_with_output().unwrap().stdout).unwrap();
    assert!(told.starts_with("{\"outcome\":\"done\",\"batch\":{\"name\":\"b\","), "{told}");
    assert!(told.contains("\"acked\":0,\"failed\":1,\"waiting\":0,"), "{told}");
    check(&server.run(&["batch", "await", "b"]), 0, b"done\n");
}

#[test]
fn a_cancel_ends_what_nobody_holds_and_asks_holders_to_stop() {
    let server = Server::start();
    server.printed(&["put", "jobs", "p", "--batch", "b", "--count", "3"]);
    server.printed(&["put", "rescue", "all", "--after", "b", "--if", "failed"]);
    let receipt = server.take("jobs");
    let cancel = ["batch", "cancel", "b", "--reason", "no more", "--grace", "1h"];
    assert_eq!(server.printed(&cancel), "3\n");
    let shown = server.printed(&["batch", "show", "b"]);
    let of = |member| member_of(&shown, member);
    assert_eq!([of("state"), of("pending"), of("failed")], ["closed", "1", "2"]);
    assert_eq!(server.known("jobs", "2", "cancelled"), "no more");
    server.refused(&["put", "jobs", "p", "--batch", "b"], "WRONGSTATE the batch \"b\" is being");
    // What is left out of a second one stays.
    assert_eq!(server.printed(&["batch", "cancel", "b", "--json"]), "{\"count\":1}\n");
    server.refused(&["touch", "jobs", &receipt], "CANCELLED no more");
    assert_eq!(server.printed(&["release", "jobs", &receipt]), "X\n");
    assert_eq!(server.printed(&["batch", "cancel", "b"]), "0\n");
    assert_eq!(server.printed(&["pop", "rescue", "--wait", "-1"]), "all\n");
    let shown = server.printed(&["batch", "show", "b"]);
    assert_eq!([member_of(&shown, "state"), member_of(&shown, "failed")], ["done", "3"]);
}

#[test]
fn the_server_checks_names_and_the_shell_what_goes_together() {
    let server = Server::start();
    for command in ["show", "close", "cancel", "await"] {
        server.refused(&["batch", command, "no"], "NOTFOUND there is no batch \"no\"");
    }
    server.done(&["batch", "open", "b"]);
    server.refused(&["batch", "open", "b"], "EXISTS there is a batch \"b\" already");
    let long = "n".repeat(256);
    for name in ["", &long] {
        server.refused(&["batch", "open", name], "BADARG the name of a batch has 1 to 255 bytes");
    }
    let put = |more: &[&'static str]| [&["put", "jobs", "p"][..], more].concat();
    server.refused(&put(&["--after", "no"]), "NOTFOUND there is no batch \"no\"");
    server.refused(&put(&["--after", "b", "--after", "b"]), "BADARG AFTER names a batch twice");
    let own = "BADARG a task cannot wait for the batch that it is in";
    server.refused(&put(&["--batch", "b", "--after", "b"]), own);
    assert_eq!(server.printed(&["batch", "close", "b"]), "0\n");
    server.refused(&put(&["--batch", "b"]), "WRONGSTATE the batch \"b\" is done");
    assert_eq!(server.figure("jobs", "put"), "0");

    for wrong in [
        &["--if", "acked"][..],
        &["--after", "b", "--if", "never"],
        &["--after", "b", "--at", "1"],
        &["--after", "b", "--held"],
        &["--after", "b", "--buried"],
    ] {
        check(&server.run(&put(wrong)), 2, b"");
    }
    for wrong in [&["batch"][..], &["batch", "open"], &["batch", "open", "c", "--ttl", "0"]] {
        check(&server.run(wrong), 2, b"");
    }
}
