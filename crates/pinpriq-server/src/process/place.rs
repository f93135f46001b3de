//! A place of a server without sockets, threads and a runtime: one shard, the clients that it
//! serves, and the letters that it reads and writes.
//!
//! Nothing here waits. [`super::serving`] runs a place on a thread, with sockets.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::durable::{Durable, Loading};
use pinpriq_store::{Extent, MemoryStore, StoreError};
use tokio::sync::Notify;

use super::access::Access;
use super::opening::{engine_limits, shares};
use super::sockets::Port;
use crate::clients::contacts::Contacts;
use crate::clock::Clock;
use crate::cluster::exchange::Exchange;
use crate::config::{Config, DoorName, Look};
use crate::doors::{self, DoorOptions, RespAt, beanstalkd};
use crate::facts::OfServer;
use crate::facts::archive::Archived;
use crate::facts::cluster::LogFacts;
use crate::home::client::Client;
use crate::home::desk::receive_news;
use crate::host::guest::Guest;
use crate::host::inquiries;
use crate::host::shard::Shard;
use crate::letters::letter::{Arrival, Errand, Home, HostNews, Known, Letter};
use crate::letters::mailbox::{Mailbox, Post};
use crate::session::kept::Kept;
use crate::sharding::Sharding;
use crate::stop::Stop;

/// What the places of a server share: its shards, and in a cluster the home of its connections.
pub struct Common {
    pub(crate) stop: Stop,
    pub(crate) sharding: Sharding,
    /// The number of connections of each place, including those on their way to it.
    connections: Vec<AtomicUsize>,
    /// The mailboxes of the places.
    pub(crate) boxes: Arc<[Mailbox]>,
    contacts: Arc<Contacts>,
    pub(crate) beanstalkd: Arc<beanstalkd::Shared>,
    pub(crate) kept: Arc<Kept>,
    /// How the archive of the server fares, if it has one.
    pub(crate) archive: Option<Arc<Archived>>,
    pub(crate) access: Access,
    /// Where clients of Redis reach the server, once that is known.
    pub(crate) resp_at: OnceLock<RespAt>,
    /// Whether the host of each place says nothing, because its log does not answer.
    suspended: Vec<AtomicBool>,
    /// How far the log and the host have come of each shard of a cluster that is hosted here.
    extents: Vec<[AtomicU64; 2]>,
    /// The places that get connections.
    homes: Range<usize>,
    /// The number of places that still have connections, or may get some.
    at_work: AtomicUsize,
    /// Requested when the last connection of the shards has ended.
    quiet: Stop,
}

/// Returns the first of these addresses that is one of the RESP door, preferably a plain one.
fn resp_among(all: &[(Port, SocketAddr)]) -> Option<RespAt> {
    let resp = all.iter().filter(|(port, _)| port.door == DoorName::Resp);
    let first = resp.min_by_key(|(port, _)| port.is_encrypted);
    first.map(|(port, at)| RespAt { port: at.port(), is_encrypted: port.is_encrypted })
}

/// Who may use a server, what the connections of its beanstalkd door have in common, what all
/// connections keep, and how its archive fares.
pub struct Company {
    pub(crate) access: Access,
    pub(crate) beanstalkd: Arc<beanstalkd::Shared>,
    pub(crate) kept: Arc<Kept>,
    pub(crate) archive: Option<Arc<Archived>>,
}

impl Company {
    /// Returns that of a server on which everybody may do everything.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let kept = Arc::new(Kept::new(&config.limits));
        Self { access: Access::default(), beanstalkd: Arc::default(), kept, archive: None }
    }
}

impl Common {
    /// Returns what this number of shards shares. With HTTP there is a place behind them for its
    /// connections.
    #[must_use]
    pub fn new(shards: usize, has_http: bool, stop: Stop, with: Company) -> Arc<Self> {
        let places = shards + usize::from(has_http);
        Self::of((Sharding::Hashed(shards), places), 0..shards, stop, with)
    }

    /// Returns what the shards of a cluster that are served here share with the home of the
    /// connections, which is the place behind them.
    #[must_use]
    pub fn of_cluster(shards: usize, stop: Stop, with: Company) -> Arc<Self> {
        let homes = shards..shards + 1;
        Self::of((Sharding::Slotted(shards), shards + 1), homes, stop, with)
    }

    fn of(
        (sharding, places): (Sharding, usize),
        homes: Range<usize>,
        stop: Stop,
        Company { access, beanstalkd, kept, archive }: Company,
    ) -> Arc<Self> {
        Arc::new(Self {
            stop,
            sharding,
            connections: (0..places).map(|_| AtomicUsize::new(0)).collect(),
            boxes: (0..places).map(|_| Mailbox::default()).collect(),
            contacts: Arc::default(),
            beanstalkd,
            kept,
            archive,
            access,
            resp_at: OnceLock::new(),
            suspended: (0..places).map(|_| AtomicBool::new(false)).collect(),
            extents: (0..places).map(|_| [0; 2].map(AtomicU64::new)).collect(),
            // In a cluster the hosts have no connections.
            at_work: AtomicUsize::new(places - homes.start),
            homes,
            quiet: Stop::default(),
        })
    }

    /// Notes where the server listens.
    pub(crate) fn note_addresses(&self, all: &[(Port, SocketAddr)]) {
        if let Some(resp_at) = resp_among(all) {
            let _ = self.resp_at.set(resp_at);
        }
    }

    /// Returns the mailboxes of the places that have connections.
    pub(crate) fn homes(&self) -> &[Mailbox] {
        &self.boxes[self.homes.start..]
    }

    /// Notes how the log of a shard fares that is hosted here.
    pub(crate) fn note_log(&self, LogFacts { shard, extent, is_suspended }: LogFacts) {
        self.suspended[shard].store(is_suspended, Ordering::Relaxed);
        let [head, applied] = &self.extents[shard];
        head.store(extent.head, Ordering::Relaxed);
        applied.store(extent.applied, Ordering::Relaxed);
    }

    /// How the log of a shard fares that is hosted here, as its host has told last.
    pub(crate) fn log(&self, shard: usize) -> LogFacts {
        let is_suspended = self.suspended[shard].load(Ordering::Relaxed);
        let [head, applied] = self.extents[shard].each_ref().map(|it| it.load(Ordering::Relaxed));
        LogFacts { shard, extent: Extent { head, applied }, is_suspended }
    }

    /// Returns the number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Finds the home with the fewest connections, and counts one more for it.
    pub(crate) fn place_connection(&self) -> usize {
        let count = |home: &usize| self.connections[*home].load(Ordering::Relaxed);
        let home = self.homes.clone().min_by_key(count).unwrap_or(self.homes.start);
        self.add_connection(home);
        home
    }

    /// Waits until the last place has no connections left, and will get none. Each place calls this
    /// once it has none.
    pub(crate) async fn all_quiet(&self) {
        if self.at_work.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.quiet.ask();
        }
        self.quiet.asked_for().await;
    }

    /// Counts one more connection of a place.
    pub(crate) fn add_connection(&self, place: usize) {
        self.connections[place].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one connection less of a place.
    pub(crate) fn remove_connection(&self, place: usize) {
        self.connections[place].fetch_sub(1, Ordering::Relaxed);
    }

    /// Makes the beanstalkd door refuse jobs, or ends that. Returns whether it refuses them now.
    pub fn turn_draining(&self) -> bool {
        self.beanstalkd.turn_draining()
    }

    /// Tells the home of a node what the host of a shard says.
    pub fn tell_home(&self, shard: usize, news: HostNews) {
        let home = self.sharding.shards();
        self.boxes[home].put(&mut vec![Letter::Host { shard, news }]);
    }
}

/// The guests of a place, each by its home and its client there.
type Guests = HashMap<(Home, ClientId), Rc<RefCell<Guest>>>;

/// One place: its shard, the clients of other places that ask it, and its letters.
pub struct Place {
    shard: Rc<Shard>,
    pub(crate) options: DoorOptions,
    pub(crate) common: Arc<Common>,
    /// The clients of other places.
    guests: RefCell<Guests>,
    /// What connects the home of a cluster with shards elsewhere.
    exchange: OnceCell<Rc<Exchange>>,
}

/// What a letter has brought, and its reader must serve.
pub enum Brought {
    /// A connection.
    Connection(Box<Arrival>),
    /// A client of another place.
    Guest((Home, ClientId), Rc<RefCell<Guest>>),
}

impl Place {
    /// Returns the place of one shard over an opened store.
    pub fn new(
        own: usize,
        (config, common): (&Config, Arc<Common>),
        (mut durable, store_bell): (Durable, Arc<Notify>),
        clock: Rc<dyn Clock>,
    ) -> Self {
        let (sharding, places) = (common.sharding, common.boxes.len());
        let shards = sharding.shards();
        let mut post = (places > 1).then(|| Post::new(own, sharding, common.boxes.clone()));
        if own == shards && matches!(sharding, Sharding::Slotted(_)) {
            post = post.map(Post::with_routes);
        }
        let contacts = common.contacts.clone();
        durable.set_clients(contacts.clone());
        let tubes = common.beanstalkd.clone();
        durable.keep_figures_while(Arc::new(move |tube| tubes.has(tube)));
        let with_others = (post, contacts.clone());
        let shard = Shard::new(durable, config.durability, clock, store_bell, with_others);
        let (is_draining, archive) = (common.beanstalkd.draining_flag(), common.archive.clone());
        shard.tell_of(OfServer { is_draining, archive });
        if let Some(look) = &config.look {
            let at = look.at.max(shard.inspect(Durable::now));
            shard.stand_at(Look { at, ..look.clone() });
        }
        let limits = shares(&config.limits, shards);
        let Access { roster, audit, .. } = common.access.clone();
        if let Some(roster) = &roster {
            shard.count_tasks_of(Arc::clone(roster));
        }
        let (pinpriq, beanstalkd) = (config.pinpriq_options, common.beanstalkd.clone());
        let kept = common.kept.clone();
        let options = DoorOptions { pinpriq, limits, contacts, roster, audit, beanstalkd, kept };
        Self { shard, options, common, guests: RefCell::default(), exchange: OnceCell::new() }
    }

    /// Returns the place behind the shards, which has connections and no queues of its own. Time
    /// begins with `now`.
    pub fn behind_shards(
        with: (&Config, Arc<Common>),
        (clock, now): (Rc<dyn Clock>, Timestamp),
        seed: u64,
    ) -> Result<Self, StoreError> {
        let now = with.0.look.as_ref().map_or(now, |look| look.at);
        let store = Box::new(MemoryStore::after(0));
        let loading = Loading::load(store, engine_limits(with.0, 1), seed)?;
        let incarnation = loading.loaded().header.incarnation + 1;
        let durable = loading.begin(now, incarnation)?;
        let own = with.1.sharding.shards();
        Ok(Self::new(own, with, (durable, Arc::new(Notify::new())), clock))
    }

    /// Returns the shard.
    pub const fn shard(&self) -> &Rc<Shard> {
        &self.shard
    }

    /// Connects the home of a cluster with shards elsewhere.
    pub fn connect_with(&self, exchange: Rc<Exchange>) {
        drop(self.exchange.set(exchange));
    }

    /// Begins with a new client, which has shown a certificate of this name, if any.
    pub fn connect(
        &self,
        (door, peer): (DoorName, SocketAddr),
        certificate: Option<Arc<str>>,
    ) -> Client {
        let (client, session) = self.shard.connect(door, peer);
        session.about.borrow_mut().certificate = certificate;
        doors::begin(self.shard.clone(), (client, session), (door, peer), &self.options)
    }

    /// Goes on with a client that another place gave up, whose unread bytes are the caller's to
    /// take over.
    pub fn adopt(&self, known: Known, (door, peer): (DoorName, SocketAddr)) -> (Client, Vec<u8>) {
        let Known { client, about, dialect, input } = known;
        let who = (client, self.shard.adopt(client, about, dialect));
        (doors::begin(self.shard.clone(), who, (door, peer), &self.options), input)
    }

    /// Rings when there are letters.
    pub fn letters_bell(&self) -> &Notify {
        self.mailbox().bell()
    }

    fn mailbox(&self) -> &Mailbox {
        &self.common.boxes[self.shard.own()]
    }

    /// Reads all letters, and hands over what they have brought.
    pub fn read_letters(&self, mut serve: impl FnMut(Brought)) {
        for letter in self.mailbox().empty() {
            if let Some(brought) = self.read(letter) {
                serve(brought);
            }
        }
    }

    fn read(&self, letter: Letter) -> Option<Brought> {
        match letter {
            Letter::Arrival(arrival) => return Some(Brought::Connection(Box::new(arrival))),
            Letter::Inquiry(question, to) => {
                // The caller gave up if the other end is gone.
                let _ = to.send(inquiries::answer(&self.shard, &question));
            }
            Letter::News { from, home: Home::Place(_), client, news } => {
                match self.exchange.get() {
                    None => receive_news(&self.shard, client, from, news),
                    Some(exchange) => exchange.hear_news(from, client, news),
                }
            }
            Letter::News { from, home: Home::Link(link), client, news } => {
                if let Some(exchange) = self.exchange.get() {
                    exchange.send_news(link, from, client, news);
                }
            }
            Letter::Host { shard, news } => {
                if let Some(exchange) = self.exchange.get() {
                    exchange.hear_host(shard, &news);
                }
            }
            Letter::UsersChanged => self.shard.ring_all(),
            Letter::HomeGone(gone) => {
                for (_, guest) in self.guests().filter(|((home, _), _)| *home == gone) {
                    guest.borrow_mut().vanish();
                }
            }
            Letter::Errand { home, client, errand: Errand::Open(manners) } => {
                let (shard, who) = (self.shard.clone(), (home, client));
                let guest = Guest::receive(shard, who, self.options.limits, manners);
                let guest = Rc::new(RefCell::new(guest));
                self.guests.borrow_mut().insert(who, guest.clone());
                return Some(Brought::Guest(who, guest));
            }
            Letter::Errand { home, client, errand } => {
                let guest = self.guests.borrow().get(&(home, client)).cloned();
                if let Some(guest) = guest {
                    guest.borrow_mut().take(errand);
                }
            }
        }
        None
    }

    /// The guests that are here now, in the order of their names.
    fn guests(&self) -> impl Iterator<Item = ((Home, ClientId), Rc<RefCell<Guest>>)> + use<> {
        let guests = self.guests.borrow();
        let mut guests: Vec<_> = guests.iter().map(|(who, it)| (*who, it.clone())).collect();
        guests.sort_unstable_by_key(|(who, _)| *who);
        guests.into_iter()
    }

    /// Does everything for a guest that can be done without waiting for its bell. Returns whether
    /// it has gone.
    pub(crate) fn entertain(&self, who: (Home, ClientId), guest: &RefCell<Guest>) -> bool {
        let has_gone = guest.borrow_mut().run_until_blocked();
        if has_gone {
            self.guests.borrow_mut().remove(&who);
            guest.borrow_mut().leave();
        }
        has_gone
    }

    /// Does that for each guest whose bell has rung. Returns whether there were any.
    pub fn entertain_all(&self) -> bool {
        let mut any = false;
        for (who, guest) in self.guests() {
            let has_rung = guest.borrow().session().bell.hush();
            any |= has_rung;
            if has_rung {
                self.entertain(who, &guest);
            }
        }
        any
    }

    /// Begins to give up the shard in order: guests carry out nothing more, and their homes hear
    /// what was done for them. No letters may be read from now on: they are for the next owner.
    pub fn release(&self) {
        self.guests().for_each(|(_, guest)| guest.borrow_mut().release());
        self.shard.turn();
    }

    /// Sends the letters to other places and nodes. Returns whether their bell has rung.
    pub fn send_letters(&self) -> bool {
        let Some(post) = self.shard.post() else { return false };
        let has_rung = post.bell().hush();
        post.send();
        if let Some(exchange) = self.exchange.get() {
            exchange.send();
        }
        has_rung
    }
}
