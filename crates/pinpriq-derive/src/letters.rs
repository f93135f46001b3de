//! Writing and reading of the types that stand in letters.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote};
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, Field, Fields, Ident, Member, Type, Variant,
    parse_quote,
};

use crate::given::{Given, variants};

/// How a struct, a variant or a field is written, read and sampled.
struct Body {
    /// Only a field may have one.
    tag: Option<u8>,
    /// What binds its fields, or it.
    pattern: TokenStream,
    put: TokenStream,
    take: TokenStream,
    sample: TokenStream,
}

/// Returns the implementation of `Letter`.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let name = words(&input.ident);
    let (put, take, sample) = match &input.data {
        Data::Struct(data) => {
            let body = of_fields(&quote!(Self), &name, &data.fields, &input.attrs)?;
            let (pattern, put) = (body.pattern, body.put);
            (quote!(let #pattern = self; #put), body.take, body.sample)
        }
        _ => of_variants(&name, &variants(input)?)?,
    };
    let mut generics = input.generics.clone();
    if generics.lifetimes().next().is_none() {
        generics.params.insert(0, parse_quote!('letter));
    }
    let lifetime = generics.lifetimes().next().map(|it| it.lifetime.clone());
    for parameter in generics.type_params_mut() {
        parameter.default = None;
        parameter.bounds.push(parse_quote!(::pinpriq_proto::letters::Letter<#lifetime>));
    }
    let (generics, _, filter) = generics.split_for_impl();
    let (of, (_, types, _)) = (&input.ident, input.generics.split_for_impl());
    let given = Given::of(&input.attrs, "letter")?;
    let most = given.value("most").map(|most| quote!(const MOST: usize = #most;));
    let sample = given.alone("unsampled").is_none().then(|| {
        quote! {
            #[cfg(test)]
            fn sample(dice: &mut ::pinpriq_proto::letters::Dice) -> Self { #sample }
        }
    });
    Ok(quote! {
        #[allow(unused_variables, unused_assignments, unused_mut, clippy::all, clippy::pedantic)]
        #[deny(unreachable_patterns, reason = "each variant has a number of its own")]
        impl #generics ::pinpriq_proto::letters::Letter<#lifetime> for #of #types #filter {
            #most
            #[inline]
            fn put(&self, out: &mut ::std::vec::Vec<u8>) { #put }
            #[inline]
            fn take(
                input: &mut &#lifetime [u8],
                arena: &#lifetime ::pinpriq_proto::letters::Arena,
            ) -> ::core::result::Result<Self, ::pinpriq_proto::letters::Malformed> {
                Ok(#take)
            }
            #sample
        }
    })
}

/// Returns how an enum is written, read and sampled: the number of the variant, and its fields.
fn of_variants(
    name: &str,
    variants: &[&Variant],
) -> syn::Result<(TokenStream, TokenStream, TokenStream)> {
    let (mut numbers, mut bodies, mut local) = (vec![], vec![], vec![]);
    for variant in variants {
        if Given::of(&variant.attrs, "letter")?.alone("local").is_some() {
            local.push(&variant.ident);
            continue;
        }
        let discriminant = variant.discriminant.as_ref().map(|(_, number)| number);
        let number = match (discriminant, number(&variant.attrs)?) {
            (Some(number), None) => byte(number)?,
            (None, Some(number)) => number,
            _ => return Err(Error::new(variant.span(), "give it one number: #[letter(…)]")),
        };
        numbers.push(number);
        let ident = &variant.ident;
        let (path, fields) = (quote!(Self::#ident), &variant.fields);
        bodies.push(of_fields(&path, &words(ident), fields, &variant.attrs)?);
    }
    let (patterns, puts) = (bodies.iter().map(|it| &it.pattern), bodies.iter().map(|it| &it.put));
    let (takes, samples) = (bodies.iter().map(|it| &it.take), bodies.iter().map(|it| &it.sample));
    let (count, places) = (bodies.len(), 0..bodies.len());
    Ok((
        quote!(match self {
            #(#patterns => { out.push(#numbers); #puts })*
            #(Self::#local { .. } => unreachable!("it stays in this process"),)*
        }),
        quote! {
            match ::pinpriq_proto::letters::primitives::take_byte(input)? {
                #(#numbers => #takes,)*
                kind => {
                    let what = #name;
                    return Err(::pinpriq_proto::letters::Malformed::UnknownKind { what, kind });
                }
            }
        },
        quote! {
            match dice.variant(#name, #count) { #(#places => #samples,)* _ => unreachable!() }
        },
    ))
}

/// Returns the number or tag of a variant or field.
fn number(attributes: &[Attribute]) -> syn::Result<Option<u8>> {
    let given = Given::of(attributes, "letter")?;
    given.check(&["closed", "default", "most", "local", "unsampled"], &attributes.first())?;
    given.expressions().find(|it| matches!(it, Expr::Lit(_))).map(byte).transpose()
}

fn byte(number: &Expr) -> syn::Result<u8> {
    syn::parse2::<syn::LitInt>(quote!(#number))?.base10_parse()
}

/// Returns how a struct or a variant is written: the required fields in their order, then those
/// with a tag in the order of the tags.
fn of_fields(
    path: &TokenStream,
    name: &str,
    fields: &Fields,
    attributes: &[Attribute],
) -> syn::Result<Body> {
    let is_closed = Given::of(attributes, "letter")?.alone("closed").is_some();
    let is_open = matches!(fields, Fields::Named(_)) && !is_closed;
    let all = fields.members().zip(fields).map(|(member, field)| of_field(&member, field, is_open));
    let mut all = all.collect::<syn::Result<Vec<_>>>()?;
    all.sort_by_key(|field| field.tag);
    let tags: Vec<_> = all.iter().filter_map(|field| field.tag).collect();
    if tags.windows(2).any(|two| two[0] == two[1]) {
        return Err(Error::new(fields.span(), "two fields have one tag"));
    }
    let (patterns, puts) = (all.iter().map(|it| &it.pattern), all.iter().map(|it| &it.put));
    let (takes, samples) = (all.iter().map(|it| &it.take), all.iter().map(|it| &it.sample));
    let pattern = quote!(#path { #(#patterns),* });
    let (required, tagged) =
        (takes.clone().take(all.len() - tags.len()), takes.rev().take(tags.len()).rev());
    let (end, first, last) = if is_open {
        (
            quote!(out.push(0);),
            quote!(let mut tag = ::pinpriq_proto::letters::primitives::take_byte(input)?;),
            quote!(::pinpriq_proto::letters::end_fields(tag, #name, &[#(#tags),*], input)?;),
        )
    } else {
        Default::default()
    };
    Ok(Body {
        tag: None,
        put: quote!(#(#puts)* #end),
        take: quote!({ #(#required)* #first #(#tagged)* #last #pattern }),
        sample: quote!(#path { #(#samples),* }),
        pattern,
    })
}

fn of_field(member: &Member, field: &Field, is_open: bool) -> syn::Result<Body> {
    let (kind, tag) = (&field.ty, number(&field.attrs)?);
    let given = Given::of(&field.attrs, "letter")?;
    let local = given.value("local");
    let choice = matches!(kind, Type::Path(it) if it.path.segments.last()
        .is_some_and(|it| it.ident == "Option" || it.ident == "bool"));
    let wrong = match tag {
        Some(0) => Some("0 ends the fields"),
        Some(_) if !is_open => Some("only named fields of what is not closed have a tag"),
        None if is_open && choice && local.is_none() => {
            Some("it is not always there: give it a tag")
        }
        _ => None,
    };
    if let Some(wrong) = wrong {
        return Err(Error::new(field.span(), wrong));
    }
    let default = given.value("default");
    // Where the usual value is that of the type, what it is not needs no bytes: an option that is
    // there, a flag that is set.
    let end = if tag.is_some() && default.is_none() { "_unusual" } else { "" };
    let [put, take] = ["put", "take"].map(|verb| {
        let verb = format_ident!("{verb}{end}");
        quote!(<#kind as ::pinpriq_proto::letters::Letter>::#verb)
    });
    let usual = default.map_or_else(|| quote!(Default::default()), |it| quote!(#it));
    let name = member.to_token_stream().to_string();
    let (bound, sample) =
        (format_ident!("field_{name}"), quote!(::pinpriq_proto::letters::Letter::sample(dice)));
    let [put, take, sample] = match tag {
        _ if local.is_some() => {
            [quote!(assert!(#bound.#local(), "it stays in this process");), usual.clone(), usual]
        }
        None => [quote!(#put(#bound, out);), quote!(#take(input, arena)?), sample],
        Some(tag) => [
            quote!(::pinpriq_proto::letters::put_tagged(#tag, #bound, &#usual, out, #put);),
            quote!(::pinpriq_proto::letters::take_tagged(
                (#tag, #name), &mut tag, #usual, input, |input| #take(input, arena),
            )?),
            quote!(if dice.is_usual() { #usual } else { #sample }),
        ],
    };
    Ok(Body {
        tag,
        pattern: quote!(#member: #bound),
        put,
        take: quote!(let #bound: #kind = #take;),
        sample: quote!(#member: #sample),
    })
}

/// Returns the name of a type or a variant in the words of a sentence.
fn words(name: &Ident) -> String {
    let mut words = String::new();
    for letter in name.to_string().chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}
