//! Writing and reading of the types that stand in letters.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::ParseStream;
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, ExprLit, Fields, GenericParam, Ident, Lifetime, Lit,
    LitInt, Token, Type, Variant, parse_quote,
};

/// Fields with a tag from here on are passed over by who does not know them.
const IGNORABLE_FROM: u8 = 128;

/// What `#[letter(…)]` says of a type, a variant or a field.
#[derive(Default)]
struct Said {
    number: Option<u8>,
    is_closed: bool,
    default: Option<Expr>,
    most: Option<Expr>,
}

/// A field.
struct Field<'i> {
    /// Its name in a pattern: a name, or a position.
    place: TokenStream,
    /// What it is called where it is written and read.
    bound: Ident,
    /// Its name in sentences.
    name: String,
    kind: &'i Type,
    tag: Option<u8>,
    default: Option<Expr>,
}

/// A struct, or a variant of an enum.
struct Body<'i> {
    /// `Self`, or the path of the variant.
    path: TokenStream,
    /// Its name in sentences.
    name: String,
    /// The required fields in their order, then those with a tag in the order of the tags.
    fields: Vec<Field<'i>>,
    /// Whether tags and an end mark follow the required fields.
    is_open: bool,
}

/// Returns the implementation of `Letter`.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let said = Said::of(&input.attrs)?;
    let name = words(&input.ident);
    let (put, take, sample) = match &input.data {
        Data::Struct(data) => {
            let body = Body::of(quote!(Self), name, &data.fields, said.is_closed)?;
            let (pattern, put, take) = (body.pattern(), body.put(), body.take());
            (quote!(let #pattern = self; #put), quote!(Ok(#take)), body.sample())
        }
        Data::Enum(data) => of_variants(&name, data.variants.iter())?,
        Data::Union(_) => return Err(Error::new(input.span(), "a union cannot be in a letter")),
    };
    let mut generics = input.generics.clone();
    let given = generics.lifetimes().next().map(|given| given.lifetime.clone());
    let lifetime = given.unwrap_or_else(|| {
        let lifetime: Lifetime = parse_quote!('letter);
        generics.params.insert(0, GenericParam::Lifetime(parse_quote!(#lifetime)));
        lifetime
    });
    for parameter in generics.type_params_mut() {
        parameter.default = None;
        parameter.bounds.push(parse_quote!(crate::letters::Letter<#lifetime>));
    }
    let (generics, _, filter) = generics.split_for_impl();
    let (of, (_, types, _)) = (&input.ident, input.generics.split_for_impl());
    let most = said.most.map(|most| quote!(const MOST: usize = #most;));
    Ok(quote! {
        #[allow(unused, clippy::all, clippy::pedantic, reason = "it is derived")]
        impl #generics crate::letters::Letter<#lifetime> for #of #types #filter {
            #most
            #[inline]
            fn put(&self, out: &mut ::std::vec::Vec<u8>) { #put }
            #[inline]
            fn take(
                input: &mut &#lifetime [u8],
                arena: &#lifetime crate::letters::Arena,
            ) -> ::core::result::Result<Self, crate::letters::Malformed> {
                #take
            }
            #[cfg(test)]
            fn sample(dice: &mut crate::letters::Dice) -> Self { #sample }
        }
    })
}

/// Returns how an enum is written, read and sampled: the number of the variant, and its fields.
fn of_variants<'i>(
    name: &str,
    variants: impl ExactSizeIterator<Item = &'i Variant>,
) -> syn::Result<(TokenStream, TokenStream, TokenStream)> {
    let count = variants.len();
    let (mut puts, mut takes, mut samples, mut known) = (vec![], vec![], vec![], vec![]);
    for variant in variants {
        let said = Said::of(&variant.attrs)?;
        let number = match (&variant.discriminant, said.number) {
            (Some((_, Expr::Lit(ExprLit { lit: Lit::Int(number), .. }))), None) => {
                number.base10_parse()?
            }
            (None, Some(number)) => number,
            _ => return Err(Error::new(variant.span(), "give it one number: #[letter(…)]")),
        };
        if known.contains(&number) {
            return Err(Error::new(variant.span(), "another variant has this number"));
        }
        let ident = &variant.ident;
        let body = Body::of(quote!(Self::#ident), words(ident), &variant.fields, said.is_closed)?;
        let (pattern, put, take, sample) = (body.pattern(), body.put(), body.take(), body.sample());
        puts.push(quote!(#pattern => { out.push(#number); #put }));
        takes.push(quote!(#number => #take,));
        let at = known.len();
        samples.push(quote!(#at => #sample,));
        known.push(number);
    }
    let put = quote!(match self { #(#puts)* });
    let take = quote! {
        Ok(match crate::records::primitives::take_byte(input)? {
            #(#takes)*
            kind => return Err(crate::letters::Malformed::UnknownKind { what: #name, kind }),
        })
    };
    let sample = quote! {
        match dice.variant(#name, #count) { #(#samples)* _ => unreachable!() }
    };
    Ok((put, take, sample))
}

impl Said {
    fn of(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut said = Self::default();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("letter")) {
            attribute.parse_args_with(|input: ParseStream<'_>| {
                while !input.is_empty() {
                    said.word(input)?;
                    if !input.is_empty() {
                        input.parse::<Token![,]>()?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(said)
    }

    fn word(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        if input.peek(LitInt) {
            self.number = Some(input.parse::<LitInt>()?.base10_parse()?);
            return Ok(());
        }
        let word: Ident = input.parse()?;
        if word == "closed" {
            self.is_closed = true;
            return Ok(());
        }
        input.parse::<Token![=]>()?;
        let value = Some(input.parse()?);
        match &*word.to_string() {
            "default" => self.default = value,
            "most" => self.most = value,
            _ => return Err(Error::new(word.span(), "a letter knows no such word")),
        }
        Ok(())
    }
}

impl<'i> Body<'i> {
    fn of(path: TokenStream, name: String, all: &'i Fields, closed: bool) -> syn::Result<Self> {
        let is_open = matches!(all, Fields::Named(_)) && !closed;
        let mut fields = Vec::new();
        for (place, field) in all.iter().enumerate() {
            let Said { number: tag, default, .. } = Said::of(&field.attrs)?;
            let place = syn::Index::from(place);
            let (place, name) = match &field.ident {
                Some(ident) => (quote!(#ident), ident.to_string()),
                None => (quote!(#place), format!("part{}", place.index)),
            };
            let choice = matches!(&field.ty, Type::Path(it) if it.path.segments.last()
                .is_some_and(|it| it.ident == "Option" || it.ident == "bool"));
            let wrong = match tag {
                Some(0) => Some("0 ends the fields"),
                Some(_) if !is_open => Some("only named fields of what is not closed have a tag"),
                None if is_open && choice => Some("it is not always there: give it a tag"),
                _ => None,
            };
            if let Some(wrong) = wrong {
                return Err(Error::new(field.span(), wrong));
            }
            let bound = format_ident!("field_{name}");
            fields.push(Field { place, bound, name, kind: &field.ty, tag, default });
        }
        fields.sort_by_key(|field| field.tag);
        if fields.windows(2).any(|two| two[0].tag.is_some() && two[0].tag == two[1].tag) {
            return Err(Error::new(all.span(), "two fields have one tag"));
        }
        Ok(Self { path, name, fields, is_open })
    }

    /// Returns what stands for it in a pattern and in an expression.
    fn pattern(&self) -> TokenStream {
        let fields = self.fields.iter().map(|Field { place, bound, .. }| quote!(#place: #bound));
        let path = &self.path;
        quote!(#path { #(#fields),* })
    }

    fn put(&self) -> TokenStream {
        let fields = self.fields.iter().map(Field::put);
        let end = self.is_open.then(|| quote!(out.push(0);));
        quote!(#(#fields)* #end)
    }

    fn take(&self) -> TokenStream {
        let (required, tagged): (Vec<_>, Vec<_>) =
            self.fields.iter().partition(|field| field.tag.is_none());
        let required = required.iter().map(|Field { bound, kind, .. }| {
            quote!(let #bound: #kind = crate::letters::Letter::take(input, arena)?;)
        });
        let (name, pattern) = (&self.name, self.pattern());
        let tags = tagged.iter().filter_map(|field| field.tag);
        let end = self
            .is_open
            .then(|| quote!(crate::letters::end_fields(tag, #name, &[#(#tags),*], input)?;));
        let begin = end
            .is_some()
            .then(|| quote!(let mut tag = crate::records::primitives::take_byte(input)?;));
        let tagged = tagged.iter().map(|field| field.take_tagged());
        quote!({ #(#required)* #begin #(#tagged)* #end #pattern })
    }

    fn sample(&self) -> TokenStream {
        let path = &self.path;
        let fields = self.fields.iter().map(|field| {
            let (place, sample) = (&field.place, quote!(crate::letters::Letter::sample(dice)));
            if field.tag.is_none() {
                return quote!(#place: #sample);
            }
            let usual = field.usual();
            quote!(#place: if dice.is_usual() { #usual } else { #sample })
        });
        quote!(#path { #(#fields),* })
    }
}

impl Field<'_> {
    /// Returns the value that is left out.
    fn usual(&self) -> TokenStream {
        let default = self.default.as_ref().map(|default| quote!(#default));
        default.unwrap_or_else(|| quote!(::core::default::Default::default()))
    }

    /// Returns the names of the functions that write and read it. Where the usual value is that of
    /// the type, what it is not needs no bytes: an option that is there, a flag that is set.
    fn functions(&self) -> (Ident, Ident) {
        let end = if self.tag.is_some() && self.default.is_none() { "_unusual" } else { "" };
        (format_ident!("put{end}"), format_ident!("take{end}"))
    }

    fn put(&self) -> TokenStream {
        let (Self { bound, kind, .. }, (put, _)) = (self, self.functions());
        let Some(tag) = self.tag else {
            return quote!(crate::letters::Letter::put(#bound, out););
        };
        let usual = self.usual();
        let value = quote!(crate::letters::Letter::#put(#bound, out));
        let value = if tag < IGNORABLE_FROM {
            value
        } else {
            quote!(crate::letters::put_ignorable(out, |out| #value))
        };
        quote! {
            let usual: #kind = #usual;
            if *#bound != usual { out.push(#tag); #value; }
        }
    }

    fn take_tagged(&self) -> TokenStream {
        let (Self { bound, kind, name, tag, .. }, (_, take)) = (self, self.functions());
        let usual = self.usual();
        let mut pass = quote!();
        let mut value = quote!(<#kind as crate::letters::Letter>::#take(input, arena));
        if tag.is_some_and(|tag| tag >= IGNORABLE_FROM) {
            pass = quote!(crate::letters::pass_ignorable(&mut tag, #tag, input)?;);
            value = quote!(crate::letters::take_ignorable(input, |input| #value));
        }
        quote! {
            let mut #bound: #kind = #usual;
            #pass
            if tag == #tag {
                let value = #value?;
                if value == #bound {
                    return Err(crate::letters::Malformed::OutOfRange(#name));
                }
                #bound = value;
                tag = crate::records::primitives::take_byte(input)?;
            }
        }
    }
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
