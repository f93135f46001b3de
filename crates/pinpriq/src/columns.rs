//! Tables for people, with columns that begin or end below each other.
//!
//! It knows no terminal: lines are as wide as what is in them.

/// The most letters of a name in a table whose lines are filled up. The rest of the table would be
/// out of sight behind a longer one.
const NAME_LETTERS_MAX: usize = 80;

/// The names of columns, as the first line of a table.
pub(crate) fn heads(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Lines of cells, below each other. What ends a line is not filled up.
pub(crate) fn table(lines: &[Vec<String>]) -> String {
    let widths = widths(lines);
    lines.iter().fold(String::new(), |text, line| {
        let cells = line.iter().zip(&widths).map(|(cell, &width)| cell.clone() + &gap(cell, width));
        text + cells.collect::<Vec<_>>().join("  ").trim_end() + "\n"
    })
}

/// Lines with columns of equal width: the first on the left, the others on the right.
pub(crate) fn aligned(lines: &[Vec<String>]) -> String {
    let widths = widths(lines);
    lines.iter().fold(String::new(), |text, line| {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            let gap = gap(cell, width);
            if column == 0 { cell.clone() + &gap } else { gap + cell }
        });
        text + &cells.collect::<Vec<_>>().join("  ") + "\n"
    })
}

/// A name that may be too long for a table, whose middle is left out then.
pub(crate) fn shortened(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= NAME_LETTERS_MAX {
        return name.to_owned();
    }
    let kept = NAME_LETTERS_MAX / 2;
    let start = name.chars().take(kept);
    let end = name.chars().skip(letters - (NAME_LETTERS_MAX - kept - 1));
    start.chain(['…']).chain(end).collect()
}

fn widths(lines: &[Vec<String>]) -> Vec<usize> {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    (0..columns).map(width).collect()
}

/// What fills a cell up. The width of a format has a bound, which the name of a queue can exceed.
fn gap(cell: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(cell.chars().count()))
}

#[cfg(test)]
mod tests {
    use super::{NAME_LETTERS_MAX, aligned, heads, shortened, table};

    #[test]
    fn columns_are_below_each_other() {
        let lines = [heads(&["name", "n", "x"]), heads(&["ä", "10", ""])];
        assert_eq!(table(&lines), "name  n   x\nä     10\n");
        assert_eq!(aligned(&lines), "name   n  x\nä     10   \n");
    }

    #[test]
    fn a_cell_of_any_length_is_no_trouble() {
        let long = "x".repeat(70_000);
        let lines = [heads(&["name", "n"]), vec![long.clone(), "1".to_owned()]];
        assert!(table(&lines).contains(&format!("{long}  1\n")));
        assert!(aligned(&lines).ends_with(&format!("{long}  1\n")));
    }

    #[test]
    fn a_long_name_loses_its_middle() {
        assert_eq!(shortened(&"ä".repeat(NAME_LETTERS_MAX)), "ä".repeat(NAME_LETTERS_MAX));
        let name = format!("{}-{}", "a".repeat(40_000), "b".repeat(40_000));
        assert_eq!(shortened(&name), format!("{}…{}", "a".repeat(40), "b".repeat(39)));
    }
}
