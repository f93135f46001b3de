//! Who is connected, for those who look after the server.

use std::fmt::Write as _;

use pinpriq_engine::task::ClientId;

use crate::shard::{Session, Shard};

/// Which connections are to be ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kill<'a> {
    /// The one with this number.
    Id(u64),
    /// The one from this address.
    Address(&'a [u8]),
}

/// A line for each client, in the order in which they came.
pub(crate) fn describe(shard: &Shard) -> String {
    let now = shard.clock().now();
    let mut lines: Vec<(ClientId, String)> = Vec::new();
    shard.each_client(|client, session| {
        let about = session.about.borrow();
        let age_s = now.since(about.connected_at).ms() / 1_000;
        let mut line = format!(
            "id={} addr={} name={} age={age_s} door={} blocked={} waiting={}",
            client.0,
            address(session),
            about.name.escape_ascii(),
            about.door,
            u8::from(session.is_blocked()),
            session.outbox.borrow().len(),
        );
        let (library, version) = (&about.library, &about.library_version);
        let _ = writeln!(
            line,
            " lib-name={} lib-ver={}",
            library.escape_ascii(),
            version.escape_ascii()
        );
        lines.push((client, line));
    });
    lines.sort_unstable_by_key(|(client, _)| *client);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// What [`kill`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Killed {
    /// How many connections of others are being ended.
    pub(crate) others: u64,
    /// Whether whoever asked is meant as well, and has to see to it.
    pub(crate) caller: bool,
}

/// Has connections ended, except for that of the caller.
pub(crate) fn kill(shard: &Shard, which: &Kill<'_>, caller: ClientId) -> Killed {
    let mut killed = Killed { others: 0, caller: false };
    shard.each_client(|client, session| {
        let is_meant = match which {
            Kill::Id(id) => client.0 == *id,
            Kill::Address(wanted) => address(session).as_bytes() == *wanted,
        };
        if is_meant && client == caller {
            killed.caller = true;
        } else if is_meant {
            session.kill();
            killed.others += 1;
        }
    });
    killed
}

fn address(session: &Session) -> String {
    session.about.borrow().peer.map(|peer| peer.to_string()).unwrap_or_default()
}
