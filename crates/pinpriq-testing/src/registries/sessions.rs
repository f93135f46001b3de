//! Nodes that come, stay and go.

use super::{Bench, Case, Site, instances, record};
use pinpriq_cluster::{Addresses, Instance, NodeRecord, RegistryAnswer, RegistryCall};

pub(super) const CASES: &[Case] = named![
    a_session_that_is_not_renewed_ends_with_all_its_records,
    a_renewed_session_outlives_its_time,
    who_was_silent_too_long_has_lost_its_session,
    a_session_with_an_owner_of_the_past_ends_no_other,
    an_announcement_is_seen_by_all,
    a_second_announcement_replaces_the_record_alone,
    nodes_come_in_order_of_their_instances,
    odd_texts_of_a_node_survive,
    without_a_session_nothing_is_renewed_or_owned,
    a_look_needs_no_session,
    a_node_ends_its_own_session,
    a_node_ends_the_session_of_another,
    ending_what_is_not_there_is_no_trouble,
    a_node_that_lost_its_session_comes_again,
    answers_come_in_the_order_of_the_calls,
];

/// A node that falls silent vanishes, and others take its shards.
fn a_session_that_is_not_renewed_ends_with_all_its_records(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    for shard in [0, 7, 15] {
        site.claim(&mut anna, shard);
    }
    site.claim(&mut bela, 8);
    let view = site.renew(&mut bela);
    assert_eq!(instances(&view), [1, 2], "both are there");
    let view = site.until(&mut bela, "the end of a session", |view| instances(view) == [2]);
    let owned = view.owners.iter().filter(|owner| owner.is_some()).count();
    assert_eq!((owned, view.owners[8]), (1, Some(bela.claim())), "who lives keeps its own");
    // What it was before is of no use to a claim.
    let (late, claim) = (anna.claim(), bela.claim());
    let answer = site.own(&mut bela, 0, Some(claim), Some(late));
    assert_eq!(answer, RegistryAnswer::Changed, "there is no record to replace");
    for shard in [0, 7, 15] {
        site.claim(&mut bela, shard);
    }
    site.assert_owner(7, Some(bela.claim()), "after the end of its owner");
    let claim = anna.claim();
    let answer = site.own(&mut anna, 3, Some(claim), None);
    assert_eq!(answer, RegistryAnswer::SessionEnded, "a claim by the dead");
    site.assert_owner(3, None, "it is not claimed");
}

/// Renewing keeps a session and its records alive for longer than it would live by itself.
fn a_renewed_session_outlives_its_time(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    site.claim(&mut anna, 4);
    let (step, claim) = (site.step(), Some(anna.claim()));
    for round in 0..25 {
        site.bench.pause(step);
        for node in [&mut anna, &mut bela] {
            let view = site.renew(node);
            assert_eq!(instances(&view), [1, 2], "both are renewed, round {round}");
            assert_eq!(view.owners[4], claim, "its owner lives, round {round}");
        }
    }
}

/// Once others have seen the end of a session, it can no longer be renewed.
fn who_was_silent_too_long_has_lost_its_session(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    site.claim(&mut anna, 1);
    site.until(&mut bela, "the end of a session", |view| instances(view) == [2]);
    assert_eq!(site.try_renew(&mut anna), None, "the session has ended");
    let view = site.renew(&mut bela);
    assert_eq!(instances(&view), [2], "and stays so");
    let claim = anna.claim();
    let answer = site.own(&mut anna, 1, None, Some(claim));
    assert_eq!(answer, RegistryAnswer::SessionEnded, "a release by the dead");
    anna.record = record(3);
    site.announce(&mut anna);
    let view = site.renew(&mut bela);
    assert_eq!(instances(&view), [2, 3], "it comes again as somebody else");
    assert_eq!(view.owners[1], None, "without what it had");
}

/// A session that took over a shard from another one keeps it when that one ends by itself.
fn a_session_with_an_owner_of_the_past_ends_no_other(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    site.claim(&mut anna, 2);
    let (old, new) = (anna.claim(), bela.claim());
    let answer = site.own(&mut bela, 2, Some(new), Some(old));
    assert_eq!(answer, RegistryAnswer::Done, "a take-over");
    let view = site.until(&mut bela, "the end of a session", |view| instances(view) == [2]);
    assert_eq!(view.owners[2], Some(new), "the record hangs on the session of who wrote it");
}

/// All of a record is seen, by nodes and by others.
fn an_announcement_is_seen_by_all(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [anna, mut bela] = site.pair();
    let mut stranger = site.stranger();
    let expected = [anna.record, bela.record.clone()];
    assert_eq!(site.renew(&mut bela).nodes, expected, "what a node sees");
    assert_eq!(site.look(&mut stranger).nodes, expected, "what others see");
}

/// A node may say something else about itself. What it owns stays.
fn a_second_announcement_replaces_the_record_alone(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    site.claim(&mut anna, 2);
    anna.record.draining = true;
    anna.record.version.push_str("-rc1");
    anna.record.addresses = Addresses::default();
    site.announce(&mut anna);
    for view in [site.renew(&mut anna), site.renew(&mut bela)] {
        assert_eq!(view.nodes, [anna.record.clone(), bela.record.clone()], "the new record");
        assert_eq!(view.owners[2], Some(anna.claim()), "what it owns");
    }
}

/// Nodes are sorted, over all bits of their instances.
fn nodes_come_in_order_of_their_instances(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let mut numbers = [1 << 64, u128::MAX, 2, 1 << 127, 10, 0xa << 60, u128::MAX >> 1];
    let mut nodes: Vec<_> = numbers.iter().map(|number| site.node(*number)).collect();
    numbers.sort_unstable();
    let view = site.renew(&mut nodes[0]);
    assert_eq!(instances(&view), numbers);
}

/// Texts that are not of letters alone.
const ODD: [&str; 10] = [
    "",
    " ",
    "Größe 🦔 名前",
    "a/b",
    "a\"b'c\\d",
    "$1; DROP TABLE session; --",
    "line\nline\r\n\t",
    "null\0null",
    "%s{}",
    "\u{7f}\u{fffd}\u{10ffff}",
];

/// Names, addresses and versions are kept as they are.
fn odd_texts_of_a_node_survive(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let mut anna = site.node(1);
    let long = "é".repeat(2_000);
    for text in ODD.into_iter().chain([long.as_str()]) {
        let addresses = Addresses {
            link: text.to_owned(),
            resp: format!("{text}2"),
            resp_cluster: format!("{text}3"),
            pinpriq: format!("{text}4"),
        };
        let (name, version) = (text.to_owned(), format!("{text}5"));
        anna.record = NodeRecord { name, addresses, version, ..anna.record };
        site.announce(&mut anna);
        let view = site.renew(&mut anna);
        assert_eq!(view.nodes, [anna.record.clone()], "{text:?}");
    }
}

/// A node that has not announced itself has no session.
fn without_a_session_nothing_is_renewed_or_owned(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let mut stranger = site.stranger();
    assert_eq!(site.try_renew(&mut stranger), None, "there is nothing to renew");
    let claim = stranger.claim();
    let answer = site.own(&mut stranger, 0, Some(claim), None);
    assert_eq!(answer, RegistryAnswer::SessionEnded, "there is nothing to hang it on");
    site.assert_owner(0, None, "nothing was done");
}

/// A look shows everything, and opens no session.
fn a_look_needs_no_session(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let mut stranger = site.stranger();
    let view = site.look(&mut stranger);
    assert!(view.nodes.is_empty() && view.drained.is_empty(), "no node is there");
    assert_eq!(view.owners, [None; 16], "nothing is owned");
    let mut anna = site.node(1);
    site.claim(&mut anna, 9);
    let view = site.look(&mut stranger);
    assert_eq!((instances(&view), view.owners[9]), (vec![1], Some(anna.claim())));
    assert_eq!(view, site.renew(&mut anna), "all see the same");
}

/// A node that leaves takes its records along.
fn a_node_ends_its_own_session(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    site.claim(&mut anna, 5);
    site.claim(&mut anna, 6);
    site.claim(&mut bela, 7);
    let instance = anna.instance();
    site.done(&mut anna, RegistryCall::End(instance));
    let view = site.renew(&mut bela);
    assert_eq!(instances(&view), [2], "at once");
    assert_eq!(view.owners.iter().flatten().count(), 1, "with what it owned");
    assert_eq!(site.try_renew(&mut anna), None, "its session has ended");
}

/// A node ends the session of one whose place it takes.
fn a_node_ends_the_session_of_another(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    site.claim(&mut anna, 5);
    site.claim(&mut bela, 6);
    let mut stranger = site.stranger();
    site.done(&mut stranger, RegistryCall::End(anna.instance()));
    let view = site.renew(&mut bela);
    assert_eq!((instances(&view), view.owners[5]), (vec![2], None), "at once");
    assert_eq!(view.owners[6], Some(bela.claim()), "others keep what they own");
    assert_eq!(site.try_renew(&mut anna), None, "its session has ended");
    let claim = anna.claim();
    let answer = site.own(&mut anna, 5, Some(claim), None);
    assert_eq!(answer, RegistryAnswer::SessionEnded, "it owns nothing");
    site.claim(&mut bela, 5);
    let view = site.renew(&mut bela);
    assert_eq!((instances(&view), view.owners[5]), (vec![2], Some(bela.claim())));
}

/// To end what has ended, or never began, is done.
fn ending_what_is_not_there_is_no_trouble(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [anna, mut bela] = site.pair();
    for instance in [Instance(77), anna.instance(), anna.instance(), Instance(u128::MAX)] {
        site.done(&mut bela, RegistryCall::End(instance));
    }
    assert_eq!(instances(&site.renew(&mut bela)), [2]);
}

/// The same registry serves the next instance of its node.
fn a_node_that_lost_its_session_comes_again(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    for round in 10..15 {
        site.claim(&mut anna, 5);
        let old = anna.instance();
        site.done(&mut bela, RegistryCall::End(old));
        assert_eq!(site.try_renew(&mut anna), None, "its session has ended");
        anna.record = record(round);
        site.announce(&mut anna);
        assert_eq!(instances(&site.renew(&mut anna)), [2, round]);
        // That its former instance ends once more does not touch the new one.
        site.done(&mut bela, RegistryCall::End(old));
    }
    site.claim(&mut anna, 5);
    assert_eq!(site.renew(&mut anna).owners[5], Some(anna.claim()));
}

/// Several calls may be under way.
fn answers_come_in_the_order_of_the_calls(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let mut anna = site.node(1);
    let (claim, loading) = (Some(anna.claim()), None);
    for call in [
        RegistryCall::Look,
        RegistryCall::Own { shard: 1, record: claim, instead_of: loading },
        RegistryCall::Own { shard: 1, record: claim, instead_of: loading },
        RegistryCall::Look,
        RegistryCall::End(anna.instance()),
        RegistryCall::Own { shard: 1, record: claim, instead_of: loading },
    ] {
        anna.registry.start(call);
    }
    for owner in [None, claim] {
        let answer = site.answer(&mut anna);
        assert!(matches!(answer, RegistryAnswer::View(view) if view.owners[1] == owner));
        if owner.is_none() {
            assert_eq!(site.answer(&mut anna), RegistryAnswer::Done);
            assert_eq!(site.answer(&mut anna), RegistryAnswer::Changed);
        }
    }
    assert_eq!(site.answer(&mut anna), RegistryAnswer::Done);
    assert_eq!(site.answer(&mut anna), RegistryAnswer::SessionEnded);
    assert_eq!(anna.registry.poll(), None, "no call is under way");
}
