//! The engine under a cluster: etcd or PostgreSQL, each as the program that it is.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use pinpriq_testing::engines::are_required;

use super::etcd::Etcd;
use super::logs::Log;
use super::postgres::{Postgres, USER};
use super::{NAME, SHARDS};
use crate::fault::Fallible;

/// Which engine there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Three members of etcd.
    Etcd,
    /// A primary of PostgreSQL and its synchronous standby.
    Postgres,
}

impl Kind {
    /// The kind of this name, if there is one.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "etcd" => Some(Self::Etcd),
            "postgres" => Some(Self::Postgres),
            _ => None,
        }
    }

    /// Why it cannot run here, if it cannot. Where engines are required, that is an error.
    pub(crate) fn missing(self) -> Fallible<Option<String>> {
        let lacks = match self {
            Self::Etcd => Etcd::lacks(),
            Self::Postgres => Postgres::lacks(),
        };
        let Some(program) = lacks else { return Ok(None) };
        let why = format!("{program} is not installed");
        if are_required() { Err(why.into()) } else { Ok(Some(why)) }
    }
}

/// An engine that runs.
pub(crate) enum Engine {
    Etcd(Etcd),
    Postgres(Box<Postgres>),
}

impl Engine {
    /// Starts all of it, and waits until it works.
    pub(crate) fn start(kind: Kind, directory: &Path) -> Fallible<Self> {
        Ok(match kind {
            Kind::Etcd => Self::Etcd(Etcd::start(directory)?),
            Kind::Postgres => Self::Postgres(Box::new(Postgres::start(directory)?)),
        })
    }

    /// Where it listens.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        match self {
            Self::Etcd(etcd) => etcd.addresses(),
            Self::Postgres(postgres) => postgres.addresses(),
        }
    }

    /// The settings of a node that reaches the engine at these addresses.
    pub(crate) fn url(&self, addresses: &[SocketAddr]) -> String {
        let addresses = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        match self {
            Self::Etcd(_) => format!("etcd://{addresses}/{NAME}"),
            Self::Postgres(_) => format!("postgres://{USER}@{addresses}/postgres?schema={NAME}"),
        }
    }

    /// Reads the logs of all shards, of etcd from this member.
    pub(crate) fn logs(&self, member: usize) -> Fallible<BTreeMap<u16, Log>> {
        match self {
            Self::Etcd(etcd) => {
                let member = etcd.addresses()[member];
                (0..SHARDS).map(|shard| Ok((shard, Log::of_etcd(member, shard)?))).collect()
            }
            Self::Postgres(postgres) => postgres.logs(),
        }
    }

    /// The members of etcd.
    pub(crate) fn etcd(&mut self) -> Fallible<&mut Etcd> {
        match self {
            Self::Etcd(etcd) => Ok(etcd),
            Self::Postgres(_) => Err("this is a trouble of etcd".into()),
        }
    }

    /// The servers of PostgreSQL.
    pub(crate) fn postgres(&mut self) -> Fallible<&mut Postgres> {
        match self {
            Self::Postgres(postgres) => Ok(postgres),
            Self::Etcd(_) => Err("this is a trouble of PostgreSQL".into()),
        }
    }
}
