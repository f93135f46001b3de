//! The thread that talks to the server, so that the screen never waits for the network.
//!
//! It looks at what is on the screen, and says what came of it. A server that goes away is tried
//! again and again.

use std::ffi::OsString;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use pinpriq_proto::wire::resp::Value;
use pinpriq_server::clock::steady_ms;

use crate::cmd::rounds::{Asker, Page, PageOf, QUEUES_MAX, Round};
use crate::endpoint::Endpoint;
use crate::resp::Trouble;

/// Of how many queues a round of the screen asks for figures.
const ROUND_MAX: usize = 500;
/// How long it is before a server that went away is tried again.
const AGAIN_MS: u64 = 1_000;
/// A round that begins while the last one has hardly ended leaves the server this much time.
const PAUSE_MIN_MS: u64 = 50;
/// A page with more bytes of payloads than this is not asked for again and again.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// What is on the screen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Focus {
    /// The queues whose rows are on the screen.
    pub(super) visible: Vec<Vec<u8>>,
    /// The queue that was entered.
    pub(super) page: Option<PageOf>,
    /// Whether limits are.
    pub(super) limits: bool,
}

/// What the thread says.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum News {
    /// Figures of the server and its queues.
    Round(Box<Round>),
    /// What there is to see of the queue that was entered.
    Page(Box<Page>),
    /// The limits that several queues use together.
    Limits(Vec<Value>),
    /// The server refused something.
    Refused(String),
    /// The server went away, or cannot be reached.
    Lost(String),
}

/// The thread: where the server is, and how often it is asked.
#[derive(Debug)]
pub(super) struct Gatherer<T> {
    pub(super) endpoint: Endpoint,
    pub(super) prefix: Option<OsString>,
    pub(super) interval_ms: u64,
    /// What it has to look at from now on.
    pub(super) focuses: Receiver<Focus>,
    /// Says something. Returns false if no one hears it.
    pub(super) tell: T,
}

/// Why the thread stops what it does.
enum Stop {
    Lost(String),
    /// The screen has gone.
    Over,
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        let (Trouble::Lost(sentence) | Trouble::Refused(sentence)) = trouble;
        Self::Lost(sentence)
    }
}

impl<T: FnMut(News) -> bool> Gatherer<T> {
    /// Works until the screen has gone.
    pub(super) fn run(mut self) {
        let mut focus = Focus::default();
        while let Err(Stop::Lost(sentence)) = self.serve(&mut focus) {
            let again_ms = steady_ms().saturating_add(AGAIN_MS);
            if self.say(News::Lost(sentence)).is_err() {
                return;
            }
            while let Ok(true) = self.looks_elsewhere(&mut focus, again_ms) {}
        }
    }

    /// Works until the connection is lost.
    fn serve(&mut self, focus: &mut Focus) -> Result<(), Stop> {
        let mut asker = Asker::open(&self.endpoint, self.prefix.as_deref(), QUEUES_MAX)?;
        let mut heavy: Option<PageOf> = None;
        loop {
            let next_ms = steady_ms().saturating_add(self.interval_ms);
            let round = asker.round(&focus.visible, ROUND_MAX)?;
            let next_ms = next_ms.max(steady_ms().saturating_add(PAUSE_MIN_MS));
            self.say(News::Round(Box::new(round)))?;
            let mut by_key = false;
            loop {
                // A page with much in it is asked for again only by a key.
                if let Some(of) =
                    focus.page.as_ref().filter(|it| by_key || heavy.as_ref() != Some(*it))
                {
                    let news = match asker.page(of) {
                        Ok(page) => {
                            heavy = is_heavy(&page).then(|| of.clone());
                            News::Page(Box::new(page))
                        }
                        Err(Trouble::Refused(sentence)) => News::Refused(sentence),
                        Err(lost) => return Err(lost.into()),
                    };
                    self.say(news)?;
                }
                if focus.limits {
                    let news = match asker.limits() {
                        Ok(limits) => News::Limits(limits),
                        Err(Trouble::Refused(sentence)) => News::Refused(sentence),
                        Err(lost) => return Err(lost.into()),
                    };
                    self.say(news)?;
                }
                by_key = self.looks_elsewhere(focus, next_ms)?;
                if !by_key {
                    break;
                }
            }
        }
    }

    /// Waits until this time or until something else is on the screen, and says whether it is.
    fn looks_elsewhere(&self, focus: &mut Focus, until_ms: u64) -> Result<bool, Stop> {
        let rest = Duration::from_millis(until_ms.saturating_sub(steady_ms()));
        match self.focuses.recv_timeout(rest) {
            Ok(next) => *focus = next,
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => return Err(Stop::Over),
        }
        Ok(true)
    }

    fn say(&mut self, news: News) -> Result<(), Stop> {
        if (self.tell)(news) { Ok(()) } else { Err(Stop::Over) }
    }
}

fn is_heavy(page: &Page) -> bool {
    let bytes =
        |task: &Value| task.field("payload").and_then(Value::as_bytes).map_or(0, <[u8]>::len);
    page.tasks.iter().map(bytes).sum::<usize>() > PAGE_BYTES_MAX
}
