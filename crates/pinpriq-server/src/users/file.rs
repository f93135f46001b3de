//! The file of users: TOML, read into [`Users`].
//!
//! All of it is read or nothing. A message has the number of the line and tells what to do; it
//! never contains a password, a hash or a token. `edit.rs` changes such a text, and `store.rs`
//! knows where the file is.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use crate::users::limits::{
    Assignment, LIMIT_MAX, Limit, Limits, SHARE, limit_of, share_of, words,
};
use crate::users::name::Name;
use crate::users::password::PasswordHash;
use crate::users::quote::quoted;
use crate::users::rule::Rule;
use crate::users::token::TokenDigest;
use crate::users::user::{User, Users};

/// The largest file, in bytes.
pub const FILE_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// The most users of a file.
pub const USERS_MAX: usize = 10_000;

/// The most rules of a user.
pub const RULES_MAX: usize = 1_000;

/// The most tokens of a user.
pub const TOKENS_MAX: usize = 100;

/// The keys of the file.
pub(crate) const USERS: &str = "users";
pub(crate) const PASSWORD: &str = "password";
pub(crate) const RULES: &str = "rules";
pub(crate) const LIMITS: &str = "limits";
pub(crate) const TOKENS: &str = "tokens";

/// Why a text cannot be used as the file of users: what is wrong, in which line, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(String);

/// What is wrong, and at which byte of the text.
struct Flaw {
    at: usize,
    sentence: String,
}

type Value<'i> = Spanned<DeValue<'i>>;

/// Reads the text of a file.
pub fn read(text: &str) -> Result<Users, ReadError> {
    if text.len() > FILE_BYTES_MAX {
        let why = format!("it has more than {FILE_BYTES_MAX} bytes, which is the most");
        return Err(ReadError(why));
    }
    users(text).map_err(|Flaw { at, sentence }| {
        let before = text.as_bytes().iter().take(at);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        ReadError(format!("line {line}: {sentence}"))
    })
}

fn users(text: &str) -> Result<Users, Flaw> {
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Flaw { at, sentence: format!("this is no TOML: {}", told_of_syntax(error.message())) }
    })?;
    let mut users = Users::default();
    for (key, value) in document.get_ref() {
        if key.get_ref() != USERS {
            let name = quoted(key.get_ref());
            return Err(flaw(key, format!("{name} is no setting: a file of users has only users")));
        }
        let table = table(value, || "users are tables: write [users.NAME]".to_owned())?;
        if table.len() > USERS_MAX {
            return Err(flaw(value, format!("there are more than {USERS_MAX} users")));
        }
        for (name, value) in table {
            let user = user(name, value)?;
            users.add(user).map_err(|error| flaw(name, error.to_string()))?;
        }
    }
    Ok(users)
}

/// What the parser complains about, unless it quotes the text.
fn told_of_syntax(message: &str) -> &str {
    if message.contains(['"', '$']) { "it cannot be understood" } else { message }
}

fn user(name: &Spanned<DeString<'_>>, value: &Value<'_>) -> Result<User, Flaw> {
    let name_at = name;
    let name: Name = name.get_ref().parse().map_err(|error| flaw_of(name_at, error))?;
    let parts = table(value, || format!("user {name}: a user is a table: write [users.{name}]"))?;
    let mut user = User::new(name, Vec::new());
    for (key, value) in parts {
        let name = &user.name;
        match key.get_ref().as_ref() {
            PASSWORD => user.password = Some(password(name, value)?),
            RULES => user.rules = rules(name, value)?,
            LIMITS => user.limits = limits(name, value)?,
            TOKENS => user.tokens = tokens(name, value)?,
            other => {
                let other = quoted(other);
                let sentence = format!(
                    "user {name}: {other} is no setting: there are {PASSWORD}, {RULES}, {LIMITS} \
                     and {TOKENS}"
                );
                return Err(flaw(key, sentence));
            }
        }
    }
    user.rights = user.rules.iter().collect();
    Ok(user)
}

fn password(user: &Name, value: &Value<'_>) -> Result<PasswordHash, Flaw> {
    // Whatever stands here may be a password, so it is never quoted.
    let text = value.get_ref().as_str().unwrap_or_default();
    PasswordHash::read(text)
        .map_err(|error| flaw(value, format!("the password of user {user}: {error}")))
}

fn rules(user: &Name, value: &Value<'_>) -> Result<Vec<Rule>, Flaw> {
    let no_list = || {
        let sentence = format!(
            "the rules of user {user} are a list of texts, such as [\"put:orders.*\", \"look:*\"]"
        );
        flaw(value, sentence)
    };
    let list: &DeArray<'_> = value.get_ref().as_array().ok_or_else(no_list)?;
    if list.len() > RULES_MAX {
        return Err(flaw(value, format!("user {user} has more than {RULES_MAX} rules")));
    }
    let rule = |it: &Value<'_>| {
        let text = it.get_ref().as_str().ok_or_else(no_list)?;
        text.parse().map_err(|error| flaw(it, format!("user {user}: {error}")))
    };
    list.iter().map(rule).collect()
}

fn limits(user: &Name, value: &Value<'_>) -> Result<Limits, Flaw> {
    let no_table = || format!("the limits of user {user} are a table: write [users.{user}.limits]");
    let mut limits = Limits::default();
    for (key, value) in table(value, no_table)? {
        if key.get_ref() == SHARE {
            let text = value.get_ref().as_str().unwrap_or_default();
            let share =
                share_of(text).map_err(|error| flaw(value, format!("user {user}: {error}")))?;
            limits.set(Assignment::Share(Some(share)));
            continue;
        }
        let limit = Limit::of_word(key.get_ref()).ok_or_else(|| {
            let (word, words) = (quoted(key.get_ref()), words());
            flaw(key, format!("user {user}: there is no limit {word}: the limits are {words}"))
        })?;
        let number = value.get_ref().as_integer().and_then(|number| {
            let number = u64::from_str_radix(number.as_str(), number.radix()).ok();
            number.and_then(limit_of)
        });
        let number = number.ok_or_else(|| {
            let sentence = format!("user {user}: {limit} is a whole number from 1 to {LIMIT_MAX}");
            flaw(value, sentence)
        })?;
        limits.set(Assignment::Number(limit, Some(number)));
    }
    Ok(limits)
}

fn tokens(user: &Name, value: &Value<'_>) -> Result<BTreeMap<Name, TokenDigest>, Flaw> {
    let no_table = || format!("the tokens of user {user} are a table: write [users.{user}.tokens]");
    let table = table(value, no_table)?;
    if table.len() > TOKENS_MAX {
        return Err(flaw(value, format!("user {user} has more than {TOKENS_MAX} tokens")));
    }
    let mut tokens = BTreeMap::new();
    for (key, value) in table {
        let of_user = |why: String| format!("user {user}: the name of a token: {why}");
        let name: Name = key
            .get_ref()
            .parse()
            .map_err(|error: crate::users::WrongName| flaw(key, of_user(error.to_string())))?;
        let text = value.get_ref().as_str().unwrap_or_default();
        let digest = TokenDigest::read(text)
            .map_err(|error| flaw(value, format!("the token {name} of user {user}: {error}")))?;
        tokens.insert(name, digest);
    }
    Ok(tokens)
}

fn table<'t, 'i>(
    value: &'t Value<'i>,
    otherwise: impl FnOnce() -> String,
) -> Result<&'t DeTable<'i>, Flaw> {
    value.get_ref().as_table().ok_or_else(|| flaw(value, otherwise()))
}

fn flaw_of<T>(place: &Spanned<T>, error: impl std::error::Error) -> Flaw {
    flaw(place, error.to_string())
}

fn flaw<T>(place: &Spanned<T>, sentence: String) -> Flaw {
    Flaw { at: place.span().start, sentence }
}

#[cfg(test)]
pub(crate) mod tests;
