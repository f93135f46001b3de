//! Tests of the wire protocol, only through its public items.

#[cfg(test)]
mod beanstalkd_answers;
#[cfg(test)]
mod beanstalkd_requests;
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
