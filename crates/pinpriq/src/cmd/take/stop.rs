//! Stops the jobs of a worker, whatever each of them is waiting for.
//!
//! A job waits for the server or for an event. While it waits for the server, its connection is
//! stored here, so that the wait can be ended. For events it has a channel. The signals that stop
//! a worker are registered here too.

use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::super::signals::unhandled;
use crate::exit::Failure;

/// How many events may wait for a job: those about its command, and a few signals. Further signals
/// are not needed, since [`Stop::signals`] returns their number.
const EVENTS_MAX: usize = 8;

/// What a job can wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The worker was asked to stop, perhaps again.
    Signal,
    /// The command has ended.
    Exited,
    /// The command has taken longer than it may.
    TimedOut,
    /// It was asked to end because of that, and has not ended in time.
    Overdue,
}

/// The signals that stop a worker. SIGHUP is one, unless the worker was started so that it goes on
/// without its terminal, as `nohup` does.
pub(super) fn signals() -> Result<Signals, Failure> {
    let hang_up = (!ignores_hang_up()).then_some(SIGHUP);
    Signals::new([SIGTERM, SIGINT].into_iter().chain(hang_up)).map_err(|error| unhandled(&error))
}

/// Whether this process was started with SIGHUP ignored, as far as the system tells.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}

/// The shared state of stopping.
#[derive(Debug)]
pub(super) struct Stop {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// How often the worker was asked to stop.
    signals: u32,
    /// Whether the commands get a hang-up.
    is_hung_up: bool,
    /// Whether a job failed in a way that would affect the others too.
    given_up: bool,
    seats: Vec<Seat>,
}

/// What is known of one job.
#[derive(Debug)]
struct Seat {
    events: SyncSender<Event>,
    /// The connection, while the job waits for a task.
    waiting: Option<TcpStream>,
}

/// One job's side.
#[derive(Debug)]
pub(super) struct Inbox {
    seat: usize,
    /// What the job receives.
    pub(super) events: Receiver<Event>,
    /// For sending events to the job.
    pub(super) sender: SyncSender<Event>,
}

impl Stop {
    /// Returns the state for this number of jobs.
    pub(super) fn new(jobs: usize) -> (Self, Vec<Inbox>) {
        let (seats, inboxes) = (0..jobs)
            .map(|seat| {
                let (sender, events) = sync_channel(EVENTS_MAX);
                let inbox = Inbox { seat, events, sender: sender.clone() };
                (Seat { events: sender, waiting: None }, inbox)
            })
            .unzip();
        (
            Self {
                state: Mutex::new(State { signals: 0, is_hung_up: false, given_up: false, seats }),
            },
            inboxes,
        )
    }

    /// Asks all jobs to stop, perhaps again. Returns how often they were asked.
    pub(super) fn signal(&self) -> u32 {
        let mut state = self.state();
        state.signals = state.signals.saturating_add(1);
        state.wake_all();
        state.signals
    }

    /// Asks all jobs to stop, and to pass it on to their commands. A shell and the system may both
    /// say so when a terminal is closed, so the second time is no other request. Returns whether
    /// this is the first one of all.
    pub(super) fn hang_up(&self) -> bool {
        let mut state = self.state();
        let is_first = state.signals == 0;
        state.is_hung_up = true;
        state.signals = state.signals.max(1);
        state.wake_all();
        is_first
    }

    /// Whether the commands get a hang-up.
    pub(super) fn is_hung_up(&self) -> bool {
        self.state().is_hung_up
    }

    /// Makes all jobs end after their current work.
    pub(super) fn give_up(&self) {
        let mut state = self.state();
        state.given_up = true;
        state.wake_all();
    }

    /// Returns how often the jobs were asked to stop.
    pub(super) fn signals(&self) -> u32 {
        self.state().signals
    }

    /// Whether the jobs must end.
    pub(super) fn is_asked(&self) -> bool {
        self.state().is_asked()
    }

    /// Notes that the job waits for the server over this connection, or that it does not wait any
    /// more.
    pub(super) fn wait_over(&self, inbox: &Inbox, stream: Option<TcpStream>) {
        let mut state = self.state();
        if let Some(stream) = stream.as_ref().filter(|_| state.is_asked()) {
            state.end_wait(stream);
        }
        if let Some(seat) = state.seats.get_mut(inbox.seat) {
            seat.waiting = stream;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A job that panicked leaves nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    const fn is_asked(&self) -> bool {
        self.signals > 0 || self.given_up
    }

    fn wake_all(&self) {
        for seat in &self.seats {
            // If the channel is full, the job has enough to wake up for.
            let _ = seat.events.try_send(Event::Signal);
            if let Some(stream) = &seat.waiting {
                self.end_wait(stream);
            }
        }
    }

    /// Ends a wait for the server. At the end of the input the server replies at once; a second
    /// signal gives up the reply.
    fn end_wait(&self, stream: &TcpStream) {
        let how = if self.signals > 1 { Shutdown::Both } else { Shutdown::Write };
        // A connection that is broken has ended the wait as well.
        let _ = stream.shutdown(how);
    }
}
