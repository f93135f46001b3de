//! Where archives lie: the interface, and what can go wrong with a place.
//!
//! A place keeps objects under names whose parts are separated by `/`. It knows nothing about what
//! is in them. No order of listings and no time of a file is relied on.

/// Where archives lie. Every method blocks. An object is written once and never changed.
pub trait Place: Send + Sync {
    /// Creates an object. When this returns, the object is durable. Returns false if there is one
    /// of that name already; then nothing has changed.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, PlaceError>;

    /// Reads an object, if there is one.
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError>;

    /// Lists what is directly below a prefix. There is no `/` at its end, and "" is the root. What
    /// is not there is empty.
    fn list(&self, prefix: &str) -> Result<Listing, PlaceError>;

    /// Removes an object. Returns false if there was none, as far as the place can tell.
    fn remove(&self, name: &str) -> Result<bool, PlaceError>;

    /// How users name the place.
    fn name(&self) -> String;

    /// Makes sure that an object which is there is durable, whoever wrote it.
    fn settle(&self, _name: &str) -> Result<(), PlaceError> {
        Ok(())
    }
}

/// What is directly below a prefix.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// The objects: the last part of the name, and the number of bytes.
    pub objects: Vec<(String, u64)>,
    /// The prefixes: the last part of each.
    pub prefixes: Vec<String>,
    /// The prefixes below which there is nothing but what was never completed: no objects.
    pub unfinished: Vec<String>,
}

impl Listing {
    /// Sorts all, and leaves out what is there twice.
    pub fn sort(&mut self) {
        self.objects.sort();
        self.objects.dedup_by(|later, earlier| later.0 == earlier.0);
        self.prefixes.sort();
        self.prefixes.dedup();
        self.unfinished.sort();
    }

    /// All prefixes, whatever is below them.
    pub(crate) fn each_prefix(self) -> impl Iterator<Item = String> {
        self.prefixes.into_iter().chain(self.unfinished)
    }
}

/// What kind of thing went wrong. The program ends with another exit code for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// Something failed on the way, and may work later.
    Failed,
    /// What was asked for cannot be done.
    Unusable,
    /// An archive or a data directory is damaged, of a newer format, or not the right one.
    Damaged,
    /// There is no backup that fits.
    NothingThere,
}

/// Why a place did not do what it was asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlaceError {
    /// The directory or the bucket does not exist.
    #[error("{place} does not exist; make it, or name another place")]
    NotThere {
        /// How users name the place, or the directory that is missing.
        place: String,
    },
    /// The place refuses us.
    #[error("cannot {what} {name}: {why}; give the right to do it")]
    Denied {
        /// What was tried.
        what: &'static str,
        /// The object, or the place.
        name: String,
        /// What the place said.
        why: String,
    },
    /// The place cannot be reached, or failed. It may work later.
    #[error("cannot {what} {name}: {why}")]
    Away {
        /// What was tried.
        what: &'static str,
        /// The object, or the place.
        name: String,
        /// What happened.
        why: String,
    },
    /// The place cannot be used like this.
    #[error("{what}")]
    Bad {
        /// A sentence with the remedy.
        what: String,
    },
}

impl PlaceError {
    /// What kind of thing went wrong.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Bad { .. } => ErrorKind::Unusable,
            Self::NotThere { .. } | Self::Denied { .. } | Self::Away { .. } => ErrorKind::Failed,
        }
    }
}
