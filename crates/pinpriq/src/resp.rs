//! A connection to a server's RESP door, for the commands on tasks and queues.
//!
//! It knows no command. It adds to the client a description of what went wrong.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use pinpriq_client::blocking::{Lost, Resp};
use pinpriq_proto::wire::resp::{Value, Words};

use crate::endpoint::{self, Endpoint};
use crate::environment::{Credentials, PASSWORD, TOKEN, USER, credentials};
use crate::exit::Failure;
use crate::machine;

/// How long it takes to see that nothing has arrived.
const GLANCE: Duration = Duration::from_millis(1);

/// How long a server may take to accept a connection, and to greet.
const OPENING: Duration = Duration::from_secs(10);

/// One connection, which speaks RESP3.
#[derive(Debug)]
pub(crate) struct Client {
    resp: Resp,
    address: String,
}

/// Why there is no proper reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    /// There is no connection, or it was lost. It is unknown whether the request was carried out.
    Lost(String),
    /// The server answered with a refusal: a word for programs, then a sentence.
    Refused(String),
}

/// Returns the first command, which signs in if the environment says as whom. The connection gets
/// the name of the machine and the number of the process, so that the list of leases shows who
/// holds them.
fn greeting() -> Words {
    let words = match credentials() {
        None => Words::new("HELLO 3"),
        Some(Credentials { user, secret, .. }) => {
            Words::new("HELLO 3 AUTH").bytes(user).bytes(secret)
        }
    };
    words.bytes("SETNAME").bytes(format!("{}-{}", machine::name(), std::process::id()))
}

/// Adds to a refusal how to sign in, if that is what is missing.
pub(crate) fn with_way_in(sentence: String) -> String {
    if !sentence.starts_with("NOAUTH") {
        return sentence;
    }
    format!("{sentence} Set {TOKEN}, or {USER} and {PASSWORD}, in the environment")
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Lost(sentence) => Self::on_the_way(sentence),
            Trouble::Refused(sentence) => Self::refused(sentence),
        }
    }
}

impl Client {
    /// Connects to a server.
    pub(crate) fn open(endpoint: &Endpoint) -> Result<Self, Trouble> {
        let (mut client, _) = Self::greeted(endpoint, &greeting())?;
        client.limit_waiting(None);
        Ok(client)
    }

    /// Asks a server whether it is there, which it tells everybody.
    pub(crate) fn ping(endpoint: &Endpoint) -> Result<Value, Trouble> {
        Self::greeted(endpoint, &Words::new("PING")).map(|(_, answer)| answer)
    }

    /// Connects to a server that has to answer this first command soon.
    fn greeted(endpoint: &Endpoint, greeting: &Words) -> Result<(Self, Value), Trouble> {
        let line = endpoint.connect(Some(OPENING)).map_err(|error| {
            Trouble::Lost(format!("no connection to {endpoint}: {}", endpoint::shown(&error)))
        })?;
        let mut client = Self { resp: Resp::over(line), address: endpoint.to_string() };
        client.limit_waiting(Some(OPENING));
        let answer = client.call(greeting).map_err(|trouble| match trouble {
            Trouble::Lost(why) => {
                let more = if endpoint.is_encrypted() { "" } else { " If it encrypts, give --tls" };
                Trouble::Lost(format!("{why}. Is this the address of the RESP door?{more}"))
            }
            refused @ Trouble::Refused(_) => refused,
        })?;
        Ok((client, answer))
    }

    /// Sends one command and waits for its answer.
    pub(crate) fn call(&mut self, words: &Words) -> Result<Value, Trouble> {
        self.resp.send([words]).map_err(|lost| self.lost(&lost))?;
        match self.reply()? {
            Value::Error(sentence) => Err(Trouble::Refused(sentence)),
            value => Ok(value),
        }
    }

    /// Sends `bytes`, which may hold several commands.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.resp.line_mut().send(bytes).map_err(|error| self.lost(&error.into()))
    }

    /// Returns the reply to the earliest command that has none yet, which may be a refusal.
    pub(crate) fn reply(&mut self) -> Result<Value, Trouble> {
        loop {
            match self.resp.reply() {
                Ok(Value::Push(_)) => {}
                Ok(Value::Error(sentence)) => return Ok(Value::Error(with_way_in(sentence))),
                reply => return reply.map_err(|lost| self.lost(&lost)),
            }
        }
    }

    /// Asks to be told which of the tasks that this connection holds are cancelled. An older server
    /// cannot tell, and that is no failure: it has no cancels.
    pub(crate) fn hear_of_cancels(&mut self) -> Result<(), Trouble> {
        match self.call(&Words::new("CLIENT CANCELS ON")) {
            Err(lost @ Trouble::Lost(_)) => Err(lost),
            _ => Ok(()),
        }
    }

    /// Returns a message that the server has sent by itself by now, if there is one. The next reply
    /// needs [another limit](Self::limit_waiting).
    pub(crate) fn said(&mut self) -> Result<Option<Vec<Value>>, Trouble> {
        self.limit_waiting(Some(GLANCE));
        match self.resp.reply() {
            Ok(Value::Push(message)) => Ok(Some(message)),
            // No request is under way.
            Ok(_) => Err(Trouble::Lost(format!("{} answers what was not asked", self.address))),
            Err(Lost::Broken(error))
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
            {
                Ok(None)
            }
            Err(lost) => Err(self.lost(&lost)),
        }
    }

    /// Treats the connection as lost if a reply takes longer than this. Without a limit it waits
    /// forever.
    pub(crate) const fn limit_waiting(&mut self, limit: Option<Duration>) {
        self.resp.line_mut().limit_waiting(limit);
    }

    /// Returns a second handle to the stream, with which another thread can end it.
    pub(crate) fn handle(&self) -> Result<TcpStream, Trouble> {
        self.resp.line().stream().try_clone().map_err(|error| self.lost(&error.into()))
    }

    /// The connection broke, or the server took too long.
    fn lost(&self, lost: &Lost) -> Trouble {
        let address = &self.address;
        Trouble::Lost(match lost {
            Lost::Closed | Lost::CutShort => format!("{address} closed the connection"),
            Lost::Malformed(malformed) => format!("{address} does not speak RESP: {malformed}"),
            Lost::Broken(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
            {
                format!("{address} does not answer")
            }
            Lost::Broken(error) => {
                format!("the connection to {address} was lost: {}", endpoint::shown(error))
            }
        })
    }
}

/// Returns the failure for a reply that such a command never gets.
pub(crate) fn unexpected() -> Failure {
    Failure::on_the_way("the answer is not one of a pinpriq server")
}
