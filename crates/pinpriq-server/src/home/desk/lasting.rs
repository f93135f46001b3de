//! What a desk asks shards whose owners change, and keeps until it is done.

use pinpriq_proto::command::Command;
use pinpriq_proto::letters::encode_command;
use pinpriq_proto::task::RequestId;

use super::Desk;
use crate::clients::about::{MUTE, SILENT};
use crate::letters::letter::Commands;
use crate::session::log::{Wanted, What};

impl Desk {
    /// Asks another shard for a command, and keeps the command until it is done. If the shard has
    /// no owner at the moment, the next one is asked.
    #[inline(never)]
    pub(super) fn forward_in_cluster(&self, to: usize, request: RequestId, command: &Command<'_>) {
        let (shard, session) = (&self.seat.shard, &self.seat.session);
        let Some(post) = shard.post() else { return };
        shard.turn_if_begun();
        // Its reply shows whether it has happened.
        let request = if request == SILENT { MUTE } else { request };
        let mut bytes = Vec::new();
        encode_command(command, &mut bytes);
        if !shard.is_nowhere(to) {
            self.open_link(to);
            let encode = |out: &mut Vec<u8>| out.extend_from_slice(&bytes);
            post.write_command(to, self.seat.client, request, encode);
        }
        {
            let links = &mut *session.links.borrow_mut();
            links.blocked |= command.may_block();
            links.lasting.manners = Some(self.seat.manners);
            let link = links.link(post.places(), to);
            let length = Commands::length(bytes.len());
            link.under_way += length;
            link.standing.subscriptions += u32::from(matches!(command, Command::Subscribe { .. }));
            link.log.push(What::Command(request, bytes), length, shard.clock().now());
        }
        self.await_reply(to, command);
    }

    /// Notes that a shard owes its part of a reply, if its owner may change.
    pub(super) fn log_part(&self, to: usize, wanted: Wanted, length: usize) {
        if self.changes_owners() {
            let (shard, links) = (&self.seat.shard, &mut *self.seat.session.links.borrow_mut());
            let link = links.link(shard.places(), to);
            link.log.push(What::Part(wanted), length, shard.clock().now());
        }
    }
}
