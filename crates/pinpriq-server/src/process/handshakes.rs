//! Handshakes, on a thread of their own: a signature takes as long as a hundred requests.
//!
//! The thread lets those that serve go before it. A bounded number of handshakes is under way.
//! Where there is room for no other, the oldest one ends, so those that stall keep no others out.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream as StdStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::config::DoorName;
use crate::error::ServeError;
use crate::runtime::{runtime, step_aside};
use crate::tls::files::Files;
use crate::tls::side::HandshakeError;
use crate::tls::socket::{Carried, Socket};

/// The most handshakes under way. For a further client that begins one, the oldest ends. Clients
/// that have not sent anything need no room.
const HANDSHAKES_MAX: usize = 1_024;

/// Carries out handshakes. The thread ends when this is dropped everywhere.
#[derive(Debug)]
pub(crate) struct Handshakes {
    /// The certificates and the key.
    pub(crate) files: Files,
    wanted: mpsc::Sender<Wanted>,
    room: Arc<Semaphore>,
    under_way: Arc<Mutex<UnderWay>>,
}

/// The handshakes that have room, in the order in which they began.
#[derive(Debug, Default)]
struct UnderWay {
    begun: u64,
    /// What ends each of them when it is dropped.
    ends: BTreeMap<u64, oneshot::Sender<()>>,
}

/// Room for one handshake.
struct Room {
    number: u64,
    under_way: Arc<Mutex<UnderWay>>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.ends.remove(&self.number);
    }
}

/// A handshake with its waiting caller.
struct Wanted {
    stream: StdStream,
    config: Arc<ServerConfig>,
    answer: oneshot::Sender<Result<Carried, HandshakeError>>,
}

impl Handshakes {
    /// Starts the thread.
    pub(crate) fn start(files: Files) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Runtime { source };
        let runtime = runtime().map_err(failed)?;
        let (wanted, wants) = mpsc::channel(HANDSHAKES_MAX);
        let run = move || {
            step_aside();
            runtime.block_on(carry_out(wants));
        };
        thread::Builder::new().name("tls".to_owned()).spawn(run).map_err(failed)?;
        let room = Arc::new(Semaphore::new(HANDSHAKES_MAX));
        Ok(Self { files, wanted, room, under_way: Arc::default() })
    }

    /// Waits for room for one more handshake, which the oldest one makes if there is none. Returns
    /// what says that this one has to make room.
    async fn room(&self) -> (Room, oneshot::Receiver<()>) {
        let lock = || self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if self.room.available_permits() == 0 {
            lock().ends.pop_first();
        }
        let permit = Arc::clone(&self.room).acquire_owned().await;
        let Ok(permit) = permit else { unreachable!("the room for handshakes is never closed") };
        let (end, ended) = oneshot::channel();
        let mut under_way = lock();
        let number = under_way.begun;
        under_way.begun += 1;
        under_way.ends.insert(number, end);
        let room = Room { number, under_way: Arc::clone(&self.under_way), _permit: permit };
        (room, ended)
    }

    /// Carries out a handshake with a client of this door. It ends when the caller stops waiting,
    /// who decides how long it may take.
    pub(crate) async fn shake(
        &self,
        stream: TcpStream,
        door: DoorName,
    ) -> Result<Socket, HandshakeError> {
        // A new connection may count as readable until it was looked at.
        stream.peek(&mut [0]).await?;
        let (_room, ended) = self.room().await;
        let (answer, answered) = oneshot::channel();
        let (stream, config) = (stream.into_std()?, self.files.config(door));
        let gone = || HandshakeError::Broken(io::Error::other("the thread of TLS has ended"));
        let sent = self.wanted.send(Wanted { stream, config, answer }).await;
        sent.map_err(|_| gone())?;
        let carried = tokio::select! {
            answered = answered => answered.map_err(|_| gone())??,
            _ = ended => return Err(HandshakeError::Crowded),
        };
        Ok(carried.arrive()?)
    }
}

/// Carries out handshakes until no more can come.
async fn carry_out(mut wants: mpsc::Receiver<Wanted>) {
    let mut at_work = JoinSet::new();
    loop {
        tokio::select! {
            wanted = wants.recv() => match wanted {
                Some(wanted) => drop(at_work.spawn(answer(wanted))),
                None => return,
            },
            Some(_) = at_work.join_next() => {}
        }
    }
}

async fn answer(Wanted { stream, config, mut answer }: Wanted) {
    let shaken = tokio::select! {
        shaken = shake(stream, config) => shaken,
        () = answer.closed() => return,
    };
    // The caller gave up if it took too long.
    let _ = answer.send(shaken);
}

async fn shake(stream: StdStream, config: Arc<ServerConfig>) -> Result<Carried, HandshakeError> {
    let socket = Socket::shake(TcpStream::from_std(stream)?, config).await?;
    Ok(socket.carry()?)
}
