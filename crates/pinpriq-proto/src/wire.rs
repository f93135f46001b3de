//! The pinpriq wire protocol: bytes to messages and back, in both directions.
//!
//! The reference is `docs/protocol/pinpriq.md`. Every public item names the section that it
//! implements. Nothing here reads a socket, a clock or a file, or knows what a queue does with a
//! message.
//!
//! - [`decode_request`] is the server's side: it borrows one request from the front of a buffer.
//! - [`Request::put`] is the client's side of the same bytes.
//! - [`put_count`], [`put_packet`] and [`packet_header`] write replies and deliveries piece by
//!   piece, so that a reply of 65,535 packets never has to exist in one place.
//! - [`ReplyDecoder`] reads replies and deliveries, also piece by piece.
//!
//! The modules [`resp`] and [`beanstalkd`] are other protocols, those of Redis and of beanstalkd,
//! with their own decoders and writers.
//!
//! Everything that a peer sends is hostile until decoded: no decoder allocates, panics, or does
//! work in proportion to a length that was only declared.
//!
//! ```
//! use pinpriq_proto::wire::{Decoded, Request, decode_request};
//!
//! let mut bytes = Vec::new();
//! Request::Pop { queue: b"jobs" }.put(&mut bytes)?;
//! assert_eq!(bytes, b"\x50\x00\x04jobs");
//!
//! let Ok(Decoded::Message { request, length }) = decode_request(&bytes) else { unreachable!() };
//! assert_eq!((request, length), (Request::Pop { queue: b"jobs" }, 7));
//! # Ok::<(), pinpriq_proto::wire::TooLong>(())
//! ```
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

pub mod beanstalkd;
mod decode;
mod encode;
mod reply;
mod request;
pub mod resp;

pub use decode::{Decoded, Malformed, decode_request};
pub use encode::{Field, TooLong, packet_header, put_count, put_packet};
pub use reply::{Framing, Packet, Piece, ReplyDecoder};
pub use request::{READY, REQUEST_BYTES_MAX, Request};
