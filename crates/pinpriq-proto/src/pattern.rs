//! Patterns for bytes: `*` stands for any bytes, also none, and `\` takes the byte after it as it
//! is.
//!
//! There are no other signs, so a match costs a step for each byte of the text.

use memchr::memmem::Finder;

/// A pattern that was read.
#[derive(Debug)]
pub struct Pattern {
    /// What the text begins with; all of it, if there is no star.
    first: Vec<u8>,
    /// What stands between stars, and the end. None if there is no star.
    after: Option<(Vec<Finder<'static>>, Vec<u8>)>,
}

impl Pattern {
    /// Reads a pattern. A `\` at the end stands for itself.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let (mut parts, mut part, mut bytes) = (Vec::new(), Vec::new(), text.iter().copied());
        while let Some(byte) = bytes.next() {
            match byte {
                b'*' => parts.push(std::mem::take(&mut part)),
                b'\\' => part.push(bytes.next().unwrap_or(b'\\')),
                other => part.push(other),
            }
        }
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else { return Self { first: part, after: None } };
        let between = parts.filter(|it| !it.is_empty()).map(|it| Finder::new(&it).into_owned());
        Self { first, after: Some((between.collect(), part)) }
    }

    /// Whether it matches. Costs a step for each byte.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        let Some((between, end)) = &self.after else { return self.first == text };
        let rest = text.strip_prefix(&*self.first).and_then(|rest| rest.strip_suffix(&**end));
        let Some(mut rest) = rest else { return false };
        between.iter().all(|part| match part.find(rest) {
            Some(at) => {
                rest = &rest[at + part.needle().len()..];
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn patterns_match_as_their_signs_say() {
        for (pattern, yes, no) in [
            ("", &[""][..], &["a"][..]),
            ("a", &["a"], &["", "A", "aa", "ba"]),
            ("*", &["", "a", "*"], &[]),
            ("a*", &["a", "ab"], &["", "ba"]),
            ("*a", &["a", "ba"], &["ab"]),
            ("a*a", &["aa", "aba"], &["a", "ab"]),
            ("*time*out*", &["timeout", "no time: out"], &["out of time"]),
            ("a**b*a", &["aba", "a b a"], &["aa", "ab"]),
            ("*ab*ba*", &["abba", "abxba"], &["aba"]),
            (r"\*", &["*"], &["a", r"\*"]),
            (r"a\\*", &[r"a\", r"a\b"], &["ab"]),
            (r"\a\", &[r"a\"], &["a"]),
        ] {
            let read = Pattern::of(pattern.as_bytes());
            let matches = |text: &&&str| read.matches(text.as_bytes());
            assert_eq!(yes.iter().find(|text| !matches(text)), None, "{pattern} has to match");
            assert_eq!(no.iter().find(matches), None, "{pattern} must not match");
        }
    }
}
