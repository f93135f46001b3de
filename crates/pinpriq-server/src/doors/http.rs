//! The HTTP door: the command set for everything that speaks HTTP and JSON.
//!
//! A request arrives here as a frame, with words and options told apart; `process::http` makes it
//! of what came over HTTP. The command is that of the table of commands, carried out by the same
//! function as for RESP. The answer is a head and a body in JSON.

pub(crate) mod api;
pub(crate) mod frame;
pub(crate) mod head;
pub(crate) mod json;
pub(crate) mod metrics;
mod page;
pub(crate) mod problem;
pub(crate) mod visit;
pub(crate) mod write;

use std::sync::Arc;

use pinpriq_proto::command::Step;
use pinpriq_proto::letters::Steps;
use pinpriq_proto::reply::{Output, RefusalKind};
use pinpriq_proto::time::Span;

use self::frame::{Borrowed, Read};
use self::head::{Content, Head};
use self::problem::Problem;
use super::resp::call::{Call, Shape, Talk};
use super::resp::guard::{check, check_admin_of};
use super::resp::runs::run;
use super::{DoorKind, DoorOptions};
use crate::access::audit::What;
use crate::clients::about::{Chosen, Dialect, Manners};
use crate::clients::contacts::Contacts;
use crate::config::DoorName;
use crate::facts::Facts;
use crate::home::desk::Desk;
use crate::home::door::{Door, Next};
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
    let talk = Talk { ttr_otherwise: Some(TTR_OTHERWISE), ..Talk::new(Dialect::default()) };
    Box::new(HttpDoor { talk, contacts: options.contacts.clone() })
}

/// One client's side of the door. It has one request at a time, or the lines of one batch.
struct HttpDoor {
    talk: Talk,
    contacts: Arc<Contacts>,
}

impl Door for HttpDoor {
    fn receive(&mut self, input: &[u8], desk: &mut Desk) -> Result<usize, Next> {
        let Some((frame, length)) = frame::read(input) else { return Err(Next::Incomplete) };
        let done = match frame {
            Read::Command(asked) => {
                desk.note(asked.entry);
                self.carry_out(&asked, desk)
            }
            Read::Multi(all) => {
                for asked in &all {
                    desk.count_kept(asked.entry);
                }
                desk.note(EXEC);
                self.carry_out_all(&all, desk)
            }
            Read::Server => {
                desk.note(INFO);
                check_admin_of(desk, "INFO").map(|()| {
                    desk.say_facts(|facts| with_head(&write::facts(facts)));
                })
            }
            Read::Failure => {
                desk.note(INFO);
                check_admin_of(desk, "INFO").map(|()| desk.say_facts(failure))
            }
            Read::Connections => {
                desk.note(CLIENT_LIST);
                check_admin_of(desk, "CLIENT LIST").map(|()| {
                    desk.say_clients(|lines| with_head(&write::connections(lines)));
                })
            }
            Read::EndConnection(number) => {
                desk.note(CLIENT_KILL);
                check_admin_of(desk, "CLIENT KILL").map(|()| end_connection(desk, number))
            }
            Read::Say(bytes) => {
                desk.say(bytes.to_vec());
                Ok(())
            }
        };
        if let Err(fault) = done {
            desk.count_refusal(fault.code);
            let is_line = Form::of(desk.session().dialect.get().0) == Form::Line;
            let (problem, mut out) = (Problem::from(fault), Vec::new());
            if is_line {
                problem.put(&mut out);
                out.push(b'\n');
            } else {
                problem.answer(&mut out);
            }
            desk.say(out);
        }
        if self.talk.next.is_none() { Ok(length) } else { self.talk.take_next(length) }
    }
}

impl HttpDoor {
    fn carry_out(&mut self, asked: &Borrowed<'_>, desk: &mut Desk) -> Result<(), Fault> {
        let parts = parts_of(asked)?;
        if desk.is_guarded() {
            check(desk, &TABLE[asked.entry])?;
        }
        run(asked.entry, &mut Call { desk, talk: &mut self.talk, parts: &parts })
    }

    /// Carries out several commands as one.
    fn carry_out_all(&mut self, all: &[Borrowed<'_>], desk: &mut Desk) -> Result<(), Fault> {
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
        let steps = self.talk.steps.take().unwrap_or_default();
        let Some(first) = all.first() else {
            return Err(Fault::bad("there is no command among them"));
        };
        let parts = parts_of(first)?;
        let mut call = Call { desk, talk: &mut self.talk, parts: &parts };
        match steps.decode(|command| call.ask(Shape::Plain, command)) {
            Ok(done) => done,
            Err(malformed) => unreachable!("a transaction is malformed: {malformed}"),
        }
    }
}

/// Returns an answer that says why the store has failed, or without a body if it has not.
fn failure(facts: &Facts) -> Vec<u8> {
    let mut out = Vec::new();
    match &facts.failure {
        None => Head::new(204, Content::Nothing).write(&mut out),
        Some(why) => {
            Head::new(200, Content::Octets).write(&mut out);
            out.extend_from_slice(why.as_bytes());
        }
    }
    out
}

fn end_connection(desk: &Desk, number: u64) {
    desk.tell_audit(What::Command, None, |event| {
        event.command = Some("CLIENT KILL".to_owned());
        event.detail = Some(format!("ID {number}"));
    });
    desk.say_killed(&Chosen::Id(number), |killed| {
        let mut out = Vec::new();
        if killed == 0 {
            Problem::new("NOTFOUND", "there is no such connection").answer(&mut out);
        } else {
            Head::new(204, Content::Nothing).write(&mut out);
        }
        out
    });
}

fn parts_of<'a>(asked: &'a Borrowed<'a>) -> Result<Parts<'a>, Fault> {
    let spec = &TABLE[asked.entry];
    let options = asked.options.iter().map(|(place, value)| (spec.options[*place], *value));
    let mut parts = Parts::told_apart(spec, &asked.words, options);
    parts.by_id = asked.by_id;
    for (queue, text) in &asked.done {
        parts.add_done(queue, receipt(text)?);
    }
    Ok(parts)
}

fn with_head(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Head::new(200, Content::Json).write(&mut out);
    out.extend_from_slice(body);
    out
}

impl Encode for HttpDoor {
    fn encode(
        &self,
        output: &Output,
        dialect: Dialect,
        progress: &mut usize,
        out: &mut Vec<u8>,
        room: usize,
        known: usize,
    ) -> bool {
        let extent = write::Extent { progress, most: out.len() + room, known };
        write::output(out, output, Form::of(dialect.0), &self.contacts, extent)
    }
}
