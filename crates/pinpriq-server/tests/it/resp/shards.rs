//! Servers of several shards, each on a thread of its own.
//!
//! What is refused, and how, stands in `testdata/resp/shards.txt`. The shards have the clock of the
//! machine here, so that no test depends on when something happens; only that it does is awaited.

mod answers;
mod deliveries;
mod gathered;
mod large;
mod members;
mod stops;
mod waiting;
mod wire;

use std::net::SocketAddr;

use pinpriq_server::config::Config;
use pinpriq_server::{ServeError, Server, Stop};
use pinpriq_store::shards::shard_of;
use pinpriq_wire::resp::Value;
use tokio::task::JoinHandle;

use super::client::{Client, elements, show};
use super::world::in_memory;

/// How many shards the servers have.
const SHARDS: usize = 3;

/// A server that is being served within the test, but for the threads of its own.
struct World {
    address: SocketAddr,
    wire_address: SocketAddr,
    stop: Stop,
    served: JoinHandle<Result<(), ServeError>>,
}

/// A configuration with several shards, ports of its own and nothing on disk.
fn several() -> Config {
    Config { shards: SHARDS, ..in_memory() }
}

impl World {
    async fn start(config: Config) -> Self {
        let stop = Stop::default();
        let server = Server::bind(config, stop.clone()).await.unwrap();
        let (address, wire_address) = (server.resp_address(), server.pinpriq_address());
        Self {
            address: address.unwrap(),
            wire_address: wire_address.unwrap(),
            stop,
            served: tokio::task::spawn_local(server.run()),
        }
    }

    async fn plain() -> Self {
        Self::start(several()).await
    }

    async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// A connection in each shard, in their order, where it stays since it has named a queue there.
    /// To be asked for while there are no others.
    async fn homes(&self) -> [Client; SHARDS] {
        let mut homes = [self.connect().await, self.connect().await, self.connect().await];
        for (shard, client) in homes.iter_mut().enumerate() {
            assert_eq!(home(client).await, shard);
            client.ask(&format!("GET {} none", queue_in(shard, 0))).await;
        }
        homes
    }

    /// Stops the server, and checks that it does so in order.
    async fn end(self) {
        self.stop.ask();
        self.served.await.unwrap().unwrap();
    }
}

/// The shard that serves a connection, which its number tells.
async fn home(client: &mut Client) -> usize {
    let Value::Integer(id) = client.ask("CLIENT ID").await else { panic!("a number") };
    (usize::try_from(id).unwrap() - 1) % SHARDS
}

/// One of the queues that live in a shard.
fn queue_in(shard: usize, number: usize) -> String {
    let names = (0..).map(|name| format!("q{name}"));
    let mut own = names.filter(|name| shard_of(name.as_bytes(), SHARDS) == shard);
    own.nth(number).unwrap()
}

/// A queue in each shard.
fn queues() -> [String; SHARDS] {
    [0, 1, 2].map(|shard| queue_in(shard, 0))
}

/// The payloads of the tasks in a reply to TAKE, POP or PEEK.
fn payloads(reply: &Value) -> Vec<String> {
    elements(reply).iter().map(|task| show(&elements(task)[3])).collect()
}

/// Asks until the reply has tasks, and answers it.
async fn ask_until_some(client: &mut Client, line: &str) -> Value {
    loop {
        let reply = client.ask(line).await;
        if !elements(&reply).is_empty() {
            return reply;
        }
    }
}
