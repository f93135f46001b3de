//! Asks all shards on behalf of no client. Any thread of the process can do it.

use tokio::sync::oneshot;

use super::joins::join_facts;
use crate::facts::Facts;
use crate::letters::letter::{Inquiry, Letter, Part};
use crate::letters::mailbox::Mailbox;

/// Asks each shard, and returns their parts in the order of the shards. A shard that has ended
/// gives no part.
pub(crate) async fn ask_all(shards: &[Mailbox], question: impl Fn() -> Inquiry) -> Vec<Part> {
    let ask = |mailbox: &Mailbox| {
        let (answer, part) = oneshot::channel();
        mailbox.put(&mut vec![Letter::Inquiry(question(), answer)]);
        part
    };
    let asked: Vec<_> = shards.iter().map(ask).collect();
    let mut parts = Vec::new();
    for part in asked {
        parts.extend(part.await.ok());
    }
    parts
}

/// Returns the facts about all shards together.
pub(crate) async fn facts(shards: &[Mailbox]) -> Facts {
    join_facts(ask_all(shards, || Inquiry::Facts).await)
}
