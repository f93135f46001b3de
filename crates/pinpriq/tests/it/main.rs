//! Tests of the binary from the outside: arguments in; output, requests and exit codes out.

#[cfg(test)]
#[path = "../../../pinpriq-tls/tests/it/authority.rs"]
#[expect(dead_code, reason = "the other tests that use it need more of it")]
mod authority;
#[cfg(test)]
mod cli_resp;
#[cfg(test)]
mod client;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod cluster_tls;
#[cfg(test)]
mod cluster_tls_postgres;
#[cfg(test)]
mod directory;
#[cfg(test)]
mod encryption;
#[cfg(test)]
mod files;
#[cfg(test)]
mod http;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod many;
#[cfg(test)]
mod mixed_up;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod peer;
#[cfg(test)]
mod removed_files;
#[cfg(test)]
mod resp;
#[cfg(test)]
mod rubbish;
#[cfg(test)]
mod rust_client;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod server;
#[cfg(test)]
mod serving;
#[cfg(test)]
mod shards;
#[cfg(test)]
mod shell;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod starting;
#[cfg(test)]
mod unread_log;
#[cfg(test)]
mod users;
#[cfg(test)]
mod versions;
#[cfg(test)]
mod wire;
