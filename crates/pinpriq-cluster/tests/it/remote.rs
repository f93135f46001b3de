//! A ledger on a runtime, with an engine that only answers for its status.

pub(crate) mod engines;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pinpriq_cluster::remote::{Remote, RemoteLedger};
use pinpriq_store::ledger::{Answer, Call, Ledger, Seq, Status, Unreachable};
use tokio::sync::Semaphore;

use engines::runtime;

/// Answers each call once it may.
struct Held(Arc<Semaphore>);

impl Remote for Held {
    async fn answer(&self, call: Call) -> Answer {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
        match call {
            Call::Status => Answer::Status(Ok(Status { bytes_used: 1, bytes_max: 2 })),
            _ => Answer::Read(Err(Unreachable { why: "not here".to_owned() })),
        }
    }

    fn target_bytes(&self) -> usize {
        7
    }
}

#[test]
fn answers_come_when_they_are_there_and_wake_the_loop() {
    let (gate, woken) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&woken);
    let wake = Arc::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let held = Held(Arc::clone(&gate));
    let mut ledger = RemoteLedger::new(held, runtime(), wake);
    assert_eq!((ledger.target_bytes(), ledger.poll()), (7, None));
    // Nothing is under way, so there is nothing to wait for.
    ledger.wait();
    ledger.start(Call::Status);
    ledger.start(Call::Read { from: Seq(1), bytes: 1 });
    assert_eq!(ledger.poll(), None, "the engine has not answered");
    gate.add_permits(2);
    let mut answers = Vec::new();
    while answers.len() < 2 {
        ledger.wait();
        ledger.wait();
        answers.extend(ledger.poll());
    }
    assert!(answers.iter().any(|answer| matches!(answer, Answer::Status(Ok(_)))));
    assert!(answers.iter().any(|answer| matches!(answer, Answer::Read(Err(_)))));
    assert_eq!(ledger.poll(), None);
    // What is dropped is still carried out.
    ledger.start(Call::Status);
    drop(ledger);
    gate.add_permits(1);
    while woken.load(Ordering::SeqCst) < 3 {
        thread::yield_now();
    }
}
