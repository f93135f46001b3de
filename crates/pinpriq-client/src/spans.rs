//! Spans of OpenTelemetry, for programs that trace.
//!
//! A put has a span, whose context travels in the headers of the task. Each attempt has another
//! one: its parent is that of the put. Without the feature `opentelemetry` there are none, and with
//! it only in a program that has set a provider. Nothing fails because of spans.

#[cfg(not(feature = "opentelemetry"))]
mod absent;
#[cfg(feature = "opentelemetry")]
mod context;
#[cfg(feature = "opentelemetry")]
mod present;

#[cfg(not(feature = "opentelemetry"))]
pub(crate) use absent::{Attempt, Sending, note_redrive};
#[cfg(feature = "opentelemetry")]
pub(crate) use present::{Attempt, Sending, note_redrive};
