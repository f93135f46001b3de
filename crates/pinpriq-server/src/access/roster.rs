//! The users of the server, as its file of users has them now.
//!
//! All places share the roster. The file is read again when it changes, and when an operator asks
//! for that; one that cannot be used changes nothing and is reported once. `process::access`
//! watches the file.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::users::Users;
use crate::users::store::{self, Loaded};
use tokio::sync::Notify;

use super::audit::{Audit, Event, What};
use super::pass::{Pass, Proof};
use super::signing::Signing;
use super::usage::Usages;
use crate::config::UsersFrom;
use crate::error::ServeError;
use crate::stamp::Stamp;

/// The user in whose name doors without passwords act.
const ANONYMOUS: &str = "anonymous";

/// The user of a server with a single password.
pub(crate) const DEFAULT: &str = "default";

/// The users of a server that has some.
#[derive(Debug)]
pub(crate) struct Roster {
    from: UsersFrom,
    current: Mutex<Current>,
    /// The same as in `current`, to be read at every command.
    version: AtomicU64,
    /// Rung when the users have changed.
    changed: Notify,
    pub(super) signing: Signing,
    /// What the users use up.
    pub(crate) usages: Usages,
    audit: Option<Arc<Audit>>,
}

#[derive(Debug)]
struct Current {
    users: Arc<Users>,
    version: u64,
    stamp: Option<Stamp>,
    /// What was said about a file that cannot be used, or that others can use.
    complaint: Option<String>,
}

impl Roster {
    /// Reads the users, and says what should be said about the file. Blocks.
    pub(crate) fn open(
        from: UsersFrom,
        audit: Option<Arc<Audit>>,
    ) -> Result<Arc<Self>, ServeError> {
        let stamp = Stamp::of(from.path());
        let (users, complaint) = load(&from).map_err(|why| ServeError::Users { why })?;
        if let Some(complaint) = &complaint {
            tracing::warn!("{complaint}");
        }
        let signing = Signing::new().map_err(|why| ServeError::Users { why })?;
        let (users, version) = (Arc::new(users), 1);
        tracing::info!(users = users.len(), file = %from.path().display(), "users sign in");
        Ok(Arc::new(Self {
            from,
            current: Mutex::new(Current { users, version, stamp, complaint }),
            version: AtomicU64::new(version),
            changed: Notify::new(),
            signing,
            usages: Usages::default(),
            audit,
        }))
    }

    /// Returns the users, and their version.
    pub(crate) fn users(&self) -> (Arc<Users>, u64) {
        let current = self.current();
        (Arc::clone(&current.users), current.version)
    }

    /// Returns the version of the users. It grows with each change.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the pass of doors without passwords, if they may do anything.
    pub(crate) fn anonymous(&self) -> Option<Pass> {
        let (users, version) = self.users();
        users.user(ANONYMOUS).map(|user| Pass::new(Arc::clone(user), Proof::Door, version))
    }

    /// Returns the pass of a client with a certificate for this name, if it is that of a user.
    pub(crate) fn certified(&self, name: &str) -> Option<Pass> {
        let (users, version) = self.users();
        users.user(name).map(|user| Pass::new(Arc::clone(user), Proof::Certificate, version))
    }

    /// Returns what has become of a pass.
    pub(crate) fn renewed(&self, pass: &Pass) -> Option<Pass> {
        let (users, version) = self.users();
        pass.renewed(&users, version)
    }

    /// Waits until the users have changed since this version.
    pub(crate) async fn changed_since(&self, version: u64) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.version() != version {
                return;
            }
            changed.await;
        }
    }

    /// Reads the file again if it has changed, or in any case if `anyway`. Returns whether the
    /// users have changed. Blocks.
    pub(crate) fn look(&self, anyway: bool) -> bool {
        let stamp = Stamp::of(self.from.path());
        let has_changed = self.current().stamp != stamp;
        if !has_changed && !anyway {
            return false;
        }
        let loaded = load(&self.from);
        let current = &mut *self.current();
        current.stamp = stamp;
        let (users, complaint) = match loaded {
            Ok((users, complaint)) => (Some(users), complaint),
            Err(why) => (None, Some(format!("{why}; the users stay as they were"))),
        };
        if let Some(complaint) =
            complaint.as_ref().filter(|it| current.complaint.as_ref() != Some(it))
        {
            tracing::warn!("{complaint}");
        }
        current.complaint = complaint;
        users.is_some_and(|users| self.replace(current, users))
    }

    fn replace(&self, current: &mut Current, users: Users) -> bool {
        let changes = current.users.changes(&users);
        if changes.is_empty() {
            return false;
        }
        for (user, changes) in &changes {
            tracing::info!(%user, changes = ?changes, "a user has changed");
            if let Some(audit) = &self.audit {
                audit.note(Event {
                    user: Some(user.to_string()),
                    detail: Some(format!("{changes:?}")),
                    ..Event::new(What::UserChanged)
                });
            }
        }
        self.usages.forget_others(&users);
        current.users = Arc::new(users);
        current.version += 1;
        self.signing.forget();
        self.version.store(current.version, Ordering::Release);
        self.changed.notify_waiters();
        true
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the users, and what should be said about their file.
fn load(from: &UsersFrom) -> Result<(Users, Option<String>), String> {
    let loaded = match from {
        UsersFrom::File(path) => store::load(path),
        UsersFrom::Password(path) => {
            let Ok(user) = DEFAULT.parse() else { unreachable!("the name of a user is none") };
            store::load_password(path, user)
        }
    };
    let Loaded { users, warning } = loaded.map_err(|error| error.to_string())?;
    Ok((users, warning.map(|it| it.to_string())))
}

impl UsersFrom {
    /// Returns the file.
    pub(crate) fn path(&self) -> &PathBuf {
        match self {
            Self::File(path) | Self::Password(path) => path,
        }
    }
}
