//! Fan-out, one test for each promise and for each mistake of the founding text.
//!
//! `invariants` holds what was promised, `slips` what the founding text got wrong, `cleaning` that
//! the end of a member is cleaned in bounded steps, and `crashes` that any of it can be cut short.
//! How commands are answered is told by the scripts in `testdata`.

mod bench;
mod cleaning;
mod crashes;
mod invariants;
mod slips;
