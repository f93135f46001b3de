//! A schedule as a client sets it: its words, and the command for the engine.

use pinpriq_proto::schedule::{NewSchedule as Command, OnMissed, Overlap, When};
use pinpriq_proto::task::Terms;
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::wire::resp::Words;

use super::words::Phrases as _;
use super::{NewPriority, Text};

/// When a schedule is due.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    Every { ms: u64, at: Option<u64> },
    Cron { expression: &'static str, zone: Option<&'static str> },
}

/// What `SCHEDULE SET` says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NewSchedule {
    pub(crate) name: Text,
    pub(crate) queue: Text,
    pub(crate) payload: Text,
    pub(crate) due: Due,
    pub(crate) key: Option<Text>,
    pub(crate) priority: NewPriority,
    pub(crate) ttl: Option<u64>,
    pub(crate) ttr: Option<u64>,
    pub(crate) on_missed: Option<OnMissed>,
    pub(crate) overlap: Option<Overlap>,
}

impl NewSchedule {
    pub(super) fn words(&self) -> Words {
        let words = Words::new("SCHEDULE SET");
        let words = words.bytes(&self.name).bytes(&self.queue).bytes(&self.payload);
        let words = match &self.due {
            Due::Every { ms, at } => words.option("EVERY", Some(*ms)).option("AT", *at),
            Due::Cron { expression, zone } => {
                words.option("CRON", Some(*expression)).option("ZONE", *zone)
            }
        };
        words
            .given("KEY", self.key.as_deref())
            .or_none("PRIORITY", self.priority)
            .option("TTL", self.ttl)
            .option("TTR", self.ttr)
            .option("MISSED", self.on_missed.map(OnMissed::word))
            .option("OVERLAP", self.overlap.map(Overlap::word))
    }

    pub(super) fn command(&self) -> Command<'_> {
        Command {
            name: &self.name,
            queue: &self.queue,
            payload: &self.payload,
            terms: Terms::of(self.key.as_deref(), self.ttr.map(Span::from_ms)),
            priority: self.priority.unwrap_or(Some(0)),
            ttl: self.ttl.map(Span::from_ms),
            when: match &self.due {
                Due::Every { ms, at } => {
                    When::Every { every: Span::from_ms(*ms), at: at.map(Timestamp::from_ms) }
                }
                Due::Cron { expression, zone } => {
                    let zone = zone.map(str::as_bytes);
                    When::Cron { expression: expression.as_bytes(), zone }
                }
            },
            on_missed: self.on_missed.unwrap_or(OnMissed::One),
            overlap: self.overlap.unwrap_or(Overlap::Allow),
        }
    }
}
