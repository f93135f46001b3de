//! Records come back from their JSON, and nothing else is taken for one.

use std::sync::Arc;

use pinpriq_proto::schedule::{Course, OnMissed, Overlap, Plan, Scheduled};
use pinpriq_proto::settings::{CAPACITY, Pause, Paused, RATE, Rate, Value};
use pinpriq_proto::shares::ShareRules;
use pinpriq_proto::task::{Bytes, Counts, Origin, Past, Progress, State, Terms, Trace};
use pinpriq_testing::Dice;

use super::*;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_ms(ms)
}

fn bytes(bytes: &[u8]) -> Bytes {
    Arc::from(bytes)
}

fn full_task() -> TaskRecord {
    let origin = Origin {
        queue: bytes(b"old"),
        id: TaskId::Uuid([7; 16]),
        put_at: at(1),
        attempts: 2,
        failures: 3,
        at: at(4),
    };
    let scheduled = Scheduled { schedule: bytes(b"\xff"), slot: Some(at(5)) };
    TaskRecord {
        number: 0,
        queue: bytes(b"jobs"),
        lane: None,
        id: TaskId::Given(bytes(b"\"mine\"")),
        put_at: at(6),
        terms: Terms::of(Some(bytes(b"k\n")), Some(Span::from_ms(8))),
        progress: Progress {
            priority: None,
            seq: 0,
            expires_at: Some(at(9)),
            attempts: u32::MAX,
            failures: 1,
            reason: Some(bytes("zu spät".as_bytes())),
            trace: Trace::of(
                Span::from_ms(300),
                Counts { timeouts: 1, releases: 2, buries: 3, kicks: u32::MAX },
            ),
            state: State::Zombie { purge_at: at(10) },
        },
        past: Past::of(Some(origin), Some(scheduled), Some(bytes(b"u"))),
        payload: bytes(b"\x00\xfe"),
        away: None,
        shared: false,
    }
}

fn full_schedule() -> ScheduleRecord {
    let plan = Plan {
        queue: bytes(b"jobs"),
        payload: bytes(b"p"),
        terms: Terms::of(Some(bytes(b"k")), Some(Span::from_ms(8))),
        priority: Some(i64::MIN),
        ttl: Some(Span::from_ms(7)),
        form: Recurrence::Cron {
            expression: bytes(b"@daily"),
            zone: Some(bytes(b"Europe/Berlin")),
        },
        on_missed: OnMissed::All,
        overlap: Overlap::Skip,
    };
    let course = Course {
        done_until: at(1_000),
        paused: true,
        fired: 300,
        missed: 2,
        last_id: Some(TaskId::Number(5)),
        last_slot: Some(at(4)),
        last_number: 0,
    };
    ScheduleRecord { number: 0, name: bytes(b"nightly"), plan, course }
}

fn read(text: &str) -> Result<Record, String> {
    record(text.as_bytes(), b"jobs", None)
}

#[test]
fn records_come_back_from_their_json() {
    let task = full_task();
    let text = self::task(&task, Some(at(11)));
    assert_eq!(
        text,
        "{\"type\":\"task\",\"queue\":\"jobs\",\"id\":\"\\\"mine\\\"\",\"state\":\"zombie\",\
         \"purge_at\":10,\"put_at\":6,\"expires_at\":9,\"priority\":null,\"key\":\"k\\n\",\
         \"ttr_ms\":8,\"attempts\":4294967295,\"failures\":1,\"reason\":\"zu spät\",\
         \"delay_ms\":300,\"timeouts\":1,\"releases\":2,\"buries\":3,\"kicks\":4294967295,\
         \"origin_queue\":\"old\",\"origin_id\":\"07070707-0707-0707-0707-070707070707\",\
         \"origin_put_at\":1,\"origin_attempts\":2,\"origin_failures\":3,\"origin_at\":4,\
         \"schedule_base64\":\"/w==\",\"slot\":5,\"unique\":\"u\",\"unique_until\":11,\
         \"payload_base64\":\"AP4=\"}"
    );
    assert_eq!(read(&text), Ok(Record::Task(Box::new(task), Some(at(11)))));

    let schedule = full_schedule();
    let text = self::schedule(&schedule);
    assert_eq!(read(&text), Ok(Record::Schedule(Box::new(schedule))));

    let id = TaskId::Given(bytes(b"007"));
    let (queue, key) = (bytes(b"jobs"), bytes(b"k"));
    let window = WindowRecord { number: 0, queue, key, id, until: at(5) };
    assert_eq!(read(&self::window(&window)), Ok(Record::Window(window)));

    let rate = Own::Is(Some(Rate { count: 5, per: Span::from_ms(1_000) }));
    let rules = ShareRules { weight: 3, limit: Own::Is(None), rate };
    let share = ShareRecord { number: 0, queue: bytes(b"jobs"), share: bytes(b""), rules };
    let text = self::share(&share);
    assert_eq!(
        text,
        "{\"type\":\"share\",\"queue\":\"jobs\",\"share\":\"\",\"weight\":3,\"limit\":null,\
         \"rate\":\"5/1000\"}"
    );
    assert_eq!(read(&text), Ok(Record::Share(share)));
}

#[test]
fn settings_are_words_and_numbers() {
    let rate = Rate { count: 5, per: Span::from_ms(1_000) };
    let changes = [(CAPACITY, Value::Number(3)), (RATE, Value::Rate(rate))];
    let settings = Some(Settings::default().with(&changes).unwrap());
    let paused = Paused::endlessly(true, false);
    let text = queue(&QueueExported { name: bytes(b"jobs"), settings, paused });
    assert_eq!(
        text,
        "{\"type\":\"queue\",\"queue\":\"jobs\",\"settings\":{\"capacity\":3,\
         \"rate\":\"5/1000\"},\"paused\":\"in\"}"
    );
    let words = |words: [&str; 2]| words.map(|word| word.as_bytes().to_vec());
    let settings = vec![words(["capacity", "3"]), words(["rate", "5/1000"])];
    assert_eq!(read(&text), Ok(Record::Queue(Some(settings), paused)));
    let paused = Paused { input: Pause::Until(at(7)), output: Pause::Endless };
    let text = queue(&QueueExported { name: bytes(b"jobs"), settings: None, paused });
    let shown = "{\"type\":\"queue\",\"queue\":\"jobs\",\"paused\":\"both\",\"paused_in_until\":7}";
    assert_eq!(text, shown);
    assert_eq!(read(&text), Ok(Record::Queue(None, paused)));
    let kept = "{\"type\":\"queue\"}";
    assert_eq!(read(kept), Ok(Record::Queue(None, Paused::default())));
}

#[test]
fn a_payload_may_come_beside_the_record() {
    let text = br#"{"type":"task"}"#;
    let Ok(Record::Task(task, None)) = record(text, b"q", Some(b"\xff")) else { panic!("no task") };
    assert_eq!((&*task.queue, &*task.payload), (&b"q"[..], &b"\xff"[..]));
    let both = record(br#"{"type":"task","payload":"p"}"#, b"q", Some(b"p"));
    assert!(both.is_err());
}

#[test]
fn what_is_wrong_is_said() {
    for (text, sentence) in [
        ("", "it is no JSON: EOF while parsing a value at line 1 column 0"),
        ("[]", "it is no object"),
        ("{}", "it has no type"),
        (r#"{"type":"lane"}"#, "there is no type 'lane'"),
        (r#"{"type":"task"}"#, "it has no 'payload'"),
        (r#"{"type":"task","payload":1}"#, "'payload' is a string"),
        (r#"{"type":"task","payload_base64":"x"}"#, "'payload_base64' is no Base64"),
        (r#"{"type":"task","payload_base64":"Zh=="}"#, "'payload_base64' is no Base64"),
        (r#"{"type":"task","payload_base64":"Zg"}"#, "'payload_base64' is no Base64"),
        (r#"{"type":"task","payload":"","x":1}"#, "a task has no field 'x'"),
        (
            r#"{"type":"task","payload":"","state":"gone"}"#,
            "'state' is one of ready, taken, waiting, buried, zombie, done",
        ),
        (
            r#"{"type":"task","payload":"","state":"waiting"}"#,
            "a waiting task has 'ready_at', or it is 'parked', or it has 'after'",
        ),
        (r#"{"type":"task","payload":"","purge_at":1}"#, "a ready task has no 'purge_at'"),
        (
            r#"{"type":"task","payload":"","attempts":4294967296}"#,
            "'attempts' is a number from 0 to 2^32 - 1",
        ),
        (
            r#"{"type":"task","payload":"","priority":1.5}"#,
            "'priority' is null or a number from -2^63 to 2^63 - 1",
        ),
        (
            r#"{"type":"task","payload":"","put_at":253402300800000}"#,
            "'put_at' is after the year 9999",
        ),
        (r#"{"type":"task","payload":"","unique_until":1}"#, "'unique_until' goes with 'unique'"),
        (r#"{"type":"task","payload":"","origin_queue":"q"}"#, "it has no 'origin_id'"),
        (r#"{"type":"queue","settings":{"ttl":true}}"#, "the setting 'ttl' has no such value"),
        (
            r#"{"type":"queue","paused":"out","paused_in_until":7}"#,
            "it has 'paused_in_until', and that side is not paused",
        ),
        (r#"{"type":"queue","paused":"no"}"#, "'paused' is one of none, in, out, both"),
        (r#"{"type":"window","unique":"u","id":"1"}"#, "it has no 'unique_until'"),
        (
            r#"{"type":"schedule","payload":"","schedule":"s","every_ms":100}"#,
            "a schedule has 'every_ms' and 'at', or 'cron' and perhaps 'zone'",
        ),
    ] {
        assert_eq!(read(text), Err(sentence.to_owned()), "{text}");
    }
}

/// Whatever is changed about a record, it is read or refused, and what is read is written again.
#[test]
fn any_bytes_are_a_record_or_refused() {
    let records = [
        task(&full_task(), Some(at(11))),
        schedule(&full_schedule()),
        r#"{"type":"queue","settings":{"ttl":5},"paused":"in"}"#.to_owned(),
        r#"{"type":"window","unique":"u","id":"1","unique_until":5}"#.to_owned(),
    ];
    let mut read = 0;
    for seed in 0..20_000 {
        let mut dice = Dice::new(seed);
        let mut text = records[usize::try_from(dice.below(4)).unwrap()].clone().into_bytes();
        for _ in 0..dice.below(4) {
            let place = usize::try_from(dice.below(text.len() as u64)).unwrap();
            match dice.below(3) {
                _ if text.len() < 2 => {}
                0 => text[place] = u8::try_from(dice.below(256)).unwrap(),
                1 => drop(text.remove(place)),
                _ => text.truncate(place.max(1)),
            }
        }
        let Ok(known) = record(&text, b"jobs", None) else { continue };
        read += 1;
        if let Record::Task(one, until) = &known {
            let again = record(task(one, *until).as_bytes(), b"jobs", None);
            assert_eq!(again, Ok(known), "seed {seed}");
        }
    }
    assert!(read > 1_000, "only {read} of them were records");
}

#[test]
fn control_characters_do_not_blow_a_record_up() {
    let mut task = full_task();
    for (byte, is_text) in [(b'"', true), (b'\n', true), (b'\x04', false), (b'\xff', false)] {
        task.payload = Arc::from(vec![byte; 3_000]);
        let text = super::task(&task, None);
        assert!(text.len() < 2 * task.payload.len() + 1_000, "{} bytes of {byte}", text.len());
        assert_eq!(text.contains("\"payload\":"), is_text, "{byte}");
        assert_eq!(text.contains("\"payload_base64\":"), !is_text, "{byte}");
    }
}
