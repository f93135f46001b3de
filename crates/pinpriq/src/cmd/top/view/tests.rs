//! Pictures of the screen. Any size is drawn without a panic.

use expect_test::{Expect, expect};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::draw;
use crate::cmd::figures::Figures;
use crate::cmd::top::gatherer::News;
use crate::cmd::top::model::Model;
use crate::cmd::top::model::tests::{
    START_MS, figures, four, limits, model, page, press, round, shares, visit_of,
};

fn picture(model: &Model) -> Buffer {
    let area = Rect::new(0, 0, model.size.0, model.size.1);
    let mut buffer = Buffer::empty(area);
    draw(model, area, &mut buffer);
    buffer
}

fn text(model: &Model) -> String {
    let buffer = picture(model);
    let width = usize::from(model.size.0).max(1);
    let lines = buffer.content().chunks(width).map(|cells| {
        let line: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned() + "\n"
    });
    lines.collect()
}

#[track_caller]
fn check(model: &Model, expected: &Expect) {
    expected.assert_eq(&text(model));
}

/// A server that has worked for half a minute.
fn busy(size: (u16, u16)) -> Model {
    let mut model = model(size);
    for second in 0..=30 {
        let jobs = Figures {
            put: 3_000 + second * 120,
            left: second * (100 + second),
            ..figures([1_234, 16, 0, 2])
        };
        let mail = Figures {
            put: 123_456_789,
            left: 23_456_789,
            paused: "out".to_owned(),
            ..figures([100_000_000, 0, 250_000, 0])
        };
        let queues = [("jobs", jobs), ("mail-\u{1b}[31m", mail), ("resize", figures([0, 0, 0, 0]))];
        model.hear(round(START_MS + second * 1_000, &queues));
    }
    model
}

#[test]
fn the_overview() {
    check(
        &busy((80, 12)),
        &expect![[r"
            pinpriq 0.1.0 at 127.0.0.1:7251  durability strict  connections 3  shards 1
            ready 100M  taken 16  waiting 250k  buried 2  in/s 120  out/s 159  oldest -

            queue                      ready  taken waiting buried  in/s out/s oldest paused
            jobs                        1234     16       0      2   120   159 20m34s      -
            mail-\u{1b}[31m             100M      0    250k      0     0     0  1157d    out
            resize                         0      0       0      0     0     0      -      -



            queues 3  paused 0  in the order of queue
            enter open  s sort  r reverse  / filter  l limits  q quit
        "]],
    );
}

/// The words of the line that begins with this one.
#[track_caller]
fn words<'a>(text: &'a str, first: &str) -> Vec<&'a str> {
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = lines.find(|words| words.first() == Some(&first));
    found.unwrap_or_else(|| panic!("there is no line of {first}:\n{text}"))
}

#[test]
fn shares_of_a_queue() {
    let mut model = busy((80, 14));
    press(&mut model, "\rs");
    let of = visit_of(&model).of.clone();
    model.hear(shares(&of, &[], Some("x")));
    assert!(text(&model).contains("the tasks are being counted"));
    model.hear(shares(&of, &["acme\u{1b}[2J", "b"], None));
    let seen = text(&model);
    let heads = ["share", "ready", "taken", "oldest", "waited", "acked", "failed", "weight"];
    assert_eq!(words(&seen, "share")[..8], heads, "{seen}");
    let row = words(&seen, r"acme\u{1b}[2J");
    assert_eq!((&row[1..3], &row[4..7]), (&["3", "1"][..], &["-", "123k", "0"][..]), "{seen}");
    assert!(seen.contains("s tasks  q back"), "{seen}");
    assert!(!seen.contains("buried   zombie"), "{seen}");
}

#[test]
fn limits_of_several_queues() {
    let mut model = busy((80, 9));
    press(&mut model, "l");
    model.hear(limits(&[]));
    assert!(text(&model).contains("there are no limits with a name"));
    let long = "a-limit-with-a-name-that-is-far-too-long-for-the-width-of-a-terminal";
    model.hear(limits(&["gpu", long, "z", "last"]));
    let seen = text(&model);
    let heads = ["limit", "taken", "max", "tokens", "rate", "opens", "closed", "queues"];
    assert_eq!(words(&seen, "limit"), heads, "{seen}");
    assert_eq!(words(&seen, "gpu")[1..5], ["8", "8", "-20", "600/60000"], "{seen}");
    assert!(seen.contains("a-limit-with") && !seen.contains(long), "{seen}");
    // The cursor is always seen, and columns that have no room are left out.
    press(&mut model, "G");
    assert!(text(&model).contains("last"), "{}", text(&model));
    model.resize((30, 9));
    let seen = text(&model);
    assert_eq!(words(&seen, "limit")[..3], ["limit", "taken", "max"], "{seen}");
    assert!(!seen.contains("queues"), "{seen}");
}

#[test]
fn a_queue() {
    let mut model = busy((80, 18));
    press(&mut model, "\r");
    check(
        &model,
        &expect![[r"
            pinpriq 0.1.0 at 127.0.0.1:7251  durability strict  connections 3  shards 1
            ready 100M  taken 16  waiting 250k  buried 2  in/s 120  out/s 159  oldest -

            queue jobs
            ready 1234  taken 16  waiting 0  buried 2  zombie 0  done 0  in/s 120  out/s 159
            failures 0  takers 0  subscribers 0  oldest 20m34s  paused -
             ready   taken   waiting   buried   zombie   done  page 1










            enter task  tab state  n/b pages  s shares  q back
        "]],
    );
    let of = visit_of(&model).of.clone();
    model.hear(page(&of, &["1", "2"], Some("3")));
    press(&mut model, "j");
    check(
        &model,
        &expect![[r"
            pinpriq 0.1.0 at 127.0.0.1:7251  durability strict  connections 3  shards 1
            ready 100M  taken 16  waiting 250k  buried 2  in/s 120  out/s 159  oldest -

            queue jobs
            ready 1234  taken 16  waiting 0  buried 2  zombie 0  done 0  in/s 120  out/s 159
            failures 0  takers 0  subscribers 0  oldest 20m34s  paused -
            settings ids sequence  ttr 30000
             ready   taken   waiting   buried   zombie   done  page 1
            id         priority taken fails       put  payload
            1                -5     2     1    2m ago  mail\u{1b}[2J to ada
            2                -5     2     1    2m ago  mail\u{1b}[2J to ada
            n shows more





            enter task  tab state  n/b pages  s shares  q back
        "]],
    );
}

#[test]
fn a_task() {
    let mut model = four((80, 20));
    press(&mut model, "\r");
    let of = visit_of(&model).of.clone();
    model.hear(page(&of, &["17"], None));
    press(&mut model, "\r");
    check(
        &model,
        &expect![[r"
        pinpriq 0.1.0 at 127.0.0.1:7251  durability strict  connections 3  shards 1
        ready 33  taken 4  waiting 7  buried 9  in/s -  out/s -  oldest -  paused -

        task 17 of queue a
        priority        -5
        state           ready
        attempts        2
        failures        1
        reason          no answer
        put_at          910000, 1m30s ago
        ttl_at          1060000, in 1m
        payload, 15 bytes
        mail\u{1b}[2J to ada






        down more  q back
    "]],
    );
    model.hear(page(&of, &[], None));
    assert!(text(&model).contains("This is how it was."));
}

#[test]
fn the_last_lines_tell_what_is_going_on() {
    let mut model = four((80, 12));
    let bottom = |model: &Model| {
        let text = text(model);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len() - 2..].join("\n")
    };
    let mut told = Vec::new();
    press(&mut model, "/ma");
    told.push(bottom(&model));
    press(&mut model, "\r");
    told.push(bottom(&model));
    model.hear(News::Refused("NOQUEUE there is no queue \u{1b}".to_owned()));
    told.push(bottom(&model));
    model.hear(News::Lost("no connection to 127.0.0.1:7251: refused".to_owned()));
    told.push(bottom(&model));
    assert!(text(&model).contains(" not connected"));
    expect![[r#"
        filter: ma
        enter keep  esc as before
        only queues with "ma"; escape shows all
        enter open  s sort  r reverse  / filter  l limits  q quit
        NOQUEUE there is no queue \u{1b}
        enter open  s sort  r reverse  / filter  l limits  q quit
        no connection to 127.0.0.1:7251: refused
        enter open  s sort  r reverse  / filter  l limits  q quit"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn what_is_not_seen_all_the_time_says_so() {
    let mut model = model((120, 24));
    let News::Round(mut news) = round(START_MS, &[("a", figures([0; 4])), ("b", figures([0; 4]))])
    else {
        panic!("that is a round")
    };
    news.figures.truncate(1);
    news.took_ms = 4_000;
    news.server.failure = Some("no space left on device".to_owned());
    model.hear(News::Round(news));
    let text = text(&model);
    for words in [
        "those not shown are old by up to 2 rounds  a round takes 4s",
        "The disk failed, and nothing can be changed: no space left on device",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn the_cursor_and_the_order_are_reversed() {
    let mut model = four((80, 12));
    press(&mut model, "sgj");
    let buffer = picture(&model);
    let is_reversed = |x: u16, y: u16| buffer[(x, y)].modifier.contains(Modifier::REVERSED);
    // The name of the first column is at the left, and the cursor on the second queue.
    assert!(!is_reversed(0, 3) && !is_reversed(0, 4) && is_reversed(0, 5) && !is_reversed(0, 6));
    let text = text(&model);
    let heads = text.lines().nth(3).unwrap();
    let ready = u16::try_from(heads.find("ready").unwrap()).unwrap();
    assert!(is_reversed(ready, 3) && !is_reversed(ready + 7, 3));
}

#[test]
fn no_size_is_too_small() {
    let states = ["", "/ma", "\r", "\r\r"];
    for keys in states {
        let mut model = busy((80, 24));
        press(&mut model, keys);
        if let Some(visit) = &model.visit {
            let of = visit.of.clone();
            model.hear(page(&of, &["1", "2", "3"], None));
            press(&mut model, "j\r");
        }
        for width in (0..30).chain([79, 80, 81, 500]) {
            for height in (0..12).chain([200]) {
                model.resize((width, height));
                picture(&model);
            }
        }
        model.resize((20, 5));
        assert!(text(&model).starts_with("pinpriq"), "{keys}");
    }
}

/// The words of a picture that begin with a digit.
fn numbers(model: &Model) -> Vec<String> {
    let text = text(model);
    let words = text.split_whitespace().map(|word| word.trim_matches([';', ',']));
    let is_number = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_digit());
    words.filter(is_number).map(str::to_owned).collect()
}

#[test]
fn no_number_is_cut_at_any_width() {
    for keys in ["", "\r"] {
        let mut model = busy((200, 40));
        press(&mut model, keys);
        if let Some(visit) = &model.visit {
            let of = visit.of.clone();
            model.hear(page(&of, &["1", "23456789"], None));
        }
        let whole = numbers(&model);
        assert!(whole.len() > 10, "{whole:?}");
        for width in 1..200 {
            model.resize((width, 40));
            for number in numbers(&model) {
                assert!(whole.contains(&number), "{number} at {width}: {}", text(&model));
            }
        }
    }
}

#[test]
fn long_names_and_ids_leave_room_for_the_numbers() {
    let mut model = model((60, 14));
    let long = "n".repeat(70_000);
    model.hear(round(START_MS, &[(&long, figures([7, 0, 0, 0]))]));
    press(&mut model, "\r");
    let of = visit_of(&model).of.clone();
    model.hear(page(&of, &["0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"], None));
    let shown = text(&model);
    assert!(shown.contains("queue nnnnnnnnn") && shown.contains("nnn…\n"), "{shown}");
    assert!(
        shown.contains("0190a1b2-c3d4-7e5f-8a9b-0c1d…       -5     2     1 1m30s ago"),
        "{shown}"
    );
}

#[test]
fn no_control_reaches_the_terminal() {
    let mut model = busy((80, 24));
    press(&mut model, "j\r");
    let of = visit_of(&model).of.clone();
    model.hear(page(&of, &["\u{9b}1", "\u{202e}2"], None));
    let buffer = picture(&model);
    let is_nasty = |character: char| character.is_control() || character == '\u{202e}';
    assert!(!buffer.content().iter().any(|cell| cell.symbol().chars().any(is_nasty)));
    assert!(text(&model).contains(r"mail\u{1b}[2J to ada"));
}

#[test]
fn doors_of_the_connections_are_named_where_there_are_several() {
    let mut model = model((120, 12));
    let News::Round(mut of_two_doors) = round(START_MS, &[]) else { unreachable!() };
    of_two_doors.server.doors = vec![("resp".to_owned(), 1), ("beanstalkd".to_owned(), 2)];
    model.hear(News::Round(of_two_doors));
    let shown = text(&model);
    assert!(shown.contains("connections 3 (resp 1, beanstalkd 2)  shards 1"), "{shown}");
}
