//! The beanstalkd door: the protocol of beanstalkd 1.13 over the same queues, described in
//! `docs/beanstalkd.md`.
//!
//! A tube is a queue, and a job is a task that its number names. [`requests`] turns requests into
//! commands of the engine. `answers` and `documents` write the replies. [`Shared`] holds what all
//! connections of the door have in common: which tubes they use, and what was counted.

mod answers;
mod documents;
mod machine;
mod requests;
mod shared;
mod watched;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use pinpriq_proto::reply::Output;
use pinpriq_proto::time::Timestamp;
use pinpriq_proto::wire::beanstalkd::{Decoded, Fault, RequestDecoder, Verb};

use self::documents::Sight;
pub(crate) use self::shared::Shared;
use self::watched::Watched;
use super::{DoorKind, DoorOptions};
use crate::clients::about::{Dialect, Manners};
use crate::config::DoorName;
use crate::home::desk::Desk;
use crate::home::door::{Door, Next, refuse_tls};
use crate::session::kept::Share;
use crate::session::outbox::Encode;

/// The tube that a connection uses and watches at first. There always is one.
const DEFAULT: &[u8] = b"default";

/// The kind of this door.
pub(super) static KIND: DoorKind = DoorKind {
    name: DoorName::Beanstalkd,
    redirects: false,
    signs_in: false,
    moves: false,
    manners,
    open,
};

fn manners(_: &DoorOptions) -> Manners {
    Manners { tells_refusals: true, waits_for_room: false, groups_per_turn: 1, requeues: true }
}

fn open(options: &DoorOptions, _: Dialect) -> Box<dyn Door> {
    let shared = options.beanstalkd.clone();
    shared.join();
    let (used, watched) = (Box::from(DEFAULT), Watched::begin(&shared, &options.kept));
    Box::new(BeanstalkdDoor {
        decoder: RequestDecoder::new(shared.job_bytes_max()),
        shared,
        used,
        watched,
        is_producer: false,
        is_put_counted: false,
        is_worker: Cell::new(false),
        has_left: false,
        asked: 0,
        sights: RefCell::default(),
        sights_bytes: Cell::default(),
        sights_kept: options.kept.share(),
    })
}

/// One connection's side of the protocol.
struct BeanstalkdDoor {
    decoder: RequestDecoder,
    shared: Arc<Shared>,
    /// The tube that its jobs go to.
    used: Box<[u8]>,
    /// The tubes that its jobs come from.
    watched: Watched,
    /// Whether it has put a job.
    is_producer: bool,
    /// Whether the put that is arriving was counted.
    is_put_counted: bool,
    /// Whether it has reserved one, or tried to.
    is_worker: Cell<bool>,
    /// Whether it has quit.
    has_left: bool,
    /// The number of its requests that were begun.
    asked: u64,
    /// What was seen when documents were asked for, by the numbers of the requests.
    sights: RefCell<VecDeque<(u64, Sight)>>,
    /// How many bytes these occupy, which count among all that connections keep.
    sights_bytes: Cell<usize>,
    sights_kept: Share,
}

impl BeanstalkdDoor {
    /// Returns what was seen when the document of this request was asked for.
    fn sight(&self, asked: u64) -> Option<Sight> {
        loop {
            let (number, sight) =
                self.sights.borrow_mut().pop_front_if(|(number, _)| *number <= asked)?;
            self.count_sights(self.sights_bytes.get().saturating_sub(sight.bytes()));
            // The replies to others before it have failed.
            if number == asked {
                return Some(sight);
            }
        }
    }

    /// Keeps what was seen when the document of the last request was asked for.
    fn see(&self, sight: Sight) {
        self.count_sights(self.sights_bytes.get() + sight.bytes());
        self.sights.borrow_mut().push_back((self.asked, sight));
    }

    /// Keeps what the rest of the next document is written from.
    fn see_again(&self, asked: u64, sight: Sight) {
        self.count_sights(self.sights_bytes.get() + sight.bytes());
        self.sights.borrow_mut().push_front((asked, sight));
    }

    fn count_sights(&self, bytes: usize) {
        self.sights_bytes.set(bytes);
        self.sights_kept.set(bytes);
    }

    /// Notes that the connection is one of those that put jobs.
    fn be_producer(&mut self) {
        if !std::mem::replace(&mut self.is_producer, true) {
            self.shared.note_producer();
        }
    }

    /// Notes that the connection is one of those that reserve jobs.
    fn be_worker(&self) {
        if !self.is_worker.replace(true) {
            self.shared.note_worker();
        }
    }

    /// Notes that a job was reserved by its number, which makes the connection one of those that
    /// reserve jobs. Documents that were asked for after that, and are not written, count it too.
    fn has_reserved(&self) {
        self.be_worker();
        for (_, sight) in &mut *self.sights.borrow_mut() {
            if let Sight::Server { tally, is_worker, .. } = sight
                && !std::mem::replace(is_worker, true)
            {
                tally.workers += 1;
            }
        }
    }

    /// Notes that a tube was paused. Documents that were asked for after that, and are not written,
    /// count it too.
    fn has_paused(&self, tube: &[u8], now: Timestamp) {
        self.shared.count_pause(tube, now);
        for (_, sight) in &mut *self.sights.borrow_mut() {
            if let Sight::Tube { name, known, .. } = sight
                && **name == *tube
            {
                match known {
                    Some(known) => known.pauses += 1,
                    None => *known = self.shared.tube(tube),
                }
            }
        }
    }

    /// Leaves, unless it has left already: nothing of it counts from now on.
    fn leave(&mut self) {
        if !std::mem::replace(&mut self.has_left, true) {
            self.watched.end(&self.shared);
            self.shared.leave(&self.used, self.is_producer, self.is_worker.get());
        }
    }

    /// Counts a request.
    fn count(&mut self, verb: Verb) {
        let is_counted = verb == Verb::Put && std::mem::take(&mut self.is_put_counted);
        if !is_counted {
            self.shared.count(verb);
        }
    }

    /// Counts a put whose line has arrived and whose body has not, as beanstalkd does.
    fn count_early(&mut self) {
        let lacks_body = self.decoder.lacks_body();
        let is_put = lacks_body || self.decoder.is_within_big_job();
        if !is_put {
            return;
        }
        if !self.is_put_counted {
            self.shared.count(Verb::Put);
            self.is_put_counted = true;
        }
        if lacks_body {
            self.be_producer();
        }
    }

    fn answer_fault(&mut self, fault: Fault, counts_as: Option<Verb>, desk: &Desk) {
        if let Some(verb) = counts_as {
            self.count(verb);
        }
        if fault == Fault::ExpectedCrlf {
            self.be_producer();
        }
        desk.say(fault.line().to_vec());
    }
}

impl Drop for BeanstalkdDoor {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Door for BeanstalkdDoor {
    fn receive(&mut self, input: &[u8], desk: &mut Desk) -> Result<usize, Next> {
        if self.decoder.is_between_requests() {
            refuse_tls(input)?;
        }
        match self.decoder.decode(input) {
            Decoded::Incomplete => {
                self.count_early();
                Err(Next::Incomplete)
            }
            Decoded::Skip { length } => {
                self.count_early();
                Ok(length)
            }
            Decoded::Request { request, length } => {
                self.carry_out(&request, desk)?;
                Ok(length)
            }
            Decoded::Fault { fault, counts_as, length } => {
                self.answer_fault(fault, counts_as, desk);
                Ok(length)
            }
        }
    }
}

impl Encode for BeanstalkdDoor {
    fn encode(
        &self,
        output: &Output,
        _: Dialect,
        progress: &mut usize,
        out: &mut Vec<u8>,
        room: usize,
        known: usize,
    ) -> bool {
        // There are no subscriptions on this wire.
        let Output::Reply { request, reply, .. } = output else { return true };
        self.write_answer((*request, reply), out, (progress, room, known))
    }
}
