//! A connection over which a client asks one thing after the other, at either door.

use pinpriq_proto::task::ClientId;
use pinpriq_proto::wire::resp::{DecodedReply, ReplyDecoder, Value, Words};
use pinpriq_proto::wire::{Piece, Request as WireRequest};
use pinpriq_server::config::DoorName;

/// Something to ask.
pub(crate) struct Request {
    pub(crate) bytes: Vec<u8>,
    /// How many replies come.
    pub(crate) replies: usize,
}

impl Request {
    /// These commands over RESP, one reply each.
    pub(crate) fn of(commands: &[Words]) -> Self {
        let mut bytes = Vec::new();
        for words in commands {
            words.put(&mut bytes);
        }
        Self { bytes, replies: commands.len() }
    }

    /// These requests over the pinpriq wire, with this many replies.
    pub(crate) fn of_wire(requests: &[WireRequest<'_>], replies: usize) -> Self {
        let mut bytes = Vec::new();
        for request in requests {
            assert_eq!(request.put(&mut bytes), Ok(()), "no name or payload is long here");
        }
        Self { bytes, replies }
    }
}

/// See the start of this file.
pub(crate) struct Line {
    pub(crate) door: DoorName,
    /// The node and the client there, while it is connected.
    pub(crate) at: Option<(usize, ClientId)>,
    resp: ReplyDecoder,
    wire: pinpriq_proto::wire::ReplyDecoder,
    /// Payloads of a reply over the wire that is not complete.
    payloads: Vec<Value>,
    unread: Vec<u8>,
    /// How many replies are still to come.
    awaited: usize,
    replies: Option<Vec<Value>>,
    /// What came without being asked for.
    pub(crate) pushed: Vec<Value>,
    /// How much of that came before the last of the replies.
    pub(crate) pushed_before: usize,
}

impl Line {
    pub(crate) fn new(door: DoorName) -> Self {
        Self {
            door,
            at: None,
            resp: ReplyDecoder::default(),
            wire: pinpriq_proto::wire::ReplyDecoder::default(),
            payloads: Vec::new(),
            unread: Vec::new(),
            awaited: 0,
            replies: None,
            pushed: Vec::new(),
            pushed_before: 0,
        }
    }

    /// Notes a new connection.
    pub(crate) fn connected(&mut self, at: (usize, ClientId)) {
        *self = Self { at: Some(at), replies: self.replies.take(), ..Self::new(self.door) };
    }

    /// Notes that the connection is gone. No more replies come.
    pub(crate) fn disconnected(&mut self) {
        self.at = None;
        self.awaited = 0;
    }

    /// Notes a request. Returns its bytes.
    pub(crate) fn ask(&mut self, request: Request) -> Vec<u8> {
        self.awaited = request.replies;
        self.replies = Some(Vec::new());
        request.bytes
    }

    /// Whether replies are to come.
    pub(crate) const fn waits(&self) -> bool {
        self.awaited > 0
    }

    /// The replies to the last request, once no more come. There are fewer than were asked for if
    /// the connection has ended.
    pub(crate) fn take_replies(&mut self) -> Option<Vec<Value>> {
        if self.waits() { None } else { self.replies.take() }
    }

    /// Reads bytes of replies.
    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
        while let Some(reply) = self.next() {
            if let Value::Push(_) = reply {
                self.pushed.push(reply);
                continue;
            }
            assert!(self.awaited > 0, "a reply came that was not asked for: {reply:?}");
            self.awaited -= 1;
            self.pushed_before = self.pushed.len();
            if let Some(replies) = &mut self.replies {
                replies.push(reply);
            }
        }
    }

    fn next(&mut self) -> Option<Value> {
        if self.door == DoorName::Pinpriq { self.next_of_wire() } else { self.next_of_resp() }
    }

    fn next_of_resp(&mut self) -> Option<Value> {
        match self.resp.decode(&self.unread) {
            Ok(DecodedReply::Whole { value, length }) => {
                self.unread.drain(..length);
                Some(value)
            }
            Ok(DecodedReply::Incomplete { length }) => {
                self.unread.drain(..length);
                None
            }
            Err(malformed) => panic!("a reply is malformed: {malformed}"),
        }
    }

    /// A reply of the wire, as an array of its payloads.
    fn next_of_wire(&mut self) -> Option<Value> {
        loop {
            let (length, left) = match self.wire.decode(&self.unread) {
                Piece::Incomplete { .. } => return None,
                Piece::Count { packets, length } => (length, packets),
                Piece::Packet { packet, left, length } => {
                    self.payloads.push(Value::Bulk(packet.payload.to_vec()));
                    (length, left)
                }
            };
            self.unread.drain(..length);
            if left == 0 {
                return Some(Value::Array(std::mem::take(&mut self.payloads)));
            }
        }
    }
}
