//! The commands that change a cluster: they move shards, accept a roll-back of the engine, and
//! raise the format.

use std::path::Path;

use pinpriq_cluster::{Meta, RegistryAnswer, RegistryCall};
use pinpriq_server::ServeError;
use pinpriq_server::cluster::{FORMAT, KnownCluster, NodeData, NotAccepted, acceptance};

use super::picture::Picture;
use super::wrong::IMPORTING;
use super::{Asker, BETWEEN_LOOKS};
use crate::cluster::engine::no_cluster;
use crate::cmd::pass;
use crate::exit::Failure;
use crate::json::Json;

/// How often a record is changed that others change meanwhile.
const TRIES: u32 = 16;

/// How often owners are looked for that have not heard of a roll-back: for about a minute, which is
/// as long as a session can last.
const LOOKS_FOR_OWNERS: u32 = 90;

/// What the data directory of a node that does not run knows of its cluster.
pub(super) fn known_in(data: &Path) -> Result<KnownCluster, Failure> {
    if !data.is_dir() {
        return Err(Failure::of_directory(format!("there is no directory {}", data.display())));
    }
    let opened = NodeData::open(data, 0).map_err(|error| of_serving(&error))?;
    let nothing = || Failure::of_directory(format!("{} knows no cluster", data.display()));
    opened.cluster().ok_or_else(nothing)
}

impl Asker<'_> {
    /// Tells a shard where to move, or that it may go where it belongs.
    pub(super) fn move_shard(
        &self,
        shard: u16,
        node: Option<&str>,
        json: bool,
    ) -> Result<String, Failure> {
        let picture = Picture { view: self.look()?, logs: Vec::new() };
        let shards = picture.view.owners.len();
        if usize::from(shard) >= shards {
            let sentence = format!("there is no shard {shard}: they are 0 to {}", shards - 1);
            return Err(Failure::unusable(sentence));
        }
        if let Some(name) = node {
            let living = picture.view.nodes.iter().find(|it| it.name == name);
            let is_usable = living.map(|it| !picture.drains(it));
            let why = match is_usable {
                None => {
                    format!("no node {name} lives: `pinpriq cluster nodes` shows those that do")
                }
                Some(false) => format!("{name} is drained: `pinpriq cluster undrain {name}`"),
                Some(true) => String::new(),
            };
            if !why.is_empty() {
                return Err(Failure::unusable(why));
            }
        }
        self.ask(RegistryCall::Target { shard, node: node.map(str::to_owned) })?;
        Ok(match (json, node) {
            (true, node) => {
                let target = node.map_or(Json::Null, Json::text);
                let shard = Json::Number(u64::from(shard));
                format!("{}\n", Json::Object(vec![("shard", shard), ("target", target)]))
            }
            (false, Some(name)) => format!("shard {shard} was told to move to {name}\n"),
            (false, None) => format!("shard {shard} may go where it belongs\n"),
        })
    }

    /// Begins a new generation of the cluster.
    pub(super) fn accept_rollback(
        &self,
        known: Option<KnownCluster>,
        json: bool,
    ) -> Result<String, Failure> {
        let generation = self.accept(known)?.generation;
        Ok(if json {
            let generation = Json::Number(u64::from(generation));
            format!("{}\n", Json::Object(vec![("generation", generation)]))
        } else {
            format!("accepted: this is generation {generation} of the cluster\n")
        })
    }

    /// Raises the format to the newest one.
    pub(super) fn upgrade(&self, json: bool) -> Result<String, Failure> {
        let mut before = FORMAT;
        let meta = self.amend(|meta| {
            before = meta.format;
            (meta.format < FORMAT).then(|| Meta { format: FORMAT, ..meta.clone() })
        })?;
        Ok(if json {
            let number = |format: u32| Json::Number(u64::from(format));
            let object = vec![("format", number(meta.format)), ("before", number(before))];
            format!("{}\n", Json::Object(object))
        } else if meta.format == before {
            format!("there is nothing to raise: the cluster has format {before}\n")
        } else {
            format!("the cluster has format {} now, it had {before}\n", meta.format)
        })
    }

    /// Begins a new generation, and returns what is true of the cluster then. A cluster that is not
    /// there is made again, if it is known what it was.
    fn accept(&self, known: Option<KnownCluster>) -> Result<Meta, Failure> {
        for _ in 0..TRIES {
            let there = match self.ask(RegistryCall::Find)? {
                RegistryAnswer::Meta(meta) => Some(meta),
                RegistryAnswer::Unfounded => None,
                other => return Err(self.silent(&format!("it answered {other:?}"))),
            };
            if there.as_ref().is_some_and(|meta| meta.rolled_back.is_some()) {
                self.wait_for_owners()?;
            }
            let (meta, call) = acceptance(there, known).map_err(|why| match why {
                NotAccepted::NoCluster => no_cluster(self.url),
                NotAccepted::OtherCluster => Failure::of_directory(
                    "the data directory belongs to another cluster than the engine",
                ),
                NotAccepted::Importing => Failure::of_directory(IMPORTING),
            })?;
            match self.ask(call)? {
                RegistryAnswer::Done => return Ok(meta),
                RegistryAnswer::Meta(made) if made == meta => return Ok(meta),
                _ => {}
            }
        }
        Err(self.others_change())
    }

    /// Waits until no shard has an owner. Once a roll-back is noted, nodes give up their shards and
    /// claim none. An owner that has not heard of it might begin to serve what is left of a log as
    /// if nothing had happened, if the roll-back were accepted before.
    fn wait_for_owners(&self) -> Result<(), Failure> {
        for look in 0..LOOKS_FOR_OWNERS {
            if look > 0 {
                pass(BETWEEN_LOOKS);
            }
            let picture = Picture { view: self.look()?, logs: Vec::new() };
            if picture.view.owners.iter().all(Option::is_none) {
                return Ok(());
            }
        }
        let sentence = "nodes still own shards, although nothing may be served: `pinpriq cluster \
                        shards` shows them. Stop these nodes, and run this again";
        Err(Failure::on_the_way(sentence.to_owned()))
    }

    /// Changes what is true of the cluster, and returns it.
    fn amend(&self, mut change: impl FnMut(&Meta) -> Option<Meta>) -> Result<Meta, Failure> {
        for _ in 0..TRIES {
            let meta = match self.ask(RegistryCall::Find)? {
                RegistryAnswer::Meta(meta) => meta,
                RegistryAnswer::Unfounded => return Err(no_cluster(self.url)),
                other => return Err(self.silent(&format!("it answered {other:?}"))),
            };
            if meta.importing {
                return Err(Failure::of_directory(IMPORTING));
            }
            let Some(changed) = change(&meta) else { return Ok(meta) };
            let amend = RegistryCall::Amend { meta: changed.clone(), instead_of: meta };
            if self.ask(amend)? == RegistryAnswer::Done {
                return Ok(changed);
            }
        }
        Err(self.others_change())
    }

    fn others_change(&self) -> Failure {
        self.silent("others change the record of the cluster all the time")
    }
}

fn of_serving(error: &ServeError) -> Failure {
    Failure::new(error.exit_code(), error.to_string())
}
