//! The commands as data: `COMMAND`, `COMMAND INFO`, `COMMAND DOCS`.

use pinpriq_proto::wire::resp::Writer;

use super::keys::Positions;
use pinpriq_proto::request::spec::{Group, Spec, Word};
use pinpriq_proto::request::table::TABLE;

/// The version that introduced all of the commands.
const SINCE: &str = "0.1.0";

/// Returns the names of all commands, without subcommands.
pub(crate) fn names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = TABLE.iter().map(|spec| spec.name).collect();
    names.dedup();
    names
}

/// Writes the reply of `COMMAND INFO` about the wanted commands, or about all.
pub(crate) fn infos(writer: &mut Writer<'_>, wanted: &[&[u8]]) {
    if wanted.is_empty() {
        let names = names();
        writer.array(names.len());
        for name in names {
            info(writer, name.as_bytes());
        }
        return;
    }
    writer.array(wanted.len());
    for name in wanted {
        info(writer, name);
    }
}

/// Writes what there is to say about a command, or about a subcommand after a bar.
fn info(writer: &mut Writer<'_>, name: &[u8]) {
    let mut words = name.splitn(2, |byte| *byte == b'|');
    let (name, sub) = (words.next().unwrap_or_default(), words.next());
    if let Some(sub) = sub {
        let is_it =
            |spec: &&Spec| spec.sub.is_some_and(|known| sub.eq_ignore_ascii_case(known.as_bytes()));
        return match entries(name).find(is_it) {
            Some(spec) => info_of(writer, (spec.name, Some(spec)), &[]),
            None => writer.null_array(),
        };
    }
    let Some(first) = entries(name).next() else { return writer.null_array() };
    let plain = entries(name).find(|spec| spec.sub.is_none());
    let subs: Vec<&Spec> = entries(name).filter(|spec| spec.sub.is_some()).collect();
    info_of(writer, (first.name, plain), &subs);
}

/// Writes an entry as Redis 7 has it. `spec` is missing for a command that needs a subcommand.
fn info_of(writer: &mut Writer<'_>, (name, spec): (&str, Option<&Spec>), subs: &[&Spec]) {
    let name = spec.map_or_else(|| name.to_owned(), word);
    let keys = spec.map(Positions::of).unwrap_or_default();
    writer.array(10);
    writer.bulk(name.to_ascii_lowercase().as_bytes());
    writer.integer(spec.map_or(-2, Spec::arity));
    writer.array(usize::from(keys.are_movable));
    if keys.are_movable {
        writer.simple("movablekeys");
    }
    for number in [keys.first, keys.last, keys.step] {
        writer.integer(number);
    }
    // There are no categories of access lists, no tips, and no other descriptions of keys.
    for _ in 0..3 {
        writer.array(0);
    }
    writer.array(subs.len());
    for sub in subs {
        info_of(writer, (sub.name, Some(sub)), &[]);
    }
}

/// Returns the name of a command, or of a subcommand after a bar.
fn word(spec: &Spec) -> String {
    spec.full_name().replace(' ', "|")
}

/// Writes the reply of `COMMAND DOCS` about the wanted commands, or about all.
pub(crate) fn docs(writer: &mut Writer<'_>, wanted: &[&[u8]]) {
    let known: Vec<&str> = names()
        .into_iter()
        .filter(|name| {
            let asked_for = |word: &&[u8]| word.eq_ignore_ascii_case(name.as_bytes());
            wanted.is_empty() || wanted.iter().any(asked_for)
        })
        .collect();
    writer.map(known.len());
    for name in known {
        writer.bulk(name.to_ascii_lowercase().as_bytes());
        let subs: Vec<&Spec> = entries(name.as_bytes()).filter(|spec| spec.sub.is_some()).collect();
        match entries(name.as_bytes()).find(|spec| spec.sub.is_none()) {
            Some(spec) => doc(writer, spec, &subs),
            None => container(writer, name, &subs),
        }
    }
}

fn doc(writer: &mut Writer<'_>, spec: &Spec, subs: &[&Spec]) {
    let arguments = arguments(spec);
    writer.map(3 + usize::from(!arguments.is_empty()) + usize::from(!subs.is_empty()));
    facts(writer, spec.summary, spec.group);
    if !arguments.is_empty() {
        writer.bulk(b"arguments");
        writer.array(arguments.len());
        for argument in &arguments {
            argument.write(writer);
        }
    }
    if !subs.is_empty() {
        subcommands(writer, subs);
    }
}

fn container(writer: &mut Writer<'_>, name: &str, subs: &[&Spec]) {
    writer.map(4);
    let group = subs.first().map_or(Group::Connection, |spec| spec.group);
    facts(writer, &format!("A container for {} commands", name.to_ascii_lowercase()), group);
    subcommands(writer, subs);
}

fn facts(writer: &mut Writer<'_>, summary: &str, group: Group) {
    writer.bulk(b"summary");
    writer.bulk(summary.as_bytes());
    writer.bulk(b"since");
    writer.bulk(SINCE.as_bytes());
    writer.bulk(b"group");
    writer.bulk(group.name().to_ascii_lowercase().as_bytes());
}

fn subcommands(writer: &mut Writer<'_>, subs: &[&Spec]) {
    writer.bulk(b"subcommands");
    writer.map(subs.len());
    for spec in subs {
        writer.bulk(word(spec).to_ascii_lowercase().as_bytes());
        doc(writer, spec, &[]);
    }
}

/// An argument as `COMMAND DOCS` describes it.
struct Argument {
    name: String,
    token: Option<&'static str>,
    has_value: bool,
    optional: bool,
    multiple: bool,
}

fn arguments(spec: &Spec) -> Vec<Argument> {
    let word = |name: &str, optional, multiple| Argument {
        name: name.to_owned(),
        token: None,
        has_value: true,
        optional,
        multiple,
    };
    let words = spec.words.iter().map(|entry| match entry {
        Word::One(name) | Word::Key(name) => word(name, false, false),
        Word::Maybe(name) | Word::MaybeKey(name) | Word::MaybeKeyFirst(name) => {
            word(name, true, false)
        }
        Word::Some(name) => word(name, false, true),
        Word::Any(name) => word(name, true, true),
        Word::Settings => word("setting value", false, true),
        Word::AnySettings => word("setting value", true, true),
        Word::Queues => word("queue|QUEUES n queue", false, true),
        Word::AnyQueues => word("queue|QUEUES n queue", true, true),
        Word::Held => word("receipt|ID id", false, false),
        Word::CountOrId => word("n|ID id", false, false),
        Word::HeldOrMore => word("receipt|ID id", false, true),
    });
    let options = spec.options.iter().map(|option| Argument {
        name: option.value.unwrap_or(option.word).to_ascii_lowercase(),
        token: Some(option.word),
        has_value: option.value.is_some(),
        optional: true,
        multiple: false,
    });
    words.chain(options).collect()
}

impl Argument {
    fn write(&self, writer: &mut Writer<'_>) {
        let mut flags = Vec::new();
        if self.optional {
            flags.push("optional");
        }
        if self.multiple {
            flags.push("multiple");
        }
        writer.map(3 + usize::from(self.token.is_some()) + usize::from(!flags.is_empty()));
        writer.bulk(b"name");
        writer.bulk(self.name.as_bytes());
        writer.bulk(b"type");
        writer.bulk(if self.has_value { b"string" } else { b"pure-token" });
        writer.bulk(b"display_text");
        writer.bulk(self.name.as_bytes());
        if let Some(token) = self.token {
            writer.bulk(b"token");
            writer.bulk(token.as_bytes());
        }
        if !flags.is_empty() {
            writer.bulk(b"flags");
            writer.array(flags.len());
            for flag in flags {
                writer.simple(flag);
            }
        }
    }
}

fn entries(name: &[u8]) -> impl Iterator<Item = &'static Spec> {
    TABLE.iter().filter(move |spec| name.eq_ignore_ascii_case(spec.name.as_bytes()))
}
