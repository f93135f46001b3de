//! How a roll-back of the engine is accepted: what the registry is asked for that.
//!
//! It makes no calls itself.

use pinpriq_cluster::{Meta, RegistryCall};

use super::data::KnownCluster;
use super::founding::new_meta;

/// Why a roll-back cannot be accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAccepted {
    /// There is no cluster, and nothing says which one it was.
    NoCluster,
    /// The data directory belongs to another cluster than the engine.
    OtherCluster,
    /// The cluster is being imported, or that was interrupted.
    Importing,
}

/// Returns what is true of the cluster once the roll-back is accepted, and the call that makes it
/// true: given what the registry says, and what a data directory knows, if there is one.
///
/// Its generation is above all that anybody has seen. A cluster that is not there is made again, if
/// it is known what it was.
pub fn acceptance(
    there: Option<Meta>,
    known: Option<KnownCluster>,
) -> Result<(Meta, RegistryCall), NotAccepted> {
    let next = |seen: u32| seen.saturating_add(1);
    let Some(there) = there else {
        let KnownCluster { id, shards, generation } = known.ok_or(NotAccepted::NoCluster)?;
        // It is made in the generation to come, so that no node ever serves it before.
        let generation = next(generation);
        let meta = Meta { id, generation, ..new_meta(shards) };
        return Ok((meta.clone(), RegistryCall::Found(meta)));
    };
    if known.is_some_and(|known| known.id != there.id) {
        return Err(NotAccepted::OtherCluster);
    }
    if there.importing {
        return Err(NotAccepted::Importing);
    }
    let seen = there.rolled_back.as_ref().map_or(0, |it| it.generation);
    let seen = seen.max(known.map_or(0, |known| known.generation));
    let generation = next(there.generation.max(seen));
    let meta = Meta { generation, rolled_back: None, ..there.clone() };
    Ok((meta.clone(), RegistryCall::Amend { meta, instead_of: there }))
}

#[cfg(test)]
mod tests {
    use pinpriq_cluster::RolledBack;

    use super::super::founding::known;
    use super::*;

    #[test]
    fn the_generation_is_above_all_that_were_seen() {
        let there = Meta { generation: 3, ..new_meta(4) };
        let after = |there: &Meta, known| acceptance(Some(there.clone()), known).unwrap();
        let (meta, call) = after(&there, None);
        assert_eq!((meta.generation, meta.rolled_back.clone()), (4, None));
        assert_eq!(call, RegistryCall::Amend { meta, instead_of: there.clone() });
        let seen = RolledBack { generation: 7, ..RolledBack::default() };
        let noted = Meta { rolled_back: Some(seen), ..there.clone() };
        let (meta, _) = after(&noted, None);
        assert_eq!((meta.generation, meta.rolled_back), (8, None));
        let own = KnownCluster { generation: 9, ..known(&there) };
        assert_eq!(after(&noted, Some(own)).0.generation, 10);
    }

    #[test]
    fn a_cluster_that_is_gone_is_made_again_by_who_knows_it() {
        assert_eq!(acceptance(None, None), Err(NotAccepted::NoCluster));
        let own = KnownCluster { id: 5, shards: 4, generation: 2 };
        let (meta, call) = acceptance(None, Some(own)).unwrap();
        assert_eq!((meta.id, meta.shards, meta.generation), (5, 4, 3));
        assert_eq!(call, RegistryCall::Found(meta));
        let other = acceptance(Some(new_meta(4)), Some(own));
        assert_eq!(other, Err(NotAccepted::OtherCluster));
        let imported = Meta { importing: true, ..new_meta(4) };
        assert_eq!(acceptance(Some(imported), None), Err(NotAccepted::Importing));
    }
}
