//! Prints the settings and the fields of tasks that the dashboard shows.

use std::fmt::Write as _;

use pinpriq_proto::fields::{FieldKind, TASK};
use pinpriq_proto::settings::{SETTINGS, SettingKind};

const BEGIN: &str = "\
// The settings of queues and the fields of tasks, as the server has them. Printed from its tables
// by `cargo test -p pinpriq-proto printed`.

";

pub(super) fn tables() -> String {
    let mut text = BEGIN.to_owned();
    text += "export const SETTINGS = [\n";
    for setting in SETTINGS {
        let kind = match setting.kind {
            SettingKind::Number => Some("number"),
            SettingKind::Span => Some("span"),
            SettingKind::Words(_) | SettingKind::WordsOrSpan(..) => Some("choice"),
            SettingKind::Name | SettingKind::Limits | SettingKind::Rate => None,
        };
        let words: Vec<&str> = setting.words().map(|word| word.word).collect();
        let hint = format!("{}{}.", setting.help, setting.changes.note());
        entry(&mut text, setting.name, kind, &words, &hint);
        if let Some(length) = setting.length() {
            let hint = format!("{}; with “{}”.", length.help, length.word.word);
            entry(&mut text, length.name, Some("span"), &[], &hint);
        }
    }
    text += "];\n\nexport const FIELDS = [\n";
    for field in TASK.iter().filter(|field| field.shown.is_in(true)) {
        let kind = match field.kind {
            FieldKind::Moment => "moment",
            FieldKind::Span | FieldKind::SpanOrNone => "span",
            FieldKind::Count | FieldKind::Number | FieldKind::NumberOrNone | FieldKind::Integer => {
                "number"
            }
            FieldKind::Truth => "truth",
            FieldKind::Attempts => "attempts",
            FieldKind::Names => "names",
            _ => "text",
        };
        let _ = writeln!(text, "  {{ name: \"{}\", kind: \"{kind}\" }},", field.name);
    }
    text + "];\n"
}

/// Appends a setting.
fn entry(text: &mut String, name: &str, kind: Option<&str>, words: &[&str], hint: &str) {
    let _ = writeln!(text, "  {{\n    name: \"{}\",", name.to_lowercase());
    if let Some(kind) = kind {
        let _ = writeln!(text, "    kind: \"{kind}\",");
    }
    if !words.is_empty() {
        let _ = writeln!(text, "    options: [\"{}\"],", words.join("\", \""));
    }
    let _ = writeln!(text, "    hint: \"{hint}\",\n  }},");
}
