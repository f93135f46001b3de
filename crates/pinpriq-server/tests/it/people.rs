//! A file of users for tests, whose passwords are all `password` and cheap to check.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use pinpriq_server::config::{Config, UsersFrom};
use pinpriq_server::users::Token;
use tempfile::TempDir;

/// Of "password", from the tests of the reference implementation of argon2.
pub(crate) const HASH: &str =
    "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

/// Writes a file that is no part of a data directory.
#[expect(clippy::disallowed_methods, reason = "people write these files")]
pub(crate) fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

/// Removes such a file.
#[expect(clippy::disallowed_methods, reason = "people remove these files")]
pub(crate) fn remove(path: &Path) {
    std::fs::remove_file(path).unwrap();
}

/// Reads such a file.
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// A file of users.
pub(crate) struct People {
    folder: TempDir,
    /// How often it was written.
    written: u64,
}

/// A user in it.
pub(crate) struct Person {
    pub(crate) name: String,
    pub(crate) rules: Vec<String>,
    pub(crate) hash: String,
    pub(crate) token: Option<Token>,
    pub(crate) limits: Vec<(&'static str, String)>,
}

impl Person {
    /// A user with a password and these rules, separated by spaces.
    pub(crate) fn new(name: &str, rules: &str) -> Self {
        let rules = rules.split_whitespace().map(str::to_owned).collect();
        Self {
            name: name.to_owned(),
            rules,
            hash: HASH.to_owned(),
            token: None,
            limits: Vec::new(),
        }
    }

    /// The same, with a token.
    pub(crate) fn with_token(name: &str, rules: &str) -> (Self, String) {
        let token = Token::make().unwrap();
        let shown = token.text().to_owned();
        (Self { token: Some(token), ..Self::new(name, rules) }, shown)
    }

    /// The same, with limits.
    pub(crate) fn within(self, limits: &[(&'static str, u64)]) -> Self {
        let limits = limits.iter().map(|(limit, value)| (*limit, value.to_string()));
        Self { limits: limits.collect(), ..self }
    }

    /// The same, whose tasks all have this share.
    pub(crate) fn on_behalf_of(mut self, share: &str) -> Self {
        self.limits.push(("share", format!("{share:?}")));
        self
    }

    fn written(&self) -> String {
        let Self { name, rules, hash, token, limits } = self;
        let mut text = format!("[users.\"{name}\"]\npassword = \"{hash}\"\nrules = {rules:?}\n");
        if let Some(token) = token {
            let digest = token.digest().text();
            let _ = writeln!(text, "[users.\"{name}\".tokens]\nt = \"{digest}\"");
        }
        if !limits.is_empty() {
            let _ = writeln!(text, "[users.\"{name}\".limits]");
        }
        for (limit, value) in limits {
            let _ = writeln!(text, "{limit} = {value}");
        }
        text
    }
}

impl People {
    pub(crate) fn new(people: &[Person]) -> Self {
        let mut file = Self { folder: tempfile::tempdir().unwrap(), written: 0 };
        file.write(people);
        file
    }

    /// Replaces all of them.
    pub(crate) fn write(&mut self, people: &[Person]) {
        let text: String = people.iter().map(Person::written).collect();
        self.write_text(&text);
    }

    pub(crate) fn write_text(&mut self, text: &str) {
        let path = self.path();
        write(&path, text);
        // Changes in one tick of the clock of the file system would look like one.
        self.written += 1;
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + self.written);
        std::fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("users.toml")
    }

    /// The configuration of a server with these users.
    pub(crate) fn at(&self, config: Config) -> Config {
        Config { users: Some(UsersFrom::File(self.path())), ..config }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}
