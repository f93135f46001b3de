//! How requests over RESP are read, and the entries of commands in the table.
//!
//! `#[request(entry)]` on a variant gives its entry: an expression that is a `Spec`. Words and
//! options come from the fields, unless the entry has some of its own. With `#[request(by_hand,
//! entry)]` a door reads the request, and the fields say nothing. On a field stands one of
//! - `#[key]`: a word that decides the shard, `#[word]`: another one. What is an `Option`, or has a
//!   `default`, may be left out. A string is what it is called instead of as its field.
//! - `#[words(kind)]`: all words from there on, of that kind.
//! - `#[option]`: the known option of that name, in capitals, or of the name in brackets. A string
//!   makes a new one, of which the comment on the field says what it is for. It may have a
//!   `default`, the `most`, or a module `with` which it is read.
//! - `#[flat]`: a struct with words and options of its own, which is also what the only field of a
//!   tuple variant is that has no attribute.
//!
//! What the types of fields look like as words is in `pinpriq_proto::request::reading`.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, Field, Fields, Ident, LitStr, Meta, Token, Type,
};

/// What stands on a variant.
struct Request {
    by_hand: bool,
    entry: Expr,
}

/// What stands in the brackets on a field: a string, a path, or names with their values.
#[derive(Default)]
struct Given {
    alone: Option<Expr>,
    named: Vec<(Ident, Expr)>,
}

/// How one field is read.
struct Reading {
    /// Lists of words, of options, and of options that come last.
    lists: [TokenStream; 3],
    /// The value.
    value: TokenStream,
}

/// Returns the entries of an enum of commands.
pub(crate) fn derive_rows(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Enum(data) = &input.data else { return Ok(TokenStream::new()) };
    let name = &input.ident;
    let mut lists = Vec::new();
    let mut conversions = TokenStream::new();
    for variant in &data.variants {
        let own = &variant.ident;
        if let (true, Fields::Unnamed(fields)) = (is_inner(&variant.attrs), &variant.fields) {
            let inner = fields.unnamed.first().map(|field| &field.ty);
            conversions.extend(quote! {
                impl<'a> From<#inner> for #name<'a> {
                    fn from(inner: #inner) -> Self {
                        Self::#own(inner)
                    }
                }
            });
            let inner = fixed(&inner);
            lists.push(quote!(<#inner>::ROWS));
        }
        for attribute in variant.attrs.iter().filter(|it| it.path().is_ident("request")) {
            let Request { by_hand, entry } = attribute.parse_args()?;
            if by_hand {
                lists.push(quote!(&[Row(#entry, None)]));
                continue;
            }
            let (words, options, value) = parts_of(&variant.fields, &quote!(#name::#own))?;
            lists.push(quote!(&[{
                fn read<'a>(
                    parts: &Parts<'a>,
                    room: &'a Room<'a>,
                ) -> Result<crate::command::Command<'a>, Fault> {
                    let at = 0_usize;
                    let _ = (parts, at, room);
                    Ok(crate::command::Command::from(#value))
                }
                const WORDS: &[Word] = #words;
                const OPTIONS: &[Opt] = #options;
                Row((#entry).or(WORDS, OPTIONS), Some(read))
            }]));
        }
    }
    let used = uses();
    Ok(quote! {
        #conversions

        impl #name<'_> {
            /// The entries of the commands that are requests over RESP.
            pub(crate) const ROWS: &'static [crate::request::reading::Row] = {
                #used
                const LISTS: &[&[Row]] = &[#(#lists),*];
                const N: usize = crate::request::reading::total(LISTS);
                &join::<Row, N>(Row::NONE, LISTS)
            };
        }
    })
}

/// Returns how a struct is part of a request.
pub(crate) fn derive_arguments(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(input.span(), "arguments are the fields of a struct"));
    };
    let name = &input.ident;
    let (_, parameters, _) = input.generics.split_for_impl();
    let readings = readings_of(&data.fields)?;
    let value = built(&data.fields, &readings, &quote!(Self));
    let [words, options, last] = [(0, "Word", "HELD"), (1, "Opt", "NONE"), (2, "Opt", "NONE")]
        .map(|(list, of, filler)| joined(readings.iter().map(|it| &it.lists[list]), &[of, filler]));
    let (used, parameters) = (uses(), (!input.generics.params.is_empty()).then_some(parameters));
    Ok(quote! {
        impl<'a> crate::request::reading::Arguments<'a> for #name #parameters {
            const WORDS: &'static [crate::request::spec::Word] = { #used #words };
            const OPTIONS: &'static [crate::request::options::Opt] = { #used #options };
            const LAST: &'static [crate::request::options::Opt] = { #used #last };

            fn read(
                parts: &crate::request::parts::Parts<'a>,
                at: usize,
                room: &'a crate::request::reading::Room<'a>,
            ) -> Result<Self, crate::request::fault::Fault> {
                #used
                let _ = room;
                Ok(#value)
            }
        }
    })
}

/// Returns the words and options of a variant, and the expression that reads it.
fn parts_of(
    fields: &Fields,
    path: &TokenStream,
) -> syn::Result<(TokenStream, TokenStream, TokenStream)> {
    let readings = readings_of(fields)?;
    let words = joined(readings.iter().map(|it| &it.lists[0]), &["Word", "HELD"]);
    let options =
        [1, 2].into_iter().flat_map(|list| readings.iter().map(move |it| &it.lists[list]));
    let options = joined(options, &["Opt", "NONE"]);
    Ok((words, options, built(fields, &readings, path)))
}

fn readings_of(fields: &Fields) -> syn::Result<Vec<Reading>> {
    let mut before = Vec::new();
    let readings = fields.iter().map(|field| {
        let reading = reading_of(field, &before)?;
        let words = &reading.lists[0];
        before.push(quote!(total::<Word>(&[#words])));
        Ok(reading)
    });
    readings.collect()
}

/// Returns the expression that makes the value out of those of its fields.
fn built(fields: &Fields, readings: &[Reading], path: &TokenStream) -> TokenStream {
    let values = readings.iter().map(|reading| &reading.value);
    match fields {
        Fields::Named(fields) => {
            let names = fields.named.iter().map(|field| &field.ident);
            quote!(#path { #(#names: #values),* })
        }
        Fields::Unnamed(_) => quote!(#path(#(#values),*)),
        Fields::Unit => path.clone(),
    }
}

fn reading_of(field: &Field, before: &[TokenStream]) -> syn::Result<Reading> {
    let kinds = ["key", "word", "words", "option", "flat"];
    let is_meant = |it: &&Attribute| kinds.iter().any(|kind| it.path().is_ident(kind));
    let attribute = field.attrs.iter().find(is_meant);
    let kind = match attribute {
        Some(attribute) => attribute.path().require_ident()?.to_string(),
        None if field.ident.is_none() => "flat".to_owned(),
        None => return Err(Error::new(field.span(), "say what it is in a request, as #[word]")),
    };
    let given = match attribute {
        Some(attribute) if attribute.meta.require_list().is_ok() => attribute.parse_args()?,
        _ => Given::default(),
    };
    let described = Described::of(field, given, quote!(at #(+ #before)*));
    match kind.as_str() {
        "key" => Ok(described.key()),
        "word" => Ok(described.word()),
        "words" => Ok(described.words()),
        "option" => described.option(),
        _ => Ok(described.flat()),
    }
}

/// A field with what stands on it.
struct Described<'f> {
    field: &'f Field,
    given: Given,
    /// The place of its first word.
    at: TokenStream,
    /// What it is called.
    name: TokenStream,
    /// Its value if it is left out.
    default: Option<TokenStream>,
    /// Its type, or what that may have if it may be left out.
    value_type: Type,
    /// The `Option` or `Assign` around that type.
    outer: Option<String>,
}

impl<'f> Described<'f> {
    fn of(field: &'f Field, given: Given, at: TokenStream) -> Self {
        let ty = &field.ty;
        let default = given.value("default").map(|value| {
            quote!({
                let value: #ty = #value;
                value
            })
        });
        // Without a default, the type says whether it may be missing.
        let inside = if default.is_none() { inside(ty) } else { None };
        let (outer, value_type) =
            inside.map_or_else(|| (None, ty.clone()), |(it, ty)| (Some(it), ty));
        let ident = field.ident.as_ref().map_or_else(String::new, ToString::to_string);
        let name = given.alone.as_ref().map_or_else(|| quote!(#ident), ToTokens::to_token_stream);
        Self { field, given, at, name, default, value_type, outer }
    }

    fn key(&self) -> Reading {
        let (ty, name, at) = (&self.field.ty, &self.name, &self.at);
        let fixed = fixed(ty);
        let word = if self.outer.is_some() { quote!(MaybeKey) } else { quote!(Key) };
        let options = quote!(<#fixed as Key<'static>>::OPTIONS);
        Reading {
            lists: [quote!(&[Word::#word(#name)]), quote!(&[]), options],
            value: quote!(<#ty as Key<'a>>::read(parts, #at)?),
        }
    }

    fn word(&self) -> Reading {
        let (name, at, ty) = (&self.name, &self.at, &self.value_type);
        let read = quote!(|text: &'a [u8]| <#ty as Value<'a>>::read(#name, text));
        let given = quote!(parts.words.get(#at).copied());
        let (word, value) = match (&self.outer, &self.default) {
            (Some(_), _) => (quote!(Maybe), quote!(#given.map(#read).transpose()?)),
            (None, Some(default)) => (quote!(Maybe), quote!(#given.map_or(Ok(#default), #read)?)),
            (None, None) => (quote!(One), quote!((#read)(parts.word(#at))?)),
        };
        Reading { lists: [quote!(&[Word::#word(#name)]), quote!(&[]), quote!(&[])], value }
    }

    fn words(&self) -> Reading {
        let (kind, at) = (&self.name, &self.at);
        let value = self.given.value("with").map_or_else(
            || quote!(parts.words.get(#at..).unwrap_or_default()),
            |with| quote!(crate::request::#with::read(parts, #at, room)?),
        );
        Reading { lists: [quote!(&[#kind]), quote!(&[]), quote!(&[])], value }
    }

    fn option(&self) -> syn::Result<Reading> {
        let reading = |option: TokenStream, value| {
            Ok(Reading { lists: [quote!(&[]), quote!(&[#option]), quote!(&[])], value })
        };
        if let Some(with) = self.given.value("with") {
            let value = quote!(crate::request::#with::read(parts, room)?);
            return reading(quote!(crate::request::#with::OPTION), value);
        }
        let ty = &self.value_type;
        let option = match &self.given.alone {
            Some(Expr::Lit(word)) => {
                let word = syn::parse2::<LitStr>(word.to_token_stream())?;
                let (fixed, bytes, help) = (fixed(ty), word.value().to_lowercase(), self.help());
                let shown = quote!(options::shown(<#fixed as Value<'static>>::SHOWN, #bytes));
                quote!(options::with(#word, #shown, #help))
            }
            Some(known) => quote!(options::#known),
            None => {
                let ident = self.field.ident.as_ref().map_or_else(String::new, ToString::to_string);
                let known = format_ident!("{}", ident.to_uppercase());
                quote!(options::#known)
            }
        };
        let text = quote!(parts.given(OPTION));
        let most = self.given.value("most").map(|most| quote!(.map(|it| it.min(#most))));
        let read = quote!(|text: &'a [u8]| <#ty as Value<'a>>::read(OPTION.word, text) #most);
        let value = match (&self.outer, &self.default) {
            _ if quote!(#ty).to_string() == "bool" => quote!(#text.is_some()),
            (Some(outer), _) if outer == "Assign" => {
                quote!(#text.map(#read).transpose()?.map_or(Assign::Keep, Assign::To))
            }
            (Some(_), _) => quote!(#text.map(#read).transpose()?),
            (None, Some(default)) => quote!(#text.map_or(Ok(#default), #read)?),
            (None, None) => return Err(Error::new(self.field.span(), "an option has a default")),
        };
        let value = quote!({
            const OPTION: Opt = #option;
            #value
        });
        reading(option, value)
    }

    /// Returns the first sentence of its documentation, without the full stop.
    fn help(&self) -> String {
        let texts = self.field.attrs.iter().filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
                Expr::Lit(text) => syn::parse2::<LitStr>(text.to_token_stream()).ok(),
                _ => None,
            },
            _ => None,
        });
        let text = texts.map(|text| text.value().trim().to_owned()).collect::<Vec<_>>().join(" ");
        text.split_once(". ").map_or(text.as_str(), |(first, _)| first).trim_end_matches('.').into()
    }

    fn flat(&self) -> Reading {
        let (ty, at) = (&self.field.ty, &self.at);
        let fixed = fixed(ty);
        let list = |list| {
            let list = format_ident!("{list}");
            quote!(<#fixed as Arguments<'static>>::#list)
        };
        Reading {
            lists: ["WORDS", "OPTIONS", "LAST"].map(list),
            value: quote!(<#ty as Arguments<'a>>::read(parts, #at, room)?),
        }
    }
}

/// Returns an expression of one list that consists of these.
fn joined<'l>(
    lists: impl Iterator<Item = &'l TokenStream>,
    [of, filler]: &[&str; 2],
) -> TokenStream {
    let lists: Vec<_> = lists.collect();
    let (of, filler) = (format_ident!("{of}"), format_ident!("{filler}"));
    quote!({
        const LISTS: &[&[#of]] = &[#(#lists),*];
        const N: usize = total(LISTS);
        &join::<#of, N>(#of::#filler, LISTS)
    })
}

/// What expressions on declarations may name.
fn uses() -> TokenStream {
    quote! {
        #[allow(unused_imports, reason = "not every declaration needs all of them")]
        use crate::request::{
            fault::Fault,
            form::Form,
            options::{self, Opt},
            parts::Parts,
            reading::{Arguments, Key, Room, Row, Value, join, total},
            spec::{Access, Group, Spec, Word},
        };
    }
}

fn is_inner(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| {
        it.path().is_ident("command") && it.parse_args::<Ident>().is_ok_and(|word| word == "inner")
    })
}

/// Returns the name and the parameter of an `Option` or `Assign`.
fn inside(ty: &Type) -> Option<(String, Type)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let name = last.ident.to_string();
    let syn::PathArguments::AngleBracketed(parameters) = &last.arguments else { return None };
    let syn::GenericArgument::Type(inner) = parameters.args.first()? else { return None };
    matches!(name.as_str(), "Option" | "Assign").then(|| (name, inner.clone()))
}

/// Returns a type with `'static` in place of each lifetime.
fn fixed(ty: &impl ToTokens) -> TokenStream {
    fn each(tokens: TokenStream) -> TokenStream {
        let mut is_lifetime = false;
        let replaced = tokens.into_iter().map(|token| match token {
            TokenTree::Group(group) => {
                let inner = each(group.stream());
                TokenTree::Group(proc_macro2::Group::new(group.delimiter(), inner))
            }
            TokenTree::Ident(name) if std::mem::take(&mut is_lifetime) => {
                TokenTree::Ident(Ident::new("static", name.span()))
            }
            TokenTree::Punct(mark) => {
                is_lifetime = mark.as_char() == '\'';
                TokenTree::Punct(mark)
            }
            other => other,
        });
        replaced.collect()
    }
    each(quote!(#ty))
}

impl Given {
    fn value(&self, name: &str) -> Option<&Expr> {
        self.named.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl Parse for Given {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut given = Self::default();
        for item in Punctuated::<Expr, Token![,]>::parse_terminated(input)? {
            match item {
                Expr::Assign(named) => {
                    given.named.push((syn::parse2(named.left.to_token_stream())?, *named.right));
                }
                alone => given.alone = Some(alone),
            }
        }
        Ok(given)
    }
}

impl Parse for Request {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let by_hand = input.peek(Ident) && input.peek2(Token![,]);
        if by_hand {
            input.parse::<Ident>()?;
            input.parse::<Token![,]>()?;
        }
        Ok(Self { by_hand, entry: input.parse()? })
    }
}
