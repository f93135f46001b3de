//! What an address means, and what is refused without being repeated.

use super::{ClusterUrl, Password, Ssl, TlsFiles, TrustFiles, decoded};

/// What must never be in a message.
const SECRET: &str = "s3cr3t";

fn read(text: &str) -> ClusterUrl {
    text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn pair(one: &str, other: &str) -> (String, String) {
    (one.to_owned(), other.to_owned())
}

#[test]
fn addresses_of_both_engines_are_read() {
    let endpoints = vec!["a:2379".to_owned(), "b:1".to_owned()];
    let name = "tasks".to_owned();
    let expected = ClusterUrl::Etcd { endpoints, name, user: None, tls: None };
    assert_eq!(read("etcd://a:2379,b:1/tasks"), expected);
    let text = "postgres://u:p@a,b:7/db?connect_timeout=3&schema=q-1&sslmode=disable&options=%20";
    let expected = ClusterUrl::Postgres {
        address: "postgres://u:p@a,b:7/db?connect_timeout=3&options=%20".to_owned(),
        schema: "q-1".to_owned(),
        password_file: None,
        encryption: Ssl::Off,
    };
    assert_eq!(read(text), expected);
}

#[test]
fn an_etcd_may_be_encrypted_and_ask_for_a_user() {
    let text = "etcds://an%40na:p%2Fw@a:1/t?key=k.pem&cacert=%2Fca.pem&cert=c.pem";
    let ClusterUrl::Etcd { endpoints, user, tls, .. } = read(text) else { panic!() };
    assert_eq!(endpoints, ["a:1"]);
    assert!(user == Some(("an@na".to_owned(), Password::Given("p/w".to_owned()))));
    let trust = TrustFiles::Host(Some("/ca.pem".to_owned()));
    assert_eq!(tls, Some(TlsFiles { trust, identity: Some(pair("c.pem", "k.pem")) }));

    let ClusterUrl::Etcd { user, tls, .. } = read("etcds://anna@a:1/t?passwordfile=/p") else {
        panic!()
    };
    assert!(user == Some(("anna".to_owned(), Password::InFile("/p".to_owned()))));
    assert_eq!(tls, Some(TlsFiles { trust: TrustFiles::Host(None), identity: None }));
}

#[test]
fn the_modes_of_postgresql_mean_what_they_mean_to_libpq() {
    let encryption = |options: &str| match read(&format!("postgres://u@a/d?schema=s{options}")) {
        ClusterUrl::Postgres { encryption, .. } => encryption,
        ClusterUrl::Etcd { .. } => panic!("{options}"),
    };
    let files = |trust| TlsFiles { trust, identity: None };
    let file = || "ca.pem".to_owned();
    for (options, expected) in [
        ("", Ssl::IfOffered(files(TrustFiles::Anybody))),
        ("&sslmode=prefer", Ssl::IfOffered(files(TrustFiles::Anybody))),
        ("&sslmode=disable", Ssl::Off),
        ("&sslmode=require", Ssl::Required(files(TrustFiles::Anybody))),
        (
            "&sslmode=require&sslrootcert=ca.pem",
            Ssl::Required(files(TrustFiles::Authority(file()))),
        ),
        (
            "&sslmode=verify-ca&sslrootcert=ca.pem",
            Ssl::Required(files(TrustFiles::Authority(file()))),
        ),
        (
            "&sslmode=verify-full&sslrootcert=ca.pem",
            Ssl::Required(files(TrustFiles::Host(Some(file())))),
        ),
        ("&sslmode=verify-full&sslrootcert=system", Ssl::Required(files(TrustFiles::Host(None)))),
        ("&sslmode=verify-full", Ssl::Required(files(TrustFiles::Host(None)))),
    ] {
        assert_eq!(encryption(options), expected, "{options}");
    }
    let both = encryption("&sslmode=require&sslcert=c&sslkey=k");
    let trust = TrustFiles::Anybody;
    assert_eq!(both, Ssl::Required(TlsFiles { trust, identity: Some(pair("c", "k")) }));
}

#[test]
fn what_cannot_be_meant_is_refused_and_not_repeated() {
    for wrong in [
        "redis://a/b",
        "etcd://a:2379",
        "etcd://a:2379/",
        "etcd://a/tasks",
        "etcd://:1/tasks",
        "etcd://a:2379/a b",
        "etcd://a:2379/a/b",
        "etcd://a:2379/a?cacert=ca.pem",
        "etcd://a:2379/a?cert=c&key=k",
        "etcd://a:2379/a?nonsense=1",
        "etcds://a:2379/a?cert=c",
        "etcds://a:2379/a?key=k",
        "etcds://a:2379/a?passwordfile=p",
        "etcds://anna@a:2379/a",
        "etcds://anna:s3cr3t@a:2379/a?passwordfile=p",
        "etcds://anna:s3cr3t@a:2379/a?cacert=1&cacert=2",
        "etcds://anna:s3cr3t%@a:2379/a",
        "etcds://anna:s3cr3t/x@a:2379/a",
        "etcds://anna:s3cr3t?x@a:2379/a",
        "etcds://anna:s3cr3t",
        "etcds://a:1/s3cr3t@a:2379/a",
        "postgres://u@a/db",
        "postgres://u@a/db?schema=",
        "postgres://u@a/db?schema=a.b",
        "postgres://u:s3cr3t@a/db?schema=a.b",
        "postgres://u:s3cr3t@a/db",
        "postgres://u:x?s3cr3t@a/db?schema=a",
        "postgres://u:x?s3cr3t=1@a/db?schema=a",
        "postgres://u:s3cr3t@a/db?schema=a&passwordfile=p",
        "postgres://u@a/db?schema=a&sslmode=allow",
        "postgres://u@a/db?schema=a&sslmode=disable&sslrootcert=f",
        "postgres://u@a/db?schema=a&sslrootcert=f",
        "postgres://u@a/db?schema=a&sslmode=verify-ca",
        "postgres://u@a/db?schema=a&sslmode=require&sslrootcert=system",
        "postgres://u@a/db?schema=a&sslmode=require&sslcert=c",
        "mysql://u:s3cr3t@a/db",
    ] {
        let why = wrong.parse::<ClusterUrl>().err();
        let why = why.unwrap_or_else(|| panic!("{wrong} was read"));
        assert!(!why.contains(SECRET), "{wrong}: {why}");
    }
}

#[test]
fn what_is_read_does_not_show_a_password() {
    for text in [
        "etcds://anna:s3cr3t@a:1/t",
        "postgres://anna:s3cr3t@a/d?schema=s",
        "postgres://a/d?schema=s&user=anna&password=s3cr3t",
    ] {
        assert!(!format!("{:?}", read(text)).contains(SECRET));
    }
}

#[test]
fn odd_characters_are_written_with_percent_signs() {
    assert_eq!(decoded("a%20b%c3%A4"), Ok("a bä".to_owned()));
    for wrong in ["%", "%2", "%zz", "%ff"] {
        assert!(decoded(wrong).is_err(), "{wrong}");
    }
}
