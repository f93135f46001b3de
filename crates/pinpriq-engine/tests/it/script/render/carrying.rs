//! Formats what an export shows.

use pinpriq_proto::change::ScheduleRecord;
use pinpriq_proto::export::{ExportPlace, Exported, QueueExported};
use pinpriq_proto::schedule::ShownSchedule;

use super::{quoted, rules, schedule, settings, sides, whole};

pub(super) fn exported(page: &Exported) -> String {
    let Exported { queue, tasks, ends: _, windows, schedules, next, shares } = page;
    let mut parts = Vec::new();
    if let Some(QueueExported { name, settings: kept, paused }) = queue.as_deref() {
        let kept = kept.as_ref().map_or_else(|| "not created".to_owned(), settings);
        parts.push(format!("queue {}: {kept}, paused {}", quoted(name), sides(*paused)));
    }
    for own in shares {
        parts.push(format!("share {}: {}", quoted(&own.share), rules(own.rules)));
    }
    for task in tasks {
        let window = page.end_of(task.number);
        let window = window.map_or_else(String::new, |at| format!(", window until {}", at.ms()));
        parts.push(format!("task {}{window}", whole(task)));
    }
    for window in windows {
        let (key, until) = (quoted(&window.key), window.until.ms());
        parts.push(format!("window of {key}, which {} had, until {until}", window.id));
    }
    for record in schedules {
        let ScheduleRecord { name, plan, course, .. } = record.clone();
        let done = course.done_until.ms();
        let shown = ShownSchedule { name, plan, course, next_at: None };
        parts.push(format!("schedule {}, done until {done}", schedule(&shown)));
    }
    let next = match next {
        None => String::new(),
        Some(ExportPlace::Start) => ", and more from the start".to_owned(),
        Some(ExportPlace::Share(share)) => format!(", and more after share {}", quoted(share)),
        Some(ExportPlace::Task(seq)) => format!(", and more after task {seq}"),
        Some(ExportPlace::Window(key)) => format!(", and more after window {}", quoted(key)),
        Some(ExportPlace::Schedule(number)) => format!(", and more after schedule {number}"),
    };
    format!("[{}]{next}", parts.join("; "))
}
