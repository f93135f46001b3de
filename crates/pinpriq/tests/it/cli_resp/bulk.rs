//! The command `pinpriq bulk`: what a filter chooses, and what is asked first.

use super::Server;
use crate::peer::check;

#[test]
fn a_filter_chooses_what_changes() {
    let server = Server::start();
    server.printed(&["put", "jobs", "p", "--count", "3", "--priority", "1"]);
    server.printed(&["put", "jobs", "p", "--count", "2", "--priority", "9"]);
    let late = ["bulk", "jobs", "--priorities", "5", "9"];
    let counted = server.printed(&[&late[..], &["--cancel", "--dry", "--json"]].concat());
    assert_eq!(counted, "{\"changed\":2,\"looked\":5}\n");
    let cancelled = server.printed(&[&late[..], &["--cancel", "--page", "1", "--json"]].concat());
    assert_eq!(cancelled, "{\"changed\":2,\"looked\":5}\n");
    assert_eq!(server.figure("jobs", "counts.R"), "3");
    server.refused(&["bulk", "jobs", "--move", "jobs"], "BADARG ");
    check(&server.run(&["bulk", "jobs"]), 2, b"");
    check(&server.run(&["bulk", "jobs", "--kill", "--cancel"]), 2, b"");
}

/// The value of an option may look like another option.
#[test]
fn many_changes_need_a_yes() {
    let server = Server::start();
    server.printed(&["put", "jobs", "p", "--count", "1001", "--key", "DRY"]);
    let kill = ["bulk", "jobs", "--kill", "--key", "DRY"];
    let complaint = check(&server.run_with(&kill, b"y\n"), 2, b"");
    assert!(complaint.contains("this would change 1001 tasks: give --yes"), "{complaint}");
    assert_eq!(server.figure("jobs", "counts.R"), "1001");
    let killed = server.printed(&[&kill[..], &["--yes", "--json"]].concat());
    assert_eq!(killed, "{\"changed\":1001,\"looked\":1001}\n");
}
