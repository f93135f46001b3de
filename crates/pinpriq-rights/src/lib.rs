//! Which rights a command needs, and whether somebody has them.
//!
//! [`each_need`] tells what a command needs, and [`judge`] compares that with what a user may do.
//! Who the user of a connection is, and how they have signed in, is not known here.

mod needs;
mod verdict;

pub use needs::{Need, each_need};
pub use verdict::{Lack, Verdict, judge};
