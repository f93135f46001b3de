//! A blocking client of both protocols: what the client commands of the program, the tools and the
//! tests speak to a server with.
//!
//! It knows the protocols and no command. Nothing is ever sent again: a connection that broke is
//! over, and whoever wants another opens one.

mod line;
mod resp;
mod wire;

pub use line::{Line, Lost};
pub use resp::Resp;
pub use wire::{Frame, Wanted, Wire};
