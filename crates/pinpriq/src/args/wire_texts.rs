//! The longer texts of the help of the commands that speak the pinpriq protocol.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

/// What `wire` is about.
pub(super) const WIRE: &str = "\
Push, pop and subscribe over the pinpriq protocol, at the server's pinpriq port (by default 7250).

The other commands for a server speak RESP, at another port (7251). Both reach the same queues: a \
packet is a task there. `pinpriq put`, `take`, `pop` and `listen` can do more.";

/// What `wire push` does.
pub(super) const PUSH: &str = "\
Push a packet to a queue, and wait until it is durable.

The queue comes into being with its first packet. The payload is at most 65535 bytes and is sent \
byte for byte: a line end at the end of stdin is part of it. A packet that is not popped within \
its time to live, at most 65.535 seconds, is removed. After the push the command pops from a queue \
that is not used and waits for the answer, which the server gives only once the push is durable.";

/// After the help of `wire push`.
pub(super) const AFTER_PUSH: &str = "\
Examples:
  pinpriq wire push jobs hello
  pinpriq wire push jobs --key user-7 --priority 5 --ttl-ms 30000 < job.json
  date | pinpriq wire push jobs -

Exit codes:
  0  accepted and durable
  1  no connection, or the server refused the push by closing it
  2  wrong usage";

/// What `wire pop` does.
pub(super) const POP: &str = "\
Pop packets from a queue and print them.

A pop takes the packet with the lowest priority number, the newest of them, and with it all other \
packets of the queue that have the same key. It never waits. Each payload is printed on a line of \
its own. To a file or a pipe the bytes go as they are; on a terminal those that cannot be printed \
are shown as escapes. A popped packet is gone from the queue, whatever becomes of the output.";

/// After the help of `wire pop`.
pub(super) const AFTER_POP: &str = "\
Examples:
  pinpriq wire pop jobs
  pinpriq wire pop jobs --count 100 --with-key
  pinpriq wire pop jobs --null | xargs -0 -n1 ./handle-job
  pinpriq wire pop jobs > job.json || echo nothing to do

Exit codes:
  0  at least one packet was popped
  1  no connection, or it was lost
  2  wrong usage
  4  the queue was empty";

/// What `wire subscribe` does.
pub(super) const SUBSCRIBE: &str = "\
Wait for packets and print them as they come.

The command asks for one delivery at a time and for the next only when that has been printed. A \
delivery is what a pop would have taken: one packet and all others with its key. It does not say \
which queue it comes from. Interrupt the command to end it; a delivery that is on its way at that \
moment may be lost.

With bare framing the end of a delivery cannot be seen, so each packet counts as a delivery.";

/// After the help of `wire subscribe`.
pub(super) const AFTER_SUBSCRIBE: &str = "\
Examples:
  pinpriq wire subscribe jobs
  pinpriq wire subscribe jobs mails --count 1 --with-key
  pinpriq wire subscribe jobs | while read -r job; do ./handle-job \"$job\"; done

Exit codes:
  0  --count deliveries were printed; without --count: the server closed the connection
  1  no connection, or it ended earlier
  2  wrong usage";
