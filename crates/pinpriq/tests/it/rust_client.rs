//! The asynchronous client against a server: puts, takes, workers, and what breaks in between.

mod broken;
mod relay;
mod worker;

use std::time::Duration;

use pinpriq_client::{
    BatchState, Change, Changed, Client, End, Error, OnlyIf, Options, Order, Release, State, Value,
    Words,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::serving::{GUARD, Serving};

/// A lease that outlasts every test.
const LONG: Duration = Duration::from_mins(10);

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Starts a server in memory and has `test` drive it.
fn with_server<T: Future<Output = ()>>(flags: &[&str], test: impl FnOnce(Client, String) -> T) {
    let data = tempfile::tempdir().unwrap();
    let flags = [&["--durability", "memory", "--resp", "127.0.0.1:0"], flags].concat();
    let server = Serving::start(data.path(), &flags);
    let address = format!("pinpriq://{}", server.door("resp"));
    runtime().block_on(async {
        let client = Client::connect(&address).await.unwrap();
        timeout(GUARD, test(client, address)).await.unwrap();
    });
    server.stop();
}

/// The number of connections that the server has at its RESP door.
async fn connections(client: &Client) -> String {
    let info = client.call(Words::new("INFO clients")).await.unwrap();
    let info = String::from_utf8(info.as_bytes().unwrap().to_vec()).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("connections_resp:"));
    line.unwrap().trim().to_owned()
}

#[test]
fn a_filter_chooses_what_changes() {
    with_server(&[], async |client, _| {
        let queue = client.queue("jobs");
        for number in 0..1_500 {
            let key = if number % 3 == 0 { "a" } else { "b" };
            let put = queue.put("x").key(key).priority(number).header("from", format!("w{key}"));
            put.await.unwrap();
        }
        let some = || queue.bulk(Change::Move("other".into())).key("a").priorities(0..=299);
        let counted = some().dry().await.unwrap();
        assert_eq!(counted, Changed { changed: 100, looked: 1_500 });
        assert_eq!(some().await.unwrap(), counted);
        assert_eq!(some().await.unwrap(), Changed { changed: 0, looked: 1_400 });
        // More than one page.
        let urgent = queue.bulk(Change::Priority(None)).header("from", "w*").older(Duration::ZERO);
        assert_eq!(urgent.await.unwrap().changed, 1_400);
        let delayed = queue.bulk(Change::Delay(LONG)).state(State::Ready).share("b").failures(0);
        assert_eq!(delayed.await.unwrap().changed, 1_000);
        assert_eq!(queue.count(State::Waiting).await.unwrap(), 1_000);
        for (change, changed) in [(Change::Redrive, 0), (Change::Cancel, 1_400)] {
            assert_eq!(queue.bulk(change).await.unwrap().changed, changed);
        }
        let job = client.queue("other").take(LONG).await.unwrap().unwrap();
        job.bury("no connection").await.unwrap();
        let other = client.queue("other");
        assert_eq!(other.bulk(Change::Restart).reason("no *").await.unwrap().changed, 1);
        assert_eq!(other.bulk(Change::Kill).await.unwrap().changed, 100);
        let refused = other.bulk(Change::Move("other".into())).await.unwrap_err();
        assert!(refused.to_string().contains("are there already"), "{refused}");
    });
}

#[test]
fn headers_shares_and_costs_travel_with_tasks() {
    with_server(&[], async |client, _| {
        let queue = client.queue("jobs");
        let put = queue.put("x").share("acme").cost(3).header("b", "1").header("a.z", b"\xff");
        put.await.unwrap();
        let job = queue.take(LONG).await.unwrap().unwrap();
        assert_eq!((job.share.as_deref(), job.cost), (Some(&b"acme"[..]), 3));
        let headers: Vec<_> =
            job.headers.iter().map(|(name, value)| (&**name, value.as_bytes())).collect();
        assert_eq!(headers, [("a.z", &b"\xff"[..]), ("b", b"1")]);
        let refused = queue.put("x").header("Tenant", "acme").await.unwrap_err();
        assert!(refused.to_string().contains("'Tenant'"), "{refused}");

        let (topic, ann) = (client.topic("news"), "ann");
        topic.join(ann, None).await.unwrap();
        let published = topic.publish("y").share("s").cost(2).header("a", "2").await.unwrap();
        assert_eq!(published, 1);
    });
}

#[test]
fn tasks_are_put_taken_and_settled() {
    with_server(&[], async |client, _| {
        let queue = client.queue("jobs");
        let cat = queue.put("cat").priority(5).key("pets").ttl(LONG).await.unwrap();
        assert!(cat.is_new);
        let owl = queue.put("owl").priority(1).await.unwrap();
        assert_ne!(cat.id, owl.id);
        let peeked = queue.peek(10).await.unwrap();
        let texts: Vec<_> = peeked.iter().map(|task| task.text().unwrap()).collect();
        assert_eq!(texts, ["owl", "cat"]);

        let job = queue.take(LONG).await.unwrap().unwrap();
        assert_eq!((job.text().unwrap(), job.attempts, job.priority), ("owl", 1, Some(1)));
        assert!(job.lease_until.unwrap() > job.put_at);
        assert!(job.touch().await.unwrap().is_some());
        let behind = Release { priority: Some(9), ..Release::default() };
        assert_eq!(job.release(behind).await.unwrap(), State::Ready);
        assert!(job.is_settled());
        assert!(job.ack().await.unwrap_err().is("STALE"));

        let job = queue.take(LONG).await.unwrap().unwrap();
        assert_eq!((job.text().unwrap(), job.key.as_deref()), ("cat", Some(&b"pets"[..])));
        assert_eq!(job.fail("no cat", Some(LONG)).await.unwrap(), State::Waiting);
        let waiting = queue.get(&cat.id).await.unwrap().unwrap();
        assert_eq!((waiting.state, waiting.failures), (State::Waiting, 1));
        assert_eq!(waiting.reason.as_deref(), Some("no cat"));

        let job = queue.take(LONG).await.unwrap().unwrap();
        job.bury(&"é".repeat(1000)).await.unwrap();
        assert_eq!(queue.count(State::Buried).await.unwrap(), 1);
        assert_eq!(queue.take(LONG).await.unwrap().map(|job| job.id.clone()), None);
        assert_eq!(queue.get("999").await.unwrap(), None);
    });
}

#[test]
fn a_job_says_what_it_did_cost() {
    with_server(&[], async |client, _| {
        client.call(Words::new("QUEUE CREATE calls RATE 10/3600000")).await.unwrap();
        let queue = client.queue("calls");
        for payload in ["a", "b", "c"] {
            queue.put(payload).await.unwrap();
        }
        let job = queue.take(LONG).await.unwrap().unwrap();
        job.set_cost(9);
        assert_eq!(job.fail("too dear", Some(LONG)).await.unwrap(), State::Waiting);
        let job = queue.take(LONG).await.unwrap().unwrap();
        assert!(queue.take(LONG).await.unwrap().is_none(), "nothing is left of the rate");
        job.set_cost(1);
        job.ack().await.unwrap();
        assert!(queue.take(LONG).await.unwrap().is_none());
    });
}

/// An address without a listener.
fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn of_several_servers_the_first_that_answers_is_used_and_connections_have_names() {
    with_server(&[], async |client, address| {
        let (scheme, place) = address.split_once("://").unwrap();
        let several = format!("{scheme}://{},{place},{}", nowhere(), nowhere());
        let other = Client::connect(&several).await.unwrap();
        other.queue("jobs").put("p").await.unwrap();
        let job = other.queue("jobs").take(LONG).wait(LONG).await.unwrap().unwrap();
        let task = client.queue("jobs").get(&job.id).await.unwrap().unwrap();
        let name = task.client_name.unwrap();
        assert!(name.ends_with(&format!("-{}", std::process::id())), "{name}");
        let refused = Client::connect(&format!("redis://{},{}", nowhere(), nowhere())).await;
        assert!(matches!(refused, Err(Error::Disconnected { .. })), "{refused:?}");
    });
}

#[test]
fn both_ends_groups_and_several_at_once() {
    with_server(&[], async |client, _| {
        let queue = client.queue("ends");
        for (payload, priority) in [("a", 1), ("b", 2), ("c", 2), ("d", 3)] {
            queue.put(payload).key(payload).priority(priority).await.unwrap();
        }
        queue.put("b2").key("b").priority(9).await.unwrap();
        let most = queue.take(LONG).from(End::Max).await.unwrap().unwrap();
        assert_eq!(most.text().unwrap(), "b2");
        let newest = queue.take(LONG).order(Order::Newest).from(End::Max);
        assert_eq!(newest.await.unwrap().unwrap().text().unwrap(), "d");
        most.release(Release::default()).await.unwrap();
        queue.take(LONG).await.unwrap().unwrap().ack().await.unwrap();
        let group = queue.take(LONG).group().await.unwrap();
        let texts: Vec<_> = group.iter().map(|job| job.text().unwrap()).collect();
        assert_eq!(texts, ["b", "b2"]);
        assert_eq!(queue.take(LONG).up_to(10).await.unwrap().len(), 1);
        assert!(queue.pop().await.unwrap().is_none());
    });
}

#[test]
fn requests_at_the_same_time_share_one_connection() {
    with_server(&[], async |client, _| {
        let queue = client.queue("many");
        let mut puts = tokio::task::JoinSet::new();
        for number in 0..5_000_u32 {
            puts.spawn(IntoFuture::into_future(queue.put(number.to_be_bytes())));
        }
        while let Some(put) = puts.join_next().await {
            put.unwrap().unwrap();
        }
        assert_eq!(queue.count(State::Ready).await.unwrap(), 5_000);
        assert_eq!(connections(&client).await, "1");
        // Takes that wait need connections of their own, which are used again.
        for _ in 0..3 {
            let empty = client.queue("empty");
            assert!(empty.take(LONG).wait(Duration::from_millis(1)).await.unwrap().is_none());
        }
        assert_eq!(connections(&client).await, "2");
    });
}

#[test]
fn a_take_waits_and_can_be_given_up() {
    with_server(&[], async |client, _| {
        let queue = client.queue("slow");
        let waiting = tokio::spawn({
            let queue = queue.clone();
            async move { queue.take(LONG).wait_forever().await }
        });
        while connections(&client).await != "2" {
            tokio::task::yield_now().await;
        }
        queue.put("first").await.unwrap();
        let job = waiting.await.unwrap().unwrap().unwrap();
        assert_eq!(job.text().unwrap(), "first");
        job.ack().await.unwrap();

        let given_up = tokio::spawn({
            let queue = queue.clone();
            async move { queue.take(LONG).wait_forever().await }
        });
        while connections(&client).await != "2" {
            tokio::task::yield_now().await;
        }
        given_up.abort();
        assert!(given_up.await.unwrap_err().is_cancelled());
        while connections(&client).await != "1" {
            tokio::task::yield_now().await;
        }
        queue.put("second").await.unwrap();
        assert_eq!(queue.count(State::Ready).await.unwrap(), 1);
    });
}

#[test]
fn a_full_queue_makes_room() {
    with_server(&[], async |client, _| {
        let words = Words::new("QUEUE SET").bytes("small").all(["CAPACITY", "1"]);
        client.call(words).await.unwrap();
        let queue = client.queue("small");
        queue.put("one").await.unwrap();
        assert!(queue.put("two").await.unwrap_err().is("FULL"));
        let short = queue.put("two").room(Duration::from_millis(5)).await;
        assert!(short.unwrap_err().is("FULL"));
        let waiting = tokio::spawn(IntoFuture::into_future(queue.put("two").room(LONG)));
        while connections(&client).await != "2" {
            tokio::task::yield_now().await;
        }
        assert_eq!(queue.pop().await.unwrap().unwrap().text().unwrap(), "one");
        assert!(waiting.await.unwrap().unwrap().is_new);
    });
}

#[test]
fn one_waits_for_the_end_of_a_task() {
    with_server(&[], async |client, _| {
        let queue = client.queue("ending");
        let put = queue.put("it").await.unwrap();
        let short = queue.wait_for(&put.id, Duration::from_millis(5)).await.unwrap();
        assert_eq!(short, None);
        let waiting = tokio::spawn({
            let (queue, id) = (queue.clone(), put.id.clone());
            async move { queue.wait_for(&id, LONG).await }
        });
        queue.take(LONG).await.unwrap().unwrap().ack_with("42").await.unwrap();
        // It may have begun to wait only after the task was gone.
        match waiting.await.unwrap() {
            Ok(ended) => {
                let ended = ended.unwrap();
                assert_eq!((&*ended.outcome, ended.result.as_deref()), ("acked", Some(&b"42"[..])));
            }
            Err(error) => assert!(error.is("NOTFOUND"), "{error}"),
        }
    });
}

#[test]
fn keys_of_the_caller_meet_duplicates() {
    with_server(&[], async |client, _| {
        let queue = client.queue("orders");
        let first = queue.put("a").unique("4711", Some(LONG)).await.unwrap();
        let again = queue.put("b").unique("4711", Some(LONG)).await.unwrap();
        assert_eq!((again.id, again.is_new), (first.id, false));
        queue.put("c").once().await.unwrap();
        assert_eq!(queue.count(State::Ready).await.unwrap(), 2);
    });
}

#[test]
fn transactions_are_all_or_nothing() {
    with_server(&[], async |client, _| {
        let put = |payload: &str| Words::new("PUT").bytes("t").bytes(payload);
        let replies = client.transaction(&[put("a"), put("b")]).await.unwrap();
        assert_eq!(replies.len(), 2);
        let stale = client.transaction(&[put("c"), Words::new("ACK t 9-9-9")]).await.unwrap_err();
        assert!(stale.to_string().starts_with("EXECABORT 2 STALE "), "{stale}");
        let wrong = client.transaction(&[put("d"), Words::new("PUT t")]).await.unwrap_err();
        assert!(wrong.is("ERR"), "{wrong}");
        assert_eq!(client.queue("t").count(State::Ready).await.unwrap(), 2);
        let several = client.pipeline(&[put("e"), Words::new("NONSENSE"), put("f")]).await.unwrap();
        let told: Vec<_> = several.iter().map(Result::is_ok).collect();
        assert_eq!(told, [true, false, true]);
        assert!(client.pipeline(&[]).await.unwrap().is_empty());
    });
}

#[test]
fn history_tells_who_has_tried_a_task() {
    with_server(&[], async |client, _| {
        client.call(Words::new("QUEUE CREATE tried HISTORY 2")).await.unwrap();
        let queue = client.queue("tried");
        let put = queue.put("x").await.unwrap();
        for reason in ["one", "two"] {
            let job = queue.take(LONG).await.unwrap().unwrap();
            job.fail(reason, Some(Duration::ZERO)).await.unwrap();
        }
        assert!(queue.peek(1).await.unwrap()[0].history.is_empty(), "GET alone tells it");
        drop(queue.take(LONG).await.unwrap().unwrap());
        let task = queue.get(&put.id).await.unwrap().unwrap();
        let told: Vec<_> = task.history.iter().map(|it| (&*it.how, it.reason.as_deref())).collect();
        assert_eq!(told, [("failed", Some("one")), ("failed", Some("two"))]);
        let last = &task.history[1];
        assert!(last.client.is_some() && last.taken_at <= last.ended_at, "{last:?}");
        assert!(last.address.as_ref().unwrap().starts_with("127.0.0.1:"), "{last:?}");
    });
}

#[test]
fn what_waits_for_a_batch_comes_when_it_is_done() {
    with_server(&[], async |client, _| {
        let batch = client.batch("one");
        let filled = batch.fill(|batch| async move {
            for part in ["a", "b"] {
                batch.put("parts", part).await?;
            }
            let joined = batch.then("joined", "all").only_if(OnlyIf::Acked).await?;
            let sorry = batch.then("sorry", "no").only_if(OnlyIf::Failed).await?;
            Ok::<_, Error>((joined.id, sorry.id))
        });
        let (joined, sorry) = filled.await.unwrap();
        let shown = batch.show().await.unwrap();
        assert_eq!((shown.state, shown.total, shown.waiting), (BatchState::Closed, 2, 2));
        let waits = client.queue("joined").get(&joined).await.unwrap().unwrap();
        assert_eq!((waits.state, waits.held, waits.batch), (State::Waiting, false, None));
        assert_eq!(waits.after, ["one"]);

        let parts = client.queue("parts");
        for (name, count) in [("one", 2), ("two", 0)] {
            assert_eq!(parts.bulk(Change::Kill).batch(name).dry().await.unwrap().changed, count);
        }
        for _ in 0..2 {
            let job = parts.take(LONG).await.unwrap().unwrap();
            assert_eq!(job.batch.as_ref().unwrap(), &"one");
            job.ack().await.unwrap();
        }
        let (is_done, shown) = batch.wait(LONG).await.unwrap();
        assert!(is_done && shown.done_at >= Some(shown.opened_at), "{shown:?}");
        assert_eq!((shown.state, shown.acked, shown.failed), (BatchState::Done, 2, 0));
        let job = client.queue("joined").take(LONG).wait(LONG).await.unwrap().unwrap();
        assert_eq!((&job.id, &*job.payload), (&joined, &b"all"[..]));
        assert!(job.after.is_empty());
        let ended = client.queue("sorry").wait_for(&sorry, LONG).await.unwrap().unwrap();
        assert_eq!(ended.outcome, "skipped");

        assert!(batch.put("parts", "late").await.unwrap_err().is("WRONGSTATE"));
        assert!(batch.forget().await.unwrap());
        assert!(!batch.forget().await.unwrap());
        assert!(batch.show().await.unwrap_err().is("NOTFOUND"));
    });
}

#[test]
fn a_batch_is_cancelled_by_an_error_or_by_hand() {
    with_server(&[], async |client, _| {
        let batch = client.new_batch();
        let filled = batch.fill(|batch| async move {
            batch.put("parts", "a").await?;
            batch.then("after", "clean up").only_if(OnlyIf::Failed).await?;
            batch.put("parts", "b").after("nowhere").await?;
            Ok::<_, Error>(())
        });
        assert!(filled.await.unwrap_err().is("NOTFOUND"));
        let (is_done, shown) = batch.wait(LONG).await.unwrap();
        assert_eq!((is_done, shown.acked, shown.failed), (true, 0, 1));
        assert!(client.queue("after").take(LONG).wait(LONG).await.unwrap().is_some());

        let batch = client.batch("two").ttl(LONG);
        batch.open().await.unwrap();
        assert!(batch.open().await.unwrap_err().is("EXISTS"));
        let parts = client.queue("parts");
        parts.put("c").batch("two").await.unwrap();
        let job = parts.take(LONG).await.unwrap().unwrap();
        assert_eq!(batch.cancel(Some("the customer left"), Some(LONG)).await.unwrap(), 1);
        assert!(job.touch().await.unwrap_err().is("CANCELLED"));
        let (is_done, shown) = batch.wait(Duration::ZERO).await.unwrap();
        assert_eq!((is_done, shown.state, shown.pending), (false, BatchState::Closed, 1));
        assert!(batch.forget().await.unwrap_err().is("WRONGSTATE"));
        assert_eq!(job.fail("stopped", None).await.unwrap(), State::Gone);
        assert!(batch.wait(LONG).await.unwrap().0);
        assert_eq!(batch.close().await.unwrap(), 0);
        assert_eq!(client.batch_names("t").await.unwrap(), ["two"]);
        assert_eq!(client.batch_names("").await.unwrap().len(), 2);
    });
}

#[test]
fn a_transaction_makes_fills_and_closes_a_batch() {
    with_server(&[], async |client, _| {
        let made = [
            Words::new("BATCH OPEN one TTL 3600000"),
            Words::new("PUT parts a BATCH one"),
            Words::new("PUT joined all AFTER 1 one"),
            Words::new("BATCH CLOSE one"),
        ];
        let replies = client.transaction(&made).await.unwrap();
        assert_eq!(replies[3].integer(), Some(1));
        assert_eq!(client.batch("one").show().await.unwrap().state, BatchState::Closed);

        let about = |verb: &str| Words::new("BATCH").bytes(verb).bytes("two");
        let passed = ["OPEN", "CLOSE", "DROP", "DROP"].map(about);
        let replies = client.transaction(&passed).await.unwrap();
        let counts: Vec<_> = replies.iter().map(Value::integer).collect();
        assert_eq!(counts, [None, Some(0), Some(1), Some(0)]);
        let refused = client.transaction(&["OPEN", "DROP"].map(about)).await.unwrap_err();
        assert!(refused.to_string().starts_with("EXECABORT 2 WRONGSTATE "), "{refused}");
        assert_eq!(client.batch_names("").await.unwrap(), ["one"]);

        client.queue("parts").take(LONG).await.unwrap().unwrap().ack().await.unwrap();
        let job = client.queue("joined").take(LONG).wait(LONG).await.unwrap().unwrap();
        assert_eq!(&*job.payload, b"all");
    });
}

#[test]
fn a_topic_has_a_lane_for_each_member() {
    with_server(&[], async |client, _| {
        let news = client.topic("news");
        let lane = news.join("ana", Some(LONG)).await.unwrap();
        news.join("ben", None).await.unwrap();
        assert_eq!(news.publish("open").priority(1).ttl(LONG).await.unwrap(), 2);
        let job = lane.take(LONG).await.unwrap().unwrap();
        assert_eq!(job.member.as_ref().unwrap(), &"ana");
        job.ack().await.unwrap();
        client.beat("ana", None).await.unwrap();
        news.leave("ana").await.unwrap();
        assert!(lane.take(LONG).await.unwrap_err().is("NOTFOUND"));
        assert_eq!(news.lane("ben").count(State::Ready).await.unwrap(), 1);
    });
}

#[test]
fn what_is_no_server_of_pinpriq_is_told() {
    with_server(&[], async |_, _| {
        let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("pinpriq://{}", unused.local_addr().unwrap());
        drop(unused);
        let refused = Client::connect(&address).await.unwrap_err();
        assert!(matches!(refused, Error::Disconnected { .. }), "{refused}");
        let refused = Client::connect("queue.example").await.unwrap_err();
        assert!(matches!(refused, Error::Address(_)), "{refused}");

        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("pinpriq://{}", other.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            use std::io::{Read as _, Write as _};
            let mut stream = other.accept().unwrap().0;
            let mut some = [0; 64];
            let _ = stream.read(&mut some).unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        });
        let refused = Client::connect(&address).await.unwrap_err();
        assert!(matches!(refused, Error::Disconnected { .. }), "{refused}");
        server.join().unwrap();
    });
}

#[test]
fn a_silent_server_is_given_up_after_the_timeout() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("pinpriq://{}", silent.local_addr().unwrap());
    runtime().block_on(async {
        let options = Options::at(&address).unwrap().timeout(Duration::from_millis(50));
        let client = Client::unconnected(options.retry_for(Duration::ZERO)).unwrap();
        let error = client.queue("q").put("x").await.unwrap_err();
        assert!(matches!(error, Error::Disconnected { .. }), "{error}");
    });
}
