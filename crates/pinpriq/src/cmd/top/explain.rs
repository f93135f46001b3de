//! The answer of `EXPLAIN` in plain words.
//!
//! It adds no knowledge to what the server says. A code that is not known here is shown as it is.

use pinpriq_proto::wire::resp::Value;

use super::figures::{STATES, in_words, number};
use crate::units::brief;

/// Returns sentences that say why a queue or a task stands still. `now_ms` is the time of the
/// server.
pub(super) fn sentences(answer: &Value, now_ms: i64) -> Vec<String> {
    let mut sentences = vec![head(answer, now_ms)];
    let reasons = answer.field("reasons").and_then(Value::elements).unwrap_or_default();
    let has_task = answer.field("id").is_some_and(|id| *id != Value::Null);
    sentences.extend(reasons.iter().map(|reason| sentence(reason, has_task, now_ms)));
    if reasons.is_empty() {
        sentences.push(if has_task {
            "It is finished and only kept.".to_owned()
        } else {
            "There is no task in it that could be handed out some time.".to_owned()
        });
    }
    sentences
}

fn head(answer: &Value, now_ms: i64) -> String {
    let Some(id) = answer.field("id").filter(|id| **id != Value::Null) else {
        return "No task of this queue can be handed out now.".to_owned();
    };
    let letter = answer.field("state").and_then(Value::as_bytes).unwrap_or_default();
    let state = STATES.iter().find(|(known, _)| known.as_bytes() == letter);
    let state = state.map_or("in an unknown state", |(_, state)| state);
    match moment(answer, "since") {
        Some(since) => format!("Task {} is {state}, {}.", in_words(id), ago(since, now_ms)),
        None => format!("Task {} is {state}, since before the server started.", in_words(id)),
    }
}

fn sentence(reason: &Value, has_task: bool, now_ms: i64) -> String {
    let code = reason.field("code").and_then(Value::as_bytes).unwrap_or_default();
    let until = |name: &str| moment(reason, name).map(|at| ahead(at, now_ms));
    // Without a task, the reasons are about those that there are.
    let it = if has_task { "It" } else { "A task" };
    match code {
        b"delayed" => {
            format!("{it} waits for the end of its delay{}.", until("until").unwrap_or_default())
        }
        b"taken" => taken(reason, it, now_ms),
        b"buried" => match reason.field("reason") {
            Some(why @ Value::Bulk(_)) => format!("{it} was buried: {}.", in_words(why)),
            _ => format!("{it} was buried, and no reason was given."),
        },
        b"expired" => {
            format!("{it} has outlived its TTL, and leaves as soon as it would be ready.")
        }
        b"paused" => "The queue is paused for takes.".to_owned(),
        b"limit" => {
            let (taken, most) = (number(reason, "taken"), number(reason, "n"));
            format!("{taken} tasks are taken, and LIMIT allows {most} at once.")
        }
        b"rate" => {
            let next = until("next_at").unwrap_or_default();
            format!("RATE holds it back. The next task may go{next}.")
        }
        b"no-priority" => format!("{it} has no priority, so it leaves only with its group."),
        b"behind" => match number(reason, "at_least") {
            1 => "One task comes first.".to_owned(),
            10_000.. => "At least 10000 tasks come first.".to_owned(),
            count => format!("{count} tasks come first."),
        },
        b"no-consumer" => "No worker waits for a task of this queue.".to_owned(),
        b"next" => "It is the next to leave.".to_owned(),
        other => format!("The server says: {}.", super::figures::plain(other)),
    }
}

fn taken(reason: &Value, it: &str, now_ms: i64) -> String {
    let holder = match reason.field("client").and_then(Value::integer) {
        Some(client) => format!("client {client}"),
        None => "an unknown client".to_owned(),
    };
    let since = moment(reason, "since").map(|since| format!(", taken {}", ago(since, now_ms)));
    let end = moment(reason, "until").map(|until| ahead(until, now_ms));
    let end = end.unwrap_or_else(|| " with its connection".to_owned());
    format!("{it} is held by {holder}{}; the lease ends{end}.", since.unwrap_or_default())
}

fn moment(map: &Value, name: &str) -> Option<i64> {
    map.field(name).and_then(Value::integer)
}

/// How long ago a moment is.
pub(super) fn ago(ms: i64, now_ms: i64) -> String {
    let span = now_ms.saturating_sub(ms);
    // The figures of the screen are a little older than what was asked for last.
    format!("{} ago", brief(u64::try_from(span).unwrap_or_default()))
}

/// How far ahead a moment is, with a space before it.
pub(super) fn ahead(ms: i64, now_ms: i64) -> String {
    match u64::try_from(ms.saturating_sub(now_ms)) {
        Ok(span) if span > 0 => format!(" in {}", brief(span)),
        _ => " now".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use pinpriq_proto::wire::resp::Value;

    use super::sentences;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    fn reason(code: &str, members: &[(&str, Value)]) -> Value {
        let mut pairs = vec![(bulk("code"), bulk(code))];
        pairs.extend(members.iter().map(|(name, value)| (bulk(name), value.clone())));
        Value::Map(pairs)
    }

    fn answer(id: Value, state: &str, since: Value, reasons: Vec<Value>) -> Value {
        Value::Map(vec![
            (bulk("id"), id),
            (bulk("state"), bulk(state)),
            (bulk("since"), since),
            (bulk("reasons"), Value::Array(reasons)),
        ])
    }

    #[test]
    fn every_reason_has_its_sentence() {
        let at = Value::Integer;
        let reasons = vec![
            reason("delayed", &[("until", at(130_000))]),
            reason("taken", &[("client", at(8)), ("since", at(90_000)), ("until", at(99_000))]),
            reason("taken", &[("client", Value::Null), ("since", Value::Null)]),
            reason("buried", &[("reason", bulk("no \x1b[2J such user"))]),
            reason("buried", &[("reason", Value::Null)]),
            reason("expired", &[]),
            reason("paused", &[]),
            reason("limit", &[("taken", at(2)), ("n", at(2))]),
            reason("rate", &[("next_at", at(100_500))]),
            reason("no-priority", &[]),
            reason("behind", &[("at_least", at(1))]),
            reason("behind", &[("at_least", at(10_000))]),
            reason("no-consumer", &[]),
            reason("next", &[]),
            reason("moon-phase", &[]),
        ];
        let told = sentences(&answer(bulk("7"), "R", at(40_000), reasons), 100_000).join("\n");
        expect![[r"
            Task 7 is ready, 1m ago.
            It waits for the end of its delay in 30s.
            It is held by client 8, taken 10s ago; the lease ends now.
            It is held by an unknown client; the lease ends with its connection.
            It was buried: no \u{1b}[2J such user.
            It was buried, and no reason was given.
            It has outlived its TTL, and leaves as soon as it would be ready.
            The queue is paused for takes.
            2 tasks are taken, and LIMIT allows 2 at once.
            RATE holds it back. The next task may go in 500ms.
            It has no priority, so it leaves only with its group.
            One task comes first.
            At least 10000 tasks come first.
            No worker waits for a task of this queue.
            It is the next to leave.
            The server says: moon-phase."]]
        .assert_eq(&told);
    }

    #[test]
    fn a_queue_without_a_next_task_says_so() {
        let empty = answer(Value::Null, "", Value::Null, Vec::new());
        expect![[r"
            No task of this queue can be handed out now.
            There is no task in it that could be handed out some time."]]
        .assert_eq(&sentences(&empty, 0).join("\n"));
    }
}
