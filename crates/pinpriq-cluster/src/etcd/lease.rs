//! Leases, on which the records of a session hang: granting, keeping and revoking them. What hangs
//! on them is in `registry`.

use std::time::Duration;

use tonic::codegen::tokio_stream;
use tonic::{Response, Status};

use crate::etcd::client::Etcd;
use crate::etcd::generated::lease_client::LeaseClient;
use crate::etcd::generated::{LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest};
use crate::etcd::trouble::{Trouble, timed};

impl Etcd {
    /// Returns a new lease of this many seconds. Leases whose answers are lost end by themselves.
    pub(crate) async fn grant(&self, limit: Duration, seconds: i64) -> Result<i64, Trouble> {
        let request = LeaseGrantRequest { ttl: seconds };
        let call = || {
            self.ask_within(limit, |member, limit| async move {
                LeaseClient::new(member).lease_grant(timed(request, limit)).await
            })
        };
        match self.each_member(call).await?.id {
            0 => Err(Trouble::Malformed("a lease")),
            lease => Ok(lease),
        }
    }

    /// Renews a lease. Returns whether it still lived.
    pub(crate) async fn keep_alive(&self, limit: Duration, lease: i64) -> Result<bool, Trouble> {
        let request = LeaseKeepAliveRequest { id: lease };
        let call = || {
            self.ask_within(limit, |member, limit| async move {
                let requests = timed(tokio_stream::once(request), limit);
                let answers = LeaseClient::new(member).lease_keep_alive(requests).await?;
                let answer = answers.into_inner().message().await?;
                answer.map(Response::new).ok_or_else(|| Status::unavailable("it said nothing"))
            })
        };
        match self.each_member(call).await {
            Ok(answer) => Ok(answer.ttl > 0),
            Err(trouble) if trouble.is_lease_gone() => Ok(false),
            Err(trouble) => Err(trouble),
        }
    }

    /// Ends a lease, with all that hangs on it.
    pub(crate) async fn revoke(&self, limit: Duration, lease: i64) -> Result<(), Trouble> {
        let request = LeaseRevokeRequest { id: lease };
        let call = || {
            self.ask_within(limit, |member, limit| async move {
                LeaseClient::new(member).lease_revoke(timed(request, limit)).await
            })
        };
        match self.each_member(call).await {
            Err(trouble) if !trouble.is_lease_gone() => Err(trouble),
            _ => Ok(()),
        }
    }
}
