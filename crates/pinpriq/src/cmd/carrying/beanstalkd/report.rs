//! What came of a move: a table with a line for each tube, and sentences about what is left.

use std::collections::BTreeMap;

use super::source::{State, TubeFigures};
use crate::args::carrying::ImportArgs;
use crate::columns::aligned;
use crate::exit::{Exit, Failure};
use crate::logging::tell;
use crate::output::print_text;

/// What came of a tube.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// How many jobs were moved of each state.
    pub(super) moved: [u64; 3],
    /// How many jobs are in beanstalkd, if that was asked.
    pub(super) left: Option<u64>,
    /// How many of them are reserved.
    pub(super) reserved: u64,
    /// For how many seconds the tube was paused when it was first looked at.
    paused_s: u64,
}

/// What came of everything.
#[derive(Debug, Default)]
pub(super) struct Tally {
    rows: BTreeMap<String, Row>,
    /// How many jobs were taken there while they were put here.
    pub(super) taken: u64,
    /// How many of these could no longer be withdrawn here.
    pub(super) doubled: u64,
    /// How many jobs may be on both sides, since a connection broke.
    pub(super) unsure: u64,
    /// Whether it was counted what is left.
    pub(super) is_counted: bool,
}

impl Tally {
    /// The row of a tube, which begins with these figures.
    pub(super) fn row(&mut self, tube: &str, figures: &TubeFigures) -> &mut Row {
        let first = Row { paused_s: figures.paused_s, ..Row::default() };
        self.rows.entry(tube.to_owned()).or_insert(first)
    }

    /// The tubes that have a row.
    pub(super) fn tubes(&self) -> impl Iterator<Item = String> {
        self.rows.keys().cloned()
    }

    /// Counts jobs that were moved.
    pub(super) fn add(&mut self, tube: &str, state: State, jobs: u64) {
        let row = self.rows.entry(tube.to_owned()).or_default();
        if let Some(moved) = row.moved.get_mut(state as usize) {
            *moved += jobs;
        }
    }

    /// How many jobs were moved.
    pub(super) fn moved(&self) -> u64 {
        self.rows.values().flat_map(|row| row.moved).sum()
    }

    /// Prints the table, tells what there is to know, and returns how the command ends.
    pub(super) fn tell(
        &self,
        outcome: Result<(), Failure>,
        arguments: &ImportArgs,
    ) -> Result<Exit, Failure> {
        let is_shown = |(tube, row): &(&String, &Row)| {
            arguments.tubes.contains(*tube) || row.moved != [0; 3] || row.left.unwrap_or(0) > 0
        };
        let rows: Vec<_> = self.rows.iter().filter(is_shown).collect();
        print_text(self.table(&rows).as_bytes())?;
        for (tube, row) in rows.iter().filter(|(_, row)| row.paused_s > 0) {
            let seconds = row.paused_s;
            tell(format!(
                "the tube {tube} is paused in beanstalkd for another {seconds} s, and the queue is \
                 not: `pinpriq queue pause '{tube}' out --for {seconds}s` does that"
            ));
        }
        if self.taken > 0 {
            let (taken, doubled) = (self.taken, self.doubled);
            tell(format!(
                "jobs that somebody else took in beanstalkd while they came in: {taken}. They went \
                 out again, except for {doubled}"
            ));
        }
        if self.unsure > 0 {
            let unsure = self.unsure;
            tell(format!(
                "jobs that may be on both sides now: {unsure}. The next import puts those that are \
                 in beanstalkd a second time"
            ));
        }
        outcome?;
        let reserved: u64 = self.rows.values().map(|row| row.reserved).sum();
        let left: u64 = self.rows.values().filter_map(|row| row.left).sum();
        if left == 0 {
            return Ok(Exit::Done);
        }
        let stay = if arguments.dry_run { "would stay" } else { "stay" };
        Err(Failure::on_the_way(if reserved == left {
            format!(
                "jobs that workers have reserved {stay} in beanstalkd: {left}. Run the import \
                 again when they are finished"
            )
        } else {
            let come = left - reserved;
            format!(
                "jobs {stay} in beanstalkd: {reserved} that workers have reserved, and {come} that \
                 came meanwhile. Stop the producers there, and run the import again"
            )
        }))
    }

    /// The table of these tubes, with the sums in its last line.
    fn table(&self, rows: &[(&String, &Row)]) -> String {
        let line = |name: &str, moved: [u64; 3], left: Option<u64>| {
            let left = left.map_or_else(|| "-".to_owned(), |left| left.to_string());
            let moved = moved.map(|jobs| jobs.to_string());
            [name.to_owned()].into_iter().chain(moved).chain([left]).collect::<Vec<_>>()
        };
        let heads = ["tube"].into_iter().chain(State::ALL.map(State::name)).chain(["left"]);
        let mut lines = vec![heads.map(str::to_owned).collect::<Vec<_>>()];
        lines.extend(rows.iter().map(|(tube, row)| line(tube, row.moved, row.left)));
        let mut sums = [0; 3];
        for (_, row) in rows {
            sums.iter_mut().zip(row.moved).for_each(|(sum, moved)| *sum += moved);
        }
        let left = self.rows.values().filter_map(|row| row.left).sum();
        lines.push(line("(all)", sums, self.is_counted.then_some(left)));
        aligned(&lines)
    }
}
