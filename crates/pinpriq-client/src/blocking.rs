//! Connections without async, for programs that do one thing at a time: of both protocols, and of
//! that of beanstalkd.
//!
//! They know the protocols but no commands. They never resend anything and never reconnect: after a
//! connection broke, the caller opens another. Below is the same transport as below
//! [`Client`](crate::Client), on a runtime of the connection's own, so they must not be used or
//! dropped within an async function.

mod beanstalkd;
mod line;
mod resp;
mod wire;

pub use crate::transport::Lost;
pub use beanstalkd::Beanstalkd;
pub use line::Line;
pub use resp::Resp;
pub use wire::{Frame, Wanted, Wire};
