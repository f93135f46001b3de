//! RabbitMQ with a quorum queue: publish with a confirm, `basic.get`, `basic.ack`.
//!
//! A publication is persistent, and is answered when most members of the queue have it. RabbitMQ
//! does not answer an ack, so it is sent with the next publication, and a job is two requests.
//! A connection has one request under way: a channel gets one message after the other.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pinpriq_load::{Answer, Dialect, Outcome, Slot, Step};

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const FRAME_END: u8 = 0xCE;

/// The bytes of a frame around its payload.
const AROUND: usize = 8;

/// Classes and methods of AMQP 0-9-1, which is what RabbitMQ speaks.
const CONNECTION_CLOSE: (u16, u16) = (10, 50);
const CHANNEL_CLOSE: (u16, u16) = (20, 40);
const DECLARE_OK: (u16, u16) = (50, 11);
const GET_OK: (u16, u16) = (60, 71);
const GET_EMPTY: (u16, u16) = (60, 72);
const ACK: (u16, u16) = (60, 80);
const NACK: (u16, u16) = (60, 120);

/// How long declaring the queue may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a slot holds that has had a connection and has no message.
const NOTHING_HELD: &[u8] = b"-";

/// The words of RabbitMQ.
pub(crate) struct RabbitMq {
    payload: Vec<u8>,
    /// What opens a connection and a channel with confirms.
    handshake: Vec<u8>,
    publish: Vec<u8>,
    get: Vec<u8>,
}

impl RabbitMq {
    /// Declares the queue at `address`.
    pub(crate) fn open(address: SocketAddr, payload: &[u8]) -> Result<Self, String> {
        declare(address).map_err(|error| error.to_string())?;
        let mut handshake = opening();
        method(&mut handshake, 1, (85, 10), &[&[0]]);
        let mut publish = Vec::new();
        method(&mut publish, 1, (60, 40), &[&[0, 0, 0], &short("jobs"), &[0]]);
        let size = (payload.len() as u64).to_be_bytes();
        // Of all properties only the mode of delivery: persistent.
        frame(&mut publish, HEADER, 1, &[&[0, 60, 0, 0], &size, &[0x10, 0, 2]]);
        frame(&mut publish, BODY, 1, &[payload]);
        let mut get = Vec::new();
        method(&mut get, 1, (60, 70), &[&[0, 0], &short("jobs"), &[0]]);
        Ok(Self { payload: payload.to_vec(), handshake, publish, get })
    }

    /// Reads the message that follows a `get-ok`, and notes its tag.
    fn message(&self, slot: &mut Slot, ok: &Frame<'_>, frames: &mut Frames<'_>) -> Read {
        let (Some(_), Some(body)) = (frames.next(), frames.next()) else { return Ok(None) };
        if body.kind != BODY || body.payload != self.payload {
            return Err("a message with another payload".to_owned());
        }
        let tag = ok.payload.get(4..12).ok_or("a get-ok without a tag")?;
        slot.token.set(tag)?;
        Ok(Some(()))
    }
}

/// What was read, unless more bytes are needed.
type Read = Result<Option<()>, String>;

impl Dialect for RabbitMq {
    fn request(&mut self, step: Step, slot: &Slot, out: &mut Vec<u8>) {
        match step {
            Step::Put => {
                match slot.token.bytes() {
                    [] => out.extend_from_slice(&self.handshake),
                    NOTHING_HELD => {}
                    tag => method(out, 1, ACK, &[tag, &[0]]),
                }
                out.extend_from_slice(&self.publish);
            }
            _ => out.extend_from_slice(&self.get),
        }
    }

    fn answer<'a>(
        &mut self,
        _step: Step,
        slot: &mut Slot,
        bytes: &'a [u8],
    ) -> Result<Answer<'a>, String> {
        let mut frames = Frames { rest: bytes };
        while let Some(frame) = frames.next() {
            let outcome = match frame.method() {
                ACK => Outcome::Done,
                NACK => Outcome::Refused(b"NACK"),
                GET_EMPTY => {
                    slot.token.set(NOTHING_HELD)?;
                    Outcome::Empty
                }
                GET_OK => match self.message(slot, &frame, &mut frames)? {
                    Some(()) => Outcome::Done,
                    None => return Ok(Answer::Incomplete),
                },
                CONNECTION_CLOSE | CHANNEL_CLOSE => return Err(frame.text()),
                // Answers to the opening.
                _ => continue,
            };
            return Ok(Answer::Whole { outcome, length: bytes.len() - frames.rest.len() });
        }
        Ok(Answer::Incomplete)
    }
}

/// A frame that was received.
struct Frame<'a> {
    kind: u8,
    payload: &'a [u8],
}

impl Frame<'_> {
    fn method(&self) -> (u16, u16) {
        match self.payload {
            [a, b, c, d, ..] if self.kind == METHOD => {
                (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]))
            }
            _ => (0, 0),
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(self.payload.get(6..).unwrap_or_default()).into_owned()
    }
}

/// The whole frames at the front of some bytes.
struct Frames<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let [kind, _, _, a, b, c, d, ..] = *self.rest else { return None };
        let size = u32::from_be_bytes([a, b, c, d]) as usize;
        let (frame, rest) = self.rest.split_at_checked(size + AROUND)?;
        self.rest = rest;
        Some(Frame { kind, payload: &frame[AROUND - 1..AROUND - 1 + size] })
    }
}

/// What opens a connection and a channel, all at once.
fn opening() -> Vec<u8> {
    let mut out = b"AMQP\x00\x00\x09\x01".to_vec();
    let answer = b"\x00guest\x00guest";
    let words: &[&[u8]] = &[&[0; 4], &short("PLAIN"), &[0, 0, 0, 12], answer, &short("en_US")];
    method(&mut out, 0, (10, 11), words);
    // At most 2,047 channels, frames of 128 KiB, no heartbeats.
    method(&mut out, 0, (10, 31), &[&[7, 255, 0, 2, 0, 0, 0, 0]]);
    method(&mut out, 0, (10, 40), &[&short("/"), &[0, 0]]);
    method(&mut out, 1, (20, 10), &[&[0]]);
    out
}

/// Declares the quorum queue, and waits for it.
fn declare(address: SocketAddr) -> Result<(), Box<dyn std::error::Error>> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut out = opening();
    let mut table = short("x-queue-type");
    table.extend_from_slice(b"S\x00\x00\x00\x06quorum");
    let length = u32::try_from(table.len())?.to_be_bytes();
    let durable = &[2];
    method(&mut out, 1, (50, 10), &[&[0, 0], &short("jobs"), durable, &length, &table]);
    stream.write_all(&out)?;
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let bytes = stream.read(&mut piece)?;
        if bytes == 0 {
            return Err("RabbitMQ has closed the connection".into());
        }
        read.extend_from_slice(&piece[..bytes]);
        for frame in (Frames { rest: &read }) {
            match frame.method() {
                DECLARE_OK => return Ok(()),
                CONNECTION_CLOSE | CHANNEL_CLOSE => return Err(frame.text().into()),
                _ => {}
            }
        }
    }
}

fn method(out: &mut Vec<u8>, channel: u16, (class, number): (u16, u16), parts: &[&[u8]]) {
    let name = [class.to_be_bytes(), number.to_be_bytes()].concat();
    frame(out, METHOD, channel, &[&[name.as_slice()], parts].concat());
}

fn frame(out: &mut Vec<u8>, kind: u8, channel: u16, parts: &[&[u8]]) {
    let payload = parts.concat();
    out.push(kind);
    out.extend_from_slice(&channel.to_be_bytes());
    out.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(&payload);
    out.push(FRAME_END);
}

/// A short string: its length in one byte, and its bytes.
fn short(text: &str) -> Vec<u8> {
    let mut out = vec![u8::try_from(text.len()).unwrap_or(u8::MAX)];
    out.extend_from_slice(text.as_bytes());
    out
}
