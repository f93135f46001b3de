//! Everybody who blocks for tasks, and the order in which they are served. Which tasks they get is
//! decided in `take`.

use pinpriq_proto::command::{Selection, TakeMode};
use pinpriq_proto::reply::{Output, RefusalKind, Reply};
use pinpriq_proto::task::{Bytes, ClientId, RequestId, TaskRecord};
use pinpriq_proto::time::Timestamp;

use super::{Answer, Model, Place, fits};

/// A blocked take or pop.
#[derive(Clone, Debug)]
pub(super) struct Taker {
    pub(super) turn: u64,
    pub(super) client: ClientId,
    pub(super) request: RequestId,
    pub(super) places: Vec<Place>,
    pub(super) count: u32,
    pub(super) selection: Selection,
    pub(super) mode: TakeMode,
    pub(super) until: Option<Timestamp>,
    /// For a reserve.
    pub(super) reserve: Option<Patience>,
    /// Whether its client may wait for the same in other engines.
    pub(super) is_share: bool,
    /// Whether another engine counts it.
    pub(super) is_echo: bool,
}

/// Until when a reserve waits. It may be looked at before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) until: Option<Timestamp>,
}

/// A subscription of one client to one place.
#[derive(Clone, Debug)]
pub(super) struct Subscription {
    /// The turn at which it became ready for a task. Lower turns are served first.
    turn: u64,
    pub(super) client: ClientId,
    pub(super) place: Place,
    selection: Selection,
    pub(super) mode: TakeMode,
    /// Whether what is delivered can be called back until it is started.
    pub(super) recalls: bool,
}

/// Who gets the next task.
enum Consumer {
    Taker(usize),
    Subscriber(usize),
}

impl Model {
    pub(super) fn subscribe(
        &mut self,
        client: ClientId,
        queues: &[&[u8]],
        member: Option<&[u8]>,
        (selection, mode): (Selection, TakeMode),
        recalls: bool,
    ) -> Answer {
        fits(!queues.is_empty())?;
        self.mode_fits(mode)?;
        let named = self.places_of(queues, member)?;
        self.order_fits(&named, selection)?;
        let mut places = self.subscribed(client);
        places.extend(named.iter().cloned());
        places.sort();
        places.dedup();
        if places.len() > self.limits.queues_per_client_max {
            return Err(RefusalKind::Busy);
        }
        let former = self.subscribed(client);
        let fresh = places.iter().filter(|place| !former.contains(place));
        self.has_waiting_room(fresh.map(|place| self.subscription_bytes(place)).sum())?;
        fits(!recalls || (mode != TakeMode::Pop && selection == Selection::DEFAULT))?;
        for place in named {
            self.note_life(&place);
            let mut own = self.subscriptions.iter_mut();
            if let Some(known) = own.find(|it| it.client == client && it.place == place) {
                (known.selection, known.mode, known.recalls) = (selection, mode, recalls);
            } else {
                let turn = self.draw();
                let fresh = Subscription { turn, client, place, selection, mode, recalls };
                self.subscriptions.push(fresh);
            }
        }
        Ok(Some(Reply::Count(places.len() as u64)))
    }

    pub(super) fn unsubscribe(
        &mut self,
        client: ClientId,
        queues: &[&[u8]],
        member: Option<&[u8]>,
    ) -> Answer {
        fits(!(queues.is_empty() && member.is_some()))?;
        let places = self.places_of(queues, member)?;
        let places = if queues.is_empty() { self.subscribed(client) } else { places };
        self.subscriptions.retain(|known| known.client != client || !places.contains(&known.place));
        self.call_back_from(client, &places);
        Ok(Some(Reply::Count(self.subscribed(client).len() as u64)))
    }

    fn subscribed(&self, client: ClientId) -> Vec<Place> {
        let own = self.subscriptions.iter().filter(|known| known.client == client);
        own.map(|known| known.place.clone()).collect()
    }

    pub(super) fn credit(&mut self, client: ClientId, request: RequestId, credits: u32) -> Answer {
        fits(credits > 0)?;
        let former = self.credits.get(&client).copied().unwrap_or(0);
        let credit = former.saturating_add(credits);
        self.reply(client, request, Reply::Count(u64::from(credit)));
        self.permit(client, credit, false);
        Ok(None)
    }

    /// Replaces the credit. Pops hold their tasks first if `holds` says so.
    pub(super) fn permit(&mut self, client: ClientId, credit: u32, holds: bool) {
        let former = self.credits.insert(client, credit).unwrap_or(0);
        if holds {
            self.holders.insert(client);
        } else {
            self.holders.remove(&client);
        }
        if former == 0 && credit > 0 {
            // It becomes ready now. The place that served it least recently comes first.
            let mut own: Vec<usize> = (0..self.subscriptions.len())
                .filter(|at| self.subscriptions[*at].client == client)
                .collect();
            own.sort_by_key(|at| self.subscriptions[*at].turn);
            for at in own {
                self.subscriptions[at].turn = self.draw();
            }
        }
    }

    /// The task that the subscriptions of a client would be sent next.
    pub(super) fn next_to_deliver(&self, client: ClientId) -> Vec<TaskRecord> {
        let mut own: Vec<&Subscription> =
            self.subscriptions.iter().filter(|known| known.client == client).collect();
        own.sort_by_key(|known| known.turn);
        let first =
            own.into_iter().filter(|known| !self.has_ended(&known.place)).find_map(|known| {
                let home = self.homes.get(&known.place)?;
                self.gives(home, known.selection).then(|| home.first(known.selection, self.now))?
            });
        let shown = first.map(|task| TaskRecord { payload: Bytes::default(), ..task.clone() });
        shown.into_iter().collect()
    }

    /// Hands out all available tasks. The consumer that has been ready longest comes first.
    pub(super) fn serve(&mut self) {
        loop {
            let Some(consumer) = self.next_consumer() else {
                let Some((place, last)) = self.next_to_recall() else { return };
                self.exchange(&place, &last);
                continue;
            };
            match consumer {
                Consumer::Taker(at) => {
                    let taker = self.takers.remove(at);
                    let (client, mode) = (taker.client, taker.mode);
                    let tasks = if taker.reserve.is_some() {
                        self.take_most_urgent(client, &taker.places).into_iter().collect()
                    } else {
                        let is_held = taker.is_share && mode == TakeMode::Pop;
                        let mode = (mode, is_held);
                        self.collect(&taker.places, client, taker.selection, mode, taker.count)
                    };
                    let popped = mode == TakeMode::Pop && !taker.is_share;
                    self.reply(client, taker.request, Reply::Tasks { tasks, popped });
                }
                Consumer::Subscriber(at) => {
                    let Subscription { client, place, selection, mode, recalls, .. } =
                        self.subscriptions[at].clone();
                    let is_held = mode == TakeMode::Pop && self.holders.contains(&client);
                    let mut tasks = self.collect(&[place], client, selection, (mode, is_held), 1);
                    if recalls {
                        self.deliver_unstarted(&mut tasks);
                    }
                    let popped = mode == TakeMode::Pop && !is_held;
                    self.outputs.push(Output::Delivery { client, tasks, popped });
                    self.credits.entry(client).and_modify(|credit| *credit -= 1);
                    self.subscriptions[at].turn = self.draw();
                }
            }
        }
    }

    /// Whether a consumer waits for the tasks of a place, or something of it could be called back.
    pub(super) fn waits_for(&self, place: &Place) -> bool {
        self.has_consumers(place) || self.has_unstarted(place)
    }

    /// Whether a consumer waits for the tasks of a place.
    pub(super) fn has_consumers(&self, place: &Place) -> bool {
        let has_credit =
            |known: &&Subscription| self.credits.get(&known.client).is_some_and(|left| *left > 0);
        self.takers.iter().any(|taker| taker.places.contains(place))
            || self.subscriptions.iter().filter(has_credit).any(|known| known.place == *place)
    }

    /// Whether a consumer waits that could have a task of a place, with a small payload or any.
    pub(super) fn is_waited_for(&self, place: &Place, is_small: bool) -> bool {
        let could_have = |selection: Selection| is_small || !selection.narrow;
        let has_credit = |client| self.credits.get(&client).is_some_and(|left| *left > 0);
        let mut takers = self.takers.iter().filter(|taker| taker.places.contains(place));
        let mut subscriptions = self
            .subscriptions
            .iter()
            .filter(|known| known.place == *place && has_credit(known.client));
        takers.any(|taker| could_have(taker.selection))
            || subscriptions.any(|known| could_have(known.selection))
    }

    /// The consumer with the longest wait among those for whom there is a task.
    fn next_consumer(&self) -> Option<Consumer> {
        let has = |place: &Place, selection| {
            let home = self.homes.get(place);
            home.is_some_and(|home| self.gives(home, selection)) && !self.has_ended(place)
        };
        let takers = self.takers.iter().enumerate();
        let taker = takers
            .filter(|(_, taker)| self.hands_out(taker.mode))
            .filter(|(_, taker)| taker.places.iter().any(|place| has(place, taker.selection)))
            .min_by_key(|(_, taker)| taker.turn);
        let subscriptions = self.subscriptions.iter().enumerate();
        let subscriber = subscriptions
            .filter(|(_, known)| self.credits.get(&known.client).is_some_and(|left| *left > 0))
            .filter(|(_, known)| self.hands_out(known.mode))
            .filter(|(_, known)| has(&known.place, known.selection))
            .min_by_key(|(_, known)| known.turn);
        match (taker, subscriber) {
            (Some((_, taker)), Some((at, known))) if known.turn < taker.turn => {
                Some(Consumer::Subscriber(at))
            }
            (Some((at, _)), _) => Some(Consumer::Taker(at)),
            (None, known) => known.map(|(at, _)| Consumer::Subscriber(at)),
        }
    }
}
