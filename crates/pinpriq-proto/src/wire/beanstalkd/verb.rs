//! The table of the commands: the names under which they are counted, and the words with which
//! their lines begin.
//!
//! What follows a word is read in `line.rs`.

use super::request::Request;

/// Declares the commands from the lines of the table.
macro_rules! verbs {
    ($($(#[$doc:meta])* $verb:ident $name:literal $word:literal $counted:literal)*) => {
        /// A command of the protocol.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Verb {
            $($(#[$doc])* $verb,)*
        }

        impl Request<'_> {
            /// The command of the request.
            #[must_use]
            pub const fn verb(&self) -> Verb {
                match self { $(Self::$verb { .. } => Verb::$verb,)* }
            }
        }

        impl Verb {
            /// Every command. First come those that `stats` counts, in its order.
            pub const ALL: [Self; [$(Self::$verb),*].len()] = [$(Self::$verb),*];

            /// The name of the command. `stats` shows its counter as `cmd-` and this name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$verb => $name,)* }
            }

            /// What a line of the command begins with: its name, and a space if an argument must
            /// follow.
            #[must_use]
            pub const fn word(self) -> &'static [u8] {
                match self { $(Self::$verb => $word,)* }
            }

            /// Whether `stats` of beanstalkd has a counter for the command.
            #[must_use]
            pub const fn is_in_stats(self) -> bool {
                match self { $(Self::$verb => $counted,)* }
            }

            /// Compares the line with every word. They are constants here, so that each comparison
            /// is a few instructions and no call.
            fn split_any(line: &[u8]) -> Option<(Self, &[u8])> {
                let mut found = None;
                $(if let Some(rest) = rest_after($word, line) {
                    found = Some(longer_word(found, (Self::$verb, rest)));
                })*
                found
            }
        }
    };
}

verbs! {
    /// `put <priority> <delay> <ttr> <bytes>`, and a body.
    Put "put" b"put " true
    /// `peek <id>`
    Peek "peek" b"peek " true
    /// `peek-ready`
    PeekReady "peek-ready" b"peek-ready" true
    /// `peek-delayed`
    PeekDelayed "peek-delayed" b"peek-delayed" true
    /// `peek-buried`
    PeekBuried "peek-buried" b"peek-buried" true
    /// `reserve`
    Reserve "reserve" b"reserve" true
    /// `reserve-with-timeout <seconds>`
    ReserveWithTimeout "reserve-with-timeout" b"reserve-with-timeout " true
    /// `delete <id>`
    Delete "delete" b"delete " true
    /// `release <id> <priority> <delay>`
    Release "release" b"release " true
    /// `use <tube>`
    Use "use" b"use " true
    /// `watch <tube>`
    Watch "watch" b"watch " true
    /// `ignore <tube>`
    Ignore "ignore" b"ignore " true
    /// `bury <id> <priority>`
    Bury "bury" b"bury " true
    /// `kick <bound>`
    Kick "kick" b"kick " true
    /// `touch <id>`
    Touch "touch" b"touch " true
    /// `stats`
    Stats "stats" b"stats" true
    /// `stats-job <id>`
    StatsJob "stats-job" b"stats-job " true
    /// `stats-tube <tube>`
    StatsTube "stats-tube" b"stats-tube " true
    /// `list-tubes`
    ListTubes "list-tubes" b"list-tubes" true
    /// `list-tube-used`
    ListTubeUsed "list-tube-used" b"list-tube-used" true
    /// `list-tubes-watched`
    ListTubesWatched "list-tubes-watched" b"list-tubes-watched" true
    /// `pause-tube <tube> <delay>`
    PauseTube "pause-tube" b"pause-tube" true
    /// `reserve-job <id>`
    ReserveJob "reserve-job" b"reserve-job " false
    /// `kick-job <id>`
    KickJob "kick-job" b"kick-job " false
    /// `quit`
    Quit "quit" b"quit" false
}

impl Verb {
    /// The place of the command in [`Verb::ALL`], for an array of counters.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Finds the command whose word the line begins with, and returns what follows the word. If
    /// there are several, as for `stats-job 1`, it is the one with the longest word.
    #[inline]
    pub(super) fn split(line: &[u8]) -> Option<(Self, &[u8])> {
        // Nearly every request is one of these, and no longer word begins with theirs.
        for verb in [Self::Put, Self::ReserveWithTimeout, Self::Delete] {
            if let Some(rest) = rest_after(verb.word(), line) {
                return Some((verb, rest));
            }
        }
        Self::split_any(line)
    }
}

/// Returns what follows a word that a line begins with.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the compiler knows each word, and compares no others")]
fn rest_after<'l>(word: &[u8], line: &'l [u8]) -> Option<&'l [u8]> {
    let (start, rest) = line.split_at_checked(word.len())?;
    (start == word).then_some(rest)
}

/// Returns that of two commands whose word leaves less of the line.
fn longer_word<'a>(known: Option<(Verb, &'a [u8])>, other: (Verb, &'a [u8])) -> (Verb, &'a [u8]) {
    let is_known_longer = |known: &(Verb, &[u8])| known.1.len() < other.1.len();
    known.filter(is_known_longer).unwrap_or(other)
}
