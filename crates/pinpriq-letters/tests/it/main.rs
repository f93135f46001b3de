//! Letters come back as they were, have the bytes that are told here, and do no harm.

use pinpriq_engine::command::{Command, Put};
use pinpriq_letters::{decode_command, encode_command};

#[test]
fn a_plain_put_costs_four_bytes() {
    let put = Command::Put(Put::new(b"jobs", b"hello"));
    let mut letter = Vec::new();
    encode_command(&put, &mut letter);
    assert_eq!(letter.len(), 4 + b"jobs".len() + b"hello".len());
    assert_eq!(decode_command(&letter, |command| *command == put), Ok(true));
}
