//! What `INFO` counts: refusals, ends of connections, bytes, writes of the journal, and memory.

use std::collections::BTreeMap;

use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_server::config::{Config, Durability};

use super::client::{Client, World};
use crate::client::{Client as Wire, named_bytes, push_bytes};
use crate::world::{in_memory, test};

/// A server with this number of shards.
fn sharded(shards: usize) -> Config {
    Config { shards, ..in_memory() }
}

/// All figures, and how many bytes told them.
async fn figures(client: &mut Client) -> (BTreeMap<String, String>, usize) {
    client.say("INFO").await;
    let (text, raw) = client.next().await.unwrap();
    let text = String::from_utf8(text.as_bytes().unwrap().to_vec()).unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    (pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(), raw.len())
}

/// The figures whose names begin like this and that are not 0, by the rest of their names.
async fn counted(client: &mut Client, prefix: &str) -> BTreeMap<String, u64> {
    let (figures, _) = figures(client).await;
    let figures = figures.into_iter().filter_map(|(name, value)| {
        Some((name.strip_prefix(prefix)?.to_owned(), value.parse().unwrap()))
    });
    figures.filter(|(_, count)| *count > 0).collect()
}

fn number(figures: &BTreeMap<String, String>, name: &str) -> u64 {
    figures[name].parse().unwrap()
}

/// The count and the sum of a histogram.
fn histogram(figures: &BTreeMap<String, String>, name: &str) -> (u64, u64) {
    let mut parts = figures[name].split(',').map(|part| part.split_once('=').unwrap().1);
    let mut next = || parts.next().unwrap().parse().unwrap();
    (next(), next())
}

/// The number of bytes of a request that is written as a line.
fn request_bytes(line: &str) -> usize {
    let mut bytes = Vec::new();
    Words::new(line).put(&mut bytes);
    bytes.len()
}

fn map<const N: usize>(pairs: [(&str, u64); N]) -> BTreeMap<String, u64> {
    pairs.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

#[test]
fn each_refusal_counts_by_its_first_word() {
    for shards in [1, 3] {
        test(async || {
            let world = World::start(sharded(shards)).await;
            let (mut client, mut control) = (world.connect().await, world.connect().await);
            assert_eq!(counted(&mut control, "refusals_").await, map([]));
            for (line, word) in [
                ("NOSUCH", "ERR"),
                ("PUT q", "ERR"),
                ("CLIENT KILL nowhere:1", "ERR"),
                ("PUT q p TTL 0", "BADARG"),
                ("HELLO 9", "NOPROTO"),
                ("QUEUE SHOW nowhere", "NOQUEUE"),
                ("BEAT nemo", "NOTFOUND"),
                ("ACK q 1-1-1", "STALE"),
            ] {
                assert_eq!(client.reply(line).await, word, "{line}");
            }
            assert_eq!(client.reply("ACK q 1-1-1 1-1-2").await, "[STALE STALE]");
            let expected = [("ERR", 3), ("BADARG", 1), ("NOPROTO", 1), ("NOQUEUE", 1)];
            let mut expected = map(expected);
            expected.extend(map([("NOTFOUND", 1), ("STALE", 3)]));
            assert_eq!(counted(&mut control, "refusals_").await, expected, "{shards} shards");
            // Without a user, refusals do not count.
            client.ask("GET q 17").await;
            client.send_bytes(b"POST / HTTP/1.1\r\n").await;
            assert_eq!(client.rest().await, b"");
            drop(client);
            assert_eq!(counted(&mut control, "refusals_").await, expected);
            world.end().await;
        });
    }
}

#[test]
fn the_memory_that_tasks_occupy_is_shown_beside_its_bound() {
    for shards in [1, 4] {
        let mut config = sharded(shards);
        config.limits.task_bytes_max = 8 << 20;
        test(async || {
            let world = World::start(config).await;
            let mut client = world.connect().await;
            let mut seen = async || {
                let (figures, _) = figures(&mut client).await;
                ["task_bytes", "task_bytes_max"].map(|name| number(&figures, name))
            };
            assert_eq!(seen().await, [0, 8 << 20], "{shards} shards");
            let mut other = world.connect().await;
            other.ask("PUT jobs 12345").await;
            other.ask("PUT mails 1234567").await;
            let bytes = 2 * (1_024 + 128) + 4 + 5 + 5 + 7;
            assert_eq!(seen().await, [bytes, 8 << 20], "{shards} shards");
            world.end().await;
        });
    }
}

#[test]
fn a_refusal_of_a_blocked_command_counts() {
    for shards in [1, 3] {
        test(async || {
            let world = World::start(sharded(shards)).await;
            let (mut client, mut control) = (world.connect().await, world.connect().await);
            control.ask("JOIN news m").await;
            client.say("TAKE news WAIT -1 MEMBER m").await;
            control.see_blocked(&client.name()).await;
            control.ask("LEAVE news m").await;
            assert!(matches!(client.value().await, Value::Error(_)));
            assert_eq!(counted(&mut control, "refusals_").await, map([("NOTFOUND", 1)]));
            world.end().await;
        });
    }
}

#[test]
fn each_end_of_a_connection_counts_by_its_reason() {
    for shards in [1, 3] {
        test(async || {
            let world = World::start(sharded(shards)).await;
            let mut control = world.connect().await;
            let mut expected = BTreeMap::new();
            for reason in ["killed", "killed", "quit", "closed", "malformed", "late", "broken"] {
                let mut client = world.connect().await;
                client.ask("PING").await;
                let name = client.name();
                match reason {
                    "killed" => {
                        let line = format!("CLIENT KILL ADDR {name}");
                        assert_eq!(control.reply(&line).await, "1");
                    }
                    "quit" => assert_eq!(client.reply("QUIT").await, "OK"),
                    "closed" => client.half_close().await,
                    "malformed" => client.send_bytes(b"*x\r\n").await,
                    "late" => {
                        client.send_bytes(b"*1\r\n").await;
                        control.ask("PING").await;
                        control.ask("PING").await;
                        world.advance(10_000);
                    }
                    _ => {
                        client.say("PING").await;
                        client.stream.readable().await.unwrap();
                    }
                }
                if reason != "broken" {
                    client.rest().await;
                }
                // A socket that is closed with an answer in it resets the connection.
                drop(client);
                control.see_gone(&name).await;
                *expected.entry(reason.to_owned()).or_insert(0) += 1;
                let counted = counted(&mut control, "disconnects_").await;
                assert_eq!(counted, expected, "{reason}, {shards} shards");
            }
            world.end().await;
        });
    }
}

#[test]
fn a_client_that_kills_itself_counts_as_killed() {
    test(async || {
        let world = World::plain().await;
        let (mut client, mut control) = (world.connect().await, world.connect().await);
        let name = client.name();
        assert_eq!(client.reply(&format!("CLIENT KILL {name}")).await, "OK");
        drop(client);
        control.see_gone(&name).await;
        assert_eq!(counted(&mut control, "disconnects_").await, map([("killed", 1)]));
        world.end().await;
    });
}

#[test]
fn a_refusal_at_the_pinpriq_door_ends_the_connection_and_counts() {
    for shards in [1, 3] {
        for queue in ["{a}", "elsewhere", "somewhere", "nowhere"] {
            test(async || {
                let mut config = sharded(shards);
                config.limits.subscriptions_max = 1;
                let world = World::start(config).await;
                let mut control = world.connect().await;
                let mut wire = Wire::connect(world.wire_address).await;
                // The queue that is named first decides which shard has the connection.
                assert_eq!(wire.pop(queue).await, [""; 0]);
                wire.subscribe("{a}one").await;
                wire.subscribe("{a}two").await;
                assert_eq!(wire.rest().await, b"");
                let name = wire.stream.local_addr().unwrap().to_string();
                drop(wire);
                control.see_gone(&name).await;
                assert_eq!(counted(&mut control, "disconnects_").await, map([("refused", 1)]));
                let refusals = counted(&mut control, "refusals_").await;
                assert_eq!(refusals.values().sum::<u64>(), 1, "{refusals:?}");
                world.end().await;
            });
        }
    }
}

#[test]
fn connections_beyond_the_bound_count() {
    test(async || {
        let mut config = in_memory();
        config.limits.connections_max = 1;
        let world = World::start(config).await;
        let mut control = world.connect().await;
        control.ask("PING").await;
        for _ in 0..2 {
            assert!(world.connect().await.next().await.is_none());
        }
        assert_eq!(counted(&mut control, "disconnects_").await, map([("too_many", 2)]));
        world.end().await;
    });
}

#[test]
fn bytes_grow_by_those_of_requests_and_replies() {
    for shards in [1, 3] {
        test(async || {
            let world = World::start(sharded(shards)).await;
            let mut client = world.connect().await;
            let (mut before, mut told) = figures(&mut client).await;
            assert_eq!(number(&before, "bytes_received_resp"), request_bytes("INFO") as u64);
            assert_eq!(number(&before, "bytes_sent_resp"), 0);
            // The first that names a queue may move the connection to another shard.
            for line in ["PUT q payload", "PUT other payload", "TAKE q WITHMETA", "NOSUCH", "STATS"]
            {
                client.say(line).await;
                let (_, reply) = client.next().await.unwrap();
                let (after, length) = figures(&mut client).await;
                let grown = |name| number(&after, name) - number(&before, name);
                let received = request_bytes(line) + request_bytes("INFO");
                assert_eq!(grown("bytes_received_resp"), received as u64, "{line}");
                assert_eq!(grown("bytes_sent_resp"), (told + reply.len()) as u64, "{line}");
                (before, told) = (after, length);
            }
            let pop = named_bytes(b'P', b"wire");
            let push = push_bytes(b"wire", 60_000, 1, b"key", b"payload");
            let mut wire = Wire::connect(world.wire_address).await;
            wire.send(&[&push[..], &pop].concat()).await;
            assert_eq!(wire.payloads().await, ["payload"]);
            let (after, _) = figures(&mut client).await;
            let received = (push.len() + pop.len()) as u64;
            assert_eq!(number(&after, "bytes_received_pinpriq"), received);
            // A count, two lengths, the key and the payload.
            assert_eq!(number(&after, "bytes_sent_pinpriq"), 2 + 4 + 3 + 7);
            world.end().await;
        });
    }
}

#[test]
fn every_synced_write_and_its_records_count() {
    const PUTS: u64 = 20;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    test(async || {
        let config = Config { data, durability: Durability::Sync, ..in_memory() };
        let world = World::start(config).await;
        let mut client = world.connect().await;
        let (before, _) = figures(&mut client).await;
        for _ in 0..PUTS {
            client.ask("PUT q p").await;
        }
        let (after, _) = figures(&mut client).await;
        let grown = |name| number(&after, name) - number(&before, name);
        let (commits, _) = histogram(&after, "journal_commit_us");
        let (commits_before, _) = histogram(&before, "journal_commit_us");
        // Each put waits for its own.
        assert!(commits - commits_before >= PUTS, "{after:?}");
        assert_eq!(commits - commits_before, grown("journal_syncs"));
        let (writes, records) = histogram(&after, "journal_commit_records");
        let (writes_before, records_before) = histogram(&before, "journal_commit_records");
        assert!(writes - writes_before >= PUTS && records - records_before >= PUTS, "{after:?}");
        world.end().await;
    });
}
