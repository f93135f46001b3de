//! The part of the configuration that makes a server a node of a cluster.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use pinpriq_store::shards::SHARDS_MAX;

use super::{Unusable, resolve};
use crate::cluster::url::ClusterUrl;
use crate::machine;
use crate::settings::{Bounded, Durability, Listen, Settings, Size, Time};

/// The shortest session, in seconds.
const SESSION_SECONDS_MIN: u64 = 2;

/// What makes a server a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ClusterPlan {
    pub(crate) url: ClusterUrl,
    pub(crate) data: Option<PathBuf>,
    pub(crate) node: String,
    pub(crate) announce: String,
    pub(crate) link: SocketAddr,
    pub(crate) announce_link: Option<String>,
    pub(crate) session_ttl: Duration,
    pub(crate) shards: Option<u16>,
    pub(crate) bytes_max: u64,
}

/// Returns what the settings say about a cluster, if they name one. Refuses what a cluster cannot
/// promise, and settings of a node without a cluster.
pub(super) fn plan(settings: &Settings) -> Result<Option<ClusterPlan>, Unusable> {
    let shards = settings.shards.map(Bounded::number);
    let Some(url) = settings.cluster.clone() else {
        if matches!(settings.resp_cluster, Some(Listen::At(_))) {
            return Err(Unusable::OnlyInCluster);
        }
        let most = SHARDS_MAX as u64;
        return match shards {
            Some(shards) if shards > most => Err(Unusable::TooManyShards { shards, most }),
            _ => Ok(None),
        };
    };
    let is_synced = matches!(settings.durability, None | Some(Durability::Sync));
    if !is_synced {
        return Err(Unusable::NotInCluster { setting: "durability other than sync" });
    }
    if settings.memory_limit.is_some() {
        return Err(Unusable::NotInCluster { setting: "memory-limit" });
    }
    let session_ms = settings.session_ttl.map_or(5_000, Time::ms);
    if !session_ms.is_multiple_of(1_000) || session_ms < SESSION_SECONDS_MIN * 1_000 {
        return Err(Unusable::Session { ms: session_ms });
    }
    let link = settings.link.clone().map_or_else(|| "127.0.0.1:7253".to_owned(), |it| it.0);
    let bytes_max = settings.cluster_bytes_max.map_or_else(|| url.bytes_max(), Size::bytes);
    Ok(Some(ClusterPlan {
        url,
        data: settings.data.clone(),
        node: settings.node.clone().map_or_else(machine::name, |name| name.0),
        announce: settings.announce.clone().map_or_else(|| "127.0.0.1".to_owned(), |it| it.0),
        link: resolve(link)?,
        announce_link: settings.announce_link.clone().map(|it| it.0),
        session_ttl: Duration::from_millis(session_ms),
        shards: shards.and_then(|shards| u16::try_from(shards).ok()),
        bytes_max,
    }))
}
