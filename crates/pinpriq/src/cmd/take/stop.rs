//! How the jobs of a worker are told to stop, whatever each of them is waiting for.
//!
//! A job waits for the server or for an event. For the first, its connection is left here while it
//! waits, so that the wait can be ended; for the second, it has a channel.

use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many events may wait for a job: the end of its command, and a few signals. Further signals
/// are not needed, since their number is told by [`Stop::signals`].
const EVENTS_MAX: usize = 8;

/// What a job can wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The worker was told to stop, or told so again.
    Signal,
    /// The command has ended.
    Exited,
}

/// What all jobs of a worker know of stopping.
#[derive(Debug)]
pub(super) struct Stop {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// How often the worker was told to stop.
    signals: u32,
    /// Whether a job failed in a way that would befall the others too.
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
    /// For those who tell the job something.
    pub(super) sender: SyncSender<Event>,
}

impl Stop {
    /// For so many jobs.
    pub(super) fn new(jobs: usize) -> (Self, Vec<Inbox>) {
        let (seats, inboxes) = (0..jobs)
            .map(|seat| {
                let (sender, events) = sync_channel(EVENTS_MAX);
                let inbox = Inbox { seat, events, sender: sender.clone() };
                (Seat { events: sender, waiting: None }, inbox)
            })
            .unzip();
        (Self { state: Mutex::new(State { signals: 0, given_up: false, seats }) }, inboxes)
    }

    /// Tells all jobs to stop, or tells them again. Returns how often they were told.
    pub(super) fn signal(&self) -> u32 {
        let mut state = self.state();
        state.signals = state.signals.saturating_add(1);
        state.wake_all();
        state.signals
    }

    /// Has all jobs end after what they are doing.
    pub(super) fn give_up(&self) {
        let mut state = self.state();
        state.given_up = true;
        state.wake_all();
    }

    /// How often the jobs were told to stop.
    pub(super) fn signals(&self) -> u32 {
        self.state().signals
    }

    /// Whether the jobs are to end.
    pub(super) fn is_asked(&self) -> bool {
        self.state().is_asked()
    }

    /// The job waits for the server now, over this connection; or no longer.
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
            // With a full channel the job has enough to wake up for.
            let _ = seat.events.try_send(Event::Signal);
            if let Some(stream) = &seat.waiting {
                self.end_wait(stream);
            }
        }
    }

    /// Ends a wait for the server: an end of input has it answer at once, a second signal gives up
    /// the answer.
    fn end_wait(&self, stream: &TcpStream) {
        let how = if self.signals > 1 { Shutdown::Both } else { Shutdown::Write };
        // A connection that is broken has ended the wait as well.
        let _ = stream.shutdown(how);
    }
}
