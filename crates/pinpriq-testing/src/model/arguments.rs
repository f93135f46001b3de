//! Checks that the arguments of a command make sense, before anything is looked up.

use pinpriq_proto::command::{Amendment, Assign, TakeMode};
use pinpriq_proto::limits::ID_BYTES_MAX;
use pinpriq_proto::reply::RefusalKind;
use pinpriq_proto::time::{Span, Timestamp};

use super::Model;

impl Model {
    pub(super) fn payload_fits(&self, payload: Option<&[u8]>) -> Result<(), RefusalKind> {
        let most = self.limits.payload_bytes_max;
        let fits = payload.is_none_or(|payload| payload.len() <= most);
        if fits { Ok(()) } else { Err(RefusalKind::TooLarge) }
    }

    /// Whether a span ends before the year 10000 and, where 0 makes no sense, is not 0.
    pub(super) fn span_fits(
        &self,
        span: Option<Span>,
        may_be_zero: bool,
    ) -> Result<(), RefusalKind> {
        let Some(span) = span else { return Ok(()) };
        let end = self.now.ms().saturating_add(span.ms());
        fits(end <= Timestamp::MAX.ms() && (may_be_zero || !span.is_zero()))
    }

    pub(super) fn ttl_fits(&self, ttl: Option<Span>, delay: Span) -> Result<(), RefusalKind> {
        self.span_fits(ttl, false)?;
        fits(ttl.is_none_or(|ttl| ttl > delay))
    }

    pub(super) fn amendment_fits(
        &self,
        delay: Span,
        amendment: &Amendment<'_>,
    ) -> Result<(), RefusalKind> {
        self.span_fits(Some(delay), true)?;
        self.payload_fits(amendment.payload)?;
        match amendment.ttl {
            Assign::To(ttl) => self.ttl_fits(ttl, delay),
            Assign::Keep => Ok(()),
        }
    }

    pub(super) fn mode_fits(&self, mode: TakeMode) -> Result<(), RefusalKind> {
        match mode {
            TakeMode::Lease { ttr } => self.span_fits(ttr, false),
            TakeMode::Unheld { ttr, otherwise } => {
                self.span_fits(Some(ttr.unwrap_or(otherwise)), false)
            }
            TakeMode::Pop => Ok(()),
        }
    }
}

pub(super) fn fits(makes_sense: bool) -> Result<(), RefusalKind> {
    if makes_sense { Ok(()) } else { Err(RefusalKind::BadArgument) }
}

pub(super) fn id_fits(id: &[u8]) -> Result<(), RefusalKind> {
    fits(!id.is_empty() && id.len() <= ID_BYTES_MAX)
}
