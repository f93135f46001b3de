//! The facts about a task that its producer sets for good: key, time to release, share and cost.
//!
//! Hardly any task has a share or a cost, and terms are moved about with every task. So where they
//! are kept, these two are behind a pointer, which is empty for all others. This module knows
//! nothing about turns and limits.

use std::sync::Arc;

use super::Bytes;
use crate::facts::check_name;
use crate::limits::SHARE_BYTES_MAX;
use crate::refusal::{Refusal, RefusalKind};
use crate::time::Span;

/// What a task costs if its put does not say.
pub const COST_USUAL: u32 = 1;

/// The facts about a task that its producer sets for good, kept with owned bytes. For those that a
/// request gives, see [`GivenTerms`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms<B = Bytes, S = Option<Arc<ShareAndCost<B>>>> {
    /// Tasks of one queue with an equal key form a group.
    pub key: Option<B>,
    /// The task's own time to release, used if the take gives none.
    pub ttr: Option<Span>,
    /// Read by [`Self::share`] and [`Self::cost`], and set by [`Self::with`].
    pub share_and_cost: S,
}

/// The same with the bytes of a request or a record.
pub type GivenTerms<'a> = Terms<&'a [u8], ShareAndCost<&'a [u8]>>;

/// On whose behalf a task runs, and what it costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareAndCost<B> {
    share: Option<B>,
    cost: u32,
}

/// A way to hold a share and a cost.
pub trait Holds<B>: Sized {
    /// No share, and the usual cost.
    const USUAL: Self;
    /// Holds them.
    fn hold(given: ShareAndCost<B>) -> Self;
    /// Returns them, unless they are as usual.
    fn held(&self) -> Option<&ShareAndCost<B>>;
}

impl<B> ShareAndCost<B> {
    const fn is_usual(&self) -> bool {
        self.share.is_none() && self.cost == COST_USUAL
    }
}

impl ShareAndCost<&[u8]> {
    #[cold]
    #[inline(never)]
    fn kept(self) -> Option<Arc<ShareAndCost<Bytes>>> {
        Holds::hold(ShareAndCost { share: self.share.map(Bytes::from), cost: self.cost })
    }
}

impl<B> Holds<B> for ShareAndCost<B> {
    const USUAL: Self = Self { share: None, cost: COST_USUAL };

    fn hold(given: Self) -> Self {
        given
    }

    #[inline]
    fn held(&self) -> Option<&Self> {
        (!self.is_usual()).then_some(self)
    }
}

impl<B> Holds<B> for Option<Arc<ShareAndCost<B>>> {
    const USUAL: Self = None;

    fn hold(given: ShareAndCost<B>) -> Self {
        (!given.is_usual()).then(|| Arc::new(given))
    }

    #[inline]
    fn held(&self) -> Option<&ShareAndCost<B>> {
        self.as_deref()
    }
}

impl<B: AsRef<[u8]>, S: Holds<B>> Terms<B, S> {
    /// The terms of a task whose put says nothing about them.
    pub const NONE: Self = Self::of(None, None);

    /// Terms with this key and time to release.
    #[must_use]
    #[inline]
    pub const fn of(key: Option<B>, ttr: Option<Span>) -> Self {
        Self { key, ttr, share_and_cost: S::USUAL }
    }

    /// The same terms with this share and cost.
    #[must_use]
    #[inline(never)]
    pub fn with(self, share: Option<B>, cost: u32) -> Self {
        Self { share_and_cost: S::hold(ShareAndCost { share, cost }), ..self }
    }

    /// On whose behalf the task runs, if that is not its key.
    #[must_use]
    #[inline]
    pub fn share(&self) -> Option<&B> {
        self.share_and_cost.held()?.share.as_ref()
    }

    /// What a take of it costs, at least [`COST_USUAL`].
    #[must_use]
    #[inline]
    pub fn cost(&self) -> u32 {
        self.share_and_cost.held().map_or(COST_USUAL, |held| held.cost)
    }

    /// The share of a task with these terms: the one that its put named, or else its key.
    #[must_use]
    pub fn share_or_key(&self) -> &[u8] {
        self.share().or(self.key.as_ref()).map_or(&[], B::as_ref)
    }

    /// Whether share and cost are as usual.
    #[must_use]
    #[inline]
    pub fn are_plain(&self) -> bool {
        self.share_and_cost.held().is_none()
    }

    /// Refuses a key that is too long.
    #[inline]
    pub fn check_key(&self) -> Result<(), Refusal> {
        self.key.as_ref().map_or(Ok(()), |key| check_name("key", key.as_ref()))
    }

    /// Refuses a key that is too long, and a share or a cost out of bounds.
    pub fn check(&self) -> Result<(), Refusal> {
        self.check_key()?;
        let bad = |sentence: String| Err(Refusal::new(RefusalKind::BadArgument, sentence));
        let length = self.share().map(|share| share.as_ref().len());
        match length {
            Some(length) if length == 0 || length > SHARE_BYTES_MAX => {
                bad(format!("a share has 1 to {SHARE_BYTES_MAX} bytes, and this one has {length}"))
            }
            _ if self.cost() < COST_USUAL => bad("the cost must be at least 1".to_owned()),
            _ => Ok(()),
        }
    }

    /// Returns the same terms with borrowed bytes.
    #[must_use]
    #[inline]
    pub fn borrowed(&self) -> GivenTerms<'_> {
        let plain = GivenTerms::of(self.key.as_ref().map(B::as_ref), self.ttr);
        if self.are_plain() { plain } else { plain.with(self.share().map(B::as_ref), self.cost()) }
    }

    /// Returns the number of bytes that they hold.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.key_bytes() + self.share().map_or(0, |share| share.as_ref().len())
    }

    /// Returns the length of the key in bytes.
    #[must_use]
    #[inline]
    pub fn key_bytes(&self) -> usize {
        self.key.as_ref().map_or(0, |key| key.as_ref().len())
    }
}

impl GivenTerms<'_> {
    /// Returns the same terms with owned bytes.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every task that a log gives back")]
    pub fn kept(self) -> Terms {
        let share_and_cost = if self.are_plain() { None } else { self.share_and_cost.kept() };
        Terms { key: self.key.map(Bytes::from), ttr: self.ttr, share_and_cost }
    }
}

impl<B: AsRef<[u8]>, S: Holds<B>> Default for Terms<B, S> {
    fn default() -> Self {
        Self::NONE
    }
}
