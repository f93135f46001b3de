//! The arguments of the commands that speak the pinpriq protocol.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::encryption::EncryptionArgs;
use super::texts::after;
use super::values::{count, number_in, packet_ttl};
use crate::endpoint::{self, Endpoint};
use crate::exit::Failure;
use crate::settings::Framing;

/// What can be done over the pinpriq protocol.
#[derive(Debug, Subcommand)]
pub(crate) enum WireCommand {
    /// Push a packet to a queue, and wait until it is durable.
    ///
    /// The queue comes into being with its first packet. The payload is at most 65535 bytes and is
    /// sent byte for byte: a line end at the end of stdin is part of it. A packet that is not
    /// popped within its time to live, at most 65.535 seconds, is removed. After the push the
    /// command pops from a queue that is not used and waits for the answer, which the server gives
    /// only once the push is durable.
    #[command(after_help = after(
        "pinpriq wire push jobs hello
        pinpriq wire push jobs --key user-7 --priority 5 --ttl-ms 30000 < job.json
        date | pinpriq wire push jobs -",
        "0  accepted and durable
        1  no connection, or the server refused the push by closing it
        2  wrong usage",
    ))]
    Push(PushArgs),
    /// Pop packets from a queue and print them.
    ///
    /// A pop takes the packet with the lowest priority number, the newest of them, and with it all
    /// other packets of the queue that have the same key. It never waits. Each payload is printed
    /// on a line of its own. To a file or a pipe the bytes go as they are; on a terminal those that
    /// cannot be printed are shown as escapes. A popped packet is gone from the queue, whatever
    /// becomes of the output.
    #[command(after_help = after(
        "pinpriq wire pop jobs
        pinpriq wire pop jobs --count 100 --with-key
        pinpriq wire pop jobs --null | xargs -0 -n1 ./handle-job
        pinpriq wire pop jobs > job.json || echo nothing to do",
        "0  at least one packet was popped
        1  no connection, or it was lost
        2  wrong usage
        4  the queue was empty",
    ))]
    Pop(PopArgs),
    /// Wait for packets and print them as they come.
    ///
    /// The command asks for one delivery at a time and for the next only when that has been
    /// printed. A delivery is what a pop would have taken: one packet and all others with its key.
    /// It does not say which queue it comes from. Interrupt the command to end it; a delivery that
    /// is on its way at that moment may be lost.
    ///
    /// With bare framing the end of a delivery cannot be seen, so each packet counts as a delivery.
    #[command(after_help = after(
        "pinpriq wire subscribe jobs
        pinpriq wire subscribe jobs mails --count 1 --with-key
        pinpriq wire subscribe jobs | while read -r job; do ./handle-job \"$job\"; done",
        "0  --count deliveries were printed; without --count: the server closed the connection
        1  no connection, or it ended earlier
        2  wrong usage",
    ))]
    Subscribe(SubscribeArgs),
}

/// Where the server is.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Host and port of the server's pinpriq door
    #[arg(long, env = "PINPRIQ_ADDRESS", hide_env_values = true, value_name = "ADDR")]
    #[arg(default_value = "127.0.0.1:7250")]
    pub(crate) address: String,

    #[command(flatten)]
    pub(crate) encryption: EncryptionArgs,
}

impl ServerArgs {
    /// Returns where the server is.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Failure> {
        Endpoint::of(&self.address, &self.encryption, endpoint::PINPRIQ)
    }
}

/// How packets are printed.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PrintArgs {
    /// Print keys and payloads as hexadecimal digits
    #[arg(long)]
    pub(crate) hex: bool,

    /// Print the key and a tab before each payload
    #[arg(long)]
    pub(crate) with_key: bool,

    /// End each packet with a NUL byte instead of a line end
    #[arg(long, short = '0')]
    pub(crate) null: bool,
}

/// The arguments of `wire push`.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// The payload; read from stdin if it is left out or `-`
    pub(crate) payload: Option<OsString>,

    /// The key: packets of a queue with the same key leave together [default: the empty key]
    #[arg(long, value_name = "KEY", hide_default_value = true, default_value = "")]
    pub(crate) key: OsString,

    /// 1 is the most urgent, 255 the least, 0 is never selected
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = number_in::<u8>(0..=u8::MAX.into()), allow_negative_numbers = true)]
    pub(crate) priority: u8,

    /// How long the packet may wait, up to 65535 ms
    #[arg(long, value_name = "TIME", default_value_t = u16::MAX)]
    #[arg(value_parser = packet_ttl)]
    #[arg(allow_hyphen_values = true, visible_alias = "ttl")]
    pub(crate) ttl_ms: u16,

    /// Push the packet this many times
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: u64,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// The arguments of `wire pop`.
#[derive(Debug, Args)]
pub(crate) struct PopArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// Pop up to this many times, and stop when the queue is empty
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: u64,

    #[command(flatten)]
    pub(crate) print: PrintArgs,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// The arguments of `wire subscribe`.
#[derive(Debug, Args)]
pub(crate) struct SubscribeArgs {
    /// The names of the queues, any bytes
    #[arg(required = true, value_name = "QUEUE")]
    pub(crate) queues: Vec<OsString>,

    /// End after this many deliveries; without it go on until the server closes
    #[arg(long, value_name = "N", value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: Option<u64>,

    /// How the server frames deliveries; must be what the server was told
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Framing::Counted)]
    pub(crate) framing: Framing,

    #[command(flatten)]
    pub(crate) print: PrintArgs,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
