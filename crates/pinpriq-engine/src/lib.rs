//! The queue as a pure state machine.
//!
//! [`Engine`] holds the queues of one shard: the tasks with their priorities, delays and times to
//! live, the leases under which they are taken, and the consumers that wait for them. It does no
//! I/O. The caller passes in the time, makes each reported
//! [`Change`](pinpriq_proto::change::Change) durable, and only then sends the
//! [`Output`](pinpriq_proto::reply::Output)s.
//!
//! ```
//! use pinpriq_proto::command::{Command, Put, Selection, Take, TakeMode, Wait};
//! use pinpriq_proto::reply::{Output, Reply};
//! use pinpriq_proto::task::{ClientId, RequestId};
//! use pinpriq_engine::Engine;
//! use pinpriq_proto::limits::Limits;
//! use pinpriq_proto::time::Timestamp;
//!
//! let mut engine = Engine::new(Limits::default(), 1);
//! engine.start(Timestamp::from_ms(1), 1, Default::default());
//! let (now, client) = (Timestamp::from_ms(2), ClientId(1));
//! engine.apply(now, client, RequestId(1), &Command::Put(Put::new(b"jobs", b"hello")));
//! engine.apply(now, client, RequestId(2), &Command::Take(Take {
//!     queues: &[b"jobs"],
//!     member: None,
//!     count: 1,
//!     wait: Wait::No,
//!     selection: Selection::DEFAULT,
//!     mode: TakeMode::Pop,
//! }));
//! engine.poll_output();
//! let Some(Output::Reply { reply: Reply::Tasks { tasks, .. }, .. }) = engine.poll_output() else {
//!     panic!("no reply")
//! };
//! assert_eq!(&*tasks[0].payload, b"hello");
//! ```

#![deny(clippy::iter_over_hash_type)]

mod check;
mod engine;
mod fanout;
mod issued;
mod memory;
mod operations;
mod report;
mod restore;
mod step;
mod transition;

pub use engine::{Applied, Engine};
pub use operations::serve::Subscribed;
pub use transition::listing as transition_listing;
