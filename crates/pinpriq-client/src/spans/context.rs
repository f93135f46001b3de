//! The context of a span in the headers of a task, as the W3C's Trace Context writes it.
//!
//! What does not fit beside the other headers is left out.

use std::collections::BTreeMap;

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use pinpriq_proto::limits::{HEADER_BYTES_MAX, HEADERS_BYTES_MAX, HEADERS_MAX};

use crate::name::Name;
use crate::request::Headers;

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// Adds the context of a span, unless the caller has given one.
pub(super) fn put(headers: &mut Headers, context: &SpanContext) {
    if !context.is_valid() || headers.contains_key(PARENT) {
        return;
    }
    let (trace, span) = (context.trace_id(), context.span_id());
    let flags = context.trace_flags() & TraceFlags::SAMPLED;
    if !add(headers, PARENT, format!("00-{trace}-{span}-{flags:02x}")) {
        return;
    }
    let state = context.trace_state().header();
    if !state.is_empty() && !headers.contains_key(STATE) {
        add(headers, STATE, state);
    }
}

/// Adds a header if there is room for it. Returns whether there was.
fn add(headers: &mut Headers, name: &str, value: String) -> bool {
    let used: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    let fits = headers.len() < HEADERS_MAX
        && value.len() <= HEADER_BYTES_MAX
        && used + name.len() + value.len() <= HEADERS_BYTES_MAX;
    if fits {
        headers.insert(name.to_owned(), value.into_bytes());
    }
    fits
}

/// Returns the context in the headers of a task, if there is one.
pub(super) fn get(headers: &BTreeMap<String, Name>) -> Option<SpanContext> {
    let text = |name| std::str::from_utf8(headers.get(name)?.as_bytes()).ok();
    let mut parts = text(PARENT)?.split('-');
    let mut part = |digits| {
        let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        parts.next().filter(|part| part.len() == digits && part.bytes().all(is_hex))
    };
    let version = part(2)?;
    let trace = TraceId::from_hex(part(32)?).ok()?;
    let span = SpanId::from_hex(part(16)?).ok()?;
    let flags = u8::from_str_radix(part(2)?, 16).ok()?;
    // Later versions may have more parts.
    if version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let state = text(STATE).and_then(|state| state.parse::<TraceState>().ok());
    let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    let context = SpanContext::new(trace, span, flags, true, state.unwrap_or_default());
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    fn received(headers: &[(&str, &str)]) -> BTreeMap<String, Name> {
        headers.iter().map(|(name, value)| ((*name).to_owned(), Name::from(*value))).collect()
    }

    #[test]
    fn a_context_comes_back() {
        let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
        let context = get(&received(&[(PARENT, &parent), (STATE, "a=b,c=d")])).unwrap();
        assert!(context.is_remote() && context.is_sampled());
        let mut headers = Headers::new();
        put(&mut headers, &context);
        assert_eq!(headers[PARENT], parent.as_bytes());
        assert_eq!(headers[STATE], b"a=b,c=d");
        let before = headers.clone();
        put(&mut headers, &SpanContext::empty_context());
        assert_eq!(headers, before);
    }

    #[test]
    fn what_is_malformed_is_no_context() {
        let cases = [
            String::new(),
            "00".to_owned(),
            format!("00-{TRACE}-b7ad6b7169203331"),
            format!("00-{TRACE}-b7ad6b7169203331-01-more"),
            format!("ff-{TRACE}-b7ad6b7169203331-01"),
            format!("00-{}-b7ad6b7169203331-01", TRACE.to_uppercase()),
            format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
            format!("00-{TRACE}-+7ad6b7169203331-01"),
        ];
        for case in cases {
            assert_eq!(get(&received(&[(PARENT, &case)])), None, "{case}");
        }
        let later = format!("01-{TRACE}-b7ad6b7169203331-01-more");
        assert!(get(&received(&[(PARENT, &later), (STATE, "=")])).is_some());
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
        let context = get(&received(&[(PARENT, &parent), (STATE, "a=b")])).unwrap();
        let with = |count: usize, bytes: usize| {
            let mut headers: Headers =
                (0..count).map(|number| (format!("{number:02}"), vec![b'v'; bytes])).collect();
            put(&mut headers, &context);
            headers.len() - count
        };
        assert_eq!(with(14, 1), 2);
        assert_eq!(with(15, 1), 1);
        assert_eq!(with(16, 1), 0);
        assert_eq!(with(4, 1_022), 0);
        assert_eq!(with(4, 1_003), 1);
        let mut own = Headers::from([(PARENT.to_owned(), b"own".to_vec())]);
        put(&mut own, &context);
        assert_eq!(own.len(), 1);
    }
}
