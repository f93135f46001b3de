//! The options of commands.
//!
//! The table of commands says which command has which option. The functions that carry out commands
//! ask for the values by these constants.

#![expect(missing_docs, reason = "a constant is named as its word")]

use super::alphabet::letters;

pub const ATTEMPTS: Opt = with(
    "ATTEMPTS",
    "n|NONE",
    "How often the task may fail before it is given up, instead of what its queue says",
);
pub const BACKOFF: Opt = with(
    "BACKOFF",
    "ms|NONE",
    "How long the task waits after its first failure, instead of what its queue says",
);
pub const BACKOFFMAX: Opt = with(
    "BACKOFFMAX",
    "ms",
    "The longest that the task waits after a failure, instead of what its queue says",
);
pub const AT: Opt =
    with("AT", "unix-ms", "The moment from which the task can be taken, instead of a delay");
/// A schedule has it for one of its slots.
pub const AT_SLOT: Opt =
    with("AT", "unix-ms", "A moment that is a slot; the others lie whole distances from it");
/// Its first value says how many names follow.
pub const AFTER: Opt = with(
    "AFTER",
    AFTER_FORM,
    "Batches that have to be done before the task can be taken; at most 16",
);
pub const BATCH: Opt =
    with("BATCH", "batch", "The batch that the task is in, which is made if there is none");
/// A filter has it.
pub const BATCH_MEANT: Opt = with("BATCH", "batch", "Only pending tasks of this batch");
pub const IF: Opt = with(
    "IF",
    "done|acked|failed",
    "Whether the task is skipped after AFTER: never (done, the default), if a task of those \
     batches has failed (acked), or if none has (failed)",
);
pub const BY: Opt =
    with("BY", "ms", "How much the deadline moves, instead of a whole lease from now");
/// Its first eight letters tell it from the other options.
pub const CHECKPOINT: Opt = with(
    "CHECKPOINT",
    "bytes",
    "How far the work has come, for who takes it next; at most 65,536 bytes, and empty removes it",
);
pub const COST: Opt =
    with("COST", "n", "What a take costs: rates and turns count it, 1 unless it is given");
/// The holder of a task says it.
pub const COST_SPENT: Opt =
    with("COST", "n", "What the task did cost, for rates, instead of the cost of its put");
pub const COUNT: Opt = with("COUNT", "n", "At most this many");
pub const CURSOR: Opt = with(
    "CURSOR",
    "cursor",
    "Where the page begins: 0, or the cursor that came with the page before",
);
pub const DEADLINE: Opt =
    with("DEADLINE", "unix-ms", "The moment from which the task is not delivered to members");
pub const DELAY: Opt = with("DELAY", "ms", "How long the task waits before it can be taken");
/// It has two values, and may be given several times.
pub const DONE: Opt = with(
    "DONE",
    "queue receipt",
    "Tasks to acknowledge in the same step, each by its queue and receipt, and RESULT after them",
);
pub const FOR: Opt = with("FOR", "ms", "How long the pause lasts; without it until it is ended");
pub const FROM: Opt =
    with("FROM", "MIN|MAX", "From which end of the priorities, MIN unless it is given");
pub const GRACE: Opt =
    with("GRACE", "ms", "How long the holder of the task may go on at most, from now");
pub const GROUP: Opt =
    flag("GROUP", "Whole groups of tasks with one key, so that COUNT counts groups");
/// Its first value says how many pairs follow.
pub const HEADERS: Opt = with(
    "HEADERS",
    HEADERS_FORM,
    "Short values by name that travel with the payload, such as a trace; at most 16",
);
pub const HELD: Opt =
    flag("HELD", "The task waits until RESTART frees it, or TAKE with its ID, or CANCEL ends it");
pub const ID: Opt = with("ID", "id", "The id, for a queue whose ids are given");
/// A take has it for the task that it wants.
pub const ID_TAKEN: Opt = with(
    "ID",
    "id",
    "This task alone, from R, W or B, past pauses, limits, rates, keys and shares",
);
pub const KEY: Opt = with("KEY", "key", "The key: tasks of a queue with the same key form a group");
pub const LEASE: Opt = with("LEASE", "ms", "How long the member lives without a sign of life");
pub const MEMBER: Opt =
    with("MEMBER", "member", "The member whose lane is meant; the queue is the topic then");
pub const ORDER: Opt =
    with("ORDER", "OLDEST|NEWEST", "Which task goes first among those of one priority");
pub const PAYLOAD: Opt = with("PAYLOAD", "payload", "Another payload");
pub const POP: Opt = flag("POP", "Tasks are delivered for good");
pub const PREFIX: Opt = with("PREFIX", "prefix", "Only names that begin with this");
pub const PRIORITY: Opt = with(
    "PRIORITY",
    "n|NONE",
    "The lower, the more urgent, 0 by default; a task with none leaves only with its group",
);
pub const PROGRESS: Opt = with(
    "PROGRESS",
    "text",
    "How far the work has come, for people who look at it; at most 256 bytes, until the lease ends",
);
pub const RECALL: Opt =
    flag("RECALL", "A task is called back for a more urgent one until it is started");
pub const REASON: Opt =
    with("REASON", "text", "Why, for people who look at the task later; at most 1,024 bytes");
pub const RECEIPT: Opt = with("RECEIPT", "receipt", "The receipt, which a taken task needs");
pub const RESULT: Opt = with(
    "RESULT",
    "bytes",
    "What has come of the work, for who waits for the task or looks at it later",
);
/// Who waits for a task asks for it.
pub const RESULT_WANTED: Opt =
    flag("RESULT", "What has come of the work is part of the answer, as its last element");
pub const ROOM: Opt = with("ROOM", "ms", "How long to wait for room in a full queue");
pub const SHARE: Opt = with(
    "SHARE",
    "share",
    "On whose behalf the task runs, for fair turns and limits: its key unless it is given",
);
pub const STATE: Opt = with("STATE", "R|W|T|B|Z|D", "Only tasks in this state");
/// The state of a new task, of which only one can be asked for.
pub const STATE_BURIED: Opt = with("STATE", "B", "The task is buried at once");
pub const TAIL: Opt = flag("TAIL", "Behind all others of its priority, instead of its old place");
pub const TTL: Opt = with("TTL", "ms", "How long the task lives unless it is taken");
/// A batch has it.
pub const TTL_OF_BATCH: Opt =
    with("TTL", "ms", "How long the batch has to be done, or else it is done as failed");
pub const TTL_OR_NONE: Opt =
    with("TTL", "ms|NONE", "How long the task lives from now unless it is taken");
pub const TTR: Opt = with("TTR", "ms", "How long a lease of the task lasts unless it is renewed");
pub const WAIT: Opt = with("WAIT", "ms", "How long to wait; -1 is without end");
pub const WITHMETA: Opt = flag("WITHMETA", "All that is known of each task");
pub const ZOMBIE: Opt = with("ZOMBIE", "ms", "How long the finished task stays");
pub const EVERY: Opt = with("EVERY", "ms", "The time from one slot to the next, at least 100 ms");
pub const CRON: Opt = with(
    "CRON",
    "text",
    "Minute, hour, day of month, month and day of week, or a word such as @daily",
);
pub const ZONE: Opt = with(
    "ZONE",
    "name",
    "The IANA time zone of CRON, such as Europe/Berlin; UTC unless it is given",
);
pub const MISSED: Opt = with(
    "MISSED",
    "one|all|none",
    "What is put for slots missed while the server was down: one task (the default), all, none",
);
pub const OVERLAP: Opt = with(
    "OVERLAP",
    "allow|skip",
    "Whether a slot puts a task while the last one is unfinished: allow (the default), or skip it",
);
pub const WEIGHT: Opt = with(
    "WEIGHT",
    "n",
    "How much the share gets of a fair queue compared with others, from 1 (the default) to 1000",
);
pub const LIMIT: Opt = with(
    "LIMIT",
    OWN_LIMIT,
    "How many tasks of the share may be taken at once: a number, none, or default, as for others",
);
pub const RATE: Opt = with(
    "RATE",
    OWN_RATE,
    "How many tasks of the share are handed out in a time: n/ms, none, or default, as for others",
);
pub const MAX: Opt =
    with("MAX", LIMIT_OR_NONE, "How many tasks may be taken at once: a number, or none");
pub const RATE_OR_NONE: Opt = with(
    "RATE",
    RATE_OR_NO_RATE,
    "What the tasks that are handed out may cost in a time: n/ms, or none",
);
pub const TOP: Opt = flag("TOP", "Those that wait longest first, at most 100 and without a cursor");
pub const UNIQUE: Opt =
    with("UNIQUE", "key", "No second task is put with this key while the first is unfinished");
pub const WINDOW: Opt = with(
    "WINDOW",
    "ms",
    "How long the unique key counts after the put, even if the task is finished",
);
pub const ONDUP: Opt = with(
    "ONDUP",
    "keep|reject|replace",
    "What a duplicate does: keep the first task as it is (the default), be rejected, or replace it",
);

pub const RESTART: Opt = flag("RESTART", "Bring them back as if they had never been taken");
pub const CANCEL: Opt = flag("CANCEL", "End them, or if they are taken, ask their holders to stop");
pub const KILL: Opt = flag("KILL", "Remove them, also those that are held");
pub const REDRIVE: Opt =
    flag("REDRIVE", "Move ready dead letters back to the queues that they come from");
pub const MOVE: Opt = with("MOVE", "queue", "Move them to this queue, in the state that they have");
/// A bulk change sets it.
pub const PRIORITY_SET: Opt = with("PRIORITY", "n|NONE", "Give them this priority");
/// A bulk change sets it.
pub const DELAY_SET: Opt =
    with("DELAY", "ms", "Let those that are ready or delayed wait this long from now");
/// What a bulk change can do.
pub const BULK_CHANGES: [Opt; 7] = [RESTART, CANCEL, KILL, REDRIVE, MOVE, PRIORITY_SET, DELAY_SET];
pub const SHARE_MEANT: Opt = with("SHARE", "share", "Only tasks of this share");
pub const PRIORITIES: Opt =
    with("PRIORITIES", "low high", "Only tasks with a priority from the first to the second");
pub const OLDER: Opt = with("OLDER", "ms", "Only tasks that were put at least this long ago");
pub const FAILURES: Opt = with("FAILURES", "n", "Only tasks that have failed at least this often");
pub const REASON_PATTERN: Opt = with(
    "REASON",
    "pattern",
    "Only tasks whose reason matches: * stands for anything, and \\ takes the next byte as it is",
);
pub const HEADER: Opt =
    with("HEADER", "name pattern", "Only tasks with a header of this name whose value matches");
pub const DRY: Opt = flag("DRY", "Count the tasks, and change nothing");

/// An option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opt {
    /// The option word, in capitals.
    pub word: &'static str,
    /// The first eight letters of the word as a number, which no other option has.
    pub letters: u64,
    /// A bit that few other options share.
    pub bit: u64,
    /// The name of its value, if it has one.
    pub value: Option<&'static str>,
    /// What it is for, in one sentence without a full stop.
    pub help: &'static str,
}

/// A limit that a share may have of its own.
pub const OWN_LIMIT: &str = "n|none|default";
/// A rate that a share may have of its own.
pub const OWN_RATE: &str = "n/ms|none|default";
/// A limit, or none.
pub const LIMIT_OR_NONE: &str = "n|none";
/// A rate, or none.
pub const RATE_OR_NO_RATE: &str = "n/ms|none";

/// Headers, and how many there are.
pub const HEADERS_FORM: &str = "n name value [name value ...]";

/// Names of batches, and how many there are.
pub const AFTER_FORM: &str = "n batch [batch ...]";

/// The kind of an option's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionKind {
    /// It has no value.
    Flag,
    /// A whole number.
    Number,
    /// A whole number, or none.
    NumberOrNone,
    /// A length of time, in milliseconds.
    Span,
    /// A length of time, or none.
    SpanOrNone,
    /// How long to wait, where -1 is without end.
    Wait,
    /// A moment, in Unix milliseconds.
    Moment,
    /// One of these words, with bars between.
    Words(&'static str),
    /// Two values, as often as is wanted.
    Pairs,
    /// Two values, by what they are.
    Two(&'static str),
    /// Values by name, after their number.
    Headers,
    /// Names, after their number.
    Names,
    /// Any bytes, by what they are.
    Bytes(&'static str),
}

impl Opt {
    /// Returns the kind of its value.
    #[must_use]
    pub fn kind(&self) -> OptionKind {
        match (self.word, self.value) {
            (_, None) => OptionKind::Flag,
            ("WAIT", _) => OptionKind::Wait,
            (_, Some("n")) => OptionKind::Number,
            (_, Some("n|NONE")) => OptionKind::NumberOrNone,
            (_, Some("ms")) => OptionKind::Span,
            (_, Some("ms|NONE")) => OptionKind::SpanOrNone,
            (_, Some("unix-ms")) => OptionKind::Moment,
            (_, Some(value @ (OWN_LIMIT | OWN_RATE | LIMIT_OR_NONE | RATE_OR_NO_RATE))) => {
                OptionKind::Bytes(value)
            }
            (_, Some(HEADERS_FORM)) => OptionKind::Headers,
            (_, Some(AFTER_FORM)) => OptionKind::Names,
            ("DONE", _) => OptionKind::Pairs,
            (_, Some(value)) if value.contains(' ') => OptionKind::Two(value),
            (_, Some(value)) if value.contains('|') || value == "B" => OptionKind::Words(value),
            (_, Some(value)) => OptionKind::Bytes(value),
        }
    }

    /// Returns the least whole number that it takes.
    #[must_use]
    pub fn least(&self) -> u64 {
        u64::from(*self != FAILURES)
    }
}

/// An option with a value.
#[must_use]
pub const fn with(word: &'static str, value: &'static str, help: &'static str) -> Opt {
    Opt { value: Some(value), ..flag(word, help) }
}

/// An option without a value.
#[must_use]
pub const fn flag(word: &'static str, help: &'static str) -> Opt {
    let letters = letters(word.as_bytes());
    // The golden ratio times 2^64 spreads the numbers.
    let bit = 1 << (letters.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58);
    Opt { word, letters, bit, value: None, help }
}

impl Opt {
    /// Whether it has several values, which are kept apart from those of the other options.
    #[inline]
    pub(crate) const fn is_apart(&self) -> bool {
        /// Few others have one of these bits.
        const BITS: u64 = DONE.bit | HEADERS.bit | AFTER.bit | PRIORITIES.bit | HEADER.bit;
        self.bit & BITS != 0
            && (self.letters == DONE.letters || self.is_counted() || self.has_two())
    }

    /// Whether its first value says how many follow.
    pub(crate) const fn is_counted(&self) -> bool {
        self.letters == HEADERS.letters || self.letters == AFTER.letters
    }

    /// Whether it has two values, and is given once.
    pub(crate) const fn has_two(&self) -> bool {
        self.letters == PRIORITIES.letters || self.letters == HEADER.letters
    }

    /// Stands where a list has no option yet.
    pub(crate) const NONE: Self = MEMBER;
}

/// Returns the option with this word, in any case.
#[inline]
#[must_use]
pub fn find(options: &'static [Opt], word: &[u8]) -> Option<&'static Opt> {
    let number = letters(word);
    let is_it = |it: &&Opt| it.letters == number && it.word.len() == word.len();
    let found = options.iter().find(is_it)?;
    // The number leaves the other letters out.
    let is_whole = word.len() <= 8 || found.word.as_bytes().eq_ignore_ascii_case(word);
    is_whole.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_in_any_case_and_by_nothing_else() {
        static KNOWN: &[Opt] =
            &[AT, TTL, TTR, COUNT, DELAY, PREFIX, RECEIPT, PRIORITY, WITHMETA, CHECKPOINT];
        for known in KNOWN {
            let (word, small) = (known.word.to_owned(), known.word.to_ascii_lowercase());
            let mixed = format!("{}{}", &word[..1], &small[1..]);
            for given in [&word, &small, &mixed] {
                assert_eq!(find(KNOWN, given.as_bytes()), Some(known), "{given}");
            }
            let first = char::from(word.as_bytes()[0] ^ 0x80).to_string();
            let others =
                ["\0", " ", "S"].map(|end| format!("{word}{end}")).into_iter().chain([first]);
            for other in others.chain([word[1..].to_owned(), word[..word.len() - 1].to_owned()]) {
                assert_eq!(find(KNOWN, other.as_bytes()), None, "{other:?}");
            }
        }
    }
}
