//! Checking passwords and tokens.
//!
//! A password is hashed on threads of its own, two at once, so that no shard waits. One that was
//! right is remembered for a minute as a keyed hash. Addresses from which many wrong ones come are
//! slowed down.

use std::collections::HashMap;
use std::future::pending;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::users::{NAME_BYTES_MAX, PASSWORD_BYTES_MAX, Password, PasswordHash, TokenDigest, User};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::pass::{Pass, Proof};
use super::roster::{DEFAULT, Roster};
use crate::clock::steady_ms;
use crate::runtime::aside;

/// How many passwords are hashed at once.
const AT_ONCE: usize = 2;

/// How many may wait for that, of all and of one address. So those of one address never take all
/// places.
const WAITING_MAX: usize = 100;
const WAITING_OF_ADDRESS_MAX: usize = 50;

/// For how long a password that was right is remembered, and how many are.
const REMEMBERED_MS: u64 = 60_000;
const REMEMBERED_MAX: usize = 10_000;

/// After this many failures from one address within this time, further ones wait.
const FAILURES: u32 = 10;
const FAILURES_MS: u64 = 60_000;
const FAILURES_WAIT: Duration = Duration::from_secs(1);

/// How many attempts of such an address may wait, and of all such addresses. Only then they wait
/// like others.
const SLOWED_OF_ADDRESS_MAX: usize = 10;
const SLOWED_MAX: usize = 1_000;

/// From how many addresses failures are counted.
const ADDRESSES_MAX: usize = 10_000;

/// What a client shows to sign in.
#[derive(Clone, Copy)]
pub(crate) enum Shown<'a> {
    /// A name, and a password or a token.
    Named(&'a [u8], &'a [u8]),
    /// A token, or the password of the user `default`.
    Alone(&'a [u8]),
}

/// Returns the name that a client claims to have, cut to a length that a name can have. It is empty
/// for a token, which is a secret.
pub(crate) fn claimed(shown: Shown<'_>) -> String {
    match shown {
        Shown::Named(name, _) => {
            String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]).into_owned()
        }
        Shown::Alone(_) => String::new(),
    }
}

/// What has become of it.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// They have signed in.
    In(Pass),
    /// The name or the password is wrong, or the token.
    Wrong,
    /// Too many others try.
    Busy,
}

/// An answer, or who will have it.
pub(crate) enum Begun {
    Known(Outcome),
    Later(Pin<Box<dyn Future<Output = Outcome> + Send>>),
}

/// What is known about those who sign in.
#[derive(Debug)]
pub(crate) struct Signing {
    at_once: Semaphore,
    waiting: Arc<Crowd>,
    slowed: Arc<Crowd>,
    key: [u8; 32],
    /// Until when a password counts as right, by the hash of name and password.
    remembered: Mutex<HashMap<[u8; 32], u64>>,
    /// Since when there were how many failures from an address.
    failures: Mutex<HashMap<IpAddr, (u64, u32)>>,
}

/// Those that wait for the same, counted by their address.
#[derive(Debug)]
struct Crowd {
    most: usize,
    most_of_address: usize,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

impl Crowd {
    fn new(most: usize, most_of_address: usize) -> Arc<Self> {
        Arc::new(Self { most, most_of_address, counts: Mutex::default() })
    }

    /// Lets an attempt from this address wait, if there is a place for it.
    fn enter(self: &Arc<Self>, from: IpAddr) -> Option<Admission> {
        let address = network_of(from);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counts.values().sum();
        let own = counts.get(&address).copied().unwrap_or_default();
        let has_place = all < self.most;
        if !has_place || own >= self.most_of_address {
            return None;
        }
        counts.insert(address, own + 1);
        Some(Admission { crowd: Arc::clone(self), address })
    }
}

/// One of those that wait, until it is dropped.
#[derive(Debug)]
struct Admission {
    crowd: Arc<Crowd>,
    address: IpAddr,
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut counts = self.crowd.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = counts.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

impl Signing {
    /// Fails if the system has no random numbers.
    pub(super) fn new() -> Result<Self, String> {
        let mut key = [0; 32];
        let no_key = |error| format!("the system has no random numbers: {error}");
        getrandom::fill(&mut key).map_err(no_key)?;
        Ok(Self {
            at_once: Semaphore::new(AT_ONCE),
            waiting: Crowd::new(AT_ONCE + WAITING_MAX, WAITING_OF_ADDRESS_MAX),
            slowed: Crowd::new(SLOWED_MAX, SLOWED_OF_ADDRESS_MAX),
            key,
            remembered: Mutex::default(),
            failures: Mutex::default(),
        })
    }

    /// Forgets which passwords were right.
    pub(super) fn forget(&self) {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn hashed(&self, name: &str, password: &[u8]) -> [u8; 32] {
        let Ok(mut hash) = Hmac::<Sha256>::new_from_slice(&self.key) else {
            unreachable!("a key may have any length")
        };
        hash.update(&(name.len() as u64).to_le_bytes());
        hash.update(name.as_bytes());
        hash.update(password);
        hash.finalize().into_bytes().into()
    }

    fn is_remembered(&self, hash: &[u8; 32], now_ms: u64) -> bool {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.get(hash).is_some_and(|until_ms| now_ms < *until_ms)
    }

    fn remember(&self, hash: [u8; 32], now_ms: u64) {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_MAX {
            remembered.retain(|_, until_ms| now_ms < *until_ms);
        }
        if remembered.len() < REMEMBERED_MAX {
            remembered.insert(hash, now_ms + REMEMBERED_MS);
        }
    }

    /// Whether an address has failed so often that its next attempt waits.
    fn is_slowed(&self, from: IpAddr, now_ms: u64) -> bool {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.get(&network_of(from)).is_some_and(|(since_ms, count)| {
            now_ms.saturating_sub(*since_ms) < FAILURES_MS && *count >= FAILURES
        })
    }

    fn note_failure(&self, from: IpAddr, now_ms: u64) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= ADDRESSES_MAX {
            failures.retain(|_, (since_ms, _)| now_ms.saturating_sub(*since_ms) < FAILURES_MS);
        }
        if failures.len() >= ADDRESSES_MAX {
            failures.clear();
        }
        let known = failures.entry(network_of(from)).or_insert((now_ms, 0));
        if now_ms.saturating_sub(known.0) >= FAILURES_MS {
            *known = (now_ms, 0);
        }
        known.1 = known.1.saturating_add(1);
    }
}

/// Returns what failures are counted by: an address, or the network of a host that has many.
fn network_of(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address @ IpAddr::V4(_) => address,
    }
}

impl Roster {
    /// Checks what a client at this address shows. Tokens and remembered passwords are checked at
    /// once, which costs some microseconds.
    pub(crate) fn sign_in(self: &Arc<Self>, shown: Shown<'_>, from: IpAddr) -> Begun {
        let (name, secret) = match shown {
            Shown::Named(name, secret) => (Some(name), secret),
            Shown::Alone(secret) => (None, secret),
        };
        if let Some(digest) = TokenDigest::of_shown(secret) {
            let (users, version) = self.users();
            let holder = users.by_token(&digest).filter(|(user, _)| {
                let is_theirs = |name| name == user.name.as_str().as_bytes();
                name.is_none_or(|name| is_theirs(name) || name == DEFAULT.as_bytes())
            });
            if let Some((user, token)) = holder {
                let pass = Pass::new(Arc::clone(user), Proof::Token(token.clone()), version);
                return Begun::Known(Outcome::In(pass));
            }
            // What looks like a token may still be a password.
        }
        let name = str::from_utf8(name.unwrap_or(DEFAULT.as_bytes())).unwrap_or_default();
        self.check_password(name, secret, from)
    }

    fn check_password(self: &Arc<Self>, name: &str, password: &[u8], from: IpAddr) -> Begun {
        let ((users, version), now_ms) = (self.users(), steady_ms());
        let hash = self.signing.hashed(name, password);
        if let Some(user) = users.user(name)
            && self.signing.is_remembered(&hash, now_ms)
        {
            return Begun::Known(Outcome::In(Pass::new(
                Arc::clone(user),
                Proof::Password,
                version,
            )));
        }
        let is_slowed = self.signing.is_slowed(from, now_ms);
        let crowd = if is_slowed { &self.signing.slowed } else { &self.signing.waiting };
        let Some(admission) = crowd.enter(from) else { return Begun::Known(Outcome::Busy) };
        let user = users.user(name).cloned();
        // One that is too long is wrong, and that takes as long as any other.
        let cut = &password[..password.len().min(PASSWORD_BYTES_MAX)];
        let expected = if cut == password { users.password_of(name) } else { PasswordHash::NONE };
        let password = Password::new(cut.to_vec()).ok();
        let roster = Arc::clone(self);
        Begun::Later(Box::pin(async move {
            let _admission = admission;
            // One that is slowed must not keep a place among the others meanwhile.
            let _second_place = if is_slowed {
                let _ = timeout(FAILURES_WAIT, pending::<()>()).await;
                match roster.signing.waiting.enter(from) {
                    Some(admission) => Some(admission),
                    None => return Outcome::Busy,
                }
            } else {
                None
            };
            let is_right = roster.is_right(expected, password).await;
            if let Some(user) = user.filter(|_| is_right) {
                return roster.let_in(user, version, hash);
            }
            roster.signing.note_failure(from, steady_ms());
            Outcome::Wrong
        }))
    }

    async fn is_right(&self, expected: PasswordHash, password: Option<Password>) -> bool {
        // It is not closed.
        let _permit = self.signing.at_once.acquire().await;
        let given = Arc::new((expected, password));
        let verify = move || {
            let (expected, password) = &*given;
            expected.verify(password.as_ref().map_or(&[], Password::bytes))
        };
        aside(verify).await.unwrap_or(false)
    }

    /// Lets a user in whose password was right in this version of the users.
    fn let_in(&self, user: Arc<User>, version: u64, hash: [u8; 32]) -> Outcome {
        let pass = Pass::new(user, Proof::Password, version);
        self.signing.remember(hash, steady_ms());
        let (users, now) = self.users();
        if now == version {
            return Outcome::In(pass);
        }
        // The password may have changed before it was remembered.
        self.signing.forget();
        pass.renewed(&users, now).map_or(Outcome::Wrong, Outcome::In)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn an_address_is_slowed_after_ten_failures_within_a_minute() {
        let signing = Signing::new().unwrap();
        for failure in 0..10 {
            assert!(!signing.is_slowed(HOME, 1_000), "after {failure}");
            signing.note_failure(HOME, 1_000 + failure);
        }
        assert!(signing.is_slowed(HOME, 2_000));
        let other: IpAddr = "127.0.0.2".parse().unwrap();
        assert!(!signing.is_slowed(other, 2_000), "others are not");
        assert!(!signing.is_slowed(HOME, 61_000), "a minute after the first");
        signing.note_failure(HOME, 61_000);
        assert!(!signing.is_slowed(HOME, 61_001), "they are counted anew");
    }

    #[test]
    fn hosts_of_one_network_count_as_one() {
        let signing = Signing::new().unwrap();
        let host = |number: u16| -> IpAddr { format!("2001:db8:1:2::{number}").parse().unwrap() };
        (0..10).for_each(|number| signing.note_failure(host(number), 0));
        assert!(signing.is_slowed(host(99), 1));
        assert!(!signing.is_slowed("2001:db8:1:3::1".parse().unwrap(), 1));
    }

    #[test]
    fn no_address_takes_the_places_of_others() {
        let crowd = Crowd::new(AT_ONCE + WAITING_MAX, WAITING_OF_ADDRESS_MAX);
        let own: Vec<Admission> = (0..300).map_while(|_| crowd.enter(HOME)).collect();
        assert_eq!(own.len(), WAITING_OF_ADDRESS_MAX);
        let other: IpAddr = "127.0.0.2".parse().unwrap();
        let third: IpAddr = "127.0.0.3".parse().unwrap();
        let others: Vec<Admission> = (0..300).map_while(|_| crowd.enter(other)).collect();
        assert_eq!(others.len(), WAITING_OF_ADDRESS_MAX);
        let last: Vec<Admission> = (0..300).map_while(|_| crowd.enter(third)).collect();
        assert_eq!(last.len(), AT_ONCE + WAITING_MAX - 2 * WAITING_OF_ADDRESS_MAX);
        drop((own, others, last));
        assert!(crowd.counts.lock().unwrap().is_empty());
        assert!(crowd.enter(HOME).is_some());
    }

    #[test]
    fn addresses_and_passwords_are_bounded() {
        let signing = Signing::new().unwrap();
        for number in 0..20_000_u32 {
            signing.note_failure(IpAddr::V4(Ipv4Addr::from_bits(number)), 0);
            let mut hash = [0; 32];
            hash[..4].copy_from_slice(&number.to_le_bytes());
            signing.remember(hash, 0);
        }
        assert!(signing.failures.lock().unwrap().len() <= ADDRESSES_MAX);
        assert!(signing.remembered.lock().unwrap().len() <= REMEMBERED_MAX);
    }

    #[test]
    fn a_password_is_remembered_for_a_minute_with_its_name() {
        let signing = Signing::new().unwrap();
        let hash = signing.hashed("ana", b"swordfish");
        signing.remember(hash, 5);
        assert!(signing.is_remembered(&hash, 60_004) && !signing.is_remembered(&hash, 60_005));
        assert!(!signing.is_remembered(&signing.hashed("an", b"aswordfish"), 6));
        signing.forget();
        assert!(!signing.is_remembered(&hash, 6));
    }
}
