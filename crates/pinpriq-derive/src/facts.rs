//! The methods that state the facts.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote};
use syn::spanned::Spanned as _;
use syn::{DeriveInput, Error, Expr, ItemTrait, TraitItem, TraitItemFn, Variant, parse_quote};

use crate::given::{Given, made, variants};

/// Every fact as its method. In `#[fact(…)]` stand the words for it on a variant, of which the
/// first counts that is there, what the method returns for what is `given`, and what is given
/// `without` a word. A fact that says nothing of that has to be decided for each variant.
fn facts() -> ItemTrait {
    parse_quote! {
        trait Facts<'a> {
            /// Passes each right that it needs to `tell`. A command that needs none is free.
            #[fact(needs)]
            fn each_need(&self, tell: &mut dyn FnMut(crate::rights::Need<'a>));
            /// Where it is applied, when there are several engines.
            #[fact(shard, returns = crate::facts::Destination::from(given))]
            #[must_use]
            fn destination(&self) -> crate::facts::Destination<'a>;
            /// Refuses names that are too long, before anything else is checked.
            #[fact(names, shard, returns = crate::facts::Named::check(&given))]
            fn check_names(&self) -> Result<(), crate::refusal::Refusal>;
            /// What it needs of a disk.
            #[fact(disk)]
            #[must_use]
            fn on_full_disk(&self) -> crate::facts::Disk;
            /// The name of what it destroys, or whose settings it changes.
            #[fact(audit, returns = crate::facts::Named::name(&given), without = ())]
            #[must_use]
            fn audited(&self) -> Option<&'a [u8]>;
            /// Whether it is there to change something. Commands that look, wait, take or
            /// subscribe are not. Their answers rest on what is there, even if nothing changes.
            #[fact(change, without = false)]
            #[must_use]
            fn is_change(&self) -> bool;
            /// Whether it can be kept within names, see [`Command::Within`]. Those that touch
            /// queues which they do not name.
            #[fact(within, without = false)]
            #[must_use]
            fn can_be_within(&self) -> bool;
            /// Whether it can be a step of a transaction. Those that can change tasks that they
            /// name, and never wait.
            #[fact(step, without = false)]
            #[must_use]
            fn is_step(&self) -> bool;
            /// Whether the reply may take long, so that the client has to wait for it.
            #[fact(blocks, without = false)]
            #[must_use]
            fn may_block(&self) -> bool;
            /// What it needs besides being applied.
            #[fact(care, without = Plain)]
            #[inline(always)]
            #[must_use]
            fn care(&self) -> crate::facts::Care;
        }
    }
}

/// Returns the methods of an enum, whose values borrow for `'a`.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let variants = variants(input)?;
    let (mut known, mut texts) = (vec!["inner".to_owned()], Vec::new());
    for item in facts().items {
        let TraitItem::Fn(head) = item else { continue };
        let fact = Given::of(&head.attrs, "fact")?;
        let arms = variants.iter().map(|variant| arm(variant, &head, &fact));
        let arms: Vec<_> = arms.collect::<syn::Result<_>>()?;
        let attributes = head.attrs.iter().filter(|it| !it.path().is_ident("fact"));
        let signature = &head.sig;
        texts.push(quote!(#(#attributes)* pub #signature { match *self { #(#arms)* } }));
        known.extend(fact.words());
    }
    for variant in variants {
        Given::of(&variant.attrs, "command")?.check(&known, variant)?;
    }
    let (name, (generics, types, filter)) = (&input.ident, input.generics.split_for_impl());
    Ok(quote! {
        #[allow(unused, non_shorthand_field_patterns, clippy::all, clippy::pedantic)]
        const _: () = {
            use crate::facts::{Care::*, Disk::{Leases, Refused, Served}};
            impl #generics #name #types #filter { #(#texts)* }
        };
    })
}

/// Returns the arm of a variant in the method of a fact.
fn arm(variant: &Variant, head: &TraitItemFn, fact: &Given) -> syn::Result<TokenStream> {
    let (name, method) = (&variant.ident, &head.sig.ident);
    let names = variant.fields.iter().map(|field| field.ident.as_ref());
    let bound = names.map(|name| name.map_or_else(|| quote!(it), |name| quote!(#name)));
    let pattern = made(&quote!(Self::#name), &variant.fields, bound);
    let given = Given::of(&variant.attrs, "command")?;
    if given.alone("inner").is_some() {
        let tell = (method == "each_need").then(|| quote!(tell));
        return Ok(quote!(#pattern => it.#method(#tell),));
    }
    let words: Vec<_> = fact.words().collect();
    let found = words.iter().find_map(|word| given.value(word).or_else(|| given.alone(word)));
    let value = match (found, fact.value("without")) {
        (Some(Expr::Call(pairs)), _) if pairs.func.to_token_stream().to_string() == "needs" => {
            let needs = pairs.args.iter().map(need).collect::<syn::Result<Vec<_>>>()?;
            quote!({ #(#needs)* })
        }
        (Some(Expr::Path(word)), _) if words.iter().any(|it| word.path.is_ident(it)) => {
            quote!(true)
        }
        (Some(value), _) | (None, Some(value)) => value.to_token_stream(),
        (None, None) => {
            let sentence = format!("#[command({} = …)] is missing: decide that too", words[0]);
            return Err(Error::new(variant.span(), sentence));
        }
    };
    Ok(match fact.value("returns") {
        None => quote!(#pattern => #value,),
        Some(returned) => quote!(#pattern => { let given = #value; #returned }),
    })
}

/// Returns the statement that passes a need, which stands as a right and what it is needed on.
fn need(pair: &Expr) -> syn::Result<TokenStream> {
    let Expr::Assign(pair) = pair else {
        return Err(Error::new(pair.span(), "say right = subject"));
    };
    let (right, subject) = (pair.left.to_token_stream().to_string(), &pair.right);
    let right = format_ident!("{}{}", right[..1].to_uppercase(), right[1..]);
    Ok(quote!(crate::facts::Subject::each(&#subject, crate::rights::Right::#right, tell);))
}
