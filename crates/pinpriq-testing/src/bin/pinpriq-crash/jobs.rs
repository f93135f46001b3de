//! Jobs of the door that speaks beanstalkd's protocol: the replies about them, the clients,
//! and what is left of the jobs afterwards.

pub(crate) mod book;
pub(crate) mod check;
pub(crate) mod load;
pub(crate) mod talk;

/// The tubes that all clients use.
pub(crate) const TUBES: [&str; 4] = ["left", "up", "back", "front"];

/// The delay of jobs that are delayed, and the time to run of all, in seconds. No run takes as
/// long.
pub(crate) const HOUR_S: u32 = 3_600;
