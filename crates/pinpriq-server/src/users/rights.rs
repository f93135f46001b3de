//! What several rules allow together, in a form that is quick to ask.
//!
//! Names and prefixes that another prefix covers are left out, so two users with the same rights
//! are equal, however their rules are written.

use crate::users::Right;
use crate::users::rule::Rule;

/// Everything that a user may do.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Rights {
    /// For each right that is given on queues, in the order of [`Right::ON_NAMES`].
    on_names: [Names; Right::ON_NAMES.len()],
    is_admin: bool,
}

/// A set of names.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Names {
    /// Prefixes, none of which begins with another one, in rising order.
    prefixes: Vec<Box<[u8]>>,
    /// Names that begin with none of the prefixes, in rising order.
    exact: Vec<Box<[u8]>>,
}

impl Rights {
    /// Whether a right is given on the queue or topic of this name. To run the server is not given
    /// on queues: ask [`is_admin`](Self::is_admin).
    ///
    /// Costs a few comparisons more for twice as many rules.
    #[must_use]
    pub fn allows(&self, right: Right, name: &[u8]) -> bool {
        self.names(right).is_some_and(|names| names.contain(name))
    }

    /// Whether a right is given on every queue and topic.
    #[must_use]
    pub fn allows_all(&self, right: Right) -> bool {
        self.names(right).is_some_and(Names::are_all)
    }

    /// Whether a right is given on any queue or topic at all.
    #[must_use]
    pub fn allows_any(&self, right: Right) -> bool {
        let is_any = |names: &Names| !names.prefixes.is_empty() || !names.exact.is_empty();
        self.names(right).is_some_and(is_any)
    }

    /// The names on which a right is given, each with whether all that begin with it are meant.
    pub fn names_of(&self, right: Right) -> impl Iterator<Item = (&[u8], bool)> {
        self.names(right).into_iter().flat_map(|names| {
            let prefixes = names.prefixes.iter().map(|prefix| (&**prefix, true));
            prefixes.chain(names.exact.iter().map(|name| (&**name, false)))
        })
    }

    /// Whether the server may be run.
    #[must_use]
    pub const fn is_admin(&self) -> bool {
        self.is_admin
    }

    /// Whether everything that `other` allows is allowed here too.
    #[must_use]
    pub fn cover(&self, other: &Self) -> bool {
        let pairs = self.on_names.iter().zip(&other.on_names);
        (self.is_admin || !other.is_admin) && pairs.into_iter().all(|(own, its)| own.cover(its))
    }

    fn names(&self, right: Right) -> Option<&Names> {
        self.on_names.get(right as usize)
    }
}

impl<'a> FromIterator<&'a Rule> for Rights {
    fn from_iter<T: IntoIterator<Item = &'a Rule>>(rules: T) -> Self {
        let mut rights = Self::default();
        for rule in rules {
            let names = rights.on_names.get_mut(rule.right() as usize);
            match (rule.pattern(), names) {
                (Some(pattern), Some(names)) => {
                    let set =
                        if pattern.is_prefix() { &mut names.prefixes } else { &mut names.exact };
                    set.push(pattern.bytes().into());
                }
                _ => rights.is_admin = true,
            }
        }
        rights.on_names.iter_mut().for_each(Names::tidy_up);
        rights
    }
}

impl Names {
    fn contain(&self, name: &[u8]) -> bool {
        self.have_prefix_of(name) || self.exact.binary_search_by(|it| (**it).cmp(name)).is_ok()
    }

    /// Whether a name begins with one of the prefixes. Anything between a prefix and a name that
    /// begins with it begins with that prefix too, and no two prefixes do. So it can only be the
    /// last one that is not above the name.
    fn have_prefix_of(&self, name: &[u8]) -> bool {
        let after = self.prefixes.partition_point(|prefix| **prefix <= *name);
        let last = after.checked_sub(1).and_then(|index| self.prefixes.get(index));
        last.is_some_and(|prefix| name.starts_with(prefix))
    }

    fn are_all(&self) -> bool {
        self.prefixes.first().is_some_and(|prefix| prefix.is_empty())
    }

    fn cover(&self, other: &Self) -> bool {
        other.prefixes.iter().all(|prefix| self.have_prefix_of(prefix))
            && other.exact.iter().all(|name| self.contain(name))
    }

    /// Sorts, and leaves out what is covered anyway.
    fn tidy_up(&mut self) {
        self.prefixes.sort_unstable();
        // Whatever begins with a prefix follows it, before anything else.
        self.prefixes.dedup_by(|later, earlier| later.starts_with(earlier));
        let mut exact = std::mem::take(&mut self.exact);
        exact.retain(|name| !self.have_prefix_of(name));
        exact.sort_unstable();
        exact.dedup();
        self.exact = exact;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Rights;
    use crate::users::Right;
    use crate::users::pattern::Pattern;
    use crate::users::rule::Rule;

    fn rights(rules: &[&str]) -> Rights {
        let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        rules.iter().collect()
    }

    #[test]
    fn a_right_is_given_where_a_rule_says() {
        let rights = rights(&["put:a", "take:a.*", "look:*"]);
        let table = [
            (Right::Put, "a", true),
            (Right::Put, "a.b", false),
            (Right::Take, "a.b", true),
            (Right::Take, "a", false),
            (Right::Look, "anything", true),
            (Right::Manage, "a", false),
            (Right::Admin, "a", false),
        ];
        for (right, name, expected) in table {
            assert_eq!(rights.allows(right, name.as_bytes()), expected, "{right} {name}");
        }
        assert!(rights.allows_all(Right::Look) && !rights.allows_all(Right::Take));
        assert!(rights.allows_any(Right::Take) && !rights.allows_any(Right::Manage));
    }

    #[test]
    fn the_names_of_a_right_are_told() {
        let rights = rights(&["take:a.*", "take:b", "take:a.c", "put:c"]);
        let names: Vec<_> = rights.names_of(Right::Take).collect();
        assert_eq!(names, [(&b"a."[..], true), (&b"b"[..], false)]);
        assert_eq!(rights.names_of(Right::Look).count(), 0);
    }

    #[test]
    fn admin_implies_nothing_else() {
        let rights = rights(&["admin"]);
        assert!(rights.is_admin());
        for right in Right::ALL {
            assert!(!rights.allows(right, b"a") && !rights.allows_all(right), "{right}");
            assert!(!rights.allows_any(right), "{right}");
        }
        assert!(!Rights::default().is_admin());
    }

    #[test]
    fn rights_are_equal_however_they_are_written() {
        assert_eq!(rights(&["put:a*", "put:ab*", "put:abc", "put:a"]), rights(&["put:a*"]));
        assert_eq!(rights(&["put:b", "put:a", "put:b"]), rights(&["put:a", "put:b"]));
        assert_ne!(rights(&["put:a"]), rights(&["take:a"]));
    }

    #[test]
    fn more_rights_cover_fewer() {
        let more = rights(&["put:a*", "take:b", "admin"]);
        let less = [&["put:ab*"][..], &["put:a", "take:b"], &["admin"], &[]];
        for rules in less {
            assert!(more.cover(&rights(rules)) && !rights(rules).cover(&more), "{rules:?}");
        }
        for rules in [["put:b"], ["take:b*"], ["look:a"], ["put:*"]] {
            assert!(!more.cover(&rights(&rules)), "{rules:?}");
        }
    }

    fn some_pattern() -> impl Strategy<Value = Pattern> {
        (proptest::collection::vec(0..3_u8, 0..4), any::<bool>()).prop_map(|(bytes, is_prefix)| {
            if is_prefix { Pattern::prefix(&bytes) } else { Pattern::name(&bytes) }
        })
    }

    proptest! {
        #[test]
        fn the_quick_answer_is_that_of_the_rules(
            patterns in proptest::collection::vec(some_pattern(), 0..8),
            names in proptest::collection::vec(proptest::collection::vec(0..3_u8, 0..5), 1..20),
        ) {
            let rule = |pattern: &Pattern| Rule::on(Right::Take, pattern.clone()).unwrap();
            let rules: Vec<Rule> = patterns.iter().map(rule).collect();
            let rights: Rights = rules.iter().collect();
            for name in names {
                let expected = patterns.iter().any(|pattern| pattern.matches(&name));
                prop_assert_eq!(rights.allows(Right::Take, &name), expected);
                prop_assert!(!rights.allows(Right::Put, &name));
            }
            let reversed: Rights = rules.iter().rev().collect();
            prop_assert_eq!(&reversed, &rights);
            prop_assert!(rights.cover(&reversed));
        }
    }
}
