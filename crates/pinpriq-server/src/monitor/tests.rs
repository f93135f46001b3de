//! The others never fall, and rates are those of what happened between two looks.

use pinpriq_proto::stats::{Counters, Figures};

use pinpriq_proto::survey::Surveyed;
use pinpriq_proto::time::Span;

use super::rates::Rates;
use super::survey::{Others, Shown, Survey};

fn figures(put: u64, acked: u64) -> Figures {
    let mut counters = Counters { put, acked, ..Counters::default() };
    counters.counts[0] = put - acked;
    Figures { counters, queues: 1, ..Figures::default() }
}

fn sum(all: &[&Figures]) -> Figures {
    let mut sum = Figures::default();
    for figures in all {
        sum.add(figures);
    }
    sum
}

#[test]
fn counters_of_the_others_never_fall() {
    let mut others = Others::default();
    // At the first survey one queue is shown, with all that it has counted.
    let (a, hidden) = (figures(100, 40), figures(70, 30));
    others.begin(&a.counters);
    let told = others.figures(&sum(&[&a, &hidden]), &a);
    assert_eq!((told.counters.put, told.counters.acked), (70, 30));
    assert_eq!((told.counters.counts[0], told.queues), (40, 1));
    // It goes after some more puts, and the hidden one is shown in its place.
    others.end(&a.counters);
    others.begin(&hidden.counters);
    let gone = figures(110, 110);
    let told = others.figures(&sum(&[&gone, &hidden]), &hidden);
    // The unseen part of the one that is gone is with the others.
    assert_eq!((told.counters.put, told.counters.acked), (80, 100));
    assert_eq!(told.counters.counts[0], 0);
    // The one that is shown counts alone from now on.
    let hidden = figures(90, 30);
    let told = others.figures(&sum(&[&gone, &hidden]), &hidden);
    assert_eq!((told.counters.put, told.counters.acked), (80, 100));
}

#[test]
fn rates_are_of_what_happened_in_between() {
    let rates = Rates::between(&figures(10, 4).counters, &figures(30, 9).counters, 500);
    assert_eq!(rates, Rates { came: 40.0, left: 10.0, taken: 0.0, failed: 0.0 });
    let anew = Rates::between(&figures(30, 9).counters, &figures(3, 0).counters, 500);
    assert_eq!(anew, Rates::default());
}

#[test]
fn the_oldest_ready_task_is_no_dead_letter() {
    let mut survey = Survey::default();
    let mut show = |queue: &[u8], age_s: u64, holds_dead_letters| {
        let oldest_ready = Some(Span::from_ms(1_000 * age_s));
        let figures = Figures { oldest_ready, holds_dead_letters, ..figures(7, 3) };
        let name = Surveyed { lane: None, queue: queue.into() };
        survey.shown.insert(name, Shown { figures, rates: None });
    };
    show(b"{mail}-dead", 900, true);
    show(b"mail", 5, false);
    show(b"news", 2, false);
    assert_eq!(survey.oldest_ready(), Some(Span::from_ms(5_000)));
    assert_eq!(survey.dead_letters(), 4);
}
