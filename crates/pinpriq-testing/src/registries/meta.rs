//! What is true of a cluster as long as it exists.

use super::{Bench, Case, SHARDS, Site, instances, meta_of};
use pinpriq_cluster::{Meta, RegistryAnswer, RegistryCall, RolledBack};

pub(super) const CASES: &[Case] = named![
    the_first_meta_is_kept,
    all_bits_of_a_meta_are_kept,
    all_that_found_at_once_agree,
    clusters_are_apart,
    to_find_a_cluster_makes_none,
    a_meta_is_changed_only_instead_of_the_right_one,
    of_those_that_change_a_meta_at_once_one_does,
];

fn found(site: &mut Site<'_>, meta: Meta) -> Meta {
    let mut stranger = site.stranger();
    match site.ask(&mut stranger, RegistryCall::Found(meta)) {
        RegistryAnswer::Meta(meta) => meta,
        other => panic!("the answer to a founder is {other:?}"),
    }
}

/// The second node gets the meta of the first.
fn the_first_meta_is_kept(bench: &mut dyn Bench) {
    let mut site = Site::empty(bench);
    let first = meta_of(3);
    assert_eq!(found(&mut site, first.clone()), first);
    let (id, shards, format) = (6, 4, 2);
    let other = Meta { id, shards, format, generation: 1, ..Meta::default() };
    assert_eq!(found(&mut site, other), first, "the meta is there");
    let mut stranger = site.stranger();
    assert_eq!(site.look(&mut stranger).owners.len(), 3, "as many owners as shards");
    let other = Meta { generation: 9, ..first.clone() };
    assert_eq!(found(&mut site, other), first, "the same founder changes nothing either");
}

/// Nothing of a meta is rounded or cut.
fn all_bits_of_a_meta_are_kept(bench: &mut dyn Bench) {
    let mut site = Site::empty(bench);
    let meta = Meta {
        id: u128::MAX - 1,
        shards: 1024,
        format: u32::MAX,
        generation: u32::MAX - 1,
        rolled_back: Some(RolledBack {
            node: "ñ\"🦔\0".to_owned(),
            shard: Some(1023),
            generation: u32::MAX,
            expected: "entry 7".to_owned(),
            found: "nothing\n".to_owned(),
        }),
        importing: true,
    };
    assert_eq!(found(&mut site, meta.clone()), meta);
    assert_eq!(found(&mut site, meta_of(1)), meta);
}

/// Of many that found a cluster at the same time, one is heard, by all.
fn all_that_found_at_once_agree(bench: &mut dyn Bench) {
    let mut site = Site::empty(bench);
    let mut founders: Vec<_> = (0..6).map(|_| site.stranger()).collect();
    for (id, founder) in (1..).zip(&mut founders) {
        founder.registry.start(RegistryCall::Found(Meta { id, ..meta_of(SHARDS) }));
    }
    let answers: Vec<_> = founders.iter_mut().map(|founder| site.answer(founder)).collect();
    assert!(matches!(&answers[0], RegistryAnswer::Meta(meta) if (1..=6).contains(&meta.id)));
    assert!(answers.iter().all(|answer| *answer == answers[0]), "one of them: {answers:?}");
}

/// What happens in one cluster is not seen in another one.
fn clusters_are_apart(bench: &mut dyn Bench) {
    let mut site = Site::with_shards(bench, 7);
    let mut anna = site.node(1);
    site.claim(&mut anna, 3);
    let call = RegistryCall::Drain { name: "n1".to_owned(), drains: true };
    site.done(&mut anna, call);
    let mut other = Site::with_shards(site.bench, 5);
    let mut bela = other.node(2);
    let view = other.renew(&mut bela);
    assert_eq!(instances(&view), [2], "only its own nodes");
    assert_eq!(view.owners, [None; 5], "only its own owners");
    assert!(view.drained.is_empty(), "only its own marks");
}

/// A question for a missing cluster is answered so, and changes nothing.
fn to_find_a_cluster_makes_none(bench: &mut dyn Bench) {
    let mut site = Site::empty(bench);
    let mut stranger = site.stranger();
    for _ in 0..2 {
        assert_eq!(site.ask(&mut stranger, RegistryCall::Find), RegistryAnswer::Unfounded);
        let amend = RegistryCall::Amend { meta: meta_of(3), instead_of: meta_of(3) };
        assert_eq!(site.ask(&mut stranger, amend), RegistryAnswer::Unfounded);
        let view = site.look(&mut stranger);
        assert_eq!((view.meta, view.owners.len()), (None, 0), "there is nothing to see");
    }
    assert_eq!(found(&mut site, meta_of(3)), meta_of(3));
    let there = RegistryAnswer::Meta(meta_of(3));
    assert_eq!(site.ask(&mut stranger, RegistryCall::Find), there);
    assert_eq!(site.look(&mut stranger).meta, Some(meta_of(3)));
}

/// What was changed is seen by all, and by later nodes.
fn a_meta_is_changed_only_instead_of_the_right_one(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let mut anna = site.node(1);
    let first = meta_of(SHARDS);
    let node = "n1".to_owned();
    let rolled_back = Some(RolledBack { node, shard: Some(2), ..RolledBack::default() });
    let second = Meta { rolled_back, ..first.clone() };
    // Instead of an import that was interrupted, another cluster may come.
    let third = Meta { id: 9, generation: 1, format: 2, importing: true, ..first.clone() };
    let amend = |meta: &Meta, instead_of: &Meta| {
        let (meta, instead_of) = (meta.clone(), instead_of.clone());
        RegistryCall::Amend { meta, instead_of }
    };
    for (meta, instead_of, answer, expected) in [
        (&second, &third, RegistryAnswer::Changed, &first),
        (&second, &first, RegistryAnswer::Done, &second),
        (&third, &first, RegistryAnswer::Changed, &second),
        (&second, &second, RegistryAnswer::Done, &second),
        (&third, &second, RegistryAnswer::Done, &third),
    ] {
        assert_eq!(site.ask(&mut anna, amend(meta, instead_of)), answer, "{meta:?}");
        let view = site.renew(&mut anna);
        assert_eq!(view.meta.as_ref(), Some(expected));
        assert_eq!(view.rolled_back(), expected.rolled_back.as_ref());
        assert_eq!(found(&mut site, first.clone()), *expected, "it stays what it is");
    }
}

/// Several that change the same meta do not undo what another one has done.
fn of_those_that_change_a_meta_at_once_one_does(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let mut nodes: Vec<_> = (0..4).map(|_| site.stranger()).collect();
    let before = meta_of(SHARDS);
    for (generation, node) in (1..).zip(&mut nodes) {
        let meta = Meta { generation, ..before.clone() };
        node.registry.start(RegistryCall::Amend { meta, instead_of: before.clone() });
    }
    let mut done = Vec::new();
    for (generation, node) in (1..).zip(&mut nodes) {
        match site.answer(node) {
            RegistryAnswer::Done => done.push(generation),
            RegistryAnswer::Changed => {}
            other => panic!("a change was answered by {other:?}"),
        }
    }
    let there = found(&mut site, before);
    assert_eq!(done, [there.generation], "one of them");
}
