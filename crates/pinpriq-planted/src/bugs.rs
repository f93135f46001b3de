//! Makes the type of all bugs from their list.

macro_rules! bugs {
    ($($bug:ident $word:literal $sentence:literal [$($suite:expr),+ $(,)?])*) => {
        /// A bug that can be planted.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Bug {
            $(#[doc = $sentence] $bug,)*
        }

        impl Bug {
            /// All of them, in the order of the layers that they are in.
            pub const ALL: &'static [Self] = &[$(Self::$bug),*];

            /// Its name outside of the code.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$bug => $word,)*
                }
            }

            /// The bug of this name.
            #[must_use]
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|bug| bug.word() == word)
            }

            /// What goes wrong.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self {
                    $(Self::$bug => $sentence,)*
                }
            }

            /// The tests that ought to object, each of them, the cheapest first.
            #[must_use]
            pub const fn suites(self) -> &'static [Suite] {
                match self {
                    $(Self::$bug => &[$($suite),+],)*
                }
            }
        }
    };
}
