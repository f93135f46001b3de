//! Commands that look at a whole queue: why, what, and who holds it.

use crate::command::QueueName;
use crate::looking::{LeasePlace, Leases, Scan};
use crate::records::primitives::{
    put_bytes, put_if, put_number, take_bytes, take_if, take_number, take_small,
};

use super::kinds::{EXPLAIN, LEASES, SCAN};
use super::parts::{pack_queue, put_queue, take_queue};
use crate::letters::Malformed;
use crate::letters::fields::{kind_code, kind_of};
use crate::letters::flags::{Packed, Packing};

pub(super) fn encode_explain(queue: &QueueName<'_>, id: Option<&[u8]>, out: &mut Vec<u8>) {
    out.push(EXPLAIN);
    let mut flags = Packed::default();
    flags.flag(id.is_some());
    pack_queue(&mut flags, queue);
    flags.put(out);
    put_queue(out, queue);
    put_if(out, id, put_bytes);
}

pub(super) fn take_explain<'a>(
    input: &mut &'a [u8],
) -> Result<(QueueName<'a>, Option<&'a [u8]>), Malformed> {
    let mut flags = Packing::take(input)?;
    let (id, is_lane) = (flags.flag(), flags.flag());
    flags.end()?;
    Ok((take_queue(is_lane, input)?, take_if(id, input, take_bytes)?))
}

pub(super) fn encode_scan(scan: &Scan<'_>, out: &mut Vec<u8>) {
    out.push(SCAN);
    let mut flags = Packed::default();
    pack_queue(&mut flags, &scan.queue);
    flags.code(3, kind_code(scan.state));
    flags.flag(scan.key.is_some());
    flags.put(out);
    put_queue(out, &scan.queue);
    put_number(out, scan.after);
    put_number(out, u64::from(scan.count));
    put_if(out, scan.key, put_bytes);
}

pub(super) fn take_scan<'a>(input: &mut &'a [u8]) -> Result<Scan<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (is_lane, state, key) = (flags.flag(), kind_of(flags.code(3))?, flags.flag());
    flags.end()?;
    Ok(Scan {
        queue: take_queue(is_lane, input)?,
        after: take_number(input)?,
        count: take_small(input, "count")?,
        state,
        key: take_if(key, input, take_bytes)?,
    })
}

pub(super) fn encode_leases(leases: &Leases<'_>, out: &mut Vec<u8>) {
    out.push(LEASES);
    let mut flags = Packed::default();
    flags.flag(leases.queue.is_some());
    flags.flag(leases.queue.is_some_and(|queue| queue.member.is_some()));
    flags.flag(leases.after.is_some());
    flags.flag(leases.after.is_some_and(|place| place.lane.is_some()));
    flags.put(out);
    put_if(out, leases.queue.as_ref(), put_queue);
    put_if(out, leases.after, |out, place| {
        put_if(out, place.lane, put_number);
        put_bytes(out, place.queue);
        put_number(out, place.seq);
    });
    put_number(out, u64::from(leases.count));
}

pub(super) fn take_leases<'a>(input: &mut &'a [u8]) -> Result<Leases<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (queue, is_lane) = (flags.flag(), flags.flag());
    let (after, lane) = (flags.flag(), flags.flag());
    flags.end()?;
    if (is_lane && !queue) || (lane && !after) {
        return Err(Malformed::OutOfRange("flags"));
    }
    let queue = take_if(queue, input, |input| take_queue(is_lane, input))?;
    let after = take_if(after, input, |input| {
        Ok(LeasePlace {
            lane: take_if(lane, input, take_number)?,
            queue: take_bytes(input)?,
            seq: take_number(input)?,
        })
    })?;
    Ok(Leases { queue, after, count: take_small(input, "count")? })
}
