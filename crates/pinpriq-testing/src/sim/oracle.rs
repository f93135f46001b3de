//! Everything that is known about what must happen: the model, the book, and what each client must
//! still receive.
//!
//! It sees every command that reaches the engine (as [`Witness`]) and gives the model the same, so
//! that each reply can be compared exactly. It also checks that the door has translated what the
//! client asked.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::model::Model;
use pinpriq_proto::change::Change;
use pinpriq_proto::command::{Command, Delay, Put, QueueCommand, Step};
use pinpriq_proto::fanout::{Deadline, Publish};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Notice, Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::room::Room;
use pinpriq_proto::task::{ClientId, Farewell, Receipt, RequestId, State, TaskRecord};
use pinpriq_proto::time::Timestamp;
use pinpriq_server::calendars::Calendars;
use pinpriq_server::config::DoorName;
use pinpriq_server::parts::{Asked, Witness, at_home};
use pinpriq_store::Durable;

use crate::sim::archive::Chronicle;
use crate::sim::ask::{Answerer, Ask, Text};
use crate::sim::book::Book;
use crate::sim::clock::Clocks;
use crate::sim::jobs::{Call, JobAsk};
use crate::sim::packet::Packet;
use crate::sim::trail::Trail;

/// The request id with which the RESP door marks its own commands.
const SILENT: RequestId = RequestId(4);

/// The batch that an output depends on. Unknown until the end of the turn in which the output was
/// made.
pub(crate) type Needs = Rc<Cell<Option<u64>>>;

/// One request of a client.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Resp(Ask),
    Pinpriq(Packet),
    Beanstalkd(JobAsk),
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) request: Request,
    pub(crate) state: SentState,
    /// When it was carried out.
    pub(crate) at: Timestamp,
    /// What it has changed by itself, which its reply tells too: the acks of a take.
    pub(crate) own: Option<Needs>,
    /// The tubes that were named by clients that have gone since it was sent.
    pub(crate) parted: BTreeSet<Text>,
}

/// The state of a request.
#[derive(Debug)]
pub(crate) enum SentState {
    /// It has not been carried out.
    Waiting,
    /// It has been carried out, and has no reply yet.
    Applied,
    /// This is the reply that it must receive.
    Replied(Reply, Needs),
}

/// Tasks that a client must receive in one piece.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) tasks: Vec<TaskRecord>,
    pub(crate) popped: bool,
    /// Whether it is a reply to a request rather than a delivery.
    pub(crate) is_reply: bool,
    pub(crate) needs: Needs,
    /// The delivery that was called back, if that is what the client hears.
    pub(crate) recalled: Option<Notice>,
}

/// What one client must still receive.
#[derive(Debug)]
pub(crate) struct Expecting {
    pub(crate) door: DoorName,
    pub(crate) sent: VecDeque<Sent>,
    pub(crate) frames: VecDeque<Frame>,
    /// The tubes that it has ever used or watched, apart from the default.
    pub(crate) tubes: BTreeSet<Text>,
    /// Credits that it has asked for, and those that reached the engine.
    pub(crate) credits_asked: u64,
    pub(crate) credits_granted: u64,
    /// Leases that were released because the client never received them.
    released: Vec<Receipt>,
    /// The numbers of popped tasks that were put back.
    put_back: Vec<u64>,
    /// Leases that have failed with the connection.
    failed: Vec<Receipt>,
    /// Whether there are several shards.
    has_shards: bool,
    /// Whether it has asked for a subscription, which determines the shard that its credits are
    /// for.
    has_subscribed: bool,
    /// Whether it has quit at the beanstalkd door, where nothing is answered after that.
    has_quit: bool,
}

impl Expecting {
    /// Notes a request that has reached the engine. Returns whether nothing is said to it.
    fn note_asked(&mut self, command: &Command<'_>) -> bool {
        assert!(!self.has_quit, "a client has quit and asks for {command:?}");
        self.has_subscribed |= matches!(command, Command::Subscribe { .. });
        self.has_quit = matches!(command, Command::LetGo);
        if self.has_quit {
            self.sent.retain(|sent| !sent.is_quit());
        }
        self.has_quit
    }
}

/// What must happen; see the module documentation.
pub(crate) struct Oracle {
    pub(crate) model: Model,
    pub(crate) book: Book,
    /// All commits, if there is an archive.
    pub(crate) chronicle: Option<Chronicle>,
    pub(crate) clients: BTreeMap<ClientId, Expecting>,
    /// The number of shards. The model is that of one of them.
    pub(crate) shards: usize,
    /// Whether unsent pops of the pinpriq door are put back.
    pub(crate) requeues: bool,
    /// Whether the store has failed since the last start.
    pub(crate) failed: bool,
    /// Whether a record could not be read back since the last start.
    pub(crate) unreadable: Arc<AtomicBool>,
    /// The time of the wall clock at the last command of the engine.
    wall: Timestamp,
    /// Whether the server was asked to stop.
    pub(crate) is_stopping: bool,
    /// The number of commands that the engine has received.
    pub(crate) commands: u64,
    pub(crate) trail: Trail,
    tag: Needs,
    /// Popped tasks that were not sent and have to be put back, with their clients, which are gone.
    returning: Vec<(ClientId, u64)>,
    /// The same as `tag` for takes, each with the numbers of the tasks that it hands over.
    takes: Vec<(Needs, Vec<u64>)>,
}

impl Oracle {
    pub(crate) fn new(limits: Limits, trail: Trail) -> Self {
        Self {
            model: {
                let mut model = Model::new(limits);
                model.set_calendars(Arc::new(Calendars::default()));
                model
            },
            book: Book::default(),
            chronicle: None,
            clients: BTreeMap::new(),
            shards: 1,
            requeues: true,
            failed: false,
            unreadable: Arc::default(),
            wall: Timestamp::ZERO,
            is_stopping: false,
            commands: 0,
            trail,
            tag: Needs::default(),
            takes: Vec::new(),
            returning: Vec::new(),
        }
    }

    pub(crate) fn connect(&mut self, client: ClientId, door: DoorName) {
        let expecting = Expecting {
            door,
            sent: VecDeque::new(),
            frames: VecDeque::new(),
            tubes: BTreeSet::new(),
            credits_asked: 0,
            credits_granted: 0,
            released: Vec::new(),
            put_back: Vec::new(),
            failed: Vec::new(),
            has_shards: self.shards > 1,
            has_subscribed: false,
            has_quit: false,
        };
        self.clients.insert(client, expecting);
    }

    /// Notes whether the store has failed because a record could not be read back.
    pub(crate) fn note_reads(&mut self) {
        self.failed |= self.unreadable.load(Ordering::Relaxed);
    }

    /// Outputs made until now depend on the changes made until now.
    pub(crate) fn tag(&mut self) {
        if Rc::strong_count(&self.tag) > 1 {
            self.tag.set(Some(self.book.awaited));
            self.tag = Needs::default();
        }
        for (needs, numbers) in self.takes.drain(..) {
            needs.set(Some(self.book.needs_of_take(&numbers)));
        }
    }

    /// What these tasks depend on when they are handed over: all earlier changes if they were
    /// popped, otherwise only what concerns takes.
    fn needs_of(&mut self, tasks: &[TaskRecord], popped: bool) -> Needs {
        if popped {
            return self.tag.clone();
        }
        let needs = Needs::default();
        self.takes.push((needs.clone(), tasks.iter().map(|task| task.number).collect()));
        needs
    }

    /// Learns the ids that the server made from the changes that it gives the store.
    pub(crate) fn learn_ids(&mut self, changes: &[Change]) {
        for change in changes {
            let (number, id) = match change {
                Change::Task(task) => (task.number, &task.id),
                _ => continue,
            };
            if self.model.awaits_id(number) {
                assert!(self.model.bind(number, id), "the id {id} came twice");
            }
        }
    }

    /// Learns the ids that the server made in its start, from what the store keeps now.
    pub(crate) fn learn_kept_ids(&mut self) {
        for (number, (task, _)) in &self.book.current.tasks {
            if self.model.awaits_id(*number) {
                assert!(self.model.bind(*number, &task.id), "the id {} came twice", task.id);
            }
        }
    }

    /// Notes that a client received an output.
    pub(crate) fn note_told(&mut self, needs: &Needs) {
        let Some(position) = needs.get() else {
            panic!("an answer left before the turn ended in which it came about")
        };
        self.book.told = self.book.told.max(position);
    }

    /// Whether any client that may still be there has ever used or watched this tube.
    pub(crate) fn has_named(&self, tube: &[u8]) -> bool {
        self.clients.values().any(|client| client.tubes.contains(tube))
    }

    /// The same, or whether any had when this client asked for what it waits for.
    fn was_named(&self, client: ClientId, tube: &[u8]) -> bool {
        let asking = self.clients.get(&client);
        let mut sent = asking.into_iter().flat_map(|asking| &asking.sent);
        self.has_named(tube) || sent.any(|sent| sent.parted.contains(tube))
    }

    /// Removes a client that is gone for the server. What it never received must have been released
    /// or put back.
    pub(crate) fn forget(&mut self, client: ClientId) {
        let Some(gone) = self.clients.remove(&client) else { return };
        for sent in self.clients.values_mut().flat_map(|other| &mut other.sent) {
            sent.parted.extend(gone.tubes.iter().cloned());
        }
        if self.failed {
            return;
        }
        let (popped, leased) = gone.unsent();
        if gone.door == DoorName::Resp || self.requeues {
            let mut lacking = popped;
            gone.put_back.iter().for_each(|number| take_out(&mut lacking, *number));
            self.returning.extend(lacking.into_iter().map(|number| (client, number)));
        }
        // What is under way between two shards may count as sent.
        let blamed = leased.iter().find(|receipt| gone.failed.contains(receipt));
        assert!(blamed.is_none() || self.shards > 1, "{blamed:?} was not sent and has failed");
        let mut released = gone.released;
        released.sort_unstable();
        let mut leased: Vec<Receipt> = leased.into_iter().collect();
        leased.sort_unstable();
        assert_eq!(released, leased, "the leases that were not sent went back");
    }

    fn command(
        &mut self,
        now: Timestamp,
        durable: &Durable,
        (engines, request): (ClientId, RequestId),
        command: &Command<'_>,
    ) {
        self.commands += 1;
        let client = at_home(engines);
        if let Command::PutBack(records) = command
            && !self.clients.contains_key(&client)
        {
            return self.put_back_late(now, durable, engines, records);
        }
        let is_named = match command {
            Command::Queue(QueueCommand::Hold { queue, .. }) => self.was_named(client, queue),
            _ => false,
        };
        let Some(expecting) = self.clients.get_mut(&client) else {
            panic!("{client:?} is unknown and asks for {command:?}")
        };
        let is_ours;
        match command {
            Command::Credit(credits) => {
                is_ours = true;
                expecting.credits_granted += u64::from(*credits);
                let (granted, asked) = (expecting.credits_granted, expecting.credits_asked);
                assert!(granted <= asked, "{client:?} wants {asked} credits and gets {granted}");
            }
            Command::PutBack(records) => {
                is_ours = true;
                if !self.failed && durable.failure().is_none() {
                    // A task that is kept after its pop can be popped twice.
                    let (mut popped, _) = expecting.unsent();
                    expecting.put_back.iter().for_each(|number| take_out(&mut popped, *number));
                    for task in *records {
                        take_out(&mut popped, task.number);
                        expecting.put_back.push(task.number);
                    }
                }
            }
            Command::GiveBack(receipts) => {
                is_ours = true;
                expecting.give_back(receipts, self.failed);
            }
            _ => {
                let Some(sent) = expecting.next_asking(command, (now, self.wall), is_named) else {
                    panic!("the door made {command:?} of {:?}", expecting.sent)
                };
                (sent.state, sent.at) = (SentState::Applied, now);
                sent.own = matches!(command, Command::TakeDone { .. }).then(|| self.tag.clone());
                is_ours = expecting.note_asked(command);
            }
        }
        let door = expecting.door;
        if durable.failure().is_some() {
            self.failed = true;
            if !is_ours {
                let refusal = Refusal::new(RefusalKind::Store, "");
                self.reply(client, Reply::Refused(refusal));
            }
            return;
        }
        self.model.apply(now, engines, request, command);
        let silent = is_ours.then_some((engines, request));
        self.dispatch(silent);
        if door == DoorName::Pinpriq
            && !is_ours
            && let Some(expecting) = self.clients.get_mut(&client)
        {
            // Nothing on this wire is a reply to a particular request.
            let at = expecting.sent.iter().position(|it| matches!(it.state, SentState::Applied));
            at.and_then(|at| expecting.sent.remove(at));
        }
    }

    /// Notes which leases end with a connection, and which of them have failed. Those that are said
    /// to be unsent must be.
    fn note_farewell(&mut self, engines: ClientId, farewell: Farewell<'_>) {
        let Farewell::Ended { unsent } = farewell else {
            return assert!(self.is_stopping, "only the end of the server excuses all leases");
        };
        let client = at_home(engines);
        let (model, expecting) = (&self.model, self.clients.get_mut(&client));
        let Some(expecting) = expecting else { return };
        let (_, leased) = expecting.unsent();
        for task in model.tasks().filter(|task| model.is_live(task.number)) {
            let State::Taken(lease) = &task.progress.state else { continue };
            let Some(receipt) = task.receipt() else { continue };
            let is_excused = unsent.contains(&receipt);
            // Between two shards it may have been sent since.
            let may_be_unsent = leased.contains(&receipt) || self.shards > 1;
            assert!(!is_excused || may_be_unsent, "{receipt:?} was sent");
            let may_fail = lease.ends_with_connection() && !lease.is_unstarted();
            if may_fail && lease.is_held_by(engines) && !is_excused {
                expecting.failed.push(receipt);
            }
        }
    }

    /// Puts back popped tasks whose client is gone. Their payloads had to be read back first.
    fn put_back_late(
        &mut self,
        now: Timestamp,
        durable: &Durable,
        engines: ClientId,
        records: &[TaskRecord],
    ) {
        for task in records {
            let sought = (at_home(engines), task.number);
            let at = self.returning.iter().position(|known| *known == sought);
            let Some(at) = at else { panic!("task {} was sent and goes back", task.number) };
            self.returning.swap_remove(at);
        }
        if durable.failure().is_some() {
            self.failed = true;
            return;
        }
        let (request, command) = (RequestId(0), Command::PutBack(records));
        self.model.apply(now, engines, request, &command);
        self.dispatch(Some((engines, request)));
    }

    /// Checks that every popped task that was not sent has been put back.
    pub(crate) fn check_returned(&self) {
        let lost = &self.returning;
        assert!(lost.is_empty(), "popped tasks {lost:?} were not sent and are lost");
    }

    /// Forgets tasks that were to be put back, since the server has ended.
    pub(crate) fn forget_returning(&mut self) {
        self.returning.clear();
    }

    /// Notes the room of the store, at the end of a turn. What is handed out because of it depends
    /// on no later change.
    pub(crate) fn note_room(&mut self, room: Room) {
        self.model.set_room(room);
        if !self.model.outputs.is_empty() {
            self.dispatch(None);
            self.tag();
        }
    }

    /// Passes the outputs of the model to their clients.
    fn dispatch(&mut self, silent: Option<(ClientId, RequestId)>) {
        for output in std::mem::take(&mut self.model.outputs) {
            self.trail.note(|| format!("    {output:?}"));
            match output {
                Output::Reply { client, request, reply } => {
                    if silent == Some((client, request)) || request == SILENT {
                        continue;
                    }
                    self.reply(at_home(client), reply);
                }
                Output::Delivery { client, tasks, popped } => {
                    let client = at_home(client);
                    for task in &tasks {
                        self.book.note_delivered(task);
                    }
                    let needs = self.needs_of(&tasks, popped);
                    if let Some(expecting) = self.clients.get_mut(&client) {
                        let (is_reply, recalled) = (false, None);
                        let frame = Frame { tasks, popped, is_reply, needs, recalled };
                        expecting.frames.push_back(frame);
                    }
                }
                // No client has asked to hear of these.
                Output::Notice(notice) if !notice.is_recall() => {}
                Output::Notice(recalled) => {
                    self.book.note_recalled(recalled.receipt.number);
                    let needs = self.tag.clone();
                    if let Some(expecting) = self.clients.get_mut(&at_home(recalled.client)) {
                        let (tasks, popped, is_reply) = (Vec::new(), false, false);
                        let recalled = Some(*recalled);
                        let frame = Frame { tasks, popped, is_reply, needs, recalled };
                        expecting.frames.push_back(frame);
                    }
                }
            }
        }
    }

    fn reply(&mut self, client: ClientId, reply: Reply) {
        let needs = match &reply {
            Reply::Tasks { tasks, popped } => self.needs_of(tasks, *popped),
            _ => self.tag.clone(),
        };
        let Some(expecting) = self.clients.get_mut(&client) else { return };
        if expecting.door == DoorName::Pinpriq {
            if let Reply::Tasks { tasks, popped } = reply {
                let (is_reply, recalled) = (true, None);
                expecting.frames.push_back(Frame { tasks, popped, is_reply, needs, recalled });
            }
            return;
        }
        let open = |sent: &&mut Sent| matches!(sent.state, SentState::Applied);
        if let Some(sent) = expecting.sent.iter_mut().find(open) {
            sent.state = SentState::Replied(reply, needs);
        }
    }
}

impl Sent {
    /// A request that was not carried out yet.
    pub(crate) const fn new(request: Request) -> Self {
        let (state, at) = (SentState::Waiting, Timestamp::ZERO);
        Self { request, state, at, own: None, parted: BTreeSet::new() }
    }

    /// Whether it ends the connection at the beanstalkd door.
    fn is_quit(&self) -> bool {
        matches!(&self.request, Request::Beanstalkd(ask) if ask.call == Call::Quit)
    }
}

impl Expecting {
    /// Returns the first request that the engine has not carried out and must reply to, if it is
    /// this command, at this moment and this time of the wall clock. `is_named` says whether any
    /// client has named the tube that is paused.
    fn next_asking(
        &mut self,
        command: &Command<'_>,
        moments: (Timestamp, Timestamp),
        is_named: bool,
    ) -> Option<&mut Sent> {
        let next = self.sent.iter_mut().find(|sent| {
            let by_engine = match &sent.request {
                Request::Resp(ask) => ask.answerer() == Answerer::Engine,
                Request::Pinpriq(packet) => *packet != Packet::Ready,
                Request::Beanstalkd(ask) => ask.said.is_none(),
            };
            by_engine && matches!(sent.state, SentState::Waiting)
        });
        next.filter(|sent| match &sent.request {
            Request::Resp(ask) => {
                ask.with_command(|own| is_meant(own, command, moments)) == Some(true)
            }
            Request::Pinpriq(packet) => packet.with_command(|own| own == command) == Some(true),
            Request::Beanstalkd(ask) => ask.means(command, is_named),
        })
    }

    /// Whether it has let its jobs go, if the next thing to happen is that it quits.
    pub(crate) fn has_left(&self) -> bool {
        !self.sent.front().is_some_and(Sent::is_quit)
    }

    /// Forgets the next delivery together with its way back, if it was called back before it was
    /// sent. Returns whether it was.
    pub(crate) fn passes_over_frame(&mut self) -> bool {
        let Some(at) = self.frames.front().and_then(|frame| self.end_of(frame)) else {
            return false;
        };
        self.frames.remove(at);
        self.frames.pop_front();
        true
    }

    /// The next frame that was not sent yet, unless it can be passed over.
    pub(crate) fn owed_frame(&self) -> Option<&Frame> {
        let ended: Vec<usize> = self.frames.iter().filter_map(|frame| self.end_of(frame)).collect();
        let mut frames = self.frames.iter().enumerate();
        let owed = frames.find(|(at, frame)| !ended.contains(at) && self.end_of(frame).is_none());
        owed.map(|(_, frame)| frame)
    }

    /// Where the frame is that calls this delivery back, if it was.
    fn end_of(&self, delivery: &Frame) -> Option<usize> {
        let receipt = delivery.tasks.first()?.receipt()?;
        self.frames.iter().position(|frame| {
            frame.recalled.as_ref().is_some_and(|recalled| recalled.receipt == receipt)
        })
    }

    /// Leases go back that were not sent. What was called back aloud before it was sent goes back
    /// once more, in vain.
    fn give_back(&mut self, receipts: &[Receipt], failed: bool) {
        let (_, leased) = self.unsent();
        let frames = self.frames.iter().filter(|frame| self.end_of(frame).is_some());
        let called_back = frames.flat_map(|frame| &frame.tasks).filter_map(TaskRecord::receipt);
        let called_back: Vec<Receipt> = called_back.collect();
        for receipt in receipts.iter().filter(|it| !called_back.contains(it)) {
            assert!(failed || leased.contains(receipt), "{receipt:?} was sent and is given back");
            self.released.push(*receipt);
        }
    }

    /// The next reply that was not sent yet.
    pub(crate) fn owed_reply(&self) -> Option<&Sent> {
        self.sent.front().filter(|sent| matches!(sent.state, SentState::Replied(..)))
    }

    /// The number of credits that must have reached the engine.
    pub(crate) const fn credits_due(&self) -> u64 {
        if self.has_shards && !self.has_subscribed { 0 } else { self.credits_asked }
    }

    /// Whether it waits for the answer to a blocked request.
    pub(crate) fn is_blocked(&self) -> bool {
        self.sent.iter().any(|sent| matches!(sent.state, SentState::Applied))
    }

    /// Numbers of popped tasks, and receipts of leased ones, that were not sent completely. What
    /// was called back has gone back already.
    fn unsent(&self) -> (Vec<u64>, Vec<Receipt>) {
        let replies = self.sent.iter().filter_map(|sent| match &sent.state {
            SentState::Replied(Reply::Tasks { tasks, popped }, _) => Some((tasks, *popped)),
            _ => None,
        });
        let frames = self.frames.iter().filter(|frame| self.end_of(frame).is_none());
        let frames = frames.map(|frame| (&frame.tasks, frame.popped));
        let (mut numbers, mut receipts) = (Vec::new(), Vec::new());
        for (tasks, popped) in replies.chain(frames) {
            if popped {
                numbers.extend(tasks.iter().map(|task| task.number));
            } else {
                receipts.extend(tasks.iter().filter_map(TaskRecord::receipt));
            }
        }
        numbers.sort_unstable();
        (numbers, receipts)
    }
}

/// Whether a client that asks for `own` means that command. A deadline by the wall clock must be as
/// far from now in both, within the rounding to whole milliseconds, and the end of a delay within
/// the rounding to whole seconds.
fn is_meant(own: &Command<'_>, command: &Command<'_>, moments: (Timestamp, Timestamp)) -> bool {
    if let (Command::Transaction(own), Command::Transaction(given)) = (own, command) {
        let same = |(own, given): (&Step<'_>, &Step<'_>)| match (own, given) {
            (Step::Command(own), Step::Command(given)) => is_meant(own, given, moments),
            _ => own == given,
        };
        return own.len() == given.len() && own.iter().zip(*given).all(same);
    }
    if let Some(is_meant) = is_meant_put(own, command, moments) {
        return is_meant;
    }
    let (Command::Publish(own), Command::Publish(given)) = (own, command) else {
        return own == command;
    };
    let (Deadline::At(wanted), Deadline::At(at)) = (own.deadline, given.deadline) else {
        return own == given;
    };
    let (now, wall) = moments;
    let wanted = (wanted.ms() + now.ms()).saturating_sub(wall.ms());
    let wanted = Timestamp::from_ms(wanted).ms();
    wanted.abs_diff(at.ms()) <= 1 && Publish { deadline: given.deadline, ..*own } == *given
}

/// Like [`is_meant`], if both are puts that are held back until a moment.
fn is_meant_put(
    own: &Command<'_>,
    command: &Command<'_>,
    (now, wall): (Timestamp, Timestamp),
) -> Option<bool> {
    let (own, given) = match (own, command) {
        (Command::Put(own), Command::Put(given)) => (own, given),
        (
            Command::PutInLine { put: own, room },
            Command::PutInLine { put: given, room: given_room },
        ) if room == given_room => (*own, *given),
        _ => return None,
    };
    let (Delay::Until(wanted), Delay::Until(at)) = (own.delay, given.delay) else { return None };
    let signed = |at: Timestamp| i128::from(at.ms());
    let (moved, ahead) = (signed(at) - signed(wanted), signed(now) - signed(wall));
    let is_as_far = moved % 1_000 == 0 && (moved - ahead).abs() <= 501;
    Some(is_as_far && Put { delay: given.delay, ..*own } == *given)
}

/// Removes one of these numbers, which must be there.
fn take_out(numbers: &mut Vec<u64>, number: u64) {
    let at = numbers.iter().position(|known| *known == number);
    let Some(at) = at else { panic!("task {number} was sent and goes back") };
    numbers.remove(at);
}

/// Shows the oracle the commands of the engine.
pub(crate) struct Eye(pub(crate) Rc<RefCell<Oracle>>, pub(crate) Clocks);

impl Witness for Eye {
    fn sees(&self, now: Timestamp, durable: &Durable, asked: &Asked<'_>) {
        let oracle = &mut *self.0.borrow_mut();
        oracle.trail.note(|| format!("{now}: {asked:?}"));
        oracle.wall = self.1.wall();
        oracle.model.set_clients(durable.engine().clients().cloned());
        if durable.failure().is_none() {
            for (number, place) in durable.engine().places_left() {
                let readable = oracle.book.is_readable(place);
                assert!(readable, "the payload of task {number} is sought where nothing is yet");
            }
        }
        if let Asked::Command(client, request, command) = asked {
            return oracle.command(now, durable, (*client, *request), command);
        }
        if durable.failure().is_some() {
            oracle.failed = true;
            return;
        }
        match asked {
            Asked::Command(..) => {}
            Asked::EndWaits(client) => oracle.model.end_waits(now, *client),
            Asked::Disconnect(client, farewell) => {
                oracle.note_farewell(*client, *farewell);
                oracle.model.disconnect(now, *client, *farewell);
            }
            Asked::Timeout => oracle.model.timeout(now),
        }
        oracle.dispatch(None);
    }
}
