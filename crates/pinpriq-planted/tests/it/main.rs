//! The list of the bugs: its names, the page that shows it, and how one is chosen.

use std::collections::BTreeSet;
use std::fmt::Write;

use expect_test::expect_file;
use pinpriq_planted::{Bug, choose, is_planted};

#[test]
fn the_page_shows_the_list() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/internals/planted.md");
    let mut text = "\
# Bugs on purpose

One of these can be planted in the product when it is built for that, and each suite behind it
must object: [testing](testing.md#bugs-on-purpose) tells how. This page is printed from
`crates/pinpriq-planted/src/list.rs`, and a test compares the two.

| bug | what goes wrong | suites |
|---|---|---|
"
    .to_owned();
    for bug in Bug::ALL {
        let suites: Vec<String> = bug.suites().iter().map(|suite| format!("`{suite}`")).collect();
        let (word, sentence, suites) = (bug.word(), bug.sentence(), suites.join(", "));
        writeln!(text, "| `{word}` | {sentence} | {suites} |").expect("a string takes it");
    }
    expect_file![page].assert_eq(&text);
}

#[test]
fn every_bug_has_a_name_of_its_own() {
    let words: BTreeSet<&str> = Bug::ALL.iter().map(|bug| bug.word()).collect();
    assert_eq!(words.len(), Bug::ALL.len());
    for bug in Bug::ALL {
        assert_eq!(Bug::named(bug.word()), Some(*bug));
        let name = format!("{bug:?}").to_lowercase();
        assert_eq!(bug.word().replace('-', ""), name, "a bug has one name");
    }
}

#[test]
fn a_word_chooses_one_bug_and_an_unknown_one_is_refused_with_the_list() {
    assert_eq!(choose(None), Ok(None));
    assert_eq!(choose(Some("")), Ok(None));
    assert_eq!(choose(Some("sync-skipped")), Ok(Some(Bug::SyncSkipped)));
    let refused = choose(Some("sync-skiped")).expect_err("there is no such bug");
    assert!(refused.contains("\"sync-skiped\""), "{refused}");
    for bug in Bug::ALL {
        assert!(refused.contains(bug.word()), "{refused} leaves {} out", bug.word());
    }
}

#[test]
fn nothing_is_planted_unless_it_was_asked_for() {
    if std::env::var_os(pinpriq_planted::VARIABLE).is_none_or(|word| word.is_empty()) {
        assert!(Bug::ALL.iter().all(|bug| !is_planted(*bug)));
    }
}
