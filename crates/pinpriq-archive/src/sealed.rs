//! Small objects of text: JSON with its checksum, as `pinpriq_store::sealed` has it.
//!
//! What the JSON says is the business of those who seal it.

pub(crate) use pinpriq_store::sealed::seal;
use pinpriq_store::sealed::{self, Unsealed};
use serde::de::DeserializeOwned;

use crate::error::ArchiveError;

/// The format of everything that is sealed, and the highest that is read.
pub(crate) const FORMAT: u32 = 1;

/// Reads a value that was sealed as the object of this name. Accepts any bytes.
pub(crate) fn unseal<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, ArchiveError> {
    sealed::unseal(bytes, FORMAT).map_err(|error| match error {
        Unsealed::Damaged(what) => ArchiveError::damaged(name, what),
        Unsealed::Newer(format) => ArchiveError::newer(name, format, FORMAT),
    })
}
