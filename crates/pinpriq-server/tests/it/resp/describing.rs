//! What the server tells about itself and its commands, as programs read it.

use std::collections::BTreeSet;

use pinpriq_proto::wire::resp::Value;

use super::client::{Client, elements, field, show, with_clients};
use crate::world::in_memory;

fn text(value: &Value) -> String {
    String::from_utf8(value.as_bytes().expect("a text").to_vec()).unwrap()
}

/// The keys and values of a map, in either version.
fn pairs(value: &Value) -> Vec<(String, Value)> {
    match value {
        Value::Map(pairs) => pairs.iter().map(|(key, value)| (text(key), value.clone())).collect(),
        flat => {
            let flat = elements(flat).chunks_exact(2);
            flat.map(|pair| (text(&pair[0]), pair[1].clone())).collect()
        }
    }
}

/// Checks the description of one command, and of its subcommands.
fn check_doc(name: &str, doc: &Value) {
    assert!(!text(field(doc, "summary")).is_empty(), "{name}");
    assert_eq!(text(field(doc, "since")), "0.1.0", "{name}");
    let known = ["summary", "since", "group", "arguments", "subcommands"];
    for (key, value) in pairs(doc) {
        assert!(known.contains(&key.as_str()), "{name}: {key}");
        if key == "arguments" {
            for argument in elements(&value) {
                assert!(!text(field(argument, "name")).is_empty(), "{name}");
                let kind = text(field(argument, "type"));
                assert!(["string", "pure-token"].contains(&kind.as_str()), "{name}: {kind}");
            }
        } else if key == "subcommands" {
            for (sub, doc) in pairs(&value) {
                assert!(sub.starts_with(&format!("{name}|")), "{sub}");
                check_doc(&sub, &doc);
            }
        }
    }
}

async fn check_commands(client: &mut Client) {
    let list = client.ask("COMMAND LIST").await;
    let names: BTreeSet<String> = elements(&list).iter().map(text).collect();
    assert_eq!(names.len(), elements(&list).len(), "no name comes twice");
    assert_eq!(client.reply("COMMAND COUNT").await, names.len().to_string());
    for request in ["COMMAND", "COMMAND INFO"] {
        let infos = client.ask(request).await;
        let told: BTreeSet<String> =
            elements(&infos).iter().map(|info| text(&elements(info)[0])).collect();
        assert_eq!(told, names);
        for info in elements(&infos) {
            assert_eq!(elements(info).len(), 10, "{info:?}");
            assert!(matches!(elements(info)[1], Value::Integer(arity) if arity != 0));
        }
        for info in elements(&infos).iter().flat_map(|info| elements(&elements(info)[9])) {
            let name = text(&elements(info)[0]);
            assert!(name.split_once('|').is_some_and(|(name, _)| names.contains(name)), "{name}");
            assert!(matches!(elements(info)[1], Value::Integer(arity) if arity != 0));
        }
    }
    let docs = pairs(&client.ask("COMMAND DOCS").await);
    assert_eq!(docs.iter().map(|(name, _)| name.clone()).collect::<BTreeSet<_>>(), names);
    for (name, doc) in &docs {
        check_doc(name, doc);
        let one = pairs(&client.ask(&format!("COMMAND DOCS {name}")).await);
        assert_eq!(one, [(name.clone(), doc.clone())]);
    }
    let some = pairs(&client.ask("COMMAND DOCS PUT nosuch take").await);
    assert_eq!(some.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["put", "take"]);
    assert_eq!(client.reply("COMMAND INFO nosuch").await, "[null]");
    assert_eq!(client.reply("COMMAND INFO queue|nosuch").await, "[null]");
    let infos = client.ask("COMMAND INFO queue|show TAKE").await;
    let shown: Vec<String> = elements(&infos).iter().map(show).collect();
    let wanted =
        ["[queue|show -3 [] 2 2 1 [] [] [] []]", "[take -2 [movablekeys] 1 1 1 [] [] [] []]"];
    assert_eq!(shown, wanted);
    assert_eq!(client.reply("COMMAND GETKEYS TAKE QUEUES 2 a b TTR 5").await, "[a b]");
    assert_eq!(client.reply("COMMAND GETKEYS PING").await, "ERR");
}

#[test]
fn a_single_server_is_no_cluster() {
    with_clients(in_memory(), async |_, [client]| {
        let refusal = "ERR This instance has cluster support disabled";
        for request in
            ["SLOTS", "SHARDS", "NODES", "INFO", "MYID", "KEYSLOT q", "ADMIN TEXT status"]
        {
            let reply = client.ask(&format!("CLUSTER {request}")).await;
            assert_eq!(reply, Value::Error(refusal.to_owned()), "{request}");
        }
        assert_eq!(client.info("cluster_enabled").await, "0");
    });
}

#[test]
fn commands_are_described_in_both_versions() {
    with_clients(in_memory(), async |_, [client]| {
        check_commands(client).await;
        client.ask("HELLO 3").await;
        check_commands(client).await;
    });
}

#[test]
fn every_command_that_is_described_is_known_and_takes_what_its_arity_says() {
    with_clients(in_memory(), async |_, [client]| {
        let infos = client.ask("COMMAND").await;
        for info in elements(&infos) {
            let name = text(&elements(info)[0]);
            let Value::Integer(arity) = elements(info)[1] else { panic!("{info:?}") };
            for words in 1..=12 {
                let fits = if arity < 0 { words >= -arity } else { words == arity };
                let line = format!("{name}{}", " 1".repeat(usize::try_from(words - 1).unwrap()));
                if fits && name != "quit" && !line.starts_with("client") {
                    continue;
                }
                if name == "quit" && fits {
                    continue;
                }
                let reply = client.ask(&line).await;
                assert!(matches!(&reply, Value::Error(_)), "{line}: {reply:?}");
            }
        }
    });
}

#[test]
fn clients_are_listed_in_the_order_in_which_they_came() {
    with_clients(in_memory(), async |world, [first, second]| {
        first.ask("PING").await;
        second.ask("CLIENT SETNAME second").await;
        second.ask("CLIENT SETINFO LIB-NAME lib").await;
        let mut wire = crate::client::Client::connect(world.wire_address).await;
        wire.fence().await;
        let list = text(&first.ask("CLIENT LIST").await);
        let lines: Vec<&str> = list.lines().collect();
        assert_eq!(lines.len(), 3, "{list}");
        let starts = format!("id=1 addr={} name= age=0 door=resp blocked=0", first.name());
        assert!(lines[0].starts_with(&starts), "{list}");
        assert!(lines[1].contains(" name=second ") && lines[1].contains(" lib-name=lib "));
        assert!(lines[2].contains(" door=pinpriq "), "{list}");
        assert_eq!(show(&first.ask("CLIENT KILL ID 3").await), "1");
        assert_eq!(wire.rest().await, b"");
    });
}
