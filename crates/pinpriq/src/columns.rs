//! Tables for people, with columns that begin below each other.
//!
//! It knows no terminal: lines are as wide as what is in them.

/// The names of columns, as the first line of a table.
pub(crate) fn heads(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Lines of cells, below each other. What ends a line is not filled up.
pub(crate) fn table(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    lines.iter().fold(String::new(), |text, line| {
        let cells = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        text + cells.collect::<Vec<_>>().join("  ").trim_end() + "\n"
    })
}
