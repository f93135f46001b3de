//! Many puts in one request: a line each, read and answered as they come.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use http_body_util::BodyExt as _;
use pinpriq_proto::limits::TRANSACTION_STEPS_MAX;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::bytes::{Bytes, BytesMut};
use tokio_util::codec::{AnyDelimiterCodec, Decoder as _};

use super::super::exchange::{Asked, Question};
use super::super::problem::Problem;
use super::body::Streamed;
use super::{Api, Asker, Request, asking};
use crate::doors::http::visit::Questions;
use crate::facts::tally::HttpRefusals;
use pinpriq_proto::request::code::Code;
use pinpriq_proto::request::form::Form;

/// How many lines may wait for the shards.
const WAITING: usize = 64;

/// The most bytes of a batch that is one step.
const ATOMIC_BYTES_MAX: usize = 16 << 20;

/// The media type of lines.
const LINES: &str = "application/x-ndjson";

/// Answers many lines.
pub(super) async fn answer(
    api: &Api,
    asker: &Asker,
    mut request: Request<'_>,
    body: Body,
) -> Result<Response, Problem> {
    let queue = request.name("queue")?;
    let is_atomic = request.values.flag("atomic")?;
    request.values.end("batch")?;
    let lines = Lines::new(api, body);
    let refusals = api.refusals.clone();
    if is_atomic {
        return atomic(asker, &queue, lines).await;
    }
    let (questions, coming) = mpsc::channel(WAITING);
    // The body is read while the answer is written, as fast as the answer is read.
    tokio::spawn(read(lines, (queue, refusals), questions));
    let answer = asker.ask(Questions::Coming(coming), Form::Line).await?;
    Ok(lines_response(Body::new(Streamed::new(answer.first, answer.rest))))
}

fn lines_response(body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(LINES));
    response
}

/// Passes each line on. Ends when the body does, or when the caller gave up.
async fn read(
    mut lines: Lines,
    (queue, refusals): (Vec<u8>, Arc<HttpRefusals>),
    questions: mpsc::Sender<Question>,
) {
    loop {
        let line = match lines.next().await {
            Ok(None) => return,
            Ok(Some(line)) => line,
            Err(problem) => {
                let goes_on = problem.code == "TOOLARGE";
                let _ = questions.send(refused(problem, &refusals)).await;
                if goes_on {
                    continue;
                }
                return;
            }
        };
        let question = match asking::line(&queue, &line) {
            Ok(asked) => Question::Command(asked),
            Err(problem) => refused(problem, &refusals),
        };
        if questions.send(question).await.is_err() {
            return;
        }
    }
}

/// Returns what is answered with this problem, and counts it.
fn refused(problem: Problem, refusals: &HttpRefusals) -> Question {
    if let Some(code) = Code::of_word(problem.code) {
        refusals.refuse(code);
    }
    Question::Refused(problem)
}

/// Carries out all lines in one step, or none.
async fn atomic(asker: &Asker, queue: &[u8], mut lines: Lines) -> Result<Response, Problem> {
    let (mut all, mut bytes): (Vec<Asked>, usize) = (Vec::new(), 0);
    while let Some(line) = lines.next().await? {
        bytes += line.len();
        if all.len() == TRANSACTION_STEPS_MAX || bytes > ATOMIC_BYTES_MAX {
            let sentence = format!(
                "an atomic batch has at most {TRANSACTION_STEPS_MAX} lines and \
                 {ATOMIC_BYTES_MAX} bytes: split it"
            );
            return Err(Problem::new("BUSY", sentence));
        }
        all.push(asking::line(queue, &line)?);
    }
    if all.is_empty() {
        return Ok(lines_response(Body::empty()));
    }
    let mut response = asker.respond(Question::Multi(all), Form::Atomic).await?;
    if response.status() == StatusCode::OK {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(LINES));
    }
    Ok(response)
}

/// The lines of a body.
struct Lines {
    body: Body,
    bytes: BytesMut,
    codec: AnyDelimiterCodec,
    timeout: Duration,
    has_ended: bool,
}

impl Lines {
    fn new(api: &Api, body: Body) -> Self {
        // A payload in base64 or with escapes, and the options.
        let most = api.payload_bytes_max * 6 + (64 << 10);
        let codec = AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), Vec::new(), most);
        Self { body, bytes: BytesMut::new(), codec, timeout: api.body_timeout, has_ended: false }
    }

    /// Returns the next line that is not blank, or nothing after the last. After a line that is too
    /// long, others may follow.
    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        // A line has as long as a whole body elsewhere.
        let read = timeout(self.timeout, self.read()).await;
        read.map_err(|_| Problem::new("LATE", "a line did not arrive in time"))?
    }

    async fn read(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let line = if self.has_ended {
                self.codec.decode_eof(&mut self.bytes)
            } else {
                self.codec.decode(&mut self.bytes)
            };
            match line {
                Ok(Some(line)) if line.trim_ascii().is_empty() => continue,
                Ok(None) if !self.has_ended => {}
                Ok(line) => return Ok(line),
                Err(_) => {
                    let most = self.codec.max_length();
                    let sentence = format!("a line has at most {most} bytes here");
                    return Err(Problem::new("TOOLARGE", sentence));
                }
            }
            match self.body.frame().await {
                None => self.has_ended = true,
                Some(Ok(frame)) => self.bytes.extend(frame.data_ref().into_iter().flatten()),
                Some(Err(wrong)) => {
                    return Err(Problem::bad(format!("the body cannot be read: {wrong}")));
                }
            }
        }
    }
}
