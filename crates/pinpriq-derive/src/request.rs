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
//! - `#[option]`: the option of that name, in capitals, or those named in brackets. It may have a
//!   `default`, the `most`, or a module `with` which it is read and written, as words may.
//! - `#[flat]`: a struct with words and options of its own, which is also what the only field of a
//!   tuple variant is that has no attribute.
//!
//! What the types of fields look like as words is in `pinpriq_proto::request::reading`.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Error, Field, Fields, Type};

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
fn part_of(field: &Field, at: &TokenStream) -> syn::Result<Part> {
    let kinds = ["key", "word", "words", "option", "flat"];
    let has = |kind: &&str| field.attrs.iter().any(|it| it.path().is_ident(kind));
    let kind = kinds.into_iter().find(has).or_else(|| field.ident.is_none().then_some("flat"));
    let kind = kind.ok_or_else(|| Error::new(field.span(), "say what it is, as #[word]"))?;
    let given = Given::of(&field.attrs, kind)?;
    let (ty, fixed, bound) = (&field.ty, fixed(&field.ty), bound(field));
    let ident = field.ident.as_ref().map_or_else(|| "it".to_owned(), ToString::to_string);
    let named = given.expressions().next().map(ToTokens::to_token_stream);
    let known = format_ident!("{}", ident.to_uppercase());
    let known = named.clone().unwrap_or_else(|| quote!(#known));
    let (name, option) = (named.unwrap_or_else(|| quote!(#ident)), quote!(options::#known));
    let default = given.value("default").map(|value| quote!({ let value: #ty = #value; value }));
    let most = given.value("most").map(|most| quote!(.min(#most)));
    let outer = outer(ty);
    // From a value that may be missing to the field, and back.
    let (or, maybe) = match (&default, outer.as_str()) {
        (Some(default), _) => {
            (quote!(.unwrap_or(#default) #most), quote!(Some(#bound).filter(|it| *it != #default)))
        }
        (None, "Assign") => (quote!(.into()), quote!(#bound.given())),
        (None, "Option") => (quote!(), quote!(#bound)),
        (None, _) => (quote!(), quote!(Some(#bound))),
    };
    let is_optional = default.is_some() || matches!(outer.as_str(), "Assign" | "Option");
    let lists = lists(kind, &given, (&name, &option, &fixed), is_optional);
    let (read, write) = match (kind, given.value("with")) {
        (_, Some(with)) => (
            quote!(crate::request::#with::read(parts, room)?),
            quote!(crate::request::#with::write(#bound, writing);),
        ),
        ("key", _) => {
            (quote!(<#ty as Key<'a>>::read(parts, #at)?), quote!(Key::write(&#bound, writing);))
        }
        ("word", _) if is_optional => {
            (quote!(parts.maybe(#name, #at)? #or), quote!(writing.maybe(#maybe);))
        }
        ("word", _) => (
            quote!(<#ty as Value<'a>>::read(#name, parts.word(#at))?),
            quote!(writing.maybe(#maybe);),
        ),
        ("words", _) => (
            quote!(parts.words.get(#at..).unwrap_or_default()),
            quote!(writing.list(#name, #bound);),
        ),
        ("option", _) if quote!(#ty).to_string() == "bool" => {
            (quote!(parts.given(#option).is_some()), quote!(writing.flag(#option, #bound);))
        }
        ("option", _) if is_optional => {
            (quote!(parts.value(#option)? #or), quote!(writing.option(#option, #maybe);))
        }
        ("option", _) => return Err(Error::new(field.span(), "an option has a default")),
        _ => (
            quote!(<#ty as Arguments<'a>>::read(parts, #at, room)?),
            quote!(Arguments::write(&#bound, writing);),
        ),
    };
    Ok(Part { lists, read, write })
}

/// Returns what a part adds to the lists of words, options and last words.
fn lists(
    kind: &str,
    given: &Given,
    (name, option, fixed): (&TokenStream, &TokenStream, &impl ToTokens),
    is_optional: bool,
) -> [TokenStream; 3] {
    let nothing = quote!(&[]);
    let word = |words: [&str; 2]| {
        let word = format_ident!("{}", words[usize::from(is_optional)]);
        quote!(&[Word::#word(#name)])
    };
    match kind {
        "key" => [word(["Key", "MaybeKey"]), nothing, quote!(<#fixed as Key<'static>>::OPTIONS)],
        "word" => [word(["One", "Maybe"]), nothing.clone(), nothing],
        "words" => [quote!(&[#name]), nothing.clone(), nothing],
        "option" if given.expressions().next().is_some() => {
            let each = given.expressions();
            [nothing.clone(), quote!(&[#(options::#each),*]), nothing]
        }
        "option" => [nothing.clone(), quote!(&[#option]), nothing],
        _ => ["WORDS", "OPTIONS", "LAST"].map(|list| {
            let list = format_ident!("{list}");
            quote!(<#fixed as Arguments<'static>>::#list)
        }),
    }
}

/// Returns an expression of one list that consists of these lists of the parts.
fn joined(parts: &[Part], which: &[usize]) -> TokenStream {
    let lists = which.iter().flat_map(|list| parts.iter().map(|part| &part.lists[*list]));
    let of = format_ident!("{}", if which == [0] { "Word" } else { "Opt" });
    quote!(joined!(#of #(, #lists)*))
}

/// Returns the last word of the name of a type, without its parameters.
fn outer(ty: &Type) -> String {
    let Type::Path(path) = ty else { return String::new() };
    path.path.segments.last().map_or_else(String::new, |it| it.ident.to_string())
}

/// Returns a type with `'static` in place of its lifetime, which is always called `'a`.
fn fixed(ty: &impl ToTokens) -> TokenStream {
    let text = ty.to_token_stream().to_string().replace("'a", "'static");
    text.parse().unwrap_or_default()
}
