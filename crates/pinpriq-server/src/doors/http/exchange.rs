//! What a client of HTTP asks and is answered, as values: its requests on their way to the door,
//! and what the answer has besides the bytes of its body.
//!
//! A request is a command of the table with its words and options told apart, or a question of the
//! door's own. [`visit`](super::visit) brings it, and takes the answer back.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use pinpriq_proto::reply::Reply;
use pinpriq_proto::request::form::Form;
use pinpriq_proto::request::options::Opt;
use pinpriq_proto::request::table::TABLE;
use pinpriq_proto::request::table::places::place_of_sub;

use super::problem::Problem;

/// The steps of transactions whose replies alone do not say how they are written, by their places
/// in the table.
const BATCH_CLOSE: usize = place_of_sub("BATCH", "CLOSE");
const BATCH_DROP: usize = place_of_sub("BATCH", "DROP");

/// A command with its words and options.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Its entry in the table of commands.
    pub(crate) entry: usize,
    /// The words before the options.
    pub(crate) words: Vec<Vec<u8>>,
    /// The options, each by its place in the entry, with its value.
    pub(crate) options: Vec<(usize, Vec<u8>)>,
    /// Tasks that are done.
    pub(crate) done: Vec<AskedDone>,
    /// Whether the last word is the id of a task where a receipt could be.
    pub(crate) by_id: bool,
}

/// A task that is to be acknowledged before a take.
#[derive(Debug)]
pub(crate) struct AskedDone {
    pub(crate) queue: Vec<u8>,
    pub(crate) receipt: Vec<u8>,
    pub(crate) result: Option<Vec<u8>>,
}

/// What is asked.
#[derive(Debug)]
pub(crate) enum Question {
    /// One command.
    Command(Asked),
    /// Several commands as one.
    Multi(Vec<Asked>),
    /// The facts about the server. These further members of the object are written already.
    Server(Vec<u8>),
    /// Whether its store works.
    Health,
    /// Who is connected.
    Connections,
    /// The end of the connection with this number.
    EndConnection(u64),
    /// Nothing: this is the answer, in its place among the others.
    Refused(Problem),
}

impl Asked {
    /// Returns a command without words and options.
    ///
    /// # Panics
    /// If the table of commands has no such command.
    pub(crate) fn of(name: &str) -> Self {
        let entry = TABLE.iter().position(|spec| spec.is_named(name));
        let Some(entry) = entry else { unreachable!("there is no command {name}") };
        Self { entry, ..Self::default() }
    }

    /// Adds words.
    pub(crate) fn words<W: AsRef<[u8]>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.words.extend(words.into_iter().map(|word| word.as_ref().to_vec()));
        self
    }

    /// Adds an option if there is a value for it and the command has it.
    pub(crate) fn option(&mut self, option: Opt, value: Option<Vec<u8>>) {
        let place = TABLE[self.entry].options.iter().position(|known| *known == option);
        self.options.extend(place.zip(value));
    }

    /// Returns how its answer is written as a step of a transaction.
    const fn form_as_step(&self) -> Form {
        match self.entry {
            BATCH_CLOSE => Form::Pending,
            BATCH_DROP => Form::Nothing,
            _ => Form::Multi,
        }
    }
}

/// What the bytes of a body are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// There is no body.
    Nothing,
    Json,
    /// A refusal: RFC 9457.
    Problem,
    /// The payload of a task.
    Octets,
}

impl Content {
    /// Returns the media type.
    pub(crate) const fn media_type(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Json => Some("application/json"),
            Self::Problem => Some("application/problem+json"),
            Self::Octets => Some("application/octet-stream"),
        }
    }
}

/// What comes before the body of an answer.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) content: Content,
    /// Further header fields: names and values.
    pub(crate) fields: Vec<(Cow<'static, str>, String)>,
    /// Whether the answer hands tasks over.
    pub(crate) hands_over: bool,
}

/// The beginning of the header fields of a request or an answer that are headers of a task. The
/// rest of each is the name, and the value is percent-encoded.
pub(crate) const HEADER_FIELD: &str = "pinpriq-header-";

/// The header fields that an answer may have besides its content type, each with the field of a
/// task that it has.
pub(crate) const FIELDS: [(&str, &str); 9] = [
    ("pinpriq-id", "id"),
    ("pinpriq-receipt", "receipt"),
    ("pinpriq-queue", "queue"),
    ("pinpriq-key", "key"),
    ("pinpriq-priority", "priority"),
    ("pinpriq-attempts", "attempts"),
    ("pinpriq-failures", "failures"),
    ("pinpriq-state", "state"),
    ("pinpriq-lease-until", "lease_until"),
];

impl Head {
    /// Returns a head without further fields.
    pub(crate) const fn new(status: u16, content: Content) -> Self {
        Self { status, content, fields: Vec::new(), hands_over: false }
    }
}

/// What the door and the visits of one client share. There is one visit at a time.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// How the answer is written.
    pub(crate) form: Cell<Form>,
    /// What the door has not received yet.
    pub(crate) questions: RefCell<VecDeque<Question>>,
    /// How many questions the door has received.
    received: Cell<usize>,
    /// How the answers to the steps of a transaction are written.
    steps: RefCell<Vec<Form>>,
    head: RefCell<Option<Head>>,
    /// The replies, where handlers want them as they are.
    replies: RefCell<Vec<Result<Reply, Problem>>>,
    /// What the door itself has refused of these, each with the place of its question.
    refused: RefCell<Vec<(usize, Problem)>>,
}

impl Default for Exchange {
    fn default() -> Self {
        Self {
            form: Cell::new(Form::Nothing),
            questions: RefCell::default(),
            received: Cell::default(),
            steps: RefCell::default(),
            head: RefCell::default(),
            replies: RefCell::default(),
            refused: RefCell::default(),
        }
    }
}

impl Exchange {
    /// Begins with a visit whose answer has this form.
    pub(super) fn begin(&self, form: Form) {
        self.form.set(form);
        self.received.set(0);
        self.head.take();
        self.questions.take();
        self.steps.take();
        self.take_replies();
    }

    /// Notes the questions of the visit.
    pub(super) fn note_questions(&self, all: Vec<Question>) {
        if let [Question::Multi(steps)] = &all[..] {
            self.steps.replace(steps.iter().map(Asked::form_as_step).collect());
        }
        self.questions.borrow_mut().extend(all);
    }

    /// Returns how the answer to a step of a transaction is written, by its place.
    pub(super) fn form_of_step(&self, place: usize) -> Form {
        self.steps.borrow().get(place).copied().unwrap_or(Form::Multi)
    }

    /// Notes that the door has received one more question.
    pub(super) fn note_received(&self) {
        self.received.set(self.received.get() + 1);
    }

    /// Sets what comes before the body.
    pub(super) fn head(&self, head: Head) {
        self.head.replace(Some(head));
    }

    /// Sets that the body is JSON.
    pub(super) fn ok(&self) {
        self.head(Head::new(200, Content::Json));
    }

    /// Takes what comes before the body. The lines of a batch have nothing.
    pub(super) fn take_head(&self) -> Option<Head> {
        self.head.take()
    }

    /// Notes a reply that is handed to the handler as it is.
    pub(super) fn note_reply(&self, reply: Result<Reply, Problem>) {
        self.replies.borrow_mut().push(reply);
    }

    /// Notes the same for a question that the door refuses, before the next one is received.
    pub(super) fn note_refused(&self, problem: Problem) {
        self.refused.borrow_mut().push((self.received.get(), problem));
    }

    /// Takes the replies, in the order of the questions.
    pub(super) fn take_replies(&self) -> Vec<Result<Reply, Problem>> {
        let mut replies = self.replies.take();
        for (place, problem) in self.refused.take() {
            replies.insert(place.min(replies.len()), Err(problem));
        }
        replies
    }
}
