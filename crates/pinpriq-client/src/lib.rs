//! A blocking client of both protocols, and of that of beanstalkd, used by the client commands of
//! the program, the tools and the tests.
//!
//! It knows the protocols but no commands. It never resends anything and never reconnects: after a
//! connection broke, the caller opens another.

mod beanstalkd;
mod line;
mod resp;
mod wire;

pub use beanstalkd::{Beanstalkd, NoAnswer};
pub use line::{Line, Lost};
pub use resp::Resp;
pub use wire::{Frame, Wanted, Wire};
