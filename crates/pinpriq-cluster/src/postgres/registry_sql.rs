//! The statements of the registry, as SQL. Each commits by itself. What changes nothing still
//! writes its row, so that it waits for a standby. The tables are in `statements`.

use crate::postgres::statements::Sql;

/// Whether the session of the node that asks is there.
pub(crate) const MINE: &str =
    "EXISTS (SELECT FROM {schema}.session WHERE instance = $2::text::uuid)";

/// Founds a cluster unless it is there, and tells what is there. Takes the body.
pub(crate) const FOUND: Sql = "\
    INSERT INTO {schema}.meta AS m (one, body) VALUES (true, $1::bytea) \
    ON CONFLICT (one) DO UPDATE SET body = m.body RETURNING body";

/// Tells what is true of the cluster, if it is there.
pub(crate) const FIND: Sql = "UPDATE {schema}.meta SET body = body WHERE one RETURNING body";

/// Changes what is true of the cluster. Takes the body, and the body that is there.
pub(crate) const AMEND: Sql = "\
    UPDATE {schema}.meta SET body = $1::bytea WHERE one AND body = $2::bytea RETURNING 1";

/// Opens a session. Takes the instance, the body and the time to live.
pub(crate) const OPEN: Sql = "\
    INSERT INTO {schema}.session AS s (instance, body, beat, ttl_ms) \
    VALUES ($1::text::uuid, $2::bytea, 1, $3::bigint) \
    ON CONFLICT (instance) DO UPDATE SET body = excluded.body, beat = s.beat + 1";

/// Replaces what a session says. Takes the instance and the body.
pub(crate) const DESCRIBE: Sql = "\
    UPDATE {schema}.session SET body = $2::bytea, beat = beat + 1 \
    WHERE instance = $1::text::uuid RETURNING 1";

/// Renews a session. Takes the instance.
pub(crate) const BEAT: Sql = "\
    UPDATE {schema}.session SET beat = beat + 1 \
    WHERE instance = $1::text::uuid RETURNING 1";

/// Ends a session. Takes the instance.
pub(crate) const END: Sql = "DELETE FROM {schema}.session WHERE instance = $1::text::uuid";

/// Ends the sessions that still have the beats that they had. Takes the instances and
/// the beats.
pub(crate) const REMOVE: Sql = "\
    DELETE FROM {schema}.session AS s \
    USING unnest($1::text[], $2::bigint[]) AS e (instance, beat) \
    WHERE s.instance = e.instance::uuid AND s.beat = e.beat";

/// Reads the whole registry, at most 131,072 rows: the kind of each record, whose it is, and its
/// bytes.
pub(crate) const EVERYTHING: Sql = "\
    SELECT 0, NULL::text, NULL::int, body, NULL::bigint, NULL::bigint \
        FROM {schema}.meta UNION ALL \
    SELECT 1, replace(instance::text, '-', ''), NULL, body, beat, ttl_ms \
        FROM {schema}.session UNION ALL \
    SELECT 2, replace(instance::text, '-', ''), shard, body, NULL, NULL \
        FROM {schema}.own UNION ALL \
    SELECT 3, NULL, NULL, name, NULL, NULL FROM {schema}.drain UNION ALL \
    SELECT 4, NULL, shard, body, NULL, NULL FROM {schema}.target LIMIT 131072";

/// Tells whether a session is there, the owner of a shard, and what is true of the cluster.
/// Takes the shard and the instance.
pub(crate) const OWNER: Sql = "\
    SELECT {mine}, replace(s.instance::text, '-', ''), o.body, s.beat, \
        (SELECT body FROM {schema}.meta WHERE one) \
    FROM (SELECT 1) AS one LEFT JOIN ({schema}.own AS o \
        JOIN {schema}.session AS s ON s.instance = o.instance) \
    ON o.shard = $1::int";

/// Makes a session the owner of a shard without one, if this is still true of the cluster.
/// Takes the shard, the instance, the body, and the body of what is true, or null.
/// A change of the record of the cluster waits until this is done.
pub(crate) const CLAIM: Sql = "\
    INSERT INTO {schema}.own (shard, instance, body) \
    SELECT $1::int, $2::text::uuid, $3::bytea WHERE {mine} \
        AND (SELECT body FROM {schema}.meta WHERE one FOR SHARE) \
            IS NOT DISTINCT FROM $4::bytea \
    ON CONFLICT DO NOTHING RETURNING 1";

/// Makes a session the owner of a shard without one. Takes the shard, the instance and
/// the body.
pub(crate) const PUT_BACK: Sql = "\
    INSERT INTO {schema}.own (shard, instance, body) \
    SELECT $1::int, $2::text::uuid, $3::bytea WHERE {mine} \
    ON CONFLICT DO NOTHING RETURNING 1";

/// Changes the owner of a shard. Takes the shard, the instance, the body, and the instance and
/// the body that are there.
pub(crate) const REPLACE: Sql = "\
    UPDATE {schema}.own SET instance = $2::text::uuid, body = $3::bytea \
    WHERE shard = $1::int AND instance = $4::text::uuid AND body = $5::bytea \
        AND {mine} RETURNING 1";

/// Removes the owner of a shard. Takes the shard, the instance that asks, and the instance and
/// the body that are there.
pub(crate) const RELEASE: Sql = "\
    DELETE FROM {schema}.own WHERE shard = $1::int AND instance = $3::text::uuid \
    AND body = $4::bytea AND {mine} RETURNING 1";

/// Marks a name. Takes the name.
pub(crate) const DRAIN: Sql = "\
    INSERT INTO {schema}.drain (name) VALUES ($1::bytea) \
    ON CONFLICT (name) DO UPDATE SET name = excluded.name";

/// Takes a mark back. Takes the name.
pub(crate) const UNDRAIN: Sql = "DELETE FROM {schema}.drain WHERE name = $1::bytea";

/// Tells a shard where to move. Takes the shard and the body.
pub(crate) const TARGET: Sql = "\
    INSERT INTO {schema}.target (shard, body) VALUES ($1::int, $2::bytea) \
    ON CONFLICT (shard) DO UPDATE SET body = excluded.body";

/// Takes that back. Takes the shard.
pub(crate) const UNTARGET: Sql = "DELETE FROM {schema}.target WHERE shard = $1::int";
