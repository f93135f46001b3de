//! What a path of the API looks like, and which options it has. The table of paths is in `table`.

use axum::http::Method;

use pinpriq_proto::request::form::Form;
use pinpriq_proto::request::options::{
    BULK_CHANGES, CHECKPOINT, COUNT, CURSOR, DELAY_SET, DONE, HEADERS, MEMBER, Opt, PAYLOAD,
    PREFIX, PRIORITY_SET, RESTART, RESULT, TTR, WITHMETA, with,
};
use pinpriq_proto::request::spec::{Spec, Word as Shape};
use pinpriq_proto::request::table::TABLE;

/// One path with a method, and with a verb if it has one.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// The path below `/v1`, with names in braces.
    pub(crate) path: &'static str,
    /// What follows the last colon of the path.
    pub(crate) verb: Option<&'static str>,
    pub(crate) does: Does,
    /// Where the words before the options come from.
    pub(crate) words: Vec<Word>,
    pub(crate) body: Body,
    /// How the answer is written.
    pub(crate) form: Form,
}

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Does {
    /// This command.
    Command(&'static str),
    /// Something of this door's own, which names the commands that it stands for.
    Own(Own),
}

/// What is no single command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Own {
    /// Tasks page by page, or the next ones.
    Tasks,
    /// A put for each line.
    Lines,
    /// Queues page by page, with their figures.
    Queues,
    /// Queues with dead letters or buried tasks, and the reasons.
    DeadLetters,
    /// One queue: settings and figures.
    Queue,
    /// The same after it was made.
    CreateQueue,
    /// The same after some settings were changed.
    SetQueue,
    /// Topics page by page.
    Topics,
    /// Schedules page by page.
    Schedules,
    /// Limits page by page.
    Limits,
    /// Batches page by page.
    Batches,
    /// One batch after it was made.
    OpenBatch,
    /// Several commands as one.
    Multi,
    /// The facts about the server.
    Server,
    /// Who is connected.
    Connections,
    /// The end of a connection.
    EndConnection,
    /// What happens, as it happens.
    Events,
    /// The figures of the last minutes.
    History,
    /// A copy of all there is, which begins.
    BeginBackup,
    /// Bytes that belong to one.
    Segment,
    /// The end of one.
    EndBackup,
}

impl Own {
    /// Returns the commands that it stands for, if there are any.
    pub(crate) const fn commands(self) -> &'static [&'static str] {
        match self {
            Self::Tasks => &["SCAN", "PEEK"],
            Self::Lines => &["PUT"],
            Self::Queues => &["QUEUE LIST", "QUEUE SHOW", "STATS"],
            Self::DeadLetters => &["QUEUE LIST", "QUEUE SHOW", "STATS", "SCAN"],
            Self::Queue => &["QUEUE SHOW", "STATS"],
            Self::CreateQueue => &["QUEUE CREATE"],
            Self::SetQueue => &["QUEUE SET"],
            Self::Topics => &["MEMBERS"],
            Self::Schedules => &["SCHEDULE LIST", "SCHEDULE SHOW"],
            Self::Limits => &["LIMIT LIST", "LIMIT SHOW"],
            Self::Batches => &["BATCH LIST", "BATCH SHOW"],
            Self::OpenBatch => &["BATCH OPEN"],
            Self::Multi => &["MULTI", "EXEC"],
            Self::Server => &["INFO"],
            Self::Connections => &["CLIENT LIST"],
            Self::EndConnection => &["CLIENT KILL"],
            Self::Events | Self::History => &["STATS"],
            Self::BeginBackup | Self::Segment | Self::EndBackup => &[],
        }
    }

    /// Whether its words and options are those of a command.
    pub(crate) const fn asks_as_a_command(self) -> bool {
        matches!(self, Self::Tasks | Self::OpenBatch)
    }
}

/// Where a word before the options comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    /// A name in the path.
    Path(&'static str),
    /// The same, which is an id where a receipt could be.
    PathId(&'static str),
    /// The body as it is.
    Payload,
    /// A parameter or member of this name, in bytes.
    Field(&'static str),
    /// A member of this name: an array.
    Fields(&'static str),
    /// A member of the first name, or an array of the second.
    Either(&'static str, &'static str),
    /// The word `IN` or `OUT`, if one of the two is asked for.
    Side,
}

/// What the body of a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    /// There is none.
    None,
    /// A payload as it is, which may be missing unless it is a word of the command.
    Payload,
    /// An object, which may be missing.
    Json,
    /// An object for each line.
    Lines,
}

impl Route {
    /// Returns the path as it is written, with the verb.
    pub(crate) fn written(&self) -> String {
        let verb = self.verb.map_or_else(String::new, |verb| format!(":{verb}"));
        format!("/v1{}{verb}", self.path)
    }

    /// Whether the path has the id of the task that is to be taken.
    pub(crate) fn takes_one(&self) -> bool {
        self.does == Does::Command("TAKE") && self.path.ends_with("{id}")
    }

    /// Whether tasks can be acknowledged with it.
    #[cfg(test)]
    pub(crate) fn has_done(&self) -> bool {
        let is_object = self.body == Body::Json && !self.commands().is_empty();
        is_object && self.spec().options.contains(&DONE) && !self.takes_one()
    }

    /// Returns the commands that it stands for.
    pub(crate) fn commands(&self) -> Vec<&'static str> {
        match self.does {
            Does::Command(name) => vec![name],
            Does::Own(own) => own.commands().to_vec(),
        }
    }

    /// Returns the entry of the command that it stands for, the first one if there are several. It
    /// must stand for one.
    pub(crate) fn spec(&self) -> &'static Spec {
        let name = self.commands()[0];
        let spec = TABLE.iter().find(|spec| spec.is_named(name));
        spec.unwrap_or_else(|| unreachable!("there is no command {name}"))
    }
}

/// Returns where the words of a command come from: from the names in a path and the body behind it,
/// or without a path from the members of an object in a transaction.
pub(crate) fn words_of(spec: &Spec, path: Option<(&str, Body)>) -> Vec<Word> {
    let has = |name: &str| path.is_some_and(|(path, _)| path.contains(&format!("{{{name}}}")));
    let source = |word: &Shape| {
        Some(match *word {
            Shape::One("payload") if path.is_some_and(|(_, body)| body == Body::Payload) => {
                Word::Payload
            }
            Shape::One("R|W|B|Z|D") => Word::Field("state"),
            Shape::Key("from") if path.is_some() => Word::Path("queue"),
            Shape::Maybe("IN|OUT") if path.is_some() => Word::Side,
            Shape::One(name)
            | Shape::Key(name)
            | Shape::Maybe(name)
            | Shape::MaybeKey(name)
            | Shape::MaybeKeyFirst(name)
                if has(name) =>
            {
                Word::Path(name)
            }
            Shape::One(name) | Shape::Key(name) => Word::Field(name),
            Shape::Some(_) if has("id") => Word::Path("id"),
            Shape::Some(_) if path.is_some() => Word::Fields("ids"),
            Shape::Some(name) => Word::Either(name, "ids"),
            Shape::Held | Shape::HeldOrMore if has("receipt") => Word::Path("receipt"),
            Shape::Held | Shape::HeldOrMore if has("id") => Word::PathId("id"),
            Shape::Held => Word::Field("receipt"),
            Shape::HeldOrMore if path.is_some() => Word::Fields("receipts"),
            Shape::HeldOrMore => Word::Either("receipt", "receipts"),
            Shape::Queues if has("queue") => Word::Path("queue"),
            Shape::Queues if path.is_some() => Word::Fields("queues"),
            _ => return None,
        })
    };
    spec.words.iter().filter_map(source).collect()
}

/// The order of the queues.
pub(super) const SORT: Opt = with(
    "SORT",
    "name|ready|taken|waiting|buried|zombie|done|in|out|oldest",
    "What the queues are ordered by",
);

/// What their names have in them, in either case.
pub(super) const CONTAINS: Opt = with("CONTAINS", "text", "Only names that have this in them");

/// How many of them come before the page.
pub(super) const OFFSET: Opt = with("OFFSET", "number", "How many to leave out at the beginning");

/// What the body of a request is that can tell a checkpoint.
const BODY_OR_CHECKPOINT: Opt = with(
    "BODY",
    "payload|checkpoint",
    "What the body is: a new payload (the default) or a checkpoint",
);

/// What the body of a request is that can tell a result.
const BODY_OR_RESULT: Opt =
    with("BODY", "payload|result", "What the body is: a new payload (the default) or a result");

/// What a bulk change does.
pub(crate) const DO: Opt =
    with("DO", "restart|cancel|kill|redrive|move|priority|delay", "What is done with each task");

/// Where a bulk change moves tasks.
pub(super) const TO: Opt = with("TO", "name", "The queue that they move to");

/// Returns what the body of a command can be instead of a payload, and the option that says it.
pub(super) fn body_of(spec: &Spec) -> Option<(Opt, Opt)> {
    let others = [(BODY_OR_CHECKPOINT, CHECKPOINT), (BODY_OR_RESULT, RESULT)];
    let has_payload = spec.options.contains(&PAYLOAD);
    others.into_iter().find(|(_, other)| has_payload && spec.options.contains(other))
}

/// The options of a route that are given by name.
pub(crate) fn options_of(route: &Route) -> Vec<Opt> {
    let mut options: Vec<Opt> = Vec::new();
    let commands = match route.does {
        Does::Command(name) => vec![name],
        Does::Own(Own::Tasks) => vec!["SCAN", "PEEK"],
        Does::Own(Own::Queue | Own::SetQueue) => vec!["QUEUE SHOW"],
        Does::Own(Own::OpenBatch) => vec!["BATCH OPEN"],
        Does::Own(Own::Queues) => {
            return vec![PREFIX, COUNT, CURSOR, SORT, CONTAINS, OFFSET];
        }
        Does::Own(Own::Topics | Own::Schedules | Own::Limits | Own::Batches) => {
            return vec![PREFIX, COUNT, CURSOR];
        }
        Does::Own(_) => Vec::new(),
    };
    for spec in TABLE.iter().filter(|spec| commands.iter().any(|name| spec.is_named(name))) {
        for option in spec.options {
            if *option == RESTART {
                options.extend([DO, TO]);
            }
            let is_elsewhere = [WITHMETA, DONE].contains(option)
                || (BULK_CHANGES.contains(option) && ![DELAY_SET, PRIORITY_SET].contains(option))
                || ([PAYLOAD, HEADERS].contains(option) && route.body == Body::Payload)
                || (route.form == Form::Answers && *option != MEMBER)
                || (route.takes_one() && ![TTR, MEMBER].contains(option));
            if !is_elsewhere && !options.contains(option) {
                options.push(*option);
            }
        }
        if route.body == Body::Payload {
            options.extend(body_of(spec).map(|(body, _)| body));
        }
    }
    options
}
