//! Reads the users when a server starts, and again when their file changes or SIGHUP comes.
//!
//! What is in the file is up to `access::roster`.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_engine::time::Span;

use super::serving::{Context, Users};
use crate::access::audit::Audit;
use crate::access::roster::Roster;
use crate::config::{Config, Listener};
use crate::doors::kind_of;
use crate::error::ServeError;
use crate::letters::letter::Letter;

/// How often the file is looked at.
const LOOK_MS: u64 = 1_000;

/// Reads the users of a server, if it has some. Refuses to listen beyond loopback without any.
/// Blocks.
pub(crate) fn open(config: &Config) -> Result<Users, ServeError> {
    let audit = config.audit.clone().map(Audit::open).transpose()?;
    let roster = roster(config, audit.as_ref())?;
    Ok((roster, audit))
}

fn roster(config: &Config, audit: Option<&Arc<Audit>>) -> Result<Option<Arc<Roster>>, ServeError> {
    let beyond = |it: &&Listener| !is_loopback(it.address);
    let Some(from) = &config.users else {
        let open = config.listeners.iter().find(beyond).map(|it| it.address);
        return match open {
            Some(address) if !config.insecure_open && !planted!(OpenBeyondLoopback) => {
                Err(ServeError::Open { address })
            }
            Some(address) => {
                tracing::warn!(
                    %address,
                    "--insecure-open: whoever can reach this server can use all its queues"
                );
                Ok(None)
            }
            None => Ok(None),
        };
    };
    let roster = Roster::open(from.clone(), audit.cloned())?;
    for listener in config.listeners.iter().filter(beyond) {
        let Listener { door, address } = *listener;
        let has_anonymous = || roster.anonymous().is_some_and(|pass| !pass.user.rules.is_empty());
        if !kind_of(door).signs_in && !has_anonymous() && !config.insecure_open {
            return Err(ServeError::Anonymous { door: door.word(), address });
        }
        tracing::warn!(
            %address,
            door = door.word(),
            "passwords and tasks pass unencrypted here: whoever is on the way can read them"
        );
    }
    Ok(Some(roster))
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Reads the users again when that is due. Never ends.
pub(crate) async fn watch(roster: Arc<Roster>, context: Rc<Context>) {
    let clock = context.shard().clock();
    loop {
        let anyway = tokio::select! {
            () = roster.asked() => true,
            () = clock.until(clock.now().after(Span::from_ms(LOOK_MS))) => false,
        };
        let looking = Arc::clone(&roster);
        let looked = tokio::task::spawn_blocking(move || looking.look(anyway)).await;
        if looked.is_ok_and(|has_changed| has_changed) {
            for mailbox in context.common.homes() {
                mailbox.put(&mut vec![Letter::UsersChanged]);
            }
        }
    }
}
