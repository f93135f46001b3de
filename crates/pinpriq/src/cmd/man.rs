//! `pinpriq man`: the manual pages, made from the definition of the command line.

use std::path::Path;

use clap::CommandFactory as _;

use crate::args::{Cli, ManArgs};
use crate::exit::{Exit, Failure};
use crate::output::print_text;

/// Prints the page of the program, or writes that and the page of each command.
pub(crate) fn man(arguments: &ManArgs) -> Result<Exit, Failure> {
    if let Some(dir) = &arguments.dir {
        write_all(dir).map_err(|error| {
            let dir = dir.display();
            Failure::on_the_way(format!("the pages cannot be written to {dir}: {error}"))
        })?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command())
            .render(&mut page)
            .map_err(|error| Failure::on_the_way(format!("no page: {error}")))?;
        print_text(&page)?;
    }
    Ok(Exit::Done)
}

#[expect(clippy::disallowed_methods, reason = "manual pages are no part of a data directory")]
fn write_all(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    clap_mangen::generate_to(Cli::command(), dir)
}
