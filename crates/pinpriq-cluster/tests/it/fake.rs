//! The registry in memory keeps to the interface when it has no trouble.

use pinpriq_cluster::{Instance, NodeRecord, Registry, RegistryAnswer, RegistryCall};
use pinpriq_testing::registries::FakeHandle;
use pinpriq_testing::registries::{Bench, FakeKnobs, FakeRegistry, cases};

const TTL: u64 = 1_000;

fn node(instance: u128, name: &str) -> NodeRecord {
    NodeRecord { instance: Instance(instance), name: name.to_owned(), ..NodeRecord::default() }
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

#[test]
fn it_passes_the_suite_for_registries() {
    // Its clusters have 16 shards, and it panics when a node writes the record of another one.
    let others = [
        "the_first_meta_is_kept",
        "clusters_are_apart",
        "to_find_a_cluster_makes_none",
        "a_thousand_shards_are_in_one_view",
        "a_claim_compares_what_is_there",
    ];
    for case in cases().into_iter().filter(|case| !others.contains(&case.name)) {
        println!("{}", case.name);
        (case.run)(&mut Fakes::default());
    }
}
