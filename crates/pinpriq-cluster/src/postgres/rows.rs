//! The rows of the registry as records. What they mean together is in `registry`.

use std::time::Duration;

use crate::remote::records::{read_instance, read_meta, read_node, read_own, read_target};
use crate::{Instance, Meta, NodeRecord, OwnRecord, ShardNumber};
use tokio_postgres::Row;

use crate::postgres::beats::Beat;
use crate::postgres::failure::Failure;
use crate::postgres::server::column;

/// The longest time to live that is believed.
const TTL_MAX: Duration = Duration::from_hours(24);

/// A row of one of the tables. Without a record it cannot be read.
pub(crate) enum Record {
    Meta(Option<Meta>),
    Session(Beat, Option<NodeRecord>),
    /// On which session it hangs, and the record.
    Own(Instance, Option<(ShardNumber, OwnRecord)>),
    Drained(Option<String>),
    Target(Option<(ShardNumber, String)>),
}

impl Record {
    /// Reads a row of [`EVERYTHING`](super::registry_sql::EVERYTHING).
    pub(crate) fn read(row: &Row) -> Result<Self, Failure> {
        let body: Vec<u8> = column(row, 3)?;
        let shard = || column(row, 2).map(|shard: i32| ShardNumber::try_from(shard).ok());
        Ok(match column::<i32>(row, 0)? {
            0 => Self::Meta(read_meta(&body)),
            1 => {
                let instance = instance(row, 1)?;
                let ttl = u64::try_from(column::<i64>(row, 5)?).unwrap_or(0);
                let ttl = Duration::from_millis(ttl).min(TTL_MAX);
                let beat = Beat { instance, count: column(row, 4)?, ttl };
                Self::Session(beat, read_node(instance, &body))
            }
            2 => Self::Own(instance(row, 1)?, shard()?.zip(read_own(&body))),
            4 => Self::Target(shard()?.zip(read_target(&body))),
            _ => Self::Drained(String::from_utf8(body).ok()),
        })
    }

    pub(crate) fn beat(&self) -> Option<Beat> {
        match self {
            Self::Session(beat, _) => Some(*beat),
            _ => None,
        }
    }
}

/// What is read of the owner of a shard.
pub(crate) struct Owner {
    /// The session on which its record hangs.
    pub(crate) instance: Instance,
    pub(crate) body: Vec<u8>,
    /// The beat of that session.
    pub(crate) beat: i64,
}

impl Owner {
    /// Reads a row of [`OWNER`](super::registry_sql::OWNER). None if there is no owner.
    pub(crate) fn read(row: &Row) -> Result<Option<Self>, Failure> {
        let Some(body) = column(row, 2)? else { return Ok(None) };
        Ok(Some(Self { instance: instance(row, 1)?, body, beat: column(row, 3)? }))
    }
}

/// An instance, which is there as 32 digits.
fn instance(row: &Row, index: usize) -> Result<Instance, Failure> {
    let text: String = column(row, index)?;
    read_instance(&text).ok_or_else(|| Failure::unknown(format!("an instance is {text}")))
}
