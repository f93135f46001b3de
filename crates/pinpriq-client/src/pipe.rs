//! The connection that all clones of a client share: requests are sent as they come, without
//! waiting for the replies to earlier ones.
//!
//! One task owns the connection. It gathers the requests that are there and writes them in one
//! piece, and hands each reply to its caller. Nothing here is sent again.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use pinpriq_proto::wire::resp::{Value, Words};
use tokio::io::{AsyncWrite, AsyncWriteExt as _, split};
use tokio::sync::{mpsc, oneshot};

use crate::clock::{now, until};
use crate::transport::{Buffer, Line, Lost, Replies};

/// How many requests may be under way, unless one order has more. It bounds the memory for them.
const UNDER_WAY_MAX: usize = 512;
/// About how many bytes are gathered before they are written.
const WRITE_BYTES: usize = 64 << 10;
/// How many orders may wait for the task.
const ORDERS_MAX: usize = 64;

/// Why there are no replies.
#[derive(Clone, Debug)]
pub(crate) enum Broken {
    /// The request was not sent.
    NotSent(Arc<Lost>),
    /// The connection broke after the request was sent, perhaps.
    Unknown(Arc<Lost>),
}

/// Requests that were made together, and who waits for their replies.
struct Order {
    bytes: Vec<u8>,
    missing: usize,
    replies: Vec<Value>,
    answer: oneshot::Sender<Result<Vec<Value>, Broken>>,
}

/// A handle to the connection. The connection ends with its last handle, after what is under way.
#[derive(Clone, Debug)]
pub(crate) struct Pipe(mpsc::Sender<Order>);

impl Pipe {
    /// Takes a connection over. Must be called within a runtime.
    pub(crate) fn over(line: Line, replies: Replies, timeout: Duration) -> Self {
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        tokio::spawn(run(line, replies, orders, timeout));
        Self(sender)
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Sends requests in one piece, and waits for all their replies.
    pub(crate) async fn ask(&self, requests: &[&Words]) -> Result<Vec<Value>, Broken> {
        let mut bytes = Vec::new();
        for words in requests {
            words.put(&mut bytes);
        }
        let (answer, answered) = oneshot::channel();
        let missing = requests.len();
        let order = Order { bytes, missing, replies: Vec::with_capacity(missing), answer };
        if self.0.send(order).await.is_err() {
            return Err(Broken::NotSent(Arc::new(Lost::Closed)));
        }
        answered.await.unwrap_or_else(|_| Err(Broken::Unknown(Arc::new(Lost::Closed))))
    }
}

/// Serves orders until no caller is left to give any, or the connection breaks.
async fn run(line: Line, replies: Replies, mut orders: mpsc::Receiver<Order>, timeout: Duration) {
    let mut under_way = VecDeque::new();
    let lost = serve(line, replies, &mut orders, &mut under_way, timeout).await;
    let lost = Arc::new(lost);
    // The caller may have gone: then drop it.
    for order in under_way {
        _ = order.answer.send(Err(Broken::Unknown(Arc::clone(&lost))));
    }
    orders.close();
    while let Some(order) = orders.recv().await {
        _ = order.answer.send(Err(Broken::NotSent(Arc::clone(&lost))));
    }
}

async fn serve(
    line: Line,
    mut replies: Replies,
    orders: &mut mpsc::Receiver<Order>,
    under_way: &mut VecDeque<Order>,
    timeout: Duration,
) -> Lost {
    let (stream, mut buffer) = line.into_parts();
    let (mut reader, mut writer) = split(stream);
    let mut out = Vec::new();
    let mut written = 0;
    let mut is_flushed = true;
    let mut is_open = true;
    let mut requests = 0_usize;
    // When the connection counts as broken if nothing arrives.
    let mut silence = pin!(until(now() + timeout));
    loop {
        if !is_open && requests == 0 {
            return Lost::Closed;
        }
        let has_room = is_open && requests < UNDER_WAY_MAX && out.len() < WRITE_BYTES;
        tokio::select! {
            read = buffer.fill(&mut reader) => match read {
                Ok(true) => {
                    let taken = match hand_out(&mut replies, &mut buffer, under_way) {
                        Ok(taken) => taken,
                        Err(lost) => return lost,
                    };
                    requests -= taken;
                    silence.set(until(now() + timeout));
                }
                Ok(false) => return Lost::Closed,
                Err(error) => return Lost::Broken(error),
            },
            sent = send_some(&mut writer, out.get(written..).unwrap_or_default()),
                if !is_flushed => match sent {
                    Ok(Some(count)) => {
                        written += count;
                        if written == out.len() {
                            out.clear();
                            written = 0;
                        }
                    }
                    Ok(None) => is_flushed = true,
                    Err(error) => return Lost::Broken(error),
                },
            order = orders.recv(), if has_room => match order {
                None => is_open = false,
                Some(order) => {
                    if requests == 0 {
                        silence.set(until(now() + timeout));
                    }
                    is_flushed = false;
                    requests += begin(order, &mut out, under_way);
                    while requests < UNDER_WAY_MAX && out.len() < WRITE_BYTES {
                        let Ok(order) = orders.try_recv() else { break };
                        requests += begin(order, &mut out, under_way);
                    }
                }
            },
            () = &mut silence, if requests > 0 => {
                return Lost::Broken(io::ErrorKind::TimedOut.into());
            },
        }
    }
}

/// Writes some of these bytes and returns how many, or flushes if there are none.
pub(crate) async fn send_some(
    writer: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
) -> io::Result<Option<usize>> {
    if bytes.is_empty() {
        return writer.flush().await.map(|()| None);
    }
    match writer.write(bytes).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        count => Ok(Some(count)),
    }
}

/// Adds an order to what is to be written. Returns how many requests it has.
fn begin(mut order: Order, out: &mut Vec<u8>, under_way: &mut VecDeque<Order>) -> usize {
    out.append(&mut order.bytes);
    let requests = order.missing;
    under_way.push_back(order);
    requests
}

/// Hands the replies that are there to those who wait for them. Returns how many there were.
fn hand_out(
    replies: &mut Replies,
    buffer: &mut Buffer,
    under_way: &mut VecDeque<Order>,
) -> Result<usize, Lost> {
    let mut taken = 0;
    while let Some(value) = replies.next(buffer)? {
        // What the server says by itself is not a reply.
        if matches!(value, Value::Push(_)) {
            continue;
        }
        let Some(order) = under_way.front_mut() else { return Err(Lost::Closed) };
        order.replies.push(value);
        order.missing -= 1;
        taken += 1;
        if order.missing == 0
            && let Some(order) = under_way.pop_front()
        {
            // The caller gave up, so drop the reply.
            _ = order.answer.send(Ok(order.replies));
        }
    }
    Ok(taken)
}
