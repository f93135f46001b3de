//! What is wrong with a cluster, in sentences. Asks nothing.

use std::collections::BTreeMap;

use pinpriq_cluster::remote::LogState;
use pinpriq_cluster::{OwnRecord, OwnState};
use pinpriq_store::ledger::Status;

use super::picture::{Picture, named, state_word};

/// From this percentage on, puts are refused.
const ROOM_PERCENT_MAX: u128 = 60;

/// What is wrong with a cluster that is not there as a whole.
pub(super) const IMPORTING: &str = "\
a data directory is being imported into the cluster, or that was interrupted: no node serves it \
until `pinpriq cluster import` is done, which can be run again";

/// Returns a sentence for each thing that is wrong.
pub(super) fn what_is_wrong(picture: &Picture, room: Status) -> Vec<String> {
    if picture.view.meta.as_ref().is_some_and(|meta| meta.importing) {
        return vec![IMPORTING.to_owned()];
    }
    let mut wrong = Vec::new();
    if let Some(loss) = picture.view.rolled_back() {
        let shard = loss.shard.map_or_else(String::new, |shard| format!(" in shard {shard}"));
        wrong.push(format!(
            "the engine was rolled back: the node {} has seen {}{shard}, and finds {}. Nothing is \
             served until `pinpriq cluster accept-rollback`",
            loss.node, loss.expected, loss.found
        ));
    }
    let without_owner = picture.without_owner();
    if picture.view.nodes.is_empty() {
        wrong.push("no node lives".to_owned());
    } else if !without_owner.is_empty() {
        wrong.push(format!("no node serves {}", named(&without_owner)));
    }
    for (shard, own) in picture.view.owners.iter().enumerate() {
        if let Some(own) = own {
            let log = picture.logs.get(shard).copied().flatten();
            wrong.extend(of_shard(picture, shard, *own, log));
        }
    }
    let names = picture.view.nodes.iter().map(|node| (node.name.clone(), node.name.clone()));
    wrong
        .extend(shared(names).map(|(name, of)| format!("{} nodes have the name {name}", of.len())));
    let links = picture.view.nodes.iter().map(|it| (it.addresses.link.clone(), it.name.clone()));
    wrong.extend(shared(links.filter(|(link, _)| !link.is_empty())).map(|(link, of)| {
        format!("the nodes {} announce the same address for links, {link}", of.join(" and "))
    }));
    wrong.extend(short_of_room(room));
    wrong
}

/// Returns what is wrong with the room that an engine has.
pub(super) fn short_of_room(room: Status) -> Option<String> {
    let Status { bytes_used, bytes_max } = room;
    let is_short = u128::from(bytes_used) * 100 >= u128::from(bytes_max) * ROOM_PERCENT_MAX;
    is_short.then(|| {
        format!(
            "the engine holds {bytes_used} of {bytes_max} bytes: from {ROOM_PERCENT_MAX} % on, \
             puts are refused"
        )
    })
}

/// Compares what the owner of a shard says with what its log has come to.
fn of_shard(
    picture: &Picture,
    shard: usize,
    own: OwnRecord,
    log: Option<LogState>,
) -> Option<String> {
    let name = picture.owner_name(&own);
    if picture.node(own.instance).is_none() {
        return Some(format!("shard {shard} has the owner {name}, which does not live"));
    }
    if own.state != OwnState::Serving {
        if own.state == OwnState::Suspended {
            let sentence = format!("shard {shard} is not served: its log does not answer {name}");
            return Some(sentence);
        }
        let state = state_word(own.state);
        return Some(format!("shard {shard} is not served: {name} is {state} it"));
    }
    let term = own.term;
    let Some(log) = log else {
        return Some(format!(
            "shard {shard} has no log, but {name} serves it with term {term}: was the engine \
             wiped?"
        ));
    };
    let log_term = log.tenure.term.0;
    if log_term > term {
        return Some(format!(
            "{name} says that it serves shard {shard} with term {term}, but somebody else has \
             seized its log with term {log_term}"
        ));
    }
    if log_term < term {
        return Some(format!(
            "{name} serves shard {shard} with term {term}, but its log has only come to term \
             {log_term}: was the engine rolled back?"
        ));
    }
    (log.first.0 > log.head.0.saturating_add(1)).then(|| {
        let (first, head) = (log.first.0, log.head.0);
        format!("the log of shard {shard} ends with entry {head}, but begins with {first}")
    })
}

/// Returns what is there more than once, with whom it belongs to.
fn shared(
    pairs: impl Iterator<Item = (String, String)>,
) -> impl Iterator<Item = (String, Vec<String>)> {
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (what, name) in pairs {
        owners.entry(what).or_default().push(name);
    }
    owners.into_iter().filter(|(_, names)| names.len() > 1)
}
