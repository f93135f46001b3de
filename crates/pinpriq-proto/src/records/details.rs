//! Details as bytes: what of each stands in a record of the journal, behind its type.

use super::Malformed;
use super::primitives::{
    put_bytes, put_moment, put_number, put_option, put_span, take_byte, take_bytes, take_moment,
    take_number, take_option, take_small, take_span,
};
use crate::batches::{BatchRecord, BatchState, Cancelling};
use crate::details::{Detail, DetailKind};
use crate::named_limits::LimitRecord;
use crate::settings::Rate;
use crate::shares::{Own, ShareRecord, ShareRules, WEIGHT_MAX};
use crate::task::{Bytes, TaskId};
use crate::unique::WindowRecord;

/// Makes a name of bytes in a log. Neighbouring records may share its allocation.
pub type NameOf<'n> = &'n mut dyn FnMut(&[u8]) -> Bytes;

impl Detail {
    /// Appends it to a record of the journal.
    pub fn put_in(&self, out: &mut Vec<u8>) {
        match self {
            Self::Window(record) => record.put_in(out),
            Self::Share(record) => record.put_in(out),
            Self::Limit(record) => record.put_in(out),
            Self::Batch(record) => record.put_in(out),
        }
    }

    /// Takes what [`Self::put_in`] appends.
    pub fn take_from(
        kind: DetailKind,
        input: &mut &[u8],
        name: NameOf<'_>,
    ) -> Result<Self, Malformed> {
        Ok(match kind {
            DetailKind::Window => WindowRecord::take_from(input)?.into(),
            DetailKind::Share => ShareRecord::take_from(input, name)?.into(),
            DetailKind::Limit => LimitRecord::take_from(input)?.into(),
            DetailKind::Batch => BatchRecord::take_from(input)?.into(),
        })
    }
}

impl WindowRecord {
    fn put_in(&self, out: &mut Vec<u8>) {
        put_number(out, self.number);
        put_bytes(out, &self.queue);
        put_bytes(out, &self.key);
        self.id.put_in(out);
        put_moment(out, self.until);
    }

    fn take_from(input: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(Self {
            number: take_number(input)?,
            queue: take_bytes(input)?.into(),
            key: take_bytes(input)?.into(),
            id: TaskId::take_from(input)?,
            until: take_moment(input)?,
        })
    }
}

impl ShareRecord {
    fn put_in(&self, out: &mut Vec<u8>) {
        let Self { number, queue, share, rules } = self;
        put_number(out, *number);
        put_bytes(out, queue);
        put_bytes(out, share);
        put_number(out, rules.weight.into());
        put_own(out, rules.limit, put_number);
        put_own(out, rules.rate, put_rate);
    }

    fn take_from(input: &mut &[u8], name: NameOf<'_>) -> Result<Self, Malformed> {
        let number = take_number(input)?;
        let queue = name(take_bytes(input)?);
        let share = take_bytes(input)?.into();
        let weight = u16::try_from(take_number(input)?).ok();
        let weight = weight.filter(|weight| (1..=WEIGHT_MAX).contains(weight));
        let weight = weight.ok_or(Malformed::OutOfRange("weight"))?;
        let limit = take_own(input, take_number)?;
        let rate = take_own(input, take_rate)?;
        Ok(Self { number, queue, share, rules: ShareRules { weight, limit, rate } })
    }
}

impl BatchRecord {
    fn put_in(&self, out: &mut Vec<u8>) {
        put_number(out, self.number);
        put_bytes(out, &self.name);
        out.push(self.state as u8);
        out.push(u8::from(self.given_up));
        put_moment(out, self.opened_at);
        put_moment(out, self.changed_at);
        put_option(out, self.done_at, put_moment);
        put_option(out, self.expires_at, put_moment);
        for count in [self.total, self.acked, self.failed] {
            put_number(out, count);
        }
        put_option(out, self.cancelling.as_ref(), |out, it| {
            put_option(out, it.reason.as_deref(), put_bytes);
            put_option(out, it.grace, put_span);
        });
    }

    /// What its counts and moments say has to be possible.
    fn take_from(input: &mut &[u8]) -> Result<Self, Malformed> {
        const WRONG: Malformed = Malformed::OutOfRange("batch");
        let (number, name) = (take_number(input)?, take_bytes(input)?.into());
        let state = BatchState::ALL.get(usize::from(take_byte(input)?)).copied().ok_or(WRONG)?;
        let given_up = match take_byte(input)? {
            0 => false,
            1 => true,
            _ => return Err(WRONG),
        };
        let (opened_at, changed_at) = (take_moment(input)?, take_moment(input)?);
        let done_at = take_option(input, take_moment)?;
        let expires_at = take_option(input, take_moment)?;
        let (total, acked, failed) =
            (take_number(input)?, take_number(input)?, take_number(input)?);
        let cancelling = take_option(input, |input| {
            let reason = take_option(input, |input| take_bytes(input).map(Bytes::from))?;
            Ok(Cancelling { reason, grace: take_option(input, take_span)? })
        })?;
        let ended = acked.checked_add(failed).filter(|ended| *ended <= total);
        if ended.is_none() || done_at.is_some() != (state == BatchState::Done) {
            return Err(WRONG);
        }
        Ok(Self {
            number,
            name,
            state,
            given_up,
            opened_at,
            changed_at,
            done_at,
            expires_at,
            total,
            acked,
            failed,
            cancelling,
        })
    }
}

fn put_rate(out: &mut Vec<u8>, rate: Rate) {
    put_number(out, rate.count.into());
    put_span(out, rate.per);
}

fn take_rate(input: &mut &[u8]) -> Result<Rate, Malformed> {
    Ok(Rate { count: take_small(input, "rate")?, per: take_span(input)? })
}

fn put_own<T>(out: &mut Vec<u8>, own: Own<T>, put: fn(&mut Vec<u8>, T)) {
    match own {
        Own::Default => out.push(0),
        Own::Is(None) => out.push(1),
        Own::Is(Some(value)) => {
            out.push(2);
            put(out, value);
        }
    }
}

fn take_own<T>(
    input: &mut &[u8],
    take: fn(&mut &[u8]) -> Result<T, Malformed>,
) -> Result<Own<T>, Malformed> {
    match take_byte(input)? {
        0 => Ok(Own::Default),
        1 => Ok(Own::Is(None)),
        2 => take(input).map(|value| Own::Is(Some(value))),
        _ => Err(Malformed::OutOfRange("rule of a share")),
    }
}
