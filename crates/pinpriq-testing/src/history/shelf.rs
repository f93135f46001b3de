//! A task with everything known about it, and its queue.
//!
//! These are facts gathered from a history. [`crate::history::checks`] draws the conclusions.

use crate::history::lease::{Handed, Span};

/// Who said which id a put gave its task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Naming {
    /// No client.
    Unknown,
    /// The server, which gives an id once.
    Told,
    /// The client, which may give it again.
    Given,
}

/// A put, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) span: Span,
    /// Whether the client received the answer that the put was carried out.
    pub(crate) acknowledged: bool,
    pub(crate) payload: String,
    pub(crate) priority: Option<i64>,
    pub(crate) delay_us: u64,
    pub(crate) ttl_us: Option<u64>,
    pub(crate) ttr_us: Option<u64>,
    /// Whether it may have been another put of the same payload, so that only the payload is
    /// certain.
    pub(crate) ambiguous: bool,
    pub(crate) naming: Naming,
    /// The transaction of unknown outcome that it is part of.
    pub(crate) open: Option<u64>,
    pub(crate) key: Option<String>,
    pub(crate) share: Option<String>,
}

/// How many tasks of a queue may be taken at once, and what holds others back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// When it was asked for.
    pub(crate) span: Span,
    /// Whether it was certainly accepted.
    pub(crate) certain: bool,
    pub(crate) of_queue: Option<u64>,
    pub(crate) of_key: Option<u64>,
    pub(crate) of_share: Option<u64>,
    /// Whether a task that has failed holds back the others of its key.
    pub(crate) holds_keys: bool,
    /// Whether shares take turns.
    pub(crate) is_fair: bool,
    /// The index of the named limit that its tasks count for.
    pub(crate) uses: Option<usize>,
}

/// How many tasks of all queues that use a limit may be taken at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    /// When it was asked for.
    pub(crate) span: Span,
    /// Whether it was certainly accepted.
    pub(crate) certain: bool,
    pub(crate) max: Option<u64>,
}

/// What is known about a named limit.
#[derive(Clone, Debug)]
pub(crate) struct NamedLimit {
    pub(crate) name: String,
    /// What was ever said about it.
    pub(crate) said: Vec<Most>,
}

impl NamedLimit {
    /// How many it may have allowed at some moment of this time.
    pub(crate) fn most_in(&self, span: Span) -> Vec<Option<u64>> {
        let unsaid = Most { span: Span { from_us: 0, to_us: 0 }, certain: true, max: None };
        let said = said_in(&self.said, |it| (it.span, it.certain), unsaid, span);
        said.iter().map(|it| it.max).collect()
    }
}

/// A removal, or a dig.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    pub(crate) span: Span,
    /// Whether it certainly found the task.
    pub(crate) certain: bool,
    /// The transaction of unknown outcome that it is part of.
    pub(crate) open: Option<u64>,
}

/// A queue where a task has been, and its id there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Station {
    /// The index of the queue.
    pub(crate) queue: usize,
    pub(crate) id: String,
}

/// A task, in whatever queues it has been.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The index of the queue into which it was put.
    pub(crate) queue: usize,
    /// Where it is known to have been, in no particular order. If its put is known by its id, the
    /// first one is that of the put.
    pub(crate) stations: Vec<Station>,
    /// None if no put of this task was known before it was delivered.
    pub(crate) entry: Option<Entry>,
    /// Whether several puts had this id, so that these are several tasks.
    pub(crate) several: bool,
    /// Whether several puts had its payload, of which one may have come here from another queue. So
    /// it is unknown which task it is.
    pub(crate) foreign: bool,
    /// Sorted by their beginnings.
    pub(crate) handed: Vec<Handed>,
    /// Those that may have found the task.
    pub(crate) kills: Vec<Visit>,
    pub(crate) digs: Vec<Visit>,
    /// The answers that reported the task as expired.
    pub(crate) expired: Vec<Span>,
    /// Whether a dig brought it back changed.
    pub(crate) changed: bool,
    /// The earliest moment at which something unknown may have changed it.
    pub(crate) disturbed_us: u64,
}

/// What is known about a queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) name: String,
    pub(crate) plows: Vec<Span>,
    pub(crate) disturbed_us: u64,
    /// The earliest moment at which a queue that ways connect with this one was disturbed, if this
    /// is the one that stands for them.
    pub(crate) disturbed_near_us: u64,
    /// How many tasks may have been removed by pops whose answer was lost.
    pub(crate) unheard_pops: u64,
    /// The longest time that a put gave to leases on its task.
    pub(crate) ttr_max_us: u64,
    /// When a take or pop whose answer was lost may hide tasks.
    pub(crate) hidden: Vec<Span>,
    /// When it was found to be empty, and whether buried tasks stayed.
    pub(crate) drained: Option<(u64, bool)>,
    /// What was ever said about limits.
    pub(crate) limits: Vec<Limits>,
}

impl Entry {
    /// On whose behalf the task runs.
    pub(crate) fn share(&self) -> &str {
        self.share.as_deref().or(self.key.as_deref()).unwrap_or_default()
    }
}

impl Limits {
    /// Those of a queue without settings.
    const NONE: Self = Self {
        span: Span { from_us: 0, to_us: 0 },
        certain: true,
        of_queue: None,
        of_key: None,
        of_share: None,
        holds_keys: false,
        is_fair: false,
        uses: None,
    };

    /// Whether keys may hold tasks back.
    pub(crate) const fn is_by_key(&self) -> bool {
        self.of_key.is_some() || self.of_share.is_some() || self.holds_keys
    }
}

impl Task {
    /// A task that is known by its id in a queue.
    pub(crate) fn new(queue: usize, id: String) -> Self {
        Self { stations: vec![Station { queue, id }], ..Self::of_queue(queue) }
    }

    /// A task that was put into a queue under an unknown id.
    pub(crate) const fn of_queue(queue: usize) -> Self {
        Self {
            queue,
            stations: Vec::new(),
            entry: None,
            several: false,
            foreign: false,
            handed: Vec::new(),
            kills: Vec::new(),
            digs: Vec::new(),
            expired: Vec::new(),
            changed: false,
            disturbed_us: u64::MAX,
        }
    }

    /// Whether the first station is certainly that of the put.
    pub(crate) fn is_home_known(&self) -> bool {
        self.entry.as_ref().is_some_and(|entry| entry.naming != Naming::Unknown)
    }

    /// The queue in which it was handed out.
    pub(crate) fn queue_of(&self, handed: &Handed) -> usize {
        self.stations.get(handed.station).map_or(self.queue, |station| station.queue)
    }
}

impl Queue {
    pub(crate) const fn new(name: String) -> Self {
        Self {
            name,
            plows: Vec::new(),
            disturbed_us: u64::MAX,
            disturbed_near_us: u64::MAX,
            unheard_pops: 0,
            ttr_max_us: 0,
            hidden: Vec::new(),
            drained: None,
            limits: Vec::new(),
        }
    }

    /// Whether a take whose answer was lost may hide tasks at some moment of this time.
    pub(crate) fn may_hide(&self, span: Span) -> bool {
        self.hidden.iter().any(|it| it.from_us <= span.to_us && span.from_us <= it.to_us)
    }

    /// The limits that may have held at some moment of this time.
    pub(crate) fn limits_in(&self, span: Span) -> Vec<Limits> {
        said_in(&self.limits, |it| (it.span, it.certain), Limits::NONE, span)
    }
}

/// Of what was said of a queue, each replacing what was said before, what may have held at some
/// moment of this time. Before anything was said, `unsaid` held. `when` tells when something was
/// said, and whether it was certainly accepted.
pub(crate) fn said_in<T: Copy>(
    all: &[T],
    when: impl Fn(&T) -> (Span, bool),
    unsaid: T,
    span: Span,
) -> Vec<T> {
    let certain =
        all.iter().map(&when).filter(|(it, is_certain)| *is_certain && it.to_us <= span.from_us);
    let certain: Vec<Span> = certain.map(|(it, _)| it).collect();
    let is_over = |said: Span| certain.iter().any(|it| said.is_before(*it));
    let begun = all.iter().filter(|it| when(it).0.from_us <= span.to_us);
    let mut possible: Vec<T> = begun.filter(|it| !is_over(when(it).0)).copied().collect();
    if certain.is_empty() {
        possible.push(unsaid);
    }
    possible
}
