//! Who the clients of all shards are, to show with their leases and to note with their attempts.
//!
//! Written when a client comes, takes a name, or goes. Read only for replies that describe a lease,
//! and where a queue notes attempts.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pinpriq_proto::fields::Seen;
use pinpriq_proto::fields::told::Holder;
use pinpriq_proto::limits::NAME_BYTES_MAX;
use pinpriq_proto::task::history::{self, Clients};
use pinpriq_proto::task::{ClientId, TaskRecord};

use crate::clients::about::at_home;
use crate::config::DoorName;

/// The contacts of all clients that are connected.
#[derive(Debug, Default)]
pub(crate) struct Contacts {
    known: Mutex<HashMap<ClientId, Contact>>,
}

/// How to find out whose connection it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Contact {
    /// The name that the client has given itself. Empty if it has none.
    pub(crate) name: Vec<u8>,
    /// The address that it comes from.
    pub(crate) address: SocketAddr,
    /// The door that it came through.
    pub(crate) door: DoorName,
}

impl Contacts {
    /// Adds a client that has no name yet.
    pub(crate) fn add(&self, client: ClientId, address: SocketAddr, door: DoorName) {
        self.known().insert(client, Contact { name: Vec::new(), address, door });
    }

    /// Gives a client another name.
    pub(crate) fn rename(&self, client: ClientId, name: &[u8]) {
        if let Some(contact) = self.known().get_mut(&client) {
            contact.name = name.to_vec();
        }
    }

    /// Forgets a client that has gone.
    pub(crate) fn remove(&self, client: ClientId) {
        self.known().remove(&client);
    }

    /// Returns the contact of a client that is still there.
    pub(crate) fn find(&self, client: ClientId) -> Option<Contact> {
        self.known().get(&client).cloned()
    }

    /// Returns who holds a lease, as far as that client is still there.
    pub(crate) fn holder(&self, client: Option<ClientId>) -> Holder {
        let Some(client) = client.map(at_home) else { return Holder::default() };
        let known = Holder { client: Some(client.0), ..Holder::default() };
        match self.find(client) {
            None => known,
            Some(Contact { name, address, door }) => {
                Holder { name, address: Some(address), door: Some(door.word()), ..known }
            }
        }
    }

    /// Shows a task with the client that has taken it, while that is connected.
    pub(crate) fn see<R>(
        &self,
        task: &TaskRecord,
        hides_receipt: bool,
        look: impl FnOnce(&Seen<'_>) -> R,
    ) -> R {
        let seen = Seen { hides_receipt, ..Seen::of(task) };
        match seen.holder().and_then(|holder| self.find(holder)) {
            None => look(&seen),
            Some(Contact { name, address, .. }) => {
                look(&Seen { client_name: &name, client_address: Some(address), ..seen })
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<ClientId, Contact>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clients for Contacts {
    fn contact(&self, client: ClientId) -> Option<history::Contact> {
        let Contact { name, address, .. } = self.find(client)?;
        let name = name.get(..NAME_BYTES_MAX).unwrap_or(&name).into();
        Some(history::Contact { name, address: address.to_string().into_bytes().into() })
    }
}
