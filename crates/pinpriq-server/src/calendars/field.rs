//! One field of a cron expression: text to a set of numbers.
//!
//! A set has the bit of each of its numbers. Which fields there are, and what they mean together,
//! is decided in `pattern`.

use super::Refusal;
use super::refusal::shown;

/// A kind of field.
#[derive(Debug)]
pub(crate) struct Field {
    name: &'static str,
    /// The allowed values, in words.
    allowed: &'static str,
    lowest: u8,
    highest: u8,
    /// The names of values, from the lowest on.
    names: &'static [&'static str],
}

pub(crate) static MINUTE: Field =
    Field { name: "minute", allowed: "0 to 59", lowest: 0, highest: 59, names: &[] };

pub(crate) static HOUR: Field =
    Field { name: "hour", allowed: "0 to 23", lowest: 0, highest: 23, names: &[] };

pub(crate) static DAY: Field =
    Field { name: "day of month", allowed: "1 to 31", lowest: 1, highest: 31, names: &[] };

pub(crate) static MONTH: Field = Field {
    name: "month",
    allowed: "1 to 12 or jan to dec",
    lowest: 1,
    highest: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};

/// Both 0 and 7 are Sunday.
pub(crate) static WEEKDAY: Field = Field {
    name: "day of week",
    allowed: "0 to 7 or sun to sat",
    lowest: 0,
    highest: 7,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

const SUNDAY: u8 = 0;
const SUNDAY_TOO: u8 = 7;

impl Field {
    /// Returns the set of a field's text, a list with commas.
    pub(crate) fn set(&self, text: &str) -> Result<u64, Refusal> {
        let mut set = 0;
        for part in text.split(',') {
            set |= self.part(part)?;
        }
        if self.is_weekday() {
            set |= (set >> SUNDAY_TOO) & 1;
            set &= !(1 << SUNDAY_TOO);
        }
        Ok(set)
    }

    /// Returns the set of one part of a list.
    fn part(&self, part: &str) -> Result<u64, Refusal> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (part, None),
        };
        let (from, to) = if range == "*" {
            (self.lowest, self.highest)
        } else if let Some((from, to)) = range.split_once('-') {
            let (from, mut to) = (self.value(from)?, self.value(to)?);
            if self.is_weekday() && to == SUNDAY && from > to {
                to = SUNDAY_TOO;
            }
            if from > to {
                return Err(Refusal::Range { field: self.name, given: shown(range) });
            }
            (from, to)
        } else {
            let value = self.value(range)?;
            if let Some(step) = step {
                let Self { name: field, highest, .. } = *self;
                return Err(Refusal::Stepless { field, value, highest, step, given: shown(part) });
            }
            (value, value)
        };
        let values = (from..=to).step_by(usize::from(step.unwrap_or(1)));
        Ok(values.fold(0, |set, value| set | (1 << value)))
    }

    fn value(&self, text: &str) -> Result<u8, Refusal> {
        let named = (self.lowest..)
            .zip(self.names)
            .find(|(_, name)| text.eq_ignore_ascii_case(name))
            .map(|(value, _)| value);
        named
            .or_else(|| number(text))
            .filter(|value| (self.lowest..=self.highest).contains(value))
            .ok_or_else(|| Refusal::Value {
                field: self.name,
                allowed: self.allowed,
                given: shown(text),
            })
    }

    fn step(&self, text: &str) -> Result<u8, Refusal> {
        let Self { name: field, highest, .. } = *self;
        number(text).filter(|step| (1..=highest).contains(step)).ok_or_else(|| Refusal::Step {
            field,
            highest,
            given: shown(text),
        })
    }

    const fn is_weekday(&self) -> bool {
        self.highest == SUNDAY_TOO
    }
}

/// Returns a number of nothing but digits.
fn number(text: &str) -> Option<u8> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}
