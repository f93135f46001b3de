//! The function that carries out each command.

use pinpriq_proto::request::fault::Fault;
use pinpriq_proto::request::table::TABLE;
use pinpriq_proto::request::table::places::place;

use super::call::Call;
use super::{
    carrying, cluster, connection, fanout, looking, push, queues, schedules, tasks, transaction,
    users,
};

/// Carries out a request.
pub(crate) type Run = fn(&mut Call<'_, '_>) -> Result<(), Fault>;

/// The functions, in the order of the table of commands.
pub(crate) static RUNS: [Run; TABLE.len()] = {
    let mut runs: [Option<Run>; TABLE.len()] = [None; TABLE.len()];
    let mut at = 0;
    while at < BY_HAND.len() {
        let (name, sub, run) = BY_HAND[at];
        runs[place(name, sub)] = Some(run);
        at += 1;
    }
    let mut all: [Run; TABLE.len()] = [connection::ping; TABLE.len()];
    let mut at = 0;
    while at < all.len() {
        match runs[at] {
            Some(run) => all[at] = run,
            None => panic!("a command has no function"),
        }
        at += 1;
    }
    all
};

/// The functions of commands, by their words.
const BY_HAND: &[(&str, Option<&str>, Run)] = &[
    ("PUT", None, tasks::put),
    ("TAKE", None, tasks::take),
    ("POP", None, tasks::pop),
    ("PEEK", None, tasks::peek),
    ("GET", None, tasks::get),
    ("ACK", None, tasks::ack),
    ("RELEASE", None, tasks::release),
    ("BURY", None, tasks::bury),
    ("FAIL", None, tasks::fail),
    ("TOUCH", None, tasks::touch),
    ("DIG", None, tasks::dig),
    ("PLOW", None, tasks::plow),
    ("KICK", None, tasks::kick),
    ("KILL", None, tasks::kill),
    ("SWITCH", None, tasks::switch),
    ("SNATCH", None, tasks::snatch),
    ("RESTART", None, tasks::restart),
    ("UPDATE", None, tasks::update),
    ("MOVE", None, tasks::move_tasks),
    ("REDRIVE", None, tasks::redrive),
    ("EXPLAIN", None, looking::explain),
    ("SCAN", None, looking::scan),
    ("LEASES", None, looking::leases),
    ("AWAIT", None, tasks::wait_for),
    ("SUBSCRIBE", None, push::subscribe),
    ("UNSUBSCRIBE", None, push::unsubscribe),
    ("CREDIT", None, push::credit),
    ("READY", None, push::ready),
    ("JOIN", None, fanout::join),
    ("BEAT", None, fanout::beat),
    ("LEAVE", None, fanout::leave),
    ("PUBLISH", None, fanout::publish),
    ("MEMBERS", None, fanout::members),
    ("QUEUE", Some("CREATE"), queues::create),
    ("QUEUE", Some("SET"), queues::set),
    ("QUEUE", Some("SHOW"), queues::show),
    ("QUEUE", Some("LIST"), queues::list),
    ("QUEUE", Some("TRUNCATE"), queues::truncate),
    ("QUEUE", Some("DROP"), queues::drop_queue),
    ("QUEUE", Some("PAUSE"), queues::pause),
    ("QUEUE", Some("RESUME"), queues::resume),
    ("STATS", None, queues::stats),
    ("EXPORT", None, carrying::export),
    ("IMPORT", None, carrying::import),
    ("SCHEDULE", Some("SET"), schedules::set),
    ("SCHEDULE", Some("SHOW"), schedules::show),
    ("SCHEDULE", Some("LIST"), schedules::list),
    ("SCHEDULE", Some("PAUSE"), schedules::pause),
    ("SCHEDULE", Some("RESUME"), schedules::resume),
    ("SCHEDULE", Some("DROP"), schedules::drop_schedule),
    ("SCHEDULE", Some("FIRE"), schedules::fire),
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
