//! One random run: an engine, a model and a store, kept in step.

mod comparison;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use pinpriq_engine::{Applied, Engine};
use pinpriq_proto::change::Header;
use pinpriq_proto::command::{BatchCommand, Command, QueueCommand};
use pinpriq_proto::fanout::MemberCommand;
use pinpriq_proto::limits::Limits;
use pinpriq_proto::named_limits::LimitCommand;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::schedule::ScheduleCommand;
use pinpriq_proto::task::history::{Clients, Contact};
use pinpriq_proto::task::{
    Bytes, ClientId, Farewell, Receipt, RequestId, State, TaskId, TaskRecord,
};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::PutUnique;
use pinpriq_testing::model::{Model, Place, Survivors};

use super::census::Census;
use super::choices::{Chooser, Issued, MEMBERS, Memory, PAYLOAD_BYTES_MAX, SCHEDULES};
use super::dice::Dice;
use super::store::Store;

/// A client that only reads.
const OBSERVER: ClientId = ClientId(0);
const CLIENTS: usize = 4;
/// No request.
const SILENT: RequestId = RequestId(u64::MAX);

pub(super) struct Runner<'a> {
    engine: Engine,
    model: Model,
    store: Store,
    memory: Memory,
    census: &'a Mutex<Census>,
    limits: Limits,
    incarnation: u64,
    clients: Vec<ClientId>,
    last_client: u64,
    last_request: u64,
    situation: Situation,
}

/// Knows a part of the clients, and the names of some.
#[derive(Debug)]
struct Known;

impl Clients for Known {
    fn contact(&self, client: ClientId) -> Option<Contact> {
        let name = if client.0.is_multiple_of(3) { String::new() } else { format!("c{client:?}") };
        let address = format!("host:{}", client.0);
        let contact =
            Contact { name: name.into_bytes().into(), address: address.into_bytes().into() };
        (!client.0.is_multiple_of(4)).then_some(contact)
    }
}

/// Reports where a run was when it failed.
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
    pub(super) fn new(setup: u64, origin: String, census: &'a Mutex<Census>) -> Self {
        let mut dice = Dice::new(setup);
        let limits = Limits {
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            waits_per_client_max: dice.pick(&[2, 8]),
            queues_per_client_max: dice.pick(&[2, 8]),
            unique_max: dice.pick(&[0, 2, 1_000_000]),
            endings_max: if setup.is_multiple_of(3) { 3 } else { 50 },
            queue_linger: Span::from_ms(dice.pick(&[0, 50, 600_000])),
            lingering_queues_max: dice.pick(&[0, 1, 3, 100]),
            topic_lanes_max: dice.pick(&[2, 10_000, 10_000]),
            batches_max: dice.pick(&[0, 1, 2, 2, 100_000, 100_000]),
            batch_retain: Span::from_ms(dice.pick(&[3, 50, 3_600_000])),
            batch_abandon: Span::from_ms(dice.pick(&[20, 200, 86_400_000])),
            ..Limits::default()
        };
        let now = Timestamp::from_ms(dice.pick(&[1, 1_700_000_000_000]));
        let limits = Limits {
            bytes_max: dice.pick(&[u64::MAX, u64::MAX, u64::MAX, 8_000, 20_000]),
            waiting_bytes_max: dice.pick(&[u64::MAX, u64::MAX, u64::MAX, 6_000]),
            ..limits
        };
        let mut engine = Engine::new(limits, 3);
        engine.set_clients(Arc::new(Known));
        engine.start(now, 1, Header::default());
        let mut model = Model::new(limits);
        model.set_clients(Some(Arc::new(Known)));
        model.start(Survivors::default(), now, 1, 0);
        Self {
            engine,
            model,
            store: Store::default(),
            memory: Memory {
                fans_out: dice.once_in(2),
                takes_turns: dice.once_in(2),
                follows_batches: dice.once_in(2),
                ..Memory::default()
            },
            census,
            limits,
            incarnation: 1,
            clients: (1..=CLIENTS as u64).map(ClientId).collect(),
            last_client: CLIENTS as u64,
            last_request: 0,
            situation: Situation { origin, step: 0, doing: String::new() },
        }
    }

    /// Does one thing, chosen by `seed`.
    pub(super) fn step(&mut self, seed: u64) {
        let mut dice = Dice::new(seed);
        self.situation.step += 1;
        let now = self.moment(&mut dice);
        let client = dice.pick(&self.clients);
        match dice.below(200) {
            0..=13 => self.handle_timeout(now),
            14..=17 => self.disconnect(now, client),
            18..=20 => self.end_waits(now, client),
            21..=22 => {
                // The server may be down for a while.
                let down = Span::from_ms(dice.pick(&[0, 0, 30, 450, 2_000]));
                let is_early = now.ms() < 200_000_000_000_000;
                let grace = dice.pick(&[None, Some(9), Some(5_000)]).map(Span::from_ms);
                let hands_over = grace.is_none() && dice.once_in(2);
                self.restart(if is_early { now.after(down) } else { now }, grace, hands_over);
            }
            23..=26 => self.compact(),
            // What is delivered may be called back by what comes with time.
            27..=76 if let Some(due) = self.recalling_moment() => self.handle_timeout(due),
            _ => {
                let (model, memory) = (&self.model, &self.memory);
                let command = Chooser::new(&mut dice, model, memory).command();
                self.apply(now, client, &command);
            }
        }
        if self.model.has_more_to_do() && !dice.once_in(4) {
            self.handle_timeout(now);
        }
        if dice.once_in(2) {
            self.store.place(&mut self.engine);
        }
        self.compare_state(dice.once_in(4));
        self.census.lock().unwrap().note_schedules(&self.model, false);
        self.census.lock().unwrap().note_turns(&self.model);
    }

    /// Returns now in most cases, or else a moment at, just before or well after the next deadline.
    fn moment(&self, dice: &mut Dice) -> Timestamp {
        let now = self.model.now;
        let due = self.model.next_moment().unwrap_or(now).max(now);
        let later = match dice.below(20) {
            0..=2 => due,
            3 => Timestamp::from_ms(due.ms() - u64::from(due > now)),
            4 => due.after(Span::from_ms(dice.below(12))),
            5 => now.after(Span::from_ms(dice.below(4))),
            _ => now,
        };
        // Far from the end of time, which has its own tests.
        if later.ms() > 200_000_000_000_000 { now } else { later }
    }

    /// The next deadline, if it is near and something can be called back until then.
    fn recalling_moment(&self) -> Option<Timestamp> {
        let is_unstarted = |task: &TaskRecord| match task.progress.state {
            State::Taken(lease) => lease.is_unstarted(),
            _ => false,
        };
        let near = self.model.now.after(Span::from_ms(30));
        let due = self.model.next_moment().filter(|due| *due < near)?;
        self.model.tasks().any(is_unstarted).then(|| due.max(self.model.now))
    }

    fn apply(&mut self, now: Timestamp, client: ClientId, command: &Command<'static>) {
        self.situation.doing = format!("at {now} {client:?} {}", brief(command));
        self.last_request += 1;
        let request = RequestId(self.last_request);
        let applied = self.engine.apply(now, client, request, command);
        self.census.lock().unwrap().note_request(command);
        self.census.lock().unwrap().note_applied(command, applied);
        let said = self.listen();
        let drawn = self.drawn_ids(request, &said);
        self.census.lock().unwrap().note_command(&self.model, client, command);
        self.model.foretell(drawn);
        self.model.apply(now, client, request, command);
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
        self.compare_outputs(said, Some(request), false);
    }

    /// Returns the ids of new tasks. Some of them cannot be predicted.
    fn drawn_ids(&self, request: RequestId, said: &[Output]) -> BTreeMap<u64, TaskId> {
        let last = self.model.last_number;
        let mut ids = self.store.ids_above(last);
        for output in said {
            let (own, reply) = match output {
                Output::Delivery { tasks, .. } => {
                    ids.extend(tasks.iter().map(|task| (task.number, task.id.clone())));
                    continue;
                }
                Output::Reply { request, reply, .. } => (request, reply.bare()),
                Output::Notice(_) => continue,
            };
            match reply {
                Reply::Tasks { tasks, .. } => {
                    ids.extend(tasks.iter().map(|task| (task.number, task.id.clone())));
                }
                Reply::Put(id)
                | Reply::PutOutcome(id, _)
                | Reply::PutUnique(PutUnique { id, new: true, .. })
                    // Slots that were due before may have put the tasks of the first numbers.
                    if *own == request && !ids.values().any(|known| known == id) =>
                {
                    let mut vacant = last + 1;
                    while ids.contains_key(&vacant) {
                        vacant += 1;
                    }
                    ids.insert(vacant, id.clone());
                }
                _ => {}
            }
        }
        ids
    }

    /// Takes everything that the engine has to send and to store.
    fn listen(&mut self) -> Vec<Output> {
        self.engine.check();
        self.store.collect(&mut self.engine);
        std::iter::from_fn(|| self.engine.poll_output()).collect()
    }

    fn handle_timeout(&mut self, now: Timestamp) {
        self.situation.doing = format!("the timeout at {now}");
        self.census.lock().unwrap().note_killed(&self.model);
        self.engine.handle_timeout(now);
        let said = self.listen();
        self.census.lock().unwrap().note_timeout(&self.model, now);
        let drawn = self.drawn_ids(SILENT, &said);
        self.model.foretell(drawn);
        self.model.timeout(now);
        self.compare_outputs(said, None, true);
    }

    fn disconnect(&mut self, now: Timestamp, client: ClientId) {
        self.situation.doing = format!("at {now} {client:?} is gone");
        // Some of the leases that end with the connection were perhaps never sent.
        let leases = self.model.tasks().filter_map(TaskRecord::receipt);
        let unsent: Vec<Receipt> = leases.filter(|it| it.grant.serial % 3 == 0).collect();
        let farewell = match self.last_request % 5 {
            0 => Farewell::ServerStops,
            _ => Farewell::Ended { unsent: &unsent },
        };
        self.engine.disconnect(now, client, farewell);
        let said = self.listen();
        let drawn = self.drawn_ids(SILENT, &said);
        self.model.foretell(drawn);
        self.model.disconnect(now, client, farewell);
        self.last_client += 1;
        self.clients.retain(|known| *known != client);
        self.clients.push(ClientId(self.last_client));
        self.compare_outputs(said, None, false);
    }

    fn end_waits(&mut self, now: Timestamp, client: ClientId) {
        self.situation.doing = format!("at {now} {client:?} sends no more");
        self.engine.end_waits(now, client);
        let said = self.listen();
        let drawn = self.drawn_ids(SILENT, &said);
        self.model.foretell(drawn);
        self.model.end_waits(now, client);
        self.compare_outputs(said, None, false);
    }

    /// Stops the server, and lets another engine continue from what the store kept. With a grace it
    /// takes over from the former one, and otherwise that may have left to it what it has to know.
    fn restart(&mut self, now: Timestamp, grace: Option<Span>, hands_over: bool) {
        self.situation.doing =
            format!("the server starts again at {now} with {grace:?}, in order {hands_over}");
        self.incarnation += 1;
        self.census.lock().unwrap().note_restart(&self.model);
        let limits = self.limits;
        let carried = hands_over.then(|| self.engine.carried());
        let start = (self.incarnation, grace, carried);
        self.engine = self.store.restart(&self.engine, limits, now, start);
        self.engine.set_clients(Arc::new(Known));
        let (kept, last_number) = (self.model.survivors(), self.model.last_number);
        self.model.foretell(self.store.ids_above(last_number));
        self.model.set_grace(grace);
        self.model.set_handed_over(hands_over);
        self.model.start(kept, now, self.incarnation, last_number);
        self.memory.popped.clear();
        self.last_client += CLIENTS as u64;
        let first = self.last_client - CLIENTS as u64 + 1;
        self.clients = (first..=self.last_client).map(ClientId).collect();
        let said = self.listen();
        self.census.lock().unwrap().note_schedules(&self.model, true);
        self.compare_outputs(said, None, false);
        // Slots that are made up are due. Looking at the engine would fire them.
        self.handle_timeout(now);
    }

    fn compact(&mut self) {
        // Tasks of emptied queues keep their places until they are freed.
        self.handle_timeout(self.model.now);
        "the store compacts".clone_into(&mut self.situation.doing);
        if let Some(written) = self.store.compact(&mut self.engine) {
            self.census.lock().unwrap().note_compaction(&self.model, &written);
        }
        self.engine.check();
    }

    /// Drops every queue, and checks that nothing is left anywhere.
    pub(super) fn clear_away(mut self) {
        let now = self.model.now;
        for client in self.clients.clone() {
            self.disconnect(now, client);
        }
        let mut names: BTreeSet<Bytes> = BTreeSet::new();
        names.extend(self.model.windows.values().map(|window| window.queue.clone()));
        names.extend(self.model.homes.keys().filter_map(|place| match place {
            Place::Queue(name) => Some(name.clone()),
            Place::Lane(_) => None,
        }));
        for name in names {
            let drop = Command::Queue(QueueCommand::Drop(Vec::leak(name.to_vec())));
            self.apply(now, OBSERVER, &drop);
        }
        for member in MEMBERS {
            self.apply(now, OBSERVER, &Command::Member(MemberCommand::Leave(member)));
        }
        for name in SCHEDULES {
            let drop = Command::Schedule(ScheduleCommand::Drop(name));
            self.apply(now, OBSERVER, &drop);
        }
        self.store.place(&mut self.engine);
        self.handle_timeout(now);
        // Lanes may use them until they are cleaned.
        let limits = self.model.named_limits.values().map(|limit| limit.record.name.to_vec());
        for name in limits.collect::<Vec<_>>() {
            let drop = Command::Limit(LimitCommand::Drop(Vec::leak(name)));
            self.apply(now, OBSERVER, &drop);
        }
        // None of them has tasks any more.
        let batches = self.model.batches.values().map(|batch| batch.record.name.to_vec());
        for name in batches.collect::<Vec<_>>() {
            let name: &'static [u8] = Vec::leak(name);
            self.apply(now, OBSERVER, &Command::Batch(BatchCommand::Close(name)));
            self.apply(now, OBSERVER, &Command::Batch(BatchCommand::Drop(name)));
        }
        self.compare_state(true);
        self.store.collect(&mut self.engine);
        self.store.assert_all_given_back();
        assert_eq!((self.engine.bytes(), self.engine.waiting_bytes()), (0, 0), "nothing is left");
        assert_eq!(self.engine.poll_timeout(), None, "nothing else is due");
        self.census.lock().unwrap().note_happened(&self.model);
    }

    fn remember(&mut self, output: &Output) {
        let (tasks, popped) = match output {
            Output::Reply { reply: Reply::Tasks { tasks, popped }, .. }
            | Output::Delivery { tasks, popped, .. } => (tasks, *popped),
            Output::Reply { .. } | Output::Notice(_) => return,
        };
        for task in tasks {
            if let Some(receipt) = task.receipt() {
                let member = task.lane.as_ref().map(|lane| lane.member.to_vec());
                self.memory.receipts.push(Issued { queue: task.queue.to_vec(), member, receipt });
            }
        }
        if popped {
            for task in tasks {
                self.model.note_handed_out(task);
            }
        }
        if popped && !tasks.is_empty() {
            self.memory.popped.push(tasks.clone());
        }
        let (receipts, popped) = (&mut self.memory.receipts, &mut self.memory.popped);
        receipts.drain(..receipts.len().saturating_sub(40));
        popped.drain(..popped.len().saturating_sub(12));
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
