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
    for (name, bound) in limits.each() {
        match bound {
            Some(bound) => it.number(&name, bound),
            None => it.null(&name),
        };
    }
}

fn span(it: &mut Object<'_>, name: &str, span: Option<Duration>) {
    match span.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)) {
        Some(ms) => it.number(name, ms),
        None => it.null(name),
    };
}
