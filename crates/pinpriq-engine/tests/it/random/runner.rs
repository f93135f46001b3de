//! One random run: an engine, a model and a store, kept in step.

use std::cell::RefCell;

use pinpriq_engine::change::Header;
use pinpriq_engine::command::{Command, Peek, QueueCommand, Selection};
use pinpriq_engine::limits::Limits;
use pinpriq_engine::reply::{Outcome, Output, Refusal, Reply};
use pinpriq_engine::settings::Ids;
use pinpriq_engine::stats::Figures;
use pinpriq_engine::task::{ClientId, RequestId, StateKind, TaskId, TaskRecord};
use pinpriq_engine::time::{Span, Timestamp};
use pinpriq_engine::{Applied, Engine};

use super::census::Census;
use super::choices::{Chooser, Memory, PAYLOAD_BYTES_MAX, QUEUES};
use super::dice::Dice;
use super::store::Store;
use crate::model::Model;

/// Nobody, who only looks.
const OBSERVER: ClientId = ClientId(0);
const CLIENTS: usize = 4;

pub(super) struct Runner<'a> {
    engine: Engine,
    model: Model,
    store: Store,
    memory: Memory,
    census: &'a RefCell<Census>,
    limits: Limits,
    incarnation: u64,
    clients: Vec<ClientId>,
    last_client: u64,
    last_request: u64,
    /// Ids that the engine drew, none of which may come again.
    drawn: std::collections::BTreeSet<TaskId>,
    situation: Situation,
}

/// Says where a run was when it failed.
struct Situation {
    origin: String,
    step: usize,
    doing: String,
}

impl Drop for Situation {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}, step {}: {}", self.origin, self.step, self.doing);
        }
    }
}

impl<'a> Runner<'a> {
    pub(super) fn new(setup: u64, origin: String, census: &'a RefCell<Census>) -> Self {
        let mut dice = Dice::new(setup);
        let limits = Limits {
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            waits_per_client_max: dice.pick(&[2, 8]),
            queues_per_client_max: dice.pick(&[2, 8]),
            ..Limits::default()
        };
        let now = Timestamp::from_ms(dice.pick(&[1, 1_700_000_000_000]));
        let mut engine = Engine::new(limits, 3);
        engine.start(now, 1, Header::default());
        Self {
            engine,
            model: Model::new(limits, now),
            store: Store::default(),
            memory: Memory::default(),
            census,
            limits,
            incarnation: 1,
            clients: (1..=CLIENTS as u64).map(ClientId).collect(),
            last_client: CLIENTS as u64,
            last_request: 0,
            drawn: std::collections::BTreeSet::new(),
            situation: Situation { origin, step: 0, doing: String::new() },
        }
    }

    /// Does one thing, which `seed` chooses.
    pub(super) fn step(&mut self, seed: u64) {
        let mut dice = Dice::new(seed);
        self.situation.step += 1;
        let now = self.moment(&mut dice);
        let client = dice.pick(&self.clients);
        match dice.below(200) {
            0..=13 => self.handle_timeout(now),
            14..=17 => self.disconnect(now, client),
            18..=20 => self.end_waits(now, client),
            21..=22 => self.restart(now),
            23..=26 => self.compact(),
            _ => {
                let (model, memory) = (&self.model, &self.memory);
                let command = Chooser { dice: &mut dice, model, memory }.command();
                self.apply(now, client, &command);
            }
        }
        if !self.model.emptied.is_empty() && !dice.once_in(4) {
            self.handle_timeout(now);
        }
        if dice.once_in(2) {
            self.store.place(&mut self.engine);
        }
        self.compare_state(dice.once_in(4));
    }

    /// Mostly now; else at, just before or well beyond the next deadline.
    fn moment(&self, dice: &mut Dice) -> Timestamp {
        let now = self.model.now;
        let due = self.model.next_due().unwrap_or(now).max(now);
        let later = match dice.below(20) {
            0..=2 => due,
            3 => Timestamp::from_ms(due.ms() - u64::from(due > now)),
            4 => due.after(Span::from_ms(dice.below(12))),
            5 => now.after(Span::from_ms(dice.below(4))),
            _ => now,
        };
        // Far from the end of time, which has tests of its own.
        if later.ms() > 200_000_000_000_000 { now } else { later }
    }

    fn apply(&mut self, now: Timestamp, client: ClientId, command: &Command<'static>) {
        self.situation.doing = format!("at {now} {client:?} {}", brief(command));
        self.last_request += 1;
        let request = RequestId(self.last_request);
        let applied = self.engine.apply(now, client, request, command.clone());
        let said = self.listen();
        let id = self.drawn_id(command, request, &said);
        self.census.borrow_mut().note_command(&self.model, client, command);
        self.model.apply(now, client, request, command, id);
        let answers: Vec<&Reply> = said
            .iter()
            .filter_map(|output| match output {
                Output::Reply { request: own, reply, .. } if *own == request => Some(reply),
                _ => None,
            })
            .collect();
        let expected = match answers.as_slice() {
            [] => Applied::Waits,
            [Reply::Refused(refusal)] => {
                assert!(!refusal.sentence.is_empty(), "a refusal says what was wrong");
                Applied::Refused(refusal.kind)
            }
            [_] => Applied::Answered,
            several => panic!("one request has the answers {several:?}"),
        };
        assert_eq!(applied, expected, "the answer says what became of the command");
        self.compare_outputs(said, false);
    }

    /// The id that cannot be foretold, of a task that was just put.
    fn drawn_id(
        &mut self,
        command: &Command<'_>,
        request: RequestId,
        said: &[Output],
    ) -> Option<TaskId> {
        let Command::Put(put) = command else { return None };
        let ids = self.model.queues.get(put.queue)?.settings.ids;
        if !matches!(ids, Ids::Time64 | Ids::Uuid) {
            return None;
        }
        let told = said.iter().find_map(|output| match output {
            Output::Reply {
                request: own,
                reply: Reply::Put(id) | Reply::PutOutcome(id, _),
                ..
            } if *own == request => Some(id.clone()),
            _ => None,
        });
        let id = told.or_else(|| self.store.id_of(self.model.last_number + 1))?;
        assert!(self.drawn.insert(id.clone()), "the id {id} came twice");
        Some(id)
    }

    /// Everything that the engine has to say, and to store.
    fn listen(&mut self) -> Vec<Output> {
        self.engine.check();
        self.store.collect(&mut self.engine);
        std::iter::from_fn(|| self.engine.poll_output()).collect()
    }

    fn handle_timeout(&mut self, now: Timestamp) {
        self.situation.doing = format!("the timeout at {now}");
        self.engine.handle_timeout(now);
        let said = self.listen();
        self.model.handle_timeout(now);
        self.compare_outputs(said, true);
    }

    fn disconnect(&mut self, now: Timestamp, client: ClientId) {
        self.situation.doing = format!("at {now} {client:?} is gone");
        self.engine.disconnect(now, client);
        let said = self.listen();
        self.model.disconnect(now, client);
        self.last_client += 1;
        self.clients.retain(|known| *known != client);
        self.clients.push(ClientId(self.last_client));
        self.compare_outputs(said, false);
    }

    fn end_waits(&mut self, now: Timestamp, client: ClientId) {
        self.situation.doing = format!("at {now} {client:?} sends no more");
        self.engine.end_waits(now, client);
        let said = self.listen();
        self.model.end_waits(now, client);
        self.compare_outputs(said, false);
    }

    /// The server stops, and another engine goes on from what the store kept.
    fn restart(&mut self, now: Timestamp) {
        self.situation.doing = format!("the server starts again at {now}");
        self.incarnation += 1;
        let limits = self.limits;
        self.engine = self.store.restart(&self.engine, limits, now, self.incarnation);
        self.model.restart_server(now);
        self.memory.popped.clear();
        self.last_client += CLIENTS as u64;
        let first = self.last_client - CLIENTS as u64 + 1;
        self.clients = (first..=self.last_client).map(ClientId).collect();
        self.census.borrow_mut().note_restart();
        let said = self.listen();
        self.compare_outputs(said, false);
    }

    fn compact(&mut self) {
        // Tasks of emptied queues keep their places until they are freed.
        self.handle_timeout(self.model.now);
        "the store compacts".clone_into(&mut self.situation.doing);
        if self.store.compact(&mut self.engine) {
            self.census.borrow_mut().note_compaction();
        }
        self.engine.check();
    }

    /// Drops every queue, and then nothing is left anywhere.
    pub(super) fn clear_away(mut self) {
        let now = self.model.now;
        for client in self.clients.clone() {
            self.disconnect(now, client);
        }
        for queue in self.model.queues.keys().cloned().collect::<Vec<_>>() {
            let drop = Command::Queue(QueueCommand::Drop(Vec::leak(queue)));
            self.apply(now, OBSERVER, &drop);
        }
        self.store.place(&mut self.engine);
        self.handle_timeout(now);
        self.compare_state(true);
        self.store.collect(&mut self.engine);
        self.store.assert_all_given_back();
        assert_eq!(self.engine.poll_timeout(), None, "nothing is due any more");
        self.census.borrow_mut().note_happened(&self.model);
    }

    fn compare_outputs(&mut self, said: Vec<Output>, at_timeout: bool) {
        for output in &said {
            self.census.borrow_mut().note_output(output);
            self.remember(output);
        }
        let expected = std::mem::take(&mut self.model.outputs);
        let said = self.comparable(said, at_timeout);
        let expected = self.comparable(expected, at_timeout);
        assert_eq!(said, expected, "the engine says what the model says");
    }

    /// What can differ without being wrong is made equal.
    fn comparable(&self, mut outputs: Vec<Output>, at_timeout: bool) -> Vec<Output> {
        for output in &mut outputs {
            let Output::Reply { reply, .. } = output else { continue };
            match reply {
                Reply::Refused(refusal) => refusal.sentence.clear(),
                Reply::Acks(answers) => {
                    for answer in answers {
                        *answer = answer.clone().map_err(|refusal| Refusal::new(refusal.kind, ""));
                    }
                }
                Reply::Figures(figures) => self.make_comparable(figures),
                _ => {}
            }
        }
        if at_timeout {
            // In which order the tasks of an emptied queue are freed is nobody's business.
            let is_killed = |output: &Output| {
                let Output::Reply { reply, .. } = output else { return false };
                matches!(
                    reply,
                    Reply::Outcome(Outcome::Killed, _) | Reply::PutOutcome(_, Outcome::Killed)
                )
            };
            let (mut killed, others): (Vec<Output>, Vec<Output>) =
                outputs.into_iter().partition(is_killed);
            killed.sort_by_key(|output| format!("{output:?}"));
            outputs = others;
            outputs.append(&mut killed);
        }
        outputs
    }

    fn make_comparable(&self, figures: &mut Figures) {
        figures.counters.moves.sort_unstable();
        // A task at the tail is older than it looks, and either age would do.
        if QUEUES.iter().any(|queue| self.model.has_tail(queue)) {
            figures.oldest_ready = None;
        }
    }

    fn remember(&mut self, output: &Output) {
        let (tasks, popped) = match output {
            Output::Reply { reply: Reply::Tasks { tasks, popped }, .. }
            | Output::Delivery { tasks, popped, .. } => (tasks, *popped),
            Output::Reply { .. } => return,
        };
        for task in tasks {
            if let Some(receipt) = task.receipt() {
                self.memory.receipts.push((task.queue.to_vec(), receipt));
            }
        }
        if popped && !tasks.is_empty() {
            self.memory.popped.push(tasks.clone());
        }
        let (receipts, popped) = (&mut self.memory.receipts, &mut self.memory.popped);
        receipts.drain(..receipts.len().saturating_sub(40));
        popped.drain(..popped.len().saturating_sub(12));
    }

    /// Compares the tasks, and every so often all the figures.
    fn compare_state(&mut self, thoroughly: bool) {
        let mut records: Vec<TaskRecord> = Vec::new();
        for queue in QUEUES.iter().copied().chain([b"not there".as_slice()]) {
            if !self.model.queues.contains_key(queue) {
                continue;
            }
            for kind in StateKind::ALL {
                let (selection, state) = (Selection::DEFAULT, Some(kind));
                let peek = Peek { queue, selection, state, count: u32::MAX };
                let reply = self.observe(Command::Peek(peek));
                let Reply::Shown(tasks) = reply else { panic!("no tasks but {reply:?}") };
                records.extend(tasks);
            }
        }
        records.sort_by_key(|task| task.number);
        let mut expected = self.model.tasks.clone();
        expected.sort_by_key(|task| task.number);
        assert_eq!(records, expected, "the engine holds what the model holds");
        let header = self.engine.header();
        let counted = (header.incarnation, header.now, header.last_number);
        assert_eq!(counted, (self.incarnation, self.model.now, self.model.last_number));
        if self.model.emptied.is_empty() {
            let due = self.model.next_due();
            assert_eq!(self.engine.poll_timeout(), due, "the next moment is known");
        }
        if thoroughly {
            self.compare_figures();
        }
    }

    fn compare_figures(&mut self) {
        let now = self.model.now;
        self.situation.doing.push_str(", and then the figures");
        for queue in QUEUES {
            let stats = Command::Queue(QueueCommand::Stats(Some(queue)));
            let show = Command::Queue(QueueCommand::Show(queue));
            for command in [stats, show] {
                self.apply_quietly(now, &command);
            }
        }
        self.apply_quietly(now, &Command::Queue(QueueCommand::Stats(None)));
        let list = QueueCommand::List { prefix: b"", after: None, count: usize::MAX };
        self.apply_quietly(now, &Command::Queue(list));
    }

    fn apply_quietly(&mut self, now: Timestamp, command: &Command<'static>) {
        let request = RequestId(0);
        self.model.apply(now, OBSERVER, request, command, None);
        self.engine.apply(now, OBSERVER, request, command.clone());
        let said = self.listen();
        self.compare_outputs(said, false);
    }

    /// The engine's reply to a question.
    fn observe(&mut self, command: Command<'_>) -> Reply {
        self.engine.apply(self.model.now, OBSERVER, RequestId(0), command);
        match self.engine.poll_output() {
            Some(Output::Reply { reply, .. }) => reply,
            other => panic!("no reply but {other:?}"),
        }
    }
}

/// A command without its large payloads.
fn brief(command: &Command<'_>) -> String {
    let mut text = format!("{command:?}");
    if text.len() > 2_000 {
        text.truncate(2_000);
        text.push('…');
    }
    text
}
