//! What the server tells about a task. Printed from its table of fields by `cargo test -p
//! pinpriq-proto printed`.

use std::collections::BTreeMap;
use std::time::SystemTime;

use pinpriq_proto::wire::resp::Value;

use super::{Attempt, Map, Origin, Own, State};
use crate::name::Name;

/// A task, and all that the server tells about it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Task {
    /// Name; for a task in a lane the topic.
    pub queue: Name,
    /// Whose lane it is in, if it is in one.
    pub member: Option<Name>,
    /// Its id.
    pub id: Name,
    /// Of the lease just granted (`TAKE`).
    pub receipt: Option<Name>,
    /// Its bytes.
    pub payload: Vec<u8>,
    /// Its key, if it has one.
    pub key: Option<Vec<u8>>,
    /// On whose behalf it runs, if its put said that.
    pub share: Option<Vec<u8>>,
    /// What a take of it costs.
    pub cost: u64,
    /// Its priority, if it has one.
    pub priority: Option<i64>,
    /// A letter; for `POP` the state before it was popped, R.
    pub state: State,
    /// How often it was taken, this time included.
    pub attempts: u64,
    /// How often it has failed.
    pub failures: u64,
    /// Why it failed or was buried the last time, perhaps empty.
    pub reason: Option<String>,
    /// Moment of the put.
    pub put_at: SystemTime,
    /// End of its time to live, if it has one.
    pub ttl_at: Option<SystemTime>,
    /// End of its delay, in W.
    pub ready_at: Option<SystemTime>,
    /// End of its lease, in T, if the lease has a TTR.
    pub lease_until: Option<SystemTime>,
    /// End of its stay, in Z.
    pub purge_at: Option<SystemTime>,
    /// Number of the client that has taken it, in T, until the server restarts.
    pub client: Option<u64>,
    /// Name of that client, if it has one and is still connected.
    pub client_name: Option<String>,
    /// Address of that client, while it is connected.
    pub client_address: Option<String>,
    /// The schedule that has put it, if one has.
    pub schedule: Option<Name>,
    /// Moment of the slot for which a schedule has put it.
    pub slot: Option<SystemTime>,
    /// Short values by name that its put gave it.
    pub headers: BTreeMap<String, Name>,
    /// Why it was cancelled, perhaps empty, in T until its holder stops.
    pub cancelled: Option<Name>,
    /// How far the work has come, for people, in T if its holder has said that.
    pub progress: Option<Name>,
    /// How far the work has come, for who takes it next, if a holder has said that.
    pub checkpoint: Option<Name>,
    /// The batch it is pending in.
    pub batch: Option<Name>,
    /// The batches that have to be done before it, in W.
    pub after: Vec<Name>,
    /// Whether it waits in W until it is freed.
    pub held: bool,
    /// What has come of the work, if it is finished and its holder said that.
    pub result: Option<Name>,
    /// How often it may fail before it is given up, if its put said that.
    pub attempts_max: Option<Own<u64>>,
    /// How long it waits after its first failure, if its put said that.
    pub backoff: Option<Own<std::time::Duration>>,
    /// The longest that it waits after a failure, if its put said that.
    pub backoff_max: Option<std::time::Duration>,
    /// Its last attempts that have ended, oldest first (`GET`).
    pub history: Vec<Attempt>,
    /// Where a dead letter comes from.
    pub origin: Option<Origin>,
}

impl Task {
    /// Reads the map that `WITHMETA` gives. Returns none if it is something else.
    pub(crate) fn read(map: &Value) -> Option<Self> {
        let map = Map(map);
        Some(Self {
            queue: map.name("queue")?,
            member: map.name("member"),
            id: map.name("id")?,
            receipt: map.name("receipt"),
            payload: map.bytes("payload")?,
            key: map.bytes("key"),
            share: map.bytes("share"),
            cost: map.number("cost")?,
            priority: map.integer("priority"),
            state: map.state("state")?,
            attempts: map.number("attempts")?,
            failures: map.number("failures")?,
            reason: map.text("reason"),
            put_at: map.moment("put_at")?,
            ttl_at: map.moment("ttl_at"),
            ready_at: map.moment("ready_at"),
            lease_until: map.moment("lease_until"),
            purge_at: map.moment("purge_at"),
            client: map.number("client"),
            client_name: map.text("client_name"),
            client_address: map.text("client_address"),
            schedule: map.name("schedule"),
            slot: map.moment("slot"),
            headers: map.headers("headers").unwrap_or_default(),
            cancelled: map.name("cancelled"),
            progress: map.name("progress"),
            checkpoint: map.name("checkpoint"),
            batch: map.name("batch"),
            after: map.names("after").unwrap_or_default(),
            held: map.truth("held").unwrap_or_default(),
            result: map.name("result"),
            attempts_max: map.own_number("attempts_max"),
            backoff: map.own_span("backoff"),
            backoff_max: map.span("backoff_max"),
            history: map.attempts("history").unwrap_or_default(),
            origin: map.origin(),
        })
    }
}
