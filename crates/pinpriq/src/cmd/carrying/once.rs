//! How a record is known again, so that an import can be repeated.
//!
//! The server knows a task by its unique key, also for a while after its end. So a task that has
//! none gets one here. Settings and windows may come in any number of times, and the names of
//! schedules and of batches are unique anyway.

use std::fmt::Write as _;

use pinpriq_server::clock::SystemClock;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use super::import::Record;

/// How long a record that came in is known.
const KNOWN_MS: u64 = 24 * 60 * 60 * 1_000;

/// How many bytes of a digest make a key.
const DIGEST_BYTES: usize = 16;

/// Returns until when a record is known that comes in now.
pub(super) fn until() -> u64 {
    SystemClock::wall().ms().saturating_add(KNOWN_MS)
}

/// Gives a unique key to a task that has none. It is the same each time the task is exported.
pub(super) fn identify(record: &mut Record, until: u64) {
    let Record { queue, payload, fields } = record;
    let is_task = fields.get("type").and_then(Json::as_str) == Some("task");
    if !is_task || fields.contains_key("unique") || fields.contains_key("unique_base64") {
        return;
    }
    let of_field = |name: &str| fields.get(name).map(Json::to_string).unwrap_or_default();
    let parts = [of_field("id"), of_field("id_base64"), of_field("put_at")];
    let mut digest = Sha256::new();
    let parts = parts.iter().map(String::as_bytes);
    for part in parts.chain([&**queue, payload.as_deref().unwrap_or_default()]) {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let mut key = "import ".to_owned();
    for byte in digest.finalize().iter().take(DIGEST_BYTES) {
        // Writing to a text does not fail.
        let _ = write!(key, "{byte:02x}");
    }
    fields.insert("unique".to_owned(), key.into());
    fields.insert("unique_until".to_owned(), until.into());
}
