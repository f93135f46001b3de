//! Finds the texts of the bugs in a file, and puts the bugs beside them.
//!
//! White space does not count when a text is compared, so that the formatting of a file may change.
//! A text has to be there once.
//!
//! In a bug, the word `PLANTED` is whether that bug is chosen. Without that word, the whole text
//! becomes `if PLANTED { bug } else { text }`. Only what differs from the text is changed, so two
//! texts may overlap, but not what is changed in them.

use std::ops::Range;

use super::table::Bug;

/// Whether this bug is chosen, within the text of a bug.
const PLANTED: &str = "PLANTED";

/// What stands in place of a part of a file.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Edit {
    /// Where this part begins and where it ends. It may be empty.
    start: usize,
    end: usize,
    /// The number of its bug.
    bug: usize,
    text: String,
}

/// Returns the file with all these bugs in it, or what is wrong with some of them.
pub(crate) fn plant(file: &str, bugs: &[&Bug]) -> Result<String, Vec<(usize, String)>> {
    let mut edits = Vec::new();
    let mut problems = Vec::new();
    for (number, bug) in bugs.iter().enumerate() {
        match place(file, &bug.text) {
            Ok(found) => edits.extend(edits_of(file, found, number, bug)),
            Err(sentence) => problems.push((number, sentence)),
        }
    }
    edits.sort();
    for pair in edits.windows(2) {
        if pair[1].start < pair[0].end {
            let other = &bugs[pair[0].bug].name;
            problems.push((pair[1].bug, format!("changes what {other} changes too")));
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut planted = String::with_capacity(2 * file.len());
    let mut at = 0;
    for edit in edits {
        planted.push_str(&file[at..edit.start]);
        planted.push_str(&edit.text);
        at = edit.end;
    }
    planted.push_str(&file[at..]);
    Ok(planted)
}

/// Returns where the text is in the file, or why that is unknown.
pub(crate) fn place(file: &str, text: &str) -> Result<Range<usize>, String> {
    let (file, wanted) = (Squashed::new(file), Squashed::new(text));
    if wanted.text.is_empty() {
        return Err("its text is empty".to_owned());
    }
    let mut found = file.text.match_indices(&wanted.text);
    match (found.next(), found.next()) {
        (None, _) => Err("its text is not in the file".to_owned()),
        (Some((first, _)), None) => Ok(file.range(first..first + wanted.text.len())),
        (Some(_), Some(_)) => Err("its text is in the file more than once".to_owned()),
    }
}

/// Returns what changes in the file for a bug whose text was found there.
fn edits_of(file: &str, found: Range<usize>, number: usize, bug: &Bug) -> Vec<Edit> {
    let edit = |Range { start, end }, text| Edit { start, end, bug: number, text };
    let condition = format!("crate::is_planted({:?})", bug.name);
    let Some(new) = with_condition(&bug.instead, &condition) else {
        let before = format!("if {condition} {{ {} }} else {{ ", bug.instead);
        let (start, end) = (found.start..found.start, found.end..found.end);
        return vec![edit(start, before), edit(end, " }".to_owned())];
    };
    let (old, start) = (Squashed::new(&file[found.clone()]), found.start);
    let squashed = Squashed::new(&new);
    let (first, last) = shared(&old.text, &squashed.text);
    let changed = old.gap(first, last);
    let text = new[squashed.gap(first, last)].to_owned();
    vec![edit(start + changed.start..start + changed.end, text)]
}

/// Returns the bug with this condition in place of the word [`PLANTED`], if it has that word.
fn with_condition(bug: &str, condition: &str) -> Option<String> {
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    let mut text = String::new();
    let mut rest = bug;
    let mut is_conditional = false;
    while let Some((before, after)) = rest.split_once(PLANTED) {
        let is_whole = !before.ends_with(is_word) && !after.starts_with(is_word);
        text.push_str(before);
        text.push_str(if is_whole { condition } else { PLANTED });
        is_conditional |= is_whole;
        rest = after;
    }
    text.push_str(rest);
    is_conditional.then_some(text)
}

/// Returns how many bytes two texts share at their beginning, and then at their end.
fn shared(one: &str, other: &str) -> (usize, usize) {
    let same = |(one, other): &(char, char)| one == other;
    let bytes = |(char, _): (char, char)| char.len_utf8();
    let first = one.chars().zip(other.chars()).take_while(same).map(bytes).sum();
    let (one, other) = (&one[first..], &other[first..]);
    let last = one.chars().rev().zip(other.chars().rev()).take_while(same).map(bytes).sum();
    (first, last)
}

/// A text without its white space.
struct Squashed {
    text: String,
    /// Where each byte was.
    places: Vec<usize>,
    /// How long the text was.
    length: usize,
}

impl Squashed {
    fn new(text: &str) -> Self {
        let mut squashed = Self { text: String::new(), places: Vec::new(), length: text.len() };
        for (at, char) in text.char_indices().filter(|(_, char)| !char.is_whitespace()) {
            squashed.text.push(char);
            squashed.places.extend(at..at + char.len_utf8());
        }
        squashed
    }

    /// Returns where a part that is not empty was.
    fn range(&self, part: Range<usize>) -> Range<usize> {
        self.places[part.start]..self.places[part.end - 1] + 1
    }

    /// Returns what was between so many bytes at the beginning and so many at the end.
    fn gap(&self, first: usize, last: usize) -> Range<usize> {
        let start = first.checked_sub(1).map_or(0, |before| self.places[before] + 1);
        let behind = self.places.len() - last;
        start..self.places.get(behind).copied().unwrap_or(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::{place, plant};
    use crate::planted::table::{Bug, Lines, Suite};

    fn bug(name: &str, text: &str, bug: &str) -> Bug {
        Bug {
            name: name.to_owned(),
            wrong: "It is wrong.".to_owned(),
            file: "crates/a/src/lib.rs".to_owned(),
            text: text.to_owned(),
            instead: bug.to_owned(),
            tests: vec![Suite::Simulator],
            entry: Lines { path: String::new(), first: 1, last: 6 },
        }
    }

    /// Plants bugs with these texts in place of those.
    fn planted(file: &str, pairs: &[(&str, &str)]) -> Result<String, String> {
        let names = ["one", "two"];
        let bugs: Vec<Bug> =
            names.iter().zip(pairs).map(|(name, (text, with))| bug(name, text, with)).collect();
        plant(file, &bugs.iter().collect::<Vec<_>>())
            .map(|text| text.replace("crate::is_planted", ""))
            .map_err(|problems| problems.into_iter().map(|(_, what)| what).collect())
    }

    #[test]
    fn a_bug_stands_beside_the_text() {
        let file = "let a = b;\nlet c = d;\n";
        let check = |text, bug, expected: &str| {
            assert_eq!(planted(file, &[(text, bug)]).as_deref(), Ok(expected));
        };
        check("b;", "e;", "let a = if (\"one\") { e; } else { b; }\nlet c = d;\n");
        check("b;", "b && !PLANTED;", "let a = b && !(\"one\");\nlet c = d;\n");
        check(
            "let c = d;",
            "if PLANTED { return; }\nlet c = d;\n",
            "let a = b;\nif (\"one\") { return; }\nlet c = d;\n",
        );
        check(
            "a = b",
            "NOT_PLANTED",
            "let if (\"one\") { NOT_PLANTED } else { a = b };\nlet c = d;\n",
        );
    }

    #[test]
    fn white_space_does_not_count() {
        let file = "if a\n    && b\n{\n    c();\n}\n";
        let with = "if a\n    && b && !(\"one\") {\n    c();\n}\n";
        assert_eq!(
            planted(file, &[("if a && b {", "if a && b && !PLANTED {")]).as_deref(),
            Ok(with)
        );
    }

    #[test]
    fn texts_may_overlap_but_not_their_changes() {
        let one = ("a && b", "(a || PLANTED) && b");
        let two = ("a && b && c", "a && b && (c || PLANTED)");
        let both = "if (a || (\"one\")) && b && (c || (\"two\")) {}";
        assert_eq!(planted("if a && b && c {}", &[one, two]).as_deref(), Ok(both));
        let before = ("f(a);", "if PLANTED { return; } f(a);");
        let around = ("f(a);", "");
        let both = "if (\"one\") { return; } if (\"two\") {  } else { f(a); }";
        assert_eq!(planted("f(a);", &[before, around]).as_deref(), Ok(both));
        let other = ("b && c", "(b && c) || PLANTED");
        let third = ("b && c", "if PLANTED { d } else { b } && c");
        assert!(planted("if a && b && c {}", &[other, third]).is_err());
    }

    #[test]
    fn a_text_must_be_there_once() {
        assert_eq!(place("a b c", "bc"), Ok(2..5));
        assert!(place("a b c", "d").is_err());
        assert!(place("a b a", "a").is_err());
        assert!(place("a b a", " ").is_err());
    }
}
