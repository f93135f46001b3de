//! Nodes that drain, by their names.

use super::{Bench, Case, Node, Site, instances};
use pinpriq_cluster::RegistryCall;

pub(super) const CASES: &[Case] =
    named![a_mark_outlives_every_session, marks_are_set_and_taken_back, odd_names_are_marked,];

fn drain(site: &mut Site<'_>, node: &mut Node, name: &str, drains: bool) {
    site.done(node, RegistryCall::Drain { name: name.to_owned(), drains });
}

/// A mark belongs to a name. It stays when the node that has the name, or set it, ends.
fn a_mark_outlives_every_session(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    drain(&mut site, &mut anna, "n1", true);
    drain(&mut site, &mut anna, "n9", true);
    site.done(&mut bela, RegistryCall::End(anna.instance()));
    let view = site.renew(&mut bela);
    assert_eq!((instances(&view), view.drained), (vec![2], vec!["n1".into(), "n9".into()]));
    site.done(&mut anna, RegistryCall::End(bela.instance()));
    let step = site.step();
    let mut stranger = site.stranger();
    for _ in 0..15 {
        site.bench.pause(step);
        assert_eq!(site.look(&mut stranger).drained, ["n1", "n9"], "no node is there");
    }
}

/// Marks need no session, come in order, and may be set and taken back twice.
fn marks_are_set_and_taken_back(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let mut stranger = site.stranger();
    for (name, drains, expected) in [
        ("b", false, &[][..]),
        ("b", true, &["b"]),
        ("b", true, &["b"]),
        ("a", true, &["a", "b"]),
        ("aa", true, &["a", "aa", "b"]),
        ("a", false, &["aa", "b"]),
        ("a", false, &["aa", "b"]),
        ("b", false, &["aa"]),
        ("aa", false, &[]),
    ] {
        drain(&mut site, &mut stranger, name, drains);
        assert_eq!(site.look(&mut stranger).drained, expected, "after {name}: {drains}");
    }
}

/// Names are told apart and kept, whatever is in them.
fn odd_names_are_marked(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let mut stranger = site.stranger();
    let mut names = [
        "",
        " ",
        "a",
        "a ",
        "A",
        "a/b",
        "a/",
        "ä",
        "a\u{308}",
        "🦔",
        "'; --",
        "%",
        "_",
        "\\",
        "\0",
        "a\0",
        "line\nline",
        "\u{10ffff}",
    ];
    for name in names {
        drain(&mut site, &mut stranger, name, true);
    }
    names.sort_unstable();
    assert_eq!(site.look(&mut stranger).drained, names);
    for name in names.iter().skip(1).step_by(2) {
        drain(&mut site, &mut stranger, name, false);
    }
    let expected: Vec<&str> = names.iter().copied().step_by(2).collect();
    assert_eq!(site.look(&mut stranger).drained, expected);
}
