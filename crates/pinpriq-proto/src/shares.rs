//! What is decided about single shares of a queue, and how shares are shown.
//!
//! What the rules do is in `memory/turns.rs` of the engine.

use crate::limits::{SETTING_MAX, SHARE_BYTES_MAX};
use crate::refusal::{Refusal, RefusalKind};
use crate::settings::Rate;
use crate::task::Bytes;
use crate::time::Span;

/// The greatest weight of a share. The least is 1.
pub const WEIGHT_MAX: u16 = 1_000;

/// The most shares of a queue that have rules of their own.
pub const OWN_SHARES_MAX: usize = 100_000;

/// The most shares on a page of those that wait longest.
pub const TOP_SHARES_MAX: u32 = 100;

/// How many tasks one look at the shares of a queue counts that were not counted before.
pub const COUNTED_PER_LOOK: usize = 5_000;

/// What the rules of one share count against [`crate::limits::Limits::bytes_max`] in addition to
/// the names of queue and share. An estimate.
pub const OWN_SHARE_OVERHEAD_BYTES: u64 = 512;

/// What a share has instead of the rules of its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct ShareRules {
    /// How much it gets of a fair queue, compared with others.
    pub weight: u16,
    /// How many of its tasks may be taken at once.
    pub limit: Own<u64>,
    /// How many of its tasks are handed out in a time.
    pub rate: Own<Rate>,
}

/// A rule that a share may have of its own.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, pinpriq_derive::Letter)]
pub enum Own<T> {
    /// That of the queue.
    #[default]
    #[letter(1)]
    Default,
    /// This one, or none.
    #[letter(2)]
    Is(Option<T>),
}

/// Which rules of a share change. What is not given stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub struct ShareChange {
    /// The new weight.
    #[letter(1)]
    pub weight: Option<u32>,
    /// The new limit.
    #[letter(2)]
    pub limit: Option<Own<u64>>,
    /// The new rate.
    #[letter(3)]
    pub rate: Option<Own<Rate>>,
}

/// The rules of a share, for the store and for other servers.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct ShareRecord {
    /// Distinguishes it from all other records.
    pub number: u64,
    /// The queue.
    pub queue: Bytes,
    /// The share. May be empty.
    pub share: Bytes,
    /// Its rules, which differ from the usual ones.
    pub rules: ShareRules,
}

/// A share of a queue, as it is shown.
#[derive(Clone, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub struct ShareShown {
    /// Its name. May be empty.
    pub share: Bytes,
    /// Its rules.
    pub rules: ShareRules,
    /// Its tasks that are ready.
    pub ready: u64,
    /// Its tasks that are taken.
    pub taken: u64,
    /// How long its task that was handed out last had been ready, if one was since its queue is
    /// looked at.
    #[letter(1)]
    pub waited: Option<Span>,
    /// How long ago the oldest of its ready tasks with a priority was put.
    #[letter(2)]
    pub oldest_ready: Option<Span>,
    /// How many of its tasks were acknowledged or popped since its queue is looked at.
    pub acked: u64,
    /// How often one of its tasks has failed since then.
    pub failed: u64,
}

/// What a look at the shares of a queue for its metrics has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SharesLook {
    /// The queue has no such metrics.
    Nothing,
    /// Its tasks are still being counted.
    Counting,
    /// Those with most tasks, first the one with most.
    Known(Vec<ShareShown>),
}

impl Default for ShareRules {
    fn default() -> Self {
        Self { weight: 1, limit: Own::Default, rate: Own::Default }
    }
}

impl<T> Own<T> {
    /// What holds in a queue with this rule.
    #[must_use]
    pub fn or(self, of_queue: Option<T>) -> Option<T> {
        match self {
            Self::Default => of_queue,
            Self::Is(own) => own,
        }
    }
}

impl ShareRules {
    /// Whether they can hold tasks back, whatever the rules of the queue.
    #[must_use]
    pub const fn may_hold_back(&self) -> bool {
        matches!(self.limit, Own::Is(Some(_))) || matches!(self.rate, Own::Is(Some(_)))
    }

    /// Says what is wrong with them, apart from times beyond the range of the clock.
    pub fn check(&self) -> Result<(), Refusal> {
        let bad = |sentence: String| Err(Refusal::new(RefusalKind::BadArgument, sentence));
        if !(1..=WEIGHT_MAX).contains(&self.weight) {
            return bad(format!("WEIGHT is a number from 1 to {WEIGHT_MAX}"));
        }
        if let Own::Is(Some(limit)) = self.limit
            && !(1..=SETTING_MAX).contains(&limit)
        {
            return bad(format!("LIMIT is a number from 1 to {SETTING_MAX}, none or default"));
        }
        match self.rate {
            Own::Is(Some(Rate { count: 0, .. } | Rate { per: Span::ZERO, .. })) => {
                bad("RATE is at least 1 task in at least 1 ms".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl ShareChange {
    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Rules after the change. A weight that is too great is one that the rules cannot have.
    #[must_use]
    pub fn applied_to(&self, rules: ShareRules) -> ShareRules {
        let weight = self.weight.map(|weight| u16::try_from(weight).unwrap_or(u16::MAX));
        ShareRules {
            weight: weight.unwrap_or(rules.weight),
            limit: self.limit.unwrap_or(rules.limit),
            rate: self.rate.unwrap_or(rules.rate),
        }
    }
}

impl ShareRecord {
    /// What it occupies.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        own_share_bytes(self.queue.len(), self.share.len())
    }
}

/// What the rules of a share occupy, of a queue with a name of `queue` bytes.
#[must_use]
pub const fn own_share_bytes(queue: usize, share: usize) -> u64 {
    OWN_SHARE_OVERHEAD_BYTES + (queue + share) as u64
}

/// Refuses a name that no share can have.
pub fn check_share_name(share: &[u8]) -> Result<(), Refusal> {
    if share.len() <= SHARE_BYTES_MAX {
        return Ok(());
    }
    let length = share.len();
    let sentence =
        format!("a share has at most {SHARE_BYTES_MAX} bytes, and this one has {length}");
    Err(Refusal::new(RefusalKind::BadArgument, sentence))
}
