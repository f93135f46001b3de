//! Random requests on several connections at once: every reply can be read and is of a kind that
//! its command has, each refusal has a known first word, and the figures add up at all times.

use pinpriq_dice::Dice;
use pinpriq_proto::wire::resp::{Value, Words};

use super::client::{Client, World, elements, field, number, show};
use crate::world::test;

/// How many servers, and how many requests each is sent.
const SEEDS: u64 = 300;
const REQUESTS: usize = 150;

/// The first words that a refusal may have.
const WORDS: [&str; 19] = [
    "BADARG",
    "NOQUEUE",
    "NOTFOUND",
    "EXISTS",
    "IDREQUIRED",
    "NOTTAKEN",
    "NOTOWNER",
    "STALE",
    "TAKEN",
    "WRONGSTATE",
    "TOOLARGE",
    "FULL",
    "PAUSED",
    "BUSY",
    "NOAUTH",
    "NOPERM",
    "NOPROTO",
    "CLOSING",
    "ERR",
];

/// Checks that the figures of a reply to STATS add up.
pub(super) fn check_balance(stats: &Value) {
    let ways_out = ["acked", "expired", "killed", "dead", "evicted", "moved"];
    let gone = ways_out.map(|name| number(stats, name)).iter().sum::<i64>();
    let came = number(stats, "put") + number(stats, "revived");
    let present = number(stats, "present");
    assert_eq!(came, gone + present, "{stats:?}");
    let letters = ["R", "T", "W", "B", "Z", "D"];
    let counts = field(stats, "counts");
    // What is kept has been acknowledged.
    assert_eq!(letters[..4].iter().map(|letter| number(counts, letter)).sum::<i64>(), present);
    // What came into a state and did not leave it is there.
    let moves = pairs(field(stats, "transitions"));
    for letter in letters {
        let sum = |at: usize| -> i64 {
            let ends = |step: &&(String, i64)| step.0.split('-').nth(at) == Some(letter);
            moves.iter().filter(ends).map(|(_, times)| times).sum()
        };
        assert_eq!(sum(1) - sum(0), number(counts, letter), "{letter} in {stats:?}");
    }
}

/// The names and numbers of a map.
fn pairs(map: &Value) -> Vec<(String, i64)> {
    let pair = |key: &Value, value: &Value| match value {
        Value::Integer(number) => (show(key), *number),
        other => panic!("a number, not {other:?}"),
    };
    match map {
        Value::Map(pairs) => pairs.iter().map(|(key, value)| pair(key, value)).collect(),
        flat => elements(flat).chunks_exact(2).map(|two| pair(&two[0], &two[1])).collect(),
    }
}

/// One of these, more often than not.
fn maybe<'a>(dice: &mut Dice, of: &[&'a str]) -> &'a str {
    if dice.once_in(3) { dice.pick(of) } else { "" }
}

const QUEUES: [&str; 5] = ["a", "b", "given", "kept", "zombies"];
const DELAYS: [&str; 4] = ["DELAY 0", "DELAY 3", "DELAY 40", "DELAY x"];
const TTLS: [&str; 4] = ["TTL 5", "TTL 50", "TTL 0", "TTL none"];
const STATES: [&str; 7] = ["R", "W", "T", "B", "Z", "D", "X"];

/// A random request that answers at once, or as soon as the sending side ends.
fn request(dice: &mut Dice, receipts: &[String]) -> String {
    let queue = dice.pick(&QUEUES);
    let id = (1 + dice.index(40)).to_string();
    let id = if queue == "given" { dice.pick(&["x", "y", "z"]) } else { id.as_str() };
    let no_receipt = "3-1-3".to_owned();
    let receipt =
        if receipts.is_empty() { &no_receipt } else { &receipts[dice.index(receipts.len())] };
    let held = if dice.index(3) == 0 { format!("ID {id}") } else { receipt.clone() };
    let (delay, ttl) = (maybe(dice, &DELAYS), maybe(dice, &TTLS));
    let priority = maybe(dice, &["PRIORITY 1", "PRIORITY -5", "PRIORITY NONE", "PRIORITY p"]);
    let ends = maybe(dice, &["FROM MAX", "ORDER NEWEST", "GROUP", "COUNT 3", "WITHMETA"]);
    let given = if queue == "given" { format!("ID {id}") } else { String::new() };
    let mode = dice.pick(&["TAKE", "POP"]);
    let member = dice.pick(&["m", "n"]);
    let line = match dice.index(31) {
        0..=5 => format!(
            "PUT {queue} p {delay} {ttl} {priority} {given} {} {}",
            maybe(dice, &["KEY k", "KEY l"]),
            maybe(dice, &["TTR 20", "TTR 0"])
        ),
        6 => format!("PUT {queue} p {given} WAIT 0"),
        7..=9 => format!("{mode} QUEUES 2 {queue} a {ends}"),
        10 => format!("TAKE {queue} TTR 30 {ends}"),
        11 => format!("PEEK {queue} STATE {} {ends}", dice.pick(&STATES)),
        12 => format!("GET {queue} {id}"),
        13 => format!("ACK {queue} {held} {}", maybe(dice, &["ZOMBIE 10", "PAYLOAD q"])),
        14 => format!("ACK {queue} {receipt} 1-1-1 {receipt}"),
        15 => format!("RELEASE {queue} {held} {delay} {ttl} {priority} {}", maybe(dice, &["TAIL"])),
        16 => format!("BURY {queue} {held} {}", maybe(dice, &["REASON r"])),
        17 => format!("TOUCH {queue} {held} {}", maybe(dice, &["BY 10", "BY 0"])),
        18 => format!("{} {queue} {id} {delay} {ttl}", dice.pick(&["DIG", "SNATCH", "RESTART"])),
        19 => format!("{} {delay} {ttl}", ["PLOW a", "PLOW b COUNT 1"][dice.index(2)]),
        20 => format!("SWITCH {queue} {id} {} {delay} {ttl}", dice.pick(&STATES)),
        21 => format!("UPDATE {queue} {id} {priority} {ttl} {}", maybe(dice, &["PAYLOAD new"])),
        22 => format!("KILL {queue} {id} 1 2"),
        23 => format!("QUEUE {} {queue}", dice.pick(&["TRUNCATE", "PAUSE", "RESUME", "RESUME"])),
        24 => dice.pick(&["SUBSCRIBE a", "UNSUBSCRIBE", "CREDIT 2", "READY", "RESET"]).to_owned(),
        25 => dice.pick(&["QUEUE DROP a", "STATS", "HELLO 3", "QUEUE SET b TTL 30"]).to_owned(),
        26 => format!("JOIN {queue} {member} {}", maybe(dice, &["LEASE 30", "LEASE 0"])),
        27 => dice.pick(&["LEAVE a m", "LEAVE n", "BEAT m", "MEMBERS a", "MEMBERS b"]).to_owned(),
        _ => format!(
            "PUBLISH {queue} p {ttl} {priority} {}",
            maybe(dice, &["DEADLINE 1700000000060", "KEY k"])
        ),
    };
    // What can be done with a queue can be done with a lane.
    let line = match dice.index(4) {
        0 if !line.starts_with("PUT") => format!("{line} MEMBER {member}"),
        _ => line,
    };
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads the replies to this number of requests, checks them, and keeps the receipts among them.
async fn read(client: &mut Client, count: usize, receipts: &mut Vec<String>) {
    let mut left = count;
    while left > 0 {
        let value = client.value().await;
        if let Value::Error(text) = &value {
            let word = text.split(' ').next().unwrap();
            assert!(WORDS.contains(&word), "{text}");
        }
        let is_delivery = match &value {
            Value::Push(_) => true,
            Value::Array(parts) => parts.first().and_then(Value::as_bytes) == Some(b"task"),
            _ => false,
        };
        left -= usize::from(!is_delivery);
        note_receipts(&value, receipts);
    }
}

fn note_receipts(value: &Value, receipts: &mut Vec<String>) {
    match value {
        Value::Array(values) | Value::Push(values) => {
            for value in values {
                note_receipts(value, receipts);
            }
        }
        Value::Bulk(bytes) if bytes.split(|byte| *byte == b'-').count() == 3 => {
            receipts.push(String::from_utf8(bytes.clone()).unwrap());
        }
        _ => {}
    }
}

async fn play(seed: u64) {
    let world = World::plain().await;
    let mut dice = Dice::new(seed);
    let mut control = world.connect().await;
    control.ask("QUEUE CREATE given IDS given CAPACITY 2").await;
    control.ask("QUEUE CREATE kept AFTERACK keep").await;
    control.ask("QUEUE CREATE zombies AFTERACK zombie ZOMBIE 15 TTL 100 TTR 25").await;
    let mut clients = vec![world.connect().await, world.connect().await, world.connect().await];
    let mut receipts = Vec::new();
    let mut sent = 0;
    while sent < REQUESTS {
        let who = dice.index(clients.len());
        let (mut bytes, count) = (Vec::new(), 1 + dice.index(6));
        for _ in 0..count {
            let line = request(&mut dice, &receipts);
            Words::new(&line).put(&mut bytes);
        }
        clients[who].send_bytes(&bytes).await;
        read(&mut clients[who], count, &mut receipts).await;
        receipts.drain(..receipts.len().saturating_sub(20));
        sent += count;
        world.advance([0, 0, 1, 7][dice.index(4)]);
        check_balance(&control.ask("STATS").await);
        let queue = dice.pick(&QUEUES);
        match control.ask(&format!("STATS {queue}")).await {
            Value::Error(text) => assert!(text.starts_with("NOQUEUE"), "{text}"),
            stats => check_balance(&stats),
        }
        if dice.index(30) == 0 {
            clients[who] = world.connect().await;
        }
    }
    drop(clients);
    world.end().await;
}

#[test]
fn figures_add_up_and_replies_are_sound_whatever_is_asked() {
    test(async || {
        for seed in 1..=SEEDS {
            println!("seed {seed}");
            play(seed).await;
        }
    });
}
