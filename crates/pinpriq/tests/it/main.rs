//! Tests of the binary from the outside: arguments in; output, requests and exit codes out.

#[cfg(test)]
mod client;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod peer;
#[cfg(test)]
mod server;
