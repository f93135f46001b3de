//! Settings and figures of queues, schedules, limits, batches, and the facts about the server, as
//! JSON.

use pinpriq_proto::batches::BatchShown;
use pinpriq_proto::fields::told::{BATCH, Holder, LIMIT, SCHEDULE};
use pinpriq_proto::named_limits::LimitShown;
use pinpriq_proto::schedule::ShownSchedule;
use pinpriq_proto::settings::{Paused, Settings, Shown};
use pinpriq_proto::stats::Figures;

use super::task;
use crate::doors::json::{Object, object};
use crate::facts::Facts;
use crate::figures::{Value, info, stats};

/// Appends the settings of a queue, those that are not set as null.
pub(crate) fn settings(out: &mut Vec<u8>, settings: &Settings, paused: Paused) {
    object(out, |it| {
        for (name, shown) in stats::settings(settings, paused) {
            match shown {
                Shown::None => it.set(&name, ()),
                Shown::Number(number) => it.set(&name, number),
                Shown::Text(text) => it.bytes(&name, text),
                Shown::Rate(rate) => it.set(&name, rate.to_string()),
            };
        }
    });
}

/// Appends the figures of a queue, or of all together.
pub(crate) fn figures(out: &mut Vec<u8>, figures: &Figures, of_one: bool) {
    object(out, |it| {
        for (name, value) in stats::values(figures, of_one) {
            figure(it, name, value);
        }
    });
}

/// Writes one of the figures of a queue.
pub(crate) fn figure_of(it: &mut Object<'_>, name: &str, figures: &Figures) {
    let known = stats::values(figures, true).into_iter().find(|(known, _)| *known == name);
    figure(it, name, known.map_or(Value::Missing, |(_, value)| value));
}

/// Returns all facts about the server, by section. These further members are written already.
pub(crate) fn facts(facts: &Facts, more: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    object(&mut out, |it| {
        for (section, figures) in info::sections(facts) {
            it.object(&section.to_ascii_lowercase(), |it| {
                for (name, value) in figures {
                    figure(it, name, value);
                }
            });
        }
    });
    out.pop();
    out.extend_from_slice(more);
    out.push(b'}');
    out
}

fn figure(it: &mut Object<'_>, name: &str, value: Value) {
    match value {
        Value::Number(number) => it.set(name, number),
        Value::Missing => it.set(name, ()),
        Value::Text(text) => it.set(name, text),
        values => it.object(name, |it| {
            for (label, number) in values.numbers() {
                it.set(&label, number);
            }
        }),
    };
}

/// Appends a schedule.
pub(crate) fn schedule(out: &mut Vec<u8>, shown: &ShownSchedule) {
    object(out, |it| task::write_fields(it, &SCHEDULE, (shown, &Holder::default())));
}

/// Appends a limit that several queues use together.
pub(crate) fn limit(out: &mut Vec<u8>, shown: &LimitShown) {
    object(out, |it| task::write_fields(it, &LIMIT, (shown, &Holder::default())));
}

/// Appends a batch.
pub(crate) fn batch(out: &mut Vec<u8>, shown: &BatchShown) {
    object(out, |it| task::write_fields(it, &BATCH, (shown, &Holder::default())));
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
