//! `pinpriq top`: the state of a server in a terminal.
//!
//! A thread asks the server (`gatherer.rs`), a model knows what is on the screen (`model.rs`), and
//! a view draws it (`view.rs`). Here are threads that wait for keys, signals and the server, and a
//! loop that lets the model hear of them and shows what has become of it. It decides nothing that
//! the model can decide. Without a terminal it prints as `status` does.

use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;

use self::gatherer::{Focus, Gatherer, News};
use self::keys::{Decoder, Key};
use self::model::Model;
use self::screen::Screen;
use super::{pass, status};
use crate::args::top::TopArgs;
use crate::exit::{Exit, Failure};

mod gatherer;
mod keys;
mod model;
mod screen;
mod view;

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

/// Shows the state of a server: on the screen until the user leaves it, or printed.
pub(crate) fn top(arguments: &TopArgs) -> Result<Exit, Failure> {
    if arguments.once || arguments.client.json {
        return status::top(arguments);
    }
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(Failure::unusable(
            "this is not a terminal: `pinpriq top --once` prints a table, and `--json` objects",
        ));
    }
    let (sender, events) = sync_channel(EVENTS_MAX);
    watch_signals(Teller(sender.clone()))?;
    let stdin = io::stdin();
    let screen = Screen::enter(stdin.as_fd(), io::stdout().as_fd()).map_err(unusable)?;
    watch_keys(Teller(sender.clone()));
    let (focuses, looks) = sync_channel(EVENTS_MAX);
    let teller = Teller(sender);
    let endpoint = arguments.client.endpoint()?;
    let model = Model::new(endpoint.to_string(), arguments.interval, Screen::size());
    let gatherer = Gatherer {
        endpoint,
        prefix: arguments.prefix.clone(),
        interval_ms: arguments.interval,
        focuses: looks,
        tell: move |news| teller.0.send(Event::News(news)).is_ok(),
    };
    // It ends with the process: it may be waiting for the network until then.
    let _detached = std::thread::spawn(move || gatherer.run());
    Shell { screen, model, focuses, focus: Focus::default() }.run(&events)
}

struct Shell {
    screen: Screen,
    model: Model,
    focuses: SyncSender<Focus>,
    /// What the gatherer looks at.
    focus: Focus,
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
            if self.hear(event)?.is_break() {
                return Ok(Exit::Done);
            }
            // What has come meanwhile needs no picture of its own.
            for _ in 0..EVENTS_MAX {
                let Ok(event) = events.try_recv() else { break };
                if self.hear(event)?.is_break() {
                    return Ok(Exit::Done);
                }
            }
            let focus = self.model.focus();
            // If there is no room, the gatherer hears of it after its next news.
            if focus != self.focus && self.focuses.try_send(focus.clone()).is_ok() {
                self.focus = focus;
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

    fn hear(&mut self, event: Event) -> Result<ControlFlow<()>, Failure> {
        match event {
            Event::Key(Key::Redraw) => self.screen.again().map_err(unusable)?,
            Event::Key(key) => return Ok(self.model.press(key)),
            Event::News(news) => self.model.hear(news),
            Event::Resized => self.model.resize(Screen::size()),
            Event::Continued => {
                self.screen.again().map_err(unusable)?;
                self.model.resize(Screen::size());
            }
            Event::Stop => return Ok(ControlFlow::Break(())),
            Event::Broken => return Err(broken()),
        }
        Ok(ControlFlow::Continue(()))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to map_err")]
fn unusable(error: io::Error) -> Failure {
    Failure::on_the_way(format!("the terminal cannot be used: {error}"))
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
        pass(ENDING);
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
