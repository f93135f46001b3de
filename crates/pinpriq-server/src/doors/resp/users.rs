//! The commands about users: who signs in, who they are, and what they may do.

use std::sync::Arc;

use crate::users::{Right, User};
use pinpriq_proto::letters::Steps;
use pinpriq_proto::request::fault::{Fault, shown};
use pinpriq_proto::request::parts::Parts;
use pinpriq_proto::request::spec::Access;

use super::call::{Call, DryRun};
use super::entry_of_step;
use super::guard::sign_in;
use super::runs::run;
use crate::access::signing::Shown;

type Done = Result<(), Fault>;

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
