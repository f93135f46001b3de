//! Histories made by hand: a record for each request, with labels to find it again.

use std::collections::HashMap;

use pinpriq_testing::history::{
    Between, Delivery, Event, History, Operation, Outcome, Record, Report, Tolerance, check, cut,
    digest,
};

pub(crate) const QUEUE: &str = "jobs";
pub(crate) const MS: u64 = 1_000;
/// How long each request takes here.
const REQUEST_US: u64 = 400;

/// A history under construction.
#[derive(Default)]
pub(crate) struct Story {
    pub(crate) records: Vec<Record>,
    pub(crate) at_us: u64,
    pub(crate) client: u64,
    calls: u64,
    labels: HashMap<&'static str, u64>,
}

impl Story {
    /// Advances the time.
    pub(crate) fn pass_ms(&mut self, ms: u64) {
        self.at_us += ms * MS;
    }

    /// Adds a request and its outcome.
    pub(crate) fn call(&mut self, label: &'static str, operation: Operation, outcome: Outcome) {
        let call = self.begin(label, operation);
        self.at_us += REQUEST_US;
        self.records.push(Record::Answered { at_us: self.at_us, call, outcome });
        self.at_us += 1;
    }

    /// Adds a request that is not answered yet.
    pub(crate) fn begin(&mut self, label: &'static str, operation: Operation) -> u64 {
        let call = self.calls;
        self.calls += 1;
        if !label.is_empty() {
            assert!(self.labels.insert(label, call).is_none(), "{label} is there already");
        }
        let (at_us, client) = (self.at_us, self.client);
        self.records.push(Record::Invoked { at_us, client, call, operation });
        self.at_us += 1;
        call
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.records.push(Record::Happened { at_us: self.at_us, event });
        self.at_us += 1;
    }

    pub(crate) fn put(&mut self, label: &'static str, id: &str, priority: i64) {
        self.call(label, put(id, priority), Outcome::Put { id: id.to_owned() });
    }

    /// Adds a take with a TTR of ten seconds.
    pub(crate) fn take(&mut self, label: &'static str, id: &str, receipt: &str) {
        self.call(label, take(Some(10_000)), came(id, receipt));
    }

    /// The same for a task that was put under another id.
    pub(crate) fn take_as(&mut self, label: &'static str, id: &str, put_as: &str, receipt: &str) {
        let mut outcome = came(id, receipt);
        if let Outcome::Tasks(tasks) = &mut outcome {
            tasks[0].payload = payload(put_as);
        }
        self.call(label, take(Some(10_000)), outcome);
    }

    pub(crate) fn ack(&mut self, label: &'static str, receipt: &str) {
        self.call(label, ack(receipt), Outcome::Done);
    }

    pub(crate) fn pop(&mut self, label: &'static str, id: &str) {
        self.call(label, pop(), popped(id));
    }

    pub(crate) fn restart(&mut self) {
        self.event(Event::ServerKilled);
        self.pass_ms(5);
        self.event(Event::ServerStarted);
        self.client += 1;
    }

    /// Goes on with a server that was restored as it was at a moment between these.
    pub(crate) fn restore(&mut self, from_us: u64, to_us: u64) {
        self.records = cut(&self.records, Between { from_us, to_us });
        let calls = self.records.iter().filter_map(|it| match it {
            Record::Invoked { call, .. } => Some(*call),
            _ => None,
        });
        self.calls = self.calls.max(calls.max().unwrap_or(0) + 1);
        self.pass_ms(5);
        self.event(Event::ServerStarted);
        self.client += 1;
    }

    pub(crate) fn drained(&mut self) {
        self.event(Event::Drained { queue: QUEUE.to_owned(), buried_stay: false });
    }

    /// The index of the record in which a request begins.
    pub(crate) fn place(&self, label: &str) -> usize {
        let wanted = self.labels[label];
        let begins = |it: &Record| matches!(it, Record::Invoked { call, .. } if *call == wanted);
        self.records.iter().position(begins).unwrap()
    }

    pub(crate) fn operation(&mut self, label: &str) -> &mut Operation {
        let place = self.place(label);
        match &mut self.records[place] {
            Record::Invoked { operation, .. } => operation,
            other => unreachable!("{other:?} is no beginning"),
        }
    }

    pub(crate) fn outcome(&mut self, label: &str) -> &mut Outcome {
        let wanted = self.labels[label];
        let found = self.records.iter_mut().find_map(|it| match it {
            Record::Answered { call, outcome, .. } if *call == wanted => Some(outcome),
            _ => None,
        });
        found.unwrap()
    }

    /// The delivery of a take or pop of one task.
    pub(crate) fn delivery(&mut self, label: &str) -> &mut Delivery {
        match self.outcome(label) {
            Outcome::Tasks(tasks) => &mut tasks[0],
            other => unreachable!("{other:?} is no delivery"),
        }
    }

    /// Removes a request and its answer from the history.
    pub(crate) fn remove(&mut self, label: &str) {
        let wanted = self.labels[label];
        self.records.retain(|it| match it {
            Record::Invoked { call, .. } | Record::Answered { call, .. } => *call != wanted,
            Record::Happened { .. } => true,
        });
    }

    /// Delays everything from a request on by `ms`.
    pub(crate) fn delay_from(&mut self, label: &str, ms: u64) {
        let place = self.place(label);
        for record in &mut self.records[place..] {
            let (Record::Invoked { at_us, .. }
            | Record::Answered { at_us, .. }
            | Record::Happened { at_us, .. }) = record;
            *at_us += ms * MS;
        }
        self.at_us += ms * MS;
    }

    /// Inserts more records into the history, right before a request.
    pub(crate) fn before(&mut self, label: &str, tell: impl FnOnce(&mut Self)) {
        let place = self.place(label);
        let rest = self.records.split_off(place);
        let Some(Record::Invoked { at_us, client, .. }) = rest.first().cloned() else {
            unreachable!("a label stands for a beginning");
        };
        let end_us = self.at_us;
        let own = std::mem::replace(&mut self.client, client);
        self.at_us = at_us;
        tell(self);
        let took_us = self.at_us - at_us;
        self.records.extend(rest.into_iter().map(|mut record| {
            let (Record::Invoked { at_us, .. }
            | Record::Answered { at_us, .. }
            | Record::Happened { at_us, .. }) = &mut record;
            *at_us += took_us;
            record
        }));
        (self.client, self.at_us) = (own, end_us + took_us);
    }

    /// Inserts more records right after the answer to a request.
    pub(crate) fn after(&mut self, label: &str, tell: impl FnOnce(&mut Self)) {
        let wanted = self.labels[label];
        let ends = |it: &Record| matches!(it, Record::Answered { call, .. } if *call == wanted);
        let place = self.records.iter().position(ends).unwrap();
        let next = self.records[place..].iter().find_map(|it| match it {
            Record::Invoked { call, .. } => Some(*call),
            _ => None,
        });
        match next {
            Some(next) => {
                self.labels.insert("what follows", next);
                self.before("what follows", tell);
            }
            None => tell(self),
        }
    }

    /// The history as lines of text.
    pub(crate) fn text(&self) -> String {
        let line = |record| serde_json::to_string(record).unwrap() + "\n";
        self.records.iter().map(line).collect()
    }

    pub(crate) fn check(&self) -> Report {
        let history = History::read(self.text().as_bytes()).unwrap();
        check(&history, Tolerance::default())
    }

    #[track_caller]
    pub(crate) fn passes(&self) {
        let report = self.check();
        assert!(report.is_clean(), "{:#?}", report.violations);
    }
}

/// The digest of the payload of a task.
pub(crate) fn payload(id: &str) -> String {
    digest(format!("the payload of {id}").as_bytes())
}

pub(crate) fn put(id: &str, priority: i64) -> Operation {
    Operation::Put {
        queue: QUEUE.to_owned(),
        payload: payload(id),
        id: None,
        priority: Some(priority),
        delay_ms: 0,
        ttl_ms: None,
        ttr_ms: None,
        key: None,
        share: None,
    }
}

pub(crate) fn take(ttr_ms: Option<u64>) -> Operation {
    Operation::Take { queue: QUEUE.to_owned(), count: 1, ttr_ms, otherwise_ordered: false }
}

pub(crate) fn pop() -> Operation {
    Operation::Pop { queue: QUEUE.to_owned(), count: 1, otherwise_ordered: false }
}

pub(crate) fn ack(receipt: &str) -> Operation {
    Operation::Ack { receipt: receipt.to_owned() }
}

pub(crate) fn release(receipt: &str) -> Operation {
    let receipt = receipt.to_owned();
    Operation::Release { receipt, delay_ms: 0, ttl_ms: None, priority: None, tail: false }
}

pub(crate) fn bury(receipt: &str) -> Operation {
    Operation::Bury { receipt: receipt.to_owned() }
}

pub(crate) fn touch(receipt: &str) -> Operation {
    Operation::Touch { receipt: receipt.to_owned(), by_ms: None }
}

pub(crate) fn kill(id: &str) -> Operation {
    Operation::Kill { queue: QUEUE.to_owned(), id: id.to_owned() }
}

pub(crate) fn dig(id: &str) -> Operation {
    Operation::Dig { queue: QUEUE.to_owned(), id: id.to_owned(), changed: false }
}

pub(crate) fn ready() -> Outcome {
    Outcome::Turned("R".to_owned())
}

pub(crate) fn stale() -> Outcome {
    Outcome::Refused("STALE".to_owned())
}

pub(crate) fn came(id: &str, receipt: &str) -> Outcome {
    let receipt = Some(receipt.to_owned());
    Outcome::Tasks(vec![Delivery { id: id.to_owned(), receipt, payload: payload(id) }])
}

pub(crate) fn popped(id: &str) -> Outcome {
    Outcome::Tasks(vec![Delivery { id: id.to_owned(), receipt: None, payload: payload(id) }])
}

/// A history in which everything happens once, and all of it is correct.
pub(crate) fn everything() -> Story {
    let mut story = Story::default();
    story.event(Event::ServerStarted);
    story.put("put 1", "1", 5);
    story.put("put 2", "2", 1);
    story.put("put 3", "3", 5);
    story.put("put 4", "4", 9);
    if let Operation::Put { delay_ms, .. } = story.operation("put 4") {
        *delay_ms = 5_000;
    }
    story.put("put 5", "5", 5);
    if let Operation::Put { ttl_ms, .. } = story.operation("put 5") {
        *ttl_ms = Some(20_000);
    }
    story.put("put 6", "6", 7);
    story.put("put 7", "7", 8);

    story.take("take 2", "2", "r2");
    story.ack("ack 2", "r2");

    story.take("take 1", "1", "r1");
    story.call("touch 1", touch("r1"), Outcome::Done);
    story.call("release 1", release("r1"), ready());
    story.take("take 1 again", "1", "r1-again");
    story.call("stale ack 1", ack("r1"), stale());
    story.ack("ack 1", "r1-again");

    story.take("take 3", "3", "r3");
    story.call("bury 3", bury("r3"), Outcome::Done);
    story.call("dig 3", dig("3"), ready());
    story.take("take 3 again", "3", "r3-again");
    story.ack("ack 3", "r3-again");

    story.call("take 5", take(Some(1_000)), came("5", "r5"));
    story.pass_ms(1_500);
    story.take("take 5 again", "5", "r5-again");
    story.ack("ack 5", "r5-again");

    story.client = 100;
    story.call("take 6", take(None), came("6", "r6"));
    story.event(Event::ConnectionClosed { client: 100 });
    story.client = 0;
    story.take("take 6 again", "6", "r6-again");
    story.ack("ack 6", "r6-again");

    story.call("kill 7", kill("7"), Outcome::Count(1));
    story.pass_ms(5_000);
    story.take("take 4", "4", "r4");
    story.ack("ack 4", "r4");

    story.begin("put 8", put("8", 3));
    story.restart();
    story.pop("pop 8", "8");
    story.put("put 9", "9", 0);
    story.put("put 10", "10", 0);
    story.pop("pop 9", "9");
    story.pop("pop 10", "10");
    story.drained();
    story
}
