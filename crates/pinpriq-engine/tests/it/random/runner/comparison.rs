//! Compares the outputs and the tasks of the engine with those of the model.

use std::fmt::Debug;

use pinpriq_proto::command::{BatchCommand, Command, Peek, QueueCommand, QueueName, Selection};
use pinpriq_proto::export::Exported;
use pinpriq_proto::fanout::MemberCommand;
use pinpriq_proto::names::NamesPage;
use pinpriq_proto::reply::{Outcome, Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::schedule::ScheduleCommand;
use pinpriq_proto::stats::{Figures, Times};
use pinpriq_proto::task::{RequestId, StateKind, TaskId, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{PutUnique, WindowRecord};
use pinpriq_testing::model::{Home, is_placeholder, number_of};

use super::{OBSERVER, Runner};
use crate::random::choices::{BATCHES, MEMBERS, QUEUES, SCHEDULES, TOPICS};

/// How many turns the engine takes at most to free what it follows no longer.
const FREEING_TURNS_MAX: usize = 4;

impl Runner<'_> {
    pub(super) fn compare_outputs(
        &mut self,
        said: Vec<Output>,
        asked: Option<RequestId>,
        at_timeout: bool,
    ) {
        for output in &said {
            self.census.lock().unwrap().note_output(output, asked);
            self.remember(output);
        }
        let mut expected = std::mem::take(&mut self.model.outputs);
        self.learn_ids(&said, &mut expected);
        let said = self.comparable(said, asked, at_timeout);
        let expected = self.comparable(expected, asked, at_timeout);
        assert_same(&said, &expected, "the engine says what the model says");
    }

    /// Supplies the ids that the engine drew for tasks that came and went in one call, so that they
    /// were never written.
    fn learn_ids(&mut self, said: &[Output], expected: &mut [Output]) {
        for (said, known) in said.iter().zip(expected) {
            if let (Output::Reply { reply: said, .. }, Output::Reply { reply: known, .. }) =
                (said, known)
            {
                self.learn_id(said, known);
            }
        }
    }

    fn learn_id(&mut self, said: &Reply, known: &mut Reply) {
        match (said, known) {
            (Reply::Transaction(said), Reply::Transaction(known)) => {
                said.iter().zip(known).for_each(|(said, known)| self.learn_id(said, known));
            }
            (Reply::WithResult { reply: said, .. }, Reply::WithResult { reply: known, .. }) => {
                self.learn_id(said, known);
            }
            (
                Reply::PutUnique(PutUnique { id: drawn, .. }),
                Reply::PutUnique(PutUnique { id, .. }),
            )
            | (Reply::Put(drawn), Reply::Put(id))
            | (Reply::PutOutcome(drawn, _), Reply::PutOutcome(id, _)) => {
                if let Some(number) = number_of(id) {
                    assert!(self.model.bind(number, drawn), "the id {drawn} came twice");
                    *id = drawn.clone();
                }
            }
            _ => {}
        }
    }

    /// Makes equal what may differ without being wrong.
    fn comparable(
        &self,
        mut outputs: Vec<Output>,
        asked: Option<RequestId>,
        at_timeout: bool,
    ) -> Vec<Output> {
        for output in &mut outputs {
            let Output::Reply { reply, .. } = output else { continue };
            match reply {
                // The position and the kind of the step that was refused count.
                Reply::Refused(refusal) if refusal.kind == RefusalKind::ExecAbort => {
                    let words: Vec<&str> = refusal.sentence.split(' ').take(2).collect();
                    refusal.sentence = words.join(" ");
                }
                Reply::Refused(refusal) => refusal.sentence.clear(),
                Reply::Acks(answers) => {
                    for answer in answers {
                        *answer = answer.clone().map_err(|refusal| Refusal::new(refusal.kind, ""));
                    }
                }
                Reply::Figures(figures) => self.make_comparable(figures),
                // Scripts look at what has happened to tubes since the start.
                Reply::Tubes(shown) => {
                    (shown.put, shown.timeouts) = (0, 0);
                    shown.tubes.retain(|tube| tube.exists);
                    for tube in &mut shown.tubes {
                        (tube.came_at, tube.came_after) = (Timestamp::ZERO, 0);
                        (tube.put, tube.deletes) = (0, 0);
                        tube.paused_for = Span::ZERO;
                    }
                    shown.tubes.sort_by(|one, other| one.name.cmp(&other.name));
                }
                Reply::Exported(page) => self.make_ids_comparable(page),
                // No client saw the id of a task that a slot put and that has ended in the same
                // call.
                Reply::Schedule(shown) => {
                    let known = self.model.schedules.values().find(|it| it.name == shown.name);
                    let last = known.and_then(|known| known.course.last_id.as_ref());
                    let last = last.and_then(|last| self.model.resolve(last));
                    if last.is_none() || shown.course.last_id.as_ref().is_some_and(is_placeholder) {
                        shown.course.last_id = last;
                    }
                }
                _ => {}
            }
        }
        // The order in which the tasks of an emptied queue are freed, with which batches may end,
        // and the order in which the waits for a lane end, are not specified.
        let is_anyhow = |output: &Output| {
            let Output::Reply { request, reply, .. } = output else { return false };
            match reply.bare() {
                Reply::Outcome(Outcome::Killed | Outcome::Skipped, _)
                | Reply::PutOutcome(_, Outcome::Killed | Outcome::Skipped)
                | Reply::BatchAwaited(_) => at_timeout,
                Reply::Refused(refusal) => {
                    refusal.kind == RefusalKind::NotFound && Some(*request) != asked
                }
                _ => false,
            }
        };
        let (mut anyhow, mut outputs): (Vec<Output>, Vec<Output>) =
            outputs.into_iter().partition(is_anyhow);
        anyhow.sort_by_key(|output| format!("{output:?}"));
        outputs.append(&mut anyhow);
        outputs
    }

    /// Makes equal the ids that the model cannot know, of tasks that are gone.
    fn make_ids_comparable(&self, page: &mut Exported) {
        for window in &mut page.windows {
            let known = self.model.windows.get(&window.number);
            if known.is_some_and(|known| is_placeholder(&known.id)) {
                window.id = TaskId::Number(0);
            }
        }
        for schedule in &mut page.schedules {
            let known = self.model.schedules.get(&schedule.number);
            let last = known.and_then(|known| known.course.last_id.as_ref());
            if last.is_some_and(is_placeholder) {
                schedule.course.last_id = None;
            }
        }
    }

    fn make_comparable(&self, figures: &mut Figures) {
        figures.counters.moves.sort_unstable();
        // The model does not measure for how long limits hold tasks back. Scripts do.
        if let Some(times) = &mut figures.counters.times {
            times.limited_ms = 0;
            if **times == Times::default() {
                figures.counters.times = None;
            }
        }
        // A task at the tail is older than it looks, and either age is correct.
        if self.model.has_tail() {
            figures.oldest_ready = None;
        }
    }

    /// Compares the tasks, and from time to time all figures.
    pub(super) fn compare_state(&mut self, thoroughly: bool) {
        let mut records: Vec<TaskRecord> = Vec::new();
        let homes = self.model.homes.iter().filter(|(place, _)| !self.model.has_ended(place));
        let there: Vec<Home> = homes.map(|(_, home)| home.clone()).collect();
        for home in &there {
            let member = home.lane.as_ref().map(|lane| &*lane.name.member);
            let queue = QueueName { name: &home.name, member };
            for kind in StateKind::ALL {
                let (selection, state) = (Selection::DEFAULT, Some(kind));
                let peek = Peek { queue, selection, state, count: u32::MAX };
                let reply = self.observe(Command::Peek(peek));
                let Reply::Shown(tasks) = reply else { panic!("no tasks but {reply:?}") };
                records.extend(tasks);
            }
        }
        records.sort_by_key(|task| task.number);
        // A slot may put a task that the command moves at once: then its first record is of the
        // task that it became.
        for TaskRecord { number, id, .. } in &records {
            if self.model.awaits_id(*number) {
                assert!(self.model.bind(*number, id), "the id {id} came twice");
            }
        }
        let live = self.model.tasks().filter(|task| self.model.is_live(task.number));
        let mut expected: Vec<TaskRecord> = live.cloned().collect();
        expected.sort_by_key(|task| task.number);
        assert_same(&records, &expected, "the engine holds what the model holds");
        self.compare_windows();
        assert_eq!(self.engine.bytes(), self.model.bytes(), "the engine counts all bytes");
        let waiting = self.model.waiting_bytes();
        assert_eq!(self.engine.waiting_bytes(), waiting, "the engine counts all who wait");
        let header = self.engine.header();
        let counted = (header.incarnation, header.now, header.last_number);
        assert_eq!(counted, (self.incarnation, self.model.now, self.model.last_number));
        if self.model.has_more_to_do() {
            assert_eq!(self.engine.poll_timeout(), Some(self.model.now), "there is more to do");
        } else {
            self.compare_next_moment();
        }
        if thoroughly {
            self.compare_figures();
        }
    }

    fn compare_next_moment(&mut self) {
        // The engine frees in turns what it follows no longer. The model knows nothing of it, and
        // has nothing to do in such a turn.
        let now = self.model.now;
        for _ in 0..FREEING_TURNS_MAX {
            let is_due = self.model.next_moment().is_some_and(|due| due <= now);
            if is_due || self.next_moment_fits() || self.engine.poll_timeout() != Some(now) {
                break;
            }
            self.handle_timeout(now);
        }
        let (due, told) = (self.model.next_moment(), self.engine.poll_timeout());
        assert!(self.next_moment_fits(), "next is {due:?}, and told is {told:?}");
    }

    /// Whether the engine says the next moment that the model says, or an earlier one that may be.
    fn next_moment_fits(&self) -> bool {
        let (due, told) = (self.model.next_moment(), self.engine.poll_timeout());
        // A member may be checked at the moment when its lease would have ended without later signs
        // of life, and a queue may get a token after its waiter has gone.
        let put_off = self.model.members.values().flat_map(|member| &member.put_off);
        let may_be = told.is_some_and(|told| {
            let is_rated = self.model.homes.values().any(Home::is_rated);
            told >= self.model.now && (is_rated || put_off.into_iter().any(|it| *it == told))
        });
        let is_early = due.is_none() || told < due;
        told == due || (may_be && is_early)
    }

    /// Compares the windows that are kept. An id that the model cannot know is not compared.
    fn compare_windows(&self) {
        let kept = self.store.details::<WindowRecord>();
        let mut expected = self.model.windows.clone();
        for (number, window) in &mut expected {
            if let Some(kept) = kept.get(number).filter(|_| is_placeholder(&window.id)) {
                window.id = kept.id.clone();
            }
        }
        assert_same(&kept, &expected, "the store keeps the windows that there are");
        let kept = self.store.details();
        assert_same(&kept, &self.model.own_shares, "the store keeps the rules of shares");
        let expected = self.model.named_limits.iter();
        let expected = expected.map(|(number, limit)| (*number, limit.record.clone())).collect();
        assert_same(&self.store.details(), &expected, "the store keeps the limits that there are");
        let expected = self.model.batches.iter();
        let expected = expected.map(|(number, batch)| (*number, batch.record.clone())).collect();
        assert_same(&self.store.details(), &expected, "the store keeps the batches that there are");
    }

    fn compare_figures(&mut self) {
        let now = self.model.now;
        self.situation.doing.push_str(", and then the figures");
        let mut places: Vec<QueueName<'static>> = QUEUES.into_iter().map(Into::into).collect();
        for (topic, member) in TOPICS.into_iter().flat_map(|topic| MEMBERS.map(|m| (topic, m))) {
            let lane = QueueName { name: topic, member: Some(member) };
            if self.model.place_of(lane).is_ok() {
                places.push(lane);
            }
        }
        for queue in places {
            let stats = Command::Queue(QueueCommand::Stats(Some(queue)));
            let show = Command::Queue(QueueCommand::Show(queue));
            for command in [stats, show] {
                self.apply_quietly(now, &command);
            }
        }
        for topic in TOPICS {
            self.apply_quietly(now, &Command::Member(MemberCommand::List(topic)));
        }
        self.apply_quietly(now, &Command::Queue(QueueCommand::Stats(None)));
        for name in SCHEDULES {
            self.apply_quietly(now, &Command::Schedule(ScheduleCommand::Show(name)));
        }
        for name in BATCHES {
            self.apply_quietly(now, &Command::Batch(BatchCommand::Show(name)));
        }
        let list = NamesPage { prefix: b"", count: usize::MAX, after: None };
        self.apply_quietly(now, &Command::Queue(QueueCommand::List(list)));
    }

    fn apply_quietly(&mut self, now: Timestamp, command: &Command<'static>) {
        let request = RequestId(0);
        self.model.apply(now, OBSERVER, request, command);
        self.engine.apply(now, OBSERVER, request, command);
        let said = std::iter::from_fn(|| self.engine.poll_output()).collect();
        self.compare_outputs(said, Some(request), false);
    }

    /// Returns the engine's reply to a command that changes nothing.
    fn observe(&mut self, command: Command<'_>) -> Reply {
        self.engine.apply(self.model.now, OBSERVER, RequestId(0), &command);
        match self.engine.poll_output() {
            Some(Output::Reply { reply, .. }) => reply,
            other => panic!("no reply but {other:?}"),
        }
    }
}

/// Like `assert_eq!`, but shows only what is around the first difference: with large payloads the
/// whole is many megabytes, and a failure is repeated for each attempt to make it smaller.
fn assert_same<T: PartialEq + Debug>(said: &T, expected: &T, what: &str) {
    if said == expected {
        return;
    }
    let (said, expected) = (format!("{said:?}"), format!("{expected:?}"));
    let same = said.chars().zip(expected.chars()).take_while(|(left, right)| left == right).count();
    let around = |text: &str| text.chars().skip(same.saturating_sub(600)).take(1_500).collect();
    let (said, expected): (String, String) = (around(&said), around(&expected));
    panic!("{what}. From character {same} on they differ.\n  said: …{said}…\n model: …{expected}…");
}
