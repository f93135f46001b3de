//! A picture of a cluster in words and as JSON. Asks nothing.

use std::fmt::Display;

use pinpriq_cluster::NodeRecord;
use pinpriq_store::ledger::Status;

use super::picture::{Picture, named, state_word};
use crate::cluster::url::ClusterUrl;
use crate::columns::{heads, table};
use crate::json::Json;

/// The verdict, and a line for each node.
pub(super) fn status(url: &ClusterUrl, picture: &Picture, room: Status) -> String {
    let (engine, name) = (url.engine(), url.name());
    let (used, most) = (mebibytes(room.bytes_used), mebibytes(room.bytes_max));
    let verdict = verdict(picture);
    let mut text =
        format!("{verdict}\ncluster {name} on {engine}, {used} MiB of {most} MiB used\n");
    if !picture.view.nodes.is_empty() {
        let mut lines = vec![heads(&["node", "shards", "state", "version"])];
        lines.extend(picture.view.nodes.iter().map(|node| {
            vec![
                node.name.clone(),
                shard_count(picture, node).to_string(),
                state(picture, node).to_owned(),
                node.version.clone(),
            ]
        }));
        text += "\n";
        text += &table(&lines);
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
    let columns = ["node", "shards", "state", "version", "resp", "resp-cluster", "pinpriq", "link"];
    let mut lines = vec![heads(&columns)];
    lines.extend(picture.view.nodes.iter().map(|node| {
        let addresses = &node.addresses;
        let or_off = |address: &String| {
            if address.is_empty() { "off".to_owned() } else { address.clone() }
        };
        vec![
            node.name.clone(),
            shard_count(picture, node).to_string(),
            state(picture, node).to_owned(),
            node.version.clone(),
            or_off(&addresses.resp),
            or_off(&addresses.resp_cluster),
            or_off(&addresses.pinpriq),
            or_off(&addresses.link),
        ]
    }));
    table(&lines)
}

/// An object for each node.
pub(super) fn nodes_as_json(picture: &Picture) -> String {
    lines(picture.view.nodes.iter().map(|node| node_as_json(picture, node)))
}

fn node_as_json(picture: &Picture, node: &NodeRecord) -> Json {
    let addresses = &node.addresses;
    let or_null = |address: &String| {
        if address.is_empty() { Json::Null } else { Json::text(address) }
    };
    Json::Object(vec![
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
    ])
}

/// A line for each shard.
pub(super) fn shards(picture: &Picture) -> String {
    let columns = ["shard", "owner", "state", "term", "log term", "first", "last", "told"];
    let mut lines = vec![heads(&columns)];
    for (shard, own) in picture.view.owners.iter().enumerate() {
        let log = picture.logs.get(shard).copied().flatten();
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        lines.push(vec![
            shard.to_string(),
            or_dash(own.map(|own| picture.owner_name(&own))),
            own.map_or("no owner", |own| state_word(own.state)).to_owned(),
            or_dash(own.map(|own| own.term.to_string())),
            or_dash(log.map(|log| log.tenure.term.0.to_string())),
            or_dash(log.map(|log| log.first.0.to_string())),
            or_dash(log.map(|log| log.head.0.to_string())),
            or_dash(picture.target(shard).map(str::to_owned)),
        ]);
    }
    table(&lines)
}

/// An object for each shard.
pub(super) fn shards_as_json(picture: &Picture) -> String {
    let objects = picture.view.owners.iter().enumerate().map(|(shard, own)| {
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
    });
    lines(objects)
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
