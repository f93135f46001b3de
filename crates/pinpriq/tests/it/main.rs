//! Tests of the binary from the outside: arguments in; output, requests and exit codes out.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]
#![expect(clippy::expect_used, reason = "a test ends at the first thing that goes wrong")]
#![expect(clippy::print_stdout, reason = "a test says what it has not run, and how to repeat it")]

#[path = "../../../pinpriq-tls/tests/it/authority.rs"]
#[expect(dead_code, reason = "the other tests that use it need more of it")]
mod authority;
mod backup;
mod cli_resp;
mod client;
mod cluster;
mod cluster_tls;
mod cluster_tls_postgres;
mod directory;
mod encryption;
mod files;
mod http;
mod kept;
mod many;
mod mixed_up;
mod pages;
mod peer;
mod removed_files;
mod resp;
mod rubbish;
mod rust_client;
mod secrets;
mod server;
mod serving;
mod shards;
mod shell;
mod sizes;
mod starting;
mod unread_log;
mod users;
mod versions;
mod wire;
