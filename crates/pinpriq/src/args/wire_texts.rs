//! The longer texts of the help of the commands that speak the pinpriq protocol.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

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
