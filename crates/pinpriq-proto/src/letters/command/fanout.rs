//! Commands of fan-out: publishing to a topic, and being a member.

use crate::fanout::{Deadline, MemberCommand, Publish};
use crate::records::primitives::{
    put_bytes, put_if, put_moment, put_span, take_bytes, take_if, take_moment, take_span,
};

use super::kinds::{
    MEMBER_BEAT, MEMBER_JOIN, MEMBER_LEAVE, MEMBER_LEAVE_TOPIC, MEMBER_LIST, PUBLISH,
};
use crate::letters::Malformed;
use crate::letters::fields::{
    pack_priority, put_priority, put_terms_if_any, take_priority, take_terms_if,
};
use crate::letters::flags::{Packed, Packing};

pub(super) fn encode_publish(publish: &Publish<'_>, out: &mut Vec<u8>) {
    out.push(PUBLISH);
    let mut flags = Packed::default();
    flags.flag(!publish.terms.are_none());
    pack_priority(&mut flags, publish.priority);
    flags.code(
        2,
        match publish.deadline {
            Deadline::OfLane => 0,
            Deadline::At(_) => 1,
            Deadline::After(_) => 2,
        },
    );
    flags.put(out);
    put_bytes(out, publish.topic);
    put_terms_if_any(out, publish.terms);
    put_priority(out, publish.priority);
    match publish.deadline {
        Deadline::OfLane => {}
        Deadline::At(moment) => put_moment(out, moment),
        Deadline::After(span) => put_span(out, span),
    }
    put_bytes(out, publish.payload);
}

pub(super) fn take_publish<'a>(input: &mut &'a [u8]) -> Result<Publish<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (terms, priority, deadline) = (flags.flag(), flags.code(2), flags.code(2));
    flags.end()?;
    Ok(Publish {
        topic: take_bytes(input)?,
        terms: take_terms_if(terms, input)?,
        priority: take_priority(priority, input)?,
        deadline: match deadline {
            0 => Deadline::OfLane,
            1 => Deadline::At(take_moment(input)?),
            2 => Deadline::After(take_span(input)?),
            _ => return Err(Malformed::OutOfRange("deadline")),
        },
        payload: take_bytes(input)?,
    })
}

pub(super) fn encode_member(command: &MemberCommand<'_>, out: &mut Vec<u8>) {
    let mut flags = Packed::default();
    match command {
        MemberCommand::Join { topic, member, lease } => {
            out.push(MEMBER_JOIN);
            flags.flag(lease.is_some());
            flags.put(out);
            put_bytes(out, topic);
            put_bytes(out, member);
            put_if(out, *lease, put_span);
        }
        MemberCommand::Beat { member, lease } => {
            out.push(MEMBER_BEAT);
            flags.flag(lease.is_some());
            flags.put(out);
            put_bytes(out, member);
            put_if(out, *lease, put_span);
        }
        MemberCommand::LeaveTopic { topic, member } => {
            out.push(MEMBER_LEAVE_TOPIC);
            put_bytes(out, topic);
            put_bytes(out, member);
        }
        MemberCommand::Leave(member) => {
            out.push(MEMBER_LEAVE);
            put_bytes(out, member);
        }
        MemberCommand::List(topic) => {
            out.push(MEMBER_LIST);
            put_bytes(out, topic);
        }
    }
}

/// Returns `None` if this is not the kind of one of these commands.
pub(super) fn take_member<'a>(
    kind: u8,
    input: &mut &'a [u8],
) -> Result<Option<MemberCommand<'a>>, Malformed> {
    Ok(Some(match kind {
        MEMBER_JOIN => {
            let has_lease = take_lease_flag(input)?;
            MemberCommand::Join {
                topic: take_bytes(input)?,
                member: take_bytes(input)?,
                lease: take_if(has_lease, input, take_span)?,
            }
        }
        MEMBER_BEAT => {
            let has_lease = take_lease_flag(input)?;
            MemberCommand::Beat {
                member: take_bytes(input)?,
                lease: take_if(has_lease, input, take_span)?,
            }
        }
        MEMBER_LEAVE_TOPIC => {
            MemberCommand::LeaveTopic { topic: take_bytes(input)?, member: take_bytes(input)? }
        }
        MEMBER_LEAVE => MemberCommand::Leave(take_bytes(input)?),
        MEMBER_LIST => MemberCommand::List(take_bytes(input)?),
        _ => return Ok(None),
    }))
}

fn take_lease_flag(input: &mut &[u8]) -> Result<bool, Malformed> {
    let mut flags = Packing::take(input)?;
    let has_lease = flags.flag();
    flags.end()?;
    Ok(has_lease)
}
