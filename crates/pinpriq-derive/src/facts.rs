//! The methods that tell the facts.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Error, Expr, Fields, Ident, Lifetime, Token, Variant};

/// Every fact.
const FACTS: [Fact; 10] = [
    Fact {
        word: "needs",
        method: "each_need",
        doc: "Tells each right that it needs. A command that needs none is free.",
        form: Form::Needs,
    },
    Fact {
        word: "shard",
        method: "destination",
        doc: "Where it is carried out, when there are several engines.",
        form: Form::Destination,
    },
    Fact {
        word: "names",
        method: "check_names",
        doc: "Refuses names that are too long, before anything else is checked.",
        form: Form::Names,
    },
    Fact {
        word: "disk",
        method: "on_full_disk",
        doc: "What it needs of a disk.",
        form: Form::Disk,
    },
    Fact {
        word: "audit",
        method: "audited",
        doc: "The name of what it destroys, or whose settings it changes.",
        form: Form::Name,
    },
    Fact {
        word: "change",
        method: "is_change",
        doc: "Whether it is there to change something. Commands that look, wait, take or subscribe \
              are not. What such a command answers is decided by what is there, even if it changes \
              nothing.",
        form: Form::Flag,
    },
    Fact {
        word: "within",
        method: "can_be_within",
        doc: "Whether it can be kept within names, see [`Command::Within`]. Those that touch \
              queues which they do not name.",
        form: Form::Flag,
    },
    Fact {
        word: "step",
        method: "is_step",
        doc: "Whether it can be a step of a transaction. Those that can change tasks that they \
              name, and never wait.",
        form: Form::Flag,
    },
    Fact {
        word: "blocks",
        method: "may_block",
        doc: "Whether the reply may take long, so that the client has to wait for it.",
        form: Form::Flag,
    },
    Fact {
        word: "care",
        method: "care",
        doc: "What it needs besides being carried out.",
        form: Form::Care,
    },
];

/// A fact, and the method that tells it.
struct Fact {
    /// The word for it on a variant.
    word: &'static str,
    /// The method.
    method: &'static str,
    /// What the method tells.
    doc: &'static str,
    form: Form,
}

/// What a fact looks like on a variant, and what its method returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `needs(right = subject, …)`, or an expression that calls `tell` with each need.
    Needs,
    /// The destination, or what has one.
    Destination,
    /// What has names. If it is left out, this is what has a destination.
    Names,
    /// What a full disk means.
    Disk,
    /// What it needs besides. If it is left out, that is nothing.
    Care,
    /// What has a name. If it is left out, there is none.
    Name,
    /// The word alone says that it is so; left out, it is not.
    Flag,
}

/// A variant with what stands on it.
struct Declared<'i> {
    variant: &'i Variant,
    given: Vec<Given>,
}

/// One fact on a variant.
struct Given {
    word: Ident,
    value: Value,
}

enum Value {
    Alone,
    Is(Box<Expr>),
    Pairs(Punctuated<Pair, Token![,]>),
}

/// A right, and what it is needed on.
struct Pair {
    word: Ident,
    value: Expr,
}

/// Returns the methods of an enum.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new(input.span(), "commands are the variants of an enum"));
    };
    let Some(lifetime) = input.generics.lifetimes().next() else {
        return Err(Error::new(input.span(), "commands borrow their bytes: give a lifetime"));
    };
    let variants: Vec<_> = data.variants.iter().map(Declared::of).collect::<syn::Result<_>>()?;
    let methods = FACTS.iter().map(|fact| fact.method(&variants, &lifetime.lifetime));
    let methods: Vec<_> = methods.collect::<syn::Result<_>>()?;
    let (name, (generics, types, filter)) = (&input.ident, input.generics.split_for_impl());
    Ok(quote! {
        #[allow(unused_variables, clippy::match_same_arms, clippy::too_many_lines)]
        impl #generics #name #types #filter { #(#methods)* }
    })
}

impl<'i> Declared<'i> {
    fn of(variant: &'i Variant) -> syn::Result<Self> {
        let mut given = Vec::new();
        for attribute in variant.attrs.iter().filter(|it| it.path().is_ident("command")) {
            let list =
                attribute.parse_args_with(Punctuated::<Given, Token![,]>::parse_terminated)?;
            given.extend(list);
        }
        for Given { word, .. } in &given {
            let is_known = word == "inner" || FACTS.iter().any(|fact| word == fact.word);
            if !is_known {
                return Err(Error::new(word.span(), "there is no such fact"));
            }
        }
        Ok(Self { variant, given })
    }

    /// Returns the pattern that binds all fields.
    fn pattern(&self) -> TokenStream {
        let name = &self.variant.ident;
        match &self.variant.fields {
            Fields::Named(fields) => {
                let names = fields.named.iter().map(|field| &field.ident);
                quote!(Self::#name { #(#names),* })
            }
            Fields::Unnamed(_) => quote!(Self::#name(it)),
            Fields::Unit => quote!(Self::#name),
        }
    }

    fn value(&self, word: &str) -> Option<&Value> {
        self.given.iter().find(|given| given.word == word).map(|given| &given.value)
    }

    /// Returns the expression of a fact that must be there.
    fn expression(&self, word: &str) -> syn::Result<&Expr> {
        match self.value(word) {
            Some(Value::Is(expression)) => Ok(expression),
            _ => Err(self.lacks(word)),
        }
    }

    fn lacks(&self, word: &str) -> Error {
        let sentence = format!("#[command({word} = …)] is missing: decide that too");
        Error::new(self.variant.ident.span(), sentence)
    }
}

impl Fact {
    /// Returns the method, which has an arm for each variant.
    fn method(&self, variants: &[Declared<'_>], lifetime: &Lifetime) -> syn::Result<TokenStream> {
        let method = format_ident!("{}", self.method);
        let arms = variants.iter().map(|declared| {
            let (pattern, value) = (declared.pattern(), self.arm(declared)?);
            Ok(quote!(#pattern => #value,))
        });
        let arms: Vec<_> = arms.collect::<syn::Result<_>>()?;
        let takes = (self.form == Form::Needs)
            .then(|| quote!(, tell: &mut dyn FnMut(crate::rights::Need<#lifetime>)));
        let returns = match self.form {
            Form::Needs => quote!(()),
            Form::Destination => quote!(crate::facts::Destination<#lifetime>),
            Form::Names => quote!(Result<(), crate::refusal::Refusal>),
            Form::Disk => quote!(crate::facts::Disk),
            Form::Care => quote!(crate::facts::Care),
            Form::Name => quote!(Option<&#lifetime [u8]>),
            Form::Flag => quote!(bool),
        };
        let doc = self.doc;
        let must_use = (self.form != Form::Needs).then(|| quote!(#[must_use]));
        // Asked for each command.
        let inline = (self.form == Form::Care).then(|| quote!(#[inline]));
        Ok(quote! {
            #[doc = #doc]
            #inline
            #must_use
            pub fn #method(&self #takes) -> #returns {
                match *self { #(#arms)* }
            }
        })
    }

    /// Returns what the method says of one variant.
    fn arm(&self, declared: &Declared<'_>) -> syn::Result<TokenStream> {
        let method = format_ident!("{}", self.method);
        if declared.value("inner").is_some() {
            let tell = (self.form == Form::Needs).then(|| quote!(tell));
            return Ok(quote!(it.#method(#tell)));
        }
        Ok(match (self.form, declared.value(self.word)) {
            (Form::Needs, Some(Value::Pairs(pairs))) => {
                let needs = pairs.iter().map(|Pair { word, value }| {
                    let right = format_ident!("{}", capital(&word.to_string()));
                    let right = quote!(crate::rights::Right::#right);
                    quote!(crate::facts::Subject::each(&#value, #right, tell);)
                });
                quote!({ #(#needs)* })
            }
            (Form::Needs, Some(Value::Is(tells))) => quote!({ #tells; }),
            (Form::Needs, _) => return Err(declared.lacks(self.word)),
            (Form::Destination, _) => {
                let place = declared.expression(self.word)?;
                quote!(crate::facts::Destination::from(#place))
            }
            (Form::Names, named) => {
                let word = if named.is_some() { self.word } else { "shard" };
                let named = declared.expression(word)?;
                quote!(crate::facts::Named::check(&#named))
            }
            (Form::Disk, _) => {
                let need = declared.expression(self.word)?;
                quote!({ use crate::facts::Disk::{Leases, Refused, Served}; #need })
            }
            (Form::Care, Some(Value::Is(care))) => {
                quote!({ use crate::facts::Care::*; #care })
            }
            (Form::Care, _) => quote!(crate::facts::Care::Plain),
            (Form::Name, Some(Value::Is(named))) => quote!(crate::facts::Named::name(&#named)),
            (Form::Name, _) => quote!(None),
            (Form::Flag, Some(Value::Is(holds))) => quote!(#holds),
            (Form::Flag, value) => {
                let holds = value.is_some();
                quote!(#holds)
            }
        })
    }
}

/// Returns a word as the name of a variant.
fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

impl Parse for Given {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let word = input.parse()?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            Value::Is(input.parse()?)
        } else if input.peek(syn::token::Paren) {
            let pairs;
            syn::parenthesized!(pairs in input);
            Value::Pairs(Punctuated::parse_terminated(&pairs)?)
        } else {
            Value::Alone
        };
        Ok(Self { word, value })
    }
}

impl Parse for Pair {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let word = input.parse()?;
        input.parse::<Token![=]>()?;
        Ok(Self { word, value: input.parse()? })
    }
}
