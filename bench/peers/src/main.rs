//! One measurement of one server, for `bench/compare` and `bench/clusters`. It uses the loop of
//! `pinpriq bench` with the requests of the other server, so that the same code loads all servers.
//!
//! `peers echo PORT` is the limit that the machine sets: a server that sends back what it receives.
//! `peers run KIND PORT CONNECTIONS DEPTH MILLISECONDS BYTES PRIORITIES [QUEUE,QUEUE...]` measures
//! put, take and ack and prints JSON. Only pinpriq can have several queues, which jobs use in
//! turns. It is not a tool for users: that is `pinpriq bench`.

mod beanstalkd;
mod echo;
mod rabbitmq;
mod redis;

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;

use pinpriq_load::{Bound, Dialect, Figures, Latency, Pace, Plan, Resp, Step};

use crate::beanstalkd::Beanstalkd;
use crate::echo::Echo;
use crate::rabbitmq::RabbitMq;
use crate::redis::{Leasing, Popping, Waiting};

const USAGE: &str = "usage: peers echo PORT | \
                     peers run KIND PORT CONNECTIONS DEPTH MILLISECONDS BYTES PRIORITIES \
                     [QUEUE,QUEUE...]";

/// Puts, takes and acknowledges.
const LEASED: [Step; 3] = [Step::Put, Step::Take, Step::Ack];

/// Puts, and takes what the next take acknowledges.
const DONE: [Step; 2] = [Step::Put, Step::DoneTake];

/// Puts, and takes. What was taken is acknowledged with the next put.
const ACKED_WITH_PUT: [Step; 2] = [Step::Put, Step::Take];

/// Puts and pops, where there are no leases.
const POPPED: [Step; 2] = [Step::Put, Step::Pop];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["echo", port] => address(port).and_then(|address| echo::serve(address).map_err(told)),
        ["run", kind, port, connections, depth, ms, bytes, priorities, queues @ ..]
            if queues.len() <= 1 =>
        {
            let queues = queues.first().unwrap_or(&"jobs").split(',').map(str::to_owned);
            numbers([connections, depth, ms, bytes, priorities]).and_then(|numbers| {
                measure(kind, address(port)?, numbers, &queues.collect::<Vec<_>>())
            })
        }
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            let _ = writeln!(std::io::stderr(), "peers: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Measures a server of this kind, and prints the result.
fn measure(
    kind: &str,
    address: SocketAddr,
    [connections, depth, ms, bytes, priorities]: [u32; 5],
    queues: &[String],
) -> Result<(), String> {
    let payload = pinpriq_load::payload(bytes as usize, 1);
    let steps = match kind {
        "redis-pop" => &POPPED[..],
        "pinpriq-done" => &DONE,
        "rabbitmq" if depth > 1 => return Err("RabbitMQ has a depth of 1".to_owned()),
        "rabbitmq" => &ACKED_WITH_PUT,
        _ => &LEASED,
    };
    let plan = Plan {
        address,
        encryption: None,
        connections: connections as usize,
        depth: depth as usize,
        cycle: steps.iter().map(|step| (*step).into()).collect(),
        queues: u32::try_from(queues.len()).unwrap_or(1),
        keeps_queue: false,
        priorities,
        seed: 1,
        pace: Pace::AtOnce,
        bound: Bound::Nanoseconds(u64::from(ms) * 1_000_000),
        until_empty: false,
    };
    let figures = match kind {
        "pinpriq" | "pinpriq-done" => run(&plan, &mut Resp::new(queues, &payload, priorities)),
        "echo" => run(&plan, &mut Echo::new(&payload)),
        "redis-pop" => run(&plan, &mut Popping::new(&payload)),
        "redis-lease" => run(&plan, &mut Leasing::open(address, &payload)?),
        "redis-wait" => run(&plan, &mut Waiting(Leasing::open(address, &payload)?)),
        "rabbitmq" => run(&plan, &mut RabbitMq::open(address, &payload)?),
        "beanstalkd" => run(&plan, &mut Beanstalkd::new(&payload)),
        unknown => Err(format!("no server is called {unknown}")),
    }?;
    print(&plan, steps, &figures).map_err(told)
}

fn run(plan: &Plan, dialect: &mut impl Dialect) -> Result<Figures, String> {
    pinpriq_load::run(plan, dialect, &AtomicU64::new(0)).map_err(|trouble| trouble.to_string())
}

/// Writes one line of JSON.
fn print(plan: &Plan, steps: &[Step], figures: &Figures) -> std::io::Result<()> {
    let slots = (plan.connections * plan.depth) as u64;
    let Figures { elapsed_ns, requests, jobs, requests_in_time, jobs_in_time, empty, .. } = figures;
    let mut line = format!(
        "{{\"elapsed_ns\":{elapsed_ns},\"requests\":{requests},\"jobs\":{jobs},\
         \"requests_in_time\":{requests_in_time},\"jobs_in_time\":{jobs_in_time},\
         \"empty\":{empty},\"refused\":{},\"latency\":{{",
        figures.refused()
    );
    let latencies = steps.iter().map(|step| (step.word(), &figures.step(*step).latency, *requests));
    for (name, latency, all) in latencies.chain([("job", &figures.job_latency, *jobs)]) {
        let latency = latency.corrected(elapsed_ns.saturating_mul(slots) / all.max(1));
        if !line.ends_with('{') {
            line.push(',');
        }
        append(&mut line, name, &latency);
    }
    line.push_str("}}\n");
    std::io::stdout().write_all(line.as_bytes())
}

fn append(line: &mut String, name: &str, latency: &Latency) {
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| latency.at_quantile_ns(quantile));
    let max = latency.max_ns();
    let _ = write!(
        line,
        "\"{name}\":{{\"p50_ns\":{p50},\"p99_ns\":{p99},\"p999_ns\":{p999},\"max_ns\":{max}}}"
    );
}

fn address(port: &str) -> Result<SocketAddr, String> {
    let port = port.parse().map_err(|_| format!("{port} is no port"))?;
    Ok(SocketAddr::from(([127, 0, 0, 1], port)))
}

fn numbers<const N: usize>(words: [&&str; N]) -> Result<[u32; N], String> {
    let mut numbers = [0; N];
    for (number, word) in numbers.iter_mut().zip(words) {
        *number = word.parse().map_err(|_| format!("{word} is no number"))?;
    }
    Ok(numbers)
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn told(error: std::io::Error) -> String {
    error.to_string()
}
