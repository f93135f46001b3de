//! Leases that were taken over HTTP: the receipt proves them, and no connection does.

use super::{Visitor, with_site};

/// What changes a taken task by its bare id.
const BY_ID: [(&str, &str, &str, u16); 4] = [
    ("PATCH", "/v1/queues/q/tasks/1", r#"{"priority":3}"#, 409),
    ("POST", "/v1/queues/q/tasks/1:touch", r#"{"by":1000}"#, 409),
    ("POST", "/v1/multi", r#"{"commands":[{"update":{"queue":"q","id":"1","priority":3}}]}"#, 409),
    // Not a receipt at all.
    ("POST", "/v1/multi", r#"{"commands":[{"ack":{"queue":"q","receipt":"1"}}]}"#, 409),
];

#[test]
fn the_connection_that_took_a_task_needs_its_receipt_too() {
    for take in ["POST /v1/queues/q:take", "POST /v1/queues/q:take?ttr=60000"] {
        with_site(async |address| {
            let json = "Content-Type: application/json\r\n";
            let mut visitor = Visitor::at(address).await;
            visitor.ask("POST /v1/queues/q/tasks", "", b"x").await;
            let (_, taken) = visitor.ask(take, "", b"").await;
            let taken: serde_json::Value = serde_json::from_str(&taken).unwrap();
            let receipt = taken["tasks"][0]["receipt"].as_str().unwrap();
            for (method, path, body, expected) in BY_ID {
                let line = format!("{method} {path}");
                let (status, told) = visitor.ask(&line, json, body.as_bytes()).await;
                assert_eq!(status, expected, "{line} {body} after {take}: {told}");
            }
            let update = format!(r#"{{"priority":3,"receipt":"{receipt}"}}"#);
            let patch = "PATCH /v1/queues/q/tasks/1";
            let (status, told) = visitor.ask(patch, json, update.as_bytes()).await;
            assert_eq!((status, &*told), (204, ""));
            let ack = format!("POST /v1/queues/q/receipts/{receipt}:ack");
            assert_eq!(visitor.ask(&ack, "", b"").await, (204, String::new()));
        });
    }
}
