//! Where letters are written and found.
//!
//! Letters to another shard are gathered while connections work, and then handed over with one lock
//! and one wake-up. A mailbox has no bound of its own, but its writers have: a connection has a
//! bounded number of bytes under way to each shard, and the replies are bounded too. This module
//! does not know what letters say.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use pinpriq_engine::task::{ClientId, RequestId};
use tokio::sync::Notify;

use super::letter::{Commands, Errand, Letter};
use crate::session::bell::Bell;

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

/// One shard's way to all shards, including itself.
pub(crate) struct Post {
    own: usize,
    boxes: Arc<[Mailbox]>,
    /// For each shard, letters that were written and not sent yet.
    outgoing: RefCell<Vec<Vec<Letter>>>,
    /// Rung when there is something to be sent.
    bell: Bell,
}

impl Post {
    /// Returns the way of the shard with this number, given the mailboxes of all shards.
    pub(crate) fn new(own: usize, boxes: Arc<[Mailbox]>) -> Self {
        let outgoing = boxes.iter().map(|_| Vec::new()).collect();
        Self { own, boxes, outgoing: RefCell::new(outgoing), bell: Bell::default() }
    }

    /// The number of the shard itself.
    pub(crate) const fn own(&self) -> usize {
        self.own
    }

    /// How many shards there are.
    pub(crate) fn shards(&self) -> usize {
        self.boxes.len()
    }

    /// The shard's own mailbox.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.boxes[self.own]
    }

    /// Writes a letter, which the next [`Post::send`] sends.
    pub(crate) fn write(&self, to: usize, letter: Letter) {
        self.outgoing.borrow_mut()[to].push(letter);
        self.bell.ring();
    }

    /// Writes what a client wants of a shard.
    pub(crate) fn write_errand(&self, to: usize, client: ClientId, errand: Errand) {
        self.write(to, Letter::Errand { home: self.own, client, errand });
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
        outgoing.push(Letter::Errand { home: self.own, client, errand });
        self.bell.ring();
        length
    }

    /// Sends everything that was written. The listener silences the bell.
    pub(crate) fn send(&self) {
        let mut outgoing = self.outgoing.borrow_mut();
        for (letters, mailbox) in outgoing.iter_mut().zip(&*self.boxes) {
            if !letters.is_empty() {
                mailbox.put(letters);
            }
        }
    }

    /// Rung when something was written since the last [`Post::send`].
    pub(crate) const fn bell(&self) -> &Bell {
        &self.bell
    }
}
