//! The desk of one client: what its door talks to.
//!
//! A door asks for commands and does not know where they are carried out: at this shard, borrowed
//! and without a copy, or at others, by letters. In the second case the reply keeps its place among
//! the replies here. The desk bounds what may be under way, and asks nothing after a blocked
//! command. The other end of the letters is `host::guest`.

use std::rc::Rc;

use pinpriq_engine::Farewell;
use pinpriq_engine::command::Command;
use pinpriq_engine::reply::{Output, Refusal};
use pinpriq_engine::task::{ClientId, RequestId};
use pinpriq_engine::time::{Span, Timestamp};
use pinpriq_letters::encode_command;
use pinpriq_store::shards::shard_of;

use super::credits::{Credits, outstanding};
use super::joins::{Joining, join_clients, join_delivered, join_facts, join_killed, join_replies};
use super::roll;
use super::route::{
    Destination, elsewhere, may_block, queue_of_step, shard_of_all, shard_of_done,
    shard_of_schedule, shard_of_steps,
};
use crate::config::Limits;
use crate::host::facts::Facts;
use crate::host::readers::PIECE_BYTES;
use crate::host::seat::{Obstacle, Seat, Undone};
use crate::host::shard::Shard;
use crate::host::tally::Tally;
use crate::letters::letter::{Commands, Errand, Inquiry, News, Part, Question, Standing};
use crate::letters::mailbox::Post;
use crate::session::Session;
use crate::session::about::{Chosen, Dialect, Manners, SILENT};
use crate::session::outbox::{Join, Joined};

/// A shard is informed about sent outputs from this number of them, or this number of bytes, even
/// if there is nothing else to write to it.
const SENT_OUTPUTS: usize = 128;
const SENT_BYTES: usize = 16 << 10;

/// The desk of one client.
pub(crate) struct Desk {
    seat: Seat,
    credits: Credits,
    /// The deliveries that this shard had made before the credits began.
    delivered_before: u64,
    /// Whether queues may live in other shards.
    routes: bool,
    /// Whether the connection stays in this shard.
    is_placed: bool,
}

impl Desk {
    /// Returns the desk of a client known to the shard.
    pub(crate) fn new(
        shard: Rc<Shard>,
        who: (ClientId, Rc<Session>),
        limits: Limits,
        manners: Manners,
    ) -> Self {
        let routes = shard.shards() > 1;
        let is_placed = who.1.was_moved();
        let credits = Credits::new(limits.in_flight_max);
        let seat = Seat::new(shard, who, limits, manners);
        Self { seat, credits, delivered_before: 0, routes, is_placed }
    }

    /// Returns the number of the client.
    pub(crate) const fn client(&self) -> ClientId {
        self.seat.client
    }

    /// Returns the session of the client.
    pub(crate) fn session(&self) -> &Session {
        &self.seat.session
    }

    /// Returns the shard that has the connection.
    pub(crate) const fn shard(&self) -> &Rc<Shard> {
        &self.seat.shard
    }

    /// Returns what the shard counts about its clients.
    pub(crate) fn tally(&self) -> &Rc<Tally> {
        self.seat.shard.tally()
    }

    /// Returns the limits.
    pub(crate) const fn limits(&self) -> &Limits {
        &self.seat.limits
    }

    /// Returns how the client is treated.
    pub(crate) const fn manners(&self) -> Manners {
        self.seat.manners
    }

    /// Begins with requests that have arrived together.
    pub(crate) fn begin(&mut self) {
        self.seat.begin(0);
    }

    /// Checks whether the next command may be asked.
    #[inline]
    pub(crate) fn obstacle(&mut self) -> Option<Obstacle> {
        let here = self.seat.obstacle();
        if self.routes && here.is_none() { self.obstacle_abroad() } else { here }
    }

    #[inline(never)]
    fn obstacle_abroad(&self) -> Option<Obstacle> {
        let links = self.seat.session.links.borrow();
        if links.blocked {
            return Some(Obstacle::Reply);
        }
        links.is_full().then_some(Obstacle::Room)
    }

    /// Counts a request that was carried out, wherever its reply comes from.
    #[inline]
    pub(crate) const fn count(&mut self) {
        self.seat.count();
    }

    /// Asks for a command wherever it belongs. Its moments are by the wall clock. Its reply is
    /// written with this number, or not at all if that is [`SILENT`].
    #[inline]
    pub(crate) fn ask(&mut self, request: RequestId, command: &Command<'_>) -> Result<(), Undone> {
        if self.routes && self.ask_abroad(request, command)? {
            return Ok(());
        }
        self.seat.carry_out(request, command)
    }

    /// Asks other shards for a command if it belongs there. Returns whether it does.
    #[inline(never)]
    fn ask_abroad(&mut self, request: RequestId, command: &Command<'_>) -> Result<bool, Undone> {
        let (own, shards) = (self.seat.shard.own(), self.seat.shard.shards());
        let settled = self.seat.session.links.borrow().deliveries;
        let is_subscription = matches!(command, Command::Subscribe { .. });
        let (to, first) = match (Destination::of(command), settled) {
            // There can be no subscription elsewhere. The reply is the number of subscriptions
            // left.
            (Destination::Queues(_), Some(settled))
                if matches!(command, Command::Unsubscribe { .. }) =>
            {
                (settled, None)
            }
            (Destination::Queue(queue), _) => (shard_of(queue, shards), Some(queue)),
            (Destination::Queues(queues), _) => {
                (shard_of_all(queues, shards).map_err(Undone::Refused)?, queues.first().copied())
            }
            (Destination::Pair(one, other), _) => {
                (shard_of_all(&[one, other], shards).map_err(Undone::Refused)?, Some(one))
            }
            (Destination::Schedule(name, queue), _) => {
                let to = shard_of_schedule(name, queue, shards).map_err(Undone::Refused)?;
                (to, Some(name))
            }
            (Destination::Done(done, queues), _) => {
                let to = shard_of_done(done, queues, shards).map_err(Undone::Refused)?;
                (to, queues.first().copied())
            }
            // The door keeps the transaction, so the connection does not move.
            (Destination::Steps(steps), _) => {
                (shard_of_steps(steps, shards).map_err(Undone::Refused)?.unwrap_or(own), None)
            }
            (Destination::Deliveries, settled) => (settled.unwrap_or(own), None),
            (Destination::Everywhere(joining), _) => {
                self.ask_everywhere(request, command, joining);
                return Ok(true);
            }
        };
        if !self.is_placed && first.is_some() {
            // Most connections use one queue. It is best to serve them in its shard.
            self.is_placed = true;
            let is_free = self.seat.session.links.borrow().is_unused();
            if to != own && is_free && self.credits.is_unused() {
                return Err(Undone::Move(to));
            }
        }
        if is_subscription && !self.settle_deliveries(to) {
            return Err(Undone::Refused(elsewhere(first.unwrap_or_default())));
        }
        if to != own {
            self.forward(to, request, command);
        }
        Ok(to != own)
    }

    /// Checks that the queue of a transaction with one step lives in the same shard as those of
    /// the steps before it, of which `first` is the first one.
    pub(crate) fn check_step(
        &self,
        first: &mut Option<Vec<u8>>,
        command: &Command<'_>,
    ) -> Result<(), Refusal> {
        let Command::Transaction([step]) = command else { return Ok(()) };
        let Some(queue) = queue_of_step(step).filter(|_| self.routes) else { return Ok(()) };
        if let Some(first) = first {
            return shard_of_all(&[first, queue], self.seat.shard.shards()).map(drop);
        }
        *first = Some(queue.to_vec());
        Ok(())
    }

    /// Asks another shard for a command.
    fn forward(&self, to: usize, request: RequestId, command: &Command<'_>) {
        let (shard, session) = (&self.seat.shard, &self.seat.session);
        let Some(post) = self.open_link(to) else { return };
        // Earlier replies come before this one in the outbox.
        shard.turn_if_begun();
        let encode = |out: &mut Vec<u8>| encode_command(command, out);
        let length = post.write_command(to, self.seat.client, request, encode);
        let links = &mut *session.links.borrow_mut();
        links.blocked |= may_block(command) && !planted!(BlockedAbroadPassed);
        let link = links.link(post.shards(), to);
        link.under_way += length;
        link.standing.subscribed |= matches!(command, Command::Subscribe { .. });
        if request != SILENT {
            let dialect = session.dialect.get();
            session.outbox.borrow_mut().await_reply(post.shards(), to, dialect);
        }
    }

    /// Asks all shards for a command, and joins their replies into one.
    fn ask_everywhere(&self, request: RequestId, command: &Command<'_>, joining: Joining) {
        let client = self.seat.client;
        let question = || {
            let mut commands = Commands::default();
            commands.push(request, |out| encode_command(command, out));
            Question::Command(commands)
        };
        let join = move |parts| {
            let reply = join_replies(joining, parts);
            Joined::Output(Output::Reply { client, request, reply })
        };
        self.ask_all(question, Box::new(join));
    }

    /// Asks all shards for their part of a reply. Later requests of the client are not carried out
    /// before all parts are there: this shard would be ahead of its own part.
    fn ask_all(&self, question: impl Fn() -> Question, join: Join) {
        let (shard, session) = (&self.seat.shard, &self.seat.session);
        shard.turn_if_begun();
        for to in 0..shard.shards() {
            let Some(post) = self.open_link(to) else { return };
            let question = question();
            if let Question::Command(commands) = &question {
                session.links.borrow_mut().link(post.shards(), to).under_way += commands.len();
            }
            post.write_errand(to, self.seat.client, Errand::Ask(question));
        }
        session.links.borrow_mut().gathers = !planted!(AllShardsPassed);
        let all: Vec<usize> = (0..shard.shards()).collect();
        self.say_joined(&all, join);
    }

    /// Replies with the facts about all shards, written by `write`.
    pub(crate) fn say_facts(&self, write: impl FnOnce(&Facts) -> Vec<u8> + 'static) {
        if !self.routes {
            return self.say(write(&self.seat.shard.facts()));
        }
        let join = move |parts| Joined::Bytes(write(&join_facts(parts)));
        self.ask_all(|| Question::Inquiry(Inquiry::Facts), Box::new(join));
    }

    /// Replies with a line for each connection of all shards, written by `write`.
    pub(crate) fn say_clients(&self, write: impl FnOnce(&str) -> Vec<u8> + 'static) {
        if !self.routes {
            let lines = roll::describe(&self.seat.shard).into_iter().map(|(_, line)| line);
            return self.say(write(&lines.collect::<String>()));
        }
        let join = move |parts| Joined::Bytes(write(&join_clients(parts)));
        self.ask_all(|| Question::Inquiry(Inquiry::Clients), Box::new(join));
    }

    /// Ends connections of all shards, except the client's own, and replies with their number,
    /// written by `write`.
    pub(crate) fn say_killed(&self, wanted: &Chosen, write: impl FnOnce(u64) -> Vec<u8> + 'static) {
        let caller = self.seat.client;
        if !self.routes {
            return self.say(write(roll::kill(&self.seat.shard, wanted, caller)));
        }
        let join = move |parts: Vec<Part>| Joined::Bytes(write(join_killed(&parts)));
        let question = || Question::Inquiry(Inquiry::Kill(wanted.clone(), caller));
        self.ask_all(question, Box::new(join));
    }

    /// Replies without an engine, after all earlier replies.
    pub(crate) fn say(&self, bytes: Vec<u8>) {
        self.seat.shard.say(&self.seat.session, bytes);
    }

    /// Replies once all shards that the client has links to have done their latest errands. Without
    /// links the reply waits for nothing.
    fn say_once_done(&self, bytes: Vec<u8>) {
        let session = &self.seat.session;
        let open: Vec<usize> = session.links.borrow().open().collect();
        if open.is_empty() || planted!(ResetNotAwaited) {
            return self.say(bytes);
        }
        self.seat.shard.turn_if_begun();
        self.say_joined(&open, Box::new(move |_| Joined::Bytes(bytes)));
    }

    /// Replies once each of these shards has given its part.
    fn say_joined(&self, shards: &[usize], join: Join) {
        let session = &self.seat.session;
        let dialect = session.dialect.get();
        let mut outbox = session.outbox.borrow_mut();
        outbox.await_parts(self.seat.shard.shards(), shards, dialect, join);
    }

    /// Writes all later replies in this dialect.
    pub(crate) fn speak(&self, dialect: Dialect) {
        // Earlier replies are still written in the former dialect.
        self.seat.shard.turn();
        self.seat.session.dialect.set(dialect);
    }

    /// Whether the client has subscriptions.
    #[inline]
    pub(crate) fn is_subscribed(&mut self) -> bool {
        self.seat.is_subscribed()
            || (self.routes && self.seat.session.links.borrow().is_subscribed())
    }

    /// Settles on a shard for all subscriptions and credits of the client. Returns false if they
    /// are in another already.
    fn settle_deliveries(&mut self, to: usize) -> bool {
        let settled = self.seat.session.links.borrow().deliveries;
        if let Some(settled) = settled {
            return settled == to;
        }
        self.seat.session.links.borrow_mut().deliveries = Some(to);
        if planted!(EarlyCreditsLost) {
            self.credits.withdraw();
        }
        true
    }

    /// Adds credit. It is used for deliveries once the engine may get it.
    pub(crate) fn add_credit(&mut self, credits: u32) {
        self.credits.add(credits);
    }

    /// Adds credit, and replies with all credit that no delivery has spent, written by `write`. The
    /// reply comes before the deliveries that the credit causes, when the engine has got the
    /// credit.
    pub(crate) fn say_credit(
        &mut self,
        credits: u32,
        write: impl FnOnce(u32) -> Vec<u8> + 'static,
    ) {
        self.credits.add(credits);
        // Deliveries made before count as spent.
        self.seat.shard.turn();
        match self.deliveries_abroad() {
            None => self.say(write(self.credits.outstanding(self.delivered()))),
            Some(to) => {
                let given = self.credits.given();
                if let Some(post) = self.open_link(to) {
                    post.write_errand(to, self.seat.client, Errand::Ask(Question::Delivered));
                }
                let join = move |parts: Vec<Part>| {
                    let delivered = join_delivered(&parts);
                    Joined::Bytes(write(outstanding(given, delivered)))
                };
                self.say_joined(&[to], Box::new(join));
            }
        }
        self.draw();
    }

    /// Returns the other shard that has the client's subscriptions and credits, if any.
    fn deliveries_abroad(&self) -> Option<usize> {
        let to = self.seat.session.links.borrow().deliveries;
        to.filter(|to| *to != self.seat.shard.own())
    }

    /// Returns the number of deliveries since the credits began.
    fn delivered(&self) -> u64 {
        match self.deliveries_abroad() {
            None => self.seat.session.delivered() - self.delivered_before,
            Some(to) => {
                let links = &mut *self.seat.session.links.borrow_mut();
                links.link(self.seat.shard.shards(), to).delivered
            }
        }
    }

    /// Starts again without credits.
    fn forget_credits(&mut self) {
        self.credits = Credits::new(self.seat.limits.in_flight_max);
        self.delivered_before = self.seat.session.delivered();
    }

    /// Gives the engine as many credits as there may be deliveries under way, unless the client has
    /// too much under way already. Returns whether there were any.
    pub(crate) fn grant(&mut self) -> bool {
        let is_full = || self.seat.session.outbox.borrow().is_full(&self.seat.limits);
        self.credits.has_banked() && !is_full() && self.draw()
    }

    /// Gives credits like [`Desk::grant`]. It gives none as long as it is open which shard they are
    /// for.
    fn draw(&mut self) -> bool {
        let to = self.seat.session.links.borrow().deliveries;
        if self.routes && to.is_none() {
            return false;
        }
        let credits = self.credits.draw(self.delivered());
        if credits == 0 {
            return false;
        }
        let (shard, client) = (&self.seat.shard, self.seat.client);
        let to = to.unwrap_or_else(|| shard.own());
        if to == shard.own() {
            shard.apply(client, SILENT, &Command::Credit(credits));
        } else if let Some(post) = self.open_link(to) {
            post.write_errand(to, client, Errand::Credit(credits));
        }
        true
    }

    /// Gives credits like [`Desk::grant`], after replies may have been sent, so that more may be
    /// granted.
    pub(crate) fn refill(&mut self) -> bool {
        let has_granted = self.grant();
        if has_granted {
            self.seat.shard.turn();
        }
        has_granted
    }

    /// Ends the credit of a client that has ended its side while its requests wait for room,
    /// perhaps forever.
    pub(crate) fn lapse_if_stalled(&mut self) {
        if self.seat.manners.waits_for_room && self.seat.session.is_stalled() {
            if self.deliveries_abroad().is_some() {
                self.credits.withdraw();
            } else {
                self.forget_credits();
            }
            self.seat.retire();
        }
    }

    /// Gives the client another name.
    pub(crate) fn rename(&self, name: Vec<u8>) {
        self.seat.shard.contacts().rename(self.seat.client, &name);
        self.seat.session.about.borrow_mut().name = name;
    }

    /// Returns how long it is until a moment by the wall clock, or zero if that has passed.
    pub(crate) fn until(&self, at: Timestamp) -> Span {
        let shard = &self.seat.shard;
        shard.by_own_time(at).since(shard.now())
    }

    /// Ends everything that belongs to the client except its connection. Replies with `answer` once
    /// this is done everywhere.
    pub(crate) fn reset(&mut self, answer: Vec<u8>) {
        self.tell_links(|_| Errand::Reset);
        {
            let shards = self.seat.shard.shards();
            let links = &mut *self.seat.session.links.borrow_mut();
            links.deliveries = None;
            let open: Vec<usize> = links.open().collect();
            for to in open {
                let link = links.link(shards, to);
                link.standing.subscribed = false;
                link.delivered = 0;
                link.resets += 1;
            }
        }
        self.seat.reset();
        self.forget_credits();
        self.rename(Vec::new());
        self.say_once_done(answer);
    }

    /// Ends the wait of the blocked command, whose reply comes as if its time had passed. Returns
    /// whether there is such a command and this was not asked before.
    pub(crate) fn end_waits(&self) -> bool {
        if self.seat.session.is_blocked() {
            self.seat.shard.end_waits(self.seat.client);
            return true;
        }
        {
            let links = &mut *self.seat.session.links.borrow_mut();
            if !links.blocked || std::mem::replace(&mut links.gives_up, true) {
                return false;
            }
        }
        self.tell_links(|_| Errand::EndWaits);
        true
    }

    /// Whether a command is blocked.
    pub(crate) fn is_blocked(&self) -> bool {
        self.seat.session.is_blocked() || self.seat.session.links.borrow().blocked
    }

    /// Accepts no more requests. If the server stops, the wait of the blocked command ends.
    pub(crate) fn end(&self, stopping: bool) {
        let (client, session) = (self.seat.client, &self.seat.session);
        // The outbox must hold everything that was handed to the client.
        self.seat.shard.turn_if_begun();
        if stopping {
            self.seat.shard.stop_blocked(client, session);
        }
        let leases = session.outbox.borrow().leases();
        let of = |shard: Option<usize>| {
            let own = leases.iter().filter(|(from, _)| *from == shard);
            own.map(|(_, receipt)| *receipt).collect::<Vec<_>>()
        };
        self.tell_links(|to| Errand::End { stopping, unsent: of(Some(to)) });
        let farewell =
            if stopping { Farewell::ServerStops } else { Farewell::Ended { unsent: &of(None) } };
        self.seat.shard.retire(client, farewell);
    }

    /// Makes all shards forget the client. Whatever was handed to it and not sent goes back.
    pub(crate) fn leave(&self) {
        let session = &self.seat.session;
        let mut unsent = session.outbox.borrow_mut().unsent();
        let tasks: usize = unsent.iter().map(|(_, it)| it.popped_count()).sum();
        let requeues = self.seat.manners.requeues;
        if tasks > 0 {
            let client = self.seat.client.0;
            tracing::debug!(client, tasks, requeues, "the last answer could not be sent whole");
        }
        let (_, mut own) = unsent.swap_remove(0);
        if !requeues {
            own.forget_popped();
        }
        let shards = self.seat.shard.shards();
        let links = &mut *session.links.borrow_mut();
        let open: Vec<usize> = links.open().collect();
        for to in open {
            let Some(post) = self.seat.shard.post() else { continue };
            let at = unsent.iter().position(|(from, _)| *from == Some(to));
            let unsent = at.map(|at| unsent.swap_remove(at).1).unwrap_or_default();
            let heard = links.link(shards, to).heard;
            if !planted!(CutNotTold) {
                post.write_errand(to, self.seat.client, Errand::Cut { heard, unsent });
            }
        }
        self.seat.shard.disconnect(self.seat.client, own);
    }

    /// Requests the payloads that the first reply lacks from the shard that has made the reply.
    pub(crate) fn read_payloads(&self) {
        let session = &self.seat.session;
        let from = session.outbox.borrow().reads_from();
        let Some((from, post)) = from.zip(self.seat.shard.post()) else {
            return self.seat.shard.read_for(session);
        };
        let wanted = session.outbox.borrow_mut().wanted(PIECE_BYTES);
        if !wanted.is_empty() {
            post.write_errand(from, self.seat.client, Errand::Read(wanted));
        }
    }

    /// Informs each shard of the number of its outputs that were sent, if it is worth a letter.
    pub(crate) fn note_sent(&self) {
        if self.seat.session.links.borrow().is_unused() {
            return;
        }
        let limits = &self.seat.limits;
        let outputs = SENT_OUTPUTS.min(limits.in_flight_max / 2).max(1);
        let bytes = SENT_BYTES.min(limits.out_bytes_max / 2).max(1);
        for to in 0..self.seat.session.links.borrow().count() {
            self.tell_sent(to, (outputs, bytes));
        }
    }

    fn tell_sent(&self, to: usize, least: (usize, usize)) {
        let sent = self.seat.session.outbox.borrow_mut().take_accepted(to, least);
        if sent > 0
            && let Some(post) = self.seat.shard.post()
            && !planted!(AcceptedNotTold)
        {
            post.write_errand(to, self.seat.client, Errand::Sent(sent));
        }
    }

    /// Writes an errand to all shards that the client has links to.
    fn tell_links(&self, errand: impl Fn(usize) -> Errand) {
        let Some(post) = self.seat.shard.post() else { return };
        for to in self.seat.session.links.borrow().open() {
            post.write_errand(to, self.seat.client, errand(to));
        }
    }

    /// Makes sure that the shard expects errands of the client.
    fn open_link(&self, to: usize) -> Option<&Post> {
        let post = self.seat.shard.post()?;
        {
            let links = &mut *self.seat.session.links.borrow_mut();
            let link = links.link(post.shards(), to);
            if !std::mem::replace(&mut link.open, true) {
                post.write_errand(to, self.seat.client, Errand::Open(self.seat.manners));
            }
        }
        self.tell_sent(to, (1, 1));
        Some(post)
    }
}

/// Receives the news about errands of a client. If the client has gone, whatever was handed to it
/// goes back.
pub(crate) fn receive_news(shard: &Shard, client: ClientId, from: usize, news: News) {
    let Some(session) = shard.session(client) else {
        return send_back(shard, client, from, news);
    };
    let mut outbox = session.outbox.borrow_mut();
    let heard = news.outputs();
    outbox.arrive((shard.shards(), from), news.pieces, session.dialect.get());
    match news.payloads {
        None => {}
        Some(Ok(payloads)) => outbox.supply(payloads),
        Some(Err(refusal)) => outbox.lose_payloads(&refusal, news.tells_refusals),
    }
    let links = &mut *session.links.borrow_mut();
    let link = links.link(shard.shards(), from);
    link.heard += heard;
    link.under_way -= news.consumed;
    // News from before the client's latest reset do not count.
    let is_new = link.resets == news.resets;
    link.delivered = if is_new { news.delivered } else { 0 };
    let subscribed = is_new && news.standing.subscribed;
    link.standing = Standing { subscribed, ..news.standing };
    if news.standing.ended.is_some() {
        outbox.lose(from);
    }
    if outbox.is_owed_nothing() {
        (links.blocked, links.gives_up, links.gathers) = (false, false, false);
    }
    session.bell.ring();
}

/// Sends back outputs that have come for a client that has gone.
fn send_back(shard: &Shard, client: ClientId, from: usize, news: News) {
    let outputs = news.outputs();
    if let Some(post) = shard.post()
        && outputs > 0
        && !planted!(LateOutputsKept)
    {
        let unsent = news.into_unsent();
        post.write_errand(from, client, Errand::Back { outputs, unsent });
    }
}
