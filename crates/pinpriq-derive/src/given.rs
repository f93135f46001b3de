//! What all derives need of a declaration: its variants, and what stands in brackets on it.

use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Fields, Token, Variant};

/// What stands in the brackets of an attribute: expressions, and names with their values.
pub(crate) struct Given(Vec<Expr>);

impl Given {
    /// Returns what the attribute of this name has in its brackets, if it is there.
    pub(crate) fn of(attributes: &[Attribute], name: &str) -> syn::Result<Self> {
        let is_it = |it: &&Attribute| it.path().is_ident(name) && it.meta.require_list().is_ok();
        let parse = Punctuated::<Expr, Token![,]>::parse_terminated;
        let given = attributes.iter().find(is_it).map(|it| it.parse_args_with(parse));
        Ok(Self(given.transpose()?.into_iter().flatten().collect()))
    }

    /// Returns the expressions without a name.
    pub(crate) fn expressions(&self) -> impl DoubleEndedIterator<Item = &Expr> {
        self.0.iter().filter(|it| !matches!(it, Expr::Assign(_)))
    }

    /// Returns the value of a name.
    pub(crate) fn value(&self, name: &str) -> Option<&Expr> {
        self.0.iter().find_map(|it| match it {
            Expr::Assign(named) if word_of(&named.left)? == name => Some(&*named.right),
            _ => None,
        })
    }

    /// Returns the expression that is this word, or a call of it.
    pub(crate) fn alone(&self, word: &str) -> Option<&Expr> {
        self.expressions().find(|it| word_of(it).as_deref() == Some(word))
    }

    /// Returns the words without a value.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        self.expressions().filter_map(word_of)
    }

    /// Refuses words that are not among these.
    pub(crate) fn check(&self, known: &[impl AsRef<str>], of: &impl Spanned) -> syn::Result<()> {
        let mut words = self.0.iter().filter_map(word_of);
        let unknown = words.find(|word| !known.iter().any(|it| it.as_ref() == word));
        unknown.map_or(Ok(()), |it| Err(Error::new(of.span(), format!("{it} is not known here"))))
    }
}

fn word_of(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Call(call) => word_of(&call.func),
        Expr::Assign(named) => word_of(&named.left),
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
