//! Checks of arguments against the time and the bounds of the engine.

use crate::engine::Engine;
use crate::operations::arguments::{bad, check_positive, later};
use pinpriq_proto::command::{Amendment, Assign};
use pinpriq_proto::reply::{Refusal, RefusalKind};
use pinpriq_proto::time::{Span, Timestamp};

impl Engine {
    /// Returns the moment `span` from now, if it is before the year 10000.
    pub(crate) fn moment(&self, what: &str, span: Span) -> Result<Timestamp, Refusal> {
        later(what, self.now, span)
    }

    pub(crate) fn check_payload(&self, payload: &[u8]) -> Result<(), Refusal> {
        let (length, most) = (payload.len(), self.limits.payload_bytes_max);
        if length > most {
            return Err(Refusal::new(
                RefusalKind::TooLarge,
                format!("a payload has at most {most} bytes here, and this one has {length}"),
            ));
        }
        Ok(())
    }

    /// Checks a delay together with the changes that accompany it.
    pub(crate) fn check_amendment(
        &self,
        delay: Span,
        amendment: &Amendment<'_>,
    ) -> Result<(), Refusal> {
        self.moment("the delay", delay)?;
        if let Some(payload) = amendment.payload {
            self.check_payload(payload)?;
        }
        let Assign::To(Some(ttl)) = amendment.ttl else { return Ok(()) };
        self.check_ttl(ttl, delay)
    }

    /// Checks a TTL against the delay given with it.
    pub(crate) fn check_ttl(&self, ttl: Span, delay: Span) -> Result<(), Refusal> {
        check_positive("the TTL", Some(ttl))?;
        self.moment("the TTL", ttl)?;
        if ttl <= delay {
            return Err(bad(format!(
                "the TTL of {ttl} would be over before the delay of {delay}: give a longer TTL"
            )));
        }
        Ok(())
    }
}
