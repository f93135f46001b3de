//! What keys and news do to the state of the screen. How it looks is tested in `view/tests.rs`.

use pinpriq_proto::wire::resp::Value;

use super::{Effect, Link, Model, Over, Place, Sort};
use crate::cmd::top::asker::{Page, PageOf, Sight};
use crate::cmd::top::figures::{Figures, Round, Server};
use crate::cmd::top::gatherer::{News, Order};
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
        oldest_ms: (ready > 0).then(|| ready.unsigned_abs() * 1_000),
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
    }))
}

pub(in crate::cmd::top) fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
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

/// Presses keys, and returns what is to be done after the last.
pub(in crate::cmd::top) fn press(model: &mut Model, keys: &str) -> Option<Effect> {
    let mut decoder = Decoder::default();
    let mut effect = None;
    let mut keys = decoder.keys(keys.as_bytes());
    keys.extend(decoder.give_up());
    for key in keys {
        effect = model.press(key);
    }
    effect
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

fn visit_of(model: &Model) -> &super::Visit {
    let (Place::Queue(visit) | Place::Task { visit, .. }) = &model.place else {
        panic!("{:?}", model.place)
    };
    visit
}

#[test]
fn the_order_goes_from_column_to_column_and_numbers_begin_with_the_highest() {
    let mut model = four((80, 24));
    assert_eq!(rows(&model), "a b c mail");
    press(&mut model, "r");
    assert_eq!(rows(&model), "mail c b a");
    press(&mut model, "rs");
    assert_eq!((model.sort, rows(&model).as_str()), (Sort::Ready, "c b a mail"));
    press(&mut model, "ss");
    assert_eq!((model.sort, rows(&model).as_str()), (Sort::Waiting, "a b c mail"));
    press(&mut model, "sr");
    assert_eq!((model.sort, rows(&model).as_str()), (Sort::Buried, "a c mail b"));
    // Rates are not known yet, and no task of the last queue is ready: nothing known comes last.
    press(&mut model, "s");
    assert_eq!((model.sort, rows(&model).as_str()), (Sort::In, "a b c mail"));
    press(&mut model, "ss");
    assert_eq!((model.sort, rows(&model).as_str()), (Sort::Oldest, "a b c mail"));
    press(&mut model, "r");
    assert_eq!(rows(&model), "c b a mail");
    press(&mut model, "s");
    assert_eq!(model.sort, Sort::Name);
}

#[test]
fn the_order_by_rates_follows_the_last_round() {
    let mut model = four((80, 24));
    let busy = Figures { put: 100, left: 90, ..figures([2, 0, 0, 9]) };
    let calm = Figures { put: 10, left: 5, ..figures([1, 0, 7, 0]) };
    model.hear(round(START_MS + 1_000, &[("a", calm), ("b", busy), ("c", figures([30, 4, 0, 0]))]));
    press(&mut model, "ssssss");
    assert_eq!((model.sort, rows(&model).as_str()), (Sort::Out, "b a c"));
}

#[test]
fn the_cursor_stays_on_its_queue() {
    let mut model = four((80, 24));
    press(&mut model, "jj");
    assert_eq!(selected(&model), "c");
    press(&mut model, "s");
    assert_eq!((selected(&model), model.place_of_cursor()), ("c", Some(0)));
    // Its queue comes to an end: the cursor is on what has its place.
    press(&mut model, "sssssss");
    model.hear(round(START_MS + 1_000, &[("a", figures([0; 4])), ("mail", figures([0; 4]))]));
    assert_eq!(selected(&model), "mail");
    model.hear(round(START_MS + 2_000, &[]));
    assert_eq!(model.selected, None);
    assert_eq!(press(&mut model, "jkpe\r"), None);
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
    assert_eq!((&model.over, rows(&model).as_str()), (&Over::Nothing, "mail"));
    assert_eq!(press(&mut model, "/q"), None);
    press(&mut model, "\x1b");
    assert_eq!(model.filter, "Ai");
    // The first escape shows all queues again, the second one leaves.
    assert_eq!(press(&mut model, "\x1b"), None);
    assert_eq!(rows(&model), "a b c mail");
    assert_eq!(press(&mut model, "\x1b"), Some(Effect::Quit));
}

#[test]
fn a_pause_is_asked_about_first() {
    let mut model = four((80, 24));
    let question = Over::Question { queue: b"b".to_vec(), pause: true };
    assert_eq!(press(&mut model, "jp"), None);
    assert_eq!(model.over, question);
    // No other key says yes.
    assert_eq!(press(&mut model, "p\rsj"), None);
    assert_eq!(model.over, question);
    assert_eq!(press(&mut model, "n"), None);
    assert_eq!(model.over, Over::Nothing);
    let order = Order::Pause { queue: b"b".to_vec(), pause: true };
    assert_eq!(press(&mut model, "py"), Some(Effect::Order(order)));
    model.hear(News::Paused { queue: b"b".to_vec(), pause: true });
    assert_eq!(model.message.as_deref(), Some("b is paused for takes"));
    // One that is paused is resumed.
    let paused = Figures { paused: "both".to_owned(), ..figures([0; 4]) };
    model.hear(round(START_MS, &[("b", paused)]));
    let order = Order::Pause { queue: b"b".to_vec(), pause: false };
    assert_eq!(press(&mut model, "py"), Some(Effect::Order(order)));
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
    assert_eq!(press(&mut model, "q"), None);
    assert_eq!(model.place, Place::Overview);
}

#[test]
fn pages_follow_each_other_and_the_cursor_stays_on_its_task() {
    let mut model = four((80, 24));
    press(&mut model, "\r");
    let of = visit_of(&model).of.clone();
    model.hear(page(&of, &["1", "2", "3"], Some("7")));
    press(&mut model, "jj");
    assert_eq!(visit_of(&model).chosen_id().unwrap(), b"3");
    model.hear(page(&of, &["2", "3", "4"], Some("7")));
    assert_eq!(visit_of(&model).chosen_id().unwrap(), b"3");
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
fn a_task_is_entered_explained_and_left() {
    let mut model = four((80, 24));
    press(&mut model, "\r");
    let of = visit_of(&model).of.clone();
    let queue = b"a".to_vec();
    let order = Order::Explain { queue: queue.clone(), id: None };
    assert_eq!(press(&mut model, "e"), Some(Effect::Order(order)));
    model.hear(page(&of, &["1"], None));
    let id = Some(b"1".to_vec());
    let order = Order::Explain { queue: queue.clone(), id: id.clone() };
    assert_eq!(press(&mut model, "e"), Some(Effect::Order(order.clone())));
    press(&mut model, "\r");
    assert_eq!(model.focus().task, id);
    assert_eq!(press(&mut model, "e"), Some(Effect::Order(order)));
    let sight = Sight { queue: queue.clone(), id: b"1".to_vec(), task: None };
    model.hear(News::Sight(Box::new(Sight { id: b"2".to_vec(), ..sight.clone() })));
    assert!(matches!(&model.place, Place::Task { sight: None, .. }));
    model.hear(News::Sight(Box::new(sight)));
    assert!(matches!(&model.place, Place::Task { sight: Some(_), .. }));
    let answer = Value::Map(vec![(bulk("id"), Value::Null), (bulk("reasons"), Value::Null)]);
    model.hear(News::Explained { queue, id, answer });
    assert!(matches!(&model.over, Over::Told { title, .. } if title == "EXPLAIN a 1"));
    // Any key closes it, and does nothing else.
    press(&mut model, "q");
    assert!(matches!(&model.place, Place::Task { .. }));
    press(&mut model, "qq");
    assert_eq!(model.place, Place::Overview);
}

#[test]
fn an_explanation_does_not_take_the_keys_of_a_question() {
    let mut model = four((80, 24));
    press(&mut model, "ep");
    let answer = Value::Map(Vec::new());
    model.hear(News::Explained { queue: b"a".to_vec(), id: None, answer });
    assert!(matches!(model.over, Over::Question { .. }));
}

#[test]
fn control_c_leaves_from_everywhere() {
    for keys in ["", "/x", "p", "?", "\r"] {
        let mut model = four((80, 24));
        press(&mut model, keys);
        assert_eq!(model.press(Key::Interrupt), Some(Effect::Quit), "{keys}");
    }
}

#[test]
fn a_server_that_went_away_is_told_until_it_is_back() {
    let mut model = four((80, 24));
    model.hear(News::Lost("no connection\x1b".to_owned()));
    assert_eq!(model.link, Link::Lost("no connection\\u{1b}".to_owned()));
    // What was known is still shown.
    assert_eq!(rows(&model), "a b c mail");
    model.hear(round(START_MS, &[]));
    assert_eq!(model.link, Link::Up);
}

#[test]
fn a_queue_that_had_no_turn_keeps_its_figures() {
    let mut model = four((80, 24));
    let News::Round(mut next) = round(START_MS + 1_000, &[("a", figures([5, 0, 0, 0]))]) else {
        panic!("that is a round")
    };
    next.names.push(b"b".to_vec());
    model.hear(News::Round(next));
    assert_eq!(model.figures_of(b"a").unwrap().counts[0], 5);
    assert_eq!(model.figures_of(b"b").unwrap().counts[3], 9);
    assert_eq!(model.figures_of(b"c"), None);
}
