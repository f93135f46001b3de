//! Every command, once. The parser, `COMMAND DOCS` and the documentation page read this table.

use super::alphabet::letters;
use super::options::{
    AT, BY, COUNT, CURSOR, DEADLINE, DELAY, DONE, FROM, GROUP, KEY, LEASE, MEMBER, ONDUP, ORDER,
    PAYLOAD, POP, PREFIX, PRIORITY, REASON, RECEIPT, ROOM, STATE, TAIL, TTL, TTL_OR_NONE, TTR,
    UNIQUE, WAIT, WINDOW, WITHMETA, ZOMBIE,
};
use super::spec::{Group, Spec, Word};
use super::words::OPTIONS_MAX;
use super::{
    carrying, cluster, connection, fanout, looking, options, push, queues, schedules, tasks,
    transaction,
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
        ],
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
        while_subscribed: false,
        run: queues::drop_queue,
    },
    Spec {
        name: "QUEUE",
        sub: Some("PAUSE"),
        group: Group::Queues,
        summary: "Pauses a queue for puts, for takes, or for both",
        reply: "OK",
        words: &[QUEUE, Word::Maybe("IN|OUT")],
        options: &[MEMBER],
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
    Spec {
        name: "PING",
        sub: None,
        group: Group::Connection,
        summary: "Answers PONG, or the message",
        reply: "PONG or the message",
        words: &[Word::Maybe("message")],
        options: &[],
        while_subscribed: true,
        run: connection::ping,
    },
    Spec {
        name: "ECHO",
        sub: None,
        group: Group::Connection,
        summary: "Answers the message",
        reply: "the message",
        words: &[Word::One("message")],
        options: &[],
        while_subscribed: false,
        run: connection::echo,
    },
    Spec {
        name: "HELLO",
        sub: None,
        group: Group::Connection,
        summary: "Chooses the version of RESP",
        reply: "a map about the server",
        words: &[Word::Any("2|3 [AUTH user password] [SETNAME name]")],
        options: &[],
        while_subscribed: false,
        run: connection::hello,
    },
    Spec {
        name: "AUTH",
        sub: None,
        group: Group::Connection,
        summary: "Is refused, since this server has no passwords",
        reply: "an error",
        words: &[Word::Some("user or password")],
        options: &[],
        while_subscribed: false,
        run: connection::auth,
    },
    Spec {
        name: "QUIT",
        sub: None,
        group: Group::Connection,
        summary: "Ends the connection after the replies before it",
        reply: "OK",
        words: &[],
        options: &[],
        while_subscribed: true,
        run: connection::quit,
    },
    Spec {
        name: "RESET",
        sub: None,
        group: Group::Connection,
        summary: "Ends subscriptions, credit, and the leases that live as long as the connection",
        reply: "RESET",
        words: &[],
        options: &[],
        while_subscribed: true,
        run: connection::reset,
    },
    Spec {
        name: "CLIENT",
        sub: Some("ID"),
        group: Group::Connection,
        summary: "Tells the number of this connection",
        reply: "the number",
        words: &[],
        options: &[],
        while_subscribed: false,
        run: connection::client_id,
    },
    Spec {
        name: "CLIENT",
        sub: Some("SETNAME"),
        group: Group::Connection,
        summary: "Gives this connection a name",
        reply: "OK",
        words: &[Word::One("name")],
        options: &[],
        while_subscribed: false,
        run: connection::client_set_name,
    },
    Spec {
        name: "CLIENT",
        sub: Some("GETNAME"),
        group: Group::Connection,
        summary: "Tells the name of this connection",
        reply: "the name, or null",
        words: &[],
        options: &[],
        while_subscribed: false,
        run: connection::client_name,
    },
    Spec {
        name: "CLIENT",
        sub: Some("SETINFO"),
        group: Group::Connection,
        summary: "Notes which library the client uses",
        reply: "OK",
        words: &[Word::One("LIB-NAME|LIB-VER"), Word::One("value")],
        options: &[],
        while_subscribed: false,
        run: connection::client_set_info,
    },
    Spec {
        name: "CLIENT",
        sub: Some("LIST"),
        group: Group::Connection,
        summary: "Tells who is connected, a line each",
        reply: "text",
        words: &[],
        options: &[],
        while_subscribed: false,
        run: connection::client_list,
    },
    Spec {
        name: "CLIENT",
        sub: Some("KILL"),
        group: Group::Connection,
        summary: "Ends connections, by number or address",
        reply: "how many; OK for the old form with an address alone",
        words: &[Word::Some("ID number|ADDR address|address")],
        options: &[],
        while_subscribed: false,
        run: connection::client_kill,
    },
    Spec {
        name: "COMMAND",
        sub: None,
        group: Group::Connection,
        summary: "Describes every command",
        reply: "an array, as Redis has it",
        words: &[],
        options: &[],
        while_subscribed: false,
        run: connection::command,
    },
    Spec {
        name: "COMMAND",
        sub: Some("COUNT"),
        group: Group::Connection,
        summary: "Tells how many commands there are",
        reply: "the number",
        words: &[],
        options: &[],
        while_subscribed: false,
        run: connection::command_count,
    },
    Spec {
        name: "COMMAND",
        sub: Some("DOCS"),
        group: Group::Connection,
        summary: "Tells the documentation of commands, of all if none is named",
        reply: "a map by name",
        words: &[Word::Any("command")],
        options: &[],
        while_subscribed: false,
        run: connection::command_docs,
    },
    Spec {
        name: "COMMAND",
        sub: Some("GETKEYS"),
        group: Group::Connection,
        summary: "Tells the names in a request by which a cluster finds the node for it",
        reply: "an array of names",
        words: &[Word::One("command"), Word::Any("argument")],
        options: &[],
        while_subscribed: false,
        run: connection::command_keys,
    },
    Spec {
        name: "COMMAND",
        sub: Some("INFO"),
        group: Group::Connection,
        summary: "Describes commands, all if none is named",
        reply: "an array, as Redis has it",
        words: &[Word::Any("command")],
        options: &[],
        while_subscribed: false,
        run: connection::command_info,
    },
    Spec {
        name: "COMMAND",
        sub: Some("LIST"),
        group: Group::Connection,
        summary: "Tells the names of all commands",
        reply: "an array of names",
        words: &[],
        options: &[],
        while_subscribed: false,
        run: connection::command_list,
    },
    Spec {
        name: "INFO",
        sub: None,
        group: Group::Connection,
        summary: "Tells about the server, all of it or named sections",
        reply: "text with a line for each fact",
        words: &[Word::Any("section")],
        options: &[],
        while_subscribed: false,
        run: connection::info,
    },
    cluster::SLOTS,
    cluster::SHARDS,
    cluster::NODES,
    cluster::INFO,
    cluster::MYID,
    cluster::KEYSLOT,
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

/// Returns the place of a command that has no subcommands. For constants: there must be one.
pub(crate) const fn place_of(name: &str) -> usize {
    let mut place = 0;
    while TABLE[place].sub.is_some() || !is_same(TABLE[place].name, name) {
        place += 1;
    }
    place
}

/// Returns the place of a subcommand, as [`place_of`] does for a command.
pub(crate) const fn place_of_sub(name: &str, sub: &str) -> usize {
    let mut place = 0;
    loop {
        if let Some(known) = TABLE[place].sub
            && is_same(TABLE[place].name, name)
            && is_same(known, sub)
        {
            return place;
        }
        place += 1;
    }
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
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
