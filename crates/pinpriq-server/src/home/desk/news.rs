//! What other shards report about errands of clients.

use pinpriq_proto::task::ClientId;

use super::choosing;
use crate::host::shard::Shard;
use crate::letters::letter::{Errand, News, Piece, Standing};
use crate::letters::mailbox::Post;

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
    let to_choose = session.outbox.borrow_mut().arrive(at, news.pieces, dialect);
    if !to_choose.is_empty() {
        choosing::hear(shard, &session, (client, from), to_choose);
    }
    let mut outbox = session.outbox.borrow_mut();
    match news.payloads {
        None => {}
        Some(Ok(payloads)) => outbox.supply(payloads),
        Some(Err(refusal)) => outbox.lose_payloads(&refusal, news.tells_refusals),
    }
    let links = &mut *session.links.borrow_mut();
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
    let subscribed = is_new && news.standing.subscribed;
    link.standing = Standing { subscribed, ..news.standing };
    if news.standing.ended.is_some() {
        outbox.lose(from);
    }
    if outbox.is_owed_nothing() {
        (links.blocked, links.gives_up, links.gathers) = (false, false, false);
        if let Some(refusal) = session.denied.take() {
            outbox.deny_last(&refusal);
        }
    }
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
