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

/// What `user` does.
pub(super) const USER: &str = "\
Say who may do what: add users to a file, change them and remove them.

The file is TOML, and can be edited by hand too. These commands keep its comments and its order. \
They replace it as a whole, so that a part of it is never read, and wait for each other. It \
belongs to its owner alone (mode 0600).

A rule is a right and a pattern. The rights are put, take, look and manage. The pattern is the \
name of a queue or topic, or a prefix that ends in *. The right admin has no pattern. Bytes that \
cannot be typed are written with % and two hexadecimal digits: %20 is a space, %2A a star.";

/// What `user add` does.
pub(super) const ADD: &str = "\
Add a user, and ask for a password.

The password is asked for twice in a terminal, and not shown. Otherwise it is one line of stdin. \
The file keeps only a hash of it. A file that is not there is made.";

/// After the help of `user add`.
pub(super) const AFTER_ADD: &str = changing!(
    "  pinpriq user add orders 'put:orders.*' 'look:*' --users users.toml
  pinpriq user add ops admin 'look:*' < password.txt
  pinpriq user add anonymous put:jobs --no-password
"
);

/// What `user passwd` does.
pub(super) const PASSWD: &str = "\
Ask for another password of a user.

It is asked for twice in a terminal, and not shown. Otherwise it is one line of stdin. The file \
keeps only a hash of it.";

/// After the help of `user passwd`.
pub(super) const AFTER_PASSWD: &str =
    changing!("  pinpriq user passwd orders --users users.toml\n");

/// What `user rights` does.
pub(super) const RIGHTS: &str = "\
Replace all rules of a user.

Rules that are not named are gone. Comments within the old list of rules are gone too.";

/// After the help of `user rights`.
pub(super) const AFTER_RIGHTS: &str = changing!(
    "  pinpriq user rights orders 'put:orders.*' 'take:orders.*' 'look:*'
  pinpriq user rights orders --none
"
);

/// What `user limits` does.
pub(super) const LIMITS: &str = "\
Set limits of a user, or take them away.

The limits are max_connections, max_bytes_in_flight, max_tasks and max_requests_per_second. Those \
that are not named stay as they are.";

/// After the help of `user limits`.
pub(super) const AFTER_LIMITS: &str =
    changing!("  pinpriq user limits orders max_tasks=100000 max_connections=none\n");

/// What `user token` does.
pub(super) const TOKEN: &str = "\
Add, list and revoke tokens of a user.

A token is for a program: it stands for the user, and there is no password to type. It is printed \
to stdout when it is added, and never again: the file keeps only its SHA-256.";

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
