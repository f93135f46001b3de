//! Reads the users and the certificates when a server starts, and again when their files change or
//! SIGHUP comes. Refuses a start that would let everybody in.
//!
//! What is in the files is up to `access::roster` and `tls::files`.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_proto::time::Span;
use tokio::sync::Notify;

use super::handshakes::Handshakes;
use super::serving::Context;
use crate::access::audit::Audit;
use crate::access::roster::Roster;
use crate::config::{Config, Listener};
use crate::doors::kind_of;
use crate::error::ServeError;
use crate::letters::letter::Letter;
use crate::tls::files::Files;

/// How often the files are looked at.
const LOOK_MS: u64 = 1_000;

/// The users, the audit and the encryption of a server.
#[derive(Clone, Default)]
pub(crate) struct Access {
    /// The users, if the server has some.
    pub(crate) roster: Option<Arc<Roster>>,
    /// The audit, if there is one.
    pub(crate) audit: Option<Arc<Audit>>,
    /// What encrypts connections, if something does.
    pub(crate) tls: Option<Arc<Handshakes>>,
    /// Rung when the files are to be read again, changed or not.
    pub(crate) asked: Arc<Notify>,
}

impl Access {
    /// Reads all of it. Refuses to listen beyond loopback without users. Blocks.
    pub(crate) fn open(config: &Config) -> Result<Self, ServeError> {
        let audit = config.audit.clone().map(Audit::open).transpose()?;
        let roster = roster(config, audit.as_ref())?;
        let files = config.tls.as_ref().map(Files::open).transpose()?;
        let tls = files.map(Handshakes::start).transpose()?.map(Arc::new);
        Ok(Self { roster, audit, tls, asked: Arc::default() })
    }
}

fn roster(config: &Config, audit: Option<&Arc<Audit>>) -> Result<Option<Arc<Roster>>, ServeError> {
    let beyond = |(it, _): &(Listener, bool)| !is_loopback(it.address);
    let Some(from) = &config.users else {
        let open = config.every_listener().find(beyond).map(|(it, _)| it.address);
        return match open {
            Some(address) if !config.insecure_open => Err(ServeError::Open { address }),
            Some(address) => {
                tracing::warn!(
                    %address,
                    "--insecure-open: every client that reaches this server can use all its queues"
                );
                Ok(None)
            }
            None => Ok(None),
        };
    };
    let roster = Roster::open(from.clone(), audit.cloned())?;
    for (Listener { door, address }, is_encrypted) in config.every_listener().filter(beyond) {
        let asks = config.tls.as_ref().is_some_and(|tls| is_encrypted && tls.clients.is_some());
        let has_anonymous = || roster.anonymous().is_some_and(|pass| !pass.user.rules.is_empty());
        if !kind_of(door).signs_in && !asks && !has_anonymous() && !config.insecure_open {
            return Err(ServeError::Anonymous { door: door.word(), address });
        }
        if !is_encrypted {
            tracing::warn!(
                %address,
                door = door.word(),
                "passwords and tasks pass unencrypted here and can be read on the way"
            );
        }
    }
    Ok(Some(roster))
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Reads the files of a server again when that is due, from now on.
pub(crate) fn watch(context: &Rc<Context>) {
    let Access { roster, tls, .. } = &context.common.access;
    if roster.is_some() || tls.is_some() {
        tokio::task::spawn_local(read_again(context.clone()));
    }
}

/// Reads the users and the certificates again when that is due, until the server stops.
async fn read_again(context: Rc<Context>) {
    let (common, clock) = (&context.common, context.shard().clock());
    loop {
        let anyway = tokio::select! {
            () = common.access.asked.notified() => true,
            () = clock.until(clock.now().after(Span::from_ms(LOOK_MS))) => false,
            () = common.stop.asked_for() => return,
        };
        let Access { roster, tls, .. } = common.access.clone();
        let looked = tokio::task::spawn_blocking(move || {
            if let Some(tls) = tls {
                tls.files.look(anyway);
            }
            roster.is_some_and(|roster| roster.look(anyway))
        });
        if looked.await.is_ok_and(|has_changed| has_changed) {
            for mailbox in common.homes() {
                mailbox.put(&mut vec![Letter::UsersChanged]);
            }
        }
    }
}
