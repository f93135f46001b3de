//! A backlog whose payloads are on the disk, and clients that want to see it and do not read.

use pinpriq_proto::wire::resp::Value;

use super::redis::{Redis, figure, payloads, serve};

const TASKS: usize = 120;
const PAYLOAD_BYTES: usize = 512 << 10;

/// What the server may grow by while no client reads. All answers together have twelve times that.
const GROWTH_BYTES_MAX: u64 = 40 << 20;

/// A payload that tells its task from every other, from its first byte to its last.
fn payload(number: usize) -> String {
    let mut text = format!("{number:06}").repeat(PAYLOAD_BYTES / 6);
    text.truncate(PAYLOAD_BYTES);
    text
}

fn put_all(client: &mut Redis) {
    // So that it is there also while everything is under way.
    client.ask("QUEUE CREATE q");
    for number in 0..TASKS {
        client.ask(&format!("PUT q {}", payload(number)));
    }
}

fn check_payloads(reply: &Value) {
    let shown = payloads(reply);
    assert_eq!(shown.len(), TASKS);
    for (number, shown) in shown.iter().enumerate() {
        assert!(*shown == payload(number), "task {number} is shown with another payload");
    }
}

/// Clients look at everything, or pop it, and read nothing; the others notice nothing of it.
fn unread_answers_stay_on_the_disk(shards: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (server, address) = serve(dir.path(), &["--memory-limit", "65536", "--shards", shards]);
    let mut client = Redis::connect(&address);
    put_all(&mut client);
    let before = server.resident_bytes();
    let mut slow: Vec<Redis> = (0..8).map(|_| Redis::connect(&address)).collect();
    for slow in &mut slow {
        slow.say(&format!("PEEK q COUNT {TASKS}"));
    }
    // Everything that is read ahead has been read by then.
    for _ in 0..500 {
        assert_eq!(client.reply("PING"), "PONG");
    }
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < GROWTH_BYTES_MAX, "the server has grown by {} MiB", grown >> 20);
    for slow in &mut slow {
        check_payloads(&slow.value());
    }

    // What was popped and not read goes back with its payload.
    let mut popping = Redis::connect(&address);
    popping.say(&format!("POP q COUNT {TASKS}"));
    while figure(&client.ask("STATS q"), "acked") == 0 {}
    drop(popping);
    while figure(&client.ask("STATS q"), "present") < i64::try_from(TASKS).unwrap() {}
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 2 * GROWTH_BYTES_MAX, "the server has grown by {} MiB", grown >> 20);
    check_payloads(&client.ask(&format!("TAKE q COUNT {TASKS}")));
    server.stop();
}

#[test]
fn with_one_shard_unread_answers_stay_on_the_disk() {
    unread_answers_stay_on_the_disk("1");
}

#[test]
fn with_two_shards_unread_answers_stay_on_the_disk() {
    unread_answers_stay_on_the_disk("2");
}

/// The server stops in order while popped tasks are still on their way back.
#[test]
fn a_stop_puts_everything_back_that_was_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--memory-limit", "65536"];
    let (server, address) = serve(dir.path(), &flags);
    let mut client = Redis::connect(&address);
    put_all(&mut client);
    let mut popping = Redis::connect(&address);
    popping.say(&format!("POP q COUNT {TASKS}"));
    while figure(&client.ask("STATS q"), "acked") == 0 {}
    drop((client, popping));
    server.stop();

    let (server, address) = serve(dir.path(), &flags);
    check_payloads(&Redis::connect(&address).ask(&format!("TAKE q COUNT {TASKS}")));
    server.stop();
}
