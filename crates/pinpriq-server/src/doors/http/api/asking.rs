//! From what a request gives to a command of the table.

use super::super::exchange::{Asked, AskedDone};
use super::super::problem::Problem;
use super::given::Values;
use super::names::decode;
use super::route::{Body, Route, Word, body_of, options_of, words_of};
use pinpriq_proto::request::fault::shown;
use pinpriq_proto::request::options::{
    BULK_CHANGES, DONE, HEADERS, ID_TAKEN, MEMBER, MOVE, Opt, PAYLOAD, RESTART, UNIQUE, WINDOW,
    WITHMETA,
};
use pinpriq_proto::request::spec::Spec;
use pinpriq_proto::request::table::TABLE;
use pinpriq_proto::task::headers;

/// The window of a put with an `Idempotency-Key`: a day, in milliseconds.
const IDEMPOTENCY_MS: &[u8] = b"86400000";

/// The options of a put for which a transaction has no time.
pub(crate) const WAITING: [&str; 3] = ["wait", "room", "result"];

/// A request whose head and body were read.
pub(crate) struct Request<'r> {
    pub(crate) route: &'r Route,
    /// The names in the path, percent-encoded as they came.
    pub(crate) names: Vec<(String, String)>,
    pub(crate) values: Values,
    /// The body, if it is a payload and not empty.
    pub(crate) payload: Option<Vec<u8>>,
    /// The value of `Idempotency-Key`.
    pub(crate) once: Option<Vec<u8>>,
    /// The headers of a task that are header fields.
    pub(crate) headers: Vec<(String, Vec<u8>)>,
}

impl Request<'_> {
    /// Returns a name of the path. One that no path can carry is `-`, and stands in the query.
    pub(crate) fn name(&mut self, name: &str) -> Result<Vec<u8>, Problem> {
        let given = self.names.iter().find(|(known, _)| known == name);
        let given = given.map_or("", |(_, given)| given);
        let coded = format!("{name}_base64");
        if !self.values.has(&coded) {
            return decode(given);
        }
        if given != "-" {
            return Err(Problem::bad(format!("with {coded} the path has - in place of the name")));
        }
        Ok(self.values.bytes(name)?.unwrap_or_default())
    }

    /// Returns the command that the request stands for.
    pub(crate) fn asked(mut self, command: &str) -> Result<Asked, Problem> {
        let mut asked = Asked::of(command);
        for word in &self.route.words {
            match *word {
                Word::Path(name) => asked.words.push(self.name(name)?),
                Word::PathId(name) => {
                    asked.words.push(self.name(name)?);
                    asked.by_id = true;
                }
                Word::Payload => asked.words.push(self.payload()?),
                Word::Side => asked.words.extend(self.side()?),
                word => add_field(&mut asked, word, &mut self.values)?,
            }
        }
        if self.route.takes_one() {
            let id = self.name("id")?;
            asked.option(ID_TAKEN, Some(id));
        }
        let spec = &TABLE[asked.entry];
        if self.route.body == Body::Payload && !self.route.words.contains(&Word::Payload) {
            let body = self.option_of_body(spec)?;
            asked.option(body, self.optional_payload()?);
        }
        if self.route.body == Body::Payload && !self.headers.is_empty() {
            let headers = self.headers.iter().map(|(name, value)| (name.as_bytes(), &**value));
            asked.option(HEADERS, Some(headers::encode(headers)));
        }
        if spec.options.contains(&RESTART) {
            self.add_change(&mut asked)?;
        }
        self.add_once(&mut asked, spec)?;
        self.add_done(&mut asked, spec)?;
        add_options(&mut asked, spec, &mut self.values, &options_of(self.route))?;
        self.values.end(spec.name)?;
        Ok(asked)
    }

    /// Returns the payload that a command needs.
    fn payload(&mut self) -> Result<Vec<u8>, Problem> {
        match self.optional_payload()? {
            Some(payload) => Ok(payload),
            None => Err(Problem::bad(
                "the body is the payload, and there is none: ?payload=empty puts an empty one",
            )),
        }
    }

    /// Returns the option that the body is: the payload, or what the request says.
    fn option_of_body(&mut self, spec: &Spec) -> Result<Opt, Problem> {
        let Some((body, other)) = body_of(spec) else { return Ok(PAYLOAD) };
        let other_word = other.word.to_ascii_lowercase();
        match self.values.bytes(&body.word.to_ascii_lowercase())? {
            None => Ok(PAYLOAD),
            Some(given) if given == b"payload" => Ok(PAYLOAD),
            Some(given) if given == other_word.as_bytes() => Ok(other),
            Some(_) => Err(Problem::bad(format!("body is `payload` or `{other_word}`"))),
        }
    }

    fn optional_payload(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        match (self.payload.take(), self.values.bytes("payload")?) {
            (payload, None) => Ok(payload),
            (None, Some(word)) if word == b"empty" => Ok(Some(Vec::new())),
            _ => Err(Problem::bad("payload is `empty`, and only without a body")),
        }
    }

    /// Adds what a bulk change does.
    fn add_change(&mut self, asked: &mut Asked) -> Result<(), Problem> {
        let word = needed("do", self.values.bytes("do")?)?;
        let is_it = |it: &Opt| it.word.to_ascii_lowercase().as_bytes() == word;
        let Some(change) = BULK_CHANGES.into_iter().find(is_it) else {
            let known = BULK_CHANGES.map(|it| it.word.to_ascii_lowercase()).join(", ");
            return Err(Problem::bad(format!("do is one of {known}, not {}", shown(&word))));
        };
        let name = change.word.to_ascii_lowercase();
        let value = match change.value {
            None => Vec::new(),
            Some(_) if change == MOVE => needed("to", self.values.bytes("to")?)?,
            Some(_) => needed(&name, self.values.option(change)?)?,
        };
        asked.option(change, Some(value));
        Ok(())
    }

    /// Adds what `Idempotency-Key` stands for.
    fn add_once(&mut self, asked: &mut Asked, spec: &Spec) -> Result<(), Problem> {
        let Some(key) = self.once.take().filter(|_| spec.name == "PUT") else {
            return Ok(());
        };
        if self.values.has("unique") || self.values.has("window") {
            let sentence = "Idempotency-Key stands for unique and window: give one or the other";
            return Err(Problem::bad(sentence));
        }
        asked.option(UNIQUE, Some(key));
        asked.option(WINDOW, Some(IDEMPOTENCY_MS.to_vec()));
        Ok(())
    }

    /// Adds the tasks that are done before a take.
    fn add_done(&mut self, asked: &mut Asked, spec: &Spec) -> Result<(), Problem> {
        if !spec.options.contains(&DONE) {
            return Ok(());
        }
        for item in self.values.values("done")?.unwrap_or_default() {
            let mut members = Values::of_value("done", item)?;
            let queue = needed("queue", members.bytes("queue")?)?;
            let receipt = needed("receipt", members.bytes("receipt")?)?;
            let result = members.bytes("result")?;
            members.end("done")?;
            asked.done.push(AskedDone { queue, receipt, result });
        }
        Ok(())
    }

    fn side(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        Ok(match (self.values.flag("in")?, self.values.flag("out")?) {
            (true, false) => Some(b"IN".to_vec()),
            (false, true) => Some(b"OUT".to_vec()),
            _ => None,
        })
    }
}

/// Adds the words that are given by name.
fn add_field(asked: &mut Asked, word: Word, values: &mut Values) -> Result<(), Problem> {
    match word {
        Word::Either(_, name) if values.has(name) => {
            asked.words.extend(values.array(name)?.unwrap_or_default());
        }
        Word::Fields(name) => {
            let items = values.array(name)?.unwrap_or_default();
            if items.is_empty() {
                let sentence = format!("{name} is needed: an array with at least one item");
                return Err(Problem::bad(sentence));
            }
            asked.words.extend(items);
        }
        Word::Field(name) | Word::Either(name, _) => {
            asked.words.push(needed(name, values.bytes(name)?)?);
        }
        Word::Path(_) | Word::PathId(_) | Word::Payload | Word::Side => {}
    }
    Ok(())
}

/// Adds those of these options that were given.
fn add_options(
    asked: &mut Asked,
    spec: &Spec,
    values: &mut Values,
    known: &[Opt],
) -> Result<(), Problem> {
    for (place, option) in spec.options.iter().enumerate() {
        let is_known = known.contains(option) && ![WITHMETA, DONE].contains(option);
        if !is_known || asked.options.iter().any(|(known, _)| *known == place) {
            continue;
        }
        if let Some(value) = values.option(*option)? {
            asked.options.push((place, value));
        }
    }
    Ok(())
}

fn needed(name: &str, given: Option<Vec<u8>>) -> Result<Vec<u8>, Problem> {
    given.ok_or_else(|| Problem::bad(format!("{name} is needed")))
}

/// Returns a command of a transaction, given as an object.
pub(crate) fn step(name: &str, mut values: Values) -> Result<Asked, Problem> {
    let is_meant = |spec: &Spec| spec.is_step && step_name(spec) == name;
    let Some(entry) = TABLE.iter().position(is_meant) else {
        let names: Vec<String> = steps().map(step_name).collect();
        let names = names.join(", ");
        return Err(Problem::bad(format!("a command is one of {names}, not {name}")));
    };
    let mut asked = Asked { entry, ..Asked::default() };
    let spec = &TABLE[entry];
    for word in words_of(spec, None) {
        add_field(&mut asked, word, &mut values)?;
    }
    if spec.name == "PUT" && WAITING.iter().any(|option| values.has(option)) {
        return Err(Problem::bad("nothing waits in a transaction: no wait, room or result"));
    }
    add_options(&mut asked, spec, &mut values, spec.options)?;
    values.end(spec.name)?;
    Ok(asked)
}

/// Returns what a command is called in a transaction.
pub(crate) fn step_name(spec: &Spec) -> String {
    spec.full_name().to_ascii_lowercase().replace(' ', "_")
}

/// Returns the commands of transactions.
pub(crate) fn steps() -> impl Iterator<Item = &'static Spec> {
    TABLE.iter().filter(|spec| spec.is_step)
}

/// Returns the put of one of many lines.
pub(crate) fn line(queue: &[u8], line: &[u8]) -> Result<Asked, Problem> {
    let mut values = Values::default();
    values.add_object(line)?;
    let mut asked = Asked::of("PUT");
    let payload = needed("payload", values.bytes("payload")?)?;
    asked.words = vec![queue.to_vec(), payload];
    let spec = &TABLE[asked.entry];
    add_options(&mut asked, spec, &mut values, spec.options)?;
    values.end("PUT")?;
    Ok(asked)
}

/// Returns one command on a queue or a lane.
pub(crate) fn of_queue(command: &str, queue: &[u8], member: Option<&[u8]>) -> Asked {
    let mut asked = Asked::of(command).words([queue]);
    asked.option(MEMBER, member.map(<[u8]>::to_vec));
    asked
}
