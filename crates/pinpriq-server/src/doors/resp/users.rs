//! The commands about users: who signs in, who they are, and what they may do.
//!
//! What a command needs is known by `pinpriq_proto::rights`, and checked by the desk.

use std::sync::Arc;

use crate::users::{Right, User};
use pinpriq_proto::letters::Steps;
use pinpriq_proto::reply::RefusalKind;

use super::call::{Call, DryRun, Talk};
use super::entry_of_step;
use super::runs::run;
use crate::access::audit::What;
use crate::access::signing::{Outcome, Shown, claimed};
use crate::home::desk::Desk;
use pinpriq_proto::request::code::Code;
use pinpriq_proto::request::fault::{Fault, shown};
use pinpriq_proto::request::parts::Parts;
use pinpriq_proto::request::spec::{Access, Spec};

type Done = Result<(), Fault>;

/// Refuses a command of somebody who may not use it at all. Called for each request of a server
/// that has users.
#[inline(never)]
pub(crate) fn check(desk: &Desk, spec: &Spec) -> Done {
    if spec.access == Access::Everybody {
        return Ok(());
    }
    if !desk.has_user() {
        return Err(not_signed_in());
    }
    match spec.access {
        Access::Admins => check_admin_of(desk, &spec.full_name()),
        Access::Everybody | Access::Users | Access::Rights => Ok(()),
    }
}

/// Returns the refusal of what is no command, or too large to be one. Somebody who has not signed
/// in hears only that.
#[cold]
pub(crate) fn not_before_sign_in(desk: &Desk, fault: Fault) -> Fault {
    let is_somebody = !desk.is_guarded() || desk.has_user();
    if is_somebody { fault } else { not_signed_in() }
}

fn not_signed_in() -> Fault {
    Fault { code: Code::NoAuth, sentence: "Authentication required.".to_owned() }
}

/// Whether the user of a connection may do what only those may who run the server.
pub(crate) fn is_admin(desk: &Desk) -> bool {
    desk.pass().is_none_or(|pass| pass.user.rights.is_admin())
}

/// Refuses a command that only those may use who run the server.
pub(crate) fn check_admin_of(desk: &Desk, command: &str) -> Done {
    if is_admin(desk) {
        return Ok(());
    }
    desk.tell_denied(command.to_owned(), None);
    let user = desk.pass().map_or_else(String::new, |pass| pass.user.name.to_string());
    let sentence = format!("the user {user} may not do this: it needs the right admin");
    Err(Fault { code: RefusalKind::NoPerm.into(), sentence })
}

pub(crate) fn auth(call: &mut Call<'_, '_>) -> Done {
    let shown = match *call.parts.words {
        [secret] => Shown::Alone(secret),
        [name, secret] => Shown::Named(name, secret),
        _ => return Err(Fault::arity("AUTH")),
    };
    if sign_in(call.talk, call.desk, shown)? {
        call.answer_ok();
    }
    Ok(())
}

/// Signs somebody in. Returns false if that takes time, and the request comes again.
pub(super) fn sign_in(talk: &mut Talk, desk: &mut Desk, given: Shown<'_>) -> Result<bool, Fault> {
    if desk.roster().is_none() {
        return Err(Fault::err(
            "AUTH called without any password configured: this server has none, and listens for \
             those who can reach it",
        ));
    }
    match desk.sign_in(given) {
        Ok(Outcome::In(pass)) => {
            desk.count_connection(&pass)?;
            desk.admit(Some(pass));
            desk.tell_audit(What::SignedIn, None, |_| ());
            Ok(true)
        }
        Ok(Outcome::Wrong) => {
            desk.tell_audit(What::SignInFailed, Some(claimed(given)), |_| ());
            let sentence = "invalid username-password pair or user is disabled.".to_owned();
            Err(Fault { code: Code::WrongPass, sentence })
        }
        Ok(Outcome::Busy) => {
            let sentence = "too many others are signing in: try again".to_owned();
            Err(Fault { code: RefusalKind::Busy.into(), sentence })
        }
        Err(undone) => talk.put_off(undone).map(|()| false),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "all commands are functions of one type")]
pub(crate) fn who_am_i(call: &mut Call<'_, '_>) -> Done {
    let name = match call.desk.roster() {
        None => Some("default".to_owned()),
        Some(_) => call.desk.pass().map(|pass| pass.user.name.to_string()),
    };
    call.answer(|writer| match name {
        Some(name) => writer.bulk(name.as_bytes()),
        None => writer.null(),
    });
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "all commands are functions of one type")]
pub(crate) fn names(call: &mut Call<'_, '_>) -> Done {
    let names = each_user(call, |user| user.name.to_string());
    answer_lines(call, &names);
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "all commands are functions of one type")]
pub(crate) fn lines(call: &mut Call<'_, '_>) -> Done {
    let lines = each_user(call, |user| {
        let rules: Vec<String> = user.rules.iter().map(ToString::to_string).collect();
        let words = ["user", user.name.as_str()].into_iter();
        words.chain(rules.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    });
    answer_lines(call, &lines);
    Ok(())
}

fn each_user(call: &Call<'_, '_>, tell: impl Fn(&User) -> String) -> Vec<String> {
    match call.desk.roster() {
        None => vec!["default".to_owned()],
        Some(roster) => roster.users().0.each().map(|user| tell(user)).collect(),
    }
}

fn answer_lines(call: &Call<'_, '_>, lines: &[String]) {
    call.answer(|writer| {
        writer.array(lines.len());
        for line in lines {
            writer.bulk(line.as_bytes());
        }
    });
}

pub(crate) fn dry_run(call: &mut Call<'_, '_>) -> Done {
    let words = call.parts.words;
    let name = String::from_utf8_lossy(words[0]);
    let user = match call.desk.roster() {
        None => return Err(Fault::err("this server has no users: everybody may do everything")),
        Some(roster) => roster.users().0.user(&name).cloned(),
    };
    let Some(user) = user else {
        return Err(Fault::err(format!("User '{}' not found", shown(words[0]))));
    };
    let lack = lack_of(call, &user, &words[1..])?;
    match lack {
        None => call.answer_ok(),
        Some(lack) => {
            let sentence = format!("User {} lacks the right {lack}", user.name);
            call.answer(|writer| writer.bulk(sentence.as_bytes()));
        }
    }
    Ok(())
}

/// Returns what a user lacks for a request, if anything.
fn lack_of(
    call: &mut Call<'_, '_>,
    user: &Arc<User>,
    request: &[&[u8]],
) -> Result<Option<String>, Fault> {
    let (spec, place, taken) = entry_of_step(request)?;
    let mut parts = Parts::of(spec);
    parts.sort_step(&request[taken..])?;
    match spec.access {
        Access::Everybody | Access::Users => return Ok(None),
        Access::Admins => {
            let lacks = !user.rights.is_admin();
            return Ok(lacks.then(|| Right::Admin.to_string()));
        }
        Access::Rights => {}
    }
    call.talk.steps = Some(Steps::default());
    call.talk.dry_run = Some(DryRun { user: Arc::clone(user), lack: None });
    let done = run(place, &mut Call { desk: call.desk, talk: call.talk, parts: &parts });
    call.talk.steps = None;
    let dry_run = call.talk.dry_run.take();
    done?;
    Ok(dry_run.and_then(|it| it.lack))
}
