//! The client: a handle to a server, which opens connections as they are needed.

use std::fmt;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use pinpriq_proto::wire::resp::{Value, Words};
use tokio::sync::Mutex;

use crate::attempts::{Attempts, Sending, Verdict};
use crate::clock::pause;
use crate::error::{Error, Refused};
use crate::name::Name;
use crate::opening::Opening;
use crate::options::Options;
use crate::pipe::{Broken, Pipe};
use crate::request::{Repeat, Request, WordsExt as _};
use crate::transport::{Line, Replies};
use crate::waiting::Waiting;

/// How many connections are kept for requests that wait.
const SPARE_MAX: usize = 64;

/// A client of one server, or of a cluster through one of its nodes. Clones are handles to the same
/// connections.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    opening: Opening,
    /// The connection for requests that do not wait. The lock is held while it is opened.
    pipe: Mutex<Option<Pipe>>,
    /// Connections on which nothing is under way, for requests that wait.
    spare: StdMutex<Vec<(Line, Replies)>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(self.shared.opening.options()).finish()
    }
}

impl Client {
    /// Connects to the server at `pinpriq://user:password@host:port`, or `pinpriqs://…` over TLS;
    /// all but the scheme can be left out. See [`Options::at`].
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::with(Options::at(url)?).await
    }

    /// Connects with these options. It does not try again, so that a wrong address is noticed.
    pub async fn with(options: Options) -> Result<Self, Error> {
        let client = Self::unconnected(options)?;
        client.pipe().await?;
        Ok(client)
    }

    /// Returns a client that connects with its first request. Fails only if the machine trusts no
    /// authorities and `options` want TLS.
    pub fn unconnected(options: Options) -> Result<Self, Error> {
        let opening = Opening::new(options)?;
        let shared = Shared { opening, pipe: Mutex::new(None), spare: StdMutex::default() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Sends any command that does not wait, once, and returns its reply.
    ///
    /// ```no_run
    /// # async fn example(client: pinpriq_client::Client) -> Result<(), pinpriq_client::Error> {
    /// use pinpriq_client::Words;
    ///
    /// let words = Words::new("QUEUE SET").bytes("emails").all(["ATTEMPTS", "5"]);
    /// client.call(words).await?;
    /// # Ok(()) }
    /// ```
    pub async fn call(&self, words: Words) -> Result<Value, Error> {
        self.run(&Request::new(words, Repeat::Never)).await
    }

    /// Sends several commands that do not wait in one piece, once, and returns the reply to each.
    pub async fn pipeline(&self, commands: &[Words]) -> Result<Vec<Result<Value, Refused>>, Error> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let commands: Vec<&Words> = commands.iter().collect();
        let replies = self.ask(&commands).await.map_err(|(_, error)| error)?;
        let told = |reply| match reply {
            Value::Error(text) => Err(Refused::of(&text, false)),
            value => Ok(value),
        };
        Ok(replies.into_iter().map(told).collect())
    }

    /// Has several commands carried out at one moment, all or none, and returns the reply to each.
    /// It is sent once. Refused with `EXECABORT` if one of them is refused; the message has its
    /// position, which counts from 1, and its refusal. A command that makes no sense, or cannot be
    /// part of a transaction, is refused for that reason.
    pub async fn transaction(&self, commands: &[Words]) -> Result<Vec<Value>, Error> {
        let (begin, end) = (Words::new("MULTI"), Words::new("EXEC"));
        let mut all = vec![&begin];
        all.extend(commands);
        all.push(&end);
        let mut replies = self.ask(&all).await.map_err(|(_, error)| error)?;
        match replies.pop() {
            Some(Value::Array(replies)) => Ok(replies),
            Some(Value::Error(text)) => {
                // What was wrong with a command says more than that there was something.
                let first = replies.into_iter().find_map(|reply| match reply {
                    Value::Error(text) => Some(text),
                    _ => None,
                });
                Err(Refused::of(&first.unwrap_or(text), false).into())
            }
            reply => {
                let request = Request::new(end, Repeat::Never);
                Err(request.unexpected(&reply.unwrap_or(Value::Null)))
            }
        }
    }

    /// Gives a sign of life of a member of topics. Without `lease` its lease is as long as before.
    /// Refused with `NOTFOUND` if it has ended: join again.
    pub async fn beat(
        &self,
        member: impl Into<Name>,
        lease: Option<Duration>,
    ) -> Result<(), Error> {
        let member: Name = member.into();
        let words = Words::new("BEAT").bytes(member).span("LEASE", lease);
        self.run(&Request::new(words, Repeat::Safe)).await.map(drop)
    }

    pub(crate) fn options(&self) -> &Options {
        self.shared.opening.options()
    }

    /// Opens a connection that is not shared.
    pub(crate) async fn open(&self) -> Result<(Line, Replies), Error> {
        self.shared.opening.open().await
    }

    /// The error for such a connection that broke.
    pub(crate) fn disconnected(&self, why: &impl fmt::Display) -> Error {
        self.shared.opening.disconnected(why)
    }

    /// Begins a wait of this length, or one without a limit.
    pub(crate) fn waiting(&self, wait: Option<Duration>) -> Waiting {
        Waiting::new(wait, self.options().slice())
    }

    /// Has a request carried out that does not wait.
    pub(crate) async fn run(&self, request: &Request) -> Result<Value, Error> {
        self.attempt(request, None).await
    }

    /// Has a request carried out that may wait at the server for this long, on a connection of its
    /// own. If this is dropped before its end, the connection is closed, and the server takes back
    /// what it was about to send.
    pub(crate) async fn run_waiting(
        &self,
        request: &Request,
        wait: Duration,
    ) -> Result<Value, Error> {
        self.attempt(request, Some(wait)).await
    }

    /// Sends a request, and again as often as it makes sense.
    async fn attempt(&self, request: &Request, wait: Option<Duration>) -> Result<Value, Error> {
        let mut attempts = Attempts::new(request.repeat, self.options().retry_for);
        loop {
            let sending = match wait {
                None => self.ask_one(&request.words).await,
                Some(wait) => self.ask_waiting(&request.words, wait).await,
            };
            match attempts.judge(sending) {
                Verdict::Final(result) => return result,
                Verdict::Again(span) => pause(span).await,
            }
        }
    }

    async fn ask_one(&self, words: &Words) -> Sending {
        match self.ask(&[words]).await {
            Ok(mut replies) => Sending::Answered(replies.pop().unwrap_or(Value::Null)),
            Err((false, error)) => Sending::NotSent(error),
            Err((true, error)) => Sending::Unknown(error),
        }
    }

    /// Asks over the shared connection. The error tells whether the requests may have been sent.
    async fn ask(&self, requests: &[&Words]) -> Result<Vec<Value>, (bool, Error)> {
        let pipe = self.pipe().await.map_err(|error| (false, error))?;
        pipe.ask(requests).await.map_err(|broken| match broken {
            Broken::NotSent(lost) => (false, self.shared.opening.disconnected(&lost)),
            Broken::Unknown(lost) => (true, self.shared.opening.disconnected(&lost)),
        })
    }

    /// Returns the shared connection, which is opened if it is not there.
    async fn pipe(&self) -> Result<Pipe, Error> {
        let mut pipe = self.shared.pipe.lock().await;
        if let Some(pipe) = pipe.as_ref().filter(|pipe| !pipe.is_closed()) {
            return Ok(pipe.clone());
        }
        let (line, replies) = self.shared.opening.open().await?;
        let opened = Pipe::over(line, replies, self.options().timeout);
        *pipe = Some(opened.clone());
        Ok(opened)
    }

    async fn ask_waiting(&self, words: &Words, wait: Duration) -> Sending {
        let (mut line, mut replies) = match self.idle_line().await {
            Some(idle) => idle,
            None => match self.shared.opening.open().await {
                Ok(opened) => opened,
                Err(error) => return Sending::NotSent(error),
            },
        };
        line.limit_waiting(Some(wait.saturating_add(self.options().timeout)));
        let mut bytes = Vec::new();
        words.put(&mut bytes);
        let unknown = |lost| Sending::Unknown(self.shared.opening.disconnected(&lost));
        if let Err(error) = line.send(&bytes).await {
            return unknown(error.into());
        }
        loop {
            match line.reply(&mut replies).await {
                // What the server says by itself is no reply.
                Ok(Value::Push(_)) => {}
                Ok(value) => {
                    let mut spare = self.spare();
                    if spare.len() < SPARE_MAX {
                        spare.push((line, replies));
                    }
                    return Sending::Answered(value);
                }
                Err(lost) => return unknown(lost),
            }
        }
    }

    /// Returns a connection that was used before and that the server has not closed since.
    async fn idle_line(&self) -> Option<(Line, Replies)> {
        loop {
            let (mut line, replies) = self.spare().pop()?;
            if line.is_quiet().await {
                return Some((line, replies));
            }
        }
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, Vec<(Line, Replies)>> {
        self.shared.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
