//! Requests as commands of the engine, and those that need none.

use pinpriq_proto::command::{
    Command, Deed, Delay, Peek, Put, QueueCommand, QueueName, Reserve, Selection, Wait,
};
use pinpriq_proto::task::{StateKind, Terms};
use pinpriq_proto::time::Span;
use pinpriq_proto::wire::beanstalkd::{Request, Verb, Word, put_list, put_using, put_watching};

use super::answers::{Form, word_of};
use super::documents::Sight;
use super::{BeanstalkdDoor, Next};
use crate::clients::ending::Ending;
use crate::home::desk::Desk;
use crate::host::seat::Undone;
use crate::session::outbox::Write;
use pinpriq_proto::request::table::places::{place_of, place_of_sub};

/// This many watched tubes are named to the engine without an allocation.
const TUBES_FEW: usize = 8;

/// Which command a request counts as in `INFO`, by its place in the table. Requests that touch no
/// queue are counted by `stats` alone.
const fn place_of_verb(verb: Verb) -> Option<usize> {
    Some(match verb {
        Verb::Put => const { place_of("PUT") },
        Verb::Reserve | Verb::ReserveWithTimeout | Verb::ReserveJob => const { place_of("TAKE") },
        Verb::Delete => const { place_of("ACK") },
        Verb::Release => const { place_of("RELEASE") },
        Verb::Bury => const { place_of("BURY") },
        Verb::Touch => const { place_of("TOUCH") },
        Verb::Kick => const { place_of("PLOW") },
        Verb::KickJob => const { place_of("DIG") },
        Verb::Peek | Verb::PeekReady | Verb::PeekDelayed | Verb::PeekBuried | Verb::StatsJob => {
            const { place_of("PEEK") }
        }
        Verb::Stats | Verb::StatsTube => const { place_of("STATS") },
        Verb::ListTubes => const { place_of_sub("QUEUE", "LIST") },
        Verb::PauseTube => const { place_of_sub("QUEUE", "PAUSE") },
        Verb::Use
        | Verb::Watch
        | Verb::Ignore
        | Verb::ListTubeUsed
        | Verb::ListTubesWatched
        | Verb::Quit => return None,
    })
}

impl BeanstalkdDoor {
    /// Carries out a request, and counts it once that is done.
    pub(super) fn carry_out(&mut self, request: &Request<'_>, desk: &mut Desk) -> Result<(), Next> {
        let verb = request.verb();
        if let Some(place) = place_of_verb(verb) {
            desk.note(place);
        }
        let done = self.try_to_carry_out(request, desk);
        let next = match done {
            Ok(()) => Ok(()),
            Err(Undone::NoRoom) => return Err(Next::NoRoom),
            Err(Undone::Blocked) => return Err(Next::Blocked),
            Err(Undone::Move(to)) => return Err(Next::Move(to)),
            Err(Undone::Close(ending, reason)) => Err(Next::Close(ending, reason)),
            Err(Undone::Refused(refusal)) => {
                desk.count_refusal(refusal.kind.into());
                desk.say(word_of(refusal.kind).line().to_vec());
                Ok(())
            }
            // The desk does this for cluster clients of RESP only.
            Err(Undone::Redirected(_)) => {
                desk.say(Word::InternalError.line().to_vec());
                Ok(())
            }
        };
        self.count(verb);
        match verb {
            Verb::Put => self.be_producer(),
            Verb::Reserve | Verb::ReserveWithTimeout => self.be_worker(),
            _ => {}
        }
        next
    }

    fn try_to_carry_out(&mut self, request: &Request<'_>, desk: &mut Desk) -> Result<(), Undone> {
        match *request {
            Request::Put { priority, delay_s, ttr_s, body } => {
                if self.shared.is_draining() {
                    desk.say(Word::Draining.line().to_vec());
                    return Ok(());
                }
                let put = Put {
                    priority: Some(priority.into()),
                    delay: Delay::For(seconds(delay_s)),
                    terms: Terms { ttr: Some(seconds(ttr_s)), ..Terms::NONE },
                    ..Put::new(&self.used, body)
                };
                self.asked += 1;
                desk.ask(Form::Inserted.request(self.asked), &Command::PutNumbered(&put))
            }
            Request::Reserve => self.reserve(Wait::Forever, desk),
            Request::ReserveWithTimeout { timeout_s: 0 } => self.reserve(Wait::No, desk),
            Request::ReserveWithTimeout { timeout_s } => {
                self.reserve(Wait::For(seconds(timeout_s)), desk)
            }
            Request::ReserveJob { id } => self.ask_for(Form::ReservedJob, id, Deed::Take, desk),
            Request::Delete { id } => self.ask_for(Form::Deleted, id, Deed::Delete, desk),
            Request::Release { id, priority, delay_s } => {
                let deed = Deed::Release { priority: priority.into(), delay: seconds(delay_s) };
                self.ask_for(Form::Released, id, deed, desk)
            }
            Request::Bury { id, priority } => {
                let deed = Deed::Bury { priority: priority.into() };
                self.ask_for(Form::Buried, id, deed, desk)
            }
            Request::Touch { id } => self.ask_for(Form::Touched, id, Deed::Touch, desk),
            Request::KickJob { id } => self.ask_for(Form::KickedJob, id, Deed::Kick, desk),
            Request::Peek { id } => self.ask_for(Form::Found, id, Deed::Read, desk),
            Request::StatsJob { id } => {
                self.ask_for(Form::Job, id, Deed::Read, desk)?;
                self.see(Sight::Job { now: desk.shard().clock().now() });
                Ok(())
            }
            Request::PeekReady
            | Request::PeekDelayed
            | Request::PeekBuried
            | Request::Kick { .. } => self.ask_used(request, desk),
            Request::StatsTube { .. }
            | Request::Stats
            | Request::ListTubes
            | Request::PauseTube { .. } => self.ask_about_tubes(request, desk),
            Request::Use { .. }
            | Request::Watch { .. }
            | Request::Ignore { .. }
            | Request::ListTubeUsed
            | Request::ListTubesWatched => self.answer_alone(request, desk),
            Request::Quit => {
                self.leave();
                // Others get its jobs before the connection has ended, and none of them has failed.
                // If that is refused, they fail with the connection.
                self.asked += 1;
                match desk.ask(Form::LetGo.request(self.asked), &Command::LetGo) {
                    Ok(()) | Err(Undone::Refused(_)) => {}
                    Err(undone) => return Err(undone),
                }
                Err(Undone::Close(Ending::Quit, "the client has quit".to_owned()))
            }
        }
    }

    fn reserve(&mut self, wait: Wait, desk: &mut Desk) -> Result<(), Undone> {
        self.asked += 1;
        let request = Form::Reserved.request(self.asked);
        let watched = self.watched.tubes();
        let mut few: [&[u8]; TUBES_FEW] = [&[]; TUBES_FEW];
        let many: Vec<&[u8]>;
        let queues = if let Some(few) = few.get_mut(..watched.len()) {
            few.iter_mut().zip(watched).for_each(|(queue, tube)| *queue = tube);
            &*few
        } else {
            many = watched.iter().map(|tube| &**tube).collect();
            &many
        };
        desk.ask(request, &Command::Reserve(Reserve::new(queues, wait)))
    }

    /// Asks for something to be done with one job.
    fn ask_for(
        &mut self,
        form: Form,
        number: u64,
        deed: Deed,
        desk: &mut Desk,
    ) -> Result<(), Undone> {
        self.asked += 1;
        desk.ask(form.request(self.asked), &Command::Numbered { number, deed })
    }

    /// Asks about the jobs of the used tube.
    fn ask_used(&mut self, request: &Request<'_>, desk: &mut Desk) -> Result<(), Undone> {
        let queue = &*self.used;
        let (form, command) = match *request {
            Request::Kick { bound } => (Form::Kicked, Command::Kick { queue, count: bound }),
            Request::PeekReady => {
                let (selection, state) = (Selection::DEFAULT, Some(StateKind::Ready));
                let queue = QueueName { name: queue, member: None };
                (Form::Found, Command::Peek(Peek { queue, selection, state, count: 1 }))
            }
            Request::PeekDelayed => {
                (Form::Found, Command::Foremost { queue, state: StateKind::Waiting })
            }
            _ => (Form::Found, Command::Foremost { queue, state: StateKind::Buried }),
        };
        self.asked += 1;
        desk.ask(form.request(self.asked), &command)
    }

    fn ask_about_tubes(&mut self, request: &Request<'_>, desk: &mut Desk) -> Result<(), Undone> {
        self.asked += 1;
        let number = self.asked;
        let (now, passed) = (desk.shard().clock().now(), desk.shard().clock().passed());
        if self.sights_kept.is_too_much() {
            return Err(Undone::Refused(self.sights_kept.kept().refusal()));
        }
        let sight = match *request {
            Request::PauseTube { tube: queue, delay_s } => {
                let length = (delay_s > 0).then(|| seconds(delay_s));
                let makes = self.shared.has(queue);
                let hold = Command::Queue(QueueCommand::Hold { queue, length, makes });
                desk.ask(Form::Paused.request(number), &hold)?;
                Sight::Pause { now, name: queue.into() }
            }
            Request::StatsTube { tube } => {
                desk.ask(Form::Tube.request(number), &Command::Tubes(Some(tube)))?;
                let (name, known) = (tube.into(), self.shared.tube(tube));
                Sight::Tube { now, name, known }
            }
            Request::Stats => {
                desk.ask(Form::Server.request(number), &Command::Tubes(None))?;
                let (known, uptime_s) = (self.shared.all(), passed.as_secs());
                // This request counts too.
                let mut tally = self.shared.tally();
                tally.counts[Verb::Stats.index()] += 1;
                let is_worker = self.is_worker.get();
                Sight::Server { tally: Box::new(tally), is_worker, known, uptime_s }
            }
            _ => {
                desk.ask(Form::Tubes.request(number), &Command::Tubes(None))?;
                Sight::Tubes { known: self.shared.all() }
            }
        };
        self.see(sight);
        Ok(())
    }

    /// Answers a request that no engine has to be asked for.
    fn answer_alone(&mut self, request: &Request<'_>, desk: &mut Desk) -> Result<(), Undone> {
        desk.check_user()?;
        let now = desk.shard().clock().now();
        let mut out = Vec::new();
        match *request {
            Request::Use { tube } => {
                if *self.used != *tube {
                    self.shared.use_tube(tube, now);
                    self.shared.leave_tube(&self.used);
                    self.used = tube.into();
                }
                put_using(&mut out, tube);
            }
            Request::Watch { tube } => {
                let most = desk.limits().subscriptions_max;
                if self.watched.add(tube, now, (most, &self.shared)) {
                    put_watching(&mut out, self.watched.tubes().len() as u64);
                } else {
                    out.extend_from_slice(Word::OutOfMemory.line());
                }
            }
            Request::Ignore { tube } => {
                if self.watched.remove(tube, &self.shared) {
                    put_watching(&mut out, self.watched.tubes().len() as u64);
                } else {
                    out.extend_from_slice(Word::NotIgnored.line());
                }
            }
            Request::ListTubesWatched => {
                let (tubes, bytes) = (self.watched.tubes().to_vec(), self.watched.bytes());
                let write: Write =
                    Box::new(move |progress, out, room| put_list(&tubes, progress, out, room));
                desk.say_written(write, bytes);
                return Ok(());
            }
            _ => put_using(&mut out, &self.used),
        }
        desk.say(out);
        Ok(())
    }
}

/// Converts seconds into a span.
const fn seconds(seconds: u32) -> Span {
    Span::from_ms(seconds as u64 * 1_000)
}
