//! The replies of the engine as answers on the wire.

use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::task::{RequestId, StateKind, TaskRecord};
use pinpriq_proto::wire::beanstalkd::{JobWord, Word, put_inserted, put_job, put_kicked};

use super::BeanstalkdDoor;
use super::documents::Sight;

/// What the answer to a request looks like. The number of the request has it in its lowest bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Inserted,
    Reserved,
    ReservedJob,
    Deleted,
    Released,
    Buried,
    Touched,
    Found,
    Kicked,
    KickedJob,
    Paused,
    Job,
    Tube,
    Server,
    Tubes,
    /// There is no answer.
    LetGo,
}

impl Form {
    const ALL: [Self; 16] = [
        Self::Inserted,
        Self::Reserved,
        Self::ReservedJob,
        Self::Deleted,
        Self::Released,
        Self::Buried,
        Self::Touched,
        Self::Found,
        Self::Kicked,
        Self::KickedJob,
        Self::Paused,
        Self::Job,
        Self::Tube,
        Self::Server,
        Self::Tubes,
        Self::LetGo,
    ];

    const BITS: u32 = 4;

    /// Returns the number of the request that is the connection's `asked`th.
    pub(super) const fn request(self, asked: u64) -> RequestId {
        RequestId(asked << Self::BITS | self as u64)
    }

    /// Returns the form of the answer to this request, and which of the connection's it is.
    #[inline]
    fn of(request: RequestId) -> (Self, u64) {
        let form = request.0 & ((1 << Self::BITS) - 1);
        let form = usize::try_from(form).ok().and_then(|form| Self::ALL.get(form));
        let Some(form) = form else { unreachable!("{request:?} was not made here") };
        (*form, request.0 >> Self::BITS)
    }
}

/// Returns the answer that says what a refusal says, as far as beanstalkd has a word for it.
pub(super) const fn word_of(kind: RefusalKind) -> Word {
    match kind {
        RefusalKind::NotFound | RefusalKind::NoQueue => Word::NotFound,
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
        let (form, asked) = Form::of(request);
        let word = match (form, reply) {
            (form, Reply::Refused(refusal)) if form != Form::LetGo => {
                drop(self.sight(asked));
                word_of(refusal.kind)
            }
            (Form::Inserted, Reply::Count(number)) => {
                put_inserted(out, *number);
                return true;
            }
            (Form::Reserved | Form::ReservedJob, Reply::Tasks { tasks, .. }) => {
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
            (Form::Reserved, Reply::DeadlineSoon) => Word::DeadlineSoon,
            (Form::Found, Reply::Shown(tasks)) => return write_found(tasks.first(), out, known),
            (Form::Found, Reply::Task(task)) => return write_found(task.as_deref(), out, known),
            (Form::Deleted, Reply::Done) => Word::Deleted,
            (Form::Released, Reply::State(Some(StateKind::Buried)))
            | (Form::Buried, Reply::Done) => Word::Buried,
            (Form::Released, Reply::State(_)) => Word::Released,
            (Form::Touched, Reply::Deadline(_)) => Word::Touched,
            (Form::KickedJob, Reply::Done) => Word::Kicked,
            (Form::Paused, Reply::Done) => {
                if let Some(Sight::Pause { now, name }) = self.sight(asked) {
                    self.has_paused(&name, now);
                }
                Word::Paused
            }
            (Form::LetGo, _) => return true,
            (Form::Kicked, Reply::Count(count)) => {
                put_kicked(out, *count);
                return true;
            }
            (Form::Tubes, Reply::Tubes(shown)) => {
                return self.write_list((asked, shown), progress, out, room);
            }
            (Form::Job | Form::Tube | Form::Server, reply) => {
                let sight = self.sight(asked);
                let Some(sight) = sight else { unreachable!("{request:?} was not kept") };
                self.write_document(&sight, reply, out);
                return true;
            }
            (form, reply) => unreachable!("{form:?} is answered with {reply:?}"),
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
    fn number_of_a_request_tells_the_form_of_its_answer() {
        for (at, form) in Form::ALL.into_iter().enumerate() {
            assert_eq!(form as usize, at);
            assert_eq!(Form::of(form.request(7)), (form, 7));
        }
    }
}
