//! The tables of commands and settings in `docs/protocol/resp.md` are printed from the tables that
//! drive the parser. `UPDATE_EXPECT=1` prints them again.

use std::path::Path;

use pinpriq_server::{command_tables, settings_table};

/// What is printed on the page, and between which marks.
fn tables() -> [(&'static str, String); 2] {
    [("commands", command_tables()), ("settings", settings_table())]
}

#[test]
#[expect(clippy::disallowed_methods, reason = "rewrites a page of the repository when asked to")]
fn tables_on_the_page_are_those_of_the_parser() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol/resp.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let mut printed = page.clone();
    for (name, table) in tables() {
        let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->"));
        let (before, rest) = printed.split_once(&begin).expect("the page has a place for it");
        let (_, after) = rest.split_once(&end).expect("the place ends");
        printed = format!("{before}{begin}{table}{end}{after}");
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, printed).expect("the page can be written");
        return;
    }
    for (line, (current, wanted)) in (1..).zip(page.lines().zip(printed.lines())) {
        assert_eq!(current, wanted, "line {line}: UPDATE_EXPECT=1 prints the tables again");
    }
    assert_eq!(page, printed);
}
