//! A task with a delay, a task with a time to live, and a task whose lease ends.

use std::time::{Duration, Instant};

use pinpriq_examples::{Task, connect, payloads};
use redis::{RedisResult, cmd};

fn main() -> RedisResult<()> {
    let mut pinpriq = connect()?;
    let mut take = cmd("TAKE");
    take.arg("reminders").arg("WAIT").arg(30_000);

    // Nobody gets the task before the delay is over; a blocking take is woken then.
    let began = Instant::now();
    cmd("PUT").arg("reminders").arg("tea").arg("DELAY").arg(200).exec(&mut pinpriq)?;
    let none: Vec<Task> = cmd("POP").arg("reminders").query(&mut pinpriq)?;
    assert!(none.is_empty());
    let taken: Vec<Task> = take.query(&mut pinpriq)?;
    assert!(began.elapsed() >= Duration::from_millis(200));
    cmd("ACK").arg("reminders").arg(&taken[0].2).exec(&mut pinpriq)?;
    assert_eq!(payloads(taken), ["tea"]);

    // A task that nobody took in time is dropped, and clients that wait for it are told.
    let mut put = cmd("PUT");
    put.arg("reminders").arg("too late").arg("TTL").arg(50).arg("WAIT").arg(30_000);
    let (_, outcome): (String, String) = put.query(&mut pinpriq)?;
    assert_eq!(outcome, "expired");

    // A worker that dies gives its task back when the lease ends: here after 100 ms.
    cmd("PUT").arg("reminders").arg("again").arg("TTR").arg(100).exec(&mut pinpriq)?;
    let lost: Vec<Task> = take.query(&mut pinpriq)?;
    let found: Vec<Task> = take.query(&mut pinpriq)?;
    assert_ne!(lost[0].2, found[0].2);
    cmd("ACK").arg("reminders").arg(&found[0].2).exec(&mut pinpriq)?;
    println!("delayed: ok");
    Ok(())
}
