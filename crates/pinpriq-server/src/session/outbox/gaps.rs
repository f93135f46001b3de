//! Answers of other shards: the gaps kept for them, and what fills these gaps.
//!
//! A client gets its replies in the order of its requests, whichever shard they come from. So a
//! request that goes to another shard leaves a gap, and each shard fills its gaps one after
//! another. A delivery fills no gap: it comes before the next reply of its shard, or after all
//! others. Nor do replies among which `home::desk::choosing` chooses: it fills the gap of its
//! request.

use std::collections::VecDeque;

use pinpriq_proto::fanout::MemberFigures;
use pinpriq_proto::reply::{Output, Reply, TubeShown, TubesShown};
use pinpriq_store::durable::Holds;

use super::{Answer, Dialect, From, Outbox, Waiting, answer_bytes, member_bytes};
use crate::clients::about::{MUTE, PART, SILENT};
use crate::letters::letter::{Part, Piece};

/// Stands for the gap of a reply that is handed on to the chooser among several.
const CHOICE: u64 = u64::MAX;

/// What is still to come from other shards.
pub(super) struct Abroad {
    /// What each shard owes, and what became of its outputs.
    shards: Vec<Debt>,
    /// The ends of encoded frames that were not accepted, counted in total bytes encoded. Each
    /// comes with its shard and the bytes that its output occupied.
    encoded: VecDeque<(u64, u16, usize)>,
}

/// What one shard owes.
#[derive(Clone, Default)]
struct Debt {
    /// The gaps of the answers that it owes, counted from the first answer of the connection, each
    /// with the encoded command if that begins or ends subscriptions.
    gaps: VecDeque<(u64, Option<Vec<u8>>)>,
    /// How many of its outputs the socket has accepted without the shard being informed.
    accepted: usize,
    /// The bytes that they occupied.
    accepted_bytes: usize,
}

/// Joins the parts of all shards, which come in any order, into one answer.
pub(crate) type Join = Box<dyn FnOnce(Vec<Part>) -> Joined>;

/// One answer made of parts.
pub(crate) enum Joined {
    /// Bytes of the door.
    Bytes(Vec<u8>),
    /// An output for the door to write.
    Output(Output),
}

/// An answer to which every shard contributes a part.
pub(super) struct Gathered {
    parts: Vec<Part>,
    /// The number of parts that will come.
    count: usize,
    join: Option<Join>,
}

impl Abroad {
    fn of(shards: usize) -> Self {
        Self { shards: vec![Debt::default(); shards], encoded: VecDeque::new() }
    }
}

impl Outbox {
    /// Keeps a gap for the reply of shard `from`, out of this number of shards. A command that
    /// begins or ends subscriptions is returned by [`Outbox::arrive`] if it is not refused.
    pub(crate) fn await_reply(
        &mut self,
        (shards, from): (usize, usize),
        dialect: Dialect,
        subscribes: Option<Vec<u8>>,
    ) {
        let gap = self.keep_gap(Answer::Owed, dialect);
        let gaps = &mut self.abroad(shards).shards[from].gaps;
        gaps.push_back((gap, subscribes));
    }

    /// Keeps a gap for an answer to which some of this number of shards contribute.
    pub(crate) fn await_parts(
        &mut self,
        shards: usize,
        from: &[usize],
        dialect: Dialect,
        join: Join,
    ) {
        let parts = Vec::with_capacity(from.len());
        let gathered = Gathered { parts, count: from.len(), join: Some(join) };
        let gap = self.keep_gap(Answer::Gathered(gathered), dialect);
        for from in from {
            self.abroad(shards).shards[*from].gaps.push_back((gap, None));
        }
    }

    /// Keeps a gap for an answer that [`Outbox::answer`] gives. There is one at a time.
    pub(crate) fn keep_place(&mut self, dialect: Dialect) {
        self.kept = self.keep_gap(Answer::Owed, dialect);
    }

    /// Expects a reply of shard `from`, out of this number of shards, that [`Outbox::arrive`]
    /// returns.
    pub(crate) fn await_choice(&mut self, shards: usize, from: usize) {
        self.abroad(shards).shards[from].gaps.push_back((CHOICE, None));
    }

    /// Fills the gap that was kept for this answer, which never comes if there is none. Its output
    /// is that of shard `from`, if any.
    pub(crate) fn answer(&mut self, from: Option<usize>, answer: Option<(Output, Holds)>) {
        let gap = self.kept;
        match answer {
            Some((output, holds)) => {
                self.fill(gap, from.map_or(From::Here, From::shard), output, holds);
            }
            None => self.lose_gap(gap),
        }
    }

    /// Notes that the answer at a gap will never come, if it is still awaited.
    fn lose_gap(&mut self, gap: u64) {
        self.take_begun(gap);
        if self.is_awaited(gap) {
            self.at(gap).answer = Answer::Lost;
        }
    }

    /// Whether an answer is not complete yet. One with several parts may be, before all parts are
    /// there.
    fn is_awaited(&mut self, gap: u64) -> bool {
        let is_there = gap != CHOICE && gap >= self.passed;
        is_there && matches!(self.at(gap).answer, Answer::Owed | Answer::Gathered(_))
    }

    fn keep_gap(&mut self, answer: Answer, dialect: Dialect) -> u64 {
        let gap = self.passed + self.waiting.len() as u64;
        self.waiting.push_back(Waiting { dialect, ..Waiting::for_its_turn(answer, 0) });
        gap
    }

    fn abroad(&mut self, shards: usize) -> &mut Abroad {
        self.abroad.get_or_insert_with(|| Box::new(Abroad::of(shards)))
    }

    /// Whether no shard owes a reply.
    pub(crate) fn is_owed_nothing(&self) -> bool {
        let shards = self.abroad.as_ref().map_or(&[][..], |abroad| &abroad.shards);
        shards.iter().all(|shard| shard.gaps.is_empty())
    }

    /// Puts an output of another shard, out of this number of shards, where it belongs. A delivery
    /// after all other answers is written in this dialect. `is_blocked` says whether the last of
    /// them is that of a blocked request, which deliveries do not wait for. `receive` sees each
    /// output first, and returns what goes to the client. Returns the replies that were expected
    /// with [`Outbox::await_choice`], and the commands that have begun or ended subscriptions.
    pub(crate) fn arrive(
        &mut self,
        (shards, from): (usize, usize),
        pieces: Vec<Piece>,
        (dialect, is_blocked): (Dialect, bool),
        mut receive: impl FnMut(Output) -> Option<Output>,
    ) -> (Vec<Piece>, Vec<Vec<u8>>) {
        let (mut to_choose, mut subscribed) = (Vec::new(), Vec::new());
        for piece in pieces {
            let piece = match piece {
                Piece::Members(members) => {
                    self.begin_reply((shards, from), members);
                    continue;
                }
                Piece::Tubes(tubes) => {
                    self.begin_part((shards, from), tubes);
                    continue;
                }
                Piece::Output(output, holds) => match receive(output) {
                    Some(output) => Piece::Output(output, holds),
                    None => continue,
                },
                other => other,
            };
            let gap = if let Piece::Output(Output::Delivery { .. } | Output::Notice(_), _) = &piece
            {
                self.insert_delivery((shards, from), dialect, is_blocked)
            } else {
                let gap = self.abroad(shards).shards[from].gaps.pop_front();
                let Some((gap, command)) = gap else {
                    unreachable!("shard {from} has answered what was not asked")
                };
                if let Piece::Output(Output::Reply { reply: Reply::Count(_), .. }, _) = piece {
                    subscribed.extend(command);
                }
                gap
            };
            match piece {
                piece if gap == CHOICE => to_choose.push(piece),
                Piece::Output(Output::Reply { request: PART, reply, .. }, holds) => {
                    self.add_whole(gap, From::shard(from), (Part::Reply(reply), holds));
                }
                Piece::Output(output, holds) => self.fill(gap, From::shard(from), output, holds),
                Piece::Part(part) => self.add_part(gap, part),
                Piece::Lost => self.lose_gap(gap),
                Piece::Members(_) | Piece::Tubes(_) => {}
            }
        }
        (to_choose, subscribed)
    }

    /// Returns none of the commands that begin or end subscriptions and were not answered yet: a
    /// reset ends what they begin.
    pub(crate) fn forget_subscriptions(&mut self) {
        let shards = self.abroad.as_mut().map_or(&mut [][..], |abroad| &mut abroad.shards);
        shards.iter_mut().flat_map(|debt| &mut debt.gaps).for_each(|(_, command)| *command = None);
    }

    /// Returns the gap of what a shard owes next.
    fn next_gap(&mut self, (shards, from): (usize, usize)) -> u64 {
        let Some(&(gap, _)) = self.abroad(shards).shards[from].gaps.front() else {
            unreachable!("shard {from} has answered what was not asked")
        };
        gap
    }

    /// Keeps the first tubes of the part that a shard owes next, as a part of its own.
    fn begin_part(&mut self, at: (usize, usize), tubes: Vec<TubeShown>) {
        let gap = self.next_gap(at);
        if self.is_awaited(gap)
            && let Answer::Gathered(Gathered { parts, count, .. }) = &mut self.at(gap).answer
        {
            *count += 1;
            let shown = TubesShown { tubes, ..TubesShown::default() };
            parts.push(Part::Reply(Reply::Tubes(Box::new(shown))));
        }
    }

    /// Keeps the first members of the reply that a shard owes next.
    fn begin_reply(&mut self, at: (usize, usize), members: Vec<MemberFigures>) {
        let gap = self.next_gap(at);
        let bytes = members.iter().map(member_bytes).sum::<usize>();
        let waiting = self.at(gap);
        match &mut waiting.answer {
            Answer::Begun(begun) => begun.extend(members),
            answer => *answer = Answer::Begun(members),
        }
        waiting.bytes += bytes;
        self.waiting_bytes += bytes;
    }

    /// Removes the first members of the reply at this gap, which is owed as before.
    fn take_begun(&mut self, gap: u64) -> Vec<MemberFigures> {
        if gap == CHOICE || gap < self.passed {
            return Vec::new();
        }
        let waiting = self.at(gap);
        let Answer::Begun(members) = &mut waiting.answer else { return Vec::new() };
        let members = std::mem::take(members);
        waiting.answer = Answer::Owed;
        let bytes = std::mem::take(&mut waiting.bytes);
        self.waiting_bytes -= bytes;
        members
    }

    /// Goes through what a shard owes, oldest first, because its owner has changed. What `settle`
    /// returns fills the gap; where it returns nothing, the next owner fills it. The fate of the
    /// outputs that came from there before is not reported. Returns what was expected with
    /// [`Outbox::await_choice`].
    pub(crate) fn settle(
        &mut self,
        from: usize,
        mut settle: impl FnMut(usize) -> Option<Piece>,
    ) -> Vec<Piece> {
        let mut to_choose = Vec::new();
        let Some(abroad) = &mut self.abroad else { return to_choose };
        let Debt { gaps, .. } = std::mem::take(&mut abroad.shards[from]);
        abroad.encoded.retain(|(_, of, _)| usize::from(*of) != from);
        let waiting = self.waiting.iter_mut().map(|it| &mut it.from);
        let in_flight = self.in_flight.iter_mut().map(|it| &mut it.from);
        waiting.chain(in_flight).for_each(|it| it.note_former(from));
        for (index, (gap, subscribes)) in gaps.into_iter().enumerate() {
            match settle(index) {
                Some(piece) if gap == CHOICE => to_choose.push(piece),
                Some(Piece::Output(output, holds)) => self.fill(gap, From::Here, output, holds),
                Some(Piece::Part(part)) => self.add_part(gap, part),
                Some(Piece::Lost) => self.lose_gap(gap),
                Some(Piece::Members(_) | Piece::Tubes(_)) | None => {
                    // The next owner tells all members.
                    self.take_begun(gap);
                    if let Some(abroad) = &mut self.abroad {
                        abroad.shards[from].gaps.push_back((gap, subscribes));
                    }
                }
            }
        }
        to_choose
    }

    /// Makes a gap for a delivery, before the next reply of its shard, before the answer that a
    /// blocked client waits for, or after all others.
    fn insert_delivery(
        &mut self,
        (shards, from): (usize, usize),
        dialect: Dialect,
        is_blocked: bool,
    ) -> u64 {
        let next = self.abroad(shards).shards[from].gaps.front().map(|(gap, _)| *gap);
        let next = next.filter(|gap| *gap != CHOICE && *gap >= self.passed);
        let is_open = |it: &Waiting| matches!(it.answer, Answer::Owed | Answer::Growing(_));
        let last = self.waiting.back().filter(|last| is_blocked && is_open(last));
        let last = last.map(|_| self.passed + self.waiting.len() as u64 - 1);
        let Some(gap) = next.or(last) else {
            return self.keep_gap(Answer::Owed, dialect);
        };
        let dialect = self.at(gap).dialect;
        let index = usize::try_from(gap - self.passed).unwrap_or(usize::MAX);
        self.waiting.insert(index, Waiting { dialect, ..Waiting::for_its_turn(Answer::Owed, 0) });
        self.kept += u64::from(self.kept >= gap);
        for debt in &mut self.abroad(shards).shards {
            for (moved, _) in &mut debt.gaps {
                *moved += u64::from(*moved >= gap && *moved != CHOICE);
            }
        }
        gap
    }

    /// Returns the waiting answer at this gap.
    pub(super) fn at(&mut self, gap: u64) -> &mut Waiting {
        let passed = self.passed;
        let index = gap.checked_sub(passed).and_then(|index| usize::try_from(index).ok());
        let Some(waiting) = index.and_then(|index| self.waiting.get_mut(index)) else {
            unreachable!("gap {gap} was given up, of {passed} that have passed")
        };
        waiting
    }

    fn fill(&mut self, gap: u64, from: From, mut output: Output, holds: Holds) {
        if let Output::Reply { request, .. } = &mut output
            && *request == MUTE
        {
            *request = SILENT;
        }
        let mut members = self.take_begun(gap);
        if let Output::Reply { reply: Reply::Members(rest), .. } = &mut output {
            members.append(rest);
            *rest = members;
        }
        let bytes = answer_bytes(&output);
        let waiting = self.at(gap);
        assert!(matches!(waiting.answer, Answer::Owed), "gap {gap} is kept for no reply");
        waiting.answer = Answer::Output(output);
        waiting.from = from;
        (waiting.bytes, waiting.holds) = (bytes, holds);
        self.waiting_bytes += bytes;
    }

    /// Adds a part that is the whole answer: no other shard has any.
    fn add_whole(&mut self, gap: u64, from: From, (part, holds): (Part, Holds)) {
        // If another part was lost, the connection ends, and its leases with it.
        if !self.is_awaited(gap) {
            return;
        }
        let waiting = self.at(gap);
        if let Answer::Gathered(Gathered { count, .. }) = &mut waiting.answer {
            *count = 1;
        }
        (waiting.from, waiting.holds) = (from, holds);
        self.add_part(gap, part);
    }

    fn add_part(&mut self, gap: u64, part: Part) {
        if !self.is_awaited(gap) {
            return;
        }
        let waiting = self.at(gap);
        let Answer::Gathered(Gathered { parts, count, join }) = &mut waiting.answer else {
            // Another shard gives no more parts.
            return;
        };
        parts.push(part);
        if parts.len() >= *count
            && let Some(join) = join.take()
        {
            let answer = match join(std::mem::take(parts)) {
                Joined::Bytes(bytes) => {
                    waiting.bytes = bytes.len();
                    Answer::Bytes(bytes)
                }
                Joined::Output(output) => {
                    waiting.bytes = answer_bytes(&output);
                    Answer::Output(output)
                }
            };
            waiting.answer = answer;
            self.waiting_bytes += waiting.bytes;
        }
    }

    /// Notes that nothing more will come from a shard. Returns a piece for each reply that was
    /// expected with [`Outbox::await_choice`].
    pub(crate) fn lose(&mut self, from: usize) -> Vec<Piece> {
        let Some(abroad) = &mut self.abroad else { return Vec::new() };
        let gaps = std::mem::take(&mut abroad.shards[from].gaps);
        let mut to_choose = Vec::new();
        for (gap, _) in gaps {
            match gap {
                CHOICE => to_choose.push(Piece::Lost),
                gap => self.lose_gap(gap),
            }
        }
        to_choose
    }

    /// Whether everything was sent that ever will be, since an answer was lost.
    pub(crate) fn is_at_loss(&self) -> bool {
        let first = self.waiting.front().map(|waiting| &waiting.answer);
        matches!(first, Some(Answer::Lost)) && self.encoded_bytes() == 0
    }

    /// Notes that an output of another shard, which occupied this many bytes, is completely
    /// encoded.
    #[inline(never)]
    pub(super) fn note_encoded(&mut self, from: u16, bytes: usize) {
        let end = self.encoded;
        if let Some(abroad) = &mut self.abroad {
            abroad.encoded.push_back((end, from, bytes));
        }
    }

    /// Notes that the socket has accepted the encoded bytes up to this one.
    pub(super) fn note_accepted(&mut self, sent: u64) {
        let Some(abroad) = &mut self.abroad else { return };
        while let Some((_, from, bytes)) = abroad.encoded.pop_front_if(|(end, ..)| *end <= sent) {
            let Some(debt) = abroad.shards.get_mut(usize::from(from)) else { continue };
            debt.accepted += 1;
            debt.accepted_bytes += bytes;
        }
    }

    /// Removes and returns the number of accepted outputs of a shard, if they are at least this
    /// many or occupied at least this many bytes. Otherwise returns 0.
    pub(crate) fn take_accepted(&mut self, from: usize, least: (usize, usize)) -> usize {
        let Some(abroad) = &mut self.abroad else { return 0 };
        let debt = &mut abroad.shards[from];
        if debt.accepted < least.0 && debt.accepted_bytes < least.1 {
            return 0;
        }
        debt.accepted_bytes = 0;
        std::mem::take(&mut debt.accepted)
    }
}
