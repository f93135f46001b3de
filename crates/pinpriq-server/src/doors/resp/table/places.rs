//! The places of commands in the table, for constants of doors whose requests stand for them.

use super::TABLE;

/// Returns the place of a command that has no subcommands. For constants: there must be one.
pub(crate) const fn place_of(name: &str) -> usize {
    let mut place = 0;
    while TABLE[place].sub.is_some() || !is_same(TABLE[place].name, name) {
        place += 1;
    }
    place
}

/// Returns the place of a subcommand, as [`place_of`] does for a command.
pub(crate) const fn place_of_sub(name: &str, sub: &str) -> usize {
    let mut place = 0;
    loop {
        if let Some(known) = TABLE[place].sub
            && is_same(TABLE[place].name, name)
            && is_same(known, sub)
        {
            return place;
        }
        place += 1;
    }
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}
