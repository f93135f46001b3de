//! What stands for spans in a build without OpenTelemetry: nothing.

#![expect(clippy::unused_self, reason = "with OpenTelemetry there is something")]

use std::future::Future;

use crate::error::Error;
use crate::name::Name;
use crate::request::Headers;
use crate::task::{State, Task};

/// See `present`.
pub(crate) struct Sending;

impl Sending {
    pub(crate) const fn begin(_: &'static str, _: &Name, _: &mut Headers) -> Self {
        Self
    }

    pub(crate) const fn end(self, _: Result<Option<&Name>, &Error>) {}
}

/// See `present`.
pub(crate) struct Attempt;

impl Attempt {
    pub(crate) const fn begin(_: &Task) -> Self {
        Self
    }

    pub(crate) fn run<F: Future>(&self, function: F) -> F {
        function
    }

    pub(crate) const fn note_cancelled(&self) {}

    pub(crate) const fn fail(&self, _: &str, _: Option<State>) {}
}

pub(crate) const fn note_redrive(_: &Name, _: u64) {}
