//! Opens connections: connects, encrypts, signs in.

use std::fmt::Display;

use pinpriq_tls::Peer;
use pinpriq_wire::resp::{Value, Words};
use tokio::net::TcpStream;

use crate::clock::within;
use crate::error::{Error, Refused};
use crate::options::Options;
use crate::transport::{Line, Replies};

/// A way to a server.
#[derive(Debug)]
pub(crate) struct Opening {
    options: Options,
    peer: Option<Peer>,
    place: String,
}

impl Opening {
    /// Reads the certificates of the system, if they are needed.
    pub(crate) fn new(options: Options) -> Result<Self, Error> {
        let place = options.address.place();
        match options.peer() {
            Ok(peer) => Ok(Self { options, peer, place }),
            Err(why) => Err(Error::Disconnected { server: place, why }),
        }
    }

    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }

    /// The error for a connection that could not be made, or broke.
    pub(crate) fn disconnected(&self, why: &impl Display) -> Error {
        Error::Disconnected { server: self.place.clone(), why: why.to_string() }
    }

    /// Opens a connection. Refused if nobody may sign in like this.
    pub(crate) async fn open(&self) -> Result<(Line, Replies), Error> {
        let broken = |error| self.disconnected(&error);
        let Options { address, timeout, .. } = &self.options;
        let connect = TcpStream::connect((address.host.as_str(), address.port));
        let mut line = Line::over(within(Some(*timeout), connect).await.map_err(broken)?);
        line.limit_waiting(Some(*timeout));
        if let Some(peer) = &self.peer {
            line = line.encrypt(peer).await.map_err(broken)?;
        }
        let mut bytes = Vec::new();
        self.greeting().put(&mut bytes);
        line.send(&bytes).await.map_err(broken)?;
        let mut replies = Replies::default();
        match line.reply(&mut replies).await {
            Ok(Value::Map(_)) => Ok((line, replies)),
            Ok(Value::Error(text)) => Err(Refused::of(&text, false).into()),
            Ok(_) => Err(self.disconnected(&"it does not greet as a pinpriq server does")),
            Err(lost) => Err(self.disconnected(&lost)),
        }
    }

    /// The first command, which signs in if somebody shall.
    fn greeting(&self) -> Words {
        let Options { address, name, .. } = &self.options;
        let words = match &address.password {
            None => Words::new("HELLO 3"),
            Some(password) => {
                let user = address.user.as_deref().unwrap_or("default");
                Words::new("HELLO 3 AUTH").bytes(user).bytes(password)
            }
        };
        words.given("SETNAME", name.as_ref())
    }
}
