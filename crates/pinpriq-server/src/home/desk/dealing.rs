//! Subscribes to the queues of several shards, and deals the credit out, as `session::dealing`
//! decides.
//!
//! Every subscription of this kind is that of a guest, also in the shard that has the connection.
//! Subscriptions in one shard alone are no concern of this module.

use pinpriq_engine::Subscribed;
use pinpriq_proto::command::{self, Command, Selection};
use pinpriq_proto::letters::encode_command;
use pinpriq_proto::reply::{Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::task::RequestId;
use pinpriq_store::durable::Holds;

use super::Desk;
use crate::clients::about::{ASIDE, SILENT};
use crate::home::asking::Asking;
use crate::home::route::shard_of_all;
use crate::host::seat::Undone;
use crate::letters::letter::{Commands, Errand, Piece};
use crate::session::choosing::{Heard, heard, shares_of};
use crate::session::dealing::{Aside, Dealing, Failed, Joining, Part};

impl Desk {
    /// Whether the client has subscriptions in several shards, or had them before.
    pub(super) fn is_in_several(&self) -> bool {
        self.seat.session.dealing.borrow().is_some()
    }

    /// Changes what is dealt, and does what follows from it.
    pub(super) fn deal(&self, change: impl FnOnce(&mut Dealing)) {
        act(self.asking(), change);
    }

    /// Begins or ends subscriptions, if those of the client are in several shards, or get there.
    /// Returns whether that is so.
    pub(super) fn subscribe_in_several(
        &mut self,
        request: RequestId,
        command: &Command<'_>,
    ) -> Result<bool, Undone> {
        let (queues, member, selection) = match *command {
            Command::Subscribe { queues, member, selection, .. } => {
                (queues, member, Some(selection))
            }
            Command::Unsubscribe { queues, member } => (queues, member, None),
            _ => return Ok(false),
        };
        let sharding = self.seat.shard.sharding();
        if !self.is_in_several() {
            let settled = self.seat.session.links.borrow().deliveries;
            let first = queues.first().map(|queue| sharding.shard_of(queue));
            let (Some(selection), Some(first)) = (selection, first) else { return Ok(false) };
            let home = settled.unwrap_or(first);
            if queues.iter().all(|queue| sharding.shard_of(queue) == home) {
                return Ok(false);
            }
            if self.redirects {
                self.check_one_shard(queues)?;
            }
            self.begin_dealing(selection);
        } else if self.redirects && selection.is_some() {
            self.check_one_shard(queues)?;
        }
        if selection.is_some() {
            self.check_room(queues, member)?;
        }
        self.join(request, command);
        Ok(true)
    }

    /// Refuses queues that are in several shards or at another node, for a client that wants to
    /// know where queues live.
    fn check_one_shard(&self, queues: &[&[u8]]) -> Result<(), Undone> {
        let to = shard_of_all(queues, self.seat.shard.sharding());
        let to = to.map_err(|refusal| self.crossing(refusal))?;
        queues.first().map_or(Ok(()), |first| self.redirect(to, first))
    }

    /// Refuses subscriptions beyond the most that a connection may have.
    fn check_room(&self, queues: &[&[u8]], member: Option<&[u8]>) -> Result<(), Undone> {
        let known = count_subscriptions(self.asking());
        let links = self.seat.session.links.borrow();
        let mut fresh: Vec<&[u8]> = queues.to_vec();
        fresh.retain(|queue| !links.lasting.subscriptions.has(queue, member));
        fresh.sort_unstable();
        fresh.dedup();
        let (total, most) = (known + fresh.len() as u64, self.seat.limits.subscriptions_max);
        if total > most as u64 {
            return Err(Undone::Refused(Refusal::new(
                RefusalKind::Busy,
                format!("a connection has at most {most} subscriptions, and these make {total}"),
            )));
        }
        Ok(())
    }

    /// Leaves it to shards to deliver as they are permitted. What the client has in one shard goes
    /// on there.
    fn begin_dealing(&mut self, selection: Selection) {
        let (shard, session) = (self.seat.shard.clone(), self.seat.session.clone());
        shard.turn();
        let settled = session.links.borrow().deliveries;
        // What it has not started comes back, and costs no credit.
        let known = if settled == Some(shard.own()) { self.end_own() } else { Vec::new() };
        let accepted = match settled.filter(|to| *to != shard.own()) {
            None => self.delivered(),
            Some(to) => {
                let links = &mut *session.links.borrow_mut();
                let link = links.link(shard.places(), to);
                link.delivered_before.get() + link.arrived
            }
        };
        let left = self.credits.drawn().saturating_sub(accepted);
        let mut dealing = Dealing::new(selection, left, accepted);
        self.is_placed = true;
        match settled {
            None => self.settle_deliveries(shard.own()),
            Some(to) if to != shard.own() => {
                dealing.add_shard(to, left);
                dealing.note_subscribed(to, true);
                if shard.is_nowhere(to) {
                    dealing.lose(to);
                } else {
                    dealing.begin_to_hold(to);
                }
            }
            Some(own) => {
                dealing.add_shard(own, 0);
                self.move_to_guest(own, known);
                dealing.note_subscribed(own, true);
            }
        }
        session.dealing.replace(Some(Box::new(dealing)));
    }

    /// Ends the subscriptions and the credit that the client has in its own shard. Returns the
    /// subscriptions.
    fn end_own(&self) -> Vec<Subscribed> {
        let (shard, client) = (&self.seat.shard, self.seat.client);
        let known = shard.inspect(|it| it.engine().subscriptions_of(client));
        shard.apply(client, SILENT, &Command::Unsubscribe { queues: &[], member: None });
        let permit = command::Share::Permit { deliveries: 0, holds: false };
        shard.apply(client, SILENT, &Command::Share(permit));
        shard.turn();
        known
    }

    /// Lets the guest in this shard have the subscriptions that the client had here.
    fn move_to_guest(&self, own: usize, known: Vec<Subscribed>) {
        let shard = &self.seat.shard;
        for Subscribed { queue, member, selection, mode, recall } in known {
            let (queues, member) = (&[&queue[..]][..], member.as_deref());
            let subscribe = Command::Subscribe { queues, member, selection, mode, recall };
            self.asking().write(own, SILENT, |out| encode_command(&subscribe, out));
            let links = &mut *self.seat.session.links.borrow_mut();
            links.lasting.subscriptions.note(&subscribe, |_| true);
            links.link(shard.places(), own).standing.subscriptions += 1;
        }
        shard.turn();
    }

    /// Asks each shard for its part, and joins the replies. Nothing after it is carried out before
    /// that.
    fn join(&self, request: RequestId, command: &Command<'_>) {
        let (shard, session) = (&self.seat.shard, &self.seat.session);
        // Earlier replies come before this one in the outbox.
        shard.turn_if_begun();
        let asked = self.parts_of(command);
        session.outbox.borrow_mut().keep_place(session.dialect.get());
        session.links.borrow_mut().blocked |= !asked.is_empty();
        self.deal(|dealing| {
            for part in &asked {
                dealing.add_shard(part.shard, 0);
            }
            let owed = asked.len();
            dealing.joining = Some(Joining { request, asked, owed, failed: None });
        });
        if let Some(Joining { asked, .. }) =
            session.dealing.borrow().as_ref().and_then(|dealing| dealing.joining.as_ref())
        {
            for part in asked {
                self.asking().ask(part.shard, |out| out.extend_from_slice(&part.command));
            }
        }
        finish(self.asking());
    }

    /// Returns the parts of a command for its shards.
    fn parts_of(&self, command: &Command<'_>) -> Vec<Part> {
        let session = &self.seat.session;
        let dealing = session.dealing.borrow();
        let known: Vec<usize> = dealing.iter().flat_map(|dealing| dealing.shards()).collect();
        let part = |shard: usize, command: &Command<'_>, undo: Vec<Vec<u8>>| Part {
            shard,
            command: encoded(command),
            undo,
            is_done: false,
        };
        let (queues, member, how) = match *command {
            Command::Unsubscribe { queues: [], .. } => {
                return known.iter().map(|to| part(*to, command, Vec::new())).collect();
            }
            Command::Subscribe { queues, member, selection, mode, recall } => {
                (queues, member, Some((selection, mode, recall)))
            }
            Command::Unsubscribe { queues, member } => (queues, member, None),
            _ => return Vec::new(),
        };
        let subscriptions = &session.links.borrow().lasting.subscriptions;
        let undo = |queue: &&[u8]| {
            let former = subscriptions.command(queue, member).map(<[u8]>::to_vec);
            former.unwrap_or_else(|| encoded(&Command::Unsubscribe { queues: &[queue], member }))
        };
        let shares = shares_of(queues, self.seat.shard.sharding()).into_iter();
        let parts = shares.filter_map(|share| {
            let queues = &share.names()[..];
            match how {
                Some((selection, mode, recall)) => {
                    let one = Command::Subscribe { queues, member, selection, mode, recall };
                    Some(part(share.shard, &one, queues.iter().map(undo).collect()))
                }
                // Elsewhere there is nothing to end.
                None if !known.contains(&share.shard) => None,
                None => {
                    let one = Command::Unsubscribe { queues, member };
                    Some(part(share.shard, &one, Vec::new()))
                }
            }
        });
        parts.collect()
    }
}

fn encoded(command: &Command<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_command(command, &mut bytes);
    bytes
}

/// Changes what is dealt to a client, if its subscriptions are in several shards, and does what
/// follows from it.
pub(crate) fn act(asking: Asking<'_>, change: impl FnOnce(&mut Dealing)) {
    let Asking { shard, session, .. } = asking;
    let asides = {
        let dealing = &mut *session.dealing.borrow_mut();
        let Some(dealing) = dealing else { return };
        change(dealing);
        let shards: Vec<usize> = dealing.shards().collect();
        let links = &mut *session.links.borrow_mut();
        for to in shards {
            let standing = links.link(shard.places(), to).standing;
            dealing.note_subscribed(to, standing.subscriptions > 0);
        }
        dealing.next(links.lasting.ends.is_some())
    };
    for (to, aside) in asides.into_iter().filter(|(to, _)| !asking.shard.is_nowhere(*to)) {
        asking.ask_aside(to, aside);
    }
}

/// Takes what a shard has said about its part of a request, if that is under way.
pub(crate) fn hear(asking: Asking<'_>, from: usize, pieces: Vec<Piece>) {
    for piece in pieces {
        let mut dealing = asking.session.dealing.borrow_mut();
        let Some(joining) = dealing.as_mut().and_then(|it| it.joining.as_mut()) else { continue };
        joining.owed -= 1;
        let failed = match heard(piece) {
            Heard::Reply(Reply::Count(_)) => None,
            Heard::Lost => Some(Failed::Lost),
            Heard::Reply(reply) => Some(Failed::Refused(reply)),
            Heard::Tasks(..) => unreachable!("shard {from} was asked for no tasks"),
        };
        if failed.is_none()
            && let Some(part) = joining.asked.iter_mut().find(|it| it.shard == from)
        {
            // At once, so that the next owner of the shard learns of it.
            part.is_done = true;
            note(asking, from, &part.command);
        }
        joining.failed = joining.failed.take().or(failed);
        drop(dealing);
        finish(asking);
    }
}

/// Replies to a request that begins or ends subscriptions, once all shards have. What a refused one
/// has done is undone.
fn finish(asking: Asking<'_>) {
    let Asking { session, client, .. } = asking;
    let joining = {
        let mut dealing = session.dealing.borrow_mut();
        let Some(dealing) = dealing.as_mut() else { return };
        dealing.joining.take_if(|joining| joining.owed == 0)
    };
    let Some(Joining { request, asked, failed, .. }) = joining else { return };
    // Where a shard has ended its side, the connection ends.
    let is_broken = session.links.borrow().broken().is_some();
    let failed = if is_broken { Some(Failed::Lost) } else { failed };
    if let Some(Failed::Refused(_)) = failed {
        for part in asked.iter().filter(|part| part.is_done) {
            for undo in &part.undo {
                note(asking, part.shard, undo);
                // The next owner is asked for what is noted.
                if !asking.shard.is_nowhere(part.shard) {
                    asking.write(part.shard, SILENT, |out| out.extend_from_slice(undo));
                }
            }
        }
    }
    let answer = match failed {
        Some(Failed::Lost) => None,
        Some(Failed::Refused(reply)) => Some(reply),
        None => Some(Reply::Count(count_subscriptions(asking))),
    };
    let answer = answer.map(|reply| (Output::Reply { client, request, reply }, Holds::default()));
    session.outbox.borrow_mut().answer(None, answer);
}

/// Notes what a command has done to the subscriptions in a shard.
pub(super) fn note(asking: Asking<'_>, to: usize, command: &[u8]) {
    let subscriptions = &mut asking.session.links.borrow_mut().lasting.subscriptions;
    subscriptions.note_encoded(command, asking.shard.sharding().is_in(to));
}

/// Returns the number of subscriptions in all shards.
fn count_subscriptions(Asking { shard, session, .. }: Asking<'_>) -> u64 {
    let dealing = session.dealing.borrow();
    let links = &mut *session.links.borrow_mut();
    let shards = dealing.iter().flat_map(|dealing| dealing.shards());
    let count = shards.map(|to| {
        let link = links.link(shard.places(), to);
        if shard.is_nowhere(to) || !link.log.is_empty() {
            // Its next owner is not asked for all of them yet.
            links.lasting.subscriptions.to(shard.sharding().is_in(to)).count() as u64
        } else {
            u64::from(link.standing.subscriptions)
        }
    });
    count.sum()
}

impl Asking<'_> {
    /// Asks a shard aside from the requests of the client.
    pub(super) fn ask_aside(&self, to: usize, aside: Aside) {
        let write = |request, share: &Command<'_>| {
            let mut commands = Commands::default();
            commands.push(request, |out| encode_command(share, out));
            self.errand(to, Errand::Aside(commands));
        };
        match aside {
            Aside::Permit(open) => {
                let links = &mut *self.session.links.borrow_mut();
                let arrived = links.link(self.shard.places(), to).arrived;
                self.errand(to, Errand::Permit(arrived + open));
            }
            Aside::Look => write(ASIDE, &Command::Share(command::Share::Next)),
            Aside::Pop(held) => write(ASIDE, &Command::Share(command::Share::Pop(&held))),
            Aside::GiveBack(vain, request) => write(request, &Command::GiveBack(&vain)),
        }
    }
}
