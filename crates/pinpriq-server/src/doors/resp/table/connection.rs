//! The entries for the commands on the connection itself, and those that describe the server.

use super::super::spec::{Access, Group, Spec, Word};
use super::super::{connection, users};

pub(super) const PING: Spec = Spec {
    name: "PING",
    sub: None,
    group: Group::Connection,
    summary: "Answers PONG, or the message",
    reply: "PONG or the message",
    words: &[Word::Maybe("message")],
    options: &[],
    access: Access::Everybody,
    while_subscribed: true,
    run: connection::ping,
};

pub(super) const ECHO: Spec = Spec {
    name: "ECHO",
    sub: None,
    group: Group::Connection,
    summary: "Answers the message",
    reply: "the message",
    words: &[Word::One("message")],
    options: &[],
    access: Access::Users,
    while_subscribed: false,
    run: connection::echo,
};

pub(super) const HELLO: Spec = Spec {
    name: "HELLO",
    sub: None,
    group: Group::Connection,
    summary: "Chooses the version of RESP",
    reply: "a map about the server",
    words: &[Word::Any("2|3 [AUTH user password] [SETNAME name]")],
    options: &[],
    access: Access::Everybody,
    while_subscribed: false,
    run: connection::hello,
};

pub(super) const AUTH: Spec = Spec {
    name: "AUTH",
    sub: None,
    group: Group::Connection,
    summary: "Signs in, by user and password or by a token",
    reply: "OK",
    words: &[Word::Some("[user] password|token")],
    options: &[],
    access: Access::Everybody,
    while_subscribed: false,
    run: users::auth,
};

pub(super) const QUIT: Spec = Spec {
    name: "QUIT",
    sub: None,
    group: Group::Connection,
    summary: "Ends the connection after the replies before it",
    reply: "OK",
    words: &[],
    options: &[],
    access: Access::Everybody,
    while_subscribed: true,
    run: connection::quit,
};

pub(super) const RESET: Spec = Spec {
    name: "RESET",
    sub: None,
    group: Group::Connection,
    summary: "Ends subscriptions, credit, and the leases that live as long as the connection",
    reply: "RESET",
    words: &[],
    options: &[],
    access: Access::Everybody,
    while_subscribed: true,
    run: connection::reset,
};

pub(super) const CLIENT_ID: Spec = Spec {
    name: "CLIENT",
    sub: Some("ID"),
    group: Group::Connection,
    summary: "Tells the number of this connection",
    reply: "the number",
    words: &[],
    options: &[],
    access: Access::Users,
    while_subscribed: false,
    run: connection::client_id,
};

pub(super) const CLIENT_SETNAME: Spec = Spec {
    name: "CLIENT",
    sub: Some("SETNAME"),
    group: Group::Connection,
    summary: "Gives this connection a name",
    reply: "OK",
    words: &[Word::One("name")],
    options: &[],
    access: Access::Users,
    while_subscribed: false,
    run: connection::client_set_name,
};

pub(super) const CLIENT_GETNAME: Spec = Spec {
    name: "CLIENT",
    sub: Some("GETNAME"),
    group: Group::Connection,
    summary: "Tells the name of this connection",
    reply: "the name, or null",
    words: &[],
    options: &[],
    access: Access::Users,
    while_subscribed: false,
    run: connection::client_name,
};

pub(super) const CLIENT_SETINFO: Spec = Spec {
    name: "CLIENT",
    sub: Some("SETINFO"),
    group: Group::Connection,
    summary: "Notes which library the client uses",
    reply: "OK",
    words: &[Word::One("LIB-NAME|LIB-VER"), Word::One("value")],
    options: &[],
    access: Access::Users,
    while_subscribed: false,
    run: connection::client_set_info,
};

pub(super) const CLIENT_LIST: Spec = Spec {
    name: "CLIENT",
    sub: Some("LIST"),
    group: Group::Connection,
    summary: "Tells who is connected, a line each",
    reply: "text",
    words: &[],
    options: &[],
    access: Access::Admins,
    while_subscribed: false,
    run: connection::client_list,
};

pub(super) const CLIENT_KILL: Spec = Spec {
    name: "CLIENT",
    sub: Some("KILL"),
    group: Group::Connection,
    summary: "Ends connections, by number or address",
    reply: "how many; OK for the old form with an address alone",
    words: &[Word::Some("ID number|ADDR address|address")],
    options: &[],
    access: Access::Users,
    while_subscribed: false,
    run: connection::client_kill,
};

pub(super) const COMMAND: Spec = Spec {
    name: "COMMAND",
    sub: None,
    group: Group::Connection,
    summary: "Describes every command",
    reply: "an array, as Redis has it",
    words: &[],
    options: &[],
    access: Access::Users,
    while_subscribed: false,
    run: connection::command,
};

pub(super) const COMMAND_COUNT: Spec = Spec {
    name: "COMMAND",
    sub: Some("COUNT"),
    group: Group::Connection,
    summary: "Tells how many commands there are",
    reply: "the number",
    words: &[],
    options: &[],
    access: Access::Users,
    while_subscribed: false,
    run: connection::command_count,
};

pub(super) const COMMAND_DOCS: Spec = Spec {
    name: "COMMAND",
    sub: Some("DOCS"),
    group: Group::Connection,
    summary: "Tells the documentation of commands, of all if none is named",
    reply: "a map by name",
    words: &[Word::Any("command")],
    options: &[],
    access: Access::Users,
    while_subscribed: false,
    run: connection::command_docs,
};

pub(super) const COMMAND_GETKEYS: Spec = Spec {
    name: "COMMAND",
    sub: Some("GETKEYS"),
    group: Group::Connection,
    summary: "Tells the names in a request by which a cluster finds the node for it",
    reply: "an array of names",
    words: &[Word::One("command"), Word::Any("argument")],
    options: &[],
    access: Access::Users,
    while_subscribed: false,
    run: connection::command_keys,
};

pub(super) const COMMAND_INFO: Spec = Spec {
    name: "COMMAND",
    sub: Some("INFO"),
    group: Group::Connection,
    summary: "Describes commands, all if none is named",
    reply: "an array, as Redis has it",
    words: &[Word::Any("command")],
    options: &[],
    access: Access::Users,
    while_subscribed: false,
    run: connection::command_info,
};

pub(super) const COMMAND_LIST: Spec = Spec {
    name: "COMMAND",
    sub: Some("LIST"),
    group: Group::Connection,
    summary: "Tells the names of all commands",
    reply: "an array of names",
    words: &[],
    options: &[],
    access: Access::Users,
    while_subscribed: false,
    run: connection::command_list,
};

pub(super) const INFO: Spec = Spec {
    name: "INFO",
    sub: None,
    group: Group::Connection,
    summary: "Tells about the server, all of it or named sections",
    reply: "text with a line for each fact",
    words: &[Word::Any("section")],
    options: &[],
    access: Access::Users,
    while_subscribed: false,
    run: connection::info,
};

pub(super) const ACL_WHOAMI: Spec = Spec {
    name: "ACL",
    sub: Some("WHOAMI"),
    group: Group::Connection,
    summary: "Tells the user of this connection",
    reply: "the name, or null for nobody; `default` where there are no users",
    words: &[],
    options: &[],
    access: Access::Everybody,
    while_subscribed: false,
    run: users::who_am_i,
};

pub(super) const ACL_USERS: Spec = Spec {
    name: "ACL",
    sub: Some("USERS"),
    group: Group::Connection,
    summary: "Tells the names of all users",
    reply: "an array of names",
    words: &[],
    options: &[],
    access: Access::Admins,
    while_subscribed: false,
    run: users::names,
};

pub(super) const ACL_LIST: Spec = Spec {
    name: "ACL",
    sub: Some("LIST"),
    group: Group::Connection,
    summary: "Tells all users with their rules",
    reply: "an array with a line for each user",
    words: &[],
    options: &[],
    access: Access::Admins,
    while_subscribed: false,
    run: users::lines,
};

pub(super) const ACL_DRYRUN: Spec = Spec {
    name: "ACL",
    sub: Some("DRYRUN"),
    group: Group::Connection,
    summary: "Tells whether a user may carry out a command, which is not carried out",
    reply: "OK, or what the user lacks",
    words: &[Word::One("user"), Word::One("command"), Word::Any("argument")],
    options: &[],
    access: Access::Admins,
    while_subscribed: false,
    run: users::dry_run,
};
