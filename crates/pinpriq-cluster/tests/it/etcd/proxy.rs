//! A relay between a client and a member, which loses answers or delivers requests late.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// What a relay does with the bytes of its connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Passes all of them on.
    Honest,
    /// Passes requests on, and loses answers.
    LosesAnswers,
    /// Does so from the first request on that has these bytes.
    LosesAnswersFrom(&'static [u8]),
    /// Keeps requests for later, and loses answers.
    KeepsRequests,
    /// Loses all of them.
    LosesAll,
}

/// See the start of this file.
#[derive(Clone)]
pub(crate) struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    mode: Mode,
    /// Requests to be passed on later, with the connections that they belong to.
    kept: Vec<(TcpStream, Vec<u8>)>,
}

impl Proxy {
    /// Relays to this member until the tests end.
    pub(crate) fn start(member: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { mode: Mode::Honest, kept: Vec::new() }));
        let proxy = Self { address, state };
        let own = proxy.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(member)) else {
                    continue;
                };
                let ends = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (requests, answers) = (own.clone(), own.clone());
                thread::spawn(move || requests.relay(client, server, true));
                thread::spawn(move || answers.relay(ends.1, ends.0, false));
            }
        });
        proxy
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.state().mode = mode;
    }

    pub(crate) fn mode(&self) -> Mode {
        self.state().mode
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn relay(&self, mut from: TcpStream, mut to: TcpStream, are_requests: bool) {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let mut state = self.state();
            if let Mode::LosesAnswersFrom(bytes) = state.mode
                && are_requests
                && buffer[..read].windows(bytes.len()).any(|window| window == bytes)
            {
                state.mode = Mode::LosesAnswers;
            }
            let passes = match state.mode {
                Mode::Honest | Mode::LosesAnswersFrom(_) => true,
                Mode::LosesAnswers => are_requests,
                Mode::KeepsRequests if are_requests => {
                    state.kept.push((to.try_clone().unwrap(), buffer[..read].to_vec()));
                    false
                }
                Mode::KeepsRequests | Mode::LosesAll => false,
            };
            drop(state);
            if passes && to.write_all(&buffer[..read]).is_err() {
                return;
            }
        }
    }

    /// Waits until a request of at least this size was kept as a whole, and loses everything else.
    pub(crate) fn keep(&self, bytes: usize) {
        for _ in 0..1_000 {
            let has = self.state().kept.iter().map(|(_, kept)| kept.len()).sum::<usize>();
            // The end of the request comes with the rest of it, or right after it.
            thread::park_timeout(Duration::from_millis(20));
            if has >= bytes {
                self.set(Mode::LosesAll);
                return;
            }
        }
        panic!("there was no request of {bytes} bytes");
    }

    /// Passes on what was kept, and everything from now on. Returns how many bytes were kept.
    pub(crate) fn release(&self) -> usize {
        let mut state = self.state();
        state.mode = Mode::Honest;
        let kept = std::mem::take(&mut state.kept);
        drop(state);
        kept.into_iter().fold(0, |bytes, (mut to, request)| {
            to.write_all(&request).unwrap();
            bytes + request.len()
        })
    }
}
