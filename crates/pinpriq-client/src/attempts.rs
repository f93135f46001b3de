//! Decides what becomes of a request whose reply did not come, or said to try again. Sends nothing.

use std::time::Duration;

use pinpriq_proto::wire::resp::Value;
use tokio::time::Instant;

use crate::clock::now;
use crate::error::{Error, Refused};
use crate::request::Repeat;

/// The first and the longest pause between two attempts.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How one sending of a request ended.
#[derive(Debug)]
pub(crate) enum Sending {
    /// With a reply, which may be a refusal.
    Answered(Value),
    /// It was not sent, for this reason.
    NotSent(Error),
    /// It was sent, perhaps, and there is no reply, for this reason.
    Unknown(Error),
}

/// What to do after one sending.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// This is the result.
    Final(Result<Value, Error>),
    /// Send it again after this long.
    Again(Duration),
}

/// The attempts to have one request carried out.
#[derive(Debug)]
pub(crate) struct Attempts {
    repeat: Repeat,
    until: Instant,
    pause: Duration,
    /// Whether an earlier sending may have been carried out.
    is_uncertain: bool,
}

impl Attempts {
    /// Begins now.
    pub(crate) fn new(repeat: Repeat, retry_for: Duration) -> Self {
        Self { repeat, until: now() + retry_for, pause: PAUSE_FIRST, is_uncertain: false }
    }

    /// Returns what to do after a sending that ended like this.
    pub(crate) fn judge(&mut self, sending: Sending) -> Verdict {
        match sending {
            // Who may not sign in now may not in a moment either.
            Sending::NotSent(error @ Error::Refused(_)) => Verdict::Final(Err(error)),
            Sending::NotSent(error) => self.again_or(error),
            Sending::Unknown(error) => {
                self.is_uncertain = true;
                self.again_if_safe(error)
            }
            Sending::Answered(Value::Error(text)) => {
                self.judge_refusal(Refused::of(&text, self.is_uncertain))
            }
            Sending::Answered(value) => Verdict::Final(Ok(value)),
        }
    }

    fn judge_refusal(&mut self, refused: Refused) -> Verdict {
        match refused.code.as_str() {
            "TRYAGAIN" | "CLUSTERDOWN" => self.again_or(refused.into()),
            "UNKNOWN" => {
                self.is_uncertain = true;
                self.again_if_safe(refused.into())
            }
            "STALE" if self.is_uncertain && self.repeat == Repeat::StaleIsDone => {
                Verdict::Final(Ok(Value::Simple("OK".to_owned())))
            }
            _ => Verdict::Final(Err(refused.into())),
        }
    }

    fn again_if_safe(&mut self, error: Error) -> Verdict {
        if self.repeat == Repeat::Never { Verdict::Final(Err(error)) } else { self.again_or(error) }
    }

    /// Sends it again, longer and longer pauses apart, until the time is up.
    fn again_or(&mut self, error: Error) -> Verdict {
        if now() >= self.until {
            return Verdict::Final(Err(error));
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSE_MAX);
        Verdict::Again(jittered(pause))
    }
}

/// Returns a span between half of this one and all of it, so that not all clients of a server that
/// comes back ask at once.
pub(crate) fn jittered(span: Duration) -> Duration {
    let mut byte = [0];
    // Without random numbers the pauses are merely alike.
    _ = getrandom::fill(&mut byte);
    span / 2 + span.mul_f64(f64::from(byte[0]) / 512.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> Sending {
        Sending::Answered(Value::Error(text.to_owned()))
    }

    fn gone() -> Error {
        Error::Disconnected { server: "q:1".to_owned(), why: "gone".to_owned() }
    }

    /// What becomes of a request after these sendings, as text.
    fn judged(repeat: Repeat, retry_for: Duration, sendings: Vec<Sending>) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut attempts = Attempts::new(repeat, retry_for);
            let told = |verdict| match verdict {
                Verdict::Again(_) => "again".to_owned(),
                Verdict::Final(Ok(value)) => format!("{value:?}"),
                Verdict::Final(Err(Error::Refused(it))) => format!("{it}, {}", it.repeated),
                Verdict::Final(Err(error)) => error.to_string(),
            };
            sendings.into_iter().map(|sending| told(attempts.judge(sending))).collect()
        })
    }

    const LONG: Duration = Duration::from_mins(1);
    const LOST: &str = "no reply from q:1: gone";

    #[test]
    fn only_what_is_safe_is_sent_again_after_a_lost_reply() {
        let lost = || vec![Sending::Unknown(gone())];
        assert_eq!(judged(Repeat::Never, LONG, lost()), [LOST]);
        assert_eq!(judged(Repeat::Safe, LONG, lost()), ["again"]);
        assert_eq!(judged(Repeat::Safe, Duration::ZERO, lost()), [LOST]);
        let unsent = vec![Sending::NotSent(gone())];
        assert_eq!(judged(Repeat::Never, LONG, unsent), ["again"]);
        let unknown = || vec![refusal("UNKNOWN perhaps")];
        assert_eq!(judged(Repeat::Never, LONG, unknown()), ["UNKNOWN perhaps, false"]);
        assert_eq!(judged(Repeat::Safe, LONG, unknown()), ["again"]);
        let waiting = vec![refusal("TRYAGAIN soon"), refusal("CLUSTERDOWN no engine")];
        assert_eq!(judged(Repeat::Never, LONG, waiting), ["again", "again"]);
    }

    #[test]
    fn a_stale_receipt_after_a_lost_reply_was_acknowledged() {
        let sendings = || vec![Sending::Unknown(gone()), refusal("STALE over")];
        let done = judged(Repeat::StaleIsDone, LONG, sendings());
        assert_eq!(done, ["again", "Simple(\"OK\")"]);
        assert_eq!(judged(Repeat::Safe, LONG, sendings()), ["again", "STALE over, true"]);
        let first = vec![refusal("STALE over")];
        assert_eq!(judged(Repeat::StaleIsDone, LONG, first), ["STALE over, false"]);
    }

    #[test]
    fn who_may_not_sign_in_is_told_at_once() {
        let denied = Error::from(Refused::of("WRONGPASS no", false));
        let told = judged(Repeat::Safe, LONG, vec![Sending::NotSent(denied)]);
        assert_eq!(told, ["WRONGPASS no, false"]);
    }

    #[test]
    fn pauses_grow_to_a_second() {
        for _ in 0..100 {
            let pause = jittered(PAUSE_MAX);
            assert!(pause >= PAUSE_MAX / 2 && pause < PAUSE_MAX, "{pause:?}");
        }
    }
}
