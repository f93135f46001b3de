//! The place of the archive, which outlives every start of the server and gets into trouble.
//!
//! What happens to an object follows from the seed, its name and the offer, and not from the order
//! of calls, since these come from several threads. When there is trouble is decided in `archive`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{Listing, Place, PlaceError};

use crate::Dice;

/// Below this are the marks.
const MARKS: &str = "marks/";

/// A place in memory; see the start of this file.
pub(super) struct Remote {
    objects: MemoryPlace,
    seed: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How many of a thousand operations fail.
    failing: u64,
    /// The number of the offer, with which fates change.
    offer: u64,
    is_away: bool,
    /// How many more objects the server creates before it is killed, if it is.
    life: Option<u64>,
    /// Whether the server was killed: nothing that it does has an effect any more.
    is_dead: bool,
    late: Option<Late>,
    /// How many objects have arrived late.
    late_arrivals: u64,
    /// The first trouble in this offer.
    trouble: Option<Trouble>,
}

/// An object that a killed server had on its way.
struct Late {
    name: String,
    bytes: Vec<u8>,
    /// How many objects are created before it arrives.
    creates: u64,
}

/// What has gone wrong at the place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trouble {
    /// It was out of reach.
    Away,
    /// An object was not created.
    Refused,
    /// An object was created, and the answer was lost.
    AnswerLost,
    /// Something was not read, listed or removed.
    Unread,
    /// An object of a killed server has arrived.
    Late,
}

/// What somebody removes by hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Removed {
    Everything,
    Marks,
    NewestMark,
}

/// What becomes of an object that is created.
enum Fate {
    Succeeds,
    Fails,
    AnswerLost,
}

impl Remote {
    /// A place at which this many of a thousand operations fail. If it `keeps_all`, nobody is
    /// allowed to remove anything.
    pub(super) fn new(seed: u64, failing: u64, keeps_all: bool) -> Self {
        let objects = MemoryPlace::new();
        if keeps_all {
            objects.keep_all();
        }
        Self { objects, seed, state: Mutex::new(State { failing, ..State::default() }) }
    }

    /// What is there, as whoever has no trouble with it sees it.
    pub(super) const fn objects(&self) -> &MemoryPlace {
        &self.objects
    }

    /// Begins an offer. The server is killed when it has created this many more objects and creates
    /// another one.
    pub(super) fn begin_offer(&self, life: Option<u64>) {
        let mut state = self.state();
        state.offer += 1;
        (state.life, state.trouble) = (life, None);
    }

    /// Ends an offer. Returns what went wrong first.
    pub(super) fn end_offer(&self) -> Option<Trouble> {
        let mut state = self.state();
        state.life = None;
        state.trouble.take()
    }

    /// Whether the server was killed.
    pub(super) fn is_dead(&self) -> bool {
        self.state().is_dead
    }

    /// Lets another server come.
    pub(super) fn revive(&self) {
        self.state().is_dead = false;
    }

    /// Takes the place out of reach, or brings it back.
    pub(super) fn set_away(&self, is_away: bool) {
        self.state().is_away = is_away;
    }

    /// Ends all trouble.
    pub(super) fn heal(&self) {
        let mut state = self.state();
        (state.failing, state.is_away) = (0, false);
    }

    /// Whether an object may still arrive late.
    pub(super) fn awaits_late(&self) -> bool {
        self.state().late.is_some()
    }

    /// How many objects have arrived late since the last call.
    pub(super) fn take_late_arrivals(&self) -> u64 {
        std::mem::take(&mut self.state().late_arrivals)
    }

    /// Removes something by hand. Returns whether there was any of it. What a killed server had on
    /// its way does not arrive in a place that has no marks any more.
    pub(super) fn remove_by_hand(&self, what: Removed) -> bool {
        let objects = self.objects.objects();
        let mut marks = objects.keys().filter(|name| name.starts_with(MARKS));
        let gone: Vec<&String> = match what {
            Removed::Everything => objects.keys().collect(),
            Removed::Marks => marks.collect(),
            Removed::NewestMark => marks.next_back().into_iter().collect(),
        };
        for name in &gone {
            self.objects.take_away(name);
        }
        if what != Removed::NewestMark {
            self.state().late = None;
        }
        !gone.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here is half done when a thread panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What decides about one operation in one offer.
    fn dice(&self, offer: u64, what: &str, name: &str) -> Dice {
        let bytes = what.bytes().chain(name.bytes());
        let mix = |mixed: u64, byte: u8| (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Dice::new(bytes.fold(self.seed.wrapping_add(offer), mix))
    }

    fn fate_of(&self, name: &str, bytes: &[u8]) -> Fate {
        let mut state = self.state();
        let mut dice = self.dice(state.offer, "write", name);
        if state.is_cut_off() {
            return Fate::Fails;
        }
        state.let_arrive(&self.objects);
        if state.life == Some(0) {
            state.is_dead = true;
            return match dice.below(4) {
                0 => Fate::Fails,
                1 => Fate::AnswerLost,
                _ => {
                    let (name, bytes) = (name.to_owned(), bytes.to_vec());
                    state.late = Some(Late { name, bytes, creates: dice.below(2) });
                    Fate::Fails
                }
            };
        }
        state.life = state.life.map(|left| left.saturating_sub(1));
        if dice.below(1_000) >= state.failing {
            return Fate::Succeeds;
        }
        if dice.chance(50) {
            state.note(Trouble::AnswerLost);
            Fate::AnswerLost
        } else {
            state.note(Trouble::Refused);
            Fate::Fails
        }
    }

    /// Whether anything but creating an object works.
    fn answers(&self, what: &'static str, name: &str) -> Result<(), PlaceError> {
        let mut state = self.state();
        if state.is_cut_off() {
            return Err(away(what, name));
        }
        if self.dice(state.offer, what, name).below(1_000) < state.failing {
            state.note(Trouble::Unread);
            return Err(away(what, name));
        }
        Ok(())
    }
}

impl State {
    fn note(&mut self, trouble: Trouble) {
        self.trouble.get_or_insert(trouble);
    }

    /// Whether nothing reaches the place.
    fn is_cut_off(&mut self) -> bool {
        if self.is_away && !self.is_dead {
            self.note(Trouble::Away);
        }
        self.is_away || self.is_dead
    }

    /// Lets what a killed server had on its way arrive, if it is time for it.
    fn let_arrive(&mut self, objects: &MemoryPlace) {
        let Some(late) = &mut self.late else { return };
        if late.creates > 0 {
            late.creates -= 1;
            return;
        }
        let creates = |late: Late| objects.create(&late.name, &late.bytes) == Ok(true);
        if self.late.take().is_some_and(creates) {
            self.late_arrivals += 1;
            self.note(Trouble::Late);
        }
    }
}

impl Place for Remote {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, PlaceError> {
        match self.fate_of(name, bytes) {
            Fate::Succeeds => self.objects.create(name, bytes),
            Fate::Fails => Err(away("write", name)),
            Fate::AnswerLost => {
                self.objects.create(name, bytes)?;
                Err(away("write", name))
            }
        }
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError> {
        self.answers("read", name)?;
        self.objects.get(name)
    }

    fn list(&self, prefix: &str) -> Result<Listing, PlaceError> {
        self.answers("list", prefix)?;
        self.objects.list(prefix)
    }

    fn remove(&self, name: &str) -> Result<bool, PlaceError> {
        self.answers("remove", name)?;
        self.objects.remove(name)
    }

    fn name(&self) -> String {
        self.objects.name()
    }
}

fn away(what: &'static str, name: &str) -> PlaceError {
    let why = "the simulation wants it so".to_owned();
    PlaceError::Away { what, name: name.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_follows_from_the_seed_the_name_and_the_offer() {
        let fates = |seed: u64| {
            let place = Remote::new(seed, 500, false);
            let mut fates = Vec::new();
            for _ in 0..8 {
                place.begin_offer(None);
                let names = ["line", "parts/1", "marks/1"];
                fates.extend(names.map(|name| place.create(name, b"x").is_ok()));
            }
            fates
        };
        assert_eq!(fates(1), fates(1));
        assert_ne!(fates(1), fates(2));
        assert!(fates(1).contains(&true) && fates(1).contains(&false));
    }

    #[test]
    fn a_killed_server_does_no_more_but_what_was_on_its_way() {
        let mut late = 0;
        for seed in 0..40 {
            let place = Remote::new(seed, 0, false);
            place.begin_offer(Some(1));
            assert_eq!(place.create("a", b"1"), Ok(true));
            for name in ["b", "c"] {
                assert!(place.create(name, b"2").is_err());
            }
            assert!(place.is_dead() && place.get("a").is_err());
            assert_eq!(place.end_offer(), None);
            place.revive();
            place.begin_offer(None);
            for name in ["d", "e"] {
                assert_eq!(place.create(name, b"3"), Ok(true));
            }
            let arrivals = place.take_late_arrivals();
            assert_eq!(place.end_offer(), (arrivals > 0).then_some(Trouble::Late));
            assert!(!place.awaits_late() && place.get("c") == Ok(None));
            late += arrivals;
        }
        assert!((1..40).contains(&late), "{late} objects");
    }

    #[test]
    fn what_is_removed_by_hand_is_gone() {
        let place = Remote::new(1, 0, true);
        for name in ["line", "marks/1", "marks/2", "parts/1"] {
            assert_eq!(place.create(name, b"x"), Ok(true));
        }
        assert!(place.remove("marks/1").is_err(), "the server is not allowed to");
        let left = |what: Removed| (place.remove_by_hand(what), place.objects().objects().len());
        assert_eq!(left(Removed::NewestMark), (true, 3));
        assert_eq!(left(Removed::Marks), (true, 2));
        assert_eq!(left(Removed::Marks), (false, 2));
        assert_eq!(left(Removed::Everything), (true, 0));
    }
}
