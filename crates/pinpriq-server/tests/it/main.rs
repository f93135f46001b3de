//! The server from the outside: real sockets on the loopback interface, and a clock that only
//! moves when a test moves it. Nodes of a cluster have no sockets here.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]
#![expect(clippy::expect_used, reason = "a test ends at the first thing that goes wrong")]
#![expect(clippy::print_stderr, reason = "a test that goes round in circles says so")]

#[path = "../../../pinpriq-tls/tests/it/authority.rs"]
mod authority;
mod beanstalkd;
mod client;
mod cluster;
mod crowd;
mod documentation;
mod ending;
mod frame_timeout;
mod golden;
mod http;
mod limits;
mod line;
mod manual_clock;
mod moment;
mod packets;
mod people;
mod requeue;
mod resp;
mod rights;
mod room;
mod shards;
mod slow;
mod starting;
mod stop;
mod time_line;
mod tls;
mod world;
