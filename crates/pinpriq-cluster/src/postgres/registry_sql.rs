//! The statements of the registry, as SQL. Each commits by itself. The tables are in `statements`.

/// What a prepared statement does with the registry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Query {
    /// Founds a cluster unless it is there, and tells what is there. Takes the body.
    Found,
    /// Tells what is true of the cluster, if it is there.
    Find,
    /// Changes what is true of the cluster. Takes the body, and the body that is there.
    Amend,
    /// Opens a session. Takes the instance, the body and the time to live.
    Open,
    /// Replaces what a session says. Takes the instance and the body.
    Describe,
    /// Renews a session. Takes the instance.
    Beat,
    /// Ends a session. Takes the instance.
    End,
    /// Ends the sessions that still have the beats that they had. Takes the instances and the
    /// beats.
    Remove,
    /// Reads the whole registry.
    Everything,
    /// Tells whether a session is there, the owner of a shard, and what is true of the cluster.
    /// Takes the shard and the instance.
    Owner,
    /// Makes a session the owner of a shard without one, if this is still true of the cluster.
    /// Takes the shard, the instance, the body, and the body of what is true, or null.
    Claim,
    /// Makes a session the owner of a shard without one. Takes the shard, the instance and the
    /// body.
    PutBack,
    /// Changes the owner of a shard. Takes the shard, the instance, the body, and the instance and
    /// the body that are there.
    Replace,
    /// Removes the owner of a shard. Takes the shard, the instance that asks, and the instance and
    /// the body that are there.
    Release,
    /// Marks a name. Takes the name.
    Drain,
    /// Takes a mark back. Takes the name.
    Undrain,
    /// Tells a shard where to move. Takes the shard and the body.
    Target,
    /// Takes that back. Takes the shard.
    Untarget,
}

/// The most rows that are read.
const ROWS_MAX: u32 = 1 << 17;

impl Query {
    /// Returns the statement. The schema is in quotes. What changes nothing still writes its row,
    /// so that it waits for a standby.
    pub(crate) fn sql(self, schema: &str) -> String {
        const ONE: &str = "instance = $1::text::uuid";
        let mine = format!("EXISTS (SELECT FROM {schema}.session WHERE instance = $2::text::uuid)");
        match self {
            Self::Found => format!(
                "INSERT INTO {schema}.meta AS m (one, body) VALUES (true, $1::bytea) \
                 ON CONFLICT (one) DO UPDATE SET body = m.body RETURNING body"
            ),
            Self::Find => format!("UPDATE {schema}.meta SET body = body WHERE one RETURNING body"),
            Self::Amend => format!(
                "UPDATE {schema}.meta SET body = $1::bytea WHERE one AND body = $2::bytea \
                 RETURNING 1"
            ),
            Self::Open => format!(
                "INSERT INTO {schema}.session AS s (instance, body, beat, ttl_ms) \
                 VALUES ($1::text::uuid, $2::bytea, 1, $3::bigint) \
                 ON CONFLICT (instance) DO UPDATE SET body = excluded.body, beat = s.beat + 1"
            ),
            Self::Describe => format!(
                "UPDATE {schema}.session SET body = $2::bytea, beat = beat + 1 WHERE {ONE} \
                 RETURNING 1"
            ),
            Self::Beat => {
                format!("UPDATE {schema}.session SET beat = beat + 1 WHERE {ONE} RETURNING 1")
            }
            Self::End => format!("DELETE FROM {schema}.session WHERE {ONE}"),
            Self::Remove => format!(
                "DELETE FROM {schema}.session AS s \
                 USING unnest($1::text[], $2::bigint[]) AS e (instance, beat) \
                 WHERE s.instance = e.instance::uuid AND s.beat = e.beat"
            ),
            Self::Everything => everything(schema),
            Self::Owner => format!(
                "SELECT {mine}, replace(s.instance::text, '-', ''), o.body, s.beat, \
                     (SELECT body FROM {schema}.meta WHERE one) \
                 FROM (SELECT 1) AS one LEFT JOIN ({schema}.own AS o \
                     JOIN {schema}.session AS s ON s.instance = o.instance) \
                 ON o.shard = $1::int"
            ),
            // A change of the record of the cluster waits until this is done.
            Self::Claim => format!(
                "INSERT INTO {schema}.own (shard, instance, body) \
                 SELECT $1::int, $2::text::uuid, $3::bytea WHERE {mine} \
                     AND (SELECT body FROM {schema}.meta WHERE one FOR SHARE) \
                         IS NOT DISTINCT FROM $4::bytea \
                 ON CONFLICT DO NOTHING RETURNING 1"
            ),
            Self::PutBack => format!(
                "INSERT INTO {schema}.own (shard, instance, body) \
                 SELECT $1::int, $2::text::uuid, $3::bytea WHERE {mine} \
                 ON CONFLICT DO NOTHING RETURNING 1"
            ),
            Self::Replace => format!(
                "UPDATE {schema}.own SET instance = $2::text::uuid, body = $3::bytea \
                 WHERE shard = $1::int AND instance = $4::text::uuid AND body = $5::bytea \
                     AND {mine} RETURNING 1"
            ),
            Self::Release => format!(
                "DELETE FROM {schema}.own WHERE shard = $1::int AND instance = $3::text::uuid \
                     AND body = $4::bytea AND {mine} RETURNING 1"
            ),
            Self::Drain => format!(
                "INSERT INTO {schema}.drain (name) VALUES ($1::bytea) \
                 ON CONFLICT (name) DO UPDATE SET name = excluded.name"
            ),
            Self::Undrain => format!("DELETE FROM {schema}.drain WHERE name = $1::bytea"),
            Self::Target => format!(
                "INSERT INTO {schema}.target (shard, body) VALUES ($1::int, $2::bytea) \
                 ON CONFLICT (shard) DO UPDATE SET body = excluded.body"
            ),
            Self::Untarget => format!("DELETE FROM {schema}.target WHERE shard = $1::int"),
        }
    }
}

/// Returns what reads the whole registry: the kind of each record, whose it is, and its bytes.
fn everything(schema: &str) -> String {
    format!(
        "SELECT 0, NULL::text, NULL::int, body, NULL::bigint, NULL::bigint \
             FROM {schema}.meta UNION ALL \
         SELECT 1, replace(instance::text, '-', ''), NULL, body, beat, ttl_ms \
             FROM {schema}.session UNION ALL \
         SELECT 2, replace(instance::text, '-', ''), shard, body, NULL, NULL \
             FROM {schema}.own UNION ALL \
         SELECT 3, NULL, NULL, name, NULL, NULL FROM {schema}.drain UNION ALL \
         SELECT 4, NULL, shard, body, NULL, NULL FROM {schema}.target LIMIT {ROWS_MAX}"
    )
}
