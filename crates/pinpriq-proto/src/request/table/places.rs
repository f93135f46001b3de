//! The places of commands in the table, for constants of doors whose requests stand for them.

use super::TABLE;

/// Returns the place of a command that has no subcommands. For constants: there must be one.
#[must_use]
pub const fn place_of(name: &str) -> usize {
    place(name, None)
}

/// Returns the place of a subcommand, as [`place_of`] does for a command.
#[must_use]
pub const fn place_of_sub(name: &str, sub: &str) -> usize {
    place(name, Some(sub))
}

/// Returns the place of a command or subcommand. For constants: there must be one.
#[must_use]
pub const fn place(name: &str, sub: Option<&str>) -> usize {
    let mut place = 0;
    loop {
        let is_sub = match (TABLE[place].sub, sub) {
            (Some(known), Some(sub)) => is_same(known, sub),
            (None, None) => true,
            _ => false,
        };
        if is_sub && is_same(TABLE[place].name, name) {
            return place;
        }
        place += 1;
    }
}

/// Whether two names are the same. For constants.
#[must_use]
pub const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}
