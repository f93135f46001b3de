//! The load: clients that put jobs, reserve them and do everything else to them until the server is
//! gone.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use pinpriq_proto::wire::beanstalkd::Request;
use pinpriq_testing::Dice;

use super::book::{Book, Fate, State, Ticket};
use super::talk::{Heard, Talk};
use super::{HOUR_S, TUBES};
use crate::fault::Fallible;
use crate::load::until_crash;

/// The number of clients. Each puts, and each reserves.
const CLIENTS: u64 = 6;
/// The most jobs that are put or reserved together.
const TOGETHER_MAX: u64 = 6;
/// Above this number of jobs, clients put no more.
const BACKLOG_MAX: u64 = 500;
const PRIORITIES: u64 = 7;

/// What the clients of all rounds share.
#[derive(Default)]
pub(crate) struct Load {
    pub(crate) book: Book,
    /// The approximate number of jobs.
    pub(crate) backlog: AtomicU64,
    pub(crate) inserted: AtomicU64,
    pub(crate) deleted: AtomicU64,
    pub(crate) reserved: AtomicU64,
}

/// A request about a job that this client has, with the answer that it must get.
struct Asked {
    request: Request<'static>,
    answer: &'static str,
    ticket: Option<Ticket>,
}

impl Load {
    /// Runs the load until the server is gone, which `crash` brings about.
    pub(crate) fn run<T>(
        &self,
        address: SocketAddr,
        dice: &mut Dice,
        crash: impl FnOnce() -> Fallible<T>,
    ) -> Fallible<T> {
        // The end of a client's work is that of its connection.
        let work = |_: u64, dice: &mut Dice| {
            drop(self.work(address, dice));
            Ok(())
        };
        until_crash(CLIENTS, dice, work, crash)
    }

    /// Works until the connection ends, which is an error.
    fn work(&self, address: SocketAddr, dice: &mut Dice) -> Fallible<()> {
        let mut talk = begin(address)?;
        loop {
            if dice.chance(1) {
                // What it has reserved is ready again.
                talk = begin(address)?;
            }
            if dice.chance(50) && self.backlog.load(Ordering::Relaxed) < BACKLOG_MAX {
                self.put_some(&mut talk, dice)?;
            } else {
                self.reserve_some(&mut talk, dice)?;
            }
        }
    }

    fn put_some(&self, talk: &mut Talk, dice: &mut Dice) -> Fallible<()> {
        let tube = dice.index(TUBES.len());
        let mut puts = Vec::new();
        for _ in 0..=dice.below(TOGETHER_MAX) {
            let (priority, delay_s) = (some_priority(dice), some_delay(dice));
            let (ticket, body) = self.book.put(tube, Fate::There(state_after(delay_s), priority));
            puts.push((ticket, priority, delay_s, body));
        }
        let mut requests = vec![Request::Use { tube: TUBES[tube].as_bytes() }];
        requests.extend(puts.iter().map(|(_, priority, delay_s, body)| Request::Put {
            priority: *priority,
            delay_s: *delay_s,
            ttr_s: HOUR_S,
            body,
        }));
        talk.send(&requests)?;
        self.expect(talk, &format!("USING {}", TUBES[tube]))?;
        for (ticket, ..) in puts {
            let heard = talk.answer()?;
            let id = match &heard {
                Heard::Line(line) => line.strip_prefix("INSERTED ").and_then(|id| id.parse().ok()),
                _ => None,
            };
            match id {
                Some(id) => self.book.inserted(ticket, id),
                None => self.book.fail(format!("a put was answered {heard:?}")),
            }
            self.inserted.fetch_add(1, Ordering::Relaxed);
            self.backlog.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn reserve_some(&self, talk: &mut Talk, dice: &mut Dice) -> Fallible<()> {
        let count = 1 + dice.index(4);
        talk.send(&vec![Request::ReserveWithTimeout { timeout_s: 0 }; count])?;
        let mut asked = Vec::new();
        for _ in 0..count {
            match talk.answer()? {
                Heard::Job(id, body) => {
                    self.reserved.fetch_add(1, Ordering::Relaxed);
                    if let Some(number) = self.book.came(id, &body) {
                        self.use_up((number, id), dice, &mut asked);
                    }
                }
                Heard::Line(line) if line == "TIMED_OUT" => {}
                heard => self.book.fail(format!("a reserve was answered {heard:?}")),
            }
        }
        let requests: Vec<Request<'_>> = asked.iter().map(|asked| asked.request).collect();
        talk.send(&requests)?;
        for Asked { answer, ticket, .. } in asked {
            if self.expect(talk, answer)?
                && let Some(ticket) = ticket
            {
                self.book.done(ticket);
            }
            if answer == "DELETED" {
                self.deleted.fetch_add(1, Ordering::Relaxed);
                let less = |backlog: u64| Some(backlog.saturating_sub(1));
                // The closure never declines, so this cannot fail.
                let _ = self.backlog.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
        }
        Ok(())
    }

    /// Chooses what to do with a job that was reserved.
    fn use_up(&self, (number, id): (u64, u64), dice: &mut Dice, asked: &mut Vec<Asked>) {
        let mut ask = |request, answer, fate: Option<Fate>| {
            let ticket = fate.map(|fate| self.book.ask(number, fate));
            asked.push(Asked { request, answer, ticket });
        };
        let priority = some_priority(dice);
        match dice.below(100) {
            0..45 => ask(Request::Delete { id }, "DELETED", Some(Fate::Gone)),
            45..55 => {
                ask(Request::Touch { id }, "TOUCHED", None);
                ask(Request::Delete { id }, "DELETED", Some(Fate::Gone));
            }
            55..75 => {
                let delay_s = some_delay(dice);
                let fate = Fate::There(state_after(delay_s), priority);
                ask(Request::Release { id, priority, delay_s }, "RELEASED", Some(fate));
            }
            75..95 => {
                let buried = Fate::There(State::Buried, priority);
                ask(Request::Bury { id, priority }, "BURIED", Some(buried));
                match dice.below(4) {
                    0 => ask(Request::Delete { id }, "DELETED", Some(Fate::Gone)),
                    1 | 2 => {
                        let ready = Fate::There(State::Ready, priority);
                        ask(Request::KickJob { id }, "KICKED", Some(ready));
                    }
                    _ => {}
                }
            }
            // It stays reserved for as long as the connection.
            _ => {}
        }
    }

    /// Waits for this answer. Returns whether it was this one.
    fn expect(&self, talk: &mut Talk, answer: &str) -> Fallible<bool> {
        let heard = talk.answer()?;
        let is_expected = matches!(&heard, Heard::Line(line) if line == answer);
        if !is_expected {
            self.book.fail(format!("{heard:?} came instead of {answer}"));
        }
        Ok(is_expected)
    }
}

/// Connects, and watches all tubes.
pub(crate) fn begin(address: SocketAddr) -> Fallible<Talk> {
    let mut talk = Talk::connect(address)?;
    for tube in TUBES {
        talk.ask(Request::Watch { tube: tube.as_bytes() })?;
    }
    Ok(talk)
}

fn some_priority(dice: &mut Dice) -> u32 {
    u32::try_from(dice.below(PRIORITIES)).unwrap_or_default()
}

fn some_delay(dice: &mut Dice) -> u32 {
    if dice.chance(5) { HOUR_S } else { 0 }
}

const fn state_after(delay_s: u32) -> State {
    if delay_s == 0 { State::Ready } else { State::Delayed }
}
