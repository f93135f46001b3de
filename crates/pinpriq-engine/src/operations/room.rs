//! Refuses commands with BUSY while the store is nearly full.
//!
//! Every change is written to the store, even if it frees no room. Acknowledging must always have
//! room left. So commands that free no room are refused, one kind after the other, and commands
//! that free room are never refused. How full the store is, only the store knows.

use pinpriq_proto::facts::Disk;

use crate::engine::Engine;
use crate::memory::slots::QueueSlot;
use pinpriq_proto::command::{Command, TakeMode};
use pinpriq_proto::reply::{Refusal, RefusalKind};
use pinpriq_proto::room::{Room, Shortage};

impl Engine {
    /// Sets what the store has room for. Returns whether tasks that had been held back were handed
    /// out. If so, there are changes to take, and outputs. Costs a step for each consumer that
    /// waits, when leases are granted again.
    #[inline]
    pub fn set_room(&mut self, room: Room) -> bool {
        let former = std::mem::replace(&mut self.room, room);
        former == Room::Least && room != Room::Least && self.grant_again()
    }

    /// Sets why the store has not enough room.
    pub const fn set_shortage(&mut self, shortage: Shortage) {
        self.shortage = shortage;
    }

    /// Wakes the consumers that waited for a lease. Returns whether any was served.
    #[inline(never)]
    fn grant_again(&mut self) -> bool {
        let clients = self.consumers.clients.values();
        let subscribed = clients.flat_map(|client| client.subscriptions.keys());
        let taken_from = self.consumers.takers.values().flat_map(|taker| &taker.queues);
        let waited_for: Vec<QueueSlot> = subscribed.chain(taken_from).copied().collect();
        for queue in waited_for {
            self.wake(queue);
        }
        let outputs = self.outputs.len();
        self.conclude();
        self.outputs.len() > outputs
    }

    /// Returns what the store has room for.
    #[must_use]
    pub const fn room(&self) -> Room {
        self.room
    }

    /// Whether tasks can be handed out to a consumer of this mode.
    pub(crate) fn can_hand_out(&self, mode: TakeMode) -> bool {
        self.room < Room::Least || mode == TakeMode::Pop
    }

    /// Refuses a command for which the store has no room. New tasks, lanes and members are checked
    /// later, where their bytes are known.
    #[inline]
    pub(crate) fn check_store(&self, command: &Command<'_>) -> Result<(), Refusal> {
        if self.room < Room::Scarce { Ok(()) } else { self.check_scarce_store(command) }
    }

    #[inline(never)]
    fn check_scarce_store(&self, command: &Command<'_>) -> Result<(), Refusal> {
        // A put, a publication or a part is refused later. A drain may need a resumed side. What
        // could not be sent has to go back.
        let is_refused = match command.on_full_disk() {
            Disk::Served => false,
            Disk::Refused => true,
            Disk::Leases => !self.can_hand_out(TakeMode::Lease { ttr: None }),
        };
        if is_refused { Err(self.lacks_room()) } else { Ok(()) }
    }

    /// Refuses a lease of a member that would have to be written to the store.
    pub(crate) fn check_new_lease(&self) -> Result<(), Refusal> {
        if self.room < Room::Scarce { Ok(()) } else { Err(self.lacks_room()) }
    }

    /// Returns the refusal of what the store has no room for.
    pub(crate) fn lacks_room(&self) -> Refusal {
        let sentence = match self.shortage {
            Shortage::File => {
                "the store cannot make its next file, its log says why: finish some, try again"
            }
            Shortage::Engine => {
                "the engine under the cluster is nearly full, by --cluster-bytes-max or its own \
                 quota: finish some, try again"
            }
            Shortage::Space => "the disk is nearly full: finish some, try again",
        };
        Refusal::new(RefusalKind::Busy, sentence.to_owned())
    }
}
