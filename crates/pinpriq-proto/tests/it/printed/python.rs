//! The files of the client for Python.

use std::fmt::Write as _;

use pinpriq_proto::fields::{Field as Task, FieldKind};
use pinpriq_proto::settings::{SETTINGS, Setting, SettingKind};

use super::{Opt, OptionKind, Property, Spec, Word, first_words, given, pascal, wrapped};

/// Words that Python keeps for itself.
const KEPT: [&str; 4] = ["await", "import", "from", "for"];

/// Options that the head of the module explains.
const EXPLAINED: [&str; 5] = ["MEMBER", "WITHMETA", "WAIT", "PAYLOAD", "CURSOR"];

const COMMANDS: &str = r#"""The words of every command, with their types.

Printed from the server's table of commands by `cargo test -p pinpriq-proto printed`. The methods of
queues use these functions. `Queue.command` and `Client.command` send any of them.

Where there is a `member`, its lane is meant, and the queue is the topic then. `meta` asks for all
that is known of each task, `wait` says how long to wait, `payload` is the new one of the task, and
a `cursor` is `"0"` at first, then that of the last reply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from .replies import State
from .requests.base import Done, Name, Priority, Receipt, Words
from .settings import QueueSettings
from .spans import Moment, Span

if TYPE_CHECKING:
    from typing_extensions import Unpack

"#;

const SETTINGS_BEGIN: &str = r#"""The settings of a queue or lane: how they are sent and shown.

Printed from the server's table of settings by `cargo test -p pinpriq-proto printed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from .parsing import record
from .requests.base import Words
from .spans import Span
from .values import mapping


@dataclass(frozen=True)
class QueueSettings:
    """Settings of a queue or lane. Those that are None stay as they are. Spans are seconds.

    `"none"` removes a setting. `rate` is a number of tasks and the span for them.
    """

"#;

const SETTINGS_WORDS: &str = r#"
    def words(self) -> Words:
        """Return the settings as the words of a request."""
        words = Words()
"#;

const SHOWN: &str = r#"        return words


@dataclass(frozen=True)
class QueueShown:
    """The settings of a queue. Spans are in seconds, and None means `none`."""

"#;

const SHOWN_OF: &str = r#"    #: Which sides are paused.
    paused: str
    #: When the pause of puts ends.
    paused_in_until: datetime | None
    #: When the pause of takes ends.
    paused_out_until: datetime | None


def queue_shown(reply: Any) -> QueueShown:
    """Return the settings of a queue."""
    of = mapping(reply)
    names = QueueShown.__annotations__
    return record(QueueShown, {name: of.get(name, of.get(name.replace("_", ""))) for name in names})
"#;

/// A module with a function for each command, and the options of each.
pub(super) fn commands() -> String {
    let mut text = format!("\"{COMMANDS}");
    text += "#: How each option is sent: its word, and the method of `Words` that adds it.\n";
    text += "OPTIONS = {\n";
    let mut known: Vec<&Opt> = Vec::new();
    for option in super::commands().flat_map(given) {
        let same = known.iter().find(|one| one.word == option.word);
        assert!(same.is_none_or(|one| value(one).2 == value(option).2), "{}", option.word);
        if same.is_none() {
            known.push(option);
            let (name, how) = (name(option.word), value(option).2);
            let _ = writeln!(text, "    \"{name}\": (\"{}\", \"{how}\"),", option.word);
        }
    }
    text += "}\n";
    let mut classes = Vec::new();
    for spec in super::commands() {
        options(&mut text, spec, &mut classes);
        function(&mut text, spec);
    }
    text
}

/// The class of the options that a method of a queue hands on to the function of the command. It
/// begins with those of the largest class before it that has no others.
fn options(text: &mut String, spec: &'static Spec, classes: &mut Vec<(String, Vec<&'static Opt>)>) {
    let all: Vec<&Opt> = given(spec).collect();
    if all.is_empty() {
        return;
    }
    let has = |of: &[&Opt], option: &Opt| {
        of.iter()
            .any(|it| (it.word, it.kind(), it.help) == (option.word, option.kind(), option.help))
    };
    let former = classes.iter().filter(|(_, of)| of.iter().all(|option| has(&all, option)));
    let (base, inherited) = former
        .max_by_key(|(_, of)| of.len())
        .map_or(("TypedDict", &[][..]), |(class, of)| (class.as_str(), of));
    let function = function_name(spec);
    let class = pascal(&function) + "Options";
    let own: Vec<_> = all.iter().filter(|option| !has(inherited, option)).collect();
    let total = if own.is_empty() { "" } else { ", total=False" };
    let _ = write!(
        text,
        "\n\nclass {class}({base}{total}):\n    \"\"\"Options of `{function}`.\"\"\"\n"
    );
    if !own.is_empty() {
        text.push('\n');
    }
    for option in own {
        *text += &wrapped(&super::sentence(option.help), "    #: ", 100);
        let _ = writeln!(text, "    {}: {}", name(option.word), value(option).0);
    }
    classes.push((class, all));
}

fn function(text: &mut String, spec: &'static Spec) {
    let words = parameters(spec);
    let is_handed_on = |option: &Opt| given(spec).any(|it| it.word == option.word);
    let own: Vec<&Opt> = spec.options.iter().filter(|option| !is_handed_on(option)).collect();
    let class = format!("{}Options", pascal(&function_name(spec)));
    let mut parameters: Vec<String> = words.iter().map(|(word, _)| word.clone()).collect();
    let held = words.iter().any(|(word, _)| word.contains("Receipt") || word.starts_with("count:"));
    let starred = words.iter().any(|(word, _)| word.starts_with('*'));
    if (held || !own.is_empty()) && !starred {
        parameters.push("*".to_owned());
    }
    if held {
        parameters.push("id: Name | None = None".to_owned());
    }
    let (first, mut calls) = first_words(spec, words.into_iter().map(|(_, call)| call));
    calls.insert(0, format!("Words({first})"));
    for option in &own {
        let (name, (kind, default, method)) = (name(option.word), value(option));
        parameters.push(format!("{name}: {kind} = {default}"));
        calls.push(format!("{method}(\"{}\", {name})", option.word));
    }
    if own.len() < spec.options.len() {
        parameters.push(format!("**options: Unpack[{class}]"));
        calls.push(format!("options(options, {class}, OPTIONS)"));
    }
    let line = format!("def {}({}) -> Words:\n", function_name(spec), parameters.join(", "));
    *text += "\n\n";
    if line.len() <= 101 {
        *text += &line;
    } else {
        let parameters = parameters.join(",\n    ");
        let _ = write!(text, "def {}(\n    {parameters},\n) -> Words:\n", function_name(spec));
    }
    let _ = write!(text, "    \"\"\"{}.\n\n", spec.summary);
    *text += &wrapped(&format!("The reply: {}.", spec.reply), "    ", 100);
    let told: Vec<&&Opt> = own.iter().filter(|option| !EXPLAINED.contains(&option.word)).collect();
    if !told.is_empty() {
        text.push('\n');
    }
    for option in told {
        let line = format!("`{}`: {}.", name(option.word), lower(option.help));
        *text += &wrapped(&line, "    ", 100);
    }
    *text += "    \"\"\"\n";
    let line = format!("    return {}\n", calls.join("."));
    if line.len() <= 101 {
        *text += &line;
        return;
    }
    let last = calls.pop().unwrap_or_default();
    let mut line = "    words = ".to_owned() + &calls.remove(0);
    for call in calls {
        if line.len() + 1 + call.len() > 100 {
            let _ = writeln!(text, "{line}");
            line = "    words".to_owned();
        }
        let _ = write!(line, ".{call}");
    }
    let _ = write!(text, "{line}\n    return words.{last}\n");
}

fn lower(text: &str) -> String {
    text[..1].to_lowercase() + &text[1..]
}

fn function_name(spec: &Spec) -> String {
    let name = spec.full_name().to_lowercase().replace(' ', "_");
    if KEPT.contains(&name.as_str()) { name + "_" } else { name }
}

fn name(word: &str) -> String {
    super::name(word, |row| row.1)
}

/// The parameters of the words before the options, and what adds each to the request.
fn parameters(spec: &Spec) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for word in spec.words {
        let (parameter, call) = match *word {
            Word::One(of) | Word::Key(of) => {
                let (name, kind, call) = word_of(of);
                (format!("{name}: {kind}"), call)
            }
            Word::MaybeKeyFirst(of) => {
                let (name, kind, _) = word_of(of);
                (format!("{name}: {kind} | None"), format!("maybe({name})"))
            }
            Word::Maybe(of) | Word::MaybeKey(of) => {
                let (name, kind, _) = word_of(of);
                (format!("{name}: {kind} | None = None"), format!("maybe({name})"))
            }
            Word::Some(of) | Word::Any(of) => (format!("*{of}s: Name"), format!("add(*{of}s)")),
            Word::Settings => {
                ("settings: QueueSettings".to_owned(), "add(*settings.words())".to_owned())
            }
            Word::AnySettings => {
                let words = "add(*settings.words() if settings else ())";
                ("settings: QueueSettings | None = None".to_owned(), words.to_owned())
            }
            Word::Queues => ("queues: Sequence[Name]".to_owned(), "names(queues)".to_owned()),
            Word::AnyQueues => {
                ("queues: Sequence[Name] = ()".to_owned(), "any_names(queues)".to_owned())
            }
            Word::Held => {
                ("receipt: Receipt | None = None".to_owned(), "holder(receipt, id)".to_owned())
            }
            Word::CountOrId => {
                ("count: int | None = None".to_owned(), "holder(count, id)".to_owned())
            }
            Word::HeldOrMore => {
                ("*receipts: Receipt".to_owned(), "holders(receipts, id)".to_owned())
            }
        };
        all.push((parameter, call));
    }
    all
}

/// A word by its name in the table: the name of its parameter, its type, and what adds it.
fn word_of(of: &str) -> (String, String, String) {
    let own = name(of);
    match of {
        "payload" => (own.clone(), "bytes".to_owned(), format!("add({own})")),
        "n" => (own.clone(), "int".to_owned(), format!("add({own})")),
        _ if is_states(of) => (own.clone(), "State".to_owned(), format!("add(State({own}).value)")),
        _ if of.contains('|') => (own.clone(), literal(of), format!("add({own})")),
        _ => (own.clone(), "Name".to_owned(), format!("add({own})")),
    }
}

/// Whether these alternatives are states, by their letters.
fn is_states(words: &str) -> bool {
    words.split('|').all(|word| word.len() == 1)
}

fn literal(words: &str) -> String {
    let words: Vec<String> =
        words.split('|').map(|word| format!("\"{}\"", word.to_lowercase())).collect();
    format!("Literal[{}]", words.join(", "))
}

/// The type of an option's value, its default, and what adds it to a request.
fn value(option: &Opt) -> (String, &'static str, &'static str) {
    let maybe = |kind: &str| format!("{kind} | None");
    match option.kind() {
        OptionKind::Flag => ("bool".to_owned(), "False", "switch"),
        OptionKind::Number => (maybe("int"), "None", "option"),
        OptionKind::NumberOrNone if option.word == "PRIORITY" => {
            (maybe("Priority"), "None", "priority")
        }
        OptionKind::NumberOrNone => (maybe("int | Literal[\"none\"]"), "None", "option"),
        OptionKind::Span => (maybe("Span"), "None", "span"),
        OptionKind::SpanOrNone => (maybe("Span | Literal[\"none\"]"), "None", "span"),
        OptionKind::Wait => (maybe("Span"), "None", "wait"),
        OptionKind::Moment => (maybe("Moment"), "None", "moment"),
        OptionKind::Words(words) if is_states(words) => (maybe("State"), "None", "state"),
        OptionKind::Words(words) => (maybe(&literal(words)), "None", "option"),
        OptionKind::Pairs => ("Iterable[Done]".to_owned(), "()", "done"),
        OptionKind::Two("low high") => (maybe("tuple[int, int]"), "None", "two"),
        OptionKind::Two(_) => (maybe("tuple[Name, Name]"), "None", "two"),
        OptionKind::Headers => (maybe("Mapping[str, Name]"), "None", "headers"),
        OptionKind::Names => (maybe("Sequence[Name]"), "None", "counted"),
        OptionKind::Bytes("payload") => (maybe("bytes"), "None", "option"),
        OptionKind::Bytes("text" | "pattern") if option.word == "REASON" => {
            (maybe("str"), "None", "reason")
        }
        OptionKind::Bytes(_) => (maybe("Name"), "None", "option"),
    }
}

/// The module of settings.
pub(super) fn settings() -> String {
    let mut text = format!("\"{SETTINGS_BEGIN}");
    let all: Vec<Property> = SETTINGS.into_iter().flat_map(fields).collect();
    for Property { name, help, given, .. } in &all {
        text += &wrapped(&format!("{help}."), "    #: ", 100);
        let _ = writeln!(text, "    {name}: {given} | None = None");
    }
    text += SETTINGS_WORDS;
    for Property { word, name, send, .. } in &all {
        let _ = writeln!(text, "        words.{send}(\"{word}\", self.{name})");
    }
    text += SHOWN;
    for Property { name, shown, .. } in &all {
        let _ = writeln!(text, "    {name}: {shown}");
    }
    text + SHOWN_OF
}

/// The parts of a setting. A method of `Words` sends it, and its type says how it is read.
fn fields(setting: &'static Setting) -> Vec<Property> {
    let none = if setting.optional { " | Literal[\"none\"]" } else { "" };
    let maybe = if setting.optional { " | None" } else { "" };
    let of = |given: String, shown: &str, send| Property {
        word: setting.name,
        name: setting.field.to_owned(),
        help: setting.help,
        given,
        shown: shown.to_owned(),
        send,
        read: "",
    };
    let number = format!("int{maybe}");
    let words = |words: &[&str]| literal(&words.join("|"));
    let known: Vec<&str> = setting.words().map(|word| word.word).collect();
    let own = match &setting.kind {
        SettingKind::Number => of(format!("int{none}"), &number, "option"),
        SettingKind::Span if setting.optional => of(format!("Span{none}"), "float | None", "span"),
        SettingKind::Span => of("Span".to_owned(), "float", "span"),
        SettingKind::Name | SettingKind::Limits => {
            of("str | bytes".to_owned(), "str | None", "option")
        }
        SettingKind::Rate => {
            of(format!("tuple[int, Span]{none}"), "tuple[int, float] | None", "rate")
        }
        SettingKind::Words(_) if known == ["off", "on"] => of("bool".to_owned(), "bool", "on_off"),
        SettingKind::Words(_) | SettingKind::WordsOrSpan(..) => of(words(&known), "str", "option"),
    };
    let length = setting.length().map(|length| Property {
        word: length.name,
        name: length.name.to_lowercase(),
        help: length.help,
        given: "Span".to_owned(),
        shown: "float | None".to_owned(),
        send: "span",
        read: "",
    });
    std::iter::once(own).chain(length).collect()
}

const TASK_BEGIN: &str = r#"""What the server tells about a task.

Printed from the server's table of fields by `cargo test -p pinpriq-proto printed`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from .replies import Attempt, Origin, State


@dataclass(frozen=True)
class Task:
    """A task and all that the server tells about it.

    The fields after `payload` have their default unless the request asked for everything (`meta`).
    `receipt` is only there for a task that was just taken. `slot` is that of a task that a schedule
    has put.
    """

"#;

const TASK_VALUE: &str = "    #: The payload as the serialiser of the queue reads it.
    value: Any = None
";

const TASK_END: &str = "    #: Where a dead letter comes from.
    origin: Origin | None = None
";

/// The fields that a task always has, in the order of the arguments of a task.
const FIRST: [&str; 4] = ["queue", "id", "receipt", "payload"];

/// The module of tasks.
pub(super) fn task() -> String {
    let first = FIRST.iter().filter_map(|name| Task::named(name));
    let rest = super::task_fields().filter(|field| !FIRST.contains(&field.name));
    let mut text = format!("\"{TASK_BEGIN}");
    for field in first {
        let (kind, _) = task_field(field);
        let _ = write!(text, "    #: {}.\n    {}: {kind}\n", upper(field.help), field.name);
    }
    text += TASK_VALUE;
    for field in rest {
        let (kind, default) = task_field(field);
        text += &wrapped(&format!("{}.", upper(field.help)), "    #: ", 100);
        let _ = writeln!(text, "    {}: {kind} = {default}", field.name);
    }
    text + TASK_END
}

fn upper(text: &str) -> String {
    text[..1].to_uppercase() + &text[1..].replace('`', "")
}

/// The type of a field, and its default.
fn task_field(field: &Task) -> (&'static str, &'static str) {
    match (field.kind, field.name) {
        (FieldKind::Payload, _) => ("bytes", "b\"\""),
        (FieldKind::Bytes, "key" | "share" | "checkpoint" | "result") => ("bytes | None", "None"),
        (FieldKind::Bytes | FieldKind::Id, _) if field.always => ("str", "\"\""),
        (FieldKind::Bytes | FieldKind::Id | FieldKind::Receipt | FieldKind::Address, _) => {
            ("str | None", "None")
        }
        (FieldKind::State, _) => ("State | None", "None"),
        (FieldKind::Count, _) => ("int", "0"),
        (FieldKind::Integer | FieldKind::Number, _) => ("int | None", "None"),
        (FieldKind::Moment, _) => ("datetime | None", "None"),
        (FieldKind::Span, _) => ("float | None", "None"),
        (FieldKind::NumberOrNone, _) => ("int | Literal[\"none\"] | None", "None"),
        (FieldKind::SpanOrNone, _) => ("float | Literal[\"none\"] | None", "None"),
        (FieldKind::Truth, _) => ("bool", "False"),
        (FieldKind::Headers, _) => ("dict[str, str]", "field(default_factory=dict)"),
        (FieldKind::Attempts, _) => ("tuple[Attempt, ...]", "()"),
        (FieldKind::Names, _) => ("tuple[str, ...]", "()"),
    }
}
