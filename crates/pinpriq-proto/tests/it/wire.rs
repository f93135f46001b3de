//! Tests of the wire protocol, only through its public items.

mod beanstalkd_answers;
mod beanstalkd_requests;
mod decoding;
mod page;
mod replies;
mod resp_replies;
mod resp_requests;
mod resp_samples;
mod round_trip;
mod samples;
