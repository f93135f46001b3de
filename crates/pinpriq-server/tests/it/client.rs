//! A client of the pinpriq protocol that writes and reads its bytes by hand, so that nothing is
//! tested with the code that it tests.

use std::io;
use std::net::SocketAddr;

use pinpriq_server::Server;
use pinpriq_server::config::DoorName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use crate::line::{self, Line};
use crate::world::Visitor;

/// A key and a payload.
pub(crate) type Packet = (Vec<u8>, Vec<u8>);

/// A queue that no test pushes to: popping from it tells when all before it has been done.
const FENCE: &[u8] = b"\x50\x00\x05fence";

/// One connection.
pub(crate) struct Client {
    pub(crate) stream: Line,
}

/// The bytes of a push.
pub(crate) fn push_bytes(
    queue: &[u8],
    ttl_ms: u16,
    priority: u8,
    key: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = vec![0x70];
    bytes.extend(length_bytes(queue));
    bytes.extend(ttl_ms.to_be_bytes());
    bytes.push(priority);
    bytes.extend(length_bytes(key));
    bytes.extend(length_bytes(payload));
    bytes.extend([key, payload, queue].concat());
    bytes
}

/// The bytes of a pop (`P`), a subscribe (`s`) or an unsubscribe (`u`).
pub(crate) fn named_bytes(operation: u8, queue: &[u8]) -> Vec<u8> {
    let mut bytes = vec![operation];
    bytes.extend(length_bytes(queue));
    bytes.extend(queue);
    bytes
}

/// The bytes of a reply or counted delivery.
pub(crate) fn frame_bytes(packets: &[Packet]) -> Vec<u8> {
    let mut bytes = u16::try_from(packets.len()).unwrap().to_be_bytes().to_vec();
    for (key, payload) in packets {
        bytes.extend(length_bytes(key));
        bytes.extend(length_bytes(payload));
        bytes.extend([&key[..], payload].concat());
    }
    bytes
}

fn length_bytes(bytes: &[u8]) -> [u8; 2] {
    u16::try_from(bytes.len()).unwrap().to_be_bytes()
}

impl Visitor for Client {
    fn door(server: &Server) -> Option<SocketAddr> {
        line::address(server, DoorName::Pinpriq)
    }

    async fn visit(address: SocketAddr) -> Self {
        Self::connect(address).await
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self { stream: Line::connect(address).await }
    }

    /// A client whose socket holds little that it has not read.
    pub(crate) async fn connect_narrow(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(128 << 10).unwrap();
        Self { stream: Line::over(socket.connect(address).await.unwrap()).await }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Pushes a packet that lives for a minute.
    pub(crate) async fn push(&mut self, queue: &str, priority: u8, key: &str, payload: &str) {
        self.push_for(60_000, queue, priority, key, payload).await;
    }

    /// Pushes a packet that lives for this many milliseconds.
    pub(crate) async fn push_for(
        &mut self,
        ttl_ms: u16,
        queue: &str,
        priority: u8,
        key: &str,
        payload: &str,
    ) {
        let (queue, key, payload) = (queue.as_bytes(), key.as_bytes(), payload.as_bytes());
        self.send(&push_bytes(queue, ttl_ms, priority, key, payload)).await;
    }

    /// Pops, and returns the payloads.
    pub(crate) async fn pop(&mut self, queue: &str) -> Vec<String> {
        self.send(&named_bytes(b'P', queue.as_bytes())).await;
        self.payloads().await
    }

    /// Pops, and returns keys and payloads.
    pub(crate) async fn pop_packets(&mut self, queue: &str) -> Vec<Packet> {
        self.send(&named_bytes(b'P', queue.as_bytes())).await;
        self.frame().await
    }

    pub(crate) async fn subscribe(&mut self, queue: &str) {
        self.send(&named_bytes(b's', queue.as_bytes())).await;
    }

    pub(crate) async fn unsubscribe(&mut self, queue: &str) {
        self.send(&named_bytes(b'u', queue.as_bytes())).await;
    }

    /// Gives this number of credits.
    pub(crate) async fn ready(&mut self, credits: usize) {
        self.send(&vec![0x41; credits]).await;
    }

    pub(crate) async fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).await.unwrap();
        bytes
    }

    /// Reads a number of two bytes.
    async fn length(&mut self) -> usize {
        let bytes = self.bytes(2).await;
        usize::from(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Reads one reply or counted delivery.
    pub(crate) async fn frame(&mut self) -> Vec<Packet> {
        let count = self.length().await;
        let mut packets = Vec::new();
        for _ in 0..count {
            packets.push(self.packet().await);
        }
        packets
    }

    /// Reads one packet.
    pub(crate) async fn packet(&mut self) -> Packet {
        let key = self.length().await;
        let payload = self.length().await;
        (self.bytes(key).await, self.bytes(payload).await)
    }

    /// Reads one reply or counted delivery, and returns its payloads.
    pub(crate) async fn payloads(&mut self) -> Vec<String> {
        let packets = self.frame().await;
        packets.into_iter().map(|(_, payload)| String::from_utf8(payload).unwrap()).collect()
    }

    /// Waits until everything sent so far has been done, and checks that nothing else was sent to
    /// this client meanwhile.
    pub(crate) async fn fence(&mut self) {
        self.send(FENCE).await;
        assert_eq!(self.frame().await, [], "an unexpected frame");
    }

    /// Like `fence`, and returns `false` if the server has closed.
    pub(crate) async fn try_fence(&mut self) -> bool {
        let mut answer = [1; 2];
        let sent = self.stream.write_all(FENCE).await.is_ok() && self.stream.flush().await.is_ok();
        sent && self.stream.read_exact(&mut answer).await.is_ok() && answer == [0; 2]
    }

    /// Whether nothing has arrived that was not read.
    pub(crate) fn is_silent(&mut self) -> bool {
        let read = self.stream.read_now(&mut Vec::with_capacity(1));
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Ends the sending side.
    pub(crate) async fn half_close(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Reads until the server closes, and returns what came.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes).await.unwrap();
        bytes
    }

    /// Waits until the server has closed, in order or not, and checks that nothing came before.
    pub(crate) async fn ended(&mut self) {
        let mut bytes = Vec::new();
        let read = self.stream.read_to_end(&mut bytes).await;
        let reset = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionReset;
        assert!(read.is_ok() || read.as_ref().is_err_and(reset), "{read:?}");
        assert_eq!(bytes, b"", "an unexpected frame");
    }
}
