//! A place at work on its thread: its connections, its guests, its letters, and its orderly end.
//!
//! With several shards, this runs once on each thread.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::Span;
use pinpriq_store::StoreError;

use super::place::{Brought, Common, Place};
use crate::clients::ending::Ending;
use crate::clock::{Clock as _, SystemClock};
use crate::config::{Config, DoorName};
use crate::home::connection::{self, READ_BYTES, Surroundings};
use crate::host::guest::Guest;
use crate::letters::letter::{Arrival, Home, HostNews, Known, Letter};
use crate::random::random;
use crate::stop::Stop;
use crate::tls::socket::Socket;

/// How long an orderly stop waits for clients to read their replies.
const DRAIN_MS: u64 = 5_000;

/// How long a shard that is given up waits until everything that it has done is durable and told.
const RELEASE_MS: u64 = 2_000;

/// How often a host looks whether its log answers.
const SUSPENSION_EVERY_MS: u64 = 200;

/// One shard at work.
pub(crate) struct Context {
    around: Surroundings,
    place: Place,
}

impl Deref for Context {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

impl Context {
    /// Returns what serves this place.
    pub(crate) fn new(place: Place) -> Rc<Self> {
        let around = Surroundings {
            shard: place.shard().clone(),
            stop: place.common.stop.clone(),
            cut_off: Stop::default(),
            scratch: RefCell::new(vec![0; READ_BYTES]),
        };
        Rc::new(Self { around, place })
    }

    /// Returns the same for the place behind the shards, which has connections and no queues of its
    /// own. It tells the time by this clock.
    pub(crate) fn behind_shards(
        config: &Config,
        common: Arc<Common>,
        clock: SystemClock,
    ) -> Result<Rc<Self>, StoreError> {
        let now = clock.now();
        let place = Place::behind_shards((config, common), (Rc::new(clock), now), random())?;
        Ok(Self::new(place))
    }

    /// Returns what the connections of the place share.
    pub(crate) const fn around(&self) -> &Surroundings {
        &self.around
    }

    /// Waits until the stop has waited long enough for the clients.
    pub(crate) async fn cut_off(&self) {
        self.around.cut_off.asked_for().await;
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
        let reading = tokio::task::spawn_local(self.clone().read_all_letters());
        let sending = tokio::task::spawn_local(self.clone().send_all_letters());
        let watching = tokio::task::spawn_local(self.clone().watch_suspension());
        tokio::select! {
            () = released => {
                // What comes from now on is for the next owner.
                reading.abort();
                self.release_all().await;
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
    async fn release_all(&self) {
        self.release();
        let shard = self.shard();
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
        tasks.push(tokio::task::spawn_local(self.clone().read_all_letters()));
        if shard.post().is_some() {
            tasks.push(tokio::task::spawn_local(self.clone().send_all_letters()));
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
        let (client, input) = if let Some(known) = known {
            self.adopt(known, (door, peer))
        } else {
            (self.connect((door, peer), socket.common_name()), Vec::new())
        };
        let client = Box::new(client);
        tokio::task::spawn_local(async move {
            let moved = connection::serve(&context.around, socket, client, &input).await;
            context.common.remove_connection(context.shard().own());
            if let Some((to, socket, known)) = moved {
                context.common.add_connection(to);
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
    async fn read_all_letters(self: Rc<Self>) {
        loop {
            self.letters_bell().notified().await;
            self.read_letters(|brought| match brought {
                Brought::Connection(arrival) => self.arrive(*arrival),
                Brought::Guest(who, guest) => {
                    tokio::task::spawn_local(self.clone().serve_guest(who, guest));
                }
            });
        }
    }

    fn arrive(self: &Rc<Self>, Arrival { socket, peer, door, known }: Arrival) {
        if self.common.stop.is_asked_for() {
            tracing::debug!(%peer, "a connection came too late");
            self.shard().tally().close(Ending::Stopped);
            return self.common.remove_connection(self.shard().own());
        }
        match socket.arrive() {
            Ok(socket) => self.receive((socket, peer, door), known),
            Err(error) => self.lose(self.shard().own(), peer, &error),
        }
    }

    /// Serves a guest until it has gone.
    async fn serve_guest(self: Rc<Self>, who: (Home, ClientId), guest: Rc<RefCell<Guest>>) {
        let session = guest.borrow().session().clone();
        while !self.entertain(who, &guest) {
            let rests = guest.borrow_mut().take_rest();
            if rests {
                tokio::task::yield_now().await;
            }
            poll_fn(|task| session.bell.poll_rung(task)).await;
        }
    }

    /// Sends the letters to others after every task that is ready has run. Never ends.
    async fn send_all_letters(self: Rc<Self>) {
        let Some(post) = self.shard().post() else { return };
        loop {
            poll_fn(|task| post.bell().poll_rung(task)).await;
            self.send_letters();
        }
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
        self.common.all_quiet().await;
        self.shard().emptied().await;
    }
}
