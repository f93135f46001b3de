//! What the examples share: a connection, and a task as TAKE, POP and PEEK return it.

use redis::{Client, Connection, RedisResult};

/// A task: queue, id, receipt (none if it was popped or merely looked at) and payload.
pub type Task = (String, String, Option<String>, String);

/// Connects to the server that `PINPRIQ_URL` names, or to one on this machine.
pub fn connect() -> RedisResult<Connection> {
    let url = std::env::var("PINPRIQ_URL");
    Client::open(url.unwrap_or_else(|_| "redis://127.0.0.1:7251".to_owned()))?.get_connection()
}

/// The payloads of tasks.
pub fn payloads(tasks: Vec<Task>) -> Vec<String> {
    tasks.into_iter().map(|(_, _, _, payload)| payload).collect()
}
