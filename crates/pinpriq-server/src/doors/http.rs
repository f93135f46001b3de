//! The HTTP door: the command set for everything that speaks HTTP and JSON.
//!
//! A request arrives here as a value, with words and options told apart: see [`exchange`]. The
//! command is that of the table of commands, carried out by the same function as for RESP. The
//! answer is a head and a body in JSON, or the reply as it is.

pub(crate) mod api;
pub(crate) mod backups;
pub(crate) mod exchange;
pub(crate) mod metrics;
mod page;
pub(crate) mod problem;
pub(crate) mod visit;
pub(crate) mod write;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_proto::command::{Done, Step};
use pinpriq_proto::letters::Steps;
use pinpriq_proto::reply::{Output, RefusalKind};
use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::Span;

use self::exchange::{Asked, AskedDone, Content, Exchange, Head, Question};
use self::problem::Problem;
use self::visit::Caller;
use super::resp::call::{Call, Talk};
use super::resp::guard::{check, check_admin_of};
use super::resp::runs::run;
use super::resp::transaction::ask_steps;
use super::{DoorKind, DoorOptions, begin_at};
use crate::access::audit::What;
use crate::clients::about::{Chosen, Dialect, Manners};
use crate::clients::contacts::Contacts;
use crate::config::DoorName;
use crate::facts::Facts;
use crate::home::desk::Desk;
use crate::home::door::{Door, Next};
use crate::host::shard::Shard;
use crate::session::Session;
use crate::session::outbox::Encode;
use pinpriq_proto::request::fault::Fault;
use pinpriq_proto::request::form::Form;
use pinpriq_proto::request::parts::{Parts, receipt};
use pinpriq_proto::request::table::TABLE;
use pinpriq_proto::request::table::places::{place_of, place_of_sub};

/// The TTR of a lease if neither the request nor the task nor the queue has one. Connections mean
/// nothing over HTTP, so no lease lives as long as one.
pub(crate) const TTR_OTHERWISE: Span = Span::from_ms(30_000);

/// The commands that other requests count as, by their places in the table.
const EXEC: usize = place_of("EXEC");
const INFO: usize = place_of("INFO");
const CLIENT_LIST: usize = place_of_sub("CLIENT", "LIST");
const CLIENT_KILL: usize = place_of_sub("CLIENT", "KILL");

/// The kind of this door.
pub(super) static KIND: DoorKind =
    DoorKind { name: DoorName::Http, redirects: false, signs_in: true, moves: true, manners, open };

fn manners(_: &DoorOptions) -> Manners {
    Manners { tells_refusals: true, waits_for_room: false, groups_per_turn: 1, requeues: true }
}

fn open(options: &DoorOptions, _: Dialect) -> Box<dyn Door> {
    Box::new(HttpDoor::new(options, Rc::default()))
}

/// Begins with a client known to the shard, which came from this address. Its requests come as
/// visits.
pub(crate) fn begin(
    shard: Rc<Shard>,
    who: (ClientId, Rc<Session>),
    peer: SocketAddr,
    options: &DoorOptions,
) -> Caller {
    let exchange = Rc::<Exchange>::default();
    let door = Box::new(HttpDoor::new(options, exchange.clone()));
    let client = begin_at(shard, who, (&KIND, door, peer), options);
    Caller { client, exchange }
}

/// One client's side of the door. It has one request at a time, or the lines of one batch. Each
/// byte of its input stands for a question.
struct HttpDoor {
    talk: Talk,
    contacts: Arc<Contacts>,
    exchange: Rc<Exchange>,
}

impl Door for HttpDoor {
    fn receive(&mut self, _: &[u8], desk: &mut Desk) -> Result<usize, Next> {
        let question = self.exchange.questions.borrow_mut().pop_front();
        let Some(question) = question else { return Err(Next::Incomplete) };
        if let Err(fault) = self.receive_one(&question, desk) {
            desk.count_refusal(fault.code);
            self.refuse(fault.into(), desk);
        }
        if self.talk.next.is_some() {
            self.exchange.questions.borrow_mut().push_front(question);
            return self.talk.take_next(1);
        }
        self.exchange.note_received();
        Ok(1)
    }
}

impl HttpDoor {
    fn new(options: &DoorOptions, exchange: Rc<Exchange>) -> Self {
        let talk = Talk { ttr_otherwise: Some(TTR_OTHERWISE), ..Talk::new(Dialect::default()) };
        Self { talk, contacts: options.contacts.clone(), exchange }
    }

    fn receive_one(&mut self, question: &Question, desk: &mut Desk) -> Result<(), Fault> {
        match question {
            Question::Command(asked) => {
                desk.note(asked.entry);
                self.carry_out(asked, desk)
            }
            Question::Multi(all) => {
                for asked in all {
                    desk.count_kept(asked.entry);
                }
                desk.note(EXEC);
                self.carry_out_all(all, desk)
            }
            Question::Server(more) => {
                desk.note(INFO);
                check_admin_of(desk, "INFO")?;
                let (exchange, more) = (self.exchange.clone(), more.clone());
                desk.say_facts(move |facts| {
                    exchange.ok();
                    write::facts(facts, &more)
                });
                Ok(())
            }
            Question::Health => {
                desk.note(INFO);
                check_admin_of(desk, "INFO")?;
                let exchange = self.exchange.clone();
                desk.say_facts(move |facts| health(facts, &exchange));
                Ok(())
            }
            Question::Connections => {
                desk.note(CLIENT_LIST);
                check_admin_of(desk, "CLIENT LIST")?;
                let exchange = self.exchange.clone();
                desk.say_clients(move |lines| {
                    exchange.ok();
                    write::connections(lines)
                });
                Ok(())
            }
            Question::EndConnection(number) => {
                desk.note(CLIENT_KILL);
                check_admin_of(desk, "CLIENT KILL")?;
                self.end_connection(desk, *number);
                Ok(())
            }
            Question::Refused(problem) => {
                self.refuse(problem.clone(), desk);
                Ok(())
            }
        }
    }

    /// Answers with a problem.
    fn refuse(&self, problem: Problem, desk: &Desk) {
        let mut out = Vec::new();
        match self.exchange.form.get() {
            Form::Value => return self.exchange.note_refused(problem),
            Form::Line => {
                problem.put(&mut out);
                out.push(b'\n');
            }
            _ => problem.answer(&self.exchange, &mut out),
        }
        desk.say(out);
    }

    fn carry_out(&mut self, asked: &Asked, desk: &mut Desk) -> Result<(), Fault> {
        let words: Vec<&[u8]> = asked.words.iter().map(Vec::as_slice).collect();
        let parts = parts_of(asked, &words)?;
        if desk.is_guarded() {
            check(desk, &TABLE[asked.entry])?;
        }
        run(asked.entry, &mut Call { desk, talk: &mut self.talk, parts: &parts })
    }

    /// Carries out several commands as one.
    fn carry_out_all(&mut self, all: &[Asked], desk: &mut Desk) -> Result<(), Fault> {
        self.talk.steps = Some(Steps::default());
        for asked in all {
            let done = self.carry_out(asked, desk);
            if let (Err(fault), Some(steps)) = (done, &mut self.talk.steps) {
                if fault.code != RefusalKind::BadArgument.into() {
                    self.talk.steps = None;
                    return Err(fault);
                }
                steps.push(&Step::Bad(&fault.sentence));
            }
        }
        ask_steps(&mut self.talk, desk)
    }

    fn end_connection(&self, desk: &Desk, number: u64) {
        desk.tell_audit(What::Command, None, |event| {
            event.command = Some("CLIENT KILL".to_owned());
            event.detail = Some(format!("ID {number}"));
        });
        let exchange = self.exchange.clone();
        desk.say_killed(&Chosen::Id(number), move |killed| {
            let mut out = Vec::new();
            if killed == 0 {
                let unknown = Problem::new("NOTFOUND", "there is no such connection");
                unknown.answer(&exchange, &mut out);
            } else {
                exchange.head(Head::new(204, Content::Nothing));
            }
            out
        });
    }
}

/// Returns an answer that says why the store has failed, or without a body if it has not.
fn health(facts: &Facts, exchange: &Exchange) -> Vec<u8> {
    let mut out = Vec::new();
    match &facts.failure {
        None => exchange.head(Head::new(204, Content::Nothing)),
        Some(why) => {
            let failed = Problem::new("STORE", format!("the store has failed: {why}"));
            failed.answer(exchange, &mut out);
        }
    }
    out
}

/// Returns a command as the parts of a request. Its words stand apart.
fn parts_of<'a>(asked: &'a Asked, words: &'a [&'a [u8]]) -> Result<Parts<'a>, Fault> {
    let spec = &TABLE[asked.entry];
    let options = asked.options.iter().map(|(place, value)| (spec.options[*place], &**value));
    let mut parts = Parts::told_apart(spec, words, options);
    parts.by_id = asked.by_id;
    for AskedDone { queue, receipt: text, result } in &asked.done {
        let (receipt, result) = (receipt(text)?, result.as_deref());
        parts.add_done(Done { queue, receipt, result });
    }
    Ok(parts)
}

impl Encode for HttpDoor {
    fn encode(
        &self,
        output: &Output,
        _: Dialect,
        progress: &mut usize,
        out: &mut Vec<u8>,
        room: usize,
        known: usize,
    ) -> bool {
        let extent = write::Extent { progress, most: out.len() + room, known };
        let with = write::With { exchange: &self.exchange, contacts: &self.contacts };
        write::output(out, output, &with, extent)
    }
}

#[cfg(test)]
mod tests;
