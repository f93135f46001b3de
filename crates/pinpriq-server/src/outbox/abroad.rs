//! Answers of other shards: the places kept for them, and what came of them.
//!
//! A client is answered in the order of its requests, whoever answers. So a request that goes to
//! another shard leaves a place, and each shard fills the places that it owes one after the other.
//! A delivery has no place: it stands before the next reply of its shard, or behind all others.

use std::collections::VecDeque;

use super::{Answer, Outbox, Waiting};
use crate::mailbox::{Part, Piece};

/// What is to come from other shards.
pub(super) struct Abroad {
    /// What each shard owes and what came of it.
    shards: Vec<Debt>,
    /// Runs of bytes of other shards that are encoded and were not accepted.
    encoded: VecDeque<Run>,
}

/// Encoded bytes of one shard that stand side by side.
struct Run {
    from: usize,
    /// Where they begin and end, as the number of bytes that were ever encoded before.
    start: u64,
    end: u64,
}

/// See [`Abroad`].
#[derive(Clone, Default)]
struct Debt {
    /// The places of the answers that it owes, counted from the first answer ever.
    places: VecDeque<u64>,
    /// Where the delivery stands that has come in part.
    delivery: Option<u64>,
    /// How many bytes of it were accepted by the socket, and it was not told.
    accepted: usize,
}

/// Makes one answer of the parts of all shards, which come in any order.
pub(crate) type Join = Box<dyn FnOnce(Vec<Part>) -> Vec<u8>>;

/// An answer of which every shard gives a part.
pub(super) struct Gathered {
    parts: Vec<Part>,
    /// How many parts there will be.
    count: usize,
    join: Option<Join>,
}

impl Abroad {
    fn of(shards: usize) -> Self {
        Self { shards: vec![Debt::default(); shards], encoded: VecDeque::new() }
    }
}

impl Outbox {
    /// Keeps a place for the reply of another of so many shards.
    pub(crate) fn await_reply(&mut self, shards: usize, from: usize) {
        let place = self.keep_place_for(from);
        let abroad = self.abroad.get_or_insert_with(|| Box::new(Abroad::of(shards)));
        let places = &mut abroad.shards[from].places;
        if planted!(NewestPlaceFilled) { places.push_front(place) } else { places.push_back(place) }
    }

    /// Keeps a place for a reply to which some of so many shards contribute.
    pub(crate) fn await_parts(&mut self, shards: usize, from: &[usize], join: Join) {
        let parts = Vec::with_capacity(from.len());
        let gathered = Gathered { parts, count: from.len(), join: Some(join) };
        let place = self.keep_place(Answer::Gathered(gathered));
        let abroad = self.abroad.get_or_insert_with(|| Box::new(Abroad::of(shards)));
        for from in from {
            abroad.shards[*from].places.push_back(place);
        }
    }

    fn keep_place_for(&mut self, from: usize) -> u64 {
        self.keep_place(Answer::Abroad { from, bytes: Vec::new(), whole: false })
    }

    fn keep_place(&mut self, answer: Answer) -> u64 {
        let place = self.passed + self.waiting.len() as u64;
        self.push_answer(answer, 0);
        place
    }

    /// Whether no shard owes a reply.
    pub(crate) fn is_owed_nothing(&self) -> bool {
        let shards = self.abroad.as_ref().map_or(&[][..], |abroad| &abroad.shards);
        shards.iter().all(|shard| shard.places.is_empty())
    }

    /// Puts what has come from a shard where it belongs.
    pub(crate) fn arrive(&mut self, shards: usize, from: usize, pieces: Vec<Piece>, bytes: &[u8]) {
        let mut abroad = self.abroad.take().unwrap_or_else(|| Box::new(Abroad::of(shards)));
        let mut rest = bytes;
        for piece in pieces {
            let debt = &mut abroad.shards[from];
            match piece {
                Piece::Reply { length, last } => {
                    let Some(place) = debt.places.front().copied() else {
                        unreachable!("shard {from} has answered what nobody asked")
                    };
                    if last {
                        debt.places.pop_front();
                    }
                    let (piece, others) = rest.split_at(length);
                    rest = others;
                    self.add_bytes(place, piece, last);
                }
                Piece::Delivery { length, last } => {
                    let place = debt.delivery;
                    let place = place.unwrap_or_else(|| self.place_delivery(&mut abroad, from));
                    let debt = &mut abroad.shards[from];
                    debt.delivery = (!last).then_some(place);
                    let (piece, others) = rest.split_at(length);
                    rest = others;
                    self.add_bytes(place, piece, last);
                }
                Piece::Part(part) => {
                    let Some(place) = debt.places.pop_front() else {
                        unreachable!("shard {from} has given its part of nothing")
                    };
                    self.add_part(place, part);
                }
            }
        }
        self.abroad = Some(abroad);
    }

    /// Makes a place for a delivery, before the next reply of its shard or behind all others.
    fn place_delivery(&mut self, abroad: &mut Abroad, from: usize) -> u64 {
        let next = abroad.shards[from].places.front().copied();
        let Some(place) = next.filter(|_| !planted!(DeliveryBehindAll)) else {
            return self.keep_place_for(from);
        };
        let index = usize::try_from(place - self.passed).unwrap_or(usize::MAX);
        let answer = Answer::Abroad { from, bytes: Vec::new(), whole: false };
        self.waiting.insert(index, Waiting::for_its_turn(answer, 0));
        for debt in &mut abroad.shards {
            for moved in debt.places.iter_mut().chain(&mut debt.delivery) {
                *moved += u64::from(*moved >= place);
            }
        }
        place
    }

    /// The waiting answer that has this place.
    fn at(&mut self, place: u64) -> &mut Waiting {
        let passed = self.passed;
        let index = place.checked_sub(passed).and_then(|index| usize::try_from(index).ok());
        let Some(waiting) = index.and_then(|index| self.waiting.get_mut(index)) else {
            unreachable!("place {place} was given up, of {passed} that have passed")
        };
        waiting
    }

    fn add_bytes(&mut self, place: u64, piece: &[u8], last: bool) {
        let waiting = self.at(place);
        let Answer::Abroad { bytes, whole, .. } = &mut waiting.answer else {
            unreachable!("place {place} is not kept for another shard")
        };
        bytes.extend_from_slice(piece);
        *whole = last;
        waiting.bytes += piece.len();
        self.waiting_bytes += piece.len();
    }

    fn add_part(&mut self, place: u64, part: Part) {
        let waiting = self.at(place);
        let Answer::Gathered(Gathered { parts, count, join }) = &mut waiting.answer else {
            // Another shard gives no part any more.
            return;
        };
        parts.push(part);
        if parts.len() == *count
            && let Some(join) = join.take()
        {
            let bytes = join(std::mem::take(parts));
            waiting.bytes = bytes.len();
            self.waiting_bytes += bytes.len();
            self.at(place).answer = Answer::Bytes(bytes);
        }
    }

    /// Notes that nothing more will come from a shard.
    pub(crate) fn lose(&mut self, from: usize) {
        let Some(abroad) = &mut self.abroad else { return };
        let debt = &mut abroad.shards[from];
        let places: Vec<u64> = debt.places.drain(..).chain(debt.delivery.take()).collect();
        for place in places {
            self.at(place).answer = Answer::Lost;
        }
    }

    /// Whether everything was sent that ever will be, since an answer was lost.
    pub(crate) fn is_at_loss(&self) -> bool {
        let first = self.waiting.front().map(|waiting| &waiting.answer);
        matches!(first, Some(Answer::Lost)) && self.encoded_bytes() == 0
    }

    /// Encodes what has come of the first answer, which is of another shard, as far as there is
    /// room. Returns whether that is all of it.
    #[inline(never)]
    pub(super) fn encode_abroad(&mut self, room: usize) -> bool {
        let (Some(first), Some(abroad)) = (self.waiting.front_mut(), &mut self.abroad) else {
            return true;
        };
        let Answer::Abroad { from, bytes, whole } = &mut first.answer else { return true };
        let count = bytes.len().min(room);
        self.bytes.extend(bytes.drain(..count));
        first.bytes -= count;
        self.waiting_bytes -= count;
        let (start, end) = (self.encoded, self.encoded + count as u64);
        match abroad.encoded.back_mut() {
            Some(run) if run.from == *from && run.end == start => run.end = end,
            _ => abroad.encoded.push_back(Run { from: *from, start, end }),
        }
        *whole && bytes.is_empty()
    }

    /// Whether the first answer is of another shard, and nothing of it is there.
    pub(super) fn awaits_more(&self) -> bool {
        let first = self.waiting.front().map(|waiting| &waiting.answer);
        matches!(first, Some(Answer::Abroad { bytes, .. }) if bytes.is_empty())
    }

    /// Notes that the socket has accepted the encoded bytes up to this one.
    pub(super) fn note_accepted_abroad(&mut self, sent: u64) {
        let Some(abroad) = &mut self.abroad else { return };
        while let Some(run) = abroad.encoded.front_mut()
            && run.start < sent
        {
            let to = run.end.min(sent);
            let accepted = to - std::mem::replace(&mut run.start, to);
            abroad.shards[run.from].accepted += usize::try_from(accepted).unwrap_or(usize::MAX);
            if run.start < run.end {
                return;
            }
            abroad.encoded.pop_front();
        }
    }

    /// Takes out how many bytes of a shard were accepted, if they are at least so many.
    pub(crate) fn take_accepted(&mut self, from: usize, least: usize) -> usize {
        let Some(abroad) = &mut self.abroad else { return 0 };
        let accepted = &mut abroad.shards[from].accepted;
        if *accepted >= least { std::mem::take(accepted) } else { 0 }
    }
}
