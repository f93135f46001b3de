//! Links in Markdown lead somewhere, and prose is wrapped.
//!
//! Only links between files of the repository are followed, and only pages have anchors. Links
//! into the web are not fetched. Tables, headings and fenced blocks may be as wide as they are.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::shape::COLUMNS_MAX;
use super::tree::{File, Tree};

/// Every relative link leads to a file of the repository, and every anchor to a heading.
pub(crate) fn links(tree: &Tree) -> Vec<Violation> {
    let pages: Vec<&File> = tree.files().filter(|file| file.has_extension("md")).collect();
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_str(), anchors(&page.text))).collect();
    let mut found = Vec::new();
    for page in &pages {
        for (line, link) in links_of(&page.text) {
            if let Err(reason) = follow(tree, &anchors, &page.path, &link) {
                found.push(Violation::new(&page.path, line, format!("`{link}`: {reason}")));
            }
        }
    }
    found
}

fn follow(
    tree: &Tree,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
    page: &str,
    link: &str,
) -> Result<(), &'static str> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(());
    }
    let (path, anchor) = match link.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (link, None),
    };
    let target = resolve(page, path).ok_or("leads out of the repository")?;
    if !target.is_empty() && !tree.contains(&target) {
        return Err("there is no such file");
    }
    let Some(anchor) = anchor else { return Ok(()) };
    match anchors.get(target.as_str()) {
        Some(known) if known.contains(anchor) => Ok(()),
        Some(_) => Err("the page has no such heading"),
        None => Err("only Markdown pages have anchors"),
    }
}

/// Returns the path from the root for a relative path on `page`.
fn resolve(page: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(page.to_owned());
    }
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// No line of prose is too wide, unless it cannot be broken anywhere.
pub(crate) fn columns(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for page in tree.files().filter(|file| file.has_extension("md")) {
        for (number, line) in unfenced(&page.text) {
            let columns = line.chars().count();
            if columns > COLUMNS_MAX && is_prose(line) && can_be_broken(line) {
                let message = format!("{columns} columns, {COLUMNS_MAX} is the most: wrap it");
                found.push(Violation::new(&page.path, number, message));
            }
        }
    }
    found
}

/// Whether the line belongs to a paragraph or a list. Headings, rows of tables, HTML and the
/// definitions of links end with their line, so they cannot be wrapped.
fn is_prose(line: &str) -> bool {
    let text = line.trim_start();
    let defines_link = text.starts_with('[') && text.contains("]: ");
    !text.starts_with(['|', '<']) && heading(text).is_none() && !defines_link
}

/// Whether the line has a space between two words that is part of neither a code span nor the
/// target of a link.
fn can_be_broken(line: &str) -> bool {
    let text = without_marker(line);
    let (mut in_code, mut in_target) = (false, false);
    let mut before = ' ';
    for char in text.chars() {
        match char {
            '`' => in_code = !in_code,
            _ if in_code => {}
            '(' if before == ']' => in_target = true,
            ')' => in_target = false,
            ' ' if !in_target => return true,
            _ => {}
        }
        before = char;
    }
    false
}

/// The text of a line, without the mark that makes it an item of a list or a quotation.
fn without_marker(line: &str) -> &str {
    let text = line.trim_start();
    match text.split_once(' ') {
        Some(("-" | "*" | "+" | ">", rest)) => rest.trim_start(),
        Some((mark, rest)) if mark.trim_end_matches('.').parse::<u32>().is_ok() => {
            rest.trim_start()
        }
        _ => text,
    }
}

/// The lines of a page outside of fenced blocks, with their numbers and without code spans.
fn prose(text: &str) -> Vec<(usize, String)> {
    let without_code = |line: &str| {
        let outside = line.split('`').enumerate().filter(|(part, _)| part % 2 == 0);
        outside.map(|(_, span)| span).collect::<Vec<_>>().join("`")
    };
    unfenced(text).into_iter().map(|(number, line)| (number, without_code(line))).collect()
}

/// The lines of a page outside of fenced blocks, with their numbers.
fn unfenced(text: &str) -> Vec<(usize, &str)> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => lines.push((index + 1, line)),
            _ => {}
        }
    }
    lines
}

/// The targets of `[text](target)` and of `[name]: target`, with their lines.
fn links_of(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        let mut rest = line.as_str();
        while let Some((_, behind)) = rest.split_once("](") {
            let (inside, after) = behind.split_once(')').unwrap_or((behind, ""));
            links.extend(target(inside).map(|target| (number, target)));
            rest = after;
        }
        if line.starts_with('[')
            && let Some((_, definition)) = line.split_once("]: ")
        {
            links.extend(target(definition).map(|target| (number, target)));
        }
    }
    links
}

/// The target without its title.
fn target(inside: &str) -> Option<String> {
    let first = inside.split_whitespace().next()?;
    Some(first.trim_start_matches('<').trim_end_matches('>').replace("%20", " "))
}

/// The anchors of a page, made from its headings in the way of the usual code hosts.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for heading in headings(text) {
        let kept = heading.trim().to_lowercase();
        let kept = kept.chars().filter(|char| char.is_alphanumeric() || " -_".contains(*char));
        let slug: String = kept.map(|char| if char == ' ' { '-' } else { char }).collect();
        let numbered = (1..).map(|number: u32| format!("{slug}-{number}"));
        let mut candidates = std::iter::once(slug.clone()).chain(numbered);
        anchors.extend(candidates.find(|candidate| !anchors.contains(candidate)));
    }
    anchors
}

/// The text of each heading, links reduced to their words.
fn headings(text: &str) -> Vec<String> {
    let numbers: BTreeSet<usize> = prose(text).into_iter().map(|(number, _)| number).collect();
    let line_of = |(index, line)| numbers.contains(&(index + 1)).then_some(line);
    let lines = text.lines().enumerate().filter_map(line_of);
    lines.filter_map(heading).collect()
}

fn heading(line: &str) -> Option<String> {
    let body = line.trim_start_matches('#');
    let level = line.len() - body.len();
    if !(1..=6).contains(&level) || !body.starts_with(' ') {
        return None;
    }
    let mut words = String::new();
    let mut rest = body;
    while let Some((before, behind)) = rest.split_once("](") {
        words.push_str(before);
        rest = behind.split_once(')').map_or("", |(_, after)| after);
    }
    words.push_str(rest);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::{anchors, columns, links};
    use crate::tidy::samples::{check as check_samples, check_repository, check_tree};

    /// Checks a page next to a tree that holds `docs/b.md` with two headings, and a source.
    #[track_caller]
    fn check(text: &str, count: usize) {
        let other = ("docs/b.md", "# The page\n\n## What, and why?\n");
        let source = ("crates/a/src/lib.rs", "//! A source.\n");
        check_tree(links, &[("docs/a.md", text), other, source], count);
    }

    #[test]
    fn links_lead_to_files_that_are_there() {
        check("[b](b.md) and ![c](../crates/a/src/lib.rs \"title\")\n", 0);
        check("[b]: b.md#the-page\n", 0);
        check("[a directory](../crates/a/) and [the root](..)\n", 0);
        check("[b](https://example.org/#a) [c](mailto:a@example.org)\n", 0);
        check("`[b](c.md)`\n\n```\n[b](c.md)\n```\n", 0);
        check("[b](c.md)\n", 1);
        check("[b](b.md), [c](c.md), [d](d.md)\n", 2);
        check("[b]: c.md\n", 1);
        check("[b](../../b.md)\n", 1);
        check("[b](/docs/b.md)\n", 1);
        check_repository(links);
    }

    #[test]
    fn anchors_lead_to_headings_that_are_there() {
        check("# One\n\n[a](#one) [b](b.md#what-and-why)\n", 0);
        check("[a](#one)\n", 1);
        check("[b](b.md#what-and-why?)\n", 1);
        check("[b](../crates/a/src/lib.rs#L1)\n", 1);
        check("```\n# One\n```\n[a](#one)\n", 1);
    }

    #[test]
    fn anchors_are_made_as_code_hosts_make_them() {
        let text = "# A `b_c`, [d](e.md)!\n## Same\n## Same\n#hash\n";
        let expected = ["a-b_c-d", "same", "same-1"].map(str::to_owned);
        assert_eq!(anchors(text), expected.into());
    }

    #[test]
    fn prose_is_narrow_enough() {
        let wide = "word ".repeat(21);
        let wide = wide.trim_end();
        let item = format!("1. {wide}\n");
        let word = "x".repeat(101);
        let code = format!("- `{wide}`\n");
        let link = format!("[b](https://example.org/{word})\n");
        let tail = format!("`{wide}` ends\n");
        let words = format!("[{wide}](b.md)\n");
        let row = format!("| {wide} |\n");
        let title = format!("## {wide}\n");
        let fence = format!("```\n{wide}\n```\n");
        let definition = format!("[b]: https://example.org/{word} \"{wide}\"\n");
        let narrow = "ü".repeat(49) + " " + &"ü".repeat(50);
        check_samples(
            columns,
            &[("a.md", wide), ("a.md", &item), ("a.md", &tail), ("a.md", &words)],
            &[
                ("a.md", &narrow),
                ("a.md", &word),
                ("a.md", &code),
                ("a.md", &link),
                ("a.md", &row),
                ("a.md", &title),
                ("a.md", &fence),
                ("a.md", &definition),
                ("a.txt", wide),
            ],
        );
        check_repository(columns);
    }
}
