//! A trace of a job of the Rust client, as a receiver of OTLP gets it.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]
#![expect(clippy::print_stdout, reason = "a server's log says why a test failed")]
#![expect(dead_code, reason = "other tests need more of what they share")]

#[path = "../it/peer.rs"]
mod peer;
mod receiver;
#[path = "../it/serving.rs"]
mod serving;
#[path = "../it/wire.rs"]
mod wire;

use std::time::Duration;

use opentelemetry::trace::{FutureExt as _, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, global};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_sdk::trace::SdkTracerProvider;
use pinpriq_client::{Client, Failure, Happening, Words, Worker};
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::time::timeout;

use receiver::{Receiver, attributes};
use serving::{GUARD, Serving};

/// Runs a worker of a queue until this many jobs have ended.
async fn work(client: &Client, times: usize, is_done: bool) {
    let (sender, mut ended) = mpsc::channel(10);
    let worker = Worker::new(client).on_event(move |event| {
        if !matches!(event.happening, Happening::Started) {
            sender.try_send(()).unwrap();
        }
    });
    let worker = worker.job("jobs", move |_| async move {
        let tracer = global::tracer("test");
        tracer.in_span("inside", |_| {});
        if is_done { Ok(()) } else { Err(Failure::retry("no luck")) }
    });
    let all = async {
        for _ in 0..times {
            ended.recv().await.unwrap();
        }
    };
    worker.run(all).await.unwrap();
}

async fn drive(client: &Client) {
    for setting in ["jobs ATTEMPTS 2 BACKOFF 1 DEADLETTER dead", "dead"] {
        client.call(Words::new(&format!("QUEUE CREATE {setting}"))).await.unwrap();
    }
    let jobs = client.queue("jobs");
    let request = Context::new().with_span(global::tracer("test").start("request"));
    let within = || request.clone();
    let put = async { jobs.put("x").header("tenant", "acme").await.unwrap() };
    put.with_context(within()).await;
    work(client, 2, false).await;
    let redrive = async { client.queue("dead").redrive(10).await.unwrap() };
    assert_eq!(redrive.with_context(within()).await, 1);
    work(client, 1, true).await;
    request.span().end();
}

/// Puts that keep their headers as they are, and one that fails.
async fn drive_others(client: &Client) {
    let jobs = client.queue("others");
    let own = jobs.put("").header("traceparent", "own").await.unwrap();
    let full = (0..16).fold(jobs.put(""), |put, number| put.header(format!("h{number}"), ""));
    let full = full.await.unwrap();
    let kept = async |id| jobs.get(id).await.unwrap().unwrap().headers;
    assert_eq!(kept(&own.id).await["traceparent"], "own");
    assert_eq!(kept(&full.id).await.len(), 16);
    assert!(jobs.put("").ttl(Duration::ZERO).id("x").await.unwrap_err().is("BADARG"));
}

/// A span in a few words. Spans are named by the order in which they began.
fn told(span: &Span, all: &[&Span]) -> String {
    let name_of = |id: &[u8]| all.iter().find(|span| span.span_id == id).map_or("?", |it| &it.name);
    let kind = SpanKind::try_from(span.kind).unwrap().as_str_name();
    let mut words = vec![format!("{} {}", span.name, kind.trim_start_matches("SPAN_KIND_"))];
    if !span.parent_span_id.is_empty() {
        words.push(format!("child of {}", name_of(&span.parent_span_id)));
    }
    for link in &span.links {
        assert_eq!(link.trace_id, span.trace_id);
        words.push(format!("links to {}", name_of(&link.span_id)));
    }
    for event in &span.events {
        words.push(format!("{} {:?}", event.name, attributes(&event.attributes)));
    }
    let status = span.status.as_ref().map_or("", |status| &status.message);
    if !status.is_empty() {
        words.push(format!("failed: {status}"));
    }
    format!("{} {:?}", words.join(", "), attributes(&span.attributes))
}

#[test]
fn a_trace_goes_from_a_request_over_failures_and_a_dead_letter_to_the_end() {
    let data = tempfile::tempdir().unwrap();
    let server = Serving::start(data.path(), &["--durability", "memory", "--resp", "127.0.0.1:0"]);
    let address = format!("pinpriq://{}", server.door("resp"));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let spans = runtime.block_on(async {
        let client = Client::connect(&address).await.unwrap();
        // Before there is a provider, nothing is added.
        let plain = client.queue("plain");
        let put = plain.put("").await.unwrap();
        assert!(plain.get(&put.id).await.unwrap().unwrap().headers.is_empty());

        let mut receiver = Receiver::start();
        let exporter = SpanExporter::builder().with_tonic().with_endpoint(receiver.address());
        let exporter = exporter.build().unwrap();
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
        global::set_tracer_provider(provider.clone());
        timeout(GUARD, drive(&client)).await.unwrap();
        timeout(GUARD, drive_others(&client)).await.unwrap();
        tokio::task::spawn_blocking(move || provider.shutdown()).await.unwrap().unwrap();
        receiver.received()
    });
    server.stop();
    let mut spans: Vec<&Span> = spans.iter().collect();
    spans.sort_by_key(|span| span.start_time_unix_nano);
    let lines: Vec<String> = spans.iter().map(|span| told(span, &spans)).collect();
    expect_test::expect_file!["trace.txt"].assert_eq(&(lines.join("\n") + "\n"));
    let of_request = spans.iter().filter(|span| span.trace_id == spans[0].trace_id);
    assert_eq!(of_request.count(), 8, "the request, its put, and three attempts of two spans");
}
