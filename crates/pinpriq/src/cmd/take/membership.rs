//! Keeps a member of a topic alive: sends signs of life over a separate connection, and joins again
//! if the membership has ended anyway.
//!
//! The jobs of a listener and the thread that sends the signs may both notice that it has ended.
//! The first to do so joins again and reports it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinpriq_proto::wire::resp::{Value, Words};

use super::job::connected;
use crate::endpoint::Endpoint;
use crate::logging::tell;
use crate::output::escaped;
use crate::resp::{Client, Trouble};
use crate::words::OsWords as _;

/// The longest pause before a sign of life is tried again.
const RETRY_MAX: Duration = Duration::from_secs(1);

/// For how long a lane with buried tasks is kept at least.
const KEPT_MIN: Duration = Duration::from_hours(1);

/// One member in one topic.
#[derive(Debug)]
pub(super) struct Membership<'a> {
    endpoint: &'a Endpoint,
    topic: &'a OsStr,
    member: OsString,
    lease: Duration,
    /// How often the topic was joined.
    joins: Mutex<u64>,
}

impl<'a> Membership<'a> {
    /// Joins the topic.
    pub(super) fn begin(
        (endpoint, client): (&'a Endpoint, &mut Client),
        topic: &'a OsStr,
        member: OsString,
        lease: Duration,
    ) -> Result<Self, Trouble> {
        let membership = Self { endpoint, topic, member, lease, joins: Mutex::new(0) };
        client.call(&membership.join())?;
        Ok(membership)
    }

    pub(super) fn member(&self) -> &OsStr {
        &self.member
    }

    /// Returns how often the topic was joined. Call it before a request that may find no lane.
    pub(super) fn joins(&self) -> u64 {
        *self.locked()
    }

    /// Joins again, unless that was done since `joins` was read.
    pub(super) fn join_again(&self, joins: u64, client: &mut Client) -> Result<(), Trouble> {
        let mut known = self.locked();
        if *known != joins {
            return Ok(());
        }
        client.call(&self.join())?;
        *known += 1;
        let (member, topic) = (escaped(self.member.as_bytes()), escaped(self.topic.as_bytes()));
        tell(format!(
            "the membership of {member} in {topic} had ended, with all that was in its lane: \
             joined again"
        ));
        Ok(())
    }

    /// Sends signs of life until the other side of the channel is gone.
    pub(super) fn beat_until(&self, end: &Receiver<()>) {
        let interval = self.lease / 3;
        let mut pause = interval;
        let mut client = None;
        while end.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            pause = interval;
            // The jobs report lost connections; here it is enough to try again.
            if self.beat(&mut client).is_err() {
                client = None;
                pause = interval.min(RETRY_MAX);
            }
        }
    }

    /// Ends the membership, or renews its whole lease if `stay`. Says what is lost with the lane. A
    /// lane with buried tasks is kept, since they were not looked at.
    pub(super) fn end(&self, stay: bool) {
        let mut client = None;
        let ended = connected(&mut client, self.endpoint).and_then(|client| {
            if stay {
                return client.call(&Words::new("BEAT").name(&self.member)).map(|_| ());
            }
            self.leave(client)
        });
        if let Err(trouble) = ended {
            let sentence = crate::exit::Failure::from(trouble);
            let member = escaped(self.member.as_bytes());
            tell(format!("{sentence}; {member} ends with its lease at the latest"));
        }
    }

    fn leave(&self, client: &mut Client) -> Result<(), Trouble> {
        let (member, topic) = (escaped(self.member.as_bytes()), escaped(self.topic.as_bytes()));
        let stats = Words::new("STATS").name(self.topic).named("MEMBER", Some(&self.member));
        let left = match client.call(&stats) {
            Ok(figures) => Left::from_figures(&figures),
            Err(Trouble::Refused(_)) => Left::default(),
            Err(trouble) => return Err(trouble),
        };
        if left.has_buried() {
            let lease = self.lease.max(KEPT_MIN).as_millis();
            let words = Words::new("BEAT").name(&self.member).option("LEASE", Some(lease));
            client.call(&words)?;
            tell(format!(
                "{member} does not leave {topic}: its lane has {left}. Look at the buried ones \
                 with `pinpriq peek {topic} --member {member} --state buried --json`, and leave \
                 with `pinpriq leave {topic} {member}`; otherwise the lane ends in {} minutes",
                lease / 60_000
            ));
            return Ok(());
        }
        client.call(&Words::new("LEAVE").name(self.topic).name(&self.member))?;
        if !left.is_empty() {
            tell(format!("{member} has left {topic}, and its lane is gone with {left}"));
        }
        Ok(())
    }

    fn beat(&self, client: &mut Option<Client>) -> Result<(), Trouble> {
        let client = connected(client, self.endpoint)?;
        let joins = self.joins();
        match client.call(&Words::new("BEAT").name(&self.member)) {
            Err(Trouble::Refused(sentence)) if is_not_found(&sentence) => {
                self.join_again(joins, client)
            }
            answer => answer.map(|_| ()),
        }
    }

    fn join(&self) -> Words {
        let words = Words::new("JOIN").name(self.topic).name(&self.member);
        words.option("LEASE", Some(self.lease.as_millis()))
    }

    fn locked(&self) -> MutexGuard<'_, u64> {
        // Nothing is half done when a thread panics here.
        self.joins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is in a lane: how many tasks in which state.
#[derive(Debug, Default)]
struct Left(Vec<(&'static str, i64)>);

impl Left {
    fn from_figures(figures: &Value) -> Self {
        let counts = figures.field("counts").unwrap_or(&Value::Null);
        let count = |letter| counts.field(letter).and_then(Value::integer).unwrap_or_default();
        let states = [("R", "ready"), ("T", "taken"), ("W", "waiting"), ("B", "buried")];
        let there = states.map(|(letter, state)| (state, count(letter)));
        Self(there.into_iter().filter(|(_, count)| *count > 0).collect())
    }

    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn has_buried(&self) -> bool {
        self.0.iter().any(|(state, _)| *state == "buried")
    }
}

/// Such as `3 ready and 1 buried tasks`.
impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (state, count)) in self.0.iter().enumerate() {
            let between = match place {
                0 => "",
                _ if place + 1 == self.0.len() => " and ",
                _ => ", ",
            };
            write!(f, "{between}{count} {state}")?;
        }
        let one = matches!(self.0.as_slice(), [(_, 1)]);
        f.write_str(if one { " task" } else { " tasks" })
    }
}

/// Returns a name from those of the machine and of this process under which no member has a lane in
/// the topic. Machines in containers may share all of these.
pub(super) fn own_name(client: &mut Client, topic: &OsStr) -> Result<OsString, Trouble> {
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy().into_owned();
    let process = std::process::id();
    let mut name = format!("{machine}-{process}");
    for attempt in 2_u64.. {
        let stats = Words::new("STATS").name(topic).named("MEMBER", Some(&name));
        match client.call(&stats) {
            Ok(_) => name = format!("{machine}-{process}-{attempt}"),
            Err(Trouble::Refused(sentence)) if is_not_found(&sentence) => break,
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(name.into())
}

/// Whether a refusal says that there is no such member, or no lane of it.
pub(super) fn is_not_found(sentence: &str) -> bool {
    sentence.split(' ').next() == Some("NOTFOUND")
}
