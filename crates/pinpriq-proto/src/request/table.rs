//! Every command, once. The parser, `COMMAND DOCS` and the documentation page read this table.

pub mod places;

use super::alphabet::letters;
use super::fault::Fault;
use super::parts::Parts;
use super::reading::{Read, Room, Row};
use super::spec::{Access, Group, Spec, Word};
use crate::command::Command;

/// The commands that the engine does not know.
const OF_DOORS: &[Spec] = &[
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
    Spec::new(
        "CLIENT",
        Group::Connection,
        "Has this connection told, or not, which of the tasks that it holds are cancelled",
        "OK",
    )
    .sub("CANCELS")
    .words(&[Word::One("ON|OFF")])
    .access(Access::Users)
    .while_subscribed(),
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

/// How many commands there are.
const COMMANDS: usize = Command::ROWS.len() + OF_DOORS.len();

/// Every command, and how its request is read: chapter by chapter, in each first those of the
/// engine in the order of their declarations.
const ROWS: [Row; COMMANDS] = {
    let mut rows = [Row::NONE; COMMANDS];
    let (mut chapter, mut end) = (0, 0);
    while chapter < 2 * Group::ALL.len() {
        let (group, is_last) = (Group::ALL[chapter / 2], chapter % 2 == 1);
        let mut at = 0;
        while at < COMMANDS {
            let engine = Command::ROWS.len();
            let row =
                if at < engine { Command::ROWS[at] } else { Row(OF_DOORS[at - engine], None) };
            if row.0.group as usize == group as usize && row.0.is_last == is_last {
                rows[end] = row;
                end += 1;
            }
            at += 1;
        }
        chapter += 1;
    }
    rows
};

/// The commands, each with its chapter, in the order of the documentation page.
pub static TABLE: &[Spec] = &{
    let mut specs = [Row::NONE.0; COMMANDS];
    let mut at = 0;
    while at < COMMANDS {
        specs[at] = ROWS[at].0;
        at += 1;
    }
    specs
};

/// How the request of each command is read, unless a door does that itself.
pub static READS: &[Option<Read>] = &{
    let mut reads = [None; COMMANDS];
    let mut at = 0;
    while at < COMMANDS {
        reads[at] = ROWS[at].1;
        at += 1;
    }
    reads
};

/// The names of the commands as numbers. Each comes with the end of its entries, which are
/// adjacent.
static NAMES: [(u64, usize); TABLE.len()] = {
    let mut names = [(0, 0); TABLE.len()];
    let mut end = names.len();
    let mut index = names.len();
    while index > 0 {
        index -= 1;
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

/// Reads a request, if it is one of a command of the engine.
pub fn read<'a>(words: &'a [&'a [u8]], room: &'a Room<'a>) -> Result<Option<Command<'a>>, Fault> {
    let Found::Spec(spec, place, taken) = find(words) else { return Ok(None) };
    let Some(read) = READS[place] else { return Ok(None) };
    let mut parts = Parts::of(spec);
    parts.sort_step(&words[taken..])?;
    read(room.parts.get_or_init(|| parts), room).map(Some)
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
