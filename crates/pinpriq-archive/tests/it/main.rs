//! Tests of archives: what is taken comes back, and whatever does not fit is refused.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

mod archiver;
mod archiving;
mod backups;
mod codecs;
mod follows;
mod golden;
mod interrupted;
mod meddled;
mod moments;
mod places;
mod prunes;
mod refusals;
mod restores;
#[cfg(feature = "s3")]
mod s3;
mod server;
mod verifies;
