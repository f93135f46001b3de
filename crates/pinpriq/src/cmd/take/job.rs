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

use pinpriq_proto::wire::resp::{Value, Words};

use super::child::{Running, in_words, is_hung_up};
use super::membership::is_not_found;
use super::stop::{Event, Inbox, Stop};
use super::timer::Timer;
use super::worker::{Plan, Work};
use crate::connection::Wanted;
use crate::endpoint::Endpoint;
use crate::exit::Failure;
use crate::logging::tell;
use crate::output::escaped;
use crate::printer::{Printer, shown, text};
use crate::resp::{Client, Trouble};

mod policy;
mod report;
mod task;
mod variables;

use self::policy::Policy;
use self::report::{Deed, told_of};
use self::task::Task;

/// The exit code of a command that wants its task to be tried later, as in `sysexits.h`.
const EX_TEMPFAIL: i32 = 75;

/// The exit code of a command that can never work on its task, as in `sysexits.h`.
const EX_DATAERR: i32 = 65;

/// How long a command that has timed out may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// How often a worker looks whether the server has said something while its command runs.
const LISTENING: Duration = Duration::from_millis(250);

/// How the refusal to renew the lease of a task that was cancelled begins. The reason follows.
const CANCELLED: &str = "CANCELLED ";

/// How many bytes of a reason the server keeps; a longer one is refused.
const REASON_BYTES_MAX: usize = 1_024;

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
    /// It was asked to end because the task was cancelled, for this reason.
    Cancelled(String),
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
                    match Task::from_answer(answer)? {
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
                let client = connected(&mut self.client, self.plan.endpoint)?;
                membership.join_again(joins, client)?;
                Ok(Value::Array(Vec::new()))
            }
            answer => answer,
        }
    }

    /// Asks for a task, and waits for as long as a round lasts.
    fn ask_for_task(&mut self) -> Result<Value, Trouble> {
        let (plan, stop) = (self.plan, self.stop);
        let client = connected(&mut self.client, plan.endpoint)?;
        client.limit_waiting(Some(plan.round.saturating_add(ANSWER)));
        stop.wait_over(&self.inbox, Some(client.handle()?));
        let answer = client.call(&plan.take);
        stop.wait_over(&self.inbox, None);
        if self.stop.is_asked() {
            // The connection takes no more input.
            self.client = None;
        } else if let Some(client) = &mut self.client {
            client.limit_waiting(Some(ANSWER));
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
        if let Some(why) = self.given_up_before(task) {
            let reason = match &task.reason {
                Some(last) => format!("{why}; the last time: {}", String::from_utf8_lossy(last)),
                None => why.clone(),
            };
            return self.bury(task, &why, &reason);
        }
        let (ended, last_line) = self.run_command(task, command);
        let failure = match ended {
            Ended::Itself(status) if status.success() => {
                return self.finish(task, "the command succeeded");
            }
            Ended::Lost => {
                return tell(format!("{task}: the lease was lost, so the command was ended"));
            }
            Ended::Cancelled(reason) => {
                let colon = if reason.is_empty() { "" } else { ": " };
                let what = format!("the task was cancelled{colon}{}", escaped(reason.as_bytes()));
                if self.report(task, &task.words("RELEASE"), Deed::Release, &what).is_some() {
                    tell(format!("{task}: {what}, so the command was ended"));
                }
                return;
            }
            Ended::Killed => {
                let what = "the command was killed";
                if self.report(task, &task.words("RELEASE"), Deed::Release, what).is_some() {
                    tell(format!("{task}: {what}, the task is released"));
                }
                return;
            }
            Ended::Itself(status) if status.code() == Some(EX_TEMPFAIL) => {
                return self.try_later(task, &in_words(status));
            }
            Ended::Itself(status) => in_words(status),
            Ended::Failed(ref error) => format!("the command cannot be run: {error}"),
            Ended::TimedOut(limit) => format!("timed out after {} ms", limit.as_millis()),
        };
        let colon = if last_line.is_empty() { "" } else { ": " };
        let reason = format!("{failure}{colon}{last_line}");
        if matches!(ended, Ended::Itself(status) if status.code() == Some(EX_DATAERR)) {
            return self.bury(task, &after_attempts(task, &failure), &reason);
        }
        self.fail(task, &failure, &reason);
    }

    /// Returns why a task is not to be run once more: it has failed too often, and its queue has
    /// not given it up.
    fn given_up_before(&mut self, task: &Task) -> Option<String> {
        let (effort, failures) = (self.plan.effort, task.failures);
        if Policy::default().failures_max(&effort).is_none_or(|max| failures < max) {
            return None;
        }
        // Without the flag the queue may allow more.
        let max = match effort.attempts_max {
            Some(max) => max,
            None => self.policy(task)?.failures_max(&effort)?,
        };
        let plural = if failures == 1 { "" } else { "s" };
        Some(format!("failed {failures} time{plural}, while {max} are allowed: not run again"))
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
            connected(&mut self.client, self.plan.endpoint).and_then(|client| client.call(&both));
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
        let words = task.words("BURY").option("REASON", Some(cut(reason)));
        if self.report(task, &words, Deed::Bury, why).is_some() {
            tell(format!("{task}: {why}: buried"));
        }
    }

    /// Gives a task back that has failed. Buries it if the worker gives it up before its queue
    /// does.
    fn fail(&mut self, task: &Task, failure: &str, reason: &str) {
        let effort = self.plan.effort;
        let failures = task.failures.saturating_add(1);
        // Where the settings cannot be known, the queue decides.
        let policy = self.policy(task);
        let exhausted = policy.as_ref().is_some_and(|policy| policy.exhausts(failures));
        let max = match &policy {
            Some(policy) => policy.failures_max(&effort),
            None => effort.attempts_max,
        };
        if !exhausted && max.is_some_and(|max| failures >= max) {
            return self.bury(task, &after_attempts(task, failure), reason);
        }
        let delay = match &policy {
            Some(policy) => policy.delay_ms(&effort, failures),
            None => effort.backoff_ms,
        };
        let words = task.words("FAIL").option("REASON", Some(cut(reason)));
        let what = format!("{failure}, attempt {}", task.attempts);
        let state = self.report(task, &words.option("DELAY", delay), Deed::Fail, &what);
        let dead_letters = policy.and_then(|policy| policy.dead_letters);
        match (state.as_ref().and_then(Value::as_bytes), delay, dead_letters) {
            (None, ..) => {}
            (Some(b"B"), ..) => tell(format!("{task}: {}: buried", after_attempts(task, failure))),
            (Some(b"X"), _, Some(queue)) if exhausted => tell(format!(
                "{task}: {}: moved to {}, as a dead letter",
                after_attempts(task, failure),
                escaped(&queue)
            )),
            (Some(b"X"), ..) => tell(expired(task, &what)),
            (Some(b"W"), None, _) => {
                tell(format!("{task}: {what}: comes back after the back-off of its queue"));
            }
            (Some(_), delay, _) => {
                tell(format!("{task}: {what}: comes back in {} ms", delay.unwrap_or(0)));
            }
        }
    }

    /// Releases a task that has not failed, with a delay that grows with its attempts.
    fn try_later(&mut self, task: &Task, failure: &str) {
        let attempts = task.attempts;
        let policy = self.policy(task).unwrap_or_default();
        let delay = policy.pause_ms(&self.plan.effort, attempts);
        let what = format!("{failure}, attempt {attempts}");
        let words = task.words("RELEASE").option("DELAY", Some(delay));
        match self.report(task, &words, Deed::Release, &what) {
            Some(state) if state.as_bytes() == Some(b"X") => tell(expired(task, &what)),
            Some(_) => tell(format!("{task}: {what}: comes back in {delay} ms")),
            None => {}
        }
    }

    /// Asks what the queue of a task says about failures. A queue without settings says nothing.
    /// Returns `None` if the server does not answer.
    fn policy(&mut self, task: &Task) -> Option<Policy> {
        let words = task.show_words();
        let mut told = self.tell_once(&words);
        if matches!(told, Err(Trouble::Lost(_))) && self.reconnect() {
            told = self.tell_once(&words);
        }
        match told {
            Ok(answer) => Some(Policy::from_answer(&answer).with(&task.known)),
            Err(Trouble::Refused(_)) => Some(Policy::default().with(&task.known)),
            Err(Trouble::Lost(_)) => None,
        }
    }

    /// Runs the command, and renews the lease meanwhile. Returns also what the command said last on
    /// stderr.
    fn run_command(&mut self, task: &Task, command: &OsStr) -> (Ended, String) {
        let variables = task.variables(self.plan.endpoint);
        let events = self.inbox.sender.clone();
        let payload = task.payload().to_vec();
        let running = match Running::start(command, &variables, payload, events.clone()) {
            Ok(running) => running,
            Err(error) => return (Ended::Failed(error), String::new()),
        };
        let limit = self.plan.effort.timeout.map(Duration::from_millis);
        let timer = limit.map(|limit| Timer::start(limit, GRACE, events));
        let interval = (self.plan.ttr / 3).max(Duration::from_millis(1));
        let (mut lost, mut hung_up, mut killed, mut timed_out) = (false, false, false, None);
        let step = interval.min(LISTENING);
        let (mut cancelled, mut waited) = (None, Duration::ZERO);
        loop {
            if self.stop.is_hung_up() && !hung_up {
                running.hang_up();
                hung_up = true;
            }
            if self.stop.signals() > 1 && !killed {
                running.kill();
                killed = true;
            }
            match self.inbox.events.recv_timeout(step) {
                // The channel cannot be closed, since the job has a sender too.
                Ok(Event::Exited) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(Event::Signal) => {}
                Ok(Event::TimedOut) => {
                    running.terminate();
                    timed_out = limit;
                }
                Ok(Event::Overdue) => running.kill(),
                Err(RecvTimeoutError::Timeout) if lost || killed || cancelled.is_some() => {}
                Err(RecvTimeoutError::Timeout) => {
                    waited += step;
                    let lease = if waited >= interval {
                        waited = Duration::ZERO;
                        self.renew(task)
                    } else {
                        self.listen(task)
                    };
                    match lease {
                        Lease::Held => continue,
                        Lease::Lost => lost = true,
                        Lease::Cancelled(reason) => cancelled = Some(reason),
                    }
                    running.terminate();
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
            // What it has done all the same counts.
            (Ok(status), _) if let Some(reason) = cancelled.filter(|_| !status.success()) => {
                Ended::Cancelled(reason)
            }
            (Ok(status), _) if hung_up && is_hung_up(status) => Ended::Killed,
            (_, Some(limit)) => Ended::TimedOut(limit),
            (Ok(status), None) => Ended::Itself(status),
            (Err(error), None) => Ended::Failed(error),
        };
        (ended, last_line)
    }

    /// Renews the lease, over a new connection if need be.
    fn renew(&mut self, task: &Task) -> Lease {
        for _ in 0..2 {
            let answer = connected(&mut self.client, self.plan.endpoint)
                .and_then(|client| client.call(&task.words("TOUCH")));
            match answer {
                Ok(_) => return Lease::Held,
                Err(Trouble::Refused(sentence)) if !is_passing(&sentence) => {
                    let reason = sentence.strip_prefix(CANCELLED).map(str::to_owned);
                    return reason.map_or(Lease::Lost, Lease::Cancelled);
                }
                Err(_) => self.client = None,
            }
        }
        // The next interval tries again; until the server says otherwise the lease counts as held.
        Lease::Held
    }

    /// Reads what the server has said by itself about the lease of a task. After what is about
    /// others, the next renewal tells.
    fn listen(&mut self, task: &Task) -> Lease {
        let Some(client) = &mut self.client else { return Lease::Held };
        let said = client.said();
        client.limit_waiting(Some(ANSWER));
        match said {
            Ok(Some(message)) => {
                task.is_cancelled_by(&message).map_or(Lease::Held, Lease::Cancelled)
            }
            Ok(None) => Lease::Held,
            Err(_) => {
                self.client = None;
                Lease::Held
            }
        }
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
            connected(&mut self.client, self.plan.endpoint).and_then(|client| client.call(words));
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
            if connected(&mut self.client, self.plan.endpoint).is_ok() {
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

/// What is known of a lease.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Lease {
    Held,
    Lost,
    /// Its task was cancelled, for this reason.
    Cancelled(String),
}

/// The connection, opened if there is none.
pub(super) fn connected<'c>(
    client: &'c mut Option<Client>,
    endpoint: &Endpoint,
) -> Result<&'c mut Client, Trouble> {
    if client.is_none() {
        let mut opened = Client::open(endpoint)?;
        opened.limit_waiting(Some(ANSWER));
        opened.hear_of_cancels()?;
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

/// A failure after which nothing is tried again.
fn after_attempts(task: &Task, failure: &str) -> String {
    let attempts = task.attempts;
    let plural = if attempts == 1 { "" } else { "s" };
    format!("{failure}, after {attempts} attempt{plural}")
}

/// As much of a reason as the server keeps.
fn cut(reason: &str) -> &str {
    reason.get(..reason.floor_char_boundary(REASON_BYTES_MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{cut, is_passing, pause_after};

    #[test]
    fn reasons_are_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"x".repeat(2_000)), "x".repeat(1_024));
        assert_eq!(cut(&"\u{20ac}".repeat(400)), "\u{20ac}".repeat(341));
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
