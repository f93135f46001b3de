//! Spans through the API of OpenTelemetry, with the names and attributes of its conventions for
//! messaging. Where they are sent is up to the program.

use std::future::Future;

use opentelemetry::global::{self, BoxedTracer};
use opentelemetry::trace::{
    FutureExt as _, Link, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer as _,
    WithContext,
};
use opentelemetry::{Context, InstrumentationScope, KeyValue};

use super::context;
use crate::error::Error;
use crate::name::Name;
use crate::request::Headers;
use crate::task::{State, Task};

/// The most letters of a reason in an event.
const REASON_LETTERS_MAX: usize = 200;

fn tracer() -> BoxedTracer {
    let scope = InstrumentationScope::builder("pinpriq").with_version(env!("CARGO_PKG_VERSION"));
    global::tracer_with_scope(scope.build())
}

fn builder(operation: &'static str, kind: &'static str, name: &Name) -> SpanBuilder {
    SpanBuilder::from_name(format!("{operation} {name}")).with_attributes([
        KeyValue::new("messaging.system", "pinpriq"),
        KeyValue::new("messaging.operation.name", operation),
        KeyValue::new("messaging.operation.type", kind),
        KeyValue::new("messaging.destination.name", name.to_string()),
    ])
}

fn id(name: &Name) -> KeyValue {
    KeyValue::new("messaging.message.id", name.to_string())
}

/// The span of a request that puts a task, or publishes. It ends with the last copy of its
/// context, also if the put is given up.
pub(crate) struct Sending(Context);

impl Sending {
    /// Begins a span, and adds its context to the headers.
    pub(crate) fn begin(operation: &'static str, to: &Name, headers: &mut Headers) -> Self {
        let parent = Context::current();
        let builder = builder(operation, "send", to).with_kind(SpanKind::Producer);
        let span = tracer().build_with_context(builder, &parent);
        let context = parent.with_span(span);
        context::put(headers, context.span().span_context());
        Self(context)
    }

    /// Ends it with the id of the task, if that is known.
    pub(crate) fn end(self, done: Result<Option<&Name>, &Error>) {
        let span = self.0.span();
        match done {
            Ok(Some(task)) => span.set_attribute(id(task)),
            Ok(None) => {}
            Err(error) => {
                let kind = error.refused().map_or("disconnected", |refused| &refused.code);
                span.set_attribute(KeyValue::new("error.type", kind.to_owned()));
                span.set_status(Status::error(error.to_string()));
            }
        }
        span.end();
    }
}

/// The span of an attempt. It ends when this is dropped.
pub(crate) struct Attempt(Context);

impl Attempt {
    /// Begins the span of a taken task. Its parent is the span of the put, to which it also links.
    pub(crate) fn begin(task: &Task) -> Self {
        let put = context::get(&task.headers);
        let mut builder = builder("process", "process", &task.queue).with_kind(SpanKind::Consumer);
        if let Some(attributes) = &mut builder.attributes {
            attributes.push(id(&task.id));
            let attempt = i64::try_from(task.attempts).unwrap_or(i64::MAX);
            attributes.push(KeyValue::new("messaging.pinpriq.attempt", attempt));
            if let Some(member) = &task.member {
                let name = "messaging.destination.subscription.name";
                attributes.push(KeyValue::new(name, member.to_string()));
            }
        }
        let mut parent = Context::new();
        if let Some(put) = put {
            parent = parent.with_remote_span_context(put.clone());
            builder = builder.with_links(vec![Link::with_context(put)]);
        }
        let span = tracer().build_with_context(builder, &parent);
        Self(Context::new().with_span(span))
    }

    /// Makes it the current span of a function while that runs.
    pub(crate) fn run<F: Future>(&self, function: F) -> WithContext<F> {
        function.with_context(self.0.clone())
    }

    /// Says that the task was cancelled.
    pub(crate) fn note_cancelled(&self) {
        self.0.span().set_attribute(KeyValue::new("pinpriq.cancelled", true));
    }

    /// Says that the task has failed, and what has become of it.
    pub(crate) fn fail(&self, reason: &str, state: Option<State>) {
        let span = self.0.span();
        span.set_attribute(KeyValue::new("error.type", "failure"));
        span.set_status(Status::error(reason.to_owned()));
        if let Some(state @ (State::Gone | State::Buried)) = state {
            let reason: String = reason.chars().take(REASON_LETTERS_MAX).collect();
            let state = KeyValue::new("pinpriq.state", state.letter().to_string());
            let reason = KeyValue::new("pinpriq.reason", reason);
            span.add_event("pinpriq.dead_letter", vec![state, reason]);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        // A function may still hold the context.
        self.0.span().end();
    }
}

/// Notes in the current span that dead letters of this queue went back.
pub(crate) fn note_redrive(queue: &Name, count: u64) {
    let context = Context::current();
    let queue = KeyValue::new("messaging.destination.name", queue.to_string());
    let count = KeyValue::new("pinpriq.count", i64::try_from(count).unwrap_or(i64::MAX));
    context.span().add_event("pinpriq.redrive", vec![queue, count]);
}
