//! Decoding of RESP requests: ns and allocations per request, several crates.
use bytes::{Bytes, BytesMut};
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// CPU time of this thread, so that other programs on the machine disturb less.
#[derive(Clone, Copy)]
struct CpuTime(f64);
impl CpuTime {
    fn now() -> Self {
        let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
        Self(t.tv_sec as f64 * 1e9 + t.tv_nsec as f64)
    }
    fn ns(self) -> f64 {
        Self::now().0 - self.0
    }
}

struct Counting;
static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Relaxed);
        BYTES.fetch_add(l.size() as u64, Relaxed);
        unsafe { System.alloc(l) }
    }
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        unsafe { System.dealloc(p, l) }
    }
    unsafe fn realloc(&self, p: *mut u8, l: Layout, n: usize) -> *mut u8 {
        COUNT.fetch_add(1, Relaxed);
        BYTES.fetch_add(n as u64, Relaxed);
        unsafe { System.realloc(p, l, n) }
    }
}
#[global_allocator]
static A: Counting = Counting;

/// The work done with each request: every argument is read.
#[inline(always)]
fn look<'a>(args: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut sum = 0u64;
    for a in args {
        sum =
            sum.wrapping_mul(31).wrapping_add(a.len() as u64 ^ u64::from(*a.first().unwrap_or(&0)));
    }
    sum
}

trait Codec {
    /// Decodes everything in the batch; returns (requests, checksum).
    fn batch(&mut self, batch: &Bytes) -> (u64, u64);
}

struct Ours(pinpriq_wire::resp::RequestDecoder);
impl Codec for Ours {
    fn batch(&mut self, batch: &Bytes) -> (u64, u64) {
        use pinpriq_wire::resp::Decoded;
        let (mut n, mut s) = (0, 0u64);
        let mut rest: &[u8] = batch;
        loop {
            match self.0.decode(rest) {
                Ok(Decoded::Request { length }) => {
                    s = s.wrapping_add(look(self.0.arguments(rest).iter()));
                    n += 1;
                    rest = &rest[length..];
                }
                _ => return (n, s),
            }
        }
    }
}

struct ProtocolRange;
impl Codec for ProtocolRange {
    fn batch(&mut self, batch: &Bytes) -> (u64, u64) {
        use redis_protocol::resp2::{decode::decode_range, types::RangeFrame};
        let (mut n, mut s) = (0, 0u64);
        let mut rest: &[u8] = batch;
        while let Ok(Some((RangeFrame::Array(f), used))) = decode_range(rest) {
            s = s.wrapping_add(look(f.iter().map(|f| match f {
                RangeFrame::BulkString((a, b)) => &rest[*a..*b],
                _ => panic!(),
            })));
            n += 1;
            rest = &rest[used..];
        }
        (n, s)
    }
}
struct ProtocolBytes;
impl Codec for ProtocolBytes {
    fn batch(&mut self, batch: &Bytes) -> (u64, u64) {
        use redis_protocol::resp2::{decode::decode_bytes, types::BytesFrame};
        let (mut n, mut s) = (0, 0u64);
        let mut rest = batch.clone();
        while let Ok(Some((BytesFrame::Array(f), used))) = decode_bytes(&rest) {
            s = s.wrapping_add(look(f.iter().map(|f| match f {
                BytesFrame::BulkString(b) => &b[..],
                _ => panic!(),
            })));
            n += 1;
            rest = rest.slice(used..);
        }
        (n, s)
    }
}
struct RespRs;
impl Codec for RespRs {
    fn batch(&mut self, batch: &Bytes) -> (u64, u64) {
        use resp_rs::resp2::{Frame, parse_frame};
        let (mut n, mut s) = (0, 0u64);
        let mut rest = batch.clone();
        while let Ok((Frame::Array(Some(f)), after)) = parse_frame(rest) {
            s = s.wrapping_add(look(f.iter().map(|f| match f {
                Frame::BulkString(Some(b)) => &b[..],
                _ => panic!(),
            })));
            n += 1;
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        (n, s)
    }
}
struct RespAsync(resp_async::ValueDecoder, BytesMut);
impl Codec for RespAsync {
    fn batch(&mut self, batch: &Bytes) -> (u64, u64) {
        use resp_async::Value;
        let (mut n, mut s) = (0, 0u64);
        self.1.extend_from_slice(batch);
        while let Ok(Some(Value::Array(f))) = self.0.try_decode(&mut self.1) {
            s = s.wrapping_add(look(f.iter().map(|f| match f {
                Value::Bulk(b) => &b[..],
                _ => panic!(),
            })));
            n += 1;
        }
        (n, s)
    }
}
struct RedisParser(redis::Parser);
impl Codec for RedisParser {
    fn batch(&mut self, batch: &Bytes) -> (u64, u64) {
        use redis::Value;
        // After an end of input the parser does not continue, so each batch has its own.
        self.0 = redis::Parser::new();
        let (mut n, mut s) = (0, 0u64);
        let mut rest: &[u8] = batch;
        while !rest.is_empty() {
            let Ok(Value::Array(f)) = self.0.parse_value(&mut rest) else { break };
            s = s.wrapping_add(look(f.iter().map(|f| match f {
                Value::BulkString(b) => &b[..],
                _ => panic!(),
            })));
            n += 1;
        }
        // Bytes that the parser has read ahead stay in it, so the rest is parsed from an empty
        // input.
        while let Ok(Value::Array(f)) = self.0.parse_value(&mut rest) {
            s = s.wrapping_add(look(f.iter().map(|f| match f {
                Value::BulkString(b) => &b[..],
                _ => panic!(),
            })));
            n += 1;
        }
        (n, s)
    }
}
struct Zero;
impl Codec for Zero {
    fn batch(&mut self, batch: &Bytes) -> (u64, u64) {
        let (mut n, mut s) = (0, 0u64);
        let mut rest: &[u8] = batch;
        while let Ok((after, args)) = redis_zero_protocol_parser::parse_server(rest) {
            s = s.wrapping_add(look(args.iter().map(|a| &a[..])));
            n += 1;
            rest = after;
        }
        (n, s)
    }
}

fn codecs() -> Vec<(&'static str, Box<dyn Codec>)> {
    use pinpriq_wire::resp::{RequestDecoder, RequestLimits};
    vec![
        ("pinpriq-wire resp", Box::new(Ours(RequestDecoder::new(RequestLimits::default())))),
        ("redis-protocol 6.0.0 decode_range", Box::new(ProtocolRange)),
        ("redis-protocol 6.0.0 decode_bytes", Box::new(ProtocolBytes)),
        ("resp-rs 0.3.0 resp2::parse_frame", Box::new(RespRs)),
        ("resp-async 0.0.7 ValueDecoder", Box::new(RespAsync(Default::default(), BytesMut::new()))),
        ("redis 1.8.1 Parser", Box::new(RedisParser(redis::Parser::new()))),
        ("redis-zero-protocol-parser 0.3.4", Box::new(Zero)),
    ]
}

fn main() {
    let mut one = Vec::new();
    let payload = [b'x'; 100];
    pinpriq_wire::resp::put_command(&mut one, &[b"PUT", b"jobs", &payload, b"PRIORITY", b"5"]);
    println!("request of {} bytes", one.len());
    let mut results: Vec<(String, usize, Vec<f64>, f64, f64)> = Vec::new();
    const ROUNDS: usize = 15;
    for round in 0..ROUNDS {
        let mut i = 0;
        for (name, mut codec) in codecs() {
            for deep in [16usize, 128] {
                let batch = Bytes::from(one.repeat(deep));
                let expected = codec.batch(&batch).1;
                let batches = 200_000 / deep;
                let (c, b) = (COUNT.load(Relaxed), BYTES.load(Relaxed));
                let start = CpuTime::now();
                let mut n = 0;
                for _ in 0..batches {
                    let (k, s) = codec.batch(black_box(&batch));
                    n += k;
                    assert_eq!(s, expected);
                }
                let ns = start.ns() / n as f64;
                assert_eq!(n as usize, batches * deep, "{name}");
                let allocs = (COUNT.load(Relaxed) - c) as f64 / n as f64;
                let bytes = (BYTES.load(Relaxed) - b) as f64 / n as f64;
                if round == 0 {
                    results.push((name.into(), deep, vec![], allocs, bytes));
                }
                results[i].2.push(ns);
                i += 1;
            }
        }
    }
    println!(
        "{:36} {:>5} {:>8} {:>8} {:>8} {:>7} {:>7}",
        "", "deep", "median", "min", "max", "allocs", "bytes"
    );
    for (name, deep, mut ns, a, b) in results {
        ns.sort_by(f64::total_cmp);
        println!(
            "{name:36} {deep:5} {:8.1} {:8.1} {:8.1} {a:7.2} {b:7.0}",
            ns[ns.len() / 2],
            ns[0],
            ns[ns.len() - 1]
        );
    }
    many();
    probes();
    writer();
}

/// A command of 8,000 arguments that arrives 64 bytes at a time.
fn many() {
    let count = 8_000;
    let whole: Vec<u8> =
        [format!("*{count}\r\n").into_bytes(), b"$1\r\na\r\n".repeat(count)].concat();
    println!("\n{count} arguments, {} bytes, in pieces of 64 bytes and in one (us)", whole.len());
    type Step = Box<dyn FnMut(&Bytes, &[u8]) -> bool>;
    let make: Vec<(&str, fn() -> Step)> = vec![
        ("pinpriq-wire resp", || {
            use pinpriq_wire::resp::*;
            let mut d = RequestDecoder::new(RequestLimits::default());
            Box::new(move |all, _| matches!(d.decode(all), Ok(Decoded::Request { .. })))
        }),
        ("redis-protocol 6.0.0 decode_range", || {
            Box::new(|all, _| {
                matches!(redis_protocol::resp2::decode::decode_range(all), Ok(Some(_)))
            })
        }),
        ("redis-protocol 6.0.0 decode_bytes", || {
            Box::new(|all, _| {
                matches!(redis_protocol::resp2::decode::decode_bytes(all), Ok(Some(_)))
            })
        }),
        ("resp-rs 0.3.0 resp2::parse_frame", || {
            Box::new(|all, _| resp_rs::resp2::parse_frame(all.clone()).is_ok())
        }),
        ("resp-async 0.0.7 ValueDecoder", || {
            let mut d = resp_async::ValueDecoder::new(resp_async::DecodeLimits {
                max_array_len: 16_384,
                ..Default::default()
            });
            let mut b = BytesMut::new();
            Box::new(move |_, new| {
                b.extend_from_slice(new);
                matches!(d.try_decode(&mut b), Ok(Some(_)))
            })
        }),
        ("redis 1.8.1 parse_redis_value", || {
            Box::new(|all, _| redis::parse_redis_value(all).is_ok())
        }),
        ("redis-zero-protocol-parser 0.3.4", || {
            Box::new(|all, _| redis_zero_protocol_parser::parse_server(all).is_ok())
        }),
    ];
    let bytes = Bytes::from(whole);
    for (name, make) in make {
        let mut line = format!("{name:36}");
        for piece in [64, bytes.len()] {
            let mut us = Vec::new();
            for _ in 0..5 {
                let mut step = make();
                let start = CpuTime::now();
                let mut end = 0;
                while end < bytes.len() {
                    let from = end;
                    end = (end + piece).min(bytes.len());
                    let done = step(&bytes.slice(..end), &bytes[from..end]);
                    assert_eq!(done, end == bytes.len(), "{name}");
                }
                us.push(start.ns() / 1e3);
            }
            us.sort_by(f64::total_cmp);
            line += &format!(" {:10.0}", us[2]);
        }
        println!("{line}");
    }
}

fn probes() {
    println!("\nprobes");
    let cases: [&[u8]; 12] = [
        b"*01\r\n$4\r\nPING\r\n",
        b"*+1\r\n$4\r\nPING\r\n",
        b"*1\r\n$04\r\nPING\r\n",
        b"*1\r\n$+4\r\nPING\r\n",
        b"*1\r\n$4\r\nPINGxx",
        b"*1\r\n*1\r\n$4\r\nPING\r\n",
        b"*1\r\n:1\r\n",
        b"*1\r\n$-1\r\n",
        b"*-1\r\n",
        b"*2147483647\r\n$4\r\nPING\r\n",
        b"*1\r\n$536870912\r\n",
        b"PING a\r\n",
    ];
    for case in cases {
        println!("{}", case.escape_ascii());
        let show = |name: &str, f: &mut dyn FnMut() -> String| {
            let b = BYTES.load(Relaxed);
            let r = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f()))
                .unwrap_or("PANIC".into());
            println!(
                "   {name:28} {:10} bytes  {}",
                BYTES.load(Relaxed) - b,
                &r[..r.len().min(110)]
            );
        };
        show("ours", &mut || {
            use pinpriq_wire::resp::*;
            format!("{:?}", RequestDecoder::new(RequestLimits::default()).decode(case))
        });
        show("redis-protocol", &mut || {
            format!("{:?}", redis_protocol::resp2::decode::decode_range(case))
        });
        show("resp-rs", &mut || {
            format!("{:?}", resp_rs::resp2::parse_frame(Bytes::from_static(case)).map(|f| f.0))
        });
        show("resp-async", &mut || {
            format!(
                "{:?}",
                resp_async::ValueDecoder::default().try_decode(&mut BytesMut::from(case))
            )
        });
        show("redis", &mut || format!("{:?}", redis::parse_redis_value(case)));
        show("zero", &mut || format!("{:?}", redis_zero_protocol_parser::parse_server(case)));
    }
}

/// Writes the reply to a TAKE of one task with a payload of 100 bytes.
fn writer() {
    use pinpriq_wire::resp::{Protocol, Writer};
    let mut out = Vec::with_capacity(64 << 10);
    let mut ns = Vec::new();
    let payload = [b'x'; 100];
    for _ in 0..15 {
        let start = CpuTime::now();
        for _ in 0..2_000 {
            out.clear();
            for id in 0..100u64 {
                let mut w = Writer::new(&mut out, Protocol::Resp3);
                w.array(1);
                w.array(4);
                w.bulk(b"jobs");
                w.bulk_number(black_box(123_456 + id));
                w.bulk(b"0123456789abcdef0123456789abcdef");
                w.bulk(black_box(&payload));
            }
            black_box(&out);
        }
        ns.push(start.ns() / 200_000.0);
    }
    ns.sort_by(f64::total_cmp);
    println!("\nwriter: TAKE reply of {} bytes {:.1} ns (median)", out.len() / 100, ns[7]);
}
