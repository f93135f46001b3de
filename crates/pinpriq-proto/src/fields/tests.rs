//! Tests of the table of fields.

use std::collections::BTreeSet;

use super::*;

#[test]
fn names_are_unique() {
    let names: BTreeSet<&str> = TASK.iter().map(|field| field.name).collect();
    assert_eq!(names.len(), TASK.len());
    let names: BTreeSet<&str> = carried().map(|(_, carried)| carried.name).collect();
    assert_eq!(names.len(), carried().count());
}

#[test]
fn fields_that_are_only_exported_come_last_and_are_exported() {
    let first = TASK.iter().position(|field| field.shown == Shown::Never).unwrap();
    for field in &TASK[first..] {
        assert_eq!(field.shown, Shown::Never, "{}", field.name);
        assert!(field.carried.is_some(), "{}", field.name);
    }
}
