//! Every command, once. The parser, `COMMAND DOCS` and the documentation page read this table.

mod connection;
pub(crate) mod places;

use super::alphabet::letters;
use super::options::{
    AT, BY, COUNT, CURSOR, DEADLINE, DELAY, DONE, FOR, FROM, GROUP, KEY, LEASE, MEMBER, ONDUP,
    ORDER, PAYLOAD, POP, PREFIX, PRIORITY, REASON, RECEIPT, ROOM, STATE, STATE_BURIED, TAIL, TTL,
    TTL_OR_NONE, TTR, UNIQUE, WAIT, WINDOW, WITHMETA, ZOMBIE,
};
use super::spec::{Access, Group, Spec, Word};
use super::words::OPTIONS_MAX;
use super::{
    carrying, cluster, fanout, looking, options, push, queues, schedules, tasks, transaction,
};

const QUEUE: Word = Word::Key("queue");
const ID: Word = Word::One("id");
const TOPIC: Word = Word::Key("topic");
const NAME: Word = Word::One("member");

/// The commands, each with its chapter, in the order of the documentation page.
pub(crate) static TABLE: &[Spec] = &[
    Spec {
        name: "PUT",
        sub: None,
        group: Group::Tasks,
        summary: "Puts a task into a queue",
        reply: "the id; with WAIT the id and the outcome; with UNIQUE the id, whether it is new (1 \
                or 0), and with WAIT the outcome",
        words: &[QUEUE, Word::One("payload")],
        options: &[
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
        ],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::put,
    },
    Spec {
        name: "TAKE",
        sub: None,
        group: Group::Tasks,
        summary: "Takes the most urgent tasks under a lease",
        reply: "an array of tasks, empty if there are none",
        words: &[Word::Queues],
        options: &[COUNT, WAIT, TTR, FROM, ORDER, GROUP, WITHMETA, DONE, MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::take,
    },
    Spec {
        name: "POP",
        sub: None,
        group: Group::Tasks,
        summary: "Takes the most urgent tasks for good",
        reply: "an array of tasks, empty if there are none",
        words: &[Word::Queues],
        options: &[COUNT, WAIT, FROM, ORDER, GROUP, WITHMETA, MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::pop,
    },
    Spec {
        name: "PEEK",
        sub: None,
        group: Group::Tasks,
        summary: "Shows tasks and changes nothing",
        reply: "an array of tasks, empty if there are none",
        words: &[QUEUE],
        options: &[FROM, ORDER, STATE, COUNT, WITHMETA, MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::peek,
    },
    Spec {
        name: "GET",
        sub: None,
        group: Group::Tasks,
        summary: "Shows one task by its id",
        reply: "a map with all that is known, or null",
        words: &[QUEUE, ID],
        options: &[MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::get,
    },
    Spec {
        name: "ACK",
        sub: None,
        group: Group::Tasks,
        summary: "Finishes taken tasks",
        reply: "OK; for several receipts an array of OK or error, one for each",
        words: &[QUEUE, Word::HeldOrMore],
        options: &[PAYLOAD, ZOMBIE, MEMBER],
        access: Access::Rights,
        while_subscribed: true,
        run: tasks::ack,
    },
    Spec {
        name: "RELEASE",
        sub: None,
        group: Group::Tasks,
        summary: "Gives a taken task back to its queue",
        reply: "R, W, or X if its TTL had passed",
        words: &[QUEUE, Word::Held],
        options: &[DELAY, TTL, PRIORITY, PAYLOAD, TAIL, MEMBER],
        access: Access::Rights,
        while_subscribed: true,
        run: tasks::release,
    },
    Spec {
        name: "BURY",
        sub: None,
        group: Group::Tasks,
        summary: "Sets a taken task aside",
        reply: "OK",
        words: &[QUEUE, Word::Held],
        options: &[PAYLOAD, REASON, MEMBER],
        access: Access::Rights,
        while_subscribed: true,
        run: tasks::bury,
    },
    Spec {
        name: "FAIL",
        sub: None,
        group: Group::Tasks,
        summary: "Gives a taken task back because it failed: to be tried again, or not any more",
        reply: "R, W, B, or X if it became a dead letter or its TTL had passed",
        words: &[QUEUE, Word::Held],
        options: &[REASON, DELAY, PAYLOAD, MEMBER],
        access: Access::Rights,
        while_subscribed: true,
        run: tasks::fail,
    },
    Spec {
        name: "TOUCH",
        sub: None,
        group: Group::Tasks,
        summary: "Renews or moves the deadline of a lease, or moves the TTL of a ready task",
        reply: "the new deadline in Unix milliseconds, or null if there is none",
        words: &[QUEUE, Word::Held],
        options: &[BY, MEMBER],
        access: Access::Rights,
        while_subscribed: true,
        run: tasks::touch,
    },
    Spec {
        name: "DIG",
        sub: None,
        group: Group::Tasks,
        summary: "Brings a buried task back",
        reply: "R, W, or X if its TTL had passed",
        words: &[QUEUE, ID],
        options: &[DELAY, TTL, PRIORITY, PAYLOAD, MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::dig,
    },
    Spec {
        name: "PLOW",
        sub: None,
        group: Group::Tasks,
        summary: "Brings the oldest buried tasks back, all of them without COUNT",
        reply: "how many",
        words: &[QUEUE],
        options: &[COUNT, DELAY, TTL, MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::plow,
    },
    Spec {
        name: "KICK",
        sub: None,
        group: Group::Tasks,
        summary: "DIG by id, or PLOW with a count: the words of beanstalkd",
        reply: "as DIG or PLOW",
        words: &[QUEUE, Word::CountOrId],
        options: &[MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::kick,
    },
    Spec {
        name: "KILL",
        sub: None,
        group: Group::Tasks,
        summary: "Removes tasks, whatever their state and whoever holds them",
        reply: "how many",
        words: &[QUEUE, Word::Some("id")],
        options: &[MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::kill,
    },
    Spec {
        name: "SWITCH",
        sub: None,
        group: Group::Tasks,
        summary: "Turns a task that is not taken into another state",
        reply: "the state",
        words: &[QUEUE, ID, Word::One("R|W|B|Z|D")],
        options: &[DELAY, TTL, MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::switch,
    },
    Spec {
        name: "SNATCH",
        sub: None,
        group: Group::Tasks,
        summary: "Takes a task away from its holder",
        reply: "R, W, or X if its TTL had passed",
        words: &[QUEUE, ID],
        options: &[DELAY, TTL, MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::snatch,
    },
    Spec {
        name: "RESTART",
        sub: None,
        group: Group::Tasks,
        summary: "Brings a waiting, buried or finished task back as if it had never been taken",
        reply: "R, W, or X if its TTL had passed",
        words: &[QUEUE, ID],
        options: &[DELAY, TTL, MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::restart,
    },
    Spec {
        name: "UPDATE",
        sub: None,
        group: Group::Tasks,
        summary: "Changes a task where it is",
        reply: "OK",
        words: &[QUEUE, ID],
        options: &[PRIORITY, PAYLOAD, TTL_OR_NONE, RECEIPT, MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::update,
    },
    Spec {
        name: "MOVE",
        sub: None,
        group: Group::Tasks,
        summary: "Moves tasks of one state to another queue, the oldest first",
        reply: "how many",
        words: &[Word::Key("from"), Word::Key("to")],
        options: &[COUNT, STATE, MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::move_tasks,
    },
    Spec {
        name: "REDRIVE",
        sub: None,
        group: Group::Tasks,
        summary: "Moves ready dead letters back to the queues that they come from",
        reply: "how many",
        words: &[QUEUE],
        options: &[COUNT, MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::redrive,
    },
    looking::EXPLAIN,
    looking::SCAN,
    looking::LEASES,
    Spec {
        name: "AWAIT",
        sub: None,
        group: Group::Tasks,
        summary: "Waits until a task is finished",
        reply: "the outcome (acked, buried, expired, killed, dead, evicted, moved, timeout) and \
                the state",
        words: &[QUEUE, ID],
        options: &[WAIT, MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: tasks::wait_for,
    },
    Spec {
        name: "SUBSCRIBE",
        sub: None,
        group: Group::Push,
        summary: "Has tasks delivered, one for each credit",
        reply: "how many subscriptions the connection has",
        words: &[Word::Queues],
        options: &[TTR, POP, MEMBER],
        access: Access::Rights,
        while_subscribed: true,
        run: push::subscribe,
    },
    Spec {
        name: "UNSUBSCRIBE",
        sub: None,
        group: Group::Push,
        summary: "Ends subscriptions, all of them if none is named",
        reply: "how many subscriptions are left",
        words: &[Word::AnyQueues],
        options: &[MEMBER],
        access: Access::Rights,
        while_subscribed: true,
        run: push::unsubscribe,
    },
    Spec {
        name: "CREDIT",
        sub: None,
        group: Group::Push,
        summary: "Grants that many further deliveries",
        reply: "the credit before the deliveries that it sets off",
        words: &[Word::One("n")],
        options: &[],
        access: Access::Users,
        while_subscribed: true,
        run: push::credit,
    },
    Spec {
        name: "READY",
        sub: None,
        group: Group::Push,
        summary: "Grants one further delivery",
        reply: "the credit before the delivery that it sets off",
        words: &[],
        options: &[],
        access: Access::Users,
        while_subscribed: true,
        run: push::ready,
    },
    Spec {
        name: "JOIN",
        sub: None,
        group: Group::FanOut,
        summary: "Gives a member a lane in a topic, and registers it if need be",
        reply: "the incarnation of the member",
        words: &[TOPIC, NAME],
        options: &[LEASE],
        access: Access::Rights,
        while_subscribed: false,
        run: fanout::join,
    },
    Spec {
        name: "BEAT",
        sub: None,
        group: Group::FanOut,
        summary: "Gives a sign of life, which begins the lease of a member anew",
        reply: "OK",
        words: &[NAME],
        options: &[LEASE],
        access: Access::Rights,
        while_subscribed: false,
        run: fanout::beat,
    },
    Spec {
        name: "LEAVE",
        sub: None,
        group: Group::FanOut,
        summary: "Ends a lane of a member; without a topic the member and all its lanes",
        reply: "how many lanes ended",
        words: &[Word::MaybeKeyFirst("topic"), NAME],
        options: &[],
        access: Access::Rights,
        while_subscribed: false,
        run: fanout::leave,
    },
    Spec {
        name: "PUBLISH",
        sub: None,
        group: Group::FanOut,
        summary: "Puts one task into each lane of a topic",
        reply: "how many lanes",
        words: &[TOPIC, Word::One("payload")],
        options: &[KEY, PRIORITY, DEADLINE, TTL],
        access: Access::Rights,
        while_subscribed: false,
        run: fanout::publish,
    },
    Spec {
        name: "MEMBERS",
        sub: None,
        group: Group::FanOut,
        summary: "Tells the members of a topic",
        reply: "an array of maps: member, incarnation, lease_until, ready, taken",
        words: &[TOPIC],
        options: &[],
        access: Access::Rights,
        while_subscribed: false,
        run: fanout::members,
    },
    Spec {
        name: "QUEUE",
        sub: Some("CREATE"),
        group: Group::Queues,
        summary: "Makes a queue that exists even when it is empty",
        reply: "OK",
        words: &[QUEUE, Word::AnySettings],
        options: &[],
        access: Access::Rights,
        while_subscribed: false,
        run: queues::create,
    },
    Spec {
        name: "QUEUE",
        sub: Some("SET"),
        group: Group::Queues,
        summary: "Changes settings of a queue, which is created if need be",
        reply: "OK",
        words: &[QUEUE, Word::Settings],
        options: &[MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: queues::set,
    },
    Spec {
        name: "QUEUE",
        sub: Some("SHOW"),
        group: Group::Queues,
        summary: "Tells the settings of a queue",
        reply: "a map",
        words: &[QUEUE],
        options: &[MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: queues::show,
    },
    Spec {
        name: "QUEUE",
        sub: Some("LIST"),
        group: Group::Queues,
        summary: "Tells the names of the queues, page by page",
        reply: "the cursor of the next page (0 after the last) and the names in order",
        words: &[],
        options: &[PREFIX, COUNT, CURSOR],
        access: Access::Rights,
        while_subscribed: false,
        run: queues::list,
    },
    Spec {
        name: "QUEUE",
        sub: Some("TRUNCATE"),
        group: Group::Queues,
        summary: "Removes all tasks of a queue",
        reply: "how many",
        words: &[QUEUE],
        options: &[MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: queues::truncate,
    },
    Spec {
        name: "QUEUE",
        sub: Some("DROP"),
        group: Group::Queues,
        summary: "Removes a queue with its tasks, settings and pause",
        reply: "how many tasks it had",
        words: &[QUEUE],
        options: &[],
        access: Access::Rights,
        while_subscribed: false,
        run: queues::drop_queue,
    },
    Spec {
        name: "QUEUE",
        sub: Some("PAUSE"),
        group: Group::Queues,
        summary: "Pauses a queue for puts, for takes, or for both, for good or for a while",
        reply: "OK",
        words: &[QUEUE, Word::Maybe("IN|OUT")],
        options: &[FOR, MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: queues::pause,
    },
    Spec {
        name: "QUEUE",
        sub: Some("RESUME"),
        group: Group::Queues,
        summary: "Ends a pause",
        reply: "OK",
        words: &[QUEUE, Word::Maybe("IN|OUT")],
        options: &[MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: queues::resume,
    },
    Spec {
        name: "STATS",
        sub: None,
        group: Group::Queues,
        summary: "Tells the figures of a queue, or of all together",
        reply: "a map",
        words: &[Word::MaybeKey("queue")],
        options: &[MEMBER],
        access: Access::Rights,
        while_subscribed: false,
        run: queues::stats,
    },
    carrying::EXPORT,
    carrying::IMPORT,
    schedules::SET,
    schedules::SHOW,
    schedules::LIST,
    schedules::PAUSE,
    schedules::RESUME,
    schedules::DROP,
    schedules::FIRE,
    transaction::MULTI,
    transaction::EXEC,
    transaction::DISCARD,
    transaction::WATCH,
    transaction::UNWATCH,
    connection::PING,
    connection::ECHO,
    connection::HELLO,
    connection::AUTH,
    connection::QUIT,
    connection::RESET,
    connection::ACL_WHOAMI,
    connection::ACL_USERS,
    connection::ACL_LIST,
    connection::ACL_DRYRUN,
    connection::CLIENT_ID,
    connection::CLIENT_SETNAME,
    connection::CLIENT_GETNAME,
    connection::CLIENT_SETINFO,
    connection::CLIENT_LIST,
    connection::CLIENT_KILL,
    connection::COMMAND,
    connection::COMMAND_COUNT,
    connection::COMMAND_DOCS,
    connection::COMMAND_GETKEYS,
    connection::COMMAND_INFO,
    connection::COMMAND_LIST,
    connection::INFO,
    cluster::SLOTS,
    cluster::SHARDS,
    cluster::NODES,
    cluster::INFO,
    cluster::MYID,
    cluster::KEYSLOT,
    cluster::ADMIN,
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
pub(crate) fn command_name(place: usize) -> String {
    TABLE.get(place).map_or_else(String::new, Spec::full_name)
}

/// Finds the entry of a command, or of its subcommand if it has some.
#[inline(always)]
#[expect(clippy::inline_always, reason = "every request passes here")]
pub(crate) fn find(words: &[&[u8]]) -> Found {
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
pub(crate) enum Found {
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
