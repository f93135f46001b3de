//! Carries whole queues from one engine to another, and compares what both export.

use pinpriq_engine::Engine;
use pinpriq_proto::change::Header;
use pinpriq_proto::command::{
    Command, Delay, Put, QueueCommand, Selection, Sides, Take, TakeMode, Wait,
};
use pinpriq_proto::export::{Export, ExportPlace, Exported, Import, QueueExported};
use pinpriq_proto::limits::{EXPORTED_BYTES_MAX, LOOKED_MAX, Limits};
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::schedule::{NewSchedule, OnMissed, Overlap, ScheduleCommand, When};
use pinpriq_proto::settings::{AFTERACK, AfterAck, Assignment, IDS, Ids, Settings, TTR, Value};
use pinpriq_proto::task::{ClientId, RequestId, State, TaskId, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{OnDuplicate, Unique};

const QUEUE: &[u8] = b"jobs";
const NOW: Timestamp = Timestamp::from_ms(1_000);

fn started(incarnation: u64) -> Engine {
    let mut engine = Engine::new(Limits::default(), 5);
    engine.start(NOW, incarnation, Header::default());
    engine
}

fn ask(engine: &mut Engine, command: Command<'_>) -> Reply {
    engine.apply(NOW, ClientId(1), RequestId(7), &command);
    engine.check();
    match engine.poll_output() {
        Some(Output::Reply { reply, .. }) => reply,
        other => panic!("no reply but {other:?}"),
    }
}

/// Exports a queue in pages of so many records.
fn export(engine: &mut Engine, count: u32) -> (Exported, usize) {
    let (mut all, mut pages) = (Exported::default(), 0);
    let mut after = ExportPlace::Start;
    loop {
        let page = Export { queue: QUEUE, after: after.borrowed(), count };
        let Reply::Exported(page) = ask(engine, Command::Export(page)) else { panic!("no page") };
        assert!(page.len() <= count as usize);
        pages += 1;
        all.queue = all.queue.or(page.queue);
        all.tasks.extend(page.tasks);
        all.ends.extend(page.ends);
        all.windows.extend(page.windows);
        all.schedules.extend(page.schedules);
        match page.next {
            Some(next) => after = next,
            None => return (all, pages),
        }
    }
}

fn import(engine: &mut Engine, all: &Exported) {
    let mut imports = Vec::new();
    let mut changes: Vec<Assignment<'_>> = Vec::new();
    if let Some(QueueExported { name, settings, paused }) = all.queue.as_deref() {
        changes.extend(settings.iter().flat_map(Settings::changed));
        let settings = settings.is_some().then_some(&*changes);
        imports.push(Import::Queue { queue: name, settings, paused: *paused });
    }
    let tasks = all.tasks.iter().map(|task| Import::Task { task, until: all.end_of(task.number) });
    imports.extend(tasks);
    imports.extend(all.windows.iter().map(Import::Window));
    imports.extend(all.schedules.iter().map(Import::Schedule));
    for record in imports {
        let reply = ask(engine, Command::Import(record));
        assert!(matches!(reply, Reply::Done | Reply::Put(_)), "{reply:?} for {record:?}");
    }
}

/// What must be equal after a queue was carried: all but numbers, seqs, and ids that were drawn.
fn comparable(mut all: Exported) -> Exported {
    let ids = all.queue.as_ref().and_then(|it| it.settings.as_ref()).map(|it| it.ids);
    let ends: Vec<_> = all.tasks.iter().map(|task| all.end_of(task.number)).collect();
    all.ends = (0..).zip(ends.into_iter().flatten()).collect();
    for task in &mut all.tasks {
        (task.number, task.progress.seq) = (0, 0);
        if ids != Some(Ids::Given) {
            task.id = TaskId::Number(0);
        }
        if matches!(task.progress.state, State::Taken(_)) {
            task.progress.state = State::Ready;
        }
    }
    for window in &mut all.windows {
        window.number = 0;
    }
    for schedule in &mut all.schedules {
        schedule.number = 0;
        schedule.course.last_number = 0;
    }
    all
}

fn unique(key: &[u8], ms: u64) -> Unique<'_> {
    let window = Some(Span::from_ms(ms));
    Unique { key, window, on_duplicate: OnDuplicate::Reject }
}

/// Fills a queue with a task in each state, two windows and a schedule.
fn fill(engine: &mut Engine, ids: Ids) {
    let stay = AfterAck::Zombie(Span::from_ms(500));
    let settings: [Assignment<'_>; 3] =
        [(IDS, ids.into()), (AFTERACK, stay.into()), (TTR, Value::Span(Span::from_ms(77)))];
    ask(engine, Command::Queue(QueueCommand::Create { queue: QUEUE, settings: &settings }));
    let id = |id: &'static [u8]| (ids == Ids::Given).then_some(id);
    let plain = Put::new(QUEUE, b"\x00\xff");
    let take = Take {
        queues: &[QUEUE],
        member: None,
        count: 1,
        wait: Wait::No,
        selection: Selection::DEFAULT,
        mode: TakeMode::Pop,
    };
    ask(engine, Command::Put(Put { id: id(b"popped"), unique: Some(unique(b"p", 900)), ..plain }));
    ask(engine, Command::Take(take));
    let terms = Terms::of(Some(b"group".as_slice()), Some(Span::from_ms(9)));
    ask(engine, Command::Put(Put { id: id(b"taken"), terms, ..plain }));
    ask(engine, Command::Take(Take { mode: TakeMode::Lease { ttr: None }, ..take }));
    let waits = Put { id: id(b"waits"), delay: Delay::For(Span::from_ms(100)), ..plain };
    ask(engine, Command::Put(Put { priority: None, unique: Some(unique(b"w", 300)), ..waits }));
    ask(engine, Command::Put(Put { id: id(b"gone"), unique: Some(unique(b"g", 400)), ..plain }));
    let killed = Put { id: id(b"killed"), unique: Some(unique(b"k", 400)), ..plain };
    let Reply::PutUnique(put) = ask(engine, Command::Put(killed)) else { panic!("no task") };
    let gone = put.id.to_string();
    let ids = &[gone.as_bytes()];
    assert_eq!(ask(engine, Command::Kill { queue: QUEUE.into(), ids }), Reply::Count(1));
    let set = ScheduleCommand::Set(NewSchedule {
        name: b"nightly",
        queue: QUEUE,
        payload: b"p",
        terms: Terms::NONE,
        priority: Some(3),
        ttl: None,
        when: When::Every { every: Span::from_ms(100), at: None },
        on_missed: OnMissed::None,
        overlap: Overlap::Skip,
    });
    ask(engine, Command::Schedule(set));
    ask(engine, Command::Schedule(ScheduleCommand::Pause(b"nightly")));
    let pause = QueueCommand::Pause { queue: QUEUE.into(), sides: Sides::Both, length: None };
    ask(engine, Command::Queue(pause));
}

#[test]
fn a_queue_that_was_carried_is_the_same() {
    for ids in [Ids::Sequence, Ids::Time64, Ids::Uuid, Ids::Given] {
        let (mut from, mut to) = (started(1), started(2));
        fill(&mut from, ids);
        let (all, pages) = export(&mut from, LOOKED_MAX);
        assert_eq!((all.tasks.len(), all.windows.len(), all.schedules.len()), (4, 1, 1));
        assert_eq!((all.ends.len(), pages), (3, 1));
        import(&mut to, &all);
        let (again, _) = export(&mut to, LOOKED_MAX);
        assert_eq!(comparable(again), comparable(all.clone()), "with ids {ids:?}");
        assert_eq!(to.totals().put, 3, "what was kept after its acknowledgement is no put");
        for count in 1..6 {
            assert_eq!(export(&mut from, count).0, all, "in pages of {count}");
        }
    }
}

#[test]
fn a_page_ends_after_many_bytes() {
    let mut engine = started(1);
    let payload = vec![b'x'; EXPORTED_BYTES_MAX / 3 + 1];
    for _ in 0..7 {
        ask(&mut engine, Command::Put(Put::new(QUEUE, &payload)));
    }
    let (all, pages) = export(&mut engine, LOOKED_MAX);
    assert_eq!((all.tasks.len(), pages), (7, 3));
}

#[test]
fn a_count_of_records_has_bounds() {
    let mut engine = started(1);
    for count in [0, LOOKED_MAX + 1] {
        let export = Export { queue: QUEUE, after: ExportPlace::Start, count };
        let reply = ask(&mut engine, Command::Export(export));
        assert!(matches!(reply, Reply::Refused(_)), "{count}");
    }
}
