//! The RESP door: the whole command set, for every Redis client.
//!
//! [`table`] says what commands look like, [`words`] takes requests apart, `tasks`, `push`,
//! `queues` and `connection` make commands of the engine of them, and [`encode`] writes the
//! answers. Requests of one connection are carried out and answered in order; behind one that
//! blocks they wait.

mod call;
mod connection;
mod describe;
mod encode;
mod fanout;
mod fault;
mod gather;
mod letters;
mod options;
mod push;
mod queues;
mod route;
mod spec;
mod table;
mod tasks;
mod words;

use std::rc::Rc;

use pinpriq_engine::Applied;
use pinpriq_engine::command::{Command, QueueCommand};
use pinpriq_engine::fanout::MemberCommand;
use pinpriq_engine::limits::NAME_BYTES_MAX;
use pinpriq_engine::reply::Output;
use pinpriq_engine::task::ClientId;
use pinpriq_wire::resp::{Decoded, Malformed, Protocol, RequestDecoder, RequestLimits, Writer};

pub use self::describe::command_tables;

use self::call::{Call, Shape};
use self::fault::Fault;
use self::table::{Found, find};
use self::words::{Parts, shown};
use crate::config::Limits;
use crate::connection::{Door, Next, Received};
use crate::credits::Credits;
use crate::host::is_guest;
use crate::mailbox::{Errand, Part};
use crate::outbox::{Dialect, Encode};
use crate::shard::{Session, Shard};

/// How many words of a request are kept without an allocation.
const WORDS_FEW: usize = 16;

/// The dialect that is not the one that connections begin with.
const RESP3: Dialect = Dialect(1);

/// One connection's side of the protocol.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct RespDoor {
    shard: Rc<Shard>,
    session: Rc<Session>,
    client: ClientId,
    limits: Limits,
    /// Boxed, since it is taken out while requests are carried out.
    decoder: Option<Box<RequestDecoder>>,
    pub(crate) protocol: Protocol,
    credits: Credits,
    /// Whether the connection has any subscription.
    subscribed: bool,
    quitting: bool,
    /// Whether queues may live in other shards.
    routes: bool,
    /// Whether the connection stays in this shard.
    is_placed: bool,
    /// The shard that is to have the connection, with the request that was not carried out.
    moves_to: Option<usize>,
    /// Whether what is asked next is answered with this shard's part only.
    in_parts: bool,
}

impl RespDoor {
    /// What it is called.
    pub(crate) const NAME: &str = "resp";

    pub(crate) fn new(
        shard: Rc<Shard>,
        session: Rc<Session>,
        client: ClientId,
        limits: Limits,
    ) -> Self {
        let decoder = RequestDecoder::new(request_limits(&limits));
        let credits = Credits::new(limits.in_flight_max, &session);
        let routes = shard.shards() > 1 && !is_guest(client);
        let resp3 = session.dialect.get() == RESP3;
        let is_placed = session.was_moved();
        Self {
            shard,
            session,
            client,
            limits,
            decoder: Some(Box::new(decoder)),
            protocol: if resp3 { Protocol::Resp3 } else { Protocol::Resp2 },
            credits,
            subscribed: false,
            quitting: false,
            routes,
            is_placed,
            moves_to: None,
            in_parts: false,
        }
    }

    /// Has the engine carry out a command, and answer it in this shape.
    #[inline]
    fn ask(&mut self, shape: Shape, command: Command<'_>) {
        let may_be_long = may_be_long(&command);
        let shape = if self.in_parts && shape != Shape::Silent { Shape::Part } else { shape };
        let request = shape.request();
        if self.shard.apply(self.client, request, &command) == Applied::Waits {
            self.shard.block(&self.session, request);
        } else if may_be_long {
            // So that it counts before the next request is carried out.
            self.shard.turn();
        }
    }

    /// Has the answers from here on written in this version, by other shards as well.
    fn switch_protocol(&mut self, protocol: Protocol) {
        self.adopt(protocol);
        let dialect = self.session.dialect.get();
        self.shard.tell_links(self.client, &self.session, || Errand::Speak(dialect));
    }

    fn adopt(&mut self, protocol: Protocol) {
        // What was answered up to now is still written in the former one.
        self.shard.turn();
        self.protocol = protocol;
        let dialect = if protocol == Protocol::Resp3 { RESP3 } else { Dialect::default() };
        self.session.dialect.set(dialect);
    }

    /// Answers without the engine, in the order of the requests.
    fn answer(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        let mut bytes = Vec::new();
        write(&mut Writer::new(&mut bytes, self.protocol));
        if self.in_parts {
            return self.shard.say_part(&self.session, Part::Bytes(bytes));
        }
        self.shard.say(&self.session, bytes);
    }

    /// The same, once all shards that the connection has to do with have done what they were told
    /// last.
    fn answer_once_done(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        let mut bytes = Vec::new();
        write(&mut Writer::new(&mut bytes, self.protocol));
        self.shard.say_once_done(&self.session, bytes);
    }

    fn refuse(&mut self, fault: &Fault) {
        self.answer(|writer| writer.error(fault.word, &fault.sentence));
    }

    fn session(&self) -> &Session {
        &self.session
    }

    fn shard(&self) -> &Shard {
        &self.shard
    }

    const fn client(&self) -> ClientId {
        self.client
    }

    const fn quit(&mut self) {
        self.quitting = true;
    }

    /// Looks whether the connection has subscriptions, after it has asked to change them.
    fn note_subscriptions(&mut self) {
        let count = self.shard.inspect(|durable| durable.engine().subscriptions(self.client));
        self.subscribed = count > 0;
    }

    /// Adds credit. The answer tells all of it that was not spent, and comes before the deliveries
    /// that this sets off.
    fn add_credit(&mut self, credits: u32) {
        self.credits.add(credits);
        // What was delivered up to now counts as spent.
        self.shard.turn();
        let outstanding = i64::from(self.credits.outstanding(&self.session));
        self.answer(|writer| writer.integer(outstanding));
        self.grant();
    }

    /// Tells the engine of as many credits as there may be deliveries under way. As long as it is
    /// open which shard they are for, that is none.
    fn grant(&mut self) -> bool {
        if self.routes && self.session.links.borrow().deliveries().is_none() {
            return false;
        }
        let credits = self.credits.draw(&self.session);
        if credits > 0 {
            self.ask(Shape::Silent, Command::Credit(credits));
        }
        credits > 0
    }

    /// Ends everything that belongs to the connection but the connection.
    pub(crate) fn reset(&mut self) {
        self.shard.reset_links(self.client, &self.session);
        self.shard.retire(self.client);
        self.credits = Credits::new(self.limits.in_flight_max, &self.session);
        self.subscribed = false;
        self.adopt(Protocol::Resp2);
        self.session.about.borrow_mut().name.clear();
    }

    /// Carries out one request, which came like this.
    fn carry_out(&mut self, given: &[&[u8]], raw: &[u8]) {
        if let Err(fault) = self.try_to_carry_out(given, raw) {
            self.refuse(&fault);
        }
    }

    fn try_to_carry_out(&mut self, given: &[&[u8]], raw: &[u8]) -> Result<(), Fault> {
        let (spec, taken) = match find(given) {
            Found::Spec(spec, taken) => (spec, taken),
            Found::NoSub => return Err(Fault::arity(&String::from_utf8_lossy(given[0]))),
            Found::UnknownSub => {
                let sub = shown(given.get(1).copied().unwrap_or_default());
                let name = String::from_utf8_lossy(given[0]).to_ascii_uppercase();
                return Err(Fault::err(format!("unknown subcommand {sub} of {name}")));
            }
            Found::Unknown => return Err(unknown_command(given)),
        };
        let is_open = self.protocol == Protocol::Resp3 || spec.while_subscribed;
        if !is_open && self.subscribed {
            // Subscriptions to a lane end with it, unasked.
            self.note_subscriptions();
        }
        if !is_open && (self.subscribed || self.is_subscribed_abroad()) {
            let name = spec.full_name().to_ascii_lowercase();
            return Err(Fault::err(format!(
                "Can't execute '{name}': a subscribed connection that speaks RESP2 can only \
                 subscribe, unsubscribe, grant credit, finish its tasks, PING, RESET and QUIT"
            )));
        }
        let mut parts = Parts::of(spec);
        parts.sort(&given[taken..])?;
        if self.routes && self.route(spec, &parts, raw)? {
            return Ok(());
        }
        (spec.run)(&mut Call { door: self, parts: &parts })
    }

    /// What has to happen before the next request, if anything, apart from the number of requests
    /// that are under way. Nothing of this changes without a turn.
    fn obstacle(&self) -> Option<Next> {
        if self.session.is_blocked() {
            return Some(Next::Block);
        }
        let waits = self.session.outbox.borrow().is_full(&self.limits)
            || self.shard.must_wait(self.client, None);
        waits.then_some(Next::Wait)
    }

    fn receive_with(&mut self, decoder: &mut RequestDecoder, input: &[u8]) -> Received {
        let mut room: [&[u8]; WORDS_FEW] = [&[]; WORDS_FEW];
        let mut consumed = 0;
        let mut under_way = self.session.outbox.borrow().len();
        let mut last_looked = None;
        loop {
            if self.quitting {
                return Received { consumed, next: Next::Close("QUIT".to_owned()) };
            }
            let turns = self.shard.turns();
            if last_looked != Some(turns) {
                last_looked = Some(turns);
                if let Some(next) = self.obstacle() {
                    return Received { consumed, next };
                }
            }
            if under_way >= self.limits.in_flight_max {
                return Received { consumed, next: Next::Wait };
            }
            if self.routes
                && let Some(next) = self.obstacle_abroad()
            {
                return Received { consumed, next };
            }
            let rest = &input[consumed..];
            if let Some((words, length)) = decoder.plain_request(rest, &mut room) {
                self.carry_out(words, &rest[..length]);
                if let Some(to) = self.moves_to {
                    return Received { consumed, next: Next::Move(to) };
                }
                consumed += length;
                under_way += 1;
                continue;
            }
            match decoder.decode(rest) {
                Ok(Decoded::Incomplete) => return Received { consumed, next: Next::Read },
                Ok(Decoded::Skip { length } | Decoded::Empty { length }) => consumed += length,
                Ok(Decoded::Request { length }) => {
                    let words: Vec<&[u8]> = decoder.arguments(rest).iter().collect();
                    self.carry_out(&words, &rest[..length]);
                    if let Some(to) = self.moves_to {
                        return Received { consumed, next: Next::Move(to) };
                    }
                    consumed += length;
                    under_way += 1;
                }
                Ok(Decoded::TooLarge { length, bytes, .. }) => {
                    consumed += length;
                    self.refuse(&self.too_large(bytes));
                }
                Err(malformed) => return Received { consumed, next: self.malformed(malformed) },
            }
        }
    }

    /// The refusal of a request of which an argument has so many bytes, which is too much by itself
    /// or together with the others.
    fn too_large(&self, bytes: usize) -> Fault {
        let limits = request_limits(&self.limits);
        let most = limits.bulk_bytes_max;
        let sentence = if bytes > most {
            format!("an argument has at most {most} bytes here, and this one has {bytes}")
        } else {
            let most = limits.request_bytes_max;
            format!("a request has at most {most} bytes here, and this one has more")
        };
        Fault { word: "TOOLARGE", sentence }
    }

    fn malformed(&mut self, malformed: Malformed) -> Next {
        if malformed.is_answered() {
            self.refuse(&Fault::err(format!("Protocol error: {malformed}")));
        }
        Next::Close(format!("protocol error: {malformed}"))
    }
}

impl Door for RespDoor {
    fn receive(&mut self, input: &[u8]) -> Received {
        let Some(mut decoder) = self.decoder.take() else {
            unreachable!("the decoder is always put back")
        };
        let received = self.receive_with(&mut decoder, input);
        self.decoder = Some(decoder);
        received
    }

    fn refill(&mut self) -> bool {
        if !self.credits.has_banked()
            || self.session.outbox.borrow().is_full(&self.limits)
            || !self.grant()
        {
            return false;
        }
        self.shard.turn();
        true
    }

    fn credit_lapses(&mut self) {
        // Nothing here waits for more than the disk, and leases stay until the last request.
    }

    fn stopping(&mut self) {
        if self.session.unblock().is_some() {
            self.refuse(&Fault { word: "CLOSING", sentence: "the server is stopping".to_owned() });
        }
    }

    fn requeues(&self) -> bool {
        true
    }

    fn can_tell_failure(&self) -> bool {
        true
    }
}

impl Encode for RespDoor {
    fn encode(
        &self,
        output: &Output,
        dialect: Dialect,
        progress: &mut usize,
        out: &mut Vec<u8>,
        room: usize,
        known: usize,
    ) -> bool {
        let most = out.len() + room;
        let protocol = if dialect == RESP3 { Protocol::Resp3 } else { Protocol::Resp2 };
        encode::output(output, &mut Writer::new(out, protocol), progress, most, known)
    }

    fn is_part(&self, output: &Output) -> bool {
        matches!(output, Output::Reply { request, .. } if Shape::of(*request) == Shape::Part)
    }
}

/// What a request may not exceed. Names, keys and words may be as long as ever, however short a
/// payload must be; the engine tells them apart.
fn request_limits(limits: &Limits) -> RequestLimits {
    RequestLimits::for_bulks(limits.payload_bytes_max.max(NAME_BYTES_MAX))
}

/// Whether the reply may have many parts, or many bytes for few of the request.
fn may_be_long(command: &Command<'_>) -> bool {
    match command {
        Command::Take(take) => take.count > 1 || take.selection.group,
        Command::Peek(peek) => peek.count > 1,
        Command::AckAll { .. }
        | Command::Queue(QueueCommand::List { .. })
        | Command::Member(MemberCommand::List(_)) => true,
        _ => false,
    }
}

fn unknown_command(given: &[&[u8]]) -> Fault {
    let name = shown(given.first().copied().unwrap_or_default());
    let arguments: Vec<String> = given.iter().skip(1).take(8).map(|word| shown(word)).collect();
    let arguments = arguments.join(" ");
    Fault::err(format!("unknown command {name}, with args beginning with: {arguments}"))
}
