//! The desk of one client: what its door talks to.
//!
//! A door asks for commands and does not know where they are carried out: at this shard, borrowed
//! and without a copy, or at others, by letters. Then the reply only keeps its place among the
//! answers here. How much may be under way is bounded, and nothing is asked behind a command that
//! is blocked. The other end of the letters is `host::guest`.

use std::rc::Rc;

use pinpriq_engine::command::Command;
use pinpriq_engine::reply::{Output, Refusal};
use pinpriq_engine::task::{ClientId, RequestId};
use pinpriq_letters::encode_command;
use pinpriq_store::shards::shard_of;

use super::credits::{Credits, outstanding};
use super::joins::{Joining, join_clients, join_delivered, join_facts, join_killed, join_replies};
use super::roll;
use super::route::{Destination, elsewhere, may_block, shard_of_all};
use crate::config::Limits;
use crate::host::facts::Facts;
use crate::host::readers::PIECE_BYTES;
use crate::host::seat::{Obstacle, Seat, Undone};
use crate::host::shard::Shard;
use crate::host::tally::Tally;
use crate::letters::letter::{Commands, Errand, News, Part, Question, Standing};
use crate::letters::mailbox::Post;
use crate::session::Session;
use crate::session::about::{Chosen, Dialect, Manners, SILENT};
use crate::session::outbox::{Join, Joined};

/// From how many sent outputs on, and from how many bytes of them, a shard is told of them although
/// there is nothing else to tell.
const SENT_OUTPUTS: usize = 128;
const SENT_BYTES: usize = 16 << 10;

/// See the head of this file.
pub(crate) struct Desk {
    seat: Seat,
    credits: Credits,
    /// How many deliveries this shard had made before the credits began.
    delivered_before: u64,
    /// Whether queues may live in other shards.
    routes: bool,
    /// Whether the connection stays in this shard.
    is_placed: bool,
}

impl Desk {
    /// That of a client which the shard knows.
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

    /// The number of the client.
    pub(crate) const fn client(&self) -> ClientId {
        self.seat.client
    }

    /// What the shard has for the client.
    pub(crate) fn session(&self) -> &Session {
        &self.seat.session
    }

    /// The shard that has the connection.
    pub(crate) const fn shard(&self) -> &Rc<Shard> {
        &self.seat.shard
    }

    /// What the shard counts about its clients.
    pub(crate) fn tally(&self) -> &Rc<Tally> {
        self.seat.shard.tally()
    }

    /// The bounds.
    pub(crate) const fn limits(&self) -> &Limits {
        &self.seat.limits
    }

    /// How the client is dealt with.
    pub(crate) const fn manners(&self) -> Manners {
        self.seat.manners
    }

    /// Begins to ask what has come together.
    pub(crate) fn begin(&mut self) {
        self.seat.begin(0);
    }

    /// Looks whether the next command may be asked.
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

    /// Counts a request that was carried out, whoever answers it.
    #[inline]
    pub(crate) const fn count(&mut self) {
        self.seat.count();
    }

    /// Has a command carried out where it belongs. Its moments are by the wall clock. Its reply is
    /// written with this number, or not at all if that is [`SILENT`].
    #[inline]
    pub(crate) fn ask(&mut self, request: RequestId, command: &Command<'_>) -> Result<(), Undone> {
        if self.routes && self.ask_abroad(request, command)? {
            return Ok(());
        }
        self.seat.carry_out(request, command)
    }

    /// Has other shards carry out a command, if it belongs there. Returns whether it does.
    #[inline(never)]
    fn ask_abroad(&mut self, request: RequestId, command: &Command<'_>) -> Result<bool, Undone> {
        let (own, shards) = (self.seat.shard.own(), self.seat.shard.shards());
        let settled = self.seat.session.links.borrow().deliveries;
        let is_subscription = matches!(command, Command::Subscribe { .. });
        let (to, first) = match (Destination::of(command), settled) {
            // There can be no subscription anywhere else, and it is asked how many are left.
            (Destination::Queues(_), Some(settled))
                if matches!(command, Command::Unsubscribe { .. }) =>
            {
                (settled, None)
            }
            (Destination::Queue(queue), _) => (shard_of(queue, shards), Some(queue)),
            (Destination::Queues(queues), _) => {
                (shard_of_all(queues, shards).map_err(Undone::Refused)?, queues.first().copied())
            }
            (Destination::Deliveries, settled) => (settled.unwrap_or(own), None),
            (Destination::Everywhere(joining), _) => {
                self.ask_everywhere(request, command, joining);
                return Ok(true);
            }
        };
        if !self.is_placed && first.is_some() {
            // Most connections are about one queue, which is where they are served best.
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

    /// Has another shard carry out a command.
    fn forward(&self, to: usize, request: RequestId, command: &Command<'_>) {
        let (shard, session) = (&self.seat.shard, &self.seat.session);
        let Some(post) = self.open_link(to) else { return };
        // What was answered before stands before this in the outbox.
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

    /// Has all shards carry out a command, and one reply made of theirs.
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

    /// Asks all shards for their part of an answer. Nothing that the client asks for behind it is
    /// carried out before they have given it: this shard would be ahead of its own part.
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

    /// Answers with the facts about all shards, as `write` has them.
    pub(crate) fn say_facts(&self, write: impl FnOnce(&Facts) -> Vec<u8> + 'static) {
        if !self.routes {
            return self.say(write(&self.seat.shard.facts()));
        }
        let join = move |parts| Joined::Bytes(write(&join_facts(parts)));
        self.ask_all(|| Question::Facts, Box::new(join));
    }

    /// Answers with a line for each connection to any shard, as `write` has them.
    pub(crate) fn say_clients(&self, write: impl FnOnce(&str) -> Vec<u8> + 'static) {
        if !self.routes {
            let lines = roll::describe(&self.seat.shard).into_iter().map(|(_, line)| line);
            return self.say(write(&lines.collect::<String>()));
        }
        let join = move |parts| Joined::Bytes(write(&join_clients(parts)));
        self.ask_all(|| Question::Clients, Box::new(join));
    }

    /// Has connections to all shards ended, but for that of the client itself, and answers with
    /// their number, as `write` has it.
    pub(crate) fn say_killed(&self, wanted: &Chosen, write: impl FnOnce(u64) -> Vec<u8> + 'static) {
        let caller = self.seat.client;
        if !self.routes {
            return self.say(write(roll::kill(&self.seat.shard, wanted, caller)));
        }
        let join = move |parts: Vec<Part>| Joined::Bytes(write(join_killed(&parts)));
        self.ask_all(|| Question::Kill(wanted.clone(), caller), Box::new(join));
    }

    /// Answers without an engine, behind everything that was answered before.
    pub(crate) fn say(&self, bytes: Vec<u8>) {
        self.seat.shard.say(&self.seat.session, bytes);
    }

    /// Answers once all shards that the client has to do with have done what they were told last.
    /// Without such shards the answer waits for nothing.
    fn say_once_done(&self, bytes: Vec<u8>) {
        let session = &self.seat.session;
        let open: Vec<usize> = session.links.borrow().open().collect();
        if open.is_empty() || planted!(ResetNotAwaited) {
            return self.say(bytes);
        }
        self.seat.shard.turn_if_begun();
        self.say_joined(&open, Box::new(move |_| Joined::Bytes(bytes)));
    }

    /// Answers once each of these shards has given its part.
    fn say_joined(&self, shards: &[usize], join: Join) {
        let session = &self.seat.session;
        let dialect = session.dialect.get();
        let mut outbox = session.outbox.borrow_mut();
        outbox.await_parts(self.seat.shard.shards(), shards, dialect, join);
    }

    /// Has the answers from here on written in this dialect.
    pub(crate) fn speak(&self, dialect: Dialect) {
        // What was answered up to now is still written in the former one.
        self.seat.shard.turn();
        self.seat.session.dialect.set(dialect);
    }

    /// Whether the client has subscriptions.
    #[inline]
    pub(crate) fn is_subscribed(&mut self) -> bool {
        self.seat.is_subscribed()
            || (self.routes && self.seat.session.links.borrow().is_subscribed())
    }

    /// Has all subscriptions and credits of the client in one shard from now on. Returns whether
    /// they are not in another already.
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

    /// Adds credit that is used for deliveries once the engine may be told of it.
    pub(crate) fn add_credit(&mut self, credits: u32) {
        self.credits.add(credits);
    }

    /// Adds credit, and answers with all of it that no delivery has spent, as `write` has it. The
    /// answer comes before the deliveries that this sets off, and the engine knows of the credit by
    /// then.
    pub(crate) fn say_credit(
        &mut self,
        credits: u32,
        write: impl FnOnce(u32) -> Vec<u8> + 'static,
    ) {
        self.credits.add(credits);
        // What was delivered up to now counts as spent.
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

    /// The other shard that has the client's subscriptions and credits, if one has.
    fn deliveries_abroad(&self) -> Option<usize> {
        let to = self.seat.session.links.borrow().deliveries;
        to.filter(|to| *to != self.seat.shard.own())
    }

    /// How many deliveries have come since the credits began.
    fn delivered(&self) -> u64 {
        match self.deliveries_abroad() {
            None => self.seat.session.delivered() - self.delivered_before,
            Some(to) => {
                let links = &mut *self.seat.session.links.borrow_mut();
                links.link(self.seat.shard.shards(), to).delivered
            }
        }
    }

    /// Begins anew without credits.
    fn forget_credits(&mut self) {
        self.credits = Credits::new(self.seat.limits.in_flight_max);
        self.delivered_before = self.seat.session.delivered();
    }

    /// Tells the engine of as many credits as there may be deliveries under way, if the client has
    /// not too much under way already. Returns whether there were any.
    pub(crate) fn grant(&mut self) -> bool {
        let is_full = || self.seat.session.outbox.borrow().is_full(&self.seat.limits);
        self.credits.has_banked() && !is_full() && self.draw()
    }

    /// See [`Desk::grant`]. As long as it is open which shard the credits are for, that is none.
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

    /// See [`Desk::grant`], when answers may have left, so that more may be granted.
    pub(crate) fn refill(&mut self) -> bool {
        let has_granted = self.grant();
        if has_granted {
            self.seat.shard.turn();
        }
        has_granted
    }

    /// Ends the credit of a client that has ended its side while what it sent waits for room, which
    /// may take for ever.
    pub(crate) fn lapse_if_stalled(&mut self) {
        if self.seat.manners.waits_for_room && self.seat.session.is_stalled() {
            if self.deliveries_abroad().is_some() {
                self.credits.withdraw();
            } else {
                self.forget_credits();
            }
            self.seat.shard.retire(self.seat.client);
        }
    }

    /// Ends everything that belongs to the client but its connection. Answered with this, once that
    /// is done everywhere.
    pub(crate) fn reset(&mut self, answer: Vec<u8>) {
        self.tell_links(|| Errand::Reset);
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
        self.seat.session.about.borrow_mut().name.clear();
        self.say_once_done(answer);
    }

    /// Has the blocked command answered as if its time were up. Returns whether there is one of
    /// which that was not asked before.
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
        self.tell_links(|| Errand::EndWaits);
        true
    }

    /// Whether a command is blocked.
    pub(crate) fn is_blocked(&self) -> bool {
        self.seat.session.is_blocked() || self.seat.session.links.borrow().blocked
    }

    /// Asks for nothing more. If the server stops, the blocked command is refused.
    pub(crate) fn end(&self, stopping: bool) {
        let (client, session) = (self.seat.client, &self.seat.session);
        if stopping {
            self.seat.shard.turn_if_begun();
            Shard::refuse_blocked(client, session, &Refusal::closing());
        }
        self.tell_links(|| Errand::End { stopping });
        self.seat.shard.retire(client);
    }

    /// Has all shards forget the client. What was handed to it and was not sent goes back.
    pub(crate) fn leave(&self) {
        let session = &self.seat.session;
        let mut unsent = session.outbox.borrow_mut().unsent();
        let tasks: usize = unsent.iter().map(|(_, it)| it.popped_count()).sum();
        let requeues = self.seat.manners.requeues;
        if tasks > 0 {
            let client = self.seat.client.0;
            tracing::info!(client, tasks, requeues, "the last answer could not be sent whole");
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

    /// Has the payloads read that the first answer lacks, by the shard that has made it.
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

    /// Tells each shard how many of its outputs were sent, if they are worth a letter.
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

    /// Tells all shards that the client has to do with.
    fn tell_links(&self, errand: impl Fn() -> Errand) {
        let Some(post) = self.seat.shard.post() else { return };
        for to in self.seat.session.links.borrow().open() {
            post.write_errand(to, self.seat.client, errand());
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

/// Takes in what has become of errands of a client. If the client has gone, what was handed to it
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
    // What it tells of the time before the client began anew is no news.
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

/// Sends outputs back that have come for a client which has gone.
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
