//! What an engine is asked for when a take names queues of several engines.

use crate::command::{Command, Done, Share};
use crate::records::primitives::{end, put_number, take_small};
use crate::task::Receipt;

use super::kinds::{SHARE_LOOK, SHARE_NEXT, SHARE_PERMIT, SHARE_POP, SHARE_WAIT};
use super::putting::{encode_take, put_done, take_done, take_take};
use super::{NO_RECEIPT, take_inner_take, take_names, take_receipts};
use crate::letters::Malformed;
use crate::letters::fields::put_receipt;
use crate::letters::flags::{Packed, Packing};
use crate::letters::list::{List, put_list, take_list};

pub(super) fn encode(share: &Share<'_>, out: &mut Vec<u8>) {
    match share {
        Share::Look { done, take } => {
            out.push(SHARE_LOOK);
            put_list(out, done, put_done);
            encode_take(take, out);
        }
        Share::Wait { take, is_echo } => {
            out.push(SHARE_WAIT);
            put_flag(out, *is_echo);
            encode_take(take, out);
        }
        Share::Pop(receipts) => {
            out.push(SHARE_POP);
            put_list(out, receipts, put_receipt);
        }
        Share::Permit { deliveries, holds } => {
            out.push(SHARE_PERMIT);
            put_flag(out, *holds);
            put_number(out, u64::from(*deliveries));
        }
        Share::Next => out.push(SHARE_NEXT),
    }
}

/// Reads what comes after the first byte.
pub(super) fn take<R>(
    kind: u8,
    bytes: &[u8],
    then: impl FnOnce(&Command<'_>) -> R,
) -> Result<R, Malformed> {
    // What the command borrows from while `then` is called.
    let (names, receipts): (List<&[u8]>, List<Receipt>);
    let done: List<Done<'_>>;
    let mut rest = bytes;
    let input = &mut rest;
    let share = match kind {
        SHARE_LOOK => {
            done = take_list(input, Done { queue: &[], receipt: NO_RECEIPT }, take_done)?;
            let flags = take_inner_take(input)?;
            names = take_names(input)?;
            Share::Look { done: &done, take: take_take(flags, &names, input)? }
        }
        SHARE_WAIT => {
            let is_echo = take_flag(input)?;
            let flags = take_inner_take(input)?;
            names = take_names(input)?;
            Share::Wait { take: take_take(flags, &names, input)?, is_echo }
        }
        SHARE_PERMIT => {
            let holds = take_flag(input)?;
            Share::Permit { deliveries: take_small(input, "credit")?, holds }
        }
        SHARE_NEXT => Share::Next,
        _ => {
            receipts = take_receipts(input)?;
            Share::Pop(&receipts)
        }
    };
    end(input)?;
    Ok(then(&Command::Share(share)))
}

fn put_flag(out: &mut Vec<u8>, flag: bool) {
    let mut flags = Packed::default();
    flags.flag(flag);
    flags.put(out);
}

fn take_flag(input: &mut &[u8]) -> Result<bool, Malformed> {
    let mut flags = Packing::take(input)?;
    let flag = flags.flag();
    flags.end()?;
    Ok(flag)
}
