//! From settings to the configuration of the server: flags and environment over file over default.
//!
//! Flags win over environment variables before anything arrives here. The only input is the file,
//! and the only look-up that of a host name; everything else depends on arguments alone.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinpriq_server::config::{self as server, AuditTo, Config, DoorName, Listener, UsersFrom};

use crate::logging::Logging;
use crate::settings::{
    Bounded, Durability, Framing, Listen, LogFormat, LogLevel, Settings, Size, Switch, Time,
    TimeOrOff, TtlZero,
};

mod archive;
pub(crate) mod cluster;
#[cfg(test)]
mod tests;
mod tls;

/// Which part of the memory all tasks may occupy by default. The most expensive tasks take two and
/// a half times what is counted for them, and blocked requests have room of their own.
const MEMORY_SHARE: u64 = 3;

/// Everything that `serve` needs to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    /// The configuration of the server.
    pub(crate) config: Config,
    /// What is logged.
    pub(crate) logging: Logging,
    /// Whether a server without a disk may start beside a data directory with tasks.
    pub(crate) ignores_data: bool,
    /// What makes the server a node of a cluster, if it is one.
    pub(crate) cluster: Option<cluster::ClusterPlan>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    /// The configuration file cannot be read.
    #[error("the configuration file {} cannot be read: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    /// The configuration file does not say what it could.
    #[error("the configuration file {} cannot be used: {error}", path.display())]
    File { path: PathBuf, error: String },
    /// The host is unknown.
    #[error("the address {address} to listen on cannot be resolved: {error}")]
    Address { address: String, error: std::io::Error },
    /// The host is known and has no address.
    #[error("the address {address} to listen on stands for no address at all")]
    NoAddress { address: String },
    /// The data directory has no name.
    #[error("data must name a directory; it is empty")]
    NoDirectory,
    /// The largest payload would never be accepted.
    #[error(
        "task-bytes-max ({all}) is less than payload-bytes-max ({payload}), so that a payload \
         of that size would never be accepted"
    )]
    NoRoom { all: u64, payload: u64 },
    /// Larger jobs would never be accepted.
    #[error(
        "beanstalkd-max-job ({job}) is more than payload-bytes-max ({payload}), so that a job of \
         that size would never be accepted"
    )]
    JobTooLarge { job: u32, payload: u32 },
    /// Payloads cannot be left on a disk that there is not.
    #[error("memory-limit leaves payloads on the disk, and durability memory uses none")]
    NoDisk,
    /// A single server has fewer shards than a cluster.
    #[error("shards ({shards}) is more than {most}, which only a cluster may have")]
    TooManyShards { shards: u64, most: u64 },
    /// A cluster does not promise less, and keeps its payloads in memory.
    #[error("{setting} is not for a node of a cluster: its tasks are as durable as its engine")]
    NotInCluster { setting: &'static str },
    /// There are no other nodes to send clients to.
    #[error("resp-cluster is for a node of a cluster: name the cluster with --cluster")]
    OnlyInCluster,
    /// The archive of a server has what its data directory has.
    #[error("archive needs a data directory, and durability memory uses none")]
    NothingToArchive,
    /// What is in the engine is not in the data directory of a node.
    #[error(
        "archive is not for a node of a cluster: take the backups of its engine, or write a data \
         directory with pinpriq cluster export"
    )]
    ArchiveInCluster,
    /// There is no place to do that in.
    #[error("{setting} has no use without archive, which names the place")]
    OnlyWithArchive { setting: &'static str },
    /// Users come from one place.
    #[error("users and password-file are two ways to have users: give one of them")]
    UsersTwice,
    /// Clients cannot know whom they talk to.
    #[error("encrypted connections need both tls-cert and tls-key, and {missing} is missing")]
    NoCertificate { missing: &'static str },
    /// A certificate is there, and nothing is encrypted.
    #[error(
        "tls-cert has no use without an address for encrypted connections: give pinpriqs, \
         resps, https or beanstalkds one"
    )]
    NothingEncrypted,
    /// It is unknown which certificates of clients are right.
    #[error("tls-client needs tls-client-ca, the authorities that sign certificates of clients")]
    NoClientAuthority,
    /// Engines count sessions in seconds.
    #[error("session-ttl ({ms}ms) must be whole seconds, at least 2s")]
    Session { ms: u64 },
}

/// Returns the plan that follows from flags, environment and, if one is named, the file, on a
/// machine with this much memory.
pub(crate) fn plan(given: Settings, file: Option<&Path>, memory: u64) -> Result<Plan, Unusable> {
    let from_file = match file {
        Some(path) => read(path)?,
        None => Settings::default(),
    };
    with_defaults(given.or(from_file), Some(memory))
}

/// Returns the plan that follows from flags and the text of a file. No host name is resolved: an
/// address with one is skipped. Nothing is known about the machine.
pub(crate) fn plan_of(given: Settings, text: &str) -> Result<Plan, Unusable> {
    let mut settings = given.or(parse(Path::new("in memory"), text)?);
    let Settings {
        pinpriq,
        resp,
        resp_cluster,
        http,
        beanstalkd,
        pinpriqs,
        resps,
        https,
        beanstalkds,
        ..
    } = &mut settings;
    for listen in
        [pinpriq, resp, resp_cluster, http, beanstalkd, pinpriqs, resps, https, beanstalkds]
    {
        let numeric = |text: &String| text.parse::<SocketAddr>().is_ok();
        listen.take_if(|listen| matches!(listen, Listen::At(text) if !numeric(text)));
    }
    with_defaults(settings, None)
}

/// Returns the settings in the file at `path`.
fn read(path: &Path) -> Result<Settings, Unusable> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Unusable::Unreadable { path: path.to_owned(), error })?;
    parse(path, &text)
}

/// Returns the settings in the text of the file at `path`.
fn parse(path: &Path, text: &str) -> Result<Settings, Unusable> {
    toml::from_str(text)
        .map_err(|error| Unusable::File { path: path.to_owned(), error: explain(&error, text) })
}

/// Says what is wrong with a text, and shows the line, unless an address is in it: that of a
/// cluster may hold a password.
fn explain(error: &toml::de::Error, text: &str) -> String {
    let whole = error.to_string();
    if !whole.contains("://") {
        return whole;
    }
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
    let what = error.message();
    let what = if what.contains("://") { "it cannot be understood" } else { what };
    format!("line {}: {what}", before.matches('\n').count() + 1)
}

/// Returns the time that was given, or the default.
fn time<const MAX: u64, const MIN: u64>(
    given: Option<Time<MAX, MIN>>,
    default: Duration,
) -> Duration {
    given.map_or(default, |time| Duration::from_millis(time.ms()))
}

/// Returns the plan that follows from `settings`, with the server's defaults for the rest, and the
/// memory of the machine, if it is known.
fn with_defaults(settings: Settings, memory: Option<u64>) -> Result<Plan, Unusable> {
    let cluster = cluster::plan(&settings)?;
    let tls = tls::options(&settings)?;
    let archive = archive::plan(&settings)?;
    let mut defaults = Config::default();
    if let Some(memory) = memory {
        let payload = settings.payload_bytes_max.map(Size::bytes);
        let payload = payload.unwrap_or(defaults.limits.payload_bytes_max as u64);
        defaults.limits.task_bytes_max = (memory / MEMORY_SHARE).max(payload);
    }
    let bounds = defaults.limits;
    let limits = limits_of_what_is_kept(&settings, bounds);
    let pinpriq_options = pinpriq_options(&settings, defaults.pinpriq_options);
    let listeners = listeners([
        (DoorName::Pinpriq, settings.pinpriq),
        (DoorName::Resp, settings.resp),
        (DoorName::RespCluster, settings.resp_cluster.or(Some(Listen::Off))),
        (DoorName::Http, settings.http),
        (DoorName::Beanstalkd, settings.beanstalkd.or(Some(Listen::Off))),
    ])?;
    let payload_bytes_max = size(settings.payload_bytes_max, defaults.limits.payload_bytes_max);
    let job_bytes_max = job_bytes_max(settings.beanstalkd_max_job, payload_bytes_max)?;
    let users = users_from(settings.users, settings.password_file)?;
    let config = Config {
        data: settings.data.unwrap_or(defaults.data),
        durability: settings.durability.map_or(defaults.durability, Durability::for_server),
        shards: count(settings.shards, defaults.shards),
        listeners,
        http: server::HttpOptions {
            cors_origin: settings.http_cors.map(|origin| origin.0),
            hosts: settings.http_host.map(|names| names.0).unwrap_or_default(),
            metrics_queues: count(settings.metrics_queues, defaults.http.metrics_queues),
        },
        job_bytes_max,
        users,
        insecure_open: settings.insecure_open == Some(Switch::On),
        audit: settings.audit.map(audit_to),
        tls,
        look: None,
        archive,
        pinpriq_options,
        limits: server::Limits {
            connections_max: count(settings.connections_max, defaults.limits.connections_max),
            payload_bytes_max,
            task_bytes_max: settings
                .task_bytes_max
                .map_or(defaults.limits.task_bytes_max, Size::bytes),
            memory_limit: settings.memory_limit.map(Size::bytes),
            in_flight_max: count(settings.in_flight_max, defaults.limits.in_flight_max),
            out_bytes_max: size(settings.out_bytes_max, defaults.limits.out_bytes_max),
            connection_bytes_max: size(settings.connection_bytes_max, bounds.connection_bytes_max),
            frame_timeout: time(settings.frame_timeout_ms, bounds.frame_timeout),
            subscriptions_max: count(settings.subscriptions_max, defaults.limits.subscriptions_max),
            queue_linger: time_or_off(settings.queue_linger, Some(defaults.limits.queue_linger))
                .unwrap_or_default(),
            lingering_queues_max: defaults.limits.lingering_queues_max,
            ..limits
        },
        watch: server::Watch {
            keepalive: time_or_off(settings.tcp_keepalive_ms, defaults.watch.keepalive),
            user_timeout: time_or_off(settings.tcp_user_timeout_ms, defaults.watch.user_timeout),
        },
    };
    refuse_contradictions(&config)?;
    let logging = Logging {
        level: settings.log_level.unwrap_or(LogLevel::Info),
        format: settings.log_format.unwrap_or(LogFormat::Text),
    };
    let ignores_data = settings.ignore_data == Some(Switch::On);
    Ok(Plan { config, logging, ignores_data, cluster })
}

/// Returns the open points of the pinpriq protocol as set.
fn pinpriq_options(settings: &Settings, options: server::PinpriqOptions) -> server::PinpriqOptions {
    server::PinpriqOptions {
        framing: settings.pinpriq_framing.map_or(options.framing, Framing::for_server),
        ttl_zero: settings.pinpriq_ttl_zero.map_or(options.ttl_zero, TtlZero::for_server),
        requeue: settings.pinpriq_requeue.map_or(options.requeue, |it| it == Switch::On),
    }
}

/// Returns limits in which those of what a shard keeps besides tasks are as set.
fn limits_of_what_is_kept(settings: &Settings, limits: server::Limits) -> server::Limits {
    server::Limits {
        topic_lanes_max: count(settings.topic_lanes_max, limits.topic_lanes_max),
        endings_max: count(settings.remember, limits.endings_max),
        unique_max: settings.unique_max.map_or(limits.unique_max, Bounded::number),
        batches_max: count(settings.batches_max, limits.batches_max),
        batch_retain: time_or_off(settings.batch_retain, Some(limits.batch_retain))
            .unwrap_or_default(),
        batch_abandon: time(settings.batch_abandon, limits.batch_abandon),
        ..limits
    }
}

/// Returns the largest job, which is not larger than the largest payload.
fn job_bytes_max(
    given: Option<Size<0xFFFF_FFFF>>,
    payload_bytes_max: usize,
) -> Result<u32, Unusable> {
    let payload = u32::try_from(payload_bytes_max).unwrap_or(u32::MAX);
    let Some(given) = given else { return Ok(server::JOB_BYTES_MAX.min(payload)) };
    let job = u32::try_from(given.bytes()).unwrap_or(u32::MAX);
    if job > payload {
        return Err(Unusable::JobTooLarge { job, payload });
    }
    Ok(job)
}

/// Refuses settings that are wrong only in combination, or only when they come from the file.
fn refuse_contradictions(config: &Config) -> Result<(), Unusable> {
    if config.data.as_os_str().is_empty() {
        return Err(Unusable::NoDirectory);
    }
    let all = config.limits.task_bytes_max;
    let payload = u64::try_from(config.limits.payload_bytes_max).unwrap_or(u64::MAX);
    if all < payload {
        return Err(Unusable::NoRoom { all, payload });
    }
    if config.limits.memory_limit.is_some() && config.durability == server::Durability::Memory {
        return Err(Unusable::NoDisk);
    }
    Ok(())
}

/// Returns where the doors listen.
fn listeners<const N: usize>(
    given: [(DoorName, Option<Listen>); N],
) -> Result<Vec<Listener>, Unusable> {
    let mut listeners = Vec::new();
    for (door, listen) in given {
        listeners.extend(match listen {
            None => Some(Listener::default_of(door)),
            Some(Listen::Off) => None,
            Some(Listen::At(address)) => Some(Listener { door, address: resolve(address)? }),
        });
    }
    Ok(listeners)
}

/// Returns where the audit goes.
fn audit_to(path: PathBuf) -> AuditTo {
    if path.as_os_str() == "stderr" { AuditTo::Stderr } else { AuditTo::File(path) }
}

/// Returns where users come from, if there are any.
fn users_from(
    users: Option<PathBuf>,
    password: Option<PathBuf>,
) -> Result<Option<UsersFrom>, Unusable> {
    match (users, password) {
        (Some(_), Some(_)) => Err(Unusable::UsersTwice),
        (Some(file), None) => Ok(Some(UsersFrom::File(file))),
        (None, Some(file)) => Ok(Some(UsersFrom::Password(file))),
        (None, None) => Ok(None),
    }
}

/// Returns the first address that `address` stands for.
fn resolve(address: String) -> Result<SocketAddr, Unusable> {
    match address.to_socket_addrs() {
        Ok(mut found) => found.next().ok_or(Unusable::NoAddress { address }),
        Err(error) => Err(Unusable::Address { address, error }),
    }
}

/// Returns a number in the server's type. The bounds of every such setting fit 32 bits.
fn count<const MAX: u64, const MIN: u64>(
    setting: Option<Bounded<MAX, MIN>>,
    default: usize,
) -> usize {
    const { assert!(MAX <= 0xFFFF_FFFF) };
    setting.map_or(default, |it| usize::try_from(it.number()).unwrap_or(usize::MAX))
}

/// Returns a size in the server's type, like [`count`].
fn size<const MAX: u64>(setting: Option<Size<MAX>>, default: usize) -> usize {
    const { assert!(MAX <= 0xFFFF_FFFF) };
    setting.map_or(default, |it| usize::try_from(it.bytes()).unwrap_or(usize::MAX))
}

/// Returns a time, or `None` if it is off.
fn time_or_off<const MAX: u64, const MIN: u64>(
    setting: Option<TimeOrOff<MAX, MIN>>,
    default: Option<Duration>,
) -> Option<Duration> {
    setting.map_or(default, |it| it.ms().map(Duration::from_millis))
}

impl Durability {
    /// The same for the server.
    const fn for_server(self) -> server::Durability {
        match self {
            Self::Sync => server::Durability::Sync,
            Self::Interval => server::Durability::Interval,
            Self::Memory => server::Durability::Memory,
        }
    }
}

impl Framing {
    /// The same for the server.
    const fn for_server(self) -> server::Framing {
        match self {
            Self::Counted => server::Framing::Counted,
            Self::Bare => server::Framing::Bare,
        }
    }
}

impl TtlZero {
    /// The same for the server.
    const fn for_server(self) -> server::TtlZero {
        match self {
            Self::Immediate => server::TtlZero::Immediate,
            Self::Forever => server::TtlZero::Forever,
        }
    }
}
