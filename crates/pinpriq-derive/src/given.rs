//! What all derives need of a declaration: its variants, and what stands in brackets on it.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Fields, Meta, Token, Variant};

/// What stands in the brackets of attributes: expressions, and names with their values.
#[derive(Default)]
pub(crate) struct Given {
    pub(crate) alone: Vec<Expr>,
    named: Vec<(String, Expr)>,
}

impl Given {
    /// Returns what all attributes of this name have in their brackets.
    pub(crate) fn of(attributes: &[Attribute], name: &str) -> syn::Result<Self> {
        let mut given = Self::default();
        for attribute in attributes.iter().filter(|it| it.path().is_ident(name)) {
            if let Meta::List(_) = attribute.meta {
                let Self { alone, named } = attribute.parse_args()?;
                given.alone.extend(alone);
                given.named.extend(named);
            }
        }
        Ok(given)
    }

    /// Returns the value of a name.
    pub(crate) fn value(&self, name: &str) -> Option<&Expr> {
        self.named.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns the expression that is this word, or a call of it.
    pub(crate) fn alone(&self, word: &str) -> Option<&Expr> {
        self.alone.iter().find(|it| word_of(it).as_deref() == Some(word))
    }

    /// Returns the words without a value.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        self.alone.iter().filter_map(word_of)
    }

    /// Refuses words that are not among these.
    pub(crate) fn check(&self, known: &[impl AsRef<str>], of: &impl Spanned) -> syn::Result<()> {
        let mut words = self.words().chain(self.named.iter().map(|(name, _)| name.clone()));
        let unknown = words.find(|word| !known.iter().any(|it| it.as_ref() == word));
        unknown.map_or(Ok(()), |it| Err(Error::new(of.span(), format!("{it} is not known here"))))
    }
}

impl Parse for Given {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut given = Self::default();
        for item in Punctuated::<Expr, Token![,]>::parse_terminated(input)? {
            match item {
                Expr::Assign(named) => {
                    given.named.push((named.left.to_token_stream().to_string(), *named.right));
                }
                alone => given.alone.push(alone),
            }
        }
        Ok(given)
    }
}

fn word_of(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Call(call) => word_of(&call.func),
        _ => None,
    }
}

/// Returns the variants of an enum.
pub(crate) fn variants(input: &DeriveInput) -> syn::Result<Vec<&Variant>> {
    match &input.data {
        Data::Enum(data) => Ok(data.variants.iter().collect()),
        _ => Err(Error::new(input.span(), "this is derived for enums")),
    }
}

/// Returns the pattern or expression of a struct or variant with these for its fields.
pub(crate) fn made(
    path: &TokenStream,
    fields: &Fields,
    values: impl Iterator<Item = TokenStream>,
) -> TokenStream {
    let members = fields.members();
    quote!(#path { #(#members: #values),* })
}
