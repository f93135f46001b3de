//! How the server was set, for those who look at it over HTTP. Nothing of it is secret.

use std::time::Duration;

use crate::config::Config;
use crate::doors::json::object;

/// Returns the settings of the server as JSON, under the names that they have on the command line.
pub(super) fn as_json(config: &Config) -> Vec<u8> {
    let mut out = Vec::new();
    let listeners = config.listeners.iter();
    let listeners = listeners.map(|it| format!("{} {}", it.door.word(), it.address));
    let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    object(&mut out, |it| {
        it.set("data", config.data.to_string_lossy());
        it.set("durability", config.durability.word()).set("shards", config.shards);
        it.set("listeners", listeners.collect::<Vec<_>>());
        for (name, bound) in config.limits.each() {
            it.set(&name, bound);
        }
        it.set("keepalive_ms", config.watch.keepalive.map(ms));
        it.set("user_timeout_ms", config.watch.user_timeout.map(ms));
    });
    out
}
