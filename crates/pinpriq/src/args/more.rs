//! What the command line knows of commands of the server beyond their entries in the table: what
//! is printed of the reply, notes for people, examples.

/// What is known of a command.
#[derive(Debug)]
pub(crate) struct More {
    /// Its words.
    pub(crate) command: &'static str,
    /// What is printed of the reply.
    pub(crate) prints: Prints,
    /// What people should know, in sentences.
    pub(crate) note: &'static str,
    /// Examples, without the name of the program.
    pub(crate) examples: &'static [&'static str],
}

/// What is printed of a reply. For programs it is an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Prints {
    /// Whatever comes.
    Any,
    /// Nothing for people.
    Done,
    /// One value, by its name.
    Value(&'static str),
    /// Each value of a list, by this name.
    Each(&'static str),
    /// A map.
    Map,
    /// A line for each map of a list. No line may mean that there was nothing.
    Rows { can_be_nothing: bool },
    /// Tasks, with these parts.
    Tasks(&'static [TaskField]),
    /// How a task ended, and its state.
    Outcome,
    /// Whether a batch is done, and for programs the batch.
    BatchOutcome,
    /// Why a task is not handed out.
    Explained,
    /// How many tasks have changed, on all pages together.
    Changed,
}

/// A part of a task that is sent without its metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TaskField {
    /// Left out if one queue is meant.
    Queue,
    Id,
    Receipt,
    Payload,
}

impl Prints {
    /// Whether the exit code says so if there is nothing to print.
    pub(crate) const fn can_be_nothing(self) -> bool {
        matches!(
            self,
            Self::Map | Self::Tasks(_) | Self::Explained | Self::Rows { can_be_nothing: true }
        )
    }
}

impl More {
    /// A command of which nothing is known.
    pub(crate) const UNKNOWN: Self =
        Self { command: "", prints: Prints::Any, note: "", examples: &[] };

    const fn of(command: &'static str, prints: Prints, examples: &'static [&'static str]) -> Self {
        Self { command, prints, note: "", examples }
    }

    const fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }
}

/// The commands of which something is known.
pub(crate) static MORE: &[More] = &[
    More::of(
        "POP",
        Prints::Tasks(&[TaskField::Queue, TaskField::Payload]),
        &["pop jobs", "pop urgent jobs --wait 5s", "pop jobs --count 10 --json | jq -r .payload"],
    )
    .note(
        "A popped task is finished in the same step: it needs no acknowledgement, and it is gone \
         whatever becomes of the output. Use take where that must not happen.\n\nThe payload of \
         each task is on a line, with several queues after the name of the queue and a tab. Bytes \
         are printed as take does it, and --json prints all that is known of each task.",
    ),
    More::of("ACK", Prints::Done, &["ack jobs 17-1-4", "ack jobs 17-1-4 18-1-5 19-1-6"]),
    More::of(
        "RELEASE",
        Prints::Value("state"),
        &["release jobs 17-1-4", "release jobs 17-1-4 --delay 1m --priority 9"],
    ),
    More::of("BURY", Prints::Done, &["bury jobs 17-1-4 --reason 'the picture is broken'"]),
    More::of(
        "FAIL",
        Prints::Value("state"),
        &["fail jobs 17-1-4 --reason 'no connection'", "fail jobs 17-1-4 --delay 10m"],
    )
    .note(
        "The queue decides what becomes of a task that fails. It comes back for another attempt, \
         after the queue's back-off or --delay-ms, or at once if there is neither. When it has \
         failed as often as the queue allows (`pinpriq queue set --attempts`), it is buried, or \
         moved to the queue for dead letters.",
    ),
    More::of(
        "TOUCH",
        Prints::Value("deadline"),
        &[
            "touch jobs 17-1-4",
            "touch jobs --id 17 --by 1h",
            "touch jobs 17-1-4 --progress 'row 300 of 900' --checkpoint 300",
        ],
    ),
    More::of(
        "PEEK",
        Prints::Tasks(&[TaskField::Id, TaskField::Payload]),
        &["peek jobs --count 10", "peek jobs --state buried --json"],
    ),
    More::of("GET", Prints::Map, &["get jobs 17", "get jobs 17 --json | jq .attempts"]),
    More::of(
        "EXPLAIN",
        Prints::Explained,
        &["explain jobs", "explain jobs 17 --json | jq '.reasons[].code'"],
    )
    .note(
        "The first line is the id, the state, and since when the task is in it, in Unix \
         milliseconds. Each further line is a reason with what belongs to it: delayed, held, \
         after, taken, buried, expired, paused, limit, rate, no-priority, behind (other tasks come \
         first), no-consumer and next. Looking changes nothing.",
    ),
    More::of(
        "SCAN",
        Prints::Tasks(&[TaskField::Id, TaskField::Payload]),
        &["scan jobs --json > jobs.jsonl", "scan jobs --state waiting"],
    )
    .note(
        "They come in the order in which they were put. A task that is there all the time is \
         printed once, whatever becomes of it meanwhile. One that is released to the tail may \
         come twice.",
    ),
    More::of(
        "LEASES",
        Prints::Rows { can_be_nothing: true },
        &["leases", "leases jobs --json | jq .client"],
    ),
    More::of("AWAIT", Prints::Outcome, &["await jobs 17", "await jobs 17 --wait 5s && echo done"]),
    More::of("DIG", Prints::Value("state"), &["dig jobs 17"]),
    More::of("PLOW", Prints::Value("count"), &["plow jobs --count 100"]),
    More::of("KILL", Prints::Value("count"), &["kill jobs 17 18"])
        .note("The tasks are gone at once and for good, with their payloads. It does not ask."),
    More::of(
        "CANCEL",
        Prints::Value("state"),
        &["cancel jobs 17 --reason 'not needed' --grace 30s"],
    )
    .note(
        "Prints X if the task has ended, T if its holder is asked to stop, and Z or D if it was \
             finished before.",
    ),
    More::of(
        "SWITCH",
        Prints::Value("state"),
        &["switch jobs 17 --to buried", "switch jobs 17 --to waiting --delay 1m"],
    ),
    More::of("SNATCH", Prints::Value("state"), &["snatch jobs 17"]),
    More::of("RESTART", Prints::Value("state"), &["restart jobs 17"]),
    More::of(
        "UPDATE",
        Prints::Done,
        &["update jobs 17 --priority 1", "update jobs 17 --ttl none --payload 'resize 17.png'"],
    ),
    More::of(
        "MOVE",
        Prints::Value("count"),
        &["move jobs slow-jobs --count 10000", "move jobs broken-jobs --state buried"],
    )
    .note(
        "They keep state, priority, key, payload, delay and time to live, and are counted as new. \
         They have new ids, except where the queue has ids that callers give. It ends early where \
         the other queue is full or paused; what was moved stays moved. Repeat the command until \
         it prints 0 to move all.",
    ),
    More::of(
        "REDRIVE",
        Prints::Value("count"),
        &["redrive '{jobs}-dead'", "redrive '{jobs}-dead' --count 10"],
    )
    .note(
        "Each begins anew in its queue: no attempts, no failures, a new id, the queue's time to \
         live. Tasks that were put into the queue of dead letters themselves stay there.",
    ),
    More::of(
        "BULK",
        Prints::Changed,
        &[
            "bulk '{jobs}-dead' --redrive --reason '*timeout*'",
            "bulk jobs --cancel --header customer acme --dry",
            "bulk jobs --priority 5 --older 1h --yes",
        ],
    )
    .note(
        "One of --restart, --cancel, --kill, --redrive, --move, --priority and --delay-ms says \
         what is done. The other options say with which tasks: all of them have to fit. Tasks that \
         somebody is working on are left alone, except by --cancel and --kill.\n\nIt goes through \
         the queue page by page, and tells how many tasks have changed and at how many it has \
         looked. It counts first, and asks before it changes more than 1,000 tasks. Without a \
         terminal, it needs --yes. What has changed stays so if a page is refused, as when \
         the queue to move to is full.",
    ),
    More::of("STATS", Prints::Map, &["stats jobs", "stats --json | jq .present"]),
    More::of(
        "JOIN",
        Prints::Value("incarnation"),
        &["join news mailer --lease 1h", "take news --member mailer"],
    )
    .note(
        "From then on the member is given what is published. Joining again keeps the lane and \
         what is in it. A member ends, with all its lanes, when it gives no sign of life for as \
         long as its lease lasts: join, beat, and what it does itself, such as taking tasks. \
         Looking is none. `pinpriq listen` does all this by itself.",
    ),
    More::of("BEAT", Prints::Done, &["beat mailer", "beat mailer --lease 10m"]),
    More::of("LEAVE", Prints::Value("lanes"), &["leave news mailer", "leave mailer"]).note(
        "What is in the lanes is gone at once and for good, also what is being worked on. It does \
         not ask.",
    ),
    More::of(
        "MEMBERS",
        Prints::Rows { can_be_nothing: false },
        &["members news", "members news --json | jq .ready"],
    ),
    More::of("QUEUE CREATE", Prints::Done, &["queue create jobs --ttr 1m --capacity 100000"]),
    More::of(
        "QUEUE SET",
        Prints::Done,
        &[
            "queue set jobs --ttl none",
            "queue set jobs --attempts 5 --backoff 1s --dead-letter '{jobs}-dead'",
        ],
    ),
    More::of("QUEUE SHOW", Prints::Map, &["queue show jobs"]),
    More::of("QUEUE LIST", Prints::Each("queue"), &["queue list --prefix mail"]),
    More::of(
        "QUEUE SHARE",
        Prints::Done,
        &["queue share jobs acme --weight 3", "queue share jobs acme --limit 8 --rate 60/60000"],
    )
    .note(
        "What is not named stays. A share whose rules are all usual again, with a weight of 1 and \
         default for limit and rate, is forgotten.",
    ),
    More::of(
        "QUEUE SHARES",
        Prints::Rows { can_be_nothing: true },
        &["queue shares jobs", "queue shares jobs --top --json"],
    ),
    More::of("QUEUE TRUNCATE", Prints::Value("count"), &["queue truncate jobs"]).note(
        "The tasks are gone at once and for good, whatever their state, also those that somebody \
         is working on. It does not ask. The settings stay.",
    ),
    More::of("QUEUE DROP", Prints::Value("count"), &["queue drop jobs"]).note(
        "The tasks are gone at once and for good, whatever their state, also those that somebody \
         is working on. It does not ask. A later put makes a new queue of the same name, with the \
         usual settings.",
    ),
    More::of(
        "QUEUE PAUSE",
        Prints::Done,
        &["queue pause jobs", "queue pause jobs in", "queue pause jobs out --for 5m"],
    )
    .note("This survives a restart of the server."),
    More::of("QUEUE RESUME", Prints::Done, &["queue resume jobs"]),
    More::of(
        "LIMIT SET",
        Prints::Done,
        &["limit set gpu --max 8", "limit set '{mail}-smtp' --max 20 --rate 600/60000"],
    )
    .note(
        "What is not named stays; a new limit allows everything. Queues use it by their setting \
         --uses. With several shards, give limit and queues a common part in braces.",
    ),
    More::of("LIMIT SHOW", Prints::Map, &["limit show gpu"]),
    More::of("LIMIT LIST", Prints::Each("limit"), &["limit list --prefix mail"]),
    More::of("LIMIT DROP", Prints::Value("count"), &["limit drop gpu"]),
    More::of(
        "SCHEDULE SET",
        Prints::Value("next_at"),
        &[
            "schedule set beat health check --every 30s",
            "schedule set '{mail}-nightly' mail digest --cron '30 2 * * *' --zone Europe/Berlin",
            "schedule set backup disk --cron @daily --overlap skip < backup.json",
        ],
    )
    .note(
        "A slot is a moment at which the schedule is due: after a fixed time, or as a cron \
         expression says. The payload is sent byte for byte: a line end at the end of stdin is \
         part of it.\n\nA schedule of that name is replaced. It keeps its figures and its pause. A \
         program that sets its schedules whenever it starts should give --at: without it, the \
         time of --every begins anew.\n\nWith several shards, give schedule and queue a common \
         part in braces.",
    ),
    More::of(
        "SCHEDULE SHOW",
        Prints::Map,
        &["schedule show beat", "schedule show beat --json | jq .next_at"],
    ),
    More::of("SCHEDULE LIST", Prints::Each("schedule"), &["schedule list --prefix mail"]),
    More::of("SCHEDULE PAUSE", Prints::Done, &["schedule pause beat"]),
    More::of("SCHEDULE RESUME", Prints::Done, &["schedule resume beat"]),
    More::of("SCHEDULE DROP", Prints::Value("count"), &["schedule drop beat"]),
    More::of("SCHEDULE FIRE", Prints::Value("id"), &["schedule fire beat"]),
    More::of("BATCH OPEN", Prints::Done, &["batch open album-7", "batch open album-7 --ttl 1d"])
        .note(
            "A put with --batch makes it too. Open it first if it may stay without tasks, or to \
             give it a time. Then close it: it is not done before.\n\nWith several shards, give \
             the batch and its queues a common part in braces.",
        ),
    More::of("BATCH CLOSE", Prints::Value("pending"), &["batch close album-7"]).note(
        "It is done as soon as none of its tasks is pending: each was acknowledged, or has ended \
         otherwise. Until then it takes more tasks.",
    ),
    More::of(
        "BATCH SHOW",
        Prints::Map,
        &["batch show album-7", "batch show album-7 --json | jq .pending"],
    ),
    More::of("BATCH LIST", Prints::Each("batch"), &["batch list --prefix album-"]),
    More::of(
        "BATCH CANCEL",
        Prints::Value("count"),
        &["batch cancel album-7", "batch cancel album-7 --reason 'not needed' --grace 30s"],
    )
    .note(
        "The tasks that wait are gone, and holders of the others are asked to stop, as by \
         `pinpriq cancel`. It does not ask, and goes on by itself if they are many.",
    ),
    More::of("BATCH DROP", Prints::Value("count"), &["batch drop album-7"]).note(
        "A batch that is not done is refused. One that is done is forgotten by itself later.",
    ),
    More::of(
        "BATCH AWAIT",
        Prints::BatchOutcome,
        &["batch await album-7", "batch await album-7 --wait 5m --json | jq .batch.failed"],
    )
    .note(
        "Prints done or timeout. A batch is done however its tasks have ended: `pinpriq batch \
         show` tells how many have failed.",
    ),
];
