//! What the command line sends, as words.

use std::os::unix::ffi::OsStrExt as _;

use clap::Parser as _;
use pinpriq_proto::wire::resp::Words;

use super::{carrying, fanout, put, rounds, take};
use crate::args::{Cli, Command};
use crate::words::OsWords as _;

/// What a command line sends first. The payload of a put that has none is `stdin`.
fn words(command: &Command) -> Words {
    let or_stdin = |payload: Option<&std::ffi::OsString>| match payload {
        Some(payload) if payload != "-" => payload.as_bytes().to_vec(),
        _ => b"stdin".to_vec(),
    };
    match command {
        Command::Put(it) => put::words(it, &or_stdin(it.payload.as_ref())),
        Command::Take(it) if it.worker.exec.is_some() => take::worker_words(it, Some(30_000)),
        Command::Take(it) => take::words(it),
        Command::Export(it) => {
            let (queue, _) = it.parts();
            carrying::page_words(queue.unwrap_or_default().as_encoded_bytes(), b"0")
        }
        Command::Status(it) => rounds::list_words(it.prefix.as_deref(), it.count),
        Command::Publish(it) => fanout::publish_words(it, &or_stdin(it.payload.as_ref())),
        Command::Listen(it) => {
            let member = it.member.clone().unwrap_or_else(|| "own".into());
            take::listen_words(it, &member, Some(20_000))
        }
        Command::Asked(it) if it.is_paged => it.page(b"0"),
        Command::Asked(it) => {
            let held = it.held.as_ref().map(|(_, names)| names[0].as_bytes().to_vec());
            it.words(held.or_else(|| it.payload.as_ref().map(|it| or_stdin(Some(it)))).as_deref())
        }
        other => panic!("{other:?} does not speak RESP"),
    }
}

#[track_caller]
fn check(table: &[(&str, &str)]) {
    for (line, expected) in table {
        let line = ["pinpriq"].into_iter().chain(line.split(' '));
        let command = Cli::try_parse_from(line).unwrap().command;
        assert_eq!(words(&command).shown(), *expected);
    }
}

#[test]
fn putting_and_taking() {
    check(&[
        ("put q p", "PUT q p"),
        ("put q", "PUT q stdin"),
        ("put q p --priority -5 --key k --id i", "PUT q p KEY k PRIORITY -5 ID i"),
        ("put q p --unique u", "PUT q p UNIQUE u"),
        (
            "put q p --unique u --window 1h --on-dup replace",
            "PUT q p UNIQUE u WINDOW 3600000 ONDUP replace",
        ),
        ("put q p --room 1m", "PUT q p ROOM 60000"),
        ("put q p --buried", "PUT q p STATE B"),
        ("put q p --buried --reason later", "PUT q p STATE B REASON later"),
        ("put q p --priority None", "PUT q p PRIORITY NONE"),
        ("put q -- --json", "PUT q --json"),
        ("put q p --delay-ms 1h30m", "PUT q p DELAY 5400000"),
        (
            "put q p --delay 1h30m --wait 5s --ttl 2d",
            "PUT q p DELAY 5400000 TTL 172800000 WAIT 5000",
        ),
        ("take q --ttr 1m --wait -1", "TAKE QUEUES 1 q TTR 60000 WAIT -1"),
        (
            "put q p --delay-ms 0 --ttl-ms 2 --ttr-ms 3 --wait-ms -1",
            "PUT q p DELAY 0 TTL 2 TTR 3 WAIT -1",
        ),
        ("take q", "TAKE QUEUES 1 q TTR 30000"),
        ("put q p --held", "PUT q p HELD"),
        (
            "put q p --attempts none --backoff 1m --backoff-max 1h",
            "PUT q p ATTEMPTS NONE BACKOFF 60000 BACKOFFMAX 3600000",
        ),
        ("take q --id 7", "TAKE QUEUES 1 q TTR 30000 ID 7"),
        (
            "take q COUNT --count 5 --wait-ms -1 --ttr-ms 9 --from max --order newest --group",
            "TAKE QUEUES 2 q COUNT TTR 9 FROM MAX ORDER NEWEST GROUP COUNT 5 WAIT -1",
        ),
        ("take q --json", "TAKE QUEUES 1 q TTR 30000 WITHMETA"),
        ("pop q", "POP QUEUES 1 q"),
        (
            "pop q WAIT --count 5 --wait-ms -1 --from max --order newest --group --json",
            "POP QUEUES 2 q WAIT COUNT 5 WAIT -1 FROM MAX ORDER NEWEST GROUP WITHMETA",
        ),
        (
            "take a b --exec cat --count 5 --from min",
            "TAKE QUEUES 2 a b TTR 30000 FROM MIN WAIT 30000 WITHMETA",
        ),
    ]);
}

#[test]
fn finishing_and_giving_back() {
    check(&[
        ("ack q 1-2-3", "ACK q 1-2-3"),
        ("ack q 1-2-3 --payload p --zombie-ms 4", "ACK q 1-2-3 PAYLOAD p ZOMBIE 4"),
        (
            "release q 1-2-3 --tail --payload p --priority none --ttl-ms 4 --delay-ms 3",
            "RELEASE q 1-2-3 DELAY 3 TTL 4 PRIORITY NONE PAYLOAD p TAIL",
        ),
        ("bury q 1-2-3 --reason why --payload p", "BURY q 1-2-3 PAYLOAD p REASON why"),
        ("fail q 1-2-3", "FAIL q 1-2-3"),
        (
            "fail q 1-2-3 --payload p --delay 1m --reason why",
            "FAIL q 1-2-3 REASON why DELAY 60000 PAYLOAD p",
        ),
        ("fail q 1-2-3 --delay-ms 0", "FAIL q 1-2-3 DELAY 0"),
        ("touch q 1-2-3", "TOUCH q 1-2-3"),
        ("touch q --id 7 --by-ms 5", "TOUCH q ID 7 BY 5"),
        (
            "touch q 1-2-3 --progress half --checkpoint c",
            "TOUCH q 1-2-3 PROGRESS half CHECKPOINT c",
        ),
    ]);
}

#[test]
fn looking_and_changing() {
    check(&[
        ("peek q", "PEEK q COUNT 1"),
        (
            "peek q --count 3 --state b --from max --order oldest --json",
            "PEEK q FROM MAX ORDER OLDEST STATE B COUNT 3 WITHMETA",
        ),
        ("peek q --state waiting", "PEEK q STATE W COUNT 1"),
        ("get q 7", "GET q 7"),
        ("await q 7", "AWAIT q 7 WAIT -1"),
        ("await q 7 --wait-ms 0", "AWAIT q 7 WAIT 0"),
        ("explain q", "EXPLAIN q"),
        ("explain q 7 --member m", "EXPLAIN q 7 MEMBER m"),
        ("scan q", "SCAN q COUNT 100 CURSOR 0"),
        (
            "scan q --state waiting --key k --page 5 --json --member m",
            "SCAN q COUNT 5 STATE W KEY k WITHMETA MEMBER m CURSOR 0",
        ),
        ("export q", "EXPORT q COUNT 1000 CURSOR 0"),
        ("leases", "LEASES CURSOR 0"),
        ("leases q --member m", "LEASES q MEMBER m CURSOR 0"),
        ("dig q 7 --priority 1", "DIG q 7 PRIORITY 1"),
        ("plow q", "PLOW q"),
        ("plow q --count 3 --delay-ms 1 --ttl-ms 2", "PLOW q COUNT 3 DELAY 1 TTL 2"),
        ("kill q 7 8", "KILL q 7 8"),
        ("cancel q 7 --reason no --grace 2s", "CANCEL q 7 REASON no GRACE 2000"),
        ("kick q 5 --member m", "KICK q 5 MEMBER m"),
        ("kick q --id 7", "KICK q ID 7"),
        ("switch q 7 --to zombie --delay-ms 5", "SWITCH q 7 Z DELAY 5"),
        ("snatch q 7", "SNATCH q 7"),
        ("restart q 7 --ttl-ms 5", "RESTART q 7 TTL 5"),
        (
            "update q 7 --ttl-ms none --receipt 1-2-3 --priority -1 --payload p",
            "UPDATE q 7 PRIORITY -1 PAYLOAD p TTL NONE RECEIPT 1-2-3",
        ),
        ("move a b", "MOVE a b"),
        ("move a b --count 5 --state buried", "MOVE a b COUNT 5 STATE B"),
        ("redrive dead", "REDRIVE dead"),
        ("redrive dead --count 5", "REDRIVE dead COUNT 5"),
        ("status", "QUEUE LIST COUNT 50"),
        ("status --prefix m --count 9", "QUEUE LIST PREFIX m COUNT 9"),
        ("stats", "STATS"),
        ("stats q", "STATS q"),
    ]);
}

#[test]
fn queues() {
    check(&[
        ("queue create q", "QUEUE CREATE q"),
        (
            "queue create q --ids given --ttl-ms none --ttr-ms 5 --after-ack zombie --zombie-ms 9",
            "QUEUE CREATE q IDS GIVEN TTL NONE TTR 5 AFTERACK ZOMBIE ZOMBIE 9",
        ),
        ("queue set q --ttl none --ttr 1m", "QUEUE SET q TTL NONE TTR 60000"),
        ("queue set q --zombie 1h", "QUEUE SET q ZOMBIE 3600000"),
        ("queue set q --capacity none --after-ack keep", "QUEUE SET q AFTERACK KEEP CAPACITY NONE"),
        ("queue show q", "QUEUE SHOW q"),
        ("queue list", "QUEUE LIST COUNT 1000 CURSOR 0"),
        ("queue list --prefix p", "QUEUE LIST PREFIX p COUNT 1000 CURSOR 0"),
        ("queue truncate q", "QUEUE TRUNCATE q"),
        ("queue drop q", "QUEUE DROP q"),
        ("queue pause q", "QUEUE PAUSE q"),
        ("queue pause q in", "QUEUE PAUSE q IN"),
        ("queue resume q out", "QUEUE RESUME q OUT"),
    ]);
}

#[test]
fn named_limits() {
    check(&[
        ("limit set l", "LIMIT SET l"),
        ("limit set l --max 8 --rate 60/60000", "LIMIT SET l MAX 8 RATE 60/60000"),
        ("limit set l --max none --rate none", "LIMIT SET l MAX none RATE none"),
        ("limit show l", "LIMIT SHOW l"),
        ("limit list --prefix p", "LIMIT LIST PREFIX p COUNT 1000 CURSOR 0"),
        ("limit drop l", "LIMIT DROP l"),
        ("queue set q --uses l,m", "QUEUE SET q USES l,m"),
    ]);
}

#[test]
fn schedules() {
    check(&[
        ("schedule set s q p --every 30s", "SCHEDULE SET s q p EVERY 30000"),
        ("schedule set s q --every 100", "SCHEDULE SET s q stdin EVERY 100"),
        ("schedule set s q p --every 1m --at 5", "SCHEDULE SET s q p EVERY 60000 AT 5"),
        ("schedule set s q p --cron @daily", "SCHEDULE SET s q p CRON @daily"),
        (
            "schedule set s q p --cron @daily --zone Europe/Berlin --key k --priority -3 \
             --ttl-ms 1h --ttr-ms 5 --missed all --overlap skip",
            "SCHEDULE SET s q p CRON @daily ZONE Europe/Berlin KEY k PRIORITY -3 TTL 3600000 TTR 5 \
             MISSED all OVERLAP skip",
        ),
        (
            "schedule set s q p --every 1d --priority none --ttl 2 --ttr 3 --missed None \
             --overlap ALLOW",
            "SCHEDULE SET s q p EVERY 86400000 PRIORITY NONE TTL 2 TTR 3 MISSED none OVERLAP allow",
        ),
        ("schedule show s", "SCHEDULE SHOW s"),
        ("schedule list", "SCHEDULE LIST COUNT 1000 CURSOR 0"),
        ("schedule list --prefix p", "SCHEDULE LIST PREFIX p COUNT 1000 CURSOR 0"),
        ("schedule pause s", "SCHEDULE PAUSE s"),
        ("schedule resume s", "SCHEDULE RESUME s"),
        ("schedule drop s", "SCHEDULE DROP s"),
        ("schedule fire s", "SCHEDULE FIRE s"),
    ]);
}

#[test]
fn topics_and_members() {
    check(&[
        ("publish t p", "PUBLISH t p"),
        ("publish t", "PUBLISH t stdin"),
        (
            "publish t p --key k --priority none --deadline 1700000000000",
            "PUBLISH t p KEY k PRIORITY NONE DEADLINE 1700000000000",
        ),
        ("publish t p --ttl-ms 5", "PUBLISH t p TTL 5"),
        ("take t --member m --count 2", "TAKE QUEUES 1 t TTR 30000 MEMBER m COUNT 2"),
        ("ack t 1-2-3 --member m --zombie-ms 4", "ACK t 1-2-3 ZOMBIE 4 MEMBER m"),
        ("queue set t --capacity 5 --member m", "QUEUE SET t CAPACITY 5 MEMBER m"),
        ("listen t", "TAKE QUEUES 1 t WAIT 20000 WITHMETA MEMBER own"),
        ("listen t m --exec cat", "TAKE QUEUES 1 t TTR 30000 WAIT 20000 WITHMETA MEMBER m"),
        ("join t m", "JOIN t m"),
        ("join t m --lease-ms 5", "JOIN t m LEASE 5"),
        ("beat m", "BEAT m"),
        ("beat m --lease 5m", "BEAT m LEASE 300000"),
        ("leave m", "LEAVE m"),
        ("leave t m", "LEAVE t m"),
        ("members t", "MEMBERS t"),
    ]);
}

/// No command reads any of these lines.
const CONTRADICTIONS: &[&str] = &[
    "put q p --lines",
    "put q --lines --count 2",
    "put q p --priority high",
    "put q p --wait-ms -2",
    "put q p --ttl-ms 0",
    "take",
    "take q --once",
    "take q --jobs 2",
    "take q --exec cat --json",
    "take q --exec cat --wait-ms 1",
    "take q --exec cat --group",
    "pop",
    "pop q --wait-ms -2",
    "pop q --count 0",
    "pop q --ttr-ms 5",
    "wire",
    "push q p",
    "touch q",
    "kick q",
    "kick q 5 --id 7",
    "touch q --id 7",
    "touch q 1-2-3 --id 7 --by-ms 1",
    "ack q",
    "fail q",
    "fail q 1-2-3 --delay-ms -1",
    "move q",
    "move a b c",
    "move a b --count 0",
    "move a b --state x",
    "redrive",
    "redrive q --count 0",
    "kill q",
    "switch q 7",
    "queue",
    "queue pause q both",
    "limit",
    "limit set",
    "limit show l m",
    "schedule",
    "schedule set s q p",
    "schedule set s --every 1s",
    "schedule set s q p --every 1s --cron @daily",
    "schedule set s q p --every 99",
    "schedule set s q p --every 1s --zone UTC",
    "schedule set s q p --cron @daily --at 5",
    "schedule set s q p --every 1s --at soon",
    "schedule set s q p --every 1s --missed two",
    "schedule set s q p --every 1s --overlap maybe",
    "schedule show",
    "schedule drop a b",
    "schedule fire s --member m",
    "stats --member m",
    "queue create q --member m",
    "queue drop q --member m",
    "put q p --member m",
    "publish t p --lines",
    "publish t p --ttl-ms 5 --deadline 6",
    "publish t p --deadline soon",
    "join t",
    "leave",
    "leave a b c",
    "listen",
    "listen t --stay",
    "listen t m --lease-ms 999",
    "listen t m --exec cat --json",
    "listen t m --jobs 2",
];

#[test]
fn contradictions_are_wrong_usage() {
    for line in CONTRADICTIONS {
        let error = Cli::try_parse_from(["pinpriq"].into_iter().chain(line.split(' ')));
        assert_eq!(error.expect_err(line).exit_code(), 2, "{line}");
    }
}
