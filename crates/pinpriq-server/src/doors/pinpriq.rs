//! The pinpriq door: the founding protocol, described in `docs/protocol/pinpriq.md`.
//!
//! Every pop asks for the newest of the most urgent with its group. Every delivery is a pop. A push
//! has no reply, so a refused one ends the connection.

use pinpriq_proto::command::{Command, Put, Selection, Take, TakeMode, TimeToLive, Wait};
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::task::{RequestId, TaskRecord, Terms};
use pinpriq_proto::time::Span;
use pinpriq_proto::wire::{Decoded, Request, decode_request, put_count, put_packet};

use super::{DoorKind, DoorOptions};
use crate::clients::about::{Dialect, Manners, SILENT};
use crate::clients::ending::Ending;
use crate::config::{DoorName, Framing, PinpriqOptions, TtlZero};
use crate::home::desk::Desk;
use crate::home::door::{Door, Next, refuse_tls};
use crate::host::seat::Undone;
use crate::session::outbox::Encode;
use pinpriq_proto::request::table::places::place_of;

/// The commands that requests count as, by their places in the table.
const PUT: usize = place_of("PUT");
const POP: usize = place_of("POP");
const SUBSCRIBE: usize = place_of("SUBSCRIBE");
const UNSUBSCRIBE: usize = place_of("UNSUBSCRIBE");
const CREDIT: usize = place_of("CREDIT");

/// The kind of this door.
pub(super) static KIND: DoorKind = DoorKind {
    name: DoorName::Pinpriq,
    redirects: false,
    signs_in: false,
    moves: true,
    manners,
    open,
};

fn manners(options: &DoorOptions) -> Manners {
    let requeues = options.pinpriq.requeue;
    Manners { tells_refusals: false, waits_for_room: true, groups_per_turn: 32, requeues }
}

fn open(options: &DoorOptions, _: Dialect) -> Box<dyn Door> {
    Box::new(PinpriqDoor { options: options.pinpriq })
}

/// One connection's side of the protocol.
struct PinpriqDoor {
    options: PinpriqOptions,
}

impl PinpriqDoor {
    fn carry_out(&self, request: Request<'_>, desk: &mut Desk) -> Result<(), Undone> {
        desk.note(match &request {
            Request::Push { .. } => PUT,
            Request::Pop { .. } => POP,
            Request::Subscribe { .. } => SUBSCRIBE,
            Request::Unsubscribe { .. } => UNSUBSCRIBE,
            Request::Ready => CREDIT,
        });
        match request {
            Request::Push { queue, ttl_ms, priority, key, payload } => {
                let ttl = match (ttl_ms, self.options.ttl_zero) {
                    (0, TtlZero::Immediate) => TimeToLive::Instant,
                    (0, TtlZero::Forever) => TimeToLive::Endless,
                    (ms, _) => TimeToLive::For(Span::from_ms(u64::from(ms))),
                };
                let priority = (priority != 0).then_some(i64::from(priority));
                let put = Put {
                    ttl,
                    priority,
                    terms: Terms { key: Some(key), ..Terms::NONE },
                    ..Put::new(queue, payload)
                };
                desk.ask(SILENT, &Command::Put(put))
            }
            Request::Pop { queue } => {
                let take = Take {
                    queues: &[queue],
                    member: None,
                    count: 1,
                    wait: Wait::No,
                    selection: Selection::PINPRIQ,
                    mode: TakeMode::Pop,
                };
                desk.ask(RequestId(0), &Command::Take(take))
            }
            Request::Subscribe { queue } => {
                let subscribe = Command::Subscribe {
                    queues: &[queue],
                    member: None,
                    selection: Selection::PINPRIQ,
                    mode: TakeMode::Pop,
                    recall: false,
                };
                desk.ask(SILENT, &subscribe)
            }
            Request::Unsubscribe { queue } => {
                desk.ask(SILENT, &Command::Unsubscribe { queues: &[queue], member: None })
            }
            Request::Ready => {
                desk.add_credit(1);
                desk.grant();
                Ok(())
            }
        }
    }
}

impl Door for PinpriqDoor {
    fn receive(&mut self, input: &[u8], desk: &mut Desk) -> Result<usize, Next> {
        let (request, length) = match decode_request(input) {
            Ok(Decoded::Message { request, length }) => (request, length),
            Ok(Decoded::Incomplete { .. }) => return Err(Next::Incomplete),
            Err(malformed) => {
                refuse_tls(input)?;
                return Err(Next::Close(Ending::Malformed, malformed.to_string()));
            }
        };
        self.carry_out(request, desk).map_err(|undone| match undone {
            Undone::NoRoom => Next::NoRoom,
            Undone::Blocked => Next::Blocked,
            Undone::Move(to) => Next::Move(to),
            // This wire has no refusals, so the connection ends instead.
            Undone::Close(ending, reason) => Next::Close(ending, reason),
            Undone::Refused(refusal) => {
                desk.count_refusal(refusal.kind.into());
                Next::Close(Ending::Refused, refusal.sentence)
            }
            // The desk does this for cluster clients of RESP only.
            Undone::Redirected(_) => {
                Next::Close(Ending::Refused, "another node has the queue".to_owned())
            }
        })?;
        Ok(length)
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
            Output::Reply { .. } | Output::Notice(_) => true,
        }
    }
}

/// Appends the next packets of a frame. `progress` counts the packets already written. A frame
/// holds at most 65,535 packets, since the engine never returns more tasks.
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
        let key = task.terms.key.as_deref().unwrap_or_default();
        match put_packet(out, key, &task.payload) {
            Ok(()) => *progress += 1,
            Err(too_long) => unreachable!("a task was chosen that does not fit: {too_long}"),
        }
    }
    *progress == tasks.len()
}
