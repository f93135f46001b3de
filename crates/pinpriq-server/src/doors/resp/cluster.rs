//! What cluster clients ask about the cluster.
//!
//! The replies are those of Redis Cluster. Its slots are ours. A node counts as a master with the
//! slots for which clients ask it, and has no replicas: the engine under the cluster has copies
//! of everything.

use std::fmt::Write as _;

use pinpriq_cluster::slots::{SLOTS as ALL_SLOTS, slot_of};
use pinpriq_proto::wire::resp::Writer;

use super::call::Call;
use crate::access::audit::What;
use crate::letters::owners::{Administered, Listening, Map, Owners, Seen, id_of};
use pinpriq_proto::request::fault::{Fault, shown};

type Done = Result<(), Fault>;

pub(super) fn admin(call: &mut Call<'_, '_>) -> Done {
    owners(call)?;
    let words = call.parts.words.iter().map(|word| String::from_utf8_lossy(word).into_owned());
    match call.desk.administer(words.collect()) {
        Ok(Administered { code, text, failure }) => {
            call.desk.tell_audit(What::Command, None, |event| {
                event.command = Some("CLUSTER ADMIN".to_owned());
                let words = call.parts.words[1..].iter().map(|word| shown(word));
                event.detail = Some(words.collect::<Vec<_>>().join(" "));
            });
            call.answer(|writer| {
                writer.array(3);
                writer.integer(code.into());
                writer.bulk(text.as_bytes());
                match failure {
                    Some(why) => writer.bulk(why.as_bytes()),
                    None => writer.null(),
                }
            });
            Ok(())
        }
        Err(undone) => call.talk.note_undone(undone),
    }
}

pub(super) fn slots(call: &mut Call<'_, '_>) -> Done {
    let map = owners(call)?.map();
    call.answer(|writer| put_slots(writer, &map));
    Ok(())
}

pub(super) fn shards(call: &mut Call<'_, '_>) -> Done {
    let map = owners(call)?.map();
    call.answer(|writer| put_shards(writer, &map));
    Ok(())
}

pub(super) fn nodes(call: &mut Call<'_, '_>) -> Done {
    let text = node_lines(&owners(call)?.map());
    call.answer(|writer| writer.verbatim(&text));
    Ok(())
}

pub(super) fn info(call: &mut Call<'_, '_>) -> Done {
    let text = info_lines(&owners(call)?.map());
    call.answer(|writer| writer.verbatim(&text));
    Ok(())
}

pub(super) fn my_id(call: &mut Call<'_, '_>) -> Done {
    let id = id_of(owners(call)?.own().unwrap_or_default());
    call.answer(|writer| writer.bulk(id.as_bytes()));
    Ok(())
}

pub(super) fn key_slot(call: &mut Call<'_, '_>) -> Done {
    owners(call)?;
    let slot = slot_of(call.parts.word(0));
    call.answer(|writer| writer.integer(slot.into()));
    Ok(())
}

fn owners<'c>(call: &'c Call<'_, '_>) -> Result<&'c Owners, Fault> {
    let disabled = || Fault::err("This instance has cluster support disabled");
    call.desk.owners().ok_or_else(disabled)
}

fn put_slots(writer: &mut Writer<'_>, map: &Map) {
    let told = || map.runs.iter().filter_map(|run| Some((run, listening(map, run.node)?)));
    writer.array(told().count());
    for (run, (node, at)) in told() {
        writer.array(3);
        writer.integer(run.first.into());
        writer.integer(run.last.into());
        writer.array(4);
        writer.bulk(at.host.as_bytes());
        writer.integer(at.port.into());
        writer.bulk(node.id().as_bytes());
        writer.array(0);
    }
}

fn put_shards(writer: &mut Writer<'_>, map: &Map) {
    let told = || (0..map.nodes.len()).filter_map(|at| Some((at, listening(map, at)?)));
    writer.array(told().count());
    for (place, (node, at)) in told() {
        writer.map(2);
        writer.bulk(b"slots");
        writer.array(2 * map.runs_of(place).count());
        for run in map.runs_of(place) {
            writer.integer(run.first.into());
            writer.integer(run.last.into());
        }
        writer.bulk(b"nodes");
        writer.array(1);
        writer.map(7);
        for (name, value) in [
            ("id", node.id().as_str()),
            ("ip", &at.host),
            ("endpoint", &at.host),
            ("role", "master"),
            ("health", "online"),
        ] {
            writer.bulk(name.as_bytes());
            writer.bulk(value.as_bytes());
        }
        for (name, value) in [("port", i64::from(at.port)), ("replication-offset", 0)] {
            writer.bulk(name.as_bytes());
            writer.integer(value);
        }
    }
}

/// Returns a line for each node that listens for cluster clients, and one for this node in any
/// case.
fn node_lines(map: &Map) -> String {
    let mut lines = String::new();
    for (place, node) in map.nodes.iter().enumerate() {
        let address = match &node.clients {
            Some(at) => at.to_string(),
            None if node.is_own => ":0".to_owned(),
            None => continue,
        };
        let (id, link) = (node.id(), node.link_port);
        let myself = if node.is_own { "myself," } else { "" };
        let noaddr = if node.clients.is_none() { ",noaddr" } else { "" };
        let _ = write!(lines, "{id} {address}@{link} {myself}master{noaddr} - 0 0 0 connected");
        for run in map.runs_of(place) {
            let _ = match run.last - run.first {
                0 => write!(lines, " {}", run.first),
                _ => write!(lines, " {}-{}", run.first, run.last),
            };
        }
        lines.push('\n');
    }
    lines
}

fn info_lines(map: &Map) -> String {
    let is_ok = map.slots_owned == ALL_SLOTS;
    let of_size = (0..map.nodes.len()).filter(|at| map.runs_of(*at).next().is_some());
    let mut lines = format!("cluster_state:{}\r\n", if is_ok { "ok" } else { "fail" });
    for (name, number) in [
        ("slots_assigned", usize::from(map.slots_owned)),
        ("slots_ok", usize::from(map.slots_owned)),
        ("slots_pfail", 0),
        ("slots_fail", usize::from(ALL_SLOTS - map.slots_owned)),
        ("known_nodes", map.nodes.len()),
        ("size", of_size.count()),
        ("current_epoch", 0),
        ("my_epoch", 0),
    ] {
        let _ = write!(lines, "cluster_{name}:{number}\r\n");
    }
    lines
}

/// Returns a node and where it listens, if it does.
fn listening(map: &Map, place: usize) -> Option<(&Seen, &Listening)> {
    let node = map.nodes.get(place)?;
    Some((node, node.clients.as_ref()?))
}

#[cfg(test)]
mod tests {
    use pinpriq_cluster::{Addresses, Instance, NodeRecord};
    use pinpriq_proto::wire::resp::Protocol;

    use super::super::call::written;
    use super::*;
    use crate::letters::owners::Owner;

    fn node(instance: u128, resp_cluster: &str) -> NodeRecord {
        let (link, resp_cluster) = (format!("h:{instance}0"), resp_cluster.to_owned());
        let addresses = Addresses { link, resp_cluster, ..Addresses::default() };
        NodeRecord { instance: Instance(instance), addresses, ..NodeRecord::default() }
    }

    /// Three nodes, of which the third one does not listen. This is the second.
    fn map() -> Map {
        let owners = Owners::new(4);
        let own = node(2, "[::1]:22");
        owners.note_nodes(&own, &[node(1, "a:11"), own.clone(), node(3, "")]);
        for (shard, owner) in
            [Owner::Node(1), Owner::Here, Owner::Node(1), Owner::Node(3)].into_iter().enumerate()
        {
            owners.note_owner(shard, owner);
        }
        owners.map()
    }

    fn shown(protocol: Protocol, write: impl FnOnce(&mut Writer<'_>)) -> String {
        let bytes = written(protocol, write);
        String::from_utf8_lossy(&bytes).replace("\r\n", " ")
    }

    const FIRST: &str = "$40 0000000000000000000000000000000000000001";
    const SECOND: &str = "$40 0000000000000000000000000000000000000002";

    #[test]
    fn slots_are_told_with_the_node_to_ask() {
        let told = shown(Protocol::Resp2, |writer| put_slots(writer, &map()));
        let of = |first: u16, last: u16, node: &str| format!("*3 :{first} :{last} *4 {node} *0 ");
        let (first, second) = (format!("$1 a :11 {FIRST}"), format!("$3 ::1 :22 {SECOND}"));
        let wanted = [
            "*4 ".to_owned(),
            of(0, 4_095, &first),
            of(4_096, 8_191, &second),
            of(8_192, 12_287, &first),
            of(12_288, 16_383, &second),
        ];
        assert_eq!(told, wanted.concat());
    }

    #[test]
    fn slots_are_told_node_by_node() {
        let told = shown(Protocol::Resp3, |writer| put_shards(writer, &map()));
        let of = |slots: &str, id: &str, host: &str, port: u16| {
            format!(
                "%2 $5 slots {slots} $5 nodes *1 %7 $2 id {id} $2 ip {host} $8 endpoint {host} \
                 $4 role $6 master $6 health $6 online $4 port :{port} $18 replication-offset :0 "
            )
        };
        let first = of("*4 :0 :4095 :8192 :12287", FIRST, "$1 a", 11);
        let second = of("*4 :4096 :8191 :12288 :16383", SECOND, "$3 ::1", 22);
        assert_eq!(told, format!("*2 {first}{second}"));
    }

    #[test]
    fn nodes_are_told_as_text() {
        let (first, second) = (&FIRST[4..], &SECOND[4..]);
        let wanted = format!(
            "{first} a:11@10 master - 0 0 0 connected 0-4095 8192-12287\n\
             {second} ::1:22@20 myself,master - 0 0 0 connected 4096-8191 12288-16383\n"
        );
        assert_eq!(node_lines(&map()), wanted);

        let owners = Owners::new(16_384);
        owners.note_nodes(&node(2, ""), &[node(1, "a:11")]);
        owners.note_owner(5, Owner::Node(1));
        let text = node_lines(&owners.map());
        let own = format!("\n{second} :0@20 myself,master,noaddr - 0 0 0 connected\n");
        assert!(text.ends_with(&own), "{text}");
    }

    #[test]
    fn the_state_is_ok_once_every_shard_has_an_owner() {
        assert_eq!(
            info_lines(&map()).replace("\r\n", " "),
            "cluster_state:ok cluster_slots_assigned:16384 cluster_slots_ok:16384 \
             cluster_slots_pfail:0 cluster_slots_fail:0 cluster_known_nodes:3 cluster_size:2 \
             cluster_current_epoch:0 cluster_my_epoch:0 "
        );
        let owners = Owners::new(2);
        owners.note_nodes(&node(2, "b:2"), &[]);
        owners.note_owner(0, Owner::Here);
        let text = info_lines(&owners.map());
        assert!(
            text.starts_with("cluster_state:fail\r\ncluster_slots_assigned:8192\r\n"),
            "{text}"
        );
        assert!(text.contains("cluster_slots_fail:8192\r\n"), "{text}");
    }
}
