//! Limits with a name, which several queues use together: what they are made of, and the commands
//! on them.
//!
//! What they do to tasks is in `operations/limits.rs` of the engine.

use crate::facts::{Anywhere, Called, Destination, Joining};
use crate::limits::SETTING_MAX;
use crate::names::NamesPage;
use crate::refusal::{Refusal, RefusalKind};
use crate::settings::Rate;
pub use crate::settings::used;
use crate::task::Bytes;
use crate::time::{Span, Timestamp};

/// The longest name of a limit, in bytes. The shortest has one.
pub const LIMIT_NAME_BYTES_MAX: usize = 255;

/// The most limits that one queue uses.
pub const USED_MAX: usize = 4;

/// The most queues that use one limit.
pub const LIMIT_QUEUES_MAX: usize = 1_000;

/// What a limit counts against [`crate::limits::Limits::bytes_max`] in addition to its name. An
/// estimate.
pub const LIMIT_OVERHEAD_BYTES: u64 = 512;

/// What a limit allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
#[letter(closed)]
pub struct LimitRules {
    /// How many tasks of its queues may be taken at once.
    pub max: Option<u64>,
    /// What the tasks of its queues that are handed out may cost in a time.
    pub rate: Option<Rate>,
}

/// A limit, for the store.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
#[letter(closed)]
pub struct LimitRecord {
    /// Distinguishes it from every other limit that has or had its name.
    pub number: u64,
    /// Its name.
    pub name: Bytes,
    /// What it allows.
    pub rules: LimitRules,
}

/// A value, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
#[letter(closed)]
pub struct OrNone<T>(pub Option<T>);

/// What changes about a limit. What is not given stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub struct LimitChange {
    /// See [`LimitRules::max`].
    #[letter(1)]
    pub max: Option<OrNone<u64>>,
    /// See [`LimitRules::rate`].
    #[letter(2)]
    pub rate: Option<OrNone<Rate>>,
}

/// A limit, as it is shown.
#[derive(Clone, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub struct LimitShown {
    /// Its name.
    pub name: Bytes,
    /// What it allows.
    pub rules: LimitRules,
    /// How many tasks of its queues are taken.
    pub taken: u64,
    /// How many whole tokens there are, below zero while it is in debt. None without a rate.
    #[letter(1)]
    pub tokens: Option<i64>,
    /// When there is a token again, if only that is missing.
    #[letter(2)]
    pub open_at: Option<Timestamp>,
    /// How many queues use it.
    pub queues: u64,
    /// For how long it was closed in all, since the start or since it was made.
    #[letter(3)]
    pub closed: Span,
}

/// The commands on limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Command, pinpriq_derive::Letter)]
pub enum LimitCommand<'a> {
    /// Makes a limit, or changes it.
    #[command(
        needs(manage = name), shard = name, names = Called("name of a limit", name),
        disk = Refused, change, audit = name, care = LongWork
    )]
    #[letter(1)]
    #[request(
        Spec::new("LIMIT", Group::Queues,
            "Makes a limit that several queues use together, or changes it",
            "OK")
        .sub("SET")
    )]
    Set {
        /// Its name.
        #[key("limit")]
        name: &'a [u8],
        /// What changes.
        #[letter(1, default = LimitChange::default())]
        #[flat]
        change: LimitChange,
    },
    /// Shows a limit.
    #[command(
        needs(look = it), shard = it, names = Called("name of a limit", it), disk = Served,
        care = LongWork
    )]
    #[letter(2)]
    #[request(
        Spec::new("LIMIT", Group::Queues,
            "Tells what a limit allows, and how much of that is in use",
            "a map: max, rate, taken, tokens, open_at, queues, closed_ms")
        .sub("SHOW")
    )]
    Show(#[key("limit")] &'a [u8]),
    /// Lists the names of limits, in order.
    #[command(
        needs(look = Anywhere), shard = Destination::Everywhere(Joining::Names(it.count)),
        names = (), disk = Served, within, care = LongReply
    )]
    #[letter(3)]
    #[request(
        Spec::new("LIMIT", Group::Queues,
            "Tells the names of the limits, page by page",
            "the cursor of the next page (0 after the last) and the names in order")
        .sub("LIST")
    )]
    List(NamesPage<'a>),
    /// Removes a limit that no queue uses. The reply is the number of limits removed.
    #[command(
        needs(manage = it), shard = it, names = Called("name of a limit", it), disk = Served,
        change, audit = it, care = LongWork
    )]
    #[letter(4)]
    #[request(
        Spec::new("LIMIT", Group::Queues,
            "Removes a limit that no queue uses",
            "1, or 0 if there is none")
        .sub("DROP")
    )]
    Drop(#[key("limit")] &'a [u8]),
}

/// Refuses a name that no limit can have.
pub fn check_limit_name(name: &[u8]) -> Result<(), Refusal> {
    let bad = |sentence: String| Err(Refusal::new(RefusalKind::BadArgument, sentence));
    match name {
        _ if name.is_empty() || name.len() > LIMIT_NAME_BYTES_MAX => {
            let length = name.len();
            bad(format!(
                "the name of a limit has 1 to {LIMIT_NAME_BYTES_MAX} bytes, and this one {length}"
            ))
        }
        _ if name.contains(&b',') => bad("the name of a limit has no comma".to_owned()),
        _ if name.eq_ignore_ascii_case(b"none") => {
            bad("no limit is called none: that word stands for no limits".to_owned())
        }
        _ => Ok(()),
    }
}

/// Refuses names that no queue can use together.
pub fn check_used(uses: &[u8]) -> Result<(), Refusal> {
    let bad = |sentence: String| Err(Refusal::new(RefusalKind::BadArgument, sentence));
    let names: Vec<&[u8]> = used(uses).collect();
    if names.len() > USED_MAX {
        let given = names.len();
        return bad(format!("a queue uses at most {USED_MAX} limits, and not {given}"));
    }
    names.iter().try_for_each(|name| check_limit_name(name))?;
    if (1..names.len()).any(|at| names[..at].contains(&names[at])) {
        return bad("USES names a limit twice".to_owned());
    }
    Ok(())
}

impl LimitRules {
    /// Says what is wrong with them, apart from times beyond the range of the clock.
    pub fn check(&self) -> Result<(), Refusal> {
        let bad = |sentence: String| Err(Refusal::new(RefusalKind::BadArgument, sentence));
        if let Some(max) = self.max
            && !(1..=SETTING_MAX).contains(&max)
        {
            return bad(format!("MAX is a number from 1 to {SETTING_MAX}, or none"));
        }
        match self.rate {
            Some(Rate { count: 0, .. } | Rate { per: Span::ZERO, .. }) => {
                bad("RATE is at least 1 token in at least 1 ms".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl LimitChange {
    /// Rules after the change.
    #[must_use]
    pub fn applied_to(&self, rules: LimitRules) -> LimitRules {
        LimitRules {
            max: self.max.map_or(rules.max, |max| max.0),
            rate: self.rate.map_or(rules.rate, |rate| rate.0),
        }
    }
}

impl LimitRecord {
    /// What it occupies.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        limit_bytes(self.name.len())
    }
}

/// What a limit with a name of this many bytes occupies.
#[must_use]
pub const fn limit_bytes(name: usize) -> u64 {
    LIMIT_OVERHEAD_BYTES + name as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_bounds() {
        for good in ["a", "NONES", "{x}y", &"n".repeat(LIMIT_NAME_BYTES_MAX)] {
            assert_eq!(check_limit_name(good.as_bytes()), Ok(()), "{good}");
        }
        for bad in ["", "a,b", "none", "None", &"n".repeat(LIMIT_NAME_BYTES_MAX + 1)] {
            assert!(check_limit_name(bad.as_bytes()).is_err(), "{bad}");
        }
        for good in ["a", "a,b,c,d"] {
            assert_eq!(check_used(good.as_bytes()), Ok(()), "{good}");
        }
        for bad in ["", "a,", ",a", "a,b,a", "a,b,c,d,e", "a,none"] {
            assert!(check_used(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
