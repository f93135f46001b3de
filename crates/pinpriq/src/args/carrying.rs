//! The arguments of `export` and `import`, over RESP.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::tasks::ServerArgs;
use super::values::tube;

/// The arguments of `export`.
#[derive(Debug, Args)]
#[command(override_usage = "pinpriq export [OPTIONS] <QUEUE|--all> [FILE]")]
pub(crate) struct ExportArgs {
    /// The name of the queue, any bytes
    #[arg(required_unless_present = "all")]
    pub(crate) queue: Option<OsString>,

    /// The file to write; without it, or with -, stdout
    pub(crate) file: Option<PathBuf>,

    /// All queues of the server
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// The arguments of `import`.
#[derive(Debug, Args)]
#[command(override_usage = "pinpriq import [OPTIONS] <FILE|--from-beanstalkd HOST:PORT>")]
pub(crate) struct ImportArgs {
    /// The file that `export` has written; - is stdin
    #[arg(required_unless_present = "from_beanstalkd", conflicts_with = "from_beanstalkd")]
    pub(crate) file: Option<PathBuf>,

    /// Move the jobs of a running beanstalkd here
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) from_beanstalkd: Option<String>,

    /// Move the jobs of this tube only; may be given several times [default: all tubes]
    #[arg(long = "tube", value_name = "TUBE", value_parser = tube, conflicts_with = "file")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) tubes: Vec<String>,

    /// Count what would come in and say what would be refused, and change nothing on either side
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Bring in no record of the file twice, however often this is repeated within a day
    #[arg(long, conflicts_with = "from_beanstalkd")]
    pub(crate) once: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

impl ExportArgs {
    /// The queue, unless it is all of them, and the file, unless it is stdout. With `--all` the
    /// only word is the file.
    pub(crate) fn parts(&self) -> (Option<OsString>, Option<PathBuf>) {
        let (queue, file) = match (self.all, self.queue.clone()) {
            (true, file) => (None, file.map(PathBuf::from)),
            (false, queue) => (queue, self.file.clone()),
        };
        (queue, file.filter(|file| file.as_os_str() != "-"))
    }
}
