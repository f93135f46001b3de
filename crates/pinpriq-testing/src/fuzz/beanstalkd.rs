//! The protocol of beanstalkd: bytes to requests and to answers, whole and in pieces, and back.
//!
//! The first byte chooses how big a job may be, the second the pieces; the rest is the stream. This
//! module does not know what the commands mean.

use std::ops::ControlFlow;

use pinpriq_proto::wire::beanstalkd::{
    Answer, Decoded, DecodedAnswer, Fault, LINE_BYTES_MAX, Request, RequestDecoder, Verb,
    decode_answer, is_tube_name, put_job,
};

use crate::fuzz::cutting::{Cut, Step, feed};
use crate::fuzz::feed::Feed;

/// So small that short inputs reach it.
const NARROW_BYTES_MAX: u32 = 12;
/// What beanstalkd allows by default.
const BYTES_MAX: u32 = 65_535;

/// What a server reads from a stream of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Read<'a> {
    Request(Request<'a>),
    Fault(Fault, Option<Verb>),
}

/// Reads any bytes as requests and as answers.
///
/// # Panics
/// If the pieces make a difference, if a decoder exceeds its limits, or if what was
/// written cannot be read again.
pub fn beanstalkd(bytes: &[u8]) {
    let mut input = Feed::new(bytes);
    let bytes_max = if input.byte() % 2 == 1 { NARROW_BYTES_MAX } else { BYTES_MAX };
    let cut = Cut::Drawn(u64::from(input.byte()));
    let stream = input.rest();
    let whole = requests_in(stream, bytes_max, Cut::Whole);
    for cut in [Cut::Bytes, cut] {
        assert_eq!(whole, requests_in(stream, bytes_max, cut), "requests in pieces: {cut:?}");
    }
    for read in &whole.0 {
        if let Read::Request(request) = read {
            judge(*request, bytes_max);
        }
    }
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let whole = answers_in(stream, bytes_max, Cut::Whole);
    for cut in [Cut::Bytes, cut] {
        assert_eq!(whole, answers_in(stream, bytes_max, cut), "answers in pieces: {cut:?}");
    }
}

/// Checks that a request is within its bounds, and comes back as it was when it is written.
fn judge(request: Request<'_>, bytes_max: u32) {
    match request {
        Request::Put { ttr_s, body, .. } => {
            assert!(ttr_s >= 1, "no reservation lasts no time");
            assert!(u32::try_from(body.len()).is_ok_and(|bytes| bytes <= bytes_max));
        }
        Request::ReserveWithTimeout { timeout_s } => assert!(i32::try_from(timeout_s).is_ok()),
        Request::Use { tube }
        | Request::Watch { tube }
        | Request::Ignore { tube }
        | Request::StatsTube { tube }
        | Request::PauseTube { tube, .. } => assert!(is_tube_name(tube)),
        _ => {}
    }
    let mut written = Vec::new();
    assert_eq!(request.put(&mut written), Ok(()), "whatever is read can be written");
    let back = requests_in(&written, bytes_max, Cut::Whole);
    assert_eq!(back, (vec![Read::Request(request)], 0), "a request comes back as it was");
}

/// Returns everything that is read from the stream, and the number of bytes that are left. Those of
/// something that is skipped are not counted, since they are dropped early or late, depending on
/// the pieces.
fn requests_in(stream: &[u8], bytes_max: u32, cut: Cut) -> (Vec<Read<'_>>, usize) {
    let mut decoder = RequestDecoder::new(bytes_max);
    let mut seen = Vec::new();
    let rest = feed(stream, cut, |buffer| {
        let was_between = decoder.is_between_requests();
        let length = match decoder.decode(buffer) {
            Decoded::Incomplete => {
                assert_eq!(decoder.is_between_requests(), was_between, "nothing has changed");
                assert_eq!(decoder.decode(buffer), Decoded::Incomplete, "nor if it is asked again");
                let limit = if was_between { decoder.buffer_bytes_max() } else { 2 };
                assert!(buffer.len() < limit, "a full buffer is enough");
                return ControlFlow::Continue(Step::Wait(0));
            }
            Decoded::Skip { length } => {
                assert!(!decoder.is_between_requests());
                return ControlFlow::Continue(Step::Drop(length));
            }
            Decoded::Request { request, length } => {
                assert!(was_between, "a request begins where it is found");
                seen.push(Read::Request(request));
                length
            }
            Decoded::Fault { fault, counts_as, length } => {
                seen.push(Read::Fault(fault, counts_as));
                length
            }
        };
        assert!(decoder.is_between_requests());
        ControlFlow::Continue(Step::Drop(length))
    });
    let left = if decoder.is_between_requests() { rest.len() } else { 0 };
    (seen, left)
}

/// Returns every answer in the stream, the rest, and whether the rest is no answer at all.
fn answers_in(stream: &[u8], bytes_max: usize, cut: Cut) -> (Vec<Answer<'_>>, &[u8], bool) {
    let mut seen = Vec::new();
    let mut is_malformed = false;
    let rest = feed(stream, cut, |buffer| match decode_answer(buffer, bytes_max) {
        Err(_) => {
            is_malformed = true;
            ControlFlow::Break(())
        }
        Ok(DecodedAnswer::Incomplete) => {
            assert!(buffer.len() < LINE_BYTES_MAX + bytes_max + 2, "a full buffer is enough");
            ControlFlow::Continue(Step::Wait(0))
        }
        Ok(DecodedAnswer::Whole { answer, length }) => {
            assert_eq!(written(answer), buffer[..length], "an answer is written as it was");
            seen.push(answer);
            ControlFlow::Continue(Step::Drop(length))
        }
    });
    (seen, rest, is_malformed)
}

fn written(answer: Answer<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match answer {
        Answer::Line(line) => out.extend([line, b"\r\n"].concat()),
        Answer::Job { word, id, body } => put_job(&mut out, word, id, body),
        Answer::Document(document) => {
            out.extend(format!("OK {}\r\n", document.len()).into_bytes());
            out.extend([document, b"\r\n"].concat());
        }
    }
    out
}
