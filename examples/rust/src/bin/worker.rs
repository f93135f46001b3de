//! A worker that renews its leases, retries failed tasks later, and buries those that always fail.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use pinpriq_examples::{Task, connect};
use redis::{Connection, RedisResult, Value, cmd, from_redis_value};

/// How long a lease lasts unless it is renewed.
const TTR_MS: u64 = 300;
const ATTEMPTS_MAX: u32 = 3;

/// The work itself.
fn handle(payload: &str, attempts: u32, renewed: &Receiver<()>) -> Result<(), String> {
    if payload == "slow" {
        // Longer than the lease would last by itself: until it has been renewed five times.
        for _ in 0..5 {
            renewed.recv().map_err(|_| "the lease is lost".to_owned())?;
        }
    }
    if payload == "broken" || (payload == "flaky" && attempts < 2) {
        return Err(format!("cannot do {payload}"));
    }
    Ok(())
}

/// Renews a lease until the work is done. A receipt is good on any connection.
fn keep(queue: &str, receipt: &str, done: &Receiver<()>, renewed: &SyncSender<()>) {
    let Ok(mut pinpriq) = connect() else { return };
    while done.recv_timeout(Duration::from_millis(TTR_MS / 3)) == Err(RecvTimeoutError::Timeout) {
        let touched: RedisResult<i64> = cmd("TOUCH").arg(queue).arg(receipt).query(&mut pinpriq);
        if touched.is_err() {
            return;
        }
        // A listener is optional.
        let _ = renewed.try_send(());
    }
}

fn work_on(pinpriq: &mut Connection, task: &HashMap<String, Value>) -> RedisResult<&'static str> {
    let text = |name: &str| from_redis_value::<String>(task[name].clone());
    let (queue, receipt, payload) = (text("queue")?, text("receipt")?, text("payload")?);
    let attempts = from_redis_value::<u32>(task["attempts"].clone())?;
    let (done, wait_for_done) = sync_channel(0);
    let (renew, renewed) = sync_channel(8);
    thread::scope(|scope| {
        scope.spawn(|| keep(&queue, &receipt, &{ wait_for_done }, &{ renew }));
        let handled = handle(&payload, attempts, &renewed);
        drop(done);
        match handled {
            Ok(()) => {
                cmd("ACK").arg(&queue).arg(&receipt).exec(pinpriq)?;
                Ok("acked")
            }
            // It stays until somebody looks at it: DIG or PLOW brings it back.
            Err(reason) if attempts >= ATTEMPTS_MAX => {
                let mut bury = cmd("BURY");
                bury.arg(&queue).arg(&receipt).arg("REASON").arg(reason).exec(pinpriq)?;
                Ok("buried")
            }
            // Try again later, with a longer delay each time.
            Err(_) => {
                let mut release = cmd("RELEASE");
                release.arg(&queue).arg(&receipt).arg("DELAY").arg(20 * attempts).exec(pinpriq)?;
                Ok("released")
            }
        }
    })
}

fn main() -> RedisResult<()> {
    let mut pinpriq = connect()?;
    for payload in ["fine", "flaky", "slow", "broken"] {
        cmd("PUT").arg("rust-jobs").arg(payload).exec(&mut pinpriq)?;
    }
    let mut ended: Vec<String> = Vec::new();
    while ended.iter().filter(|end| !end.ends_with("released")).count() < 4 {
        let mut take = cmd("TAKE");
        take.arg("rust-jobs").arg("WAIT").arg(30_000).arg("TTR").arg(TTR_MS).arg("WITHMETA");
        let taken: Vec<HashMap<String, Value>> = take.query(&mut pinpriq)?;
        for task in &taken {
            let end = work_on(&mut pinpriq, task)?;
            let payload: String = from_redis_value(task["payload"].clone())?;
            ended.push(format!("{payload} {end}"));
            println!("{}", ended[ended.len() - 1]);
        }
    }
    ended.sort();
    let expected = ["broken buried", "broken released", "broken released", "fine acked"];
    assert_eq!(ended[..4], expected);
    assert_eq!(ended[4..], ["flaky acked", "flaky released", "slow acked"]);

    // A receipt of a lease that has ended is refused.
    let dug: u64 = cmd("PLOW").arg("rust-jobs").query(&mut pinpriq)?;
    assert_eq!(dug, 1);
    let taken: Vec<Task> = cmd("TAKE").arg("rust-jobs").query(&mut pinpriq)?;
    let (_, id, old, _) = &taken[0];
    cmd("SNATCH").arg("rust-jobs").arg(id).exec(&mut pinpriq)?;
    let refused = cmd("ACK").arg("rust-jobs").arg(old).exec(&mut pinpriq);
    let refused = refused.expect_err("an old receipt is not accepted");
    assert_eq!(refused.code(), Some("STALE"));

    cmd("QUEUE").arg("DROP").arg("rust-jobs").exec(&mut pinpriq)?;
    println!("worker: ok");
    Ok(())
}
