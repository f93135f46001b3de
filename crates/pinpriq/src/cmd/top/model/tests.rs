//! What keys and news do to the state of the screen. How it looks is tested in `view/tests.rs`.

use std::ops::ControlFlow;

use pinpriq_proto::wire::resp::Value;

use super::{Entered, Model, Visit};
use crate::cmd::figures::{Figures, Server};
use crate::cmd::rounds::{Page, PageOf, Round};
use crate::cmd::top::gatherer::News;
use crate::cmd::top::keys::{Decoder, Key};

/// The time of the first round.
pub(in crate::cmd::top) const START_MS: i64 = 1_000_000;

/// A model that has heard nothing.
pub(in crate::cmd::top) fn model(size: (u16, u16)) -> Model {
    Model::new("127.0.0.1:7251".to_owned(), 1_000, size)
}

/// Figures of a queue with these tasks in R, T, W and B, of which none has left.
pub(in crate::cmd::top) fn figures([ready, taken, waiting, buried]: [i64; 4]) -> Figures {
    Figures {
        counts: [ready, taken, waiting, buried, 0, 0],
        put: ready + taken + waiting + buried,
        paused: "none".to_owned(),
        oldest_ms: (ready > 0).then_some(ready * 1_000),
        ..Figures::default()
    }
}

/// A round with these queues.
pub(in crate::cmd::top) fn round(server_ms: i64, queues: &[(&str, Figures)]) -> News {
    let all = queues.iter().fold(figures([0; 4]), |mut all, (_, figures)| {
        for (sum, count) in all.counts.iter_mut().zip(figures.counts) {
            *sum += count;
        }
        all.put += figures.put;
        all.left += figures.left;
        all
    });
    let server = Server {
        version: "0.1.0".to_owned(),
        durability: "strict".to_owned(),
        connections: 3,
        doors: Vec::new(),
        shards: 1,
        uptime_ms: 3_723_000,
        paused: 0,
        failure: None,
        archive: None,
        look: None,
        all,
    };
    let name = |(name, _): &(&str, Figures)| name.as_bytes().to_vec();
    let mut names: Vec<Vec<u8>> = queues.iter().map(name).collect();
    names.sort();
    News::Round(Box::new(Round {
        server_ms,
        took_ms: 3,
        server,
        names,
        more: false,
        figures: queues.iter().map(|queue| (name(queue), queue.1.clone())).collect(),
        refusal: None,
    }))
}

pub(in crate::cmd::top) fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

/// A page with shares of these names.
pub(in crate::cmd::top) fn shares(of: &PageOf, names: &[&str], next: Option<&str>) -> News {
    let share = |(place, name): (i64, &&str)| {
        Value::Map(vec![
            (bulk("share"), bulk(name)),
            (bulk("weight"), Value::Integer(1)),
            (bulk("limit"), Value::Null),
            (bulk("rate"), Value::Null),
            (bulk("ready"), Value::Integer(3)),
            (bulk("taken"), Value::Integer(1)),
            (bulk("waited_ms"), Value::Null),
            (bulk("oldest_ready_ms"), Value::Integer(90_000 - place * 1_000)),
            (bulk("acked"), Value::Integer(123_456)),
            (bulk("failed"), Value::Integer(0)),
        ])
    };
    News::Page(Box::new(Page {
        of: of.clone(),
        settings: None,
        tasks: (0..).zip(names).map(share).collect(),
        next: next.map(|next| next.as_bytes().to_vec()),
    }))
}

/// Limits of these names.
pub(in crate::cmd::top) fn limits(names: &[&str]) -> News {
    let limit = |name: &&str| {
        Value::Map(vec![
            (bulk("name"), bulk(name)),
            (bulk("max"), Value::Integer(8)),
            (bulk("rate"), bulk("600/60000")),
            (bulk("taken"), Value::Integer(8)),
            (bulk("tokens"), Value::Integer(-20)),
            (bulk("open_at"), Value::Integer(START_MS + 35_000)),
            (bulk("queues"), Value::Integer(2)),
            (bulk("closed_ms"), Value::Integer(61_000)),
        ])
    };
    News::Limits(names.iter().map(limit).collect())
}

/// A page with tasks of these ids.
pub(in crate::cmd::top) fn page(of: &PageOf, ids: &[&str], next: Option<&str>) -> News {
    let task = |id: &&str| {
        let null = |name: &str| (bulk(name), Value::Null);
        Value::Map(vec![
            (bulk("queue"), Value::Bulk(of.queue.clone())),
            null("member"),
            (bulk("id"), bulk(id)),
            null("receipt"),
            (bulk("payload"), bulk("mail\x1b[2J to ada")),
            null("key"),
            (bulk("priority"), Value::Integer(-5)),
            (bulk("state"), bulk(of.state)),
            (bulk("attempts"), Value::Integer(2)),
            (bulk("failures"), Value::Integer(1)),
            (bulk("reason"), bulk("no answer")),
            (bulk("put_at"), Value::Integer(START_MS - 90_000)),
            (bulk("ttl_at"), Value::Integer(START_MS + 60_000)),
        ])
    };
    let setting = |name: &str, value: Value| (bulk(name), value);
    News::Page(Box::new(Page {
        of: of.clone(),
        settings: Some(Value::Map(vec![
            setting("ids", bulk("sequence")),
            setting("ttr", Value::Integer(30_000)),
            setting("capacity", Value::Null),
            setting("paused", bulk("none")),
        ])),
        tasks: ids.iter().map(task).collect(),
        next: next.map(|next| next.as_bytes().to_vec()),
    }))
}

/// Presses keys, and says whether the last one ends the program.
pub(in crate::cmd::top) fn press(model: &mut Model, keys: &str) -> bool {
    let mut decoder = Decoder::default();
    let mut keys = decoder.keys(keys.as_bytes());
    keys.extend(decoder.give_up());
    keys.into_iter().map(|key| model.press(key)).last() == Some(ControlFlow::Break(()))
}

/// A model of four queues, of which c has the most tasks.
pub(in crate::cmd::top) fn four(size: (u16, u16)) -> Model {
    let mut model = model(size);
    model.hear(round(
        START_MS,
        &[
            ("a", figures([1, 0, 7, 0])),
            ("b", figures([2, 0, 0, 9])),
            ("c", figures([30, 4, 0, 0])),
            ("mail", figures([0, 0, 0, 0])),
        ],
    ));
    model
}

fn rows(model: &Model) -> String {
    model.rows.iter().map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>().join(" ")
}

fn selected(model: &Model) -> &str {
    std::str::from_utf8(model.selected.as_ref().unwrap()).unwrap()
}

/// The queue that was entered.
pub(in crate::cmd::top) fn visit_of(model: &Model) -> &Visit {
    model.visit.as_ref().unwrap()
}

fn sort(model: &Model) -> &str {
    model.sort.map_or("queue", |sort| sort.head)
}

#[test]
fn the_order_goes_from_column_to_column_and_numbers_begin_with_the_highest() {
    let mut model = four((80, 24));
    assert_eq!(rows(&model), "a b c mail");
    press(&mut model, "r");
    assert_eq!(rows(&model), "mail c b a");
    press(&mut model, "rs");
    assert_eq!((sort(&model), rows(&model).as_str()), ("ready", "c b a mail"));
    press(&mut model, "ss");
    assert_eq!((sort(&model), rows(&model).as_str()), ("waiting", "a b c mail"));
    press(&mut model, "sr");
    assert_eq!((sort(&model), rows(&model).as_str()), ("buried", "a c mail b"));
    // Rates are not known yet, and no task of the last queue is ready: nothing known comes last.
    press(&mut model, "s");
    assert_eq!((sort(&model), rows(&model).as_str()), ("in/s", "a b c mail"));
    press(&mut model, "ss");
    assert_eq!((sort(&model), rows(&model).as_str()), ("oldest", "a b c mail"));
    press(&mut model, "r");
    assert_eq!(rows(&model), "c b a mail");
    press(&mut model, "ss");
    assert_eq!(sort(&model), "queue");
}

#[test]
fn the_order_by_rates_follows_the_last_round() {
    let mut model = four((80, 24));
    let busy = Figures { put: 100, left: 90, ..figures([2, 0, 0, 9]) };
    let calm = Figures { put: 10, left: 5, ..figures([1, 0, 7, 0]) };
    model.hear(round(START_MS + 1_000, &[("a", calm), ("b", busy), ("c", figures([30, 4, 0, 0]))]));
    press(&mut model, "ssssss");
    assert_eq!((sort(&model), rows(&model).as_str()), ("out/s", "b a c"));
}

#[test]
fn the_cursor_stays_on_its_queue() {
    let mut model = four((80, 24));
    press(&mut model, "jj");
    assert_eq!(selected(&model), "c");
    press(&mut model, "s");
    assert_eq!((selected(&model), model.place_of_cursor()), ("c", Some(0)));
    // Its queue comes to an end: the cursor is on what has its place.
    press(&mut model, "ssssssss");
    model.hear(round(START_MS + 1_000, &[("a", figures([0; 4])), ("mail", figures([0; 4]))]));
    assert_eq!(selected(&model), "mail");
    model.hear(round(START_MS + 2_000, &[]));
    assert_eq!(model.selected, None);
    assert!(!press(&mut model, "jk\r"));
    assert_eq!(model.visit, None);
}

#[test]
fn the_list_scrolls_with_the_cursor() {
    let names: Vec<String> = (0..100).map(|number| format!("q{number:02}")).collect();
    let queues: Vec<_> = names.iter().map(|name| (name.as_str(), figures([0; 4]))).collect();
    let mut model = model((80, 16));
    model.hear(round(START_MS, &queues));
    assert_eq!(model.focus().visible.len(), 10);
    press(&mut model, "jjjjjjjjj");
    assert_eq!((selected(&model), model.first), ("q09", 0));
    press(&mut model, "j");
    assert_eq!((selected(&model), model.first), ("q10", 1));
    press(&mut model, "\x1b[6~");
    assert_eq!((selected(&model), model.first), ("q20", 11));
    press(&mut model, "G");
    assert_eq!((selected(&model), model.first), ("q99", 90));
    assert_eq!(model.focus().visible[0], b"q90");
    press(&mut model, "k");
    assert_eq!((selected(&model), model.first), ("q98", 90));
    model.resize((80, 7));
    assert_eq!(model.focus().visible, [b"q98"]);
    model.resize((80, 200));
    assert_eq!(model.first, 0);
    press(&mut model, "g");
    assert_eq!(selected(&model), "q00");
}

#[test]
fn the_filter_is_typed_and_given_up() {
    let mut model = four((80, 24));
    press(&mut model, "/A");
    assert_eq!(rows(&model), "a mail");
    press(&mut model, "ix");
    assert_eq!(rows(&model), "");
    // Keys are letters while it is typed.
    press(&mut model, "\x7f");
    assert_eq!((rows(&model).as_str(), model.filter.as_str()), ("mail", "Ai"));
    press(&mut model, "\r");
    assert_eq!((&model.typing, rows(&model).as_str()), (&None, "mail"));
    assert!(!press(&mut model, "/q"));
    press(&mut model, "\x1b");
    assert_eq!(model.filter, "Ai");
    // The first escape shows all queues again, the second one leaves.
    assert!(!press(&mut model, "\x1b"));
    assert_eq!(rows(&model), "a b c mail");
    assert!(press(&mut model, "\x1b"));
}

#[test]
fn a_queue_is_entered_where_it_has_tasks() {
    let mut model = four((80, 24));
    press(&mut model, "G\r");
    assert_eq!(visit_of(&model).of.state, "R");
    press(&mut model, "qg\r");
    assert_eq!((visit_of(&model).of.queue.as_slice(), visit_of(&model).of.state), (&b"a"[..], "R"));
    assert_eq!(model.focus().page.as_ref(), Some(&visit_of(&model).of));
    press(&mut model, "\t\t");
    assert_eq!(visit_of(&model).of.state, "W");
    press(&mut model, "\x1b[Z");
    assert_eq!(visit_of(&model).of.state, "T");
    press(&mut model, "\x1b[D\x1b[D");
    assert_eq!(visit_of(&model).of.state, "D");
    assert!(!press(&mut model, "q"));
    assert_eq!(model.visit, None);
}

#[test]
fn pages_follow_each_other_and_the_cursor_stays_on_its_task() {
    let mut model = four((80, 24));
    press(&mut model, "\r");
    let of = visit_of(&model).of.clone();
    model.hear(page(&of, &["1", "2", "3"], Some("7")));
    press(&mut model, "jj");
    assert_eq!(visit_of(&model).chosen_task().unwrap().field("id"), Some(&bulk("3")));
    model.hear(page(&of, &["2", "3", "4"], Some("7")));
    assert_eq!(visit_of(&model).chosen_task().unwrap().field("id"), Some(&bulk("3")));
    press(&mut model, "n");
    assert_eq!(visit_of(&model).of.cursor, b"7");
    // A page that was asked for before is of no use.
    model.hear(page(&of, &["2"], Some("7")));
    assert_eq!(visit_of(&model).page, None);
    let second = visit_of(&model).of.clone();
    model.hear(page(&second, &["8"], None));
    press(&mut model, "n");
    assert_eq!(visit_of(&model).of.cursor, b"7");
    press(&mut model, "b");
    assert_eq!(visit_of(&model).of, of);
}

#[test]
fn a_task_is_entered_followed_and_left() {
    let mut model = four((80, 24));
    press(&mut model, "\r\r");
    assert_eq!(visit_of(&model).task, None, "no page has come yet");
    let of = visit_of(&model).of.clone();
    model.hear(page(&of, &["1", "2"], None));
    press(&mut model, "j\r");
    let entered = |model: &Model| visit_of(model).task.clone().unwrap();
    assert_eq!(entered(&model).task.field("id"), Some(&bulk("2")));
    model.hear(page(&of, &["0", "1", "2"], None));
    assert!(entered(&model).is_there);
    model.hear(page(&of, &["0", "1"], None));
    // What was known of it is still shown.
    let Entered { task, is_there, .. } = entered(&model);
    assert_eq!((task.field("id"), is_there), (Some(&bulk("2")), false));
    press(&mut model, "q");
    assert_eq!(visit_of(&model).task, None);
    press(&mut model, "q");
    assert_eq!(model.visit, None);
}

#[test]
fn control_c_leaves_from_everywhere() {
    for keys in ["", "/x", "\r"] {
        let mut model = four((80, 24));
        press(&mut model, keys);
        assert!(model.press(Key::Interrupt).is_break(), "{keys}");
    }
}

#[test]
fn a_server_that_went_away_is_told_until_it_is_back() {
    let mut model = four((80, 24));
    model.hear(News::Lost("no connection\x1b".to_owned()));
    assert_eq!(model.lost.as_deref(), Some("no connection\\u{1b}"));
    // What was known is still shown.
    assert_eq!(rows(&model), "a b c mail");
    model.hear(round(START_MS, &[]));
    assert_eq!(model.lost, None);
}

#[test]
fn a_queue_that_had_no_turn_keeps_its_figures() {
    let mut model = four((80, 24));
    let News::Round(mut next) = round(START_MS + 1_000, &[("a", figures([5, 0, 0, 0]))]) else {
        panic!("that is a round")
    };
    next.names.push(b"b".to_vec());
    model.hear(News::Round(next));
    let count = |model: &Model, name: &[u8], state: usize| {
        Some(model.queues.get(name)?.figures.as_ref()?.counts[state])
    };
    assert_eq!(count(&model, b"a", 0), Some(5));
    assert_eq!(count(&model, b"b", 3), Some(9));
    assert_eq!(count(&model, b"c", 0), None);
}

#[test]
fn shares_of_a_queue_take_the_place_of_its_tasks_and_back() {
    let mut model = four((80, 24));
    press(&mut model, "\rs");
    let of = visit_of(&model).of.clone();
    assert!(of.shares && model.focus().page == Some(of.clone()));
    model.hear(shares(&of, &["a", "b"], None));
    // Nothing is in a share, and there are no pages.
    press(&mut model, "j\rn\t");
    let visit = visit_of(&model);
    assert!(visit.of == of && visit.chosen == 1 && visit.task.is_none());
    press(&mut model, "s");
    assert!(!visit_of(&model).of.shares);
    // What comes late is about something else.
    model.hear(shares(&of, &["a"], None));
    assert_eq!(visit_of(&model).page, None);
}

#[test]
fn limits_are_asked_for_while_they_are_seen() {
    let mut model = four((80, 24));
    assert!(!model.focus().limits);
    model.hear(limits(&["late"]));
    press(&mut model, "l");
    assert!(model.focus().limits);
    model.hear(limits(&["a", "b", "c"]));
    press(&mut model, "G");
    assert_eq!(model.limits.as_ref().map(|limits| limits.chosen), Some(2));
    model.hear(limits(&["a", "b"]));
    assert_eq!(model.limits.as_ref().map(|limits| limits.chosen), Some(1));
    press(&mut model, "q");
    assert!(model.limits.is_none() && !model.focus().limits);
}
