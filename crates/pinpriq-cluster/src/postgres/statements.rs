//! The tables, and the statements of the logs, as SQL. Each statement commits by itself.

use crate::postgres::registry_sql::MINE;

/// What is forced for each session, and what is asked of its server: `fsync`,
/// `synchronous_commit`, `synchronous_standby_names`, the version and the number of its process.
///
/// Warnings must arrive. The server must not end a statement or a session by itself. All tables are
/// read by their keys, also by plans that were made when they were small. What reads a whole table
/// looks expensive then, and must not be compiled for that.
pub(crate) const SETUP: &str = "\
    SET synchronous_commit = on; \
    SET client_min_messages = warning; \
    SET default_transaction_isolation = 'read committed'; \
    SET default_transaction_read_only = off; \
    SET statement_timeout = 0; \
    SET lock_timeout = 0; \
    SET idle_in_transaction_session_timeout = 0; \
    SET search_path = pg_catalog; \
    SET enable_seqscan = off; \
    SELECT set_config('jit', 'off', false) WHERE current_setting('jit', true) IS NOT NULL; \
    SELECT set_config('idle_session_timeout', '0', false) \
        WHERE current_setting('idle_session_timeout', true) IS NOT NULL; \
    SELECT set_config('transaction_timeout', '0', false) \
        WHERE current_setting('transaction_timeout', true) IS NOT NULL; \
    SELECT set_config('client_connection_check_interval', '0', false) \
        WHERE current_setting('client_connection_check_interval', true) IS NOT NULL; \
    SELECT current_setting('fsync'), current_setting('synchronous_commit'), \
        current_setting('synchronous_standby_names'), current_setting('server_version_num'), \
        pg_backend_pid()";

/// Returns what is true if the tables are there.
pub(crate) fn are_there(schema: &str) -> String {
    let tables = ["shard", "entry", "meta", "session", "own", "drain", "target"];
    let are_there = tables.map(|table| format!("to_regclass('{schema}.{table}') IS NOT NULL"));
    format!("SELECT {}", are_there.join(" AND "))
}

/// A statement, before it is [`filled`].
pub(crate) type Sql = &'static str;

/// Whether a writer has the tenure of a log.
const TENURE: &str = "shard = $1::int AND term = $2::bigint AND writer = $3::text::uuid";

/// Whether an entry is the next one.
const FOLLOWS: &str = "head = $4::bigint - 1";

/// Returns a statement with the schema, which is in quotes, and with the conditions that it names.
pub(crate) fn filled(sql: Sql, schema: &str) -> String {
    let sql = sql.replace("{tenure}", TENURE).replace("{follows}", FOLLOWS);
    sql.replace("{mine}", MINE).replace("{schema}", schema)
}

/// Creates the tables, as one transaction. The lock lets one session after the other do so.
///
/// A row of `shard` changes with every entry. With most of its page free, the new version of a row
/// stays in the page of the old one, and no index changes. The same holds for `session`. What is in
/// `own` hangs on a session.
pub(crate) const CREATE: Sql = "\
    SELECT pg_advisory_xact_lock(hashtext('pinpriq {schema}')); \
    CREATE SCHEMA IF NOT EXISTS {schema}; \
    CREATE TABLE IF NOT EXISTS {schema}.shard (shard int PRIMARY KEY, \
        term bigint NOT NULL, writer uuid NOT NULL, head bigint NOT NULL, \
        first bigint NOT NULL, beat bigint NOT NULL) WITH (fillfactor = 20); \
    CREATE TABLE IF NOT EXISTS {schema}.entry (shard int NOT NULL, seq bigint NOT NULL, \
        body bytea NOT NULL, PRIMARY KEY (shard, seq)); \
    ALTER TABLE {schema}.entry ALTER COLUMN body SET STORAGE EXTERNAL; \
    CREATE TABLE IF NOT EXISTS {schema}.meta (one boolean PRIMARY KEY CHECK (one), \
        body bytea NOT NULL); \
    CREATE TABLE IF NOT EXISTS {schema}.session (instance uuid PRIMARY KEY, \
        body bytea NOT NULL, beat bigint NOT NULL, ttl_ms bigint NOT NULL) \
        WITH (fillfactor = 20); \
    CREATE TABLE IF NOT EXISTS {schema}.own (shard int PRIMARY KEY, \
        instance uuid NOT NULL REFERENCES {schema}.session ON DELETE CASCADE, \
        body bytea NOT NULL); \
    CREATE TABLE IF NOT EXISTS {schema}.drain (name bytea PRIMARY KEY); \
    CREATE TABLE IF NOT EXISTS {schema}.target (shard int PRIMARY KEY, body bytea NOT NULL)";

/// Reads the state of all logs: the shard, the term, the writer as 32 digits, the last entry and
/// the first one.
pub(crate) const LOG_STATES: Sql = "\
    SELECT shard, term, replace(writer::text, '-', ''), head, first FROM {schema}.shard \
    ORDER BY shard";

/// Returns what reads which of these processes still carry out a statement.
pub(crate) fn at_work(processes: &[i32]) -> String {
    let processes = processes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    format!(
        "SELECT pid FROM pg_stat_activity \
         WHERE state = 'active' AND pid = ANY ('{{{processes}}}'::int[])"
    )
}

/// Adds the row of a shard that was never seized. Takes the shard.
pub(crate) const ENTER: Sql = "\
    INSERT INTO {schema}.shard (shard, term, writer, head, first, beat) \
    VALUES ($1::int, 0, '00000000-0000-0000-0000-000000000000', 0, 1, 0) \
    ON CONFLICT DO NOTHING";

/// Reads the term, from which a seize starts. Takes the shard.
pub(crate) const TERM: Sql = "SELECT term FROM {schema}.shard WHERE shard = $1::int";

/// Begins a tenure. Takes the shard, the lowest term, the writer and the term before.
pub(crate) const SEIZE: Sql = "\
    UPDATE {schema}.shard SET term = GREATEST(term + 1, $2::bigint), \
        writer = $3::text::uuid, beat = beat + 1 \
    WHERE shard = $1::int AND term = $4::bigint RETURNING term, head, first, beat";

/// Adds an entry. Takes the shard, the term, the writer, the number, the body and the beat.
pub(crate) const APPEND: Sql = "\
    WITH s AS (UPDATE {schema}.shard SET head = $4::bigint \
        WHERE {tenure} AND {follows} AND beat = $6::bigint RETURNING 1) \
    INSERT INTO {schema}.entry (shard, seq, body) \
    SELECT $1::int, $4::bigint, $5::bytea FROM s RETURNING 1";

/// Raises the beat, and tells it with the head. Takes the shard, the term and the writer.
pub(crate) const RESOLVE: Sql =
    "UPDATE {schema}.shard SET beat = beat + 1 WHERE {tenure} RETURNING head, beat";

/// Reads the number of the first entry. Takes the shard.
pub(crate) const FIRST: Sql = "SELECT first FROM {schema}.shard WHERE shard = $1::int";

/// Removes entries. Takes the shard, the term, the writer and the first one that stays.
pub(crate) const TRIM: Sql = "\
    WITH s AS (UPDATE {schema}.shard \
        SET first = GREATEST(first, LEAST($4::bigint, head + 1)) \
        WHERE {tenure} RETURNING 1), \
    d AS (DELETE FROM {schema}.entry WHERE shard = $1::int AND seq < $4::bigint \
        AND EXISTS (SELECT FROM s)) \
    SELECT 1 FROM s";

/// Reads at most 1,024 entries. Their bodies are fetched only as far as they are wanted. Takes the
/// shard, the first one and how many bytes are wanted.
pub(crate) const READ: Sql = "\
    SELECT seq, body FROM (\
        SELECT seq, body, sum(octet_length(body)) OVER (ORDER BY seq) \
            - octet_length(body) AS before \
        FROM (SELECT e.seq, e.body FROM {schema}.shard s \
            JOIN {schema}.entry e ON e.shard = s.shard \
            WHERE s.shard = $1::int AND s.first <= $2::bigint \
                AND e.shard = $1::int AND e.seq >= $2::bigint \
            ORDER BY e.seq LIMIT 1024) AS t) AS sized \
    WHERE seq = $2::bigint OR before < $3::bigint ORDER BY seq";

/// Reads how large the logs are on the disk, and the time in milliseconds.
pub(crate) const STATUS: Sql = "\
    SELECT pg_total_relation_size('{schema}.entry'::regclass), \
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Reads how large the entries of all logs are together, and how many. A row takes 128 bytes beside
/// its body, with its place in the index. It looks at each, but the length of a body is known
/// without its bytes.
pub(crate) const USED: Sql = "\
    SELECT coalesce(sum(octet_length(body) + 128), 0)::bigint, count(*) FROM {schema}.entry";
