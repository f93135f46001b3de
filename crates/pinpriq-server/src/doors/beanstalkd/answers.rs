//! The replies of the engine as answers on the wire.

use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::task::{RequestId, StateKind, TaskRecord};
use pinpriq_proto::wire::beanstalkd::{JobWord, Verb, Word, put_inserted, put_job, put_kicked};

use super::BeanstalkdDoor;
use super::documents::Sight;

/// The lowest bits of the number of a request, which say its command.
const VERB_BITS: u32 = 5;

/// Returns the number of the request with this command that is the connection's `asked`th.
pub(super) const fn numbered(verb: Verb, asked: u64) -> RequestId {
    RequestId(asked << VERB_BITS | verb as u64)
}

/// Returns the command of this request, and which of the connection's it is.
#[inline]
fn verb_of(request: RequestId) -> (Verb, u64) {
    let verb = usize::try_from(request.0 & ((1 << VERB_BITS) - 1)).ok();
    let Some(verb) = verb.and_then(|verb| Verb::ALL.get(verb)) else {
        unreachable!("{request:?} was not made here")
    };
    (*verb, request.0 >> VERB_BITS)
}

/// Returns the answer that says what a refusal says, as far as beanstalkd has a word for it.
pub(super) const fn word_of(kind: RefusalKind) -> Word {
    match kind {
        RefusalKind::NotFound | RefusalKind::NoQueue | RefusalKind::Cancelled => Word::NotFound,
        RefusalKind::Full | RefusalKind::Paused | RefusalKind::Busy => Word::OutOfMemory,
        RefusalKind::Closing => Word::Draining,
        _ => Word::InternalError,
    }
}

impl BeanstalkdDoor {
    /// Writes the answer to a request, unless it has a job whose body is still to come. Lists are
    /// written in pieces. Returns whether it is complete.
    pub(super) fn write_answer(
        &self,
        (request, reply): (RequestId, &Reply),
        out: &mut Vec<u8>,
        (progress, room, known): (&mut usize, usize, usize),
    ) -> bool {
        let (verb, asked) = verb_of(request);
        let word = match (verb, reply) {
            (verb, Reply::Refused(refusal)) if verb != Verb::Quit => {
                drop(self.sight(asked));
                word_of(refusal.kind)
            }
            (Verb::Put, Reply::Count(number)) => {
                put_inserted(out, *number);
                return true;
            }
            (
                Verb::Reserve | Verb::ReserveWithTimeout | Verb::ReserveJob,
                Reply::Tasks { tasks, .. },
            ) => {
                let Some(task) = tasks.first() else {
                    out.extend_from_slice(Word::TimedOut.line());
                    return true;
                };
                if known == 0 {
                    return false;
                }
                self.has_reserved();
                put_job(out, JobWord::Reserved, task.number, &task.payload);
                return true;
            }
            (Verb::Reserve | Verb::ReserveWithTimeout, Reply::DeadlineSoon) => Word::DeadlineSoon,
            (Verb::PeekReady, Reply::Shown(tasks)) => {
                return write_found(tasks.first(), out, known);
            }
            (Verb::Peek | Verb::PeekDelayed | Verb::PeekBuried, Reply::Task(task)) => {
                return write_found(task.as_deref(), out, known);
            }
            (Verb::Delete, Reply::Done) => Word::Deleted,
            (Verb::Release, Reply::State(Some(StateKind::Buried))) | (Verb::Bury, Reply::Done) => {
                Word::Buried
            }
            (Verb::Release, Reply::State(_)) => Word::Released,
            (Verb::Touch, Reply::Deadline(_)) => Word::Touched,
            (Verb::KickJob, Reply::Done) => Word::Kicked,
            (Verb::PauseTube, Reply::Done) => {
                if let Some(Sight::Pause { now, name }) = self.sight(asked) {
                    self.has_paused(&name, now);
                }
                Word::Paused
            }
            (Verb::Quit, _) => return true,
            (Verb::Kick, Reply::Count(count)) => {
                put_kicked(out, *count);
                return true;
            }
            (Verb::ListTubes, Reply::Tubes(shown)) => {
                return self.write_list((asked, shown), progress, out, room);
            }
            (Verb::StatsJob | Verb::StatsTube | Verb::Stats, reply) => {
                let sight = self.sight(asked);
                let Some(sight) = sight else { unreachable!("{request:?} was not kept") };
                self.write_document(&sight, reply, out);
                return true;
            }
            (verb, reply) => unreachable!("{verb:?} is answered with {reply:?}"),
        };
        out.extend_from_slice(word.line());
        true
    }
}

fn write_found(task: Option<&TaskRecord>, out: &mut Vec<u8>, known: usize) -> bool {
    match task {
        Some(_) if known == 0 => return false,
        Some(task) => put_job(out, JobWord::Found, task.number, &task.payload),
        None => out.extend_from_slice(Word::NotFound.line()),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_a_request_tells_its_command() {
        for verb in Verb::ALL {
            assert_eq!(verb_of(numbered(verb, 7)), (verb, 7));
        }
    }
}
