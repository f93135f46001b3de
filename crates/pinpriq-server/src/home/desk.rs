//! The desk of one client: what its door talks to.
//!
//! A door asks for commands and does not know where they are carried out: at this shard, borrowed
//! and without a copy, or at others, by letters. In the second case the reply keeps its place among
//! the replies here. The desk bounds what may be under way, and asks nothing after a blocked
//! command. The other end of the letters is `host::guest`.

mod auditing;
mod choosing;
mod crediting;
pub(super) mod dealing;
mod everywhere;
mod guard;
pub(super) mod news;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_cluster::slots::slot_of;
use pinpriq_proto::batches::decode_names;
use pinpriq_proto::command::Command;
use pinpriq_proto::letters::encode_command;
use pinpriq_proto::reply::{Refusal, RefusalKind};
use pinpriq_proto::task::{ClientId, Farewell, RequestId};

use self::guard::Guard;
pub(crate) use self::news::receive_news;
use super::asking::Asking;
use super::credits::Credits;
use super::door::{CommandName, Opened};
use super::pace::Pace;
use super::route::{
    names_of_step, shard_of_all, shard_of_bonds, shard_of_done, shard_of_pair, shard_of_schedule,
    shard_of_steps, shard_of_uses,
};
use crate::access::audit::{Audit, Event};
use crate::access::roster::Roster;
use crate::clients::about::{Dialect, MUTE, SILENT};
use crate::config::{DoorName, Limits};
use crate::facts::tally::Tally;
use crate::host::readers::PIECE_BYTES;
use crate::host::seat::{Obstacle, Redirect, Seat, Undone};
use crate::host::shard::Shard;
use crate::letters::letter::Errand;
use crate::letters::mailbox::Post;
use crate::letters::owners::Owners;
use crate::session::Session;
use crate::session::kept::{Kept, Share};
use crate::session::log::Wanted;
use crate::session::outbox::{Join, Joined, Write};
use pinpriq_proto::facts::Destination;
use pinpriq_proto::request::code::Code;

/// A shard is informed about sent outputs from this number of them, or this number of bytes, even
/// if there is nothing else to write to it.
const SENT_OUTPUTS: usize = 128;
const SENT_BYTES: usize = 16 << 10;

/// The users and the audit, if the server has any, and what connections keep.
pub(crate) type Company<'a> = (Option<Arc<Roster>>, Option<Arc<Audit>>, &'a Arc<Kept>);

/// The desk of one client.
pub(crate) struct Desk {
    pub(super) seat: Seat,
    credits: Credits,
    pace: Pace,
    /// The deliveries that this shard had made before the credits began.
    delivered_before: u64,
    /// Whether anything stands between a request and this shard: other places, users, or a moment
    /// that is only looked at.
    detours: Cell<bool>,
    /// Whether something may be asked of other places. Without other shards, it becomes true with
    /// the first question that all places answer.
    routes: Cell<bool>,
    /// Whether the connection stays in this shard.
    pub(super) is_placed: bool,
    /// Whether what belongs to another node of a cluster is refused with its address.
    redirects: bool,
    /// What is known about the user of the client, if the server has users.
    guard: Option<Guard>,
    /// The audit, if there is one.
    audit: Option<Arc<Audit>>,
    /// Returns the words of the command at this place of the table of commands.
    command_name: CommandName,
    /// Commands to tell it of, by the places of their answers, which are owed.
    untold: RefCell<VecDeque<(u64, Event)>>,
    /// What the connection keeps of requests and replies.
    kept: Share,
}

impl Desk {
    /// Returns the desk of a client known to the shard, whose door was opened. A server that has
    /// users gives the roster of them.
    pub(crate) fn new(
        shard: Rc<Shard>,
        who: (ClientId, Rc<Session>),
        limits: Limits,
        opened: &Opened,
        (roster, audit, kept): Company<'_>,
    ) -> Self {
        let may_ask = |post: &Post| post.shards() > 1 || post.own() >= post.shards();
        let routes = shard.post().is_some_and(may_ask);
        let stands = shard.look().is_some();
        let detours = Cell::new(routes || roster.is_some() || audit.is_some() || stands);
        let (routes, guard) = (Cell::new(routes), roster.map(Guard::new));
        let is_placed = who.1.was_moved() || shard.own() >= shard.shards();
        let credits = Credits::new(limits.in_flight_max);
        who.1.links.borrow_mut().lasting.manners = Some(opened.manners);
        let seat = Seat::new(shard, who, limits, opened.manners);
        let pace = Pace::default();
        let delivered_before = 0;
        Self {
            seat,
            credits,
            pace,
            delivered_before,
            detours,
            routes,
            is_placed,
            redirects: opened.redirects,
            guard,
            audit,
            command_name: opened.command_name,
            untold: RefCell::default(),
            kept: kept.share(),
        }
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

    /// Returns what asks other shards for the client.
    fn asking(&self) -> Asking<'_> {
        let Seat { shard, session, client, .. } = &self.seat;
        Asking { shard, session, client: *client }
    }

    /// Returns what the shard counts about its clients.
    pub(crate) fn tally(&self) -> &Rc<Tally> {
        self.seat.shard.tally()
    }

    /// Counts a refusal that is reported to the client, or that ends its connection.
    pub(crate) fn count_refusal(&self, code: Code) {
        self.tally().refuse(self.session().door(), code);
    }

    /// Notes a request for the command at this place of the table.
    #[inline]
    pub(crate) fn note(&mut self, command: usize) {
        self.pace.note(command, || self.seat.shard.clock().passed());
    }

    /// Counts a request whose time says nothing: it is only kept for later.
    pub(crate) fn count_kept(&self, command: usize) {
        self.tally().ask(self.session().door(), command, 1);
    }

    /// Notes that the last request was not carried out, and comes again.
    pub(crate) fn take_back(&mut self) {
        self.pace.take_back();
    }

    /// Counts the requests that arrived together. Must be called after the turn that ends them.
    pub(crate) fn end_batch(&mut self, door: DoorName) {
        let Seat { shard, session, .. } = &self.seat;
        let (here, abroad) = (session.is_blocked(), session.links.borrow().blocked);
        let outbox = session.outbox.borrow();
        // What waits elsewhere has its place among the answers already.
        let due = outbox.passed() + outbox.len() as u64 - u64::from(abroad);
        self.pace.end_batch((shard.tally(), door), due, here || abroad);
    }

    /// Counts how long requests took, if that many answers have left the outbox.
    #[inline]
    pub(crate) fn count_answered(&mut self, left: u64) {
        let shard = &self.seat.shard;
        self.pace.answered(left, shard.tally(), || shard.clock().passed());
    }

    /// Counts what the connection keeps after a batch or a write: this much of requests that have
    /// arrived, and replies.
    #[inline]
    pub(crate) fn keep(&self, input: usize) {
        self.kept.set(input + self.seat.session.outbox.borrow().bytes_waiting());
        self.weigh(input);
    }

    /// Returns what it keeps.
    pub(crate) const fn kept(&self) -> &Share {
        &self.kept
    }

    /// Returns the limits.
    pub(crate) const fn limits(&self) -> &Limits {
        &self.seat.limits
    }

    /// Checks whether the next command may be asked.
    #[inline]
    pub(crate) fn obstacle(&mut self) -> Option<Obstacle> {
        let here = self.seat.obstacle();
        if self.detours.get() && here.is_none() { self.obstacle_abroad() } else { here }
    }

    #[inline(never)]
    fn obstacle_abroad(&self) -> Option<Obstacle> {
        let links = self.seat.session.links.borrow();
        if links.blocked || self.seat.session.signing.get() {
            return Some(Obstacle::Reply);
        }
        links.is_full().then_some(Obstacle::Room)
    }

    /// Asks for a command wherever it belongs. Its moments are by the wall clock. Its reply is
    /// written with this number, or not at all if that is [`SILENT`].
    #[inline]
    pub(crate) fn ask(&mut self, request: RequestId, command: &Command<'_>) -> Result<(), Undone> {
        if self.detours.get() {
            return self.ask_with_detours(request, command);
        }
        self.seat.carry_out(request, command)
    }

    #[inline(never)]
    fn ask_with_detours(
        &mut self,
        request: RequestId,
        command: &Command<'_>,
    ) -> Result<(), Undone> {
        self.refuse_change(command)?;
        let audited = self.begin_audit(command);
        let asked = if self.is_guarded() {
            self.ask_guarded(request, command)
        } else {
            self.ask_freely(request, command)
        };
        if self.audit.is_some() {
            self.end_audit(command, audited, &asked);
        }
        asked
    }

    /// Refuses what does not only look, on a server that shows a moment.
    fn refuse_change(&self, command: &Command<'_>) -> Result<(), Undone> {
        match self.seat.shard.look() {
            Some(look) if !command.only_looks() => Err(Undone::Refused(look.refusal())),
            _ => Ok(()),
        }
    }

    /// Sends a command without checking the user's rights.
    fn ask_freely(&mut self, request: RequestId, command: &Command<'_>) -> Result<(), Undone> {
        if self.routes.get() && self.ask_abroad(request, command)? {
            return Ok(());
        }
        self.seat.carry_out_charged(request, command)
    }

    /// Asks other shards for a command if it belongs there. Returns whether it does.
    #[inline(never)]
    fn ask_abroad(&mut self, request: RequestId, command: &Command<'_>) -> Result<bool, Undone> {
        let own = self.seat.shard.own();
        let is_subscription = matches!(command, Command::Subscribe { .. });
        let destination = command.destination();
        if let Destination::Everywhere(joining) = destination {
            self.ask_everywhere(request, command, joining)?;
            return Ok(true);
        }
        if let Command::Reserve(reserve) = command {
            self.reserve(request, reserve)?;
            return Ok(true);
        }
        if self.take_from_several(request, command) {
            return Ok(true);
        }
        if self.subscribe_in_several(request, command)? {
            return Ok(true);
        }
        let found = self.find_shard(&destination, command);
        let (to, first) = found.map_err(|refusal| self.crossing(refusal))?;
        if let Some(first) = first {
            self.redirect(to, first)?;
        }
        // The door keeps a transaction, so its connection does not move.
        let first = first.filter(|_| !matches!(destination, Destination::Steps));
        if first.is_some() {
            self.be_placed(to)?;
        }
        if is_subscription {
            self.settle_deliveries(to);
        }
        if to != own {
            self.forward(to, request, command);
        }
        Ok(to != own)
    }

    /// Moves the connection to the shard of the first queue that it uses. Most use one queue, and
    /// it is best to serve them there.
    fn be_placed(&mut self, to: usize) -> Result<(), Undone> {
        if std::mem::replace(&mut self.is_placed, true) {
            return Ok(());
        }
        let is_free = self.seat.session.links.borrow().is_unused();
        let is_elsewhere = to != self.seat.shard.own();
        if is_elsewhere && is_free && self.credits.is_unused() && !self.changes_owners() {
            return Err(Undone::Move(to));
        }
        Ok(())
    }

    /// Returns the shard that a command belongs to, and the first name that decides about it, if
    /// any does.
    fn find_shard<'c>(
        &self,
        destination: &Destination<'c>,
        command: &Command<'c>,
    ) -> Result<(usize, Option<&'c [u8]>), Refusal> {
        let (own, sharding) = (self.seat.shard.own(), self.seat.shard.sharding());
        let settled = self.seat.session.links.borrow().deliveries;
        Ok(match (*destination, settled) {
            // There can be no subscription elsewhere. The reply is the number of subscriptions
            // left.
            (Destination::Queues(queues), settled)
                if matches!(command, Command::Unsubscribe { .. })
                    && (settled.is_some() || !self.redirects) =>
            {
                (settled.or_else(|| shard_of_all(queues, sharding).ok()).unwrap_or(own), None)
            }
            (Destination::Queue(queue), _) => (sharding.shard_of(queue), Some(queue)),
            (Destination::Queues(queues), _) => {
                (shard_of_all(queues, sharding)?, queues.first().copied())
            }
            (Destination::Bonds { queue, batch, after }, _) => {
                let batches = batch.into_iter().chain(decode_names(after));
                (shard_of_bonds(queue, batches, sharding)?, Some(queue))
            }
            (Destination::Record { queue, batch, after }, _) => {
                let batches = batch.into_iter().chain(after.iter().map(|name| &**name));
                (shard_of_bonds(queue, batches, sharding)?, Some(queue))
            }
            (Destination::Pair(one, other), _) => (shard_of_pair(one, other, sharding)?, Some(one)),
            (Destination::Uses { queue, dead_letters, uses }, _) => {
                (shard_of_uses(queue, dead_letters, uses, sharding)?, Some(queue))
            }
            (Destination::Schedule(name, queue), _) => {
                (shard_of_schedule(name, queue, sharding)?, Some(name))
            }
            (Destination::Done | Destination::Steps, _) => match *command {
                Command::TakeDone { done, take } => {
                    (shard_of_done(done, take.queues, sharding)?, take.queues.first().copied())
                }
                Command::Transaction(steps) => {
                    let first = steps.iter().flat_map(names_of_step).next();
                    (shard_of_steps(steps, sharding)?.unwrap_or(own), first)
                }
                _ => (own, None),
            },
            (Destination::Deliveries, settled) => (settled.unwrap_or(own), None),
            (Destination::Everywhere(_), _) => (own, None),
        })
    }

    /// Refuses what belongs to another node, if the client wants to know that. Such a client keeps
    /// a map of the slots, and asks each node for what that node serves. If the address is not
    /// known, or the node does not expect such clients, the request is forwarded.
    fn redirect(&self, to: usize, name: &[u8]) -> Result<(), Undone> {
        let owners = self.owners().filter(|_| self.redirects);
        let Some(listening) = owners.and_then(|owners| owners.elsewhere(to)) else { return Ok(()) };
        Err(Undone::Redirected(Redirect::Moved(slot_of(name), listening.to_string())))
    }

    /// Returns the refusal of a command that may be about several shards.
    fn crossing(&self, refusal: Refusal) -> Undone {
        if self.redirects && refusal.kind == RefusalKind::CrossShard {
            return Undone::Redirected(Redirect::CrossSlot);
        }
        Undone::Refused(refusal)
    }

    /// Returns who serves each shard, if this is a node of a cluster.
    pub(crate) fn owners(&self) -> Option<&Owners> {
        self.seat.shard.post().and_then(Post::owners)
    }

    /// Whether shards change their owners, as in a cluster.
    fn changes_owners(&self) -> bool {
        self.asking().changes_owners()
    }

    /// Checks that the names of a transaction with one step live in the same shard as those of the
    /// steps before it, of which `first` is the first one, and that it is to be asked for here.
    pub(crate) fn check_step(
        &mut self,
        first: &mut Option<Vec<u8>>,
        command: &Command<'_>,
    ) -> Result<(), Undone> {
        self.refuse_change(command)?;
        self.check_rights(command)?;
        let Command::Transaction([step]) = command else { return Ok(()) };
        if !self.routes.get() {
            return Ok(());
        }
        let sharding = self.seat.shard.sharding();
        for name in names_of_step(step) {
            if let Some(first) = first {
                shard_of_all(&[first, name], sharding).map_err(|refusal| self.crossing(refusal))?;
            } else {
                *first = Some(name.to_vec());
            }
            self.redirect(sharding.shard_of(name), name)?;
        }
        Ok(())
    }

    /// Asks another shard for a command.
    fn forward(&self, to: usize, request: RequestId, command: &Command<'_>) {
        let (shard, session, asking) = (&self.seat.shard, &self.seat.session, self.asking());
        // Earlier replies come before this one in the outbox.
        shard.turn_if_begun();
        if !shard.is_nowhere(to) {
            self.open_link(to);
        }
        // Where owners change, its reply shows whether it has happened.
        let is_mute = request == SILENT && asking.changes_owners();
        let request = if is_mute { MUTE } else { request };
        asking.write(to, request, |out| encode_command(command, out));
        {
            let links = &mut *session.links.borrow_mut();
            links.blocked |= command.may_block();
            let link = links.link(shard.places(), to);
            link.standing.subscriptions += u32::from(matches!(command, Command::Subscribe { .. }));
            if request == SILENT {
                return links.lasting.subscriptions.note(command, shard.sharding().is_in(to));
            }
        }
        self.await_reply(to, command);
    }

    /// Keeps a gap for the reply of a shard to a command.
    fn await_reply(&self, to: usize, command: &Command<'_>) {
        let session = &self.seat.session;
        let subscribes = match command {
            Command::Subscribe { .. } | Command::Unsubscribe { .. } => {
                let mut bytes = Vec::new();
                encode_command(command, &mut bytes);
                Some(bytes)
            }
            _ => None,
        };
        let at = (self.seat.shard.places(), to);
        session.outbox.borrow_mut().await_reply(at, session.dialect.get(), subscribes);
    }

    /// Replies without an engine, after all earlier replies.
    pub(crate) fn say(&self, bytes: Vec<u8>) {
        self.seat.shard.say(&self.seat.session, bytes);
        self.seat.note_work();
    }

    /// Replies with what is written piece by piece, and keeps this many bytes until it is sent.
    pub(crate) fn say_written(&self, write: Write, bytes: usize) {
        self.seat.shard.say_written(&self.seat.session, write, bytes);
        self.seat.note_work();
    }

    /// Replies once the client was reset in all shards that it uses. If it uses none, the reply
    /// waits for nothing.
    fn say_once_reset(&self, bytes: Vec<u8>) {
        let session = &self.seat.session;
        let used: Vec<usize> = session.links.borrow().in_use().collect();
        if used.is_empty() {
            return self.say(bytes);
        }
        self.seat.shard.turn_if_begun();
        for to in &used {
            self.asking().await_part(*to, Wanted::Reset, 0);
        }
        self.say_joined(&used, Box::new(move |_| Joined::Bytes(bytes)));
    }

    /// Replies once each of these shards has given its part.
    fn say_joined(&self, shards: &[usize], join: Join) {
        let session = &self.seat.session;
        let dialect = session.dialect.get();
        let mut outbox = session.outbox.borrow_mut();
        outbox.await_parts(self.seat.shard.places(), shards, dialect, join);
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
            || (self.routes.get() && self.seat.session.links.borrow().is_subscribed())
    }

    /// Gives the client another name.
    pub(crate) fn rename(&self, name: Vec<u8>) {
        self.seat.shard.contacts().rename(self.seat.client, &name);
        self.seat.session.about.borrow_mut().name = name;
    }

    /// Ends everything that belongs to the client except its connection. Replies with `answer` once
    /// this is done everywhere.
    pub(crate) fn reset(&mut self, answer: Vec<u8>) {
        self.asking().errand_to_all(|_| Errand::Reset);
        {
            let shards = self.seat.shard.places();
            let links = &mut *self.seat.session.links.borrow_mut();
            // What is under way from before must not count for what begins after.
            let is_used = links.in_use().next().is_some();
            if self.seat.session.dealing.take().is_some() && is_used {
                self.seat.session.starts_again.set(true);
            }
            links.gathers |= links.deliveries.take().is_some() && is_used;
            links.lasting.subscriptions.clear();
            links.lasting.credits = 0;
            for to in 0..links.count() {
                let link = links.link(shards, to);
                link.standing.subscriptions = 0;
                (link.delivered, link.delivered_before) = (0, Rc::default());
                link.resets += u64::from(link.open);
            }
        }
        self.seat.session.outbox.borrow_mut().forget_subscriptions();
        self.seat.reset();
        self.dismiss();
        self.forget_credits();
        self.rename(Vec::new());
        self.say_once_reset(answer);
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
        self.asking().errand_to_all(|_| Errand::EndWaits);
        true
    }

    /// Whether a command is blocked.
    pub(crate) fn is_blocked(&self) -> bool {
        let session = &self.seat.session;
        session.is_blocked() || session.links.borrow().blocked || session.signing.get()
    }

    /// Accepts no more requests. If the server stops, the wait of the blocked command ends.
    pub(crate) fn end(&self, stopping: bool) {
        let (client, session) = (self.seat.client, &self.seat.session);
        // The outbox must hold everything that was handed to the client.
        self.seat.shard.turn_if_begun();
        self.seat.session.links.borrow_mut().lasting.ends = Some(stopping);
        if stopping {
            self.seat.shard.stop_blocked(client, session);
        }
        let leases = session.outbox.borrow().leases();
        let of = |shard: Option<usize>| {
            let own = leases.iter().filter(|(from, _)| *from == shard);
            own.map(|(_, receipt)| *receipt).collect::<Vec<_>>()
        };
        self.asking().errand_to_all(|to| Errand::End { stopping, unsent: of(Some(to)) });
        let farewell =
            if stopping { Farewell::ServerStops } else { Farewell::Ended { unsent: &of(None) } };
        self.seat.shard.retire(client, farewell);
    }

    /// Makes all shards forget the client. Whatever was handed to it and not sent goes back.
    pub(crate) fn leave(&self) {
        self.tell_unanswered();
        choosing::leave(self.asking());
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
        let shards = self.seat.shard.places();
        let links = &mut *session.links.borrow_mut();
        let open: Vec<usize> = links.open().collect();
        for to in open {
            let at = unsent.iter().position(|(from, _)| *from == Some(to));
            let unsent = at.map(|at| unsent.swap_remove(at).1).unwrap_or_default();
            let heard = links.link(shards, to).heard;
            self.asking().errand(to, Errand::Cut { heard, unsent });
        }
        self.seat.shard.disconnect(self.seat.client, own);
    }

    /// Requests the payloads that the first reply lacks from the shard that has made the reply.
    pub(crate) fn read_payloads(&self) {
        let session = &self.seat.session;
        let from = session.outbox.borrow().reads_from();
        let Some(from) = from else { return self.seat.shard.read_for(session) };
        let wanted = session.outbox.borrow_mut().wanted(PIECE_BYTES);
        if !wanted.is_empty() {
            self.asking().errand(from, Errand::Read(wanted));
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
        if sent > 0 {
            self.asking().errand(to, Errand::Sent(sent));
        }
    }

    /// Makes sure that the shard expects errands of the client, and knows what it has been sent and
    /// what its tasks count for.
    fn open_link(&self, to: usize) {
        let asking = self.asking();
        asking.open(to);
        {
            let links = &mut *self.seat.session.links.borrow_mut();
            let link = links.link(self.seat.shard.places(), to);
            if link.account != self.seat.account {
                link.account.clone_from(&self.seat.account);
                asking.errand(to, Errand::Account(self.seat.account.clone()));
            }
        }
        self.tell_sent(to, (1, 1));
    }
}

#[cfg(test)]
mod tests;
