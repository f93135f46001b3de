//! The longer texts of the help of the commands that ask the engine under a cluster.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

/// What `cluster` does.
pub(super) const CLUSTER: &str = "\
Look at a cluster of several machines, move its shards, take nodes out of it, and carry whole \
data directories into it and out of it.

These commands ask the engine under the cluster, etcd or PostgreSQL. With --cluster they ask it \
themselves, so they also work when no node does. With --address a node of the cluster asks it for \
them: so they need not reach the engine nor know its passwords, but sign in like any client, as a \
user with the right admin. What the node refuses ends with exit code 5. `import`, `export` and \
`accept-rollback --data` need the engine itself.

They make no cluster: its first node does, or `import`. What they print was so a moment ago.";

/// After the help of `cluster status`.
pub(super) const AFTER_STATUS: &str = "\
Examples:
  pinpriq cluster status --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
  pinpriq cluster status --address 10.0.0.5:7251
  until pinpriq cluster status > /dev/null; do sleep 1; done

Exit codes:
  0  all shards are served
  1  the engine does not answer
  2  wrong usage, or an engine that cannot be used
  3  a shard is not served, or there is no such cluster";

/// After the help of `cluster nodes`.
pub(super) const AFTER_NODES: &str = "\
Examples:
  pinpriq cluster nodes --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks

Exit codes:
  0  printed
  1  the engine does not answer
  2  wrong usage, or an engine that cannot be used
  3  there is no such cluster
  4  no node lives";

/// What `cluster shards` does.
pub(super) const SHARDS: &str = "\
Print who serves each shard, and what its log has come to.

The owner and its term are what a node says of itself. The term of the log, its last entry and the \
first one that is kept are what the engine has: the owner of the log may change it.";

/// After the help of `cluster shards`.
pub(super) const AFTER_SHARDS: &str = "\
Examples:
  pinpriq cluster shards --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
  pinpriq cluster shards --json | jq -r 'select(.owner == \"n1\") | .shard'

Exit codes:
  0  printed
  1  the engine does not answer
  2  wrong usage, or an engine that cannot be used
  3  there is no such cluster";

/// What `cluster drain` does.
pub(super) const DRAIN: &str = "\
Tell a node to hand over its shards, and to get no new ones.

It hands over one shard after the other, and goes on taking connections: what clients ask of it is \
passed on. The cluster remembers it, also when the node is started again, until `pinpriq cluster \
undrain`. If all nodes are told so, they serve as if none was.

A node that is stopped with SIGTERM hands over its shards too, and needs no drain.";

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

/// What `cluster check` does.
pub(super) const CHECK: &str = "\
Tell what is wrong with a cluster.

Asks the engine how much room it has, who serves which shard, and what each log has come to, and \
compares these. Looks again for a few seconds before it complains, since a shard that changes \
hands looks odd for a moment. Changes nothing.";

/// After the help of `cluster check`.
pub(super) const AFTER_CHECK: &str = "\
Examples:
  pinpriq cluster check --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
  pinpriq cluster check --json

Exit codes:
  0  nothing is wrong
  1  the engine does not answer
  2  wrong usage, or an engine that cannot be used
  3  something is wrong, or there is no such cluster";

/// What `cluster move` does.
pub(super) const MOVE: &str = "\
Tell a shard to move to a node, and to stay there.

Its owner hands it over as soon as no other shard moves. The cluster remembers it, also when nodes \
are started again, until that is changed. While the node is gone or drained, the shard goes \
where it would go otherwise. It counts as a part of what the node gets.";

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

/// What `cluster accept-rollback` does.
pub(super) const ACCEPT_ROLLBACK: &str = "\
Go on with an engine that has lost data.

Nodes with a data directory remember how far the engine had come. When it has lost some of that, \
they end with exit code 3, and all others refuse every request with STORE, until this command. Run \
it only if the engine was restored, wiped or rolled back on purpose, or if what was lost cannot be \
brought back.

It begins a new generation of the cluster. Terms, and so receipts, of all generations before are \
below those of the new one, and tasks get numbers that no lost task can have had. What the engine \
still holds goes on: tasks that were finished since the backup are there again.

If the engine was wiped, nothing in it tells what the cluster was. Then name the data directory of \
one of its nodes. That cluster is made again, without tasks.";

/// After the help of `cluster accept-rollback`.
pub(super) const AFTER_ACCEPT_ROLLBACK: &str = "\
Examples:
  pinpriq cluster accept-rollback --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks
  pinpriq cluster accept-rollback --data /var/lib/pinpriq

Exit codes:
  0  it was accepted
  1  the engine does not answer
  2  wrong usage, or an engine that cannot be used
  3  there is no such cluster, or the data directory cannot be used or belongs to
     another cluster";

/// What `cluster upgrade` does.
pub(super) const UPGRADE: &str = "\
Let the nodes write the newest format that this program knows.

Run it when all nodes have the newest program. Nodes with an older program are refused from then \
on. There is one format so far, so there is nothing to raise.";

/// After the help of `cluster upgrade`.
pub(super) const AFTER_UPGRADE: &str = "\
Examples:
  pinpriq cluster upgrade --cluster etcd://10.0.0.1:2379,10.0.0.2:2379/tasks

Exit codes:
  0  the cluster has the newest format
  1  the engine does not answer
  2  wrong usage, or an engine that cannot be used
  3  there is no such cluster";

/// What `cluster import` does.
pub(super) const IMPORT: &str = "\
Make a cluster with what is in the data directory of a single server.

The server must have been stopped, and there must be no cluster of this name yet: no node may \
have run on it. Tasks, settings, schedules, members and leases stay as they are, with ids and \
order, and receipts stay good, as if the server had been started again. The directory is not \
changed. Do not start a server on it once nodes serve the cluster.

Either all of it is there in the end, or no node serves any of it: if this is interrupted or \
fails on the way, run it again. It removes what it has left behind.

A queue and that for its dead letters, and a schedule and its queue, must get into one shard of \
the cluster. If their names do not see to that, this is refused before anything is written. All \
of it is held in memory for the time.";

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

/// What `cluster export` does.
pub(super) const EXPORT: &str = "\
Write what is in a cluster into a data directory for a single server.

Nodes may serve the cluster meanwhile, which is not changed. Each shard is written as it was at \
one moment, and these moments may lie a little apart: what concerns several shards, such as a \
member that leaves all topics, may be there in part. A command, a transaction, a publication and \
a move between queues concern one shard, and are there as a whole or not. Stop the nodes first \
if all shards must be of the same moment.

Tasks, settings, schedules, members and leases stay as they are, with ids and order, and \
receipts of then stay good. New tasks get ids that the cluster never gives, and new receipts are \
none that it gives. Even so, do not let both serve the same workers.

Start the server on the new directory with --shards and the same number. An interrupted run \
leaves a directory that no server starts on: remove it and run the command again. All of it is \
held in memory for the time.";

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
