//! `pinpriq user`: changes the file of users, and shows who is in it.
//!
//! What the file may say, and how it is written, is known to `pinpriq_server::users`. `password.rs`
//! asks for passwords, and `list.rs` shows users. No server is asked or told.

mod list;
mod password;

use std::path::Path;

use pinpriq_server::users::store::{IfMissing, Loaded, StoreError, edit, load, owner};
use pinpriq_server::users::{EditError, Editor, Name, Password, PasswordHash, Token, User};

use rustix::process::geteuid;

use self::password::ask;
use crate::args::users::{
    AddArgs, FileArgs, LimitsArgs, NameArgs, RightsArgs, TokenAction, TokenArgs, UserCommand,
};
use crate::exit::{Exit, Failure};
use crate::logging::tell;
use crate::output::print_text;

/// The user that the service of the packages runs as.
const SERVICE: &str = "pinpriq";

/// Carries out one of the commands.
pub(crate) fn user(command: &UserCommand) -> Result<Exit, Failure> {
    match command {
        UserCommand::Add(arguments) => add(arguments),
        UserCommand::Passwd(arguments) => passwd(arguments),
        UserCommand::Rights(arguments) => rights(arguments),
        UserCommand::Limits(arguments) => limits(arguments),
        UserCommand::Token(arguments) => token(arguments),
        UserCommand::List(arguments) => list::list(arguments),
        UserCommand::Remove(arguments) => remove(arguments),
    }
}

fn add(AddArgs { name, rules, no_password, file }: &AddArgs) -> Result<Exit, Failure> {
    // Do not ask for a password in vain.
    match load(&file.users) {
        Err(StoreError::Missing(_)) => {}
        loaded => {
            if loaded.map_err(|error| failure(&error))?.users.user(name.as_str()).is_some() {
                return Err(failure(&StoreError::Refused(EditError::UserThere(name.clone()))));
            }
        }
    }
    let hash = if *no_password { None } else { Some(hash(&ask(name)?)?) };
    change(file, IfMissing::Make, |editor| editor.add(name, hash.as_ref(), rules))?;
    let password = if hash.is_some() { "a password" } else { "no password" };
    print(&format!("added {name} with {password} and {}", counted(rules.len(), "rule")))
}

fn passwd(NameArgs { name, file }: &NameArgs) -> Result<Exit, Failure> {
    known(file, name)?;
    let hash = hash(&ask(name)?)?;
    change(file, IfMissing::Refuse, |editor| editor.set_password(name, &hash))?;
    print(&format!("{name} has another password"))
}

fn rights(RightsArgs { name, rules, file, .. }: &RightsArgs) -> Result<Exit, Failure> {
    change(file, IfMissing::Refuse, |editor| editor.set_rights(name, rules))?;
    let words: Vec<String> = rules.iter().map(ToString::to_string).collect();
    print(&match words.as_slice() {
        [] => format!("{name} has no rights"),
        words => format!("{name} has the rights {}", words.join(" ")),
    })
}

fn limits(LimitsArgs { name, limits, file }: &LimitsArgs) -> Result<Exit, Failure> {
    let user = change(file, IfMissing::Refuse, |editor| {
        editor.set_limits(name, limits)?;
        Ok(editor.users().user(name.as_str()).cloned())
    })?;
    let words: Vec<String> = user.iter().flat_map(|user| user.limits.each()).collect();
    print(&match words.as_slice() {
        [] => format!("{name} has no limits"),
        words => format!("{name} has the limits {}", words.join(" ")),
    })
}

fn token(TokenArgs { name, action, token, file }: &TokenArgs) -> Result<Exit, Failure> {
    match (action, token) {
        (TokenAction::Add, Some(token)) => add_token(file, name, token),
        (TokenAction::Revoke, Some(token)) => {
            change(file, IfMissing::Refuse, |editor| editor.revoke_token(name, token))?;
            print(&format!("revoked the token {token} of {name}"))
        }
        (TokenAction::List, None) => {
            let names = known(file, name)?.tokens.into_keys();
            print_text(
                names.fold(String::new(), |text, name| text + name.as_str() + "\n").as_bytes(),
            )?;
            Ok(Exit::Done)
        }
        _ => Err(Failure::unusable("`list` takes no name of a token, `add` and `revoke` take one")),
    }
}

fn add_token(file: &FileArgs, name: &Name, token: &Name) -> Result<Exit, Failure> {
    let made = Token::make().map_err(|error| Failure::on_the_way(error.to_string()))?;
    change(file, IfMissing::Refuse, |editor| editor.add_token(name, token, &made.digest()))?;
    print(made.text())?;
    tell(format!(
        "this is the token {token} of {name}. It is not shown again: the file keeps only its \
         SHA-256"
    ));
    Ok(Exit::Done)
}

fn remove(NameArgs { name, file }: &NameArgs) -> Result<Exit, Failure> {
    let user = change(file, IfMissing::Refuse, |editor| editor.remove(name))?;
    let password = if user.password.is_some() { "a password" } else { "no password" };
    let tokens: Vec<&str> = user.tokens.keys().map(Name::as_str).collect();
    let tokens = match tokens.as_slice() {
        [] => "no tokens".to_owned(),
        tokens => format!("{} ({})", counted(tokens.len(), "token"), tokens.join(", ")),
    };
    let rules = counted(user.rules.len(), "rule");
    print(&format!("removed {name}, who had {password}, {rules} and {tokens}"))
}

/// Changes the file, and tells if it could be used by others before.
fn change<T>(
    file: &FileArgs,
    if_missing: IfMissing,
    make: impl FnOnce(&mut Editor) -> Result<T, EditError>,
) -> Result<T, Failure> {
    let former = load(&file.users);
    let is_new = matches!(former, Err(StoreError::Missing(_)));
    let warning = former.ok().and_then(|Loaded { warning, .. }| warning);
    let outcome = edit(&file.users, if_missing, make).map_err(|error| failure(&error))?;
    if let Some(warning) = warning {
        let (path, mode) = (file.users.display(), warning.mode);
        tell(format!(
            "the mode of {path} was {mode:04o}, so that others than its owner could use it; it is \
             0600 now"
        ));
    }
    if is_new && geteuid().is_root() {
        tell_owner(&file.users);
    }
    Ok(outcome)
}

/// Tells whose file root has made, if a service should read it.
fn tell_owner(path: &Path) {
    let Ok(owner) = owner(path) else { return };
    let shown = path.display();
    if owner != 0 {
        tell(format!("{shown} belongs to the owner of its folder (user {owner}), like the server"));
    } else if has_user(SERVICE) {
        tell(format!(
            "{shown} can be read by root alone: if the server runs as {SERVICE}, run \
             `chown {SERVICE} {shown}`"
        ));
    }
}

/// Whether the system has a user of this name.
fn has_user(name: &str) -> bool {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    users.lines().any(|line| line.split(':').next() == Some(name))
}

/// A user who is in the file.
fn known(file: &FileArgs, name: &Name) -> Result<User, Failure> {
    let users = load(&file.users).map_err(|error| failure(&error))?.users;
    let unknown = || failure(&StoreError::Refused(EditError::NoUser(name.clone())));
    users.user(name.as_str()).map(|user| (**user).clone()).ok_or_else(unknown)
}

fn hash(password: &Password) -> Result<PasswordHash, Failure> {
    PasswordHash::make(password).map_err(|error| Failure::on_the_way(error.to_string()))
}

fn failure(error: &StoreError) -> Failure {
    let sentence = error.to_string();
    match error {
        StoreError::Unreadable(..) | StoreError::Unwritable(..) => Failure::on_the_way(sentence),
        StoreError::Missing(_)
        | StoreError::Unusable(..)
        | StoreError::NoPassword(..)
        | StoreError::Refused(_) => Failure::unusable(sentence),
    }
}

fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

fn print(line: &str) -> Result<Exit, Failure> {
    print_text(format!("{line}\n").as_bytes())?;
    Ok(Exit::Done)
}
