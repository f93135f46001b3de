//! Tests of how commands are found by their names.

use super::*;

#[test]
fn every_command_is_found_in_any_case() {
    for known in TABLE {
        for name in [known.name.to_owned(), known.name.to_ascii_lowercase()] {
            let words: Vec<&[u8]> =
                [Some(name.as_str()), known.sub].into_iter().flatten().map(str::as_bytes).collect();
            let Found::Spec(found, place, taken) = find(&words) else {
                panic!("{name} is not found");
            };
            assert!(std::ptr::eq(found, &raw const TABLE[place]));
            assert_eq!((found.name, found.sub), (known.name, known.sub));
            assert_eq!(taken, 1 + usize::from(known.sub.is_some()));
        }
    }
}

#[test]
fn every_command_has_one_name() {
    for (place, known) in TABLE.iter().enumerate() {
        let full = known.full_name();
        let named = TABLE.iter().enumerate().filter(|(_, spec)| spec.is_named(&full));
        assert_eq!(named.map(|(place, _)| place).collect::<Vec<_>>(), [place], "{full}");
    }
}

#[test]
fn what_only_resembles_a_command_is_unknown() {
    for word in [
        "",
        "P",
        "PU",
        "PUTT",
        "\0PUT",
        "PUT\0",
        "PUT ",
        "SUBSCRIB",
        "SUBSCRIBX",
        "SUBSCRIBES",
        "UNSUBSCRIBE-AND-MORE-THAN-THAT",
    ] {
        assert!(matches!(find(&[word.as_bytes()]), Found::Unknown), "{word:?}");
    }
    assert!(matches!(find(&[]), Found::Unknown));
}
