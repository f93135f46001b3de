//! Declares enums of which each variant has a word: one list gives the variants, all of them in
//! their order, and the words. What the words are for is up to each enum.

/// See the start of this file.
#[macro_export]
macro_rules! worded {
    (
        $(#[$of_enum:meta])*
        $vis:vis enum $name:ident {
            $($(#[$of:meta])* $variant:ident $(= $number:tt)? => $word:literal,)+
        }

        $(#[$of_method:meta])*
        fn $method:ident -> $type:ty
    ) => {
        $(#[$of_enum])*
        $vis enum $name {
            $($(#[$of])* $variant $(= $number)?,)+
        }

        impl $name {
            /// All of them, in their order.
            $vis const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];

            $(#[$of_method])*
            #[must_use]
            $vis const fn $method(self) -> $type {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}
