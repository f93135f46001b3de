//! Tokens: 256 random bits, shown once. The file keeps only their SHA-256.
//!
//! A token needs no slow hash as a password does, since there are too many to try.

use std::fmt;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// How every token begins, so that people and scanners for secrets recognise one.
pub const TOKEN_PREFIX: &str = "pinpriq_";

/// How a digest begins in the file.
pub(crate) const DIGEST_PREFIX: &str = "sha256:";

/// The bytes of a token, and of its digest.
const BYTES: usize = 32;

/// What a token has after its prefix.
const CHARACTERS: usize = 43;

/// A token. It is wiped from memory when it is dropped.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

/// The SHA-256 of a token, of all its text.
#[derive(Clone, Copy)]
pub struct TokenDigest([u8; BYTES]);

/// A text of the file that is no digest. It is not told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "it is no digest, which is sha256: and 64 hexadecimal digits; `pinpriq user token` writes one"
)]
pub struct WrongDigest;

/// Why no token could be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no token can be made, since the system has no random numbers: {0}")]
pub struct NoToken(String);

impl Token {
    /// Makes a token, with random numbers from the system.
    pub fn make() -> Result<Self, NoToken> {
        let mut bytes = Zeroizing::new([0; BYTES]);
        getrandom::fill(&mut *bytes).map_err(|error| NoToken(error.to_string()))?;
        Ok(Self::of(&bytes))
    }

    fn of(bytes: &[u8; BYTES]) -> Self {
        let mut text = Zeroizing::new(String::with_capacity(TOKEN_PREFIX.len() + CHARACTERS + 1));
        text.push_str(TOKEN_PREFIX);
        BASE64_URL_SAFE_NO_PAD.encode_string(bytes, &mut text);
        Self(text)
    }

    /// What its holder has to show.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// What the file keeps of it.
    #[must_use]
    pub fn digest(&self) -> TokenDigest {
        TokenDigest(Sha256::digest(self.0.as_bytes()).into())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl TokenDigest {
    /// Returns the digest of what a client shows as a token, unless it cannot be one.
    #[must_use]
    pub fn of_shown(text: &[u8]) -> Option<Self> {
        let characters = text.strip_prefix(TOKEN_PREFIX.as_bytes())?;
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_token = characters.len() == CHARACTERS && characters.iter().all(is_plain);
        is_token.then(|| Self(Sha256::digest(text).into()))
    }

    /// Reads a digest as the file has it.
    pub fn read(text: &str) -> Result<Self, WrongDigest> {
        let digits = text.strip_prefix(DIGEST_PREFIX).ok_or(WrongDigest)?;
        if digits.len() != 2 * BYTES || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(WrongDigest);
        }
        let mut bytes = [0; BYTES];
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            let digits = digits.get(at..at + 2).ok_or(WrongDigest)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| WrongDigest)?;
        }
        Ok(Self(bytes))
    }

    /// The text for the file.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.iter().fold(DIGEST_PREFIX.to_owned(), |mut text, byte| {
            // Writing to a text does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// The first bytes, by which a digest is looked for.
    pub(crate) fn beginning(&self) -> [u8; 8] {
        self.0.first_chunk().copied().unwrap_or_default()
    }
}

/// Compares all bytes, so that the time does not tell how many are equal.
impl PartialEq for TokenDigest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenDigest {}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest")
    }
}

#[cfg(test)]
mod tests {
    use super::{Token, TokenDigest, WrongDigest};

    /// Computed with `printf %s TOKEN | sha256sum`.
    const KNOWN: (&str, &str) = (
        "pinpriq_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "sha256:855f71864b87abbd9045207360303bf9c0eefeaabe9aad969aa5edf49f69cb0c",
    );

    #[test]
    fn a_token_is_found_by_what_the_file_keeps() {
        let token = Token::of(&[0; 32]);
        assert_eq!((token.text(), token.digest().text().as_str()), KNOWN);
        assert_eq!(TokenDigest::of_shown(KNOWN.0.as_bytes()), Some(token.digest()));
        assert_eq!(TokenDigest::read(KNOWN.1), Ok(token.digest()));
        assert_eq!(
            TokenDigest::read(&KNOWN.1.to_uppercase().replace("SHA", "sha")),
            Ok(token.digest())
        );
    }

    #[test]
    fn every_token_is_another_one() {
        let (one, other) = (Token::make().unwrap(), Token::make().unwrap());
        assert_ne!(one.text(), other.text());
        assert_ne!(one.digest(), other.digest());
        assert_eq!(TokenDigest::of_shown(one.text().as_bytes()), Some(one.digest()));
    }

    #[test]
    fn what_cannot_be_a_token_has_no_digest() {
        let long = format!("{}A", KNOWN.0);
        let padded = KNOWN.0.replace("AAA", "AA=");
        for text in ["", "pinpriq_", "swordfish", &KNOWN.0[1..], &KNOWN.0[..50], &long, &padded] {
            assert_eq!(TokenDigest::of_shown(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_digest_is_refused_without_telling_it() {
        let table = ["", "sha256:", &KNOWN.1[7..], &KNOWN.1[..70], KNOWN.0, "sha256:+f"];
        for text in table {
            assert_eq!(TokenDigest::read(text), Err(WrongDigest), "{text}");
        }
        let signs = format!("sha256:{}", "+f".repeat(32));
        assert_eq!(TokenDigest::read(&signs), Err(WrongDigest));
    }

    #[test]
    fn tokens_are_never_shown_by_accident() {
        let token = Token::of(&[0; 32]);
        assert_eq!(format!("{token:?} {:?}", token.digest()), "Token TokenDigest");
    }
}
