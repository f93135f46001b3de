//! The clients of a shard, and how they come and go.

use std::net::SocketAddr;
use std::rc::Rc;

use pinpriq_proto::task::ClientId;

use super::Shard;
use crate::clients::about::{About, Dialect};
use crate::config::DoorName;
use crate::letters::mailbox::Post;
use crate::session::Session;

impl Shard {
    /// Adds a client whose connection another shard has.
    pub(crate) fn receive_guest(&self, client: ClientId) -> Rc<Session> {
        let session = Rc::<Session>::default();
        self.state.borrow_mut().sessions.insert(client, session.clone());
        session
    }

    /// Adds a new client that came through this door.
    pub(crate) fn connect(&self, door: DoorName, peer: SocketAddr) -> (ClientId, Rc<Session>) {
        let mut state = self.state.borrow_mut();
        // No two places use the same number.
        let own = self.own() as u64;
        let places = self.post.as_ref().map_or(1, Post::places) as u64;
        let client = ClientId(state.last_client * places + own + 1);
        state.last_client += 1;
        state.connections += 1;
        let connected_at = self.clock.now();
        let about = About { peer: Some(peer), door, connected_at, ..About::default() };
        let session = Rc::new(Session::of(about, Dialect::default(), false));
        state.sessions.insert(client, session.clone());
        self.contacts.add(client, peer, door);
        (client, session)
    }

    /// Adds a client whose connection another shard had.
    pub(crate) fn adopt(&self, client: ClientId, about: About, dialect: Dialect) -> Rc<Session> {
        let session = Rc::new(Session::of(about, dialect, true));
        let state = &mut *self.state.borrow_mut();
        state.connections += 1;
        state.sessions.insert(client, session.clone());
        session
    }

    /// Removes a client that has asked the engine for nothing, since another shard has it now.
    pub(crate) fn part_with(&self, client: ClientId) {
        let state = &mut *self.state.borrow_mut();
        state.sessions.remove(&client);
        state.connections -= 1;
        if state.connections == 0 {
            self.deserted_bell.notify_waiters();
        }
    }

    /// Returns the number of clients with their connection here.
    pub(crate) fn clients(&self) -> usize {
        self.state.borrow().connections
    }

    /// Whether there are neither clients nor guests.
    pub fn is_deserted(&self) -> bool {
        self.state.borrow().sessions.is_empty()
    }
}
