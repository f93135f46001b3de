//! Strategies for exports and imports.

use pinpriq_proto::change::ScheduleRecord;
use pinpriq_proto::command::Command;
use pinpriq_proto::export::{Export, ExportPlace, Exported, Import, QueueExported};
use pinpriq_proto::schedule::ShownSchedule;
use pinpriq_proto::settings::Settings;
use pinpriq_proto::unique::WindowRecord;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::commands::settings;
use super::outputs::{any_settings, schedule};
use super::parts::{borrowed, bytes, id, moment, number, paused, small, task};

fn place() -> BoxedStrategy<ExportPlace<&'static [u8]>> {
    prop_oneof![
        Just(ExportPlace::Start),
        number().prop_map(ExportPlace::Task),
        borrowed().prop_map(ExportPlace::Window),
        number().prop_map(ExportPlace::Schedule),
    ]
    .boxed()
}

fn window() -> BoxedStrategy<WindowRecord> {
    (number(), bytes(), bytes(), id(), moment())
        .prop_map(|(number, queue, key, id, until)| WindowRecord { number, queue, key, id, until })
        .boxed()
}

fn schedule_record() -> BoxedStrategy<ScheduleRecord> {
    (number(), schedule())
        .prop_map(|(number, ShownSchedule { name, plan, course, .. })| ScheduleRecord {
            number,
            name,
            plan,
            course,
        })
        .boxed()
}

/// Any export or import.
pub(super) fn carrying() -> BoxedStrategy<Command<'static>> {
    prop_oneof![
        (borrowed(), place(), small()).prop_map(|(queue, after, count)| Command::Export(Export {
            queue,
            after,
            count
        })),
        (borrowed(), option::of(settings()), paused()).prop_map(|(queue, settings, paused)| {
            Command::Import(Import::Queue { queue, settings, paused })
        }),
        (task(), option::of(moment())).prop_map(|(task, until)| {
            Command::Import(Import::Task { task: Box::leak(Box::new(task)), until })
        }),
        window().prop_map(|it| Command::Import(Import::Window(Box::leak(Box::new(it))))),
        schedule_record().prop_map(|it| Command::Import(Import::Schedule(Box::leak(Box::new(it))))),
    ]
    .boxed()
}

fn queue() -> BoxedStrategy<QueueExported> {
    (bytes(), option::of(any_settings()), paused())
        .prop_map(|(name, settings, paused): (_, Option<Settings>, _)| QueueExported {
            name,
            settings,
            paused,
        })
        .boxed()
}

/// Any page of an export.
pub(super) fn exported() -> BoxedStrategy<Exported> {
    let ends = vec((number(), moment()), 0..4);
    let parts = (vec(task(), 0..8), ends, vec(window(), 0..4), vec(schedule_record(), 0..3));
    (option::of(queue().prop_map(Box::new)), parts, option::of(place()))
        .prop_map(|(queue, (tasks, ends, windows, schedules), next)| Exported {
            queue,
            tasks,
            ends,
            windows,
            schedules,
            next: next.map(ExportPlace::kept),
        })
        .boxed()
}
