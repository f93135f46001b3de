//! How a command ends: the exit codes, and the sentence that goes with a failure.
//!
//! The codes are documented in `docs/operating.md` and at the end of `pinpriq --help`.

use std::process::ExitCode;

/// The command did not run to its end as it should have.
const FAILED: u8 = 1;
/// The command line or the configuration cannot be used.
const UNUSABLE: u8 = 2;
/// The data directory cannot be used, or the cluster.
const DIRECTORY: u8 = 3;
/// A command that looks for tasks or backups found none.
const NOTHING_THERE: u8 = 4;
/// The server refused what it was asked.
const REFUSED: u8 = 5;
/// The awaited task ended otherwise than acknowledged, or not yet.
const BURIED: u8 = 10;
const EXPIRED: u8 = 11;
const KILLED: u8 = 12;
const TIMEOUT: u8 = 13;
const DEAD: u8 = 14;
const EVICTED: u8 = 15;
const MOVED: u8 = 16;
const CANCELLED: u8 = 17;
const SKIPPED: u8 = 18;

/// How a command ended that ran as it should.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// It did what it was asked to do.
    Done,
    /// It looked at a data directory or an archive, and that is damaged, or at a cluster, and that
    /// is not well.
    Damaged,
    /// It looked for tasks, and there was none.
    NothingThere,
    /// The server refused some of what it was asked, and that was reported.
    Refused,
    /// It waited for the end of a task, and the task was buried.
    Buried,
    /// It waited for the end of a task, and the task expired.
    Expired,
    /// It waited for the end of a task, and the task was killed.
    Killed,
    /// It waited for the end of a task or a batch, and the time was up.
    TimedOut,
    /// It waited for the end of a task, and the task became a dead letter.
    Dead,
    /// It waited for the end of a task, and the task made room for others.
    Evicted,
    /// It waited for the end of a task, and the task was moved to another queue.
    Moved,
    /// It waited for the end of a task, and the task was cancelled.
    Cancelled,
    /// It waited for the end of a task, and the task was skipped.
    Skipped,
}

/// Why a command ended otherwise.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{sentence}")]
pub(crate) struct Failure {
    code: u8,
    sentence: String,
}

impl Exit {
    /// The exit code as a number.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Damaged => DIRECTORY,
            Self::NothingThere => NOTHING_THERE,
            Self::Refused => REFUSED,
            Self::Buried => BURIED,
            Self::Expired => EXPIRED,
            Self::Killed => KILLED,
            Self::TimedOut => TIMEOUT,
            Self::Dead => DEAD,
            Self::Evicted => EVICTED,
            Self::Moved => MOVED,
            Self::Cancelled => CANCELLED,
            Self::Skipped => SKIPPED,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl Failure {
    /// A failure with the exit code of another crate's error.
    pub(crate) fn new(code: u8, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into() }
    }

    /// Something went wrong on the way: exit code 1.
    pub(crate) fn on_the_way(sentence: impl Into<String>) -> Self {
        Self::new(FAILED, sentence)
    }

    /// What was asked for cannot be done: exit code 2.
    pub(crate) fn unusable(sentence: impl Into<String>) -> Self {
        Self::new(UNUSABLE, sentence)
    }

    /// A data directory cannot be used, or a cluster: exit code 3.
    pub(crate) fn of_directory(sentence: impl Into<String>) -> Self {
        Self::new(DIRECTORY, sentence)
    }

    /// There is nothing of what was looked for: exit code 4.
    pub(crate) fn nothing_there(sentence: impl Into<String>) -> Self {
        Self::new(NOTHING_THERE, sentence)
    }

    /// The server refused: exit code 5. The sentence is the server's.
    pub(crate) fn refused(sentence: impl Into<String>) -> Self {
        Self::new(REFUSED, sentence)
    }

    /// The exit code as a number.
    pub(crate) const fn code(&self) -> u8 {
        self.code
    }

    /// The exit code of the process.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}
