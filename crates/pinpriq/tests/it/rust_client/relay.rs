//! A relay between a client and a server that drops replies on demand.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A relay. It goes on until the process ends, but only for connections that are made to it.
pub(super) struct Relay {
    pub(super) address: String,
    to_lose: Arc<AtomicUsize>,
}

impl Relay {
    /// Begins to relay to the server at this host and port.
    pub(super) fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("pinpriq://{}", listener.local_addr().unwrap());
        let to_lose = Arc::new(AtomicUsize::new(0));
        let (server, counter) = (server.to_owned(), Arc::clone(&to_lose));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let Ok(upstream) = TcpStream::connect(&server) else { continue };
                carry(client.try_clone().unwrap(), upstream.try_clone().unwrap(), None);
                carry(upstream, client, Some(Arc::clone(&counter)));
            }
        });
        Self { address, to_lose }
    }

    /// Loses the next replies, each with its connection.
    pub(super) fn lose(&self, replies: usize) {
        self.to_lose.store(replies, Ordering::SeqCst);
    }

    /// How many replies are still to be lost.
    pub(super) fn left(&self) -> usize {
        self.to_lose.load(Ordering::SeqCst)
    }
}

/// Carries bytes from one to the other. What is to be lost is lost with both. The greeting of a
/// connection is never lost.
fn carry(mut from: TcpStream, mut to: TcpStream, to_lose: Option<Arc<AtomicUsize>>) {
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        let mut is_greeting = true;
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let take_one = |left: usize| left.checked_sub(1);
            let loses = !is_greeting
                && to_lose.as_ref().is_some_and(|left| {
                    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take_one).is_ok()
                });
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
