//! The files, each once. A test compares the list with the directory.

use super::File;

/// Includes a file under its path.
macro_rules! file {
    ($path:literal) => {
        File {
            path: concat!("/assets/", $path),
            media_type: media_type($path),
            bytes: include_bytes!(concat!("../../assets/", $path)),
        }
    };
}

/// All files.
pub(crate) static FILES: &[File] = &[
    file!("actions/bulk.js"),
    file!("actions/queue.js"),
    file!("actions/task.js"),
    file!("api.js"),
    file!("base.css"),
    file!("chart.js"),
    file!("format.js"),
    file!("h.js"),
    file!("history.js"),
    file!("icon.svg"),
    file!("index.html"),
    file!("live.js"),
    file!("main.js"),
    file!("names.js"),
    file!("parts.css"),
    file!("parts/copy.js"),
    file!("parts/dialog.js"),
    file!("parts/explain.js"),
    file!("parts/fields.js"),
    file!("parts/page.js"),
    file!("parts/paged.js"),
    file!("parts/payload.js"),
    file!("parts/states.js"),
    file!("parts/table.js"),
    file!("printed.js"),
    file!("router.js"),
    file!("session.js"),
    file!("shell.css"),
    file!("vendor/uplot-licence.txt"),
    file!("vendor/uplot.css"),
    file!("vendor/uplot.js"),
    file!("views/batches.js"),
    file!("views/connections.js"),
    file!("views/dead.js"),
    file!("views/leases.js"),
    file!("views/limits.js"),
    file!("views/login.js"),
    file!("views/overview.js"),
    file!("views/queue.js"),
    file!("views/queues.js"),
    file!("views/schedule.js"),
    file!("views/schedules.js"),
    file!("views/server.js"),
    file!("views/settings.js"),
    file!("views/shares.js"),
    file!("views/task.js"),
    file!("views/tasks.js"),
    file!("views/topic.js"),
    file!("views/topics.js"),
];

/// Returns the media type that the end of a name stands for.
const fn media_type(name: &str) -> &'static str {
    match name.as_bytes() {
        [.., b'.', b'j', b's'] => "text/javascript; charset=utf-8",
        [.., b'.', b'c', b's', b's'] => "text/css; charset=utf-8",
        [.., b'.', b'h', b't', b'm', b'l'] => "text/html; charset=utf-8",
        [.., b'.', b's', b'v', b'g'] => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}
