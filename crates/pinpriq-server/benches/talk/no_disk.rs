//! A disk that takes everything, keeps nothing and costs nothing, so that a journal on it is
//! measured alone. Nothing can be read back from it.

use std::io;

use pinpriq_store::disk::{Disk, DiskFile, Entry, LockError, OpenMode};

/// The disk, and each of its files.
pub(super) struct NoDisk;

impl Disk for NoDisk {
    fn open(&self, _name: &str, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        match mode {
            OpenMode::Read => Err(io::ErrorKind::NotFound.into()),
            OpenMode::ReadWrite | OpenMode::CreateNew => Ok(Box::new(Self)),
        }
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn Send>, LockError> {
        Ok(Box::new(()))
    }
}

impl DiskFile for NoDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        Ok(Some(offset))
    }

    fn read_at(&self, _offset: u64, _buffer: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }

    fn write_at(&self, _offset: u64, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }
}
