//! From the parts of a request to a command: what each type of a field looks like as words.
//!
//! `pinpriq-derive` makes a [`Read`] of each variant with `#[request(…)]`, out of the types of its
//! fields. Which values make sense together is up to the engine.

use std::cell::OnceCell;

use super::fault::Fault;
use super::options::{self, Opt};
use super::parts::{self, Parts, no_value};
use super::spec::{Group, Spec, Word};
use crate::command::{
    Assign, Command, End, Held, HeldBy, Order, QueueName, Selection, Sides, Wait,
};
use crate::fanout::Deadline;
use crate::task::{Receipt, StateKind, Terms};
use crate::time::{Span, Timestamp};

/// Makes a command of a request.
pub type Read = for<'a> fn(&Parts<'a>, &'a Room<'a>) -> Result<Command<'a>, Fault>;

/// An entry of the table of commands, and how its request is read, unless a door does that.
#[derive(Clone, Copy)]
pub(crate) struct Row(pub(crate) Spec, pub(crate) Option<Read>);

impl Row {
    /// No entry.
    pub(crate) const NONE: Self = Self(Spec::new("", Group::Tasks, "", ""), None);
}

/// What a command borrows that does not stand in its request as it is. An unused one is empty.
#[derive(Default, Debug)]
pub struct Room<'a> {
    /// A name that a cursor stands for.
    pub(super) name: OnceCell<Vec<u8>>,
    /// The changes of settings.
    pub(super) settings: OnceCell<Vec<crate::settings::Assignment<'a>>>,
}

/// A struct whose fields are words and options of a request.
pub(crate) trait Arguments<'a>: Sized {
    /// Its words.
    const WORDS: &'static [Word];
    /// Its options.
    const OPTIONS: &'static [Opt];
    /// The options that say more about its words. They come after all others.
    const LAST: &'static [Opt];

    /// Reads it from a request in which its words begin at this place.
    fn read(parts: &Parts<'a>, at: usize, room: &'a Room<'a>) -> Result<Self, Fault>;
}

/// A name that decides the shard.
pub(crate) trait Key<'a>: Sized {
    /// The options that say more about it.
    const OPTIONS: &'static [Opt] = &[];

    /// Reads the word at this place.
    fn read(parts: &Parts<'a>, at: usize) -> Result<Self, Fault>;
}

/// A value that is one word.
pub(crate) trait Value<'a>: Sized {
    /// What stands for it in the documentation. Bytes are called as their field.
    const SHOWN: &'static str = "";

    /// Reads the value of what is called `word`.
    fn read(word: &str, text: &'a [u8]) -> Result<Self, Fault>;
}

impl<'a> Key<'a> for &'a [u8] {
    fn read(parts: &Parts<'a>, at: usize) -> Result<Self, Fault> {
        Ok(parts.word(at))
    }
}

impl<'a> Key<'a> for QueueName<'a> {
    const OPTIONS: &'static [Opt] = &[options::MEMBER];

    fn read(parts: &Parts<'a>, at: usize) -> Result<Self, Fault> {
        Ok(Self { name: parts.word(at), member: parts.given(options::MEMBER) })
    }
}

impl<'a> Key<'a> for Option<QueueName<'a>> {
    const OPTIONS: &'static [Opt] = &[options::MEMBER];

    fn read(parts: &Parts<'a>, at: usize) -> Result<Self, Fault> {
        if parts.words.len() > at {
            return QueueName::read(parts, at).map(Some);
        }
        if parts.given(options::MEMBER).is_some() {
            let name = parts.spec().full_name();
            return Err(Fault::bad(format!("{name} of a lane names the topic first")));
        }
        Ok(None)
    }
}

impl<'a> Value<'a> for &'a [u8] {
    fn read(_: &str, text: &'a [u8]) -> Result<Self, Fault> {
        Ok(text)
    }
}

impl Value<'_> for Span {
    const SHOWN: &'static str = "ms";

    fn read(word: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::span(word, text)
    }
}

impl Value<'_> for Timestamp {
    const SHOWN: &'static str = "unix-ms";

    fn read(word: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::moment(word, text)
    }
}

/// A number of at least 1.
impl Value<'_> for u64 {
    const SHOWN: &'static str = "n";

    fn read(word: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::count(word, text)
    }
}

/// The same. More than fits stands for the most.
impl Value<'_> for u32 {
    const SHOWN: &'static str = "n";

    fn read(word: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::count(word, text).map(|count| Self::try_from(count).unwrap_or(Self::MAX))
    }
}

/// The same.
impl Value<'_> for usize {
    const SHOWN: &'static str = "n";

    fn read(word: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::count(word, text).map(|count| Self::try_from(count).unwrap_or(Self::MAX))
    }
}

/// A priority, or none.
impl Value<'_> for Option<i64> {
    const SHOWN: &'static str = "n|NONE";

    fn read(_: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::any_priority(text)
    }
}

impl Value<'_> for StateKind {
    const SHOWN: &'static str = "R|W|T|B|Z|D";

    fn read(_: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::state(text)
    }
}

impl Value<'_> for Receipt {
    const SHOWN: &'static str = "receipt";

    fn read(_: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::receipt(text)
    }
}

impl Value<'_> for Wait {
    const SHOWN: &'static str = "ms";

    fn read(word: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::wait(word, text)
    }
}

impl Value<'_> for Sides {
    const SHOWN: &'static str = "IN|OUT";

    fn read(_: &str, text: &[u8]) -> Result<Self, Fault> {
        match text {
            _ if text.eq_ignore_ascii_case(b"IN") => Ok(Self::Input),
            _ if text.eq_ignore_ascii_case(b"OUT") => Ok(Self::Output),
            _ => Err(no_value("a side is IN or OUT", text)),
        }
    }
}

/// A receipt, or `ID` and an id.
impl<'a> Arguments<'a> for Held<'a> {
    const WORDS: &'static [Word] = &[Word::Key("queue"), Word::Held];
    const OPTIONS: &'static [Opt] = &[];
    const LAST: &'static [Opt] = <QueueName<'_> as Key<'_>>::OPTIONS;

    fn read(parts: &Parts<'a>, at: usize, _: &'a Room<'a>) -> Result<Self, Fault> {
        debug_assert_eq!(at, 0, "the name of a queue is the first word");
        held(parts)
    }
}

impl<'a> Arguments<'a> for Selection {
    const WORDS: &'static [Word] = &[];
    const OPTIONS: &'static [Opt] = &[options::FROM, options::ORDER];
    const LAST: &'static [Opt] = &[];

    fn read(parts: &Parts<'a>, _: usize, _: &'a Room<'a>) -> Result<Self, Fault> {
        selection(parts, false)
    }
}

impl<'a> Arguments<'a> for Deadline {
    const WORDS: &'static [Word] = &[];
    const OPTIONS: &'static [Opt] = &[options::DEADLINE, options::TTL];
    const LAST: &'static [Opt] = &[];

    fn read(parts: &Parts<'a>, _: usize, _: &'a Room<'a>) -> Result<Self, Fault> {
        match (parts.moment(options::DEADLINE)?, parts.span(options::TTL)?) {
            (None, None) => Ok(Self::OfLane),
            (Some(at), None) => Ok(Self::At(at)),
            (None, Some(ttl)) => Ok(Self::After(ttl)),
            (Some(_), Some(_)) => {
                Err(Fault::bad("DEADLINE and TTL say the same: give one of them"))
            }
        }
    }
}

/// Returns the task that a holder names: by receipt, or by `ID id`.
pub fn held<'a>(parts: &Parts<'a>) -> Result<Held<'a>, Fault> {
    let (queue, name) = (parts.queue(), parts.named());
    let by = if parts.by_id { HeldBy::Id(name) } else { HeldBy::Receipt(parts::receipt(name)?) };
    Ok(Held { queue, by })
}

/// Returns which tasks are chosen.
pub fn selection(parts: &Parts<'_>, group: bool) -> Result<Selection, Fault> {
    let from: End = parts.from()?;
    let order: Order = parts.order(from)?;
    Ok(Selection { from, order, group, narrow: false })
}

/// The terms of a task of which only the key is given.
pub(crate) mod key_alone {
    use super::{Fault, Opt, Parts, Room, Terms, options};

    pub(crate) const OPTION: Opt = options::KEY;

    #[expect(clippy::unnecessary_wraps, reason = "all values are read by such functions")]
    pub(crate) fn read<'a>(parts: &Parts<'a>, _: &'a Room<'a>) -> Result<Terms<&'a [u8]>, Fault> {
        Ok(Terms { key: parts.given(OPTION), ..Terms::NONE })
    }
}

/// A new TTL, or none where a command has `TTL ms|NONE`.
pub(crate) mod new_ttl {
    use super::{Assign, Fault, Opt, Parts, Room, Span, options};

    pub(crate) const OPTION: Opt = options::TTL;

    pub(crate) fn read(parts: &Parts<'_>, _: &Room<'_>) -> Result<Assign<Option<Span>>, Fault> {
        let may_be_none = || parts.spec().options.contains(&options::TTL_OR_NONE);
        match parts.given(OPTION) {
            None => Ok(Assign::Keep),
            Some(text) if text.eq_ignore_ascii_case(b"NONE") && may_be_none() => {
                Ok(Assign::To(None))
            }
            Some(text) => super::parts::span(OPTION.word, text).map(Some).map(Assign::To),
        }
    }
}

/// Returns how many items lists have together.
pub(crate) const fn total<T>(lists: &[&[T]]) -> usize {
    let (mut list, mut total) = (0, 0);
    while list < lists.len() {
        (total, list) = (total + lists[list].len(), list + 1);
    }
    total
}

/// Joins lists into one of `N` items, which is how many they have together.
pub(crate) const fn join<T: Copy, const N: usize>(filler: T, lists: &[&[T]]) -> [T; N] {
    let mut all = [filler; N];
    let (mut list, mut end) = (0, 0);
    while list < lists.len() {
        let mut at = 0;
        while at < lists[list].len() {
            all[end] = lists[list][at];
            (at, end) = (at + 1, end + 1);
        }
        list += 1;
    }
    all
}
