//! What other shards report about errands of clients.

use pinpriq_proto::reply::Output;
use pinpriq_proto::task::ClientId;

use super::{choosing, dealing};
use crate::host::shard::Shard;
use crate::letters::letter::{Errand, News, Piece, Standing};
use crate::letters::mailbox::Post;
use crate::session::dealing::receive;

/// Receives the news about errands of a client. If the client has gone, whatever was handed to it
/// goes back.
pub(crate) fn receive_news(shard: &Shard, client: ClientId, from: usize, news: News) {
    let Some(session) = shard.session(client) else {
        return send_back(shard, client, from, news);
    };
    let heard = news.outputs();
    let replies = news.replies();
    let lends = news.pieces.iter().any(Piece::is_lease);
    let (at, dialect) = ((shard.places(), from), session.dialect.get());
    // The beginnings of replies stay here until the rest is there.
    let (mut deliveries, mut kept) = (0, news.begun());
    let receive = |output: Output| {
        deliveries += u64::from(matches!(output, Output::Delivery { .. }));
        let output = receive(session.dealing.borrow_mut().as_deref_mut(), from, output);
        kept += usize::from(output.is_none());
        output
    };
    // While a SUBSCRIBE waits for shards, they deliver nothing that it has caused.
    let how = (dialect, session.links.borrow().blocked);
    let arrived = session.outbox.borrow_mut().arrive(at, news.pieces, how, receive);
    let (to_choose, subscribed) = arrived;
    for command in subscribed {
        dealing::note(shard, &session, from, &command);
    }
    if kept > 0
        && let Some(post) = shard.post()
    {
        post.write_errand(from, client, Errand::Sent(kept));
    }
    let is_joining = session.choosing.borrow().is_none();
    let (to_choose, mut to_join) =
        if is_joining { (Vec::new(), to_choose) } else { (to_choose, Vec::new()) };
    choosing::hear(shard, &session, (client, from), to_choose);
    let mut outbox = session.outbox.borrow_mut();
    match news.payloads {
        None => {}
        Some(Ok(payloads)) => outbox.supply(payloads),
        Some(Err(refusal)) => outbox.lose_payloads(&refusal, news.tells_refusals),
    }
    let mut links = session.links.borrow_mut();
    let link = links.link(shard.places(), from);
    link.heard += heard;
    link.lends |= lends;
    link.under_way -= news.consumed;
    if shard.post().is_some_and(Post::changes_owners) {
        link.log.note(news.consumed, replies);
    }
    // News from before the client's latest reset do not count.
    let is_new = link.resets == news.resets;
    link.delivered = if is_new { news.delivered } else { 0 };
    link.arrived += deliveries;
    let subscriptions = if is_new { news.standing.subscriptions } else { 0 };
    let ended = link.standing.ended.or(news.standing.ended);
    link.standing = Standing { subscriptions, ended, ..news.standing };
    let mut lost = Vec::new();
    if ended.is_some() {
        lost = outbox.lose(from);
        link.log.take();
    }
    if outbox.is_owed_nothing() {
        (links.blocked, links.gives_up, links.gathers) = (false, false, false);
        if let Some(refusal) = session.denied.take() {
            outbox.deny_last(&refusal);
        }
    }
    drop((outbox, links));
    if is_joining {
        to_join.append(&mut lost);
    }
    choosing::hear(shard, &session, (client, from), lost);
    dealing::go_on(shard, &session, (client, from), to_join);
    session.bell.ring();
}

/// Sends back outputs that have come for a client that has gone.
fn send_back(shard: &Shard, client: ClientId, from: usize, news: News) {
    let outputs = news.outputs();
    if let Some(post) = shard.post()
        && outputs > 0
    {
        let unsent = news.into_unsent();
        post.write_errand(from, client, Errand::Back { outputs, unsent });
    }
}
