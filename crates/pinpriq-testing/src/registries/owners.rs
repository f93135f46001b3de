//! Who owns which shard, and that it is compared before it is changed.

use super::{Bench, Case, SHARDS, Site, meta_of};
use pinpriq_cluster::{Meta, OwnRecord, OwnState, RegistryAnswer, RegistryCall, RolledBack};

pub(super) const CASES: &[Case] = named![
    a_thousand_shards_are_in_one_view,
    a_claim_is_seen_by_all,
    a_claim_compares_what_is_there,
    a_claim_with_a_stale_record_of_the_cluster_is_refused,
    an_owner_says_how_far_it_has_come,
    of_claims_at_once_one_wins,
    of_changes_at_once_one_wins,
    a_release_leaves_nothing,
    nothing_is_released_that_is_not_there,
    a_record_of_another_is_replaced_by_naming_it,
    huge_terms_are_kept,
];

/// The largest cluster, with an owner for each of its shards.
fn a_thousand_shards_are_in_one_view(bench: &mut dyn Bench) {
    let mut site = Site::with_shards(bench, 1024);
    let [mut anna, mut bela] = site.pair();
    let term = |shard: u16| 1_000_000 + u64::from(shard);
    for first in (0..1024).step_by(16) {
        for shard in first..first + 16 {
            let node = if shard % 2 == 0 { &mut anna } else { &mut bela };
            let record = Some(node.own(term(shard), OwnState::Serving));
            node.registry.start(RegistryCall::Own { shard, record, instead_of: None });
        }
        for node in [&mut anna, &mut bela] {
            for _ in 0..8 {
                let answer = site.answer(node);
                assert_eq!(answer, RegistryAnswer::Done, "no shard from {first} on has an owner");
            }
            site.renew(node);
        }
    }
    let view = site.renew(&mut anna);
    assert_eq!(view.owners.len(), 1024);
    for (shard, owner) in (0..).zip(&view.owners) {
        let node = if shard % 2 == 0 { &anna } else { &bela };
        assert_eq!(*owner, Some(node.own(term(shard), OwnState::Serving)), "shard {shard}");
    }
    site.done(&mut anna, RegistryCall::End(bela.instance()));
    let view = site.renew(&mut anna);
    assert_eq!(view.owners.iter().flatten().count(), 512, "what the other owned is free");
}

/// A claim is seen in the views of all.
fn a_claim_is_seen_by_all(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    for shard in [0, SHARDS - 1] {
        site.claim(&mut anna, shard);
        site.assert_owner(shard, Some(anna.claim()), "for a stranger");
        let view = site.renew(&mut bela);
        assert_eq!(view.owners[usize::from(shard)], Some(anna.claim()), "for a node");
    }
    let view = site.renew(&mut anna);
    assert_eq!(view.owners.iter().flatten().count(), 2, "and no other shard");
}

/// Whatever differs from what is there, nothing is done.
fn a_claim_compares_what_is_there(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    let there = anna.own(7, OwnState::Serving);
    let (claim, shard) = (bela.claim(), 3);
    let answer = site.own(&mut bela, shard, Some(claim), Some(there));
    assert_eq!(answer, RegistryAnswer::Changed, "there is no record");
    site.assert_owner(shard, None, "nothing was done");
    let answer = site.own(&mut anna, shard, Some(there), None);
    assert_eq!(answer, RegistryAnswer::Done);
    for wrong in [
        None,
        Some(OwnRecord { term: 6, ..there }),
        Some(OwnRecord { term: 0, ..there }),
        Some(OwnRecord { state: OwnState::Releasing, ..there }),
        Some(OwnRecord { state: OwnState::Loading, ..there }),
        Some(OwnRecord { instance: bela.instance(), ..there }),
    ] {
        for record in [Some(claim), None] {
            for node in [&mut anna, &mut bela] {
                let answer = site.own(node, shard, record, wrong);
                assert_eq!(answer, RegistryAnswer::Changed, "{record:?} instead of {wrong:?}");
            }
        }
    }
    site.assert_owner(shard, Some(there), "nothing was done");
}

/// An owner goes from one state to the next, and says its term.
fn an_owner_says_how_far_it_has_come(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let mut anna = site.node(1);
    let mut last = None;
    for next in [
        Some(anna.claim()),
        Some(anna.own(12, OwnState::Loading)),
        Some(anna.own(12, OwnState::Serving)),
        // To say the same again is no trouble.
        Some(anna.own(12, OwnState::Serving)),
        Some(anna.own(12, OwnState::Releasing)),
        None,
        None,
        Some(anna.claim()),
    ] {
        let answer = site.own(&mut anna, 11, next, last);
        assert_eq!(answer, RegistryAnswer::Done, "{next:?} instead of {last:?}");
        site.assert_owner(11, next, "as it said");
        last = next;
    }
}

/// A node that has not seen that a roll-back was noted or accepted claims nothing, and what it
/// serves is not a claim.
fn a_claim_with_a_stale_record_of_the_cluster_is_refused(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    let first = meta_of(SHARDS);
    let rolled_back = Some(RolledBack { node: "n2".to_owned(), ..RolledBack::default() });
    let noted = Meta { rolled_back, ..first.clone() };
    let accepted = Meta { generation: 1, ..first.clone() };
    for (before, after) in [(&first, &noted), (&noted, &accepted)] {
        let (meta, instead_of) = (after.clone(), before.clone());
        site.done(&mut bela, RegistryCall::Amend { meta, instead_of });
        for _ in 0..2 {
            let answer = site.claim_under(&mut anna, 4, before.clone());
            assert_eq!(answer, RegistryAnswer::Changed, "{after:?} is true");
        }
        let (record, shard) = (anna.claim(), 4);
        let answer = site.ask(&mut anna, RegistryCall::Claim { shard, record, meta: None });
        assert_eq!(answer, RegistryAnswer::Changed, "there is a cluster");
        site.assert_owner(4, None, "nothing was done");
        assert_eq!(site.claim_under(&mut anna, 4, after.clone()), RegistryAnswer::Done);
        assert_eq!(site.claim_under(&mut bela, 4, after.clone()), RegistryAnswer::Changed);
        site.assert_owner(4, Some(anna.claim()), "it has seen what is true");
        site.done(&mut anna, RegistryCall::Own { shard, record: None, instead_of: Some(record) });
    }
    let serving = Some(anna.own(3, OwnState::Serving));
    let answer = site.own(&mut anna, 5, serving, None);
    assert_eq!(answer, RegistryAnswer::Done, "who serves is not asked what it has seen");
}

/// Of several claims that are under way together, one is carried out.
fn of_claims_at_once_one_wins(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let mut nodes: Vec<_> = (1..=4).map(|instance| site.node(instance)).collect();
    for shard in 0..SHARDS {
        for node in &mut nodes {
            let (record, meta) = (node.claim(), Some(meta_of(SHARDS)));
            node.registry.start(RegistryCall::Claim { shard, record, meta });
        }
        let mut winners = Vec::new();
        for node in &mut nodes {
            match site.answer(node) {
                RegistryAnswer::Done => winners.push(node.claim()),
                RegistryAnswer::Changed => {}
                other => panic!("the answer to a claim is {other:?}"),
            }
        }
        assert_eq!(winners.len(), 1, "winners of shard {shard}: {winners:?}");
        site.assert_owner(shard, Some(winners[0]), "the winner");
        for node in &mut nodes {
            site.renew(node);
        }
    }
}

/// A release and a take-over of the same record do not both happen.
fn of_changes_at_once_one_wins(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    for shard in 0..SHARDS {
        site.claim(&mut anna, shard);
        let (there, claim) = (Some(anna.claim()), Some(bela.claim()));
        let serving = Some(anna.own(3, OwnState::Serving));
        let record = if shard % 2 == 0 { None } else { serving };
        anna.registry.start(RegistryCall::Own { shard, record, instead_of: there });
        bela.registry.start(RegistryCall::Own { shard, record: claim, instead_of: there });
        let answers = (site.answer(&mut anna), site.answer(&mut bela));
        let winner = match answers {
            (RegistryAnswer::Done, RegistryAnswer::Changed) => record,
            (RegistryAnswer::Changed, RegistryAnswer::Done) => claim,
            other => panic!("the answers for shard {shard} are {other:?}"),
        };
        site.assert_owner(shard, winner, "the winner");
        site.renew(&mut anna);
        site.renew(&mut bela);
    }
}

/// After a release anybody may claim the shard.
fn a_release_leaves_nothing(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let mut pair = site.pair();
    for _ in 0..6 {
        let [node, other] = &mut pair;
        site.claim(node, 6);
        let (claim, late) = (other.claim(), node.claim());
        let answer = site.own(other, 6, Some(claim), None);
        assert_eq!(answer, RegistryAnswer::Changed, "it has an owner");
        let answer = site.own(node, 6, None, Some(late));
        assert_eq!(answer, RegistryAnswer::Done, "a release");
        site.assert_owner(6, None, "after a release");
        pair.swap(0, 1);
    }
}

/// A release compares too.
fn nothing_is_released_that_is_not_there(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    let claim = anna.claim();
    let answer = site.own(&mut anna, 6, None, Some(claim));
    assert_eq!(answer, RegistryAnswer::Changed, "there never was a record");
    let answer = site.own(&mut anna, 6, None, None);
    assert_eq!(answer, RegistryAnswer::Done, "there is none, as it should be");
    site.claim(&mut bela, 6);
    for instead_of in [None, Some(claim)] {
        let answer = site.own(&mut anna, 6, None, instead_of);
        assert_eq!(answer, RegistryAnswer::Changed, "it is the record of another");
    }
    site.assert_owner(6, Some(bela.claim()), "nothing was done");
}

/// A record hangs on the session of the node that wrote it, even if another was the owner before.
fn a_record_of_another_is_replaced_by_naming_it(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    for shard in [1, 2, 3] {
        site.claim(&mut anna, shard);
    }
    let (old, new) = (anna.claim(), bela.claim());
    let answer = site.own(&mut bela, 1, Some(new), Some(old));
    assert_eq!(answer, RegistryAnswer::Done, "a take-over");
    let answer = site.own(&mut bela, 2, None, Some(old));
    assert_eq!(answer, RegistryAnswer::Done, "a release by another");
    let serving = anna.own(1, OwnState::Serving);
    let answer = site.own(&mut anna, 1, Some(serving), Some(old));
    assert_eq!(answer, RegistryAnswer::Changed, "it has another owner");
    site.done(&mut bela, RegistryCall::End(anna.instance()));
    let view = site.renew(&mut bela);
    assert_eq!(view.owners[1], Some(new), "it does not end with its owner before");
    assert_eq!([view.owners[2], view.owners[3]], [None, None], "they have no owner");
}

/// Terms beyond the whole numbers of a float are compared exactly.
fn huge_terms_are_kept(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let mut anna = site.node(u128::MAX);
    for (shard, term) in (0..).zip([1, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, u64::MAX]) {
        let there = anna.own(term, OwnState::Serving);
        let answer = site.own(&mut anna, shard, Some(there), None);
        assert_eq!(answer, RegistryAnswer::Done, "term {term}");
        site.assert_owner(shard, Some(there), "all bits of its term");
        let close = OwnRecord { term: term - 1, ..there };
        let answer = site.own(&mut anna, shard, None, Some(close));
        assert_eq!(answer, RegistryAnswer::Changed, "one term off {term}");
        let answer = site.own(&mut anna, shard, None, Some(there));
        assert_eq!(answer, RegistryAnswer::Done, "term {term}");
    }
}
