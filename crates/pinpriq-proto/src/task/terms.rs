//! The facts about a task that its producer sets: key, time to release, share, cost, headers, and
//! what is done when it fails.
//!
//! Hardly any task has any of them but the first two, and terms are moved about with every task. So
//! where they are kept, the others are behind a pointer, which is empty for all others. This
//! module knows nothing about turns and limits.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::{Bytes, headers};
use crate::assign::Assign;
use crate::facts::check_name;
use crate::limits::{ATTEMPTS_MAX, BACKOFF_MS_MAX, SHARE_BYTES_MAX};
use crate::refusal::{Refusal, RefusalKind};
use crate::time::Span;

/// What a task costs if its put does not say.
pub const COST_USUAL: u32 = 1;

/// The facts about a task that its producer sets, kept with owned bytes. Only the headers can be
/// changed later. For those that a request gives, see [`GivenTerms`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms<B = Bytes, S = Option<Arc<Extras<B>>>> {
    /// Tasks of one queue with an equal key form a group.
    pub key: Option<B>,
    /// The task's own time to release, used if the take gives none.
    pub ttr: Option<Span>,
    /// Read by [`Self::share`], [`Self::cost`], [`Self::headers`] and [`Self::retries`], and set by
    /// [`Self::with_all`] and [`Self::with_retries`].
    pub extras: S,
}

/// The same with the bytes of a request or a record.
pub type GivenTerms<'a> = Terms<&'a [u8], Option<Extras<&'a [u8]>>>;

/// On whose behalf a task runs, what it costs, its headers, and what is done when it fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extras<B> {
    share: Option<B>,
    cost: u32,
    /// See [`super::headers`]. Never empty.
    headers: Option<B>,
    retries: Packed,
}

/// [`Retries`] in little room, since every request has them. In each number, the lowest is as the
/// queue says, and the highest none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Packed {
    /// Never 0, so that a request without extras takes no more room.
    attempts: NonZeroU32,
    backoff_ms: u32,
    backoff_max_ms: u32,
}

/// What is done when a task fails, where that is not as its queue says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Retries {
    /// After how many failures it is not tried again, from 1 to [`ATTEMPTS_MAX`]. None is never.
    pub attempts: Assign<Option<u32>>,
    /// How long it waits after its first failure, from 1 to [`BACKOFF_MS_MAX`] milliseconds. None
    /// is not at all.
    pub backoff: Assign<Option<Span>>,
    /// The longest that it waits after a failure, from 1 to [`BACKOFF_MS_MAX`] milliseconds.
    pub backoff_max: Option<Span>,
}

impl Retries {
    /// As the queue says.
    pub const OF_QUEUE: Self =
        Self { attempts: Assign::Keep, backoff: Assign::Keep, backoff_max: None };

    /// After how many failures a task is not tried again whose queue says this.
    #[must_use]
    pub fn attempts(&self, of_queue: Option<u64>) -> Option<u64> {
        self.attempts.given().map_or(of_queue, |own| own.map(u64::from))
    }

    /// Whether a task can have this number of attempts of its own.
    #[must_use]
    pub const fn can_be_attempts(count: u32) -> bool {
        count > 0 && count <= ATTEMPTS_MAX
    }

    /// Whether a task can have this back-off of its own.
    #[must_use]
    pub fn can_be_backoff(span: Span) -> bool {
        (1..=BACKOFF_MS_MAX.into()).contains(&span.ms())
    }

    /// Whether it is as the queue says.
    #[must_use]
    pub const fn are_of_queue(&self) -> bool {
        let Self { attempts, backoff, backoff_max } = self;
        matches!(attempts, Assign::Keep) && matches!(backoff, Assign::Keep) && backoff_max.is_none()
    }

    /// Returns the memory that they count.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        if self.are_of_queue() { 0 } else { size_of::<Self>() }
    }
}

/// A way to hold extras.
pub trait Holds<B>: Sized {
    /// No share, the usual cost, and no headers.
    const USUAL: Self;
    /// Holds them.
    fn hold(given: Extras<B>) -> Self;
    /// Returns them, unless they are as usual.
    fn held(&self) -> Option<&Extras<B>>;
}

impl Packed {
    const OF_QUEUE: Self = Self { attempts: NonZeroU32::MIN, backoff_ms: 0, backoff_max_ms: 0 };

    fn of(retries: Retries) -> Self {
        let Retries { attempts, backoff, backoff_max } = retries;
        let more = |most: Option<u32>| {
            most.map_or(NonZeroU32::MAX, |most| NonZeroU32::MIN.saturating_add(most))
        };
        let ms = |span: Span| u32::try_from(span.ms()).unwrap_or(u32::MAX).min(BACKOFF_MS_MAX);
        Self {
            attempts: attempts.given().map_or(NonZeroU32::MIN, more),
            backoff_ms: backoff.given().map_or(0, |it| it.map_or(u32::MAX, ms)),
            backoff_max_ms: backoff_max.map_or(0, ms),
        }
    }

    fn retries(self) -> Retries {
        let attempts = match self.attempts {
            NonZeroU32::MIN => Assign::Keep,
            NonZeroU32::MAX => Assign::To(None),
            most => Assign::To(Some(most.get() - 1)),
        };
        let backoff = match self.backoff_ms {
            0 => Assign::Keep,
            u32::MAX => Assign::To(None),
            ms => Assign::To(Some(Span::from_ms(ms.into()))),
        };
        let backoff_max = Some(self.backoff_max_ms).filter(|ms| *ms > 0);
        let backoff_max = backoff_max.map(|ms| Span::from_ms(ms.into()));
        Retries { attempts, backoff, backoff_max }
    }
}

impl<B> Extras<B> {
    fn is_usual(&self) -> bool {
        let is_plain = self.headers.is_none() && self.share.is_none() && self.cost == COST_USUAL;
        is_plain && self.retries == Packed::OF_QUEUE
    }
}

impl Extras<&[u8]> {
    #[cold]
    #[inline(never)]
    fn kept(self) -> Option<Arc<Extras<Bytes>>> {
        let (share, headers) = (self.share.map(Bytes::from), self.headers.map(Bytes::from));
        Holds::hold(Extras { share, cost: self.cost, headers, retries: self.retries })
    }
}

impl<B> Holds<B> for Option<Extras<B>> {
    const USUAL: Self = None;

    fn hold(given: Extras<B>) -> Self {
        (!given.is_usual()).then_some(given)
    }

    #[inline]
    fn held(&self) -> Option<&Extras<B>> {
        self.as_ref()
    }
}

impl<B> Holds<B> for Option<Arc<Extras<B>>> {
    const USUAL: Self = None;

    fn hold(given: Extras<B>) -> Self {
        (!given.is_usual()).then(|| Arc::new(given))
    }

    #[inline]
    fn held(&self) -> Option<&Extras<B>> {
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
        Self { key, ttr, extras: S::USUAL }
    }

    /// The same terms with this share and cost.
    #[must_use]
    pub fn with(self, share: Option<B>, cost: u32) -> Self
    where
        B: Clone,
    {
        let headers = self.headers().cloned();
        self.with_all(share, cost, headers)
    }

    /// The same terms with these headers, as [`super::headers::encode`] writes them.
    #[must_use]
    pub fn with_headers(self, headers: Option<B>) -> Self
    where
        B: Clone,
    {
        let (share, cost) = (self.share().cloned(), self.cost());
        self.with_all(share, cost, headers)
    }

    /// The same terms with this share, this cost and these headers.
    #[must_use]
    #[inline(never)]
    pub fn with_all(self, share: Option<B>, cost: u32, headers: Option<B>) -> Self {
        let headers = headers.filter(|headers| !headers.as_ref().is_empty());
        let retries = self.extras.held().map_or(Packed::OF_QUEUE, |held| held.retries);
        Self { extras: S::hold(Extras { share, cost, headers, retries }), ..self }
    }

    /// Terms that have none of these yet with this share, this cost and these headers, which are
    /// not empty if there are any.
    #[must_use]
    #[inline]
    pub fn with_first(self, share: Option<B>, cost: u32, headers: Option<B>) -> Self {
        let retries = Packed::OF_QUEUE;
        Self { extras: S::hold(Extras { share, cost, headers, retries }), ..self }
    }

    /// The same terms, with this done when the task fails.
    #[must_use]
    pub fn with_retries(self, retries: Retries) -> Self
    where
        B: Clone,
    {
        let (share, headers) = (self.share().cloned(), self.headers().cloned());
        let (cost, retries) = (self.cost(), Packed::of(retries));
        Self { extras: S::hold(Extras { share, cost, headers, retries }), ..self }
    }

    /// On whose behalf the task runs, if that is not its key.
    #[must_use]
    #[inline]
    pub fn share(&self) -> Option<&B> {
        self.extras.held()?.share.as_ref()
    }

    /// What a take of it costs, at least [`COST_USUAL`].
    #[must_use]
    #[inline]
    pub fn cost(&self) -> u32 {
        self.extras.held().map_or(COST_USUAL, |held| held.cost)
    }

    /// Its headers as [`super::headers::encode`] writes them, if it has any.
    #[must_use]
    #[inline]
    pub fn headers(&self) -> Option<&B> {
        self.extras.held()?.headers.as_ref()
    }

    /// What is done when the task fails.
    #[must_use]
    #[inline]
    pub fn retries(&self) -> Retries {
        self.extras.held().map_or(Retries::OF_QUEUE, |held| held.retries.retries())
    }

    /// The same, if it is not as the queue of the task says.
    #[must_use]
    #[inline]
    pub fn own_retries(&self) -> Option<Retries> {
        let retries = self.extras.held()?.retries;
        (retries != Packed::OF_QUEUE).then(|| retries.retries())
    }

    /// The same as [`Self::headers`], where none are empty.
    #[must_use]
    pub fn header_bytes(&self) -> &[u8] {
        self.headers().map_or(&[], B::as_ref)
    }

    /// The share of a task with these terms: the one that its put named, or else its key.
    #[must_use]
    pub fn share_or_key(&self) -> &[u8] {
        self.share().or(self.key.as_ref()).map_or(&[], B::as_ref)
    }

    /// Whether all but key and time to release is as usual.
    #[must_use]
    #[inline]
    pub fn are_plain(&self) -> bool {
        self.extras.held().is_none()
    }

    /// Refuses a key that is too long.
    #[inline]
    pub fn check_key(&self) -> Result<(), Refusal> {
        self.key.as_ref().map_or(Ok(()), |key| check_name("key", key.as_ref()))
    }

    /// Refuses a key that is too long, and whatever else is out of bounds.
    pub fn check(&self) -> Result<(), Refusal> {
        self.check_key()?;
        let bad = |sentence: String| Err(Refusal::new(RefusalKind::BadArgument, sentence));
        let length = self.share().map(|share| share.as_ref().len());
        match length {
            Some(length) if length == 0 || length > SHARE_BYTES_MAX => {
                bad(format!("a share has 1 to {SHARE_BYTES_MAX} bytes, and this one has {length}"))
            }
            _ if self.cost() < COST_USUAL => bad("the cost must be at least 1".to_owned()),
            _ => headers::check(self.header_bytes()),
        }
    }

    /// Returns the same terms with borrowed bytes.
    #[must_use]
    #[inline]
    pub fn borrowed(&self) -> GivenTerms<'_> {
        let plain = GivenTerms::of(self.key.as_ref().map(B::as_ref), self.ttr);
        if self.are_plain() {
            return plain;
        }
        let (share, headers) = (self.share().map(B::as_ref), self.headers().map(B::as_ref));
        let all = plain.with_all(share, self.cost(), headers);
        self.own_retries().map_or(all, |retries| all.with_retries(retries))
    }

    /// Returns the number of bytes that they hold.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        if self.are_plain() { self.key_bytes() } else { self.all_bytes() }
    }

    #[cold]
    fn all_bytes(&self) -> usize {
        let share = self.share().map_or(0, |share| share.as_ref().len());
        let retries = self.own_retries().map_or(0, |retries| retries.bytes());
        self.key_bytes() + share + self.header_bytes().len() + retries
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
        Terms { extras: self.extras.and_then(Extras::kept), ..self.kept_plain() }
    }

    /// Returns the key and the time to release with owned bytes, and all else as usual.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every put")]
    pub fn kept_plain(self) -> Terms {
        Terms::of(self.key.map(Bytes::from), self.ttr)
    }
}

impl<B: AsRef<[u8]>, S: Holds<B>> Default for Terms<B, S> {
    fn default() -> Self {
        Self::NONE
    }
}
