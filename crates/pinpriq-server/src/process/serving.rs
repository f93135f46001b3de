//! One shard at work: its tasks, its connections, its letters, and its orderly end.
//!
//! With several shards, this runs once on each thread. [`Common`] holds what they share.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::Span;
use pinpriq_store::durable::Durable;
use pinpriq_store::{Extent, StoreError};
use tokio::sync::Notify;

use super::access::Access;
use super::opening::shares;
use super::sockets::Port;
use crate::clients::contacts::Contacts;
use crate::clients::ending::Ending;
use crate::clock::Clock;
use crate::cluster::exchange::Exchange;
use crate::config::{Config, DoorName};
use crate::doors::{self, DoorOptions, RespAt, beanstalkd};
use crate::facts::cluster::LogFacts;
use crate::home::connection::{self, READ_BYTES, Surroundings};
use crate::home::desk::receive_news;
use crate::host::guest::Guest;
use crate::host::inquiries;
use crate::host::shard::Shard;
use crate::letters::letter::{Arrival, Errand, Home, HostNews, Known, Letter};
use crate::letters::mailbox::{Mailbox, Post};
use crate::session::kept::Kept;
use crate::sharding::Sharding;
use crate::stop::Stop;
use crate::tls::socket::Socket;

/// How long an orderly stop waits for clients to read their replies.
const DRAIN_MS: u64 = 5_000;

/// How long a shard that is given up waits until everything that it has done is durable and told.
const RELEASE_MS: u64 = 2_000;

/// How often a host looks whether its log answers.
const SUSPENSION_EVERY_MS: u64 = 200;

/// What the places of a server share: its shards, and in a cluster the home of its connections.
pub(crate) struct Common {
    pub(crate) stop: Stop,
    pub(crate) sharding: Sharding,
    /// The number of connections of each place, including those on their way to it.
    connections: Vec<AtomicUsize>,
    /// The mailboxes of the places.
    pub(crate) boxes: Arc<[Mailbox]>,
    contacts: Arc<Contacts>,
    pub(crate) beanstalkd: Arc<beanstalkd::Shared>,
    pub(crate) kept: Arc<Kept>,
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

/// Who may use a server, what the connections of its beanstalkd door have in common, and what all
/// connections keep.
pub(crate) type Company = (Access, Arc<beanstalkd::Shared>, Arc<Kept>);

/// Returns the same for a server without a beanstalkd door.
pub(crate) fn company_of(access: Access, config: &Config) -> Company {
    (access, Arc::default(), Arc::new(Kept::new(&config.limits)))
}

impl Common {
    /// Returns what this number of shards shares. With HTTP there is a place behind them for its
    /// connections.
    pub(crate) fn new(shards: usize, has_http: bool, stop: Stop, with: Company) -> Arc<Self> {
        let places = shards + usize::from(has_http);
        Self::of((Sharding::Hashed(shards), places), 0..shards, stop, with)
    }

    /// Returns what the shards of a cluster that are served here share with the home of the
    /// connections, which is the place behind them.
    pub(crate) fn of_cluster(shards: usize, stop: Stop, with: Company) -> Arc<Self> {
        let homes = shards..shards + 1;
        Self::of((Sharding::Slotted(shards), shards + 1), homes, stop, with)
    }

    fn of(
        (sharding, places): (Sharding, usize),
        homes: Range<usize>,
        stop: Stop,
        (access, beanstalkd, kept): Company,
    ) -> Arc<Self> {
        Arc::new(Self {
            stop,
            sharding,
            connections: (0..places).map(|_| AtomicUsize::new(0)).collect(),
            boxes: (0..places).map(|_| Mailbox::default()).collect(),
            contacts: Arc::default(),
            beanstalkd,
            kept,
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

    /// Counts one more connection of a place.
    pub(crate) fn add_connection(&self, place: usize) {
        self.connections[place].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one connection less of a place.
    pub(crate) fn remove_connection(&self, place: usize) {
        self.connections[place].fetch_sub(1, Ordering::Relaxed);
    }
}

/// The guests of a shard, each by its home and its client there.
type Guests = HashMap<(Home, ClientId), Rc<RefCell<Guest>>>;

/// One shard at work.
pub(crate) struct Context {
    around: Surroundings,
    pub(crate) options: DoorOptions,
    pub(crate) common: Arc<Common>,
    /// The clients of other shards.
    guests: RefCell<Guests>,
    /// What connects the home of a cluster with shards elsewhere.
    exchange: OnceCell<Rc<Exchange>>,
}

impl Context {
    /// Returns the context of one shard over an opened store.
    pub(crate) fn new(
        own: usize,
        (config, common): (&Config, Arc<Common>),
        (mut durable, store_bell): (Durable, Arc<Notify>),
        clock: Rc<dyn Clock>,
    ) -> Rc<Self> {
        let (sharding, places) = (common.sharding, common.boxes.len());
        let shards = sharding.shards();
        let mut post = (places > 1).then(|| Post::new(own, sharding, common.boxes.clone()));
        if own == shards && matches!(sharding, Sharding::Slotted(_)) {
            post = post.map(Post::with_routes);
        }
        let contacts = common.contacts.clone();
        let tubes = common.beanstalkd.clone();
        durable.keep_figures_while(Arc::new(move |tube| tubes.has(tube)));
        let shared = (post, contacts.clone());
        let around = Surroundings {
            shard: Shard::new(durable, config.durability, clock, store_bell, shared),
            stop: common.stop.clone(),
            cut_off: Stop::default(),
            scratch: RefCell::new(vec![0; READ_BYTES]),
        };
        around.shard.tell_draining(common.beanstalkd.draining_flag());
        let limits = shares(&config.limits, shards);
        let Access { roster, audit, .. } = common.access.clone();
        if let Some(roster) = &roster {
            around.shard.count_tasks_of(Arc::clone(roster));
        }
        let (pinpriq, beanstalkd) = (config.pinpriq_options, common.beanstalkd.clone());
        let kept = common.kept.clone();
        let options = DoorOptions { pinpriq, limits, contacts, roster, audit, beanstalkd, kept };
        let (guests, exchange) = (RefCell::default(), OnceCell::new());
        Rc::new(Self { around, options, common, guests, exchange })
    }

    /// Returns the shard.
    pub(crate) const fn shard(&self) -> &Rc<Shard> {
        &self.around.shard
    }

    /// Returns what the connections of the place share.
    pub(crate) const fn around(&self) -> &Surroundings {
        &self.around
    }

    /// Waits until the stop has waited long enough for the clients.
    pub(crate) async fn cut_off(&self) {
        self.around.cut_off.asked_for().await;
    }

    /// Connects the home of a cluster with shards elsewhere.
    pub(crate) fn connect_with(&self, exchange: Rc<Exchange>) {
        drop(self.exchange.set(exchange));
    }

    /// Serves guests until `released` ends, or until the store fails. Returns how it has ended.
    pub(crate) async fn host(self: Rc<Self>, released: impl Future<Output = ()>) -> HostNews {
        let shard = self.shard().clone();
        let timer = tokio::task::spawn_local({
            let shard = shard.clone();
            async move { shard.run_timer().await }
        });
        let store = tokio::task::spawn_local({
            let shard = shard.clone();
            async move { shard.run_store().await }
        });
        let looking = tokio::task::spawn_local({
            let shard = shard.clone();
            async move { shard.run_looks().await }
        });
        let reading = tokio::task::spawn_local(self.clone().read_letters());
        let sending = tokio::task::spawn_local(send_letters(shard.clone(), None));
        let watching = tokio::task::spawn_local(self.clone().watch_suspension());
        tokio::select! {
            () = released => {
                // What comes from now on is for the next owner.
                reading.abort();
                self.release().await;
            }
            () = shard.failed() => {}
        }
        let finished = match shard.store_failure() {
            Some(failure) => Err(failure),
            None => shard.finish(),
        };
        if let Some(post) = shard.post() {
            post.send();
        }
        for task in [timer, store, looking, reading, sending, watching] {
            task.abort();
            let _ = task.await;
        }
        finished.map_or_else(HostNews::Failed, |()| HostNews::Released)
    }

    /// Tells the node how its log fares. Never ends.
    async fn watch_suspension(self: Rc<Self>) {
        let shard = self.shard();
        loop {
            if let Some(log) = shard.inspect(|durable| shard.log_facts(durable)) {
                self.common.note_log(log);
            }
            let clock = shard.clock();
            clock.until(clock.now().after(Span::from_ms(SUSPENSION_EVERY_MS))).await;
        }
    }

    /// Tells every guest all that was done for it, for a bounded time.
    async fn release(&self) {
        let shard = self.shard();
        let guests: Vec<_> = self.guests.borrow().values().cloned().collect();
        for guest in &guests {
            guest.borrow_mut().release();
        }
        shard.turn();
        let clock = shard.clock();
        let last = clock.now().after(Span::from_ms(RELEASE_MS));
        tokio::select! {
            () = shard.emptied() => {}
            () = shard.failed() => {}
            () = clock.until(last) => {}
        }
    }

    /// Serves until `served` ends, which may bring connections, and then stops in order: clients
    /// read their replies, and everything is made durable.
    pub(crate) async fn serve(
        self: Rc<Self>,
        served: impl Future<Output = ()>,
    ) -> Result<(), StoreError> {
        let shard = self.shard().clone();
        let mut tasks = vec![
            tokio::task::spawn_local({
                let shard = shard.clone();
                async move { shard.run_timer().await }
            }),
            tokio::task::spawn_local({
                let shard = shard.clone();
                async move { shard.run_store().await }
            }),
        ];
        tasks.push(tokio::task::spawn_local(self.clone().read_letters()));
        if shard.post().is_some() {
            let exchange = self.exchange.get().cloned();
            tasks.push(tokio::task::spawn_local(send_letters(shard.clone(), exchange)));
        }
        served.await;
        tracing::info!(clients = shard.clients(), "stopping");
        self.drain().await;
        self.await_others().await;
        let finished = shard.finish();
        for task in tasks {
            task.abort();
            // The task owns the shard until it is gone, and with it the lock of the directory.
            let _ = task.await;
        }
        finished
    }

    /// Serves a connection that is already counted.
    pub(crate) fn receive(
        self: &Rc<Self>,
        (socket, peer, door): (Socket, SocketAddr, DoorName),
        known: Option<Known>,
    ) {
        let context = self.clone();
        let certificate = socket.common_name();
        let ((client, session), input) = if let Some(known) = known {
            let Known { client, about, dialect, input } = known;
            ((client, self.shard().adopt(client, about, dialect)), input)
        } else {
            let (client, session) = self.shard().connect(door, peer);
            session.about.borrow_mut().certificate = certificate;
            ((client, session), Vec::new())
        };
        let who = (client, session.clone());
        let client = doors::begin(self.shard().clone(), who, (door, peer), &self.options);
        tokio::task::spawn_local(async move {
            let number = client.number();
            let moved = connection::serve(&context.around, socket, client, &input).await;
            context.common.remove_connection(context.shard().own());
            if let Some((to, socket, input)) = moved {
                context.common.add_connection(to);
                let (about, dialect) = (session.about.take(), session.dialect.get());
                let known = Known { client: number, about, dialect, input };
                context.send_on(to, (socket, peer, door), Some(known));
            }
        });
    }

    /// Hands a connection that is already counted to the shard that is to serve it.
    pub(crate) fn send_on(
        self: &Rc<Self>,
        to: usize,
        (socket, peer, door): (Socket, SocketAddr, DoorName),
        known: Option<Known>,
    ) {
        let Some(post) = self.shard().post().filter(|_| to != self.shard().own()) else {
            return self.receive((socket, peer, door), known);
        };
        match socket.carry() {
            Ok(socket) => post.write(to, Letter::Arrival(Arrival { socket, peer, door, known })),
            Err(error) => self.lose(to, peer, &error),
        }
    }

    fn lose(&self, to: usize, peer: SocketAddr, error: &std::io::Error) {
        let shard = self.shard();
        shard.notices().lost(shard.clock().now(), &peer, error);
        self.shard().tally().close(Ending::Broken);
        self.common.remove_connection(to);
    }

    /// Reads letters from other shards and threads. Never ends.
    async fn read_letters(self: Rc<Self>) {
        let mailbox = &self.common.boxes[self.shard().own()];
        loop {
            mailbox.bell().notified().await;
            for letter in mailbox.empty() {
                self.read(letter);
            }
        }
    }

    fn read(self: &Rc<Self>, letter: Letter) {
        match letter {
            Letter::Arrival(Arrival { peer, .. }) if self.common.stop.is_asked_for() => {
                tracing::debug!(%peer, "a connection came too late");
                self.shard().tally().close(Ending::Stopped);
                self.common.remove_connection(self.shard().own());
            }
            Letter::Arrival(Arrival { socket, peer, door, known }) => match socket.arrive() {
                Ok(socket) => self.receive((socket, peer, door), known),
                Err(error) => self.lose(self.shard().own(), peer, &error),
            },
            Letter::Inquiry(question, to) => {
                // The caller gave up if the other end is gone.
                let _ = to.send(inquiries::answer(self.shard(), &question));
            }
            Letter::News { from, home: Home::Place(_), client, news } => {
                match self.exchange.get() {
                    None => receive_news(self.shard(), client, from, news),
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
            Letter::UsersChanged => self.shard().ring_all(),
            Letter::HomeGone(gone) => {
                let guests = self.guests.borrow();
                let of_home = guests.iter().filter(|((home, _), _)| *home == gone);
                let of_home: Vec<_> = of_home.map(|(_, guest)| guest.clone()).collect();
                drop(guests);
                for guest in of_home {
                    guest.borrow_mut().vanish();
                }
            }
            Letter::Errand { home, client, errand } => match errand {
                Errand::Open(manners) => {
                    let (shard, limits) = (self.shard().clone(), self.options.limits);
                    let guest = Guest::receive(shard, (home, client), limits, manners);
                    let guest = Rc::new(RefCell::new(guest));
                    self.guests.borrow_mut().insert((home, client), guest.clone());
                    tokio::task::spawn_local(self.clone().entertain((home, client), guest));
                }
                errand => {
                    let guest = self.guests.borrow().get(&(home, client)).cloned();
                    if let Some(guest) = guest {
                        guest.borrow_mut().take(errand);
                    }
                }
            },
        }
    }

    /// Serves a guest until it has gone.
    async fn entertain(self: Rc<Self>, client: (Home, ClientId), guest: Rc<RefCell<Guest>>) {
        let session = guest.borrow().session().clone();
        while !guest.borrow_mut().go_on() {
            let rests = guest.borrow_mut().take_rest();
            if rests {
                tokio::task::yield_now().await;
            }
            poll_fn(|task| session.bell.poll_rung(task)).await;
        }
        self.guests.borrow_mut().remove(&client);
        guest.borrow_mut().leave();
    }

    /// Waits until every client has gone, which happens once its replies are sent. If that takes
    /// too long, clients are cut off, and whatever they did not read goes back to its queue.
    async fn drain(&self) {
        let shard = self.shard();
        shard.ring_all();
        let clock = shard.clock();
        let last = clock.now().after(Span::from_ms(DRAIN_MS));
        tokio::select! {
            () = shard.deserted() => {}
            () = clock.until(last) => {
                let clients = shard.clients();
                tracing::warn!(clients, "some clients did not take their answers");
                self.around.cut_off.ask();
                shard.ring_all();
                shard.deserted().await;
            }
        }
    }

    /// Waits until the connections of all shards have ended, and the guests have gone.
    async fn await_others(&self) {
        let Some(post) = self.shard().post() else { return };
        // This sends the last letter of this shard: that its connections have gone.
        post.send();
        if self.common.at_work.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.common.quiet.ask();
        }
        self.common.quiet.asked_for().await;
        self.shard().emptied().await;
    }
}

/// Sends the shard's letters to others after every task that is ready has run. Never ends.
async fn send_letters(shard: Rc<Shard>, exchange: Option<Rc<Exchange>>) {
    let Some(post) = shard.post() else { return };
    loop {
        poll_fn(|task| post.bell().poll_rung(task)).await;
        post.bell().hush();
        post.send();
        if let Some(exchange) = &exchange {
            exchange.send();
        }
    }
}
