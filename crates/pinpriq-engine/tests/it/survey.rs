//! Surveys of many queues and lanes, and the news of queues.

use pinpriq_engine::Engine;
use pinpriq_proto::change::Header;
use pinpriq_proto::command::{Command, Put, QueueCommand, QueueName, Sides};
use pinpriq_proto::fanout::MemberCommand;
use pinpriq_proto::limits::Limits;
use pinpriq_proto::survey::{QueueChange, Surveyed};
use pinpriq_proto::task::{ClientId, RequestId};
use pinpriq_proto::time::{Span, Timestamp};

const A: QueueName<'_> = QueueName { name: b"a", member: None };
const NOW: Timestamp = Timestamp::from_ms(1_000);

fn started() -> Engine {
    let mut engine = Engine::new(Limits::default(), 5);
    engine.start(NOW, 1, Header::default());
    engine
}

fn ask(engine: &mut Engine, command: Command<'_>) {
    engine.apply(NOW, ClientId(1), RequestId(7), &command);
    while engine.poll_output().is_some() {}
}

fn put(engine: &mut Engine, queue: &[u8]) {
    ask(engine, Command::Put(Put::new(queue, b"x")));
}

fn administer(engine: &mut Engine, command: QueueCommand<'_>) {
    ask(engine, Command::Queue(command));
}

/// Surveys all queues and lanes, so many on a page.
fn survey(engine: &Engine, count: usize) -> Vec<Surveyed> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = engine.surveyed(after.as_ref(), count);
        assert!(page.names.len() <= count);
        all.extend(page.names);
        let Some(next) = page.next else { return all };
        after = Some(next);
    }
}

#[test]
fn a_survey_finds_every_queue_and_lane_once() {
    let mut engine = started();
    for queue in ["b", "a", "c", "gone"] {
        put(&mut engine, queue.as_bytes());
    }
    administer(&mut engine, QueueCommand::Drop(b"gone"));
    for member in [&b"m1"[..], b"m2"] {
        join(&mut engine, member);
    }
    let whole = survey(&engine, 100);
    let names: Vec<_> = whole
        .iter()
        .map(|it| (&*it.queue, it.lane.as_ref().map(|(_, member)| &**member)))
        .collect();
    let expected = [
        (&b"a"[..], None),
        (b"b", None),
        (b"c", None),
        (b"news", Some(&b"m1"[..])),
        (b"news", Some(b"m2")),
    ];
    assert_eq!(names, expected);
    for count in 1..7 {
        assert_eq!(survey(&engine, count), whole, "{count} on a page");
    }
}

#[test]
fn figures_are_those_of_the_moment_of_the_look() {
    let mut engine = started();
    put(&mut engine, b"a");
    let a = Surveyed { lane: None, queue: A.name.into() };
    let later = NOW.after(Span::from_ms(1_500));
    let figures = engine.figures_of(later, &a).expect("it exists");
    assert_eq!(figures.oldest_ready, Some(Span::from_ms(1_500)));
    assert_eq!(figures.counters.put, 1);
    administer(&mut engine, QueueCommand::Drop(b"a"));
    assert_eq!(engine.figures_of(later, &a), None);
    assert_eq!(engine.total_figures().counters.put, 1);
}

#[test]
fn news_are_kept_for_those_who_ask_and_are_bounded() {
    let mut engine = started();
    put(&mut engine, b"before");
    assert_eq!(engine.take_queue_news(), (Vec::new(), false));
    engine.keep_queue_news(5);
    put(&mut engine, b"a");
    put(&mut engine, b"a");
    administer(&mut engine, QueueCommand::Pause { queue: A, sides: Sides::Both, length: None });
    administer(&mut engine, QueueCommand::Resume { queue: A, sides: Sides::Input });
    administer(&mut engine, QueueCommand::Set { queue: A, settings: &[] });
    administer(&mut engine, QueueCommand::Drop(b"a"));
    let (news, were_lost) = engine.take_queue_news();
    let what: Vec<_> = news.iter().map(|it| (&*it.queue, it.what)).collect();
    let expected = [
        QueueChange::Came,
        QueueChange::Paused,
        QueueChange::Resumed,
        QueueChange::Set,
        QueueChange::Went,
    ];
    assert_eq!(what, expected.map(|what| (&b"a"[..], what)));
    assert!(!were_lost);
    join(&mut engine, b"m");
    for queue in 0..7_u8 {
        put(&mut engine, &[queue]);
    }
    let (news, were_lost) = engine.take_queue_news();
    assert!(news.len() == 5 && were_lost, "{news:?}");
    engine.keep_queue_news(0);
    put(&mut engine, b"after");
    assert_eq!(engine.take_queue_news(), (Vec::new(), false));
}

fn join(engine: &mut Engine, member: &[u8]) {
    let ttl = Span::from_ms(60_000);
    let join = MemberCommand::Join { topic: b"news", member, lease: Some(ttl) };
    ask(engine, Command::Member(join));
}
