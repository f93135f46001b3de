//! The file of users on the disk: read with its mode, and replaced as a whole.
//!
//! A reader sees the old file or the new one, never a part. Two programs that change the file
//! wait for each other, so that no change is lost. The folder of the file is locked for that, and
//! nothing is left in it.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use crate::users::Right;
use crate::users::edit::{EditError, Editor};
use crate::users::file::{FILE_BYTES_MAX, ReadError, read};
use crate::users::name::Name;
use crate::users::password::{Password, PasswordHash};
use crate::users::pattern::Pattern;
use crate::users::rule::Rule;
use crate::users::user::{User, Users};

/// What a new file may be used for, and by whom: by its owner alone.
const MODE: u32 = 0o600;

/// The bits of a mode that let others than the owner in.
const OTHERS: u32 = 0o077;

/// A file that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// Who is in it.
    pub users: Users,
    /// What should be said of its mode, if others than its owner may use it.
    pub warning: Option<OpenToOthers>,
}

/// Others than its owner may use a file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{} can be used by others than its owner (mode {mode:04o}), and it has secrets: \
     run `chmod 600` on it",
    path.display()
)]
pub struct OpenToOthers {
    path: PathBuf,
    /// The mode of the file.
    pub mode: u32,
}

/// Why a file was not read or not changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such file.
    #[error("there is no file {}: `pinpriq user add` makes one", .0.display())]
    Missing(PathBuf),
    /// The system does not let it be read.
    #[error("{} cannot be read: {}", .0.display(), .1)]
    Unreadable(PathBuf, io::Error),
    /// The system does not let it be written.
    #[error("{} cannot be written: {}", .0.display(), .1)]
    Unwritable(PathBuf, io::Error),
    /// What is in it cannot be used.
    #[error("{} cannot be used: {}", .0.display(), .1)]
    Unusable(PathBuf, ReadError),
    /// What is in it is no password.
    #[error("the password file {} cannot be used: {}", .0.display(), .1)]
    NoPassword(PathBuf, String),
    /// What was asked for cannot be done.
    #[error("{0}")]
    Refused(EditError),
}

/// A file as it was found.
struct Found {
    text: String,
    mode: u32,
    owner: (u32, u32),
}

impl Found {
    /// What should be said of its mode.
    fn warning(&self, path: &Path) -> Option<OpenToOthers> {
        let is_open = self.mode & OTHERS != 0;
        is_open.then(|| OpenToOthers { path: path.to_owned(), mode: self.mode })
    }
}

/// What is to be done about a file that is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IfMissing {
    /// It is made.
    Make,
    /// That is an error.
    Refuse,
}

/// Reads a file.
pub fn load(path: &Path) -> Result<Loaded, StoreError> {
    let found = found(path)?;
    let users = read(&found.text).map_err(|error| StoreError::Unusable(path.to_owned(), error))?;
    Ok(Loaded { users, warning: found.warning(path) })
}

/// Reads a file that has a single password, that of the user of this name, who may do everything.
/// The end of its line is no part of it.
pub fn load_password(path: &Path, user: Name) -> Result<Loaded, StoreError> {
    let found = found(path)?;
    let text = found.text.strip_suffix('\n').unwrap_or(&found.text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    let unusable = |why: String| StoreError::NoPassword(path.to_owned(), why);
    let password =
        Password::new(text.as_bytes().to_vec()).map_err(|error| unusable(error.to_string()))?;
    let hash = PasswordHash::make(&password).map_err(|error| unusable(error.to_string()))?;
    let everywhere = |right| Rule::on(right, Pattern::prefix(b""));
    let rules = Right::ON_NAMES.into_iter().filter_map(everywhere).chain([Rule::admin()]);
    let user = User { password: Some(hash), ..User::new(user, rules.collect()) };
    let mut users = Users::default();
    users.add(user).map_err(|error| unusable(error.to_string()))?;
    Ok(Loaded { users, warning: found.warning(path) })
}

/// Changes a file, and returns what `change` does. If that fails, the file stays as it is.
///
/// Waits while another program changes a file in the same folder.
pub fn edit<T>(
    path: &Path,
    if_missing: IfMissing,
    change: impl FnOnce(&mut Editor) -> Result<T, EditError>,
) -> Result<T, StoreError> {
    let unwritable = |error| StoreError::Unwritable(path.to_owned(), error);
    let target = target(path).map_err(unwritable)?;
    let folder = folder(&target).map_err(unwritable)?;
    folder.lock().map_err(unwritable)?;
    let found = match found(&target) {
        Err(StoreError::Missing(_)) if if_missing == IfMissing::Make => None,
        Err(StoreError::Missing(_)) => return Err(StoreError::Missing(path.to_owned())),
        other => Some(other?),
    };
    let mut editor = match Editor::new(found.as_ref().map_or("", |found| &found.text)) {
        Err(EditError::Unreadable(error)) => {
            return Err(StoreError::Unusable(path.to_owned(), error));
        }
        other => other.map_err(StoreError::Refused)?,
    };
    let outcome = change(&mut editor).map_err(StoreError::Refused)?;
    replace(&target, &editor.text(), found.as_ref()).map_err(unwritable)?;
    folder.sync_all().map_err(unwritable)?;
    // The lock ends with the folder.
    drop(folder);
    Ok(outcome)
}

/// The file itself, if its name is that of a link.
fn target(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        other => other,
    }
}

fn folder(path: &Path) -> io::Result<File> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    OpenOptions::new().read(true).open(parent.unwrap_or_else(|| Path::new(".")))
}

fn found(path: &Path) -> Result<Found, StoreError> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing(path.to_owned()),
        _ => StoreError::Unreadable(path.to_owned(), error),
    };
    // To open a pipe would wait for a writer.
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::other("it is no file")));
    }
    let file = OpenOptions::new().read(true).open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    let mut text = String::new();
    let most = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_string(&mut text).map_err(unreadable)?;
    Ok(Found { text, mode: about.mode() & 0o7777, owner: (about.uid(), about.gid()) })
}

/// Writes a file beside the old one, and gives it its name when all of it is on the disk.
#[expect(clippy::disallowed_methods, reason = "this file is no part of a data directory")]
fn replace(path: &Path, text: &str, found: Option<&Found>) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it has no name"))?;
    let mut new_name = std::ffi::OsString::from(".");
    new_name.push(name);
    new_name.push(".new");
    let new = path.with_file_name(new_name);
    // Only who holds the lock writes here: what is there was left behind by a crash.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = write(&new, text, found).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        // Report what went wrong before, and not that this did too.
        let _ = std::fs::remove_file(&new);
    }
    written
}

/// Returns the number of the user that a file belongs to.
pub fn owner(path: &Path) -> io::Result<u32> {
    Ok(path.metadata()?.uid())
}

fn write(new: &Path, text: &str, found: Option<&Found>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(new)?;
    let about = file.metadata()?;
    if let Some(found) = found {
        if found.owner != (about.uid(), about.gid()) {
            // Otherwise the server could not read what an administrator has changed.
            fchown(&file, Some(found.owner.0), Some(found.owner.1))?;
        }
        file.set_permissions(Permissions::from_mode(found.mode & MODE))?;
    } else if about.uid() == 0 {
        // A server that does not run as root could not read what root makes for itself.
        let folder = folder(new)?.metadata()?;
        fchown(&file, Some(folder.uid()), Some(folder.gid()))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
