//! What a desk asks all shards, and joins into one reply.

use pinpriq_proto::command::Command;
use pinpriq_proto::letters::encode_command;
use pinpriq_proto::reply::Output;
use pinpriq_proto::task::RequestId;

use super::Desk;
use crate::clients::about::Chosen;
use crate::facts::Facts;
use crate::home::joins::{join_clients, join_counts, join_facts, join_replies};
use crate::home::route::ownerless;
use crate::host::roll;
use crate::host::seat::Undone;
use crate::letters::letter::{Commands, Inquiry, Part, Question};
use crate::letters::mailbox::Route;
use crate::letters::owners::Owners;
use crate::session::outbox::{Join, Joined};
use pinpriq_proto::facts::Joining;

impl Desk {
    /// Asks all shards for a command, and joins their replies into one. In a cluster, all must have
    /// owners.
    pub(super) fn ask_everywhere(
        &self,
        request: RequestId,
        command: &Command<'_>,
        joining: Joining,
    ) -> Result<(), Undone> {
        let client = self.seat.client;
        let shards = 0..self.seat.shard.shards();
        if let Some(shard) = shards.clone().find(|to| self.seat.shard.is_nowhere(*to)) {
            return Err(Undone::Refused(ownerless(shard)));
        }
        let question = || {
            let mut commands = Commands::default();
            commands.push(request, |out| encode_command(command, out));
            Question::Command(commands)
        };
        let join = move |parts| {
            let reply = join_replies(joining, parts);
            Joined::Output(Output::Reply { client, request, reply })
        };
        self.ask_all(&shards.collect::<Vec<_>>(), question, Box::new(join));
        Ok(())
    }

    /// Asks these shards for their part of a reply. Later requests of the client are not carried
    /// out before all parts are there: this shard would be ahead of its own part.
    fn ask_all(&self, shards: &[usize], question: impl Fn() -> Question, join: Join) {
        let (shard, session) = (&self.seat.shard, &self.seat.session);
        self.routes.set(true);
        self.detours.set(true);
        shard.turn_if_begun();
        for to in shards {
            self.open_link(*to);
            self.asking().ask_question(*to, question());
        }
        session.links.borrow_mut().gathers = true;
        self.say_joined(shards, join);
    }

    /// Returns the places to ask for facts: all, but of a cluster only the shards in this process.
    fn asked_for_facts(&self) -> Vec<usize> {
        let shard = &self.seat.shard;
        let Some(post) = shard.post().filter(|post| post.changes_owners()) else {
            return (0..shard.places()).collect();
        };
        (0..shard.shards()).filter(|to| post.route(*to) == Route::Here).collect()
    }

    /// Whether there is no place but the own one.
    fn is_alone(&self) -> bool {
        self.seat.shard.places() == 1
    }

    /// Replies with the facts about all shards, written by `write`.
    pub(crate) fn say_facts(&self, write: impl FnOnce(&Facts) -> Vec<u8> + 'static) {
        if self.is_alone() {
            return self.say(write(&self.seat.shard.facts()));
        }
        let shards = self.asked_for_facts();
        if shards.is_empty() {
            return self.say(write(&self.facts().of_home()));
        }
        // The home of a cluster has the connections, and no shard.
        let own = self.changes_owners().then(|| self.facts());
        let join = move |mut parts: Vec<Part>| {
            parts.extend(own.map(|own| Part::Facts(Box::new(own.of_home()))));
            Joined::Bytes(write(&join_facts(parts)))
        };
        self.ask_all(&shards, || Question::Inquiry(Inquiry::Facts), Box::new(join));
    }

    /// Returns the facts about the home of a cluster, and what it knows about the others.
    fn facts(&self) -> Facts {
        Facts { cluster: self.owners().map(Owners::facts), ..self.seat.shard.facts() }
    }

    /// Replies with a line for each connection of all shards, written by `write`.
    pub(crate) fn say_clients(&self, write: impl FnOnce(&str) -> Vec<u8> + 'static) {
        if self.is_alone() || self.changes_owners() {
            let lines = roll::describe(&self.seat.shard).into_iter().map(|(_, line)| line);
            return self.say(write(&lines.collect::<String>()));
        }
        let join = move |parts| Joined::Bytes(write(&join_clients(parts)));
        let all: Vec<usize> = (0..self.seat.shard.places()).collect();
        self.ask_all(&all, || Question::Inquiry(Inquiry::Clients), Box::new(join));
    }

    /// Ends connections of all shards, except the client's own, and replies with their number,
    /// written by `write`.
    pub(crate) fn say_killed(&self, wanted: &Chosen, write: impl FnOnce(u64) -> Vec<u8> + 'static) {
        let caller = self.seat.client;
        if self.is_alone() || self.changes_owners() {
            return self.say(write(roll::kill(&self.seat.shard, wanted, caller)));
        }
        let join = move |parts: Vec<Part>| Joined::Bytes(write(join_counts(&parts)));
        let question = || Question::Inquiry(Inquiry::Kill(wanted.clone(), caller));
        let all: Vec<usize> = (0..self.seat.shard.places()).collect();
        self.ask_all(&all, question, Box::new(join));
    }
}
