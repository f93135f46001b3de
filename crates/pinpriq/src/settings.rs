//! Every setting of the server, once: as a flag, as an environment variable, as a key of the
//! configuration file.
//!
//! A setting that was not given is `None` here; `config.rs` has the defaults and decides what takes
//! precedence. Values that cannot be meant, such as a bound of 0, are refused here, in the same
//! words wherever they come from.

use std::path::PathBuf;

use clap::{Arg, ValueEnum};
use serde::Deserialize;

pub(crate) use self::amounts::{Bounded, Kept, Size, Time, TimeOrOff};
pub(crate) use self::names::{Address, HostName, HostNames, Listen, NodeName, Origin, PlaceName};
use crate::cluster::url::ClusterUrl;

mod amounts;
mod names;

/// The most shards of a cluster.
pub(crate) const CLUSTER_SHARDS_MAX: u64 = 1_024;

/// Declares what can be set for a server: each setting as a flag, as an environment variable named
/// after it, and as a key of the file.
macro_rules! settings {
    ($($(#[$attribute:meta])+ $name:ident: $of:ty as $value:literal,)+) => {
        /// What can be set for a server.
        #[derive(Clone, PartialEq, Eq, Debug, Default, clap::Args, Deserialize)]
        #[command(mut_args(with_variable))]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub(crate) struct Settings {
            $($(#[$attribute])+ #[arg(long, value_name = $value)] pub(crate) $name: Option<$of>,)+
        }

        impl Settings {
            /// These settings, and where one is missing that of `fallback`.
            pub(crate) fn or(self, fallback: Self) -> Self {
                Self { $($name: self.$name.or(fallback.$name),)+ }
            }
        }
    };
}

/// Lets an argument of `serve` be given in the environment, under its name.
fn with_variable(arg: Arg) -> Arg {
    let variable = format!("PINPRIQ_{}", arg.get_id().as_str().to_uppercase());
    arg.env(variable).hide_env_values(true)
}

settings! {
    /// The data directory, made if it is not there [default: ./pinpriq-data]
    ///
    /// A node of a cluster has none unless it is given. There it remembers its cluster and how far
    /// the engine had come, and ends with exit code 3 if the engine has lost some of that.
    data: PathBuf as "DIR",

    /// Where to listen for the pinpriq protocol [default: 127.0.0.1:7250]
    ///
    /// A host and a port, or `off`. Port 0 takes any free port. The protocol has no passwords: on
    /// a server with users it acts as the user `anonymous`.
    pinpriq: Listen as "ADDR|off",

    /// Where to listen for RESP, the protocol of Redis clients [default: 127.0.0.1:7251]
    ///
    /// A host and a port, or `off`. Port 0 takes any free port. Without --users all who reach
    /// the address can use the queues.
    resp: Listen as "ADDR|off",

    /// Where a node of a cluster listens for Redis cluster clients [default: off]
    ///
    /// The same as --resp, for clients that ask each node for what it has: a request for a queue
    /// of another node is answered with the address of that node.
    resp_cluster: Listen as "ADDR|off",

    /// Where to listen for HTTP [default: 127.0.0.1:7252]
    ///
    /// A host and a port, or `off`. Port 0 takes any free port. Without --users all who reach
    /// the address can use the queues.
    http: Listen as "ADDR|off",

    /// Where to listen for the protocol of beanstalkd [default: off]
    ///
    /// A host and a port, or `off`. The usual port is 11300. The protocol has no passwords: on a
    /// server with users it acts as the user `anonymous`.
    beanstalkd: Listen as "ADDR|off",

    /// The largest job that clients of beanstalkd may put [default: 65535]
    ///
    /// In bytes, or with a unit such as 256KiB. At most --payload-bytes-max.
    beanstalkd_max_job: Size<0xFFFF_FFFF> as "SIZE",

    /// Where to listen for encrypted connections of the pinpriq protocol [default: off]
    ///
    /// A host and a port, or `off`. Needs --tls-cert and --tls-key. The usual port is 7260.
    pinpriqs: Listen as "ADDR|off",

    /// Where to listen for encrypted connections of Redis clients [default: off]
    ///
    /// A host and a port, or `off`. Needs --tls-cert and --tls-key. The usual port is 7261.
    resps: Listen as "ADDR|off",

    /// Where to listen for HTTPS [default: off]
    ///
    /// A host and a port, or `off`. Needs --tls-cert and --tls-key. The usual port is 7262.
    https: Listen as "ADDR|off",

    /// Where to listen for encrypted connections of beanstalkd's protocol [default: off]
    ///
    /// A host and a port, or `off`. Needs --tls-cert and --tls-key. There is no usual port.
    beanstalkds: Listen as "ADDR|off",

    /// The certificate of this server, in PEM [default: none]
    ///
    /// Those of its issuers follow it in the file. The server reads it again, with its key, when
    /// one of the files changes, and on SIGHUP. Connections that exist go on.
    tls_cert: PathBuf as "FILE",

    /// The key of the certificate, in PEM, without a password [default: none]
    tls_key: PathBuf as "FILE",

    /// The authorities whose certificates clients show, in PEM [default: none]
    ///
    /// Without it no client is asked for a certificate. On a server with users, a certificate signs
    /// its client in: its only common name is that of the user.
    tls_client_ca: PathBuf as "FILE",

    /// Whether a client without a certificate is refused [default: required]
    ///
    /// Only with --tls-client-ca.
    tls_client: ClientCertificates as "WHICH",

    /// The origin whose pages may use the HTTP door, besides its own [default: none]
    ///
    /// Such as `https://ops.example`. Browsers keep the pages of all other origins out.
    http_cors: Origin as "ORIGIN",

    /// The names by which HTTP clients call this server, with commas between [default: none]
    ///
    /// Requests for `localhost`, for `*.localhost` and for addresses are answered in any case.
    /// Those for other names are refused, since pages of other sites could use such a name.
    http_host: HostNames as "NAMES",

    /// The most queues that metrics and events show one by one [default: 1000]
    ///
    /// The others are shown together. A queue that is shown stays so as long as it exists.
    metrics_queues: Bounded<100_000> as "N",

    /// The file of users, who have to sign in [default: none]
    ///
    /// `pinpriq user` makes and changes it. The server reads it again when it changes, and on
    /// SIGHUP. Without users anyone who can reach the server may do everything, so it listens on
    /// loopback only.
    users: PathBuf as "FILE",

    /// A file with the password of the only user, `default` [default: none]
    ///
    /// That user may do everything. Instead of --users, where one password for all is enough.
    password_file: PathBuf as "FILE",

    /// Whether to listen beyond loopback without users [default: off]
    ///
    /// Anyone who can reach the server may then use and remove everything in it. It warns at each
    /// start.
    #[arg(num_args = 0..=1, default_missing_value = "on")]
    insecure_open: Switch as "on|off",

    /// Where to write down who did what [default: none]
    ///
    /// A file, or `stderr`. A line of JSON for each sign-in, each refusal for want of a right, each
    /// command that changes settings or destroys something, and each change of users. SIGHUP opens
    /// the file anew.
    audit: PathBuf as "FILE|stderr",

    /// What a reply promises [default: sync]
    durability: Durability as "LEVEL",

    /// Whether durability memory may ignore tasks in the data directory [default: off]
    ///
    /// At that level the directory is not used. A server that would hide tasks does not start
    /// unless this is on.
    #[arg(num_args = 0..=1, default_missing_value = "on")]
    ignore_data: Switch as "on|off",

    /// Where the server archives what happens, while it serves [default: none]
    ///
    /// A directory, or `s3://BUCKET/PREFIX`. What is confirmed is there --archive-every later, and
    /// after one upload. `pinpriq restore` brings back any moment from there. Not for durability
    /// memory, nor for a node of a cluster.
    archive: PlaceName as "PLACE",

    /// How often the archive gets what is new, from 100ms to 1h [default: 1s]
    #[arg(allow_hyphen_values = true)]
    archive_every: Time<3_600_000, 100> as "TIME",

    /// How far back the archive keeps every moment, at least 1h [default: none]
    ///
    /// A time with a unit, such as 7d. What is older is removed once an hour, as
    /// `pinpriq archive prune` does. Without it every moment stays.
    #[arg(allow_hyphen_values = true)]
    archive_keep: Kept as "TIME",

    /// How much of the disk may hold what an archive out of reach does not have yet
    /// [default: a tenth of the disk]
    ///
    /// Beyond it that part is given up with a warning, and the archive has a gap.
    #[arg(allow_hyphen_values = true)]
    archive_backlog: Size<{ 1 << 50 }> as "SIZE",

    /// How often the archive is compared with the data directory, at least 1h, or off
    /// [default: off]
    #[arg(allow_hyphen_values = true)]
    scrub_every: TimeOrOff<31_536_000_000, 3_600_000> as "TIME|off",

    /// How many shards, each with a thread, share the queues [default: 1]
    ///
    /// The name of a queue decides which shard has it. A data directory keeps the number that it
    /// was made with; `pinpriq reshard` changes it. At most 64; a cluster may have up to 1024, and
    /// has 16 unless its first node says otherwise.
    shards: Bounded<CLUSTER_SHARDS_MAX> as "N",

    /// The distributed engine under a cluster of several machines [default: none]
    ///
    /// `etcd://HOST:PORT,…/NAME` or `postgres://USER@HOST,…/DATABASE?schema=NAME`. The tasks are
    /// kept there, and every node with the same address serves the same queues. Encrypted:
    /// `etcds://USER@…?cacert=FILE&cert=FILE&key=FILE&passwordfile=FILE`, or
    /// `…&sslmode=verify-full&sslrootcert=FILE&sslcert=FILE&sslkey=FILE&passwordfile=FILE`.
    cluster: ClusterUrl as "URL",

    /// The name of this node, which it keeps from run to run [default: the name of the machine]
    node: NodeName as "NAME",

    /// The host under which other nodes and clients reach this one [default: 127.0.0.1]
    announce: HostName as "HOST",

    /// Where to listen for other nodes [default: 127.0.0.1:7253]
    ///
    /// Nodes prove to each other that they belong to the same cluster. What they say is not
    /// encrypted.
    link: Address as "ADDR",

    /// Under which host and port other nodes reach `--link`, if something is between them
    /// [default: --announce and the port of --link]
    announce_link: Address as "ADDR",

    /// After how long without a sign of life a node counts as dead, in whole seconds [default: 5s]
    #[arg(allow_hyphen_values = true)]
    session_ttl: Time<300_000> as "TIME",

    /// The most bytes that the engine may keep for the cluster
    /// [default: 1GiB on etcd, 64GiB on PostgreSQL]
    #[arg(allow_hyphen_values = true)]
    cluster_bytes_max: Size<{ 1 << 50 }> as "SIZE",

    /// How deliveries are framed [default: counted]
    pinpriq_framing: Framing as "HOW",

    /// What a time to live of 0 means [default: immediate]
    pinpriq_ttl_zero: TtlZero as "HOW",

    /// Whether packets that could not be sent whole go back to their queue [default: on]
    pinpriq_requeue: Switch as "on|off",

    /// The most connections; a further one is closed at once [default: 10000]
    connections_max: Bounded<1_000_000> as "N",

    /// The largest payload, at most 64MiB [default: 1MiB]
    #[arg(allow_hyphen_values = true)]
    payload_bytes_max: Size<{ 64 << 20 }> as "SIZE",

    /// The most memory for all tasks, queues and members together
    /// [default: a third of the memory]
    ///
    /// The memory is that of the machine, or what a container may use. Small tasks with a key or a
    /// time to live take more than is counted for them, at most some two and a half times as much.
    #[arg(allow_hyphen_values = true)]
    task_bytes_max: Size<{ 1 << 50 }> as "SIZE",

    /// The memory for tasks beyond which payloads stay on the disk [default: none]
    ///
    /// A payload that was left there is read back when its task is taken or shown. What the server
    /// keeps about each task stays in memory. Not for durability memory.
    #[arg(allow_hyphen_values = true)]
    memory_limit: Size<{ 1 << 50 }> as "SIZE",

    /// The most requests of one connection that may await replies [default: 1024]
    ///
    /// Beyond it the server stops reading from that connection until replies have gone.
    in_flight_max: Bounded<1_000_000> as "N",

    /// The most bytes of replies that may wait for one connection [default: 256KiB]
    ///
    /// Beyond it the server stops reading from that connection until replies have gone. A single
    /// reply may be larger; it is sent piece by piece.
    #[arg(allow_hyphen_values = true)]
    out_bytes_max: Size<{ 1 << 30 }> as "SIZE",

    /// The most bytes that all connections may make the server keep besides tasks [default: 128MiB]
    ///
    /// These are requests that have begun to arrive, open transactions, watched tubes, and replies
    /// that were not read. Beyond it, more of these is refused with BUSY, or waits until replies
    /// were read. There is always room for four of the largest payloads, and 4 KiB of each
    /// connection are free.
    #[arg(allow_hyphen_values = true)]
    connection_bytes_max: Size<{ 1 << 31 }> as "SIZE",

    /// The longest time from a request's first byte to its last [default: 10s]
    ///
    /// A connection that takes longer is closed. An idle connection is not.
    #[arg(allow_hyphen_values = true)]
    frame_timeout_ms: Time<3_600_000> as "TIME",

    /// After how long an idle connection is probed, or off [default: 1m]
    ///
    /// It ends when the other host has not answered three probes, a quarter of that time apart:
    /// by default 105 seconds after anything came last. The system counts in seconds.
    #[arg(allow_hyphen_values = true)]
    tcp_keepalive_ms: TimeOrOff<3_600_000> as "TIME|off",

    /// The longest time for which another host answers nothing of what it is sent, or off
    /// [default: 100s]
    ///
    /// A connection to a host that is gone ends then, and so does one whose client has read nothing
    /// for so long while more was waiting for it than its host takes.
    #[arg(allow_hyphen_values = true)]
    tcp_user_timeout_ms: TimeOrOff<3_600_000> as "TIME|off",

    /// The most subscriptions of one connection [default: 1024]
    subscriptions_max: Bounded<1_000_000> as "N",

    /// How long the figures of a queue are kept after it has ceased to exist, or off [default: 10m]
    ///
    /// A queue ceases to exist with its last task, unless it was created or is paused. At most
    /// 10,000 such queues are kept.
    #[arg(allow_hyphen_values = true)]
    queue_linger: TimeOrOff<2_592_000_000> as "TIME|off",

    /// The most windows of unique tasks that may outlive their tasks [default: 1000000]
    ///
    /// A put that would open another one is refused with BUSY meanwhile. Each needs about 300 bytes
    /// of memory.
    unique_max: Bounded<1_000_000_000> as "N",

    /// Of how many tasks that have left each shard remembers what became of them [default: 100000]
    ///
    /// AWAIT, EXPLAIN and GET over HTTP tell it. It is in memory alone, at most 16 MiB for a shard,
    /// and the oldest are forgotten first. 0 remembers none.
    #[arg(allow_hyphen_values = true)]
    remember: Bounded<10_000_000, 0> as "N",

    /// The most batches of each shard [default: 100000]
    ///
    /// For another one, the batch that is done for longest is forgotten. If none is done, it is
    /// refused with BUSY. Each needs about 500 bytes of memory.
    batches_max: Bounded<10_000_000> as "N",

    /// How long a batch is remembered after it was done, or off [default: 1h]
    #[arg(allow_hyphen_values = true)]
    batch_retain: TimeOrOff<2_592_000_000> as "TIME|off",

    /// After how long without pending tasks and changes an open batch is given up [default: 24h]
    ///
    /// It is done then, as if a task of it had failed.
    batch_abandon: Time<31_536_000_000> as "TIME",

    /// The most members that one topic may have [default: 10000]
    ///
    /// A JOIN of one more is refused with BUSY. One PUBLISH puts a task into the lane of each in
    /// one step, during which others wait: some five milliseconds for 10,000 lanes.
    topic_lanes_max: Bounded<1_000_000> as "N",

    /// How much to log on stderr [default: info]
    log_level: LogLevel as "LEVEL",

    /// How to write the log [default: text]
    log_format: LogFormat as "FORMAT",
}

/// What a reply promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    /// The change is on disk
    Sync,
    /// The change is with the operating system, and on disk within 50 ms
    Interval,
    /// The change is in memory, and gone with the process
    Memory,
}

/// How deliveries are framed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Framing {
    /// Like a pop reply: a number, then that many packets
    Counted,
    /// The packets alone
    Bare,
}

/// What a time to live of 0 means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TtlZero {
    /// The packet goes to a consumer that waits already, or nowhere
    Immediate,
    /// The packet lives until it is popped
    Forever,
}

/// Yes or no.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Switch {
    /// Yes
    On,
    /// No
    Off,
}

/// Whether clients must have certificates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ClientCertificates {
    /// A client without one is refused
    Required,
    /// A client may do without
    Optional,
}

/// How much is logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    /// What is broken
    Error,
    /// And what may need attention
    Warn,
    /// And what a server does as a whole
    Info,
    /// And what happens to connections
    Debug,
    /// And everything else
    Trace,
}

/// How the log is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// A line for people
    Text,
    /// A JSON object in each line
    Json,
}
