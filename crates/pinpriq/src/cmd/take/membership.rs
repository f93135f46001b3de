//! Keeps a member of a topic alive: sends signs of life over a separate connection, and joins again
//! if the membership has ended anyway.
//!
//! The jobs of a listener and the thread that sends the signs may both notice that it has ended.
//! The first to do so joins again and reports it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinpriq_wire::resp::Words;

use super::job::connected;
use crate::output::{escaped, tell};
use crate::resp::{Client, Trouble};
use crate::words::OsWords as _;

/// The longest pause before a sign of life is tried again.
const RETRY_MAX: Duration = Duration::from_secs(1);

/// One member in one topic.
#[derive(Debug)]
pub(super) struct Membership<'a> {
    address: &'a str,
    topic: &'a OsStr,
    member: OsString,
    lease: Duration,
    /// How often the topic was joined.
    joins: Mutex<u64>,
}

impl<'a> Membership<'a> {
    /// Joins the topic.
    pub(super) fn begin(
        (address, client): (&'a str, &mut Client),
        topic: &'a OsStr,
        member: OsString,
        lease: Duration,
    ) -> Result<Self, Trouble> {
        let membership = Self { address, topic, member, lease, joins: Mutex::new(0) };
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

    /// Ends the membership, or renews its whole lease if `stay`.
    pub(super) fn end(&self, stay: bool) {
        let words = if stay {
            Words::new("BEAT").name(&self.member)
        } else {
            Words::new("LEAVE").name(self.topic).name(&self.member)
        };
        let mut client = None;
        if let Err(trouble) = connected(&mut client, self.address).and_then(|it| it.call(&words)) {
            let sentence = crate::exit::Failure::from(trouble);
            let member = escaped(self.member.as_bytes());
            tell(format!("{sentence}; {member} ends with its lease at the latest"));
        }
    }

    fn beat(&self, client: &mut Option<Client>) -> Result<(), Trouble> {
        let client = connected(client, self.address)?;
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

/// Returns a name from those of the machine and of this process under which nobody has a lane in
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
