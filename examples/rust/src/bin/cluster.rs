//! Puts and takes with a cluster client, which finds the node of each queue by itself.
//!
//! Goes on until its input ends, whatever happens to single nodes. Then every task that it has put
//! must have been done.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pinpriq_examples::{Task, payloads};
use redis::cluster::{ClusterClient, ClusterConnection};
use redis::{Cmd, FromRedisValue, RedisResult, Value, cmd};

const PATIENCE: Duration = Duration::from_secs(60);

/// A client with its connections. It asks another node for the slots only if one sends it on, so
/// when a node is gone it has to begin anew.
struct Pinpriq {
    client: ClusterClient,
    connection: ClusterConnection,
}

impl Pinpriq {
    /// Asks until a node answers. Each of these requests may happen twice without harm.
    fn ask<T: FromRedisValue>(&mut self, request: &Cmd) -> RedisResult<T> {
        let end = Instant::now() + PATIENCE;
        loop {
            let error = match request.query(&mut self.connection) {
                Err(error) => error,
                answer => return answer,
            };
            // After these nothing has happened, or the outcome is unknown.
            let again = ["TRYAGAIN", "CLUSTERDOWN", "UNKNOWN"];
            let is_refused = error.code().is_some_and(|code| !again.contains(&code));
            if is_refused || Instant::now() > end {
                return Err(error);
            }
            thread::sleep(Duration::from_millis(100));
            if error.code().is_none()
                && let Ok(connection) = self.client.get_connection()
            {
                self.connection = connection;
            }
        }
    }
}

/// Takes what is ready in a queue, and acknowledges it. Returns the payloads.
fn take_all(pinpriq: &mut Pinpriq, queue: &str) -> RedisResult<Vec<String>> {
    let mut take = cmd("TAKE");
    take.arg(queue).arg("COUNT").arg(100).arg("TTR").arg(3_000);
    let taken: Vec<Task> = pinpriq.ask(&take)?;
    for (_, _, receipt, _) in &taken {
        match pinpriq.ask::<()>(cmd("ACK").arg(queue).arg(receipt)) {
            // It was acknowledged the first time, or its lease has ended and it comes again.
            Err(error) if error.code() == Some("STALE") => {}
            done => done?,
        }
    }
    Ok(payloads(taken))
}

fn main() -> RedisResult<()> {
    // Where any nodes listen for cluster clients: --resp-cluster.
    let known = std::env::var("PINPRIQ_CLUSTER").unwrap_or_else(|_| "127.0.0.1:7254".to_owned());
    let nodes = known.split(',').map(|address| format!("redis://{address}"));
    let client = ClusterClient::new(nodes)?;
    let mut pinpriq = Pinpriq { connection: client.get_connection()?, client };
    let queues: Vec<String> = (0..50).map(|number| format!("cluster-rust-{number}")).collect();

    // Another run puts other tasks.
    let run = std::process::id();
    let goes_on = Arc::new(AtomicBool::new(true));
    let flag = goes_on.clone();
    thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        flag.store(false, Ordering::Relaxed);
    });

    let (mut put, mut done) = (BTreeSet::new(), BTreeSet::new());
    for round in 1.. {
        if !goes_on.load(Ordering::Relaxed) {
            break;
        }
        for queue in &queues {
            let payload = format!("{queue} {run} {round}");
            // The key lets a repeated PUT put the task once.
            let mut request = cmd("PUT");
            request.arg(queue).arg(&payload).arg("UNIQUE").arg(&payload);
            pinpriq.ask::<Value>(request.arg("WINDOW").arg(600_000))?;
            put.insert(payload);
            done.extend(take_all(&mut pinpriq, queue)?);
        }
        println!("round {round}");
    }

    let end = Instant::now() + PATIENCE;
    while !put.is_subset(&done) {
        assert!(Instant::now() < end, "some tasks were not taken");
        for queue in &queues {
            done.extend(take_all(&mut pinpriq, queue)?);
        }
    }

    // Several queues in one request: the part in braces decides where they are.
    let (one, other) = ("{cluster-rust}a", "{cluster-rust}b");
    pinpriq.ask::<Value>(cmd("PUT").arg(one).arg("x"))?;
    let taken: Vec<Task> = pinpriq.ask(cmd("TAKE").arg("QUEUES").arg(2).arg(one).arg(other))?;
    assert_eq!(payloads(taken), ["x"]);
    let mut all = cmd("TAKE");
    let refused = all.arg("QUEUES").arg(queues.len()).arg(&queues).exec(&mut pinpriq.connection);
    println!("refused: {}", refused.expect_err("queues of several slots in one request"));
    println!("cluster: ok {} tasks", put.len());
    Ok(())
}
