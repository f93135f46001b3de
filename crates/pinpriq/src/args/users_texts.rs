//! The longer texts of the help of the commands that change the file of users.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

/// The exit codes of all of these commands.
macro_rules! changing {
    ($examples:literal) => {
        concat!(
            "Examples:\n",
            $examples,
            "\nExit codes:\n  0  done\n  1  the file could not be read or written\n",
            "  2  wrong usage, a file that cannot be used, or no such user or token"
        )
    };
}

/// After the help of `user add`.
pub(super) const AFTER_ADD: &str = changing!(
    "  pinpriq user add orders 'put:orders.*' 'look:*' --users users.toml
  pinpriq user add ops admin 'look:*' < password.txt
  pinpriq user add anonymous put:jobs --no-password
"
);

/// After the help of `user passwd`.
pub(super) const AFTER_PASSWD: &str =
    changing!("  pinpriq user passwd orders --users users.toml\n");

/// After the help of `user rights`.
pub(super) const AFTER_RIGHTS: &str = changing!(
    "  pinpriq user rights orders 'put:orders.*' 'take:orders.*' 'look:*'
  pinpriq user rights orders --none
"
);

/// After the help of `user limits`.
pub(super) const AFTER_LIMITS: &str =
    changing!("  pinpriq user limits orders max_tasks=100000 max_connections=none\n");

/// After the help of `user token`.
pub(super) const AFTER_TOKEN: &str = changing!(
    "  pinpriq user token orders add ci --users users.toml
  pinpriq user token orders list
  pinpriq user token orders revoke ci
"
);

/// After the help of `user list`.
pub(super) const AFTER_LIST: &str = changing!(
    "  pinpriq user list --users users.toml
  pinpriq user list --json | jq -r 'select(.password) | .name'
"
);

/// After the help of `user remove`.
pub(super) const AFTER_REMOVE: &str =
    changing!("  pinpriq user remove orders --users users.toml\n");
