//! The ids and receipts that clients were given, none of which may be given again.
//!
//! The checker looks for receipts that are given twice in a history. Here the history of a restored
//! server is compared with all that there was, also after the moment that was restored.

use std::collections::HashSet;

use pinpriq_testing::history::{Outcome, Record};

/// All that a history has given.
#[derive(Default)]
pub(crate) struct Given {
    ids: HashSet<String>,
    receipts: HashSet<String>,
}

impl Given {
    pub(crate) fn of(records: &[Record]) -> Self {
        let mut given = Self::default();
        for outcome in outcomes(records) {
            given.note(outcome);
        }
        given
    }

    fn note(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Put { id } => {
                self.ids.insert(id.clone());
            }
            Outcome::Tasks(tasks) => {
                for task in tasks {
                    self.ids.insert(task.id.clone());
                    self.receipts.extend(task.receipt.clone());
                }
            }
            Outcome::Transaction(parts) => parts.iter().for_each(|part| self.note(part)),
            _ => {}
        }
    }

    /// The first id or receipt that these records give once more. A task that was restored keeps
    /// its id, so only ids of new tasks count.
    pub(crate) fn again<'a>(&self, later: &'a [Record]) -> Option<&'a str> {
        outcomes(later).find_map(|outcome| match outcome {
            Outcome::Put { id } => Some(id.as_str()).filter(|id| self.ids.contains(*id)),
            Outcome::Tasks(tasks) => {
                let mut receipts = tasks.iter().filter_map(|task| task.receipt.as_deref());
                receipts.find(|receipt| self.receipts.contains(*receipt))
            }
            _ => None,
        })
    }
}

fn outcomes(records: &[Record]) -> impl Iterator<Item = &Outcome> {
    records.iter().filter_map(|record| match record {
        Record::Answered { outcome, .. } => Some(outcome),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use pinpriq_testing::history::{Delivery, Outcome, Record};

    use super::Given;

    fn answers(outcomes: Vec<Outcome>) -> Vec<Record> {
        let answer = |outcome| Record::Answered { at_us: 0, call: 0, outcome };
        outcomes.into_iter().map(answer).collect()
    }

    fn put(id: &str) -> Outcome {
        Outcome::Put { id: id.to_owned() }
    }

    fn came(id: &str, receipt: &str) -> Outcome {
        let (id, receipt) = (id.to_owned(), Some(receipt.to_owned()));
        Outcome::Tasks(vec![Delivery { id, receipt, payload: String::new() }])
    }

    #[test]
    fn new_ids_and_all_receipts_must_be_new() {
        let given = Given::of(&answers(vec![
            Outcome::Transaction(vec![put("1"), Outcome::Done]),
            came("2", "2-1-1"),
        ]));
        assert_eq!(given.again(&answers(vec![put("3"), came("1", "1-9-1")])), None);
        for (again, wanted) in [(put("1"), "1"), (put("2"), "2"), (came("2", "2-1-1"), "2-1-1")] {
            assert_eq!(given.again(&answers(vec![again])), Some(wanted));
        }
    }
}
