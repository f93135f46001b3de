//! Chooses what few puts say about their tasks: share, cost, headers, and what is done when they
//! fail.

use pinpriq_proto::command::Assign;
use pinpriq_proto::limits::BACKOFF_MS_MAX;
use pinpriq_proto::task::{GivenTerms, Retries};
use pinpriq_proto::time::Span;

use super::Chooser;

impl Chooser<'_> {
    /// Adds what few puts say to some terms.
    pub(crate) fn with_extras(&mut self, terms: GivenTerms<'static>) -> GivenTerms<'static> {
        if self.dice.once_in(60) {
            let (share, cost) =
                self.dice.pick(&[(Some(b"".as_slice()), 1), (None, 0), (None, u32::MAX)]);
            return terms.with(share, cost);
        }
        let share = self.dice.pick(&[None, None, None, Some(b"k".as_slice()), Some(b"s")]);
        let cost = self.dice.pick(&[1, 1, 1, 1, 1, 1, 2, 2, 3, 9]);
        let terms = terms.with_all(share, cost, self.headers());
        if self.dice.once_in(6) { terms.with_retries(self.retries()) } else { terms }
    }

    /// What is done when a task fails.
    fn retries(&mut self) -> Retries {
        let none = |by: &mut Self| by.dice.once_in(4);
        let attempts = self.dice.pick(&[1, 1, 2, 3, 3, 2, 1]);
        let attempts = if none(self) { None } else { Some(attempts) };
        let backoff = if none(self) { None } else { Some(self.back_off()) };
        Retries {
            attempts: if none(self) { Assign::Keep } else { Assign::To(attempts) },
            backoff: if none(self) { Assign::Keep } else { Assign::To(backoff) },
            backoff_max: self.dice.once_in(2).then(|| self.back_off()),
        }
    }

    fn back_off(&mut self) -> Span {
        Span::from_ms(self.dice.pick(&[1, 2, 3, 5, 20, BACKOFF_MS_MAX.into()]))
    }

    /// Headers as they are kept, mostly none. Some are out of bounds.
    pub(super) fn headers(&mut self) -> Option<&'static [u8]> {
        if self.dice.once_in(200) {
            let long = [b"\x01a\x81\x08".as_slice(), &[b'v'; 1_025]].concat();
            return Some(self.dice.pick(&[b"\x01B\x00".as_slice(), b"\x01a", long.leak()]));
        }
        self.dice.pick(&[
            None,
            None,
            None,
            None,
            None,
            Some(b"\x01a\x011"),
            Some(b"\x01a\x00\x02b.\x03two"),
        ])
    }
}
