//! Settings of queues, written into a reply from the table of settings.

use pinpriq_proto::settings::{Paused, SETTINGS, Setting, Settings, Shown};
use pinpriq_proto::wire::resp::Writer;

use super::values::whole;
use crate::figures::stats;

/// Writes the reply of `QUEUE SHOW`.
pub(super) fn map(writer: &mut Writer<'_>, settings: &Settings, paused: Paused) {
    let shown = |setting: &'static Setting| setting.shown((setting.read)(settings));
    let entries = || SETTINGS.into_iter().flat_map(shown);
    let ends = stats::paused_until(paused);
    writer.map(entries().count() + 1 + ends.len());
    for (name, shown) in entries() {
        writer.bulk(name.to_ascii_lowercase().as_bytes());
        match shown {
            Shown::None => writer.null(),
            Shown::Number(number) => whole(writer, number),
            Shown::Text(text) => writer.bulk(text),
            Shown::Rate(rate) => writer.bulk(rate.to_string().as_bytes()),
        }
    }
    writer.bulk(b"paused");
    writer.bulk(stats::paused_word(paused).as_bytes());
    for (name, until) in ends {
        writer.bulk(name.as_bytes());
        match until {
            Some(at) => whole(writer, at.ms()),
            None => writer.null(),
        }
    }
}
