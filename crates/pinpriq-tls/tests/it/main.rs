//! Both sides of encrypted connections, in memory.

#![expect(clippy::unwrap_used, reason = "a test ends at the first failure")]

mod authority;
mod node;
mod tls;
