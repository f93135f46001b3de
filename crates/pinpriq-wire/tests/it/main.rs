//! Tests of the wire protocol through its public items only.

#[cfg(test)]
mod decoding;
#[cfg(test)]
mod page;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod resp_replies;
#[cfg(test)]
mod resp_requests;
#[cfg(test)]
mod resp_samples;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod samples;
