//! Fan-out, with one test for each promise of the founding text.
//!
//! `invariants` tests the promises, `cleaning` that the end of a member is cleaned in bounded
//! steps, and `crashes` that all of this can be interrupted. The replies of the commands are in the
//! scripts in `testdata`.

mod bench;
mod cleaning;
mod crashes;
mod invariants;
