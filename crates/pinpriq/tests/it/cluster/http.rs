//! The HTTP doors of nodes: each answers for all queues, wherever they live.

use super::Etcd;
use crate::http::browser::{Browser, Request};
use crate::serving::Serving;

/// The queues, with two tasks each when they are looked at.
const QUEUES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

#[test]
fn every_node_answers_for_all_queues() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(&dir.path().join("etcd")) else { return };
    let addresses = ["--http", "127.0.0.1:0", "--link", "127.0.0.1:0", "--log-format", "json"];
    let nodes = ["n1", "n2"].map(|name| {
        let data = dir.path().join(name);
        Serving::of_command(etcd.serve_at(name, Some(&data), &addresses))
    });
    let both = "all shards are served: 3 by 2 nodes\n";
    etcd.ask_until(&["status"], |code, text| code == 0 && text.starts_with(both));
    let mut browsers = nodes.each_ref().map(|node| Browser::connect(&node.door("http")));
    for browser in &mut browsers {
        assert_eq!(browser.ask(&Request::of("GET /readyz", b"")).status, 200);
        for queue in QUEUES {
            let put = format!("POST /v1/queues/{queue}/tasks text/plain");
            let reply = browser.ask(&Request::of(&put, queue.as_bytes()));
            assert_eq!(reply.status, 201, "{queue}: {}", reply.text());
        }
    }
    for browser in &mut browsers {
        let listed = browser.ask(&Request::of("GET /v1/queues", b"")).text();
        assert_eq!(listed.matches(r#""R":2,"#).count(), QUEUES.len(), "{listed}");
    }
    check_what_is_watched(&mut browsers);
    let [one, other] = &mut browsers;
    for queue in QUEUES {
        let taken = one.ask(&Request::of(&format!("POST /v1/queues/{queue}:take"), b"")).text();
        let (_, receipt) = taken.split_once(r#""receipt":""#).expect(&taken);
        let receipt = receipt.split('"').next().unwrap();
        let ack = format!("POST /v1/queues/{queue}/receipts/{receipt}:ack");
        let reply = other.ask(&Request::of(&ack, b""));
        assert_eq!(reply.status, 204, "{queue}: {}", reply.text());
    }
    let stats = other.ask(&Request::of("GET /v1/stats", b"")).text();
    assert!(stats.contains(r#""acked":6,"#), "{stats}");
    for node in nodes {
        node.stop();
    }
}

/// Checks what dashboards and alerts read: an order asks all nodes, while metrics and history are
/// those of the shards that a node serves, so that a sum over the nodes counts nothing twice.
fn check_what_is_watched(browsers: &mut [Browser]) {
    let mut pages = Vec::new();
    for browser in browsers {
        let ordered = browser.ask(&Request::of("GET /v1/queues?sort=ready&desc=true", b"")).text();
        assert!(ordered.contains(r#""total":6"#), "{ordered}");
        assert_eq!(browser.ask(&Request::of("GET /", b"")).status, 200);
        assert_eq!(browser.ask(&Request::of("GET /v1/history", b"")).status, 200);
        pages.push(browser.ask(&Request::of("GET /metrics", b"")).text());
    }
    for queue in QUEUES {
        let line = format!("pinpriq_tasks{{queue=\"{queue}\",state=\"R\"}} 2\n");
        let shown = pages.iter().filter(|page| page.contains(&line)).count();
        assert_eq!(shown, 1, "{queue}: {pages:?}");
    }
}
