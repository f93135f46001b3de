//! Puts that wait for room. Which queues are full is decided in `capacity`.

use pinpriq_proto::batches::{Bonds, OnlyIf};
use pinpriq_proto::command::{Delay, Put, TimeToLive, Wait};
use pinpriq_proto::limits::WAIT_OVERHEAD_BYTES;
use pinpriq_proto::reply::RefusalKind;
use pinpriq_proto::task::{Bytes, ClientId, RequestId, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{OnDuplicate, Unique};

use super::turns::share_of;
use super::{Answer, Home, Model, Place};

/// A put that waits for room.
#[derive(Clone, Debug)]
pub(super) struct Putter {
    pub(super) turn: u64,
    pub(super) client: ClientId,
    request: RequestId,
    place: Place,
    pub(super) until: Timestamp,
    put: OwnPut,
}

/// What a put says.
#[derive(Clone, Debug)]
struct OwnPut {
    queue: Bytes,
    payload: Bytes,
    terms: Terms,
    priority: Option<i64>,
    delay: Delay,
    ttl: TimeToLive,
    id: Option<Bytes>,
    wait: Option<Wait>,
    result: bool,
    unique: Option<(Bytes, Option<Span>, OnDuplicate)>,
    batch: Option<Bytes>,
    after: Option<Bytes>,
    only_if: OnlyIf,
}

impl OwnPut {
    fn of(put: &Put<'_>) -> Self {
        Self {
            queue: put.queue.into(),
            payload: put.payload.into(),
            terms: put.terms.kept(),
            priority: put.priority,
            delay: put.delay,
            ttl: put.ttl,
            id: put.id.map(Into::into),
            wait: put.wait,
            result: put.result,
            unique: put.unique.map(|it| (it.key.into(), it.window, it.on_duplicate)),
            batch: put.bonds.batch.map(Into::into),
            after: put.bonds.after.map(Into::into),
            only_if: put.only_if,
        }
    }

    fn put(&self) -> Put<'_> {
        let unique = self.unique.as_ref();
        Put {
            terms: self.terms.borrowed(),
            priority: self.priority,
            delay: self.delay,
            ttl: self.ttl,
            id: self.id.as_deref(),
            wait: self.wait,
            result: self.result,
            unique: unique.map(|(key, window, on_duplicate)| Unique {
                key,
                window: *window,
                on_duplicate: *on_duplicate,
            }),
            bonds: Bonds { batch: self.batch.as_deref(), after: self.after.as_deref() },
            only_if: self.only_if,
            ..Put::new(&self.queue, &self.payload)
        }
    }
}

impl Putter {
    /// What it counts among all that waits.
    pub(super) fn bytes(&self) -> u64 {
        bytes_of(&self.put.put())
    }
}

fn bytes_of(put: &Put<'_>) -> u64 {
    let unique = put.unique.map_or(0, |unique| unique.key.len());
    let id = put.id.map_or(0, <[u8]>::len);
    let content = put.payload.len() + put.terms.bytes();
    WAIT_OVERHEAD_BYTES + (put.queue.len() + id + content + unique + put.bonds.bytes()) as u64
}

impl Model {
    pub(super) fn put_in_line(
        &mut self,
        client: ClientId,
        request: RequestId,
        put: &Put<'_>,
        room: Span,
    ) -> Answer {
        super::fits(put.queue.len() <= pinpriq_proto::limits::NAME_BYTES_MAX)?;
        self.span_fits(Some(room), true)?;
        match self.put(client, request, put) {
            Err(RefusalKind::Full) => {}
            answer => return answer,
        }
        let place = Place::Queue(put.queue.into());
        if self.paused(&place).input.is_on() {
            return Err(RefusalKind::Paused);
        }
        let is_share = |home: &Home| home.share_is_full(&share_of(&put.terms));
        let waits_in_vain =
            self.never_fits(&place, put) || self.homes.get(&place).is_some_and(is_share);
        if room.is_zero() || waits_in_vain {
            return Err(RefusalKind::Full);
        }
        self.may_wait(client, bytes_of(put))?;
        let (turn, until) = (self.draw(), self.now.after(room));
        self.note_due(Some(until));
        let put = OwnPut::of(put);
        self.putters.push(Putter { turn, client, request, place, until, put });
        Ok(None)
    }

    fn never_fits(&self, place: &Place, put: &Put<'_>) -> bool {
        let most = self.settings(place).capacity_bytes;
        most.is_some_and(|most| (put.payload.len() + put.terms.key_bytes()) as u64 > most)
    }

    /// Whether any put waits for room in this place.
    #[must_use]
    pub fn has_line(&self, place: &Place) -> bool {
        self.putters.iter().any(|putter| putter.place == *place)
    }

    /// Whether a queue has no room, however small the task is.
    #[must_use]
    pub fn is_full(&self, queue: &[u8]) -> bool {
        self.homes.get(&Place::Queue(queue.into())).is_some_and(|home| home.is_full_for(0))
    }

    /// A queue in which puts wait for room.
    #[must_use]
    pub fn queue_with_line(&self) -> Option<&Bytes> {
        self.putters.first().map(|putter| &putter.put.queue)
    }

    /// The tasks that go when one of this priority is put, the first of them first.
    pub(super) fn room_for(
        &self,
        place: &Place,
        priority: Option<i64>,
        share: &[u8],
        content: u64,
    ) -> Result<Vec<u64>, RefusalKind> {
        match self.homes.get(place) {
            Some(home) if home.share_is_full(share) => Err(RefusalKind::Full),
            Some(home) if home.is_bounded() && self.has_line(place) => Err(RefusalKind::Full),
            Some(home) => home.make_room(priority, content).ok_or(RefusalKind::Full),
            None => Ok(Vec::new()),
        }
    }

    /// Hands out all tasks and lets in what has waited for room, until neither is possible.
    pub(super) fn serve_all(&mut self) {
        self.serve();
        self.fill_vacancies();
    }

    /// Lets in what has waited for room, until there is none.
    pub(super) fn fill_vacancies(&mut self) {
        while let Some(at) = self.next_putter() {
            let putter = self.putters.remove(at);
            let put = putter.put.put();
            let answer = if self.never_fits(&putter.place, &put) {
                Err(RefusalKind::Full)
            } else {
                let same = |other: &Putter| other.place == putter.place;
                let (line, others) = std::mem::take(&mut self.putters).into_iter().partition(same);
                self.putters = others;
                let answer = self.put(putter.client, putter.request, &put);
                self.putters.extend::<Vec<Putter>>(line);
                answer
            };
            match answer {
                Ok(None) => {}
                Ok(Some(reply)) => self.reply(putter.client, putter.request, reply),
                Err(kind) => self.refuse(putter.client, putter.request, kind),
            }
            self.serve();
        }
    }

    /// The put that is next, of those that are first in line where there is room.
    fn next_putter(&self) -> Option<usize> {
        let is_first = |putter: &Putter| {
            let others = self.putters.iter().filter(|other| other.place == putter.place);
            others.map(|other| other.turn).min() == Some(putter.turn)
        };
        let can_go = |putter: &Putter| {
            let put = putter.put.put();
            let content = (put.payload.len() + put.terms.key_bytes()) as u64;
            let home = self.homes.get(&putter.place);
            let is_shut =
                home.is_some_and(|home| home.is_full_for(content) || home.paused.input.is_on());
            !is_shut || self.never_fits(&putter.place, &put)
        };
        let all = self.putters.iter().enumerate();
        let next = all.filter(|(_, putter)| is_first(putter) && can_go(putter));
        next.min_by_key(|(_, putter)| putter.turn).map(|(at, _)| at)
    }

    /// Refuses a put for which there was no room in time.
    pub(super) fn time_out_putter(&mut self, turn: u64) {
        let Some(at) = self.putters.iter().position(|putter| putter.turn == turn) else { return };
        let putter = self.putters.remove(at);
        let is_paused = self.paused(&putter.place).input.is_on();
        let kind = if is_paused { RefusalKind::Paused } else { RefusalKind::Full };
        self.refuse(putter.client, putter.request, kind);
    }
}
