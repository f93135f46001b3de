//! How much room a cluster has, and what makes room: compaction, and at etcd's own quota
//! defragmentation and the end of the alarm. `registry` decides which node does so, and when.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use std::{fmt, io};

use pinpriq_store::ledger::{Status, Unreachable};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::etcd::client::Etcd;
use crate::etcd::messages::{
    AlarmAction, AlarmMember, AlarmRequest, AlarmType, CompactionRequest, DefragmentRequest,
    StatusRequest, StatusResponse, send,
};
use crate::etcd::transaction::reading;
use crate::etcd::trouble::Trouble;

/// What etcd says when another node has compacted as far or farther.
const COMPACTED: &str = "etcdserver: mvcc: required revision has been compacted";

/// The alarm of a member that has no room, as its status tells it.
const ALARM: &str = "alarm:NOSPACE";

/// How long one step may take that moves the data of a member about. It answers nothing else then.
const STEP_MAX: Duration = Duration::from_mins(1);

/// Members are not defragmented for less than this.
const WASTE_BYTES_MIN: u64 = 256 << 10;

/// The line of the quota among the metrics of a member.
const QUOTA_METRIC: &str = "etcd_server_quota_backend_bytes ";

/// The most bytes of the metrics of a member that are read.
const METRICS_BYTES_MAX: u64 = 4 << 20;

/// What is known of etcd's own quota.
#[derive(Debug, Default)]
pub(crate) struct Quota {
    /// What etcd says it is, or 0.
    told: AtomicU64,
    /// Whether etcd was asked for it.
    is_asked: AtomicBool,
    /// How large the database was when etcd had no room, or 0. The quota is about this much.
    met: AtomicU64,
    /// Whether etcd has said that it has no room, and was not given any since.
    is_met: AtomicBool,
}

impl Quota {
    /// Notes that etcd has no room.
    pub(crate) fn meet(&self) {
        self.is_met.store(true, Ordering::Relaxed);
    }

    /// Whether etcd has said that it has no room.
    pub(crate) fn is_met(&self) -> bool {
        self.is_met.load(Ordering::Relaxed)
    }

    /// The quota, as far as it is known.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let known = [&self.told, &self.met].map(|bytes| bytes.load(Ordering::Relaxed));
        known.into_iter().find(|bytes| *bytes > 0)
    }

    fn note_told(&self, bytes: u64) {
        if bytes > 0 {
            self.told.store(bytes, Ordering::Relaxed);
        }
    }

    fn note_status(&self, status: &StatusResponse) {
        self.note_told(size(status.db_size_quota));
        if has_alarm(status) {
            self.meet();
            // It may have been defragmented since.
            self.met.fetch_max(size(status.db_size), Ordering::Relaxed);
        }
    }
}

/// Something about the room of a cluster that its operator should know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoomNotice {
    /// Its own quota is lower than what the logs were to have.
    QuotaIsLower {
        /// The quota, as far as it is known.
        quota: u64,
        /// What the logs were to have.
        bytes_max: u64,
    },
    /// It had reached its own quota, and takes changes again.
    RoomMade {
        /// The size of the database of a member then.
        before: u64,
        /// Its size now.
        after: u64,
    },
}

impl fmt::Display for RoomNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QuotaIsLower { quota, bytes_max } => write!(
                f,
                "etcd's own quota is about {quota} bytes, which is less than the {bytes_max} of \
                 --cluster-bytes-max: puts are refused by the quota. Start etcd with a higher \
                 --quota-backend-bytes, or the nodes with a lower --cluster-bytes-max"
            ),
            Self::RoomMade { before, after } => write!(
                f,
                "etcd had reached its own quota and refused every change: it was compacted and \
                 defragmented from {before} to {after} bytes, and its alarm was ended"
            ),
        }
    }
}

impl Etcd {
    /// Has the cluster forget all former values of all its keys, which the logs do not need, and
    /// returns the revision up to which it did. The room can be used again, but the file of a
    /// member does not shrink. Everybody who uses the cluster must agree. It ends as other calls.
    pub async fn compact(&self) -> Result<i64, Unreachable> {
        let compacted = self.within_deadline(async {
            // Any read tells the revision.
            let read = self.transact(&reading(Vec::new())).await?;
            let Some(header) = read.header else { return Err(Trouble::Malformed("a header")) };
            let request = CompactionRequest { revision: header.revision, physical: false };
            self.compact_to(request, self.options().attempt).await?;
            Ok(header.revision)
        });
        compacted.await.unwrap_or(Err(Trouble::Silent)).map_err(|trouble| trouble.unreachable())
    }

    async fn compact_to(&self, request: CompactionRequest, limit: Duration) -> Result<(), Trouble> {
        match self.ask(limit, &request).await {
            Err(Trouble::Error(status)) if status.message() == COMPACTED => Ok(()),
            sent => sent.map(|_| ()),
        }
    }

    /// How much room the member in use has. Once etcd's own quota is known, it counts if it is less
    /// than what the logs were to have. An etcd that refuses changes has no room.
    pub(crate) async fn status(&self) -> Result<Status, Trouble> {
        if !self.quota().is_asked.load(Ordering::Relaxed) {
            self.ask_quota().await;
        }
        let status = self.each_member(|| self.status_of_one()).await?;
        let bytes_max = self.options().bytes_max;
        let bytes_max = self.quota().bytes().map_or(bytes_max, |quota| quota.min(bytes_max));
        // Members before 3.4 do not know how much is in use.
        let sizes = [status.db_size_in_use, status.db_size];
        let in_use = sizes.into_iter().map(size).find(|size| *size > 0).unwrap_or(0);
        let bytes_used = if has_alarm(&status) { in_use.max(bytes_max) } else { in_use };
        Ok(Status { bytes_used, bytes_max })
    }

    async fn status_of_one(&self) -> Result<StatusResponse, Trouble> {
        let status = self.ask(self.options().attempt, &StatusRequest {}).await?;
        self.quota().note_status(&status);
        Ok(status)
    }

    /// Asks for etcd's own quota. Its status tells that since 3.6. Before, only the metrics of a
    /// member do, which are read where connections are not encrypted. Otherwise the quota is known
    /// once it was met.
    pub(crate) async fn ask_quota(&self) {
        self.quota().is_asked.store(true, Ordering::Relaxed);
        if let Some(authority) = self.plain_member()
            && let Ok(Ok(bytes)) = timeout(self.options().attempt, quota_at(&authority)).await
        {
            self.quota().note_told(bytes);
        }
    }

    /// Makes room in an etcd that has reached its own quota, and has it take changes again. It
    /// forgets all former values, each member gives back what it does not use, one after the other,
    /// and the alarm ends. Does nothing if there is no such alarm.
    ///
    /// Members are not defragmented if that would free next to nothing.
    pub(crate) async fn make_room(&self) -> Result<Option<RoomNotice>, Unreachable> {
        self.try_to_make_room().await.map_err(|trouble| trouble.unreachable())
    }

    async fn try_to_make_room(&self) -> Result<Option<RoomNotice>, Trouble> {
        let get = AlarmRequest { action: AlarmAction::Get.into(), ..AlarmRequest::default() };
        let alarms = self.alarm(get).await?;
        let no_room: Vec<AlarmMember> =
            alarms.into_iter().filter(|it| it.alarm() == AlarmType::Nospace).collect();
        if no_room.is_empty() {
            self.quota().is_met.store(false, Ordering::Relaxed);
            return Ok(None);
        }
        // Transactions may be refused now, even if they only read.
        let status = self.each_member(|| self.status_of_one()).await?;
        let before = size(status.db_size);
        let Some(header) = status.header else { return Err(Trouble::Malformed("a header")) };
        let request = CompactionRequest { revision: header.revision, physical: true };
        self.compact_to(request, STEP_MAX).await?;
        let status = self.each_member(|| self.status_of_one()).await?;
        let waste = size(status.db_size).saturating_sub(size(status.db_size_in_use));
        if waste >= WASTE_BYTES_MIN {
            for member in 0..self.members() {
                let call = |member| send(member, DefragmentRequest {}, STEP_MAX);
                self.ask_at(member, STEP_MAX, call).await?;
            }
        }
        for AlarmMember { member_id, alarm } in no_room {
            let action = AlarmAction::Deactivate.into();
            self.alarm(AlarmRequest { action, member_id, alarm }).await?;
        }
        self.quota().is_met.store(false, Ordering::Relaxed);
        let status = self.each_member(|| self.status_of_one()).await?;
        Ok(Some(RoomNotice::RoomMade { before, after: size(status.db_size) }))
    }

    async fn alarm(&self, request: AlarmRequest) -> Result<Vec<AlarmMember>, Trouble> {
        let call = || self.ask(self.options().attempt, &request);
        Ok(self.each_member(call).await?.alarms)
    }

    /// What is to be said of etcd's own quota, if that is known and too low.
    pub(crate) fn low_quota(&self) -> Option<RoomNotice> {
        let bytes_max = self.options().bytes_max;
        let quota = self.quota().bytes().filter(|quota| *quota < bytes_max)?;
        Some(RoomNotice::QuotaIsLower { quota, bytes_max })
    }
}

/// Reads the quota from the metrics of a member. 0 if they do not tell it.
async fn quota_at(authority: &str) -> io::Result<u64> {
    let mut member = TcpStream::connect(authority).await?;
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {authority}\r\n\r\n");
    member.write_all(request.as_bytes()).await?;
    let mut metrics = Vec::new();
    member.take(METRICS_BYTES_MAX).read_to_end(&mut metrics).await?;
    Ok(quota_in(&String::from_utf8_lossy(&metrics)))
}

fn quota_in(metrics: &str) -> u64 {
    let number = metrics.lines().find_map(|line| line.strip_prefix(QUOTA_METRIC));
    // etcd writes it as 2.147483648e+09, which a whole number shows in full.
    let bytes = number.and_then(|number| number.trim().parse::<f64>().ok());
    bytes.and_then(|bytes| format!("{bytes:.0}").parse().ok()).unwrap_or(0)
}

fn size(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or(0)
}

fn has_alarm(status: &StatusResponse) -> bool {
    status.errors.iter().any(|error| error.contains(ALARM))
}

#[cfg(test)]
mod tests {
    use super::quota_in;

    #[test]
    fn the_quota_is_found_among_the_metrics() {
        let metrics = "HTTP/1.0 200 OK\r\n\r\n# TYPE etcd_server_quota_backend_bytes gauge\n\
                       etcd_server_quota_backend_bytes 2.147483648e+09\nx 1\n";
        assert_eq!(quota_in(metrics), 2 << 30);
        assert_eq!(quota_in("etcd_server_quota_backend_bytes x\n"), 0);
        assert_eq!(quota_in(""), 0);
    }
}
