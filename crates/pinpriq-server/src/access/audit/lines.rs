//! The lines of the audit: what is repeated is counted, and nothing that a client has sent can
//! break a line.

use std::collections::HashMap;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Event, What};
use crate::plain::plain;

/// For how long an event that comes again is only counted.
const WINDOW_MS: u64 = 1_000;

/// How many different events are remembered. With more, all that were repeated are written.
const KNOWN_MAX: usize = 10_000;

/// Which events are the same: the event, the user, the queue, the command and the address.
type Key = (What, Option<String>, Option<Vec<u8>>, Option<String>, Option<IpAddr>);

/// What was repeated since its last line.
struct Repeated {
    since_ms: u64,
    /// The latest of them, if there is any, with all together.
    latest: Option<(Event, u64)>,
    repeats: u64,
}

/// The events of the last second.
#[derive(Default)]
pub(super) struct Lines {
    known: HashMap<Key, Repeated>,
}

impl Lines {
    /// Returns the lines that an event leads to: its own, or none if it was written within the last
    /// second.
    pub(super) fn add(&mut self, event: Event, at_ms: u64) -> String {
        let mut lines = String::new();
        if self.known.len() >= KNOWN_MAX {
            lines = self.due(u64::MAX);
        }
        let key = key_of(&event);
        if let Some(known) = self.known.get_mut(&key)
            && at_ms < known.since_ms.saturating_add(WINDOW_MS)
        {
            known.repeats += 1;
            let before = known.latest.take().and_then(|(former, _)| former.count);
            let count = match (before, event.count) {
                (Some(before), Some(more)) => Some(before + more),
                (before, more) => before.or(more),
            };
            known.latest = Some((Event { count, ..event }, at_ms));
            return lines;
        }
        lines += &self.due_of(&key);
        lines += &line(&event, at_ms, 0);
        self.known.insert(key, Repeated { since_ms: at_ms, latest: None, repeats: 0 });
        lines
    }

    /// Returns the lines of what was repeated and is due by now, and forgets what is over.
    pub(super) fn due(&mut self, now_ms: u64) -> String {
        let mut lines = String::new();
        self.known.retain(|_, known| {
            if now_ms < known.since_ms.saturating_add(WINDOW_MS) {
                return true;
            }
            match known.latest.take() {
                None => false,
                Some((event, at_ms)) => {
                    lines += &line(&event, at_ms, known.repeats);
                    known.since_ms = at_ms;
                    known.repeats = 0;
                    // What comes again soon is counted again.
                    now_ms < at_ms.saturating_add(WINDOW_MS)
                }
            }
        });
        lines
    }

    fn due_of(&mut self, key: &Key) -> String {
        let Some(known) = self.known.remove(key) else { return String::new() };
        known.latest.map_or_else(String::new, |(event, at_ms)| line(&event, at_ms, known.repeats))
    }
}

fn key_of(event: &Event) -> Key {
    let from = event.from.map(|from| from.ip());
    (event.what, event.user.clone(), event.name.clone(), event.command.clone(), from)
}

/// Returns the line of an event. JSON has no line breaks that were not written on purpose.
fn line(event: &Event, at_ms: u64, repeats: u64) -> String {
    let (name, name_base64) = match event.name.as_deref().map(|it| (it, str::from_utf8(it))) {
        Some((_, Ok(text))) => (Some(text), None),
        Some((bytes, Err(_))) => (None, Some(STANDARD.encode(bytes))),
        None => (None, None),
    };
    let fields = [
        ("at", Some(at_ms.into())),
        ("event", Some(word(event.what).into())),
        ("user", event.user.as_deref().map(Value::from)),
        ("from", event.from.map(|from| from.to_string().into())),
        ("door", event.door.map(Value::from)),
        ("command", event.command.as_deref().map(Value::from)),
        ("name", name.map(Value::from)),
        ("name_base64", name_base64.map(Value::from)),
        ("name_bytes", event.name_bytes.map(Value::from)),
        ("count", event.count.map(Value::from)),
        ("detail", event.detail.as_deref().map(Value::from)),
        ("repeats", (repeats > 0).then(|| repeats.into())),
    ];
    let known = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let line = Value::Object(known.collect());
    format!("{}\n", plain(&line.to_string()))
}

const fn word(what: What) -> &'static str {
    match what {
        What::SignedIn => "signed_in",
        What::SignInFailed => "sign_in_failed",
        What::Denied => "denied",
        What::Command => "command",
        What::UserChanged => "user_changed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(user: &str, port: u16) -> Event {
        Event {
            user: Some(user.to_owned()),
            from: Some(([127, 0, 0, 1], port).into()),
            command: Some("PUT".to_owned()),
            name: Some(b"q".to_vec()),
            ..Event::new(What::Denied)
        }
    }

    #[test]
    fn what_is_repeated_within_a_second_is_one_line() {
        let mut lines = Lines::default();
        assert!(lines.add(denied("ana", 1), 1_000).contains(r#""at":1000,"#));
        for at_ms in [1_100, 1_200, 1_300] {
            assert_eq!(lines.add(denied("ana", 2), at_ms), "");
        }
        assert_ne!(lines.add(denied("ben", 1), 1_300), "", "another user");
        assert_eq!(lines.due(1_999), "");
        let due = lines.due(2_000);
        assert_eq!(due.lines().count(), 1);
        assert!(due.contains(r#""repeats":3"#) && due.contains(r#""at":1300"#), "{due}");
        assert_eq!(lines.due(u64::MAX), "");
        assert!(lines.known.is_empty());
    }

    #[test]
    fn what_comes_later_is_a_line_of_its_own_after_what_was_counted() {
        let mut lines = Lines::default();
        lines.add(denied("ana", 1), 0);
        lines.add(denied("ana", 1), 500);
        let later = lines.add(denied("ana", 1), 1_500);
        assert_eq!(later.lines().count(), 2);
        assert!(later.lines().next().unwrap().contains(r#""repeats":1"#), "{later}");
    }

    #[test]
    fn counts_of_what_is_repeated_are_added_up() {
        let mut lines = Lines::default();
        let killed = |count| Event { count: Some(count), ..Event::new(What::Command) };
        lines.add(killed(1), 0);
        lines.add(killed(2), 1);
        lines.add(killed(3), 2);
        assert!(lines.due(5_000).contains(r#""count":5"#));
    }

    #[test]
    fn a_long_name_is_shown_in_part_and_its_length_is_told() {
        let mut lines = Lines::default();
        let long = "ä".repeat(32_000).into_bytes();
        for (name, key) in [(long, "name"), (vec![0xff; 65_535], "name_base64")] {
            let length = name.len() as u64;
            let event = Event { name: Some(name), ..denied("ana", 1) }.shortened();
            let line = lines.add(event, 1);
            assert!(line.len() < 1_000, "{} bytes", line.len());
            let read: Value = serde_json::from_str(line.trim_end()).unwrap();
            assert_eq!(read["name_bytes"], Value::from(length));
            assert!(read[key].as_str().unwrap().len() > 200, "{line}");
        }
    }

    #[test]
    fn no_name_takes_over_a_terminal() {
        let mut lines = Lines::default();
        let name = "a\u{9b}31m\u{202e}b\u{2066}\u{7f}".as_bytes().to_vec();
        let line = lines.add(Event { name: Some(name.clone()), ..denied("ana", 1) }, 1);
        assert!(line.contains(r"a\u009b31m\u202eb\u2066\u007f"), "{line}");
        let read: Value = serde_json::from_str(line.trim_end()).unwrap();
        assert_eq!(read["name"].as_str().unwrap().as_bytes(), name);
    }

    #[test]
    fn nothing_breaks_a_line() {
        let mut lines = Lines::default();
        let names: [&[u8]; 4] =
            [b"a\nb", b"\"}\n{\"event\":\"forged\"", b"\xff\n", "\u{2028}".as_bytes()];
        for (at, name) in names.into_iter().enumerate() {
            let event = Event { name: Some(name.to_vec()), ..denied("ana", 1) };
            let line = lines.add(event, at as u64);
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            let read: Value = serde_json::from_str(line.trim_end()).unwrap();
            let told = match (&read["name"], &read["name_base64"]) {
                (Value::String(text), _) => text.clone().into_bytes(),
                (_, Value::String(text)) => STANDARD.decode(text).unwrap(),
                _ => panic!("{line}"),
            };
            assert_eq!((told.as_slice(), &read["event"]), (name, &Value::from("denied")));
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut lines = Lines::default();
        for number in 0..30_000 {
            lines.add(denied(&number.to_string(), 1), 5);
        }
        assert!(lines.known.len() <= KNOWN_MAX);
    }
}
