//! The files of the client for TypeScript.

use std::fmt::Write as _;

use pinpriq_proto::fields::{Field as Task, FieldKind};
use pinpriq_proto::settings::{SETTINGS, Setting, SettingKind};

use super::{Opt, OptionKind, Property, Spec, Word, about, camel, first_words, pascal, wrapped};

const COMMANDS: &str = r#"// The words of every command, with their types. The methods of queues use
// these functions. Printed from the server's table of commands by
// `cargo test -p pinpriq-proto printed`.
import { type SettingsChange, settingsWords } from "./settings.js";
import { type Headers, type Held, type Moment, type Word, Words } from "./words.js";

/** The options of commands. Each command has some of them. */
export interface Options {
"#;

const SETTINGS_BEGIN: &str = r#"// The settings of queues: how they are sent and read. Printed from
// the server's table of settings by `cargo test -p pinpriq-proto printed`.
import { numberOf, numberOrNull, type ReplyMap, textOf, textOrNull } from "./replies.js";

/** A number of tasks in a number of milliseconds. */
export interface Rate {
  readonly count: number;
  readonly perMs: number;
}

/** The settings of a queue, as they are written. Null sets back to none. */
export interface SettingsChange {
"#;

const SETTINGS_SHOWN: &str = r"}

/**
 * The settings of a queue, as they are. Null is none. Moments are Unix milliseconds: a pause
 * without one has no end.
 */
";

const SETTINGS_WORDS: &str = r#"  readonly paused: "none" | "in" | "out" | "both";
  readonly pausedInUntil: number | null;
  readonly pausedOutUntil: number | null;
}

/** Returns the settings that a change names, as words. */
export function settingsWords(change: SettingsChange): string[] {
  const values: readonly (readonly [string, string | number | null | undefined])[] = [
"#;

const SETTINGS_OF: &str = r#"  ];
  return values.flatMap(([name, value]) => {
    return value === undefined ? [] : [name, value === null ? "none" : String(value)];
  });
}

/** Returns the settings that `QUEUE SHOW` tells. */
export function settingsOf(map: ReplyMap): Settings {
  return {
"#;

const SETTINGS_END: &str = r#"    paused: textOf(map["paused"]) as Settings["paused"],
    pausedInUntil: numberOrNull(map["paused_in_until"]),
    pausedOutUntil: numberOrNull(map["paused_out_until"]),
  };
}

function onOff(isOn: boolean | undefined): string | undefined {
  return isOn === undefined ? undefined : isOn ? "on" : "off";
}

function rateWord(rate: Rate | null | undefined): string | null | undefined {
  return rate ? `${rate.count}/${rate.perMs}` : rate;
}

function rateOf(word: string | null): Rate | null {
  const [count = 0, perMs = 0] = word?.split("/").map(Number) ?? [];
  return word === null ? null : { count, perMs };
}
"#;

const OPTIONS_END: &str = r"}

/** What adds each option to a request. */
const SEND: {
  readonly [Name in keyof Required<Options>]: (words: Words, value: Options[Name]) => Words;
} = {
";

const SENDING: &str = r"};

/** Adds the options of these names. */
function send<Name extends keyof Options>(
  words: Words,
  given: Pick<Options, Name>,
  names: readonly Name[],
): Words {
  for (const name of names) SEND[name](words, given[name]);
  return words;
}

/** The options that a list names. */
type Of<List extends readonly (keyof Options)[]> = Pick<Options, List[number]>;
";

/// A module with all options, and a function for each command.
pub(super) fn commands() -> String {
    let common = common();
    let mut text = COMMANDS.to_owned();
    for option in &common {
        field(&mut text, option);
    }
    text += OPTIONS_END;
    for option in &common {
        let (name, word) = (option_name(option), option.word);
        let _ = writeln!(
            text,
            "  {name}: (words, value) => words.{}(\"{word}\", value),",
            method(option)
        );
    }
    text += SENDING;
    for spec in super::commands() {
        let (shared, own): (Vec<_>, Vec<_>) =
            spec.options.iter().partition(|option| common.iter().any(|it| is_same(it, option)));
        options(&mut text, spec, &shared, &own);
        function(&mut text, spec, &own);
    }
    text
}

/// One option for each name: the one that most commands have.
fn common() -> Vec<&'static Opt> {
    let all: Vec<&Opt> = super::commands().flat_map(|spec| spec.options).collect();
    let often = |option: &Opt| all.iter().filter(|it| is_same(it, option)).count();
    let mut common: Vec<&Opt> = Vec::new();
    for &option in &all {
        match common.iter_mut().find(|it| option_name(it) == option_name(option)) {
            Some(known) if often(known) < often(option) => *known = option,
            Some(_) => {}
            None => common.push(option),
        }
    }
    common
}

fn is_same(one: &Opt, other: &Opt) -> bool {
    let told = |option| (option_name(option), kind(option), option.help, method(option));
    told(one) == told(other)
}

/// An option as a field.
fn field(text: &mut String, option: &Opt) {
    comment(text, "  ", &format!("{}.", option.help));
    let _ = writeln!(text, "  readonly {}?: {} | undefined;", option_name(option), kind(option));
}

/// The options of a command: the list of those that are as in others, and its own.
fn options(text: &mut String, spec: &Spec, shared: &[&Opt], own: &[&Opt]) {
    if spec.options.is_empty() {
        return;
    }
    let (class, list) = (pascal(&function_name(spec)), list_name(spec));
    let names: Vec<String> =
        shared.iter().map(|option| format!("\"{}\"", option_name(option))).collect();
    let line = format!("const {list} = [{}] as const;\n", names.join(", "));
    *text += "\n";
    if line.len() <= 101 {
        *text += &line;
    } else {
        let names = wrapped(&(names.join(", ") + ","), "  ", 100);
        let _ = write!(text, "const {list} = [\n{names}] as const;\n");
    }
    let _ = write!(
        text,
        "/** The options of `{}`. */\nexport type {class}Options = Of<typeof {list}>",
        spec.full_name()
    );
    if !own.is_empty() {
        *text += " & {\n";
        for option in own {
            field(text, option);
        }
        *text += "}";
    }
    *text += ";\n";
}

/// A comment of one line, or of several.
fn comment(text: &mut String, begin: &str, words: &str) {
    if begin.len() + words.len() + 7 <= 100 {
        let _ = writeln!(text, "{begin}/** {words} */");
    } else {
        let lines = wrapped(words, &format!("{begin} * "), 100);
        let _ = write!(text, "{begin}/**\n{lines}{begin} */\n");
    }
}

fn function(text: &mut String, spec: &Spec, own: &[&Opt]) {
    *text += "\n";
    comment(text, "", &about(spec));
    let function = function_name(spec);
    let (mut parameters, added): (Vec<_>, Vec<_>) = spec.words.iter().map(parameter).unzip();
    let (first, mut calls) = first_words(spec, added);
    calls.insert(0, format!("new Words({first})"));
    let mut request = calls.join(".");
    if !spec.options.is_empty() {
        parameters.push(format!("options: {}Options = {{}}", pascal(&function)));
        request = format!("send({request}, options, {})", list_name(spec));
    }
    let ends: Vec<String> = own
        .iter()
        .map(|it| format!(".{}(\"{}\", options.{})", method(it), it.word, option_name(it)))
        .collect();
    let is_long = request.len() > 60 || request.len() + ends.concat().len() > 90;
    let line_end = if is_long { "\n    " } else { "" };
    request.extend(ends.iter().flat_map(|end| [line_end, end]));
    let line = format!("export function {function}({}): Words {{\n", parameters.join(", "));
    if line.len() <= 101 {
        *text += &line;
    } else {
        let parameters = parameters.join(",\n  ");
        let _ = write!(text, "export function {function}(\n  {parameters},\n): Words {{\n");
    }
    let _ = write!(text, "  return {request};\n}}\n");
}

/// The name of the list of a command's options.
fn list_name(spec: &Spec) -> String {
    spec.full_name().replace(' ', "_")
}

fn function_name(spec: &Spec) -> String {
    let name = camel(&spec.full_name().to_lowercase().replace(' ', "_"));
    // Words that the language keeps for itself.
    if ["await", "export", "import", "switch"].contains(&name.as_str()) {
        name + "Command"
    } else {
        name
    }
}

fn name(word: &str) -> String {
    super::name(word, |row| row.2)
}

/// The name of an option, which ends with the unit of a length of time.
fn option_name(option: &Opt) -> String {
    let unit = match option.kind() {
        OptionKind::Span | OptionKind::SpanOrNone | OptionKind::Wait => "Ms",
        _ => "",
    };
    name(option.word) + unit
}

fn parameter(word: &Word) -> (String, String) {
    match *word {
        Word::One(of) | Word::Key(of) => {
            let (name, kind) = word_of(of);
            (
                format!("{name}: {kind}"),
                format!("add({})", if of == "n" { "String(n)" } else { &name }),
            )
        }
        Word::MaybeKeyFirst(of) => {
            let (name, kind) = word_of(of);
            (format!("{name}: {kind} | undefined"), format!("maybe({name})"))
        }
        Word::Maybe(of) | Word::MaybeKey(of) => {
            let (name, kind) = word_of(of);
            (format!("{name}?: {kind}"), format!("maybe({name})"))
        }
        Word::Some(of) | Word::Any(of) => {
            (format!("{of}s: readonly string[]"), format!("add(...{of}s)"))
        }
        Word::Settings => {
            ("settings: SettingsChange".to_owned(), "add(...settingsWords(settings))".to_owned())
        }
        Word::AnySettings => {
            let words = "add(...settingsWords(settings))";
            ("settings: SettingsChange = {}".to_owned(), words.to_owned())
        }
        Word::Queues => ("queues: readonly string[]".to_owned(), "queues(queues)".to_owned()),
        Word::AnyQueues => {
            ("queues: readonly string[] = []".to_owned(), "anyQueues(queues)".to_owned())
        }
        Word::Held => ("held: Held".to_owned(), "held(held)".to_owned()),
        Word::CountOrId => {
            ("count: number | { readonly id: string }".to_owned(), "held(count)".to_owned())
        }
        Word::HeldOrMore => ("held: Held | readonly string[]".to_owned(), "held(held)".to_owned()),
    }
}

fn word_of(of: &str) -> (String, String) {
    let kind = match of {
        "payload" => "Word".to_owned(),
        "n" => "number".to_owned(),
        _ if of.contains('|') => union(of),
        _ => "string".to_owned(),
    };
    (name(of), kind)
}

/// A union of words, in small letters unless they are states.
fn union(words: &str) -> String {
    let small = |word: &str| if word.len() == 1 { word.to_owned() } else { word.to_lowercase() };
    let words: Vec<String> = words.split('|').map(|word| format!("\"{}\"", small(word))).collect();
    words.join(" | ")
}

fn kind(option: &Opt) -> String {
    match option.kind() {
        OptionKind::Flag => "boolean".to_owned(),
        OptionKind::Number | OptionKind::Span | OptionKind::Wait => "number".to_owned(),
        OptionKind::NumberOrNone => "number | bigint | null".to_owned(),
        OptionKind::SpanOrNone => "number | null".to_owned(),
        OptionKind::Moment => "Moment".to_owned(),
        OptionKind::Words(words) => union(words),
        OptionKind::Pairs => "readonly (readonly [string, string])[]".to_owned(),
        OptionKind::Two("low high") => "readonly [number, number]".to_owned(),
        OptionKind::Two(_) => "readonly [string, string]".to_owned(),
        OptionKind::Headers => "Headers".to_owned(),
        OptionKind::Names => "readonly string[]".to_owned(),
        OptionKind::Bytes("key" | "payload" | "share") => "Word".to_owned(),
        OptionKind::Bytes(_) => "string".to_owned(),
    }
}

fn method(option: &Opt) -> &'static str {
    match option.kind() {
        OptionKind::Flag => "flag",
        OptionKind::Number => "number",
        OptionKind::NumberOrNone => "numberOrNone",
        OptionKind::SpanOrNone => "spanOrNone",
        OptionKind::Span | OptionKind::Wait => "span",
        OptionKind::Moment => "moment",
        OptionKind::Pairs => "pairs",
        OptionKind::Two(_) => "two",
        OptionKind::Headers => "headers",
        OptionKind::Names => "counted",
        OptionKind::Bytes("text" | "pattern") if option.word == "REASON" => "reason",
        OptionKind::Words(_) | OptionKind::Bytes(_) => "option",
    }
}

/// The module of settings.
pub(super) fn settings() -> String {
    let mut text = SETTINGS_BEGIN.to_owned();
    let all: Vec<Property> = SETTINGS.into_iter().flat_map(fields).collect();
    for Property { name, help, given, .. } in &all {
        comment(&mut text, "  ", &format!("{help}."));
        let _ = writeln!(text, "  readonly {name}?: {given};");
    }
    text += SETTINGS_SHOWN;
    let others: Vec<&Property> = all.iter().filter(|it| it.shown != it.given).collect();
    let names: Vec<String> = others.iter().map(|it| format!("\"{}\"", it.name)).collect();
    let same = format!("Required<Omit<SettingsChange, {}>>", names.join(" | "));
    let _ = writeln!(text, "export interface Settings extends {same} {{");
    for Property { name, shown, .. } in others {
        let _ = writeln!(text, "  readonly {name}: {shown};");
    }
    text += SETTINGS_WORDS;
    for Property { word, name, send, .. } in &all {
        let _ =
            writeln!(text, "    [\"{word}\", {}],", send.replace('_', &format!("change.{name}")));
    }
    text += SETTINGS_OF;
    for Property { word, name, read, .. } in &all {
        let value = read.replace('_', &format!("map[\"{}\"]", word.to_lowercase()));
        let _ = writeln!(text, "    {name}: {},", value.replace('!', name));
    }
    text + SETTINGS_END
}

/// The parts of a setting. In what sends and reads it, `_` stands for the value and `!` for the
/// field's name.
fn fields(setting: &'static Setting) -> Vec<Property> {
    let none = if setting.optional { " | null" } else { "" };
    let name = |at| camel(&setting.flags().nth(at).unwrap_or_default().replace('-', "_"));
    let of = |given: String, send, read| Property {
        word: setting.name,
        name: name(0),
        help: setting.help,
        shown: given.clone(),
        given,
        send,
        read,
    };
    let known: Vec<&str> = setting.words().map(|word| word.word).collect();
    let own = match &setting.kind {
        SettingKind::Number | SettingKind::Span if setting.optional => {
            of("number | null".to_owned(), "_", "numberOrNull(_)")
        }
        SettingKind::Number | SettingKind::Span => of("number".to_owned(), "_", "numberOf(_)"),
        SettingKind::Name | SettingKind::Limits => {
            of(format!("string{none}"), "_", "textOrNull(_)")
        }
        SettingKind::Rate => of(format!("Rate{none}"), "rateWord(_)", "rateOf(textOrNull(_))"),
        SettingKind::Words(_) if known == ["off", "on"] => {
            of("boolean".to_owned(), "onOff(_)", "textOf(_) === \"on\"")
        }
        SettingKind::Words(_) | SettingKind::WordsOrSpan(..) => {
            of(union(&known.join("|")), "_", "textOf(_) as Settings[\"!\"]")
        }
    };
    let length = setting.length().map(|length| Property {
        word: length.name,
        name: name(1),
        help: length.help,
        given: "number".to_owned(),
        shown: "number | null".to_owned(),
        send: "_",
        read: "numberOrNull(_)",
    });
    std::iter::once(own).chain(length).collect()
}

const META_BEGIN: &str = r#"// What the server tells about a task besides its payload. Printed from
// the server's table of fields by `cargo test -p pinpriq-proto printed`.
import {
  type Attempt, attemptsOf, isYes, namesOf, numberOf, numberOrNull, type Origin, originOf,
  ownNumber, type ReplyMap, type State, textOf, textOrNull, textsOf,
} from "./replies.js";

/** What the server knows about a task. Moments are Unix milliseconds. */
export interface TaskMeta {
"#;

const META_OF: &str = r"  /** Where it comes from if it is a dead letter. */
  readonly origin: Origin | null;
}

/** Returns what a map tells about a task. */
export function metaOf(map: ReplyMap): TaskMeta {
  return {
";

/// Fields that a task has beside its meta.
const BESIDE: [&str; 5] = ["queue", "member", "id", "receipt", "payload"];

/// The module of the fields of a task.
pub(super) fn meta() -> String {
    let fields = || super::task_fields().filter(|field| !BESIDE.contains(&field.name));
    let mut text = META_BEGIN.to_owned();
    for field in fields() {
        comment(&mut text, "  ", &super::sentence(field.help));
        let (kind, _) = meta_field(field);
        let _ = writeln!(text, "  readonly {}: {kind};", meta_name(field));
    }
    text += META_OF;
    for field in fields() {
        let (_, read) = meta_field(field);
        let value = read.replace('!', &format!("map[\"{}\"]", field.name));
        let _ = writeln!(text, "    {}: {value},", meta_name(field));
    }
    text + "    origin: originOf(map),\n  };\n}\n"
}

/// The name of a field, which ends with the unit of a length of time.
fn meta_name(field: &Task) -> String {
    let is_span = matches!(field.kind, FieldKind::Span | FieldKind::SpanOrNone);
    camel(field.name) + if is_span { "Ms" } else { "" }
}

/// The type of a field, and what reads it, where `!` stands for what was sent.
fn meta_field(field: &Task) -> (&'static str, &'static str) {
    match field.kind {
        FieldKind::State => ("State", "textOf(!) as State"),
        FieldKind::NumberOrNone | FieldKind::SpanOrNone => {
            ("number | \"none\" | null", "ownNumber(!)")
        }
        FieldKind::Truth => ("boolean", "isYes(!)"),
        FieldKind::Headers => ("Readonly<Record<string, string>>", "textsOf(!)"),
        FieldKind::Attempts => ("readonly Attempt[]", "attemptsOf(!)"),
        FieldKind::Names => ("readonly string[]", "namesOf(!)"),
        FieldKind::Bytes
        | FieldKind::Id
        | FieldKind::Payload
        | FieldKind::Receipt
        | FieldKind::Address => {
            if field.always {
                ("string", "textOf(!)")
            } else {
                ("string | null", "textOrNull(!)")
            }
        }
        FieldKind::Count
        | FieldKind::Number
        | FieldKind::Integer
        | FieldKind::Moment
        | FieldKind::Span => {
            if field.always {
                ("number", "numberOf(!)")
            } else {
                ("number | null", "numberOrNull(!)")
            }
        }
    }
}
