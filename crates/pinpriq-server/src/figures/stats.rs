//! The figures of queues and lanes, which `STATS` prints for one of them or for all together.
//!
//! They are read from a reply of the engine, so a reply of another shard serves as well.

use pinpriq_proto::histogram::TimeHistogram;
use pinpriq_proto::settings::{Paused, SETTINGS, Settings, Shown};
use pinpriq_proto::stats::{Figures, Times};
use pinpriq_proto::task::StateKind;
use pinpriq_proto::time::{Span, Timestamp};

use super::Value::Each;
use super::{Figure, Value, figures};

/// What a figure is reported for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// One queue or lane, and all together.
    Any,
    /// All together.
    All,
    /// One queue or lane.
    Queue,
    /// One lane.
    Lane,
}

use Scope::{All, Any, Lane, Queue};

type Entry = Figure<Figures, Scope>;

/// All figures of queues and lanes.
pub(crate) static TABLE: &[Entry] = figures! {
    Any {
        counts: Gauges("state") Plain "map: the tasks in each of the six states", |it| counts(it);
        transitions: Counters("move") Plain "map such as `X-R`, `R-T`: how often tasks moved",
            |it| transitions(it);
        oldest_ready_ms: Gauge Milliseconds
            "the age since its put of the oldest ready task that has a priority; null if there is \
             none",
            |it| it.oldest_ready.map(Span::ms);
    }
    Queue {
        paused: Text Plain "`none`, `in`, `out` or `both`", |it| paused_word(it.paused);
    }
    All {
        paused: Gauge Plain "paused queues", |it| it.paused_queues;
    }
    Any {
        takers: Gauge Plain "blocked takes and pops", |it| it.takers;
        subscribers: Gauge Plain "subscriptions", |it| it.subscribers;
        bytes; put; acked; expired; killed; dead; evicted; moved; failures; duplicates; present;
        purged; revived; cancelled; skipped;
    }
    Queue {
        priorities: Gauges("priority") Plain
            "map: the ready tasks of each priority, of the 32 most urgent ones",
            |it| priorities(it);
        waited_ms: Histogram Milliseconds
            "map: how long tasks were ready before they were taken or popped: `count`, `sum`, and \
             how many up to a bound, from `le_1` to `le_3600000` and `le_inf`",
            |it| times(it, |times| &times.waited);
        held_ms: Histogram Milliseconds "the same for how long leases lasted, however they ended",
            |it| times(it, |times| &times.held);
        limited_ms: Counter Milliseconds
            "for how long `LIMIT` or `RATE` held back tasks that a consumer asked for",
            |it| it.counters.times.as_ref().map_or(0, |times| times.limited_ms);
        holds_dead_letters: Gauge Plain
            "1 if the queue is the `DEADLETTER` of another queue, else 0",
            |it| u64::from(it.holds_dead_letters);
    }
    Lane {
        missed: Counter Plain "copies left out while the lane was full or paused for input",
            |it| it.missed;
    }
};

/// Returns the figures of one queue or lane, or of all together, each with its value.
pub(crate) fn values(figures: &Figures, of_one: bool) -> Vec<(&'static str, Value)> {
    let is_told = |figure: &&Entry| match figure.section {
        Any => true,
        All => !of_one,
        Queue => of_one,
        Lane => figures.missed.is_some(),
    };
    TABLE.iter().filter(is_told).map(|figure| (figure.name, (figure.read)(figures))).collect()
}

/// Returns the settings of a queue under their names, as users see them, with its pauses.
pub(crate) fn settings(settings: &Settings, paused: Paused) -> Vec<(String, Shown<'_>)> {
    let shown = SETTINGS.into_iter().flat_map(|setting| setting.shown((setting.read)(settings)));
    let word = Shown::Text(paused_word(paused).as_bytes());
    let until = |at: Option<Timestamp>| at.map_or(Shown::None, |at| Shown::Number(at.ms()));
    let ends = paused_until(paused).map(|(name, at)| (name, until(at)));
    let all = shown.chain([("paused", word)]).chain(ends);
    all.map(|(name, shown)| (name.to_ascii_lowercase(), shown)).collect()
}

/// The moments at which pauses end by themselves, by their names among the settings.
pub(crate) fn paused_until(paused: Paused) -> [(&'static str, Option<Timestamp>); 2] {
    [("paused_in_until", paused.input.until()), ("paused_out_until", paused.output.until())]
}

/// Returns the word for a pause.
pub(crate) const fn paused_word(paused: Paused) -> &'static str {
    match (paused.input.is_on(), paused.output.is_on()) {
        (false, false) => "none",
        (true, false) => "in",
        (false, true) => "out",
        (true, true) => "both",
    }
}

fn counts(figures: &Figures) -> Value {
    let counters = &figures.counters;
    let count = |kind: StateKind| (kind.letter().to_string(), counters.count(kind));
    Each(StateKind::ALL.into_iter().map(count).collect())
}

fn transitions(figures: &Figures) -> Value {
    let mut moves = figures.counters.moves.clone();
    moves.sort_unstable();
    let letter = |kind: Option<StateKind>| kind.map_or('X', StateKind::letter);
    let moves = moves.into_iter();
    Each(
        moves
            .map(|(it, times)| (format!("{}-{}", letter(it.from()), letter(it.to())), times))
            .collect(),
    )
}

fn priorities(figures: &Figures) -> Value {
    let counts = figures.priorities.iter();
    Each(counts.map(|(priority, count)| (priority.to_string(), *count)).collect())
}

fn times(figures: &Figures, which: fn(&Times) -> &TimeHistogram) -> Value {
    figures.counters.times.as_deref().map(which).cloned().unwrap_or_default().into()
}
