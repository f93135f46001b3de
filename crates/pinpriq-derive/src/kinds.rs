//! The kinds of an enum's values, and a value of each kind with fields that somebody else chooses.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Error, Fields, Type};

/// Returns `KINDS`, `kind` and `of_kind` of an enum.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new(input.span(), "kinds are the variants of an enum"));
    };
    let (name, (generics, of, filter)) = (&input.ident, input.generics.split_for_impl());
    let whole = name.to_string();
    let kinds = data.variants.iter().map(|variant| variant.ident.to_string());
    // Each type once, known by its text.
    let fields = data.variants.iter().flat_map(|variant| &variant.fields);
    let types: BTreeMap<String, &Type> =
        fields.map(|field| (field.ty.to_token_stream().to_string(), &field.ty)).collect();
    let types = types.values();
    let chosen = data.variants.iter().enumerate().map(|(place, variant)| {
        let (kind, fields) = (&variant.ident, &variant.fields);
        let names = fields.iter().map(|field| field.ident.as_ref());
        let value = match fields {
            Fields::Named(_) => {
                let fields = names.flatten().map(|name| {
                    let text = name.to_string();
                    quote!(#name: crate::choosing::Chosen::chosen(by, #text))
                });
                quote!(Self::#kind { #(#fields),* })
            }
            Fields::Unnamed(_) => {
                let fields = names.map(|_| quote!(crate::choosing::Chosen::chosen(by, #whole)));
                quote!(Self::#kind(#(#fields),*))
            }
            Fields::Unit => quote!(Self::#kind),
        };
        quote!(#place => #value,)
    });
    let places = data.variants.iter().enumerate().map(|(place, variant)| {
        let kind = &variant.ident;
        quote!(Self::#kind { .. } => #place,)
    });
    Ok(quote! {
        impl #generics #name #of #filter {
            /// The names of all kinds, in the order of their declarations.
            pub const KINDS: &'static [&'static str] = &[#(#kinds),*];

            /// The place of its kind in `KINDS`.
            #[must_use]
            pub const fn kind(&self) -> usize {
                match self { #(#places)* }
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
                    #(#chosen)*
                    _ => panic!("there is no kind {kind}"),
                }
            }
        }
    })
}
