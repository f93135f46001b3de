//! A relay between a client and a server that drops replies and holds requests back on demand.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// A relay. It goes on until the process ends, but only for connections that are made to it.
pub(super) struct Relay {
    pub(super) address: String,
    to_lose: Arc<AtomicUsize>,
    gate: Arc<Gate>,
    sent: Arc<Mutex<Vec<u8>>>,
}

/// Whether requests are held back.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn pass(&self) {
        let is_closed = self.is_closed.lock().unwrap();
        drop(self.opened.wait_while(is_closed, |is_closed| *is_closed).unwrap());
    }
}

/// What a relay does to what it carries one way.
enum Way {
    Requests(Arc<Gate>, Arc<Mutex<Vec<u8>>>),
    Replies(Arc<AtomicUsize>),
}

impl Relay {
    /// Begins to relay to the server at this host and port.
    pub(super) fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("pinpriq://{}", listener.local_addr().unwrap());
        let to_lose = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(Gate::default());
        let (server, counter) = (server.to_owned(), Arc::clone(&to_lose));
        let held = Arc::clone(&gate);
        let sent = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&sent);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let Ok(upstream) = TcpStream::connect(&server) else { continue };
                let (from, to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
                carry(from, to, Way::Requests(Arc::clone(&held), Arc::clone(&noted)));
                carry(upstream, client, Way::Replies(Arc::clone(&counter)));
            }
        });
        Self { address, to_lose, gate, sent }
    }

    /// All that clients have sent.
    pub(super) fn sent(&self) -> String {
        String::from_utf8_lossy(&self.sent.lock().unwrap()).into_owned()
    }

    /// Loses the next replies, each with its connection.
    pub(super) fn lose(&self, replies: usize) {
        self.to_lose.store(replies, Ordering::SeqCst);
    }

    /// Holds back what clients send from now on.
    pub(super) fn hold(&self) {
        *self.gate.is_closed.lock().unwrap() = true;
    }

    /// Carries on what was held back.
    pub(super) fn let_go(&self) {
        *self.gate.is_closed.lock().unwrap() = false;
        self.gate.opened.notify_all();
    }

    /// How many replies are still to be lost.
    pub(super) fn left(&self) -> usize {
        self.to_lose.load(Ordering::SeqCst)
    }
}

/// Carries bytes from one to the other. What is to be lost is lost with both. The greeting of a
/// connection is never lost.
fn carry(mut from: TcpStream, mut to: TcpStream, way: Way) {
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        let mut is_greeting = true;
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let take_one = |left: usize| left.checked_sub(1);
            let loses = match &way {
                Way::Requests(gate, sent) => {
                    gate.pass();
                    sent.lock().unwrap().extend_from_slice(&bytes[..count]);
                    false
                }
                Way::Replies(left) => {
                    !is_greeting
                        && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take_one).is_ok()
                }
            };
            is_greeting = false;
            if loses || to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        // One of them may have gone already.
        _ = from.shutdown(Shutdown::Both);
        _ = to.shutdown(Shutdown::Both);
    });
}
