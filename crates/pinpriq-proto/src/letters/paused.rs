//! Which sides of a queue are paused: choices for both sides, and later the moments at which that
//! ends by itself.

use crate::records::primitives::{put_if, put_moment, take_moment};
use crate::settings::{Pause, Paused};

use crate::letters::Malformed;
use crate::letters::flags::{Packed, Packing};

const OFF: u8 = 0;
const ENDLESS: u8 = 1;
const UNTIL: u8 = 2;

/// What the choices say.
pub(crate) struct Choices([u8; 2]);

/// Adds the choices.
pub(crate) fn pack(flags: &mut Packed, paused: Paused) {
    for side in [paused.input, paused.output] {
        flags.code(
            2,
            match side {
                Pause::Off => OFF,
                Pause::Endless => ENDLESS,
                Pause::Until(_) => UNTIL,
            },
        );
    }
}

/// Appends the moments.
pub(crate) fn put(out: &mut Vec<u8>, paused: Paused) {
    put_if(out, paused.input.until(), put_moment);
    put_if(out, paused.output.until(), put_moment);
}

/// Reads the choices.
pub(crate) fn unpack(flags: &mut Packing) -> Choices {
    Choices([flags.code(2), flags.code(2)])
}

/// Reads the moments that these choices call for.
pub(crate) fn take(choices: &Choices, input: &mut &[u8]) -> Result<Paused, Malformed> {
    let mut side = |choice: u8| match choice {
        OFF => Ok(Pause::Off),
        ENDLESS => Ok(Pause::Endless),
        UNTIL => Ok(Pause::Until(take_moment(input)?)),
        _ => Err(Malformed::OutOfRange("paused")),
    };
    let [input_side, output_side] = choices.0;
    Ok(Paused { input: side(input_side)?, output: side(output_side)? })
}
