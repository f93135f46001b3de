//! A value that a request gives, or leaves as it is.

/// A value that may be replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub enum Assign<T> {
    /// The value stays.
    #[default]
    #[letter(1)]
    Keep,
    /// The value becomes this.
    #[letter(2)]
    To(T),
}

impl<T> Assign<T> {
    /// The new value, if there is one.
    pub fn given(self) -> Option<T> {
        match self {
            Self::Keep => None,
            Self::To(value) => Some(value),
        }
    }

    /// The new value, or `current` if it stays.
    pub fn or(self, current: T) -> T {
        match self {
            Self::Keep => current,
            Self::To(value) => value,
        }
    }
}

impl<T> From<Option<T>> for Assign<T> {
    fn from(new: Option<T>) -> Self {
        new.map_or(Self::Keep, Self::To)
    }
}
