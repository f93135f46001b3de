//! The bytes of exports and imports.

use std::sync::Arc;

use pinpriq_proto::change::ScheduleRecord;
use pinpriq_proto::command::Command;
use pinpriq_proto::export::{Export, ExportPlace, Exported, Import, QueueExported};
use pinpriq_proto::letters::{decode_command, decode_output, encode_command, encode_output};
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::schedule::{Course, Form, OnMissed, Overlap, Plan};
use pinpriq_proto::settings::{CAPACITY, Pause, Paused, Settings, Value};
use pinpriq_proto::task::{Bytes, ClientId, Progress, RequestId, TaskId, TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::WindowRecord;

use super::bytes;

const BOTH: Paused = Paused::endlessly(true, true);
const OUT: Paused = Paused::endlessly(false, true);
const FOR_A_WHILE: Paused =
    Paused { input: Pause::Until(Timestamp::from_ms(5)), output: Pause::Off };

fn text(text: &str) -> Bytes {
    Arc::from(text.as_bytes())
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_ms(ms)
}

fn task() -> TaskRecord {
    TaskRecord {
        number: 129,
        queue: text("jobs"),
        lane: None,
        id: TaskId::Number(129),
        put_at: at(1_000),
        terms: Terms::NONE,
        progress: Progress::fresh(129, Some(0)),
        past: None,
        payload: text("hello"),
        away: None,
        shared: false,
    }
}

fn window() -> WindowRecord {
    let (queue, key, id) = (text("jobs"), text("k"), TaskId::Given(text("x")));
    WindowRecord { number: 7, queue, key, id, until: at(5) }
}

fn schedule() -> ScheduleRecord {
    let form = Form::Every { every: Span::from_ms(300), anchor: at(9) };
    let plan = Plan {
        queue: text("jobs"),
        payload: text("p"),
        terms: Terms::NONE,
        priority: None,
        ttl: None,
        form,
        on_missed: OnMissed::One,
        overlap: Overlap::Allow,
    };
    ScheduleRecord { number: 8, name: text("s"), plan, course: Course::default() }
}

const TASK: &str = r#"04 "jobs" 00 81 01 e8 07 04 00 00 05 "hello""#;
const WINDOW: &str = r#"07 04 "jobs" 01 "k" 02 01 "x" 05"#;
const SCHEDULE: &str = r#"08 01 "s" 04 "jobs" 00 00 00 00 ac 02 09 00 00 01 "p"
    00 00 00 00 00 00 00"#;

#[test]
fn what_is_carried() {
    let (task, window, schedule) = (task(), window(), schedule());
    let export = |after| Command::Export(Export { queue: b"jobs", after, count: 100 });
    let settings = &[(CAPACITY, Value::Number(3))][..];
    let queue = |settings, paused| Import::Queue { queue: b"jobs", settings, paused };
    let lines = [
        (export(ExportPlace::Start), r#"46 04 "jobs" 00 64"#.to_owned()),
        (export(ExportPlace::Task(128)), r#"46 04 "jobs" 01 80 01 64"#.to_owned()),
        (export(ExportPlace::Window(b"k")), r#"46 04 "jobs" 02 01 "k" 64"#.to_owned()),
        (export(ExportPlace::Schedule(7)), r#"46 04 "jobs" 03 07 64"#.to_owned()),
        (Command::Import(queue(None, BOTH)), r#"47 b00001010 04 "jobs""#.to_owned()),
        (Command::Import(queue(None, FOR_A_WHILE)), r#"47 b00000100 04 "jobs" 05"#.to_owned()),
        (
            Command::Import(queue(Some(settings), OUT)),
            r#"47 b00001001 04 "jobs" 01 05 01 03"#.to_owned(),
        ),
        (
            Command::Import(Import::Task { task: &task, until: None }),
            format!("48 b00000000 {TASK}"),
        ),
        (
            Command::Import(Import::Task { task: &task, until: Some(at(5)) }),
            format!("48 b00000001 05 {TASK}"),
        ),
        (Command::Import(Import::Window(&window)), format!("49 {WINDOW}")),
        (Command::Import(Import::Schedule(&schedule)), format!("4a {SCHEDULE}")),
    ];
    for (command, line) in lines {
        let expected = bytes(&line);
        let mut letter = Vec::new();
        encode_command(&command, &mut letter);
        assert_eq!(letter, expected, "{command:?} is {line}, not {letter:02x?}");
        assert_eq!(decode_command(&expected, |decoded| *decoded == command), Ok(true), "{line}");
    }
}

#[test]
fn pages_of_exports() {
    let settings = Settings { capacity: Some(3), ..Settings::default() };
    let queue = QueueExported { name: text("jobs"), settings: Some(settings), paused: OUT };
    let page = Exported {
        queue: Some(Box::new(queue)),
        tasks: vec![task()],
        ends: vec![(129, at(6))],
        windows: vec![window()],
        schedules: vec![schedule()],
        next: Some(ExportPlace::Window(text("k"))),
    };
    let full = format!(
        r#"32 03 04 b00000011 b00001001 04 "jobs" 05 01 03 00 02 01 "k"
           01 81 01 06 01 {WINDOW} 01 {SCHEDULE} 01 {TASK}"#
    );
    let empty = "32 03 04 b00000000 00 00 00 00".to_owned();
    for (page, line) in [(page, full), (Exported::default(), empty)] {
        let reply = Reply::Exported(Box::new(page));
        let output = Output::Reply { client: ClientId(3), request: RequestId(4), reply };
        let expected = bytes(&line);
        let mut letter = Vec::new();
        encode_output(&output, &mut letter);
        assert_eq!(letter, expected, "{output:?} is {line}, not {letter:02x?}");
        assert_eq!(decode_output(&expected), Ok(output), "{line}");
    }
}
