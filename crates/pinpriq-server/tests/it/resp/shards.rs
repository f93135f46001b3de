//! Servers of several shards, each on a thread of its own.
//!
//! What is refused, and how, stands in `testdata/resp/shards.txt`. The shards have the clock of the
//! machine here, so that no test depends on when something happens; only that it does is awaited.

mod answers;
mod choosing;
mod deliveries;
mod gathered;
mod large;
mod late;
mod members;
mod recall;
mod stops;
mod subscriptions;
mod waiting;
mod wire;

use pinpriq_proto::wire::resp::Value;
use pinpriq_server::config::Config;
use pinpriq_store::shards::shard_of;

use super::client::{Client, World, elements, show};
use crate::world::{in_memory, test};

/// How many shards the servers have.
const SHARDS: usize = 3;

/// A configuration with several shards, ports of its own and nothing on disk.
fn several() -> Config {
    Config { shards: SHARDS, ..in_memory() }
}

/// Runs a test with a server of several shards and a connection in each, in their order, where it
/// stays since it has named a queue there; and stops the server in order.
fn with_homes(config: Config, body: impl AsyncFnOnce(&World, &mut [Client; SHARDS])) {
    test(async || {
        let world = World::start_by_the_machine(config).await;
        let mut homes = homes(&world).await;
        body(&world, &mut homes).await;
        world.end().await;
    });
}

/// A server of several shards that runs by the clock of the machine.
async fn several_shards() -> World {
    World::start_by_the_machine(several()).await
}

/// A connection in each shard, as in [`with_homes`]. To be asked for while there are no others.
async fn homes(world: &World) -> [Client; SHARDS] {
    let mut homes = [world.connect().await, world.connect().await, world.connect().await];
    for (shard, client) in homes.iter_mut().enumerate() {
        assert_eq!(home(client).await, shard);
        client.ask(&format!("GET {} none", queue_in(shard, 0))).await;
    }
    homes
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

/// Asks until the reply has tasks, and returns it.
async fn ask_until_some(client: &mut Client, line: &str) -> Value {
    loop {
        let reply = client.ask(line).await;
        if !elements(&reply).is_empty() {
            return reply;
        }
    }
}
