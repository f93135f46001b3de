//! From the words of a request to its parts, and from a part to a value.
//!
//! The shape of the request comes from its [`Spec`]; whether the values make sense together is the
//! engine's to say.

use pinpriq_engine::command::{Assign, End, Order, QueueName, Wait};
use pinpriq_engine::task::{Grant, Receipt, StateKind};
use pinpriq_engine::time::{Span, Timestamp};
use smallvec::SmallVec;

use super::fault::Fault;
use super::spec::{Spec, Word};

/// How many words of a request are kept without an allocation.
pub(crate) const WORDS_FEW: usize = 12;

/// Words of one request, borrowed.
pub(crate) type Words<'a> = SmallVec<[&'a [u8]; WORDS_FEW]>;

/// The parts of a request.
pub(crate) struct Parts<'a> {
    spec: &'static Spec,
    /// What stands before the options, in order; the forms of a holder are told apart by `by_id`.
    pub(crate) words: Words<'a>,
    /// Whether a holder named its task by `ID id`.
    pub(crate) by_id: bool,
    /// The options that were given, each with its value; those without a value have an empty one.
    options: SmallVec<[(&'static str, &'a [u8]); 4]>,
}

impl<'a> Parts<'a> {
    /// None yet.
    pub(crate) fn of(spec: &'static Spec) -> Self {
        Self { spec, words: Words::new(), by_id: false, options: SmallVec::new() }
    }

    /// Sorts the words that follow the command. Refuses too few and too many of them, options that
    /// are unknown or repeated, and an option without its value.
    pub(crate) fn sort(&mut self, given: &[&'a [u8]]) -> Result<(), Fault> {
        let mut rest = given;
        for word in self.spec.words {
            rest = self.take_words(*word, rest)?;
        }
        self.take_options(rest)
    }

    fn arity(&self) -> Fault {
        Fault::arity(&self.spec.full_name())
    }

    /// Takes what one entry of the spec stands for from the front of the words.
    fn take_words<'r>(
        &mut self,
        word: Word,
        rest: &'r [&'a [u8]],
    ) -> Result<&'r [&'a [u8]], Fault> {
        match word {
            Word::One(_) => {
                let (first, rest) = rest.split_first().ok_or_else(|| self.arity())?;
                self.words.push(first);
                Ok(rest)
            }
            Word::Maybe(_) => Ok(match rest.split_first() {
                Some((first, others)) if !self.is_option(rest) => {
                    self.words.push(first);
                    others
                }
                _ => rest,
            }),
            Word::MaybeFirst(_) => Ok(match rest {
                [first, others @ ..] if !others.is_empty() => {
                    self.words.push(first);
                    others
                }
                _ => rest,
            }),
            Word::Some(_) | Word::Any(_) => {
                let others = rest.iter().skip(1);
                let others = others.take_while(|word| self.spec.option(word).is_none()).count();
                let has_none = rest.is_empty() || self.is_option(rest);
                if has_none && matches!(word, Word::Some(_)) {
                    return Err(self.arity());
                }
                // The first is an option only if nothing stands behind its value.
                let count = if has_none { 0 } else { 1 + others };
                self.words.extend_from_slice(&rest[..count]);
                Ok(&rest[count..])
            }
            Word::Queues => self.take_queues(rest),
            Word::Held | Word::CountOrId | Word::HeldOrMore => self.take_held(word, rest),
        }
    }

    /// Whether all that is left is one option and its value. A word that only looks like an option
    /// is a name, such as that of the queue `member`.
    fn is_option(&self, rest: &[&[u8]]) -> bool {
        rest.len() == 2 && self.spec.option(rest[0]).is_some()
    }

    fn take_queues<'r>(&mut self, rest: &'r [&'a [u8]]) -> Result<&'r [&'a [u8]], Fault> {
        let first = rest.first().ok_or_else(|| self.arity())?;
        let is_number = |word: &&[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
        let counted = first.eq_ignore_ascii_case(b"QUEUES") && rest.get(1).is_some_and(is_number);
        let (rest, count) = if counted {
            let Some(count) = number(rest[1]).filter(|count| *count > 0) else {
                let given = shown(rest[1]);
                return Err(Fault::bad(format!("QUEUES is a number of at least 1, not {given}")));
            };
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            if rest.len() - 2 < count {
                return Err(self.arity());
            }
            (&rest[2..], count)
        } else {
            let others = &rest[1..];
            let count = others.iter().take_while(|word| self.spec.option(word).is_none()).count();
            (rest, 1 + count)
        };
        self.words.extend_from_slice(&rest[..count]);
        Ok(&rest[count..])
    }

    fn take_held<'r>(&mut self, word: Word, rest: &'r [&'a [u8]]) -> Result<&'r [&'a [u8]], Fault> {
        let (first, others) = rest.split_first().ok_or_else(|| self.arity())?;
        if first.eq_ignore_ascii_case(b"ID") {
            let (id, rest) = others.split_first().ok_or_else(|| self.arity())?;
            self.by_id = true;
            self.words.push(id);
            return Ok(rest);
        }
        self.words.push(first);
        if word != Word::HeldOrMore {
            return Ok(others);
        }
        let more = others.iter().take_while(|word| self.spec.option(word).is_none()).count();
        self.words.extend_from_slice(&others[..more]);
        let names_lane = matches!(
            others[more..],
            [word, _] if word.eq_ignore_ascii_case(b"MEMBER")
        );
        if more > 0 && others.len() > more && !names_lane {
            return Err(Fault::bad("options go with one receipt only"));
        }
        Ok(&others[more..])
    }

    fn take_options(&mut self, mut rest: &[&'a [u8]]) -> Result<(), Fault> {
        while let Some((word, others)) = rest.split_first() {
            if self.spec.options.is_empty() {
                return Err(self.arity());
            }
            let Some(index) = self.spec.option(word) else {
                let word = word.escape_ascii();
                return Err(Fault::bad(format!(
                    "{} knows no option {word}",
                    self.spec.full_name()
                )));
            };
            let option = self.spec.options[index];
            let value: &'a [u8] = match (option.value, others.split_first()) {
                (None, _) => b"",
                (Some(_), Some((value, others))) => {
                    rest = others;
                    value
                }
                (Some(_), None) => return Err(self.arity()),
            };
            if option.value.is_none() {
                rest = others;
            }
            if self.has(option.word) {
                return Err(Fault::bad(format!("{} was given twice", option.word)));
            }
            self.options.push((option.word, value));
        }
        Ok(())
    }

    /// The word at this place.
    pub(crate) fn word(&self, index: usize) -> &'a [u8] {
        self.words.get(index).copied().unwrap_or_default()
    }

    /// The queue that the first word names, or with `MEMBER` the lane.
    pub(crate) fn queue(&self) -> QueueName<'a> {
        QueueName { name: self.word(0), member: self.option("MEMBER") }
    }

    /// The value of an option, if it was given.
    pub(crate) fn option(&self, word: &str) -> Option<&'a [u8]> {
        debug_assert!(
            self.spec.options.iter().any(|option| option.word == word),
            "{} has no option {word}",
            self.spec.full_name()
        );
        // Few are given, and most requests give none.
        let given = self.options.iter().find(|(given, _)| *given == word);
        given.map(|(_, value)| *value)
    }

    /// Whether an option was given.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.option(word).is_some()
    }

    /// A duration in whole milliseconds.
    pub(crate) fn span(&self, word: &str) -> Result<Option<Span>, Fault> {
        self.option(word).map(|value| span(word, value)).transpose()
    }

    /// A moment in Unix milliseconds.
    pub(crate) fn moment(&self, word: &str) -> Result<Option<Timestamp>, Fault> {
        let Some(value) = self.option(word) else { return Ok(None) };
        match number(value).filter(|ms| *ms <= Timestamp::MAX.ms()) {
            Some(ms) => Ok(Some(Timestamp::from_ms(ms))),
            None => Err(Fault::bad(format!(
                "{word} is a moment in Unix milliseconds before the year 10000, not {}",
                shown(value)
            ))),
        }
    }

    /// A number of at least 1.
    pub(crate) fn count(&self, word: &str) -> Result<Option<u64>, Fault> {
        let Some(value) = self.option(word) else { return Ok(None) };
        match number(value) {
            Some(count) if count > 0 => Ok(Some(count)),
            _ => Err(Fault::bad(format!("{word} is a number of at least 1, not {}", shown(value)))),
        }
    }

    /// A priority, or none.
    pub(crate) fn priority(&self) -> Result<Assign<Option<i64>>, Fault> {
        let Some(value) = self.option("PRIORITY") else { return Ok(Assign::Keep) };
        if value.eq_ignore_ascii_case(b"NONE") {
            return Ok(Assign::To(None));
        }
        match signed(value) {
            Some(priority) => Ok(Assign::To(Some(priority))),
            None => Err(Fault::bad(format!(
                "PRIORITY is a whole number of 64 bits or NONE, not {}",
                shown(value)
            ))),
        }
    }

    /// How long to wait: -1 is without end.
    pub(crate) fn wait(&self) -> Result<Option<Wait>, Fault> {
        let Some(value) = self.option("WAIT") else { return Ok(None) };
        if value == b"-1" {
            return Ok(Some(Wait::Forever));
        }
        span("WAIT", value).map(|span| Some(Wait::For(span)))
    }

    /// From which end.
    pub(crate) fn from(&self) -> Result<End, Fault> {
        match self.option("FROM") {
            None => Ok(End::Min),
            Some(value) if value.eq_ignore_ascii_case(b"MIN") => Ok(End::Min),
            Some(value) if value.eq_ignore_ascii_case(b"MAX") => Ok(End::Max),
            Some(value) => Err(Fault::bad(format!("FROM is MIN or MAX, not {}", shown(value)))),
        }
    }

    /// In which order within one priority: the oldest first from the most urgent end, and the
    /// newest first from the other, so that one end mirrors the other.
    pub(crate) fn order(&self, from: End) -> Result<Order, Fault> {
        match self.option("ORDER") {
            None if from == End::Max => Ok(Order::Newest),
            None => Ok(Order::Oldest),
            Some(value) if value.eq_ignore_ascii_case(b"OLDEST") => Ok(Order::Oldest),
            Some(value) if value.eq_ignore_ascii_case(b"NEWEST") => Ok(Order::Newest),
            Some(value) => {
                Err(Fault::bad(format!("ORDER is OLDEST or NEWEST, not {}", shown(value))))
            }
        }
    }
}

/// A word of the client in a sentence: printable, and cut short.
pub(crate) fn shown(word: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 64;
    let cut = if word.len() > SHOWN_BYTES_MAX { "…" } else { "" };
    format!("'{}{cut}'", word[..word.len().min(SHOWN_BYTES_MAX)].escape_ascii())
}

/// A decimal number without sign, space or leading zero.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let (number, rest) = leading_number(text)?;
    rest.is_empty().then_some(number)
}

/// The number with which a text begins, and what follows it.
fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    /// So many digits fit into 64 bits, whatever they are.
    const DIGITS_SAFE: usize = 19;
    let value = |byte: u8| Some(byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9);
    let mut number = 0_u64;
    let mut digits = 0;
    while let Some(digit) = text.get(digits).and_then(|byte| value(*byte)) {
        number = if digits < DIGITS_SAFE {
            number * 10 + u64::from(digit)
        } else {
            number.checked_mul(10)?.checked_add(u64::from(digit))?
        };
        digits += 1;
    }
    let is_number = digits == 1 || (digits > 1 && text[0] != b'0');
    is_number.then_some((number, &text[digits..]))
}

/// The same, with a minus if it is negative.
fn signed(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        None => i64::try_from(number(text)?).ok(),
        Some(digits) => match number(digits)? {
            0 => None,
            magnitude => 0_i64.checked_sub_unsigned(magnitude),
        },
    }
}

/// A duration in whole milliseconds, which ends before the year 10000 from any moment of today's.
pub(crate) fn span(word: &str, text: &[u8]) -> Result<Span, Fault> {
    match number(text) {
        Some(ms) if ms <= Timestamp::MAX.ms() => Ok(Span::from_ms(ms)),
        _ => Err(Fault::bad(format!(
            "{word} is a number of milliseconds that ends before the year 10000, not {}",
            shown(text)
        ))),
    }
}

/// A state by its letter.
pub(crate) fn state(text: &[u8]) -> Result<StateKind, Fault> {
    let letter = match text {
        [letter] => Some(char::from(letter.to_ascii_uppercase())),
        _ => None,
    };
    let known = StateKind::ALL.into_iter().find(|kind| letter == Some(kind.letter()));
    known.ok_or_else(|| Fault::bad(format!("a state is R, T, W, B, Z or D, not {}", shown(text))))
}

/// A receipt from its text: the number of the task, the incarnation of the server, the grant.
pub(crate) fn receipt(text: &[u8]) -> Result<Receipt, Fault> {
    let parsed = || {
        let (number, rest) = leading_number(text)?;
        let (incarnation, rest) = leading_number(rest.strip_prefix(b"-")?)?;
        let (serial, rest) = leading_number(rest.strip_prefix(b"-")?)?;
        let receipt = Receipt { number, grant: Grant { incarnation, serial } };
        rest.is_empty().then_some(receipt)
    };
    parsed().ok_or_else(|| Fault::bad(format!("{} is not a receipt", shown(text))))
}

/// The numbers of which the text of a receipt consists, with a hyphen between them.
pub(crate) const fn receipt_numbers(receipt: Receipt) -> [u64; 3] {
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
        for text in ["", "00", "01", "+1", "-1", " 1", "1 ", "0x1", "18446744073709551616"] {
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
