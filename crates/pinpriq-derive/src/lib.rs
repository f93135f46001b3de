//! Makes functions of what stands on declarations: the facts about each command, what its request
//! looks like, and how each type is written in letters.
//!
//! `#[derive(Command)]` belongs on an enum of commands. Each variant carries `#[command(…)]` with
//! one fact after the other. A fact is an expression, in which the fields of the variant are known
//! by their names, and the only field of a tuple variant as `it`. Of each fact the derive makes one
//! method with one arm for each variant. So a command without a decision does not compile. The
//! facts are listed in `facts.rs`; what they mean is in `pinpriq_proto::facts`.
//!
//! Nothing here knows a command, and nothing here decides anything.

mod facts;
mod given;
mod kinds;
mod letters;
mod request;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Derives the facts about the commands of an enum, and how their requests are read.
#[proc_macro_derive(Command, attributes(command, request, key, word, words, option, flat))]
pub fn derive_command(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let derived = facts::derive(&input).and_then(|mut facts| {
        facts.extend(request::derive_rows(&input)?);
        Ok(facts)
    });
    derived.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives how a struct is part of the requests of commands.
#[proc_macro_derive(Arguments, attributes(key, word, words, option, flat))]
pub fn derive_arguments(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    request::derive_arguments(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives how a type is written in a letter and read from one.
///
/// An enum is written as the number of its variant, `#[letter(7)]` or its discriminant, and the
/// fields of that. Fields without a tag are always there, one after the other. A named field with a
/// tag, `#[letter(3)]`, is left out if it has its usual value: that of its type, or the one that
/// `default = …` says. It is written as its tag and its value, in the order of the tags, and the
/// byte 0 follows the last one. A program that does not know a tag refuses the letter, or passes
/// over the field if its tag is 128 or more. `closed` says of a type or a variant that it never
/// gets such fields, and it has no byte 0. `most = …` says how many of a type a list may have.
///
/// So numbers and tags that were given keep their meaning, and a new field gets the next tag.
#[proc_macro_derive(Letter, attributes(letter))]
pub fn derive_letter(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    letters::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives the kinds of an enum, and how one of a kind is made of fields that somebody chooses: see
/// `pinpriq_proto::choosing`.
#[proc_macro_derive(Kinds)]
pub fn derive_kinds(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    kinds::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
