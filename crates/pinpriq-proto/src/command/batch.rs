//! The commands on batches. What a batch is, is described at [`crate::batches`]. What becomes of
//! its tasks is decided by the engine.

use super::parts::Wait;
use crate::facts::{Anywhere, Called, Destination, Joining};
use crate::names::NamesPage;
use crate::time::Span;

/// The commands on batches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Command, pinpriq_derive::Letter)]
pub enum BatchCommand<'a> {
    /// Makes a batch that has no tasks yet.
    #[command(
        needs(put = name), shard = name, names = Called("name of a batch", name), disk = Refused,
        change, step
    )]
    #[letter(1)]
    #[request(
        Spec::new("BATCH", Group::Batches,
            "Makes a batch that has no tasks yet",
            "OK")
        .sub("OPEN")
    )]
    Open {
        /// Its name.
        #[key("batch")]
        name: &'a [u8],
        /// After how long it is given up, if it is not done before.
        #[letter(1)]
        #[option(TTL_OF_BATCH)]
        ttl: Option<Span>,
    },
    /// Says that a batch has all its tasks. The reply is how many are pending.
    #[command(
        needs(put = it), shard = it, names = Called("name of a batch", it), disk = Served, change,
        step
    )]
    #[letter(2)]
    #[request(
        Spec::new("BATCH", Group::Batches,
            "Says that a batch has all its tasks: it is done once none is pending",
            "how many are pending")
        .sub("CLOSE")
    )]
    Close(#[key("batch")] &'a [u8]),
    /// Shows a batch.
    #[command(
        needs(look = it), shard = it, names = Called("name of a batch", it), disk = Served
    )]
    #[letter(3)]
    #[request(
        Spec::new("BATCH", Group::Batches,
            "Tells how far a batch is",
            "a map: name, state (open, closed, done), total, pending, buried, acked, failed, \
             waiting, opened_at, done_at")
        .sub("SHOW")
    )]
    Show(#[key("batch")] &'a [u8]),
    /// Lists the names of batches, in order.
    #[command(
        needs(look = Anywhere), shard = Destination::Everywhere(Joining::Names(it.count)),
        names = (), disk = Served, within, care = LongReply
    )]
    #[letter(4)]
    #[request(
        Spec::new("BATCH", Group::Batches,
            "Tells the names of the batches, page by page",
            "the cursor of the next page (0 after the last) and the names in order")
        .sub("LIST")
    )]
    List(NamesPage<'a>),
    /// Closes a batch and cancels its pending tasks. The reply is how many they are.
    #[command(
        needs(manage = name), shard = name, names = Called("name of a batch", name), disk = Served,
        change, audit = name, care = LongWork
    )]
    #[letter(5)]
    #[request(
        Spec::new("BATCH", Group::Batches,
            "Closes a batch and cancels all its tasks that are pending",
            "how many were pending")
        .sub("CANCEL")
    )]
    Cancel {
        /// Its name.
        #[key("batch")]
        name: &'a [u8],
        /// Why, for those who look at it.
        #[letter(1)]
        #[option]
        reason: Option<&'a [u8]>,
        /// How long holders of its tasks may go on at most.
        #[letter(2)]
        #[option]
        grace: Option<Span>,
    },
    /// Forgets a batch that is done. The reply is the number of batches forgotten.
    #[command(
        needs(manage = it), shard = it, names = Called("name of a batch", it), disk = Served,
        change, step, audit = it
    )]
    #[letter(6)]
    #[request(
        Spec::new("BATCH", Group::Batches,
            "Forgets a batch that is done",
            "1, or 0 if there is none")
        .sub("DROP")
    )]
    Drop(#[key("batch")] &'a [u8]),
    /// Blocks until a batch is done.
    #[command(
        needs(look = name), shard = name, names = Called("name of a batch", name), disk = Served,
        blocks = wait.blocks()
    )]
    #[letter(7)]
    #[request(
        Spec::new("BATCH", Group::Batches,
            "Waits until a batch is done",
            "done or timeout, and a map as from BATCH SHOW")
        .sub("AWAIT")
    )]
    Await {
        /// Its name.
        #[key("batch")]
        name: &'a [u8],
        /// How long to block.
        #[option(default = Wait::No)]
        wait: Wait,
    },
}
