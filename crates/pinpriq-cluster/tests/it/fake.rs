//! The registry in memory keeps to the interface when it has no trouble.

use pinpriq_cluster::conformance::{Bench, cases};
use pinpriq_cluster::{
    FakeKnobs, FakeRegistry, Instance, NodeRecord, OwnRecord, OwnState, Registry, RegistryAnswer,
    RegistryCall, View, fake::FakeHandle,
};

const TTL: u64 = 1_000;

fn node(instance: u128, name: &str) -> NodeRecord {
    NodeRecord { instance: Instance(instance), name: name.to_owned(), ..NodeRecord::default() }
}

#[expect(clippy::unnecessary_wraps, reason = "a record is compared with what may be none")]
fn record(instance: u128) -> Option<OwnRecord> {
    let state = OwnState::Loading;
    Some(OwnRecord { instance: Instance(instance), term: 0, state })
}

/// A registry and its time.
struct World {
    registry: FakeRegistry,
    now: u64,
}

impl World {
    fn new(knobs: FakeKnobs) -> Self {
        Self { registry: FakeRegistry::new(1, 4, TTL, knobs), now: 0 }
    }

    fn pass(&mut self, duration: u64) {
        self.now += duration;
        self.registry.set_now(self.now);
    }

    fn ask(&mut self, handle: &mut FakeHandle, call: RegistryCall) -> RegistryAnswer {
        handle.start(call);
        loop {
            if let Some(answer) = handle.poll() {
                return answer;
            }
            self.now = self.registry.next_at().unwrap().max(self.now);
            self.registry.set_now(self.now);
        }
    }

    fn own(
        &mut self,
        handle: &mut FakeHandle,
        record: Option<OwnRecord>,
        instead_of: Option<OwnRecord>,
    ) -> RegistryAnswer {
        self.ask(handle, RegistryCall::Own { shard: 2, record, instead_of })
    }
}

#[test]
fn a_record_is_changed_only_instead_of_the_right_one() {
    let mut world = World::new(FakeKnobs::PERFECT);
    let [mut one, mut two] = [(1, "a"), (2, "b")].map(|(instance, name)| {
        let mut handle = world.registry.registry();
        let call = RegistryCall::Announce(node(instance, name));
        assert_eq!(world.ask(&mut handle, call), RegistryAnswer::Done);
        handle
    });
    assert_eq!(world.own(&mut one, record(1), None), RegistryAnswer::Done);
    assert_eq!(world.own(&mut two, record(2), None), RegistryAnswer::Changed);
    assert_eq!(world.own(&mut two, record(2), record(1)), RegistryAnswer::Done);
    assert_eq!(world.own(&mut one, None, record(1)), RegistryAnswer::Changed);
    let owners = vec![None, None, record(2), None];
    let nodes = vec![node(1, "a"), node(2, "b")];
    let view = View { nodes, owners, ..View::default() };
    assert_eq!(world.ask(&mut one, RegistryCall::Look), RegistryAnswer::View(view.clone()));
    assert_eq!(world.registry.truth(), view);
    assert!(world.registry.struck().iter().all(|(_, count)| *count == 0));
}

#[test]
fn a_session_that_is_not_renewed_ends_with_its_records() {
    let mut world = World::new(FakeKnobs::PERFECT);
    let mut one = world.registry.registry();
    world.ask(&mut one, RegistryCall::Announce(node(1, "a")));
    world.own(&mut one, record(1), None);
    for _ in 0..5 {
        world.pass(TTL - 20);
        assert!(matches!(world.ask(&mut one, RegistryCall::Renew), RegistryAnswer::View(_)));
    }
    assert_eq!(world.registry.truth().owners[2], record(1));
    world.pass(TTL + 1);
    assert_eq!(world.registry.truth().owners[2], None);
    assert_eq!(world.registry.truth().nodes, []);
    assert_eq!(world.ask(&mut one, RegistryCall::Renew), RegistryAnswer::SessionEnded);
    assert_eq!(world.own(&mut one, record(1), None), RegistryAnswer::SessionEnded);
    let again = RegistryCall::Announce(node(1, "a"));
    assert_eq!(world.ask(&mut one, again), RegistryAnswer::SessionEnded);
    let anew = RegistryCall::Announce(node(7, "a"));
    assert_eq!(world.ask(&mut one, anew), RegistryAnswer::Done);
    let mut two = world.registry.registry();
    assert_eq!(world.ask(&mut two, RegistryCall::End(Instance(7))), RegistryAnswer::Done);
    assert_eq!(world.ask(&mut one, RegistryCall::Renew), RegistryAnswer::SessionEnded);
}

#[test]
fn calls_are_answered_in_order_and_nodes_are_told_to_drain() {
    let mut world = World::new(FakeKnobs { late: 50, ..FakeKnobs::PERFECT });
    let mut one = world.registry.registry();
    for name in ["a", "b", "c"] {
        one.start(RegistryCall::Drain { name: name.to_owned(), drains: true });
        one.start(RegistryCall::Look);
    }
    one.start(RegistryCall::Drain { name: "b".to_owned(), drains: false });
    world.pass(10 * FakeKnobs::PERFECT.late_ms);
    for count in 1..=3 {
        assert_eq!(one.poll(), Some(RegistryAnswer::Done));
        let Some(RegistryAnswer::View(view)) = one.poll() else { panic!("no view") };
        assert_eq!(view.drained.len(), count);
    }
    assert_eq!(one.poll(), Some(RegistryAnswer::Done));
    assert_eq!(one.poll(), None);
    assert_eq!(world.registry.truth().drained, ["a", "c"]);
}

#[test]
fn a_process_that_is_cut_off_is_told_nothing() {
    let mut world = World::new(FakeKnobs::PERFECT);
    let mut one = world.registry.registry();
    world.registry.cut(one.number(), true);
    let call = RegistryCall::Announce(node(1, "a"));
    let answer = world.ask(&mut one, call.clone());
    assert!(matches!(answer, RegistryAnswer::Unreachable(_)));
    assert_eq!(world.registry.truth().nodes, []);
    world.registry.cut(one.number(), false);
    assert_eq!(world.ask(&mut one, call), RegistryAnswer::Done);
}

/// Clusters of 16 shards in memory. A case that founds one of another size cannot use them.
#[derive(Default)]
struct Fakes {
    now: u64,
    registries: Vec<FakeRegistry>,
}

impl Bench for Fakes {
    fn fresh_cluster(&mut self) -> u32 {
        let registry = FakeRegistry::new(1, 16, TTL, FakeKnobs::PERFECT);
        registry.set_now(self.now);
        self.registries.push(registry);
        u32::try_from(self.registries.len()).unwrap() - 1
    }

    fn registry(&mut self, cluster: u32) -> Box<dyn Registry> {
        Box::new(self.registries[usize::try_from(cluster).unwrap()].registry())
    }

    fn ttl_ms(&self) -> u64 {
        TTL
    }

    fn pause(&mut self, ms: u64) {
        self.now += ms;
        for registry in &self.registries {
            registry.set_now(self.now);
        }
    }
}

/// Not all cases are for it: it panics when a node writes the record of another one.
#[test]
fn claims_are_as_the_suite_for_registries_wants_them() {
    let wanted = [
        "a_claim_is_seen_by_all",
        "a_claim_with_a_stale_record_of_the_cluster_is_refused",
        "of_claims_at_once_one_wins",
    ];
    let of_claims: Vec<_> =
        cases().into_iter().filter(|case| wanted.contains(&case.name)).collect();
    assert_eq!(of_claims.len(), wanted.len());
    for case in of_claims {
        (case.run)(&mut Fakes::default());
    }
}
