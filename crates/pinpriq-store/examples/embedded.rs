//! The queue inside a program of your own: durable, synchronous, without a server, a runtime or a
//! thread. Run it twice: the second run finds what the first one left behind.
//!
//! ```sh
//! cargo run --package pinpriq-store --example embedded -- ./my-queue
//! ```
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a program, not a library")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use pinpriq_proto::command::{Command, Put, Selection, Take, TakeMode, Wait};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::task::{ClientId, RequestId};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::{Durable, Journal, JournalOptions, RealDisk, Runner};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args_os().nth(1).map_or_else(|| "./my-queue".into(), PathBuf::from);
    let journal = Journal::open(
        Arc::new(RealDisk::create(&directory)?),
        // Draw the seed at random where strangers choose the payloads.
        JournalOptions { salt_seed: 1, ..JournalOptions::default() },
        Runner::Inline,
    )?;
    // A long-running program reads its clock before each turn and never lets it go back.
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let now = Timestamp::from_ms(u64::try_from(since_1970.as_millis())?);
    let (mut queue, loaded) = Durable::open(Box::new(journal), Limits::default(), now, 1)?;
    println!("opened with {} records", loaded.records);

    let (now, me) = (queue.now(), ClientId(1));
    queue.apply(now, me, RequestId(1), &Command::Put(Put::new(b"jobs", b"hello")));
    let take = Take {
        queues: &[b"jobs"],
        member: None,
        count: 1,
        wait: Wait::No,
        selection: Selection::DEFAULT,
        mode: TakeMode::Pop,
    };
    queue.apply(now, me, RequestId(2), &Command::Take(take));
    queue.apply(now, me, RequestId(3), &Command::Put(Put::new(b"jobs", b"for the next run")));

    // One turn: everything above is one batch, written and synced at once.
    queue.commit()?;
    queue.drive(now)?;
    while let Some((position, output)) = queue.poll_output() {
        assert!(position <= queue.reached(), "what was reported is durable");
        if let Output::Reply { reply: Reply::Tasks { tasks, .. }, .. } = output {
            for task in tasks {
                println!("popped task {}: {}", task.id, task.payload.escape_ascii());
            }
        }
    }
    queue.close(now)?;
    Ok(())
}
