//! Opens a place by the name that users give it. Nothing is read or written yet.

use std::path::Path;

use crate::directory::DirectoryPlace;
use crate::place::{Place, PlaceError};

/// What the names of places in an object store begin with.
const S3: &str = "s3://";

/// Opens the place of this name: `s3://bucket/prefix`, or the path of a directory. Changes nothing.
///
/// A directory need not exist yet. It is made when the first object is written; the directory
/// around it must exist.
pub fn open(place: &str) -> Result<Box<dyn Place>, PlaceError> {
    if place.starts_with(S3) {
        return open_s3(place);
    }
    if let Some((scheme, _)) = place.split_once("://") {
        let what = format!("a place cannot begin with {scheme}://: give a directory, or s3://…");
        return Err(PlaceError::Bad { what });
    }
    if place.is_empty() {
        let what = "the name of the place is empty: give a directory, or s3://…".to_owned();
        return Err(PlaceError::Bad { what });
    }
    Ok(Box::new(DirectoryPlace::open(Path::new(place))?))
}

#[cfg(feature = "s3")]
fn open_s3(url: &str) -> Result<Box<dyn Place>, PlaceError> {
    Ok(Box::new(crate::s3::S3Place::open(url)?))
}

#[cfg(not(feature = "s3"))]
fn open_s3(url: &str) -> Result<Box<dyn Place>, PlaceError> {
    let what = format!("{url} cannot be used: this program was built without the feature s3");
    Err(PlaceError::Bad { what })
}

#[cfg(test)]
mod tests {
    use super::open;
    use crate::place::PlaceError;

    #[test]
    fn a_place_is_a_directory_unless_a_scheme_says_otherwise() {
        for path in ["/nowhere/at-all", "relative", "with:colon"] {
            assert_eq!(open(path).map(|place| place.name()), Ok(path.to_owned()));
        }
        for other in ["gs://bucket", "file:///x", "", "http://host/x"] {
            assert!(matches!(open(other).map(|_| ()), Err(PlaceError::Bad { .. })), "{other}");
        }
    }
}
