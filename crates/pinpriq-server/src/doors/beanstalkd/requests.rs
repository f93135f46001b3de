//! Requests as commands of the engine, and those that need none.

use pinpriq_proto::command::{
    Command, Deed, Delay, Peek, Put, QueueCommand, QueueName, Reserve, Selection, Wait,
};
use pinpriq_proto::task::{RequestId, StateKind, Terms};
use pinpriq_proto::time::Span;
use pinpriq_proto::wire::beanstalkd::{Request, Verb, Word, put_list, put_using, put_watching};

use super::answers::{numbered, word_of};
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
        self.asked += 1;
        let number = numbered(request.verb(), self.asked);
        let queue = &*self.used;
        let of_job = |number, deed| Command::Numbered { number, deed };
        let put;
        let command = match *request {
            Request::Put { .. } if self.shared.is_draining() => {
                desk.say(Word::Draining.line().to_vec());
                return Ok(());
            }
            Request::Put { priority, delay_s, ttr_s, body } => {
                put = Put {
                    priority: Some(priority.into()),
                    delay: Delay::For(seconds(delay_s)),
                    terms: Terms { ttr: Some(seconds(ttr_s)), ..Terms::NONE },
                    ..Put::new(queue, body)
                };
                Command::PutNumbered(&put)
            }
            Request::Reserve => return self.reserve(number, Wait::Forever, desk),
            Request::ReserveWithTimeout { timeout_s: 0 } => {
                return self.reserve(number, Wait::No, desk);
            }
            Request::ReserveWithTimeout { timeout_s } => {
                return self.reserve(number, Wait::For(seconds(timeout_s)), desk);
            }
            Request::ReserveJob { id } => of_job(id, Deed::Take),
            Request::Delete { id } => of_job(id, Deed::Delete),
            Request::Release { id, priority, delay_s } => {
                let (priority, delay) = (priority.into(), seconds(delay_s));
                of_job(id, Deed::Release { priority, delay })
            }
            Request::Bury { id, priority } => of_job(id, Deed::Bury { priority: priority.into() }),
            Request::Touch { id } => of_job(id, Deed::Touch),
            Request::KickJob { id } => of_job(id, Deed::Kick),
            Request::Peek { id } | Request::StatsJob { id } => of_job(id, Deed::Read),
            Request::Kick { bound } => Command::Kick { queue, count: bound },
            Request::PeekReady => {
                let (selection, state) = (Selection::DEFAULT, Some(StateKind::Ready));
                let queue = QueueName { name: queue, member: None };
                Command::Peek(Peek { queue, selection, state, count: 1 })
            }
            Request::PeekDelayed => Command::Foremost { queue, state: StateKind::Waiting },
            Request::PeekBuried => Command::Foremost { queue, state: StateKind::Buried },
            Request::StatsTube { .. }
            | Request::Stats
            | Request::ListTubes
            | Request::PauseTube { .. }
                if self.sights_kept.is_too_much() =>
            {
                return Err(Undone::Refused(self.sights_kept.kept().refusal()));
            }
            Request::PauseTube { tube: queue, delay_s } => {
                let length = (delay_s > 0).then(|| seconds(delay_s));
                let makes = self.shared.has(queue);
                Command::Queue(QueueCommand::Hold { queue, length, makes })
            }
            Request::StatsTube { tube } => Command::Tubes(Some(tube)),
            Request::Stats | Request::ListTubes => Command::Tubes(None),
            Request::Use { .. }
            | Request::Watch { .. }
            | Request::Ignore { .. }
            | Request::ListTubeUsed
            | Request::ListTubesWatched => return self.answer_alone(request, desk),
            Request::Quit => return self.quit(number, desk),
        };
        desk.ask(number, &command)?;
        self.see_for(request, desk);
        Ok(())
    }

    fn quit(&mut self, number: RequestId, desk: &mut Desk) -> Result<(), Undone> {
        self.leave();
        // Others get its jobs before the connection has ended, and none of them has failed. If that
        // is refused, they fail with the connection.
        match desk.ask(number, &Command::LetGo) {
            Ok(()) | Err(Undone::Refused(_)) => {
                Err(Undone::Close(Ending::Quit, "the client has quit".to_owned()))
            }
            undone => undone,
        }
    }

    fn reserve(&self, number: RequestId, wait: Wait, desk: &mut Desk) -> Result<(), Undone> {
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
        desk.ask(number, &Command::Reserve(Reserve::new(queues, wait)))
    }

    /// Keeps what the answer to a request needs besides the reply of the engine.
    fn see_for(&self, request: &Request<'_>, desk: &Desk) {
        let clock = desk.shard().clock();
        self.see(match *request {
            Request::StatsJob { .. } => Sight::Job { now: clock.now() },
            Request::PauseTube { tube, .. } => Sight::Pause { now: clock.now(), name: tube.into() },
            Request::StatsTube { tube } => {
                let known = self.shared.tube(tube);
                Sight::Tube { now: clock.now(), name: tube.into(), known }
            }
            Request::Stats => {
                let (known, uptime_s) = (self.shared.all(), clock.passed().as_secs());
                // This request counts too.
                let mut tally = self.shared.tally();
                tally.counts[Verb::Stats.index()] += 1;
                let is_worker = self.is_worker.get();
                Sight::Server { tally: Box::new(tally), is_worker, known, uptime_s }
            }
            Request::ListTubes => Sight::Tubes { known: self.shared.all() },
            _ => return,
        });
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
