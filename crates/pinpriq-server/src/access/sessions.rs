//! Sessions of browsers: who has signed in on the page of the dashboard, for half a day.
//!
//! They are in memory, and end with the server. Of the secret that a browser holds only a digest is
//! kept. How it travels is up to the handlers of HTTP.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::users::User;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::pass::Pass;
use super::roster::Roster;

/// How long a session lasts.
pub(crate) const LASTS_S: u64 = 12 * 60 * 60;

/// How many there may be. Another one ends the one of those of the user with the most that would
/// end first.
const SESSIONS_MAX: usize = 10_000;

/// How many a user may have. Another one ends the one that would end first.
const SESSIONS_OF_USER_MAX: usize = 100;

/// All sessions of a server.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<[u8; 32], Session>>);

#[derive(Debug)]
struct Session {
    pass: Pass,
    until_ms: u64,
}

impl Sessions {
    /// Begins a session, and returns what its browser has to show. None if the system has no random
    /// numbers.
    pub(crate) fn begin(&self, pass: Pass, now_ms: u64) -> Option<String> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).ok()?;
        let shown = BASE64_URL_SAFE_NO_PAD.encode(secret);
        let sessions = &mut *self.sessions();
        if sessions.len() >= SESSIONS_MAX {
            sessions.retain(|_, session| now_ms < session.until_ms);
        }
        let own = |session: &Session| session.pass.user.name == pass.user.name;
        let who_has_too_many = if sessions.len() >= SESSIONS_MAX {
            user_with_most(sessions)
        } else if sessions.values().filter(|it| own(it)).count() >= SESSIONS_OF_USER_MAX {
            Some(Arc::clone(&pass.user))
        } else {
            None
        };
        if let Some(user) = who_has_too_many {
            let theirs = sessions.iter().filter(|(_, session)| session.pass.user.name == user.name);
            let first = theirs.min_by_key(|(_, session)| session.until_ms);
            if let Some(first) = first.map(|(digest, _)| *digest) {
                sessions.remove(&first);
            }
        }
        let until_ms = now_ms.saturating_add(LASTS_S * 1_000);
        sessions.insert(digest(&shown), Session { pass, until_ms });
        Some(shown)
    }

    /// Returns whose session it is, as the users are now. One that is over is forgotten.
    pub(crate) fn find(&self, shown: &str, roster: &Roster, now_ms: u64) -> Option<Pass> {
        let sessions = &mut *self.sessions();
        let session = sessions.get_mut(&digest(shown))?;
        let is_over = now_ms >= session.until_ms;
        let stands = session.pass.version == roster.version();
        let renewed =
            if stands { Some(session.pass.clone()) } else { roster.renewed(&session.pass) };
        let pass = renewed.filter(|_| !is_over);
        if let Some(pass) = &pass {
            session.pass = pass.clone();
        } else {
            sessions.remove(&digest(shown));
        }
        pass
    }

    /// Ends a session.
    pub(crate) fn end(&self, shown: &str) {
        self.sessions().remove(&digest(shown));
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn user_with_most(sessions: &HashMap<[u8; 32], Session>) -> Option<Arc<User>> {
    let mut counts: HashMap<&str, (usize, &Arc<User>)> = HashMap::new();
    for session in sessions.values() {
        let user = &session.pass.user;
        counts.entry(user.name.as_str()).or_insert((0, user)).0 += 1;
    }
    let most = counts.into_values().max_by_key(|(count, _)| *count);
    most.map(|(_, user)| Arc::clone(user))
}

/// A table is looked up by the digest, so the time tells nothing about the secret itself.
fn digest(shown: &str) -> [u8; 32] {
    Sha256::digest(shown.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::users::Editor;
    use crate::users::store::{IfMissing, edit};

    use super::*;
    use crate::access::pass::Proof;
    use crate::config::UsersFrom;

    const HALF_A_DAY_MS: u64 = 12 * 60 * 60 * 1_000;

    fn roster() -> Arc<Roster> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.toml");
        let add = |editor: &mut Editor| editor.add(&"ana".parse().unwrap(), None, &[]);
        edit(&path, IfMissing::Make, add).unwrap();
        Roster::open(UsersFrom::File(path), None).unwrap()
    }

    #[test]
    fn a_session_lasts_for_half_a_day() {
        let (roster, sessions) = (roster(), Sessions::default());
        let shown = sessions.begin(Pass::of_server(), 5).unwrap();
        assert_eq!(shown.len(), 43);
        assert!(sessions.find(&shown, &roster, HALF_A_DAY_MS + 4).is_some());
        assert!(sessions.find(&shown, &roster, HALF_A_DAY_MS + 5).is_none());
        assert!(sessions.find(&shown, &roster, 6).is_none(), "it was forgotten");
    }

    #[test]
    fn a_session_that_was_ended_is_over() {
        let (roster, sessions) = (roster(), Sessions::default());
        let [one, other] = [(); 2].map(|()| sessions.begin(Pass::of_server(), 0).unwrap());
        assert_ne!(one, other);
        sessions.end(&one);
        assert!(sessions.find(&one, &roster, 1).is_none());
        assert!(sessions.find(&other, &roster, 1).is_some());
        assert!(sessions.find("", &roster, 1).is_none());
    }

    /// A pass of a user of this name.
    fn pass(roster: &Roster, name: &str) -> Pass {
        let user = Arc::new(User::new(name.parse().unwrap(), Vec::new()));
        Pass::new(user, Proof::Server, roster.version())
    }

    #[test]
    fn who_signs_in_often_ends_only_the_own_sessions() {
        let (roster, sessions) = (roster(), Sessions::default());
        let other = sessions.begin(pass(&roster, "ana"), 0).unwrap();
        let first = sessions.begin(pass(&roster, "ben"), 1).unwrap();
        let second = sessions.begin(pass(&roster, "ben"), 2).unwrap();
        for number in 0..20_000 {
            sessions.begin(pass(&roster, "ben"), 3 + number).unwrap();
            if number + 2 == SESSIONS_OF_USER_MAX as u64 {
                assert!(sessions.find(&first, &roster, 300).is_none(), "the oldest goes first");
                assert!(sessions.find(&second, &roster, 300).is_some());
            }
        }
        assert_eq!(sessions.sessions().len(), SESSIONS_OF_USER_MAX + 1);
        assert!(sessions.find(&other, &roster, 20_000).is_some(), "it is somebody else's");
    }

    #[test]
    fn memory_is_bounded_and_who_has_most_loses_one() {
        let (roster, sessions) = (roster(), Sessions::default());
        let few = sessions.begin(pass(&roster, "few"), 0).unwrap();
        for number in 1..=SESSIONS_MAX as u64 {
            let user = format!("user{}", number % 200);
            sessions.begin(pass(&roster, &user), number).unwrap();
        }
        assert_eq!(sessions.sessions().len(), SESSIONS_MAX);
        assert!(sessions.find(&few, &roster, 20_000).is_some(), "others have more");
    }
}
