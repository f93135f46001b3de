//! Every setting of the server, once: as a flag, as an environment variable, as a key of the
//! configuration file.
//!
//! A setting that was not given is `None` here; defaults and precedence are the business of
//! `config.rs`. Values that cannot be meant, such as a bound of 0, are refused here, in the same
//! words wherever they come from.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use serde::Deserialize;

pub(crate) use self::amounts::{Bounded, Size, Time, TimeOrOff};
pub(crate) use self::names::{Address, HostName, HostNames, NodeName, Origin};
use crate::cluster::url::ClusterUrl;

mod amounts;
mod names;

/// The most shards of a cluster.
pub(crate) const CLUSTER_SHARDS_MAX: u64 = 1_024;

/// What can be set for a server.
#[derive(Clone, PartialEq, Eq, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Settings {
    /// The data directory, made if it is not there [default: ./pinpriq-data]
    ///
    /// A node of a cluster has none unless it is given. There it remembers its cluster and how far
    /// the engine had come, and ends with exit code 3 if the engine has lost some of that.
    #[arg(long, env = "PINPRIQ_DATA", hide_env_values = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Where to listen for the pinpriq protocol [default: 127.0.0.1:7250]
    ///
    /// A host and a port, or `off`. Port 0 takes any free port. The protocol has no passwords: on
    /// a server with users it acts as the user `anonymous`.
    #[arg(long, env = "PINPRIQ_PINPRIQ", hide_env_values = true, value_name = "ADDR|off")]
    pub(crate) pinpriq: Option<Listen>,

    /// Where to listen for RESP, the protocol of Redis clients [default: 127.0.0.1:7251]
    ///
    /// A host and a port, or `off`. Port 0 takes any free port. Without --users all who reach
    /// the address can use the queues.
    #[arg(long, env = "PINPRIQ_RESP", hide_env_values = true, value_name = "ADDR|off")]
    pub(crate) resp: Option<Listen>,

    /// Where a node of a cluster listens for Redis cluster clients [default: off]
    ///
    /// The same as --resp, for clients that ask each node for what it has: a request for a queue
    /// of another node is answered with the address of that node.
    #[arg(long, env = "PINPRIQ_RESP_CLUSTER", hide_env_values = true, value_name = "ADDR|off")]
    pub(crate) resp_cluster: Option<Listen>,

    /// Where to listen for HTTP [default: 127.0.0.1:7252]
    ///
    /// A host and a port, or `off`. Port 0 takes any free port. Without --users all who reach
    /// the address can use the queues.
    #[arg(long, env = "PINPRIQ_HTTP", hide_env_values = true, value_name = "ADDR|off")]
    pub(crate) http: Option<Listen>,

    /// Where to listen for the protocol of beanstalkd [default: off]
    ///
    /// A host and a port, or `off`. The usual port is 11300. The protocol has no passwords: on a
    /// server with users it acts as the user `anonymous`.
    #[arg(long, env = "PINPRIQ_BEANSTALKD", hide_env_values = true, value_name = "ADDR|off")]
    pub(crate) beanstalkd: Option<Listen>,

    /// The largest job that clients of beanstalkd may put [default: 65535]
    ///
    /// In bytes, or with a unit such as 256KiB. At most --payload-bytes-max.
    #[arg(long, env = "PINPRIQ_BEANSTALKD_MAX_JOB", hide_env_values = true, value_name = "SIZE")]
    pub(crate) beanstalkd_max_job: Option<Size<0xFFFF_FFFF>>,

    /// Where to listen for encrypted connections of the pinpriq protocol [default: off]
    ///
    /// A host and a port, or `off`. Needs --tls-cert and --tls-key. The usual port is 7260.
    #[arg(long, env = "PINPRIQ_PINPRIQS", hide_env_values = true, value_name = "ADDR|off")]
    pub(crate) pinpriqs: Option<Listen>,

    /// Where to listen for encrypted connections of Redis clients [default: off]
    ///
    /// A host and a port, or `off`. Needs --tls-cert and --tls-key. The usual port is 7261.
    #[arg(long, env = "PINPRIQ_RESPS", hide_env_values = true, value_name = "ADDR|off")]
    pub(crate) resps: Option<Listen>,

    /// Where to listen for HTTPS [default: off]
    ///
    /// A host and a port, or `off`. Needs --tls-cert and --tls-key. The usual port is 7262.
    #[arg(long, env = "PINPRIQ_HTTPS", hide_env_values = true, value_name = "ADDR|off")]
    pub(crate) https: Option<Listen>,

    /// Where to listen for encrypted connections of beanstalkd's protocol [default: off]
    ///
    /// A host and a port, or `off`. Needs --tls-cert and --tls-key. There is no usual port.
    #[arg(long, env = "PINPRIQ_BEANSTALKDS", hide_env_values = true, value_name = "ADDR|off")]
    pub(crate) beanstalkds: Option<Listen>,

    /// The certificate of this server, in PEM [default: none]
    ///
    /// Those of its issuers follow it in the file. The server reads it again, with its key, when
    /// one of the files changes, and on SIGHUP. Connections that exist go on.
    #[arg(long, env = "PINPRIQ_TLS_CERT", hide_env_values = true, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The key of the certificate, in PEM, without a password [default: none]
    #[arg(long, env = "PINPRIQ_TLS_KEY", hide_env_values = true, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,

    /// The authorities whose certificates clients show, in PEM [default: none]
    ///
    /// Without it no client is asked for a certificate. On a server with users, a certificate signs
    /// its client in: its only common name is that of the user.
    #[arg(long, env = "PINPRIQ_TLS_CLIENT_CA", hide_env_values = true, value_name = "FILE")]
    pub(crate) tls_client_ca: Option<PathBuf>,

    /// Whether a client without a certificate is refused [default: required]
    ///
    /// Only with --tls-client-ca.
    #[arg(long, env = "PINPRIQ_TLS_CLIENT", hide_env_values = true, value_name = "WHICH")]
    pub(crate) tls_client: Option<ClientCertificates>,

    /// The origin whose pages may use the HTTP door, besides its own [default: none]
    ///
    /// Such as `https://ops.example`. Browsers keep the pages of all other origins out.
    #[arg(long, env = "PINPRIQ_HTTP_CORS", hide_env_values = true, value_name = "ORIGIN")]
    pub(crate) http_cors: Option<Origin>,

    /// The names by which HTTP clients call this server, with commas between [default: none]
    ///
    /// Requests for `localhost`, for `*.localhost` and for addresses are answered in any case.
    /// Those for other names are refused, since pages of other sites could use such a name.
    #[arg(long, env = "PINPRIQ_HTTP_HOST", hide_env_values = true, value_name = "NAMES")]
    pub(crate) http_host: Option<HostNames>,

    /// The most queues that metrics and events show one by one [default: 1000]
    ///
    /// The others are shown together. A queue that is shown stays so as long as it exists.
    #[arg(long, env = "PINPRIQ_METRICS_QUEUES", hide_env_values = true, value_name = "N")]
    pub(crate) metrics_queues: Option<Bounded<100_000>>,

    /// The file of users, who have to sign in [default: none]
    ///
    /// `pinpriq user` makes and changes it. The server reads it again when it changes, and on
    /// SIGHUP. Without users anyone who can reach the server may do everything, so it listens on
    /// loopback only.
    #[arg(long, env = "PINPRIQ_USERS", hide_env_values = true, value_name = "FILE")]
    pub(crate) users: Option<PathBuf>,

    /// A file with the password of the only user, `default` [default: none]
    ///
    /// That user may do everything. Instead of --users, where one password for all is enough.
    #[arg(long, env = "PINPRIQ_PASSWORD_FILE", hide_env_values = true, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,

    /// Whether to listen beyond loopback without users [default: off]
    ///
    /// Anyone who can reach the server may then use and remove everything in it. It warns at each
    /// start.
    #[arg(long, env = "PINPRIQ_INSECURE_OPEN", hide_env_values = true, value_name = "on|off")]
    #[arg(num_args = 0..=1, default_missing_value = "on")]
    pub(crate) insecure_open: Option<Switch>,

    /// Where to write down who did what [default: none]
    ///
    /// A file, or `stderr`. A line of JSON for each sign-in, each refusal for want of a right, each
    /// command that changes settings or destroys something, and each change of users. SIGHUP opens
    /// the file anew.
    #[arg(long, env = "PINPRIQ_AUDIT", hide_env_values = true, value_name = "FILE|stderr")]
    pub(crate) audit: Option<PathBuf>,

    /// What a reply promises [default: sync]
    #[arg(long, env = "PINPRIQ_DURABILITY", hide_env_values = true, value_name = "LEVEL")]
    pub(crate) durability: Option<Durability>,

    /// Whether durability memory may ignore tasks in the data directory [default: off]
    ///
    /// At that level the directory is not used. A server that would hide tasks does not start
    /// unless this is on.
    #[arg(long, env = "PINPRIQ_IGNORE_DATA", hide_env_values = true, value_name = "on|off")]
    #[arg(num_args = 0..=1, default_missing_value = "on")]
    pub(crate) ignore_data: Option<Switch>,

    /// How many shards, each with a thread, share the queues [default: 1]
    ///
    /// The name of a queue decides which shard has it. A data directory keeps the number that it
    /// was made with; `pinpriq reshard` changes it. At most 64; a cluster may have up to 1024, and
    /// has 16 unless its first node says otherwise.
    #[arg(long, env = "PINPRIQ_SHARDS", hide_env_values = true, value_name = "N")]
    pub(crate) shards: Option<Bounded<CLUSTER_SHARDS_MAX>>,

    /// The distributed engine under a cluster of several machines [default: none]
    ///
    /// `etcd://HOST:PORT,…/NAME` or `postgres://USER@HOST,…/DATABASE?schema=NAME`. The tasks are
    /// kept there, and every node with the same address serves the same queues. Encrypted:
    /// `etcds://USER@…?cacert=FILE&cert=FILE&key=FILE&passwordfile=FILE`, or
    /// `…&sslmode=verify-full&sslrootcert=FILE&sslcert=FILE&sslkey=FILE&passwordfile=FILE`.
    #[arg(long, env = "PINPRIQ_CLUSTER", hide_env_values = true, value_name = "URL")]
    pub(crate) cluster: Option<ClusterUrl>,

    /// The name of this node, which it keeps from run to run [default: the name of the machine]
    #[arg(long, env = "PINPRIQ_NODE", hide_env_values = true, value_name = "NAME")]
    pub(crate) node: Option<NodeName>,

    /// The host under which other nodes and clients reach this one [default: 127.0.0.1]
    #[arg(long, env = "PINPRIQ_ANNOUNCE", hide_env_values = true, value_name = "HOST")]
    pub(crate) announce: Option<HostName>,

    /// Where to listen for other nodes [default: 127.0.0.1:7253]
    ///
    /// Nodes prove to each other that they belong to the same cluster. What they say is not
    /// encrypted.
    #[arg(long, env = "PINPRIQ_LINK", hide_env_values = true, value_name = "ADDR")]
    pub(crate) link: Option<Address>,

    /// Under which host and port other nodes reach `--link`, if something is between them
    /// [default: --announce and the port of --link]
    #[arg(long, env = "PINPRIQ_ANNOUNCE_LINK", hide_env_values = true, value_name = "ADDR")]
    pub(crate) announce_link: Option<Address>,

    /// After how long without a sign of life a node counts as dead, in whole seconds [default: 5s]
    #[arg(long, env = "PINPRIQ_SESSION_TTL", hide_env_values = true, value_name = "TIME")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) session_ttl: Option<Time<300_000>>,

    /// The most bytes that the engine may keep for the cluster
    /// [default: 1GiB on etcd, 64GiB on PostgreSQL]
    #[arg(long, env = "PINPRIQ_CLUSTER_BYTES_MAX", hide_env_values = true, value_name = "SIZE")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) cluster_bytes_max: Option<Size<{ 1 << 50 }>>,

    /// How deliveries are framed [default: counted]
    #[arg(long, env = "PINPRIQ_PINPRIQ_FRAMING", hide_env_values = true, value_name = "HOW")]
    pub(crate) pinpriq_framing: Option<Framing>,

    /// What a time to live of 0 means [default: immediate]
    #[arg(long, env = "PINPRIQ_PINPRIQ_TTL_ZERO", hide_env_values = true, value_name = "HOW")]
    pub(crate) pinpriq_ttl_zero: Option<TtlZero>,

    /// Whether packets that could not be sent whole go back to their queue [default: on]
    #[arg(long, env = "PINPRIQ_PINPRIQ_REQUEUE", hide_env_values = true, value_name = "on|off")]
    pub(crate) pinpriq_requeue: Option<Switch>,

    /// The most connections; a further one is closed at once [default: 10000]
    #[arg(long, env = "PINPRIQ_CONNECTIONS_MAX", hide_env_values = true, value_name = "N")]
    pub(crate) connections_max: Option<Bounded<1_000_000>>,

    /// The largest payload, at most 64MiB [default: 1MiB]
    #[arg(long, env = "PINPRIQ_PAYLOAD_BYTES_MAX", hide_env_values = true, value_name = "SIZE")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) payload_bytes_max: Option<Size<{ 64 << 20 }>>,

    /// The most memory for all tasks, queues and members together
    /// [default: a third of the memory]
    ///
    /// The memory is that of the machine, or what a container may use. Small tasks with a key or a
    /// time to live take more than is counted for them, at most some two and a half times as much.
    #[arg(long, env = "PINPRIQ_TASK_BYTES_MAX", hide_env_values = true, value_name = "SIZE")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) task_bytes_max: Option<Size<{ 1 << 50 }>>,

    /// The memory for tasks beyond which payloads stay on the disk [default: none]
    ///
    /// A payload that was left there is read back when its task is taken or shown. What the server
    /// keeps about each task stays in memory. Not for durability memory.
    #[arg(long, env = "PINPRIQ_MEMORY_LIMIT", hide_env_values = true, value_name = "SIZE")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) memory_limit: Option<Size<{ 1 << 50 }>>,

    /// The most requests of one connection that may await replies [default: 1024]
    ///
    /// Beyond it the server stops reading from that connection until replies have gone.
    #[arg(long, env = "PINPRIQ_IN_FLIGHT_MAX", hide_env_values = true, value_name = "N")]
    pub(crate) in_flight_max: Option<Bounded<1_000_000>>,

    /// The most bytes of replies that may wait for one connection [default: 256KiB]
    ///
    /// Beyond it the server stops reading from that connection until replies have gone. A single
    /// reply may be larger; it is sent piece by piece.
    #[arg(long, env = "PINPRIQ_OUT_BYTES_MAX", hide_env_values = true, value_name = "SIZE")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) out_bytes_max: Option<Size<{ 1 << 30 }>>,

    /// The most bytes that all connections may make the server keep besides tasks [default: 128MiB]
    ///
    /// These are requests that have begun to arrive, open transactions, watched tubes, and replies
    /// that were not read. Beyond it, more of these is refused with BUSY, or waits until replies
    /// were read. There is always room for four of the largest payloads, and 4 KiB of each
    /// connection are free.
    #[arg(long, env = "PINPRIQ_CONNECTION_BYTES_MAX", hide_env_values = true, value_name = "SIZE")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) connection_bytes_max: Option<Size<{ 1 << 31 }>>,

    /// The longest time from a request's first byte to its last [default: 10s]
    ///
    /// A connection that takes longer is closed. An idle connection is not.
    #[arg(long, env = "PINPRIQ_FRAME_TIMEOUT_MS", hide_env_values = true, value_name = "TIME")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) frame_timeout_ms: Option<Time<3_600_000>>,

    /// After how long an idle connection is probed, or off [default: 1m]
    ///
    /// It ends when the other host has not answered three probes, a quarter of that time apart:
    /// by default 105 seconds after anything came last. The system counts in seconds.
    #[arg(long, env = "PINPRIQ_TCP_KEEPALIVE_MS", hide_env_values = true, value_name = "TIME|off")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) tcp_keepalive_ms: Option<TimeOrOff<3_600_000>>,

    /// The longest time for which another host answers nothing of what it is sent, or off
    /// [default: 100s]
    ///
    /// A connection to a host that is gone ends then, and so does one whose client has read nothing
    /// for so long while more was waiting for it than its host takes.
    #[arg(
        long,
        env = "PINPRIQ_TCP_USER_TIMEOUT_MS",
        hide_env_values = true,
        value_name = "TIME|off"
    )]
    #[arg(allow_hyphen_values = true)]
    pub(crate) tcp_user_timeout_ms: Option<TimeOrOff<3_600_000>>,

    /// The most subscriptions of one connection [default: 1024]
    #[arg(long, env = "PINPRIQ_SUBSCRIPTIONS_MAX", hide_env_values = true, value_name = "N")]
    pub(crate) subscriptions_max: Option<Bounded<1_000_000>>,

    /// How long the figures of a queue are kept after it has ceased to exist, or off [default: 10m]
    ///
    /// A queue ceases to exist with its last task, unless it was created or is paused. At most
    /// 10,000 such queues are kept.
    #[arg(long, env = "PINPRIQ_QUEUE_LINGER", hide_env_values = true, value_name = "TIME|off")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) queue_linger: Option<TimeOrOff<2_592_000_000>>,

    /// The most windows of unique tasks that may outlive their tasks [default: 1000000]
    ///
    /// A put that would open another one is refused with BUSY meanwhile. Each needs about 300 bytes
    /// of memory.
    #[arg(long, env = "PINPRIQ_UNIQUE_MAX", hide_env_values = true, value_name = "N")]
    pub(crate) unique_max: Option<Bounded<1_000_000_000>>,

    /// The most members that one topic may have [default: 10000]
    ///
    /// A JOIN of one more is refused with BUSY. One PUBLISH puts a task into the lane of each in
    /// one step, during which others wait: some five milliseconds for 10,000 lanes.
    #[arg(long, env = "PINPRIQ_TOPIC_LANES_MAX", hide_env_values = true, value_name = "N")]
    pub(crate) topic_lanes_max: Option<Bounded<1_000_000>>,

    /// How much to log on stderr [default: info]
    #[arg(long, env = "PINPRIQ_LOG_LEVEL", hide_env_values = true, value_name = "LEVEL")]
    pub(crate) log_level: Option<LogLevel>,

    /// How to write the log [default: text]
    #[arg(long, env = "PINPRIQ_LOG_FORMAT", hide_env_values = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
}

impl Settings {
    /// These settings, and where one is missing that of `fallback`.
    pub(crate) fn or(self, fallback: Self) -> Self {
        Self {
            data: self.data.or(fallback.data),
            pinpriq: self.pinpriq.or(fallback.pinpriq),
            resp: self.resp.or(fallback.resp),
            resp_cluster: self.resp_cluster.or(fallback.resp_cluster),
            http: self.http.or(fallback.http),
            beanstalkd: self.beanstalkd.or(fallback.beanstalkd),
            beanstalkd_max_job: self.beanstalkd_max_job.or(fallback.beanstalkd_max_job),
            pinpriqs: self.pinpriqs.or(fallback.pinpriqs),
            resps: self.resps.or(fallback.resps),
            https: self.https.or(fallback.https),
            beanstalkds: self.beanstalkds.or(fallback.beanstalkds),
            tls_cert: self.tls_cert.or(fallback.tls_cert),
            tls_key: self.tls_key.or(fallback.tls_key),
            tls_client_ca: self.tls_client_ca.or(fallback.tls_client_ca),
            tls_client: self.tls_client.or(fallback.tls_client),
            http_cors: self.http_cors.or(fallback.http_cors),
            http_host: self.http_host.or(fallback.http_host),
            metrics_queues: self.metrics_queues.or(fallback.metrics_queues),
            users: self.users.or(fallback.users),
            password_file: self.password_file.or(fallback.password_file),
            insecure_open: self.insecure_open.or(fallback.insecure_open),
            audit: self.audit.or(fallback.audit),
            durability: self.durability.or(fallback.durability),
            ignore_data: self.ignore_data.or(fallback.ignore_data),
            shards: self.shards.or(fallback.shards),
            cluster: self.cluster.or(fallback.cluster),
            node: self.node.or(fallback.node),
            announce: self.announce.or(fallback.announce),
            link: self.link.or(fallback.link),
            announce_link: self.announce_link.or(fallback.announce_link),
            session_ttl: self.session_ttl.or(fallback.session_ttl),
            cluster_bytes_max: self.cluster_bytes_max.or(fallback.cluster_bytes_max),
            pinpriq_framing: self.pinpriq_framing.or(fallback.pinpriq_framing),
            pinpriq_ttl_zero: self.pinpriq_ttl_zero.or(fallback.pinpriq_ttl_zero),
            pinpriq_requeue: self.pinpriq_requeue.or(fallback.pinpriq_requeue),
            connections_max: self.connections_max.or(fallback.connections_max),
            payload_bytes_max: self.payload_bytes_max.or(fallback.payload_bytes_max),
            task_bytes_max: self.task_bytes_max.or(fallback.task_bytes_max),
            memory_limit: self.memory_limit.or(fallback.memory_limit),
            in_flight_max: self.in_flight_max.or(fallback.in_flight_max),
            out_bytes_max: self.out_bytes_max.or(fallback.out_bytes_max),
            connection_bytes_max: self.connection_bytes_max.or(fallback.connection_bytes_max),
            frame_timeout_ms: self.frame_timeout_ms.or(fallback.frame_timeout_ms),
            tcp_keepalive_ms: self.tcp_keepalive_ms.or(fallback.tcp_keepalive_ms),
            tcp_user_timeout_ms: self.tcp_user_timeout_ms.or(fallback.tcp_user_timeout_ms),
            subscriptions_max: self.subscriptions_max.or(fallback.subscriptions_max),
            queue_linger: self.queue_linger.or(fallback.queue_linger),
            unique_max: self.unique_max.or(fallback.unique_max),
            topic_lanes_max: self.topic_lanes_max.or(fallback.topic_lanes_max),
            log_level: self.log_level.or(fallback.log_level),
            log_format: self.log_format.or(fallback.log_format),
        }
    }
}

/// Where a door listens, not yet resolved.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Listen {
    /// Nowhere.
    Off,
    /// At a host and a port.
    At(String),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let usable = text.rsplit_once(':').is_some_and(|(host, port)| {
            let bracketed = host.starts_with('[') && host.ends_with(']');
            !host.is_empty() && (bracketed || !host.contains(':')) && port.parse::<u16>().is_ok()
        });
        if usable {
            Ok(Self::At(text.to_owned()))
        } else {
            Err("it must be a host and a port, such as 127.0.0.1:7250 or [::1]:7250, or off"
                .to_owned())
        }
    }
}

impl TryFrom<String> for Listen {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
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
