//! Counts what the random runs have reached.

use std::collections::BTreeMap;

use pinpriq_engine::command::{Command, Held, HeldBy};
use pinpriq_engine::reply::{Output, RefusalKind, Reply};
use pinpriq_engine::task::{ClientId, Receipt, State, StateKind, TaskRecord};
use pinpriq_engine::transition_listing;

use crate::model::Model;

/// How often each thing was seen.
#[derive(Debug, Default)]
pub(super) struct Census {
    cells: BTreeMap<(String, &'static str), u64>,
    refusals: BTreeMap<RefusalKind, u64>,
    outcomes: BTreeMap<(&'static str, &'static str), u64>,
    deliveries: u64,
    restarts: u64,
    compactions: u64,
}

impl Census {
    /// Counts the cells of the table that a command is about to try.
    pub(super) fn note_command(&mut self, model: &Model, client: ClientId, command: &Command<'_>) {
        let by_id = |queue: &[u8], id: &[u8]| model.find(queue, id).map(|at| &model.tasks[at]);
        match command {
            Command::Put(put) => {
                if let Some(id) = put.id {
                    self.cell("put with that id", standing(by_id(put.queue, id), client));
                }
            }
            Command::PutBack(records) => {
                for record in records {
                    let task = model.tasks.iter().find(|task| task.number == record.number);
                    self.cell("put back", standing(task, client));
                }
            }
            Command::Ack(ack) => self.note_held(model, client, "ack", ack.held),
            Command::AckAll { queue, receipts } => {
                for receipt in *receipts {
                    let held = Held { queue, by: HeldBy::Receipt(*receipt) };
                    self.note_held(model, client, "ack", held);
                }
            }
            Command::Release(release) => self.note_held(model, client, "release", release.held),
            Command::Bury { held, .. } => self.note_held(model, client, "bury", *held),
            Command::Touch { held, .. } => self.note_held(model, client, "touch", *held),
            Command::Kill { queue, ids } => {
                for id in *ids {
                    self.cell("kill", standing(by_id(queue, id), client));
                }
            }
            Command::Await { queue, id, .. } => {
                self.cell("await", standing(by_id(queue, id), client));
            }
            Command::Update(update) => {
                self.cell("update", standing(by_id(update.queue, update.id), client));
            }
            Command::Dig(transfer)
            | Command::Snatch(transfer)
            | Command::Restart(transfer)
            | Command::Switch { transfer, .. } => {
                let row = match command {
                    Command::Dig(_) => "dig",
                    Command::Snatch(_) => "snatch",
                    Command::Restart(_) => "restart",
                    _ => "switch",
                };
                self.cell(row, standing(by_id(transfer.queue, transfer.id), client));
            }
            _ => {}
        }
    }

    fn note_held(&mut self, model: &Model, client: ClientId, word: &str, held: Held<'_>) {
        let (form, task) = match held.by {
            HeldBy::Id(id) => ("id", model.find(held.queue, id).map(|at| &model.tasks[at])),
            HeldBy::Receipt(Receipt { number, grant }) => {
                let task = model.tasks.iter().find(|task| task.number == number);
                let receipt = Some(Receipt { number, grant });
                let is_current = task
                    .is_some_and(|task| task.receipt() == receipt && *task.queue == *held.queue);
                (if is_current { "receipt" } else { "another receipt" }, task)
            }
        };
        self.cell(&format!("{word} by {form}"), standing(task, client));
    }

    fn cell(&mut self, row: &str, standing: &'static str) {
        *self.cells.entry((row.to_owned(), standing)).or_default() += 1;
    }

    /// Counts what came out.
    pub(super) fn note_output(&mut self, output: &Output) {
        let (tasks, popped) = match output {
            Output::Delivery { tasks, popped, .. } => {
                self.deliveries += 1;
                (tasks, *popped)
            }
            Output::Reply { reply, .. } => match reply {
                Reply::Tasks { tasks, popped } => (tasks, *popped),
                Reply::Refused(refusal) => {
                    *self.refusals.entry(refusal.kind).or_default() += 1;
                    return;
                }
                Reply::PutOutcome(_, outcome) => {
                    *self.outcomes.entry(("put", outcome.word())).or_default() += 1;
                    return;
                }
                Reply::Outcome(outcome, _) => {
                    *self.outcomes.entry(("await", outcome.word())).or_default() += 1;
                    return;
                }
                _ => return,
            },
        };
        for _ in tasks {
            self.cell(if popped { "pop" } else { "take" }, "R");
        }
    }

    pub(super) const fn note_restart(&mut self) {
        self.restarts += 1;
    }

    pub(super) const fn note_compaction(&mut self) {
        self.compactions += 1;
    }

    /// Counts what time and the ends of connections did.
    pub(super) fn note_happened(&mut self, model: &Model) {
        for ((row, kind), times) in &model.happened {
            for standing in standings_of(*kind) {
                *self.cells.entry(((*row).to_owned(), standing)).or_default() += times;
            }
        }
    }

    /// Everything that can come up has come up.
    pub(super) fn assert_complete(&self) {
        let mut missing = Vec::new();
        let listing = transition_listing();
        let head: Vec<&str> = cells(listing.lines().next().unwrap_or_default());
        for line in listing.lines().skip(2) {
            let row = cells(line);
            for (cell, standing) in row.iter().zip(&head).skip(1) {
                let known = self.cells.keys().any(|(name, at)| name == row[0] && at == standing);
                // Nothing happens to a buried task when its TTL passes, so nobody can count it.
                let is_silent = row[0] == "its deadline passes" && *cell == "=";
                if *cell != "—" && !is_silent && !known {
                    missing.push(format!("{} in {standing}", row[0]));
                }
            }
        }
        for kind in RefusalKind::ALL {
            // The store is not the engine's business.
            if kind != RefusalKind::Store && !self.refusals.contains_key(&kind) {
                missing.push(kind.word().to_owned());
            }
        }
        for request in ["put", "await"] {
            for outcome in ["acked", "buried", "expired", "killed", "timeout"] {
                if !self.outcomes.contains_key(&(request, outcome)) {
                    missing.push(format!("{request} {outcome}"));
                }
            }
        }
        assert!(missing.is_empty(), "never seen: {missing:?}\nseen: {self:#?}");
        assert!(self.deliveries > 0 && self.restarts > 0 && self.compactions > 0, "{self:#?}");
    }
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// The column of a task for a client.
fn standing(task: Option<&TaskRecord>, client: ClientId) -> &'static str {
    match task.map(|task| &task.state) {
        None => "X",
        Some(State::Taken(lease)) if lease.holder == Some(client) => "T, held here",
        Some(State::Taken(_)) => "T, held elsewhere",
        Some(other) => standings_of(other.kind())[0],
    }
}

/// The columns of a state, seen by everybody.
fn standings_of(kind: StateKind) -> &'static [&'static str] {
    match kind {
        StateKind::Ready => &["R"],
        StateKind::Taken => &["T, held here", "T, held elsewhere"],
        StateKind::Waiting => &["W"],
        StateKind::Buried => &["B"],
        StateKind::Zombie => &["Z"],
        StateKind::Done => &["D"],
    }
}
