//! Scripts: commands with their moments, and their outputs.
//!
//! ```text
//! # Why this is so.
//! 0     ann TAKE jobs TTR 50 -> 1 "a" under r1 until 50
//!       at 50: task 1 is R
//! 60    ann ACK jobs r1 -> STALE ...
//! ```
//!
//! A line is a moment in milliseconds, a client, and a command in the words of the command set.
//! What follows is outputs, written by the run of the script. `->` is the reply to the command,
//! beside it if there is room and else below it. Other outputs name their client. Between two lines
//! the clock stops at each moment at which something is due, and what happens then begins with
//! `at`. Receipts are called `r1`, `r2` and so on in the order in which they were issued. A few
//! words exist only in scripts: see [`Stage::act`].

mod render;
mod words;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use pinpriq_engine::Engine;
use pinpriq_proto::carried::Carried;
use pinpriq_proto::change::{Change, Header};
use pinpriq_proto::command::Command;
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::task::history::{Clients, Contact};
use pinpriq_proto::task::{
    Bytes, ClientId, Farewell, Grant, Receipt, RequestId, State, TaskRecord,
};
use pinpriq_proto::time::{Span, Timestamp};

use render::Names;
use words::Words;

/// How wide a line may be that has a reply beside its command.
const WIDTH: usize = 100;

/// Runs a script, and returns its text with the current outputs.
pub(crate) fn play(text: &str) -> String {
    let mut stage = Stage::new();
    let mut played = String::new();
    for line in text.lines() {
        if line.starts_with(' ') {
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            stage.flush(&mut played);
            let _ = writeln!(played, "{line}");
            continue;
        }
        let line = line.split(" -> ").next().unwrap_or_default();
        let mut words = Words::of(line);
        let moment = words.number();
        stage.pass_until(moment);
        stage.flush(&mut played);
        let _ = writeln!(played, "{line}");
        let client = words.text();
        stage.act(moment, &client, words);
    }
    stage.flush(&mut played);
    played
}

/// An engine, the clock that drives it, and the names in the script.
struct Stage {
    engine: Engine,
    limits: Limits,
    started: bool,
    incarnation: u64,
    /// What the next restart gives to leases.
    grace: Option<Span>,
    /// What the next restart finds of rates.
    carried: Option<Carried>,
    now: u64,
    last_request: u64,
    names: Names,
    clients: Arc<Named>,
    /// The tasks that each client popped last.
    popped: BTreeMap<ClientId, Vec<TaskRecord>>,
    /// Every change until now, for a restart.
    journal: Vec<Change>,
    /// The number of changes that have not been shown.
    fresh: usize,
    lines: Vec<String>,
}

/// The names of all clients of a script.
#[derive(Debug, Default)]
struct Named(Mutex<BTreeMap<ClientId, String>>);

impl Clients for Named {
    fn contact(&self, client: ClientId) -> Option<Contact> {
        let name = self.0.lock().unwrap().get(&client)?.clone().into_bytes().into();
        Some(Contact { name, address: Bytes::default() })
    }
}

impl Stage {
    fn new() -> Self {
        Self {
            engine: Engine::new(Limits::default(), 1),
            limits: Limits::default(),
            started: false,
            incarnation: 1,
            grace: None,
            carried: None,
            now: 0,
            last_request: 0,
            names: Names::default(),
            clients: Arc::default(),
            popped: BTreeMap::new(),
            journal: Vec::new(),
            fresh: 0,
            lines: Vec::new(),
        }
    }

    /// Lets time pass until just before `moment`, and stops wherever something is due.
    fn pass_until(&mut self, moment: u64) {
        assert!(moment >= self.now, "a script cannot go back from {} to {moment}", self.now);
        self.start();
        let mut calls = 0;
        while let Some(due) = self.engine.poll_timeout()
            && due.ms() < moment
        {
            self.now = due.ms().max(self.now);
            self.engine.handle_timeout(Timestamp::from_ms(self.now));
            self.note(None, true);
            calls += 1;
            assert!(calls < 1_000, "something is due at {} over and over again", self.now);
        }
        self.now = moment;
    }

    /// Carries out one line.
    fn act(&mut self, moment: u64, client: &str, mut words: Words) {
        let id = self.names.client(client);
        self.clients.0.lock().unwrap().insert(id, client.to_owned());
        let now = Timestamp::from_ms(moment);
        let request = RequestId(self.last_request + 1);
        match words.peek().as_str() {
            // The connection has ended.
            "DISCONNECT" => self.engine.disconnect(now, id, Farewell::Ended { unsent: &[] }),
            // The same, but these leases were not sent.
            "UNSENT" => {
                words.text();
                let unsent = words.receipts(&|text| self.names.receipt(text));
                self.engine.disconnect(now, id, Farewell::Ended { unsent: &unsent });
            }
            // The server stops, and the connection ends with it.
            "STOPPED" => self.engine.disconnect(now, id, Farewell::ServerStops),
            // The client will send nothing more, so its waits end.
            "EOF" => self.engine.end_waits(now, id),
            // No command, but what is due is fired.
            "TIME" => {
                self.engine.handle_timeout(now);
                self.note(None, true);
                return;
            }
            // What this client popped last could not be sent.
            "PUTBACK" => {
                let records = self.popped.get(&id).cloned().unwrap_or_default();
                self.last_request += 1;
                self.engine.apply(now, id, request, &Command::PutBack(&records));
            }
            // The server stops, and starts again from what it has stored, perhaps later. Or another
            // one takes over from it, perhaps later, and leases go on for so long at least. Or it
            // leaves to another one what it has to know.
            "SERVER" | "TAKEOVER" | "HANDOVER" => {
                let word = words.text();
                self.carried = (word == "HANDOVER").then(|| self.engine.carried());
                self.grace = (word == "TAKEOVER").then_some(Span::from_ms(5_000));
                let start = words.peek().parse().unwrap_or(moment);
                self.now = start;
                return self.restart(Timestamp::from_ms(start));
            }
            // Sets bounds for this script.
            "LIMITS" => {
                words.text();
                assert_eq!(moment, 0, "limits come first");
                self.limits = words.limits();
                self.engine = Engine::new(self.limits, 1);
                self.started = false;
                return;
            }
            _ => {
                let command = words.command(&|text| self.names.receipt(text));
                self.last_request += 1;
                self.start();
                self.engine.apply(now, id, request, &command);
            }
        }
        self.note(Some((id, request)), false);
    }

    fn start(&mut self) {
        if !self.started {
            self.engine.set_clients(self.clients.clone());
            self.engine.start(Timestamp::ZERO, self.incarnation, Header::default());
            self.started = true;
        }
    }

    fn restart(&mut self, now: Timestamp) {
        let header = self.engine.header();
        let mut engine = Engine::new(self.limits, 1);
        for change in &self.journal {
            engine.restore(change.clone(), None);
        }
        self.incarnation += 1;
        if let Some(grace) = self.grace {
            engine.set_grace(grace);
        }
        if let Some(carried) = self.carried.take() {
            engine.set_carried(carried);
        }
        engine.set_clients(self.clients.clone());
        engine.start(now, self.incarnation, header);
        self.engine = engine;
        self.engine.take_changes(&mut self.journal);
        for change in &self.journal[self.fresh..] {
            self.lines.push(render::change(change));
        }
        self.fresh = self.journal.len();
        self.engine.check();
    }

    /// Collects the outputs of the last call, and checks the engine.
    fn note(&mut self, asked: Option<(ClientId, RequestId)>, at_deadline: bool) {
        let when = if at_deadline { format!("at {}: ", self.now) } else { String::new() };
        self.engine.take_changes(&mut self.journal);
        if at_deadline {
            for change in &self.journal[self.fresh..] {
                self.lines.push(format!("{when}{}", render::change(change)));
            }
        }
        self.fresh = self.journal.len();
        while let Some(output) = self.engine.poll_output() {
            self.learn(&output);
            self.lines.push(format!("{when}{}", self.names.output(&output, asked)));
        }
        self.engine.check();
    }

    /// Stores receipts and popped tasks.
    fn learn(&mut self, output: &Output) {
        let (client, tasks, popped) = match output {
            Output::Reply { client, reply: Reply::Tasks { tasks, popped }, .. } => {
                (*client, tasks, *popped)
            }
            Output::Delivery { client, tasks, popped } => (*client, tasks, *popped),
            Output::Reply { .. } | Output::Notice(_) => return,
        };
        for task in tasks {
            if let State::Taken(_) = &task.progress.state {
                self.names.learn(task);
            }
        }
        if popped && !tasks.is_empty() {
            self.popped.insert(client, tasks.clone());
        }
    }

    fn flush(&mut self, played: &mut String) {
        for line in self.lines.drain(..) {
            let above = played.trim_end().lines().next_back().unwrap_or_default();
            let is_beside = line.starts_with("-> ")
                && above.starts_with(|first: char| first.is_ascii_digit())
                && !above.contains(" -> ")
                && above.chars().count() + 1 + line.chars().count() <= WIDTH;
            if is_beside {
                played.truncate(played.len() - 1);
                let _ = writeln!(played, " {line}");
            } else {
                let _ = writeln!(played, "      {line}");
            }
        }
    }
}

/// A receipt in the first incarnation that was never issued.
fn made_up(serial: u64) -> Receipt {
    Receipt { number: serial, grant: Grant { incarnation: 1, serial } }
}
