//! A worker that outlives restarts of the server: it connects again, and waits longer each time.

use std::thread;
use std::time::Duration;

use pinpriq_examples::{Task, connect};
use redis::{Connection, RedisResult, cmd};

const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Works until a task says stop or the connection breaks. Returns whether a task said stop.
fn work(pinpriq: &mut Connection, queue: &str, pause: &mut Duration) -> RedisResult<bool> {
    loop {
        let mut take = cmd("TAKE");
        take.arg(queue).arg("WAIT").arg(10_000).arg("TTR").arg(30_000);
        let taken: Vec<Task> = take.query(pinpriq)?;
        *pause = PAUSE;
        for (_, _, receipt, payload) in taken {
            println!("done: {payload}");
            // Without the acknowledgement the lease ends, and the task comes again.
            cmd("ACK").arg(queue).arg(receipt).exec(pinpriq)?;
            if payload == "stop" {
                return Ok(true);
            }
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
