//! What a desk lets its user do, on a server that has users.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::users::{Lack, Verdict, judge};
use crate::users::{Limit, NAME_BYTES_MAX, Right, User};
use pinpriq_proto::command::Command;
use pinpriq_proto::letters::Arena;
use pinpriq_proto::names::NamePattern;
use pinpriq_proto::reply::{Refusal, RefusalKind};
use pinpriq_proto::rights::Need;
use pinpriq_proto::task::{Bytes, RequestId};

use super::Desk;
use crate::access::audit::What;
use crate::access::pass::Pass;
use crate::access::roster::Roster;
use crate::access::signing::{Begun, Outcome, Shown};
use crate::host::seat::Undone;
use crate::letters::owners::Administered;
use crate::session::Session;

/// The most bytes of a rule that a refusal shows.
const SHOWN_BYTES_MAX: usize = 200;

/// The most bytes of a request before anybody has signed in, where that is needed. Those that sign
/// in are short.
const BYTES_BEFORE_SIGN_IN_MAX: usize = 16 << 10;

/// What is known about the user of a client, besides the pass in its session.
pub(super) struct Guard {
    roster: Arc<Roster>,
    /// The version of the users that the blocked request and the subscriptions were looked at with.
    reviewed: u64,
    /// What the blocked request needs.
    blocked: Vec<(Right, Box<[u8]>)>,
    /// Whether that is refused if its user may no longer do it. One that has changed something is
    /// answered as if its time had passed.
    refusable: bool,
    /// Its subscriptions.
    subscribed: BTreeSet<Subscribed>,
}

/// A user and the right that a command must keep within, if it touches what it does not name.
type Within = Option<(Arc<User>, Right)>;

/// A subscription: the queue or topic, and the member.
type Subscribed = (Box<[u8]>, Option<Box<[u8]>>);

impl Guard {
    pub(super) fn new(roster: Arc<Roster>) -> Self {
        let reviewed = roster.version();
        let (blocked, subscribed) = (Vec::new(), BTreeSet::new());
        Self { roster, reviewed, blocked, refusable: false, subscribed }
    }

    /// Notes what a command needs that may be blocked or last.
    fn note(&mut self, command: &Command<'_>) {
        match *command {
            Command::Subscribe { queues, member, .. } => {
                let own = |queue: &&[u8]| (Box::from(*queue), member.map(Box::from));
                self.subscribed.extend(queues.iter().map(own));
            }
            Command::Unsubscribe { queues: [], .. } => self.subscribed.clear(),
            Command::Unsubscribe { queues, member } => {
                for queue in queues {
                    self.subscribed.remove(&(Box::from(*queue), member.map(Box::from)));
                }
            }
            ref command if command.may_block() => {
                self.blocked.clear();
                self.refusable = matches!(command, Command::Take(_) | Command::Await { .. });
                command.each_need(&mut |need| {
                    if let Need::On(right, name) = need {
                        self.blocked.push((right, name.into()));
                    }
                });
            }
            _ => {}
        }
    }
}

impl Desk {
    /// Whether the server has users.
    #[inline]
    pub(crate) const fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    /// Returns the users, if the server has some.
    pub(crate) fn roster(&self) -> Option<&Arc<Roster>> {
        self.guard.as_ref().map(|guard| &guard.roster)
    }

    /// Returns the pass of the user, as the users are now.
    pub(crate) fn pass(&self) -> Option<Pass> {
        self.with_pass(|pass| Some(pass?.clone()))
    }

    /// Calls `look` with the pass of the user, as the users are now.
    fn with_pass<T>(&self, look: impl FnOnce(Option<&Pass>) -> Option<T>) -> Option<T> {
        let roster = self.roster()?;
        let about = &mut *self.seat.session.about.borrow_mut();
        if let Some(pass) = &about.pass
            && pass.version != roster.version()
        {
            about.pass = roster.renewed(pass);
        }
        look(about.pass.as_ref())
    }

    /// Whether somebody has signed in.
    pub(crate) fn has_user(&self) -> bool {
        self.with_pass(|pass| pass.map(|_| ())).is_some()
    }

    /// Refuses a request that needs no right, if the client has not signed in on a server with
    /// users.
    pub(crate) fn check_user(&self) -> Result<(), Undone> {
        if self.is_guarded() && !self.has_user() {
            Err(Undone::Refused(not_signed_in()))
        } else {
            Ok(())
        }
    }

    /// Returns the refusal of a request of which so much has arrived and that is not complete, if
    /// it may not be kept.
    pub(crate) fn refusal_of_begun(&self, bytes: usize) -> Option<Refusal> {
        if bytes > BYTES_BEFORE_SIGN_IN_MAX && self.check_user().is_err() {
            let most = BYTES_BEFORE_SIGN_IN_MAX;
            let sentence = format!("before somebody signs in, a request has at most {most} bytes");
            return Some(Refusal::new(RefusalKind::TooLarge, sentence));
        }
        self.kept.is_too_much().then(|| self.kept.kept().refusal())
    }

    /// Takes a client that has just come for its user, if its certificate says who that is, or its
    /// door has no way to sign in.
    pub(crate) fn welcome(&self, signs_in: bool) {
        let Some(roster) = self.roster() else { return };
        let certificate = self.seat.session.about.borrow().certificate.clone();
        let pass = match &certificate {
            Some(name) => roster.certified(name),
            None if signs_in => None,
            None => roster.anonymous(),
        };
        // A connection beyond the limit has no user, so its first request is refused.
        let pass = pass.filter(|pass| self.count_connection(pass).is_ok());
        let is_known = pass.is_some();
        self.seat.session.about.borrow_mut().pass = pass;
        if let Some(name) = certificate {
            let what = if is_known { What::SignedIn } else { What::SignInFailed };
            self.tell_audit(what, Some(name.chars().take(NAME_BYTES_MAX).collect()), |_| {});
        }
    }

    /// Counts the connection as one of this user, and no longer as one of another. Refuses one that
    /// is beyond the limit of the user.
    pub(crate) fn count_connection(&self, pass: &Pass) -> Result<(), Refusal> {
        let Some(roster) = self.roster() else { return Ok(()) };
        let about = &mut *self.seat.session.about.borrow_mut();
        let is_counted = about.counted.as_ref().is_some_and(|it| *it.user() == pass.user.name);
        if !is_counted {
            about.counted = Some(roster.usages.connect(&pass.user)?);
        }
        Ok(())
    }

    /// Sets the user of the client, or that it has none.
    pub(crate) fn admit(&mut self, pass: Option<Pass>) {
        self.seat.session.about.borrow_mut().pass = pass;
        // Another user may not be allowed what the one before has begun.
        if let Some(guard) = &mut self.guard {
            guard.reviewed = 0;
        }
    }

    /// Signs somebody in, who is not admitted yet. If that takes time, the request has to come
    /// again when the client is no longer blocked.
    pub(crate) fn sign_in(&self, shown: Shown<'_>) -> Result<Outcome, Undone> {
        let session = &self.seat.session;
        if let Some(outcome) = session.signed.take() {
            return Ok(outcome);
        }
        let Some(roster) = self.roster() else { return Ok(Outcome::Wrong) };
        let peer = session.about.borrow().peer;
        let Some(peer) = peer else { return Ok(Outcome::Wrong) };
        match roster.sign_in(shown, peer.ip()) {
            Begun::Known(outcome) => Ok(outcome),
            Begun::Later(outcome) => Err(self.wait_for(outcome, |session, outcome| {
                session.signed.replace(Some(outcome));
            })),
        }
    }

    /// Asks the engine under a cluster for an operator, in these words. The request has to come
    /// again when the client is no longer blocked.
    pub(crate) fn administer(&self, words: Vec<String>) -> Result<Administered, Undone> {
        if let Some(administered) = self.seat.session.administered.take() {
            return Ok(*administered);
        }
        let Some(owners) = self.owners() else { return Err(Undone::Blocked) };
        let work = owners.administer(words).map_err(Undone::Refused)?;
        Err(self.wait_for(work, |session, administered| {
            session.administered.replace(Some(Box::new(administered)));
        }))
    }

    /// Carries out nothing more for the client until this is done and kept.
    fn wait_for<T: 'static>(
        &self,
        work: impl Future<Output = T> + 'static,
        keep: impl FnOnce(&Session, T) + 'static,
    ) -> Undone {
        let session = self.seat.session.clone();
        session.signing.set(true);
        self.detours.set(true);
        tokio::task::spawn_local(async move {
            keep(&session, work.await);
            session.signing.set(false);
            session.bell.ring();
        });
        Undone::Blocked
    }

    /// Asks for a command that the user of the client may carry out, at this shard or elsewhere.
    pub(super) fn ask_guarded(
        &mut self,
        request: RequestId,
        command: &Command<'_>,
    ) -> Result<(), Undone> {
        let (within, limited) = self.check(command)?;
        self.seat.account = None;
        if limited.is_some() {
            self.spend()?;
        }
        let share = limited.as_ref().and_then(|user| user.limits.share());
        let Some(share) = share else { return self.ask_within(request, command, within) };
        let arena = Arena::default();
        self.ask_within(request, &command.on_behalf_of(share.as_bytes(), &arena), within)
    }

    /// Asks for a command that must keep within a right of a user, if it touches what it does not
    /// name.
    fn ask_within(
        &mut self,
        request: RequestId,
        command: &Command<'_>,
        within: Within,
    ) -> Result<(), Undone> {
        let Some((user, right)) = within else { return self.ask_freely(request, command) };
        let names = user.rights.names_of(right);
        let names = names.map(|(bytes, is_prefix)| NamePattern { bytes, is_prefix });
        let names: Vec<NamePattern<'_>> = names.collect();
        self.ask_freely(request, &Command::Within { names: &names, command })
    }

    /// Refuses what the user may not do. Returns the right that the command must keep within, if it
    /// touches what it does not name, and the user if they have limits.
    fn check(&mut self, command: &Command<'_>) -> Result<(Within, Option<Arc<User>>), Undone> {
        let judged = self.with_pass(|pass| {
            let user = &pass?.user;
            let within = match judge(&user.rights, command) {
                Verdict::Denied(lack) => return Some(Err(denied(user, &lack))),
                Verdict::Within(right) => Some((Arc::clone(user), right)),
                Verdict::Allowed => None,
            };
            let limited = (!user.limits.is_empty()).then(|| Arc::clone(user));
            Some(Ok((within, limited)))
        });
        let judged = judged.unwrap_or_else(|| Err(not_signed_in()));
        let (within, limited) = judged.map_err(Undone::Refused)?;
        if within.is_none()
            && let Some(guard) = &mut self.guard
        {
            guard.note(command);
        }
        Ok((within, limited))
    }

    /// Counts a request of the user, and notes whether its tasks count. Refuses a request that is
    /// beyond its limits.
    fn spend(&mut self) -> Result<(), Undone> {
        let now = self.seat.shard.clock().now();
        let asked = self.with_pass(|pass| {
            let user = &pass?.user;
            let is_limited = |limit: &Limit| user.limits.of(*limit).is_some();
            let account =
                is_limited(&Limit::Tasks).then(|| Bytes::from(user.name.as_str().as_bytes()));
            let asks = [Limit::RequestsPerSecond, Limit::BytesInFlight].iter().any(is_limited);
            let asked = if asks { self.roster()?.usages.ask(user, now) } else { Ok(()) };
            Some(asked.map(|()| account))
        });
        self.seat.account = asked.unwrap_or(Ok(None)).map_err(Undone::Refused)?;
        Ok(())
    }

    /// Notes how many bytes of requests and answers the connection has in flight.
    #[inline]
    pub(crate) fn weigh(&self, input: usize) {
        if self.is_guarded() {
            self.weigh_counted(input);
        }
    }

    #[inline(never)]
    fn weigh_counted(&self, input: usize) {
        let session = &self.seat.session;
        if let Some(counted) = &mut session.about.borrow_mut().counted {
            counted.weigh((input + session.outbox.borrow().bytes_waiting()) as u64);
        }
    }

    /// Checks a step of a transaction before it is kept.
    pub(super) fn check_rights(&mut self, command: &Command<'_>) -> Result<(), Undone> {
        if self.is_guarded() { self.check(command).map(drop) } else { Ok(()) }
    }

    /// Forgets what was noted about a client that starts again, with no user but that of its
    /// certificate.
    pub(super) fn dismiss(&mut self) {
        if let Some(guard) = &mut self.guard {
            guard.subscribed.clear();
            let about = &mut *self.seat.session.about.borrow_mut();
            let certificate = about.certificate.as_ref();
            about.pass = certificate.and_then(|name| guard.roster.certified(name));
            if about.pass.is_none() {
                about.counted = None;
            }
        }
    }

    /// Ends what has begun and its user may no longer do, if the users have changed: the blocked
    /// request, and the subscriptions. Returns the refusal with which the connection must end, if
    /// it must.
    pub(crate) fn review(&mut self) -> Option<Refusal> {
        let guard = self.guard.as_mut()?;
        let version = guard.roster.version();
        if std::mem::replace(&mut guard.reviewed, version) == version {
            return None;
        }
        let pass = self.pass();
        let allows = |right: Right, name: &[u8]| {
            pass.as_ref().is_some_and(|pass| pass.user.rights.allows(right, name))
        };
        let (is_blocked, is_subscribed) = (self.is_blocked(), self.is_subscribed());
        let guard = self.guard.as_ref()?;
        let lacks_any = guard.blocked.iter().any(|(right, name)| !allows(*right, name));
        let takes = |(queue, _): &Subscribed| allows(Right::Take, queue);
        let is_over = is_subscribed && !guard.subscribed.iter().all(takes);
        if is_blocked && lacks_any {
            self.deny_blocked(guard.refusable);
        }
        is_over.then(no_longer)
    }

    /// Ends the blocked request with a refusal, or if it is not `refusable`, as if its time had
    /// passed.
    fn deny_blocked(&self, refusable: bool) {
        let session = &self.seat.session;
        session.denied.replace(refusable.then(no_longer));
        self.end_waits();
        // Another shard answers later.
        if !self.is_blocked()
            && let Some(refusal) = session.denied.take()
        {
            session.outbox.borrow_mut().deny_last(&refusal);
        }
    }
}

/// The refusal of a request before anybody has signed in.
fn not_signed_in() -> Refusal {
    let sentence = "nobody has signed in on this connection".to_owned();
    Refusal::new(RefusalKind::NoPerm, sentence)
}

/// The refusal of what a user lacks a right for.
fn denied(user: &User, lack: &Lack<'_>) -> Refusal {
    let mut lack = lack.to_string();
    if lack.len() > SHOWN_BYTES_MAX {
        // Rules are written with ASCII alone.
        lack.truncate(SHOWN_BYTES_MAX);
        lack.push_str("...");
    }
    let sentence = format!("the user {} may not do this: it needs the right {lack}", user.name);
    Refusal::new(RefusalKind::NoPerm, sentence)
}

/// The refusal of what a user may no longer do.
fn no_longer() -> Refusal {
    let sentence = "the rights of the user have changed, and it may no longer do this".to_owned();
    Refusal::new(RefusalKind::NoPerm, sentence)
}
