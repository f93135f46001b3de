//! The commands on the connection itself, and those that describe the server.

#![expect(clippy::unnecessary_wraps, reason = "all commands are functions of one type")]

use pinpriq_proto::wire::resp::Protocol;

use super::call::{Call, refused, written};
use super::keys::keys_of;
use super::{describe, guard};
use crate::access::audit::What;
use crate::access::signing::Shown;
use crate::clients::about::Chosen;
use crate::clients::ending::Ending;
use crate::figures::info;
use crate::host::roll;
use pinpriq_proto::request::code::Code;
use pinpriq_proto::request::fault::{Fault, shown};
use pinpriq_proto::request::parts::{no_value, number};

type Done = Result<(), Fault>;

/// The longest name of a client or of its library, in bytes. Clients may give them before they have
/// signed in, and lists of clients and leases show them.
const NAME_BYTES_MAX: usize = 255;

pub(crate) fn ping(call: &mut Call<'_, '_>) -> Done {
    match call.parts.words.first().copied() {
        Some(message) => call.answer(|writer| writer.bulk(message)),
        None => call.answer(|writer| writer.simple("PONG")),
    }
    Ok(())
}

pub(crate) fn echo(call: &mut Call<'_, '_>) -> Done {
    let message = call.parts.word(0);
    call.answer(|writer| writer.bulk(message));
    Ok(())
}

pub(crate) fn hello(call: &mut Call<'_, '_>) -> Done {
    let words = call.parts.words;
    let mut protocol = call.talk.protocol;
    let mut rest = words;
    if let Some((version, others)) = rest.split_first() {
        protocol = match *version {
            b"2" => Protocol::Resp2,
            b"3" => Protocol::Resp3,
            _ => {
                let sentence = "unsupported protocol version, this server speaks 2 and 3";
                return Err(Fault { code: Code::NoProto, sentence: sentence.to_owned() });
            }
        };
        rest = others;
    }
    let (mut name, mut shown_pass) = (None, None);
    while let Some((word, others)) = rest.split_first() {
        rest = if word.eq_ignore_ascii_case(b"SETNAME") && !others.is_empty() {
            name = Some(check_name(others[0])?);
            &others[1..]
        } else if word.eq_ignore_ascii_case(b"AUTH") && others.len() >= 2 {
            shown_pass = Some(Shown::Named(others[0], others[1]));
            &others[2..]
        } else {
            return Err(Fault::err(format!("syntax error in HELLO at {}", shown(word))));
        };
    }
    if let Some(shown) = shown_pass
        && !guard::sign_in(call.talk, call.desk, shown)?
    {
        return Ok(());
    }
    if protocol != call.talk.protocol {
        call.talk.switch(call.desk, protocol);
    }
    if let Some(name) = name {
        call.desk.rename(name);
    }
    let id = i64::try_from(call.desk.client().0).unwrap_or(i64::MAX);
    let version = if protocol == Protocol::Resp3 { 3 } else { 2 };
    let mode: &[u8] = if call.desk.owners().is_some() { b"cluster" } else { b"standalone" };
    call.answer(|writer| {
        writer.map(7);
        writer.bulk(b"server");
        writer.bulk(b"pinpriq");
        writer.bulk(b"version");
        writer.bulk(env!("CARGO_PKG_VERSION").as_bytes());
        writer.bulk(b"proto");
        writer.integer(version);
        writer.bulk(b"id");
        writer.integer(id);
        writer.bulk(b"mode");
        writer.bulk(mode);
        writer.bulk(b"role");
        writer.bulk(b"master");
        writer.bulk(b"modules");
        writer.array(0);
    });
    Ok(())
}

pub(crate) fn quit(call: &mut Call<'_, '_>) -> Done {
    call.answer_ok();
    call.quit(Ending::Quit);
    Ok(())
}

pub(crate) fn reset(call: &mut Call<'_, '_>) -> Done {
    call.desk.reset(written(Protocol::Resp2, |writer| writer.simple("RESET")));
    // Replies to earlier requests are still written in the former version.
    (call.talk.meta, call.talk.cancels) = (false, false);
    call.talk.switch(call.desk, Protocol::Resp2);
    Ok(())
}

pub(crate) fn client_id(call: &mut Call<'_, '_>) -> Done {
    let id = i64::try_from(call.desk.client().0).unwrap_or(i64::MAX);
    call.answer(|writer| writer.integer(id));
    Ok(())
}

pub(crate) fn client_set_name(call: &mut Call<'_, '_>) -> Done {
    let name = check_name(call.parts.word(0))?;
    call.desk.rename(name);
    call.answer_ok();
    Ok(())
}

pub(crate) fn client_name(call: &mut Call<'_, '_>) -> Done {
    let name = call.desk.session().about.borrow().name.clone();
    call.answer(|writer| match name.as_slice() {
        [] => writer.null(),
        name => writer.bulk(name),
    });
    Ok(())
}

pub(crate) fn client_set_info(call: &mut Call<'_, '_>) -> Done {
    let (what, value) = (call.parts.word(0), check_name(call.parts.word(1))?);
    {
        let mut about = call.desk.session().about.borrow_mut();
        if what.eq_ignore_ascii_case(b"LIB-NAME") {
            about.library = value;
        } else if what.eq_ignore_ascii_case(b"LIB-VER") {
            about.library_version = value;
        } else {
            return Err(Fault::err(format!("Unrecognized option {}", shown(what))));
        }
    }
    call.answer_ok();
    Ok(())
}

pub(crate) fn client_cancels(call: &mut Call<'_, '_>) -> Done {
    let word = call.parts.word(0);
    let is_on = match word {
        _ if word.eq_ignore_ascii_case(b"ON") => true,
        _ if word.eq_ignore_ascii_case(b"OFF") => false,
        _ => return Err(no_value("CANCELS is ON or OFF", word)),
    };
    if is_on && call.talk.protocol == Protocol::Resp2 && !call.desk.is_subscribed() {
        return Err(Fault::bad(
            "a connection that speaks RESP2 hears of cancelled tasks once it is subscribed: \
             subscribe first, or say HELLO 3",
        ));
    }
    call.talk.tell_cancels(call.desk, is_on);
    call.answer_ok();
    Ok(())
}

pub(crate) fn client_list(call: &mut Call<'_, '_>) -> Done {
    let protocol = call.talk.protocol;
    call.desk.say_clients(move |lines| written(protocol, |writer| writer.verbatim(lines)));
    Ok(())
}

pub(crate) fn client_kill(call: &mut Call<'_, '_>) -> Done {
    let words = call.parts.words;
    let old_form = words.len() == 1;
    let which = match *words {
        [address] => Chosen::Address(address.to_vec()),
        [word, address] if word.eq_ignore_ascii_case(b"ADDR") => Chosen::Address(address.to_vec()),
        [word, id] if word.eq_ignore_ascii_case(b"ID") => match number(id) {
            Some(id) => Chosen::Id(id),
            None => return Err(Fault::err("client-id should be greater than 0")),
        },
        _ => return Err(Fault::err("syntax error: CLIENT KILL takes ID number or ADDR address")),
    };
    let caller = call.desk.client();
    let is_caller = roll::is_meant(&which, caller, call.desk.session());
    if is_caller {
        // This request still gets its reply, as with QUIT.
        call.quit(Ending::Killed);
    } else {
        guard::check_admin_of(call.desk, "CLIENT KILL")?;
    }
    call.desk.tell_audit(What::Command, None, |event| {
        event.command = Some("CLIENT KILL".to_owned());
        event.detail = Some(words.iter().map(|word| shown(word)).collect::<Vec<_>>().join(" "));
    });
    let protocol = call.talk.protocol;
    let (tally, door) = (call.desk.tally().clone(), call.desk.session().door());
    let answer = move |others: u64| match others + u64::from(is_caller) {
        0 if old_form => refused((&tally, door), protocol, &Fault::err("No such client")),
        killed => written(protocol, |writer| {
            if old_form {
                writer.ok();
            } else {
                writer.integer(i64::try_from(killed).unwrap_or(i64::MAX));
            }
        }),
    };
    call.desk.say_killed(&which, answer);
    Ok(())
}

pub(crate) fn command(call: &mut Call<'_, '_>) -> Done {
    call.answer(|writer| describe::infos(writer, &[]));
    Ok(())
}

pub(crate) fn command_count(call: &mut Call<'_, '_>) -> Done {
    let count = i64::try_from(describe::names().len()).unwrap_or(i64::MAX);
    call.answer(|writer| writer.integer(count));
    Ok(())
}

pub(crate) fn command_docs(call: &mut Call<'_, '_>) -> Done {
    let wanted = call.parts.words;
    call.answer(|writer| describe::docs(writer, wanted));
    Ok(())
}

pub(crate) fn command_keys(call: &mut Call<'_, '_>) -> Done {
    let keys = keys_of(call.parts.words)?;
    call.answer(|writer| {
        writer.array(keys.len());
        for key in keys {
            writer.bulk(key);
        }
    });
    Ok(())
}

pub(crate) fn command_info(call: &mut Call<'_, '_>) -> Done {
    let wanted = call.parts.words;
    call.answer(|writer| describe::infos(writer, wanted));
    Ok(())
}

pub(crate) fn command_list(call: &mut Call<'_, '_>) -> Done {
    call.answer(|writer| {
        let names = describe::names();
        writer.array(names.len());
        for name in names {
            writer.bulk(name.to_ascii_lowercase().as_bytes());
        }
    });
    Ok(())
}

pub(crate) fn info(call: &mut Call<'_, '_>) -> Done {
    let mut wanted: Vec<Vec<u8>> = call.parts.words.iter().map(|word| word.to_vec()).collect();
    let first = info::Section::ALL[0].name().as_bytes();
    if !guard::is_admin(call.desk) {
        // Many clients ask for it when they connect.
        if !wanted.iter().all(|section| section.eq_ignore_ascii_case(first)) {
            guard::check_admin_of(call.desk, "INFO")?;
        }
        wanted = vec![first.to_vec()];
    }
    let protocol = call.talk.protocol;
    call.desk.say_facts(move |facts| {
        let wanted: Vec<&[u8]> = wanted.iter().map(|word| &word[..]).collect();
        written(protocol, |writer| writer.verbatim(&info::lines(facts, &wanted)))
    });
    Ok(())
}

/// Refuses names that are too long, and those with characters that would break a line of
/// `CLIENT LIST`.
fn check_name(name: &[u8]) -> Result<Vec<u8>, Fault> {
    if name.len() > NAME_BYTES_MAX {
        let length = name.len();
        return Err(Fault::bad(format!(
            "names of clients and libraries have at most {NAME_BYTES_MAX} bytes, and this one has \
             {length}"
        )));
    }
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Ok(name.to_vec());
    }
    Err(Fault::err("Client names cannot contain spaces, newlines or special characters."))
}
