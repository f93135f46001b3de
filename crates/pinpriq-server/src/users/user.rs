//! All users, and who is meant by a name or a token.
//!
//! Where they come from is not known here: `file.rs` reads them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::users::limits::Limits;
use crate::users::name::Name;
use crate::users::password::PasswordHash;
use crate::users::rights::Rights;
use crate::users::rule::Rule;
use crate::users::token::TokenDigest;

/// A user who may sign in, or in whose name a door acts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// What they are called.
    pub name: Name,
    /// The hash of their password, if they have one.
    pub password: Option<PasswordHash>,
    /// Their tokens.
    pub tokens: BTreeMap<Name, TokenDigest>,
    /// Their rules, as they are written.
    pub rules: Vec<Rule>,
    /// What these rules allow.
    pub rights: Rights,
    /// What they may use up.
    pub limits: Limits,
}

/// Users. They do not change: a file that changed is read again.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Users {
    by_name: BTreeMap<Name, Arc<User>>,
    /// The tokens of all users by the first bytes of their digests. The whole digests are compared
    /// in constant time.
    by_token: BTreeMap<[u8; 8], Vec<Held>>,
}

/// A token and whose it is.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Held {
    digest: TokenDigest,
    user: Arc<User>,
    token: Name,
}

/// Two users, or one, have the same token under two names.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}: revoke one of them and add another")]
pub struct SameToken(String);

impl Users {
    /// Adds a user. One of the same name is replaced, also if the new one is refused.
    pub fn add(&mut self, user: User) -> Result<(), SameToken> {
        self.remove(user.name.as_str());
        let user = Arc::new(user);
        self.by_name.insert(user.name.clone(), Arc::clone(&user));
        for (token, digest) in &user.tokens {
            if let Some(held) = self.holder(digest) {
                let (other, of) = (&held.token, &held.user.name);
                let same =
                    format!("the token {token} of {} is also the token {other} of {of}", user.name);
                self.remove(user.name.as_str());
                return Err(SameToken(same));
            }
            let held = Held { digest: *digest, user: Arc::clone(&user), token: token.clone() };
            self.by_token.entry(digest.beginning()).or_default().push(held);
        }
        Ok(())
    }

    /// The user of this name.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<&Arc<User>> {
        self.by_name.get(name)
    }

    /// Whose token has this digest, and what it is called.
    #[must_use]
    pub fn by_token(&self, digest: &TokenDigest) -> Option<(&Arc<User>, &Name)> {
        self.holder(digest).map(|held| (&held.user, &held.token))
    }

    /// What the password of a user is checked against. It is there whether they exist or not, and
    /// checking takes as long, so that the time does not betray which users exist.
    #[must_use]
    pub fn password_of(&self, name: &str) -> PasswordHash {
        let password = self.user(name).and_then(|user| user.password.clone());
        password.unwrap_or(PasswordHash::NONE)
    }

    /// All users, by name.
    pub fn each(&self) -> impl Iterator<Item = &Arc<User>> {
        self.by_name.values()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    fn holder(&self, digest: &TokenDigest) -> Option<&Held> {
        self.by_token.get(&digest.beginning())?.iter().find(|held| held.digest == *digest)
    }

    fn remove(&mut self, name: &str) {
        let Some(user) = self.by_name.remove(name) else { return };
        for digest in user.tokens.values() {
            if let Some(held) = self.by_token.get_mut(&digest.beginning()) {
                held.retain(|held| held.user.name.as_str() != name);
            }
        }
    }
}

impl User {
    /// A user who may do what these rules say, and has no other way in than a door without
    /// passwords.
    #[must_use]
    pub fn new(name: Name, rules: Vec<Rule>) -> Self {
        let rights = rules.iter().collect();
        let (password, tokens, limits) = (None, BTreeMap::new(), Limits::default());
        Self { name, password, tokens, rules, rights, limits }
    }
}

#[cfg(test)]
mod tests {
    use super::{User, Users};
    use crate::users::password::{Password, PasswordHash};
    use crate::users::token::{Token, TokenDigest};

    fn user(name: &str, tokens: &[(&str, TokenDigest)]) -> User {
        let mut user = User::new(name.parse().unwrap(), vec!["put:*".parse().unwrap()]);
        user.tokens = tokens.iter().map(|(name, it)| (name.parse().unwrap(), *it)).collect();
        user
    }

    #[test]
    fn users_are_found_by_name_and_by_token() {
        let (token, other) = (Token::make().unwrap(), Token::make().unwrap());
        let mut users = Users::default();
        users.add(user("a", &[("ci", token.digest())])).unwrap();
        users.add(user("b", &[])).unwrap();
        assert_eq!(users.user("a").unwrap().name.as_str(), "a");
        assert_eq!(users.user("A"), None);
        let (holder, name) = users.by_token(&token.digest()).unwrap();
        assert_eq!((holder.name.as_str(), name.as_str()), ("a", "ci"));
        assert_eq!(users.by_token(&other.digest()), None);
        users.add(user("a", &[("ci", other.digest())])).unwrap();
        assert_eq!((users.len(), users.by_token(&token.digest())), (2, None));
    }

    #[test]
    fn no_two_users_have_the_same_token() {
        let digest = Token::make().unwrap().digest();
        let mut users = Users::default();
        users.add(user("a", &[("ci", digest)])).unwrap();
        let error = users.add(user("b", &[("x", digest)])).unwrap_err().to_string();
        assert!(error.starts_with("the token x of b is also the token ci of a"), "{error}");
        assert_eq!(users.by_token(&digest).map(|(user, _)| user.name.as_str()), Some("a"));
        assert_eq!(users.len(), 1);
        assert!(users.add(user("c", &[("x", digest), ("y", digest)])).is_err());
    }

    #[test]
    fn a_password_is_checked_whether_the_user_exists_or_not() {
        let password = Password::new(b"swordfish".to_vec()).unwrap();
        let mut users = Users::default();
        users.add(user("without", &[])).unwrap();
        let mut with = user("with", &[]);
        with.password = Some(PasswordHash::make(&password).unwrap());
        users.add(with).unwrap();
        for (name, expected) in [("with", true), ("without", false), ("unknown", false)] {
            assert_eq!(users.password_of(name).verify(b"swordfish"), expected, "{name}");
        }
    }
}
