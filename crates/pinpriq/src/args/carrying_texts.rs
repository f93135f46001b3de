//! The longer texts of the help of `export` and `import`.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

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
