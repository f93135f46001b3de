//! Servers to compare: how each is started, and how a task is put into it and taken out for good.
//!
//! Redis is used as a priority queue in the usual way, with a sorted set; beanstalkd and pinpriq
//! are queues. All get the same load: one put at a time on each connection, which waits for its
//! answer.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pinpriq_client::blocking::Resp;
use pinpriq_proto::wire::beanstalkd::Request;
use pinpriq_proto::wire::resp::{Value, Words};

use crate::args::Wanted;
use crate::clock::let_pass;
use crate::fault::{Fallible, Fault};
use crate::jobs::talk::{Heard, Talk};
use crate::process::Process;
use crate::wire;

/// How often to try to connect to a server that has announced its address, and how long to wait
/// before each new try.
const CONNECTS_MAX: u32 = 1_000;
const CONNECT_AGAIN: Duration = Duration::from_millis(10);

/// The protocol of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tongue {
    Pinpriq,
    Redis,
    Beanstalkd,
}

/// A server with its settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contestant {
    pub(crate) tongue: Tongue,
    /// The settings as they appear in the table.
    pub(crate) settings: &'static str,
    /// The arguments for these settings. `DIR` is replaced with the directory.
    pub(crate) arguments: &'static str,
}

/// All of them. Each server comes first with its defaults.
pub(crate) const CONTESTANTS: [Contestant; 7] = [
    Contestant { tongue: Tongue::Pinpriq, settings: "default", arguments: "" },
    Contestant { tongue: Tongue::Redis, settings: "default", arguments: "" },
    Contestant {
        tongue: Tongue::Redis,
        settings: "`appendonly yes`",
        arguments: "--appendonly yes",
    },
    Contestant {
        tongue: Tongue::Redis,
        settings: "`appendonly yes`, `appendfsync always`",
        arguments: "--appendonly yes --appendfsync always",
    },
    Contestant { tongue: Tongue::Beanstalkd, settings: "default", arguments: "" },
    Contestant { tongue: Tongue::Beanstalkd, settings: "`-b dir`", arguments: "-b DIR" },
    Contestant { tongue: Tongue::Beanstalkd, settings: "`-b dir -f0`", arguments: "-b DIR -f0" },
];

/// A running server.
pub(crate) struct Running {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
}

impl Tongue {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pinpriq => "pinpriq",
            Self::Redis => "Redis",
            Self::Beanstalkd => "beanstalkd",
        }
    }

    /// The program, unless it is the one under test.
    pub(crate) const fn program(self) -> Option<&'static str> {
        match self {
            Self::Pinpriq => None,
            Self::Redis => Some("redis-server"),
            Self::Beanstalkd => Some("beanstalkd"),
        }
    }

    /// What it logs once it listens.
    const fn ready(self) -> &'static str {
        match self {
            Self::Pinpriq => "\"door\":\"resp\"",
            Self::Redis => "Ready to accept connections",
            Self::Beanstalkd => "bind ",
        }
    }
}

impl Contestant {
    /// Starts it on a directory of its own, and waits until it listens.
    pub(crate) fn start(&self, wanted: &Wanted, directory: &Path) -> Fallible<Running> {
        let address = free_address()?;
        let port = address.port().to_string();
        let directory = directory.to_string_lossy();
        // Its output on stdout is needed too.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 1>&2", "sh"]);
        match self.tongue {
            Tongue::Pinpriq => {
                command.arg(&wanted.program.path).args(["serve", "--pinpriq", "off"]);
                command.args([
                    "--http",
                    "off",
                    "--log-format",
                    "json",
                    "--resp",
                    &address.to_string(),
                ]);
                command.args(["--data", &directory]);
            }
            Tongue::Redis => {
                command.args(["redis-server", "--bind", "127.0.0.1", "--port", &port]);
                command.args(["--dir", &directory]);
            }
            Tongue::Beanstalkd => {
                command.args(["beanstalkd", "-V", "-l", "127.0.0.1", "-p", &port]);
            }
        }
        let arguments = self.arguments.replace("DIR", &directory);
        command.args(arguments.split_whitespace());
        let mut process = Process::start(&mut command)?;
        if process.line(self.tongue.ready())?.is_none() {
            process.wait()?;
            return Err(format!("{} did not start: {}", self.tongue.name(), process.text()).into());
        }
        // beanstalkd prints its address before it listens.
        for _ in 0..CONNECTS_MAX {
            if TcpStream::connect(address).is_ok() {
                return Ok(Running { process, address });
            }
            let_pass(CONNECT_AGAIN);
        }
        Err(format!("{} does not listen: {}", self.tongue.name(), process.text()).into())
    }
}

/// Returns a free port of the loopback interface. Another process might take it before the server
/// does; then the server reports that.
fn free_address() -> Fallible<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// A connection to one of them.
pub(crate) enum Speaker {
    Pinpriq(Resp),
    Redis(Resp),
    Beanstalkd(Talk),
}

/// The outcome of an attempt to take a task out for good.
pub(crate) enum Popped {
    /// There was none.
    Nothing,
    /// This one, for good.
    Task(String),
    /// This one came, but it is not known whether for good.
    Perhaps(String),
    /// The connection ended before any answer.
    Unheard,
}

impl Speaker {
    pub(crate) fn connect(tongue: Tongue, address: SocketAddr) -> Fallible<Self> {
        Ok(match tongue {
            Tongue::Pinpriq => Self::Pinpriq(wire::connect(address)?),
            Tongue::Redis => Self::Redis(wire::connect(address)?),
            Tongue::Beanstalkd => Self::Beanstalkd(Talk::connect(address)?),
        })
    }

    /// Puts a task. After an error it is unknown whether it was put.
    pub(crate) fn put(&mut self, payload: &str, priority: u64) -> Fallible<()> {
        let reply = match self {
            Self::Pinpriq(wire) => {
                wire.ask(&Words::new("PUT q").bytes(payload).option("PRIORITY", Some(priority)))?
            }
            Self::Redis(wire) => {
                wire.ask(&Words::new("ZADD q").option("NX", Some(priority)).bytes(payload))?
            }
            Self::Beanstalkd(talk) => {
                let (priority, body) = (u32::try_from(priority)?, payload.as_bytes());
                return match talk.ask(Request::Put { priority, delay_s: 0, ttr_s: 60, body })? {
                    Heard::Line(line) if line.starts_with("INSERTED ") => Ok(()),
                    other => Err(format!("a put was answered {other:?}").into()),
                };
            }
        };
        match reply {
            Value::Bulk(_) | Value::Integer(1) => Ok(()),
            other => Err(format!("a put was answered {other:?}").into()),
        }
    }

    /// Takes a task out for good.
    pub(crate) fn pop(&mut self) -> Popped {
        let popped = match self {
            Self::Pinpriq(wire) => ask_pop(wire, "POP q"),
            Self::Redis(wire) => ask_pop(wire, "ZPOPMIN q"),
            Self::Beanstalkd(talk) => reserve_and_delete(talk),
        };
        popped.unwrap_or(Popped::Unheard)
    }
}

fn ask_pop(wire: &mut Resp, line: &str) -> Fallible<Popped> {
    popped(&wire.ask(&Words::new(line))?)
}

/// Parses the reply to a pop. The payload is the last part of a task of pinpriq, and the first of a
/// pair of Redis.
fn popped(reply: &Value) -> Fallible<Popped> {
    let strange = || Fault::from(format!("a pop was answered {reply:?}"));
    let Value::Array(parts) = reply else { return Err(strange()) };
    let payload = match parts.as_slice() {
        [] => return Ok(Popped::Nothing),
        [Value::Array(task)] => task.last(),
        [member, _] => Some(member),
        _ => None,
    };
    let payload = payload.and_then(Value::as_bytes).ok_or_else(strange)?;
    Ok(Popped::Task(String::from_utf8_lossy(payload).into_owned()))
}

fn reserve_and_delete(talk: &mut Talk) -> Fallible<Popped> {
    let (id, body) = match talk.ask(Request::ReserveWithTimeout { timeout_s: 0 })? {
        Heard::Job(id, body) => (id, body),
        Heard::Line(line) if line == "TIMED_OUT" => return Ok(Popped::Nothing),
        other => return Err(format!("a reserve was answered {other:?}").into()),
    };
    let payload = String::from_utf8_lossy(&body).into_owned();
    Ok(match talk.ask(Request::Delete { id }) {
        Ok(Heard::Line(line)) if line == "DELETED" => Popped::Task(payload),
        _ => Popped::Perhaps(payload),
    })
}
