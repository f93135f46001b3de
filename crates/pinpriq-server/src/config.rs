//! The configuration of a server: plain data with a default for everything.
//!
//! The binary reads flags, the environment and files; this module does not.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use pinpriq_proto::reply::{Refusal, RefusalKind};
use pinpriq_proto::time::Timestamp;

/// The largest job of beanstalkd by default, in bytes.
pub const JOB_BYTES_MAX: u32 = 65_535;

/// The configuration of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The data directory. Created if it does not exist.
    pub data: PathBuf,
    /// What a reply promises.
    pub durability: Durability,
    /// The number of shards, from 1 to [`pinpriq_store::shards::SHARDS_MAX`]. Each has a thread.
    pub shards: usize,
    /// Where doors listen: any number of listeners, each with its door.
    pub listeners: Vec<Listener>,
    /// How the pinpriq door settles the open points of its protocol.
    pub pinpriq_options: PinpriqOptions,
    /// The bounds.
    pub limits: Limits,
    /// How connections are watched.
    pub watch: Watch,
    /// What there is to say about HTTP.
    pub http: HttpOptions,
    /// The largest job that the beanstalkd door accepts, in bytes. At most the largest payload.
    pub job_bytes_max: u32,
    /// Where users come from. Without any, every client may do everything.
    pub users: Option<UsersFrom>,
    /// Whether a server without users may listen beyond loopback.
    pub insecure_open: bool,
    /// Where it is written down what clients do, if that is wanted.
    pub audit: Option<AuditTo>,
    /// Where everything that happens is archived, if that is wanted. It needs a data directory.
    pub archive: Option<ArchiveTo>,
    /// Where connections are encrypted, if anywhere.
    pub tls: Option<TlsOptions>,
    /// The moment that is only looked at, if the server is there for no more.
    pub look: Option<Look>,
}

/// A moment that is only looked at. Time stands there for all that is in the data directory, and
/// nothing of it can be changed. Connections go on as usual.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Look {
    /// The moment, no earlier than the latest one in the data directory.
    pub at: Timestamp,
    /// What people call it.
    pub shown: String,
}

/// Where connections are encrypted, and who the two sides are. All files are in PEM, and are read
/// again when they change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsOptions {
    /// Where doors listen for encrypted connections.
    pub listeners: Vec<Listener>,
    /// The certificate of the server, followed by those of its issuers.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
    /// Whether clients are asked for certificates, and for which.
    pub clients: Option<TlsClients>,
}

/// Which certificates clients show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsClients {
    /// The authorities that may sign them.
    pub authorities: PathBuf,
    /// Whether a client without one is refused.
    pub required: bool,
}

/// Where the audit goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AuditTo {
    /// To the end of this file.
    File(PathBuf),
    /// To the standard error, between the lines of the log.
    Stderr,
}

/// Where a server archives while it serves, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArchiveTo {
    /// The place: a directory, or `s3://BUCKET/PREFIX`.
    pub place: String,
    /// How often what is new is sent.
    pub every: Duration,
    /// How far back every moment is kept. If `None`, nothing is ever removed.
    pub keep: Option<Duration>,
    /// How many bytes the data directory may hold only because they were not archived yet. If
    /// `None`, a tenth of its file system.
    pub backlog_bytes: Option<u64>,
    /// How often files and archive are compared, if they are.
    pub scrub_every: Option<Duration>,
}

/// Where the users of a server come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UsersFrom {
    /// From a file of users.
    File(PathBuf),
    /// There is only `default`, who may do everything, and this file has the password.
    Password(PathBuf),
}

/// The points of the HTTP door.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HttpOptions {
    /// The origin whose pages may use the server besides its own, such as `https://ops.example`.
    pub cors_origin: Option<String>,
    /// The names by which clients call the server, besides `localhost` and addresses.
    pub hosts: Vec<String>,
    /// The most queues and lanes that metrics and events show one by one. The others are shown
    /// together.
    pub metrics_queues: usize,
}

/// An address that a door listens on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listener {
    /// The protocol spoken there.
    pub door: DoorName,
    /// The address. With port 0 the system chooses one.
    pub address: SocketAddr,
}

pinpriq_proto::worded! {
    /// The protocols.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
    pub enum DoorName {
        /// The founding protocol.
        #[default]
        Pinpriq => "pinpriq",
        /// RESP, for every Redis client.
        Resp => "resp",
        /// RESP, for cluster clients: they are sent to the node that has a queue. Only for a node
        /// of a cluster.
        RespCluster => "resp_cluster",
        /// HTTP, with JSON.
        Http => "http",
        /// The protocol of beanstalkd.
        Beanstalkd => "beanstalkd",
    }

    /// Returns the word for it in settings, logs and lists.
    fn word -> &'static str
}

pinpriq_proto::worded! {
    /// What a reply promises.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub enum Durability {
        /// The change is on disk.
        #[default]
        Sync => "sync",
        /// The change is with the operating system, and on disk within 50 ms.
        Interval => "interval",
        /// The change is in memory, and gone with the process.
        Memory => "memory",
    }

    /// Returns the word for it in settings, logs and statistics.
    fn word -> &'static str
}

/// The points that the pinpriq protocol leaves open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PinpriqOptions {
    /// How a delivery is framed.
    pub framing: Framing,
    /// What a TTL of 0 means.
    pub ttl_zero: TtlZero,
    /// Whether tasks return to their queue when the reply or delivery with them could not be sent
    /// completely.
    pub requeue: bool,
}

/// How a delivery is framed on the pinpriq wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Framing {
    /// Like a pop reply: a count, then the packets.
    #[default]
    Counted,
    /// The packets alone.
    Bare,
}

/// What a TTL of 0 means on the pinpriq wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TtlZero {
    /// The packet goes to a consumer that is already blocked, or nowhere.
    #[default]
    Immediate,
    /// The packet lives until it is popped.
    Forever,
}

/// Declares the bounds of a server, each with its default.
macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $name:ident: $of:ty = $default:expr,)+) => {
        /// The bounds of a server.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Limits {
            $($(#[doc = $doc])+ pub $name: $of,)+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl Limits {
            /// Each bound by its name. A time is in milliseconds.
            pub(crate) fn each(&self) -> [(String, Option<u64>); [$(stringify!($name)),+].len()] {
                [$(self.$name.named(stringify!($name))),+]
            }
        }
    };
}

/// A bound as it is shown.
trait Bound {
    fn named(self, name: &str) -> (String, Option<u64>);
}

impl Bound for usize {
    fn named(self, name: &str) -> (String, Option<u64>) {
        (name.to_owned(), Some(self as u64))
    }
}

impl Bound for u64 {
    fn named(self, name: &str) -> (String, Option<u64>) {
        (name.to_owned(), Some(self))
    }
}

impl Bound for Option<u64> {
    fn named(self, name: &str) -> (String, Self) {
        (name.to_owned(), self)
    }
}

impl Bound for Duration {
    fn named(self, name: &str) -> (String, Option<u64>) {
        (format!("{name}_ms"), u64::try_from(self.as_millis()).ok())
    }
}

limits! {
    /// The most connections of all doors together. Further ones are closed at once.
    connections_max: usize = 10_000,
    /// The largest payload, in bytes.
    payload_bytes_max: usize = 1 << 20,
    /// The most bytes that all tasks, queues, members and lanes together may occupy in memory.
    /// Blocked requests and subscriptions may occupy a quarter as much in addition.
    task_bytes_max: u64 = 4 << 30,
    /// How many bytes all tasks together may occupy in memory before payloads are left on the disk,
    /// if there is such a limit. It has no use without a disk.
    memory_limit: Option<u64> = None,
    /// The most requests of one connection that may await their replies. At this number the server
    /// stops reading from the connection.
    in_flight_max: usize = 1_024,
    /// How many bytes of replies may wait for one connection's socket. At this number the server
    /// stops reading from the connection. No more than this is encoded ahead; a larger reply is
    /// sent piece by piece.
    out_bytes_max: usize = 256 << 10,
    /// How many bytes all connections together may make the server keep besides tasks: requests
    /// that have begun to arrive, open transactions, replies that were not read. There is always
    /// room for four of the largest payloads.
    connection_bytes_max: usize = 128 << 20,
    /// How long a message may take from its first byte to its last.
    frame_timeout: Duration = Duration::from_secs(10),
    /// The most subscriptions of one connection.
    subscriptions_max: usize = 1_024,
    /// How long the figures of a queue are kept after it has ceased to exist. Zero forgets them at
    /// once.
    queue_linger: Duration = Duration::from_mins(10),
    /// The most queues whose figures are kept like that.
    lingering_queues_max: usize = 10_000,
    /// The most windows of unique tasks that may outlive their tasks.
    unique_max: u64 = 1_000_000,
    /// Of how many tasks that have left each shard remembers what became of them.
    endings_max: usize = 100_000,
    /// The most batches of each shard. One that is done gives way to another one.
    batches_max: usize = 100_000,
    /// How long a batch is remembered after it was done.
    batch_retain: Duration = Duration::from_hours(1),
    /// After how long without pending tasks and changes an open batch is given up.
    batch_abandon: Duration = Duration::from_hours(24),
    /// The most lanes of one topic.
    topic_lanes_max: usize = 10_000,
}

/// How the system watches connections to notice a client whose host has vanished: by default within
/// two minutes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// How long a connection may be idle before it is probed, in whole seconds, rounded up.
    ///
    /// It ends after three probes without an answer, each a quarter of this time after the one
    /// before. If `None`, connections are not probed.
    pub keepalive: Option<Duration>,
    /// How long sent bytes may stay unacknowledged by the other host, or find no room there, before
    /// the connection ends.
    ///
    /// An idle connection that was probed also ends when nothing has arrived for this long,
    /// whatever number of probes is left. If `None`, the system decides, which may take a quarter
    /// of an hour.
    pub user_timeout: Option<Duration>,
}

impl DoorName {
    /// Those of a server by default.
    pub const DEFAULT: [Self; 3] = [Self::Pinpriq, Self::Resp, Self::Http];

    /// Returns its default port.
    const fn port(self) -> u16 {
        match self {
            Self::Pinpriq => 7250,
            Self::Resp => 7251,
            Self::RespCluster => 7254,
            Self::Http => 7252,
            Self::Beanstalkd => 11_300,
        }
    }
}

impl Config {
    /// Returns all listeners, and whether connections are encrypted there.
    pub fn every_listener(&self) -> impl Iterator<Item = (Listener, bool)> {
        let plain = self.listeners.iter().map(|it| (*it, false));
        let encrypted = self.tls.iter().flat_map(|tls| tls.listeners.iter());
        plain.chain(encrypted.map(|it| (*it, true)))
    }
}

impl Look {
    /// The refusal of whatever would change something.
    pub(crate) fn refusal(&self) -> Refusal {
        let sentence = format!(
            "this is a look at {}: nothing can be changed; bring tasks back with `pinpriq export \
             ... | pinpriq import`",
            self.shown
        );
        Refusal::new(RefusalKind::ReadOnly, sentence)
    }
}

impl Listener {
    /// Returns the listener of a door by default, which is on the loopback interface.
    #[must_use]
    pub fn default_of(door: DoorName) -> Self {
        Self { door, address: SocketAddr::from(([127, 0, 0, 1], door.port())) }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data: PathBuf::from("./pinpriq-data"),
            durability: Durability::default(),
            shards: 1,
            listeners: DoorName::DEFAULT.map(Listener::default_of).to_vec(),
            pinpriq_options: PinpriqOptions::default(),
            limits: Limits::default(),
            watch: Watch::default(),
            http: HttpOptions::default(),
            job_bytes_max: JOB_BYTES_MAX,
            users: None,
            insecure_open: false,
            audit: None,
            archive: None,
            tls: None,
            look: None,
        }
    }
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self { cors_origin: None, hosts: Vec::new(), metrics_queues: 1_000 }
    }
}

impl Default for PinpriqOptions {
    fn default() -> Self {
        Self { framing: Framing::default(), ttl_zero: TtlZero::default(), requeue: true }
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            keepalive: Some(Duration::from_mins(1)),
            // Between the second unanswered probe and the moment at which a fourth would be due.
            user_timeout: Some(Duration::from_secs(100)),
        }
    }
}
