//! Where letters are written and found.
//!
//! Letters to another shard are gathered while connections work, and then handed over with one lock
//! and one wake-up. A mailbox has no bound of its own, but its writers have: a connection has a
//! bounded number of bytes under way to each shard, and the replies are bounded too. This module
//! does not know what letters say.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError};

use pinpriq_proto::task::{ClientId, RequestId};
use tokio::sync::Notify;

use super::letter::{Commands, Errand, Home, Letter, News};
use crate::bell::Bell;
use crate::letters::owners::Owners;
use crate::sharding::Sharding;

/// Where a shard finds letters from the others.
#[derive(Default)]
pub(crate) struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    bell: Notify,
}

impl Mailbox {
    /// Adds letters, which leaves `letters` empty.
    pub(crate) fn put(&self, letters: &mut Vec<Letter>) {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).append(letters);
        self.bell.notify_one();
    }

    /// Removes and returns the letters.
    pub(crate) fn empty(&self) -> Vec<Letter> {
        std::mem::take(&mut *self.letters.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the bell that rings when a letter has come.
    pub(crate) const fn bell(&self) -> &Notify {
        &self.bell
    }
}

/// Where a shard of a cluster is at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Route {
    /// It has no owner that is known.
    #[default]
    Nowhere,
    /// In this process.
    Here,
    /// In another process.
    Away,
}

/// The way of one place of the process to all places, including itself. Each shard is a place. In
/// a cluster there is another one, which has the connections of clients and no queues.
pub(crate) struct Post {
    own: usize,
    sharding: Sharding,
    boxes: Arc<[Mailbox]>,
    /// Where each shard is, if that changes.
    routes: Option<Vec<Cell<Route>>>,
    /// Who serves each shard, if that changes.
    owners: Option<Owners>,
    /// For each place, letters that were written and not sent yet.
    outgoing: RefCell<Vec<Vec<Letter>>>,
    /// Rung when there is something to be sent.
    bell: Bell,
}

impl Post {
    /// Returns the way of the place with this number, given the mailboxes of all places, of which
    /// the first ones are those of the shards.
    pub(crate) fn new(own: usize, sharding: Sharding, boxes: Arc<[Mailbox]>) -> Self {
        let outgoing = boxes.iter().map(|_| Vec::new()).collect();
        Self {
            own,
            sharding,
            boxes,
            routes: None,
            owners: None,
            outgoing: RefCell::new(outgoing),
            bell: Bell::default(),
        }
    }

    /// Returns the same way for the home of a cluster, whose shards change their owners. At first
    /// no shard has one.
    pub(crate) fn with_routes(self) -> Self {
        let routes = (0..self.shards()).map(|_| Cell::default()).collect();
        let owners = Some(Owners::new(self.shards()));
        Self { routes: Some(routes), owners, ..self }
    }

    /// Whether shards change their owners.
    pub(crate) const fn changes_owners(&self) -> bool {
        self.routes.is_some()
    }

    /// Returns who serves each shard, if that changes.
    pub(crate) const fn owners(&self) -> Option<&Owners> {
        self.owners.as_ref()
    }

    /// Returns where a shard is at the moment.
    pub(crate) fn route(&self, to: usize) -> Route {
        match &self.routes {
            None => Route::Here,
            Some(routes) => routes.get(to).map_or(Route::Here, Cell::get),
        }
    }

    /// Sets where a shard is, if that changes. What was written to it before must have been taken
    /// out.
    pub(crate) fn set_route(&self, to: usize, route: Route) {
        if let Some(cell) = self.routes.as_ref().and_then(|routes| routes.get(to)) {
            cell.set(route);
        }
    }

    /// Removes and returns the letters to a shard that were not sent.
    pub(crate) fn take(&self, to: usize) -> Vec<Letter> {
        std::mem::take(&mut self.outgoing.borrow_mut()[to])
    }

    /// The number of the place itself. A shard's is its own number.
    pub(crate) const fn own(&self) -> usize {
        self.own
    }

    /// How many shards there are.
    pub(crate) const fn shards(&self) -> usize {
        self.sharding.shards()
    }

    /// How names are divided among them.
    pub(crate) const fn sharding(&self) -> Sharding {
        self.sharding
    }

    /// How many places there are.
    pub(crate) fn places(&self) -> usize {
        self.boxes.len()
    }

    /// Puts a letter into the mailbox of a place at once.
    pub(crate) fn put_into(&self, to: usize, letter: Letter) {
        self.boxes[to].put(&mut vec![letter]);
    }

    /// Removes and returns the letters in the mailbox of a place, which is no longer read.
    pub(crate) fn empty_box(&self, of: usize) -> Vec<Letter> {
        self.boxes[of].empty()
    }

    /// Writes a letter, which the next [`Post::send`] sends.
    pub(crate) fn write(&self, to: usize, letter: Letter) {
        self.outgoing.borrow_mut()[to].push(letter);
        self.bell.ring();
    }

    /// Writes what a client wants of a shard.
    pub(crate) fn write_errand(&self, to: usize, client: ClientId, errand: Errand) {
        self.write(to, Letter::Errand { home: Home::Place(self.own), client, errand });
    }

    /// Writes to the home of a client what has become of its errands. What goes to another process
    /// goes through the last place of this one.
    pub(crate) fn write_news(&self, home: Home, client: ClientId, news: News) {
        let to = match home {
            Home::Place(to) => to,
            Home::Link(_) => self.places() - 1,
        };
        self.write(to, Letter::News { from: self.own, home, client, news });
    }

    /// Writes a command of a client.
    ///
    /// The command joins the last letter if that has commands of the same client, and otherwise
    /// begins a new one. `encode` appends the command to a buffer. Returns the number of bytes that
    /// the command occupies in the letter.
    pub(crate) fn write_command(
        &self,
        to: usize,
        client: ClientId,
        request: RequestId,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> usize {
        let outgoing = &mut self.outgoing.borrow_mut()[to];
        if let Some(Letter::Errand { client: same, errand: Errand::Commands(commands), .. }) =
            outgoing.last_mut()
            && *same == client
        {
            return commands.push(request, encode);
        }
        let mut commands = Commands::default();
        let length = commands.push(request, encode);
        let errand = Errand::Commands(commands);
        outgoing.push(Letter::Errand { home: Home::Place(self.own), client, errand });
        self.bell.ring();
        length
    }

    /// Sends everything that was written to places of this process. The listener silences the bell.
    pub(crate) fn send(&self) {
        let mut outgoing = self.outgoing.borrow_mut();
        for (to, (letters, mailbox)) in outgoing.iter_mut().zip(&*self.boxes).enumerate() {
            if !letters.is_empty() && self.route(to) == Route::Here {
                mailbox.put(letters);
            }
        }
    }

    /// Rung when something was written since the last [`Post::send`].
    pub(crate) const fn bell(&self) -> &Bell {
        &self.bell
    }
}
