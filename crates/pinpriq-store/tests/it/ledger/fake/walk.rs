//! Writers that compete for one log of an engine in trouble, and keep to the rules of the ledger.
//!
//! They note the answers. [`Walk::check`] compares that with the history of the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinpriq_dice::Dice;
use pinpriq_store::ledger::fake::Happened;
use pinpriq_store::ledger::{
    Answer, Appended, Call, FakeEngine, FakeKnobs, FakeLedger, Ledger, Resolved, Seized, Seq,
    Tenure, Term, Trimmed, Writer,
};

pub(crate) const SHARD: u16 = 3;

/// One writer, and what it believes.
struct Client {
    writer: Writer,
    ledger: FakeLedger,
    owned: Option<Seized>,
    head: u64,
    /// The lowest term that this writer has never had.
    next_term: u64,
    /// The append that is under way or unknown, and whether it is unknown.
    open: Option<(Tenure, u64, u64)>,
    is_unknown: bool,
    busy: BTreeMap<&'static str, u64>,
    resolving: Option<(Tenure, u64)>,
    is_cut: bool,
}

impl Client {
    fn new(engine: &FakeEngine, writer: Writer) -> Self {
        Self {
            writer,
            ledger: engine.ledger(SHARD, writer),
            owned: None,
            head: 0,
            next_term: 0,
            open: None,
            is_unknown: false,
            busy: BTreeMap::new(),
            resolving: None,
            is_cut: false,
        }
    }

    fn is_busy(&self, kind: &str) -> bool {
        self.busy.contains_key(kind)
    }

    fn start(&mut self, kind: &'static str, detail: u64, call: Call) {
        self.busy.insert(kind, detail);
        self.ledger.start(call);
    }
}

/// A run with the answers to its writers.
pub(crate) struct Walk {
    pub(crate) engine: FakeEngine,
    dice: Dice,
    clients: Vec<Client>,
    writers: u128,
    /// Each append has its own number, which is its bytes.
    appends: u64,
    told_in: Vec<(u64, u64)>,
    told_never: Vec<u64>,
    told_seized: Vec<Seized>,
    told_read: Vec<(u64, u64)>,
    pub(crate) may_roll_back: bool,
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("each entry is a number"))
}

impl Walk {
    pub(crate) fn new(seed: u64, knobs: FakeKnobs) -> Self {
        let mut dice = Dice::new(seed);
        let engine = FakeEngine::new(dice.roll(), knobs);
        let writers = 2 + u128::from(seed % 2);
        let clients = (1..=writers).map(|writer| Client::new(&engine, Writer(writer))).collect();
        Self {
            engine,
            dice,
            clients,
            writers,
            appends: 0,
            told_in: Vec::new(),
            told_never: Vec::new(),
            told_seized: Vec::new(),
            told_read: Vec::new(),
            may_roll_back: false,
        }
    }

    pub(crate) fn run(&mut self, turns: usize) {
        for _ in 0..turns {
            let index = self.dice.index(self.clients.len());
            if self.dice.once_in(400) {
                let client = &mut self.clients[index];
                client.is_cut = !client.is_cut;
                self.engine.cut(client.writer, client.is_cut);
            }
            if self.dice.once_in(700) {
                // A process ends and another one begins: what it has started stays under way.
                self.writers += 1;
                self.clients[index] = Client::new(&self.engine, Writer(self.writers));
            }
            if self.may_roll_back && self.dice.once_in(500) {
                let entries = self.dice.index(5);
                self.engine.roll_back(SHARD, entries);
            }
            if let Some(answer) = self.clients[index].ledger.poll() {
                self.notice(index, answer);
            }
            self.act(index);
        }
    }

    fn act(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if self.dice.once_in(10) && !client.is_busy("read") {
            let from = 1 + self.dice.below(client.head + 2);
            let call = Call::Read { from: Seq(from), bytes: self.dice.index(100) };
            client.start("read", from, call);
        }
        if self.dice.once_in(20) && !client.is_busy("status") {
            client.start("status", 0, Call::Status);
        }
        let wants = client.owned.is_none() && self.dice.once_in(30) || self.dice.once_in(300);
        if wants && !client.is_busy("seize") {
            // Above all own terms: an engine that has lost entries could begin one of them again.
            let at_least = Term(client.next_term + self.dice.below(5));
            client.start("seize", 0, Call::Seize { at_least });
        }
        let Some(owned) = client.owned else { return };
        let tenure = owned.tenure;
        if self.dice.once_in(30) && !client.is_busy("trim") {
            let before = Seq(1 + self.dice.below(client.head + 1));
            client.start("trim", 0, Call::Trim { tenure, before });
        }
        match client.open {
            Some((tenure, seq, _)) if client.is_unknown && client.resolving.is_none() => {
                client.resolving = Some((tenure, seq));
                client.start("resolve", 0, Call::Resolve { tenure, seq: Seq(seq) });
            }
            None if self.dice.chance(60) => {
                self.appends += 1;
                let seq = client.head + 1;
                client.open = Some((tenure, seq, self.appends));
                client.is_unknown = false;
                let bytes = Arc::from(self.appends.to_be_bytes());
                client.start("append", 0, Call::Append { tenure, seq: Seq(seq), bytes });
            }
            _ => {}
        }
    }

    fn notice(&mut self, index: usize, answer: Answer) {
        let client = &mut self.clients[index];
        match answer {
            Answer::Seized(seized) => {
                client.busy.remove("seize");
                let Ok(seized) = seized else { return };
                self.told_seized.push(seized);
                client.owned = Some(seized);
                client.head = seized.head.0;
                client.next_term = seized.tenure.term.0 + 1;
                if !client.is_busy("append") && client.resolving.is_none() {
                    client.open = None;
                }
            }
            Answer::Appended(appended) => {
                client.busy.remove("append");
                self.appended(index, appended);
            }
            Answer::Resolved(resolved) => {
                client.busy.remove("resolve");
                self.resolved(index, resolved);
            }
            Answer::Read(told) => {
                let from = client.busy.remove("read");
                let told = told.unwrap_or_default();
                for (expected, (seq, bytes)) in (from.expect("a read")..).zip(told) {
                    assert_eq!(seq.0, expected, "a read has a gap");
                    self.told_read.push((seq.0, number(&bytes)));
                }
            }
            Answer::Trimmed(trimmed) => {
                client.busy.remove("trim");
                if trimmed == Trimmed::Fenced {
                    client.owned = None;
                }
            }
            Answer::Status(_) => {
                client.busy.remove("status");
            }
        }
    }

    fn appended(&mut self, index: usize, appended: Appended) {
        let client = &mut self.clients[index];
        let (tenure, seq, append) = client.open.expect("an append is under way");
        let is_current = client.owned.is_some_and(|owned| owned.tenure == tenure);
        match appended {
            Appended::Done => {
                self.told_in.push((seq, append));
                assert!(self.may_roll_back || self.engine.head(SHARD) >= Seq(seq), "not there");
                if is_current {
                    client.head = seq;
                }
            }
            Appended::Unknown if is_current => {
                client.is_unknown = true;
                return;
            }
            // Another tenure has begun, and its fence stops what is on its way.
            Appended::Unknown => {}
            Appended::Fenced => {
                self.told_never.push(append);
                if is_current {
                    client.owned = None;
                }
            }
            Appended::Full | Appended::TooLarge => self.told_never.push(append),
        }
        client.open = None;
    }

    fn resolved(&mut self, index: usize, resolved: Resolved) {
        let client = &mut self.clients[index];
        let (tenure, _) = client.resolving.take().expect("a resolve is under way");
        let (_, seq, append) = client.open.expect("an append is unknown");
        let is_current = client.owned.is_some_and(|owned| owned.tenure == tenure);
        match resolved {
            Resolved::Committed => {
                self.told_in.push((seq, append));
                if is_current {
                    client.head = seq;
                }
            }
            Resolved::Absent => self.told_never.push(append),
            Resolved::Fenced if is_current => client.owned = None,
            Resolved::Unknown if is_current => return,
            Resolved::Fenced | Resolved::Unknown => {}
        }
        client.open = None;
    }

    /// Compares the history of the engine with itself, and with the answers.
    pub(crate) fn check(&self) {
        let mut fence = None;
        let mut head = 0;
        let mut heads = BTreeMap::new();
        let mut all: BTreeMap<u64, u64> = BTreeMap::new();
        for happened in self.engine.history(SHARD) {
            match happened {
                Happened::Seized { tenure, head: told } => {
                    let last = fence.map_or(Term(0), |tenure: Tenure| tenure.term);
                    assert!(tenure.term > last, "{tenure:?} was seized after {fence:?}");
                    assert_eq!(told, Seq(head), "the head at the seize of {tenure:?}");
                    fence = Some(tenure);
                    heads.insert((tenure.term, tenure.writer), head);
                }
                Happened::Added { tenure, seq, bytes } => {
                    assert_eq!(Some(tenure), fence, "entry {seq:?} came after a later seize");
                    assert_eq!(seq, Seq(head + 1), "an entry is added behind the head");
                    head += 1;
                    all.insert(head, number(&bytes));
                }
                Happened::Trimmed { .. } => {}
                Happened::RolledBack { head: left, fence: before } => {
                    assert!(self.may_roll_back && left.0 <= head, "rolled back to {left:?}");
                    (head, fence) = (left.0, before);
                }
            }
        }
        assert_eq!((self.engine.head(SHARD), self.engine.tenure(SHARD)), (Seq(head), fence));
        for (seq, bytes) in self.engine.log(SHARD) {
            assert_eq!(all.get(&seq.0), Some(&number(&bytes)), "the log and its history differ");
        }
        if self.may_roll_back {
            return;
        }
        for (seq, append) in self.told_in.iter().chain(&self.told_read) {
            assert_eq!(all.get(seq), Some(append), "entry {seq} was told to be in the log");
        }
        for append in &self.told_never {
            assert!(!all.values().any(|it| it == append), "append {append} was told to be absent");
        }
        for told in &self.told_seized {
            let tenure = told.tenure;
            assert_eq!(heads.get(&(tenure.term, tenure.writer)), Some(&told.head.0), "{told:?}");
        }
    }

    pub(crate) fn entries(&self) -> u64 {
        self.engine.head(SHARD).0
    }
}
