//! Makes functions of what stands on declarations: the facts about each command, what its request
//! looks like, and how each type is written in letters.
//!
//! `#[derive(Command)]` belongs on an enum of commands. Each variant carries `#[command(…)]` with
//! one fact after the other. A fact is an expression, in which the fields of the variant are known
//! by their names, and the only field of a tuple variant as `it`. Of each fact the derive makes one
//! method with an arm for each variant, so a command without a decision does not compile. Nothing
//! here knows a command or decides anything. `testdata/expanded.txt` is what becomes of
//! `testdata/declaration.txt`.

mod facts;
mod given;
mod kinds;
mod letters;
mod request;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Defines a derive that is this function.
macro_rules! derives {
    ($($(#[$meta:meta])* $name:ident: $function:expr;)*) => {$(
        $(#[$meta])*
        pub fn $name(input: TokenStream) -> TokenStream {
            let input = parse_macro_input!(input as DeriveInput);
            $function(&input).unwrap_or_else(syn::Error::into_compile_error).into()
        }
    )*};
}

derives! {
    /// Derives the facts about the commands of an enum, how their requests are read and written,
    /// and their kinds.
    #[proc_macro_derive(Command, attributes(command, request, key, word, words, option, flat))]
    derive_command: |input| {
        let (facts, kinds) = (facts::derive(input)?, kinds::derive(input)?);
        let rows = request::derive_rows(input)?;
        syn::Result::Ok(quote::quote!(#facts #kinds #rows))
    };

    /// Derives how a struct is part of the requests of commands.
    #[proc_macro_derive(Arguments, attributes(key, word, words, option, flat))]
    derive_arguments: request::derive_arguments;

    /// Derives how a type is written in a letter and read from one.
    ///
    /// An enum is written as the number of its variant, `#[letter(7)]` or its discriminant, and the
    /// fields of that. Fields without a tag are always there, one after the other. A named field
    /// with a tag, `#[letter(3)]`, is left out if it has its usual value: that of its type, or the
    /// one that `default = …` says. It is written as its tag and its value, in the order of the
    /// tags, and the byte 0 follows the last one. A program that does not know a tag refuses the
    /// letter, or passes over the field if its tag is 128 or more. `closed` says of a type or a
    /// variant that it never gets such fields, and it has no byte 0. `most = …` says how many of a
    /// type a list may have. `local` says of a variant that it is in no letter, and
    /// `local = is_empty` of a field that it is in none, and empty in what is written. `unsampled`
    /// is for types of other crates than `pinpriq_proto`, which alone makes samples.
    ///
    /// So numbers and tags that were given keep their meaning, and a new field gets the next tag.
    #[proc_macro_derive(Letter, attributes(letter))]
    derive_letter: letters::derive;
}
