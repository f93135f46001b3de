//! The RESP door: the whole command set, for every Redis client.
//!
//! `pinpriq_proto::request` describes the commands and takes requests apart. [`runs`] says how each
//! is carried out: most become a command of the engine as their declaration says, and `tasks` and
//! `connection` have functions for the others. [`transaction`] keeps the requests between MULTI and
//! EXEC. [`settings`] writes the settings of queues, and [`encode`] the
//! replies.

pub(crate) mod call;
mod carrying;
mod cluster;
mod collected;
mod connection;
mod describe;
mod encode;
pub(crate) mod guard;
mod keys;
mod looking;
mod reads;
mod records;
pub(crate) mod runs;
mod tasks;
pub(crate) mod transaction;
mod users;
mod values;

use std::sync::Arc;

use pinpriq_proto::limits::NAME_BYTES_MAX;
use pinpriq_proto::reply::{Output, RefusalKind};
use pinpriq_proto::wire::resp::{
    Decoded, Malformed, Protocol, RequestDecoder, RequestLimits, Writer,
};

pub use self::carrying::check_record;

use self::call::{Call, Talk, has_cancels, has_meta, protocol_of};
use self::runs::run;
use super::{DoorKind, DoorOptions};
use crate::clients::about::{Dialect, Manners};
use crate::clients::contacts::Contacts;
use crate::clients::ending::Ending;
use crate::config::{DoorName, Limits};
use crate::home::desk::Desk;
use crate::home::door::{Door, Next, refuse_tls};
use crate::session::outbox::Encode;
use pinpriq_proto::request::fault::{Fault, shown};
use pinpriq_proto::request::parts::Parts;
use pinpriq_proto::request::spec::Spec;
use pinpriq_proto::request::table::{Found, find};

/// The number of words of most requests.
const WORDS_FEW: usize = 8;

/// The number of words of a request that are kept without an allocation.
const WORDS_SOME: usize = 16;

/// The kind of this door.
pub(super) static KIND: DoorKind =
    DoorKind { name: DoorName::Resp, redirects: false, signs_in: true, moves: true, manners, open };

/// The same door for cluster clients.
pub(super) static KIND_FOR_CLUSTER_CLIENTS: DoorKind = DoorKind {
    name: DoorName::RespCluster,
    redirects: true,
    signs_in: true,
    moves: true,
    manners,
    open,
};

fn manners(_: &DoorOptions) -> Manners {
    Manners { tells_refusals: true, waits_for_room: false, groups_per_turn: 1, requeues: true }
}

fn open(options: &DoorOptions, dialect: Dialect) -> Box<dyn Door> {
    let decoder = RequestDecoder::new(request_limits(&options.limits));
    let contacts = options.contacts.clone();
    Box::new(RespDoor { decoder, talk: Talk::new(dialect), contacts })
}

/// One connection's side of the protocol.
struct RespDoor {
    decoder: RequestDecoder,
    talk: Talk,
    contacts: Arc<Contacts>,
}

impl Door for RespDoor {
    fn receive(&mut self, input: &[u8], desk: &mut Desk) -> Result<usize, Next> {
        let mut room: [&[u8]; WORDS_FEW] = [&[]; WORDS_FEW];
        if let Some((words, length)) = self.decoder.plain_request(input, &mut room) {
            return carry_out(&mut self.talk, words, length, desk);
        }
        self.receive_unusual(input, desk)
    }
}

impl RespDoor {
    /// Decodes a request that is not a complete array of few words.
    #[inline(never)]
    fn receive_unusual(&mut self, input: &[u8], desk: &mut Desk) -> Result<usize, Next> {
        let mut room: [&[u8]; WORDS_SOME] = [&[]; WORDS_SOME];
        if let Some((words, length)) = self.decoder.plain_request(input, &mut room) {
            return carry_out(&mut self.talk, words, length, desk);
        }
        if !self.decoder.is_within_array() {
            refuse_tls(input)?;
        }
        match self.decoder.decode(input) {
            Ok(Decoded::Incomplete) => Err(Next::Incomplete),
            Ok(Decoded::Skip { length } | Decoded::Empty { length }) => Ok(length),
            Ok(Decoded::Request { length }) => {
                let words: Vec<&[u8]> = self.decoder.arguments(input).iter().collect();
                carry_out(&mut self.talk, &words, length, desk)
            }
            Ok(Decoded::TooLarge { length, bytes, .. }) => {
                transaction::spoil(&mut self.talk);
                let fault = too_large(desk.limits(), bytes);
                self.talk.refuse(desk, &guard::not_before_sign_in(desk, fault));
                Ok(length)
            }
            Err(malformed) => Err(malformed_request(&self.talk, malformed, desk)),
        }
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
        let writer = &mut Writer::new(out, protocol_of(dialect));
        if encode::plain(output, writer) || is_unheard(output, dialect) {
            return true;
        }
        encode::output(output, (writer, &self.contacts), progress, (most, has_meta(dialect)), known)
    }
}

/// Whether an output is about a task that was cancelled, and its client does not want to know.
fn is_unheard(output: &Output, dialect: Dialect) -> bool {
    matches!(output, Output::Notice(notice) if !notice.is_recall() && !has_cancels(dialect))
}

/// Carries out one request.
fn carry_out(
    talk: &mut Talk,
    given: &[&[u8]],
    length: usize,
    desk: &mut Desk,
) -> Result<usize, Next> {
    let done = match talk.transaction {
        None => try_to_carry_out(talk, given, desk),
        Some(_) => transaction::handle(talk, given, desk),
    };
    if let Err(fault) = done {
        talk.refuse(desk, &fault);
    }
    if talk.next.is_none() { Ok(length) } else { talk.take_next(length) }
}

fn try_to_carry_out(talk: &mut Talk, given: &[&[u8]], desk: &mut Desk) -> Result<(), Fault> {
    let known = entry_of(given).map_err(|fault| guard::not_before_sign_in(desk, fault));
    let (spec, place, taken) = known?;
    desk.note(place);
    if desk.is_guarded() {
        guard::check(desk, spec)?;
    }
    let is_open = talk.protocol == Protocol::Resp3 || spec.while_subscribed;
    if !is_open && desk.is_subscribed() {
        let name = spec.full_name().to_ascii_lowercase();
        return Err(Fault::err(format!(
            "Can't execute '{name}': a subscribed connection that speaks RESP2 can only \
             subscribe, unsubscribe, grant credit, finish its tasks, PING, RESET and QUIT"
        )));
    }
    let mut parts = Parts::of(spec);
    parts.sort(&given[taken..])?;
    run(place, &mut Call { desk, talk, parts: &parts })
}

/// Like [`entry_of`], for a request within a transaction.
#[inline(never)]
fn entry_of_step(given: &[&[u8]]) -> Result<(&'static Spec, usize, usize), Fault> {
    entry_of(given)
}

/// Returns the entry of a request in the table, its place there, and the number of words that name
/// it.
#[inline(always)]
#[expect(clippy::inline_always, reason = "every request passes here")]
fn entry_of(given: &[&[u8]]) -> Result<(&'static Spec, usize, usize), Fault> {
    match find(given) {
        Found::Spec(spec, place, taken) => Ok((spec, place, taken)),
        Found::NoSub => Err(Fault::arity(&String::from_utf8_lossy(given[0]))),
        Found::UnknownSub => {
            let sub = shown(given.get(1).copied().unwrap_or_default());
            let name = String::from_utf8_lossy(given[0]).to_ascii_uppercase();
            Err(Fault::err(format!("unknown subcommand {sub} of {name}")))
        }
        Found::Unknown => Err(unknown_command(given)),
    }
}

fn malformed_request(talk: &Talk, malformed: Malformed, desk: &Desk) -> Next {
    if malformed.is_answered() {
        talk.refuse(desk, &Fault::err(format!("Protocol error: {malformed}")));
    }
    Next::Close(Ending::Malformed, format!("protocol error: {malformed}"))
}

/// Returns the refusal of a request with an argument of `bytes` bytes, which is too large by itself
/// or together with the others.
fn too_large(limits: &Limits, bytes: usize) -> Fault {
    let limits = request_limits(limits);
    let most = limits.bulk_bytes_max;
    let sentence = if bytes > most {
        format!("an argument has at most {most} bytes here, and this one has {bytes}")
    } else {
        let most = limits.request_bytes_max;
        format!("a request has at most {most} bytes here, and this one has more")
    };
    Fault { code: RefusalKind::TooLarge.into(), sentence }
}

/// Returns the limits of a request. Names, keys and words may have their full length even if
/// payloads must be shorter; the engine tells them apart.
fn request_limits(limits: &Limits) -> RequestLimits {
    RequestLimits::for_bulks(limits.payload_bytes_max.max(NAME_BYTES_MAX))
}

fn unknown_command(given: &[&[u8]]) -> Fault {
    let name = shown(given.first().copied().unwrap_or_default());
    let arguments: Vec<String> = given.iter().skip(1).take(8).map(|word| shown(word)).collect();
    let arguments = arguments.join(" ");
    Fault::err(format!("unknown command {name}, with args beginning with: {arguments}"))
}
