//! The beanstalkd door: conversations in `testdata/beanstalkd`, whose replies are those of
//! beanstalkd 1.13 itself.

mod conversations;
mod play;

use conversations::{Conversation, files};
use play::play;

#[test]
fn conversations_are_those_of_beanstalkd() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (file, conversations) in files() {
        for conversation in conversations {
            count += 1;
            if let Err(difference) = play(&conversation, 1) {
                let Conversation { line, name, .. } = conversation;
                wrong.push(format!("{file}:{line} == {name}\n{difference}"));
            }
        }
    }
    assert!(count > 400, "only {count} conversations");
    let (few, all) = (wrong.iter().take(20).cloned().collect::<Vec<_>>(), wrong.len());
    assert!(wrong.is_empty(), "{all} of {count} conversations differ:\n{}", few.join("\n"));
}
