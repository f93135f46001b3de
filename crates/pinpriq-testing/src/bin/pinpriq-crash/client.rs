//! A client of pinpriq that records all its requests and the answers it receives.

use std::net::SocketAddr;

use pinpriq_client::blocking::Resp;
use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_testing::history::{Event, Outcome};

use crate::fault::Fallible;
use crate::ledger::Ledger;
use crate::wire;
use pinpriq_testing::history::request::{Request, check_kept, outcome};

/// A connection with its number in the history.
pub(crate) struct Client<'a> {
    wire: Resp,
    ledger: &'a Ledger,
    number: u64,
}

/// The outcome of requests that were sent together.
pub(crate) enum Heard {
    /// Everything was answered.
    All(Vec<Outcome>),
    /// The connection ended after these answers.
    Cut(Vec<Outcome>),
}

impl<'a> Client<'a> {
    /// Connects, or returns none if no server listens there.
    pub(crate) fn connect(address: SocketAddr, ledger: &'a Ledger) -> Option<Self> {
        let wire = wire::connect(address).ok()?;
        Some(Self { wire, ledger, number: ledger.client() })
    }

    /// Sends requests together and waits for all answers. Only failures of the harness are errors;
    /// a connection that ends is not.
    pub(crate) fn ask(&mut self, requests: &[Request]) -> Fallible<Heard> {
        let mut calls = Vec::new();
        for request in requests {
            calls.push(self.ledger.invoke(self.number, request.operation.clone())?);
        }
        let mut outcomes = Vec::new();
        let sent = self.wire.send(requests.iter().flat_map(Request::words)).is_ok();
        for (request, call) in requests.iter().zip(&calls) {
            let reply = if sent { self.reply(request)? } else { None };
            let Some(reply) = reply else { break };
            let outcome = outcome(&request.operation, &reply)?;
            self.ledger.answer(*call, outcome.clone())?;
            outcomes.push(outcome);
        }
        if outcomes.len() == calls.len() {
            return Ok(Heard::All(outcomes));
        }
        for call in calls.into_iter().skip(outcomes.len()) {
            self.ledger.answer(call, Outcome::Unknown)?;
        }
        self.ledger.event(Event::ConnectionClosed { client: self.number })?;
        Ok(Heard::Cut(outcomes))
    }

    /// Returns the reply to a request, or none if the connection ended.
    fn reply(&mut self, request: &Request) -> Fallible<Option<Value>> {
        for _ in &request.parts {
            match self.wire.reply() {
                Ok(reply) => check_kept(request, &reply)?,
                Err(_) => return Ok(None),
            }
        }
        Ok(self.wire.reply().ok())
    }

    /// Sends one request. Returns none if the connection ended.
    pub(crate) fn ask_one(&mut self, request: Request) -> Fallible<Option<Outcome>> {
        match self.ask(&[request])? {
            Heard::All(mut outcomes) => Ok(outcomes.pop()),
            Heard::Cut(_) => Ok(None),
        }
    }

    /// Sends a question that changes nothing, and does not record it.
    pub(crate) fn look(&mut self, words: &Words) -> Fallible<Value> {
        Ok(self.wire.ask(words)?)
    }

    /// Closes the connection.
    pub(crate) fn close(self) -> Fallible<()> {
        self.ledger.event(Event::ConnectionClosed { client: self.number })
    }
}
