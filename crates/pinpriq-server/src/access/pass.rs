//! The identity that a connection or a request carries.

use std::sync::Arc;

use crate::users::{Name, Rule, User, Users};

/// A user who has signed in, and how.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    pub(crate) user: Arc<User>,
    proof: Proof,
    /// The version of the users in which this was found.
    pub(crate) version: u64,
}

/// How a client has shown who it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Proof {
    /// By the password of the user.
    Password,
    /// By the token of this name.
    Token(Name),
    /// By a certificate with the name of the user.
    Certificate,
    /// By nothing: the door acts in the name of this user.
    Door,
    /// It is the server itself.
    Server,
}

impl Pass {
    /// Returns the pass of a user of this version of the users.
    pub(crate) const fn new(user: Arc<User>, proof: Proof, version: u64) -> Self {
        Self { user, proof, version }
    }

    /// Returns the pass with which the server asks itself for facts.
    pub(crate) fn of_server() -> Self {
        let name = "default".parse();
        let Ok(name) = name else { unreachable!("the name of a user is none") };
        Self::new(Arc::new(User::new(name, vec![Rule::admin()])), Proof::Server, u64::MAX)
    }

    /// Whether the server itself has it, so that no change of the users matters.
    pub(crate) fn is_of_server(&self) -> bool {
        self.proof == Proof::Server
    }

    /// Returns the pass that follows from this version of the users, or none if it has ended: the
    /// user is gone, the password is another one, or the token was revoked.
    pub(crate) fn renewed(&self, users: &Users, version: u64) -> Option<Self> {
        if self.is_of_server() {
            return Some(self.clone());
        }
        let user = users.user(self.user.name.as_str())?;
        let is_same = match &self.proof {
            Proof::Password => self.user.password == user.password,
            Proof::Token(name) => self.user.tokens.get(name) == user.tokens.get(name),
            Proof::Certificate | Proof::Door | Proof::Server => true,
        };
        is_same.then(|| Self::new(Arc::clone(user), self.proof.clone(), version))
    }
}

#[cfg(test)]
mod tests {
    use crate::users::{PasswordHash, Token};

    use super::*;

    fn users(all: &[&User]) -> Users {
        let mut users = Users::default();
        for user in all {
            users.add((*user).clone()).unwrap();
        }
        users
    }

    fn hash(salt: &str) -> PasswordHash {
        let output = "A".repeat(43);
        PasswordHash::read(
            &format!("$argon2id$v=19$m=64,t=1,p=1${salt}$${output}").replace("$$", "$"),
        )
        .unwrap()
    }

    #[test]
    fn a_pass_ends_with_what_it_was_given_for() {
        let name: Name = "laptop".parse().unwrap();
        let mut ana = User::new("ana".parse().unwrap(), Vec::new());
        ana.password = Some(hash("c29tZSBzYWx0IGhlcmU"));
        ana.tokens.insert(name.clone(), Token::make().unwrap().digest());
        let pass = |proof: Proof| Pass::new(Arc::new(ana.clone()), proof, 1);
        let by_token = || Proof::Token(name.clone());
        let kept = |proof: Proof, newer: &User| pass(proof).renewed(&users(&[newer]), 2).is_some();

        let mut other = ana.clone();
        other.rules = vec!["put:*".parse().unwrap()];
        assert!(kept(Proof::Password, &other) && kept(by_token(), &other));
        let renewed = pass(Proof::Password).renewed(&users(&[&other]), 2).unwrap();
        assert_eq!((renewed.user.rules.len(), renewed.version), (1, 2));

        let mut other = ana.clone();
        other.password = Some(hash("b3RoZXIgc2FsdCBoZXJl"));
        assert!(!kept(Proof::Password, &other) && kept(by_token(), &other));

        let mut other = ana.clone();
        other.tokens.insert(name.clone(), Token::make().unwrap().digest());
        assert!(kept(Proof::Password, &other) && !kept(by_token(), &other));
        other.tokens.clear();
        assert!(!kept(by_token(), &other));

        assert!(pass(Proof::Password).renewed(&users(&[]), 2).is_none());
        assert!(pass(Proof::Door).renewed(&users(&[]), 2).is_none());
        assert!(Pass::of_server().renewed(&users(&[]), 2).is_some());
    }
}
