//! How a node begins: it makes the cluster, or finds out whether it is the one that it belongs to.

use std::time::Duration;

use pinpriq_cluster::{Meta, Registry, RegistryAnswer, RegistryCall};
use pinpriq_proto::time::Span;
use tokio::sync::Notify;

use super::data::{KnownCluster, NodeData};
use crate::clock::{Clock as _, SystemClock, steady_ms};
use crate::error::ServeError;
use crate::random::random;

/// The version of entries and links that this program writes.
pub const FORMAT: u32 = 1;

/// How many shards a new cluster has if no number was given.
const SHARDS: u16 = 16;

/// How long the registry may take to answer when the node starts.
const FIRST_ANSWER: Duration = Duration::from_secs(30);

/// How soon the registry is asked again that did not answer, in milliseconds.
const AGAIN_MS: u64 = 100;

/// Returns what is true of a new cluster with this many shards. Its id is drawn.
#[must_use]
pub fn new_meta(shards: u16) -> Meta {
    let id = u128::from(random()) << 64 | u128::from(random());
    Meta { id, shards, format: FORMAT, ..Meta::default() }
}

/// What a node remembers of its cluster.
pub(crate) const fn known(meta: &Meta) -> KnownCluster {
    KnownCluster { id: meta.id, shards: meta.shards, generation: meta.generation }
}

/// Refuses an engine with another cluster than the one that a node belongs to.
pub(crate) fn compare(id: u128, meta: Option<&Meta>) -> Result<(), ServeError> {
    let why = match meta {
        None => format!(
            "there is no cluster, and this node belongs to the cluster {id:032x}. The engine was \
             wiped, or --cluster names another one. Bring it back, or correct --cluster. To go on \
             without its tasks, stop the nodes and run `pinpriq cluster accept-rollback --data` \
             with the data directory of one of them. To make another cluster, give --data another \
             directory"
        ),
        Some(meta) if meta.id != id => format!(
            "it holds the cluster {:032x}, and this node belongs to the cluster {id:032x}. Correct \
             --cluster, or give --data another directory to join this one",
            meta.id
        ),
        Some(_) => return Ok(()),
    };
    Err(ServeError::WrongEngine { why })
}

/// Returns what is true of the cluster. Makes the cluster, with this many shards, if there is none,
/// unless the node belongs to one already. Refuses a cluster with another number of shards.
pub(crate) async fn found(
    registry: &mut dyn Registry,
    shards: Option<u16>,
    data: Option<&NodeData>,
    (bell, clock): (&Notify, &SystemClock),
) -> Result<Meta, ServeError> {
    let new = new_meta(shards.unwrap_or(SHARDS));
    let asked_at = steady_ms();
    loop {
        let why = match try_to_found(registry, &new, data, bell).await? {
            Ok(meta) => {
                compare_shards(shards, &meta)?;
                return Ok(meta);
            }
            Err(why) => why,
        };
        let late = Duration::from_millis(steady_ms() - asked_at) > FIRST_ANSWER;
        tracing::warn!(why, "the engine does not answer");
        if late {
            return Err(ServeError::Cluster { why });
        }
        clock.until(clock.now().after(Span::from_ms(AGAIN_MS))).await;
    }
}

/// Refuses a number of shards that is not the cluster's, which never changes.
fn compare_shards(given: Option<u16>, meta: &Meta) -> Result<(), ServeError> {
    match given {
        Some(given) if given != meta.shards => {
            let has = meta.shards;
            let why = format!(
                "the cluster has {has} shards, and --shards says {given}: leave --shards out, or \
                 give {has}"
            );
            Err(ServeError::Cluster { why })
        }
        _ => Ok(()),
    }
}

/// Like [`found`], but asks once. The inner result says why nothing is known.
pub async fn try_to_found(
    registry: &mut dyn Registry,
    new: &Meta,
    data: Option<&NodeData>,
    bell: &Notify,
) -> Result<Result<Meta, String>, ServeError> {
    let own = data.and_then(NodeData::cluster);
    let call = own.map_or_else(|| RegistryCall::Found(new.clone()), |_| RegistryCall::Find);
    let why = match ask(registry, bell, call).await {
        RegistryAnswer::Meta(meta) if meta.format > FORMAT => {
            let format = meta.format;
            let why = format!(
                "the cluster has format {format}, this node knows {FORMAT}: use the newer server"
            );
            return Err(ServeError::Cluster { why });
        }
        RegistryAnswer::Meta(meta) => {
            compare(own.map_or(meta.id, |own| own.id), Some(&meta))?;
            if meta.importing {
                let why = "a data directory is being imported into it, or that was interrupted: \
                           start the node when `pinpriq cluster import` is done, or run that again";
                return Err(ServeError::Cluster { why: why.to_owned() });
            }
            return Ok(Ok(meta));
        }
        RegistryAnswer::Unfounded => {
            compare(own.map_or(0, |own| own.id), None)?;
            "it was made, and is gone".to_owned()
        }
        RegistryAnswer::Unreachable(why) => why,
        other => unreachable!("the registry answered {other:?}"),
    };
    Ok(Err(why))
}

/// Asks a registry that rings this bell, and that nothing else was asked.
pub(crate) async fn ask(
    registry: &mut dyn Registry,
    bell: &Notify,
    call: RegistryCall,
) -> RegistryAnswer {
    registry.start(call);
    loop {
        if let Some(answer) = registry.poll() {
            return answer;
        }
        bell.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::time::Timestamp;

    use super::*;

    /// A registry that answers at once, and what it holds.
    #[derive(Default)]
    struct Line {
        meta: Option<Meta>,
        answers: Vec<RegistryAnswer>,
    }

    impl Registry for Line {
        fn start(&mut self, call: RegistryCall) {
            let answer = match call {
                RegistryCall::Find => {
                    self.meta.clone().map_or(RegistryAnswer::Unfounded, RegistryAnswer::Meta)
                }
                RegistryCall::Found(new) => {
                    RegistryAnswer::Meta(self.meta.get_or_insert(new).clone())
                }
                other => panic!("{other:?}"),
            };
            self.answers.push(answer);
        }

        fn poll(&mut self) -> Option<RegistryAnswer> {
            self.answers.pop()
        }
    }

    fn begin(line: &mut Line, data: Option<&NodeData>) -> Result<Meta, ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let clock = SystemClock::starting_at(Timestamp::ZERO);
        runtime.block_on(found(line, Some(7), data, (&Notify::new(), &clock)))
    }

    #[test]
    fn a_cluster_with_another_number_of_shards_is_refused() {
        let mut line = Line { meta: Some(new_meta(3)), ..Line::default() };
        let error = begin(&mut line, None).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("has 3 shards, and --shards says 7"), "{error}");
    }

    #[test]
    fn who_belongs_to_a_cluster_never_makes_one() {
        let root = tempfile::tempdir().unwrap();
        let mut data = NodeData::open(root.path(), 1).unwrap();
        let mut line = Line::default();
        let meta = begin(&mut line, Some(&data)).unwrap();
        assert_eq!((meta.shards, line.meta.clone()), (7, Some(meta.clone())));
        data.belong(known(&meta)).unwrap();
        assert_eq!(begin(&mut line, Some(&data)).unwrap(), meta);
        line.meta = None;
        let error = begin(&mut line, Some(&data)).unwrap_err();
        assert_eq!((error.exit_code(), line.meta), (3, None));
        assert!(error.to_string().contains("there is no cluster"), "{error}");
        let mut other = Line::default();
        let id = begin(&mut other, None).unwrap().id;
        let error = begin(&mut other, Some(&data)).unwrap_err();
        assert_eq!(error.exit_code(), 3);
        assert!(error.to_string().contains(&format!("it holds the cluster {id:032x}")), "{error}");
    }

    #[test]
    fn a_cluster_of_a_newer_format_is_refused() {
        let mut line = Line { meta: Some(new_meta(7)), ..Line::default() };
        assert_eq!(begin(&mut line, None).unwrap().shards, 7);
        line.meta = Some(Meta { format: FORMAT + 1, ..new_meta(7) });
        let error = begin(&mut line, None).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("use the newer server"), "{error}");
    }

    #[test]
    fn a_cluster_whose_import_has_not_ended_is_refused() {
        let meta = Some(Meta { importing: true, ..new_meta(7) });
        let mut line = Line { meta: meta.clone(), ..Line::default() };
        let error = begin(&mut line, None).unwrap_err();
        assert_eq!((error.exit_code(), line.meta), (2, meta));
        assert!(error.to_string().contains("`pinpriq cluster import` is done"), "{error}");
    }
}
