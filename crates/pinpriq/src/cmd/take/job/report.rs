//! What it means that a task could not be acknowledged, released or buried.

use crate::resp::Trouble;

/// What a worker asks for when its command has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Deed {
    Ack,
    Release,
    Bury,
    /// To give a task back that has failed.
    Fail,
}

impl Deed {
    const fn done(self) -> &'static str {
        match self {
            Self::Ack => "acknowledged",
            Self::Release => "released",
            Self::Bury => "buried",
            Self::Fail => "given back",
        }
    }
}

/// Returns what became of a task for which the server did not do this. If it was asked `again`, it
/// may have done so the first time.
pub(super) fn told_of(trouble: &Trouble, deed: Deed, again: bool) -> String {
    let done = deed.done();
    match trouble {
        Trouble::Lost(why) => format!("it is not known whether the task was {done}: {why}"),
        Trouble::Refused(sentence) if !is_of_other_hands(sentence) => {
            format!("the task was not {done}: {sentence}")
        }
        Trouble::Refused(sentence) if again => format!(
            "the connection was lost, and the task has been finished or moved since, perhaps by \
             the first report ({sentence})"
        ),
        Trouble::Refused(sentence) => format!(
            "the task was not {done}: the command or somebody else has finished or moved it \
             ({sentence})"
        ),
    }
}

/// Whether a refusal says that this worker no longer holds the task.
fn is_of_other_hands(sentence: &str) -> bool {
    let word = sentence.split(' ').next();
    matches!(word, Some("STALE" | "NOTTAKEN" | "NOTOWNER" | "NOTFOUND" | "WRONGSTATE" | "TAKEN"))
}

#[cfg(test)]
mod tests {
    use super::{Deed, told_of};
    use crate::resp::Trouble;

    #[test]
    fn what_is_known_of_a_task_is_told_and_no_more() {
        let stale = Trouble::Refused("STALE it is gone".to_owned());
        let store = Trouble::Refused("STORE the disk failed".to_owned());
        let lost = Trouble::Lost("a:1 does not answer".to_owned());
        let table = [
            (
                told_of(&stale, Deed::Bury, false),
                "the task was not buried: the command or somebody else has finished or moved it \
                 (STALE it is gone)",
            ),
            (
                told_of(&stale, Deed::Ack, true),
                "the connection was lost, and the task has been finished or moved since, perhaps \
                 by the first report (STALE it is gone)",
            ),
            (
                told_of(&store, Deed::Release, true),
                "the task was not released: STORE the disk failed",
            ),
            (
                told_of(&lost, Deed::Fail, false),
                "it is not known whether the task was given back: a:1 does not answer",
            ),
        ];
        for (told, expected) in table {
            assert_eq!(told, expected);
        }
    }
}
