//! The arguments of the commands that ask the engine under a cluster.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::encryption::EncryptionArgs;
use super::texts::after;
use super::values::number_in;
use crate::cluster::url::ClusterUrl;
use crate::endpoint::{self, Endpoint};
use crate::exit::Failure;
use crate::settings::{NodeName, Size};

/// What can be asked of a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Tell whether all shards are served, and by whom
    #[command(after_help = after(
        "pinpriq cluster status --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
        pinpriq cluster status --address 10.0.0.5:7251
        until pinpriq cluster status > /dev/null; do sleep 1; done",
        "0  all shards are served
        1  the engine does not answer
        2  wrong usage, or an engine that cannot be used
        3  a shard is not served, or there is no such cluster",
    ))]
    Status(RoomArgs),
    /// Print the nodes that live
    #[command(after_help = after(
        "pinpriq cluster nodes --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks",
        "0  printed
        1  the engine does not answer
        2  wrong usage, or an engine that cannot be used
        3  there is no such cluster
        4  no node lives",
    ))]
    Nodes(ClusterArgs),
    /// Print who serves each shard, and what its log has come to.
    ///
    /// The owner and its term are what a node says of itself. The term of the log, its last entry
    /// and the first one that is kept are what the engine has: the owner of the log may change it.
    #[command(after_help = after(
        "pinpriq cluster shards --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
        pinpriq cluster shards --json | jq -r 'select(.owner == \"n1\") | .shard'",
        "0  printed
        1  the engine does not answer
        2  wrong usage, or an engine that cannot be used
        3  there is no such cluster",
    ))]
    Shards(ClusterArgs),
    /// Tell a node to hand over its shards, and to get no new ones.
    ///
    /// It hands over one shard after the other, and goes on taking connections: what clients ask of
    /// it is passed on. The cluster remembers it, also when the node is started again, until
    /// `pinpriq cluster undrain`. If all nodes are drained, they serve as if none was.
    ///
    /// A node that is stopped with SIGTERM hands over its shards too, and needs no drain.
    #[command(after_help = after(
        "pinpriq cluster drain n1 --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks",
        "0  it was told
        1  the engine does not answer
        2  wrong usage, an engine that cannot be used, or no node of this name lives
        3  there is no such cluster",
    ))]
    Drain(NodeArgs),
    /// Tell a node that it may have shards again
    #[command(after_help = after(
        "pinpriq cluster undrain n1 --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks",
        "0  it was told
        1  the engine does not answer
        2  wrong usage, an engine that cannot be used, or no node of this name lives or
        was told to drain
        3  there is no such cluster",
    ))]
    Undrain(NodeArgs),
    /// Tell a shard to move to a node, and to stay there.
    ///
    /// Its owner hands it over as soon as no other shard moves. The cluster remembers it, also when
    /// nodes are started again, until that is changed. While the node is gone or drained, the shard
    /// goes where it would go otherwise. It counts as a part of what the node gets.
    #[command(after_help = after(
        "pinpriq cluster move 3 n2 --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
        pinpriq cluster move 3 --back",
        "0  it was told
        1  the engine does not answer
        2  wrong usage, an engine that cannot be used, no such shard, no node of this
        name lives, or it is drained
        3  there is no such cluster",
    ))]
    Move(MoveArgs),
    /// Tell what is wrong with a cluster.
    ///
    /// Asks the engine how much room it has, who serves which shard, and what each log has come to,
    /// and compares these. Looks again for a few seconds before it complains, since a shard that
    /// changes hands looks odd for a moment. Changes nothing.
    #[command(after_help = after(
        "pinpriq cluster check --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
        pinpriq cluster check --json",
        "0  nothing is wrong
        1  the engine does not answer
        2  wrong usage, or an engine that cannot be used
        3  something is wrong, or there is no such cluster",
    ))]
    Check(RoomArgs),
    /// Go on with an engine that has lost data.
    ///
    /// Nodes with a data directory remember how far the engine had come. When it has lost some of
    /// that, they end with exit code 3, and all others refuse every request with STORE, until this
    /// command. Run it only if the engine was restored, wiped or rolled back on purpose, or if what
    /// was lost cannot be brought back.
    ///
    /// It begins a new generation of the cluster. Terms, and so receipts, of all generations before
    /// are below those of the new one, and tasks get numbers that no lost task can have had. What
    /// the engine still holds goes on: tasks that were finished since the backup are there again.
    ///
    /// If the engine was wiped, nothing in it tells what the cluster was. Then name the data
    /// directory of one of its nodes. That cluster is made again, without tasks.
    #[command(after_help = after(
        "pinpriq cluster accept-rollback --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
        pinpriq cluster accept-rollback --data /var/lib/pinpriq",
        "0  it was accepted
        1  the engine does not answer
        2  wrong usage, or an engine that cannot be used
        3  there is no such cluster, or the data directory cannot be used or belongs to
        another cluster",
    ))]
    AcceptRollback(AcceptArgs),
    /// Let the nodes write the newest format, when all have the newest program.
    ///
    /// Run it when all nodes have the newest program. Nodes with an older program are refused from
    /// then on. There is one format so far, so there is nothing to raise.
    #[command(after_help = after(
        "pinpriq cluster upgrade --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks",
        "0  the cluster has the newest format
        1  the engine does not answer
        2  wrong usage, or an engine that cannot be used
        3  there is no such cluster",
    ))]
    Upgrade(ClusterArgs),
    /// Make a cluster with what is in the data directory of a single server.
    ///
    /// The server must have been stopped, and there must be no cluster of this name yet: no node
    /// may have run on it. Tasks, settings, schedules, members and leases stay as they are, with
    /// ids and order, and receipts stay good, as if the server had been started again. The
    /// directory is not changed. Do not start a server on it once nodes serve the cluster.
    ///
    /// Either all of it is there in the end, or no node serves any of it: if this is interrupted or
    /// fails on the way, run it again. It removes what it has left behind.
    ///
    /// A queue and that for its dead letters, and a schedule and its queue, must get into one shard
    /// of the cluster. If their names do not see to that, this is refused before anything is
    /// written. All of it is held in memory for the time.
    #[command(after_help = after(
        "pinpriq cluster import /var/lib/pinpriq --cluster etcd://10.0.0.1:2379/tasks",
        "0  the cluster is complete: nodes can be started
        1  the engine does not answer or has no room, or something could not be read;
        run it again
        2  wrong usage, or an engine that cannot be used
        3  the engine is not empty; or the directory is in use, damaged, of a newer
        format, cannot be divided so, or is no data directory at all",
    ))]
    Import(ImportArgs),
    /// Write what is in a cluster into a data directory for a single server.
    ///
    /// Nodes may serve the cluster meanwhile, which is not changed. Each shard is written as it was
    /// at one moment, and these moments may lie a little apart: what concerns several shards, such
    /// as a member that leaves all topics, may be there in part. A command, a transaction, a
    /// publication and a move between queues concern one shard, and are there as a whole or not.
    /// Stop the nodes first if all shards must be of the same moment.
    ///
    /// Tasks, settings, schedules, members and leases stay as they are, with ids and order, and
    /// receipts of then stay good. New tasks get ids that the cluster never gives, and new receipts
    /// are none that it gives. Even so, do not let both serve the same workers.
    ///
    /// Start the server on the new directory with --shards and the same number. An interrupted run
    /// leaves a directory that no server starts on: remove it and run the command again. All of it
    /// is held in memory for the time.
    #[command(after_help = after(
        "pinpriq cluster export /var/lib/pinpriq --cluster etcd://10.0.0.1:2379/tasks
        pinpriq cluster export /backup/tasks --shards 4 && pinpriq check /backup/tasks",
        "0  the new directory is complete
        1  the engine does not answer, or a file could not be written; remove the new
        directory
        2  wrong usage, also a new directory that is not empty, or an engine that cannot
        be used
        3  there is no such cluster, or it is not there as a whole; or queues that tasks
        move between would be in different shards",
    ))]
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
