//! `pinpriq user list`: all users as a table, or as JSON. Passwords and tokens are never shown.

use pinpriq_server::users::store::load;
use pinpriq_server::users::{Limit, SHARE, User};

use super::failure;
use crate::args::users::ListArgs;
use crate::columns::{heads, table};
use crate::exit::{Exit, Failure};
use crate::json::Json;
use crate::logging::tell;
use crate::output::print_text;

/// Prints all users.
pub(super) fn list(ListArgs { file, json }: &ListArgs) -> Result<Exit, Failure> {
    let loaded = load(&file.users).map_err(|error| failure(&error))?;
    let text = if *json {
        let lines = loaded.users.each().map(|user| format!("{}\n", as_json(user)));
        lines.collect()
    } else {
        let mut lines = vec![heads(&["user", "password", "tokens", "limits", "rules"])];
        lines.extend(loaded.users.each().map(|user| row(user)));
        table(&lines)
    };
    print_text(text.as_bytes())?;
    if let Some(warning) = loaded.warning {
        tell(warning);
    }
    Ok(Exit::Done)
}

fn row(user: &User) -> Vec<String> {
    let joined = |words: Vec<String>| match words.join(" ") {
        none if none.is_empty() => "-".to_owned(),
        words => words,
    };
    vec![
        user.name.to_string(),
        if user.password.is_some() { "yes" } else { "-" }.to_owned(),
        joined(user.tokens.keys().map(ToString::to_string).collect()),
        joined(user.limits.each().collect()),
        joined(user.rules.iter().map(ToString::to_string).collect()),
    ]
}

fn as_json(user: &User) -> Json {
    let numbers = Limit::ALL.map(|limit| {
        let value = user.limits.of(limit).map_or(Json::Null, |value| Json::Number(value.get()));
        (limit.word(), value)
    });
    let share = user.limits.share().map_or(Json::Null, Json::text);
    let limits = numbers.into_iter().chain([(SHARE, share)]).collect();
    Json::Object(vec![
        ("name", Json::text(user.name.as_str())),
        ("password", Json::Bool(user.password.is_some())),
        ("tokens", Json::list(user.tokens.keys(), |name| Json::text(name.as_str()))),
        ("rules", Json::list(&user.rules, |rule| Json::text(rule.to_string()))),
        ("limits", Json::Object(limits)),
    ])
}
