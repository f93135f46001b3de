//! From the words of a request to its parts, and from a part to a value.
//!
//! The shape of the request comes from its [`Spec`]. The engine decides whether the values make
//! sense together.

use super::fault::{Fault, shown};
use super::options::{self, Opt};
use super::spec::{Spec, Word};
use crate::batches::{AFTER_MAX, encode_names};
use crate::command::{Assign, Done, QueueName, Wait};
use crate::limits::HEADERS_MAX;
use crate::task::{Grant, Receipt, StateKind, headers};
use crate::time::{Span, Timestamp};

/// As many given options have room without an allocation.
const OPTIONS_FEW: usize = 6;

/// The parts of a request.
#[derive(Debug)]
pub struct Parts<'a> {
    spec: &'static Spec,
    /// The words before the options, in order, with the `ID` of a holder.
    pub words: &'a [&'a [u8]],
    /// Whether a holder named its task by `ID id`.
    pub by_id: bool,
    /// The first of the given options: the number of each, and its value, which is empty for an
    /// option without one.
    options: [Option<(u64, &'a [u8])>; OPTIONS_FEW],
    /// The others.
    more_options: Vec<(u64, &'a [u8])>,
    /// The number of the first.
    options_few: usize,
    /// The [`Opt::bit`]s of the given options.
    options_bits: u64,
    /// The tasks named by `DONE`.
    pub done: Vec<Done<'a>>,
    /// The headers, if `HEADERS` was given: see [`headers`].
    headers: Option<Vec<u8>>,
    /// The names of batches, if `AFTER` was given: see [`encode_names`].
    after: Option<Vec<u8>>,
    /// The same names, if the request has them as words.
    pub after_words: Vec<&'a [u8]>,
}

impl<'a> Parts<'a> {
    /// Returns the parts of a request that has none yet.
    #[inline]
    #[must_use]
    pub const fn of(spec: &'static Spec) -> Self {
        Self {
            spec,
            words: &[],
            by_id: false,
            options: [None; OPTIONS_FEW],
            more_options: Vec::new(),
            options_few: 0,
            options_bits: 0,
            done: Vec::new(),
            headers: None,
            after: None,
            after_words: Vec::new(),
        }
    }

    /// Returns the parts of a request whose words and options are told apart already. Each option
    /// must be one of the command, and be given once. The value of `HEADERS` is as
    /// [`headers::encode`] writes it, that of `AFTER` as [`encode_names`] does, and that of an
    /// option with two values as if it were a header.
    pub fn told_apart(
        spec: &'static Spec,
        words: &'a [&'a [u8]],
        options: impl Iterator<Item = (Opt, &'a [u8])>,
    ) -> Self {
        let mut parts = Self { words, ..Self::of(spec) };
        for (option, value) in options {
            if option.letters == options::HEADERS.letters {
                parts.headers = Some(value.to_vec());
                parts.options_bits |= option.bit;
            } else if option.letters == options::AFTER.letters {
                parts.after = Some(value.to_vec());
                parts.options_bits |= option.bit;
            } else if option.has_two() {
                headers::decode(value).for_each(|(first, second)| {
                    parts.note_two(option, [first, second]);
                });
            } else {
                parts.note(option, value);
            }
        }
        parts
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every put")]
    fn note(&mut self, option: Opt, value: &'a [u8]) {
        match self.options.get_mut(self.options_few) {
            Some(place) => {
                *place = Some((option.letters, value));
                self.options_few += 1;
            }
            None => self.more_options.push((option.letters, value)),
        }
        self.options_bits |= option.bit;
    }

    fn note_two(&mut self, option: Opt, values: [&'a [u8]; 2]) {
        self.more_options.extend(values.map(|value| (option.letters, value)));
        self.options_bits |= option.bit;
    }

    /// Adds a task that is done.
    pub fn add_done(&mut self, done: Done<'a>) {
        self.done.push(done);
    }

    /// Sorts the words that follow the command.
    ///
    /// Refuses too few or too many words, unknown or repeated options, and an option without its
    /// value.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "every request passes here")]
    pub fn sort(&mut self, given: &'a [&'a [u8]]) -> Result<(), Fault> {
        let (mut from, mut to) = (0, 0);
        for word in self.spec.words {
            if matches!(word, Word::One(_) | Word::Key(_)) && to < given.len() {
                to += 1;
                continue;
            }
            match word {
                // These are the only words of the command.
                Word::AnyQueues if given.is_empty() || self.is_option(given) => {}
                Word::Queues | Word::AnyQueues => (from, to) = self.find_queues(given)?,
                _ => to += self.count_words(*word, &given[to..])?,
            }
        }
        self.words = &given[from..to];
        self.take_options(&given[to..])
    }

    /// Like [`Self::sort`], for a request within a transaction.
    #[inline(never)]
    pub fn sort_step(&mut self, given: &'a [&'a [u8]]) -> Result<(), Fault> {
        self.sort(given)
    }

    #[cold]
    fn arity(&self) -> Fault {
        Fault::arity(&self.spec.full_name())
    }

    /// Returns the number of words at the front that belong to one entry of the spec.
    #[inline(never)]
    fn count_words(&mut self, word: Word, rest: &[&[u8]]) -> Result<usize, Fault> {
        match word {
            Word::One(_) | Word::Key(_) if rest.is_empty() => Err(self.arity()),
            Word::One(_) | Word::Key(_) => Ok(1),
            Word::Maybe(_) | Word::MaybeKey(_) => {
                Ok(usize::from(!rest.is_empty() && !self.are_options(rest)))
            }
            Word::MaybeKeyFirst(_) => Ok(usize::from(rest.len() > 1)),
            Word::Some(_) | Word::Any(_) | Word::Settings | Word::AnySettings => {
                let has_none = rest.is_empty() || self.is_option(rest);
                match word {
                    Word::Some(_) | Word::Settings if has_none => Err(self.arity()),
                    _ if has_none => Ok(0),
                    // The first is an option only if nothing follows its value.
                    _ => Ok(1 + self.count_to_option(&rest[1..])),
                }
            }
            Word::Queues | Word::AnyQueues | Word::Held | Word::CountOrId | Word::HeldOrMore => {
                self.count_held(word, rest)
            }
        }
    }

    /// Returns the number of words before the first that looks like an option.
    fn count_to_option(&self, rest: &[&[u8]]) -> usize {
        let options = self.spec.options;
        rest.iter().take_while(|word| options::find(options, word).is_none()).count()
    }

    /// Whether the rest is exactly one option and its value. Otherwise a word that only looks like
    /// an option is a name, such as that of the queue `member`.
    fn is_option(&self, rest: &[&[u8]]) -> bool {
        rest.len() == 2 && options::find(self.spec.options, rest[0]).is_some()
    }

    /// Whether the rest is nothing but options with a value each.
    fn are_options(&self, rest: &[&[u8]]) -> bool {
        let pairs = rest.chunks_exact(2);
        let is_whole = pairs.remainder().is_empty();
        is_whole && pairs.into_iter().all(|pair| self.is_option(pair))
    }

    /// Returns where the names of queues begin and end.
    #[inline(never)]
    fn find_queues(&self, given: &[&[u8]]) -> Result<(usize, usize), Fault> {
        let first = given.first().ok_or_else(|| self.arity())?;
        let is_number = |word: &&[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
        let counted = first.eq_ignore_ascii_case(b"QUEUES") && given.get(1).is_some_and(is_number);
        if !counted {
            return Ok((0, 1));
        }
        let Some(count) = number(given[1]).filter(|count| *count > 0) else {
            return Err(no_value("QUEUES is a number of at least 1", given[1]));
        };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if given.len() - 2 < count {
            return Err(self.arity());
        }
        Ok((2, 2 + count))
    }

    /// Returns the number of words that name a held task.
    fn count_held(&mut self, word: Word, rest: &[&[u8]]) -> Result<usize, Fault> {
        let (first, others) = rest.split_first().ok_or_else(|| self.arity())?;
        if first.eq_ignore_ascii_case(b"ID") {
            self.by_id = true;
            return if others.is_empty() { Err(self.arity()) } else { Ok(2) };
        }
        if word != Word::HeldOrMore {
            return Ok(1);
        }
        let more = self.count_to_option(others);
        let names_lane = matches!(
            others[more..],
            [word, _] if word.eq_ignore_ascii_case(b"MEMBER")
        );
        if more > 0 && others.len() > more && !names_lane {
            return Err(Fault::bad("options go with one receipt only"));
        }
        Ok(1 + more)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "every request passes here")]
    fn take_options(&mut self, mut rest: &[&'a [u8]]) -> Result<(), Fault> {
        while let Some((word, others)) = rest.split_first() {
            let Some(option) = options::find(self.spec.options, word) else {
                return Err(self.unknown_option(word));
            };
            if option.is_apart() {
                rest = self.take_apart(option, others)?;
                continue;
            }
            let (value, others): (&'a [u8], _) = match (option.value, others.split_first()) {
                (None, _) => (b"", others),
                (Some(_), Some((value, others))) => (value, others),
                (Some(_), None) => return Err(self.arity()),
            };
            if self.has(*option) {
                return Err(Fault::bad(format!("{} was given twice", option.word)));
            }
            self.note(*option, value);
            rest = others;
        }
        Ok(())
    }

    /// Notes the values of an option that has several. Returns the words after them.
    #[inline(never)]
    fn take_apart<'r>(
        &mut self,
        option: &Opt,
        rest: &'r [&'a [u8]],
    ) -> Result<&'r [&'a [u8]], Fault> {
        if option.is_counted() {
            return self.take_counted(option, rest);
        }
        let [queue, text, others @ ..] = rest else { return Err(self.arity()) };
        if option.has_two() {
            if self.has(*option) {
                return Err(Fault::bad(format!("{} was given twice", option.word)));
            }
            self.note_two(*option, [queue, text]);
            return Ok(others);
        }
        let (result, others) = match others {
            [word, result, others @ ..] if word.eq_ignore_ascii_case(b"RESULT") => {
                (Some(*result), others)
            }
            _ => (None, others),
        };
        self.done.push(Done { queue, receipt: receipt(text)?, result });
        Ok(others)
    }

    /// Notes headers or names: their number, and a name and a value for each, or a name.
    fn take_counted<'r>(
        &mut self,
        option: &Opt,
        rest: &'r [&'a [u8]],
    ) -> Result<&'r [&'a [u8]], Fault> {
        let (word, is_after) = (option.word, option.letters == options::AFTER.letters);
        let (most, words_each) = if is_after { (AFTER_MAX, 1) } else { (HEADERS_MAX, 2) };
        let (first, others) = rest.split_first().ok_or_else(|| self.arity())?;
        let count = number(first).and_then(|count| usize::try_from(count).ok());
        let Some(count) = count.filter(|count| *count <= most) else {
            return Err(no_value(&format!("{word} begins with a number up to {most}"), first));
        };
        let Some((words, others)) = others.split_at_checked(words_each * count) else {
            return Err(self.arity());
        };
        let former = if is_after {
            self.after_words = words.to_vec();
            self.after.replace(encode_names(words.iter().copied()))
        } else {
            let (pairs, _) = words.as_chunks::<2>();
            let pairs = pairs.iter().map(|&[name, value]| (name, value));
            self.headers.replace(headers::encode(pairs))
        };
        if former.is_some() {
            return Err(Fault::bad(format!("{word} was given twice")));
        }
        self.options_bits |= option.bit;
        Ok(others)
    }

    #[cold]
    fn unknown_option(&self, word: &[u8]) -> Fault {
        if self.spec.options.is_empty() {
            return self.arity();
        }
        let (name, word) = (self.spec.full_name(), shown(word));
        if matches!(self.spec.words, [Word::Queues | Word::AnyQueues]) {
            let form = format!("several queues are written {name} QUEUES n queue ...");
            return Fault::bad(format!("{name} knows no option {word}; {form}"));
        }
        Fault::bad(format!("{name} knows no option {word}"))
    }

    /// Returns the entry of the command.
    #[must_use]
    pub const fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// Returns the word at this place.
    #[inline]
    #[must_use]
    pub fn word(&self, index: usize) -> &'a [u8] {
        self.words.get(index).copied().unwrap_or_default()
    }

    /// Returns the queue that the first word names, or with `MEMBER` the lane.
    #[inline]
    #[must_use]
    pub fn queue(&self) -> QueueName<'a> {
        QueueName { name: self.word(0), member: self.option(options::MEMBER) }
    }

    /// Returns the last word before the options, with which a holder names its task.
    #[inline]
    #[must_use]
    pub fn named(&self) -> &'a [u8] {
        self.words.last().copied().unwrap_or_default()
    }

    /// Returns the value of an option, if it was given.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every put")]
    #[must_use]
    pub fn option(&self, option: Opt) -> Option<&'a [u8]> {
        debug_assert!(
            self.spec.options.iter().any(|known| known.word == option.word),
            "{} has no option {}",
            self.spec.full_name(),
            option.word
        );
        self.given(option)
    }

    /// Like [`Self::option`], also of an option that the command does not have.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every put")]
    #[must_use]
    pub fn given(&self, option: Opt) -> Option<&'a [u8]> {
        // Most requests give no options, and the others few.
        if self.options_bits & option.bit == 0 {
            return None;
        }
        match self.options[0] {
            Some((known, value)) if known == option.letters => Some(value),
            _ => self.find_option(option.letters),
        }
    }

    #[inline(never)]
    fn find_option(&self, letters: u64) -> Option<&'a [u8]> {
        let few = self.options[..self.options_few].iter().flatten();
        let given = few.chain(&self.more_options);
        given.copied().find(|(known, _)| *known == letters).map(|(_, value)| value)
    }

    /// Returns the values of an option with two, if it was given.
    pub(super) fn two(&self, option: Opt) -> Option<[&'a [u8]; 2]> {
        let is_it = |(known, _): &&(u64, &[u8])| *known == option.letters;
        let mut values = self.more_options.iter().filter(is_it).map(|(_, value)| *value);
        Some([values.next()?, values.next()?])
    }

    /// Returns the headers as [`headers::encode`] writes them, if `HEADERS` was given.
    #[must_use]
    pub fn headers(&self) -> Option<&[u8]> {
        self.headers.as_deref()
    }

    /// Returns the names of batches as [`encode_names`] writes them, if `AFTER` was given.
    #[must_use]
    pub fn after(&self) -> Option<&[u8]> {
        self.after.as_deref()
    }

    /// Whether certainly none of the options with these bits was given.
    #[inline]
    #[must_use]
    pub const fn has_none_of(&self, bits: u64) -> bool {
        self.options_bits & bits == 0
    }

    /// Whether an option was given.
    #[inline]
    #[must_use]
    pub fn has(&self, option: Opt) -> bool {
        self.option(option).is_some()
    }

    /// Returns a duration in whole milliseconds.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every put")]
    pub fn span(&self, option: Opt) -> Result<Option<Span>, Fault> {
        self.option(option).map(|value| span(option.word, value)).transpose()
    }

    /// Returns a moment in Unix milliseconds.
    pub fn moment(&self, option: Opt) -> Result<Option<Timestamp>, Fault> {
        self.option(option).map(|value| moment(option.word, value)).transpose()
    }

    /// Returns a number of at least 1.
    #[inline]
    pub fn count(&self, option: Opt) -> Result<Option<u64>, Fault> {
        self.option(option).map(|value| count(option.word, value)).transpose()
    }

    /// Returns a priority, or none.
    #[inline]
    pub fn priority(&self) -> Result<Assign<Option<i64>>, Fault> {
        match self.option(options::PRIORITY) {
            None => Ok(Assign::Keep),
            // The usual ones have one digit.
            Some([digit @ b'0'..=b'9']) => Ok(Assign::To(Some(i64::from(digit - b'0')))),
            Some(value) => any_priority(value).map(Assign::To),
        }
    }

    /// Returns what is read from an option, or none where it is the word for that.
    pub fn or_none<T>(
        &self,
        option: Opt,
        read: impl FnOnce(&'a [u8]) -> Result<T, Fault>,
    ) -> Result<Assign<Option<T>>, Fault> {
        Ok(match self.given(option) {
            None => Assign::Keep,
            Some(text) if text.eq_ignore_ascii_case(b"NONE") => Assign::To(None),
            Some(text) => Assign::To(Some(read(text)?)),
        })
    }

    /// Returns how long to block. -1 means without end.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every put")]
    pub fn wait(&self) -> Result<Option<Wait>, Fault> {
        self.option(options::WAIT).map(|value| wait(options::WAIT.word, value)).transpose()
    }
}

/// Parses a priority, or none.
#[inline(never)]
pub(super) fn any_priority(text: &[u8]) -> Result<Option<i64>, Fault> {
    match signed(text) {
        Some(priority) => Ok(Some(priority)),
        None if text.eq_ignore_ascii_case(b"NONE") => Ok(None),
        None => Err(no_value("PRIORITY is a whole number of 64 bits or NONE", text)),
    }
}

/// Parses a decimal number without sign, space or leading zero.
#[inline]
#[must_use]
pub fn number(text: &[u8]) -> Option<u64> {
    let (number, rest) = leading_number(text)?;
    rest.is_empty().then_some(number)
}

/// Returns the number with which a text begins, and what follows it.
#[inline]
fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    /// The smallest number with twenty digits. 64 bits hold no more digits.
    const TWENTY_DIGITS: u64 = 10_000_000_000_000_000_000;
    let mut number = 0_u64;
    let mut rest = text;
    while let [byte @ b'0'..=b'9', after @ ..] = rest {
        number = number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        rest = after;
    }
    let fits = match text.len() - rest.len() {
        1 => true,
        2..20 => text[0] != b'0',
        // A number too large for 64 bits has wrapped to a smaller one.
        20 => text[0] == b'1' && number >= TWENTY_DIGITS,
        _ => false,
    };
    fits.then_some((number, rest))
}

/// Parses the same, with a minus if it is negative.
#[inline]
fn signed(text: &[u8]) -> Option<i64> {
    let [b'-', digits @ ..] = text else { return i64::try_from(number(text)?).ok() };
    match number(digits)? {
        0 => None,
        magnitude => 0_i64.checked_sub_unsigned(magnitude),
    }
}

/// Parses a whole number of 64 bits.
pub(super) fn whole(word: &str, text: &[u8]) -> Result<i64, Fault> {
    signed(text).ok_or_else(|| no_value(&format!("{word} are whole numbers of 64 bits"), text))
}

/// Parses a number of at least 1.
#[inline]
pub(super) fn count(word: &str, text: &[u8]) -> Result<u64, Fault> {
    match number(text) {
        Some(count) if count > 0 => Ok(count),
        _ => Err(no_value(&format!("{word} is a number of at least 1"), text)),
    }
}

/// Parses how long to block. -1 means without end.
#[inline]
pub(super) fn wait(word: &str, text: &[u8]) -> Result<Wait, Fault> {
    if text == b"-1" { Ok(Wait::Forever) } else { span(word, text).map(Wait::For) }
}

/// Parses a moment in Unix milliseconds.
pub(super) fn moment(word: &str, text: &[u8]) -> Result<Timestamp, Fault> {
    let ms = number(text).filter(|ms| *ms <= Timestamp::MAX.ms());
    let rule = "is a moment in Unix milliseconds before the year 10000";
    ms.map(Timestamp::from_ms).ok_or_else(|| no_value(&format!("{word} {rule}"), text))
}

/// Parses a duration in whole milliseconds. From any moment of today it ends before the year 10000.
#[inline]
pub fn span(word: &str, text: &[u8]) -> Result<Span, Fault> {
    match number(text) {
        Some(ms) if ms <= Timestamp::MAX.ms() => Ok(Span::from_ms(ms)),
        _ => Err(no_span(word, text)),
    }
}

#[cold]
fn no_span(word: &str, text: &[u8]) -> Fault {
    no_value(&format!("{word} is a number of milliseconds that ends before the year 10000"), text)
}

/// Returns the refusal of a value that breaks a rule.
#[cold]
#[must_use]
pub fn no_value(rule: &str, text: &[u8]) -> Fault {
    Fault::bad(format!("{rule}, not {}", shown(text)))
}

/// Returns the state with this letter.
pub fn state(text: &[u8]) -> Result<StateKind, Fault> {
    let letter = match text {
        [letter] => Some(char::from(letter.to_ascii_uppercase())),
        _ => None,
    };
    let known = StateKind::ALL.into_iter().find(|kind| letter == Some(kind.letter()));
    known.ok_or_else(|| no_value("a state is R, T, W, B, Z or D", text))
}

/// Parses a receipt: the number of the task, the incarnation of the server, and the grant.
#[inline]
pub fn receipt(text: &[u8]) -> Result<Receipt, Fault> {
    receipt_in(text).ok_or_else(|| no_receipt(text))
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it is part of every acknowledgement")]
fn receipt_in(text: &[u8]) -> Option<Receipt> {
    let (number, rest) = leading_number(text)?;
    let (incarnation, rest) = leading_number(rest.strip_prefix(b"-")?)?;
    let (serial, rest) = leading_number(rest.strip_prefix(b"-")?)?;
    let receipt = Receipt { number, grant: Grant { incarnation, serial } };
    rest.is_empty().then_some(receipt)
}

#[cold]
fn no_receipt(text: &[u8]) -> Fault {
    Fault::bad(format!("{} is not a receipt", shown(text)))
}

/// Returns the numbers that form the text of a receipt, with hyphens between them.
#[must_use]
pub const fn receipt_numbers(receipt: Receipt) -> [u64; 3] {
    let Receipt { number, grant: Grant { incarnation, serial } } = receipt;
    [number, incarnation, serial]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_text_only() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for text in [
            "",
            "00",
            "01",
            "+1",
            "-1",
            " 1",
            "1 ",
            "0x1",
            "00000000000000000001",
            "18446744073709551616",
            "20000000000000000000",
            "99999999999999999999",
            "100000000000000000000",
            "184467440737095516150",
        ] {
            assert_eq!(number(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(signed(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(signed(b"9223372036854775807"), Some(i64::MAX));
        for text in ["-0", "-", "--1", "-01", "9223372036854775808", "-9223372036854775809"] {
            assert_eq!(signed(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn receipts_come_back_from_their_text() {
        let known = Receipt { number: 17, grant: Grant { incarnation: 3, serial: u64::MAX } };
        let text = receipt_numbers(known).map(|number| number.to_string()).join("-");
        assert_eq!(receipt(text.as_bytes()), Ok(known));
        for wrong in ["", "1", "1-2", "1-2-3-4", "1-2-", "-1-2", "1-2-03", "a-b-c"] {
            assert!(receipt(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
