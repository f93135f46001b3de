//! A connection that speaks beanstalkd's protocol, with a timeout for everything.
//!
//! Any error means that the connection is gone.

use std::net::SocketAddr;

use pinpriq_client::blocking::{Beanstalkd, Line, Lost};
use pinpriq_proto::wire::beanstalkd::{Answer, Request};

use crate::fault::Fallible;
use crate::process::GUARD;

/// A connection.
pub(crate) struct Talk(Beanstalkd);

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    /// A line without its end.
    Line(String),
    /// A job with its id.
    Job(u64, Vec<u8>),
    /// A document.
    Document(String),
    /// Bytes that are no answer, and why.
    Malformed(String),
}

impl Talk {
    pub(crate) fn connect(address: SocketAddr) -> Fallible<Self> {
        let mut line = Line::connect(address)?;
        line.limit_waiting(Some(GUARD));
        Ok(Self(Beanstalkd::over(line)))
    }

    /// Sends requests together.
    pub(crate) fn send(&mut self, requests: &[Request<'_>]) -> Fallible<()> {
        let mut bytes = Vec::new();
        for request in requests {
            request.put(&mut bytes).map_err(|error| format!("{request:?}: {error:?}"))?;
        }
        Ok(self.0.send(&bytes)?)
    }

    /// Waits for the next answer.
    pub(crate) fn answer(&mut self) -> Fallible<Heard> {
        let heard = self.0.answer(|answer| match answer {
            Answer::Line(line) => Heard::Line(text(line)),
            Answer::Job { id, body, .. } => Heard::Job(id, body.to_vec()),
            Answer::Document(document) => Heard::Document(text(document)),
        });
        match heard {
            Err(Lost::Malformed(malformed)) => Ok(Heard::Malformed(malformed)),
            heard => Ok(heard?),
        }
    }

    /// Sends one request and waits for the answer.
    pub(crate) fn ask(&mut self, request: Request<'_>) -> Fallible<Heard> {
        self.send(&[request])?;
        self.answer()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
