//! Until when the owner of a log may answer, and when its tenure has to be renewed.
//!
//! An answer of the engine that compares the tenure shows that no other store had the log when the
//! engine was asked. When the answer has come says nothing: it may have been on its way for long.
//! The clock is the one that was given, which must not stand still while the machine sleeps.

use std::fmt;
use std::sync::Arc;

/// How long an owner may answer after it has asked the engine.
#[derive(Clone)]
pub struct Window {
    /// The length in milliseconds. It must be shorter than the time after which another server may
    /// seize the log.
    pub ms: u64,
    /// The milliseconds since some moment, of a clock that is never set and counts while the
    /// machine sleeps, such as `CLOCK_BOOTTIME`.
    pub steady: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("ms", &self.ms).finish_non_exhaustive()
    }
}

/// After how many milliseconds a renewal is tried again that was not answered.
const AGAIN_MS: u64 = 100;

/// After how many milliseconds without an answer the engine counts as down.
const DOWN_MS: u64 = 1_000;

/// The window of a tenure. Without one, nothing here does anything.
#[derive(Debug)]
pub(crate) struct Watch {
    window: Option<Window>,
    /// When the engine was asked last.
    asked: u64,
    /// When the engine was asked what it has answered last.
    answered: Option<u64>,
    /// When the engine was asked first of all that it has not answered.
    silent_since: Option<u64>,
    renewal: Renewal,
}

/// Asking the engine only to renew the tenure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Renewal {
    /// Nothing is under way.
    Idle,
    /// The engine is asked.
    Asked,
    /// The engine has not answered, and is asked again from this moment on.
    Unknown(u64),
}

impl Watch {
    pub(crate) const fn new(window: Option<Window>) -> Self {
        Self { window, asked: 0, answered: None, silent_since: None, renewal: Renewal::Idle }
    }

    /// The steady clock, or 0 if there is no window.
    fn now(&self) -> u64 {
        self.window.as_ref().map_or(0, |window| (window.steady)())
    }

    /// Notes that the engine is asked now for what compares the tenure. One such call is under way
    /// at a time.
    pub(crate) fn ask(&mut self) {
        self.asked = self.now();
        self.silent_since.get_or_insert(self.asked);
    }

    /// Notes that the engine has answered, whatever it said.
    pub(crate) const fn end_silence(&mut self) {
        self.silent_since = None;
    }

    /// Notes that the engine has answered what it was asked last, and that the tenure goes on.
    pub(crate) fn note_answer(&mut self) {
        self.answered = Some(self.asked);
        self.renewal = Renewal::Idle;
        self.end_silence();
    }

    /// Until when the owner may answer, by the steady clock. None if that never ends.
    pub(crate) fn until(&self) -> Option<u64> {
        let window = self.window.as_ref()?;
        Some(self.answered.map_or(0, |at| at.saturating_add(window.ms)))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.until().is_some_and(|until| until <= self.now())
    }

    /// For how long the engine has owed an answer, in milliseconds. 0 without a window.
    pub(crate) fn silent_ms(&self) -> u64 {
        self.silent_since.map_or(0, |since| self.now().saturating_sub(since))
    }

    /// Whether the engine has not answered for over a second.
    pub(crate) fn is_down(&self) -> bool {
        self.silent_ms() > DOWN_MS
    }

    /// The moment at which waiting for the engine is in vain, if there is a window: at its end, or
    /// one window from now.
    pub(crate) fn vain_at(&self) -> Option<u64> {
        let window = self.window.as_ref()?;
        Some(self.now().saturating_add(window.ms).max(self.until()?))
    }

    pub(crate) fn is_past(&self, moment: Option<u64>) -> bool {
        moment.is_some_and(|moment| moment <= self.now())
    }

    /// In how many milliseconds the tenure has to be renewed, if nothing is appended until then.
    /// None while the engine is asked, and if there is nothing to renew.
    pub(crate) fn renews_in(&self) -> Option<u64> {
        let window = self.window.as_ref()?;
        let due = match self.renewal {
            // Five times in the time after which another server may seize the log, of which a
            // window is seven tenths.
            Renewal::Idle => self.answered?.saturating_add(window.ms / 7 * 2),
            Renewal::Unknown(at) => at,
            Renewal::Asked => return None,
        };
        Some(due.saturating_sub(self.now()))
    }

    /// Notes that the engine is asked now to renew the tenure.
    pub(crate) fn renew(&mut self) {
        self.ask();
        self.renewal = Renewal::Asked;
    }

    /// Notes that the engine has not answered a renewal.
    pub(crate) fn renew_again(&mut self) {
        self.renewal = Renewal::Unknown(self.now().saturating_add(AGAIN_MS));
    }

    /// Whether the engine has not answered a renewal.
    pub(crate) const fn is_unknown(&self) -> bool {
        matches!(self.renewal, Renewal::Unknown(_))
    }

    /// Whether the answer to a renewal is still to come, so that nothing may be appended.
    pub(crate) fn is_renewing(&self) -> bool {
        self.renewal != Renewal::Idle
    }
}
