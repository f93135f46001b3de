//! Joins the replies of all shards into one.

use pinpriq_proto::looking::{LeasePlace, LeaseShown};
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply, TubesShown};
use pinpriq_proto::stats::Figures;
use pinpriq_proto::task::{Bytes, ClientId};

use crate::facts::Facts;
use crate::letters::letter::Part;
use pinpriq_proto::facts::Joining;

/// Returns one reply for those of all engines. What is wrong with one is wrong with all, except
/// that a member need not be known everywhere.
pub(super) fn join_replies(joining: Joining, parts: Vec<Part>) -> Reply {
    let replies = parts.into_iter().filter_map(|part| match part {
        Part::Reply(reply) => Some(reply),
        _ => None,
    });
    let mut replies: Vec<Reply> = replies.collect();
    let position = |matches: fn(RefusalKind) -> bool| {
        let is_such = |reply| refusal(reply).is_some_and(|refusal| matches(refusal.kind));
        replies.iter().position(is_such)
    };
    if joining == Joining::Found
        && let Some(found) = replies.iter().position(|reply| refusal(reply).is_none())
    {
        return replies.swap_remove(found);
    }
    // A member of this name in another shard may be somebody else's.
    let did_some = |reply: &Reply| matches!(reply, Reply::Done | Reply::Count(1..));
    let is_own_elsewhere = joining == Joining::Membership && replies.iter().any(did_some);
    // A failed store is reported first.
    let failed = position(|kind| kind == RefusalKind::Store);
    let refused = failed.or_else(|| {
        if is_own_elsewhere {
            position(|kind| !matches!(kind, RefusalKind::NotFound | RefusalKind::NoPerm))
        } else {
            position(|kind| kind != RefusalKind::NotFound)
        }
    });
    match (refused, joining) {
        (Some(refused), _) => replies.swap_remove(refused),
        (None, Joining::Figures) => add_figures(replies),
        (None, Joining::Names(most)) => merge_names(replies, most),
        (None, Joining::Leases(most)) => merge_leases(replies, most),
        (None, Joining::Membership) => join_membership(replies),
        (None, Joining::Found) => replies.into_iter().next().unwrap_or(Reply::Done),
        (None, Joining::Tubes) => join_tubes(replies),
    }
}

/// Adds up the facts of the shards.
pub(super) fn join_facts(parts: Vec<Part>) -> Facts {
    let facts = parts.into_iter().filter_map(|part| match part {
        Part::Facts(facts) => Some(*facts),
        _ => None,
    });
    facts.reduce(Facts::and).unwrap_or_default()
}

/// Returns all lines about clients, in the order in which the clients came.
pub(super) fn join_clients(parts: Vec<Part>) -> String {
    let lines = parts.into_iter().filter_map(|part| match part {
        Part::Clients(lines) => Some(lines),
        _ => None,
    });
    let mut lines: Vec<(ClientId, String)> = lines.flatten().collect();
    lines.sort_unstable_by_key(|(client, _)| *client);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Returns the number of connections that are being ended, or of deliveries made, in all shards.
pub(super) fn join_counts(parts: &[Part]) -> u64 {
    let counts = parts.iter().filter_map(|part| match part {
        Part::Killed(count) | Part::Delivered(count) => Some(*count),
        _ => None,
    });
    counts.sum()
}

const fn refusal(reply: &Reply) -> Option<&Refusal> {
    match reply {
        Reply::Refused(refusal) => Some(refusal),
        _ => None,
    }
}

fn add_figures(replies: Vec<Reply>) -> Reply {
    let mut sum = Figures::default();
    for reply in replies {
        if let Reply::Figures(figures) = reply {
            sum.add(&figures);
        }
    }
    Reply::Figures(Box::new(sum))
}

/// Returns the first names of all shards. A shard that has more has told all up to its last one, so
/// what comes after that in another shard has to wait.
fn merge_names(replies: Vec<Reply>, most: usize) -> Reply {
    let (mut names, mut told_up_to): (Vec<Bytes>, Option<Bytes>) = (Vec::new(), None);
    let mut more = false;
    for reply in replies {
        if let Reply::Names { names: some, more: and_more } = reply {
            if let Some(last) = some.last().filter(|_| and_more)
                && told_up_to.as_ref().is_none_or(|told| last < told)
            {
                told_up_to = Some(last.clone());
            }
            names.extend(some);
            more |= and_more;
        }
    }
    names.sort_unstable();
    if let Some(told_up_to) = told_up_to {
        names.retain(|name| *name <= told_up_to);
    }
    more |= names.len() > most;
    names.truncate(most);
    Reply::Names { names, more }
}

/// Returns the first leases of all shards. A shard that has more has told all up to its `next`, so
/// what comes after that in another shard has to wait.
fn merge_leases(replies: Vec<Reply>, most: u32) -> Reply {
    let (mut all, mut told_up_to): (Vec<LeaseShown>, Option<Box<LeasePlace>>) = (Vec::new(), None);
    for reply in replies {
        if let Reply::Leases { leases, next } = reply {
            all.extend(leases);
            told_up_to = match (told_up_to, next) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
    }
    all.sort_by(|one, other| one.place.cmp(&other.place));
    if let Some(told_up_to) = &told_up_to {
        all.retain(|lease| lease.place <= **told_up_to);
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let is_cut = all.len() > most;
    all.truncate(most);
    let last = all.last().filter(|_| is_cut).map(|last| Box::new(last.place.clone()));
    Reply::Leases { leases: all, next: last.or(told_up_to) }
}

fn join_tubes(replies: Vec<Reply>) -> Reply {
    let mut all = TubesShown::default();
    for reply in replies {
        if let Reply::Tubes(shown) = reply {
            all.put += shown.put;
            all.timeouts += shown.timeouts;
            all.reserves += shown.reserves;
            all.tubes.extend(shown.tubes);
        }
    }
    Reply::Tubes(Box::new(all))
}

fn join_membership(replies: Vec<Reply>) -> Reply {
    let counts = replies.iter().filter_map(|reply| match reply {
        Reply::Count(count) => Some(*count),
        _ => None,
    });
    if let Some(left) = counts.reduce(|one, other| one + other) {
        return Reply::Count(left);
    }
    let known = replies.iter().position(|reply| refusal(reply).is_none());
    replies.into_iter().nth(known.unwrap_or(0)).unwrap_or(Reply::Done)
}
