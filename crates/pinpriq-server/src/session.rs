//! What a shard knows about one client, and what waits to be sent to it.

pub(crate) mod choosing;
pub(crate) mod dealing;
pub(crate) mod kept;
pub(crate) mod links;
pub(crate) mod log;
pub(crate) mod outbox;
pub(crate) mod subscriptions;

use std::cell::{Cell, RefCell};

use pinpriq_proto::reply::{Notice, Refusal};
use pinpriq_proto::task::{Bytes, RequestId};
use pinpriq_store::durable::Wanted;

use self::choosing::Choosing;
use self::dealing::Dealing;
use self::links::Links;
use self::outbox::Outbox;
use crate::access::signing::Outcome;
use crate::bell::Bell;
use crate::clients::about::{About, Dialect, is_guest};
use crate::clients::ending::Ending;
use crate::config::DoorName;
use crate::letters::owners::Administered;

/// The most outputs that may wait for a client that does not read, while its deliveries are called
/// back.
const UNREAD_MAX: usize = 1 << 14;

/// A shard's side of a client.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) outbox: RefCell<Outbox>,
    /// Rung when the outbox has something that may be sent, when the client may continue after it
    /// had to wait, or when every connection must notice that something has ended.
    pub(crate) bell: Bell,
    /// Who it is.
    pub(crate) about: RefCell<About>,
    /// The dialect of its later replies.
    pub(crate) dialect: Cell<Dialect>,
    /// What it has under way in other shards.
    pub(crate) links: RefCell<Links>,
    /// Whether it is among those that wait for room.
    pub(crate) stalled: Cell<bool>,
    /// What it takes from several shards at the moment.
    pub(crate) choosing: RefCell<Option<Choosing>>,
    /// Its subscriptions, once they are in several shards.
    pub(crate) dealing: RefCell<Option<Box<Dealing>>>,
    /// Whether deliveries of other shards are from before a reset that has ended subscriptions in
    /// several. They may be more than the credit, and go back.
    pub(crate) starts_again: Cell<bool>,
    /// Its blocked request, if it has one. Nothing is carried out after it.
    blocked: Cell<Option<Blocked>>,
    /// Why its connection must end, if it must.
    killed: Cell<Option<Ending>>,
    /// Whether it is among those that wait for payloads from the disk.
    pub(crate) reads: Cell<bool>,
    /// The payloads that the shard with its connection wants to be read, if that is another shard.
    pub(crate) lent: RefCell<Lent>,
    /// Whether that shard is waiting for the payloads.
    pub(crate) lending: Cell<bool>,
    /// The number of deliveries that its shard has made to it and not called back.
    delivered: Cell<u64>,
    /// The oldest volume of the store that is kept readable by outputs already handed to the shard
    /// with the connection.
    pub(crate) oldest_handed: Cell<Option<u32>>,
    /// Whether the client is signing in or asks the engine under a cluster, so that nothing is
    /// carried out until that is over.
    pub(crate) signing: Cell<bool>,
    /// The answer of the engine under a cluster, until the request that wanted it comes again.
    pub(crate) administered: RefCell<Option<Box<Administered>>>,
    /// What has become of signing in, until the request that wanted it comes again.
    pub(crate) signed: RefCell<Option<Outcome>>,
    /// The refusal of the blocked request, whose user may no longer do it.
    pub(crate) denied: RefCell<Option<Refusal>>,
    /// Whether another shard had its connection before.
    was_moved: bool,
}

/// A request whose reply comes later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Blocked {
    pub(crate) request: RequestId,
    /// Whether it has changed something already, which its client must be told whatever happens.
    pub(crate) has_changed: bool,
}

/// Payloads that one shard reads for another.
#[derive(Default)]
pub(crate) struct Lent {
    /// Those to be read.
    pub(crate) wanted: Option<Vec<Wanted>>,
    /// Those that were read.
    pub(crate) payloads: Option<Vec<Bytes>>,
}

impl Session {
    /// Notes that no shard owes a reply.
    pub(crate) fn note_nothing_owed(&self) {
        let links = &mut *self.links.borrow_mut();
        (links.blocked, links.gives_up, links.gathers) = (false, false, false);
        self.starts_again.set(false);
    }

    /// Returns the session of a client whose connection another shard has, or had if `was_moved`.
    pub(crate) fn of(about: About, dialect: Dialect, was_moved: bool) -> Self {
        let (about, dialect) = (RefCell::new(about), Cell::new(dialect));
        Self { about, dialect, was_moved, ..Self::default() }
    }

    /// Returns the payloads to be read for it next, of about `most` bytes together. Empty if
    /// nothing waits for any.
    pub(crate) fn wanted(&self, most: u64) -> Vec<Wanted> {
        let lent = self.lent.borrow_mut().wanted.take();
        lent.unwrap_or_else(|| self.outbox.borrow_mut().wanted(most))
    }

    /// Takes the payloads that were wanted, for its own outbox or for the shard with its
    /// connection.
    pub(crate) fn supply(&self, is_lent: bool, payloads: Vec<Bytes>) {
        if is_lent {
            self.lent.borrow_mut().payloads = Some(payloads);
        } else {
            self.outbox.borrow_mut().supply(payloads);
        }
        self.bell.ring();
    }

    /// Returns the door that its connection came through.
    pub(crate) fn door(&self) -> DoorName {
        self.about.borrow().door
    }

    /// Whether one of its requests is blocked.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.get().is_some()
    }

    /// Notes its blocked request.
    pub(crate) fn block(&self, blocked: Blocked) {
        self.blocked.set(Some(blocked));
    }

    /// Notes that the blocked request gets no further reply. Returns which request it was.
    pub(crate) fn unblock(&self) -> Option<Blocked> {
        self.blocked.take()
    }

    /// Notes that this request has its reply. Returns whether it was blocked.
    #[inline]
    pub(crate) fn unblock_request(&self, request: RequestId) -> bool {
        let is_blocked = self.blocked.get().is_some_and(|it| it.request == request);
        if is_blocked {
            self.blocked.set(None);
        }
        is_blocked
    }

    /// Whether another shard had its connection before.
    pub(crate) const fn was_moved(&self) -> bool {
        self.was_moved
    }

    /// Returns why its connection must end, if it must.
    pub(crate) fn killed(&self) -> Option<Ending> {
        self.killed.get()
    }

    /// Ends its connection for this reason, unless it must end already.
    pub(crate) fn kill(&self, ending: Ending) {
        self.killed.set(self.killed().or(Some(ending)));
        self.bell.ring();
    }

    /// Returns the number of deliveries that its shard has made to it and not called back.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.get()
    }

    /// Counts a delivery.
    pub(crate) fn count_delivery(&self) {
        self.delivered.set(self.delivered.get() + 1);
    }

    /// Returns whether the client can hear of a task that was cancelled: only one protocol has a
    /// word for it.
    pub(crate) fn can_hear_of_cancels(&self) -> bool {
        matches!(self.door(), DoorName::Resp | DoorName::RespCluster)
    }

    /// Returns whether the client hears of this. Of a delivery that was called back, which has cost
    /// no credit then, it does not hear if nothing of the delivery was sent.
    pub(crate) fn must_hear(&self, notice: &Notice) -> bool {
        // Which door a guest came through is known where its connection is.
        let is_home = !is_guest(notice.client);
        if !notice.is_recall() && is_home && !self.can_hear_of_cancels() {
            return false;
        }
        let outbox = &mut *self.outbox.borrow_mut();
        if notice.is_recall() {
            self.delivered.set(self.delivered.get() - 1);
            if outbox.call_back(notice.receipt) {
                return false;
            }
        }
        if outbox.len() > UNREAD_MAX {
            self.kill(Ending::Unread);
        }
        true
    }

    /// Returns the oldest volume of the shard's store that its replies keep readable.
    pub(crate) fn oldest_volume(&self) -> Option<u32> {
        let waiting = self.outbox.borrow().oldest_volume();
        waiting.into_iter().chain(self.oldest_handed.get()).min()
    }

    /// Whether the client has to wait for room, and its bell has not rung since.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.get()
    }
}
