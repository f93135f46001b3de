//! `pinpriq ping`: whether a server answers, for those who watch over it.
//!
//! No user is needed for that. What the server does beyond answering is not looked at.

use crate::args::tasks::ClientArgs;
use crate::exit::{Exit, Failure};
use crate::printer::{Printer, shown};
use crate::resp::Client;

/// Asks once, and prints the answer.
pub(crate) fn ping(client: &ClientArgs) -> Result<Exit, Failure> {
    let answer = Client::ping(&client.endpoint()?)?;
    let mut printer = Printer::to_stdout(client.json);
    printer.fields(&[shown("answer", &answer)])?;
    printer.flush()?;
    Ok(Exit::Done)
}
