//! Settings and figures of queues, members, schedules, and the facts about the server, as JSON.

use pinpriq_proto::fields::told::{Holder, SCHEDULE};
use pinpriq_proto::schedule::ShownSchedule;
use pinpriq_proto::settings::{Paused, SETTINGS, Setting, Settings, Shown};
use pinpriq_proto::stats::Figures;
use pinpriq_proto::time::Timestamp;

use super::task;
use crate::doors::json::{Object, object};
use crate::facts::Facts;
use crate::figures::{Value, info, stats};

/// Appends the settings of a queue, those that are not set as null.
pub(crate) fn settings(out: &mut Vec<u8>, settings: &Settings, paused: Paused) {
    let shown = |setting: &'static Setting| setting.shown((setting.read)(settings));
    object(out, |it| {
        for (name, shown) in SETTINGS.into_iter().flat_map(shown) {
            let name = name.to_ascii_lowercase();
            match shown {
                Shown::None => it.set(&name, ()),
                Shown::Number(number) => it.set(&name, number),
                Shown::Text(text) => it.bytes(&name, text),
                Shown::Rate(rate) => it.set(&name, rate.to_string()),
            };
        }
        it.set("paused", stats::paused_word(paused));
        for (name, until) in stats::paused_until(paused) {
            it.set(name, until.map(Timestamp::ms));
        }
    });
}

/// Appends the figures of a queue, or of all together.
pub(crate) fn figures(out: &mut Vec<u8>, figures: &Figures, of_one: bool) {
    object(out, |it| {
        for (name, value) in stats::told(figures, of_one) {
            figure(it, name, &value);
        }
    });
}

/// Writes one of the figures of a queue.
pub(crate) fn figure_of(it: &mut Object<'_>, name: &str, figures: &Figures) {
    let known = stats::told(figures, true).into_iter().find(|(known, _)| *known == name);
    figure(it, name, &known.map_or(Value::Missing, |(_, value)| value));
}

/// Returns all facts about the server, by section. These further members are written already.
pub(crate) fn facts(facts: &Facts, more: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    object(&mut out, |it| {
        for (section, figures) in info::told(facts) {
            it.object(&section.to_ascii_lowercase(), |it| {
                for (name, value) in figures {
                    figure(it, name, &value);
                }
            });
        }
    });
    out.pop();
    out.extend_from_slice(more);
    out.push(b'}');
    out
}

fn figure(it: &mut Object<'_>, name: &str, value: &Value) {
    match value {
        Value::Number(number) => it.set(name, *number),
        Value::Missing => it.set(name, ()),
        Value::Text(text) => it.set(name, text),
        Value::Histogram(values) => it.object(name, |it| {
            it.set("count", values.count()).set("sum", values.sum());
            for (bound, count) in values.up_to() {
                it.set(&format!("le_{bound}"), count);
            }
        }),
        Value::Times(times) => it.object(name, |it| {
            it.set("count", times.count()).set("sum", times.sum_ms);
            for (bound, count) in times.up_to() {
                let name = bound.map_or_else(|| "le_inf".to_owned(), |ms| format!("le_{ms}"));
                it.set(&name, count);
            }
        }),
        Value::Each(numbers) => it.object(name, |it| {
            for (label, number) in numbers {
                it.set(label, *number);
            }
        }),
    };
}

/// Appends a schedule.
pub(crate) fn schedule(out: &mut Vec<u8>, shown: &ShownSchedule) {
    object(out, |it| task::told(it, &SCHEDULE, (shown, &Holder::default())));
}

/// Appends lines such as those of `CLIENT LIST` as objects.
pub(crate) fn connections(lines: &str) -> Vec<u8> {
    let mut out = Vec::new();
    object(&mut out, |it| {
        it.array("connections", lines.lines(), |out, line| {
            object(out, |it| {
                for (name, value) in line.split(' ').filter_map(|field| field.split_once('=')) {
                    let name = name.replace('-', "_");
                    match value.parse::<u64>() {
                        Ok(number)
                            if !["name", "user"].contains(&&*name) && !name.starts_with("lib") =>
                        {
                            it.set(&name, number);
                        }
                        _ => {
                            it.set(&name, value);
                        }
                    }
                }
            });
        });
    });
    out
}
