//! How requests over RESP are read and written, and the entries of commands in the table.
//!
//! `#[request(entry)]` on a variant gives its entry: an expression that is a `Spec`. Words and
//! options come from the fields, unless the entry has some of its own. With `#[request(by_hand =
//! function, entry)]` that function of `pinpriq_proto::request::by_hand` reads the request and
//! `write` there writes it, and the fields say nothing; without a function a door reads it. On a
//! field stands one of
//! - `#[key]`: a word that decides the shard, `#[word]`: another one. What is an `Option`, or has a
//!   `default`, may be left out. A string is what it is called instead of as its field.
//! - `#[words(kind)]`: all words from there on, of that kind.
//! - `#[option]`: the known option of that name, in capitals, or of the name in brackets. A string
//!   makes a new one, of which the comment on the field says what it is for. It may have a
//!   `default`, the `most`, or a module `with` which it is read and written.
//! - `#[flat]`: a struct with words and options of its own, which is also what the only field of a
//!   tuple variant is that has no attribute.
//!
//! What the types of fields look like as words is in `pinpriq_proto::request::reading`.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, Field, Fields, Ident, LitStr, MetaNameValue, Type,
};

use crate::given::{Given, made, variants};

/// One field as a part of a request.
struct Part {
    /// Lists of words, of options, and of options that come last.
    lists: [TokenStream; 3],
    /// The expression that reads it.
    read: TokenStream,
    /// The statement that writes it.
    write: TokenStream,
}

/// Returns the entries of an enum of commands, and the method that writes their requests.
pub(crate) fn derive_rows(input: &DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let (mut lists, mut writes) = (Vec::new(), Vec::new());
    for variant in variants(input)? {
        let (own, fields) = (&variant.ident, &variant.fields);
        let facts = Given::of(&variant.attrs, "command")?;
        if facts.alone("inner").is_some() {
            let inner = fields.iter().next().map(|field| fixed(&field.ty));
            lists.push(quote!(<#inner>::ROWS));
            writes.push(quote!(Self::#own(inner) => inner.write(writing),));
        }
        let is_step = facts.alone("step").is_some() || facts.value("step").is_some();
        for attribute in variant.attrs.iter().filter(|it| it.path().is_ident("request")) {
            let given = Given::of(std::slice::from_ref(attribute), "request")?;
            let entry = given.expressions().last();
            let entry = quote!((#entry).step(#is_step));
            let function =
                given.value("by_hand").map(|it| quote!(Some(crate::request::by_hand::#it)));
            let by_hand = function.or_else(|| given.alone("by_hand").map(|_| quote!(None)));
            if let Some(read) = by_hand {
                lists.push(quote!(&[Row(#entry, #read)]));
                continue;
            }
            let (parts, value, bound) = parts_of(&quote!(#name::#own), fields)?;
            let [words, options] = [joined(&parts, &[0]), joined(&parts, &[1, 2])];
            lists.push(quote!(&[{
                fn read<'a>(
                    parts: &'a Parts<'a>,
                    room: &'a Room<'a>,
                ) -> Result<crate::command::Command<'a>, Fault> {
                    let at = 0_usize;
                    let _ = (parts, at, room);
                    Ok(crate::command::Command::from(#value))
                }
                Row(#entry.or(#words, #options), Some(read))
            }]));
            let each = parts.iter().map(|part| &part.write);
            writes.push(quote!(#bound => {
                const SPEC: Spec = #entry;
                writing.begin(&SPEC);
                #(#each)*
            }));
        }
    }
    Ok(quote! {
        impl<'a> #name<'a> {
            /// The entries of the commands that are requests over RESP.
            pub(crate) const ROWS: &'static [crate::request::reading::Row] = {
                use crate::request::declared::*;
                joined!(Row #(, #lists)*)
            };

            /// Writes the request that is read as this.
            #[allow(clippy::too_many_lines, reason = "a line for each field")]
            pub(crate) fn write(&self, writing: &mut crate::request::writing::Writing) {
                use crate::request::declared::*;
                match *self {
                    #(#writes)*
                    #[allow(unreachable_patterns, reason = "most enums have others")]
                    _ => crate::request::by_hand::write(&Self::into(*self), writing),
                }
            }
        }
    })
}

/// Returns how a struct is part of a request.
pub(crate) fn derive_arguments(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(input.span(), "arguments are the fields of a struct"));
    };
    let name = &input.ident;
    let parameters = (!input.generics.params.is_empty()).then(|| input.generics.split_for_impl().1);
    let (parts, value, bound) = parts_of(&quote!(Self), &data.fields)?;
    let each = parts.iter().map(|part| &part.write);
    let [words, options, last] = [0, 1, 2].map(|list| joined(&parts, &[list]));
    Ok(quote! {
        const _: () = {
            #[allow(unused_imports, reason = "not every declaration needs all of them")]
            use crate::request::declared::*;
            impl<'a> Arguments<'a> for #name #parameters {
                const WORDS: &'static [Word] = #words;
                const OPTIONS: &'static [Opt] = #options;
                const LAST: &'static [Opt] = #last;
                fn read(
                    parts: &'a Parts<'a>, at: usize, room: &'a Room<'a>,
                ) -> Result<Self, Fault> {
                    let _ = room;
                    Ok(#value)
                }
                fn write(&self, writing: &mut crate::request::writing::Writing) {
                    let #bound = *self;
                    #(#each)*
                }
            }
        };
    })
}

/// Returns the parts, the value that is read of them, and the pattern that binds what is written.
fn parts_of(
    path: &TokenStream,
    fields: &Fields,
) -> syn::Result<(Vec<Part>, TokenStream, TokenStream)> {
    let (mut parts, mut at) = (Vec::<Part>::new(), quote!(at));
    for field in fields {
        let part = part_of(field, &at)?;
        let words = &part.lists[0];
        at = quote!(#at + total::<Word>(&[#words]));
        parts.push(part);
    }
    let value = made(path, fields, parts.iter().map(|it| it.read.clone()));
    Ok((parts, value, made(path, fields, fields.iter().map(bound))))
}

/// Returns what a field is called where it is written.
fn bound(field: &Field) -> TokenStream {
    let name = field.ident.as_ref().map(|name| format_ident!("its_{name}"));
    name.map_or_else(|| quote!(it), |name| quote!(#name))
}

/// Returns the part that a field is, of which the first word is at this place.
#[expect(clippy::too_many_lines, reason = "an arm for each kind of field")]
fn part_of(field: &Field, at: &TokenStream) -> syn::Result<Part> {
    let kinds = ["key", "word", "words", "option", "flat"];
    let has = |kind: &&str| field.attrs.iter().any(|it| it.path().is_ident(kind));
    let kind = kinds.into_iter().find(has).or_else(|| field.ident.is_none().then_some("flat"));
    let kind = kind.ok_or_else(|| Error::new(field.span(), "say what it is, as #[word]"))?;
    let given = Given::of(&field.attrs, kind)?;
    let (ty, bound) = (&field.ty, bound(field));
    let default = given.value("default").map(|value| quote!({ let value: #ty = #value; value }));
    // Without a default, the type says whether it may be missing.
    let (outer, value_type) = match inside(ty).filter(|_| default.is_none()) {
        Some((outer, value_type)) => (outer, value_type),
        None => (String::new(), ty.clone()),
    };
    let is_optional = default.is_some() || !outer.is_empty();
    let ident = field.ident.as_ref().map_or_else(String::new, ToString::to_string);
    let name = given.expressions().next().map_or_else(|| quote!(#ident), ToTokens::to_token_stream);
    // From a value that may be missing to the field, and back.
    let left_out = |read: TokenStream| match &default {
        Some(default) => quote!(#read.unwrap_or(#default)),
        None if outer == "Assign" => quote!(crate::command::Assign::from(#read)),
        None => read,
    };
    let maybe = match &default {
        Some(default) => quote!(Some(#bound).filter(|it| *it != #default)),
        None if outer == "Assign" => quote!(#bound.given()),
        None if outer == "Option" => quote!(#bound),
        None => quote!(Some(#bound)),
    };
    let (nothing, fixed, with) = (quote!(&[]), fixed(ty), given.value("with"));
    let read_and_write = with.map(|with| {
        let at = (kind == "words").then(|| quote!(#at,));
        let read = quote!(crate::request::#with::read(parts, #at room)?);
        (read, quote!(crate::request::#with::write(#bound, writing);))
    });
    let part = |lists, read, write| Ok(Part { lists, read, write });
    match kind {
        "key" => {
            let word = format_ident!("{}", if is_optional { "MaybeKey" } else { "Key" });
            let options = quote!(<#fixed as Key<'static>>::OPTIONS);
            part(
                [quote!(&[Word::#word(#name)]), nothing, options],
                quote!(<#ty as Key<'a>>::read(parts, #at)?),
                quote!(Key::write(&#bound, writing);),
            )
        }
        "word" => {
            let word = format_ident!("{}", if is_optional { "Maybe" } else { "One" });
            let read = if is_optional {
                left_out(quote!(parts.maybe::<#value_type>(#name, #at)?))
            } else {
                quote!(<#ty as Value<'a>>::read(#name, parts.word(#at))?)
            };
            let words = quote!(&[Word::#word(#name)]);
            part([words, nothing.clone(), nothing], read, quote!(writing.maybe(#maybe);))
        }
        "words" => {
            let (read, write) = read_and_write.unwrap_or_else(|| {
                let read = quote!(parts.words.get(#at..).unwrap_or_default());
                (read, quote!(writing.list(#name, #bound);))
            });
            part([quote!(&[#name]), nothing.clone(), nothing], read, write)
        }
        "option" => {
            if let (Some(with), Some((read, write))) = (with, read_and_write) {
                let options = quote!(&[crate::request::#with::OPTION]);
                return part([nothing.clone(), options, nothing], read, write);
            }
            let option = option_of(field, &value_type, &given, &ident)?;
            let most = given.value("most").map(|most| quote!(.map(|it| it.min(#most))));
            let (read, write) = if quote!(#ty).to_string() == "bool" {
                (quote!(parts.given(OPTION).is_some()), quote!(writing.flag(OPTION, #bound)))
            } else if is_optional {
                let read = left_out(quote!(parts.value::<#value_type>(OPTION)? #most));
                (read, quote!(writing.option(OPTION, #maybe)))
            } else {
                return Err(Error::new(field.span(), "an option has a default"));
            };
            let known = quote!(const OPTION: Opt = #option;);
            let (read, write) = (quote!({ #known #read }), quote!({ #known #write; }));
            part([nothing.clone(), quote!(&[#option]), nothing], read, write)
        }
        _ => {
            let list = |list| {
                let list = format_ident!("{list}");
                quote!(<#fixed as Arguments<'static>>::#list)
            };
            part(
                ["WORDS", "OPTIONS", "LAST"].map(list),
                quote!(<#ty as Arguments<'a>>::read(parts, #at, room)?),
                quote!(Arguments::write(&#bound, writing);),
            )
        }
    }
}

/// Returns the option that a field is.
fn option_of(field: &Field, ty: &Type, given: &Given, ident: &str) -> syn::Result<TokenStream> {
    match given.expressions().next() {
        Some(Expr::Lit(word)) => {
            let word = syn::parse2::<LitStr>(word.to_token_stream())?;
            let (fixed, bytes, help) =
                (fixed(ty), word.value().to_lowercase(), first_sentence(&field.attrs));
            let shown = quote!(options::shown(<#fixed as Value<'static>>::SHOWN, #bytes));
            Ok(quote!(options::with(#word, #shown, #help)))
        }
        Some(known) => Ok(quote!(options::#known)),
        None => {
            let known = Ident::new(&ident.to_uppercase(), field.span());
            Ok(quote!(options::#known))
        }
    }
}

/// Returns the first sentence of a documentation, without the full stop.
fn first_sentence(attributes: &[Attribute]) -> String {
    let texts = attributes.iter().filter_map(|it| match it.meta.require_name_value() {
        Ok(MetaNameValue { path, value: Expr::Lit(text), .. }) if path.is_ident("doc") => {
            syn::parse2::<LitStr>(quote!(#text)).ok()
        }
        _ => None,
    });
    let text = texts.map(|text| text.value().trim().to_owned()).collect::<Vec<_>>().join(" ");
    text.split_once(". ").map_or(text.as_str(), |(first, _)| first).trim_end_matches('.').into()
}

/// Returns an expression of one list that consists of these lists of the parts.
fn joined(parts: &[Part], which: &[usize]) -> TokenStream {
    let lists = which.iter().flat_map(|list| parts.iter().map(|part| &part.lists[*list]));
    let of = format_ident!("{}", if which == [0] { "Word" } else { "Opt" });
    quote!(joined!(#of #(, #lists)*))
}

/// Returns the name and the parameter of an `Option` or `Assign`.
fn inside(ty: &Type) -> Option<(String, Type)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let syn::PathArguments::AngleBracketed(parameters) = &last.arguments else { return None };
    let syn::GenericArgument::Type(inner) = parameters.args.first()? else { return None };
    let name = last.ident.to_string();
    matches!(name.as_str(), "Option" | "Assign").then(|| (name, inner.clone()))
}

/// Returns a type with `'static` in place of its lifetime, which is always called `'a`.
fn fixed(ty: &impl ToTokens) -> TokenStream {
    let text = ty.to_token_stream().to_string().replace("'a", "'static");
    text.parse().unwrap_or_default()
}
