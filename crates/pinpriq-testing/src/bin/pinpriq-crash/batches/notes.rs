//! What requests and their answers say about tasks and batches.
//!
//! A request without an answer is never noted again: what it may have done stays possible. So does
//! that of a request of which a cluster does not know what has become of it.

use pinpriq_proto::wire::resp::Value;

use super::Queue;
use super::asks::What;
use super::book::{End, Known, Pages};
use super::judge::Shown;
use super::talk::{Excuse, text};
use crate::load::bit_of_shard;

impl Pages {
    /// Notes that a request is about to be sent.
    pub(super) fn note_ask(&mut self, what: &What) {
        match what {
            What::Close(number) => {
                let batch = self.batch_mut(*number);
                batch.closed = batch.closed.max(Known::Maybe);
            }
            What::Cancel(number) => {
                let batch = self.batch_mut(*number);
                batch.closed = batch.closed.max(Known::Maybe);
                batch.cancelled = batch.cancelled.max(Known::Maybe);
            }
            What::Ack(number) => self.change(*number, |task| task.acks += 1),
            What::Acks(numbers) => {
                for number in numbers {
                    self.change(*number, |task| task.acks += 1);
                }
            }
            What::Kill(number) | What::Withdraw(number) => {
                self.change(*number, |task| task.losses += 1);
            }
            What::All(parts) => parts.iter().for_each(|part| self.note_ask(part)),
            // A task was noted when it was made. The others end none that cannot end without them.
            What::Put(_)
            | What::Open(_)
            | What::Show(_)
            | What::Await(_)
            | What::Fail(_)
            | What::Release(_)
            | What::Bury(_)
            | What::Plow => {}
        }
    }

    /// Notes the replies to all that a request has sent.
    pub(super) fn note_answer(&mut self, what: &What, replies: &[Value]) {
        let Some((reply, kept)) = replies.split_last() else { return };
        let is_kept =
            |reply: &&Value| matches!(reply, Value::Simple(it) if it == "OK" || it == "QUEUED");
        if let Some(other) = kept.iter().find(|reply| !is_kept(reply)) {
            self.fail(format!("a part of {what:?} was answered {other:?}"));
        }
        match self.excuse(reply) {
            None => self.note_reply(what, reply),
            Some(excuse) => {
                self.doubt(what);
                if excuse == Excuse::Refused {
                    self.note_refused(what);
                }
            }
        }
    }

    /// What a cluster says of a request that it has not carried out for certain, if this is the
    /// reply. On one server there is no such reply.
    pub(super) fn excuse(&mut self, reply: &Value) -> Option<Excuse> {
        let excuse = Excuse::of(reply).filter(|_| self.plan.is_cluster)?;
        match excuse {
            Excuse::Refused => self.figures.refused += 1,
            Excuse::Unknown => self.figures.unknown += 1,
        }
        Some(excuse)
    }

    /// Notes that a request has perhaps not made the batch that it names.
    fn doubt(&mut self, what: &What) {
        let batch = match what {
            What::Open(number) => Some(*number),
            What::Put(number) => self.tasks[number].terms.batch,
            What::All(parts) => return parts.iter().for_each(|part| self.doubt(part)),
            _ => None,
        };
        if let Some(batch) = batch {
            self.batch_mut(batch).is_doubtful = true;
        }
    }

    /// Whether this reply says that there is no such batch, and that may be.
    fn is_missing(&self, number: u64, reply: &Value) -> bool {
        self.batches[&number].is_doubtful
            && matches!(reply, Value::Error(sentence) if sentence.starts_with("NOTFOUND"))
    }

    fn note_reply(&mut self, what: &What, reply: &Value) {
        match what {
            What::All(parts) => self.note_transaction(what, parts, reply),
            What::Put(number) => self.note_put(*number, reply),
            What::Open(number) | What::Close(number) | What::Cancel(number) => {
                self.note_batch(what, *number, reply);
            }
            What::Show(number) => match Shown::of(reply) {
                Some(shown) => self.compare(*number, &shown),
                None if self.is_missing(*number, reply) => {}
                None => self.note_strange(what, reply),
            },
            What::Await(number) => self.note_await(what, *number, reply),
            What::Ack(number) => self.note_ack(*number, reply),
            What::Acks(numbers) => match reply {
                Value::Array(replies) if replies.len() == numbers.len() => {
                    numbers.iter().zip(replies).for_each(|(it, reply)| self.note_ack(*it, reply));
                }
                _ => self.note_strange(what, reply),
            },
            What::Fail(number)
            | What::Release(number)
            | What::Bury(number)
            | What::Kill(number)
            | What::Withdraw(number) => self.note_turn(what, *number, reply),
            What::Plow if reply.integer().is_some() => {}
            What::Plow => self.note_strange(what, reply),
        }
    }

    fn note_strange(&mut self, what: &What, reply: &Value) {
        self.fail(format!("{what:?} was answered {reply:?}"));
    }

    /// Notes that a request was refused, so that nothing has happened.
    fn note_refused(&mut self, what: &What) {
        match what {
            What::Put(number) => self.change(*number, |task| task.put = Known::No),
            What::Ack(number) => self.change(*number, |task| task.acks -= 1),
            What::Acks(numbers) => {
                for number in numbers {
                    self.change(*number, |task| task.acks -= 1);
                }
            }
            What::Kill(number) | What::Withdraw(number) => {
                self.change(*number, |task| task.losses -= 1);
            }
            What::All(parts) => parts.iter().for_each(|part| self.note_refused(part)),
            _ => {}
        }
    }

    fn note_transaction(&mut self, what: &What, parts: &[What], reply: &Value) {
        let finishes = parts.iter().any(|part| matches!(part, What::Ack(_)));
        match reply {
            Value::Array(replies) if replies.len() == parts.len() => {
                self.figures.joined += u64::from(finishes);
                for (part, reply) in parts.iter().zip(replies) {
                    self.note_reply(part, reply);
                }
            }
            Value::Error(sentence) => {
                // Behind the position is the refusal of that part. The lease may be over, and so
                // may the batch be then.
                let word = sentence.split(' ').nth(2).unwrap_or_default();
                if !(finishes && ["STALE", "WRONGSTATE"].contains(&word)) {
                    self.note_strange(what, reply);
                }
                self.note_refused(what);
            }
            _ => self.note_strange(what, reply),
        }
    }

    fn note_put(&mut self, number: u64, reply: &Value) {
        let task = &self.tasks[&number];
        let since = task.since;
        let batch = task.terms.batch.map(|batch| &self.batches[&batch]);
        let takes_no_more =
            batch.is_some_and(|batch| batch.closed > Known::No || batch.may_be_given_up);
        let was_done = batch.and_then(|batch| batch.done_at).is_some_and(|at| at < since);
        let is_missing = task.terms.after.iter().any(|batch| self.is_missing(*batch, reply));
        match reply {
            Value::Bulk(id) => {
                self.shards |= bit_of_shard(&String::from_utf8_lossy(id));
                self.note_there(number);
                if was_done {
                    self.fail(format!("the task {number} was put into a batch that was done"));
                }
            }
            Value::Error(sentence) if sentence.starts_with("WRONGSTATE") && takes_no_more => {
                self.note_refused(&What::Put(number));
            }
            _ if is_missing => {
                // So is the batch that it would have made.
                self.doubt(&What::Put(number));
                self.note_refused(&What::Put(number));
            }
            _ => {
                self.note_strange(&What::Put(number), reply);
                self.note_refused(&What::Put(number));
            }
        }
    }

    /// Notes that a task was put, and so that the batches are there which it names.
    fn note_there(&mut self, number: u64) {
        self.change(number, |task| task.put = Known::Yes);
        let terms = &self.tasks[&number].terms;
        for batch in terms.batch.iter().chain(&terms.after) {
            if let Some(batch) = self.batches.get_mut(batch) {
                batch.there = Known::Yes;
            }
        }
    }

    fn note_batch(&mut self, what: &What, number: u64, reply: &Value) {
        let batch = self.batch_mut(number);
        match (what, reply) {
            (What::Open(_), Value::Simple(_)) => batch.there = Known::Yes,
            (What::Close(_) | What::Cancel(_), Value::Integer(_)) => {
                (batch.there, batch.closed) = (Known::Yes, Known::Yes);
            }
            (What::Close(_) | What::Cancel(_), Value::Error(sentence))
                if sentence.starts_with("NOTFOUND")
                    && (batch.there < Known::Yes || batch.is_doubtful) => {}
            _ => self.note_strange(what, reply),
        }
    }

    fn note_await(&mut self, what: &What, number: u64, reply: &Value) {
        let both = reply.elements().and_then(|parts| match parts {
            [outcome, shown] => text(outcome).zip(Shown::of(shown)),
            _ => None,
        });
        match both {
            Some((outcome, shown)) if (outcome == "done") == shown.is_done() => {
                self.compare(number, &shown);
            }
            None if self.is_missing(number, reply) => {}
            _ => self.note_strange(what, reply),
        }
    }

    fn note_ack(&mut self, number: u64, reply: &Value) {
        match reply {
            Value::Simple(word) if word == "OK" => {
                self.end(number, true);
                self.change(number, |task| task.acks -= 1);
            }
            Value::Error(sentence) if sentence.starts_with("STALE") => {
                self.note_refused(&What::Ack(number));
            }
            _ => self.note_strange(&What::Ack(number), reply),
        }
    }

    /// Notes what has become of a task that was given back, killed or cancelled.
    fn note_turn(&mut self, what: &What, number: u64, reply: &Value) {
        let told = match reply {
            Value::Integer(count) => count.to_string(),
            Value::Error(sentence) => sentence.split(' ').next().unwrap_or_default().to_owned(),
            other => text(other).unwrap_or_default(),
        };
        match (what, told.as_str()) {
            (What::Kill(_), "1") | (What::Fail(_) | What::Release(_) | What::Withdraw(_), "X") => {
                self.end(number, false);
            }
            (What::Kill(_), "0") | (What::Withdraw(_), "NOTFOUND") => self.note_refused(what),
            // Its holder is asked to stop, so it may end when the lease does.
            (What::Withdraw(_), "T")
            | (What::Fail(_) | What::Release(_), "R" | "W" | "B" | "STALE")
            | (What::Bury(_), "OK" | "STALE") => {}
            _ => self.note_strange(what, reply),
        }
    }

    fn end(&mut self, number: u64, acked: bool) {
        let at = self.moment();
        let task = &self.tasks[&number];
        let word = if acked { "acknowledged" } else { "gone" };
        if task.end.is_some() {
            let sentence = format!("the task {number} is {word} after its end: {task:?}");
            return self.fail(sentence);
        }
        if !acked && !self.may_have_failed(task) {
            let sentence = format!("the task {number} is gone, and must not be: {task:?}");
            self.fail(sentence);
        }
        self.change(number, |task| task.end = Some(End { acked, at }));
    }

    /// Notes that a task was handed out to a request that was sent after this moment. Returns its
    /// number, if it is a task that was put.
    pub(super) fn note_came(&mut self, queue: Queue, payload: &[u8], sent_at: u64) -> Option<u64> {
        let number = self.number_of(queue, payload)?;
        if let Some(why) = self.why_not_now(&self.tasks[&number], sent_at) {
            let sentence = format!("the task {number} came, and {why}: {:?}", self.tasks[&number]);
            self.fail(sentence);
        }
        self.note_there(number);
        self.change(number, |task| task.has_come = true);
        let now = self.moment();
        for batch in self.tasks[&number].terms.after.clone() {
            self.batch_mut(batch).done_at.get_or_insert(now);
        }
        Some(number)
    }

    /// Notes that a task was found among the dead letters.
    pub(super) fn note_letter(&mut self, queue: Queue, payload: &[u8]) {
        let Some(number) = self.number_of(queue, payload) else { return };
        let task = &self.tasks[&number];
        let was_acked = task.end.is_some_and(|end| end.acked);
        if task.is_letter || was_acked || task.terms.attempts.is_none() {
            let sentence = format!("the task {number} must not be a dead letter: {task:?}");
            self.fail(sentence);
        }
        let has_ended = self.tasks[&number].end.is_some();
        self.note_there(number);
        self.change(number, |task| task.is_letter = true);
        if !has_ended {
            self.end(number, false);
        }
    }

    /// The number of a task, which is its payload. Each is only in a queue of its family.
    fn number_of(&mut self, queue: Queue, payload: &[u8]) -> Option<u64> {
        let number = std::str::from_utf8(payload).ok().and_then(|text| text.parse::<u64>().ok());
        let is_known = |number: &u64| {
            self.tasks.get(number).is_some_and(|task| task.terms.queue.family == queue.family)
        };
        let number = number.filter(is_known);
        if number.is_none() {
            let payload = String::from_utf8_lossy(payload);
            self.fail(format!("{payload:?} came from {}, and was never put there", queue.name()));
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::super::book::{Only, Terms};
    use super::super::{IN_CLUSTER, Kind, ON_SERVER, Queue};
    use super::{Pages, Value, What};

    const WORK: Queue = Queue { family: "left", kind: Kind::Work };
    const THEN: Queue = Queue { family: "left", kind: Kind::Then };

    /// A batch with one child, and a task that waits for it, all of them put.
    fn story(pages: &mut Pages, only: Only) -> (u64, u64, u64) {
        let batch = pages.begin_batch("left", false);
        let child = pages.begin_task(Terms::of_child(WORK, batch));
        let after = vec![batch];
        let terms = Terms { batch: None, after, only, ..Terms::of_child(THEN, batch) };
        let follower = pages.begin_task(terms);
        for number in [child, follower] {
            tell(pages, &What::Put(number), Value::Bulk(b"1".to_vec()));
        }
        (batch, child, follower)
    }

    /// Asks, and is answered.
    fn tell(pages: &mut Pages, what: &What, reply: Value) {
        pages.note_ask(what);
        pages.note_answer(what, &[reply]);
    }

    fn come(pages: &mut Pages, queue: Queue, number: u64) {
        let moment = pages.moment();
        pages.note_came(queue, number.to_string().as_bytes(), moment);
    }

    fn ok() -> Value {
        Value::Simple("OK".to_owned())
    }

    #[test]
    fn a_callback_comes_after_the_close_and_the_end_of_all_tasks() {
        for (closes, acks, failures) in [(true, true, 0), (true, false, 1), (false, true, 1)] {
            let mut pages = Pages::default();
            let (batch, child, follower) = story(&mut pages, Only::Done);
            come(&mut pages, WORK, child);
            if closes {
                tell(&mut pages, &What::Close(batch), Value::Integer(1));
            }
            if acks {
                // Nothing is heard of it.
                pages.note_ask(&What::Ack(child));
            }
            come(&mut pages, THEN, follower);
            assert_eq!(pages.failures().len(), failures, "{:?}", pages.failures());
        }
    }

    #[test]
    fn nothing_ends_twice_or_comes_again() {
        let mut pages = Pages::default();
        let (_, child, _) = story(&mut pages, Only::Done);
        come(&mut pages, WORK, child);
        tell(&mut pages, &What::Ack(child), ok());
        assert!(pages.failures().is_empty());
        tell(&mut pages, &What::Ack(child), ok());
        assert_eq!(pages.failures().len(), 1);
        come(&mut pages, WORK, child);
        assert_eq!(pages.failures().len(), 2);
    }

    #[test]
    fn conditions_hold() {
        for (only, acks, failures) in [
            (Only::Acked, true, 0),
            (Only::Acked, false, 1),
            (Only::Failed, true, 1),
            (Only::Failed, false, 0),
        ] {
            let mut pages = Pages::default();
            let (batch, child, follower) = story(&mut pages, only);
            tell(&mut pages, &What::Close(batch), Value::Integer(1));
            if acks {
                tell(&mut pages, &What::Ack(child), ok());
            } else {
                tell(&mut pages, &What::Kill(child), Value::Integer(1));
            }
            come(&mut pages, THEN, follower);
            assert_eq!(pages.failures().len(), failures, "{:?}", pages.failures());
        }
    }

    #[test]
    fn no_task_of_a_batch_comes_or_joins_after_the_callback() {
        let mut pages = Pages::default();
        let (batch, child, follower) = story(&mut pages, Only::Done);
        tell(&mut pages, &What::Close(batch), Value::Integer(1));
        pages.note_ask(&What::Ack(child));
        come(&mut pages, THEN, follower);
        assert!(pages.failures().is_empty());
        come(&mut pages, WORK, child);
        assert_eq!(pages.failures().len(), 1);
        let late = pages.begin_task(Terms::of_child(WORK, batch));
        tell(&mut pages, &What::Put(late), Value::Bulk(b"1".to_vec()));
        assert_eq!(pages.failures().len(), 2);
    }

    #[test]
    fn a_refused_transaction_has_done_nothing() {
        let mut pages = Pages::default();
        let (batch, child, _) = story(&mut pages, Only::Done);
        let other = pages.begin_task(Terms::of_child(WORK, batch));
        let both = What::All(vec![What::Put(other), What::Ack(child)]);
        let kept = || Value::Simple("QUEUED".to_owned());
        let refusal = |word| Value::Error(format!("EXECABORT 2 {word} …"));
        pages.note_ask(&both);
        pages.note_answer(&both, &[ok(), kept(), kept(), refusal("STALE")]);
        assert!(pages.failures().is_empty());
        come(&mut pages, WORK, other);
        assert_eq!(pages.failures().len(), 1);
        pages.note_ask(&both);
        pages.note_answer(&both, &[ok(), kept(), kept(), refusal("BUSY")]);
        assert_eq!(pages.failures().len(), 2);
    }

    #[test]
    fn what_a_cluster_refuses_has_not_happened_and_what_it_does_not_know_may_have() {
        for (sentence, failures) in [
            ("TRYAGAIN …", 1),
            ("CLUSTERDOWN …", 1),
            ("EXECABORT 1 TRYAGAIN …", 1),
            ("UNKNOWN …", 0),
            ("EXECABORT 1 UNKNOWN …", 0),
        ] {
            for is_transaction in [false, true] {
                let mut pages = Pages::of(IN_CLUSTER);
                let (batch, child, follower) = story(&mut pages, Only::Done);
                come(&mut pages, WORK, child);
                tell(&mut pages, &What::Close(batch), Value::Integer(1));
                let what = if is_transaction {
                    What::All(vec![What::Ack(child)])
                } else {
                    What::Acks(vec![child])
                };
                tell(&mut pages, &what, Value::Error(sentence.to_owned()));
                come(&mut pages, THEN, follower);
                assert_eq!(pages.failures().len(), failures, "{:?}", pages.failures());
            }
        }
    }

    #[test]
    fn a_batch_may_be_missing_that_a_cluster_has_not_made() {
        for (plan, failures) in [(IN_CLUSTER, 0), (ON_SERVER, 3)] {
            let mut pages = Pages::of(plan);
            let batch = pages.begin_batch("left", false);
            let child = pages.begin_task(Terms::of_child(WORK, batch));
            let terms = Terms { batch: None, after: vec![batch], ..Terms::of_child(THEN, batch) };
            let follower = pages.begin_task(terms);
            tell(&mut pages, &What::Put(child), Value::Error("TRYAGAIN …".to_owned()));
            for what in [What::Put(follower), What::Show(batch), What::Close(batch)] {
                tell(&mut pages, &what, Value::Error("NOTFOUND …".to_owned()));
            }
            assert_eq!(pages.failures().len(), failures, "{:?}", pages.failures());
        }
    }
}
