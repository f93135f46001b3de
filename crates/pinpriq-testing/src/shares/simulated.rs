//! A simulated server for scenarios: no socket, no thread, and a clock that the scenario moves.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_proto::limits::Limits;
use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::wire::resp::{DecodedReply, ReplyDecoder, Value, Words};
use pinpriq_server::clock::Clock;
use pinpriq_server::config::{Config, DoorName};
use pinpriq_store::{Durable, Journal, JournalOptions, MemoryStore, Runner, Store};

use super::{Fault, Server};
use crate::faulty_disk::{CrashPolicy, FaultyDisk};
use crate::server::Simulation;

const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);

/// How many bytes of requests come at once.
const FED_BYTES: usize = 32 << 10;

/// A clock that stands still until it is moved.
struct Hands(Cell<Timestamp>);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        self.0.get()
    }

    fn ahead_of_wall(&self) -> i64 {
        0
    }

    fn until(&self, _: Timestamp) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        unreachable!("nothing waits in a simulation: the scenario says what is due")
    }
}

/// See the start of this file.
pub struct Simulated {
    clock: Rc<Hands>,
    /// What a kill leaves. Without a disk nothing is kept.
    disk: Option<FaultyDisk>,
    simulation: Simulation,
    client: ClientId,
    decoder: ReplyDecoder,
    unread: Vec<u8>,
}

impl Simulated {
    /// A server without tasks. One that is killed must keep what it has.
    pub fn new(keeps: bool) -> Result<Self, Fault> {
        let clock = Rc::new(Hands(Cell::new(START)));
        let disk = keeps.then(|| FaultyDisk::new(1));
        let (simulation, client) = open(&clock, disk.as_ref())?;
        let (decoder, unread) = (ReplyDecoder::default(), Vec::new());
        Ok(Self { clock, disk, simulation, client, decoder, unread })
    }

    /// Reads what has come, up to so many replies.
    fn hear(&mut self, wanted: usize, replies: &mut Vec<Value>) -> Result<(), Fault> {
        loop {
            self.simulation.run();
            if self.simulation.drain(self.client, usize::MAX, &mut self.unread) == 0 {
                break;
            }
        }
        let mut read = 0;
        while replies.len() < wanted {
            match self.decoder.decode(&self.unread[read..]) {
                Ok(DecodedReply::Whole { value, length }) => {
                    read += length;
                    replies.push(value);
                }
                Ok(DecodedReply::Incomplete { length }) => {
                    read += length;
                    break;
                }
                Err(malformed) => return Err(format!("a reply is malformed: {malformed}")),
            }
        }
        self.unread.drain(..read);
        Ok(())
    }
}

/// Starts a server and connects a client.
fn open(clock: &Rc<Hands>, disk: Option<&FaultyDisk>) -> Result<(Simulation, ClientId), Fault> {
    let store: Box<dyn Store> = match disk {
        None => Box::new(MemoryStore::new()),
        Some(disk) => {
            let options = JournalOptions::default();
            let journal = Journal::open(Arc::new(disk.clone()), options, Runner::Inline);
            Box::new(journal.map_err(|error| error.to_string())?)
        }
    };
    let opened = Durable::open(store, Limits::default(), clock.now(), 1);
    let (durable, _) = opened.map_err(|error| error.to_string())?;
    let shown: Rc<dyn Clock> = Rc::clone(clock) as Rc<dyn Clock>;
    let mut simulation = Simulation::new(durable, &Config::default(), &shown, None);
    let client = simulation.connect(DoorName::Resp);
    Ok((simulation, client))
}

impl Server for Simulated {
    fn ask(&mut self, requests: &[Words]) -> Result<Vec<Value>, Fault> {
        let mut bytes = Vec::new();
        for words in requests {
            words.put(&mut bytes);
        }
        let mut replies = Vec::new();
        for some in bytes.chunks(FED_BYTES) {
            if !self.simulation.reads_from(self.client) {
                return Err("the server reads no more".to_owned());
            }
            self.simulation.feed(self.client, some);
            self.hear(requests.len(), &mut replies)?;
        }
        if replies.len() == requests.len() {
            return Ok(replies);
        }
        Err(format!("{} of {} requests were answered", replies.len(), requests.len()))
    }

    fn now_us(&self) -> u64 {
        self.clock.now().ms() * 1_000
    }

    fn wait_until_us(&mut self, at_us: u64) -> Result<(), Fault> {
        let wait_ms = at_us.saturating_sub(self.now_us()).div_ceil(1_000);
        self.clock.0.set(self.clock.now().after(Span::from_ms(wait_ms)));
        self.simulation.tick();
        self.simulation.run();
        Ok(())
    }

    fn restart(&mut self) -> Result<(), Fault> {
        let Some(disk) = &self.disk else { return Err("nothing would be left".to_owned()) };
        disk.crash(CrashPolicy::KeepAll);
        (self.simulation, self.client) = open(&self.clock, Some(disk))?;
        (self.decoder, self.unread) = (ReplyDecoder::default(), Vec::new());
        Ok(())
    }

    fn slowness(&self) -> u64 {
        1
    }
}
