//! Who may use a connection: signing in, and refusing those who have not or may not.
//!
//! What a command needs is known by `pinpriq_proto::rights`, and checked by the desk.

use pinpriq_proto::reply::RefusalKind;
use pinpriq_proto::request::code::Code;
use pinpriq_proto::request::fault::Fault;
use pinpriq_proto::request::spec::{Access, Spec};

use super::call::Talk;
use crate::access::audit::What;
use crate::access::signing::{Outcome, Shown, claimed};
use crate::home::desk::Desk;

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
        Err(undone) => talk.note_undone(undone).map(|()| false),
    }
}
