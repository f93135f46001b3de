//! A request that comes without a connection of its own: one that HTTP has brought.
//!
//! A visit hands questions to a client, and passes its answer on in pieces. A piece that hands
//! tasks over counts as sent when the connection behind it has been flushed after the piece was
//! taken. If that never happens, the tasks go back. The sockets are those of `process::http`.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pinpriq_proto::reply::{Refusal, Reply};
use tokio::sync::{Notify, mpsc, oneshot};

use super::exchange::{Exchange, Head, Question};
use super::problem::Problem;
use crate::access::pass::Pass;
use crate::home::client::{Client, Step};
use crate::home::connection::Surroundings;
use pinpriq_proto::request::form::Form;

/// Stands for a piece that was not taken.
const NEVER: u64 = u64::MAX;

/// What is known about the sending side of a connection.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    /// How often everything that was written has reached the system.
    flushes: AtomicU64,
    /// Whether the connection has ended.
    has_ended: AtomicBool,
    bell: Notify,
}

impl Wire {
    /// Notes that everything that was written has reached the system.
    pub(crate) fn note_flush(&self) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.bell.notify_waiters();
    }

    /// Notes that the connection has ended.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.bell.notify_waiters();
    }

    /// Waits until the connection is to end.
    pub(crate) async fn ended(&self) {
        self.until(|| self.has_ended.load(Ordering::Relaxed).then_some(())).await;
    }

    /// Waits until `look` returns something. It is asked again whenever something has happened.
    async fn until<T>(&self, look: impl Fn() -> Option<T>) -> T {
        loop {
            let happened = self.bell.notified();
            tokio::pin!(happened);
            happened.as_mut().enable();
            if let Some(seen) = look() {
                return seen;
            }
            happened.await;
        }
    }
}

/// A piece of an answer.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    /// Whether the answer is complete with it. An answer without such a piece was cut off.
    pub(crate) is_last: bool,
    fate: Arc<Fate>,
}

/// What has become of a piece.
#[derive(Debug)]
struct Fate {
    wire: Arc<Wire>,
    /// The number of flushes before it was taken.
    taken: AtomicU64,
    is_dropped: AtomicBool,
}

impl Piece {
    fn new(bytes: Vec<u8>, is_last: bool, wire: &Arc<Wire>) -> Self {
        let fate = Fate {
            wire: wire.clone(),
            taken: AtomicU64::new(NEVER),
            is_dropped: AtomicBool::new(false),
        };
        Self { bytes, is_last, fate: Arc::new(fate) }
    }

    /// Takes the bytes, to be sent.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.fate.taken.store(self.fate.wire.flushes.load(Ordering::Relaxed), Ordering::Relaxed);
        std::mem::take(&mut self.bytes)
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.fate.is_dropped.store(true, Ordering::Relaxed);
        self.fate.wire.bell.notify_waiters();
    }
}

impl Fate {
    /// Waits until the piece has reached the system. Returns whether it has.
    async fn sent(&self) -> bool {
        let look = || {
            let taken = self.taken.load(Ordering::Relaxed);
            let flushes = self.wire.flushes.load(Ordering::Relaxed);
            if taken != NEVER && flushes > taken {
                return Some(true);
            }
            let is_lost = taken == NEVER && self.is_dropped.load(Ordering::Relaxed);
            (is_lost || self.wire.has_ended.load(Ordering::Relaxed)).then_some(false)
        };
        self.wire.until(look).await
    }
}

/// The questions of a request.
pub(crate) enum Questions {
    /// All of them.
    All(Vec<Question>),
    /// They come one by one, until the other end is gone.
    Coming(mpsc::Receiver<Question>),
}

/// A request of a visitor.
pub(crate) struct Visit {
    pub(crate) questions: Questions,
    pub(crate) form: Form,
    pub(crate) answer: oneshot::Sender<Result<Answer, Problem>>,
    /// Who asks, if the server has users.
    pub(crate) pass: Option<Pass>,
}

/// The answer to a visit.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Nothing for the lines of a batch, which have no head.
    pub(crate) head: Option<Head>,
    /// The beginning of the body.
    pub(crate) first: Piece,
    /// The rest, if there is more.
    pub(crate) rest: Option<mpsc::Receiver<Piece>>,
    /// The replies, if they were asked for as they are.
    pub(crate) replies: Vec<Result<Reply, Problem>>,
}

/// A client whose requests come as visits, one after the other.
pub(crate) struct Caller {
    pub(crate) client: Client,
    pub(super) exchange: Rc<Exchange>,
}

/// The way of the answer to the visitor.
struct Way {
    wire: Arc<Wire>,
    exchange: Rc<Exchange>,
    answer: Option<oneshot::Sender<Result<Answer, Problem>>>,
    rest: Option<mpsc::Sender<Piece>>,
    /// Whether the last piece was sent.
    is_done: bool,
}

impl Way {
    /// Sends a piece, which is the last one if `is_last`. Returns what becomes of it, or nothing
    /// if the visitor is gone.
    async fn send(&mut self, bytes: Vec<u8>, is_last: bool) -> Option<Arc<Fate>> {
        self.is_done = is_last;
        let piece = Piece::new(bytes, is_last, &self.wire);
        let fate = piece.fate.clone();
        let Some(answer) = self.answer.take() else {
            self.rest.as_ref()?.send(piece).await.ok()?;
            return Some(fate);
        };
        let rest = (!is_last).then(|| {
            let (sender, receiver) = mpsc::channel(1);
            self.rest = Some(sender);
            receiver
        });
        let (head, replies) = (self.exchange.take_head(), self.exchange.take_replies());
        answer.send(Ok(Answer { head, first: piece, rest, replies })).ok()?;
        Some(fate)
    }

    /// Answers that nothing can be told, if nothing was told yet.
    fn give_up(&mut self, is_stopping: bool) {
        if self.exchange.form.get() == Form::Line {
            return;
        }
        let Some(answer) = self.answer.take() else { return };
        let _ = answer.send(Err(if is_stopping {
            Problem::from(&Refusal::closing())
        } else {
            let sentence = "it is not known what became of the request";
            Problem { is_counted: true, ..Problem::new("UNKNOWN", sentence) }
        }));
    }

    /// Waits until the visitor is gone.
    async fn gone(&mut self) {
        match (&mut self.answer, &self.rest) {
            (Some(answer), _) => answer.closed().await,
            (None, Some(rest)) => rest.closed().await,
            (None, None) => std::future::pending().await,
        }
    }
}

/// Carries out a visit. Returns the caller if it can serve another one; otherwise the shards have
/// forgotten it, and whatever was handed to it and not sent goes back.
pub(crate) async fn carry_out(
    around: &Surroundings,
    caller: Caller,
    visit: Visit,
    wire: Arc<Wire>,
) -> Option<Caller> {
    let Visit { questions, form, answer, pass } = visit;
    let Caller { mut client, exchange } = caller;
    exchange.begin(form);
    client.admit(pass);
    let mut coming = match questions {
        Questions::All(all) => {
            let tokens = vec![0; all.len()];
            exchange.note_questions(all);
            client.take_over(&tokens);
            None
        }
        Questions::Coming(coming) => Some(coming),
    };
    let mut way = Way { wire, exchange, answer: Some(answer), rest: None, is_done: false };
    let is_whole = pump(around, &mut client, &mut coming, &mut way).await;
    if is_whole && !around.stop.is_asked_for() {
        return Some(Caller { client, exchange: way.exchange });
    }
    client.leave_uncounted();
    None
}

/// Passes questions and answers on. Returns whether everything was answered and sent.
async fn pump(
    around: &Surroundings,
    client: &mut Client,
    coming: &mut Option<mpsc::Receiver<Question>>,
    way: &mut Way,
) -> bool {
    loop {
        client.has_rung();
        if client.is_killed() {
            way.wire.end();
            return false;
        }
        let ends = client.ends_by_failure();
        while client.encode() {
            let is_last = coming.is_none() && client.is_answered();
            let bytes = client.unwritten().to_vec();
            let (count, hands_over) = (bytes.len(), client.session.outbox.borrow().hands_over());
            let Some(fate) = way.send(bytes, is_last).await else { return false };
            if hands_over && !fate.sent().await {
                return false;
            }
            client.left(count);
        }
        // Replies that are handed on as they are have no bytes.
        client.left(0);
        if coming.is_none() && client.is_answered() {
            return way.is_done || way.send(Vec::new(), true).await.is_some();
        }
        let is_stopping = around.stop.is_asked_for();
        if ends || client.is_at_loss() || around.cut_off.is_asked_for() {
            way.give_up(is_stopping);
            return false;
        }
        match client.proceed(is_stopping) {
            Step::Again => {}
            Step::Over | Step::Move(_) => {
                way.give_up(is_stopping);
                return false;
            }
            Step::Await => {
                if !await_event(client, coming, way).await {
                    return false;
                }
            }
        }
    }
}

/// Waits until there is something to do. Returns false if the visitor is gone.
async fn await_event(
    client: &mut Client,
    coming: &mut Option<mpsc::Receiver<Question>>,
    way: &mut Way,
) -> bool {
    let waits = !way.exchange.questions.borrow().is_empty();
    let reads = coming.is_some() && client.wants_read() && !waits;
    let session = client.session.clone();
    let exchange = way.exchange.clone();
    tokio::select! {
        () = poll_fn(|task| session.bell.poll_rung(task)) => true,
        question = next_question(coming), if reads => {
            match question {
                Some(question) => {
                    exchange.questions.borrow_mut().push_back(question);
                    client.take_over(&[0]);
                }
                None => *coming = None,
            }
            true
        }
        () = way.gone() => false,
    }
}

async fn next_question(coming: &mut Option<mpsc::Receiver<Question>>) -> Option<Question> {
    match coming {
        Some(coming) => coming.recv().await,
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll(fate: &Fate) -> Poll<bool> {
        pin!(fate.sent()).as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_piece_is_sent_when_the_connection_was_flushed_after_it_was_taken() {
        let wire = Arc::new(Wire::default());
        let mut piece = Piece::new(vec![1, 2], true, &wire);
        let fate = piece.fate.clone();
        wire.note_flush();
        assert_eq!(poll(&fate), Poll::Pending, "it was not even taken");
        assert_eq!(piece.take(), [1, 2]);
        drop(piece);
        assert_eq!(poll(&fate), Poll::Pending, "it may still be in a buffer");
        wire.note_flush();
        assert_eq!(poll(&fate), Poll::Ready(true));
    }

    #[test]
    fn a_piece_is_lost_with_its_connection_and_without_a_reader() {
        let wire = Arc::new(Wire::default());
        let mut taken = Piece::new(vec![1], true, &wire);
        let untaken = Piece::new(vec![1], true, &wire);
        let fates = [taken.fate.clone(), untaken.fate.clone()];
        taken.take();
        drop(untaken);
        assert_eq!(fates.each_ref().map(|it| poll(it)), [Poll::Pending, Poll::Ready(false)]);
        wire.end();
        assert_eq!(poll(&fates[0]), Poll::Ready(false));
    }
}
