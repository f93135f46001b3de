//! What of the options is refused. No cluster is needed.

use pinpriq_cluster::etcd::{Etcd, EtcdError, EtcdOptions};
use pinpriq_store::ledger::Writer;

fn with(name: &str, endpoints: &[&str]) -> Result<Etcd, EtcdError> {
    let endpoints = endpoints.iter().map(|&endpoint| endpoint.to_owned()).collect();
    Etcd::new(EtcdOptions::new(name, endpoints))
}

#[test]
fn a_name_with_odd_characters_is_refused() {
    let endpoint = ["http://127.0.0.1:2379"];
    for name in ["a", "Main-2_b", &"x".repeat(40)] {
        assert!(with(name, &endpoint).is_ok(), "{name}");
    }
    for name in ["", "a/b", "a b", "ä", "a.b", "a\n", "\0", &"x".repeat(41)] {
        let error = with(name, &endpoint).err().unwrap();
        assert_eq!(error, EtcdError::Name { name: name.to_owned() });
    }
}

#[test]
fn endpoints_that_cannot_be_used_are_refused() {
    assert_eq!(with("a", &[]).err(), Some(EtcdError::NoEndpoint));
    for good in ["http://etcd.example:2379", "http://[::1]:2379"] {
        assert!(with("a", &[good]).is_ok(), "{good}");
    }
    for bad in [
        "",
        "etcd:2379",
        "https://etcd:2379",
        "http://",
        "http://etcd",
        "http://etcd:2379/",
        "http://anna@etcd:2379",
        "http://etcd:port",
        "http://et cd:2379",
    ] {
        let error = with("a", &["http://etcd:2379", bad]).err();
        assert!(matches!(error, Some(EtcdError::Endpoint { .. })), "{bad}: {error:?}");
    }
}

#[test]
fn a_shard_has_four_digits() {
    let etcd = with("a", &["http://127.0.0.1:2379"]).unwrap();
    assert!(etcd.remote(9_999, Writer(1)).is_ok());
    let error = etcd.remote(10_000, Writer(1)).err();
    assert_eq!(error, Some(EtcdError::Shard { shard: 10_000 }));
}
