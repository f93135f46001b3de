//! What a home of a cluster does when the owner of a shard changes.
//!
//! A client notices as little of it as can be. What the former owner has not begun is asked of the
//! next one, in order. What it may have begun is refused as UNKNOWN, since this node cannot tell
//! whether it has happened, except for what has no effect until it is answered: reads, and blocked
//! requests that hand out leases. Where no owner comes in time, requests are refused as TRYAGAIN,
//! unless the former owner may have begun what changes something.
//!
//! Who owns what is decided elsewhere.

use std::collections::HashMap;

use pinpriq_proto::command::{Command, Deed, Share, TakeMode, Wait};
use pinpriq_proto::letters::{decode_command, encode_command};
use pinpriq_proto::reply::{Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::task::{ClientId, RequestId};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::durable::Holds;

use super::asking::Asking;
use super::desk::{dealing, news};
use crate::clients::about::{MUTE, PART, SILENT, is_guest};
use crate::clients::ending::Ending;
use crate::host::shard::Shard;
use crate::letters::letter::{Commands, Errand, Letter, Part, Piece};
use crate::letters::mailbox::Route;
use crate::session::choosing::Choosing;
use crate::session::links::Link;
use crate::session::log::{Asked, Wanted, What, substitute, wait_of, with_wait};

/// How long a request waits for an owner of its shard, in milliseconds.
const OWNERLESS_MS: u64 = 3_000;

/// How long it waits when the engine under the cluster does not answer, in milliseconds. An engine
/// that has owed an answer for longer counts as down.
const DOWN_MS: u64 = 1_000;

/// How the former owner has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loss {
    /// In order: it has told all that it has done.
    InOrder,
    /// Suddenly.
    Sudden,
}

/// What becomes of something that was asked.
enum Fate {
    /// It is done, and forgotten.
    Done,
    /// The next owner is asked. Nothing of it was carried out.
    Again,
    /// The next owner is asked, although the former one may have begun it.
    Anew,
    /// It is answered with this.
    Answered(Piece),
}

/// Notes that a shard has lost its owner. `unsent` are the letters that have not reached it.
pub(crate) fn lose_owner(home: &Shard, shard: usize, unsent: &[Letter], loss: Loss) {
    let Some(post) = home.post() else { return };
    post.set_route(shard, Route::Nowhere);
    let mut not_begun: HashMap<ClientId, usize> = HashMap::new();
    for letter in unsent {
        if let Letter::Errand { client, errand: Errand::Commands(commands), .. } = letter {
            *not_begun.entry(*client).or_default() += commands.count();
        }
    }
    each_linked(home, shard, |asking| {
        let not_begun = not_begun.get(&asking.client).copied().unwrap_or(0);
        lose_owner_of(asking, shard, (not_begun, loss));
    });
}

fn lose_owner_of(asking: Asking<'_>, shard: usize, (not_begun, loss): (usize, Loss)) {
    let Asking { shard: home, session, client } = asking;
    let (begun, ends) = {
        let links = &mut *session.links.borrow_mut();
        let is_deaf = links.lasting.manners.is_some_and(|manners| !manners.tells_refusals);
        let is_there = home.sharding().is_in(shard);
        let subscriptions = &links.lasting.subscriptions;
        let may_lose = subscriptions.to(is_there).any(|(_, pops)| is_deaf || pops);
        // A subscription that popped may have been replaced since.
        let is_popping = session.dealing.borrow().as_ref().is_some_and(|it| it.is_popping(shard));
        let loses_deliveries = loss == Loss::Sudden && (may_lose || is_popping);
        // Before that, what arrives may be from before a reset.
        let is_settled = links.deliveries == Some(shard);
        let link = links.link(home.places(), shard);
        // What has not arrived is lost, and costs no credit.
        let arrived = std::mem::take(&mut link.arrived);
        if is_settled {
            link.delivered_before.set(link.delivered_before.get() + arrived);
        }
        link.open = false;
        (link.heard, link.resets, link.delivered) = (0, 0, 0);
        let asked = || link.log.iter().filter(|it| matches!(it.what, What::Command(..)));
        let begun = asked().count().saturating_sub(not_begun);
        // A subscription that may have begun to pop is not among the others yet.
        let may_pop = loss == Loss::Sudden && asked().take(begun).any(begins_to_pop);
        (begun, loses_deliveries || may_pop)
    };
    dealing::act(asking, |dealing| dealing.lose(shard));
    let mut seen = 0;
    // The next owner resets the client only if it is asked for something from before.
    let mut asks_again = false;
    let (is_answered, is_growing) = {
        let choosing = session.choosing.borrow();
        let choosing = choosing.as_ref();
        let dealing = session.dealing.borrow();
        let is_joining = dealing.as_ref().is_some_and(|dealing| dealing.joining.is_some());
        let is_answered = choosing.is_none_or(Choosing::is_answered) && !is_joining;
        (is_answered, choosing.is_some_and(Choosing::is_growing))
    };
    settle(asking, shard, |asked| {
        if let What::Command(..) = asked.what {
            seen += 1;
        }
        let may_have_begun = loss == Loss::Sudden && (asked.carried_out || seen <= begun);
        // An answer that has tasks already does not wait for an owner.
        let is_superfluous = is_answered || (is_growing && !may_have_begun);
        if asked.what.is_reset() && asks_again {
            return Fate::Again;
        }
        let fate = fate((client, shard), asked, (may_have_begun, is_superfluous));
        asks_again |= matches!(fate, Fate::Again | Fate::Anew);
        fate
    });
    if ends {
        end(asking, shard);
    }
}

/// Decides what becomes of something when its owner is gone.
fn fate(
    (client, shard): (ClientId, usize),
    asked: &Asked,
    (may_have_begun, is_superfluous): (bool, bool),
) -> Fate {
    if !asked.is_owed {
        return Fate::Done;
    }
    match &asked.what {
        What::Part(wanted) => Fate::Answered(Piece::Part(substitute(*wanted, shard))),
        // Another shard has handed something over, so no client waits here.
        What::Command(PART, _) if is_superfluous => Fate::Answered(Piece::Part(Part::Done)),
        What::Command(..) if !may_have_begun => Fate::Again,
        What::Command(request, bytes) => repeated(bytes)
            .unwrap_or_else(|| Fate::Answered(refused(client, *request, unknown(shard)))),
    }
}

/// Refuses what has waited too long for an owner of its shard. `silent_ms` says for how long the
/// engine under the cluster has owed an answer.
pub(crate) fn give_up_waiting(home: &Shard, silent_ms: u64) {
    let is_down = silent_ms > DOWN_MS;
    let now = home.clock().now();
    let refusal = |asked: &Asked, to| {
        let is_part = matches!(asked.what, What::Command(PART, _));
        if asked.may_have_begun && !is_part {
            return unknown(to);
        }
        if asked.may_have_begun {
            let kind = if is_down { RefusalKind::ClusterDown } else { RefusalKind::TryAgain };
            let sentence = format!(
                "shard {to} has no owner at the moment; a task that it may have leased for this \
                 request goes back"
            );
            return Refusal::new(kind, sentence);
        }
        if is_down {
            return Refusal::cluster_down();
        }
        let sentence = format!("shard {to} has no owner at the moment; nothing was carried out");
        Refusal::new(RefusalKind::TryAgain, sentence)
    };
    refuse_ownerless(home, |asked| now >= patience_ends(asked, is_down), refusal, substitute);
}

/// Refuses everything that waits for an owner of its shard as STORE. `why` is the sentence.
pub(crate) fn refuse_waiting(home: &Shard, why: &str) {
    let refusal = || Refusal::new(RefusalKind::Store, why.to_owned());
    let part = |wanted, to| match wanted {
        Wanted::Reply => Part::Reply(Reply::Refused(refusal())),
        wanted => substitute(wanted, to),
    };
    refuse_ownerless(home, |_| true, |_, _| refusal(), part);
}

/// Refuses of what waits for an owner of its shard what `is_meant`.
fn refuse_ownerless(
    home: &Shard,
    is_meant: impl Fn(&Asked) -> bool,
    refusal: impl Fn(&Asked, usize) -> Refusal,
    part: impl Fn(Wanted, usize) -> Part,
) {
    for to in (0..home.shards()).filter(|to| home.is_nowhere(*to)) {
        each_linked(home, to, |asking| {
            let is_any = {
                let links = &mut *asking.session.links.borrow_mut();
                links.link(home.places(), to).log.iter().any(&is_meant)
            };
            if is_any {
                settle(asking, to, |asked| match &asked.what {
                    _ if !is_meant(asked) => Fate::Again,
                    What::Part(wanted) => Fate::Answered(Piece::Part(part(*wanted, to))),
                    What::Command(request, _) => {
                        Fate::Answered(refused(asking.client, *request, refusal(asked, to)))
                    }
                });
            }
        });
    }
}

/// Returns until when something waits for an owner. What may block waits as long as it may.
fn patience_ends(asked: &Asked, is_down: bool) -> Timestamp {
    let shortest = Span::from_ms(if is_down { DOWN_MS } else { OWNERLESS_MS });
    let wait = match &asked.what {
        What::Part(_) => None,
        What::Command(_, bytes) => decode_command(bytes, wait_of).ok().flatten(),
    };
    match wait {
        Some(Wait::Forever) => Timestamp::from_ms(u64::MAX),
        Some(Wait::For(wait)) => asked.at.after(wait.max(shortest)),
        Some(Wait::No) | None => asked.at.after(shortest),
    }
}

/// Asks the new owner of a shard for everything that waits for one.
pub(crate) fn gain_owner(home: &Shard, to: usize, route: Route) {
    let Some(post) = home.post() else { return };
    post.set_route(to, route);
    each_linked(home, to, |asking| {
        ask_next_owner(asking, to);
        dealing::act(asking, |dealing| dealing.regain(to));
    });
}

fn ask_next_owner(asking: Asking<'_>, to: usize) {
    let Asking { shard: home, session, client } = asking;
    let Some(post) = home.post() else { return };
    let now = home.clock().now();
    let links = &mut *session.links.borrow_mut();
    let Some(manners) = links.lasting.manners else { return };
    let has_credits = links.deliveries == Some(to)
        && links.lasting.ends.is_none()
        && session.dealing.borrow().is_none();
    let credits = if has_credits { links.lasting.credits } else { 0 };
    let (is_blocked, gives_up) = (links.blocked, links.gives_up);
    let ends = links.lasting.ends;
    let subscriptions: Vec<Vec<u8>> = if ends.is_none() {
        let there = links.lasting.subscriptions.to(home.sharding().is_in(to));
        there.map(|(command, _)| command.to_vec()).collect()
    } else {
        Vec::new()
    };
    let link = links.link(home.places(), to);
    let left = credits.saturating_sub(link.delivered_before.get());
    let is_idle = link.log.is_empty() && subscriptions.is_empty() && left == 0;
    if link.open || is_idle || link.standing.ended.is_some() {
        return;
    }
    link.open = true;
    post.write_errand(to, client, Errand::Open(manners));
    if link.account.is_some() {
        post.write_errand(to, client, Errand::Account(link.account.clone()));
    }
    let kept = link.log.take();
    let ask = |link: &mut Link, mut asked: Asked| {
        if let What::Command(request, bytes) = &asked.what {
            let bytes = with_time_left(bytes, now.since(asked.at));
            asked.length = Commands::length(bytes.len());
            let encode = |out: &mut Vec<u8>| out.extend_from_slice(&bytes);
            post.write_command(to, client, *request, encode);
        } else if asked.what.is_reset() {
            post.write_errand(to, client, Errand::Reset);
            link.resets += 1;
        }
        link.log.keep(asked);
    };
    // What is known of subscriptions and credits is from after the latest reset.
    let resets = kept.iter().rposition(|asked| asked.what.is_reset()).map_or(0, |last| last + 1);
    let mut kept = kept.into_iter();
    for asked in kept.by_ref().take(resets) {
        ask(link, asked);
    }
    for bytes in subscriptions {
        let length = Commands::length(bytes.len());
        let encode = |out: &mut Vec<u8>| out.extend_from_slice(&bytes);
        post.write_command(to, client, SILENT, encode);
        link.log.push(What::Command(SILENT, Vec::new()), length, now, false);
    }
    if left > 0 {
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        post.write_errand(to, client, Errand::Credit(left));
    }
    for asked in kept {
        ask(link, asked);
    }
    link.under_way = link.log.under_way();
    if is_blocked && gives_up {
        post.write_errand(to, client, Errand::EndWaits);
    }
    if let Some(stopping) = ends {
        post.write_errand(to, client, Errand::End { stopping, unsent: Vec::new() });
    }
}

/// Calls `act` for each client with its connection here that has asked anything of this shard.
fn each_linked(home: &Shard, to: usize, mut act: impl FnMut(Asking<'_>)) {
    home.each_client(|client, session| {
        if !is_guest(client) && session.links.borrow().has(to) {
            act(Asking { shard: home, session, client });
        }
    });
}

/// Forgets the wait of a take over several shards in one that has no owner at the moment.
pub(super) fn withdraw_wait(asking: Asking<'_>, to: usize) {
    let (withdrawn, _) = take_fates(asking, to, |asked| match asked.what {
        What::Command(PART, _) => Fate::Answered(Piece::Part(Part::Done)),
        _ => Fate::Again,
    });
    debug_assert_eq!(withdrawn.len(), 1, "a take waits once in each shard");
}

/// Goes through all that was asked of a shard, and does what `decide` says.
fn settle(asking: Asking<'_>, to: usize, decide: impl FnMut(&Asked) -> Fate) {
    let session = asking.session;
    let (expected, is_refused) = take_fates(asking, to, decide);
    news::hear(asking, to, expected);
    let is_deaf = {
        if session.outbox.borrow().is_owed_nothing() {
            session.note_nothing_owed();
        }
        let links = session.links.borrow();
        links.lasting.manners.is_some_and(|manners| !manners.tells_refusals)
    };
    session.bell.ring();
    if is_refused && is_deaf {
        end(asking, to);
    }
}

/// Returns what a request to several shards has to hear, and whether anything was refused that
/// fills its own gap.
fn take_fates(
    Asking { shard: home, session, .. }: Asking<'_>,
    to: usize,
    mut decide: impl FnMut(&Asked) -> Fate,
) -> (Vec<Piece>, bool) {
    let links = &mut *session.links.borrow_mut();
    let link = links.link(home.places(), to);
    let mut pieces = Vec::new();
    let mut is_refused = false;
    for mut asked in link.log.take() {
        let (is_owed, fate) = (asked.is_owed, decide(&asked));
        match fate {
            Fate::Again | Fate::Anew => {
                asked.carried_out = false;
                asked.may_have_begun |= matches!(fate, Fate::Anew);
                link.log.keep(asked);
                if is_owed {
                    pieces.push(None);
                }
            }
            Fate::Answered(piece) if is_owed => {
                is_refused |= matches!(asked.what, What::Command(request, _) if request != PART);
                pieces.push(Some(piece));
            }
            // The caller gave up, so drop the reply.
            Fate::Done | Fate::Answered(_) => {}
        }
    }
    link.under_way = link.log.under_way();
    link.standing.stalled = false;
    let settle = |index: usize| pieces.get_mut(index).and_then(Option::take);
    let expected = session.outbox.borrow_mut().settle(to, settle);
    (expected, is_refused)
}

/// Ends a client whose protocol cannot say what has happened. The next owner is asked for nothing.
fn end(asking: Asking<'_>, to: usize) {
    {
        let links = &mut *asking.session.links.borrow_mut();
        links.link(asking.shard.places(), to).standing.ended = Some(Ending::Unknown);
    }
    news::lose(asking, to);
    asking.session.bell.ring();
}

fn refused(client: ClientId, request: RequestId, refusal: Refusal) -> Piece {
    // A request without a reply cannot be refused: its connection ends.
    if request == MUTE {
        return Piece::Lost;
    }
    let reply = Reply::Refused(refusal);
    Piece::Output(Output::Reply { client, request, reply }, Holds::default())
}

/// Whether a command begins subscriptions that pop at once. Those in several shards hold first.
fn begins_to_pop(asked: &Asked) -> bool {
    let What::Command(request, bytes) = &asked.what else { return false };
    let pops =
        |command: &Command<'_>| matches!(command, Command::Subscribe { mode: TakeMode::Pop, .. });
    *request != PART && decode_command(bytes, pops).unwrap_or(false)
}

fn unknown(shard: usize) -> Refusal {
    let sentence = format!(
        "the owner of shard {shard} has changed, and it is not known whether the request was \
         carried out"
    );
    Refusal::new(RefusalKind::Unknown, sentence)
}

/// Returns how the next owner is asked for a command that the former one may have begun, if that
/// does no harm.
fn repeated(bytes: &[u8]) -> Option<Fate> {
    let decided = decode_command(bytes, |command| match command {
        Command::Take(take) if take.wait.blocks() && take.mode != TakeMode::Pop => Some(Fate::Anew),
        Command::Reserve(reserve) if reserve.wait.blocks() => Some(Fate::Anew),
        Command::Take(_)
        | Command::TakeOne { .. }
        | Command::Reserve(_)
        | Command::Numbered { deed: Deed::Take, .. } => None,
        Command::Share(Share::Wait { .. })
        | Command::Subscribe { .. }
        | Command::Unsubscribe { .. } => Some(Fate::Anew),
        // Each says whether a lease is the current one, however often it is asked.
        Command::Start { .. } | Command::StartAll { .. } => Some(Fate::Again),
        command => (!command.is_change()).then_some(Fate::Again),
    });
    decided.ok().flatten()
}

/// Returns the command with what is left of the time that it may block.
fn with_time_left(bytes: &[u8], passed: Span) -> Vec<u8> {
    let left = |wait: Wait| match wait {
        Wait::For(span) => Wait::For(Span::from_ms(span.ms().saturating_sub(passed.ms()).max(1))),
        wait => wait,
    };
    let mut out = Vec::new();
    let decoded =
        decode_command(bytes, |command| encode_command(&with_wait(command, left), &mut out));
    assert!(decoded.is_ok(), "what was encoded here can be decoded here: {decoded:?}");
    out
}
