//! Things by number, of which most are few.

use std::collections::BTreeMap;
use std::ops::Bound;

/// What has a number.
pub(super) trait HasNumber {
    fn number(&self) -> i64;
}

/// The most things that are few, and how many are few again.
const FEW_MAX: usize = 16;
const FEW_AGAIN: usize = 4;

/// Things by number. Every operation costs O(log n).
#[derive(Debug, Default)]
pub(super) enum Numbered<T> {
    #[default]
    None,
    One(T),
    /// Several, by number.
    Few(Vec<T>),
    Many(BTreeMap<i64, T>),
}

impl<T: HasNumber> Numbered<T> {
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&T> {
        match self {
            Self::None => None,
            Self::One(thing) => Some(thing),
            Self::Few(things) => things.first(),
            Self::Many(things) => things.values().next(),
        }
    }

    #[inline]
    pub(super) fn find(&self, number: i64) -> Option<&T> {
        match self {
            Self::None => None,
            Self::One(thing) => Some(thing).filter(|thing| thing.number() == number),
            Self::Few(things) => things.iter().find(|thing| thing.number() == number),
            Self::Many(things) => things.get(&number),
        }
    }

    #[inline]
    pub(super) fn find_mut(&mut self, number: i64) -> Option<&mut T> {
        match self {
            Self::None => None,
            Self::One(thing) => Some(thing).filter(|thing| thing.number() == number),
            Self::Few(things) => things.iter_mut().find(|thing| thing.number() == number),
            Self::Many(things) => things.get_mut(&number),
        }
    }

    /// Like [`Self::find_mut`], with a guess at which place among few it is, which is put right.
    #[inline]
    pub(super) fn find_near(&mut self, number: i64, guess: &mut u8) -> Option<&mut T> {
        if let Self::Few(things) = self {
            if things.get(usize::from(*guess)).is_none_or(|thing| thing.number() != number) {
                let place = things.iter().position(|thing| thing.number() == number)?;
                *guess = u8::try_from(place).unwrap_or(0);
            }
            return things.get_mut(usize::from(*guess));
        }
        self.find_mut(number)
    }

    /// Adds a thing, whose number must be new.
    #[inline(never)]
    pub(super) fn insert(&mut self, thing: T) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(thing),
            Self::One(one) => {
                let is_first = thing.number() < one.number();
                Self::Few(if is_first { vec![thing, one] } else { vec![one, thing] })
            }
            Self::Few(mut things) if things.len() < FEW_MAX => {
                let at = things.partition_point(|other| other.number() < thing.number());
                things.reserve_exact(1);
                things.insert(at, thing);
                Self::Few(things)
            }
            Self::Few(things) => {
                let things = things.into_iter().chain([thing]);
                Self::Many(things.map(|thing| (thing.number(), thing)).collect())
            }
            Self::Many(mut things) => {
                things.insert(thing.number(), thing);
                Self::Many(things)
            }
        };
    }

    #[inline(never)]
    pub(super) fn remove(&mut self, number: i64) {
        *self = match std::mem::take(self) {
            Self::None => Self::None,
            Self::One(thing) if thing.number() == number => Self::None,
            Self::One(thing) => Self::One(thing),
            Self::Few(mut things) => {
                things.retain(|thing| thing.number() != number);
                if things.len() == 1
                    && let Some(thing) = things.pop()
                {
                    Self::One(thing)
                } else {
                    things.shrink_to_fit();
                    Self::Few(things)
                }
            }
            Self::Many(mut things) => {
                things.remove(&number);
                if things.len() > FEW_AGAIN {
                    Self::Many(things)
                } else {
                    Self::Few(things.into_values().collect())
                }
            }
        };
    }

    /// Removes the thing of the lowest number.
    pub(super) fn remove_first(&mut self) {
        if let Some(number) = self.first().map(HasNumber::number) {
            self.remove(number);
        }
    }

    /// The first thing beyond this number, or the first of all.
    pub(super) fn after(&self, number: Option<i64>) -> Option<&T> {
        let is_beyond = |thing: &&T| number.is_none_or(|number| thing.number() > number);
        match self {
            Self::Many(things) => {
                let from = number.map_or(Bound::Unbounded, Bound::Excluded);
                things.range((from, Bound::Unbounded)).next().map(|(_, thing)| thing)
            }
            _ => self.iter().find(is_beyond),
        }
    }

    /// Iterates over the things up to a number, the highest number first.
    pub(super) fn down_from(&self, number: i64) -> impl Iterator<Item = &T> {
        let (few, many) = self.parts();
        let many = many.into_iter().flat_map(move |many| many.range(..=number).rev());
        let few = few.iter().rev().filter(move |thing| thing.number() <= number);
        few.chain(many.map(|(_, thing)| thing))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let (few, many) = self.parts();
        few.iter().chain(many.into_iter().flat_map(|many| many.values()))
    }

    fn parts(&self) -> (&[T], Option<&BTreeMap<i64, T>>) {
        match self {
            Self::None => (&[], None),
            Self::One(thing) => (std::slice::from_ref(thing), None),
            Self::Few(things) => (things, None),
            Self::Many(things) => (&[], Some(things)),
        }
    }
}
