//! The registry: the suite for every registry, a server in trouble, and odd rows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pinpriq_cluster::postgres::{Clock, Postgres, PostgresRegistry};
use pinpriq_cluster::remote::RegistryClient;
use pinpriq_cluster::{Instance, Meta, OwnState, Registry as _, RegistryAnswer, RegistryCall};
use tokio::runtime::Handle;

use crate::postgres::engine::Engine;
use crate::postgres::trouble::{
    CANCEL, END_SESSIONS, STUCK, WAITING, end_isolation, isolate, look,
};
use crate::remote::engines::{Node, pause, run_registry_suite};

/// The time to live of a session, except in the suite.
const TTL: Duration = Duration::from_secs(2);

#[expect(clippy::disallowed_methods, reason = "a registry's maker has a clock")]
fn registry(runtime: &Handle, postgres: &Postgres, ttl: Duration) -> RegistryClient {
    let begun = Instant::now();
    let clock: Clock = Arc::new(move || begun.elapsed());
    RegistryClient::new(PostgresRegistry::new(postgres, ttl, clock), runtime, Arc::new(|| ()))
}

/// A node that has announced itself.
fn announced(engine: &Engine, postgres: &Postgres, instance: u128) -> Node {
    Node::announced(registry(&engine.runtime, postgres, TTL), instance)
}

#[test]
fn it_passes_the_suite_for_registries() {
    let Some(engine) = Engine::start(&[]) else { return };
    run_registry_suite(|schema| {
        let (postgres, _) = engine.connect(engine.options(&schema)).unwrap();
        let runtime = engine.runtime.clone();
        move |ttl| registry(&runtime, &postgres, ttl)
    });
}

fn is_unreachable(answer: &RegistryAnswer) -> bool {
    matches!(answer, RegistryAnswer::Unreachable(_))
}

#[test]
fn sessions_outlive_a_server_that_was_away_for_long() {
    let Some((mut engine, postgres)) = Engine::connected() else { return };
    let mut nodes: Vec<Node> =
        (1..=3).map(|instance| announced(&engine, &postgres, instance)).collect();
    assert_eq!(nodes[0].change(None, Some(OwnState::Serving)), RegistryAnswer::Done);
    for _ in 0..2 {
        for node in &mut nodes {
            node.renew_patiently();
        }
        // The last one knows the last beats of the others.
        nodes[2].view(RegistryCall::Look);
        engine.kill();
        pause(TTL + TTL / 4);
        let answer = nodes[0].ask(RegistryCall::Renew);
        assert!(is_unreachable(&answer), "no server is there: {answer:?}");
        engine.restart();
        for _ in 0..3 {
            for node in nodes.iter_mut().rev() {
                let view = node.renew_patiently();
                assert_eq!(view.nodes.len(), 3, "no node could renew meanwhile");
                assert_eq!(view.owners[3].map(|own| own.instance), Some(Instance(1)));
            }
        }
    }
}

#[test]
fn connections_that_were_ended_are_replaced_within_a_call() {
    let Some((engine, postgres)) = Engine::connected() else { return };
    let mut node = announced(&engine, &postgres, 1);
    let client = engine.client();
    let states = [None, Some(OwnState::Loading), Some(OwnState::Serving), None];
    for step in states.windows(2).cycle().take(12) {
        engine.sql(&client, END_SESSIONS);
        assert_eq!(node.change(step[0], step[1]), RegistryAnswer::Done, "{step:?}");
        engine.sql(&client, END_SESSIONS);
        node.view(RegistryCall::Renew);
        engine.sql(&client, END_SESSIONS);
        assert_eq!(node.announce(), RegistryAnswer::Done);
    }
}

#[test]
fn what_waits_for_a_standby_is_not_done() {
    let Some((engine, postgres)) = Engine::connected() else { return };
    let mut node = announced(&engine, &postgres, 1);
    let client = engine.client();
    let loading = Some(OwnState::Loading);
    isolate(&engine, &client);
    let calls = [
        RegistryCall::Renew,
        node.changing(None, loading),
        RegistryCall::Found(Meta { id: 9, shards: 1, format: 1, ..Meta::default() }),
        RegistryCall::Drain { name: "n".to_owned(), drains: true },
    ];
    for call in calls {
        node.registry.start(call.clone());
        look(&engine, &client, WAITING, "1");
        engine.sql(&client, CANCEL);
        let answer = node.answer();
        assert!(is_unreachable(&answer), "a cancelled wait of {call:?}: {answer:?}");
        engine.sql(&client, CANCEL);
        look(&engine, &client, WAITING, "0");
    }
    let there = "SELECT count(*) FROM s.own";
    assert_eq!(engine.sql(&client, there).as_deref(), Some("1"), "readers see it");
    end_isolation(&engine, &client);
    assert_eq!(node.announce(), RegistryAnswer::Done);
    assert_eq!(node.change(loading, Some(OwnState::Serving)), RegistryAnswer::Done);
    node.view(RegistryCall::Renew);
}

#[test]
fn a_claim_whose_wait_was_cancelled_is_done_by_another_commit() {
    let Some((engine, postgres)) = Engine::connected() else { return };
    let mut node = announced(&engine, &postgres, 1);
    let client = engine.client();
    let (loading, serving) = (Some(OwnState::Loading), Some(OwnState::Serving));
    for (from, to) in [(None, loading), (loading, serving), (serving, None)] {
        isolate(&engine, &client);
        node.registry.start(node.changing(from, to));
        look(&engine, &client, WAITING, "1");
        end_isolation(&engine, &client);
        engine.sql(&client, CANCEL);
        assert_eq!(node.answer(), RegistryAnswer::Done, "{from:?} {to:?}");
        let view = node.view(RegistryCall::Renew);
        assert_eq!(view.owners[3].map(|own| own.state), to);
    }
}

#[test]
fn calls_end_in_time_when_nothing_is_answered() {
    let Some((engine, postgres)) = Engine::connected() else { return };
    let mut node = announced(&engine, &postgres, 1);
    let mut client = engine.client();
    let held = engine.runtime.block_on(client.transaction()).unwrap();
    let lock = held.simple_query("LOCK TABLE s.session, s.own IN ACCESS EXCLUSIVE MODE");
    engine.runtime.block_on(lock).unwrap();
    for (call, limit) in [
        (RegistryCall::Renew, TTL / 5),
        (RegistryCall::Look, TTL),
        (node.changing(None, Some(OwnState::Loading)), TTL),
        (RegistryCall::End(Instance(5)), TTL),
    ] {
        let took = timed(|| {
            let answer = node.ask(call.clone());
            assert!(is_unreachable(&answer), "{call:?}: {answer:?}");
        });
        assert!(took < limit + Duration::from_millis(500), "{call:?} took {took:?}");
    }
    engine.runtime.block_on(held.rollback()).unwrap();
    node.renew_patiently();
}

#[expect(clippy::disallowed_methods, reason = "how long a call takes is what is tested")]
fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

#[test]
fn a_host_that_is_silent_does_not_end_a_session() {
    let Some(engine) = Engine::start(&[]) else { return };
    // It accepts connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().port();
    let mut options = engine.options("s");
    let rest = options.address.replace("host=127.0.0.1 port=", "");
    let (port, rest) = rest.split_once(' ').unwrap();
    options.address = format!("host=127.0.0.1,127.0.0.1 port={silent},{port} {rest}");
    let (postgres, _) = engine.connect(options).unwrap();
    let mut node = announced(&engine, &postgres, 1);
    let client = engine.client();
    for _ in 0..5 {
        node.renew_patiently();
        engine.sql(&client, END_SESSIONS);
    }
}

/// Looks until only this many nodes are seen. A look removes nothing.
fn look_until(node: &mut Node, seen: usize, mut meanwhile: impl FnMut()) {
    let is_so = (0..40).any(|_| {
        pause(TTL / 10);
        meanwhile();
        node.view(RegistryCall::Look).nodes.len() == seen
    });
    assert!(is_so, "the others do not renew");
}

#[test]
fn who_renews_after_others_saw_its_end_lives() {
    let Some((engine, postgres)) = Engine::connected() else { return };
    let mut anna = announced(&engine, &postgres, 1);
    assert_eq!(anna.change(None, Some(OwnState::Serving)), RegistryAnswer::Done);
    let mut bela = announced(&engine, &postgres, 2);
    look_until(&mut bela, 0, || ());
    assert_eq!(anna.view(RegistryCall::Renew).nodes.len(), 2, "it has not looked itself");
    let claim = bela.change(None, Some(OwnState::Loading));
    assert_eq!(claim, RegistryAnswer::Changed, "its owner has renewed");
    let view = bela.view(RegistryCall::Renew);
    assert_eq!(view.nodes.len(), 2);
    assert_eq!(view.owners[3].map(|own| own.instance), Some(Instance(1)));
}

#[test]
fn who_renews_while_it_is_removed_lives() {
    let Some((engine, postgres)) = Engine::connected() else { return };
    let mut anna = announced(&engine, &postgres, 1);
    assert_eq!(anna.change(None, Some(OwnState::Serving)), RegistryAnswer::Done);
    let mut bela = announced(&engine, &postgres, 2);
    look_until(&mut bela, 0, || ());
    let (mut client, other) = (engine.client(), engine.client());
    let held = engine.runtime.block_on(client.transaction()).unwrap();
    let run = |sql| engine.runtime.block_on(held.simple_query(sql)).unwrap();
    run("SELECT 1 FROM s.session WHERE instance::text LIKE '%1' FOR UPDATE");
    bela.registry.start(bela.changing(None, Some(OwnState::Loading)));
    look(&engine, &other, STUCK, "1");
    run("UPDATE s.session SET beat = beat + 1 WHERE instance::text LIKE '%1'");
    engine.runtime.block_on(held.commit()).unwrap();
    assert_eq!(bela.answer(), RegistryAnswer::Changed, "its owner has renewed");
    assert_eq!(anna.view(RegistryCall::Renew).owners[3].map(|own| own.instance), Some(Instance(1)));
}

#[test]
fn a_claim_ends_the_session_whose_place_it_takes() {
    let Some((engine, postgres)) = Engine::connected() else { return };
    let mut anna = announced(&engine, &postgres, 1);
    assert_eq!(anna.change(None, Some(OwnState::Serving)), RegistryAnswer::Done);
    let mut bela = announced(&engine, &postgres, 2);
    let client = engine.client();
    // Another client renews for the second one.
    let beat = "UPDATE s.session SET beat = beat + 1 WHERE instance::text LIKE '%2'";
    look_until(&mut bela, 1, || _ = engine.sql(&client, beat));
    let there = "SELECT count(*) FROM s.session";
    assert_eq!(engine.sql(&client, there).as_deref(), Some("2"), "a look removes nothing");
    assert_eq!(bela.change(None, Some(OwnState::Loading)), RegistryAnswer::Done);
    assert_eq!(engine.sql(&client, there).as_deref(), Some("1"));
    assert_eq!(anna.ask(RegistryCall::Renew), RegistryAnswer::SessionEnded);
    assert_eq!(anna.announce(), RegistryAnswer::SessionEnded, "it is another instance from now on");
    let view = bela.view(RegistryCall::Renew);
    assert_eq!(view.owners[3].map(|own| own.instance), Some(Instance(2)));
}

#[test]
fn rows_that_cannot_be_read_are_not_there() {
    let Some((engine, postgres)) = Engine::connected() else { return };
    let mut node = announced(&engine, &postgres, 1);
    let client = engine.client();
    let stray = "00000000-0000-0000-0000-00000000000f";
    let own = r#"{"v":1,"instance":"0000000000000000000000000000000f","term":1,"state":"serving"}"#;
    let rows = format!(
        "INSERT INTO s.session VALUES ('{stray}', 'x', -9, -1), \
             ('00000000-0000-0000-0000-00000000000e', '{{}}', 1, 9223372036854775807); \
         INSERT INTO s.own VALUES (3, '{stray}', ''), (-1, '{stray}', '{own}'), \
             (16, '{stray}', '{own}'), (70000, '{stray}', '{own}'); \
         INSERT INTO s.drain VALUES ('\\xff')"
    );
    engine.sql(&client, &rows);
    let view = node.view(RegistryCall::Renew);
    assert_eq!((view.nodes.len(), view.drained.len()), (1, 0));
    assert_eq!(view.owners, [None; 16]);
    assert_eq!(node.change(None, Some(OwnState::Serving)), RegistryAnswer::Done, "over rubbish");
    // A newer node may have said more than we know. It is still compared.
    let newer = own.replace("0f\",\"term\":1", "01\",\"target\":\"x\",\"term\":0");
    engine.sql(&client, &format!("UPDATE s.own SET body = '{newer}' WHERE shard = 3"));
    assert_eq!(node.change(Some(OwnState::Loading), None), RegistryAnswer::Changed);
    assert_eq!(node.change(Some(OwnState::Serving), None), RegistryAnswer::Done);
    engine.sql(&client, "UPDATE s.meta SET body = '{\"v\":2}'");
    let meta = Meta { id: 1, shards: 16, format: 1, ..Meta::default() };
    let found = node.ask(RegistryCall::Found(meta));
    assert!(is_unreachable(&found), "it is not overwritten: {found:?}");
    assert!(node.view(RegistryCall::Renew).owners.is_empty());
}

#[test]
fn a_schema_from_before_gets_the_tables_that_are_missing() {
    let Some(engine) = Engine::start(&[]) else { return };
    engine.connect(engine.options("s")).unwrap();
    let client = engine.client();
    engine.sql(&client, "DROP TABLE s.meta, s.own, s.session, s.drain");
    let (postgres, _) = engine.connect(engine.options("s")).unwrap();
    let mut node = announced(&engine, &postgres, 1);
    assert_eq!(node.view(RegistryCall::Renew).nodes.len(), 1);
}
