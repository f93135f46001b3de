//! What the engine keeps of each kind of details, as the store sees it: records with their places.

use pinpriq_proto::change::Place;
use pinpriq_proto::details::Detail;

/// All details of one kind. Every operation costs O(log n).
pub(crate) trait Details {
    /// Where the place of a record is kept.
    fn place_of(&mut self, number: u64) -> Option<&mut Option<Place>>;

    /// The detail of this number as it is now.
    fn detail(&self, number: u64) -> Option<Detail>;

    /// Forgets a detail while the engine is restored, and returns the place of its record.
    fn unrestore(&mut self, number: u64) -> Option<Place>;
}
