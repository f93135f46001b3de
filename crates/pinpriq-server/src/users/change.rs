//! What differs between users before and after a file was read again.
//!
//! A server ends what a user may no longer do; how is not known here.

use std::collections::BTreeMap;

use crate::users::name::Name;
use crate::users::user::{User, Users};

/// Something of a user that changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// The user is new.
    Added,
    /// The user is gone.
    Removed,
    /// The password is another one, was removed, or is the first one.
    Password,
    /// The token of this name is there now.
    TokenAdded(Name),
    /// The token of this name is gone, or another one has its name.
    TokenRevoked(Name),
    /// Something is allowed that was not.
    RightsGained,
    /// Something is no longer allowed.
    RightsLost,
    /// There are other limits.
    Limits,
}

impl Users {
    /// What changed from these users to newer ones, for each whom something changed for.
    #[must_use]
    pub fn changes(&self, newer: &Self) -> BTreeMap<Name, Vec<Change>> {
        let mut all = BTreeMap::new();
        for user in newer.each().filter(|it| self.user(it.name.as_str()).is_none()) {
            all.insert(user.name.clone(), vec![Change::Added]);
        }
        for user in self.each() {
            let changes = match newer.user(user.name.as_str()) {
                Some(newer) => user.changes(newer),
                None => vec![Change::Removed],
            };
            if !changes.is_empty() {
                all.insert(user.name.clone(), changes);
            }
        }
        all
    }
}

impl User {
    /// What changed from this user to a newer one of the same name.
    #[must_use]
    pub fn changes(&self, newer: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.password != newer.password {
            changes.push(Change::Password);
        }
        let only_in = |one: &Self, other: &Self| -> Vec<Name> {
            let tokens = one.tokens.iter();
            let lacking = tokens.filter(|(name, digest)| other.tokens.get(*name) != Some(digest));
            lacking.map(|(name, _)| name.clone()).collect()
        };
        changes.extend(only_in(self, newer).into_iter().map(Change::TokenRevoked));
        changes.extend(only_in(newer, self).into_iter().map(Change::TokenAdded));
        if !self.rights.cover(&newer.rights) {
            changes.push(Change::RightsGained);
        }
        if !newer.rights.cover(&self.rights) {
            changes.push(Change::RightsLost);
        }
        if self.limits != newer.limits {
            changes.push(Change::Limits);
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::Change;
    use crate::users::token::Token;
    use crate::users::user::{User, Users};

    fn user(rules: &[&str]) -> User {
        let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        User::new("a".parse().unwrap(), rules)
    }

    #[test]
    fn each_part_of_a_user_is_told_apart() {
        let before = user(&["put:a"]);
        assert_eq!(before.changes(&user(&["put:a", "put:a"])), []);
        let table = [
            (user(&["put:a", "take:a"]), vec![Change::RightsGained]),
            (user(&[]), vec![Change::RightsLost]),
            (user(&["put:b"]), vec![Change::RightsGained, Change::RightsLost]),
        ];
        for (newer, expected) in table {
            assert_eq!(before.changes(&newer), expected);
        }
        let mut newer = before.clone();
        newer.limits.set("max_tasks=1".parse().unwrap());
        assert_eq!(before.changes(&newer), [Change::Limits]);
        let mut newer = before.clone();
        newer.password = Some(crate::users::password::PasswordHash::NONE);
        assert_eq!(before.changes(&newer), [Change::Password]);
    }

    #[test]
    fn a_token_that_was_replaced_is_revoked() {
        let with = |token: &str| {
            let mut user = user(&[]);
            user.tokens.insert(token.parse().unwrap(), Token::make().unwrap().digest());
            user
        };
        let (one, other) = ("one".parse().unwrap(), "other".parse().unwrap());
        let expected = [Change::TokenRevoked(one), Change::TokenAdded(other)];
        assert_eq!(with("one").changes(&with("other")), expected);
        let same = with("one").changes(&with("one"));
        assert_eq!(same.len(), 2, "{same:?}");
    }

    #[test]
    fn users_come_and_go() {
        let mut before = Users::default();
        before.add(user(&[])).unwrap();
        let after = Users::default();
        let only = |changes: std::collections::BTreeMap<_, Vec<Change>>| {
            changes.into_values().flatten().collect::<Vec<_>>()
        };
        assert_eq!(only(before.changes(&after)), [Change::Removed]);
        assert_eq!(only(after.changes(&before)), [Change::Added]);
        assert_eq!(only(before.changes(&before.clone())), []);
    }
}
