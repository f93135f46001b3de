//! Drafts under way: each has a thread that creates its objects, waits until the mark before its
//! own is there, and creates its own.
//!
//! So objects of several drafts are sent at the same time, and marks come in order: none is there
//! before everything that it names. The first failure ends all. What is in a draft is decided in
//! `stream`.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::stream::{Drafted, Parcel};
use super::thinning::REMOVALS_MAX;
use crate::backup::prior::left_over;
use crate::error::ArchiveError;
use crate::fetch;
use crate::mark::Mark;
use crate::names;
use crate::ours::Wholes;
use crate::place::{Place, PlaceError};

/// The most drafts that are under way at a time.
const DEPTH: usize = 4;

/// The most bytes of objects that are being sent at a time, unless one has more.
const SENDING_BYTES_MAX: usize = 32 << 20;

/// How many objects wait for the thread of their draft.
const WAITING_MAX: usize = 1;

/// The most marks of an earlier process that are read after each draft.
const READS_MAX: usize = 16;

/// A draft whose objects were all handed over.
pub(super) struct Draft {
    /// The caller's own.
    pub(super) token: u64,
    pub(super) drafted: Drafted,
}

/// Why drafts were given up.
pub(super) enum Failed {
    /// This went wrong.
    Of(ArchiveError),
    /// There is a mark with this number, or an object of it.
    Taken(u64),
}

/// What the threads have done since the last time.
pub(super) struct Collected {
    /// The drafts whose marks were created, in order.
    pub(super) done: Vec<Draft>,
    /// What ended the others.
    pub(super) failed: Option<Failed>,
    /// Whether the place has refused to remove a mark.
    pub(super) is_denied: bool,
    /// The marks of earlier processes, once all were read.
    pub(super) earlier: Vec<Mark>,
}

/// The drafts that are under way.
pub(super) struct Flow {
    place: Arc<dyn Place>,
    /// Where whole segments are noted that were created.
    wholes: Arc<Wholes>,
    shared: Arc<Shared>,
    threads: VecDeque<JoinHandle<()>>,
    /// How many drafts were begun since everything was given up.
    begun: u64,
}

/// Takes the objects of one draft. If it is dropped before the draft is complete, that and all
/// later ones are given up.
pub(super) struct Post {
    shared: Arc<Shared>,
    inbox: SyncSender<Message>,
}

enum Message {
    Object(Parcel),
    Mark(Box<Draft>),
}

/// What the threads share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many marks were created.
    created: u64,
    under_way: usize,
    /// The bytes of objects that are being sent.
    bytes: usize,
    done: Vec<Draft>,
    failed: Option<Failed>,
    is_denied: bool,
    chores: Chores,
    /// Whether no more marks are created.
    is_over: bool,
}

/// What the threads do besides, a little after each draft.
#[derive(Default)]
struct Chores {
    /// The numbers of marks to remove, until they are.
    obsolete: VecDeque<u64>,
    /// The numbers of marks to read, newest last.
    unread: Vec<u64>,
    /// How many threads read some.
    readers: usize,
    /// Those that were read.
    earlier: Vec<Mark>,
}

/// The thread of one draft.
struct Carrier {
    place: Arc<dyn Place>,
    wholes: Arc<Wholes>,
    shared: Arc<Shared>,
    /// How many marks come before its own.
    turn: u64,
    inbox: Receiver<Message>,
    has_ended: bool,
}

impl Flow {
    pub(super) fn new(place: Arc<dyn Place>, wholes: Arc<Wholes>) -> Self {
        Self { place, wholes, shared: Arc::default(), threads: VecDeque::new(), begun: 0 }
    }

    /// Begins a draft, once not too many are under way. Returns none if all was given up.
    pub(super) fn begin(&mut self) -> Result<Option<Post>, ArchiveError> {
        {
            let state = self.shared.state();
            let is_full = |state: &mut State| state.under_way >= DEPTH && !state.is_over;
            let waited = self.shared.changed.wait_while(state, is_full);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner);
            if state.is_over {
                return Ok(None);
            }
            state.under_way += 1;
        }
        // Those that have created their marks may still be removing others.
        self.threads.retain(|thread| !thread.is_finished());
        if self.threads.len() >= 2 * DEPTH
            && let Some(oldest) = self.threads.pop_front()
        {
            drop(oldest.join());
        }
        let (inbox, receiver) = sync_channel(WAITING_MAX);
        let carrier = Carrier {
            place: Arc::clone(&self.place),
            wholes: Arc::clone(&self.wholes),
            shared: Arc::clone(&self.shared),
            turn: self.begun,
            inbox: receiver,
            has_ended: false,
        };
        self.begun += 1;
        let thread = Builder::new().name("archive-draft".to_owned());
        let thread = thread.spawn(move || carrier.run()).map_err(|error| {
            self.give_up();
            let (name, why) = (self.place.name(), error.to_string());
            PlaceError::Away { what: "start a thread for", name, why }
        })?;
        self.threads.push_back(thread);
        Ok(Some(Post { shared: Arc::clone(&self.shared), inbox }))
    }

    /// How many drafts are under way.
    pub(super) fn under_way(&self) -> usize {
        let state = self.shared.state();
        if state.is_over { 0 } else { state.under_way }
    }

    /// Returns what the threads have done. If that is nothing, and some are under way, it waits for
    /// it up to `within`.
    pub(super) fn collect(&self, within: Duration) -> Collected {
        let state = self.shared.state();
        let is_idle = |state: &mut State| {
            let has_news = !state.done.is_empty() || state.failed.is_some();
            !has_news && state.under_way > 0 && !state.is_over
        };
        let waited = self.shared.changed.wait_timeout_while(state, within, is_idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        // Which of them may go is known from the one after each.
        let are_read = state.chores.unread.is_empty() && state.chores.readers == 0;
        Collected {
            done: std::mem::take(&mut state.done),
            failed: state.failed.take(),
            is_denied: state.is_denied,
            earlier: if are_read { std::mem::take(&mut state.chores.earlier) } else { Vec::new() },
        }
    }

    /// Whether marks are still to be removed.
    pub(super) fn has_obsolete(&self) -> bool {
        !self.shared.state().chores.obsolete.is_empty()
    }

    /// Removes marks with the drafts that follow, until they are gone.
    pub(super) fn remove(&self, numbers: Vec<u64>) {
        self.shared.state().chores.obsolete.extend(numbers);
    }

    /// Reads marks with the drafts that follow, newest first. `numbers` are newest last.
    pub(super) fn read(&self, numbers: Vec<u64>) {
        self.shared.state().chores.unread = numbers;
    }

    /// Neither removes nor reads any of the marks that it was told.
    pub(super) fn forget_marks(&self) {
        self.shared.state().chores = Chores::default();
    }

    /// Gives up all drafts that are under way. One whose mark is being created may still succeed.
    pub(super) fn give_up(&self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
    }

    /// Gives up all drafts, waits until nothing is sent any more, and begins anew. Returns the
    /// drafts whose marks were created meanwhile.
    pub(super) fn renew(&mut self) -> Vec<Draft> {
        self.give_up();
        for thread in self.threads.drain(..) {
            // A panic was noted as a failure.
            drop(thread.join());
        }
        self.begun = 0;
        let ended = std::mem::take(&mut self.shared);
        let mut ended = ended.state();
        self.shared.state().chores = std::mem::take(&mut ended.chores);
        std::mem::take(&mut ended.done)
    }
}

impl Post {
    /// Hands over an object. Waits until there is room for it.
    pub(super) fn send(&self, parcel: Parcel) -> Result<(), ArchiveError> {
        let bytes = parcel.bytes.len();
        {
            let state = self.shared.state();
            let is_full = |state: &mut State| {
                !state.is_over && state.bytes > 0 && state.bytes + bytes > SENDING_BYTES_MAX
            };
            let waited = self.shared.changed.wait_while(state, is_full);
            waited.unwrap_or_else(PoisonError::into_inner).bytes += bytes;
        }
        self.inbox.send(Message::Object(parcel)).map_err(|_| {
            // Why is told by the thread.
            let what = "an earlier object could not be sent".to_owned();
            ArchiveError::LookAgain { what }
        })
    }

    /// Completes the draft.
    pub(super) fn conclude(self, draft: Draft) {
        // If its thread has ended, that was told.
        drop(self.inbox.send(Message::Mark(Box::new(draft))));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here is half done when a thread panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes all who wait.
    fn note(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Gives up all drafts. Only the first failure is told.
    fn fail(&self, failed: Option<Failed>) {
        self.note(|state| {
            if !state.is_over {
                state.failed = failed;
            }
            state.is_over = true;
        });
    }

    /// Waits until as many marks were created. Returns false if all was given up.
    fn wait_for(&self, turn: u64) -> bool {
        let is_early = |state: &mut State| state.created < turn && !state.is_over;
        let waited = self.changed.wait_while(self.state(), is_early);
        !waited.unwrap_or_else(PoisonError::into_inner).is_over
    }
}

impl Carrier {
    fn run(mut self) {
        if let Err(failed) = self.carry() {
            self.shared.fail(failed);
        }
        self.has_ended = true;
    }

    /// Sends the objects, and then the mark. An error without a reason is no failure of its own.
    fn carry(&self) -> Result<(), Option<Failed>> {
        loop {
            match self.inbox.recv() {
                Ok(Message::Object(_)) if self.shared.state().is_over => return Err(None),
                Ok(Message::Object(parcel)) => {
                    let (bytes, mark) = (parcel.bytes.len(), parcel.mark);
                    let sent = self.send(parcel);
                    self.shared.note(|state| state.bytes = state.bytes.saturating_sub(bytes));
                    if !sent.map_err(|error| Some(Failed::Of(error)))? {
                        return Err(Some(Failed::Taken(mark)));
                    }
                }
                Ok(Message::Mark(draft)) => return self.create_mark(*draft),
                Err(_) => return Err(None),
            }
        }
    }

    /// Creates an object. Returns false if its name is taken by something else: then its mark is
    /// another's, or a draft that failed has left it.
    fn send(&self, parcel: Parcel) -> Result<bool, ArchiveError> {
        let Parcel { name, bytes, whole, .. } = parcel;
        let is_new = self.place.create(&name, &bytes)?;
        let Some((wanted, last)) = whole else { return Ok(is_new) };
        if is_new {
            self.wholes.note(&wanted, last);
            return Ok(true);
        }
        // A draft that failed was still on its way, or somebody has removed a mark.
        let there = fetch::whole(&*self.place, &wanted).map_err(left_over)?;
        let bytes = fetch::unpack(&wanted, &name, bytes)?;
        if there.is_none_or(|there| there.bytes != bytes) {
            let what = format!("there is another {name}");
            return Err(ArchiveError::OlderCopy { what });
        }
        self.place.settle(&name)?;
        self.wholes.note(&wanted, last);
        Ok(true)
    }

    fn create_mark(&self, draft: Draft) -> Result<(), Option<Failed>> {
        if !self.shared.wait_for(self.turn) {
            return Err(None);
        }
        let mark = &draft.drafted.mark;
        self.expect_before(mark).map_err(|error| Some(Failed::Of(error)))?;
        let created = self.place.create(&names::mark(mark.number), &mark.encode());
        if !created.map_err(|error| Some(Failed::Of(error.into())))? {
            return Err(Some(Failed::Taken(mark.number)));
        }
        self.shared.note(|state| {
            state.created += 1;
            state.under_way = state.under_way.saturating_sub(1);
            state.done.push(draft);
        });
        self.remove();
        self.shared.state().chores.readers += 1;
        self.read_earlier();
        self.shared.note(|state| {
            state.chores.readers = state.chores.readers.saturating_sub(1);
        });
        Ok(())
    }

    /// Refuses to go on in a place that was emptied, or is another one than before: the mark before
    /// is gone, and with it perhaps what this one names.
    fn expect_before(&self, mark: &Mark) -> Result<(), ArchiveError> {
        let before = names::mark(mark.number.saturating_sub(1));
        if self.place.get(&before)?.is_some() {
            return Ok(());
        }
        let what = format!("{before} is gone from {}", self.place.name());
        Err(ArchiveError::LookAgain { what })
    }

    /// Removes marks that later ones stand for. What cannot be removed is tried again later, unless
    /// it is forbidden: then it stays for a prune.
    fn remove(&self) {
        for _ in 0..REMOVALS_MAX {
            let next = self.shared.state().chores.obsolete.pop_front();
            let Some(number) = next else { return };
            match self.place.remove(&names::mark(number)) {
                Ok(_) => {}
                Err(PlaceError::Denied { .. }) => {
                    self.shared.note(|state| {
                        state.is_denied = true;
                        state.chores.obsolete.clear();
                    });
                    return;
                }
                Err(_) => {
                    self.shared.note(|state| state.chores.obsolete.push_front(number));
                    return;
                }
            }
        }
    }

    /// Reads some of the marks that earlier processes have left. What cannot be read stays for a
    /// prune.
    fn read_earlier(&self) {
        for _ in 0..READS_MAX {
            let next = self.shared.state().chores.unread.pop();
            let Some(number) = next else { return };
            let name = names::mark(number);
            match self.place.get(&name) {
                Ok(Some(bytes)) => {
                    let read = Mark::decode(&name, &bytes).ok();
                    self.shared.note(|state| state.chores.earlier.extend(read));
                }
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }
}

impl Drop for Carrier {
    /// Nobody waits for a thread that has panicked.
    fn drop(&mut self) {
        if !self.has_ended {
            let what = "the thread that sends a part of the archive has ended".to_owned();
            self.shared.fail(Some(Failed::Of(ArchiveError::LookAgain { what })));
        }
    }
}
