//! One job of a worker: takes a task, runs the command or prints the task, reports the result to
//! the server, and starts again.
//!
//! A success is reported together with the next take. That take does not wait for a task, so that
//! the reply, which the acknowledgement depends on, comes at once.

use std::ffi::OsStr;
use std::io;
use std::process::ExitStatus;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use pinpriq_wire::resp::{Value, Words};

use super::child::{Running, in_words};
use super::membership::is_not_found;
use super::stop::{Event, Inbox, Stop};
use super::timer::Timer;
use super::worker::{Plan, Work};
use crate::connection::Wanted;
use crate::exit::Failure;
use crate::output::tell;
use crate::printer::{Printer, shown, text};
use crate::resp::{Client, Trouble, unexpected};

mod report;
mod task;

use self::report::{Deed, told_of};
use self::task::{Task, Unexpected};

/// The exit code of a command that wants its task to be tried later, as in `sysexits.h`.
const EX_TEMPFAIL: i32 = 75;

/// The exit code of a command that can never work on its task, as in `sysexits.h`.
const EX_DATAERR: i32 = 65;

/// How long a command that has timed out may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// How long a task is kept from being taken while its attempts are set back.
const HOLD_MS: u64 = 60_000;

/// How long the server may take to reply, in addition to the time it was asked to wait.
const ANSWER: Duration = Duration::from_secs(10);

/// The shortest and the longest pause before a connection is opened again.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// One job.
#[derive(Debug)]
pub(super) struct Job<'a> {
    plan: &'a Plan<'a>,
    stop: &'a Stop,
    inbox: Inbox,
    /// The connection, unless it was lost.
    client: Option<Client>,
    /// Whether the next task is counted as begun.
    claimed: bool,
    /// What the take that came with the last acknowledgement was answered.
    next: Option<Value>,
}

/// What became of a command.
#[derive(Debug)]
enum Ended {
    /// It ran to its end.
    Itself(ExitStatus),
    /// It could not be started, or its end is unknown.
    Failed(io::Error),
    /// It was killed because the worker has to stop.
    Killed,
    /// It was asked to end because the lease was lost.
    Lost,
    /// It was asked to end because it took too long.
    TimedOut(Duration),
}

impl<'a> Job<'a> {
    pub(super) const fn new(
        plan: &'a Plan<'a>,
        stop: &'a Stop,
        inbox: Inbox,
        client: Option<Client>,
    ) -> Self {
        Self { plan, stop, inbox, client, claimed: false, next: None }
    }

    /// Works until there is no more to do. After a failure all jobs stop.
    pub(super) fn run(mut self) -> Result<(), Failure> {
        while self.goes_on() {
            let worked = match self.take() {
                Ok(Some(task)) => self.work_on(&task),
                Ok(None) => return Ok(()),
                Err(failure) => Err(failure),
            };
            if worked.is_err() {
                self.stop.give_up();
                return worked;
            }
        }
        Ok(())
    }

    /// Whether there is more to do. A task that has come already is not left lying.
    fn goes_on(&mut self) -> bool {
        let claimed = std::mem::take(&mut self.claimed);
        self.next.is_some() || (!self.stop.is_asked() && (claimed || self.plan.claim()))
    }

    /// Returns the next task, unless the job must end.
    fn take(&mut self) -> Result<Option<Task>, Failure> {
        let mut losses = 0;
        while self.next.is_some() || !self.stop.is_asked() {
            let answer = self.next.take().map_or_else(|| self.take_once(), Ok);
            match answer {
                Ok(answer) => {
                    losses = 0;
                    match Task::from_answer(answer).map_err(|Unexpected| unexpected())? {
                        Some(task) if self.stop.is_asked() => {
                            // It came while the worker was stopped. A lease for printing ends with
                            // the connection.
                            if let Work::Running(_) = self.plan.work {
                                let what = "it came while the worker was stopped";
                                self.report(&task, &task.words("RELEASE"), Deed::Release, what);
                            }
                            return Ok(None);
                        }
                        None if self.plan.once => return Ok(None),
                        None => {}
                        task => return Ok(task),
                    }
                }
                Err(Trouble::Refused(sentence)) if !is_passing(&sentence) => {
                    return Err(Trouble::Refused(sentence).into());
                }
                Err(trouble) => {
                    self.client = None;
                    if !self.stop.is_asked() {
                        tell(Failure::from(trouble));
                        self.pause(pause_after(losses));
                        losses += 1;
                    }
                }
            }
        }
        Ok(None)
    }

    /// Asks for a task. A listener without a lane joins again, and gets no task this time.
    fn take_once(&mut self) -> Result<Value, Trouble> {
        let Some(membership) = &self.plan.membership else { return self.ask_for_task() };
        let joins = membership.joins();
        match self.ask_for_task() {
            Err(Trouble::Refused(sentence)) if is_not_found(&sentence) => {
                let client = connected(&mut self.client, self.plan.address)?;
                membership.join_again(joins, client)?;
                Ok(Value::Array(Vec::new()))
            }
            answer => answer,
        }
    }

    /// Asks for a task, and waits for as long as a round lasts.
    fn ask_for_task(&mut self) -> Result<Value, Trouble> {
        let (plan, stop) = (self.plan, self.stop);
        let client = connected(&mut self.client, plan.address)?;
        client.limit_waiting(Some(plan.round.saturating_add(ANSWER)))?;
        stop.wait_over(&self.inbox, Some(client.handle()?));
        let answer = client.call(&plan.take);
        stop.wait_over(&self.inbox, None);
        if self.stop.is_asked() {
            // The connection takes no more input.
            self.client = None;
        } else if let Some(client) = &self.client {
            // If this fails, so does the next use of the connection, which is handled.
            let _ = client.limit_waiting(Some(ANSWER));
        }
        answer
    }

    /// Runs the command for a task or prints it.
    fn work_on(&mut self, task: &Task) -> Result<(), Failure> {
        match self.plan.work {
            Work::Running(command) => {
                self.run_for(task, command);
                Ok(())
            }
            Work::Printing { json } => self.print(task, json),
        }
    }

    /// Prints a task, and acknowledges it once the output was flushed.
    fn print(&mut self, task: &Task, json: bool) -> Result<(), Failure> {
        let mut printer = Printer::to_stdout(json);
        let outcome = if json {
            printer.map(&task.known)
        } else {
            printer.fields(&[shown("payload", &text(task.payload()))])
        };
        let outcome = outcome.and_then(|_| printer.flush());
        if outcome == Ok(Wanted::More) {
            self.finish(task, "it was printed");
            return Ok(());
        }
        self.report(task, &task.words("RELEASE"), Deed::Release, "it was not printed");
        self.stop.give_up();
        outcome.map(|_| ())
    }

    /// Runs the command, and reports the result to the server and on stderr.
    fn run_for(&mut self, task: &Task, command: &OsStr) {
        let (attempts, max) = (task.attempts, self.plan.effort.attempts_max);
        if attempts > max {
            let why = format!(
                "taken {attempts} times, while --attempts-max allows {max}: its worker may have \
                 died; not run again"
            );
            return self.bury(task, &why, &why);
        }
        let (ended, last_line) = self.run_command(task, command);
        let failure = match ended {
            Ended::Itself(status) if status.success() => {
                return self.finish(task, "the command succeeded");
            }
            Ended::Lost => {
                return tell(format!("{task}: the lease was lost, so the command was ended"));
            }
            Ended::Killed => {
                let what = "the command was killed";
                if self.report(task, &task.words("RELEASE"), Deed::Release, what).is_some() {
                    tell(format!("{task}: {what}, the task is released"));
                }
                return;
            }
            Ended::Itself(status) if status.code() == Some(EX_TEMPFAIL) && attempts >= max => {
                return self.begin_anew(task, &in_words(status));
            }
            Ended::Itself(status) if status.code() == Some(EX_TEMPFAIL) => {
                return self.try_later(task, &in_words(status));
            }
            Ended::Itself(status) => in_words(status),
            Ended::Failed(ref error) => format!("the command cannot be run: {error}"),
            Ended::TimedOut(limit) => format!("timed out after {} ms", limit.as_millis()),
        };
        let never = matches!(ended, Ended::Itself(status) if status.code() == Some(EX_DATAERR));
        if never || attempts >= max {
            let plural = if attempts == 1 { "" } else { "s" };
            let why = format!("{failure}, after {attempts} attempt{plural}");
            let colon = if last_line.is_empty() { "" } else { ": " };
            self.bury(task, &why, &format!("{why}{colon}{last_line}"));
        } else {
            self.try_later(task, &failure);
        }
    }

    /// Acknowledges a task, and takes the next one with the same request unless this was the last.
    /// If that is refused, nothing has happened, so the task is acknowledged by itself.
    fn finish(&mut self, task: &Task, what: &str) {
        let ack = task.words("ACK");
        self.claimed = !self.stop.is_asked() && self.plan.claim();
        if !self.claimed {
            self.report(task, &ack, Deed::Ack, what);
            return;
        }
        let both = task.done_by(&self.plan.take_at_once);
        let answer =
            connected(&mut self.client, self.plan.address).and_then(|client| client.call(&both));
        match answer {
            Ok(answer) => self.next = Some(answer),
            Err(Trouble::Refused(_)) => {
                self.report(task, &ack, Deed::Ack, what);
            }
            Err(lost @ Trouble::Lost(_)) => {
                self.client = None;
                self.report_again((task, Deed::Ack, what), &ack, Err(lost));
            }
        }
    }

    /// Buries a task.
    fn bury(&mut self, task: &Task, why: &str, reason: &str) {
        let words = task.words("BURY").option("REASON", Some(reason));
        if self.report(task, &words, Deed::Bury, why).is_some() {
            tell(format!("{task}: {why}: buried"));
        }
    }

    /// Releases a task, with a delay that grows with its attempts.
    fn try_later(&mut self, task: &Task, failure: &str) {
        let attempts = task.attempts;
        let delay = backoff(self.plan.effort.backoff_ms, attempts);
        let what = format!("{failure}, attempt {attempts}");
        let words = task.words("RELEASE").option("DELAY", Some(delay));
        match self.report(task, &words, Deed::Release, &what) {
            Some(state) if state.as_bytes() == Some(b"X") => tell(expired(task, &what)),
            Some(_) => tell(format!("{task}: {what}: comes back in {delay} ms")),
            None => {}
        }
    }

    /// Releases a task whose attempts are used up, and has them counted from 0. Only a waiting task
    /// can be given new attempts, so it waits for a moment even if it is to come back at once.
    fn begin_anew(&mut self, task: &Task, failure: &str) {
        let attempts = task.attempts;
        let delay = backoff(self.plan.effort.backoff_ms, attempts);
        let what = format!("{failure}, attempt {attempts}");
        let words = task.words("RELEASE").option("DELAY", Some(delay.max(HOLD_MS)));
        match self.report(task, &words, Deed::Release, &what) {
            Some(state) if state.as_bytes() == Some(b"X") => return tell(expired(task, &what)),
            Some(_) => {}
            None => return,
        }
        let words = task.restart_words().option("DELAY", Some(delay));
        match self.report(task, &words, Deed::Restart, &what) {
            Some(state) if state.as_bytes() == Some(b"X") => tell(expired(task, &what)),
            Some(_) => tell(format!(
                "{task}: {what}: comes back in {delay} ms, its attempts are counted from 0 again"
            )),
            None => {}
        }
    }

    /// Runs the command, and renews the lease meanwhile. Returns also what the command said last on
    /// stderr.
    fn run_command(&mut self, task: &Task, command: &OsStr) -> (Ended, String) {
        let variables = task.variables(self.plan.address);
        let events = self.inbox.sender.clone();
        let payload = task.payload().to_vec();
        let running = match Running::start(command, &variables, payload, events.clone()) {
            Ok(running) => running,
            Err(error) => return (Ended::Failed(error), String::new()),
        };
        let limit = self.plan.effort.timeout.map(Duration::from_millis);
        let timer = limit.map(|limit| Timer::start(limit, GRACE, events));
        let interval = (self.plan.ttr / 3).max(Duration::from_millis(1));
        let (mut lost, mut killed, mut timed_out) = (false, false, None);
        loop {
            if self.stop.signals() > 1 && !killed {
                running.kill();
                killed = true;
            }
            match self.inbox.events.recv_timeout(interval) {
                // The channel cannot be closed, since the job has a sender too.
                Ok(Event::Exited) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(Event::Signal) => {}
                Ok(Event::TimedOut) => {
                    running.terminate();
                    timed_out = limit;
                }
                Ok(Event::Overdue) => running.kill(),
                Err(RecvTimeoutError::Timeout) if lost || killed => {}
                Err(RecvTimeoutError::Timeout) => {
                    if self.renew(task) == Lease::Lost {
                        running.terminate();
                        lost = true;
                    }
                }
            }
        }
        if let Some(timer) = timer {
            timer.end();
            // What it has told meanwhile is not about the next command. Signals are counted.
            while self.inbox.events.try_recv().is_ok() {}
        }
        let (status, last_line) = running.collect();
        let ended = match (status, timed_out) {
            _ if lost => Ended::Lost,
            // It may have ended by itself at the last moment.
            (Ok(status), _) if killed && !status.success() => Ended::Killed,
            (_, Some(limit)) => Ended::TimedOut(limit),
            (Ok(status), None) => Ended::Itself(status),
            (Err(error), None) => Ended::Failed(error),
        };
        (ended, last_line)
    }

    /// Renews the lease, over a new connection if need be.
    fn renew(&mut self, task: &Task) -> Lease {
        for _ in 0..2 {
            let answer = connected(&mut self.client, self.plan.address)
                .and_then(|client| client.call(&task.words("TOUCH")));
            match answer {
                Ok(_) => return Lease::Held,
                Err(Trouble::Refused(sentence)) if !is_passing(&sentence) => return Lease::Lost,
                Err(_) => self.client = None,
            }
        }
        // The next interval tries again; until the server says otherwise the lease counts as held.
        Lease::Held
    }

    /// Reports the result of a task to the server. Tries once more if it is not known to have
    /// arrived. Returns the reply; if there is none, says what that means.
    fn report(&mut self, task: &Task, words: &Words, deed: Deed, what: &str) -> Option<Value> {
        let told = self.tell_once(words);
        self.report_again((task, deed, what), words, told)
    }

    /// Does the same after the first try was answered by `told`.
    fn report_again(
        &mut self,
        (task, deed, what): (&Task, Deed, &str),
        words: &Words,
        mut told: Result<Value, Trouble>,
    ) -> Option<Value> {
        let mut again = false;
        if matches!(told, Err(Trouble::Lost(_))) && self.reconnect() {
            again = true;
            told = self.tell_once(words);
        }
        match told {
            Ok(answer) => Some(answer),
            Err(trouble) => {
                tell(format!("{task}: {what}, but {}", told_of(&trouble, deed, again)));
                None
            }
        }
    }

    fn tell_once(&mut self, words: &Words) -> Result<Value, Trouble> {
        let told =
            connected(&mut self.client, self.plan.address).and_then(|client| client.call(words));
        match told {
            Err(Trouble::Refused(sentence)) if is_passing(&sentence) => {
                self.client = None;
                Err(Trouble::Lost(sentence))
            }
            Err(Trouble::Lost(sentence)) => {
                self.client = None;
                Err(Trouble::Lost(sentence))
            }
            told => told,
        }
    }

    /// Reconnects, and keeps trying until the lease is over in any case.
    fn reconnect(&mut self) -> bool {
        let mut waited = Duration::ZERO;
        for losses in 0.. {
            if connected(&mut self.client, self.plan.address).is_ok() {
                return true;
            }
            let pause = pause_after(losses);
            waited = waited.saturating_add(pause);
            if waited > self.plan.ttr || self.stop.signals() > 1 {
                break;
            }
            self.pause(pause);
        }
        false
    }

    /// Waits, but no longer than until the worker is stopped.
    fn pause(&self, pause: Duration) {
        // The caller checks what has happened.
        let _ = self.inbox.events.recv_timeout(pause);
    }
}

/// Whether a lease is known to be lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lease {
    Held,
    Lost,
}

/// The connection, opened if there is none.
pub(super) fn connected<'c>(
    client: &'c mut Option<Client>,
    address: &str,
) -> Result<&'c mut Client, Trouble> {
    if client.is_none() {
        let opened = Client::open(address)?;
        opened.limit_waiting(Some(ANSWER))?;
        *client = Some(opened);
    }
    client.as_mut().ok_or_else(|| Trouble::Lost("there is no connection".to_owned()))
}

/// What is said of a task that was released too late.
fn expired(task: &Task, what: &str) -> String {
    format!("{task}: {what}: its time to live had passed, so it has expired")
}

/// Whether a refusal is temporary, so that another attempt may be accepted.
fn is_passing(sentence: &str) -> bool {
    matches!(sentence.split(' ').next(), Some("CLOSING" | "BUSY"))
}

/// How long to wait after this many earlier losses in a row.
fn pause_after(losses: u32) -> Duration {
    PAUSE_MIN.saturating_mul(2_u32.saturating_pow(losses)).min(PAUSE_MAX)
}

/// How long a task waits after this many attempts, in milliseconds.
fn backoff(first_ms: u64, attempts: u64) -> u64 {
    const DAY_MS: u64 = 86_400_000;
    let doublings = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
    first_ms.saturating_mul(2_u64.saturating_pow(doublings)).min(DAY_MS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{backoff, is_passing, pause_after};

    #[test]
    fn delays_double_up_to_a_day() {
        let table = [(1_000, 1, 1_000), (1_000, 2, 2_000), (1_000, 4, 8_000), (0, 9, 0)];
        for (first, attempts, expected) in table {
            assert_eq!(backoff(first, attempts), expected);
        }
        assert_eq!(backoff(1, 100), 86_400_000);
        assert_eq!(backoff(u64::MAX, u64::MAX), 86_400_000);
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        assert_eq!(pause_after(0), Duration::from_millis(100));
        assert_eq!(pause_after(3), Duration::from_millis(800));
        assert_eq!(pause_after(u32::MAX), Duration::from_secs(10));
    }

    #[test]
    fn only_some_refusals_pass() {
        assert!(is_passing("CLOSING the server is shutting down"));
        assert!(is_passing("BUSY"));
        assert!(!is_passing("STALE that lease is over"));
    }
}
