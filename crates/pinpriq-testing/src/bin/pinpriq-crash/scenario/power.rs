//! Power loss at random moments under load, on a separate file system.
//!
//! Each cut is verified: a file that was written without a sync must be gone.

use std::path::Path;

use crate::args::Wanted;
use crate::fault::{Fallible, Verdict};
use crate::files;
use crate::loop_disk::LoopDisk;
use crate::rounds::{self, Catastrophe};
use crate::server::Server;

impl Catastrophe for LoopDisk {
    fn strike(&mut self, server: &mut Server) -> Fallible<()> {
        // A machine without power does not answer. If the server kept running, its answers would
        // depend on how the kernel treats a file system that is being shut down.
        server.freeze()?;
        self.cut()?;
        server.kill().map(drop)
    }

    fn recover(&mut self) -> Fallible<()> {
        self.switch_on()
    }
}

pub(crate) fn run(wanted: &Wanted) -> Fallible<Verdict> {
    on_a_disk_of_its_own(wanted, |scratch, data, disk| rounds::run(wanted, scratch, data, disk))
}

/// Runs a scenario with a directory for what it keeps, and a data directory on a file system whose
/// power can be cut.
pub(crate) fn on_a_disk_of_its_own(
    wanted: &Wanted,
    run: impl FnOnce(&Path, &Path, &mut LoopDisk) -> Fallible<Verdict>,
) -> Fallible<Verdict> {
    let scratch = files::scratch(&wanted.scratch)?;
    let mut disk = match LoopDisk::new(scratch.path())? {
        Ok(disk) => disk,
        Err(why) => return Ok(Verdict::NotRun(format!("no file system can be mounted: {why}"))),
    };
    let data = disk.path().join("data");
    run(scratch.path(), &data, &mut disk)
}
