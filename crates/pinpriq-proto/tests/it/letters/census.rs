//! Checks that the generators leave nothing out.
//!
//! Each list below is a match, so a new variant does not compile until it is in the list. Then its
//! generator must produce it.

use std::collections::BTreeSet;
use std::fmt::Debug;

use pinpriq_proto::command::{
    Amendment, Assign, Command, Deed, Delay, HeldBy, QueueCommand, Share, Sides, Step, TakeMode,
    TimeToLive, Wait,
};
use pinpriq_proto::export::Import;
use pinpriq_proto::fanout::{Deadline, MemberCommand};
use pinpriq_proto::looking::Reason;
use pinpriq_proto::reply::{Outcome, Output, RefusalKind, Reply};
use pinpriq_proto::schedule::{ScheduleCommand, When};
use pinpriq_proto::settings::Value;
use pinpriq_proto::task::{State, StateKind, TaskId};
use pinpriq_proto::time::Span;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::letters::strategies;

/// A census of a type: all its variants, and the variant of a value.
macro_rules! census {
    ($kind:ident of $type:ty: $($pattern:pat),+ $(,)?) => {
        fn $kind() -> (&'static [&'static str], fn(&$type) -> &'static str) {
            (&[$(stringify!($pattern)),+], |value| match value {
                $($pattern => stringify!($pattern)),+
            })
        }
    };
}

census!(commands of Command<'static>:
    Command::Put(_),
    Command::PutInLine { .. },
    Command::PutBuried { .. },
    Command::PutNumbered(_),
    Command::Reserve(_),
    Command::Head(_),
    Command::Share(Share::Look { .. }),
    Command::Share(Share::Wait { .. }),
    Command::Share(Share::Pop(_)),
    Command::Share(Share::Permit { .. }),
    Command::Share(Share::Next),
    Command::Numbered { deed: Deed::Read, .. },
    Command::Numbered { deed: Deed::Take, .. },
    Command::Numbered { deed: Deed::Delete, .. },
    Command::Numbered { deed: Deed::Release { .. }, .. },
    Command::Numbered { deed: Deed::Bury { .. }, .. },
    Command::Numbered { deed: Deed::Touch, .. },
    Command::Numbered { deed: Deed::Kick, .. },
    Command::Kick { .. },
    Command::Foremost { .. },
    Command::Tubes(_),
    Command::LetGo,
    Command::Take(_),
    Command::TakeDone { .. },
    Command::Peek(_),
    Command::Get { .. },
    Command::Explain { .. },
    Command::Scan(_),
    Command::Leases(_),
    Command::Export(_),
    Command::Import(Import::Queue { .. }),
    Command::Import(Import::Task { .. }),
    Command::Import(Import::Window(_)),
    Command::Import(Import::Schedule(_)),
    Command::Ack(_),
    Command::AckAll { .. },
    Command::Release(_),
    Command::Bury { .. },
    Command::Touch { .. },
    Command::Fail(_),
    Command::Move { .. },
    Command::Redrive { .. },
    Command::Dig(_),
    Command::Plow { .. },
    Command::Kill { .. },
    Command::Switch { .. },
    Command::Snatch(_),
    Command::Restart(_),
    Command::Update(_),
    Command::Await { .. },
    Command::Subscribe { .. },
    Command::Unsubscribe { .. },
    Command::Credit(_),
    Command::PutBack(_),
    Command::GiveBack(_),
    Command::Queue(QueueCommand::Create { .. }),
    Command::Queue(QueueCommand::Set { .. }),
    Command::Queue(QueueCommand::Show(_)),
    Command::Queue(QueueCommand::List { .. }),
    Command::Queue(QueueCommand::Truncate(_)),
    Command::Queue(QueueCommand::Drop(_)),
    Command::Queue(QueueCommand::Pause { .. }),
    Command::Queue(QueueCommand::Hold { .. }),
    Command::Queue(QueueCommand::Resume { .. }),
    Command::Queue(QueueCommand::Stats(None)),
    Command::Queue(QueueCommand::Stats(Some(_))),
    Command::Publish(_),
    Command::Member(MemberCommand::Join { .. }),
    Command::Member(MemberCommand::Beat { .. }),
    Command::Member(MemberCommand::LeaveTopic { .. }),
    Command::Member(MemberCommand::Leave(_)),
    Command::Member(MemberCommand::List(_)),
    Command::Schedule(ScheduleCommand::Set(_)),
    Command::Schedule(ScheduleCommand::Show(_)),
    Command::Schedule(ScheduleCommand::List { .. }),
    Command::Schedule(ScheduleCommand::Pause(_)),
    Command::Schedule(ScheduleCommand::Resume(_)),
    Command::Schedule(ScheduleCommand::Drop(_)),
    Command::Schedule(ScheduleCommand::Fire(_)),
    Command::Transaction(_),
    Command::Within { .. },
);

census!(steps of Step<'static>: Step::Command(_), Step::Nothing, Step::Bad(_));

census!(outputs of Output: Output::Reply { .. }, Output::Delivery { .. });

census!(replies of Reply:
    Reply::Done,
    Reply::DeadlineSoon,
    Reply::Tubes(_),
    Reply::Put(_),
    Reply::PutOutcome(..),
    Reply::PutUnique(_),
    Reply::Shown(_),
    Reply::Tasks { .. },
    Reply::Task(None),
    Reply::Task(Some(_)),
    Reply::Explained(_),
    Reply::Scanned { .. },
    Reply::Leases { .. },
    Reply::Exported(_),
    Reply::State(None),
    Reply::State(Some(_)),
    Reply::Deadline(None),
    Reply::Deadline(Some(_)),
    Reply::Count(_),
    Reply::Outcome(_, None),
    Reply::Outcome(_, Some(_)),
    Reply::Acks(_),
    Reply::Settings { .. },
    Reply::Names { .. },
    Reply::Figures(_),
    Reply::Joined(_),
    Reply::Members(_),
    Reply::Schedule(_),
    Reply::Transaction(_),
    Reply::Refused(_),
);

census!(outcomes of Outcome:
    Outcome::Acked,
    Outcome::Buried,
    Outcome::Expired,
    Outcome::Killed,
    Outcome::Dead,
    Outcome::Evicted,
    Outcome::Moved,
    Outcome::Timeout,
);

census!(refusals of RefusalKind:
    RefusalKind::BadArgument,
    RefusalKind::NoQueue,
    RefusalKind::NotFound,
    RefusalKind::Exists,
    RefusalKind::IdRequired,
    RefusalKind::NotTaken,
    RefusalKind::NotOwner,
    RefusalKind::Stale,
    RefusalKind::Taken,
    RefusalKind::WrongState,
    RefusalKind::TooLarge,
    RefusalKind::Full,
    RefusalKind::Paused,
    RefusalKind::Busy,
    RefusalKind::Store,
    RefusalKind::Closing,
    RefusalKind::CrossShard,
    RefusalKind::ExecAbort,
    RefusalKind::TryAgain,
    RefusalKind::ClusterDown,
    RefusalKind::Unknown,
    RefusalKind::NoPerm,
);

census!(kinds of StateKind:
    StateKind::Ready,
    StateKind::Taken,
    StateKind::Waiting,
    StateKind::Buried,
    StateKind::Zombie,
    StateKind::Done,
);

census!(states of State:
    State::Ready,
    State::Taken(_),
    State::Waiting { .. },
    State::Buried(_),
    State::Zombie { .. },
    State::Done,
);

census!(reasons of Reason:
    Reason::Delayed { .. },
    Reason::Taken { .. },
    Reason::Buried { .. },
    Reason::Expired,
    Reason::Paused,
    Reason::Limit { .. },
    Reason::Rate { .. },
    Reason::NoPriority,
    Reason::Behind { .. },
    Reason::NoConsumer,
    Reason::Next,
);

census!(task_ids of TaskId: TaskId::Number(_), TaskId::Uuid(_), TaskId::Given(_));
census!(proofs of HeldBy<'static>: HeldBy::Receipt(_), HeldBy::Id(_));
census!(sides of Sides: Sides::Input, Sides::Output, Sides::Both);
census!(deadlines of Deadline: Deadline::OfLane, Deadline::At(_), Deadline::After(_));
census!(waits of Wait: Wait::No, Wait::For(_), Wait::Forever);

census!(values of Value<'static>:
    Value::None,
    Value::Number(_),
    Value::Span(_),
    Value::Word(_),
    Value::Bytes(_),
    Value::Rate(_),
);

census!(whens of When<'static>:
    When::Every { at: None, .. },
    When::Every { at: Some(_), .. },
    When::Cron { zone: None, .. },
    When::Cron { zone: Some(_), .. },
);

census!(modes of TakeMode:
    TakeMode::Lease { ttr: None },
    TakeMode::Lease { ttr: Some(_) },
    TakeMode::Unheld { ttr: None, .. },
    TakeMode::Unheld { ttr: Some(_), .. },
    TakeMode::Pop,
);

census!(delays of Delay:
    Delay::For(Span::ZERO),
    Delay::For(_),
    Delay::Until(_),
);

census!(times_to_live of TimeToLive:
    TimeToLive::Default,
    TimeToLive::For(_),
    TimeToLive::Endless,
    TimeToLive::Instant,
);

census!(amendments of Amendment<'static>:
    Amendment { priority: Assign::Keep, .. },
    Amendment { priority: Assign::To(None), .. },
    Amendment { priority: Assign::To(Some(_)), .. },
);

/// The number of generated values: several dozen for each variant of the type with the most
/// variants.
const DRAWS: usize = 4_000;

fn makes_all<T: Debug>(
    strategy: impl Strategy<Value = T>,
    (all, kind): (&'static [&'static str], fn(&T) -> &'static str),
) {
    let mut runner = TestRunner::deterministic();
    let mut draw = || strategy.new_tree(&mut runner).unwrap().current();
    let seen: BTreeSet<&str> = (0..DRAWS).map(|_| kind(&draw())).collect();
    let missing: Vec<&&str> = all.iter().filter(|kind| !seen.contains(**kind)).collect();
    assert!(missing.is_empty(), "never made: {missing:?}");
}

#[test]
fn commands_of_every_kind_are_made() {
    makes_all(strategies::command(), commands());
}

#[test]
fn outputs_of_every_kind_are_made() {
    makes_all(strategies::output(), outputs());
    makes_all(strategies::reply(), replies());
}

#[test]
fn parts_of_every_kind_are_made() {
    makes_all(strategies::outcome(), outcomes());
    makes_all(strategies::refusal_kind(), refusals());
    makes_all(strategies::step(), steps());
    makes_all(strategies::kind(), kinds());
    makes_all(strategies::state(), states());
    makes_all(strategies::reason(), reasons());
    makes_all(strategies::id(), task_ids());
    makes_all(strategies::value(), values());
    makes_all(strategies::held_by(), proofs());
    makes_all(strategies::sides(), sides());
    makes_all(strategies::deadline(), deadlines());
    makes_all(strategies::wait(), waits());
    makes_all(strategies::mode(), modes());
    makes_all(strategies::when(), whens());
    makes_all(strategies::delay(), delays());
    makes_all(strategies::time_to_live(), times_to_live());
    makes_all(strategies::amendment(), amendments());
}
