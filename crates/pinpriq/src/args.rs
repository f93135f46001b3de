//! The command line: one definition, from which the parser, the help, the manual pages and the
//! completions are made.
//!
//! The commands in `cmd/` do what the arguments ask for. The settings of the server are in
//! `settings.rs`, since the configuration file has them too. The commands that speak to a server
//! are in files of their own under `args/`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::settings::Settings;

use self::archives::{ArchiveCommand, BackupArgs, LookArgs, RestoreArgs};
use self::asked::Asked;
use self::bench::BenchArgs;
use self::carrying::{ExportArgs, ImportArgs};
use self::cluster::ClusterCommand;
use self::fanout::{ListenArgs, PublishArgs};
use self::queues::StatusArgs;
use self::tasks::{ClientArgs, PutArgs, TakeArgs};
use self::texts::{DOING, after};
use self::top::TopArgs;
use self::users::UserCommand;
use self::values::number_in;
use self::wire::WireCommand;

pub(crate) mod archives;
pub(crate) mod asked;
pub(crate) mod bench;
pub(crate) mod carrying;
pub(crate) mod cluster;
pub(crate) mod encryption;
pub(crate) mod fanout;
pub(crate) mod following;
mod given;
pub(crate) mod more;
mod queue_settings;
pub(crate) mod queues;
pub(crate) mod tasks;
mod texts;
pub(crate) mod top;
pub(crate) mod users;
pub(crate) mod values;
pub(crate) mod wire;
pub(crate) mod worker;

#[cfg(test)]
mod tests;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "pinpriq", version, about = texts::ABOUT, long_about = texts::LONG_ABOUT)]
#[command(after_help = texts::EXIT_CODES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server in the foreground until SIGTERM or SIGINT.
    ///
    /// Nothing has to be configured. Each setting can be given as a flag, as an environment
    /// variable, or in a TOML file under the name of the flag without the dashes. Flags win over
    /// the environment, the environment over the file, the file over the defaults. The log goes to
    /// stderr.
    ///
    /// A SIZE is a number of bytes or has a unit, such as 64MiB or 1GB. A TIME is a number of
    /// milliseconds or has units, such as 30s or 1h30m.
    #[command(after_help = "\
Examples:
  pinpriq serve
  pinpriq serve --users /etc/pinpriq/users.toml --resp 0.0.0.0:7251 --pinpriq off
  pinpriq serve --config /etc/pinpriq.toml --log-format json
  pinpriq serve --archive s3://backups/pinpriq --archive-keep 7d
  PINPRIQ_DURABILITY=interval pinpriq serve

A configuration file:
  data = \"/var/lib/pinpriq\"
  durability = \"interval\"
  connections-max = 2000

Exit codes:
  0  stopped in order
  1  failed while running, for example because the disk refused a write
  2  wrong usage or configuration
  3  the data directory is locked, damaged, of a newer format or not writable")]
    Serve(Box<ServeArgs>),
    /// Put a task into a queue, and print its id.
    ///
    /// The id is printed once the task is as durable as the server was told to make it. The payload
    /// is sent byte for byte: a line end at the end of stdin is part of it. With --lines each line
    /// of stdin becomes a task, many of them under way at a time; an answer comes for each of them,
    /// in order. After a refusal no more lines are read. With --wait-ms the command prints, after
    /// the id, how the task ended: acked, buried, expired, killed, dead, evicted, moved, cancelled,
    /// skipped or timeout.
    /// The exit code says so too; of several tasks it is that of the first which was not acked.
    ///
    /// With --unique the word new or duplicate follows the id. A duplicate is not put: the id is
    /// that of the first task.
    #[command(after_help = after(
        "pinpriq put jobs 'resize 17.png' --priority -2
        pinpriq put mails --delay-ms 60000 --ttl-ms 3600000 < mail.json
        pinpriq put jobs --lines < jobs.txt > ids.txt
        pinpriq put jobs 'build' --wait-ms -1
        pinpriq put uploads 17.png --unique 17.png --window 1h
        pinpriq put albums 'album 7 is ready' --after album-7 --if acked",
        "0  the task was put; with --wait-ms: it was acked
        1  no connection, or it was lost
        2  wrong usage
        5  the server refused; stderr says why
        10 to 18  with --wait-ms: how the task ended otherwise; see `pinpriq --help`",
    ))]
    Put(PutArgs),
    /// Take tasks under a lease and print them, or run a command for each.
    ///
    /// Prints a line for each task: its receipt, a tab, and its payload; with several queues the
    /// name of the queue and a tab before. To a file or a pipe the bytes go as they are; on a
    /// terminal those that cannot be printed are shown as escapes. A payload with line ends is
    /// better read with --json: its objects have all that is known of a task. In them whatever is
    /// no text, such as a payload or a name, is in Base64 under the same name with `_base64` behind
    /// it.
    ///
    /// A lease ends with --ttr-ms, whatever the queue says, so that it outlives this command.
    /// Finish the task with ack, or give it back with release; otherwise it goes back by itself
    /// when the lease ends.
    ///
    /// With --exec the command becomes a worker. For each task it runs CMD with sh -c, gives it the
    /// payload on stdin, and tells it about the task in `PINPRIQ_QUEUE`, `PINPRIQ_ID`,
    /// `PINPRIQ_RECEIPT`, `PINPRIQ_ATTEMPTS` (1 at first), `PINPRIQ_FAILURES` (0 at first),
    /// `PINPRIQ_KEY` (only if there is a key), `PINPRIQ_MEMBER` (only in a lane),
    /// `PINPRIQ_CHECKPOINT` (only if an earlier attempt left one with `pinpriq touch --checkpoint`)
    /// and `PINPRIQ_HEADER_NAME` for each header; `TRACEPARENT` and `TRACESTATE` say the trace, and
    /// `PINPRIQ_RESP_ADDRESS` says where the server is. Exit code 0 acknowledges the task. 65
    /// (`EX_DATAERR`) buries it at once. 75 (`EX_TEMPFAIL`) releases it with a delay that doubles
    /// with each attempt; that is no failure. Any other end is a failure. The last line of CMD's
    /// stderr is in the reason. Stderr tells of every task that was not acknowledged.
    ///
    /// The queue decides what becomes of a task that failed: how often it may fail, when it comes
    /// back, and whether it is buried in the end or becomes a dead letter (`pinpriq queue set
    /// --help`). Where the queue sets no back-off, the task comes back after a second, and after
    /// twice as long each further time, up to a day. Where the queue sets no attempts, the worker
    /// buries the task at its fifth failure. With --backoff-ms or --attempts-max the worker decides
    /// instead, but a task that has failed as often as the queue allows is never tried again. A
    /// task that failed that often already, because its workers died, is buried without running
    /// CMD.
    ///
    /// While CMD runs, its lease is renewed each third of --ttr-ms. If the lease is lost all the
    /// same, CMD gets SIGTERM and the task is left alone. At --timeout CMD gets SIGTERM, and 10
    /// seconds later SIGKILL; that is a failure. A lost connection is opened again, after longer
    /// and longer pauses; what CMD came to is then told once more.
    ///
    /// SIGTERM and SIGINT let running commands finish and then end the worker; a second one kills
    /// them and gives their tasks back. CMD and what it starts are a process group of their own, so
    /// that a key press at the terminal does not reach them.
    #[command(after_help = after(
        "pinpriq take jobs --wait-ms 5000
        pinpriq take jobs --json --count 10 | jq -r .payload
        pinpriq take urgent jobs --exec ./handle-job --jobs 4 --timeout 10m
        pinpriq take jobs --exec 'curl --fail --data @- http://example.com/' --once",
        "0  done; for --exec: --count tasks were worked on, --once found no more, or a signal came
        1  no connection, or it was lost
        2  wrong usage
        4  there was nothing to take (without --exec)
        5  the server refused; stderr says why",
    ))]
    Take(TakeArgs),
    /// The other commands of the server.
    #[command(flatten)]
    Asked(Asked),
    /// Ask a server whether it answers.
    ///
    /// This is for those who watch over it: a container, a script.
    /// The exit code is 0 if it answers within ten seconds. While it loads its tasks it does not.
    /// No user is needed for that.
    #[command(after_help = after(
        "pinpriq ping
        pinpriq ping --address 10.0.0.1:7251 || echo down",
        DOING,
    ))]
    Ping(ClientArgs),
    /// Print a table of the queues, with how fast tasks come and go.
    ///
    /// The rates are watched for a second. Oldest is how long the oldest ready task has been there.
    /// The last line, (all), is about all queues and all lanes of topics together, shown or not.
    /// Of a server that archives another line says whether all is well with that. With --json each
    /// line is an object; in the last one queue is null, and it tells of the archive too.
    #[command(after_help = after(
        "pinpriq status
        pinpriq status --prefix mail --count 500
        pinpriq status --json | jq 'select(.buried > 0)'",
        DOING,
    ))]
    Status(StatusArgs),
    /// Show the state of a server in a terminal: queues, rates, tasks.
    ///
    /// The list can be ordered and filtered. Enter opens a queue and then a task. If the server
    /// goes away, top says so and tries again. With --once it prints a table and ends, with --json
    /// one object for each round of figures. Both need two rounds for the rates, so the first line
    /// comes after one --interval.
    #[command(after_help = after(
        "pinpriq top
        pinpriq top --prefix mail --interval 5s
        pinpriq top --once
        pinpriq top --json | jq '.server.out_per_second'",
        DOING,
    ))]
    Top(TopArgs),
    /// Write a queue, or all, as lines of JSON that `import` brings into another server.
    ///
    /// They are settings, pauses, tasks, the windows of unique tasks, and schedules.
    /// Nothing changes. What is put, taken or finished meanwhile may be in the file or not: pause
    /// the queue and let its consumers finish for a copy of one moment. A file comes into being
    /// whole or not at all. With --all the only word is the file.
    ///
    /// Fan-outs are not written: their lanes belong to members, which join again.
    #[command(after_help = after(
        "pinpriq export jobs jobs.jsonl
        pinpriq export --all backup.jsonl
        pinpriq export jobs | zstd > jobs.jsonl.zst",
        "0  written
        1  no connection, or the file could not be written
        2  wrong usage
        4  there is no such queue; nothing was written
        5  the server refused",
    ))]
    Export(ExportArgs),
    /// Bring what `export` has written into a server, or move the jobs of a beanstalkd.
    ///
    /// From a file, tasks keep what they have been through, and their ids where ids are given;
    /// elsewhere they get new ones. A taken task comes in as a ready one. Settings and pauses
    /// replace those that a queue has. What is in the queues already stays.
    ///
    /// A file is read to its end before anything is sent: one that was cut, or that has a record
    /// which is none, is refused. So is one with an id, where ids are given, or a schedule that the
    /// server has already, and one with more tasks than a queue has room for. --dry-run looks for
    /// the same and changes nothing. What comes from stdin is not looked at first: use --dry-run,
    /// or a file. If the server refuses a record nevertheless, the import ends there. Records
    /// behind it that were on their way may have come in by then. Another import of the same file
    /// brings what came in once more, unless ids are given, or both imports have --once.
    ///
    /// With --once an import that has failed can be repeated, also from stdin and after the
    /// connection was lost: what is there already is passed over and counted. For that, each task
    /// that has no unique key gets one, made of its queue, id, payload and the moment of its put,
    /// with a window of a day. So what came in is known for a day, even if it has been finished
    /// meanwhile. What is refused with EXISTS counts as there, and nothing is looked for before.
    ///
    /// With --from-beanstalkd, each tube becomes the queue of its name: ready jobs, delayed ones
    /// with what is left of their delay, and buried ones, with body, priority and time to run. A
    /// job is put here, durably, and then deleted there. If anything crashes in between, up to 256
    /// jobs are in both, and none is lost. Run the command again then. A job that a worker of
    /// beanstalkd takes meanwhile is withdrawn here. Jobs that are reserved stay, and are counted:
    /// the exit code is 1 as long as there are any.
    #[command(after_help = after(
        "pinpriq import --dry-run jobs.jsonl
        pinpriq import jobs.jsonl
        zstd -dc jobs.jsonl.zst | pinpriq import --once -
        pinpriq export --all | pinpriq import --address 10.0.0.2:7251 -
        pinpriq import --from-beanstalkd 10.0.0.9:11300 --dry-run
        pinpriq import --from-beanstalkd 10.0.0.9:11300 --tube mails --tube images",
        "0  all came in
        1  no connection, the file could not be read, or jobs stay in beanstalkd
        2  wrong usage, or this is no whole file of `pinpriq export`
        5  the server refused a record or a job",
    ))]
    Import(ImportArgs),
    /// Publish a task to all members of a topic, and print how many lanes took it.
    ///
    /// Each member that has joined the topic gets the task into its own lane, all of them or none,
    /// and it is as durable as the server was told to make it when the number is printed. Without
    /// members the number is 0, and nothing is kept. A lane that is full or paused for input takes
    /// nothing and counts what it missed (`pinpriq stats TOPIC --member MEMBER`).
    ///
    /// The payload is sent byte for byte: a line end at the end of stdin is part of it. With
    /// --lines each line of stdin is published, many of them under way at a time; after a refusal
    /// no more are read.
    #[command(after_help = after(
        "pinpriq publish news 'the door is open'
        pinpriq publish checks --ttl-ms 10000 < check.json
        pinpriq publish news --lines < news.txt",
        DOING,
    ))]
    Publish(PublishArgs),
    /// Join a topic, and print what is published or run a command for it.
    ///
    /// Prints the payload of each task on a line, or with --json an object with all that is known
    /// of it, and acknowledges the task once it is printed. With --exec it runs CMD for each task
    /// instead, and acknowledges the task or gives it back just as `pinpriq take --exec` does;
    /// `PINPRIQ_MEMBER` tells CMD whose task it is. Stderr tells under which name the topic was
    /// joined.
    ///
    /// While the command runs it gives signs of life over a connection of its own. If it was away
    /// for longer than its lease all the same, say because it was suspended or the network was
    /// down, then its membership has ended, with what was in its lane; the command joins again,
    /// says so, and goes on with what is published from then on. A lost connection is opened again,
    /// after longer and longer pauses.
    ///
    /// SIGTERM and SIGINT let what is under way finish, and then the member leaves the topic;
    /// stderr tells what was left in its lane, which is gone then. A lane with buried tasks is kept
    /// for an hour at least, or until `pinpriq leave`. With --stay it does not leave: the lane goes
    /// on collecting until the lease ends, and the next run with the same name and topic finds it.
    /// Two runs under one name share one lane: each task goes to one of them.
    #[command(after_help = after(
        "pinpriq listen news
        pinpriq listen news --json | jq -r .payload
        pinpriq listen news mailer --stay --lease-ms 3600000 --exec ./send-mail",
        "0  done: --count tasks were printed or worked on, a signal came, or stdout was closed
        1  no connection at the start
        2  wrong usage
        5  the server refused; stderr says why",
    ))]
    Listen(ListenArgs),
    /// Push, pop and subscribe over the pinpriq protocol.
    ///
    /// It has a port of its own, by default 7250.
    /// The other commands for a server speak RESP, at another port (7251). Both reach the same
    /// queues: a packet is a task there. `pinpriq put`, `take`, `pop` and `listen` can do more.
    #[command(subcommand)]
    Wire(WireCommand),
    /// Look at a cluster of several machines, change it, fill it, and copy it.
    ///
    /// These commands ask the engine under the cluster, etcd or PostgreSQL. With --cluster they ask
    /// it themselves, so they also work when no node does. With --address a node of the cluster
    /// asks it for them: so they need not reach the engine nor know its passwords, but sign in like
    /// any client, as a user with the right admin. What the node refuses ends with exit code 5.
    /// `import`, `export` and `accept-rollback --data` need the engine itself.
    ///
    /// They make no cluster: its first node does, or `import`. What they print was so a moment ago.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Say who may do what: change the file of users.
    ///
    /// The file is TOML, and can be edited by hand too. These commands keep its comments and its
    /// order. They replace it as a whole, so that a part of it is never read, and wait for each
    /// other. It belongs to its owner alone (mode 0600).
    ///
    /// A rule is a right and a pattern. The rights are put, take, look and manage. The pattern is
    /// the name of a queue or topic, or a prefix that ends in *. The right admin has no pattern.
    /// Bytes that cannot be typed are written with % and two hexadecimal digits: %20 is a space,
    /// %2A a star.
    #[command(subcommand)]
    User(UserCommand),
    /// Copy a running server, as it is at one moment.
    ///
    /// Everything that happened in the server up to that moment is in the copy, and nothing later.
    /// The server goes on meanwhile. It is asked over HTTP, by a user with the rights `manage:*`
    /// and `look:*`. Users, certificates and configuration are not in the copy.
    ///
    /// The place is a directory, or `s3://BUCKET/PREFIX` with the usual variables (`AWS_REGION`,
    /// `AWS_ACCESS_KEY_ID` and so on). The first backup makes it. Further ones send what is new,
    /// and so does one that goes on after a failure. What was sent is checked, and the backup
    /// counts once the last part of it is there.
    ///
    /// Nothing in the place is ever changed. The place of another server is refused, and so is a
    /// server that lacks what its own backups have, because an older copy was put back. A server
    /// that was restored from the place goes on in it.
    #[command(after_help = after(
        "pinpriq backup /mnt/backup/pinpriq
        pinpriq backup s3://backups/pinpriq --address https://10.0.0.1:7262 --ca ca.pem
        PINPRIQ_TOKEN=$(cat token) pinpriq backup /mnt/backup/pinpriq --json | jq -r .at",
        "0  the backup is complete
        1  no connection, it was lost, or the place could not be read or written
        2  wrong usage
        3  the place is that of another server, or something in it is damaged or of a
        newer format; or the server lacks what its backups have
        5  the server refused; stderr says why",
    ))]
    Backup(BackupArgs),
    /// Look at the backups in a place, check them, and remove old ones
    #[command(subcommand)]
    Archive(ArchiveCommand),
    /// Write a new data directory with the state that a server had at a moment.
    ///
    /// The moment is the newest that was backed up, or an earlier one. If there is no copy of
    /// exactly that, it is the last moment before it. Which one it has become is printed to the
    /// millisecond. A server can be started on the directory, beside the old one if there still is
    /// one. Its next backup may go to the same place.
    ///
    /// What was acknowledged after that moment comes again. Receipts from after it are refused as
    /// STALE, and no id or receipt is given again. With another moment than the newest, slots of
    /// schedules up to the first start count as missed. With --paused every queue and every
    /// schedule is paused, until `pinpriq queue resume` and `pinpriq schedule resume`.
    ///
    /// An interrupted run leaves a directory that no server starts on: remove it and run the
    /// command again.
    ///
    /// With --follow the directory is a warm standby: it gets what comes into the place, until
    /// SIGTERM, and the same command goes on later. A server that is started on it goes on from
    /// there, and then it follows no more. Stop the old server first.
    #[command(after_help = after(
        "pinpriq restore /mnt/backup/pinpriq --data /var/lib/pinpriq
        pinpriq restore s3://backups/pinpriq --data /var/lib/standby --follow --http 127.0.0.1:7260
        pinpriq restore /mnt/backup/pinpriq --data /tmp/then --until -10m --dry-run
        pinpriq restore s3://backups/pinpriq --data /tmp/then --until 2026-11-26T14:03:00.250Z",
        "0  the directory is complete; with --follow, SIGTERM or SIGINT came
        1  the place could not be read, or the directory could not be written; remove it
        1  with --follow: somebody has restored the line and gone on
        2  wrong usage, also a directory that is not empty
        3  something in the place is damaged, or of a newer format; or another process
        uses the directory
        4  there is no backup, or none of a moment that early",
    ))]
    Restore(RestoreArgs),
    /// Look at what a server had at a moment: read-only, on this machine.
    ///
    /// The moment comes from a place with backups, or from a data directory that no server uses.
    /// Such a directory reaches back as far as its segments. What it had is copied into a
    /// directory below $TMPDIR, which is removed at the end, and shown over RESP and HTTP, with the
    /// dashboard: `get`, `scan`, `explain`, `stats`, `export` and the like, with --address.
    ///
    /// Time stands at the moment: no lease, delay, TTL, schedule or membership ends. Whatever would
    /// change something is refused as READONLY. With `pinpriq export` and `pinpriq import` tasks go
    /// from here to a server that runs. It goes on until SIGINT, SIGTERM or SIGHUP.
    #[command(after_help = after(
        "pinpriq look /mnt/backup/pinpriq --until -10m
        pinpriq look s3://backups/pinpriq --until 2026-11-26T14:02:00Z --resp 127.0.0.1:7351
        pinpriq look /var/lib/pinpriq-old --http 127.0.0.1:7352",
        "0  ended by a signal
        1  the place could not be read, or the directory not written
        2  wrong usage, also an address that other machines reach
        3  a server uses the directory; or something is damaged, or of a newer format
        4  there is no backup, or the moment lies before all that there is",
    ))]
    Look(LookArgs),
    /// Tell what is in a data directory, and whether it is damaged.
    ///
    /// Reads the whole journal and changes nothing. May be used while a server uses the directory:
    /// the report then says so, and the end of the journal may be caught half written. An
    /// unfinished last write is no damage, since nothing in it was ever promised.
    ///
    /// A directory with several shards has a report for each, under the name of its directory. That
    /// directory can be named by itself too.
    #[command(after_help = "\
Examples:
  pinpriq check /var/lib/pinpriq
  pinpriq check /var/lib/pinpriq --json
  pinpriq check /var/lib/pinpriq/shard-03

Exit codes; with several shards the highest that one of them has:
  0  no damage
  1  a file could not be read
  2  wrong usage
  3  damaged, unfinished, of a newer format, or no data directory at all")]
    Check(CheckArgs),
    /// Write all that can be read of a damaged data directory into a new one.
    ///
    /// The damaged directory is not changed; no server may use it meanwhile. A server can be
    /// started on the new one. What was lost is listed. A task whose end was noted in a lost part
    /// comes back.
    ///
    /// A directory with several shards becomes a new one with as many.
    #[command(after_help = after(
        "pinpriq salvage /var/lib/pinpriq /var/lib/pinpriq-salvaged",
        "0  the new directory is complete, even if the report lists losses
        1  a file could not be read or written; do not use the new directory
        2  wrong usage, also a new directory that is not empty
        3  the damaged directory is in use, of a newer format, or no data directory at all",
    ))]
    Salvage(SalvageArgs),
    /// Write a data directory into a new one with another number of shards.
    ///
    /// The number of shards is a setting of `pinpriq serve` and belongs to the directory. This
    /// moves every queue and topic to the shard where a server with the new number looks for it;
    /// ids, order, states and leases stay as they are, and receipts stay good. The old directory is
    /// not changed; no server may use it meanwhile. All of it is held in memory for the time.
    ///
    /// Start the server on the new directory with --shards and the same number, and remove the old
    /// one when all is well. An interrupted run leaves a directory that no server starts on: remove
    /// it and run the command again.
    #[command(after_help = after(
        "pinpriq reshard /var/lib/pinpriq /var/lib/pinpriq-4 --shards 4",
        "0  the new directory is complete
        1  a file could not be read or written; remove the new directory
        2  wrong usage, also a new directory that is not empty
        3  the old directory is in use, damaged, of a newer format, or no data directory at all",
    ))]
    Reshard(ReshardArgs),
    /// Load a server with requests, and tell how fast it was.
    ///
    /// Each connection has as many slots as its depth. A slot goes through the requests of a job,
    /// one after the other, and begins the next job at once, or, with --rate, when one is due. Only
    /// --rate tells how long users would wait: latencies then count from the moment at which a job
    /// was due. Without it they are corrected for the requests that a stalled slot did not send.
    ///
    /// The queues should hold no other tasks. What put leaves there stays, for drain or for
    /// `pinpriq queue truncate`. Over the pinpriq protocol a put is a push and a pop from an empty
    /// queue, since nothing else confirms a push, and its tasks live for 65 seconds.
    #[command(after_help = after(
        "pinpriq bench
        pinpriq bench mixed --connections 64 --depth 16 --pid $(pgrep -x pinpriq)
        pinpriq bench mixed --rate 20000 --seconds 60
        pinpriq bench drain --backlog 1000000 --priorities 1000 --json
        pinpriq bench pop --door pinpriq --depth 64",
        "0  measured
        1  no connection, it was lost, or an answer was wrong
        2  wrong usage
        5  measured, but the server refused some of the requests, or it refused the backlog",
    ))]
    Bench(BenchArgs),
    /// Print the completions for a shell
    #[command(after_help = "\
Examples:
  pinpriq completions bash > /etc/bash_completion.d/pinpriq
  pinpriq completions fish > ~/.config/fish/completions/pinpriq.fish")]
    Completions(CompletionsArgs),
    /// Print the manual page, or write all of them
    #[command(after_help = "\
Examples:
  pinpriq man | man -l -
  pinpriq man --dir /usr/local/share/man/man1")]
    Man(ManArgs),
}

/// The arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// A TOML file with settings [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) settings: Settings,
}

/// The arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The data directory
    pub(crate) dir: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `salvage`.
#[derive(Debug, Args)]
pub(crate) struct SalvageArgs {
    /// The damaged data directory
    pub(crate) dir: PathBuf,

    /// The new one, empty or not there yet
    pub(crate) new_dir: PathBuf,
}

/// The arguments of `reshard`.
#[derive(Debug, Args)]
pub(crate) struct ReshardArgs {
    /// The data directory, with any number of shards
    pub(crate) dir: PathBuf,

    /// The new one, empty or not there yet
    pub(crate) new_dir: PathBuf,

    /// How many shards the new one is to have, 1 to 64
    #[arg(long, value_name = "N", value_parser = number_in::<u8>(1..=64))]
    #[arg(allow_negative_numbers = true)]
    pub(crate) shards: u8,
}

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell that the completions are for
    pub(crate) shell: clap_complete::Shell,
}

/// The arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this directory, made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
