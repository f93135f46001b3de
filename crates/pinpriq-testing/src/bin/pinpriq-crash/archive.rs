//! Archives: the place with the commands that read it, the lives of the servers that write it, and
//! what they are loaded with besides. What is done with these is up to the scenario.

pub(crate) mod bulk;
pub(crate) mod clocks;
pub(crate) mod given;
pub(crate) mod info;
pub(crate) mod lives;
pub(crate) mod place;
