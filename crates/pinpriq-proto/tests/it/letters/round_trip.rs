//! Tests that decoding returns what was encoded, and that each value has only one encoding.

use pinpriq_proto::command::Command;
use pinpriq_proto::letters::{
    Malformed, Steps, decode_command, decode_output, encode_command, encode_output,
};
use pinpriq_proto::reply::Output;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::letters::strategies::{command, output, step};

fn command_bytes(command: &Command<'_>) -> Vec<u8> {
    let mut letter = Vec::new();
    encode_command(command, &mut letter);
    letter
}

fn output_bytes(output: &Output) -> Vec<u8> {
    let mut letter = Vec::new();
    encode_output(output, &mut letter);
    letter
}

/// Checks that these bytes, if they are a letter, are its only encoding.
fn is_the_only_encoding(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(again) = decode_command(bytes, command_bytes) {
        prop_assert_eq!(&again[..], bytes);
    }
    if let Ok(output) = decode_output(bytes) {
        prop_assert_eq!(&output_bytes(&output)[..], bytes);
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_command_comes_back(command in command()) {
        let letter = command_bytes(&command);
        prop_assert_eq!(decode_command(&letter, |decoded| *decoded == command), Ok(true));
    }

    #[test]
    fn every_output_comes_back(output in output()) {
        prop_assert_eq!(decode_output(&output_bytes(&output)), Ok(output));
    }

    #[test]
    fn steps_come_back_in_their_order(steps in vec(step(), 0..20)) {
        let mut letter = Steps::default();
        for step in &steps {
            letter.push(step);
        }
        let is_same = letter.decode(|decoded| *decoded == Command::Transaction(&steps));
        prop_assert_eq!(is_same, Ok(true));
    }

    #[test]
    fn what_is_encoded_is_appended(command in command(), output in output()) {
        let mut letter = command_bytes(&command);
        encode_output(&output, &mut letter);
        prop_assert_eq!(letter, [command_bytes(&command), output_bytes(&output)].concat());
    }

    #[test]
    fn a_command_that_is_cut_anywhere_is_refused(command in command()) {
        let letter = command_bytes(&command);
        for cut in 0..letter.len() {
            prop_assert_eq!(decode_command(&letter[..cut], |_| ()), Err(Malformed::Short));
        }
    }

    #[test]
    fn an_output_that_is_cut_anywhere_is_refused(output in output()) {
        let letter = output_bytes(&output);
        for cut in 0..letter.len() {
            prop_assert_eq!(decode_output(&letter[..cut]), Err(Malformed::Short));
        }
    }

    #[test]
    fn what_follows_is_refused(command in command(), output in output(), rest in 1_usize..20) {
        let mut letter = command_bytes(&command);
        letter.resize(letter.len() + rest, 0);
        prop_assert_eq!(decode_command(&letter, |_| ()), Err(Malformed::Rest(rest)));
        let mut letter = output_bytes(&output);
        letter.resize(letter.len() + rest, 0);
        prop_assert_eq!(decode_output(&letter), Err(Malformed::Rest(rest)));
    }

    #[test]
    fn a_changed_byte_is_refused_or_means_something_else(
        command in command(), output in output(), change in 1_u8..=255
    ) {
        for mut letter in [command_bytes(&command), output_bytes(&output)] {
            for at in 0..letter.len() {
                letter[at] ^= change;
                is_the_only_encoding(&letter)?;
                letter[at] ^= change;
            }
        }
    }

    #[test]
    fn any_bytes_are_refused_or_the_only_encoding(bytes in vec(any::<u8>(), 0..60)) {
        is_the_only_encoding(&bytes)?;
    }
}
