//! What runs the screen: threads that wait for keys, signals and the server, and a loop that lets
//! the model hear of them and shows what has become of it.
//!
//! It decides nothing that the model can decide.

use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;

use super::asker::Focus;
use super::gatherer::{Gatherer, News};
use super::keys::{Decoder, Key};
use super::model::{Effect, Model};
use super::screen::{self, Screen};
use super::view;
use crate::args::top::TopArgs;
use crate::exit::{Exit, Failure};

/// How many events may wait for the loop.
const EVENTS_MAX: usize = 64;
/// How many bytes of input are read at a time.
const INPUT_BYTES: usize = 1024;
/// How long the rest of a sequence may take to arrive, before an escape was the key.
const ESCAPE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// How long it may take to end after a signal.
const ENDING: Duration = Duration::from_secs(2);

/// What the loop hears of.
enum Event {
    Key(Key),
    News(News),
    /// The terminal has another size.
    Resized,
    /// The process was stopped and goes on.
    Continued,
    /// The user wants the program to end, or the terminal is gone.
    Stop,
    /// A thread has failed. What it has to say was printed.
    Broken,
}

/// A way to the loop. A thread that panics says so.
struct Teller(SyncSender<Event>);

impl Drop for Teller {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(Event::Broken);
        }
    }
}

/// Runs the screen until the user leaves it.
pub(super) fn run(arguments: &TopArgs) -> Result<Exit, Failure> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(Failure::unusable(
            "this is not a terminal: `pinpriq top --once` prints a table, and `--json` objects",
        ));
    }
    let (sender, events) = sync_channel(EVENTS_MAX);
    watch_signals(Teller(sender.clone()))?;
    let stdin = io::stdin();
    let screen = Screen::enter(stdin.as_fd(), io::stdout().as_fd())
        .map_err(|error| Failure::on_the_way(format!("the terminal cannot be used: {error}")))?;
    watch_keys(Teller(sender.clone()));
    let interval = Duration::from_millis(arguments.interval);
    let prefix = arguments.prefix.as_ref().map(|prefix| prefix.as_bytes().to_vec());
    let teller = Teller(sender);
    let tell = move |news| teller.0.send(Event::News(news)).is_ok();
    let endpoint = arguments.client.endpoint()?;
    let address = endpoint.to_string();
    let gatherer = Gatherer::start(endpoint, prefix, interval, tell);
    let interval_ms = i64::try_from(arguments.interval).unwrap_or(i64::MAX);
    let model = Model::new(address, interval_ms, Screen::size());
    Shell { screen, model, gatherer, focus: Focus::default() }.run(&events)
}

struct Shell {
    screen: Screen,
    model: Model,
    gatherer: Gatherer,
    /// What the gatherer was told to look at.
    focus: Focus,
}

/// Whether the loop goes on.
#[derive(PartialEq, Eq)]
enum Then {
    GoOn,
    End,
}

impl Shell {
    fn run(mut self, events: &Receiver<Event>) -> Result<Exit, Failure> {
        loop {
            self.show().map_err(|error| match error.kind() {
                // A panic has left the terminal, and told why.
                io::ErrorKind::NotConnected => broken(),
                _ => Failure::on_the_way(format!("the terminal cannot be written: {error}")),
            })?;
            let Ok(event) = events.recv() else { return Ok(Exit::Done) };
            if self.hear(event)? == Then::End {
                return Ok(Exit::Done);
            }
            // What has come meanwhile needs no picture of its own.
            for _ in 0..EVENTS_MAX {
                let Ok(event) = events.try_recv() else { break };
                if self.hear(event)? == Then::End {
                    return Ok(Exit::Done);
                }
            }
            let focus = self.model.focus();
            if focus != self.focus {
                self.focus = focus.clone();
                self.gatherer.look_at(focus);
            }
        }
    }

    fn show(&mut self) -> io::Result<()> {
        let (width, height) = self.model.size;
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        view::draw(&self.model, area, &mut buffer);
        self.screen.show(buffer)
    }

    fn hear(&mut self, event: Event) -> Result<Then, Failure> {
        match event {
            Event::Key(key) => match self.model.press(key) {
                None => {}
                Some(Effect::Quit) => return Ok(Then::End),
                Some(Effect::Redraw) => self.take_again()?,
                Some(Effect::Order(order)) if self.gatherer.order(order.clone()) => {}
                Some(Effect::Order(_)) => self.model.hear_busy(),
            },
            Event::News(news) => self.model.hear(news),
            Event::Resized => self.model.resize(Screen::size()),
            Event::Continued => {
                self.take_again()?;
                self.model.resize(Screen::size());
            }
            Event::Stop => return Ok(Then::End),
            Event::Broken => return Err(broken()),
        }
        Ok(Then::GoOn)
    }

    fn take_again(&mut self) -> Result<(), Failure> {
        let failure = |error| Failure::on_the_way(format!("the terminal cannot be used: {error}"));
        self.screen.again().map_err(failure)
    }
}

fn broken() -> Failure {
    Failure::on_the_way("a part of the program failed, as told above")
}

/// Tells of signals. SIGTSTP is heard and passed over: a program that is stopped would leave the
/// terminal as it is.
fn watch_signals(teller: Teller) -> Result<(), Failure> {
    let failure =
        |error: io::Error| Failure::on_the_way(format!("signals cannot be handled: {error}"));
    let all = [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT, SIGTSTP];
    let mut signals = Signals::new(all).map_err(failure)?;
    let _detached = std::thread::spawn(move || {
        for signal in signals.forever() {
            let event = match signal {
                SIGWINCH => Event::Resized,
                SIGCONT => Event::Continued,
                SIGTSTP => continue,
                end => {
                    end_in_time(end);
                    Event::Stop
                }
            };
            if teller.0.send(event).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Ends the process if it does not do so itself: a terminal that is stuck may hold it up.
fn end_in_time(signal: i32) {
    let _detached = std::thread::spawn(move || {
        // Nothing is ever sent: this waits until the time has passed.
        let (_kept, never) = sync_channel::<()>(0);
        let _ = never.recv_timeout(ENDING);
        screen::leave_unwritten();
        std::process::exit(128_i32.saturating_add(signal));
    });
}

/// Tells of keys until the terminal is gone.
fn watch_keys(teller: Teller) {
    let _detached = std::thread::spawn(move || {
        let stdin = io::stdin();
        let mut decoder = Decoder::default();
        let mut bytes = [0; INPUT_BYTES];
        loop {
            if decoder.is_waiting() && !is_readable(stdin.as_fd()) {
                let given_up = decoder.give_up();
                if given_up.is_some_and(|key| teller.0.send(Event::Key(key)).is_err()) {
                    return;
                }
            }
            let count = match rustix::io::read(stdin.as_fd(), &mut bytes) {
                Err(Errno::INTR) => continue,
                // Another program that uses the terminal does not want to wait for it. We do.
                Err(Errno::AGAIN) => {
                    let stdin = stdin.as_fd();
                    let _ = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None);
                    continue;
                }
                Ok(0) | Err(_) => {
                    let _ = teller.0.send(Event::Stop);
                    return;
                }
                Ok(count) => count,
            };
            for key in decoder.keys(bytes.get(..count).unwrap_or_default()) {
                if teller.0.send(Event::Key(key)).is_err() {
                    return;
                }
            }
        }
    });
}

/// Whether more bytes arrive in the time that a sequence may take.
fn is_readable(input: std::os::fd::BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    // After a signal it counts as nothing: an escape is then the key.
    poll(&mut fds, Some(&ESCAPE)).is_ok_and(|ready| ready > 0)
}
