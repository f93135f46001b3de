//! How each command is carried out. A request that the vocabulary can read becomes a command of the
//! engine here. The others have a function, and those whose time counts.

use pinpriq_proto::request::fault::Fault;
use pinpriq_proto::request::reading::Read;
use pinpriq_proto::request::table::places::place as place_in_table;
use pinpriq_proto::request::table::{READS, TABLE};

use super::call::Call;
use super::reads::ask;
use super::{carrying, cluster, connection, tasks, transaction, users};

/// Carries out a request.
type Run = fn(&mut Call<'_, '_>) -> Result<(), Fault>;

/// How each command is carried out, in the order of the table of commands.
static RUNS: [How; TABLE.len()] = {
    let mut all = [How::ByHand(connection::ping); TABLE.len()];
    let mut place = 0;
    while place < all.len() {
        let mut at = 0;
        while at < BY_HAND.len() && place_in_table(BY_HAND[at].0, BY_HAND[at].1) != place {
            at += 1;
        }
        all[place] = match READS[place] {
            _ if at < BY_HAND.len() => How::ByHand(BY_HAND[at].2),
            Some(read) => How::Read(read),
            None => panic!("a command has no function, and no request on its declaration"),
        };
        place += 1;
    }
    all
};

/// How a command is carried out.
#[derive(Clone, Copy)]
enum How {
    /// By this function.
    ByHand(Run),
    /// The engine carries out what this makes of the request.
    Read(Read),
}

/// Carries out the request of the command at this place in the table.
#[inline]
pub(crate) fn run(place: usize, call: &mut Call<'_, '_>) -> Result<(), Fault> {
    match RUNS[place] {
        How::ByHand(run) => run(call),
        How::Read(read) => ask(call, read),
    }
}

/// The functions of commands, by their words.
const BY_HAND: &[(&str, Option<&str>, Run)] = &[
    ("PUT", None, tasks::put),
    ("TAKE", None, tasks::take),
    ("POP", None, tasks::pop),
    ("ACK", None, tasks::ack),
    ("SUBSCRIBE", None, tasks::subscribe),
    ("IMPORT", None, carrying::import),
    ("MULTI", None, transaction::multi),
    ("EXEC", None, transaction::exec),
    ("DISCARD", None, transaction::discard),
    ("WATCH", None, transaction::watch),
    ("UNWATCH", None, transaction::unwatch),
    ("PING", None, connection::ping),
    ("ECHO", None, connection::echo),
    ("HELLO", None, connection::hello),
    ("AUTH", None, users::auth),
    ("QUIT", None, connection::quit),
    ("RESET", None, connection::reset),
    ("ACL", Some("WHOAMI"), users::who_am_i),
    ("ACL", Some("USERS"), users::names),
    ("ACL", Some("LIST"), users::lines),
    ("ACL", Some("DRYRUN"), users::dry_run),
    ("CLIENT", Some("ID"), connection::client_id),
    ("CLIENT", Some("SETNAME"), connection::client_set_name),
    ("CLIENT", Some("GETNAME"), connection::client_name),
    ("CLIENT", Some("SETINFO"), connection::client_set_info),
    ("CLIENT", Some("CANCELS"), connection::client_cancels),
    ("CLIENT", Some("LIST"), connection::client_list),
    ("CLIENT", Some("KILL"), connection::client_kill),
    ("COMMAND", None, connection::command),
    ("COMMAND", Some("COUNT"), connection::command_count),
    ("COMMAND", Some("DOCS"), connection::command_docs),
    ("COMMAND", Some("GETKEYS"), connection::command_keys),
    ("COMMAND", Some("INFO"), connection::command_info),
    ("COMMAND", Some("LIST"), connection::command_list),
    ("INFO", None, connection::info),
    ("CLUSTER", Some("SLOTS"), cluster::slots),
    ("CLUSTER", Some("SHARDS"), cluster::shards),
    ("CLUSTER", Some("NODES"), cluster::nodes),
    ("CLUSTER", Some("INFO"), cluster::info),
    ("CLUSTER", Some("MYID"), cluster::my_id),
    ("CLUSTER", Some("KEYSLOT"), cluster::key_slot),
    ("CLUSTER", Some("ADMIN"), cluster::admin),
];
