//! The longer texts of the help of `export` and `import`.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

/// What `export` does.
pub(super) const EXPORT: &str = "\
Write a queue, or all of them, as lines of JSON: settings, pauses, tasks, the windows of unique \
tasks, and schedules. `pinpriq import` brings them into another server.

Nothing changes. What is put, taken or finished meanwhile may be in the file or not: pause the \
queue and let its consumers finish for a copy of one moment. A file comes into being whole or not \
at all. With --all the only word is the file.

Fan-outs are not written: their lanes belong to members, which join again.";

/// After the help of `export`.
pub(super) const AFTER_EXPORT: &str = "\
Examples:
  pinpriq export jobs jobs.jsonl
  pinpriq export --all backup.jsonl
  pinpriq export jobs | zstd > jobs.jsonl.zst

Exit codes:
  0  written
  1  no connection, or the file could not be written
  2  wrong usage
  4  there is no such queue; nothing was written
  5  the server refused";

/// What `import` does.
pub(super) const IMPORT: &str = "\
Bring what `pinpriq export` has written into a server, or move the jobs of a running beanstalkd.

From a file, tasks keep what they have been through, and their ids where ids are given; elsewhere \
they get new ones. A taken task comes in as a ready one. Settings and pauses replace those that a \
queue has. What is in the queues already stays.

A file is read to its end before anything is sent: one that was cut, or that has a record which is \
none, is refused. So is one with an id, where ids are given, or a schedule that the server has \
already, and one with more tasks than a queue has room for. --dry-run looks for the same and \
changes nothing. What comes from stdin is not looked at first: use --dry-run, or a file. If the \
server refuses a record nevertheless, the import ends there. Records behind it that were on \
their way may have come in by then. Another import of the same file brings what came in once \
more, unless ids are given, or both imports have --once.

With --once an import that has failed can be repeated, also from stdin and after the connection \
was lost: what is there already is passed over and counted. For that, each task that has no unique \
key gets one, made of its queue, id, payload and the moment of its put, with a window of a day. So \
what came in is known for a day, even if it has been finished meanwhile. What is refused with \
EXISTS counts as there, and nothing is looked for before.

With --from-beanstalkd, each tube becomes the queue of its name: ready jobs, delayed ones with \
what is left of their delay, and buried ones, with body, priority and time to run. A job is put \
here, durably, and then deleted there. If anything crashes in between, up to 256 jobs are in both, \
and none is lost. Run the command again then. A job that a worker of beanstalkd takes meanwhile is \
withdrawn here. Jobs that are reserved stay, and are counted: the exit code is 1 as long as there \
are any.";

/// After the help of `import`.
pub(super) const AFTER_IMPORT: &str = "\
Examples:
  pinpriq import --dry-run jobs.jsonl
  pinpriq import jobs.jsonl
  zstd -dc jobs.jsonl.zst | pinpriq import --once -
  pinpriq export --all | pinpriq import --address 10.0.0.2:7251 -
  pinpriq import --from-beanstalkd 10.0.0.9:11300 --dry-run
  pinpriq import --from-beanstalkd 10.0.0.9:11300 --tube mails --tube images

Exit codes:
  0  all came in
  1  no connection, the file could not be read, or jobs stay in beanstalkd
  2  wrong usage, or this is no whole file of `pinpriq export`
  5  the server refused a record or a job";
