//! Tests of the history checker: what it must accept, and what it must object to.

mod between;
mod cut;
mod doctored;
mod good;
mod limits;
mod program;
mod reading;
mod story;
