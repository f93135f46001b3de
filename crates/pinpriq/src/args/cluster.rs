//! The arguments of the commands that ask the engine under a cluster.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::cluster_texts as texts;
use super::encryption::EncryptionArgs;
use super::values::number_in;
use crate::cluster::url::ClusterUrl;
use crate::endpoint::{self, Endpoint};
use crate::exit::Failure;
use crate::settings::{NodeName, Size};

/// What can be asked of a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Tell whether all shards are served, and by whom
    #[command(after_help = texts::AFTER_STATUS)]
    Status(RoomArgs),
    /// Print the nodes that live
    #[command(after_help = texts::AFTER_NODES)]
    Nodes(ClusterArgs),
    /// Print who serves each shard, and what its log has come to
    #[command(long_about = texts::SHARDS, after_help = texts::AFTER_SHARDS)]
    Shards(ClusterArgs),
    /// Tell a node to hand over its shards, and to get no new ones
    #[command(long_about = texts::DRAIN, after_help = texts::AFTER_DRAIN)]
    Drain(NodeArgs),
    /// Tell a node that it may have shards again
    #[command(after_help = texts::AFTER_UNDRAIN)]
    Undrain(NodeArgs),
    /// Tell a shard to move to a node, and to stay there
    #[command(long_about = texts::MOVE, after_help = texts::AFTER_MOVE)]
    Move(MoveArgs),
    /// Tell what is wrong with a cluster
    #[command(long_about = texts::CHECK, after_help = texts::AFTER_CHECK)]
    Check(RoomArgs),
    /// Go on with an engine that has lost data
    #[command(long_about = texts::ACCEPT_ROLLBACK, after_help = texts::AFTER_ACCEPT_ROLLBACK)]
    AcceptRollback(AcceptArgs),
    /// Let the nodes write the newest format, when all have the newest program
    #[command(long_about = texts::UPGRADE, after_help = texts::AFTER_UPGRADE)]
    Upgrade(ClusterArgs),
    /// Make a cluster with what is in the data directory of a single server
    #[command(long_about = texts::IMPORT, after_help = texts::AFTER_IMPORT)]
    Import(ImportArgs),
    /// Write what is in a cluster into a data directory for a single server
    #[command(long_about = texts::EXPORT, after_help = texts::AFTER_EXPORT)]
    Export(ExportArgs),
}

/// A cluster.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// The engine under the cluster, as the nodes are told it
    #[arg(long, env = "PINPRIQ_CLUSTER", hide_env_values = true, value_name = "URL")]
    #[arg(required_unless_present = "address")]
    pub(crate) cluster: Option<ClusterUrl>,

    /// Host and port of a node's RESP door: the node asks the engine, even if the environment names
    /// one. Not for import and export
    #[arg(long, value_name = "ADDR")]
    pub(crate) address: Option<String>,

    #[command(flatten)]
    pub(crate) encryption: EncryptionArgs,

    /// Print JSON objects, one in each line
    #[arg(long)]
    pub(crate) json: bool,
}

impl ClusterArgs {
    /// The engine, if it is asked by this process itself.
    pub(crate) fn engine(&self) -> Result<&ClusterUrl, Failure> {
        match (&self.cluster, &self.address) {
            (Some(url), None) => Ok(url),
            _ => {
                Err(Failure::unusable("this needs the engine itself: name it with --cluster alone"))
            }
        }
    }

    /// The node that asks the engine, if one does.
    pub(crate) fn node(&self) -> Result<Option<Endpoint>, Failure> {
        let Some(address) = &self.address else { return Ok(None) };
        if self.cluster.is_some() && std::env::var_os("PINPRIQ_CLUSTER").is_none() {
            return Err(Failure::unusable("--cluster and --address exclude each other"));
        }
        Endpoint::of(address, &self.encryption, endpoint::RESP).map(Some)
    }
}

/// A cluster and how much room it has.
#[derive(Debug, Args)]
pub(crate) struct RoomArgs {
    #[command(flatten)]
    pub(crate) of: ClusterArgs,

    /// The most bytes that the engine may keep for the cluster, as the nodes are told it. A node
    /// that is asked knows its own [default: 1GiB on etcd, 64GiB on PostgreSQL]
    #[arg(long, env = "PINPRIQ_CLUSTER_BYTES_MAX", hide_env_values = true, value_name = "SIZE")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) cluster_bytes_max: Option<Size<{ 1 << 50 }>>,
}

/// A node of a cluster.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// The name of the node
    pub(crate) node: NodeName,

    #[command(flatten)]
    pub(crate) of: ClusterArgs,
}

/// A shard of a cluster and where it is to go.
#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// The number of the shard, from 0
    pub(crate) shard: u16,

    /// The name of the node
    #[arg(required_unless_present = "back")]
    pub(crate) node: Option<NodeName>,

    /// Forget what the shard was told: it goes where it belongs
    #[arg(long, conflicts_with = "node")]
    pub(crate) back: bool,

    #[command(flatten)]
    pub(crate) of: ClusterArgs,
}

/// A cluster whose engine has lost data.
#[derive(Debug, Args)]
pub(crate) struct AcceptArgs {
    /// The data directory of a node that does not run. Needed if the engine was wiped
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) of: ClusterArgs,
}

/// A data directory, and the cluster that is to have what is in it.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The data directory of a server that does not run, with any number of shards
    pub(crate) dir: PathBuf,

    /// How many shards the cluster is to have, 1 to 1024
    #[arg(long, value_name = "N", value_parser = number_in::<u16>(1..=1_024))]
    #[arg(allow_negative_numbers = true, default_value_t = 16)]
    pub(crate) shards: u16,

    #[command(flatten)]
    pub(crate) room: RoomArgs,
}

/// A cluster, and the data directory that is to have what is in it.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The new data directory, empty or not there yet
    pub(crate) dir: PathBuf,

    /// How many shards it is to have, 1 to 64
    #[arg(long, value_name = "N", value_parser = number_in::<u8>(1..=64))]
    #[arg(allow_negative_numbers = true, default_value_t = 1)]
    pub(crate) shards: u8,

    #[command(flatten)]
    pub(crate) of: ClusterArgs,
}
