//! The limit: a server that sends back what it receives, and requests with the same bytes as RESP.
//!
//! It is a bare loop over readiness on one thread, the least that any server on one thread must do.
//! The requests are as long as those of pinpriq; the replies are as long as the requests.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use pinpriq_load::{Answer, Dialect, Outcome, Resp, Slot, Step, Token as Receipt};

/// A receipt of usual length.
const RECEIPT: &[u8] = b"123456-1-123456";

/// The requests of pinpriq, answered by themselves.
pub(crate) struct Echo {
    requests: Vec<(Step, Vec<u8>)>,
}

impl Echo {
    /// Requests for tasks with this payload.
    pub(crate) fn new(payload: &[u8]) -> Self {
        let mut resp = Resp::new(&["jobs".to_owned()], payload, 1);
        let mut slot =
            Slot { queue: 0, priority: 0, member: 0, token: Receipt::empty(), token_queue: 0 };
        // This one is short enough.
        let _ = slot.token.set(RECEIPT);
        let requests = [Step::Put, Step::Take, Step::Ack].map(|step| {
            let mut bytes = Vec::new();
            resp.request(step, &slot, &mut bytes);
            (step, bytes)
        });
        Self { requests: requests.to_vec() }
    }

    fn bytes(&self, step: Step) -> &[u8] {
        self.requests.iter().find(|(own, _)| *own == step).map_or(&[], |(_, bytes)| bytes)
    }
}

impl Dialect for Echo {
    fn request(&mut self, step: Step, _slot: &Slot, out: &mut Vec<u8>) {
        out.extend_from_slice(self.bytes(step));
    }

    fn answer<'a>(
        &mut self,
        step: Step,
        _slot: &mut Slot,
        bytes: &'a [u8],
    ) -> Result<Answer<'a>, String> {
        let expected = self.bytes(step);
        match bytes.get(..expected.len()) {
            None => Ok(Answer::Incomplete),
            Some(same) if same == expected => {
                Ok(Answer::Whole { outcome: Outcome::Done, length: expected.len() })
            }
            Some(_) => Err("an echo of something else".to_owned()),
        }
    }
}

/// A connection, and what could not be sent back yet.
struct Client {
    stream: TcpStream,
    unsent: Vec<u8>,
}

/// Serves until the process is ended.
pub(crate) fn serve(address: SocketAddr) -> io::Result<()> {
    const LISTENER: Token = Token(usize::MAX);
    let mut poll = Poll::new()?;
    let mut listener = TcpListener::bind(address)?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut clients: Vec<Option<Client>> = Vec::new();
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 256 << 10];
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    poll.registry().register(&mut stream, Token(clients.len()), interest)?;
                    clients.push(Some(Client { stream, unsent: Vec::new() }));
                }
            } else if let Some(slot) = clients.get_mut(event.token().0)
                && let Some(client) = slot
                && client.turn(&mut buffer).is_err()
            {
                *slot = None;
            }
        }
    }
}

impl Client {
    /// Sends back what was received. The end of the stream is an error like any other.
    fn turn(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let unsent = std::mem::take(&mut self.unsent);
        self.send(&unsent)?;
        while self.unsent.is_empty() {
            match self.stream.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => {
                    self.send(&buffer[..bytes])?;
                    if bytes < buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.unsent = bytes.to_vec();
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
