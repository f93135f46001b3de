//! The list of connected clients, for operators.

use std::fmt::Write as _;

use pinpriq_proto::task::ClientId;

use super::shard::Shard;
use crate::clients::about::{Chosen, is_guest};
use crate::clients::ending::Ending;
use crate::session::Session;

/// Returns a line for each client that has its connection here, in the order in which they came.
pub(crate) fn describe(shard: &Shard) -> Vec<(ClientId, String)> {
    let now = shard.clock().now();
    let mut lines: Vec<(ClientId, String)> = Vec::new();
    shard.each_client(|client, session| {
        if is_guest(client) {
            return;
        }
        let about = session.about.borrow();
        let age_s = now.since(about.connected_at).ms() / 1_000;
        let blocked = session.is_blocked() || session.links.borrow().blocked;
        let mut line = format!(
            "id={} addr={} name={} age={age_s} door={} blocked={} waiting={}",
            client.0,
            address(session),
            about.name.escape_ascii(),
            about.door.word(),
            u8::from(blocked),
            session.outbox.borrow().len(),
        );
        let (library, version) = (&about.library, &about.library_version);
        let _ =
            write!(line, " lib-name={} lib-ver={}", library.escape_ascii(), version.escape_ascii());
        if let Some(pass) = about.pass.as_ref().filter(|pass| !pass.is_of_server()) {
            let _ = write!(line, " user={}", pass.user.name);
        }
        if let Some(post) = shard.post() {
            let _ = write!(line, " shard={}", post.own());
        }
        line.push('\n');
        lines.push((client, line));
    });
    lines.sort_unstable_by_key(|(client, _)| *client);
    lines
}

/// Whether a connection is one of the chosen ones.
pub(crate) fn is_meant(wanted: &Chosen, client: ClientId, session: &Session) -> bool {
    match wanted {
        Chosen::Id(id) => client.0 == *id,
        Chosen::Address(wanted) => address(session).as_bytes() == *wanted,
    }
}

/// Ends connections, except for that of the caller. Returns their number.
pub(crate) fn kill(shard: &Shard, wanted: &Chosen, caller: ClientId) -> u64 {
    let mut killed = 0;
    shard.each_client(|client, session| {
        if !is_guest(client) && client != caller && is_meant(wanted, client, session) {
            session.kill(Ending::Killed);
            killed += 1;
        }
    });
    killed
}

fn address(session: &Session) -> String {
    session.about.borrow().peer.map(|peer| peer.to_string()).unwrap_or_default()
}
