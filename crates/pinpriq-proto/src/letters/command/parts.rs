//! Parts that several commands share: the queue, the proof, other changes, the selection.
//!
//! The flags say which form a part has, and its bytes follow them.

use crate::command::{
    Amendment, Assign, End, Held, HeldBy, Order, QueueName, Selection, TakeMode, Wait,
};
use crate::records::primitives::{
    put_bytes, put_if, put_signed, put_span, take_byte, take_bytes, take_if, take_signed, take_span,
};
use crate::time::Span;

use crate::letters::Malformed;
use crate::letters::fields::{put_receipt, take_receipt};
use crate::letters::flags::{Packed, Packing};
use crate::letters::list::put_list;

#[inline]
pub(super) fn pack_queue(flags: &mut Packed, queue: &QueueName<'_>) {
    flags.flag(queue.member.is_some());
}

#[inline]
pub(super) fn put_queue(out: &mut Vec<u8>, queue: &QueueName<'_>) {
    put_bytes(out, queue.name);
    put_if(out, queue.member, put_bytes);
}

#[inline]
pub(super) fn take_queue<'a>(
    is_lane: bool,
    input: &mut &'a [u8],
) -> Result<QueueName<'a>, Malformed> {
    Ok(QueueName { name: take_bytes(input)?, member: take_if(is_lane, input, take_bytes)? })
}

/// Writes the start of a command that has no choices except for its queue.
pub(super) fn begin_in(out: &mut Vec<u8>, kind: u8, queue: &QueueName<'_>) {
    out.push(kind);
    let mut flags = Packed::default();
    pack_queue(&mut flags, queue);
    flags.put(out);
    put_queue(out, queue);
}

/// Takes what [`begin_in`] wrote after the kind.
pub(super) fn take_queue_first<'a>(input: &mut &'a [u8]) -> Result<QueueName<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let is_lane = flags.flag();
    flags.end()?;
    take_queue(is_lane, input)
}

#[inline]
pub(super) fn put_names(out: &mut Vec<u8>, names: &[&[u8]]) {
    put_list(out, names, |out, name| put_bytes(out, name));
}

#[inline]
pub(super) fn pack_held(flags: &mut Packed, held: &Held<'_>) {
    pack_queue(flags, &held.queue);
    flags.flag(match held.by {
        HeldBy::Receipt(_) => false,
        HeldBy::Id(_) => true,
    });
}

#[inline]
pub(super) fn put_held(out: &mut Vec<u8>, held: &Held<'_>) {
    put_queue(out, &held.queue);
    match &held.by {
        HeldBy::Receipt(receipt) => put_receipt(out, receipt),
        HeldBy::Id(id) => put_bytes(out, id),
    }
}

#[inline]
pub(super) fn take_held<'a>(
    is_lane: bool,
    is_by_id: bool,
    input: &mut &'a [u8],
) -> Result<Held<'a>, Malformed> {
    let queue = take_queue(is_lane, input)?;
    let by = if is_by_id {
        HeldBy::Id(take_bytes(input)?)
    } else {
        HeldBy::Receipt(take_receipt(input)?)
    };
    Ok(Held { queue, by })
}

/// A delay of zero takes no bytes.
#[inline]
pub(super) fn pack_delay(flags: &mut Packed, delay: Span) {
    flags.flag(!delay.is_zero());
}

#[inline]
pub(super) fn put_delay(out: &mut Vec<u8>, delay: Span) {
    if !delay.is_zero() {
        put_span(out, delay);
    }
}

#[inline]
pub(super) fn take_delay(is_there: bool, input: &mut &[u8]) -> Result<Span, Malformed> {
    if !is_there {
        return Ok(Span::ZERO);
    }
    let delay = take_span(input)?;
    if delay.is_zero() { Err(Malformed::OutOfRange("delay")) } else { Ok(delay) }
}

/// A value that may be replaced, possibly by none.
#[inline]
pub(super) fn pack_assign<T>(flags: &mut Packed, assign: &Assign<Option<T>>) {
    flags.code(
        2,
        match assign {
            Assign::Keep => 0,
            Assign::To(Some(_)) => 1,
            Assign::To(None) => 2,
        },
    );
}

#[inline]
pub(super) fn put_assign<T>(
    out: &mut Vec<u8>,
    assign: Assign<Option<T>>,
    put: impl FnOnce(&mut Vec<u8>, T),
) {
    match assign {
        Assign::To(Some(value)) => put(out, value),
        Assign::Keep | Assign::To(None) => {}
    }
}

#[inline]
pub(super) fn take_assign<'a, T>(
    code: u8,
    input: &mut &'a [u8],
    take: impl FnOnce(&mut &'a [u8]) -> Result<T, Malformed>,
) -> Result<Assign<Option<T>>, Malformed> {
    Ok(match code {
        0 => Assign::Keep,
        1 => Assign::To(Some(take(input)?)),
        2 => Assign::To(None),
        _ => return Err(Malformed::OutOfRange("assignment")),
    })
}

#[inline]
pub(super) fn pack_amendment(flags: &mut Packed, amendment: &Amendment<'_>) {
    flags.flag(amendment.payload.is_some());
    pack_assign(flags, &amendment.priority);
    pack_assign(flags, &amendment.ttl);
}

#[inline]
pub(super) fn put_amendment(out: &mut Vec<u8>, amendment: &Amendment<'_>) {
    put_if(out, amendment.payload, put_bytes);
    put_assign(out, amendment.priority, put_signed);
    put_assign(out, amendment.ttl, put_span);
}

/// The form of an amendment, as the flags give it. Take it before reading any byte of the
/// amendment.
pub(super) struct AmendmentForm {
    payload: bool,
    priority: u8,
    ttl: u8,
}

impl AmendmentForm {
    #[inline]
    pub(super) fn of(flags: &mut Packing) -> Self {
        Self { payload: flags.flag(), priority: flags.code(2), ttl: flags.code(2) }
    }

    #[inline]
    pub(super) fn take<'a>(self, input: &mut &'a [u8]) -> Result<Amendment<'a>, Malformed> {
        Ok(Amendment {
            payload: take_if(self.payload, input, take_bytes)?,
            priority: take_assign(self.priority, input, take_signed)?,
            ttl: take_assign(self.ttl, input, take_span)?,
        })
    }
}

#[inline]
pub(super) fn pack_selection(flags: &mut Packed, selection: Selection) {
    flags.flag(match selection.from {
        End::Min => false,
        End::Max => true,
    });
    flags.flag(match selection.order {
        Order::Oldest => false,
        Order::Newest => true,
    });
    flags.flag(selection.group);
    flags.flag(selection.narrow);
}

#[inline]
pub(super) fn selection_of(flags: &mut Packing) -> Selection {
    Selection {
        from: if flags.flag() { End::Max } else { End::Min },
        order: if flags.flag() { Order::Newest } else { Order::Oldest },
        group: flags.flag(),
        narrow: flags.flag(),
    }
}

#[inline]
pub(super) fn pack_wait(flags: &mut Packed, wait: Wait) {
    flags.code(
        2,
        match wait {
            Wait::No => 0,
            Wait::For(_) => 1,
            Wait::Forever => 2,
        },
    );
}

#[inline]
pub(super) fn put_wait(out: &mut Vec<u8>, wait: Wait) {
    match wait {
        Wait::For(span) => put_span(out, span),
        Wait::No | Wait::Forever => {}
    }
}

#[inline]
pub(super) fn take_wait(code: u8, input: &mut &[u8]) -> Result<Wait, Malformed> {
    Ok(match code {
        0 => Wait::No,
        1 => Wait::For(take_span(input)?),
        2 => Wait::Forever,
        _ => return Err(Malformed::OutOfRange("wait")),
    })
}

#[inline]
pub(super) fn pack_mode(flags: &mut Packed, mode: TakeMode) {
    flags.code(
        2,
        match mode {
            TakeMode::Lease { ttr: None } => 0,
            TakeMode::Lease { ttr: Some(_) } => 1,
            TakeMode::Pop => 2,
            TakeMode::Unheld { .. } => 3,
        },
    );
}

#[inline]
pub(super) fn put_mode(out: &mut Vec<u8>, mode: TakeMode) {
    match mode {
        TakeMode::Lease { ttr } => put_if(out, ttr, put_span),
        TakeMode::Unheld { ttr, otherwise } => {
            put_span(out, otherwise);
            out.push(u8::from(ttr.is_some()));
            put_if(out, ttr, put_span);
        }
        TakeMode::Pop => {}
    }
}

#[inline]
pub(super) fn take_mode(code: u8, input: &mut &[u8]) -> Result<TakeMode, Malformed> {
    Ok(match code {
        0 => TakeMode::Lease { ttr: None },
        1 => TakeMode::Lease { ttr: Some(take_span(input)?) },
        2 => TakeMode::Pop,
        3 => {
            let (otherwise, has_ttr) = (take_span(input)?, take_byte(input)?);
            match has_ttr {
                0 => TakeMode::Unheld { ttr: None, otherwise },
                1 => TakeMode::Unheld { ttr: Some(take_span(input)?), otherwise },
                _ => return Err(Malformed::OutOfRange("mode")),
            }
        }
        _ => return Err(Malformed::OutOfRange("mode")),
    })
}
