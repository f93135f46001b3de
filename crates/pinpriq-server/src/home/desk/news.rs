//! What other shards report about errands of clients.

use pinpriq_proto::reply::Output;
use pinpriq_proto::task::{ClientId, Receipt, TaskRecord};

use super::{choosing, dealing};
use crate::clients::about::SILENT;
use crate::home::asking::Asking;
use crate::host::shard::Shard;
use crate::letters::letter::{Errand, News, Piece, Standing};
use crate::session::Session;
use crate::session::dealing::{Aside, receive};

/// Receives the news about errands of a client. If the client has gone, whatever was handed to it
/// goes back.
pub(crate) fn receive_news(shard: &Shard, client: ClientId, from: usize, news: News) {
    let heard = news.outputs();
    let Some(session) = shard.session(client) else {
        if let Some(post) = shard.post()
            && heard > 0
        {
            let unsent = news.into_unsent();
            post.write_errand(from, client, Errand::Back { outputs: heard, unsent });
        }
        return;
    };
    let asking = Asking { shard, session: &session, client };
    let replies = news.replies();
    let lends = news.pieces.iter().any(Piece::is_lease);
    let (at, dialect) = ((shard.places(), from), session.dialect.get());
    // The beginnings of replies stay here until the rest is there.
    let (mut deliveries, mut kept) = (0_i64, news.begun());
    let mut vain = Vec::new();
    let receive = |output: Output| {
        deliveries += deliveries_in(&output);
        let output = receive_output(&session, from, output, &mut vain);
        kept += usize::from(output.is_none());
        output
    };
    // While a SUBSCRIBE waits for shards, they deliver nothing that it has caused.
    let how = (dialect, session.links.borrow().blocked);
    let arrived = session.outbox.borrow_mut().arrive(at, news.pieces, how, receive);
    let (expected, subscribed) = arrived;
    for command in subscribed {
        dealing::note(asking, from, &command);
    }
    if !vain.is_empty() {
        asking.ask_aside(from, Aside::GiveBack(vain, SILENT));
    }
    if kept > 0 {
        asking.errand(from, Errand::Sent(kept));
    }
    let has_ended = {
        let links = &mut *session.links.borrow_mut();
        let link = links.link(shard.places(), from);
        link.heard += heard;
        link.lends |= lends;
        link.under_way -= news.consumed;
        if asking.changes_owners() {
            link.log.note(news.consumed, replies);
        }
        // News from before the client's latest reset do not count.
        let is_new = link.resets == news.resets;
        link.delivered = if is_new { news.delivered } else { 0 };
        link.arrived = link.arrived.saturating_add_signed(deliveries);
        let subscriptions = if is_new { news.standing.subscriptions } else { 0 };
        let ended = link.standing.ended.or(news.standing.ended);
        link.standing = Standing { subscriptions, ended, ..news.standing };
        ended.is_some()
    };
    hear(asking, from, expected);
    if has_ended {
        lose(asking, from);
    }
    let mut outbox = session.outbox.borrow_mut();
    match news.payloads {
        None => {}
        Some(Ok(payloads)) => outbox.supply(payloads),
        Some(Err(refusal)) => outbox.lose_payloads(&refusal, news.tells_refusals),
    }
    if outbox.is_owed_nothing() {
        session.note_nothing_owed();
        if let Some(refusal) = session.denied.take() {
            outbox.deny_last(&refusal);
        }
    }
    session.bell.ring();
}

/// How many deliveries more a client has after an output.
fn deliveries_in(output: &Output) -> i64 {
    match output {
        Output::Delivery { .. } => 1,
        Output::Notice(notice) => -i64::from(notice.is_recall()),
        Output::Reply { .. } => 0,
    }
}

/// Returns what goes to the client of an output. Adds to `vain` what goes back.
fn receive_output(
    session: &Session,
    from: usize,
    output: Output,
    vain: &mut Vec<Receipt>,
) -> Option<Output> {
    match output {
        Output::Delivery { tasks, popped: false, .. } if session.starts_again.get() => {
            vain.extend(tasks.iter().filter_map(TaskRecord::receipt));
            None
        }
        Output::Notice(_) if session.starts_again.get() => None,
        Output::Notice(notice) if !notice.is_recall() && !session.can_hear_of_cancels() => None,
        output => receive(session.dealing.borrow_mut().as_deref_mut(), from, output),
    }
}

/// Passes on replies that a take or a request about subscriptions in several shards awaits, and
/// deals further.
pub(in crate::home) fn hear(asking: Asking<'_>, from: usize, pieces: Vec<Piece>) {
    if asking.session.choosing.borrow().is_some() {
        choosing::hear(asking, from, pieces);
    } else {
        dealing::hear(asking, from, pieces);
    }
    dealing::act(asking, |_| {});
}

/// Notes that nothing more will come from a shard.
pub(in crate::home) fn lose(asking: Asking<'_>, from: usize) {
    asking.session.links.borrow_mut().link(asking.shard.places(), from).log.take();
    let lost = asking.session.outbox.borrow_mut().lose(from);
    hear(asking, from, lost);
}
