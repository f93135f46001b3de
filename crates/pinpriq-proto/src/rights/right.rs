//! The rights that a rule can give. Which commands need which is the server's business.

use std::fmt;

/// A right.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Right {
    /// To put tasks into queues, and publish them to topics.
    Put,
    /// To take tasks, and say how they ended.
    Take,
    /// To look at tasks, queues and figures.
    Look,
    /// To change tasks by their ids, queues and schedules.
    Manage,
    /// To run the server: has no pattern, and implies no other right.
    Admin,
}

impl Right {
    /// All rights, in the order in which they are listed.
    pub const ALL: [Self; 5] = [Self::Put, Self::Take, Self::Look, Self::Manage, Self::Admin];

    /// The rights that are given on queues and topics, each with its own patterns.
    pub const ON_NAMES: [Self; 4] = [Self::Put, Self::Take, Self::Look, Self::Manage];

    /// The word for it in a rule.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Take => "take",
            Self::Look => "look",
            Self::Manage => "manage",
            Self::Admin => "admin",
        }
    }

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
