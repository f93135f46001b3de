//! Tests of the vocabulary's bytes: that they decode to what was encoded, have the specified form,
//! and do no harm.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

#[cfg(test)]
mod letters;
#[cfg(test)]
mod wire;
