//! Measures the cost of the two codecs for a message with a payload of 100 bytes.
//!
//! Each iteration reads or writes a thousand consecutive messages, as a pipelining client sends
//! them. What a server does with them is not measured here. Nothing here judges the results.

#![expect(clippy::expect_used, reason = "a bench that cannot go on has nothing to tell")]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};

use pinpriq_proto::wire::resp::{
    self, Protocol, RequestDecoder, RequestLimits, Writer, put_command,
};
use pinpriq_proto::wire::{Decoded, Request, decode_request, put_count, put_packet};

const MESSAGES: usize = 1_000;
const PAYLOAD: [u8; 100] = [b'x'; 100];

fn main() {
    divan::main();
}

fn resp_puts() -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..MESSAGES {
        put_command(&mut bytes, &[b"PUT", b"jobs", &PAYLOAD, b"PRIORITY", b"5"]);
    }
    bytes
}

fn push() -> Request<'static> {
    Request::Push { queue: b"jobs", ttl_ms: 1_000, priority: 5, key: b"k", payload: &PAYLOAD }
}

/// Every argument is read.
#[divan::bench]
fn resp_request_decoded(bencher: Bencher<'_, '_>) {
    let bytes = resp_puts();
    let mut decoder = RequestDecoder::new(RequestLimits::default());
    bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
        let mut rest = black_box(bytes.as_slice());
        let mut requests = 0;
        while let Ok(resp::Decoded::Request { length }) = decoder.decode(rest) {
            decoder.arguments(rest).iter().for_each(|argument| {
                black_box(argument);
            });
            rest = &rest[length..];
            requests += 1;
        }
        assert_eq!((requests, rest.len()), (MESSAGES, 0));
    });
}

/// The reply to a take: one task of four parts.
#[divan::bench]
fn resp_reply_encoded(bencher: Bencher<'_, '_>) {
    let mut out = Vec::new();
    bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
        out.clear();
        for number in 1..=MESSAGES as u64 {
            let mut writer = Writer::new(&mut out, Protocol::Resp2);
            writer.array(1);
            writer.array(4);
            writer.bulk(b"jobs");
            writer.bulk_number(black_box(number));
            writer.bulk_numbers(&[number, 1, 1_000_000 + number], b'-');
            writer.bulk(&PAYLOAD);
        }
        black_box(&out);
    });
}

#[divan::bench]
fn pinpriq_request_decoded(bencher: Bencher<'_, '_>) {
    let mut bytes = Vec::new();
    for _ in 0..MESSAGES {
        push().put(&mut bytes).expect("it is short enough");
    }
    bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
        let mut rest = black_box(bytes.as_slice());
        let mut requests = 0;
        while let Ok(Decoded::Message { request, length }) = decode_request(rest) {
            black_box(request);
            rest = &rest[length..];
            requests += 1;
        }
        assert_eq!((requests, rest.len()), (MESSAGES, 0));
    });
}

/// The reply to a pop: one packet.
#[divan::bench]
fn pinpriq_reply_encoded(bencher: Bencher<'_, '_>) {
    let mut out = Vec::new();
    bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
        out.clear();
        for _ in 0..MESSAGES {
            put_count(&mut out, 1);
            put_packet(&mut out, b"k", black_box(&PAYLOAD)).expect("it is short enough");
        }
        black_box(&out);
    });
}
