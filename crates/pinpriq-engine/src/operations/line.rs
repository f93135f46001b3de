//! Puts that wait for room in a full queue, first come, first served.
//!
//! While a put waits, no other put overtakes it, and it evicts nothing. It enters as a new put of
//! that moment does, with all checks. When a queue may have room is noted in `step.rs` and
//! `admin.rs`.

use crate::engine::{Answered, Engine};
use crate::memory::deadlines::Due;
use crate::memory::putters::{KeptPut, Putter, PutterId, putter_bytes};
use crate::memory::slots::QueueSlot;
use crate::operations::arguments::quoted;
use crate::operations::capacity::{Lack, content_of, full};
use crate::operations::put::paused;
use pinpriq_proto::command::Put;
use pinpriq_proto::limits::BYTES_PER_TIMEOUT;
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::task::{ClientId, RequestId};
use pinpriq_proto::time::Span;

impl Engine {
    /// Puts a task, or waits until there is room for it.
    pub(crate) fn put_in_line(
        &mut self,
        client: ClientId,
        request: RequestId,
        put: &Put<'_>,
        room: Span,
    ) -> Answered {
        self.moment("the wait for room", room)?;
        let refusal = match self.put(client, request, put) {
            Err(refusal) if refusal.kind == RefusalKind::Full => refusal,
            answered => return answered,
        };
        let Some(queue) = self.queues.find(put.queue) else { return Err(refusal) };
        if self.queues[queue].paused.input.is_on() {
            return Err(paused(put.queue));
        }
        self.refuse_too_large(put, queue)?;
        // It would keep others from the room that there is.
        self.check_share_room(put, queue)?;
        if room.is_zero() {
            return Err(refusal);
        }
        let bytes = putter_bytes(put);
        self.check_waits(client, bytes)?;
        let id = PutterId(self.consumers.draw().0);
        let until = self.now.after(room);
        self.deadlines.insert(until, Due::Putter(id));
        self.queues[queue].pins += 1;
        self.consumers.bytes += bytes;
        self.consumers.watchers += 1;
        self.consumers.client(client).putters.insert(id);
        let put = KeptPut::of(put);
        let account = self.accounts.charged().cloned();
        let putter = Putter { client, request, queue, until, put, account };
        self.consumers.putters.insert(id, putter);
        Ok(None)
    }

    /// Whether this request is a put that waits for room. Costs a step for each put of this client
    /// that does.
    #[must_use]
    pub fn is_in_line(&self, client: ClientId, request: RequestId) -> bool {
        let Some(client) = self.consumers.clients.get(&client) else { return false };
        let putters = client.putters.iter().filter_map(|id| self.consumers.putters.find(*id));
        putters.map(|putter| putter.request).any(|known| known == request)
    }

    /// Refuses a put for which a queue never has room, however empty it is.
    fn refuse_too_large(&self, put: &Put<'_>, queue: QueueSlot) -> Result<(), Refusal> {
        match self.queues[queue].settings.capacity_bytes {
            Some(most) if content_of(put) > most => Err(full(put.queue, Lack::Bytes(most))),
            _ => Ok(()),
        }
    }

    /// Notes that there may be room in a queue.
    #[inline]
    pub(crate) fn note_vacancy(&mut self, queue: QueueSlot) {
        if self.consumers.watchers > 0 {
            self.consumers.putters.note_vacancy(queue);
        }
    }

    /// Serves the tasks that became ready, and puts what has waited for room as long as there is
    /// some.
    #[inline]
    pub(crate) fn serve_all(&mut self) {
        self.serve();
        self.fill_vacancies();
    }

    /// Puts what has waited for room as long as there is some. If that is much, the rest waits for
    /// the next call.
    #[inline]
    pub(crate) fn fill_vacancies(&mut self) {
        if self.consumers.putters.have_vacancies() {
            self.let_in();
        }
    }

    #[inline(never)]
    fn let_in(&mut self) {
        let mut bytes = 0;
        while bytes < BYTES_PER_TIMEOUT
            && let Some(id) = self.consumers.putters.next()
        {
            let Some(putter) = self.consumers.putters.find(id) else {
                unreachable!("{id:?} is in line and unknown")
            };
            let (queue, put) = (putter.queue, putter.put.put());
            let is_hopeless = self.refuse_too_large(&put, queue).is_err();
            let is_paused = self.queues[queue].paused.input.is_on();
            if !is_hopeless && (is_paused || self.is_full_for(queue, content_of(&put))) {
                continue;
            }
            let Some(putter) = self.remove_putter(id) else {
                unreachable!("{id:?} is in line and unknown")
            };
            let line = self.consumers.putters.set_aside(queue);
            bytes += putter.put.put().payload.len() as u64;
            let (client, request) = (putter.client, putter.request);
            let put = putter.put.put();
            let too_large = if is_hopeless { self.refuse_too_large(&put, queue) } else { Ok(()) };
            // The command of another client may be under way.
            let charged = self.accounts.charge(putter.account.clone());
            let answered = too_large.and_then(|()| self.put(client, request, &put));
            self.accounts.charge(charged);
            match answered {
                Ok(None) => {}
                Ok(Some(reply)) => self.reply(client, request, reply),
                Err(refusal) => self.reply(client, request, Reply::Refused(refusal)),
            }
            self.consumers.putters.put_back(queue, line);
            self.serve();
        }
    }

    /// Refuses a put for which there was no room in time.
    pub(crate) fn time_out_putter(&mut self, id: PutterId) {
        let Some(putter) = self.remove_putter(id) else { return };
        let name = putter.put.put().queue;
        let is_paused =
            self.queues.find(name).is_some_and(|it| self.queues[it].paused.input.is_on());
        let refusal = if is_paused {
            paused(name)
        } else {
            let sentence = format!("the queue {} had no room for the task in time", quoted(name));
            Refusal::new(RefusalKind::Full, sentence)
        };
        self.reply(putter.client, putter.request, Reply::Refused(refusal));
    }

    /// Removes a put that waits for room, without a reply.
    pub(crate) fn remove_putter(&mut self, id: PutterId) -> Option<Putter> {
        let putter = self.consumers.putters.remove(id)?;
        // When its time is up, the deadline was removed already.
        if self.deadlines.contains(putter.until, Due::Putter(id)) {
            self.deadlines.remove(putter.until, Due::Putter(id));
        }
        self.consumers.bytes -= putter_bytes(&putter.put.put());
        self.consumers.watchers -= 1;
        if let Some(client) = self.consumers.clients.get_mut(&putter.client) {
            client.putters.remove(&id);
        }
        self.consumers.tidy(putter.client);
        self.queues[putter.queue].pins -= 1;
        self.tidy_queue(putter.queue);
        Some(putter)
    }
}
