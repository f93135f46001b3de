//! Surveys of many queues and lanes, and the news of queues.

use pinpriq_engine::Engine;
use pinpriq_proto::change::Header;
use pinpriq_proto::command::{
    Command, Put, QueueCommand, QueueName, Selection, Sides, Take, TakeMode, Wait,
};
use pinpriq_proto::fanout::MemberCommand;
use pinpriq_proto::limits::Limits;
use pinpriq_proto::named_limits::{LimitChange, LimitCommand, OrNone};
use pinpriq_proto::settings::{RATE, Rate, SHAREMETRICS, Setting, USES, Value};
use pinpriq_proto::shares::{ShareShown, SharesLook};
use pinpriq_proto::survey::{QueueChange, Surveyed};
use pinpriq_proto::task::{COST_USUAL, ClientId, RequestId, Terms};
use pinpriq_proto::time::{Span, Timestamp};

const A: QueueName<'_> = QueueName { name: b"a", member: None };
const NOW: Timestamp = Timestamp::from_ms(1_000);
const TAKE: Take<'_> = Take {
    queues: &[A.name],
    member: None,
    count: 1,
    wait: Wait::No,
    selection: Selection::DEFAULT,
    mode: TakeMode::Lease { ttr: None },
};

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

fn put_for(engine: &mut Engine, share: &[u8], count: usize) {
    for _ in 0..count {
        let terms = Terms::NONE.with(Some(share).filter(|it| !it.is_empty()), COST_USUAL);
        ask(engine, Command::Put(Put { terms, ..Put::new(b"a", b"x") }));
    }
}

fn set(engine: &mut Engine, setting: &'static Setting, value: Value<'_>) {
    administer(engine, QueueCommand::Set { queue: A, settings: &[(setting, value)] });
}

/// The shares of the queue that have metrics, with their ready and taken tasks.
fn look(engine: &mut Engine, now: Timestamp) -> Vec<(String, u64, u64)> {
    loop {
        match engine.look_at_shares(now, A.name) {
            SharesLook::Counting => {}
            SharesLook::Nothing => return Vec::new(),
            SharesLook::Known(shares) => {
                engine.check();
                let name = |it: &ShareShown| String::from_utf8(it.share.to_vec()).unwrap();
                return shares.iter().map(|it| (name(it), it.ready, it.taken)).collect();
            }
        }
    }
}

fn known(shares: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
    shares.iter().map(|(name, ready, taken)| ((*name).to_owned(), *ready, *taken)).collect()
}

#[test]
fn shares_with_most_tasks_are_looked_at_where_a_queue_asks_for_it() {
    let mut engine = started();
    assert_eq!(look(&mut engine, NOW), []);
    for (share, count) in [("", 2), ("few", 1), ("most", 4), ("some", 3)] {
        put_for(&mut engine, share.as_bytes(), count);
    }
    // Nobody asks for it, and nobody is looked at.
    assert_eq!(engine.look_at_shares(NOW, A.name), SharesLook::Nothing);
    set(&mut engine, SHAREMETRICS, Value::Number(2));
    assert_eq!(look(&mut engine, NOW), known(&[("most", 4, 0), ("some", 3, 0)]));
    put_for(&mut engine, b"few", 4);
    assert_eq!(look(&mut engine, NOW), known(&[("few", 5, 0), ("most", 4, 0)]));
    let take = Take { count: 100, ..TAKE };
    ask(&mut engine, Command::Take(take));
    assert_eq!(look(&mut engine, NOW), known(&[("few", 0, 5), ("most", 0, 4)]));
    set(&mut engine, SHAREMETRICS, Value::Number(100));
    assert_eq!(look(&mut engine, NOW).len(), 4);
    administer(&mut engine, QueueCommand::Truncate(A));
    assert_eq!(look(&mut engine, NOW), []);
    put_for(&mut engine, b"new", 1);
    assert_eq!(look(&mut engine, NOW), known(&[("new", 1, 0)]));
    set(&mut engine, SHAREMETRICS, Value::None);
    assert_eq!(engine.look_at_shares(NOW, A.name), SharesLook::Nothing);
}

#[test]
fn sizes_of_many_shares_that_are_followed_already_are_found_bit_by_bit() {
    let mut engine = started();
    for share in 0..6_000_u32 {
        put_for(&mut engine, &share.to_be_bytes(), 1);
    }
    let shares = QueueCommand::Shares { queue: A, count: 1, from: None, top: false };
    for _ in 0..3 {
        administer(&mut engine, shares);
    }
    set(&mut engine, SHAREMETRICS, Value::Number(1));
    assert_eq!(engine.look_at_shares(NOW, A.name), SharesLook::Counting);
    engine.check();
    // One that was reached, and one that was not.
    put_for(&mut engine, &7_u32.to_be_bytes(), 1);
    put_for(&mut engine, &5_999_u32.to_be_bytes(), 2);
    engine.check();
    let SharesLook::Known(shares) = engine.look_at_shares(NOW, A.name) else {
        panic!("the second look is the last one")
    };
    assert_eq!((&*shares[0].share, shares[0].ready), (&5_999_u32.to_be_bytes()[..], 3));
    set(&mut engine, SHAREMETRICS, Value::None);
    administer(&mut engine, QueueCommand::Shares { queue: A, count: 1, from: None, top: false });
    while engine.poll_timeout().is_some_and(|at| at <= NOW) {
        engine.handle_timeout(NOW);
    }
    engine.check();
}

#[test]
fn a_look_at_shares_keeps_nobody_waiting_who_waits_for_a_token() {
    let mut engine = started();
    let rate = Rate { count: 1, per: Span::from_ms(100) };
    set(&mut engine, RATE, Value::Rate(rate));
    set(&mut engine, SHAREMETRICS, Value::Number(1));
    put_for(&mut engine, b"s", 2);
    let take = Take { wait: Wait::Forever, ..TAKE };
    for client in 1..=2 {
        engine.apply(NOW, ClientId(client), RequestId(8), &Command::Take(take));
    }
    assert!(engine.poll_output().is_some() && engine.poll_output().is_none());
    assert_eq!(look(&mut engine, NOW), known(&[("s", 1, 1)]));
    let later = NOW.after(Span::from_ms(100));
    assert_eq!(engine.poll_timeout(), Some(later));
    // What is due is done at once.
    assert_eq!(look(&mut engine, later), known(&[("s", 0, 2)]));
    assert!(engine.poll_output().is_some());
}

#[test]
fn limits_are_surveyed_by_name_a_page_at_a_time() {
    let mut engine = started();
    for name in [&b"b"[..], b"a", b"c"] {
        let change = LimitChange { max: Some(OrNone(Some(1))), rate: None };
        ask(&mut engine, LimitCommand::Set { name, change }.into());
    }
    set(&mut engine, USES, Value::Bytes(b"b"));
    put(&mut engine, b"a");
    ask(&mut engine, Command::Take(TAKE));
    let later = NOW.after(Span::from_ms(30));
    let page = engine.limits_after(later, b"", 2);
    let shown = page.iter().map(|it| (&*it.name, it.taken, it.closed.ms()));
    assert_eq!(shown.collect::<Vec<_>>(), [(&b"a"[..], 0, 0), (b"b", 1, 30)]);
    let rest = engine.limits_after(later, b"b", 2);
    assert_eq!(rest.iter().map(|it| &*it.name).collect::<Vec<_>>(), [b"c"]);
}

fn join(engine: &mut Engine, member: &[u8]) {
    let ttl = Span::from_ms(60_000);
    let join = MemberCommand::Join { topic: b"news", member, lease: Some(ttl) };
    ask(engine, Command::Member(join));
}
