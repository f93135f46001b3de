//! A picture of a cluster in words and as JSON. Asks nothing.

use std::fmt::Display;

use pinpriq_cluster::NodeRecord;
use pinpriq_store::ledger::Status;

use super::picture::{Picture, named, state_word};
use crate::cluster::url::ClusterUrl;
use crate::columns::table;
use crate::json::Json;

/// The verdict, and a line for each node.
pub(super) fn status(url: &ClusterUrl, picture: &Picture, room: Status) -> String {
    let (engine, name) = (url.engine(), url.name());
    let (used, most) = (mebibytes(room.bytes_used), mebibytes(room.bytes_max));
    let verdict = verdict(picture);
    let mut text =
        format!("{verdict}\ncluster {name} on {engine}, {used} MiB of {most} MiB used\n");
    if !picture.view.nodes.is_empty() {
        text += "\n";
        text += &node_table(picture, &NODE_COLUMNS[..4]);
    }
    text
}

/// Whether all shards are served, in one line.
fn verdict(picture: &Picture) -> String {
    let all = picture.view.owners.len();
    let nodes = match picture.view.nodes.len() {
        1 => "1 node".to_owned(),
        nodes => format!("{nodes} nodes"),
    };
    let unserved = picture.unserved().len();
    if picture.view.nodes.is_empty() {
        return format!("NOTHING is served: no node lives (shards: {all})");
    }
    if unserved == 0 {
        return format!("all shards are served: {all} by {nodes}");
    }
    let mut parts = vec![format!("{} of {all} shards are served, by {nodes}", all - unserved)];
    let (without_owner, changing) = (picture.without_owner(), picture.changing());
    if !without_owner.is_empty() {
        parts.push(format!("NO OWNER: {}", named(&without_owner)));
    }
    if !changing.is_empty() {
        parts.push(format!("changing: {}", named(&changing)));
    }
    parts.join("; ")
}

/// The same for programs.
pub(super) fn status_as_json(url: &ClusterUrl, picture: &Picture, room: Status) -> Json {
    let all = picture.view.owners.len();
    let numbers = |shards: Vec<usize>| Json::list(shards, |shard| Json::Number(shard as u64));
    Json::Object(vec![
        ("cluster", Json::text(url.name())),
        ("engine", Json::text(url.engine())),
        ("shards", Json::Number(all as u64)),
        ("served", Json::Number((all - picture.unserved().len()) as u64)),
        ("without_owner", numbers(picture.without_owner())),
        ("changing", numbers(picture.changing())),
        ("bytes_used", Json::Number(room.bytes_used)),
        ("bytes_max", Json::Number(room.bytes_max)),
        ("nodes", Json::list(&picture.view.nodes, |node| node_as_json(picture, node))),
    ])
}

/// A line for each node.
pub(super) fn nodes(picture: &Picture) -> String {
    node_table(picture, &NODE_COLUMNS)
}

/// The columns of nodes.
const NODE_COLUMNS: [Column; 8] = [
    ("node", "node", "off"),
    ("shards", "shards", "off"),
    ("state", "state", "off"),
    ("version", "version", "off"),
    ("resp", "resp", "off"),
    ("resp-cluster", "resp_cluster", "off"),
    ("pinpriq", "pinpriq", "off"),
    ("link", "link", "off"),
];

fn node_table(picture: &Picture, columns: &[Column]) -> String {
    let nodes = picture.view.nodes.iter().map(|node| {
        let mut members = members_of(picture, node);
        members.push(("state", Json::text(state(picture, node))));
        Json::Object(members)
    });
    table_of(columns, nodes)
}

/// A column of a table: its name, the member of the objects in it, and what stands for null.
type Column = (&'static str, &'static str, &'static str);

/// A table of objects.
fn table_of(columns: &[Column], objects: impl Iterator<Item = Json>) -> String {
    let mut lines = vec![columns.iter().map(|(head, ..)| (*head).to_owned()).collect()];
    lines.extend(objects.map(|object| {
        let cell = |(_, member, none): &Column| match object.member(member) {
            Some(Json::Text(text)) => text.clone(),
            None | Some(Json::Null) => (*none).to_owned(),
            Some(other) => other.to_string(),
        };
        columns.iter().map(cell).collect::<Vec<_>>()
    }));
    table(&lines)
}

/// An object for each node.
pub(super) fn nodes_as_json(picture: &Picture) -> String {
    lines(picture.view.nodes.iter().map(|node| node_as_json(picture, node)))
}

fn node_as_json(picture: &Picture, node: &NodeRecord) -> Json {
    Json::Object(members_of(picture, node))
}

fn members_of(picture: &Picture, node: &NodeRecord) -> Vec<(&'static str, Json)> {
    let addresses = &node.addresses;
    let or_null = |address: &String| {
        if address.is_empty() { Json::Null } else { Json::text(address) }
    };
    vec![
        ("node", Json::text(&node.name)),
        ("instance", Json::text(node.instance.to_string())),
        ("shards", Json::Number(shard_count(picture, node) as u64)),
        ("draining", Json::Bool(picture.drains(node))),
        ("suspended", Json::Bool(node.suspended)),
        ("version", Json::text(&node.version)),
        ("resp", or_null(&addresses.resp)),
        ("resp_cluster", or_null(&addresses.resp_cluster)),
        ("pinpriq", or_null(&addresses.pinpriq)),
        ("link", or_null(&addresses.link)),
    ]
}

/// A line for each shard.
pub(super) fn shards(picture: &Picture) -> String {
    let columns = [
        ("shard", "shard", "-"),
        ("owner", "owner", "-"),
        ("state", "state", "no owner"),
        ("term", "term", "-"),
        ("log term", "log_term", "-"),
        ("first", "first", "-"),
        ("last", "last", "-"),
        ("told", "target", "-"),
    ];
    table_of(&columns, shard_objects(picture))
}

/// An object for each shard.
pub(super) fn shards_as_json(picture: &Picture) -> String {
    lines(shard_objects(picture))
}

fn shard_objects(picture: &Picture) -> impl Iterator<Item = Json> {
    picture.view.owners.iter().enumerate().map(|(shard, own)| {
        let log = picture.logs.get(shard).copied().flatten();
        let number = |number: Option<u64>| number.map_or(Json::Null, Json::Number);
        let text = |text: Option<String>| text.map_or(Json::Null, Json::Text);
        Json::Object(vec![
            ("shard", Json::Number(shard as u64)),
            ("owner", text(own.map(|own| picture.owner_name(&own)))),
            ("instance", text(own.map(|own| own.instance.to_string()))),
            ("state", text(own.map(|own| state_word(own.state).to_owned()))),
            ("term", number(own.map(|own| own.term))),
            ("log_term", number(log.map(|log| log.tenure.term.0))),
            ("first", number(log.map(|log| log.first.0))),
            ("last", number(log.map(|log| log.head.0))),
            ("target", text(picture.target(shard).map(str::to_owned))),
        ])
    })
}

fn shard_count(picture: &Picture, node: &NodeRecord) -> usize {
    let owners = picture.view.owners.iter().flatten();
    owners.filter(|own| own.instance == node.instance).count()
}

fn state(picture: &Picture, node: &NodeRecord) -> &'static str {
    match (picture.drains(node), node.suspended) {
        (true, _) => "draining",
        (false, true) => "suspended",
        (false, false) => "serving",
    }
}

/// A line for each.
pub(super) fn lines(items: impl Iterator<Item = impl Display>) -> String {
    items.fold(String::new(), |text, item| text + &item.to_string() + "\n")
}

/// Mebibytes, with one digit behind the point.
fn mebibytes(bytes: u64) -> String {
    let tenths = bytes / (1 << 20) * 10 + bytes % (1 << 20) * 10 / (1 << 20);
    format!("{}.{}", tenths / 10, tenths % 10)
}
