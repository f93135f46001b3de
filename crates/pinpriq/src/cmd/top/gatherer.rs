//! The thread that talks to the server, so that the screen never waits for the network.
//!
//! It looks at what is on the screen, does what it is asked, and says what came of it. A server
//! that goes away is tried again and again. Nothing is ever sent twice: a pause that got no answer
//! is shown as such.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::endpoint::Endpoint;

use pinpriq_proto::wire::resp::Value;
use pinpriq_server::clock::steady_ms;

use super::asker::{Asker, Focus, Page, Problem, ROUND_MAX, Sight};
use super::figures::Round;

/// How many orders may wait. There is one for each key that somebody pressed.
const ORDERS_MAX: usize = 16;
/// How long it is before a server that went away is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// A round that begins while the last one has hardly ended leaves the server this much time.
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// What the thread may be asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// Something else is on the screen.
    Look,
    /// Pause a queue for takes, or end that.
    Pause { queue: Vec<u8>, pause: bool },
    /// Explain a queue or a task.
    Explain { queue: Vec<u8>, id: Option<Vec<u8>> },
}

/// What the thread says.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum News {
    /// Figures of the server and its queues.
    Round(Box<Round>),
    /// What there is to see of the queue that was entered.
    Page(Box<Page>),
    /// What there is to see of the task that was entered.
    Sight(Box<Sight>),
    /// Why a queue or a task stands still.
    Explained { queue: Vec<u8>, id: Option<Vec<u8>>, answer: Value },
    /// A queue was paused, or this was ended.
    Paused { queue: Vec<u8>, pause: bool },
    /// The server refused something.
    Refused(String),
    /// The server went away, or cannot be reached.
    Lost(String),
}

/// The side of the screen.
#[derive(Debug)]
pub(super) struct Gatherer {
    orders: SyncSender<Order>,
    focus: Arc<Mutex<Focus>>,
}

impl Gatherer {
    /// Starts the thread. It ends when `tell` returns false.
    pub(super) fn start(
        endpoint: Endpoint,
        prefix: Option<Vec<u8>>,
        interval: Duration,
        tell: impl FnMut(News) -> bool + Send + 'static,
    ) -> Self {
        let (sender, orders) = sync_channel(ORDERS_MAX);
        let focus = Arc::<Mutex<Focus>>::default();
        let work = Work { endpoint, prefix, interval, focus: focus.clone(), orders, tell };
        // It ends with the process: it may be waiting for the network until then.
        let _detached = std::thread::spawn(move || work.run());
        Self { orders: sender, focus }
    }

    /// Looks at something else from now on.
    pub(super) fn look_at(&self, focus: Focus) {
        *self.focus.lock().unwrap_or_else(PoisonError::into_inner) = focus;
        // If the channel is full, the thread has enough to wake up for.
        let _ = self.order(Order::Look);
    }

    /// Asks for something. Returns false if too much is waiting already.
    pub(super) fn order(&self, order: Order) -> bool {
        !matches!(self.orders.try_send(order), Err(TrySendError::Full(_)))
    }
}

/// A moment in the time of the machine, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment(u64);

impl Moment {
    fn after(time: Duration) -> Self {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self(steady_ms().saturating_add(ms))
    }

    /// How long it is until then.
    fn rest(self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(steady_ms()))
    }
}

/// The side of the thread.
struct Work<T> {
    endpoint: Endpoint,
    prefix: Option<Vec<u8>>,
    interval: Duration,
    focus: Arc<Mutex<Focus>>,
    orders: Receiver<Order>,
    tell: T,
}

/// Why the thread stops what it does.
enum Stop {
    /// The server is gone.
    Lost(String),
    /// The receiver has gone.
    Over,
}

impl<T: FnMut(News) -> bool> Work<T> {
    fn run(mut self) {
        loop {
            let opened = Asker::open(&self.endpoint, self.prefix.as_deref());
            let ended = match opened {
                Ok(asker) => self.serve(asker),
                Err(Problem::Refused(sentence)) => Stop::Lost(sentence),
                Err(Problem::Lost(failure)) => Stop::Lost(failure.to_string()),
            };
            let Stop::Lost(sentence) = ended else { return };
            if !(self.tell)(News::Lost(sentence)) {
                return;
            }
            if let Stop::Over = self.wait_without_server() {
                return;
            }
        }
    }

    /// Waits before the server is tried again. Orders of this time are refused: a pause must not
    /// come as a surprise later.
    fn wait_without_server(&mut self) -> Stop {
        let moment = Moment::after(AGAIN);
        loop {
            match self.orders.recv_timeout(moment.rest()) {
                Ok(Order::Look) => {}
                Ok(_) => {
                    let sentence = "there is no connection, so nothing was done".to_owned();
                    if !(self.tell)(News::Refused(sentence)) {
                        return Stop::Over;
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Stop::Lost(String::new()),
                Err(RecvTimeoutError::Disconnected) => return Stop::Over,
            }
        }
    }

    /// Works until the connection is lost.
    fn serve(&mut self, mut asker: Asker) -> Stop {
        let mut heavy = None;
        loop {
            let (focus, next) = (self.focus(), Moment::after(self.interval));
            let round = match asker.round(&focus.visible, ROUND_MAX) {
                Ok(round) => round,
                Err(problem) => return stop(problem),
            };
            let next = next.max(Moment::after(PAUSE_MIN));
            if !(self.tell)(News::Round(Box::new(round))) {
                return Stop::Over;
            }
            let mut renewed = false;
            loop {
                if let Err(stop) = self.details(&mut asker, &mut heavy, renewed) {
                    return stop;
                }
                match self.orders.recv_timeout(next.rest()) {
                    Ok(order) => {
                        if let Err(stop) = self.carry_out(&mut asker, order) {
                            return stop;
                        }
                        renewed = true;
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return Stop::Over,
                }
            }
        }
    }

    fn focus(&self) -> Focus {
        self.focus.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks for what was entered. A page with much in it is asked for again only by a key.
    fn details(
        &mut self,
        asker: &mut Asker,
        heavy: &mut Option<super::asker::PageOf>,
        by_key: bool,
    ) -> Result<(), Stop> {
        let Focus { page: Some(of), task, .. } = self.focus() else { return Ok(()) };
        if let Some(id) = task {
            let sight = asker.sight(&of.queue, &id);
            return self.answer(sight, |sight| News::Sight(Box::new(sight)));
        }
        if !by_key && heavy.as_ref() == Some(&of) {
            return Ok(());
        }
        let page = asker.page(&of);
        *heavy = page.as_ref().ok().filter(|page| !page.is_light()).map(|page| page.of.clone());
        self.answer(page, |page| News::Page(Box::new(page)))
    }

    fn carry_out(&mut self, asker: &mut Asker, order: Order) -> Result<(), Stop> {
        match order {
            Order::Look => Ok(()),
            Order::Pause { queue, pause } => {
                let outcome = asker.pause(&queue, pause);
                self.answer(outcome, |()| News::Paused { queue, pause })
            }
            Order::Explain { queue, id } => {
                let answer = asker.explain(&queue, id.as_deref());
                self.answer(answer, |answer| News::Explained { queue, id, answer })
            }
        }
    }

    /// Says what came of something.
    fn answer<A>(
        &mut self,
        outcome: Result<A, Problem>,
        news: impl FnOnce(A) -> News,
    ) -> Result<(), Stop> {
        let news = match outcome {
            Ok(answer) => news(answer),
            Err(Problem::Refused(sentence)) => News::Refused(sentence),
            Err(lost) => return Err(stop(lost)),
        };
        if (self.tell)(news) { Ok(()) } else { Err(Stop::Over) }
    }
}

fn stop(problem: Problem) -> Stop {
    Stop::Lost(match problem {
        Problem::Lost(failure) => failure.to_string(),
        Problem::Refused(sentence) => sentence,
    })
}
