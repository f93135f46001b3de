//! SIGKILL at random moments under load.
//!
//! What the server had written stays with the kernel. A power loss removes more; it has a scenario
//! of its own.

use crate::args::Wanted;
use crate::fault::{Fallible, Verdict};
use crate::files;
use crate::rounds::{self, Catastrophe};
use crate::server::Server;

/// A kill by the system.
pub(crate) struct Kill;

impl Catastrophe for Kill {
    fn strike(&mut self, server: &mut Server) -> Fallible<()> {
        server.kill().map(drop)
    }

    fn recover(&mut self) -> Fallible<()> {
        Ok(())
    }
}

pub(crate) fn run(wanted: &Wanted) -> Fallible<Verdict> {
    let scratch = files::scratch(&wanted.scratch)?;
    rounds::run(wanted, scratch.path(), &scratch.path().join("data"), &mut Kill)
}
