//! The longer texts of the help of the commands that ask the engine under a cluster.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

/// The exit codes of a command that asks the engine.
macro_rules! asking {
    ($examples:literal, $done:literal, $wrong:literal) => {
        concat!(
            "Examples:\n",
            $examples,
            "\nExit codes:\n  0  ",
            $done,
            "\n  1  the engine does not answer\n",
            "  2  wrong usage, or an engine that cannot be used\n  3  ",
            $wrong
        )
    };
}

/// After the help of `cluster status`.
pub(super) const AFTER_STATUS: &str = asking!(
    "  pinpriq cluster status --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
  pinpriq cluster status --address 10.0.0.5:7251
  until pinpriq cluster status > /dev/null; do sleep 1; done
",
    "all shards are served",
    "a shard is not served, or there is no such cluster"
);

/// After the help of `cluster nodes`.
pub(super) const AFTER_NODES: &str = asking!(
    "  pinpriq cluster nodes --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
",
    "printed",
    "there is no such cluster
  4  no node lives"
);

/// After the help of `cluster shards`.
pub(super) const AFTER_SHARDS: &str = asking!(
    "  pinpriq cluster shards --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
  pinpriq cluster shards --json | jq -r 'select(.owner == \"n1\") | .shard'
",
    "printed",
    "there is no such cluster"
);

/// After the help of `cluster drain`.
pub(super) const AFTER_DRAIN: &str = "\
Examples:
  pinpriq cluster drain n1 --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks

Exit codes:
  0  it was told
  1  the engine does not answer
  2  wrong usage, an engine that cannot be used, or no node of this name lives
  3  there is no such cluster";

/// After the help of `cluster undrain`.
pub(super) const AFTER_UNDRAIN: &str = "\
Examples:
  pinpriq cluster undrain n1 --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks

Exit codes:
  0  it was told
  1  the engine does not answer
  2  wrong usage, an engine that cannot be used, or no node of this name lives or
     was told to drain
  3  there is no such cluster";

/// After the help of `cluster check`.
pub(super) const AFTER_CHECK: &str = asking!(
    "  pinpriq cluster check --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
  pinpriq cluster check --json
",
    "nothing is wrong",
    "something is wrong, or there is no such cluster"
);

/// After the help of `cluster move`.
pub(super) const AFTER_MOVE: &str = "\
Examples:
  pinpriq cluster move 3 n2 --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
  pinpriq cluster move 3 --back

Exit codes:
  0  it was told
  1  the engine does not answer
  2  wrong usage, an engine that cannot be used, no such shard, no node of this
     name lives, or it is drained
  3  there is no such cluster";

/// After the help of `cluster accept-rollback`.
pub(super) const AFTER_ACCEPT_ROLLBACK: &str = asking!(
    "  pinpriq cluster accept-rollback --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
  pinpriq cluster accept-rollback --data /var/lib/pinpriq
",
    "it was accepted",
    "there is no such cluster, or the data directory cannot be used or belongs to
     another cluster"
);

/// After the help of `cluster upgrade`.
pub(super) const AFTER_UPGRADE: &str = asking!(
    "  pinpriq cluster upgrade --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
",
    "the cluster has the newest format",
    "there is no such cluster"
);

/// After the help of `cluster import`.
pub(super) const AFTER_IMPORT: &str = "\
Examples:
  pinpriq cluster import /var/lib/pinpriq --cluster etcd://10.0.0.1:2379/tasks

Exit codes:
  0  the cluster is complete: nodes can be started
  1  the engine does not answer or has no room, or something could not be read;
     run it again
  2  wrong usage, or an engine that cannot be used
  3  the engine is not empty; or the directory is in use, damaged, of a newer
     format, cannot be divided so, or is no data directory at all";

/// After the help of `cluster export`.
pub(super) const AFTER_EXPORT: &str = "\
Examples:
  pinpriq cluster export /var/lib/pinpriq --cluster etcd://10.0.0.1:2379/tasks
  pinpriq cluster export /backup/tasks --shards 4 && pinpriq check /backup/tasks

Exit codes:
  0  the new directory is complete
  1  the engine does not answer, or a file could not be written; remove the new
     directory
  2  wrong usage, also a new directory that is not empty, or an engine that cannot
     be used
  3  there is no such cluster, or it is not there as a whole; or queues that tasks
     move between would be in different shards";
