//! Connections that break, replies that are lost, servers that restart.

use std::time::Duration;

use pinpriq_client::{Client, Error, Options, State, Words};

use super::relay::Relay;
use super::{LONG, runtime, with_server};
use crate::serving::Serving;

/// Clients for a server through a relay, and directly.
fn through_relay<T: Future<Output = ()>>(test: impl FnOnce(Relay, Client, Client) -> T) {
    with_server(&[], async |direct, address| {
        let relay = Relay::to(address.strip_prefix("pinpriq://").unwrap());
        let client = Client::connect(&relay.address).await.unwrap();
        test(relay, client, direct).await;
    });
}

#[test]
fn a_put_whose_reply_is_lost_makes_one_task() {
    through_relay(async |relay, client, direct| {
        let queue = client.queue("puts");
        for lost in 1..=3 {
            relay.lose(lost);
            let put = queue.put("it").await.unwrap();
            assert!(put.is_new);
            assert_eq!(relay.left(), 0);
            assert_eq!(direct.queue("puts").get(&put.id).await.unwrap().unwrap().id, put.id);
        }
        assert_eq!(direct.queue("puts").count(State::Ready).await.unwrap(), 3);
    });
}

#[test]
fn what_is_not_safe_is_not_sent_again() {
    through_relay(async |relay, client, direct| {
        let queue = client.queue("once");
        relay.lose(1);
        let lost = queue.put("it").once().await.unwrap_err();
        assert!(matches!(lost, Error::Disconnected { .. }), "{lost}");
        assert_eq!(direct.queue("once").count(State::Ready).await.unwrap(), 1);
        relay.lose(1);
        assert!(queue.pop().await.is_err());
        relay.lose(1);
        assert!(client.call(Words::new("PING")).await.is_err());
        client.call(Words::new("PING")).await.unwrap();
    });
}

#[test]
fn an_acknowledgement_whose_reply_is_lost_is_done() {
    through_relay(async |relay, client, direct| {
        let queue = client.queue("acks");
        queue.put("it").await.unwrap();
        let job = queue.take(LONG).await.unwrap().unwrap();
        relay.lose(2);
        job.ack().await.unwrap();
        assert_eq!(relay.left(), 0);
        assert_eq!(direct.queue("acks").count(State::Taken).await.unwrap(), 0);
        // Told at once, if nothing was lost.
        assert!(job.ack().await.unwrap_err().is("STALE"));
    });
}

#[test]
fn requests_that_were_under_way_when_the_connection_broke_are_all_carried_out_once() {
    through_relay(async |relay, client, direct| {
        let queue = client.queue("storm");
        let mut puts = tokio::task::JoinSet::new();
        for round in 0..20_u32 {
            relay.lose(1);
            for number in 0..100_u32 {
                puts.spawn(IntoFuture::into_future(queue.put((round * 100 + number).to_string())));
            }
            while let Some(put) = puts.join_next().await {
                assert!(put.unwrap().unwrap().is_new);
            }
        }
        assert_eq!(direct.queue("storm").count(State::Ready).await.unwrap(), 2_000);
    });
}

#[test]
fn a_client_outlives_its_server() {
    let data = tempfile::tempdir().unwrap();
    // No other test listens at this address, so that none of them takes the port in between.
    let server = Serving::start(data.path(), &["--resp", "127.43.0.1:0"]);
    let address = format!("pinpriq://{}", server.door("resp"));
    let door = address.strip_prefix("pinpriq://").unwrap().to_owned();
    runtime().block_on(async {
        let client = Client::connect(&address).await.unwrap();
        let queue = client.queue("kept");
        queue.put("before").await.unwrap();
        // A connection is kept for takes that wait, and must not be mistaken for a good one.
        let none = client.queue("empty").take(LONG).wait(Duration::from_millis(1)).await;
        assert!(none.unwrap().is_none());
        let waiting = tokio::spawn({
            let other = client.queue("other");
            async move { other.take(LONG).wait_forever().await }
        });
        server.kill();
        let putting = tokio::spawn(IntoFuture::into_future(queue.put("meanwhile")));
        let second = Serving::start(data.path(), &["--resp", &door]);
        assert!(putting.await.unwrap().unwrap().is_new);
        client.queue("other").put("after").await.unwrap();
        let job = waiting.await.unwrap().unwrap().unwrap();
        assert_eq!(job.text().unwrap(), "after");
        assert_eq!(queue.count(State::Ready).await.unwrap(), 2);
        second.stop();
        let options = Options::at(&address).unwrap().retry_for(Duration::ZERO);
        assert!(Client::with(options).await.is_err());
    });
}
