//! Requests to queues of all shards are answered by the right one and in their order.

use std::collections::VecDeque;

use pinpriq_proto::wire::resp::{Value, Words};

use super::{SHARDS, home, homes, payloads, queue_in, queues, several, several_shards, with_homes};
use crate::resp::client::{Client, check_balance, field, number, receipt, show};
use pinpriq_testing::Dice;

use crate::world::test;

/// How many requests each connection sends at once.
const REQUESTS: usize = 3_000;

#[test]
fn every_connection_reaches_the_queues_of_every_shard() {
    test(async || {
        let world = several_shards().await;
        for (home, client) in homes(&world).await.iter_mut().enumerate() {
            for shard in 0..SHARDS {
                let queue = queue_in(shard, home);
                let first = client.reply(&format!("PUT {queue} first")).await;
                let second = client.reply(&format!("PUT {queue} second")).await;
                // Each shard has numbers of its own.
                assert_eq!((first.parse::<u64>().unwrap() - 1) >> 46, shard as u64);
                let shown = client.reply(&format!("PEEK {queue}")).await;
                assert_eq!(shown, format!("[[{queue} {first} null first]]"));
                let task = client.ask(&format!("GET {queue} {second}")).await;
                assert_eq!(show(field(&task, "payload")), "second");
                let taken = client.ask(&format!("TAKE {queue}")).await;
                assert_eq!(payloads(&taken), ["first"]);
                let ack = format!("ACK {queue} {}", receipt(&taken));
                assert_eq!(client.reply(&ack).await, "OK");
                assert_eq!(client.reply(&ack).await, "STALE");
                assert_eq!(payloads(&client.ask(&format!("POP {queue}")).await), ["second"]);
                assert_eq!(client.reply(&format!("POP {queue}")).await, "[]");
                assert_eq!(client.reply(&format!("GET {queue} {second}")).await, "null");
            }
        }
        world.end().await;
    });
}

/// What a request must be answered.
#[derive(Debug)]
enum Expected {
    Says(String),
    /// The number of a task of this shard.
    Id(usize),
    Tasks(Vec<String>),
    /// Figures, in the version of the protocol that the request found.
    Figures {
        third: bool,
    },
}

/// Requests of one connection to queues that only it uses, and what each must be answered.
struct Talk {
    home: usize,
    requests: Vec<u8>,
    expected: Vec<Expected>,
    /// The payloads in its queue of each shard.
    tasks: [VecDeque<String>; SHARDS],
    third: bool,
}

impl Talk {
    fn new(home: usize, dice: &mut Dice) -> Self {
        let tasks = [const { VecDeque::new() }; SHARDS];
        let (requests, expected) = (Vec::new(), Vec::new());
        let mut talk = Self { home, requests, expected, tasks, third: false };
        for number in 0..REQUESTS {
            let shard = dice.index(3);
            let (line, expected) = talk.some_request(number, shard, dice);
            Words::new(&line).put(&mut talk.requests);
            talk.expected.push(expected);
        }
        talk
    }

    fn some_request(&mut self, number: usize, shard: usize, dice: &mut Dice) -> (String, Expected) {
        let says = |text: &str| Expected::Says(text.to_owned());
        let queue = queue_in(shard, 1 + self.home);
        let tasks = &mut self.tasks[shard];
        match dice.index(16) {
            0..6 => {
                tasks.push_back(number.to_string());
                (format!("PUT {queue} {number}"), Expected::Id(shard))
            }
            6..9 => {
                let count = 1 + dice.index(3);
                let popped = tasks.drain(..count.min(tasks.len())).collect();
                (format!("POP {queue} COUNT {count}"), Expected::Tasks(popped))
            }
            9 => (
                format!("PEEK {queue}"),
                Expected::Tasks(tasks.front().cloned().into_iter().collect()),
            ),
            10 => (format!("ECHO {number}"), Expected::Says(number.to_string())),
            11 => ("PING".to_owned(), says("PONG")),
            12 => (format!("POP {queue} COUNT 0"), says("BADARG")),
            13 => match dice.index(3) {
                0 => ("NOSUCH".to_owned(), says("ERR")),
                1 => (format!("GET {queue} 0"), says("null")),
                _ => (format!("TAKE QUEUES {SHARDS} {}", queues().join(" ")), says("[]")),
            },
            14 => {
                self.third = dice.index(2) == 0;
                let line = format!("HELLO {}", if self.third { 3 } else { 2 });
                (line, Expected::Figures { third: self.third })
            }
            _ => ("STATS".to_owned(), Expected::Figures { third: self.third }),
        }
    }

    fn check(&self, replies: &[Value]) {
        for (number, (expected, reply)) in self.expected.iter().zip(replies).enumerate() {
            let is_so = match expected {
                Expected::Says(text) => show(reply) == *text,
                Expected::Id(shard) => {
                    show(reply).parse::<u64>().is_ok_and(|id| (id - 1) >> 46 == *shard as u64)
                }
                Expected::Tasks(tasks) => {
                    matches!(reply, Value::Array(_)) && payloads(reply) == *tasks
                }
                Expected::Figures { third } => matches!(reply, Value::Map(_)) == *third,
            };
            let reply = show(reply);
            assert!(is_so, "request {number} of {}: {reply} for {expected:?}", self.home);
        }
    }
}

#[test]
fn answers_of_several_shards_come_in_the_order_of_the_requests() {
    for seed in 1..=6 {
        println!("seed {seed}");
        test(async || {
            let mut dice = Dice::new(seed);
            let world = several_shards().await;
            let mut playing = Vec::new();
            for (home, mut client) in homes(&world).await.into_iter().enumerate() {
                let talk = Talk::new(home, &mut dice);
                playing.push(tokio::task::spawn_local(async move {
                    let replies = client.exchange(&talk.requests, talk.expected.len()).await;
                    talk.check(&replies);
                    talk.tasks.map(|tasks| tasks.len()).iter().sum::<usize>()
                }));
            }
            let mut present = 0;
            for playing in playing {
                present += playing.await.unwrap();
            }
            let stats = world.connect().await.ask("STATS").await;
            check_balance(&stats);
            assert_eq!(number(&stats, "present"), i64::try_from(present).unwrap());
            world.end().await;
        });
    }
}

#[test]
fn an_answer_that_is_late_holds_up_those_behind_it_alone() {
    test(async || {
        let world = several_shards().await;
        let [mut first, mut second, _third] = homes(&world).await;
        let [_, here, there] = queues();
        // Behind a request that waits nothing is carried out, whichever shard it is for.
        second.say(&format!("TAKE {there} WAIT -1")).await;
        second.say(&format!("PUT {here} p")).await;
        first.see_blocked(&second.name()).await;
        assert_eq!(first.reply(&format!("PEEK {here}")).await, "[]");
        assert_eq!(first.reply("PING").await, "PONG");
        first.ask(&format!("PUT {there} p")).await;
        assert_eq!(payloads(&second.value().await), ["p"]);
        assert!(show(&second.value().await).parse::<u64>().is_ok());
        assert_eq!(payloads(&first.ask(&format!("POP {here}")).await), ["p"]);
        world.end().await;
    });
}

#[test]
fn connections_go_where_the_fewest_are() {
    with_homes(several(), async |world, homes| {
        let mut more = Vec::new();
        for shard in 0..SHARDS {
            let mut client = world.connect().await;
            assert_eq!(home(&mut client).await, shard);
            more.push(client);
        }
        let gone = more.remove(1).name();
        homes[0].see_gone(&gone).await;
        // It is counted until the last of it has gone, which is not reported.
        let mut client: Client = world.connect().await;
        while home(&mut client).await != 1 {
            let name = client.name();
            client = world.connect().await;
            homes[0].see_gone(&name).await;
        }
    });
}
