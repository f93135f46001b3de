//! What a running engine shows of its tasks, asked as a client would.

use pinpriq_proto::command::{Command, Peek, QueueName, Selection};
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::task::{ClientId, RequestId, StateKind, TaskRecord};
use pinpriq_store::Durable;

use super::written::{MEMBERS, QUEUES, TOPICS};

/// Returns every task in the queues and lanes of the journals.
pub(super) fn tasks(durable: &mut Durable) -> Vec<TaskRecord> {
    let queues = QUEUES.into_iter().map(QueueName::from);
    let lanes = TOPICS.into_iter().flat_map(|name| {
        MEMBERS.into_iter().map(move |member| QueueName { name, member: Some(member) })
    });
    let mut tasks = Vec::new();
    for queue in queues.chain(lanes) {
        for state in StateKind::ALL {
            tasks.extend(of(durable, queue, state));
        }
    }
    tasks
}

fn of(durable: &mut Durable, queue: QueueName<'_>, state: StateKind) -> Vec<TaskRecord> {
    let (selection, state) = (Selection::DEFAULT, Some(state));
    let peek = Peek { queue, selection, state, count: u32::MAX };
    durable.apply(durable.now(), ClientId(99), RequestId(1), &Command::Peek(peek));
    let mut shown = Vec::new();
    while let Some((_, output)) = durable.poll_output() {
        match output {
            Output::Reply { reply: Reply::Shown(tasks), .. } => shown.extend(tasks),
            Output::Reply { reply: Reply::Refused(_), .. } => {}
            other => panic!("a look was answered with {other:?}"),
        }
    }
    shown
}
