//! Credit for deliveries.

use super::call::{Call, written};

/// Adds credit. The reply is all unspent credit.
pub(crate) fn add_credit(call: &mut Call<'_, '_>, credits: u32) {
    let protocol = call.talk.protocol;
    call.desk.say_credit(credits, move |outstanding| {
        written(protocol, |writer| writer.integer(i64::from(outstanding)))
    });
}
