//! One engine's part of a take over the queues of several engines.

use pinpriq_proto::command::{Done, Held, HeldBy, Share, Take, TakeMode, Wait};
use pinpriq_proto::limits::{DONE_MAX, NAME_BYTES_MAX};
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::settings::AfterAck;
use pinpriq_proto::task::{Bytes, ClientId, Receipt, RequestId, State, TaskRecord};
use pinpriq_proto::time::Span;

use super::serve::Taker;
use super::{Answer, Model, fits};

impl Model {
    pub(super) fn share(
        &mut self,
        client: ClientId,
        request: RequestId,
        share: &Share<'_>,
    ) -> Answer {
        match share {
            Share::Look { done, take } => self.look_first(client, done, take),
            Share::Wait { take, is_echo } => self.wait_too(client, request, take, *is_echo),
            Share::Pop(receipts) => Ok(Some(self.pop_held(receipts))),
            Share::Permit { deliveries, holds } => {
                self.permit(client, *deliveries, *holds);
                Ok(Some(Reply::Done))
            }
            Share::Next => Ok(Some(Reply::Shown(self.next_to_deliver(client)))),
        }
    }

    fn look_first(&mut self, client: ClientId, done: &[Done<'_>], take: &Take<'_>) -> Answer {
        let names = done.iter().map(|done| done.queue).chain(take.queues.iter().copied());
        fits(names.chain(take.member).all(|name| name.len() <= NAME_BYTES_MAX))?;
        self.taken_fits(&Take { wait: Wait::No, ..*take })?;
        let places = self.places_of(take.queues, take.member)?;
        self.order_fits(&places, take.selection)?;
        self.finish_done(client, done)?;
        for place in &places {
            self.note_life(place);
        }
        let homes = places.iter().filter_map(|place| self.homes.get(place));
        let mut open = homes.filter(|home| self.gives(home, take.selection));
        let first = open.next().and_then(|home| home.first(take.selection, self.now));
        let shown = first.map(|task| TaskRecord { payload: Bytes::default(), ..task.clone() });
        Ok(Some(Reply::Shown(shown.into_iter().collect())))
    }

    fn wait_too(
        &mut self,
        client: ClientId,
        request: RequestId,
        take: &Take<'_>,
        is_echo: bool,
    ) -> Answer {
        self.take_fits(take)?;
        let places = self.places_of(take.queues, take.member)?;
        self.order_fits(&places, take.selection)?;
        let (count, selection, mode) = (take.count, take.selection, take.mode);
        let is_held = mode == TakeMode::Pop;
        let tasks = self.collect(&places, client, selection, (mode, is_held), count);
        let until = match take.wait {
            _ if !tasks.is_empty() => None,
            Wait::No | Wait::For(Span::ZERO) => None,
            Wait::For(span) => Some(Some(self.now.after(span))),
            Wait::Forever => Some(None),
        };
        let Some(until) = until else {
            return Ok(Some(Reply::Tasks { tasks, popped: false }));
        };
        self.may_wait(client, self.take_bytes(&places))?;
        let turn = self.draw();
        self.note_due(until);
        let (reserve, is_share) = (None, true);
        self.takers.push(Taker {
            turn,
            client,
            request,
            places,
            count,
            selection,
            mode,
            until,
            reserve,
            is_share,
            is_echo,
        });
        Ok(None)
    }

    fn pop_held(&mut self, receipts: &[Receipt]) -> Reply {
        let mut tasks = Vec::new();
        for receipt in receipts {
            let number = receipt.number;
            let task = self.places.get(&number).map(|place| &self.homes[place].tasks[&number]);
            let is_held = task.is_some_and(|task| {
                let is_held =
                    matches!(&task.progress.state, State::Taken(lease) if lease.is_held_for_pop());
                is_held && task.receipt() == Some(*receipt)
            });
            if is_held && self.is_live(number) {
                let mut popped = self.task(number).clone();
                popped.progress.state = State::Ready;
                self.kept.pop(number);
                self.finish(number, None);
                tasks.push(popped);
            }
        }
        Reply::Tasks { tasks, popped: true }
    }

    /// Acknowledges tasks, all or none.
    pub(super) fn finish_done(
        &mut self,
        client: ClientId,
        done: &[Done<'_>],
    ) -> Result<(), RefusalKind> {
        fits(done.len() <= DONE_MAX)?;
        let (mut numbers, mut growth) = (Vec::new(), 0);
        for Done { queue, receipt, result } in done {
            let held = Held { queue: (*queue).into(), by: HeldBy::Receipt(*receipt) };
            let number = self.hold(client, held)?;
            if numbers.contains(&number) {
                return Err(RefusalKind::Stale);
            }
            self.payload_fits(*result)?;
            let is_kept = self.settings(&self.places[&number]).after_ack != AfterAck::Delete;
            if let Some(result) = result {
                growth += if is_kept { result.len() as u64 } else { 0 };
                self.has_room(growth)?;
            }
            numbers.push(number);
        }
        for (number, done) in numbers.into_iter().zip(done) {
            self.note_result(number, done.result);
            self.finish(number, None);
        }
        Ok(())
    }
}
