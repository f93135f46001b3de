//! Encrypted connections: the files that say who the server is, and sockets that may be encrypted.
//!
//! rustls does the cryptography. Where and when handshakes
//! are carried out is up to `process`.

pub(crate) mod files;
pub(crate) mod side;
pub(crate) mod socket;
