//! The kinds of an enum's values, and a value of each kind with fields that somebody else chooses.

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::given::{made, variants};

/// Returns `KINDS`, `kind` and `of_kind` of an enum.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let variants = variants(input)?;
    let (name, (generics, of, filter)) = (&input.ident, input.generics.split_for_impl());
    let kinds: Vec<_> = variants.iter().map(|it| &it.ident).collect();
    let types = variants.iter().flat_map(|it| &it.fields).map(|field| &field.ty);
    let chosen = variants.iter().map(|variant| {
        let values = variant.fields.iter().map(|field| {
            let text = field.ident.as_ref().unwrap_or(name).to_string();
            quote!(crate::choosing::Chosen::chosen(by, #text))
        });
        let kind = &variant.ident;
        made(&quote!(Self::#kind), &variant.fields, values)
    });
    let places: Vec<_> = (0..kinds.len()).collect();
    Ok(quote! {
        #[allow(clippy::all, clippy::pedantic, clippy::nursery, reason = "it is derived")]
        impl #generics #name #of #filter {
            /// The names of all kinds, in the order of their declarations.
            pub const KINDS: &'static [&'static str] = &[#(stringify!(#kinds)),*];

            /// The place of its kind in `KINDS`.
            #[must_use]
            pub const fn kind(&self) -> usize {
                match self { #(Self::#kinds { .. } => #places,)* }
            }

            /// Makes one of the kind at this place of `KINDS`. A field without a name is known by
            /// that of the type.
            ///
            /// # Panics
            /// If there is no such kind.
            pub fn of_kind<C>(kind: usize, by: &mut C) -> Self
            where
                #(#types: crate::choosing::Chosen<C>,)*
            {
                match kind {
                    #(#places => #chosen,)*
                    _ => panic!("there is no kind {kind}"),
                }
            }
        }
    })
}
