//! How the server was set, for those who look at it over HTTP. Nothing of it is secret.

use std::time::Duration;

use super::super::json::{Object, array, object, string};
use crate::config::{Config, Limits};

/// Returns the settings of the server as JSON, under the names that they have on the command line.
pub(super) fn told(config: &Config) -> Vec<u8> {
    let mut out = Vec::new();
    object(&mut out, |it| {
        it.text("data", &config.data.to_string_lossy());
        it.text("durability", config.durability.word()).number("shards", config.shards);
        it.member("listeners", |out| {
            array(out, &config.listeners, |out, listener| {
                string(out, &format!("{} {}", listener.door.word(), listener.address));
            });
        });
        limits(it, &config.limits);
        span(it, "keepalive_ms", config.watch.keepalive);
        span(it, "user_timeout_ms", config.watch.user_timeout);
    });
    out
}

fn limits(it: &mut Object<'_>, limits: &Limits) {
    it.number("connections_max", limits.connections_max);
    it.number("payload_bytes_max", limits.payload_bytes_max);
    it.number("task_bytes_max", limits.task_bytes_max);
    match limits.memory_limit_bytes {
        Some(bytes) => it.number("memory_limit", bytes),
        None => it.null("memory_limit"),
    };
    it.number("in_flight_max", limits.in_flight_max);
    it.number("out_bytes_max", limits.out_bytes_max);
    span(it, "frame_timeout_ms", Some(limits.frame_timeout));
    it.number("subscriptions_max", limits.subscriptions_max);
    span(it, "queue_linger_ms", Some(limits.queue_linger));
    it.number("lingering_queues_max", limits.lingering_queues_max);
    it.number("unique_max", limits.unique_max);
    it.number("topic_lanes_max", limits.topic_lanes_max);
    it.number("connection_bytes_max", limits.connection_bytes_max);
}

fn span(it: &mut Object<'_>, name: &str, span: Option<Duration>) {
    match span.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)) {
        Some(ms) => it.number(name, ms),
        None => it.null(name),
    };
}
