//! The commands on tasks that most requests ask for, and the reading of which is worth a function.

use pinpriq_proto::command::{Command, TakeMode};
use pinpriq_proto::request::by_hand::{
    self, RARE_OF_PUT, SPECIAL_OF_PUT, ack_of, are_several, done_first, plain_put, put_with_extras,
    take_in, take_of,
};
use pinpriq_proto::request::fault::Fault;
use pinpriq_proto::request::options::{ID_TAKEN, TTR, WITHMETA};

use super::call::{Call, Shape};
use super::reads::ask;

type Done = Result<(), Fault>;

pub(crate) fn put(call: &mut Call<'_, '_>) -> Done {
    if !call.parts.has_none_of(RARE_OF_PUT) {
        return rare_put(call);
    }
    let put = Command::Put(plain_put(call.parts)?);
    call.ask(Shape::Plain, &put)
}

/// Puts a task of which its put says what few do.
#[inline(never)]
fn rare_put(call: &mut Call<'_, '_>) -> Done {
    if !call.parts.has_none_of(SPECIAL_OF_PUT) {
        return ask(call, by_hand::put);
    }
    let put = Command::Put(put_with_extras(call.parts)?);
    call.ask(Shape::Plain, &put)
}

pub(crate) fn take(call: &mut Call<'_, '_>) -> Done {
    let ttr = call.parts.span(TTR)?;
    let mode = match call.talk.ttr_otherwise {
        Some(otherwise) => TakeMode::Unheld { ttr, otherwise },
        _ => TakeMode::Lease { ttr },
    };
    if !call.parts.has_none_of(ID_TAKEN.bit) {
        let command = take_in(call.parts, mode)?;
        return call.ask(Shape::asked_for(call.parts), &command);
    }
    select(call, mode)
}

pub(crate) fn pop(call: &mut Call<'_, '_>) -> Done {
    select(call, TakeMode::Pop)
}

fn select(call: &mut Call<'_, '_>, mode: TakeMode) -> Done {
    let parts = call.parts;
    call.ask(Shape::asked_for(parts), &done_first(parts, take_of(parts, mode)?))
}

pub(crate) fn ack(call: &mut Call<'_, '_>) -> Done {
    if are_several(call.parts) {
        return ask(call, by_hand::ack);
    }
    let ack = Command::Ack(ack_of(call.parts)?);
    call.ask(Shape::Plain, &ack)
}

/// Subscribes. How deliveries are written is a matter of the connection, not of the engine.
pub(crate) fn subscribe(call: &mut Call<'_, '_>) -> Done {
    let meta = call.parts.has(WITHMETA);
    let was = call.talk.meta;
    // What is there is delivered at once.
    call.talk.tell_meta(call.desk, meta);
    let done = ask(call, by_hand::subscribe);
    if done.is_err() {
        call.talk.tell_meta(call.desk, was);
    }
    done
}
