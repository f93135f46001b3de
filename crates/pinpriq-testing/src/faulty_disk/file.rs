//! One open file of the disk in memory.

use std::io;

use super::FaultyDisk;
use super::state::{Inode, InodeId, Operation, SECTOR_BYTES, State, index};
use pinpriq_store::disk::{DiskFile, FileId};

pub(super) struct OpenFile {
    pub(super) disk: FaultyDisk,
    pub(super) inode: InodeId,
    pub(super) generation: u64,
    pub(super) writable: bool,
}

impl OpenFile {
    fn refuse_unless_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

/// Writes as much as there is room for.
fn write(state: &mut State, inode: InodeId, offset: u64, bytes: &[u8]) -> io::Result<usize> {
    let end = offset.saturating_add(bytes.len() as u64);
    let Some(held) = state.inodes.get(&inode).map(Inode::held) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let room = if end <= held { 0 } else { state.room(end - held) };
    let Some(inode) = state.inodes.get_mut(&inode) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let held = inode.held();
    let most = index(held.saturating_add(room).saturating_sub(offset)).min(bytes.len());
    if most == 0 && !bytes.is_empty() {
        return Err(io::ErrorKind::StorageFull.into());
    }
    let start = index(offset);
    if inode.bytes.len() < start + most {
        inode.bytes.resize(start + most, 0);
    }
    inode.bytes[start..start + most].copy_from_slice(&bytes[..most]);
    inode.touch(start, most);
    Ok(most)
}

impl DiskFile for OpenFile {
    fn len(&self) -> io::Result<u64> {
        let state = self.disk.state();
        Ok(state.inodes.get(&self.inode).map_or(0, |inode| inode.bytes.len() as u64))
    }

    fn id(&self) -> Option<FileId> {
        Some(FileId { device: 0, inode: self.inode })
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.enter(Operation::Read, self.generation)?;
        let percent = state.short_read_percent;
        let mut most = buffer.len();
        if percent > 0 && most > 0 && state.dice.chance(percent) {
            state.shortened_reads += 1;
            most = state.dice.index(most);
            if most == 0 {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        let bytes = state.inodes.get(&self.inode).map_or(&[][..], |inode| &inode.bytes[..]);
        let rest = bytes.get(index(offset)..).unwrap_or_default();
        let count = rest.len().min(most);
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    /// Every sector of zeros is a hole.
    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        let state = self.disk.state();
        let bytes = state.inodes.get(&self.inode).map_or(&[][..], |inode| &inode.bytes[..]);
        let rest = bytes.get(index(offset)..).unwrap_or_default();
        let data = rest.iter().position(|&byte| byte != 0).map(|at| index(offset) + at);
        Ok(data.map(|at| offset.max((at / SECTOR_BYTES * SECTOR_BYTES) as u64)))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.refuse_unless_writable()?;
        let mut state = self.disk.state();
        let entered = state.enter(Operation::Write, self.generation);
        if let Err(error) = entered {
            if state.stops_late() {
                let part = state.dice.index(bytes.len() + 1);
                write(&mut state, self.inode, offset, &bytes[..part])?;
            }
            return Err(error);
        }
        let percent = state.short_percent;
        if percent > 0 && state.dice.chance(percent) && !bytes.is_empty() {
            state.shortened += 1;
            let part = state.dice.index(bytes.len());
            if part == 0 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            return write(&mut state, self.inode, offset, &bytes[..part]);
        }
        write(&mut state, self.inode, offset, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let entered = state.enter(Operation::Sync, self.generation);
        let late = state.stops_late();
        let stopped = state.stopped;
        if let Some(inode) = state.inodes.get_mut(&self.inode) {
            if entered.is_ok() || late {
                inode.sync();
            } else if !stopped {
                inode.fail_sync();
            }
        }
        entered
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.refuse_unless_writable()?;
        let mut state = self.disk.state();
        state.enter(Operation::Allocate, self.generation)?;
        let Some(held) = state.inodes.get(&self.inode).map(Inode::held) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let room = if bytes <= held { 0 } else { state.room(bytes - held) };
        let Some(inode) = state.inodes.get_mut(&self.inode) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let held = inode.held();
        if bytes > held.saturating_add(room) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        inode.reserved = inode.reserved.max(bytes);
        Ok(())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.refuse_unless_writable()?;
        let mut state = self.disk.state();
        state.enter(Operation::SetLen, self.generation)?;
        let Some(inode) = state.inodes.get_mut(&self.inode) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        inode.was_resized |= inode.bytes.len() != index(bytes);
        inode.bytes.resize(index(bytes), 0);
        inode.reserved = inode.reserved.min(bytes);
        Ok(())
    }
}
