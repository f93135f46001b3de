//! Changes to the text of a file of users, which keep its comments and its order.
//!
//! A change is only made if the whole text can be read before and after. What comes of it is text:
//! `store.rs` writes it. Comments within the list of rules do not survive its replacement.

use toml_edit::{Array, DocumentMut, InlineTable, Item, RawString, Table, TableLike, Value};

use crate::users::file::{LIMITS, PASSWORD, RULES, ReadError, TOKENS, USERS, read};
use crate::users::limits::{Assignment, SHARE};
use crate::users::name::Name;
use crate::users::password::PasswordHash;
use crate::users::rule::Rule;
use crate::users::token::TokenDigest;
use crate::users::user::{User, Users};

/// How wide a list of rules may be on one line, in bytes.
const LINE_MAX: usize = 72;

/// A text that is being changed.
#[derive(Debug)]
pub struct Editor {
    document: DocumentMut,
    users: Users,
}

/// Why a change was not made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EditError {
    /// The text cannot be read.
    #[error("{0}")]
    Unreadable(ReadError),
    /// There would be a text that cannot be read.
    #[error("the change cannot be made, since the file could not be read then: {0}")]
    Spoils(ReadError),
    /// There is no such user.
    #[error("there is no user {0}: `pinpriq user list` shows all of them")]
    NoUser(Name),
    /// There is such a user already.
    #[error("there is a user {0} already: `pinpriq user rights` and `passwd` change one")]
    UserThere(Name),
    /// This user has no such token.
    #[error("user {0} has no token {1}: `pinpriq user token {0} list` shows all of them")]
    NoToken(Name, Name),
    /// This user has such a token already.
    #[error("user {0} has a token {1} already: revoke it first, or choose another name")]
    TokenThere(Name, Name),
    /// The part of the file that would have to change is written in a way that is not known here.
    #[error("{0} is written in a way that cannot be changed: do it by hand")]
    Form(String),
}

impl Editor {
    /// Begins to change a text.
    pub fn new(text: &str) -> Result<Self, EditError> {
        let users = read(text).map_err(EditError::Unreadable)?;
        // Whatever was read before is TOML.
        let document = text.parse().map_err(|_| form(USERS))?;
        Ok(Self { document, users })
    }

    /// Who is there after all changes so far.
    #[must_use]
    pub const fn users(&self) -> &Users {
        &self.users
    }

    /// The text after all changes so far.
    #[must_use]
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// Adds a user, at the end.
    pub fn add(
        &mut self,
        name: &Name,
        password: Option<&PasswordHash>,
        rules: &[Rule],
    ) -> Result<(), EditError> {
        if self.users.user(name.as_str()).is_some() {
            return Err(EditError::UserThere(name.clone()));
        }
        self.change(|document| {
            let users = child(document.as_item_mut(), USERS)?;
            let user = child(users, name.as_str())?;
            if let Some(table) = user.as_table_mut() {
                table.set_position(Some(isize::MAX));
            }
            if let Some(text) = password.and_then(PasswordHash::text) {
                put(user, PASSWORD, text.into())?;
            }
            put(user, RULES, list(rules))
        })
    }

    /// Removes a user, and says who that was.
    pub fn remove(&mut self, name: &Name) -> Result<User, EditError> {
        let user = self.user(name)?;
        self.change(|document| {
            let kept = comment_to_keep(document, name);
            let users = document.get_mut(USERS).and_then(Item::as_table_like_mut);
            users.ok_or_else(|| form(USERS))?.remove(name.as_str());
            if let Some((comment, position)) = kept {
                give_comment(document, &comment, position);
            }
            Ok(())
        })?;
        Ok(user)
    }

    /// Gives a user another password, or the first one.
    pub fn set_password(&mut self, name: &Name, hash: &PasswordHash) -> Result<(), EditError> {
        self.user(name)?;
        let text = hash.text().unwrap_or_default();
        self.change(|document| put(part(document, name)?, PASSWORD, text.into()))
    }

    /// Replaces all rules of a user.
    pub fn set_rights(&mut self, name: &Name, rules: &[Rule]) -> Result<(), EditError> {
        self.user(name)?;
        self.change(|document| put(part(document, name)?, RULES, list(rules)))
    }

    /// Sets limits of a user, or takes them away. Others stay.
    pub fn set_limits(&mut self, name: &Name, limits: &[Assignment]) -> Result<(), EditError> {
        self.user(name)?;
        self.change(|document| {
            let user = part(document, name)?;
            for limit in limits {
                let (word, value) = match limit {
                    Assignment::Number(limit, value) => {
                        let value = value.map(|it| i64::try_from(it.get()).unwrap_or(i64::MAX));
                        (limit.word(), value.map(Value::from))
                    }
                    Assignment::Share(share) => (SHARE, share.as_deref().map(Value::from)),
                };
                match value {
                    Some(value) => put(child(user, LIMITS)?, word, value)?,
                    None => remove_within(user, LIMITS, word)?,
                }
            }
            Ok(())
        })
    }

    /// Gives a user a token.
    pub fn add_token(
        &mut self,
        name: &Name,
        token: &Name,
        digest: &TokenDigest,
    ) -> Result<(), EditError> {
        if self.user(name)?.tokens.contains_key(token) {
            return Err(EditError::TokenThere(name.clone(), token.clone()));
        }
        self.change(|document| {
            let tokens = child(part(document, name)?, TOKENS)?;
            put(tokens, token.as_str(), digest.text().into())
        })
    }

    /// Takes a token away.
    pub fn revoke_token(&mut self, name: &Name, token: &Name) -> Result<(), EditError> {
        if !self.user(name)?.tokens.contains_key(token) {
            return Err(EditError::NoToken(name.clone(), token.clone()));
        }
        self.change(|document| remove_within(part(document, name)?, TOKENS, token.as_str()))
    }

    fn user(&self, name: &Name) -> Result<User, EditError> {
        let user = self.users.user(name.as_str());
        user.map(|user| (**user).clone()).ok_or_else(|| EditError::NoUser(name.clone()))
    }

    /// Makes a change, unless the text cannot be read then.
    fn change(
        &mut self,
        make: impl FnOnce(&mut DocumentMut) -> Result<(), EditError>,
    ) -> Result<(), EditError> {
        let mut document = self.document.clone();
        make(&mut document)?;
        self.users = read(&document.to_string()).map_err(EditError::Spoils)?;
        self.document = document;
        Ok(())
    }
}

/// A user who is there.
fn part<'d>(document: &'d mut DocumentMut, name: &Name) -> Result<&'d mut Item, EditError> {
    let user = document.get_mut(USERS).and_then(|users| users.get_mut(name.as_str()));
    user.ok_or_else(|| form(name.as_str()))
}

/// A table within another. If it is not there it is made, in the form that the other one has.
fn child<'t>(parent: &'t mut Item, key: &str) -> Result<&'t mut Item, EditError> {
    let made = match parent {
        Item::Table(table) => {
            let mut made = Table::new();
            // What has only tables in it needs no heading.
            made.set_implicit(key == USERS);
            made.set_dotted(table.is_dotted());
            Item::Table(made)
        }
        _ => Item::Value(InlineTable::new().into()),
    };
    let table = table(parent, key)?;
    if !table.contains_key(key) {
        table.insert(key, made);
    }
    table.get_mut(key).ok_or_else(|| form(key))
}

fn table<'t>(item: &'t mut Item, what: &str) -> Result<&'t mut dyn TableLike, EditError> {
    item.as_table_like_mut().ok_or_else(|| form(what))
}

/// Sets a value. A comment behind the one before it stays.
fn put(item: &mut Item, key: &str, mut value: Value) -> Result<(), EditError> {
    let table = table(item, key)?;
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(before) => {
            *value.decor_mut() = before.decor().clone();
            *before = value;
        }
        None => drop(table.insert(key, value.into())),
    }
    Ok(())
}

/// Removes a value, and the table that it was in if nothing else is there and nothing is said of
/// it.
fn remove_within(user: &mut Item, key: &str, word: &str) -> Result<(), EditError> {
    let user = table(user, key)?;
    let Some(item) = user.get_mut(key) else { return Ok(()) };
    let within = table(item, key)?;
    within.remove(word);
    let is_empty = within.is_empty();
    if is_empty && !item.as_table().is_some_and(|table| prefix(table).contains('#')) {
        user.remove(key);
    }
    Ok(())
}

/// Rules as the file has them: on one line, or each on its own.
fn list(rules: &[Rule]) -> Value {
    let mut list: Array = rules.iter().map(ToString::to_string).collect();
    if list.to_string().len() > LINE_MAX {
        for rule in list.iter_mut() {
            rule.decor_mut().set_prefix("\n    ");
        }
        list.set_trailing("\n");
        list.set_trailing_comma(true);
    }
    list.into()
}

/// What stands above the heading of a table.
fn prefix(table: &Table) -> &str {
    table.decor().prefix().and_then(RawString::as_str).unwrap_or_default()
}

/// What stands above a user who is to be removed and is not about them: everything before the last
/// empty line. It comes with the place of the user among the headings.
fn comment_to_keep(document: &DocumentMut, name: &Name) -> Option<(String, isize)> {
    let user = document.get(USERS)?.get(name.as_str())?.as_table()?;
    let above = prefix(user);
    let end = above.rfind("\n\n")?;
    let kept = above.get(..=end)?;
    (!kept.trim().is_empty()).then(|| Some((kept.to_owned(), user.position()?)))?
}

/// Puts a comment above the first heading behind this place, or at the end of the text.
fn give_comment(document: &mut DocumentMut, comment: &str, place: isize) {
    let next = positions(document.as_table()).into_iter().filter(|it| *it > place).min();
    if let Some(heir) = next.and_then(|next| table_at(document.as_table_mut(), next)) {
        let text = format!("{comment}{}", prefix(heir));
        heir.decor_mut().set_prefix(text);
    } else {
        let text = format!("{comment}{}", document.trailing().as_str().unwrap_or_default());
        document.set_trailing(text);
    }
}

/// The places of all headings below a table.
fn positions(table: &Table) -> Vec<isize> {
    let below = table.iter().filter_map(|(_, item)| item.as_table());
    below.flat_map(|it| positions(it).into_iter().chain(it.position())).collect()
}

fn table_at(table: &mut Table, place: isize) -> Option<&mut Table> {
    table
        .iter_mut()
        .filter_map(|(_, item)| item.as_table_mut())
        .find_map(|it| if it.position() == Some(place) { Some(it) } else { table_at(it, place) })
}

fn form(what: &str) -> EditError {
    EditError::Form(what.to_owned())
}

#[cfg(test)]
mod tests;
