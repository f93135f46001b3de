//! A worker that outlives restarts of the server: it connects again, and waits longer each time.

use std::thread;
use std::time::Duration;

use pinpriq_examples::{Task, connect};
use redis::{Connection, RedisResult, cmd};

const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Works until a task says stop or the connection breaks. Returns whether a task said stop.
fn work(pinpriq: &mut Connection, queue: &str, pause: &mut Duration) -> RedisResult<bool> {
    // What the next take acknowledges.
    let mut done: Option<String> = None;
    loop {
        let mut take = cmd("TAKE");
        take.arg(queue).arg("WAIT").arg(10_000).arg("TTR").arg(30_000);
        if let Some(receipt) = &done {
            take.arg("DONE").arg(queue).arg(receipt);
        }
        let taken: Vec<Task> = match (take.query(pinpriq), done.take()) {
            (Err(_), Some(receipt)) => {
                // If it was refused, nothing was taken or acknowledged. Without the
                // acknowledgement the lease ends, and the task comes again.
                cmd("ACK").arg(queue).arg(receipt).exec(pinpriq)?;
                continue;
            }
            (taken, _) => taken?,
        };
        *pause = PAUSE;
        for (_, _, receipt, payload) in taken {
            println!("done: {payload}");
            if payload == "stop" {
                cmd("ACK").arg(queue).arg(receipt).exec(pinpriq)?;
                return Ok(true);
            }
            done = receipt;
        }
    }
}

fn main() {
    let queue = std::env::args().nth(1).unwrap_or_else(|| "steady".to_owned());
    let mut pause = PAUSE;
    loop {
        let worked = connect().and_then(|mut pinpriq| work(&mut pinpriq, &queue, &mut pause));
        match worked {
            Ok(true) => break,
            Ok(false) => {}
            Err(error) => println!("next try in {pause:?}: {error}"),
        }
        thread::sleep(pause);
        pause = PAUSE_MAX.min(2 * pause);
    }
    println!("steady: ok");
}
