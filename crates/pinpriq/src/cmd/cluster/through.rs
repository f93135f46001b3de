//! Asks the engine under a cluster by way of a node: both sides of `CLUSTER ADMIN`.

use std::sync::Arc;

use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_server::cluster::{Administer, Administered};

use super::{Asker, unknown};
use crate::cluster::engine::Engine;
use crate::cluster::url::ClusterUrl;
use crate::endpoint::Endpoint;
use crate::exit::{Exit, Failure};
use crate::output::print_text;
use crate::resp::{Client, unexpected};

/// How the answer is wanted.
const FORMS: [&str; 2] = ["TEXT", "JSON"];

/// What a node asks its engine for operators with.
pub(crate) fn administer(url: &ClusterUrl, engine: Arc<dyn Engine>) -> Administer {
    let url = url.clone();
    Arc::new(move |words| {
        let asker = Asker { url: &url, engine: engine.clone() };
        match answer(&asker, words) {
            Ok((exit, text)) => Administered { code: exit.code(), text, failure: None },
            Err(failure) => Administered {
                code: failure.code(),
                text: String::new(),
                failure: Some(failure.to_string()),
            },
        }
    })
}

fn answer(asker: &Asker<'_>, words: &[String]) -> Result<(Exit, String), Failure> {
    let (form, words) = words.split_first().ok_or_else(unknown)?;
    let form = FORMS.iter().position(|it| it == form).ok_or_else(unknown)?;
    asker.carry_out(words, form == 1)
}

/// Has a node ask the engine, and prints what it says.
pub(super) fn ask(node: &Endpoint, asked: &[String], json: bool) -> Result<Exit, Failure> {
    let mut words = Words::new("CLUSTER ADMIN").bytes(FORMS[usize::from(json)]);
    for word in asked {
        words = words.bytes(word);
    }
    let Value::Array(parts) = Client::open(node)?.call(&words)? else { return Err(unexpected()) };
    let [Value::Integer(code), Value::Bulk(text), failure] = &parts[..] else {
        return Err(unexpected());
    };
    let code = u8::try_from(*code).map_err(|_| unexpected())?;
    print_text(text)?;
    if let Some(why) = failure.as_bytes() {
        return Err(Failure::new(code, String::from_utf8_lossy(why)));
    }
    let known = [Exit::Done, Exit::Damaged, Exit::NothingThere];
    known.into_iter().find(|exit| exit.code() == code).ok_or_else(unexpected)
}
