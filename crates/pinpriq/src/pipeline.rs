//! Many commands over one connection, sent without waiting for each answer.
//!
//! The number under way is large enough that neither side waits for the other's bytes. It is small
//! enough that the replies fit the buffers of the operating system, so the server can always send
//! them.

use pinpriq_proto::wire::resp::{Value, Words};

use crate::exit::Failure;
use crate::resp::Client;

/// How many commands may be under way.
const UNDER_WAY_MAX: usize = 512;

/// About how many bytes are sent at once.
const WRITE_BYTES: usize = 64 << 10;

/// What there is to send.
#[derive(Debug)]
pub(crate) enum Next {
    /// A command.
    Command(Words),
    /// Nothing yet: wait for replies to what is under way.
    Later,
    /// Nothing more.
    End,
}

/// The source of commands, and the receiver of replies.
pub(crate) trait Traffic {
    /// Returns the next command. It may block if `idle`, since nothing is under way then.
    fn next(&mut self, idle: bool) -> Result<Next, Failure>;

    /// Takes the next reply, which may be a refusal. Replies come in the order of the commands.
    fn answer(&mut self, answer: Value) -> Result<(), Failure>;
}

/// Sends all commands and passes on all replies.
pub(crate) fn run(client: &mut Client, traffic: &mut impl Traffic) -> Result<(), Failure> {
    let mut under_way = 0;
    let mut bytes = Vec::new();
    loop {
        let mut left = UNDER_WAY_MAX / 2;
        let mut ended = false;
        while under_way < UNDER_WAY_MAX && bytes.len() < WRITE_BYTES {
            match traffic.next(under_way == 0)? {
                Next::Command(words) => {
                    words.put(&mut bytes);
                    under_way += 1;
                    continue;
                }
                Next::Later => {}
                Next::End => ended = true,
            }
            left = 0;
            break;
        }
        client.send(&bytes)?;
        bytes.clear();
        while under_way > left {
            traffic.answer(client.reply()?)?;
            under_way -= 1;
        }
        if ended {
            return Ok(());
        }
    }
}
