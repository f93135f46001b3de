//! The journals to be damaged. They are written once per process, by a real engine through the real
//! journal, and always have the same bytes.
//!
//! Each comes with its contents after every batch, and everything that any task ever carried. Other
//! modules describe how the files are damaged, and what that may lead to.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::OnceLock;

use crate::faulty_disk::{CrashPolicy, FaultyDisk};
use pinpriq_proto::change::{Change, Header, Place};
use pinpriq_proto::command::{
    Ack, Amendment, Bury, Command, Held, HeldBy, Put, QueueCommand, QueueName, Release, Selection,
    Sides, Take, TakeMode, TimeToLive, Wait,
};
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::settings::{AFTERACK, AfterAck, CAPACITY, IDS, Ids, Value};
use pinpriq_proto::task::{Bytes, ClientId, Receipt, RequestId, TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::{
    Durable, Figures, Fold, Journal, Loaded, Position, Progress, Reclaims, Rewrite, Room, Store,
    StoreError, TaskCounts, Urgency,
};

use super::{Files, journal};

/// Names that the journals use; no other queue has tasks.
pub(super) const QUEUES: [&[u8]; 4] = [b"jobs", b"mail", b"", NAMED];
pub(super) const TOPICS: [&[u8]; 2] = [b"news", b"jobs"];
pub(super) const MEMBERS: [&[u8]; 2] = [b"ann", b"ben"];

/// The queue in which an id is reused, and whose kind of ids changes.
const NAMED: &[u8] = b"named";

/// The content of a task: its queue or topic, its key, and its payload.
pub(super) type Content = (Vec<u8>, Option<Bytes>, Bytes);

/// A journal, and what is known about it.
pub(super) struct Written {
    pub(super) files: Files,
    /// Its contents before the first batch and after each.
    pub(super) states: Vec<Fold>,
    /// Everything that each task, by its number, ever carried.
    pub(super) contents: BTreeMap<u64, BTreeSet<Content>>,
}

/// Returns all journals, always in the same order.
pub(super) fn journals() -> &'static [Written] {
    static JOURNALS: OnceLock<Vec<Written>> = OnceLock::new();
    JOURNALS.get_or_init(|| vec![short(), several_starts(), long(), unfinished()])
}

/// One start, one segment, a little of everything.
fn short() -> Written {
    let mut author = Author::new();
    author.start();
    author.join_all();
    author.put(3, 40);
    author.publish(2, 60);
    author.turn();
    author.move_tasks(b"jobs".as_slice().into());
    author.finish()
}

/// Five starts, so there are as many segments, most of them nearly empty.
fn several_starts() -> Written {
    let mut author = Author::new();
    for round in 0..5 {
        author.start();
        author.put(2, 200);
        if round == 1 {
            author.join_all();
        }
        author.publish(1, 300);
        author.move_tasks(QueueName { name: b"news", member: Some(b"ann") });
        author.name_again([Ids::Given, Ids::Given, Ids::Uuid, Ids::Sequence, Ids::Time64][round]);
        author.turn();
        author.finish_turns();
    }
    author.finish()
}

/// Enough tasks to fill and drop segments, and to write old records again.
fn long() -> Written {
    let mut author = Author::new();
    author.start();
    author.join_all();
    author.settings();
    for round in 0..9 {
        author.put(2, 400);
        author.publish(1, 500);
        author.move_tasks(QUEUES[round % 3].into());
        author.move_tasks(QueueName { name: b"news", member: Some(MEMBERS[round % 2]) });
        author.name_again(Ids::Given);
        author.empty([b"mail", b"jobs"][round % 2].as_slice().into());
        author.empty(QueueName { name: TOPICS[round % 2], member: Some(MEMBERS[round % 2]) });
        author.turn();
        if round % 3 == 2 {
            author.finish_turns();
            author.start();
        }
    }
    author.finish()
}

/// A process that was killed: the last batches are in the file, but no later one confirms that they
/// are durable.
fn unfinished() -> Written {
    let mut author = Author::new();
    author.start();
    author.join_all();
    for _ in 0..6 {
        author.put(2, 100);
        author.publish(1, 100);
        author.turn();
    }
    author.put(4, 10);
    author.move_tasks(b"jobs".as_slice().into());
    author.commit();
    author.disk.crash(CrashPolicy::KeepAll);
    author.into_written()
}

/// A server that writes a journal.
struct Author {
    disk: FaultyDisk,
    durable: Option<Durable>,
    now: Timestamp,
    requests: u64,
    batches: Rc<RefCell<Vec<Vec<Change>>>>,
}

impl Author {
    fn new() -> Self {
        Self {
            disk: FaultyDisk::new(1),
            durable: None,
            now: Timestamp::from_ms(1_700_000_000_000),
            requests: 0,
            batches: Rc::default(),
        }
    }

    fn start(&mut self) {
        self.durable = None;
        let Ok(journal) = journal(&self.disk) else { panic!("no other journal uses the disk") };
        let store = Recorded { journal, batches: Rc::clone(&self.batches) };
        let opened = Durable::open(Box::new(store), Limits::default(), self.now, 5);
        let Ok((durable, _)) = opened else { panic!("the journal is whole") };
        self.durable = Some(durable);
    }

    fn server(&mut self) -> &mut Durable {
        let Some(durable) = &mut self.durable else { panic!("the server was started") };
        durable
    }

    /// Carries out a command, and returns the receipts of the tasks that it took.
    fn apply(&mut self, command: Command<'_>) -> Vec<Receipt> {
        self.requests += 1;
        self.now = self.now.after(Span::from_ms(1));
        let (now, request) = (self.now, RequestId(self.requests));
        let server = self.server();
        server.apply(now, ClientId(1), request, &command);
        let mut receipts = Vec::new();
        while let Some((_, output)) = server.poll_output() {
            if let Output::Reply { reply: Reply::Tasks { tasks, .. }, .. } = output {
                receipts.extend(tasks.iter().filter_map(TaskRecord::receipt));
            }
        }
        receipts
    }

    /// Puts tasks into every queue, each with its own payload.
    fn put(&mut self, count: usize, payload_bytes: usize) {
        for index in 0..count {
            for queue in QUEUES.into_iter().filter(|queue| *queue != NAMED) {
                let payload = self.payload(payload_bytes);
                let put = Put {
                    ttl: if index == 2 {
                        TimeToLive::For(Span::from_ms(1 << 40))
                    } else {
                        TimeToLive::Default
                    },
                    priority: [Some(0), Some(-7), None][index % 3],
                    terms: Terms {
                        key: (index % 2 == 0).then_some(b"k"),
                        ..Put::new(queue, &payload).terms
                    },
                    ..Put::new(queue, &payload)
                };
                self.apply(Command::Put(put));
            }
        }
    }

    fn publish(&mut self, count: usize, payload_bytes: usize) {
        for _ in 0..count {
            for topic in TOPICS {
                let payload = self.payload(payload_bytes);
                self.apply(Command::Publish(Publish {
                    topic,
                    payload: &payload,
                    deadline: Deadline::OfLane,
                    priority: Some(1),
                    terms: Terms { key: Some(b"k"), ..Terms::NONE },
                }));
            }
        }
    }

    fn payload(&self, bytes: usize) -> Vec<u8> {
        let mut payload = format!("payload {} ", self.requests).into_bytes();
        payload.resize(payload.len().max(bytes), b'.');
        payload
    }

    fn join_all(&mut self) {
        for (topic, member) in TOPICS.into_iter().flat_map(|topic| MEMBERS.map(|m| (topic, m))) {
            let lease = Some(Span::from_ms(1 << 40));
            self.apply(Command::Member(MemberCommand::Join { topic, member, lease }));
        }
    }

    fn settings(&mut self) {
        let settings = &[
            (IDS, Ids::Uuid.into()),
            (AFTERACK, AfterAck::Zombie(Span::from_ms(1 << 30)).into()),
            (CAPACITY, Value::Number(50)),
        ];
        self.apply(Command::Queue(QueueCommand::Create { queue: b"mail", settings }));
        let sides = Sides::Input;
        self.apply(Command::Queue(QueueCommand::Pause {
            queue: b"idle".as_slice().into(),
            sides,
            length: None,
        }));
    }

    /// Pops what is in the queue of names, and puts one task with this kind of ids there.
    fn name_again(&mut self, ids: Ids) {
        self.apply(Command::Take(Take {
            queues: &[NAMED],
            member: None,
            count: 9,
            wait: Wait::No,
            selection: Selection::DEFAULT,
            mode: TakeMode::Pop,
        }));
        let settings = &[(IDS, ids.into())];
        self.apply(Command::Queue(QueueCommand::Set { queue: NAMED.into(), settings }));
        self.turn();
        let payload = self.payload(30);
        let id: Option<&[u8]> = (ids == Ids::Given).then_some(b"x");
        self.apply(Command::Put(Put { id, ..Put::new(NAMED, &payload) }));
    }

    /// Takes some tasks of a queue or lane, and moves each into another state.
    fn move_tasks(&mut self, queue: QueueName<'_>) {
        let receipts = self.apply(Command::Take(Take {
            queues: &[queue.name],
            member: queue.member,
            count: 6,
            wait: Wait::No,
            selection: Selection::DEFAULT,
            mode: TakeMode::Lease { ttr: Some(Span::from_ms(1 << 40)) },
        }));
        for (index, receipt) in receipts.into_iter().enumerate() {
            let held = Held { queue, by: HeldBy::Receipt(receipt) };
            let payload = self.payload(50);
            let amendment = Amendment { payload: Some(&payload), ..Amendment::default() };
            let delay = Span::from_ms(1 << 40);
            match index {
                0 | 3 => self.apply(Command::Ack(Ack::new(held))),
                1 => self.apply(Command::Bury(Bury { reason: Some(b"no"), ..Bury::new(held) })),
                2 => {
                    let release = Release { amendment, tail: true, ..Release::new(held) };
                    self.apply(Command::Release(release))
                }
                4 => {
                    let amendment = Amendment::default();
                    self.apply(Command::Release(Release { delay, amendment, ..Release::new(held) }))
                }
                _ => Vec::new(),
            };
        }
    }

    fn empty(&mut self, queue: QueueName<'_>) {
        self.apply(Command::Queue(QueueCommand::Truncate(queue)));
    }

    fn commit(&mut self) {
        assert!(self.server().commit().is_ok(), "the disk is sound");
    }

    fn turn(&mut self) {
        self.commit();
        let now = self.now;
        assert!(self.server().drive(now).is_ok(), "the disk is sound");
    }

    /// Makes everything durable, and lets the store do what it has postponed.
    fn finish_turns(&mut self) {
        for _ in 0..8 {
            self.now = self.now.after(Span::from_ms(100));
            let now = self.now;
            assert!(self.server().finish(now).is_ok(), "the disk is sound");
        }
    }

    fn finish(mut self) -> Written {
        self.finish_turns();
        self.into_written()
    }

    fn into_written(mut self) -> Written {
        self.durable = None;
        // Spares are created again at the next start, and only make the inputs longer.
        let mut files = self.disk.files();
        files.retain(|name, _| !name.starts_with("spare"));
        let mut fold = Fold::new();
        let mut states = vec![fold.clone()];
        let mut contents: BTreeMap<u64, BTreeSet<Content>> = BTreeMap::new();
        let mut topics: BTreeMap<u64, Bytes> = BTreeMap::new();
        for changes in self.batches.take() {
            for change in &changes {
                fold.apply(change, None, &mut Vec::new());
                note_content(change, &mut topics, &mut contents);
            }
            fold.forget_unshared(&mut Vec::new());
            states.push(fold.clone());
        }
        Written { files, states, contents }
    }
}

/// Notes what the tasks of a change carry.
fn note_content(
    change: &Change,
    topics: &mut BTreeMap<u64, Bytes>,
    contents: &mut BTreeMap<u64, BTreeSet<Content>>,
) {
    let mut note = |number, queue: &[u8], key: &Option<Bytes>, payload: &Bytes| {
        let content = (queue.to_vec(), key.clone(), payload.clone());
        contents.entry(number).or_default().insert(content);
    };
    match change {
        Change::Task(task) if task.shared => {}
        Change::Task(task) => {
            let topic = task.lane.as_ref().map(|lane| topics[&lane.number].clone());
            let queue = topic.unwrap_or_else(|| task.queue.clone());
            note(task.number, &queue, &task.terms.key, &task.payload);
        }
        Change::Lane(lane) => _ = topics.insert(lane.number, lane.topic.clone()),
        Change::Published(published, copies) => {
            for copied in copies {
                let topic = topics[&copied.lane].clone();
                note(copied.number, &topic, &published.terms.key, &published.payload);
            }
        }
        _ => {}
    }
}

/// The journal, and a record of everything that is appended to it.
struct Recorded {
    journal: Box<Journal>,
    batches: Rc<RefCell<Vec<Vec<Change>>>>,
}

impl Store for Recorded {
    fn load(&mut self, sink: &mut dyn FnMut(Change, Option<Place>)) -> Result<Loaded, StoreError> {
        self.journal.load(sink)
    }

    fn begin(&mut self, header: &Header) -> Result<(), StoreError> {
        self.journal.begin(header)
    }

    fn append(
        &mut self,
        header: &Header,
        changes: &[Change],
        urgency: Urgency,
        placed: &mut dyn FnMut(usize, Place),
    ) -> Result<Position, StoreError> {
        self.batches.borrow_mut().push(changes.to_vec());
        self.journal.append(header, changes, urgency, placed)
    }

    fn drive(&mut self, now: Timestamp) -> Result<Progress, StoreError> {
        self.journal.drive(now)
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.journal.poll_timeout()
    }

    fn finish(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.journal.finish(now)
    }

    fn figures(&self) -> Figures {
        self.journal.figures()
    }
}

impl Reclaims for Recorded {
    fn obsolete(&mut self, place: Place) {
        self.journal.obsolete(place);
    }

    fn poll_rewrite(&mut self) -> Vec<Rewrite> {
        self.journal.poll_rewrite()
    }

    fn room(&mut self, tasks: &dyn Fn() -> TaskCounts) -> Room {
        self.journal.room(tasks)
    }
}
