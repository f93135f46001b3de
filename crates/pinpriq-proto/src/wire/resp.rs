//! RESP, the Redis serialization protocol: bytes to requests and replies and back, for both of its
//! versions.
//!
//! The reference is the [protocol specification] of Redis. Where that page does not say, above all
//! about inline commands and the words of protocol errors, this module does the same as Redis 7. It
//! is stricter in two places: CR LF must follow the bytes of an argument, and the only negative
//! number of arguments is `*-1`.
//!
//! - [`RequestDecoder`] is the server's side of the input: one request at a time, borrowed.
//! - [`Writer`] is the server's side of the output, in either [`Protocol`].
//! - [`Words`] or [`put_command`], and [`ReplyDecoder`] are the client's side.
//!
//! Nothing here knows any command. No decoder allocates, panics, or does work in proportion to a
//! length that was only declared. No decoder reads a byte more often than a fixed number of times,
//! however small the pieces are in which the bytes arrive.
//!
//! ```
//! use pinpriq_proto::wire::resp::{Decoded, Protocol, RequestDecoder, RequestLimits, Writer};
//! use pinpriq_proto::wire::resp::put_command;
//!
//! let mut bytes = Vec::new();
//! put_command(&mut bytes, &[b"PING", b"hello"]);
//! assert_eq!(bytes, b"*2\r\n$4\r\nPING\r\n$5\r\nhello\r\n");
//!
//! let mut decoder = RequestDecoder::new(RequestLimits::default());
//! let length = bytes.len();
//! assert_eq!(decoder.decode(&bytes)?, Decoded::Request { length });
//! let arguments = decoder.arguments(&bytes);
//! assert_eq!(arguments.at(0), Some(&b"PING"[..]));
//!
//! let mut out = Vec::new();
//! Writer::new(&mut out, Protocol::Resp2).bulk(arguments.at(1).unwrap_or_default());
//! assert_eq!(out, b"$5\r\nhello\r\n");
//! # Ok::<(), pinpriq_proto::wire::resp::Malformed>(())
//! ```
//!
//! [protocol specification]: https://redis.io/docs/latest/develop/reference/protocol-spec/

mod inline;
mod number;
mod reply;
mod request;
mod words;
mod writer;

pub(crate) use number::{put_signed, put_unsigned};
pub use reply::{DecodedReply, MalformedReply, ReplyDecoder, ReplyLimits, Value};
pub use request::{Arguments, ArgumentsIter, Decoded, Malformed, RequestDecoder, RequestLimits};
pub use words::Words;
pub use writer::{Protocol, Writer, put_command, put_word};
