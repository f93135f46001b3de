//! The client of pinpriq, the networked priority queue: async on tokio, reconnecting, pipelining,
//! with workers.
//!
//! # A worker in five lines
//!
//! ```no_run
//! use pinpriq_client::{Client, Job, Worker, stop_signal};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), pinpriq_client::Error> {
//!     let client = Client::connect("pinpriq://127.0.0.1:7251").await?;
//!     let worker = Worker::new(&client).job("emails", |job: Job| async move {
//!         println!("to {}", job.text()?);
//!         Ok(())
//!     });
//!     worker.run(stop_signal()).await
//! }
//! ```
//!
//! A job whose function returns `Ok` is acknowledged, and bytes or text that it returns are the
//! result of the task. One whose function returns an error, or panics, has failed, and the settings
//! of the queue say what follows: see [`Failure`]. Leases are renewed while functions run.
//!
//! # Put and take
//!
//! ```no_run
//! # async fn example() -> Result<(), pinpriq_client::Error> {
//! use std::time::Duration;
//! use pinpriq_client::Client;
//!
//! let client = Client::connect("pinpriq://127.0.0.1:7251").await?;
//! let thumbnails = client.queue("thumbnails");
//! thumbnails.put("cat.png").priority(5).await?;
//! thumbnails.put("owl.png").delay(Duration::from_secs(30)).await?;
//!
//! let ttr = Duration::from_secs(60);
//! if let Some(job) = thumbnails.take(ttr).wait(Duration::from_secs(10)).await? {
//!     println!("{} for the {}th time", job.text().unwrap_or("?"), job.attempts);
//!     job.ack().await?;
//! }
//! # Ok(()) }
//! ```
//!
//! # Batches
//!
//! When all of these are done, do that:
//!
//! ```no_run
//! # async fn example(client: pinpriq_client::Client) -> Result<(), pinpriq_client::Error> {
//! use pinpriq_client::{Error, OnlyIf};
//!
//! let batch = client.batch("{films}-4711");
//! let filled = batch.fill(|batch| async move {
//!     for part in ["first", "second"] {
//!         batch.put("films", part).await?;
//!     }
//!     batch.then("{films}-join", "4711").only_if(OnlyIf::Acked).await?;
//!     Ok::<_, Error>(())
//! });
//! filled.await?;
//! # Ok(()) }
//! ```
//!
//! A task of a batch may add others to it. [`Put`] has the options of batches too, and
//! [`Batch::wait`] waits for the end. Dead letters that are moved back are in no batch.
//!
//! # Connections
//!
//! A [`Client`] is a cheap handle: clone it. All clones share one connection, over which requests
//! are sent without waiting for the replies to earlier ones. So puts that run at the same time are
//! written in one piece, and there is no pool to be sized. A request that may wait, as a take does,
//! has a connection of its own for that time, which is kept for the next one.
//!
//! A connection that breaks is opened again by the next request. A request whose reply was lost is
//! sent again for [`Options::retry_for`] where that is safe. It is safe for a [`put`](Queue::put),
//! because the client gives each a unique key of its own: the server makes one task of it, however
//! often it arrives. [`Refused::repeated`] tells if an earlier sending may have been carried out.
//!
//! # Tracing
//!
//! With the feature `opentelemetry`, and in a program that has set a provider of `OpenTelemetry`,
//! puts and publications have spans, and the headers of tasks carry their context. A worker runs
//! each attempt in a span whose parent is that of the put, over all failures and as a dead letter
//! too. Headers that the caller gives stand, and no put fails for tracing. To go on from a job that
//! was taken by hand, extract `traceparent` from [`Task::headers`].
//!
//! # Everything else
//!
//! [`Client::call`] sends any command of the server, and [`Client::pipeline`] and
//! [`Client::transaction`] several of them. Their replies are [`Value`]s.
//!
//! # Without async
//!
//! The module [`blocking`] has plain connections of all protocols of pinpriq, on which the tools of
//! pinpriq are built.

mod address;
mod attempts;
mod batch;
pub mod blocking;
mod client;
mod clock;
mod error;
mod job;
mod name;
mod opening;
mod options;
mod pipe;
mod queue;
mod request;
mod spans;
mod task;
mod told;
mod topic;
mod transport;
mod waiting;
mod worker;

pub use batch::{Batch, BatchShown, BatchState};
pub use client::Client;
pub use error::{Error, Refused};
pub use job::Job;
pub use name::Name;
pub use options::{BadAddress, Options};
pub use queue::{
    Bulk, Change, Changed, End, Ended, OnlyIf, Order, Put, PutDone, Queue, Release, Take,
};
pub use task::{Attempt, Origin, Own, State, Task};
pub use topic::{Publish, Topic};
pub use worker::{Event, Failure, Happening, Outcome, Returned, Worker, stop_signal};

pub use pinpriq_proto::wire::resp::{Value, Words};
pub use tokio_util::sync::CancellationToken;

pub use pinpriq_tls::{Identity, Pem, Roots, Tls, TlsError, Trust};
