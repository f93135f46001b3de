//! The rights that a rule can give. Which commands need which is the server's business.

use std::fmt;

worded! {
    /// A right.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Right {
        /// To put tasks into queues, and publish them to topics.
        Put => "put",
        /// To take tasks, and say how they ended.
        Take => "take",
        /// To look at tasks, queues and figures.
        Look => "look",
        /// To change tasks by their ids, queues and schedules.
        Manage => "manage",
        /// To run the server: has no pattern, and implies no other right.
        Admin => "admin",
    }

    /// The word for it in a rule.
    fn word -> &'static str
}

impl Right {
    /// The rights that are given on queues and topics, each with its own patterns.
    pub const ON_NAMES: [Self; 4] = [Self::Put, Self::Take, Self::Look, Self::Manage];

    /// Returns the right of this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|right| right.word() == word)
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::Right;

    #[test]
    fn words_and_rights_belong_together() {
        for (index, right) in Right::ALL.into_iter().enumerate() {
            assert_eq!(Right::of_word(right.word()), Some(right));
            assert_eq!(right as usize, index, "the order of the list is that of the rights");
        }
        for word in ["", "Put", "puts", "all", "*"] {
            assert_eq!(Right::of_word(word), None, "{word}");
        }
    }
}
