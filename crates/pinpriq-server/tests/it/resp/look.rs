//! A server that only shows a moment: time stands there for all tasks, and nothing changes.

use pinpriq_server::config::{Config, Durability, Look};

use super::client::{World, elements, field, number, show};
use crate::rights::{Row, rows};
use crate::world::{START, START_MS, in_memory, test};

const TABLE: &str = include_str!("../../../testdata/resp/rights.txt");

/// The configuration of a server that shows how this one began.
fn looking(config: Config) -> Config {
    Config { look: Some(Look { at: START, shown: "the start".to_owned() }), ..config }
}

#[test]
fn time_stands_for_tasks_and_goes_on_for_connections() {
    test(async || {
        let data = tempfile::tempdir().unwrap();
        let (durability, at) = (Durability::Sync, data.path().to_owned());
        let config = Config { data: at, durability, ..in_memory() };
        let world = World::start(config.clone()).await;
        let mut client = world.connect().await;
        assert!(!show(&client.ask("INFO").await).contains("look_at_ms"));
        let id = show(&client.ask("PUT jobs brief TTL 1000").await);
        client.ask("PUT jobs later DELAY 1000").await;
        client.ask("PUT a held").await;
        client.ask("TAKE a TTR 1000").await;
        client.ask("JOIN news m LEASE 1000").await;
        client.ask("SCHEDULE SET beat jobs tick EVERY 1000").await;
        world.end().await;

        let world = World::start(looking(config)).await;
        world.advance(3_600_000);
        let mut client = world.connect().await;
        for (queue, expected) in [("jobs", [1, 1, 0]), ("a", [0, 0, 1])] {
            let stats = client.ask(&format!("STATS {queue}")).await;
            let counts = field(&stats, "counts");
            assert_eq!(["R", "W", "T"].map(|letter| number(counts, letter)), expected, "{queue}");
        }
        assert_eq!(elements(&client.ask("MEMBERS news").await).len(), 1);
        let schedule = client.ask("SCHEDULE SHOW beat").await;
        assert_eq!((number(&schedule, "fired"), number(&schedule, "missed")), (0, 0));
        assert_eq!(client.info("server_time_ms").await, START_MS.to_string());
        assert_eq!(client.info("look_at_ms").await, START_MS.to_string());
        assert_eq!(client.info("uptime_in_seconds").await, "3600");
        // Nothing will happen to it, so nobody waits for that.
        let awaited = client.reply(&format!("AWAIT jobs {id} WAIT 100000000")).await;
        assert!(awaited.starts_with("[timeout "), "{awaited}");
        world.end().await;
    });
}

#[test]
fn whatever_does_not_only_look_is_refused() {
    for shards in [1, 2] {
        test(async || {
            let world = World::start(looking(Config { shards, ..in_memory() })).await;
            let mut refused = 0;
            for Row { request, needs } in rows(TABLE) {
                let is_change = |need: &&str| {
                    let rights = ["put:", "take:", "manage:", "everywhere-manage"];
                    rights.iter().any(|right| need.starts_with(right))
                };
                let is_of_member = ["BEAT ", "LEAVE "].iter().any(|it| request.starts_with(it));
                let mut client = world.connect().await;
                let told = client.reply(request).await;
                let expected = needs.iter().any(is_change) || is_of_member;
                assert_eq!(told == "READONLY", expected, "{request}: {told}");
                refused += usize::from(expected);
            }
            assert!(refused > 40, "{refused}");
            let mut client = world.connect().await;
            for waits in ["TAKE jobs WAIT -1", "POP QUEUES 2 jobs a WAIT -1", "PUT q x ROOM 1000"] {
                assert_eq!(client.reply(waits).await, "READONLY", "{waits}");
            }
            assert_eq!(client.reply("MULTI").await, "OK");
            assert_eq!(client.reply("PUT jobs x").await, "READONLY");
            assert_eq!(client.reply("EXEC").await, "EXECABORT");
            let sentence = format!("{:?}", client.ask("PUT jobs x").await);
            assert!(sentence.contains("this is a look at the start: "), "{sentence}");
            let (_, count) = (client.ask("PING").await, client.info("refusals_READONLY").await);
            assert!(count.parse::<usize>().unwrap() > refused, "{count}");
            assert_eq!(client.reply("QUEUE LIST").await, "[0 []]");
            world.end().await;
        });
    }
}
