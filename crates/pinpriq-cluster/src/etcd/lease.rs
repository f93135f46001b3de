//! Leases, on which the records of a session hang: granting, keeping and revoking them. What hangs
//! on them is in `registry`.

use std::time::Duration;

use crate::etcd::client::Etcd;
use crate::etcd::messages::{
    LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest, send_streamed,
};
use crate::etcd::trouble::Trouble;

impl Etcd {
    /// Returns a new lease of this many seconds. Leases whose answers are lost end by themselves.
    pub(crate) async fn grant(&self, limit: Duration, seconds: i64) -> Result<i64, Trouble> {
        let request = LeaseGrantRequest { ttl: seconds };
        match self.each_member(|| self.ask(limit, &request)).await?.id {
            0 => Err(Trouble::Malformed("a lease")),
            lease => Ok(lease),
        }
    }

    /// Renews a lease. Returns whether it still lived.
    pub(crate) async fn keep_alive(&self, limit: Duration, lease: i64) -> Result<bool, Trouble> {
        let request = LeaseKeepAliveRequest { id: lease };
        let call =
            || self.ask_within(limit, |member| send_streamed(member, request.clone(), limit));
        match self.each_member(call).await {
            Ok(answer) => Ok(answer.ttl > 0),
            Err(trouble) if trouble.is_lease_gone() => Ok(false),
            Err(trouble) => Err(trouble),
        }
    }

    /// Ends a lease, with all that hangs on it.
    pub(crate) async fn revoke(&self, limit: Duration, lease: i64) -> Result<(), Trouble> {
        let request = LeaseRevokeRequest { id: lease };
        match self.each_member(|| self.ask(limit, &request)).await {
            Err(trouble) if !trouble.is_lease_gone() => Err(trouble),
            _ => Ok(()),
        }
    }
}
