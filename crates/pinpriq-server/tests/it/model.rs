//! What `docs/protocol/pinpriq.md` says, as plainly as it can be written down: lists that are
//! searched from one end to the other.

use crate::client::Packet;

/// What is known of a packet besides its bytes.
#[derive(Clone, Debug)]
struct Stored {
    queue: usize,
    /// The order of the pushes.
    number: u64,
    priority: u8,
    packet: Packet,
    /// The moment from which on it is gone.
    deadline: u64,
}

/// A subscription of one client.
#[derive(Clone, Debug)]
struct Subscription {
    queue: usize,
    /// When it was served last, or made.
    served: u64,
    /// Since when it stands in the line of its queue.
    since: u64,
}

/// A client.
#[derive(Clone, Debug, Default)]
struct Subscriber {
    credit: u32,
    subscriptions: Vec<Subscription>,
}

/// A push as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Push {
    pub(crate) queue: usize,
    pub(crate) ttl_ms: u16,
    pub(crate) priority: u8,
    pub(crate) packet: Packet,
}

/// All queues and all clients.
#[derive(Debug, Default)]
pub(crate) struct Model {
    stored: Vec<Stored>,
    clients: Vec<Subscriber>,
    now: u64,
    /// Drawn for everything that has an order.
    last: u64,
}

/// A delivery: to which client, and what.
pub(crate) type Delivery = (usize, Vec<Packet>);

impl Model {
    pub(crate) fn new(clients: usize) -> Self {
        Self { clients: vec![Subscriber::default(); clients], ..Self::default() }
    }

    pub(crate) fn advance(&mut self, ms: u64) {
        self.now += ms;
        let now = self.now;
        self.stored.retain(|stored| now < stored.deadline);
    }

    /// Takes a push, and returns the delivery that it causes.
    pub(crate) fn push(&mut self, push: Push, ttl_zero_is_forever: bool) -> Option<Delivery> {
        let number = self.draw();
        let deadline = match push.ttl_ms {
            0 if ttl_zero_is_forever => u64::MAX,
            ttl_ms => self.now + u64::from(ttl_ms),
        };
        let Push { queue, priority, packet, .. } = push;
        self.stored.push(Stored { queue, number, priority, packet, deadline });
        let delivery = self.deliver_from(queue);
        let now = self.now;
        self.stored.retain(|stored| now < stored.deadline);
        delivery
    }

    /// The reply to a pop.
    pub(crate) fn pop(&mut self, queue: usize) -> Vec<Packet> {
        let Some(selected) = self.selected(queue) else { return Vec::new() };
        let key = selected.packet.0;
        let joins = |stored: &Stored| stored.queue == queue && stored.packet.0 == key;
        let mut group: Vec<Stored> = self.stored.iter().filter(|it| joins(it)).cloned().collect();
        self.stored.retain(|stored| !joins(stored));
        // Priority 0 comes last.
        group.sort_by_key(|it| (it.priority.wrapping_sub(1), u64::MAX - it.number));
        group.into_iter().map(|stored| stored.packet).collect()
    }

    pub(crate) fn subscribe(&mut self, client: usize, queue: usize) {
        let since = self.draw();
        let known = &mut self.clients[client].subscriptions;
        if !known.iter().any(|subscription| subscription.queue == queue) {
            // A newcomer stands behind the queues that are there already.
            known.push(Subscription { queue, served: since, since });
        }
    }

    /// The next delivery that has to be made from this queue, if there is one.
    pub(crate) fn deliver_from(&mut self, queue: usize) -> Option<Delivery> {
        self.selected(queue)?;
        let first = |subscriber: &Subscriber| {
            let has = |it: &&Subscription| it.queue == queue && subscriber.credit > 0;
            subscriber.subscriptions.iter().find(has).map(|it| it.since)
        };
        let line = self.clients.iter().enumerate();
        let (_, client) =
            line.filter_map(|(index, it)| first(it).map(|since| (since, index))).min()?;
        Some((client, self.serve(client, queue)))
    }

    pub(crate) fn unsubscribe(&mut self, client: usize, queue: usize) {
        self.clients[client].subscriptions.retain(|it| it.queue != queue);
    }

    pub(crate) fn disconnect(&mut self, client: usize) {
        self.clients[client] = Subscriber::default();
    }

    /// Takes one credit, and returns the delivery that it buys at once: from the queue that can
    /// supply and served this client least recently.
    pub(crate) fn ready(&mut self, client: usize) -> Option<Vec<Packet>> {
        if self.clients[client].credit == 0 {
            let since = self.draw();
            for subscription in &mut self.clients[client].subscriptions {
                subscription.since = since;
            }
        }
        self.clients[client].credit += 1;
        let subscriptions = self.clients[client].subscriptions.iter();
        let can = subscriptions.filter(|it| self.selected(it.queue).is_some());
        let queue = can.min_by_key(|subscription| subscription.served)?.queue;
        Some(self.serve(client, queue))
    }

    /// Serves a client from a queue that can supply.
    fn serve(&mut self, client: usize, queue: usize) -> Vec<Packet> {
        let group = self.pop(queue);
        let drawn = self.draw();
        let subscriber = &mut self.clients[client];
        subscriber.credit -= 1;
        for subscription in &mut subscriber.subscriptions {
            if subscription.queue == queue {
                (subscription.served, subscription.since) = (drawn, drawn);
            }
        }
        group
    }

    fn selected(&self, queue: usize) -> Option<Stored> {
        let here = |stored: &&Stored| stored.queue == queue && stored.priority > 0;
        let order = |stored: &&Stored| (stored.priority, u64::MAX - stored.number);
        self.stored.iter().filter(here).min_by_key(order).cloned()
    }

    fn draw(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}
