//! What each share has of each number: its tasks that may go, and what it has had.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Bound;

use super::standing::Standing;
use super::wide::Wide;

/// What a take of a task of cost 1 and of a share of weight 1 counts.
const UNIT: u64 = 1 << 20;

/// A share at one number, while it has tasks there that may go.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) number: i64,
    pub(super) account: Account,
    /// Its tasks that may go.
    pub(super) standing: Standing,
}

/// What a share has had at one number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    /// Where it begins to pay for its next turn.
    start: Wide,
    /// How many takes of the queue there had been with its last one. 0 if it has not been served
    /// since it got its turn.
    pub(super) served: u64,
    /// The weight by which it pays for its next turn.
    pub(super) weight: u16,
    /// The weight by which it has paid for its last one.
    paid: u16,
    /// The cost of its first task, if that has been looked up. It has its place here because there
    /// is room.
    pub(super) cost: Option<NonZeroU32>,
}

impl Account {
    /// The account of a share that gets its turn.
    pub(super) fn new(start: u128, weight: u16) -> Self {
        Self { start: start.into(), served: 0, weight, paid: weight, cost: None }
    }

    /// Makes it what it was before.
    pub(super) fn restore(&mut self, former: Self) {
        *self = Self { cost: self.cost, ..former };
    }

    /// Where it begins to pay for its next turn.
    pub(super) const fn start(&self) -> Wide {
        self.start
    }

    /// When the turn of a task of this cost comes.
    pub(super) fn turn(&self, cost: NonZeroU32) -> u128 {
        u128::from(self.start).saturating_add(price(cost, self.weight))
    }

    /// Begins anew at `start`, after the take with this number. The weight counts from now on.
    pub(super) fn pay(&mut self, start: u128, served: u64, weight: u16) {
        *self = Self { start: start.into(), served, weight, paid: self.weight, cost: self.cost };
    }

    /// Takes the charge for a task of this cost back.
    pub(super) fn give_back(&mut self, cost: NonZeroU32) {
        self.start = u128::from(self.start).saturating_sub(price(cost, self.paid)).into();
    }
}

/// What a task of this cost counts for a share of this weight.
pub(super) fn price(cost: NonZeroU32, weight: u16) -> u128 {
    // At most 2^52, and 64 bits are divided much faster than 128.
    (u64::from(cost.get()) * UNIT / u64::from(weight.max(1))).into()
}

/// The most pairs that are few, and how many are few again.
const FEW_MAX: usize = 16;
const FEW_AGAIN: usize = 4;

/// The pairs of a share, by number. Every operation costs O(log n).
#[derive(Debug, Default)]
pub(super) enum Pairs {
    #[default]
    None,
    One(Pair),
    /// Several, by number.
    Few(Vec<Pair>),
    Many(BTreeMap<i64, Pair>),
}

impl Pairs {
    pub(super) const fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(super) fn first(&self) -> Option<&Pair> {
        match self {
            Self::None => None,
            Self::One(pair) => Some(pair),
            Self::Few(pairs) => pairs.first(),
            Self::Many(pairs) => pairs.values().next(),
        }
    }

    pub(super) fn first_mut(&mut self) -> Option<&mut Pair> {
        match self {
            Self::None => None,
            Self::One(pair) => Some(pair),
            Self::Few(pairs) => pairs.first_mut(),
            Self::Many(pairs) => pairs.values_mut().next(),
        }
    }

    pub(super) fn find(&self, number: i64) -> Option<&Pair> {
        match self {
            Self::None => None,
            Self::One(pair) => Some(pair).filter(|pair| pair.number == number),
            Self::Few(pairs) => pairs.iter().find(|pair| pair.number == number),
            Self::Many(pairs) => pairs.get(&number),
        }
    }

    pub(super) fn find_mut(&mut self, number: i64) -> Option<&mut Pair> {
        match self {
            Self::None => None,
            Self::One(pair) => Some(pair).filter(|pair| pair.number == number),
            Self::Few(pairs) => pairs.iter_mut().find(|pair| pair.number == number),
            Self::Many(pairs) => pairs.get_mut(&number),
        }
    }

    /// The first pair beyond this number, or the first of all.
    pub(super) fn after(&self, number: Option<i64>) -> Option<&Pair> {
        let is_beyond = |pair: &&Pair| number.is_none_or(|number| pair.number > number);
        match self {
            Self::Many(pairs) => {
                let from = number.map_or(Bound::Unbounded, Bound::Excluded);
                pairs.range((from, Bound::Unbounded)).next().map(|(_, pair)| pair)
            }
            _ => self.iter().find(is_beyond),
        }
    }

    /// Adds a pair, whose number must be new.
    pub(super) fn insert(&mut self, pair: Pair) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(pair),
            Self::One(one) => {
                let is_first = pair.number < one.number;
                Self::Few(if is_first { vec![pair, one] } else { vec![one, pair] })
            }
            Self::Few(mut pairs) if pairs.len() < FEW_MAX => {
                let at = pairs.partition_point(|other| other.number < pair.number);
                pairs.reserve_exact(1);
                pairs.insert(at, pair);
                Self::Few(pairs)
            }
            Self::Few(pairs) => {
                let pairs = pairs.into_iter().chain([pair]);
                Self::Many(pairs.map(|pair| (pair.number, pair)).collect())
            }
            Self::Many(mut pairs) => {
                pairs.insert(pair.number, pair);
                Self::Many(pairs)
            }
        };
    }

    pub(super) fn remove(&mut self, number: i64) {
        *self = match std::mem::take(self) {
            Self::None => Self::None,
            Self::One(pair) if pair.number == number => Self::None,
            Self::One(pair) => Self::One(pair),
            Self::Few(mut pairs) => {
                pairs.retain(|pair| pair.number != number);
                if pairs.len() == 1
                    && let Some(pair) = pairs.pop()
                {
                    Self::One(pair)
                } else {
                    pairs.shrink_to_fit();
                    Self::Few(pairs)
                }
            }
            Self::Many(mut pairs) => {
                pairs.remove(&number);
                if pairs.len() > FEW_AGAIN {
                    Self::Many(pairs)
                } else {
                    Self::Few(pairs.into_values().collect())
                }
            }
        };
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Pair> {
        let (few, many) = match self {
            Self::None => (&[][..], None),
            Self::One(pair) => (std::slice::from_ref(pair), None),
            Self::Few(pairs) => (&pairs[..], None),
            Self::Many(pairs) => (&[][..], Some(pairs)),
        };
        few.iter().chain(many.into_iter().flat_map(|pairs| pairs.values()))
    }
}
