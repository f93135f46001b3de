//! Requests of clients: their words, and what they are about.

use pinpriq_proto::wire::resp::Words;

use super::book::{Only, Pages, Terms};

/// What a request is about: the number of a task or a batch.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// `PUT` of a task.
    Put(u64),
    /// `BATCH OPEN`.
    Open(u64),
    /// `BATCH CLOSE`.
    Close(u64),
    /// `BATCH CANCEL`.
    Cancel(u64),
    /// `BATCH SHOW`.
    Show(u64),
    /// `BATCH AWAIT`.
    Await(u64),
    /// `ACK` of a task.
    Ack(u64),
    /// `ACK` of several tasks.
    Acks(Vec<u64>),
    Fail(u64),
    Release(u64),
    Bury(u64),
    Kill(u64),
    /// `CANCEL` of a task.
    Withdraw(u64),
    /// `PLOW` of a queue.
    Plow,
    /// A transaction.
    All(Vec<Self>),
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    /// What is sent: one command, or all of a transaction. Each is answered.
    pub(super) words: Vec<Words>,
    pub(super) what: What,
}

impl Ask {
    pub(super) fn of(words: Words, what: What) -> Self {
        Self { words: vec![words], what }
    }

    /// One about a batch, perhaps with an option.
    pub(super) fn about_batch(pages: &Pages, what: What, option: Option<(&str, u64)>) -> Self {
        let (command, number) = match &what {
            What::Open(number) => ("BATCH OPEN", *number),
            What::Close(number) => ("BATCH CLOSE", *number),
            What::Cancel(number) => ("BATCH CANCEL", *number),
            What::Show(number) => ("BATCH SHOW", *number),
            What::Await(number) => ("BATCH AWAIT", *number),
            other => unreachable!("{other:?} is about no batch"),
        };
        let words = Words::new(command).bytes(pages.name_of(number));
        let words = match option {
            Some((name, value)) => words.option(name, Some(value)),
            None => words,
        };
        Self::of(words, what)
    }

    /// The put of a task that is not known yet.
    pub(super) fn put(pages: &mut Pages, terms: Terms) -> Self {
        let batch = terms.batch.map(|batch| pages.name_of(batch));
        let after: Vec<String> = terms.after.iter().map(|batch| pages.name_of(*batch)).collect();
        let only = (terms.only != Only::Done).then(|| terms.only.word());
        let (queue, delay_ms) = (terms.queue.name(), terms.delay_ms);
        let (ttl_ms, attempts) = (terms.ttl_ms, terms.attempts);
        let number = pages.begin_task(terms);
        let words = Words::new("PUT").bytes(queue).bytes(number.to_string());
        let words = words.option("DELAY", delay_ms).option("TTL", ttl_ms);
        let words = words.option("ATTEMPTS", attempts).given("BATCH", batch);
        let count = (!after.is_empty()).then_some(after.len());
        let words = words.option("AFTER", count).all(after).option("IF", only);
        Self::of(words, What::Put(number))
    }

    /// Several that are carried out together or not at all.
    pub(super) fn all(asks: Vec<Self>) -> Self {
        let mut words = vec![Words::new("MULTI")];
        let mut parts = Vec::new();
        for ask in asks {
            words.extend(ask.words);
            parts.push(ask.what);
        }
        words.push(Words::new("EXEC"));
        Self { words, what: What::All(parts) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Queue};
    use super::{Ask, Only, Pages, Terms, What, Words};

    fn lines(ask: &Ask) -> Vec<String> {
        let line = |words: &Words| String::from_utf8(words.as_slice().join(&b' ')).unwrap();
        ask.words.iter().map(line).collect()
    }

    #[test]
    fn puts_name_their_batches() {
        let mut pages = Pages::default();
        let mut batch = || pages.begin_batch("left", false);
        let (first, second) = (batch(), batch());
        let queue = Queue { family: "left", kind: Kind::Then };
        let terms = Terms {
            after: vec![first],
            only: Only::Acked,
            delay_ms: Some(5),
            ..Terms::of_child(queue, second)
        };
        let put = Ask::put(&mut pages, terms);
        let line = "PUT {left}-then 3 DELAY 5 BATCH {left}-b2 AFTER 1 {left}-b1 IF acked";
        assert_eq!(lines(&put), [line]);
        let close = Ask::about_batch(&pages, What::Close(first), None);
        let both = Ask::all(vec![put, close]);
        assert_eq!(lines(&both), ["MULTI", line, "BATCH CLOSE {left}-b1", "EXEC"]);
    }
}
