//! Makes functions of the facts that stand on the declaration of each command.
//!
//! `#[derive(Command)]` belongs on an enum of commands. Each variant carries `#[command(…)]` with
//! one fact after the other. A fact is an expression, in which the fields of the variant are known
//! by their names, and the only field of a tuple variant as `it`. Of each fact the derive makes one
//! method with one arm for each variant. So a command without a decision does not compile. What
//! the facts are is one table, `FACTS`; what they mean is in `pinpriq_proto::facts`.
//!
//! Nothing here knows a command, and nothing here decides anything.

mod facts;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Derives the facts about the commands of an enum.
#[proc_macro_derive(Command, attributes(command))]
pub fn derive_command(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    facts::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
