//! The table of states and operations, cell by cell, over the wire.
//!
//! The rows are those of the specification. Each cell has a server of its own with one task, which
//! stands as the column says, seen by the connection that asks. The operation is carried out, and
//! both its answer and what has become of the task are compared. What was refused has changed
//! nothing at all.

use pinpriq_proto::wire::resp::Value;

use super::client::{Client, World, field, show};
use crate::world::test;

/// The columns: not there, R, T by the caller, T by another, W, B, Z, D.
const COLUMNS: [&str; 8] = ["X", "R", "T", "t", "W", "B", "Z", "D"];

/// A row: what is asked, and in each column the answer with the state that follows it.
///
/// `#` stands for the receipt of the current lease, and `~` for that of the lease before; where
/// there is neither, any other well-formed one is shown. A cell without a state leaves the task as
/// it is. `—` does not come up.
type Row = (&'static str, [&'static str; 8]);

const STALE: [&str; 8] = ["STALE"; 8];

/// The row of an operation by the bare id of a task that must be taken.
const fn bare(done: &'static str) -> [&'static str; 8] {
    ["NOTFOUND", "NOTTAKEN", done, "NOTOWNER", "NOTTAKEN", "NOTTAKEN", "NOTTAKEN", "NOTTAKEN"]
}

/// The row of an operation by the receipt of the current lease.
const fn proven(done: &'static str) -> [&'static str; 8] {
    ["—", "—", done, done, "—", "—", "—", "—"]
}

/// The row of a switch.
const fn switch(done: &'static str) -> [&'static str; 8] {
    ["NOTFOUND", done, "TAKEN", "TAKEN", done, done, done, done]
}

/// The row of a snatch.
const fn snatch(done: &'static str) -> [&'static str; 8] {
    ["NOTFOUND", "NOTTAKEN", done, done, "NOTTAKEN", "NOTTAKEN", "NOTTAKEN", "NOTTAKEN"]
}

const fn dig(done: &'static str) -> [&'static str; 8] {
    let wrong = "WRONGSTATE";
    ["NOTFOUND", wrong, "TAKEN", "TAKEN", wrong, done, wrong, wrong]
}

const fn restart(done: &'static str) -> [&'static str; 8] {
    ["NOTFOUND", "R", "TAKEN", "TAKEN", done, done, done, done]
}

const ROWS: [Row; 41] = [
    ("PUT q p ID id", put("id R")),
    ("PUT q p ID id DELAY 5", put("id W")),
    ("TAKE q", ["[] X", "taken T", "[]", "[]", "[]", "[]", "[]", "[]"]),
    ("POP q", ["[] X", "taken X", "[]", "[]", "[]", "[]", "[]", "[]"]),
    ("ACK q #", proven("OK X")),
    ("ACK q # ZOMBIE 9", proven("OK Z")),
    ("ACK q ~", STALE),
    ("ACK q ID id", bare("OK X")),
    ("RELEASE q #", proven("R R")),
    ("RELEASE q # DELAY 5", proven("W W")),
    ("RELEASE q ~", STALE),
    ("RELEASE q ID id", bare("R R")),
    ("BURY q #", proven("OK B")),
    ("BURY q ~", STALE),
    ("BURY q ID id", bare("OK B")),
    ("TOUCH q # BY 7", proven("moved T")),
    ("TOUCH q #", proven("moved T")),
    ("TOUCH q ~ BY 7", STALE),
    ("TOUCH q ID id BY 7", touch("moved R", "moved T")),
    ("TOUCH q ID id", touch("BADARG", "moved T")),
    ("UPDATE q id PAYLOAD x", update("OK R", "OK T", "NOTOWNER")),
    ("UPDATE q id PAYLOAD x RECEIPT #", proven("OK T")),
    ("UPDATE q id RECEIPT ~", {
        ["NOTFOUND", "STALE", "STALE", "STALE", "STALE", "STALE", "STALE", "STALE"]
    }),
    ("AWAIT q id WAIT -1", {
        ["NOTFOUND", "blocks", "blocks", "blocks", "blocks", "[buried B]", "[acked Z]", "[acked D]"]
    }),
    ("DIG q id", dig("R R")),
    ("DIG q id DELAY 5", dig("W W")),
    ("KICK q ID id", dig("R R")),
    ("PLOW q", ["0 X", "0", "0", "0", "0", "1 R", "0", "0"]),
    ("KICK q 3", ["0 X", "0", "0", "0", "0", "1 R", "0", "0"]),
    ("KILL q id", ["0 X", "1 X", "1 X", "1 X", "1 X", "1 X", "1 X", "1 X"]),
    ("SWITCH q id R", switch("R R")),
    ("SWITCH q id W DELAY 5", switch("W W")),
    ("SWITCH q id B", switch("B B")),
    ("SWITCH q id Z DELAY 5", switch("Z Z")),
    ("SWITCH q id D", switch("D D")),
    ("SNATCH q id", snatch("R R")),
    ("SNATCH q id DELAY 5", snatch("W W")),
    ("RESTART q id", restart("R R")),
    ("RESTART q id DELAY 5", restart("W W")),
    ("QUEUE TRUNCATE q", ["0 X", "1 X", "1 X", "1 X", "1 X", "1 X", "1 X", "1 X"]),
    ("RESET", ["RESET X", "RESET", "RESET R", "RESET", "RESET", "RESET", "RESET", "RESET"]),
];

const fn put(done: &'static str) -> [&'static str; 8] {
    [done, "EXISTS", "EXISTS", "EXISTS", "EXISTS", "EXISTS", "EXISTS", "EXISTS"]
}

const fn touch(ready: &'static str, taken: &'static str) -> [&'static str; 8] {
    ["NOTFOUND", ready, taken, "NOTOWNER", "null", "null", "null", "null"]
}

const fn update(
    ready: &'static str,
    taken: &'static str,
    elsewhere: &'static str,
) -> [&'static str; 8] {
    ["NOTFOUND", ready, taken, elsewhere, "OK W", "OK B", "OK Z", "OK D"]
}

/// How long anything that has a deadline lasts.
const LASTS_MS: u64 = 1_000;

/// A server with one task, and the two who may have taken it.
struct Bench {
    world: World,
    here: Client,
    elsewhere: Client,
    /// The receipts of the current lease and of the one before, if there were any.
    receipts: [Option<String>; 2],
}

impl Bench {
    /// `lasting` tasks are under a lease with a TTR and have a TTL.
    async fn new(column: &str, lasting: bool) -> Self {
        let world = World::plain().await;
        let (here, elsewhere) = (world.connect().await, world.connect().await);
        let mut bench = Self { world, here, elsewhere, receipts: [None, None] };
        bench.here.ask("QUEUE CREATE q IDS given").await;
        if column == "X" {
            return bench;
        }
        let ttl = if lasting && column == "R" { " TTL 1000" } else { "" };
        bench.here.ask(&format!("PUT q p ID id KEY k{ttl}")).await;
        let ttr = if lasting { " TTR 1000" } else { "" };
        let holder = if column == "t" { &mut bench.elsewhere } else { &mut bench.here };
        if matches!(column, "T" | "t") {
            // Two leases, so that there is a receipt of an earlier one, in the same millisecond.
            for slot in [1, 0] {
                let taken = holder.ask(&format!("TAKE q{ttr}")).await;
                bench.receipts[slot] = Some(super::client::receipt(&taken));
                if slot == 1 {
                    holder.ask("RELEASE q ID id").await;
                }
            }
        }
        match column {
            "W" => bench.here.told("SWITCH q id W DELAY 1000").await,
            "B" => bench.here.told("SWITCH q id B").await,
            "Z" => bench.here.told("SWITCH q id Z DELAY 1000").await,
            "D" => bench.here.told("SWITCH q id D").await,
            _ => String::new(),
        };
        bench
    }

    /// Returns everything that is known about the task.
    async fn look(&mut self) -> Value {
        self.elsewhere.ask("GET q id").await
    }

    /// The letter of the state of the task.
    async fn state(&mut self) -> String {
        let task = self.look().await;
        if task == Value::Null { "X".to_owned() } else { show(field(&task, "state")) }
    }

    /// Carries out the operation of a row, and returns the first word of its answer.
    async fn operate(&mut self, operation: &str) -> String {
        let current = self.receipts[0].clone().unwrap_or_else(|| "9-9-9".to_owned());
        let former = self.receipts[1].clone().unwrap_or_else(|| "1-1-77".to_owned());
        let line = operation.replace('#', &current).replace('~', &former);
        self.here.say(&line).await;
        if operation.contains("WAIT -1") {
            return self.wait_for_answer().await;
        }
        let reply = self.here.value().await;
        match (&reply, operation.split(' ').next().unwrap()) {
            (Value::Integer(_), "TOUCH") => "moved".to_owned(),
            (Value::Array(tasks), "TAKE" | "POP") if !tasks.is_empty() => "taken".to_owned(),
            _ => show(&reply),
        }
    }

    /// The reply, or that there is none since the request is blocked.
    async fn wait_for_answer(&mut self) -> String {
        while self.elsewhere.info("blocked_clients").await == "0" {
            if !self.here.is_silent() {
                return show(&self.here.value().await);
            }
        }
        "blocks".to_owned()
    }
}

#[test]
fn every_operation_does_in_every_state_what_the_table_says() {
    test(async || {
        for (operation, cells) in ROWS {
            for (column, cell) in COLUMNS.into_iter().zip(cells) {
                for lasting in [false, true] {
                    check(operation, column, cell, lasting).await;
                }
            }
        }
    });
}

async fn check(operation: &str, column: &str, cell: &str, lasting: bool) {
    let place = format!("{operation} in {column}, lasting {lasting}");
    if cell == "—" {
        return;
    }
    let mut bench = Bench::new(column, lasting).await;
    let before = bench.look().await;
    let was = bench.state().await;
    let answer = bench.operate(operation).await;
    let after = bench.look().await;
    // An outcome stands in brackets beside the state.
    let (expected, follows) = match cell.split_once(' ') {
        Some((answer, state)) if !cell.starts_with("[b") && !cell.starts_with("[a") => {
            (answer, Some(state))
        }
        _ => (cell, None),
    };
    // Without a deadline there is none to move; a lease that lasts outlives a reset.
    let has_none = !lasting && expected == "moved";
    let stays = operation == "RESET" && lasting;
    let expected = if has_none { "null" } else { expected };
    assert_eq!(answer, expected, "{place}");
    let (follows, is) = (follows.unwrap_or(&was), bench.state().await);
    assert_eq!(is, if stays { &was } else { follows }, "{place}");
    if answer.chars().all(|letter| letter.is_ascii_uppercase()) && answer.len() > 5
        || answer == "STALE"
        || matches!(answer.as_str(), "null" | "blocks" | "0" | "[]")
    {
        assert_eq!(after, before, "{place}");
    }
    let total = bench.elsewhere.ask("STATS").await;
    super::random::check_balance(&total);
    bench.world.end().await;
}

#[test]
fn every_deadline_does_in_every_state_what_the_table_says() {
    test(async || {
        // With a TTL that has passed as well, what would become ready is gone.
        let cells = [("R", "R"), ("T", "R"), ("t", "R"), ("W", "R"), ("B", "B"), ("Z", "X")];
        for (column, follows) in cells.into_iter().chain([("X", "X"), ("D", "D")]) {
            for lasting in [false, true] {
                let mut bench = Bench::new(column, lasting).await;
                let was = bench.state().await;
                bench.world.advance(LASTS_MS - 1);
                assert_eq!(bench.state().await, was, "{column}, lasting {lasting}");
                bench.world.advance(1);
                let expected = match (column, lasting) {
                    ("R", true) => "X",
                    ("T" | "t", false) => "T",
                    _ => follows,
                };
                assert_eq!(bench.state().await, expected, "{column}, lasting {lasting}");
                bench.world.end().await;
            }
        }
    });
}

#[test]
fn a_lease_that_comes_to_its_end_after_the_ttl_takes_the_task_along() {
    test(async || {
        for ends in ["RELEASE q ID id", "SNATCH q id", "RESET", "deadline", "bury"] {
            let mut bench = Bench::new("X", false).await;
            bench.here.ask("PUT q p ID id TTL 500").await;
            bench.here.ask("TAKE q TTR 1000").await;
            if ends == "RESET" {
                // Only a lease without a TTR ends with its connection.
                bench.here.ask("RELEASE q ID id").await;
                bench.here.ask("TAKE q").await;
            }
            bench.world.advance(500);
            assert_eq!(bench.state().await, "T", "{ends}");
            match ends {
                "deadline" => bench.world.advance(500),
                "bury" => {
                    bench.here.ask("BURY q ID id").await;
                    assert_eq!(bench.state().await, "B");
                    assert_eq!(bench.here.told("DIG q id").await, "X");
                }
                "RESET" => assert_eq!(bench.here.told("RESET").await, "RESET"),
                _ => assert_eq!(bench.here.told(ends).await, "X", "{ends}"),
            }
            assert_eq!(bench.state().await, "X", "{ends}");
            let total = bench.here.ask("STATS").await;
            assert_eq!(super::client::number(&total, "expired"), 1, "{ends}");
            bench.world.end().await;
        }
    });
}

#[test]
fn the_end_of_a_connection_ends_the_leases_that_live_as_long() {
    test(async || {
        for lasting in [false, true] {
            let mut bench = Bench::new("T", lasting).await;
            let name = bench.here.name();
            drop(bench.here);
            bench.here = bench.world.connect().await;
            bench.elsewhere.see_gone(&name).await;
            assert_eq!(bench.state().await, if lasting { "T" } else { "R" });
            let receipt = bench.receipts[0].clone().unwrap();
            let told = bench.elsewhere.told(&format!("ACK q {receipt}")).await;
            assert_eq!(told, if lasting { "OK" } else { "STALE" });
            bench.world.end().await;
        }
    });
}
