//! What is asked of other shards for one client: the letters, and what is kept of them until it is
//! done where shards change their owners.
//!
//! What is asked, and what becomes of the answers, is decided elsewhere.

use pinpriq_proto::task::{ClientId, RequestId};

use crate::clients::about::{PART, SILENT};
use crate::host::shard::Shard;
use crate::letters::letter::{Commands, Errand, Question};
use crate::letters::mailbox::Post;
use crate::session::Session;
use crate::session::log::{Wanted, What};

/// Who asks shards for a client.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) shard: &'a Shard,
    pub(super) session: &'a Session,
    pub(super) client: ClientId,
}

impl Asking<'_> {
    /// Whether shards change their owners, as in a cluster.
    pub(super) fn changes_owners(&self) -> bool {
        self.shard.post().is_some_and(Post::changes_owners)
    }

    /// Writes an errand to a shard.
    pub(super) fn errand(&self, to: usize, errand: Errand) {
        if let Some(post) = self.shard.post() {
            post.write_errand(to, self.client, errand);
        }
    }

    /// Writes an errand to all shards that the client has links to.
    pub(super) fn errand_to_all(&self, errand: impl Fn(usize) -> Errand) {
        for to in self.session.links.borrow().open() {
            self.errand(to, errand(to));
        }
    }

    /// Makes sure that a shard expects errands of the client.
    pub(super) fn open(&self, to: usize) {
        let links = &mut *self.session.links.borrow_mut();
        let manners = links.lasting.manners;
        let link = links.link(self.shard.places(), to);
        if !link.open
            && let Some(manners) = manners
        {
            (link.open, link.account) = (true, None);
            self.errand(to, Errand::Open(manners));
        }
    }

    /// Writes a command that `encode` appends to a buffer. If the owner of the shard may change,
    /// the command is kept until it is done, and if there is none, the next one is asked.
    pub(super) fn write(&self, to: usize, request: RequestId, encode: impl FnOnce(&mut Vec<u8>)) {
        let Some(post) = self.shard.post() else { return };
        let is_nowhere = self.shard.is_nowhere(to);
        if !is_nowhere {
            self.open(to);
        }
        let links = &mut *self.session.links.borrow_mut();
        let link = links.link(post.places(), to);
        if !post.changes_owners() {
            link.under_way += post.write_command(to, self.client, request, encode);
            return;
        }
        let mut bytes = Vec::new();
        encode(&mut bytes);
        if !is_nowhere {
            let copy = |out: &mut Vec<u8>| out.extend_from_slice(&bytes);
            post.write_command(to, self.client, request, copy);
        }
        let length = Commands::length(bytes.len());
        link.under_way += length;
        let (what, now) = (What::Command(request, bytes), self.shard.clock().now());
        link.log.push(what, length, now, request != SILENT);
    }

    /// Asks a shard for its part of something. Its reply is heard.
    pub(super) fn ask(&self, to: usize, encode: impl FnOnce(&mut Vec<u8>)) {
        self.write(to, PART, encode);
        self.session.outbox.borrow_mut().await_choice(self.shard.places(), to);
    }

    /// Asks a shard a question, whose answer is its part of a reply.
    pub(super) fn ask_question(&self, to: usize, question: Question) {
        let (wanted, length) = match &question {
            Question::Command(commands) => (Wanted::Reply, commands.len()),
            Question::Inquiry(_) => (Wanted::Facts, 0),
            Question::Delivered => (Wanted::Delivered, 0),
        };
        self.await_part(to, wanted, length);
        self.errand(to, Errand::Ask(question));
    }

    /// Notes that a shard owes its part of a reply.
    pub(super) fn await_part(&self, to: usize, wanted: Wanted, length: usize) {
        let links = &mut *self.session.links.borrow_mut();
        let link = links.link(self.shard.places(), to);
        link.under_way += length;
        if self.changes_owners() {
            link.log.push(What::Part(wanted), length, self.shard.clock().now(), true);
        }
    }
}
