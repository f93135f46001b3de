//! What fair turns cost an engine in time and memory, beside strict order with the same tasks.
//!
//! A job is a take, an ack, and a put of the same share. Nothing is judged: times belong to the
//! machine. They are those that this thread has run, which hardly depend on others.

use pinpriq_engine::Engine;
use pinpriq_proto::change::Header;
use pinpriq_proto::command::{
    Ack, Command, Held, HeldBy, Put, QueueCommand, QueueName, Selection, Take, TakeMode, Wait,
};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::settings::{RANKING, Value};
use pinpriq_proto::task::{COST_USUAL, ClientId, RequestId, TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};

const QUEUE: &[u8] = b"work";
const NOW: Timestamp = Timestamp::from_ms(1_000_000);

/// The places of the rankings among all of them.
const STRICT: u8 = 0;
const FAIR: u8 = 1;

/// How many jobs are measured.
const JOBS: u64 = 1_000_000;

/// What was measured of one ranking.
#[derive(Clone, Copy, Debug)]
struct Cost {
    job_ns: u64,
    put_ns: u64,
    bytes: u64,
}

/// An engine with one queue.
struct Bench {
    engine: Engine,
    request: u64,
}

/// Reads one of the files in which the kernel tells about a process.
pub type Read = fn(&str) -> String;

/// Measures this many shares with so many tasks each. Returns sentences.
#[must_use]
pub fn measure(shares: u64, each: u64, read: Read) -> String {
    let measure = |ranking| Bench::new(ranking).measure(shares, each, read);
    let [strict, fair] = [STRICT, FAIR].map(measure);
    let percent = |fair: u64, strict: u64| (fair * 1_000 / strict.max(1)).saturating_sub(1_000);
    let (job, put) = (percent(fair.job_ns, strict.job_ns), percent(fair.put_ns, strict.put_ns));
    let more = fair.bytes.saturating_sub(strict.bytes);
    format!(
        "{shares} shares of {each} tasks: a job takes {} ns strict and {} ns fair, {}.{} % more; \
         the first puts {} and {} ns, {}.{} % more; {} bytes more for each share",
        strict.job_ns,
        fair.job_ns,
        job / 10,
        job % 10,
        strict.put_ns,
        fair.put_ns,
        put / 10,
        put % 10,
        more / shares.max(1)
    )
}

impl Bench {
    fn new(ranking: u8) -> Self {
        let mut engine = Engine::new(Limits::default(), 1);
        engine.start(NOW, 1, Header::default());
        engine.stop_reporting();
        let mut bench = Self { engine, request: 0 };
        let settings = [(RANKING, Value::Word(ranking))];
        let create = QueueCommand::Create { queue: QUEUE, settings: &settings };
        bench.say(&create.into());
        bench
    }

    fn say(&mut self, command: &Command<'_>) -> Option<Reply> {
        self.request += 1;
        self.engine.apply(NOW, ClientId(1), RequestId(self.request), command);
        let mut reply = None;
        while let Some(output) = self.engine.poll_output() {
            if let Output::Reply { reply: answer, .. } = output {
                reply = Some(answer);
            }
        }
        reply
    }

    fn put(&mut self, share: &[u8]) {
        let terms = Terms::NONE.with(Some(share), COST_USUAL);
        self.say(&Command::Put(Put { terms, ..Put::new(QUEUE, b"a payload of some bytes") }));
    }

    fn measure(mut self, shares: u64, each: u64, read: Read) -> Cost {
        let before = resident(read);
        let began_ns = ran_ns(read);
        for _ in 0..each {
            for share in 0..shares {
                self.put(format!("customer-{share}").as_bytes());
            }
        }
        let count = (shares * each).max(1);
        let put_ns = ran_ns(read).saturating_sub(began_ns) / count;
        let bytes = resident(read).saturating_sub(before);
        let began_ns = ran_ns(read);
        let jobs = JOBS.min(count * 10);
        for _ in 0..jobs {
            self.job();
        }
        let job_ns = ran_ns(read).saturating_sub(began_ns) / jobs;
        // Its memory is not to be used for what is measured next.
        std::mem::forget(self.engine);
        Cost { job_ns, put_ns, bytes }
    }

    fn job(&mut self) {
        let mode = TakeMode::Lease { ttr: Some(Span::from_ms(60_000)) };
        let (selection, wait, member, count) = (Selection::DEFAULT, Wait::No, None, 1);
        let queues = &[QUEUE][..];
        let take = Take { queues, member, count, wait, selection, mode };
        let Some(Reply::Tasks { tasks, .. }) = self.say(&Command::Take(take)) else { return };
        let Some(task) = tasks.first() else { return };
        let Some(receipt) = TaskRecord::receipt(task) else { return };
        let held = Held { queue: QueueName::from(QUEUE), by: HeldBy::Receipt(receipt) };
        self.say(&Command::Ack(Ack::new(held)));
        let share = task.terms.share().cloned().unwrap_or_default();
        self.put(&share);
    }
}

/// The memory of this process in bytes.
fn resident(read: Read) -> u64 {
    let statm = read("/proc/self/statm");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4_096
}

/// How long this thread has run, in nanoseconds.
fn ran_ns(read: Read) -> u64 {
    let stat = read("/proc/thread-self/schedstat");
    stat.split(' ').next().and_then(|ran| ran.parse().ok()).unwrap_or(0)
}
