//! The messages of etcd's API that are used, and how one is sent. Names and numbers are those of
//! etcd 3.4 and later (`etcdserverpb` and `mvccpb`). What is not here is skipped when an answer has
//! it.

use std::time::Duration;

use prost::bytes::Bytes;
use prost::{Enumeration, Message, Oneof};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::tokio_stream;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::etcd::sign_in::Member;

/// The largest answer that is accepted, in bytes.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// A message that etcd answers.
pub(crate) trait Call: Message + Clone + 'static {
    /// Its service and method.
    const PATH: &'static str;
    /// What comes back.
    type Answer: Message + Default + 'static;
}

/// Sends a message and returns the answer. The member gives up after this time, too.
pub(crate) async fn send<C: Call>(
    member: Member,
    message: C,
    limit: Duration,
) -> Result<Response<C::Answer>, Status> {
    let mut client = ready(member).await?;
    let codec = ProstCodec::<C, C::Answer>::default();
    client.unary(timed(message, limit), PathAndQuery::from_static(C::PATH), codec).await
}

/// Sends a message where etcd expects a stream of them, and returns its first answer.
pub(crate) async fn send_streamed<C: Call>(
    member: Member,
    message: C,
    limit: Duration,
) -> Result<Response<C::Answer>, Status> {
    let mut client = ready(member).await?;
    let (messages, codec) = (tokio_stream::once(message), ProstCodec::<C, C::Answer>::default());
    let path = PathAndQuery::from_static(C::PATH);
    let answers = client.streaming(timed(messages, limit), path, codec).await?;
    let answer = answers.into_inner().message().await?;
    answer.map(Response::new).ok_or_else(|| Status::unavailable("it said nothing"))
}

async fn ready(member: Member) -> Result<Grpc<Member>, Status> {
    let mut client = Grpc::new(member).max_decoding_message_size(ANSWER_BYTES_MAX);
    let ready = client.ready().await;
    ready.map_err(|error| Status::unknown(format!("Service was not ready: {error}")))?;
    Ok(client)
}

fn timed<T>(message: T, limit: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(limit);
    request
}

macro_rules! calls {
    ($($request:ident $path:literal $answer:ident;)*) => {$(
        impl Call for $request {
            const PATH: &'static str = concat!("/etcdserverpb.", $path);
            type Answer = $answer;
        }
    )*};
}

calls! {
    TxnRequest "KV/Txn" TxnResponse;
    CompactionRequest "KV/Compact" Nothing;
    LeaseGrantRequest "Lease/LeaseGrant" LeaseGrantResponse;
    LeaseRevokeRequest "Lease/LeaseRevoke" Nothing;
    LeaseKeepAliveRequest "Lease/LeaseKeepAlive" LeaseKeepAliveResponse;
    AlarmRequest "Maintenance/Alarm" AlarmResponse;
    StatusRequest "Maintenance/Status" StatusResponse;
    DefragmentRequest "Maintenance/Defragment" Nothing;
    AuthenticateRequest "Auth/Authenticate" AuthenticateResponse;
}

/// An answer of which nothing is used.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Nothing {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseHeader {
    #[prost(int64, tag = "3")]
    pub(crate) revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(int64, tag = "3")]
    pub(crate) mod_revision: i64,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) value: Bytes,
    #[prost(int64, tag = "6")]
    pub(crate) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) range_end: Bytes,
    #[prost(int64, tag = "3")]
    pub(crate) limit: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeResponse {
    #[prost(message, repeated, tag = "2")]
    pub(crate) kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
    #[prost(int64, tag = "3")]
    pub(crate) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteRangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) range_end: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RequestOp {
    #[prost(oneof = "Operation", tags = "1, 2, 3")]
    pub(crate) request: Option<Operation>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Operation {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeRequest),
}

/// The answers to puts and deletions are left out: nothing in them is used.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseOp {
    #[prost(message, optional, tag = "1")]
    pub(crate) range: Option<RangeResponse>,
}

/// Compares whether two values are equal.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Compare {
    #[prost(enumeration = "CompareTarget", tag = "2")]
    pub(crate) target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) key: Bytes,
    #[prost(oneof = "Compared", tags = "6, 7, 8")]
    pub(crate) target_union: Option<Compared>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Enumeration)]
pub(crate) enum CompareTarget {
    Version = 0,
    Mod = 2,
    Value = 3,
    Lease = 4,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Compared {
    #[prost(int64, tag = "6")]
    ModRevision(i64),
    #[prost(bytes, tag = "7")]
    Value(Bytes),
    #[prost(int64, tag = "8")]
    Lease(i64),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub(crate) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) responses: Vec<ResponseOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompactionRequest {
    #[prost(int64, tag = "1")]
    pub(crate) revision: i64,
    #[prost(bool, tag = "2")]
    pub(crate) physical: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LeaseGrantRequest {
    /// In seconds.
    #[prost(int64, tag = "1")]
    pub(crate) ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LeaseGrantResponse {
    #[prost(int64, tag = "2")]
    pub(crate) id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LeaseRevokeRequest {
    #[prost(int64, tag = "1")]
    pub(crate) id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LeaseKeepAliveRequest {
    #[prost(int64, tag = "1")]
    pub(crate) id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LeaseKeepAliveResponse {
    /// In seconds.
    #[prost(int64, tag = "3")]
    pub(crate) ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AlarmRequest {
    #[prost(enumeration = "AlarmAction", tag = "1")]
    pub(crate) action: i32,
    #[prost(uint64, tag = "2")]
    pub(crate) member_id: u64,
    #[prost(enumeration = "AlarmType", tag = "3")]
    pub(crate) alarm: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Enumeration)]
pub(crate) enum AlarmAction {
    Get = 0,
    Deactivate = 2,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct AlarmMember {
    #[prost(uint64, tag = "1")]
    pub(crate) member_id: u64,
    #[prost(enumeration = "AlarmType", tag = "2")]
    pub(crate) alarm: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Enumeration)]
pub(crate) enum AlarmType {
    None = 0,
    Nospace = 1,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AlarmResponse {
    #[prost(message, repeated, tag = "2")]
    pub(crate) alarms: Vec<AlarmMember>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(int64, tag = "3")]
    pub(crate) db_size: i64,
    #[prost(string, repeated, tag = "8")]
    pub(crate) errors: Vec<String>,
    #[prost(int64, tag = "9")]
    pub(crate) db_size_in_use: i64,
    /// Since 3.6.
    #[prost(int64, tag = "12")]
    pub(crate) db_size_quota: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DefragmentRequest {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) password: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    pub(crate) token: String,
}
