//! The credit of a client: what is given, drawn and outstanding, and which shard gets it.

use pinpriq_proto::command::Command;

use super::Desk;
use crate::clients::about::SILENT;
use crate::home::credits::{Credits, outstanding};
use crate::home::joins::join_counts;
use crate::letters::letter::{Errand, Part, Question};
use crate::session::dealing::Dealing;
use crate::session::outbox::Joined;

impl Desk {
    /// Settles on a shard for the subscriptions and credits of the client, if that is open.
    pub(super) fn settle_deliveries(&self, to: usize) {
        let links = &mut *self.seat.session.links.borrow_mut();
        if links.deliveries.is_none() {
            links.deliveries = Some(to);
            links.forget_arrived();
        }
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
        // Deliveries made before count as spent. A second turn could make more of them, so no other
        // one is made.
        self.seat.shard.turn();
        let say = |bytes| self.seat.session.outbox.borrow_mut().push_bytes(bytes);
        match self.deliveries_abroad().filter(|_| !self.is_in_several()) {
            None => say(write(self.credits.outstanding(self.delivered()))),
            Some(to) => {
                let given = self.credits.given();
                if self.seat.shard.is_nowhere(to) {
                    return say(write(self.credits.outstanding(self.delivered())));
                }
                let before = {
                    let links = &mut *self.seat.session.links.borrow_mut();
                    links.link(self.seat.shard.places(), to).delivered_before.clone()
                };
                self.open_link(to);
                self.asking().ask_question(to, Question::Delivered);
                let join = move |parts: Vec<Part>| {
                    let delivered = before.get() + join_counts(&parts);
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
    pub(super) fn delivered(&self) -> u64 {
        if let Some(dealing) = &*self.seat.session.dealing.borrow() {
            return dealing.accepted();
        }
        match self.deliveries_abroad() {
            None => self.seat.session.delivered() - self.delivered_before,
            Some(to) => {
                let links = &mut *self.seat.session.links.borrow_mut();
                let link = links.link(self.seat.shard.places(), to);
                link.delivered_before.get() + link.delivered
            }
        }
    }

    /// Starts again without credits.
    pub(super) fn forget_credits(&mut self) {
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
        if self.routes.get() && to.is_none() {
            return false;
        }
        let credits = self.credits.draw(self.delivered());
        if credits == 0 {
            return false;
        }
        if self.is_in_several() {
            self.deal(|dealing| dealing.add(u64::from(credits)));
            return true;
        }
        let (shard, client) = (&self.seat.shard, self.seat.client);
        let to = to.unwrap_or_else(|| shard.own());
        if to == shard.own() {
            shard.apply(client, SILENT, &Command::Credit(credits));
        } else {
            self.seat.session.links.borrow_mut().lasting.credits += u64::from(credits);
            if !shard.is_nowhere(to) {
                self.open_link(to);
                self.asking().errand(to, Errand::Credit(credits));
            }
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
            if self.is_in_several() {
                self.credits.withdraw();
                self.deal(Dealing::withdraw);
            } else if self.deliveries_abroad().is_some() {
                self.credits.withdraw();
            } else {
                self.forget_credits();
            }
            self.seat.retire();
        }
    }
}
