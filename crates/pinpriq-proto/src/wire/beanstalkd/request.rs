//! The requests that a client can send, and their bytes.
//!
//! A [`Request`] borrows its names and its body. Lines are read in `line.rs`. What a request does
//! to a job is not part of this crate.

use super::tube::is_tube_name;
use crate::wire::resp::put_unsigned;

/// One request of a client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Request<'a> {
    /// Puts a job into the tube that the connection uses.
    Put {
        /// 0 is the most urgent.
        priority: u32,
        /// How long the job is not ready, in seconds.
        delay_s: u32,
        /// How long a reservation of the job lasts, in seconds. A client that sends 0 means 1, and
        /// the decoder returns 1.
        ttr_s: u32,
        /// Any bytes.
        body: &'a [u8],
    },
    /// Sets the tube that the connection uses.
    Use {
        /// The name of the tube.
        tube: &'a [u8],
    },
    /// Reserves a job of a watched tube, and waits for one.
    Reserve,
    /// Reserves a job of a watched tube, and waits for one no longer than this.
    ReserveWithTimeout {
        /// How long to wait, in seconds. At most 2,147,483,647.
        timeout_s: u32,
    },
    /// Reserves one job.
    ReserveJob {
        /// The number of the job.
        id: u64,
    },
    /// Deletes a job.
    Delete {
        /// The number of the job.
        id: u64,
    },
    /// Gives a reserved job back.
    Release {
        /// The number of the job.
        id: u64,
        /// The new priority of the job.
        priority: u32,
        /// How long the job is not ready, in seconds.
        delay_s: u32,
    },
    /// Buries a reserved job.
    Bury {
        /// The number of the job.
        id: u64,
        /// The new priority of the job.
        priority: u32,
    },
    /// Lets the reservation of a job begin anew.
    Touch {
        /// The number of the job.
        id: u64,
    },
    /// Adds a tube to those from which the connection reserves.
    Watch {
        /// The name of the tube.
        tube: &'a [u8],
    },
    /// Removes a tube from those from which the connection reserves.
    Ignore {
        /// The name of the tube.
        tube: &'a [u8],
    },
    /// Shows a job.
    Peek {
        /// The number of the job.
        id: u64,
    },
    /// Shows the next ready job of the used tube.
    PeekReady,
    /// Shows the delayed job of the used tube that is ready first.
    PeekDelayed,
    /// Shows the next buried job of the used tube.
    PeekBuried,
    /// Makes buried jobs of the used tube ready, or its delayed jobs if none is buried.
    Kick {
        /// The most jobs to make ready.
        ///
        /// beanstalkd reads it with `strtoul`, and so does the decoder: white space of any kind
        /// may precede it, and then a plus or minus sign, and any bytes may follow it. A negative
        /// number counts from 2³² downwards: `-1` is 4,294,967,295. A number beyond 32 bits,
        /// of either sign, is refused.
        bound: u32,
    },
    /// Makes one buried or delayed job ready.
    KickJob {
        /// The number of the job.
        id: u64,
    },
    /// Shows figures about a job.
    StatsJob {
        /// The number of the job.
        id: u64,
    },
    /// Shows figures about a tube.
    StatsTube {
        /// The name of the tube.
        tube: &'a [u8],
    },
    /// Shows figures about the server.
    Stats,
    /// Lists all tubes.
    ListTubes,
    /// Shows the tube that the connection uses.
    ListTubeUsed,
    /// Lists the tubes from which the connection reserves.
    ListTubesWatched,
    /// Ends the connection. There is no answer.
    Quit,
    /// Keeps the jobs of a tube from being reserved for some time.
    PauseTube {
        /// The name of the tube.
        tube: &'a [u8],
        /// How long, in seconds. For beanstalkd 0 is a nanosecond.
        delay_s: u32,
    },
}

/// The request has no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unwritable {
    /// No tube can have this name.
    #[error("the name of the tube is not valid in beanstalkd")]
    InvalidTube,
    /// The body has more than 4,294,967,295 bytes.
    #[error("the body of the job is longer than 4,294,967,295 bytes")]
    BodyTooLong,
}

impl Request<'_> {
    /// Appends the bytes of this request to `out`.
    ///
    /// Refuses a name that no tube can have, and a body whose length has more than 32 bits. In
    /// that case `out` is unchanged. Costs one copy of the name or the body.
    pub fn put(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        let numbers: &[u64] = match *self {
            Self::Put { priority, delay_s, ttr_s, body } => {
                let Ok(bytes) = u32::try_from(body.len()) else {
                    return Err(Unwritable::BodyTooLong);
                };
                &[priority, delay_s, ttr_s, bytes].map(u64::from)
            }
            Self::ReserveWithTimeout { timeout_s } => &[u64::from(timeout_s)],
            Self::Kick { bound } => &[u64::from(bound)],
            Self::PauseTube { delay_s, .. } => &[u64::from(delay_s)],
            Self::Release { id, priority, delay_s } => {
                &[id, u64::from(priority), u64::from(delay_s)]
            }
            Self::Bury { id, priority } => &[id, u64::from(priority)],
            Self::ReserveJob { id }
            | Self::Delete { id }
            | Self::Touch { id }
            | Self::Peek { id }
            | Self::KickJob { id }
            | Self::StatsJob { id } => &[id],
            _ => &[],
        };
        let tube = self.tube();
        if tube.is_some_and(|tube| !is_tube_name(tube)) {
            return Err(Unwritable::InvalidTube);
        }
        out.extend_from_slice(self.verb().name().as_bytes());
        if let Some(tube) = tube {
            out.push(b' ');
            out.extend_from_slice(tube);
        }
        for number in numbers {
            out.push(b' ');
            put_unsigned(out, *number);
        }
        out.extend_from_slice(b"\r\n");
        if let Self::Put { body, .. } = self {
            out.extend_from_slice(body);
            out.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    /// The tube that the request names.
    const fn tube(&self) -> Option<&[u8]> {
        match self {
            Self::Use { tube }
            | Self::Watch { tube }
            | Self::Ignore { tube }
            | Self::StatsTube { tube }
            | Self::PauseTube { tube, .. } => Some(tube),
            _ => None,
        }
    }
}
