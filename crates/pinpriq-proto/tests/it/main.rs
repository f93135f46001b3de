//! Tests of the vocabulary's bytes: that they decode to what was encoded, have the specified form,
//! and do no harm.

#[cfg(test)]
mod printed;
#[cfg(test)]
mod wire;
