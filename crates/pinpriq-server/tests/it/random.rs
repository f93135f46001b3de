//! Random requests on several connections, each answer compared with that of the model.
//!
//! One driver makes one request at a time and fences it, so that the order in which the server
//! applied them is known.

use std::collections::VecDeque;

use pinpriq_dice::Dice;
use pinpriq_server::config::TtlZero;

use crate::client::{Client, Packet, named_bytes, push_bytes};
use crate::model::{Model, Push};
use crate::world::{World, in_memory, test};

const SEEDS: u64 = 400;
const STEPS: u32 = 60;
const CLIENTS: usize = 3;
const QUEUES: [&[u8]; 3] = [b"a", b"\x00/\xff", b""];
const KEYS: [&[u8]; 4] = [b"", b"k", b"K", b"\x00"];

/// One run: the server, its clients, and what they should be sent.
struct Run {
    seed: u64,
    dice: Dice,
    world: World,
    forever: bool,
    clients: Vec<Client>,
    model: Model,
    expected: Vec<VecDeque<Vec<Packet>>>,
    pushed: u32,
    log: Vec<String>,
}

impl Run {
    async fn start(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut config = in_memory();
        let forever = dice.below(2) == 0;
        config.pinpriq_options.ttl_zero =
            if forever { TtlZero::Forever } else { TtlZero::Immediate };
        let world = World::start(config).await;
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(world.connect().await);
        }
        let expected = vec![VecDeque::new(); CLIENTS];
        let model = Model::new(CLIENTS);
        let log = Vec::new();
        Self { seed, dice, world, forever, clients, model, expected, pushed: 0, log }
    }

    async fn step(&mut self) {
        let client = self.dice.index(CLIENTS);
        let queue = self.dice.index(QUEUES.len());
        let name = QUEUES[queue];
        let what = self.dice.below(100);
        self.log.push(format!("client {client}, queue {queue}, dice {what}"));
        match what {
            0..40 => self.push(client, queue).await,
            40..60 => {
                self.send(client, &named_bytes(b'P', name)).await;
                let reply = self.model.pop(queue);
                self.expected[client].push_back(reply);
            }
            60..72 => {
                self.send(client, &named_bytes(b's', name)).await;
                self.model.subscribe(client, queue);
                while let Some((receiver, delivery)) = self.model.deliver_from(queue) {
                    self.expected[receiver].push_back(delivery);
                }
            }
            72..86 => self.ready(client).await,
            86..91 => {
                self.send(client, &named_bytes(b'u', name)).await;
                self.model.unsubscribe(client, queue);
            }
            91..94 => {
                self.clients[client].half_close().await;
                self.clients[client].ended().await;
                self.clients[client] = self.world.connect().await;
                self.model.disconnect(client);
            }
            _ => {
                let ms = self.dice.pick(&[1, 2, 50, 99, 100, 65_535]);
                self.world.advance(ms);
                self.model.advance(ms);
            }
        }
        self.check(client).await;
        for other in 0..CLIENTS {
            self.check(other).await;
        }
    }

    async fn push(&mut self, client: usize, queue: usize) {
        self.pushed += 1;
        let key = self.dice.pick(&KEYS).to_vec();
        let payload = self.pushed.to_be_bytes().repeat(1 + self.dice.index(3));
        let push = Push {
            queue,
            ttl_ms: self.dice.pick(&[0, 1, 2, 100, 150, 65_535, 65_535, 65_535]),
            priority: self.dice.pick(&[0, 0, 1, 1, 2, 254, 255]),
            packet: (key, payload),
        };
        let bytes =
            push_bytes(QUEUES[queue], push.ttl_ms, push.priority, &push.packet.0, &push.packet.1);
        self.log.push(format!("{push:?}"));
        self.send(client, &bytes).await;
        if let Some((receiver, delivery)) = self.model.push(push, self.forever) {
            self.expected[receiver].push_back(delivery);
        }
    }

    async fn ready(&mut self, client: usize) {
        let credits = 1 + self.dice.index(3);
        self.send(client, &vec![0x41; credits]).await;
        for _ in 0..credits {
            let delivery = self.model.ready(client);
            self.expected[client].extend(delivery);
        }
    }

    async fn send(&mut self, client: usize, bytes: &[u8]) {
        let cut = self.dice.index(bytes.len() + 1);
        self.clients[client].send(&bytes[..cut]).await;
        self.clients[client].send(&bytes[cut..]).await;
    }

    /// Reads what a client should have been sent, and makes sure that it is all.
    async fn check(&mut self, client: usize) {
        self.clients[client].send(&named_bytes(b'P', b"fence")).await;
        while let Some(expected) = self.expected[client].pop_front() {
            let frame = self.clients[client].frame().await;
            assert_eq!(frame, expected, "seed {}: {:#?}", self.seed, self.log);
        }
        let fence = self.clients[client].frame().await;
        assert_eq!(fence, [], "seed {}: {:#?}", self.seed, self.log);
    }
}

#[test]
fn random_requests_are_answered_as_the_model_answers_them() {
    for seed in 0..SEEDS {
        test(async || {
            let mut run = Run::start(seed).await;
            for _ in 0..STEPS {
                run.step().await;
            }
        });
    }
}
