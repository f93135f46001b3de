//! Subscriptions of one client in several shards: which of them may deliver how much.
//!
//! The credit is that of the connection, and each shard gets a part of it. With as many credits as
//! shards, every shard gets its share, and the shares are made anew when one is used up. With
//! fewer, the shards without a permission tell what they would deliver next, and the one with the
//! most urgent task is permitted one delivery. Those that have nothing are all permitted one: the
//! first delivery uses up the credit, and what comes from others goes back. So what is popped is
//! held first, under a lease, and its shard pops it once it is chosen.
//!
//! A shard calls back what the client has not started for what is more urgent in the same queue,
//! so no other shard is concerned. The credit of what is called back is there again.
//!
//! This module decides, and `home::desk::dealing` writes the letters.

use std::collections::VecDeque;

use pinpriq_proto::command::Selection;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::task::{Lease, Receipt, RequestId, State, TaskRecord};

use super::choosing::{Urgency, urgency};
use crate::clients::about::ASIDE;

/// The subscriptions of a client in several shards.
pub(crate) struct Dealing {
    selection: Selection,
    /// The credits that no delivery has used up.
    left: u64,
    /// The deliveries since the credits began.
    accepted: u64,
    shares: Vec<Share>,
    /// What shards must be asked about deliveries that have come.
    due: Vec<(usize, Aside)>,
    /// The request that begins or ends subscriptions at the moment.
    pub(crate) joining: Option<Joining>,
}

/// What a shard is asked aside from the requests of the client.
pub(crate) enum Aside {
    /// To permit this number of deliveries beyond those that have arrived.
    Permit(u64),
    /// What it would deliver next.
    Look,
    /// To pop what it holds.
    Pop(Vec<Receipt>),
    /// To take back what came in vain. It says when it has done so, unless the request is a silent
    /// one.
    GiveBack(Vec<Receipt>, RequestId),
}

/// The part of one shard.
struct Share {
    shard: usize,
    is_subscribed: bool,
    /// Whether it has no owner.
    is_away: bool,
    /// Whether it takes part in the request that begins or ends subscriptions.
    is_joining: bool,
    /// How many deliveries it may make that have not arrived.
    open: u64,
    head: Head,
    /// The answers that it owes, oldest first.
    owed: VecDeque<Owed>,
    /// What came in vain and is on its way back, oldest first. The shard may call it back first.
    vain: VecDeque<Vec<Receipt>>,
}

/// What a shard would deliver next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    Unknown,
    Nothing,
    Task(Urgency),
}

/// An answer that is owed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owed {
    Look,
    Pop,
    Back,
}

/// A request that begins or ends subscriptions in several shards.
pub(crate) struct Joining {
    pub(crate) request: RequestId,
    /// What each shard was asked.
    pub(crate) asked: Vec<Part>,
    /// The number of shards that owe their reply.
    pub(crate) owed: usize,
    /// The first refusal or loss.
    pub(crate) failed: Option<Failed>,
}

/// What one shard was asked.
pub(crate) struct Part {
    pub(crate) shard: usize,
    pub(crate) command: Vec<u8>,
    /// For each queue to subscribe to, the command that makes the former subscription again, or the
    /// one that ends the new one.
    pub(crate) undo: Vec<Vec<u8>>,
    pub(crate) is_done: bool,
}

/// Why a request has failed.
pub(crate) enum Failed {
    Refused(Reply),
    Lost,
}

impl Dealing {
    /// Begins with this many credits, of which `accepted` more were used up before.
    pub(crate) fn new(selection: Selection, left: u64, accepted: u64) -> Self {
        let (shares, due, joining) = (Vec::new(), Vec::new(), None);
        Self { selection, left, accepted, shares, due, joining }
    }

    /// Adds a shard, which may make `open` deliveries that have not arrived.
    pub(crate) fn add_shard(&mut self, shard: usize, open: u64) {
        if self.share(shard).is_none() {
            self.shares.push(Share {
                shard,
                is_subscribed: false,
                is_away: false,
                is_joining: false,
                open,
                head: Head::Unknown,
                owed: VecDeque::new(),
                vain: VecDeque::new(),
            });
        }
    }

    /// Returns its shards.
    pub(crate) fn shards(&self) -> impl Iterator<Item = usize> {
        self.shares.iter().map(|share| share.shard)
    }

    fn share(&mut self, shard: usize) -> Option<&mut Share> {
        self.shares.iter_mut().find(|share| share.shard == shard)
    }

    /// Notes whether the client has subscriptions in a shard.
    pub(crate) fn note_subscribed(&mut self, shard: usize, is_subscribed: bool) {
        if let Some(share) = self.share(shard) {
            share.is_subscribed = is_subscribed;
        }
    }

    /// Returns the number of deliveries since the credits began.
    pub(crate) const fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Adds credits.
    pub(crate) fn add(&mut self, credits: u64) {
        self.left += credits;
        // There may be something by now.
        for share in &mut self.shares {
            share.head = Head::Unknown;
        }
    }

    /// Forgets the credits that are left.
    pub(crate) const fn withdraw(&mut self) {
        self.left = 0;
    }

    /// Asks a shard first whether what it delivers is held.
    pub(crate) fn begin_to_hold(&mut self, shard: usize) {
        if let Some(share) = self.share(shard) {
            share.owed.push_back(Owed::Look);
            let open = share.open;
            self.due.extend([(shard, Aside::Permit(open)), (shard, Aside::Look)]);
        }
    }

    /// Whether a shard was asked to pop what it holds, and has not answered.
    pub(crate) fn is_popping(&self, shard: usize) -> bool {
        self.shares.iter().any(|it| it.shard == shard && it.owed.contains(&Owed::Pop))
    }

    /// Notes that a shard has lost its owner. What it has not popped costs no credit.
    pub(crate) fn lose(&mut self, from: usize) {
        let Some(share) = self.share(from) else { return };
        share.is_away = true;
        (share.open, share.head) = (0, Head::Unknown);
        share.vain.clear();
        let owed = std::mem::take(&mut share.owed);
        let unpopped = owed.into_iter().filter(|owed| *owed == Owed::Pop).count() as u64;
        self.refund(unpopped);
        self.due.retain(|(of, _)| *of != from);
    }

    /// Notes that a shard has an owner again.
    pub(crate) fn regain(&mut self, shard: usize) {
        if let Some(share) = self.share(shard) {
            share.is_away = false;
        }
    }

    const fn refund(&mut self, deliveries: u64) {
        self.left += deliveries;
        self.accepted -= deliveries;
    }

    /// Takes a delivery that has come from a shard. Returns whether it goes to the client now.
    fn take(&mut self, from: usize, (tasks, popped): (&[TaskRecord], bool)) -> bool {
        if let Some(share) = self.share(from) {
            share.open = share.open.saturating_sub(1);
        }
        let is_held = tasks.iter().any(is_held);
        let receipts = || tasks.iter().filter_map(TaskRecord::receipt).collect::<Vec<_>>();
        if self.left == 0 && !popped {
            self.due.push((from, Aside::GiveBack(receipts(), ASIDE)));
            if let Some(share) = self.share(from) {
                share.owed.push_back(Owed::Back);
                share.vain.push_back(receipts());
            }
            return false;
        }
        self.left = self.left.saturating_sub(1);
        self.accepted += 1;
        if is_held {
            if let Some(share) = self.share(from) {
                share.owed.push_back(Owed::Pop);
            }
            self.due.push((from, Aside::Pop(receipts())));
        }
        !is_held
    }

    /// Takes back the credit of a delivery that a shard has called back. Returns whether the client
    /// hears of it.
    fn call_back(&mut self, from: usize, receipt: Receipt) -> bool {
        let Some(share) = self.share(from) else { return true };
        share.open += 1;
        let came_in_vain = share.vain.iter().flatten().any(|it| *it == receipt);
        if !came_in_vain {
            self.refund(1);
        }
        !came_in_vain
    }

    /// Takes the answer of a shard to what it was asked aside, other than tasks.
    fn hear(&mut self, from: usize, reply: &Reply) {
        let selection = self.selection;
        let Some(share) = self.share(from) else { return };
        match (share.owed.pop_front(), reply) {
            (Some(Owed::Look), Reply::Shown(tasks)) => {
                let urgent = |task| Head::Task(urgency(selection, task));
                share.head = tasks.first().map_or(Head::Nothing, urgent);
            }
            (Some(Owed::Look), _) => share.head = Head::Nothing,
            // Its lease has ended meanwhile. After a refusal it is not known what has happened.
            (Some(Owed::Pop), Reply::Tasks { tasks, .. }) if tasks.is_empty() => self.refund(1),
            (Some(Owed::Back), _) => {
                share.vain.pop_front();
            }
            (Some(Owed::Pop) | None, _) => {}
        }
    }

    /// Returns what shards must be asked now. A client that ends gets no further deliveries.
    pub(crate) fn next(&mut self, ends: bool) -> Vec<(usize, Aside)> {
        let mut asides = std::mem::take(&mut self.due);
        if !ends {
            self.deal(&mut asides);
        }
        asides
    }

    fn deal(&mut self, asides: &mut Vec<(usize, Aside)>) {
        for share in &mut self.shares {
            // If the request is undone, nothing must have been delivered as it says.
            let asked = self.joining.iter().flat_map(|joining| &joining.asked);
            share.is_joining = asked.into_iter().any(|part| part.shard == share.shard);
            if !share.is_active() && share.open > 0 {
                share.permit(0, asides);
            }
        }
        if self.shares.iter().any(|share| share.owed.contains(&Owed::Look)) {
            return;
        }
        let left = self.left;
        let mut active: Vec<&mut Share> =
            self.shares.iter_mut().filter(|share| share.is_active()).collect();
        let count = active.len() as u64;
        let open: u64 = active.iter().map(|share| share.open).sum();
        if left == 0 {
            for share in active.into_iter().filter(|share| share.open > 0) {
                share.permit(0, asides);
            }
        } else if left >= count {
            let is_fair = open <= left && open > left / 2;
            if is_fair && active.iter().all(|share| share.open > 0) {
                return;
            }
            for (at, share) in (0..).zip(active) {
                share.permit(left / count + u64::from(at < left % count), asides);
            }
        } else {
            // Each of the others has nothing, or it would have delivered it.
            active.retain(|share| share.open == 0);
            choose(&mut active, asides);
        }
    }
}

/// Permits a delivery to the one of these shards that has the most urgent task, or asks for that.
fn choose(shares: &mut [&mut Share], asides: &mut Vec<(usize, Aside)>) {
    if let [share] = shares {
        share.permit(1, asides);
        return;
    }
    if shares.iter().any(|share| share.head == Head::Unknown) {
        for share in shares.iter_mut().filter(|share| share.head == Head::Unknown) {
            share.look(asides);
        }
        return;
    }
    let with_task = shares.iter_mut().filter_map(|share| match share.head {
        Head::Task(urgency) => Some((urgency, share)),
        Head::Unknown | Head::Nothing => None,
    });
    if let Some((_, share)) = with_task.min_by_key(|(urgency, _)| *urgency) {
        share.permit(1, asides);
        // Its answer comes after the delivery, if there is one.
        share.look(asides);
        return;
    }
    for share in shares {
        share.permit(1, asides);
    }
}

impl Share {
    const fn is_active(&self) -> bool {
        self.is_subscribed && !self.is_away && !self.is_joining
    }

    fn permit(&mut self, open: u64, asides: &mut Vec<(usize, Aside)>) {
        if open != self.open {
            self.open = open;
            asides.push((self.shard, Aside::Permit(open)));
        }
    }

    fn look(&mut self, asides: &mut Vec<(usize, Aside)>) {
        self.head = Head::Unknown;
        self.owed.push_back(Owed::Look);
        asides.push((self.shard, Aside::Look));
    }
}

/// Takes a delivery that has come from a shard, or its answer to what it was asked aside. Returns
/// what goes to the client. Without a `dealing` the client has subscriptions in one shard, or it
/// has started again meanwhile, and what is left is a task that was popped.
pub(crate) fn receive(
    dealing: Option<&mut Dealing>,
    from: usize,
    output: Output,
) -> Option<Output> {
    match output {
        Output::Delivery { client, tasks, popped } => {
            let goes_on = match dealing {
                Some(dealing) => dealing.take(from, (&tasks, popped)),
                None => !tasks.iter().any(is_held),
            };
            goes_on.then_some(Output::Delivery { client, tasks, popped })
        }
        Output::Notice(notice) => {
            let goes_on =
                !notice.is_recall() || dealing.is_none_or(|it| it.call_back(from, notice.receipt));
            goes_on.then_some(Output::Notice(notice))
        }
        Output::Reply { client, request: ASIDE, reply: Reply::Tasks { tasks, popped } }
            if !tasks.is_empty() =>
        {
            if let Some(share) = dealing.and_then(|dealing| dealing.share(from)) {
                share.owed.pop_front();
            }
            Some(Output::Delivery { client, tasks, popped })
        }
        Output::Reply { request: ASIDE, reply, .. } => {
            if let Some(dealing) = dealing {
                dealing.hear(from, &reply);
            }
            None
        }
        reply @ Output::Reply { .. } => Some(reply),
    }
}

fn is_held(task: &TaskRecord) -> bool {
    matches!(&task.progress.state, State::Taken(lease) if Lease::is_held_for_pop(lease))
}
