//! Passwords, and the hashes that the file keeps instead of them: argon2id, as PHC strings.
//!
//! Checking a password takes some ten milliseconds and 19 MiB, on purpose. Where and how often that
//! happens at once is the caller's business.

use std::fmt;

use argon2::password_hash::phc;
use argon2::{ARGON2ID_IDENT, Algorithm, Argon2, Params, PasswordHasher as _, Version};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// The longest password, in bytes.
pub const PASSWORD_BYTES_MAX: usize = 1_024;

/// How many characters a new password has at least. Shorter ones that were set before go on being
/// right.
pub const PASSWORD_CHARACTERS_MIN: usize = 8;

/// The most memory that checking one password may take, in KiB.
const MEMORY_KIB_MAX: u32 = 256 * 1_024;

/// The most passes over that memory.
const PASSES_MAX: u32 = 16;

/// The most lanes that the memory is divided into.
const LANES_MAX: u32 = 4;

/// What is hashed with the password of an unknown user.
const SALT_OF_NONE: [u8; 16] = *b"nobody signs in.";

/// A password as it was typed. It is wiped from memory when it is dropped.
#[derive(Clone)]
pub struct Password(Zeroizing<Vec<u8>>);

/// The hash of a password, or what stands for one where there is no password.
#[derive(Clone)]
pub struct PasswordHash(Option<Hash>);

#[derive(Clone)]
struct Hash {
    text: Box<str>,
    params: Params,
    salt: Box<[u8]>,
    output: Box<[u8]>,
}

/// Why a password cannot be one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongPassword {
    /// It has no characters.
    #[error("the password is empty")]
    Empty,
    /// It has too many.
    #[error("the password is longer than {PASSWORD_BYTES_MAX} bytes")]
    Long,
}

/// Why a text cannot be used as the hash of a password. It never tells the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongHash {
    /// It is something else, perhaps the password itself.
    #[error(
        "it is no argon2id hash, which begins with $argon2id$v=19$; `pinpriq user passwd` writes \
         one"
    )]
    NotArgon2id,
    /// Checking a password against it would take the server down.
    #[error(
        "its {what} is {value}, and the most that is accepted is {most}: set the password again \
         with `pinpriq user passwd`"
    )]
    Expensive {
        /// The parameter.
        what: &'static str,
        /// What it is.
        value: u32,
        /// What it may be.
        most: u32,
    },
}

/// Why no hash could be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the password cannot be hashed: {0}")]
pub struct NoHash(String);

impl Password {
    /// Takes a password over.
    pub fn new(bytes: Vec<u8>) -> Result<Self, WrongPassword> {
        let bytes = Zeroizing::new(bytes);
        match bytes.len() {
            0 => Err(WrongPassword::Empty),
            1..=PASSWORD_BYTES_MAX => Ok(Self(bytes)),
            _ => Err(WrongPassword::Long),
        }
    }

    /// Whether it has enough characters to be set anew.
    #[must_use]
    pub fn is_long_enough(&self) -> bool {
        let characters = str::from_utf8(&self.0).map_or(self.0.len(), |text| text.chars().count());
        characters >= PASSWORD_CHARACTERS_MIN
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for Password {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Password {}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl PasswordHash {
    /// Stands for the hash of a user who does not exist, or has no password. No password is right,
    /// and finding that out takes as long as for a hash that [`make`](Self::make) made.
    pub const NONE: Self = Self(None);

    /// Makes the hash of a password, with salt from the system.
    pub fn make(password: &Password) -> Result<Self, NoHash> {
        let made: phc::PasswordHash =
            argon2(Params::DEFAULT).hash_password(password.bytes()).map_err(no_hash)?;
        Self::read(&made.to_string()).map_err(no_hash)
    }

    /// Reads a hash as the file has it.
    pub fn read(text: &str) -> Result<Self, WrongHash> {
        let hash = phc::PasswordHash::new(text).map_err(|_| WrongHash::NotArgon2id)?;
        let params = Params::try_from(&hash).map_err(|_| WrongHash::NotArgon2id)?;
        let is_ours = hash.algorithm == ARGON2ID_IDENT
            && hash.version == Some(Version::V0x13.into())
            && params.keyid().is_empty()
            && params.data().is_empty();
        let (Some(salt), Some(output), true) = (hash.salt, hash.hash, is_ours) else {
            return Err(WrongHash::NotArgon2id);
        };
        let costs = [
            ("memory (m), in KiB,", params.m_cost(), MEMORY_KIB_MAX),
            ("number of passes (t)", params.t_cost(), PASSES_MAX),
            ("number of lanes (p)", params.p_cost(), LANES_MAX),
        ];
        if let Some((what, value, most)) = costs.into_iter().find(|(_, value, most)| value > most) {
            return Err(WrongHash::Expensive { what, value, most });
        }
        Ok(Self(Some(Hash {
            text: text.into(),
            params,
            salt: salt.as_ref().into(),
            output: output.as_bytes().into(),
        })))
    }

    /// The text for the file. It is as secret as the file. There is none for an unknown user.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.0.as_ref().map(|hash| &*hash.text)
    }

    /// Whether this is the password. Without the memory that this takes, none is.
    #[must_use]
    pub fn verify(&self, password: &[u8]) -> bool {
        let none = (&Params::DEFAULT, &SALT_OF_NONE[..], &[0; Params::DEFAULT_OUTPUT_LEN][..]);
        let (params, salt, expected) = match &self.0 {
            Some(hash) => (&hash.params, &*hash.salt, &*hash.output),
            None => none,
        };
        let mut output = Zeroizing::new(vec![0; expected.len()]);
        let is_made = argon2(params.clone()).hash_password_into(password, salt, &mut output);
        let is_same: bool = output.ct_eq(expected).into();
        is_made.is_ok() && is_same && self.0.is_some()
    }
}

impl PartialEq for PasswordHash {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for PasswordHash {}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash")
    }
}

fn argon2(params: Params) -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn no_hash(why: impl fmt::Display) -> NoHash {
    NoHash(why.to_string())
}

#[cfg(test)]
mod tests {
    use super::{Password, PasswordHash, WrongHash, WrongPassword};

    /// Of "password", from the tests of the reference implementation of argon2.
    const FOREIGN: &str = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$\
                           nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

    fn with_costs(costs: &str) -> String {
        let output = "A".repeat(43);
        format!("$argon2id$v=19${costs}$c29tZSBzYWx0IGhlcmU${output}")
    }

    #[test]
    fn a_password_is_right_and_others_are_wrong() {
        let password = Password::new(b"swordfish".to_vec()).unwrap();
        let made = PasswordHash::make(&password).unwrap();
        let text = made.text().unwrap().to_owned();
        assert!(text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{text}");
        let read = PasswordHash::read(&text).unwrap();
        assert_eq!(read, made);
        assert!(read.verify(b"swordfish"));
        for wrong in [&b"swordfisH"[..], b"", b"swordfish ", b"\xff"] {
            assert!(!read.verify(wrong));
        }
        let again = PasswordHash::make(&password).unwrap();
        assert_ne!(again, made, "each hash has salt of its own");
        assert_eq!(PasswordHash::NONE.text(), None);
    }

    #[test]
    fn hashes_of_other_programs_are_checked_too() {
        let hash = PasswordHash::read(FOREIGN).unwrap();
        assert!(hash.verify(b"password") && !hash.verify(b"Password"));
    }

    #[test]
    fn a_missing_user_has_no_password() {
        for password in [&b""[..], b"nobody", b"swordfish"] {
            assert!(!PasswordHash::NONE.verify(password));
        }
    }

    #[test]
    fn what_is_too_expensive_to_check_is_refused() {
        let table = [
            ("m=262144,t=16,p=4", None),
            ("m=262145,t=1,p=1", Some("memory (m), in KiB,")),
            ("m=4294967295,t=1,p=1", Some("memory (m), in KiB,")),
            ("m=19456,t=17,p=1", Some("number of passes (t)")),
            ("m=19456,t=2,p=5", Some("number of lanes (p)")),
        ];
        for (costs, expected) in table {
            let refused = match PasswordHash::read(&with_costs(costs)) {
                Ok(_) => None,
                Err(WrongHash::Expensive { what, .. }) => Some(what),
                Err(other) => panic!("{costs}: {other}"),
            };
            assert_eq!(refused, expected, "{costs}");
        }
    }

    #[test]
    fn what_is_no_hash_is_refused_without_telling_it() {
        let good = with_costs("m=64,t=1,p=1");
        assert!(PasswordHash::read(&good).is_ok());
        let wrong = [
            "swordfish".to_owned(),
            String::new(),
            FOREIGN[..42].to_owned(),
            good.replace("argon2id", "argon2i"),
            good.replace("v=19", "v=16"),
            good.replace("$v=19", ""),
            good.replace("m=64", "m=1"),
            good.replace("p=1", "p=1,data=AAAA"),
            format!("{good} "),
        ];
        for text in wrong {
            assert_eq!(PasswordHash::read(&text), Err(WrongHash::NotArgon2id), "{text}");
        }
        let sentence = WrongHash::NotArgon2id.to_string();
        assert!(sentence.contains("pinpriq user passwd"), "{sentence}");
    }

    #[test]
    fn passwords_have_bounds_and_are_never_shown() {
        let of = |length| Password::new(vec![b'x'; length]);
        assert_eq!(of(0), Err(WrongPassword::Empty));
        assert_eq!(of(1_025), Err(WrongPassword::Long));
        let longest = of(1_024).unwrap();
        let is_long_enough = |text: &str| Password::new(text.into()).unwrap().is_long_enough();
        for (text, enough) in
            [("p", false), ("seven77", false), ("äöüäöü", false), ("eight888", true)]
        {
            assert_eq!(is_long_enough(text), enough, "{text}");
        }
        let hash = PasswordHash::read(&with_costs("m=64,t=1,p=1")).unwrap();
        assert_eq!(format!("{longest:?} {hash:?}"), "Password PasswordHash");
    }
}
