//! Every command, once. The parser, `COMMAND DOCS` and the documentation page read this table.

pub mod places;

use super::alphabet::letters;
use super::options;
use super::options::{
    AT, BY, COUNT, CRON, CURSOR, DEADLINE, DELAY, DONE, EVERY, FOR, FROM, GROUP, KEY, LEASE,
    MEMBER, MISSED, ONDUP, ORDER, OVERLAP, PAYLOAD, POP, PREFIX, PRIORITY, REASON, RECEIPT, ROOM,
    STATE, STATE_BURIED, TAIL, TTL, TTL_OR_NONE, TTR, UNIQUE, WAIT, WINDOW, WITHMETA, ZOMBIE, ZONE,
};
use super::parts::OPTIONS_MAX;
use super::spec::{Access, Group, Spec, Word};

const QUEUE: Word = Word::Key("queue");
const ID: Word = Word::One("id");
const TOPIC: Word = Word::Key("topic");
const NAME: Word = Word::One("member");
const SCHEDULE: Word = Word::Key("schedule");

/// The commands, each with its chapter, in the order of the documentation page.
pub static TABLE: &[Spec] = &[
    Spec::new(
        "PUT",
        Group::Tasks,
        "Puts a task into a queue",
        "the id; with WAIT the id and the outcome; with UNIQUE the id, whether it is new (1 \
                or 0), and with WAIT the outcome",
    )
    .words(&[QUEUE, Word::One("payload")])
    .options(&[
        KEY,
        PRIORITY,
        DELAY,
        AT,
        TTL,
        TTR,
        options::ID,
        WAIT,
        ROOM,
        UNIQUE,
        WINDOW,
        ONDUP,
        STATE_BURIED,
        REASON,
    ]),
    Spec::new(
        "TAKE",
        Group::Tasks,
        "Takes the most urgent tasks under a lease",
        "an array of tasks, empty if there are none",
    )
    .words(&[Word::Queues])
    .options(&[COUNT, WAIT, TTR, FROM, ORDER, GROUP, WITHMETA, DONE, MEMBER]),
    Spec::new(
        "POP",
        Group::Tasks,
        "Takes the most urgent tasks for good",
        "an array of tasks, empty if there are none",
    )
    .words(&[Word::Queues])
    .options(&[COUNT, WAIT, FROM, ORDER, GROUP, WITHMETA, MEMBER]),
    Spec::new(
        "PEEK",
        Group::Tasks,
        "Shows tasks and changes nothing",
        "an array of tasks, empty if there are none",
    )
    .words(&[QUEUE])
    .options(&[FROM, ORDER, STATE, COUNT, WITHMETA, MEMBER]),
    Spec::new(
        "GET",
        Group::Tasks,
        "Shows one task by its id",
        "a map with all that is known, or null",
    )
    .words(&[QUEUE, ID])
    .options(&[MEMBER]),
    Spec::new(
        "ACK",
        Group::Tasks,
        "Finishes taken tasks",
        "OK; for several receipts an array of OK or error, one for each",
    )
    .words(&[QUEUE, Word::HeldOrMore])
    .options(&[PAYLOAD, ZOMBIE, MEMBER])
    .while_subscribed(),
    Spec::new(
        "RELEASE",
        Group::Tasks,
        "Gives a taken task back to its queue",
        "R, W, or X if its TTL had passed",
    )
    .words(&[QUEUE, Word::Held])
    .options(&[DELAY, TTL, PRIORITY, PAYLOAD, TAIL, MEMBER])
    .while_subscribed(),
    Spec::new("BURY", Group::Tasks, "Sets a taken task aside", "OK")
        .words(&[QUEUE, Word::Held])
        .options(&[PAYLOAD, REASON, MEMBER])
        .while_subscribed(),
    Spec::new(
        "FAIL",
        Group::Tasks,
        "Gives a taken task back because it failed: to be tried again or to be given up",
        "R, W, B, or X if it became a dead letter or its TTL had passed",
    )
    .words(&[QUEUE, Word::Held])
    .options(&[REASON, DELAY, PAYLOAD, MEMBER])
    .while_subscribed(),
    Spec::new(
        "TOUCH",
        Group::Tasks,
        "Renews or moves the deadline of a lease, or moves the TTL of a ready task",
        "the new deadline in Unix milliseconds, or null if there is none",
    )
    .words(&[QUEUE, Word::Held])
    .options(&[BY, MEMBER])
    .while_subscribed(),
    Spec::new("DIG", Group::Tasks, "Brings a buried task back", "R, W, or X if its TTL had passed")
        .words(&[QUEUE, ID])
        .options(&[DELAY, TTL, PRIORITY, PAYLOAD, MEMBER]),
    Spec::new(
        "PLOW",
        Group::Tasks,
        "Brings the oldest buried tasks back, all of them without COUNT",
        "how many",
    )
    .words(&[QUEUE])
    .options(&[COUNT, DELAY, TTL, MEMBER]),
    Spec::new(
        "KICK",
        Group::Tasks,
        "DIG by id, or PLOW with a count: the words of beanstalkd",
        "as DIG or PLOW",
    )
    .words(&[QUEUE, Word::CountOrId])
    .options(&[MEMBER]),
    Spec::new(
        "KILL",
        Group::Tasks,
        "Removes tasks in any state, also those that are held",
        "how many",
    )
    .words(&[QUEUE, Word::Some("id")])
    .options(&[MEMBER]),
    Spec::new(
        "SWITCH",
        Group::Tasks,
        "Turns a task that is not taken into another state",
        "the state",
    )
    .words(&[QUEUE, ID, Word::One("R|W|B|Z|D")])
    .options(&[DELAY, TTL, MEMBER]),
    Spec::new(
        "SNATCH",
        Group::Tasks,
        "Takes a task away from its holder",
        "R, W, or X if its TTL had passed",
    )
    .words(&[QUEUE, ID])
    .options(&[DELAY, TTL, MEMBER]),
    Spec::new(
        "RESTART",
        Group::Tasks,
        "Brings a waiting, buried or finished task back as if it had never been taken",
        "R, W, or X if its TTL had passed",
    )
    .words(&[QUEUE, ID])
    .options(&[DELAY, TTL, MEMBER]),
    Spec::new("UPDATE", Group::Tasks, "Changes a task where it is", "OK")
        .words(&[QUEUE, ID])
        .options(&[PRIORITY, PAYLOAD, TTL_OR_NONE, RECEIPT, MEMBER]),
    Spec::new(
        "MOVE",
        Group::Tasks,
        "Moves tasks of one state to another queue, the oldest first",
        "how many",
    )
    .words(&[Word::Key("from"), Word::Key("to")])
    .options(&[COUNT, STATE, MEMBER]),
    Spec::new(
        "REDRIVE",
        Group::Tasks,
        "Moves ready dead letters back to the queues that they come from",
        "how many",
    )
    .words(&[QUEUE])
    .options(&[COUNT, MEMBER]),
    Spec::new(
        "EXPLAIN",
        Group::Tasks,
        "Tells why a task is not handed out, or which task would be next",
        "a map: id, state, since, reasons",
    )
    .words(&[Word::Key("queue"), Word::Maybe("id")])
    .options(&[MEMBER]),
    Spec::new(
        "SCAN",
        Group::Tasks,
        "Shows all tasks of a queue, page by page",
        "the cursor of the next page (0 after the last) and an array of tasks",
    )
    .words(&[Word::Key("queue")])
    .options(&[CURSOR, COUNT, STATE, KEY, WITHMETA, MEMBER]),
    Spec::new(
        "LEASES",
        Group::Tasks,
        "Shows who holds which task, in one queue or in all, page by page",
        "the cursor of the next page (0 after the last) and an array of maps: queue, \
                member, id, client, name, address, since, until",
    )
    .words(&[Word::MaybeKey("queue")])
    .options(&[COUNT, CURSOR, MEMBER]),
    Spec::new(
        "AWAIT",
        Group::Tasks,
        "Waits until a task is finished",
        "the outcome (acked, buried, expired, killed, dead, evicted, moved, timeout) and \
                the state",
    )
    .words(&[QUEUE, ID])
    .options(&[WAIT, MEMBER]),
    Spec::new(
        "SUBSCRIBE",
        Group::Push,
        "Has tasks delivered, one for each credit",
        "how many subscriptions the connection has",
    )
    .words(&[Word::Queues])
    .options(&[TTR, POP, MEMBER])
    .while_subscribed(),
    Spec::new(
        "UNSUBSCRIBE",
        Group::Push,
        "Ends subscriptions, all of them if none is named",
        "how many subscriptions are left",
    )
    .words(&[Word::AnyQueues])
    .options(&[MEMBER])
    .while_subscribed(),
    Spec::new(
        "CREDIT",
        Group::Push,
        "Grants that many further deliveries",
        "the credit before the deliveries that it sets off",
    )
    .words(&[Word::One("n")])
    .access(Access::Users)
    .while_subscribed(),
    Spec::new(
        "READY",
        Group::Push,
        "Grants one further delivery",
        "the credit before the delivery that it sets off",
    )
    .access(Access::Users)
    .while_subscribed(),
    Spec::new(
        "JOIN",
        Group::FanOut,
        "Gives a member a lane in a topic, and registers it if need be",
        "the incarnation of the member",
    )
    .words(&[TOPIC, NAME])
    .options(&[LEASE]),
    Spec::new(
        "BEAT",
        Group::FanOut,
        "Gives a sign of life, which begins the lease of a member anew",
        "OK",
    )
    .words(&[NAME])
    .options(&[LEASE]),
    Spec::new(
        "LEAVE",
        Group::FanOut,
        "Ends a lane of a member; without a topic the member and all its lanes",
        "how many lanes ended",
    )
    .words(&[Word::MaybeKeyFirst("topic"), NAME]),
    Spec::new(
        "PUBLISH",
        Group::FanOut,
        "Puts one task into each lane of a topic",
        "how many lanes",
    )
    .words(&[TOPIC, Word::One("payload")])
    .options(&[KEY, PRIORITY, DEADLINE, TTL]),
    Spec::new(
        "MEMBERS",
        Group::FanOut,
        "Tells the members of a topic",
        "an array of maps: member, incarnation, lease_until, ready, taken",
    )
    .words(&[TOPIC]),
    Spec::new("QUEUE", Group::Queues, "Makes a queue that exists even when it is empty", "OK")
        .sub("CREATE")
        .words(&[QUEUE, Word::AnySettings]),
    Spec::new(
        "QUEUE",
        Group::Queues,
        "Changes settings of a queue, which is created if need be",
        "OK",
    )
    .sub("SET")
    .words(&[QUEUE, Word::Settings])
    .options(&[MEMBER]),
    Spec::new("QUEUE", Group::Queues, "Tells the settings of a queue", "a map")
        .sub("SHOW")
        .words(&[QUEUE])
        .options(&[MEMBER]),
    Spec::new(
        "QUEUE",
        Group::Queues,
        "Tells the names of the queues, page by page",
        "the cursor of the next page (0 after the last) and the names in order",
    )
    .sub("LIST")
    .options(&[PREFIX, COUNT, CURSOR]),
    Spec::new("QUEUE", Group::Queues, "Removes all tasks of a queue", "how many")
        .sub("TRUNCATE")
        .words(&[QUEUE])
        .options(&[MEMBER]),
    Spec::new(
        "QUEUE",
        Group::Queues,
        "Removes a queue with its tasks, settings and pause",
        "how many tasks it had",
    )
    .sub("DROP")
    .words(&[QUEUE]),
    Spec::new(
        "QUEUE",
        Group::Queues,
        "Pauses a queue for puts, for takes, or for both, for good or for a while",
        "OK",
    )
    .sub("PAUSE")
    .words(&[QUEUE, Word::Maybe("IN|OUT")])
    .options(&[FOR, MEMBER]),
    Spec::new("QUEUE", Group::Queues, "Ends a pause", "OK")
        .sub("RESUME")
        .words(&[QUEUE, Word::Maybe("IN|OUT")])
        .options(&[MEMBER]),
    Spec::new("STATS", Group::Queues, "Tells the figures of a queue, or of all together", "a map")
        .words(&[Word::MaybeKey("queue")])
        .options(&[MEMBER]),
    Spec::new(
        "EXPORT",
        Group::Queues,
        "Shows all that another server needs to go on with a queue, page by page",
        "the cursor of the next page (0 after the last) and an array of records as JSON",
    )
    .words(&[Word::Key("queue")])
    .options(&[CURSOR, COUNT]),
    Spec::new(
        "IMPORT",
        Group::Queues,
        "Takes over one record of an export",
        "the id of a task; OK for other records",
    )
    .words(&[Word::Key("queue"), Word::One("record")])
    .options(&[PAYLOAD]),
    Spec::new(
        "SCHEDULE",
        Group::Schedules,
        "Puts a task into a queue again and again, or changes when and which",
        "the next slot in Unix milliseconds",
    )
    .sub("SET")
    .words(&[SCHEDULE, Word::Key("queue"), Word::One("payload")])
    .options(&[EVERY, options::AT_SLOT, CRON, ZONE, KEY, PRIORITY, TTL, TTR, MISSED, OVERLAP]),
    Spec::new(
        "SCHEDULE",
        Group::Schedules,
        "Tells what a schedule does and what it has done",
        "a map",
    )
    .sub("SHOW")
    .words(&[SCHEDULE]),
    Spec::new(
        "SCHEDULE",
        Group::Schedules,
        "Tells the names of the schedules, page by page",
        "the cursor of the next page (0 after the last) and the names in order",
    )
    .sub("LIST")
    .options(&[PREFIX, COUNT, CURSOR]),
    Spec::new("SCHEDULE", Group::Schedules, "Lets slots pass without a task", "OK")
        .sub("PAUSE")
        .words(&[SCHEDULE]),
    Spec::new("SCHEDULE", Group::Schedules, "Ends a pause of a schedule", "OK")
        .sub("RESUME")
        .words(&[SCHEDULE]),
    Spec::new(
        "SCHEDULE",
        Group::Schedules,
        "Removes a schedule; its tasks stay",
        "1, or 0 if there is none",
    )
    .sub("DROP")
    .words(&[SCHEDULE]),
    Spec::new(
        "SCHEDULE",
        Group::Schedules,
        "Puts a task of a schedule now, also while it is paused",
        "the id",
    )
    .sub("FIRE")
    .words(&[SCHEDULE]),
    Spec::new(
        "MULTI",
        Group::Transactions,
        "Begins a transaction: the commands that follow are kept until EXEC",
        "OK; the commands that follow are answered QUEUED",
    )
    .access(Access::Users),
    Spec::new(
        "EXEC",
        Group::Transactions,
        "Carries out the commands since MULTI, all or none, at one moment",
        "an array of their replies, or EXECABORT with the position and the refusal of the \
                first that was refused",
    )
    .access(Access::Users),
    Spec::new("DISCARD", Group::Transactions, "Forgets the commands since MULTI", "OK")
        .access(Access::Users),
    Spec::new(
        "WATCH",
        Group::Transactions,
        "Is refused: a transaction whose commands no longer fit is refused as a whole",
        "ERR",
    )
    .words(&[Word::Some("key")])
    .access(Access::Users),
    Spec::new("UNWATCH", Group::Transactions, "Does nothing, since nothing is watched", "OK")
        .access(Access::Users),
    Spec::new("PING", Group::Connection, "Answers PONG, or the message", "PONG or the message")
        .words(&[Word::Maybe("message")])
        .access(Access::Everybody)
        .while_subscribed(),
    Spec::new("ECHO", Group::Connection, "Answers the message", "the message")
        .words(&[Word::One("message")])
        .access(Access::Users),
    Spec::new("HELLO", Group::Connection, "Chooses the version of RESP", "a map about the server")
        .words(&[Word::Any("2|3 [AUTH user password] [SETNAME name]")])
        .access(Access::Everybody),
    Spec::new("AUTH", Group::Connection, "Signs in, by user and password or by a token", "OK")
        .words(&[Word::Some("[user] password|token")])
        .access(Access::Everybody),
    Spec::new("QUIT", Group::Connection, "Ends the connection after the replies before it", "OK")
        .access(Access::Everybody)
        .while_subscribed(),
    Spec::new(
        "RESET",
        Group::Connection,
        "Ends subscriptions, credit, and the leases that live as long as the connection",
        "RESET",
    )
    .access(Access::Everybody)
    .while_subscribed(),
    Spec::new(
        "ACL",
        Group::Connection,
        "Tells the user of this connection",
        "the name, or null without one; `default` where there are no users",
    )
    .sub("WHOAMI")
    .access(Access::Everybody),
    Spec::new("ACL", Group::Connection, "Tells the names of all users", "an array of names")
        .sub("USERS")
        .access(Access::Admins),
    Spec::new(
        "ACL",
        Group::Connection,
        "Tells all users with their rules",
        "an array with a line for each user",
    )
    .sub("LIST")
    .access(Access::Admins),
    Spec::new(
        "ACL",
        Group::Connection,
        "Tells whether a user may carry out a command, which is not carried out",
        "OK, or what the user lacks",
    )
    .sub("DRYRUN")
    .words(&[Word::One("user"), Word::One("command"), Word::Any("argument")])
    .access(Access::Admins),
    Spec::new("CLIENT", Group::Connection, "Tells the number of this connection", "the number")
        .sub("ID")
        .access(Access::Users),
    Spec::new("CLIENT", Group::Connection, "Gives this connection a name", "OK")
        .sub("SETNAME")
        .words(&[Word::One("name")])
        .access(Access::Users),
    Spec::new(
        "CLIENT",
        Group::Connection,
        "Tells the name of this connection",
        "the name, or null",
    )
    .sub("GETNAME")
    .access(Access::Users),
    Spec::new("CLIENT", Group::Connection, "Notes which library the client uses", "OK")
        .sub("SETINFO")
        .words(&[Word::One("LIB-NAME|LIB-VER"), Word::One("value")])
        .access(Access::Users),
    Spec::new("CLIENT", Group::Connection, "Tells who is connected, a line each", "text")
        .sub("LIST")
        .access(Access::Admins),
    Spec::new(
        "CLIENT",
        Group::Connection,
        "Ends connections, by number or address",
        "how many; OK for the old form with an address alone",
    )
    .sub("KILL")
    .words(&[Word::Some("ID number|ADDR address|address")])
    .access(Access::Users),
    Spec::new("COMMAND", Group::Connection, "Describes every command", "an array, as Redis has it")
        .access(Access::Users),
    Spec::new("COMMAND", Group::Connection, "Tells how many commands there are", "the number")
        .sub("COUNT")
        .access(Access::Users),
    Spec::new(
        "COMMAND",
        Group::Connection,
        "Tells the documentation of commands, of all if none is named",
        "a map by name",
    )
    .sub("DOCS")
    .words(&[Word::Any("command")])
    .access(Access::Users),
    Spec::new(
        "COMMAND",
        Group::Connection,
        "Tells the names in a request by which a cluster finds the node for it",
        "an array of names",
    )
    .sub("GETKEYS")
    .words(&[Word::One("command"), Word::Any("argument")])
    .access(Access::Users),
    Spec::new(
        "COMMAND",
        Group::Connection,
        "Describes commands, all if none is named",
        "an array, as Redis has it",
    )
    .sub("INFO")
    .words(&[Word::Any("command")])
    .access(Access::Users),
    Spec::new("COMMAND", Group::Connection, "Tells the names of all commands", "an array of names")
        .sub("LIST")
        .access(Access::Users),
    Spec::new(
        "INFO",
        Group::Connection,
        "Tells about the server, all of it or named sections",
        "text with a line for each fact",
    )
    .words(&[Word::Any("section")])
    .access(Access::Users),
    Spec::new(
        "CLUSTER",
        Group::Cluster,
        "Tells which node to ask for which slots",
        "an array: first slot, last slot, and the node as host, port, id and an empty array",
    )
    .sub("SLOTS")
    .access(Access::Users),
    Spec::new(
        "CLUSTER",
        Group::Cluster,
        "Tells the same node by node",
        "an array of maps: slots, nodes",
    )
    .sub("SHARDS")
    .access(Access::Users),
    Spec::new("CLUSTER", Group::Cluster, "Tells the same as text, a line for each node", "text")
        .sub("NODES")
        .access(Access::Users),
    Spec::new(
        "CLUSTER",
        Group::Cluster,
        "Tells whether this node knows an owner of every shard",
        "text with a line for each fact; cluster_state is ok or fail",
    )
    .sub("INFO")
    .access(Access::Users),
    Spec::new(
        "CLUSTER",
        Group::Cluster,
        "Tells the id of this node, another one after each start",
        "40 hexadecimal digits",
    )
    .sub("MYID")
    .access(Access::Users),
    Spec::new("CLUSTER", Group::Cluster, "Tells the slot of a name", "the slot, from 0 to 16383")
        .sub("KEYSLOT")
        .words(&[Word::One("name")])
        .access(Access::Users),
    Spec::new(
        "CLUSTER",
        Group::Cluster,
        "Asks the engine under the cluster what `pinpriq cluster` asks it",
        "an array: the exit code, what is printed, and why it failed or null",
    )
    .sub("ADMIN")
    .words(&[Word::One("TEXT|JSON"), Word::One("operation"), Word::Any("argument")])
    .access(Access::Admins),
];

/// The names of the commands as numbers. Each comes with the end of its entries, which are
/// adjacent.
static NAMES: [(u64, usize); TABLE.len()] = {
    let mut names = [(0, 0); TABLE.len()];
    let mut end = names.len();
    let mut index = names.len();
    while index > 0 {
        index -= 1;
        // DONE is kept apart.
        let repeats = matches!(TABLE[index].name.as_bytes(), b"TAKE") as usize;
        let options = TABLE[index].options.len() - repeats;
        assert!(options <= OPTIONS_MAX, "a command has too many options");
        let number = letters(TABLE[index].name.as_bytes());
        if index + 1 < names.len() && number != names[index + 1].0 {
            end = index + 1;
        }
        names[index] = (number, end);
    }
    names
};

/// Returns the words of the command at this place, or nothing if none is there.
#[must_use]
pub fn command_name(place: usize) -> String {
    TABLE.get(place).map_or_else(String::new, Spec::full_name)
}

/// Finds the entry of a command, or of its subcommand if it has some.
#[inline(always)]
#[expect(clippy::inline_always, reason = "every request passes here")]
#[must_use]
pub fn find(words: &[&[u8]]) -> Found {
    let Some(name) = words.first() else { return Found::Unknown };
    let number = letters(name);
    let Some(first) = NAMES.iter().position(|(known, _)| *known == number) else {
        return Found::Unknown;
    };
    let known = TABLE[first].name.as_bytes();
    let is_short = name.len() <= 8;
    if name.len() != known.len() || !(is_short || name.eq_ignore_ascii_case(known)) {
        return Found::Unknown;
    }
    match &TABLE[first..NAMES[first].1] {
        [spec] if spec.sub.is_none() => Found::Spec(spec, first, 1),
        entries => find_sub((first, entries), words.get(1).copied()),
    }
}

/// Finds the entry of a subcommand. A command may also need no subcommand although it has some.
fn find_sub((first, entries): (usize, &'static [Spec]), sub: Option<&[u8]>) -> Found {
    let is_sub = |(_, spec): &(usize, &Spec)| {
        spec.sub
            .is_some_and(|known| sub.is_some_and(|sub| sub.eq_ignore_ascii_case(known.as_bytes())))
    };
    let plain = entries.iter().enumerate().find(|(_, spec)| spec.sub.is_none());
    match (entries.iter().enumerate().find(is_sub), plain, sub) {
        (Some((at, spec)), ..) => Found::Spec(spec, first + at, 2),
        (None, Some((at, spec)), None) => Found::Spec(spec, first + at, 1),
        (None, None, None) => Found::NoSub,
        (None, _, Some(_)) => Found::UnknownSub,
    }
}

/// What a name stands for.
pub enum Found {
    /// This entry, which is at this place, after this number of words.
    Spec(&'static Spec, usize, usize),
    /// A command that needs a subcommand, without one.
    NoSub,
    /// A command without that subcommand.
    UnknownSub,
    /// Nothing.
    Unknown,
}

#[cfg(test)]
mod tests;
