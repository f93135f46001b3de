//! Workers of the asynchronous client.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pinpriq_client::{
    Client, Failure, Happening, Job, Outcome, Own, Queue, State, Value, Words, Worker,
};
use tokio::sync::{Notify, mpsc};

use super::relay::Relay;
use super::{LONG, with_server};

/// What a worker has told, in the order in which it did.
#[derive(Clone)]
struct Told {
    lines: Arc<Mutex<Vec<String>>>,
    news: mpsc::Sender<()>,
}

/// A worker that notes what happens, and a receiver of as many messages.
fn noting(client: &Client) -> (Worker, Told, mpsc::Receiver<()>) {
    let (news, heard) = mpsc::channel(10_000);
    let told = Told { lines: Arc::default(), news };
    let noted = told.clone();
    let worker = Worker::new(client).on_event(move |event| {
        let text = event.job.text().unwrap_or("?").to_owned();
        let line = match event.happening {
            Happening::Started => return,
            Happening::Done { .. } => format!("{text} done"),
            Happening::Failed { failure, state, .. } => format!("{text} {failure:?} {state:?}"),
            Happening::Lost => format!("{text} lost"),
            Happening::Recalled => format!("{text} recalled"),
            Happening::Cancelled => format!("{text} cancelled: {}", event.job.cancelled().unwrap()),
            _ => format!("{text} released"),
        };
        noted.lines.lock().unwrap().push(line);
        noted.news.try_send(()).unwrap();
    });
    (worker, told, heard)
}

/// Runs a worker until this many events have arrived, and returns them sorted.
async fn run(
    worker: Worker,
    told: &Told,
    mut heard: mpsc::Receiver<()>,
    things: usize,
) -> Vec<String> {
    let all = async move {
        for _ in 0..things {
            heard.recv().await.unwrap();
        }
    };
    worker.run(all).await.unwrap();
    let mut lines = told.lines.lock().unwrap().clone();
    lines.sort();
    lines
}

async fn attend(job: Job) -> Outcome {
    match job.text()? {
        "number" => Err("seven".parse::<u8>().unwrap_err().into()),
        "later" => Err(Failure::retry_after(LONG, "not now")),
        "never" => Err(Failure::bury("impossible")),
        "other" => Err(Failure::GiveBack { delay: Some(LONG) }),
        "panic" => panic!("no {}", "reason"),
        "itself" => Ok(job.bury("by itself").await?),
        _ => Ok(()),
    }
}

#[test]
fn what_a_function_returns_decides() {
    with_server(&[], async |client, _| {
        let words = Words::new("QUEUE SET").bytes("jobs").all(["BACKOFF", "3600000"]);
        client.call(words).await.unwrap();
        let queue = client.queue("jobs");
        for text in ["good", "number", "later", "never", "other", "panic", "itself"] {
            queue.put(text).await.unwrap();
        }
        let (worker, told, heard) = noting(&client);
        let lines = run(worker.job("jobs", attend), &told, heard, 7).await;
        let expected = [
            "good done",
            "itself done",
            "later Retry { reason: \"not now\", delay: Some(600s) } Some(Waiting)",
            "never Bury { reason: \"impossible\" } Some(Buried)",
            "number Retry { reason: \"invalid digit found in string\", delay: None } Some(Waiting)",
            "other GiveBack { delay: Some(600s) } Some(Waiting)",
            "panic Retry { reason: \"panicked: no reason\", delay: None } Some(Waiting)",
        ];
        assert_eq!(lines, expected);
        let counts =
            [(State::Waiting, 4), (State::Buried, 2), (State::Ready, 0), (State::Taken, 0)];
        for (state, count) in counts {
            assert_eq!(queue.count(state).await.unwrap(), count, "{state:?}");
        }
    });
}

/// Has the task of a queue fail this many times.
async fn fail(queue: &Queue, times: u32) {
    for _ in 0..times {
        queue.take(LONG).await.unwrap().unwrap().fail("gone", None).await.unwrap();
    }
}

#[test]
fn a_held_task_waits_until_it_is_freed() {
    with_server(&[], async |client, _| {
        let queue = client.queue("approvals");
        let put = queue.put("order").held().await.unwrap();
        let task = queue.get(put.id.clone()).await.unwrap().unwrap();
        assert_eq!((task.held, task.ready_at), (true, None));
        assert!(queue.take(LONG).await.unwrap().is_none());
        let job = queue.take_one(put.id.clone(), LONG).await.unwrap().unwrap();
        assert_eq!(job.id, put.id);
        assert!(queue.take_one(put.id, LONG).await.unwrap().is_none());
        job.ack().await.unwrap();
    });
}

#[test]
fn what_a_function_returns_is_the_result() {
    with_server(&[], async |client, _| {
        client
            .call(Words::new("QUEUE").bytes("CREATE").bytes("sums").bytes("AFTERACK").bytes("keep"))
            .await
            .unwrap();
        let queue = client.queue("sums");
        let mut ids = Vec::new();
        for payload in ["6*7", "nothing", "1,100,000"] {
            ids.push(queue.put(payload).await.unwrap().id);
        }
        let (worker, told, heard) = noting(&client);
        let worker = worker.concurrency(1).job("sums", async |job: Job| match job.text()? {
            "6*7" => Ok(Some(b"42".to_vec())),
            "nothing" => Ok(None),
            _ => Ok(Some(vec![b'x'; 1_100_000])),
        });
        run(worker, &told, heard, 3).await;
        let ended = queue.wait_for(ids[0].clone(), LONG).await.unwrap().unwrap();
        assert_eq!((&*ended.outcome, ended.result.as_deref()), ("acked", Some(&b"42"[..])));
        // What is too large is left out, and the work is not done again.
        for id in &ids[1..] {
            let task = queue.get(id.clone()).await.unwrap().unwrap();
            assert_eq!((task.state, task.attempts, task.result), (State::Done, 1, None));
        }
    });
}

#[test]
fn a_task_has_attempts_of_its_own() {
    with_server(&[], async |client, _| {
        let queue = client.queue("fragile");
        let put = queue.put("once").attempts(1).backoff(Duration::ZERO).backoff_max(LONG);
        let task = queue.get(put.await.unwrap().id).await.unwrap().unwrap();
        assert_eq!((task.attempts_max, task.backoff), (Some(Own::Is(1)), Some(Own::None)));
        assert_eq!(task.backoff_max, Some(LONG));
        let (worker, told, heard) = noting(&client);
        let worker = worker.job("fragile", async |_| Err::<(), _>(Failure::retry("no")));
        let lines = run(worker, &told, heard, 1).await;
        assert!(lines[0].ends_with("Some(Buried)"), "{lines:?}");

        // Where the put says that there is no end, the worker sets none either.
        let queue = client.queue("endless");
        queue.put("bad").attempts(0).backoff(Duration::ZERO).await.unwrap();
        fail(&queue, 7).await;
        let (worker, told, heard) = noting(&client);
        let worker = worker.job("endless", async |_| Err::<(), _>(Failure::retry("no")));
        let lines = run(worker, &told, heard, 1).await;
        assert!(lines[0].ends_with("Some(Ready)"), "{lines:?}");
    });
}

#[test]
fn a_failing_task_waits_and_is_buried_at_last_where_the_queue_says_nothing() {
    with_server(&[], async |client, _| {
        let queue = client.queue("stubborn");
        queue.put("bad").await.unwrap();
        fail(&queue, 2).await;
        let (worker, told, heard) = noting(&client);
        let worker = worker.job("stubborn", async |_| Err::<(), _>(Failure::retry("no")));
        let lines = run(worker, &told, heard, 1).await;
        assert_eq!(lines, ["bad Retry { reason: \"no\", delay: None } Some(Waiting)"]);
        let id = {
            let words = Words::new("SCAN").bytes("stubborn").all(["WITHMETA"]);
            let reply = client.call(words).await.unwrap();
            let tasks = reply.elements().and_then(|parts| parts.last()?.elements()).unwrap();
            tasks[0].field("id").and_then(Value::as_bytes).unwrap().to_vec()
        };
        let task = queue.get(&*id).await.unwrap().unwrap();
        let waits = task.ready_at.unwrap().duration_since(task.put_at).unwrap();
        assert!(waits >= Duration::from_secs(4) && waits < LONG, "{waits:?}");

        // A delay of the function counts, and the fifth failure is the last.
        let queue = client.queue("worse");
        queue.put("bad").await.unwrap();
        fail(&queue, 3).await;
        let (worker, told, heard) = noting(&client);
        let at_once = async |_| Err::<(), _>(Failure::retry_after(Duration::from_millis(1), "no"));
        let lines = run(worker.job("worse", at_once), &told, heard, 2).await;
        assert!(lines[0].ends_with("Some(Buried)"), "{lines:?}");
        assert!(lines[1].ends_with("Some(Waiting)"), "{lines:?}");
        assert_eq!(queue.count(State::Buried).await.unwrap(), 1);
    });
}

#[test]
fn a_task_that_ended_its_worker_too_often_is_not_run_again() {
    with_server(&[], async |client, _| {
        let queue = client.queue("deadly");
        let id = queue.put("deadly").await.unwrap().id;
        fail(&queue, 5).await;
        let (worker, told, heard) = noting(&client);
        let worker = worker.job("deadly", async |_| -> Outcome { panic!("it was run") });
        let lines = run(worker, &told, heard, 1).await;
        assert!(lines[0].ends_with("Some(Buried)"), "{lines:?}");
        let reason = queue.get(id).await.unwrap().unwrap().reason.unwrap();
        let expected = "failed 5 times, while 5 are allowed: not run again; the last time: gone";
        assert_eq!(reason, expected);
    });
}

#[test]
fn panics_of_functions_and_listeners_leave_no_job_behind() {
    with_server(&[], async |client, _| {
        let queue = client.queue("panics");
        queue.put("p").await.unwrap();
        // So the next try is seconds away.
        fail(&queue, 3).await;
        let (news, mut heard) = mpsc::channel(10);
        let worker = Worker::new(&client).on_event(move |event| {
            if !matches!(event.happening, Happening::Started) {
                news.try_send(()).unwrap();
            }
            panic!("a bad listener");
        });
        // There is no future yet when this panics.
        let worker = worker.job("panics", |job: Job| {
            assert!(job.payload.is_empty(), "early");
            async { Ok(()) }
        });
        worker.run(async move { _ = heard.recv().await }).await.unwrap();
        assert_eq!(queue.count(State::Waiting).await.unwrap(), 1);
        assert_eq!(queue.count(State::Taken).await.unwrap(), 0);
    });
}

#[test]
fn functions_run_at_the_same_time_but_not_too_many() {
    with_server(&[], async |client, _| {
        let queue = client.queue("busy");
        for number in 0..200 {
            queue.put(number.to_string()).await.unwrap();
        }
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (worker, told, heard) = noting(&client);
        let noted = Arc::clone(&most);
        let worker = worker.concurrency(4).job("busy", move |_| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&noted));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        });
        let lines = run(worker, &told, heard, 200).await;
        assert!(lines.iter().all(|line| line.ends_with(" done")), "{lines:?}");
        assert_eq!(queue.count(State::Ready).await.unwrap(), 0);
        assert_eq!(queue.count(State::Taken).await.unwrap(), 0);
        assert!((2..=4).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    });
}

#[test]
fn queues_of_several_shards_and_lanes_are_all_served() {
    all_are_served(0);
}

#[test]
fn queues_of_several_shards_and_lanes_are_all_served_ahead() {
    all_are_served(2);
}

fn all_are_served(prefetch: u32) {
    with_server(&["--shards", "3"], async |client, _| {
        let (worker, told, heard) = noting(&client);
        let mut worker = worker.prefetch(prefetch);
        for number in 0..6 {
            let name = format!("queue-{number}");
            client.queue(&*name).put(&*name).await.unwrap();
            worker = worker.job(name, attend);
        }
        let worker = worker.lane("news", "ana", attend);
        // The member joins with its first take, so that what is published waits for it.
        let publishing = tokio::spawn({
            let news = client.topic("news");
            async move {
                while news.publish("news").await.unwrap() == 0 {
                    tokio::task::yield_now().await;
                }
            }
        });
        let lines = run(worker, &told, heard, 7).await;
        publishing.await.unwrap();
        let mut expected: Vec<_> = (0..6).map(|number| format!("queue-{number} done")).collect();
        expected.insert(0, "news done".to_owned());
        assert_eq!(lines, expected);
    });
}

#[test]
fn leases_are_renewed_and_their_loss_is_told() {
    with_server(&[], async |client, _| {
        let queue = client.queue("leases");
        for text in ["long", "stolen"] {
            queue.put(text).await.unwrap();
        }
        let ttr = Duration::from_millis(300);
        let (worker, told, heard) = noting(&client);
        let stolen = Arc::new(Notify::new());
        let (thief, robbed) = (client.clone(), Arc::clone(&stolen));
        let worker = worker.ttr(ttr).job("leases", move |job: Job| {
            let (thief, robbed) = (thief.clone(), Arc::clone(&robbed));
            async move {
                if job.text()? == "stolen" {
                    let words = Words::new("KILL").bytes("leases").bytes(&job.id);
                    thief.call(words).await?;
                    robbed.notified().await;
                    return Ok(());
                }
                // The lease has been renewed, or its deadline would be the first one.
                let queue = thief.queue("leases");
                let mut until = job.lease_until;
                for _ in 0..3 {
                    let before = until;
                    while until == before {
                        until = queue.get(&job.id).await?.and_then(|task| task.lease_until);
                    }
                }
                robbed.notify_one();
                Ok(())
            }
        });
        let lines = run(worker, &told, heard, 3).await;
        assert_eq!(lines, ["long done", "stolen done", "stolen lost"]);
    });
}

#[test]
fn a_worker_that_stops_gives_back_what_it_cannot_finish() {
    with_server(&[], async |client, _| {
        let queue = client.queue("stopping");
        for text in ["quick", "endless"] {
            queue.put(text).await.unwrap();
        }
        let begun = Arc::new(Notify::new());
        let (worker, told, _heard) = noting(&client);
        let noted = Arc::clone(&begun);
        let worker = worker.grace(Duration::from_millis(50)).job("stopping", move |job: Job| {
            let begun = Arc::clone(&noted);
            async move {
                if job.text()? == "endless" {
                    begun.notify_one();
                    std::future::pending::<()>().await;
                }
                Ok(())
            }
        });
        worker.run(begun.notified()).await.unwrap();
        let mut lines = told.lines.lock().unwrap().clone();
        lines.sort();
        assert_eq!(lines, ["endless released", "quick done"]);
        let back = queue.peek(2).await.unwrap();
        assert_eq!((back.len(), back[0].failures), (1, 0));
    });
}

#[test]
fn a_worker_that_may_not_take_says_so() {
    with_server(&[], async |client, _| {
        let long = "q".repeat(70_000);
        let refused = Worker::new(&client).job(long, attend).run(std::future::pending()).await;
        assert!(refused.unwrap_err().refused().is_some());
    });
}

/// Waits until a queue has this many taken tasks.
async fn taken(queue: &Queue, count: u64) {
    while queue.count(State::Taken).await.unwrap() != count {}
}

#[test]
fn what_was_not_started_is_called_back_for_a_more_urgent_job() {
    with_server(&[], async |client, _| {
        let queue = client.queue("ahead");
        for text in ["first", "late", "later"] {
            queue.put(text).priority(5).await.unwrap();
        }
        let (worker, told, mut heard) = noting(&client);
        let (order, gate) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        let (noted, closed) = (Arc::clone(&order), Arc::clone(&gate));
        let worker = worker.concurrency(1).prefetch(2).job("ahead", move |job: Job| {
            let (noted, closed) = (Arc::clone(&noted), Arc::clone(&closed));
            async move {
                let text = job.text()?.to_owned();
                noted.lock().unwrap().push(text.clone());
                if text == "first" {
                    closed.notified().await;
                }
                Ok(())
            }
        });
        let (putting, opening) = (queue.clone(), Arc::clone(&gate));
        let all = async move {
            taken(&putting, 3).await;
            putting.put("urgent").priority(1).await.unwrap();
            heard.recv().await.unwrap();
            opening.notify_one();
            for _ in 0..4 {
                heard.recv().await.unwrap();
            }
        };
        worker.run(all).await.unwrap();
        let lines = told.lines.lock().unwrap().clone();
        assert_eq!(lines[0], "later recalled");
        let order = order.lock().unwrap().clone();
        let at = |wanted| order.iter().position(|text| text == wanted).unwrap();
        assert_eq!(order.len(), 4, "{order:?}");
        assert!(at("urgent") < at("later"), "{order:?}");
        assert_eq!(queue.count(State::Ready).await.unwrap(), 0);
    });
}

#[test]
fn what_was_taken_ahead_is_given_back_without_a_failure() {
    with_server(&[], async |client, _| {
        let queue = client.queue("ahead");
        let mut ids = Vec::new();
        for number in 0..8 {
            ids.push(queue.put(number.to_string()).await.unwrap().id);
        }
        let (worker, told, _heard) = noting(&client);
        let gate = Arc::new(Notify::new());
        let closed = Arc::clone(&gate);
        let worker = worker.concurrency(1).prefetch(5).job("ahead", move |_| {
            let closed = Arc::clone(&closed);
            async move {
                closed.notified().await;
                Ok(())
            }
        });
        let stopping = queue.clone();
        worker
            .run(async move {
                taken(&stopping, 6).await;
                // The function may end once the worker is to stop.
                tokio::spawn(async move {
                    taken(&stopping, 1).await;
                    gate.notify_one();
                });
            })
            .await
            .unwrap();
        let lines = told.lines.lock().unwrap().clone();
        assert_eq!(lines.iter().filter(|line| line.ends_with("released")).count(), 5, "{lines:?}");
        assert_eq!(queue.count(State::Ready).await.unwrap(), 7);
        for id in &ids[1..] {
            let task = queue.get(id.clone()).await.unwrap().unwrap();
            assert_eq!((task.attempts, task.failures), (0, 0));
        }
    });
}

#[test]
fn one_job_of_a_fair_queue_is_taken_ahead() {
    with_server(&[], async |client, _| {
        let words = Words::new("QUEUE SET").bytes("fair").all(["RANKING", "fair"]);
        client.call(words).await.unwrap();
        let queue = client.queue("fair");
        for number in 0..8 {
            queue.put(number.to_string()).await.unwrap();
        }
        let (worker, told, heard) = noting(&client);
        let seen = queue.clone();
        let worker = worker.concurrency(1).prefetch(5).job("fair", move |_| {
            let seen = seen.clone();
            async move {
                // One runs, and one waits.
                assert!(seen.count(State::Taken).await? <= 2);
                Ok(())
            }
        });
        let lines = run(worker, &told, heard, 8).await;
        assert!(lines.iter().all(|line| line.ends_with("done")), "{lines:?}");
    });
}

#[test]
fn jobs_that_begin_at_once_are_started_at_once() {
    with_server(&[], async |direct, address| {
        let relay = Relay::to(address.strip_prefix("pinpriq://").unwrap());
        let client = Client::connect(&relay.address).await.unwrap();
        for number in 0..6 {
            direct.queue("together").put(number.to_string()).await.unwrap();
        }
        let (worker, told, heard) = noting(&client);
        let begun = Arc::new(tokio::sync::Barrier::new(4));
        let worker = worker.concurrency(4).prefetch(2).job("together", move |job: Job| {
            let begun = Arc::clone(&begun);
            async move {
                // The others have begun, whatever the reply to their start says.
                if job.text()?.parse::<u8>()? < 4 {
                    begun.wait().await;
                }
                Ok(())
            }
        });
        let lines = run(worker, &told, heard, 6).await;
        assert!(lines.iter().all(|line| line.ends_with(" done")), "{lines:?}");
        let sent = relay.sent();
        // Six deliveries leave the server as one piece, or nearly so.
        let starts: Vec<&str> = sent.split("\r\nSTART\r\n").collect();
        assert!((2..=5).contains(&starts.len()), "{sent}");
        let words = |before: &&str| before.rsplit('*').next()?.chars().next()?.to_digit(10);
        let words: Vec<u32> = starts[..starts.len() - 1].iter().filter_map(words).collect();
        assert_eq!(words.iter().map(|words| words - 2).sum::<u32>(), 6, "{sent}");
        assert!(words.iter().any(|words| *words > 3), "{sent}");
    });
}

#[test]
fn a_function_whose_start_comes_too_late_is_ended() {
    with_server(&[], async |direct, address| {
        let relay = Relay::to(address.strip_prefix("pinpriq://").unwrap());
        let client = Client::connect(&relay.address).await.unwrap();
        let queue = direct.queue("ahead");
        let (worker, told, mut heard) = noting(&client);
        let (began, is_first) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let beginning = Arc::clone(&began);
        let worker = worker.concurrency(1).prefetch(1).job("ahead", move |job: Job| {
            let (beginning, is_first) = (Arc::clone(&beginning), Arc::clone(&is_first));
            async move {
                if job.text()? == "late" && is_first.fetch_add(1, Ordering::SeqCst) == 0 {
                    beginning.notify_one();
                    std::future::pending::<()>().await;
                }
                Ok(())
            }
        });
        queue.put("warm").await.unwrap();
        let (putting, noted) = (queue.clone(), told.clone());
        let all = async move {
            heard.recv().await.unwrap();
            relay.hold();
            putting.put("late").priority(5).await.unwrap();
            began.notified().await;
            putting.put("urgent").priority(1).await.unwrap();
            putting.put("more urgent").priority(0).await.unwrap();
            relay.let_go();
            while noted.lines.lock().unwrap().iter().filter(|line| line.ends_with("done")).count()
                < 4
            {
                heard.recv().await.unwrap();
            }
        };
        worker.run(all).await.unwrap();
        let mut lines = told.lines.lock().unwrap().clone();
        lines.retain(|line| !line.ends_with("recalled"));
        lines.sort();
        let expected = ["late done", "late lost", "more urgent done", "urgent done", "warm done"];
        assert_eq!(lines, expected);
    });
}

#[test]
fn a_worker_that_takes_ahead_survives_broken_connections() {
    with_server(&[], async |direct, address| {
        let relay = Relay::to(address.strip_prefix("pinpriq://").unwrap());
        let client = Client::connect(&relay.address).await.unwrap();
        let queue = direct.queue("ahead");
        for number in 0..60 {
            queue.put(number.to_string()).await.unwrap();
        }
        let worker = Worker::new(&client).concurrency(3).prefetch(4).ttr(Duration::from_secs(1));
        let breaking = relay;
        let worker = worker.job("ahead", move |job: Job| {
            if job.text().is_ok_and(|text| text.ends_with('7')) && job.attempts == 1 {
                breaking.lose(1);
            }
            async { Ok(()) }
        });
        let watched = queue.clone();
        let all = async move {
            while watched.count(State::Ready).await.unwrap() > 0
                || watched.count(State::Taken).await.unwrap() > 0
                || watched.count(State::Waiting).await.unwrap() > 0
            {}
        };
        worker.run(all).await.unwrap();
    });
}

#[test]
fn a_function_learns_that_its_task_was_cancelled() {
    // Told at once, or at the next renewal.
    for (prefetch, ttr) in [(2, LONG), (0, Duration::from_millis(300))] {
        with_server(&[], async |client, _| {
            let queue = client.queue("jobs");
            let (sender, mut ids) = mpsc::channel(10);
            let (worker, told, heard) = noting(&client);
            let worker = worker.prefetch(prefetch).concurrency(1).ttr(ttr);
            let worker = worker.job("jobs", move |job: Job| {
                let sender = sender.clone();
                async move {
                    sender.send(job.id.clone()).await.unwrap();
                    job.cancellation().cancelled().await;
                    let is_done = job.text()? == "done";
                    if is_done { Ok(()) } else { Err(Failure::bury("stopped")) }
                }
            });
            for text in ["stops", "done"] {
                queue.put(text).await.unwrap();
            }
            let cancel = async {
                for _ in 0..2 {
                    let id = ids.recv().await.unwrap();
                    let words = Words::new("CANCEL jobs").bytes(id).bytes("REASON").bytes("late");
                    assert_eq!(client.call(words).await.unwrap().as_bytes(), Some(&b"T"[..]));
                }
            };
            let (lines, ()) = tokio::join!(run(worker, &told, heard, 4), cancel);
            let failure = Failure::bury("stopped");
            let failed = format!("stops {failure:?} Some(Gone)");
            let expected = ["done cancelled: late", "done done", &failed, "stops cancelled: late"];
            assert_eq!(lines, expected);
            let stats = client.call(Words::new("STATS jobs")).await.unwrap();
            let figure = |name| stats.field(name).and_then(Value::integer);
            assert_eq!((figure("cancelled"), figure("acked")), (Some(1), Some(1)));
        });
    }
}

#[test]
fn the_next_attempt_finds_how_far_the_last_one_came() {
    with_server(&[], async |client, _| {
        let queue = client.queue("jobs");
        let id = queue.put("long").await.unwrap().id;
        let (shown, waits) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (goes_on, is_told) = (Arc::clone(&shown), Arc::clone(&waits));
        let (worker, told, heard) = noting(&client);
        let worker = worker.concurrency(1).ttr(LONG).job("jobs", move |job: Job| {
            let (goes_on, is_told) = (Arc::clone(&goes_on), Arc::clone(&is_told));
            async move {
                let row = job.checkpoint.as_ref().map(|row| row.as_ref().to_vec());
                if job.attempts > 1 {
                    assert_eq!(row.as_deref(), Some(&b"row 200"[..]));
                    return Ok(());
                }
                assert_eq!(row, None);
                job.set_progress("a third");
                assert!(job.set_checkpoint("row 100"));
                is_told.notify_one();
                goes_on.notified().await;
                assert!(!job.set_checkpoint(vec![0; 65_537]));
                assert!(job.set_checkpoint("row 200"));
                Err(Failure::retry_after(Duration::ZERO, "broke"))
            }
        });
        let look = async {
            waits.notified().await;
            let seen = loop {
                let task = queue.get(&id).await.unwrap().unwrap();
                if task.checkpoint.is_some() {
                    break task;
                }
            };
            assert_eq!(seen.progress.as_ref().map(AsRef::as_ref), Some(&b"a third"[..]));
            assert_eq!(seen.checkpoint.as_ref().map(AsRef::as_ref), Some(&b"row 100"[..]));
            shown.notify_one();
        };
        let (lines, ()) = tokio::join!(run(worker, &told, heard, 2), look);
        assert_eq!(lines.last().map(String::as_str), Some("long done"), "{lines:?}");
    });
}

#[test]
fn a_job_that_is_cancelled_before_it_begins_is_not_run() {
    with_server(&[], async |client, _| {
        let queue = client.queue("jobs");
        let (worker, told, heard) = noting(&client);
        let goes_on = Arc::new(Notify::new());
        let (waits, (sender, mut begun)) = (Arc::clone(&goes_on), mpsc::channel(10));
        let worker = worker.prefetch(2).concurrency(1).job("jobs", move |job: Job| {
            let (waits, sender) = (Arc::clone(&waits), sender.clone());
            async move {
                sender.send(job.id.clone()).await.unwrap();
                waits.notified().await;
                Ok(())
            }
        });
        queue.put("first").await.unwrap();
        let second = queue.put("second").await.unwrap();
        let cancel = async {
            begun.recv().await.unwrap();
            // Until the second one was delivered it is not taken.
            let words = || Words::new("CANCEL jobs").bytes(&second.id);
            while queue.get(&second.id).await.unwrap().unwrap().state != State::Taken {}
            assert_eq!(client.call(words()).await.unwrap().as_bytes(), Some(&b"T"[..]));
            while queue.get(&second.id).await.unwrap().is_some() {}
            goes_on.notify_one();
        };
        let (lines, ()) = tokio::join!(run(worker, &told, heard, 2), cancel);
        assert_eq!(lines, ["first done", "second cancelled: "]);
    });
}
