//! Encrypted connections and users: everything works with them, and who may not connect learns
//! why.

use std::time::{Duration, Instant};

use pinpriq_cluster::etcd::{EtcdOptions, EtcdUser};
use pinpriq_cluster::{Instance, RegistryAnswer, RegistryCall};
use pinpriq_store::ledger::{Answer, Call, Term, Writer};
use pinpriq_tls::{Roots, Tls, Trust};

use crate::authority::{Authority, Validity};
use crate::etcd::cluster::Client;
use crate::etcd::logs::Log;
use crate::etcd::registry::announced;
use crate::etcd::secure::{PASSWORD, Secure, pem};
use crate::remote::engines::{ask, pause, run_ledger_suite};

#[test]
fn it_passes_the_suite_for_ledgers_encrypted_and_signed_in() {
    let Some(secure) = Secure::start() else { return };
    let client = secure.signed_in("anna", PASSWORD);
    run_ledger_suite(|shard, writer| client.ledger(shard, writer));
}

/// For how long a session and a log are used, in which four tokens end.
const FOUR_TOKENS: Duration = Duration::from_millis(4_500);

#[test]
#[expect(clippy::disallowed_methods, reason = "tokens end by the clock of etcd")]
fn a_session_and_a_log_go_on_when_tokens_end() {
    let Some(secure) = Secure::start() else { return };
    let client = secure.signed_in("anna", PASSWORD);
    let mut node = announced(&client, Duration::from_secs(2), 1);
    let mut log = Log::seize(&client, 1, 1);
    let begun = Instant::now();
    while begun.elapsed() < FOUR_TOKENS {
        let view = node.view(RegistryCall::Renew);
        assert_eq!(view.nodes.first().map(|it| it.instance), Some(Instance(1)));
        log.fill(1);
        pause(Duration::from_millis(300));
    }
    assert_eq!(log.unknown, 0, "a token that has ended makes no append unknown");
    assert!(matches!(ask(&mut *log.ledger, Call::Status), Answer::Status(Ok(_))));
    client.runtime.block_on(client.etcd.compact()).unwrap();
    assert_eq!(node.ask(RegistryCall::End(Instance(1))), RegistryAnswer::Done);
    log.check(&client, 1);
}

#[test]
fn a_log_goes_on_when_rights_were_changed() {
    let Some(secure) = Secure::start() else { return };
    let client = secure.signed_in("anna", PASSWORD);
    let mut log = Log::seize(&client, 1, 1);
    log.fill(1);
    secure.change_rights();
    log.fill(3);
    log.check(&client, 1);
}

#[test]
fn a_certificate_with_the_name_of_a_user_signs_in() {
    let Some(secure) = Secure::start() else { return };
    let client = secure.client(secure.options("127.0.0.1", Some("anna")));
    let mut log = Log::seize(&client, 1, 1);
    log.fill(3);
    log.check(&client, 1);
}

/// Why a log cannot be seized.
fn refusal(client: &Client) -> String {
    match ask(&mut *client.ledger(1, Writer(1)), Call::Seize { at_least: Term(0) }) {
        Answer::Seized(Err(unreachable)) => unreachable.why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_may_not_connect_is_told_why() {
    let Some(secure) = Secure::start() else { return };
    let other = Authority::new("another authority");
    let trust = Trust::Host(Roots::Pem(pem("ca.pem", &other.certificate)));
    let by_other = EtcdOptions {
        tls: Some(Tls::new(&trust, None).unwrap()),
        ..secure.options("127.0.0.1", None)
    };
    let by = |host, own| secure.options(host, own);
    for (options, sentence) in [
        (by_other, "name the certificate of the right one with cacert"),
        (by("localhost", Some("anna")), "its certificate is not for the host localhost"),
        (by("127.0.0.1", None), "with cert and key"),
        (by("127.0.0.1", Some("stranger")), "the user has no right to these keys"),
    ] {
        let why = refusal(&secure.client(options));
        assert!(why.contains(sentence), "{why}");
    }
    for (name, password, sentence) in [
        ("anna", "wrong", "it does not know this user with this password"),
        ("nobody", PASSWORD, "it does not know this user with this password"),
        ("bert", PASSWORD, "the user has no right to these keys"),
    ] {
        let why = refusal(&secure.signed_in(name, password));
        assert!(why.contains(sentence) && !why.contains(password), "{why}");
    }
    for (validity, sentence) in
        [(Validity::Past, "has expired"), (Validity::Future, "is not valid yet")]
    {
        secure.change_certificate(validity);
        let why = refusal(&secure.signed_in("anna", PASSWORD));
        assert!(why.contains(sentence), "{why}");
    }
    secure.change_certificate(Validity::Now);
    Log::seize(&secure.signed_in("anna", PASSWORD), 1, 1).fill(1);
}

#[test]
fn a_password_is_not_shown() {
    let (name, password) = ("anna".to_owned(), PASSWORD.to_owned());
    let user = Some(EtcdUser { name, password });
    let endpoints = vec!["http://127.0.0.1:1".to_owned()];
    let options = EtcdOptions { user, ..EtcdOptions::new("test", endpoints) };
    let shown = format!("{options:?}");
    assert!(shown.contains("anna") && !shown.contains(PASSWORD), "{shown}");
}

#[test]
fn a_user_of_an_etcd_that_asks_for_none_is_welcome() {
    let Some(cluster) = crate::etcd::cluster::Cluster::start() else { return };
    let user = Some(EtcdUser { name: "anna".to_owned(), password: PASSWORD.to_owned() });
    let client = cluster.client(EtcdOptions { user, ..cluster.options() });
    let mut log = Log::seize(&client, 1, 1);
    log.fill(3);
    log.check(&client, 1);
}
