//! The tables of commands in `docs/protocol/resp.md` are printed from the table that drives the
//! parser. `UPDATE_EXPECT=1` prints them again.

use std::path::Path;

const BEGIN: &str = "<!-- commands:begin -->\n";
const END: &str = "<!-- commands:end -->";

#[test]
#[expect(clippy::disallowed_methods, reason = "rewrites a page of the repository when asked to")]
fn command_tables_on_the_page_are_those_of_the_parser() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol/resp.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the tables");
    let (current, after) = rest.split_once(END).expect("the place for the tables ends");
    let tables = pinpriq_server::command_tables();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let page = format!("{before}{BEGIN}{tables}{END}{after}");
        std::fs::write(&path, page).expect("the page can be written");
        return;
    }
    assert_eq!(current, tables, "run the test with UPDATE_EXPECT=1 to print the tables again");
}
