//! A priority queue with two ends: push, pop_min, pop_max, peek_min, peek_max.

use pinpriq_examples::{Task, connect, payloads};
use redis::{Connection, RedisResult, cmd};

const QUEUE: &str = "both-ends";

fn push(pinpriq: &mut Connection, value: &str, priority: i64) -> RedisResult<()> {
    cmd("PUT").arg(QUEUE).arg(value).arg("PRIORITY").arg(priority).exec(pinpriq)
}

fn pop(pinpriq: &mut Connection, end: &str) -> RedisResult<Option<String>> {
    let tasks: Vec<Task> = cmd("POP").arg(QUEUE).arg("FROM").arg(end).query(pinpriq)?;
    Ok(payloads(tasks).pop())
}

fn peek(pinpriq: &mut Connection, end: &str) -> RedisResult<Option<String>> {
    let tasks: Vec<Task> = cmd("PEEK").arg(QUEUE).arg("FROM").arg(end).query(pinpriq)?;
    Ok(payloads(tasks).pop())
}

fn main() -> RedisResult<()> {
    let mut pinpriq = connect()?;
    for value in ["a1", "a2", "a3", "a4"] {
        push(&mut pinpriq, value, 1)?;
    }
    for (value, priority) in [("c", 2), ("e", 3), ("d", 4), ("b", 5)] {
        push(&mut pinpriq, value, priority)?;
    }
    assert_eq!(peek(&mut pinpriq, "MIN")?.as_deref(), Some("a1"));
    assert_eq!(peek(&mut pinpriq, "MAX")?.as_deref(), Some("b"));
    // From the top the highest number comes first, and within it the newest.
    for value in ["b", "d", "e", "c", "a4", "a3"] {
        assert_eq!(pop(&mut pinpriq, "MAX")?.as_deref(), Some(value));
    }
    // From the bottom the lowest number comes first, and within it the oldest.
    for value in [Some("a1"), Some("a2"), None] {
        assert_eq!(pop(&mut pinpriq, "MIN")?.as_deref(), value);
    }
    println!("both_ends: ok");
    Ok(())
}
