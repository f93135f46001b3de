//! Handshakes, on a thread of their own: a signature takes as long as a hundred requests.
//!
//! The thread lets those that serve go before it. A bounded number of handshakes is under way.

use std::io;
use std::net::TcpStream as StdStream;
use std::sync::Arc;
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

/// The most handshakes under way. Further clients that have begun one wait. Those that have not
/// sent anything need no room.
const HANDSHAKES_MAX: usize = 1_024;

/// Carries out handshakes. The thread ends when nobody has this any more.
#[derive(Debug)]
pub(crate) struct Handshakes {
    /// The certificates and the key.
    pub(crate) files: Files,
    wanted: mpsc::Sender<Wanted>,
    room: Arc<Semaphore>,
}

/// Room for one handshake.
type Room = OwnedSemaphorePermit;

/// A handshake that somebody waits for.
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
        Ok(Self { files, wanted, room: Arc::new(Semaphore::new(HANDSHAKES_MAX)) })
    }

    /// Waits for room for one more handshake.
    async fn room(&self) -> Room {
        let room = Arc::clone(&self.room).acquire_owned().await;
        let Ok(room) = room else { unreachable!("nobody closes the room for handshakes") };
        room
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
        let _room = self.room().await;
        let (answer, answered) = oneshot::channel();
        let (stream, config) = (stream.into_std()?, self.files.config(door));
        let gone = || HandshakeError::Broken(io::Error::other("the thread of TLS has ended"));
        let sent = self.wanted.send(Wanted { stream, config, answer }).await;
        sent.map_err(|_| gone())?;
        let carried = answered.await.map_err(|_| gone())??;
        Ok(carried.arrive()?)
    }
}

/// Carries out handshakes until nobody can want any more.
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
    // Nobody waits any more if it took too long.
    let _ = answer.send(shaken);
}

async fn shake(stream: StdStream, config: Arc<ServerConfig>) -> Result<Carried, HandshakeError> {
    let socket = Socket::shake(TcpStream::from_std(stream)?, config).await?;
    Ok(socket.carry()?)
}
