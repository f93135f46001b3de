//! Records are read as they were written, and nothing else is a record.

use crate::{Addresses, Instance, Meta, NodeRecord, OwnRecord, OwnState, RolledBack, View};

use super::{
    in_order, meta_bytes, node_bytes, own_bytes, read_instance, read_meta, read_node, read_own,
    read_target, target_bytes,
};

fn meta() -> Meta {
    Meta { id: 0xabc, shards: 16, format: 3, generation: 2, ..Meta::default() }
}

const ROLLED_BACK: &str = concat!(
    r#","rolled_back":{"node":"a","shard":3,"generation":4,"expected":"entry 7","#,
    r#""found":"none"}}"#,
);

const META: &str = concat!(
    r#"{"v":1,"id":"00000000000000000000000000000abc","shards":16,"format":3,"#,
    r#""generation":2}"#,
);

fn node() -> NodeRecord {
    let addresses = Addresses {
        link: "a:1".to_owned(),
        resp: String::new(),
        resp_cluster: "[::1]:2".to_owned(),
        pinpriq: "\"\n\0".to_owned(),
    };
    NodeRecord {
        instance: Instance(7),
        name: "ñ🦔".to_owned(),
        data: u128::MAX,
        addresses,
        fingerprint: Some(std::array::from_fn(|at| u8::try_from(at * 8 + 1).unwrap_or(0))),
        version: "1.2".to_owned(),
        draining: true,
        suspended: true,
    }
}

const NODE: &str = concat!(
    r#"{"v":1,"name":"ñ🦔","data":"ffffffffffffffffffffffffffffffff","link":"a:1","resp":"","#,
    r#""resp_cluster":"[::1]:2","pinpriq":"\"\n\u0000","#,
    r#""fingerprint":"0109111921293139414951596169717981899199a1a9b1b9c1c9d1d9e1e9f1f9","#,
    r#""version":"1.2","draining":true,"suspended":true}"#,
);

fn own() -> OwnRecord {
    OwnRecord { instance: Instance(255), term: u64::MAX, state: OwnState::Serving }
}

const OWN: &str = concat!(
    r#"{"v":1,"instance":"000000000000000000000000000000ff","#,
    r#""term":18446744073709551615,"state":"serving"}"#,
);

#[test]
fn the_bytes_are_as_documented() {
    assert_eq!(String::from_utf8(meta_bytes(&meta())).as_deref(), Ok(META));
    assert_eq!(read_meta(META.as_bytes()), Some(meta()));
    assert_eq!(String::from_utf8(node_bytes(&node())).as_deref(), Ok(NODE));
    assert_eq!(read_node(Instance(7), NODE.as_bytes()), Some(node()));
    assert_eq!(String::from_utf8(own_bytes(&own())).as_deref(), Ok(OWN));
    let suspended = OWN.replace('}', r#","suspended":true}"#);
    let own_suspended = OwnRecord { state: OwnState::Suspended, ..own() };
    assert_eq!(String::from_utf8(own_bytes(&own_suspended)), Ok(suspended));
    let states = [OwnState::Loading, OwnState::Serving, OwnState::Suspended, OwnState::Releasing];
    for state in states {
        let own = OwnRecord { state, ..own() };
        assert_eq!(read_own(&own_bytes(&own)), Some(own));
    }
}

#[test]
fn roll_backs_imports_and_targets_are_as_documented() {
    let [node, expected, found] = ["a", "entry 7", "none"].map(str::to_owned);
    let rolled_back = Some(RolledBack { node, shard: Some(3), generation: 4, expected, found });
    let amended = Meta { rolled_back, ..meta() };
    let text = META.replace('}', ROLLED_BACK);
    assert_eq!(String::from_utf8(meta_bytes(&amended)), Ok(text.clone()));
    assert_eq!(read_meta(text.as_bytes()), Some(amended));
    let imported = Meta { importing: true, ..meta() };
    let text = META.replace('}', r#","importing":true}"#);
    assert_eq!(String::from_utf8(meta_bytes(&imported)), Ok(text.clone()));
    assert_eq!(read_meta(text.as_bytes()), Some(imported));
    let text = br#"{"v":1,"node":"n2"}"#;
    assert_eq!(target_bytes("n2"), text);
    assert_eq!(read_target(text).as_deref(), Some("n2"));
    assert_eq!(read_target(br#"{"v":2,"node":"n2"}"#), None);
}

#[test]
fn unknown_members_are_ignored() {
    let more = |text: &str| text.replace("\"v\":1", r#""target":{"deep":[1,null]},"v":1,"w":2"#);
    assert_eq!(read_meta(more(META).as_bytes()), Some(meta()));
    assert_eq!(read_node(Instance(7), more(NODE).as_bytes()), Some(node()));
    assert_eq!(read_own(more(OWN).as_bytes()), Some(own()));
    // Nodes that did not encrypt had a secret of their cluster.
    let before = META.replace('}', r#","secret":"00"}"#);
    assert_eq!(read_meta(before.as_bytes()), Some(meta()));
    let short = r#"{"v":1,"name":"a","data":"00000000000000000000000000000009"}"#;
    let expected = NodeRecord { name: "a".to_owned(), data: 9, ..NodeRecord::default() };
    assert_eq!(read_node(Instance(0), short.as_bytes()), Some(expected));
}

#[test]
fn a_fingerprint_that_cannot_be_read_is_none() {
    for (old, new) in [("f1f9", "f1"), ("f1f9", "f1f9f9"), ("01091119", "010911é"), ("e9", "E9")] {
        let read = read_node(Instance(7), NODE.replace(old, new).as_bytes()).unwrap();
        assert_eq!(read, NodeRecord { fingerprint: None, ..node() }, "{new}");
    }
}

#[test]
fn what_cannot_be_read_is_nothing() {
    let deep = "[".repeat(100_000);
    let mut texts = vec!["", "{}", "null", "[]", "{\"v\":1}", deep.as_str(), "\u{0}"];
    let broken: Vec<String> = [
        ("\"v\":1", "\"v\":2"),
        ("\"v\":1", "\"v\":-1"),
        ("\"v\":1", "\"v\":\"1\""),
        ("abc", "ABC"),
        ("abc", "äb"),
        ("\"00", "\"+0"),
        ("\"ff", "\"f"),
        ("\"name\":\"ñ🦔\",", ""),
        (":16", ":0"),
        (":16", ":65536"),
        ("5,\"state", "6,\"state"),
        ("serving", "Serving"),
        ("serving", "resting"),
    ]
    .iter()
    .flat_map(|(old, new)| [META, NODE, OWN].map(|text| (text, text.replace(old, new))))
    .filter(|(text, changed)| text != changed)
    .map(|(_, changed)| changed)
    .collect();
    assert!(broken.len() >= 20);
    texts.extend(broken.iter().map(String::as_str));
    for text in texts {
        let is_meta = read_meta(text.as_bytes()).is_some();
        let is_node = read_node(Instance(1), text.as_bytes()).is_some();
        let is_own = read_own(text.as_bytes()).is_some();
        assert!(!is_meta && !is_node && !is_own, "{text:.100}");
    }
    for cut in 0..OWN.len() {
        assert_eq!(read_own(&OWN.as_bytes()[..cut]), None, "{cut} bytes of it");
    }
    assert_eq!(read_own(b"{\"v\":1,\"instance\":\"\xff\"}"), None);
}

#[test]
fn an_instance_has_one_text() {
    for instance in [0, 1, u128::MAX].map(Instance) {
        assert_eq!(read_instance(&instance.to_string()), Some(instance));
    }
    for text in ["", "1", "0000000000000000000000000000000A", "+0000000000000000000000000000001"] {
        assert_eq!(read_instance(text), None, "{text}");
    }
}

#[test]
fn a_view_is_put_in_order() {
    let node = |instance| NodeRecord { instance, ..NodeRecord::default() };
    let two = Meta { shards: 2, ..meta() };
    let found = View {
        nodes: [9, 3, 5].map(Instance).map(node).to_vec(),
        drained: ["b", "a"].map(str::to_owned).to_vec(),
        targets: [(1, "b"), (0, "a"), (2, "c")].map(|(at, name)| (at, name.to_owned())).to_vec(),
        meta: Some(two.clone()),
        owners: Vec::new(),
    };
    let view = in_order(found, vec![(1, own()), (2, own())]);
    let instances: Vec<u128> = view.nodes.iter().map(|node| node.instance.0).collect();
    assert_eq!(instances, [3, 5, 9]);
    assert_eq!(view.owners, [None, Some(own())], "there are two shards");
    assert_eq!(view.drained, ["a", "b"]);
    assert_eq!(view.targets, [(0, "a".to_owned()), (1, "b".to_owned())]);
    assert_eq!(view.meta, Some(two));
}
