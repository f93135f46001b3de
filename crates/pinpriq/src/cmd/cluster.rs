//! `pinpriq cluster`: what the engine under a cluster knows of it, in words or as JSON.
//!
//! This module asks, and tells nodes to drain. `change.rs` changes the cluster, and `whole.rs`
//! fills or copies it. `picture.rs` is what was found, `wrong.rs` what is wrong with it, and
//! `words.rs` says it. `through.rs` has a node ask, and answers in a node that is asked.

mod change;
mod picture;
pub(crate) mod through;
mod whole;
mod words;
mod wrong;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use pinpriq_cluster::{RegistryAnswer, RegistryCall, View};
use pinpriq_server::cluster::ask_registry;
use pinpriq_store::ledger::{Answer, Call, Status, Writer};

use self::picture::Picture;
use self::wrong::what_is_wrong;
use crate::args::cluster::{AcceptArgs, ClusterCommand, MoveArgs, NodeArgs, RoomArgs};
use crate::cluster::engine::{Empty, Engine, connect, no_cluster};
use crate::cluster::url::ClusterUrl;
use crate::cmd::pass;
use crate::exit::{Exit, Failure};
use crate::json::Json;
use crate::output::print_text;
use crate::settings::Size;

/// How long sessions of other nodes live at least. A look opens none.
const SESSION_TTL: Duration = Duration::from_secs(5);

/// How often a cluster is looked at until something counts as wrong, and the time in between.
const LOOKS: u32 = 4;
const BETWEEN_LOOKS: Duration = Duration::from_millis(700);

/// Stands for a node in the words of a move: the shard goes where it belongs.
const BACK: &str = "--back";

/// Carries out one of the commands.
pub(crate) fn cluster(command: &ClusterCommand) -> Result<Exit, Failure> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let (words, of, bytes_max) = match command {
        ClusterCommand::Import(arguments) => return whole::import(arguments),
        ClusterCommand::Export(arguments) => return whole::export(arguments),
        ClusterCommand::Status(RoomArgs { of, cluster_bytes_max }) => {
            (words(&["status"]), of, *cluster_bytes_max)
        }
        ClusterCommand::Check(RoomArgs { of, cluster_bytes_max }) => {
            (words(&["check"]), of, *cluster_bytes_max)
        }
        ClusterCommand::Nodes(of) => (words(&["nodes"]), of, None),
        ClusterCommand::Shards(of) => (words(&["shards"]), of, None),
        ClusterCommand::Drain(NodeArgs { node, of }) => (words(&["drain", &node.0]), of, None),
        ClusterCommand::Undrain(NodeArgs { node, of }) => (words(&["undrain", &node.0]), of, None),
        ClusterCommand::Move(MoveArgs { shard, node, of, .. }) => {
            let node = node.as_ref().map_or(BACK, |node| &node.0);
            (words(&["move", &shard.to_string(), node]), of, None)
        }
        ClusterCommand::AcceptRollback(AcceptArgs { data: None, of }) => {
            (words(&["accept-rollback"]), of, None)
        }
        ClusterCommand::AcceptRollback(AcceptArgs { data: Some(data), of }) => {
            let asker = Asker::prepare(of.engine()?, None)?;
            let text = asker.accept_rollback(Some(change::known_in(data)?), of.json)?;
            return print_text(text.as_bytes()).map(|()| Exit::Done);
        }
        ClusterCommand::Upgrade(of) => (words(&["upgrade"]), of, None),
    };
    if let Some(node) = of.node()? {
        return through::ask(&node, &words, of.json);
    }
    let (exit, text) = Asker::new(of.engine()?, bytes_max)?.carry_out(&words, of.json)?;
    print_text(text.as_bytes())?;
    Ok(exit)
}

fn unknown() -> Failure {
    Failure::unusable(
        "it must be TEXT or JSON, and status, nodes, shards, check, drain NODE, undrain NODE, \
         move SHARD NODE, move SHARD --back, accept-rollback or upgrade",
    )
}

/// What asks the engine of a cluster.
struct Asker<'a> {
    url: &'a ClusterUrl,
    engine: Arc<dyn Engine>,
}

impl<'a> Asker<'a> {
    /// Carries out what an operator asks in the words of the command line, which are those of
    /// `CLUSTER ADMIN` too. Returns what is printed.
    fn carry_out(&self, words: &[String], json: bool) -> Result<(Exit, String), Failure> {
        let done = |text| Ok((Exit::Done, text));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["status"] => self.status(json),
            ["nodes"] => self.nodes(json),
            ["shards"] => {
                let picture = self.picture()?;
                done(if json { words::shards_as_json(&picture) } else { words::shards(&picture) })
            }
            ["check"] => self.check(json),
            ["drain", node] => done(self.drain(node, true, json)?),
            ["undrain", node] => done(self.drain(node, false, json)?),
            ["move", shard, node] => {
                let shard = shard.parse().map_err(|_| unknown())?;
                done(self.move_shard(shard, (node != BACK).then_some(node), json)?)
            }
            ["accept-rollback"] => done(self.accept_rollback(None, json)?),
            ["upgrade"] => done(self.upgrade(json)?),
            _ => Err(unknown()),
        }
    }

    fn status(&self, json: bool) -> Result<(Exit, String), Failure> {
        let picture = Picture { view: self.look()?, logs: Vec::new() };
        let room = self.room()?;
        let text = if json {
            format!("{}\n", words::status_as_json(self.url, &picture, room))
        } else {
            words::status(self.url, &picture, room)
        };
        Ok((if picture.unserved().is_empty() { Exit::Done } else { Exit::Damaged }, text))
    }

    fn nodes(&self, json: bool) -> Result<(Exit, String), Failure> {
        let view = self.look()?;
        if view.nodes.is_empty() {
            return Ok((Exit::NothingThere, String::new()));
        }
        let picture = Picture { view, logs: Vec::new() };
        let text = if json { words::nodes_as_json(&picture) } else { words::nodes(&picture) };
        Ok((Exit::Done, text))
    }

    fn drain(&self, name: &str, drains: bool, json: bool) -> Result<String, Failure> {
        let picture = Picture { view: self.look()?, logs: Vec::new() };
        let lives = picture.view.nodes.iter().any(|it| it.name == name);
        let was_told = picture.view.drained.iter().any(|it| it == name);
        if !lives && (drains || !was_told) {
            let sentence =
                format!("no node {name} lives: `pinpriq cluster nodes` shows those that do");
            return Err(Failure::unusable(sentence));
        }
        self.ask(RegistryCall::Drain { name: name.to_owned(), drains })?;
        let shards = picture.shards_of(name);
        Ok(match (json, drains) {
            (true, _) => {
                let object = Json::Object(vec![
                    ("node", Json::text(name)),
                    ("draining", Json::Bool(drains)),
                    ("shards", Json::Number(shards as u64)),
                ]);
                format!("{object}\n")
            }
            (false, true) => format!("{name} was told to hand over its shards ({shards})\n"),
            (false, false) => format!("{name} may have shards again\n"),
        })
    }

    fn check(&self, json: bool) -> Result<(Exit, String), Failure> {
        let mut wrong = Vec::new();
        for look in 0..LOOKS {
            if look > 0 {
                pass(BETWEEN_LOOKS);
            }
            wrong = what_is_wrong(&self.picture()?, self.room()?);
            if wrong.is_empty() {
                break;
            }
        }
        let text = if json {
            let object = Json::Object(vec![
                ("well", Json::Bool(wrong.is_empty())),
                ("wrong", Json::list(&wrong, |it: &String| Json::text(it))),
            ]);
            format!("{object}\n")
        } else if wrong.is_empty() {
            "nothing is wrong\n".to_owned()
        } else {
            words::lines(wrong.iter())
        };
        Ok((if wrong.is_empty() { Exit::Done } else { Exit::Damaged }, text))
    }

    fn new(url: &'a ClusterUrl, bytes_max: Option<Size<{ 1 << 50 }>>) -> Result<Self, Failure> {
        let bytes_max = bytes_max.map_or_else(|| url.bytes_max(), Size::bytes);
        Ok(Self { url, engine: connect(url, SESSION_TTL, bytes_max, Empty::Refuse)? })
    }

    /// Connects to an engine that may be empty, and prepares it if it needs to be.
    fn prepare(url: &'a ClusterUrl, bytes_max: Option<Size<{ 1 << 50 }>>) -> Result<Self, Failure> {
        let bytes_max = bytes_max.map_or_else(|| url.bytes_max(), Size::bytes);
        Ok(Self { url, engine: connect(url, SESSION_TTL, bytes_max, Empty::Prepare)? })
    }

    /// Asks the registry. Blocks.
    fn ask(&self, call: RegistryCall) -> Result<RegistryAnswer, Failure> {
        match ask_registry(&*self.engine, SESSION_TTL, call) {
            Some(RegistryAnswer::Unreachable(why)) => Err(self.silent(&why)),
            Some(answer) => Ok(answer),
            None => Err(self.silent("its thread has ended")),
        }
    }

    /// Asks who is there, and who serves what. Refuses if there is no cluster.
    fn look(&self) -> Result<View, Failure> {
        match self.ask(RegistryCall::Look)? {
            // A cluster has at least one shard.
            RegistryAnswer::View(view) if view.owners.is_empty() => Err(no_cluster(self.url)),
            RegistryAnswer::View(view) => Ok(view),
            other => Err(self.silent(&format!("it answered {other:?}"))),
        }
    }

    fn picture(&self) -> Result<Picture, Failure> {
        let view = self.look()?;
        let shards = u16::try_from(view.owners.len()).unwrap_or(u16::MAX);
        let logs = self.engine.log_states(shards).map_err(|error| self.silent(&error.why))?;
        Ok(Picture { view, logs })
    }

    /// Asks how much room there is for the logs.
    fn room(&self) -> Result<Status, Failure> {
        let mut ledger = self.engine.ledger(0, Writer::default(), Arc::new(|| ()));
        ledger.start(Call::Status);
        ledger.wait();
        match ledger.poll() {
            Some(Answer::Status(Ok(room))) => Ok(room),
            Some(Answer::Status(Err(error))) => Err(self.silent(&error.why)),
            _ => Err(self.silent("its thread has ended")),
        }
    }

    fn silent(&self, why: &str) -> Failure {
        Failure::on_the_way(format!("{} does not answer: {why}", self.url.engine()))
    }
}
