//! The protocol of beanstalkd: bytes to requests and answers, and back.
//!
//! The reference is beanstalkd 1.13: its page [`protocol.txt`], and where the page does not say,
//! what the server does. The bytes are the same, also for requests that clients should not send:
//!
//! - Only spaces may precede a number, and any number of them. A number has no sign and may have
//!   leading zeros. The bound of `kick` is different: see [`Request::Kick`].
//! - A line is the command whose word it begins with. So `quitter` quits, and
//!   `pause-tubedefault 0` pauses the tube `default`.
//! - Some commands accept bytes after their last argument: `reserve-with-timeout`, `kick`, `quit`.
//! - A line feed without a carriage return does not end a line.
//!
//! This module is different where beanstalkd loses track of the stream or of an argument:
//!
//! - A line of more than 224 bytes, and a line with a carriage return in it, is refused once, when
//!   its end has arrived. beanstalkd may answer it twice or never.
//! - `kick` with a number beyond 32 bits is refused. beanstalkd drops the higher bits.
//!
//! - [`RequestDecoder`] is the server's side of the input, [`put_job`], [`put_document`] and the
//!   functions beside them are its side of the output.
//! - [`Request::put`] and [`decode_answer`] are the client's side.
//!
//! Nothing here knows a job, a tube or a connection. No decoder allocates, panics, or does work in
//! proportion to a length that was only declared.
//!
//! ```
//! use pinpriq_proto::wire::beanstalkd::{Decoded, Request, RequestDecoder, put_inserted};
//!
//! let mut decoder = RequestDecoder::new(65_535);
//! let request = Request::Put { priority: 5, delay_s: 0, ttr_s: 60, body: b"hello" };
//! let found = decoder.decode(b"put 5 0 60 5\r\nhello\r\nreserve\r\n");
//! assert_eq!(found, Decoded::Request { request, length: 21 });
//!
//! let mut out = Vec::new();
//! put_inserted(&mut out, 7);
//! assert_eq!(out, b"INSERTED 7\r\n");
//! ```
//!
//! [`protocol.txt`]: https://github.com/beanstalkd/beanstalkd/blob/v1.13/doc/protocol.txt

mod answer;
mod decoder;
mod document;
mod line;
mod reader;
mod request;
mod tube;
mod verb;

pub use answer::{
    Fault, JobWord, Word, put_inserted, put_job, put_kicked, put_using, put_watching,
};
pub use decoder::{Decoded, LINE_BYTES_MAX, RequestDecoder};
pub use document::{Document, put_document, put_list};
pub use reader::{Answer, DecodedAnswer, MalformedAnswer, decode_answer};
pub use request::{Request, Unwritable};
pub use tube::{TUBE_BYTES_MAX, is_tube_name};
pub use verb::Verb;
