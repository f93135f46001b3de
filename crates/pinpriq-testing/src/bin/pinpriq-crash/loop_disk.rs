//! A separate file system on a loop device, whose power can be cut.
//!
//! The kernel itself makes the cut: ext4 stops at once, without writing its journal or any dirty
//! page, as when the machine loses power. Everything that had reached the device is kept, whether
//! it was flushed or not: a device that loses its own cache is not simulated.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fault::Fallible;
use crate::files;
use crate::process::{is_installed, run};

/// The size of the device. Unused parts occupy no room.
const DEVICE_BYTES: u64 = 1 << 30;
/// Makes ext4 stop without writing anything more: `EXT4_IOC_SHUTDOWN` with the flag for that.
const CUT: &str = "open(F, '<', $ARGV[0]) or die $!; my $how = pack('L', 2); \
                   ioctl(F, 0x8004587D, $how) or die $!";
/// A file that is written without a sync right before a cut, and must be gone after it. Each cut
/// has a new file: when a file is emptied and written again, ext4 writes it out when it is closed.
const CANARY: &str = "canary";

/// A mounted file system.
pub(crate) struct LoopDisk {
    image: PathBuf,
    mount: PathBuf,
    is_mounted: bool,
    cuts: u64,
}

impl LoopDisk {
    /// Creates and mounts a file system, or returns why that is not possible here.
    pub(crate) fn new(root: &Path) -> Fallible<Result<Self, String>> {
        for program in ["mkfs.ext4", "mount", "umount", "perl"] {
            if !is_installed(program) {
                return Ok(Err(format!("{program} is not installed")));
            }
        }
        let (image, mount) = (root.join("disk.img"), root.join("disk"));
        files::make_sparse(&image, DEVICE_BYTES)?;
        files::make_directory(&mount)?;
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image))?;
        let mut disk = Self { image, mount, is_mounted: false, cuts: 0 };
        Ok(match disk.mount() {
            Ok(()) => Ok(disk),
            Err(error) => Err(error.to_string()),
        })
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> &Path {
        &self.mount
    }

    fn mount(&mut self) -> Fallible<()> {
        run(Command::new("mount").args(["-o", "loop"]).arg(&self.image).arg(&self.mount))?;
        self.is_mounted = true;
        Ok(())
    }

    /// Cuts the power. From now on every call on the file system fails.
    pub(crate) fn cut(&mut self) -> Fallible<()> {
        self.cuts += 1;
        files::write(&self.canary(), CANARY.as_bytes())?;
        run(Command::new("perl").args(["-e", CUT]).arg(&self.mount)).map(drop)
    }

    fn canary(&self) -> PathBuf {
        self.mount.join(format!("{CANARY}-{}", self.cuts))
    }

    /// Switches the power on again: the journal of the file system is replayed. No process may have
    /// a file on it open.
    pub(crate) fn switch_on(&mut self) -> Fallible<()> {
        run(Command::new("umount").arg(&self.mount))?;
        self.is_mounted = false;
        self.mount()?;
        let canary = self.canary();
        if canary.exists() && files::read(&canary)? == CANARY.as_bytes() {
            return Err("what was never synced survived, so this was no power loss".into());
        }
        Ok(())
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        if self.is_mounted {
            // Nothing more can be done about a file system that is still in use.
            let _ = run(Command::new("umount").arg(&self.mount));
        }
    }
}
