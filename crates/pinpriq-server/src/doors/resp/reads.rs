//! What becomes of a request that the vocabulary reads as a command. How the reply is written is up
//! to `encode`.

use pinpriq_proto::command::Command;
use pinpriq_proto::request::fault::Fault;
use pinpriq_proto::request::reading::{Read, Room};
use pinpriq_proto::schedule::{NewSchedule, ScheduleCommand, When};

use super::call::{Call, Shape, written};
use crate::calendars::cron;

/// Carries out what a function makes of the request.
#[inline(never)]
pub(super) fn ask(call: &mut Call<'_, '_>, read: Read) -> Result<(), Fault> {
    let room = Room::default();
    let parts = call.parts;
    let command = read(parts, &room)?;
    match command {
        Command::Credit(credits) => {
            add_credit(call, credits);
            return Ok(());
        }
        // A cron expression is checked here, since the engine knows none.
        Command::Schedule(ScheduleCommand::Set(NewSchedule {
            when: When::Cron { expression, zone },
            ..
        })) => {
            cron(expression, zone).map_err(|refusal| Fault::bad(refusal.to_string()))?;
        }
        _ => {}
    }
    call.ask(Shape::asked_for(parts), &command)
}

/// Adds credit. The reply is all unspent credit.
fn add_credit(call: &mut Call<'_, '_>, credits: u32) {
    let protocol = call.talk.protocol;
    call.desk.say_credit(credits, move |outstanding| {
        written(protocol, |writer| writer.integer(i64::from(outstanding)))
    });
}
