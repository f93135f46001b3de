//! The pinpriq door: the founding protocol, as `docs/protocol/pinpriq.md` has it.
//!
//! Every pop asks for the newest of the most urgent with its group; every delivery is a pop. A
//! push has no reply, so one that must be refused ends the connection.

use std::rc::Rc;

use pinpriq_engine::Applied;
use pinpriq_engine::command::{Command, Put, Selection, Take, TakeMode, TimeToLive, Wait};
use pinpriq_engine::limits::put_bytes;
use pinpriq_engine::reply::{Output, Reply};
use pinpriq_engine::task::{ClientId, RequestId, TaskRecord};
use pinpriq_engine::time::Span;
use pinpriq_store::shards::shard_of;
use pinpriq_wire::{Decoded, Request, decode_request, put_count, put_packet};

use crate::config::{Framing, Limits, PinpriqOptions, TtlZero};
use crate::connection::{Door, Next, Received};
use crate::credits::Credits;
use crate::host::is_guest;
use crate::outbox::{Dialect, Encode};
use crate::shard::{Session, Shard};

/// How many pops are carried out before what they answered is looked at. Until then nobody knows
/// how large it is.
const POPS_PER_ROUND: usize = 32;

/// One connection's side of the protocol.
pub(crate) struct PinpriqDoor {
    shard: Rc<Shard>,
    session: Rc<Session>,
    client: ClientId,
    options: PinpriqOptions,
    limits: Limits,
    credits: Credits,
    /// Whether queues may live in other shards.
    routes: bool,
    /// Whether the connection stays in this shard.
    is_placed: bool,
}

impl PinpriqDoor {
    /// What it is called.
    pub(crate) const NAME: &str = "pinpriq";

    pub(crate) fn new(
        shard: Rc<Shard>,
        session: Rc<Session>,
        client: ClientId,
        options: PinpriqOptions,
        limits: Limits,
    ) -> Self {
        let credits = Credits::new(limits.in_flight_max, &session);
        let routes = shard.shards() > 1 && !is_guest(client);
        let is_placed = session.was_moved();
        Self { shard, session, client, options, limits, credits, routes, is_placed }
    }

    /// Adds credits that were granted before it was known which shard they are for.
    pub(crate) fn bank(&mut self, credits: u32) {
        self.credits.add(credits);
        self.grant();
    }

    /// Has another shard carry out a request that came like this, if that is where its queue
    /// lives. Returns whether it does.
    fn route(&mut self, request: &Request<'_>, raw: &[u8]) -> Result<bool, Next> {
        let own = self.shard.own();
        let at = |queue: &[u8]| shard_of(queue, self.shard.shards());
        if !self.is_placed
            && let Some(queue) = queue_of(request)
        {
            // Most connections are about one queue, which is where they are served best.
            self.is_placed = true;
            let to = at(queue);
            if to != own && self.credits.is_unused() {
                return Err(Next::Move(to));
            }
        }
        let to = match *request {
            Request::Push { queue, .. }
            | Request::Pop { queue }
            | Request::Unsubscribe { queue } => at(queue),
            Request::Subscribe { queue } => {
                let to = at(queue);
                let who = (self.client, &*self.session);
                if !self.shard.settle_deliveries(who, to, &mut self.credits) {
                    let queue = queue.escape_ascii();
                    return Err(Next::Close(format!(
                        "a subscription to {queue} would be in another shard than those before"
                    )));
                }
                to
            }
            Request::Ready => self.session.links.borrow().deliveries().unwrap_or(own),
        };
        if to != own {
            let replies = matches!(request, Request::Pop { .. });
            self.shard.forward((self.client, &self.session), to, raw, (replies, false));
        }
        Ok(to != own)
    }

    /// Carries out one request, which came like this. What cannot go on is told as the end of the
    /// round.
    fn carry_out(&mut self, request: Request<'_>, raw: &[u8]) -> Result<(), Next> {
        if self.routes && self.route(&request, raw)? {
            return Ok(());
        }
        let applied = match request {
            Request::Push { queue, ttl_ms, priority, key, payload } => {
                let bytes = key.len() + payload.len();
                // What is larger than all the room there is would wait for ever: it is refused.
                let fits = put_bytes(queue.len(), bytes) <= self.limits.task_bytes_max;
                if fits && self.shard.must_wait(self.client, Some((queue, bytes))) {
                    return Err(Next::Wait);
                }
                let ttl = match (ttl_ms, self.options.ttl_zero) {
                    (0, TtlZero::Immediate) => TimeToLive::Instant,
                    (0, TtlZero::Forever) => TimeToLive::Endless,
                    (ms, _) => TimeToLive::For(Span::from_ms(u64::from(ms))),
                };
                let priority = (priority != 0).then_some(i64::from(priority));
                let put = Put { key: Some(key), priority, ttl, ..Put::new(queue, payload) };
                self.apply(Command::Put(put))
            }
            Request::Pop { queue } => self.apply(Command::Take(Take {
                queues: &[queue],
                member: None,
                count: 1,
                wait: Wait::No,
                selection: Selection::PINPRIQ,
                mode: TakeMode::Pop,
            })),
            Request::Subscribe { queue } => self.apply(Command::Subscribe {
                queues: &[queue],
                member: None,
                selection: Selection::PINPRIQ,
                mode: TakeMode::Pop,
            }),
            Request::Unsubscribe { queue } => {
                self.apply(Command::Unsubscribe { queues: &[queue], member: None })
            }
            Request::Ready => {
                self.credits.add(1);
                self.grant();
                return Ok(());
            }
        };
        match applied {
            Applied::Answered | Applied::Waits => Ok(()),
            // Nothing on this wire can say no, so the connection ends instead.
            Applied::Refused(kind) => {
                Err(Next::Close(format!("a request was refused: {}", kind.word())))
            }
        }
    }

    /// Tells the engine of as many credits as there may be deliveries under way, and answers
    /// whether there were any.
    fn grant(&mut self) -> bool {
        let has_settled = !self.routes || self.session.links.borrow().deliveries().is_some();
        if !has_settled || self.session.outbox.borrow().is_full(&self.limits) {
            return false;
        }
        let credits = self.credits.draw(&self.session);
        if credits > 0 {
            self.apply(Command::Credit(credits));
        }
        credits > 0
    }

    fn apply(&self, command: Command<'_>) -> Applied {
        self.shard.apply(self.client, RequestId(0), &command)
    }
}

impl Door for PinpriqDoor {
    fn receive(&mut self, input: &[u8]) -> Received {
        let mut consumed = 0;
        let mut pops = 0;
        let mut under_way = self.session.outbox.borrow().len();
        loop {
            let (request, length) = match decode_request(&input[consumed..]) {
                Ok(Decoded::Message { request, length }) => (request, length),
                Ok(Decoded::Incomplete { .. }) => return Received { consumed, next: Next::Read },
                Err(malformed) => {
                    let seen = if planted!(BytesInTheLog) { &input[consumed..] } else { &[] };
                    let reason = format!("{malformed}{}", seen.escape_ascii());
                    return Received { consumed, next: Next::Close(reason) };
                }
            };
            let is_full = self.routes && self.session.links.borrow().is_full();
            if under_way >= self.limits.in_flight_max || pops >= POPS_PER_ROUND || is_full {
                return Received { consumed, next: Next::Wait };
            }
            pops += usize::from(matches!(request, Request::Pop { .. }));
            let raw = &input[consumed..consumed + length];
            if let Err(next) = self.carry_out(request, raw) {
                return Received { consumed, next };
            }
            under_way += 1;
            consumed += length;
        }
    }

    fn refill(&mut self) -> bool {
        let granted = self.grant();
        if granted {
            self.shard.turn();
        }
        granted
    }

    fn credit_lapses(&mut self) {
        self.credits = Credits::new(self.limits.in_flight_max, &self.session);
        self.shard.retire(self.client);
    }

    fn stopping(&mut self) {}

    fn requeues(&self) -> bool {
        self.options.requeue
    }

    fn can_tell_failure(&self) -> bool {
        false
    }
}

impl Encode for PinpriqDoor {
    fn encode(
        &self,
        output: &Output,
        _: Dialect,
        progress: &mut usize,
        out: &mut Vec<u8>,
        room: usize,
        known: usize,
    ) -> bool {
        match output {
            Output::Reply { reply: Reply::Tasks { tasks, .. }, .. } => {
                encode_frame(tasks, true, progress, out, room, known)
            }
            Output::Delivery { tasks, .. } => {
                let counted = self.options.framing == Framing::Counted;
                encode_frame(tasks, counted, progress, out, room, known)
            }
            // No other request has a reply on this wire.
            Output::Reply { .. } => true,
        }
    }
}

/// The queue that a request names.
const fn queue_of<'a>(request: &Request<'a>) -> Option<&'a [u8]> {
    match *request {
        Request::Push { queue, .. }
        | Request::Pop { queue }
        | Request::Subscribe { queue }
        | Request::Unsubscribe { queue } => Some(queue),
        Request::Ready => None,
    }
}

/// Appends the next packets of a frame; `progress` counts those that are there already. A frame
/// holds at most 65,535 packets, since the engine never answers with more tasks.
fn encode_frame(
    tasks: &[TaskRecord],
    counted: bool,
    progress: &mut usize,
    out: &mut Vec<u8>,
    room: usize,
    known: usize,
) -> bool {
    let start = out.len();
    let known = known.min(tasks.len());
    if *progress == 0 && counted && (known > 0 || tasks.is_empty()) {
        let Ok(count) = u16::try_from(tasks.len()) else {
            unreachable!("{} tasks in one answer", tasks.len())
        };
        put_count(out, count);
    }
    for task in &tasks[*progress..known] {
        if *progress > 0 && out.len() - start >= room {
            return false;
        }
        let key = task.key.as_deref().unwrap_or_default();
        match put_packet(out, key, &task.payload) {
            Ok(()) => *progress += 1,
            Err(too_long) => unreachable!("a task was chosen that does not fit: {too_long}"),
        }
    }
    *progress == tasks.len()
}
