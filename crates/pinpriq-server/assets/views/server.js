// The server: what it promises, what it keeps where, how it is set, and the cluster if there is
// one.

import { fill, h } from "../h.js";
import { read } from "../api.js";
import { bytes, count, moment, span } from "../format.js";
import { facts, heading, section, tile, tiles } from "../parts/page.js";

const PROMISES = {
  sync: "A reply means that the change is on disk.",
  interval: "A reply means that the system has the change. It is on disk within 50 ms.",
  memory: "A reply means that the change is in memory. It is gone with the process.",
};

export async function server(page) {
  page.title("Server");
  const shown = {
    up: tile("Up"),
    durability: tile("Durability"),
    shards: tile("Shards"),
    clients: tile("Connections"),
    memory: tile("Memory for tasks"),
    journal: tile("Journal"),
  };
  const parts = h("div", { class: "columns" });
  const refresh = async () => {
    const told = await read("/v1/server");
    if (page.isOver) return;
    tell(shown, told);
    const open = parts.contains(document.activeElement);
    const all = [journal(told), memory(told), traffic(told), configuration(told), cluster(told)];
    if (!open) fill(parts, all.filter(Boolean));
  };
  page.show(heading("Server"), tiles(Object.values(shown)), parts);
  page.every(2_000, refresh);
}

function tell(shown, { server: it, clients, persistence, tasks }) {
  shown.up.set(span(it.uptime_in_seconds * 1_000), `version ${it.pinpriq_version}`);
  shown.durability.set(persistence.durability, PROMISES[persistence.durability]);
  shown.shards.set(count(it.shards), `process ${it.process_id}`);
  shown.clients.set(count(clients.connected_clients), `${count(clients.blocked_clients)} blocked`);
  shown.memory.set(bytes(tasks.task_bytes), `of ${bytes(tasks.task_bytes_max)}`);
  const isWell = persistence.journal_failure === "none";
  shown.journal.set(isWell ? "well" : "failed", isWell ? "" : persistence.journal_failure);
}

const card = (title, pairs) => section(title, h("div", { class: "card" }, facts(pairs)));

function journal({ persistence: it, disk_free_bytes: free }) {
  const commits = it.journal_commit_us;
  return card("Disk", [
    ["In use", bytes(it.journal_bytes_used)],
    ["Of that, still counts", bytes(it.journal_bytes_live)],
    ["Free on the disk", free === undefined ? "–" : bytes(free)],
    ["Waits to be written", bytes(it.journal_bytes_pending)],
    ["Files", count(it.journal_segments)],
    ["Writes", count(it.journal_writes)],
    ["Synced writes", count(it.journal_syncs)],
    [
      "A write and its sync, on average",
      commits.count > 0 ? span(commits.sum / commits.count / 1_000) : "–",
    ],
    ["Records written again", count(it.journal_rewrites)],
    archive(it),
  ]);
}

// Whether what happens is archived, and if not, why.
function archive({ archive_state: state, archive_behind_bytes: missing, archive_behind_ms: ms }) {
  if (!state || state === "off") return null;
  const behind = ms > 0 ? `; ${bytes(missing)} of the last ${span(ms)} are not there yet` : "";
  const isWell = state === "ok" || state === "starting";
  return ["Archive", h("span", { class: isWell ? null : "bad" }, `${state}${behind}`)];
}

const memory = ({ tasks: it }) =>
  card("Tasks", [
    ["There now", count(it.present)],
    ["Came in", count(it.put)],
    ["Acknowledged", count(it.acked)],
    ["Failures", count(it.failures)],
    ["Became dead letters", count(it.dead)],
    ["Expired", count(it.expired)],
    ["Killed", count(it.killed)],
    ["Evicted", count(it.evicted)],
    ["Moved", count(it.moved)],
    ["Cancelled", count(it.cancelled)],
    ["Came back", count(it.revived)],
    ["Removed after they were kept", count(it.purged)],
    ["Duplicates", count(it.duplicates)],
    ["Payloads and keys", bytes(it.bytes)],
  ]);

function traffic({ traffic: it, clients }) {
  const doors = Object.keys(it.bytes_received).map((door) => [
    door.replaceAll("_", " "),
    `${bytes(it.bytes_received[door])} in, ${bytes(it.bytes_sent[door])} out`,
  ]);
  const some = (all) =>
    Object.entries(all)
      .filter(([, number]) => number > 0)
      .map(([name, number]) => `${name.replaceAll("_", " ")} ${count(number)}`)
      .join(", ") || "none";
  return card("Traffic", [
    ...doors,
    ["Refusals", some(it.refusals)],
    ["Connections ended", some(clients.disconnects)],
  ]);
}

// How the server was set. Members whose names tell a unit are shown in it.
function configuration({ configuration: it }) {
  if (!it) return null;
  const shown = (name, value) => {
    if (value === null) return "not set";
    if (typeof value !== "number") return Array.isArray(value) ? value.join(", ") : String(value);
    if (name.includes("bytes") || name === "memory_limit") return bytes(value);
    return name.endsWith("_ms") ? span(value) : count(value);
  };
  return card(
    "Configuration",
    Object.entries(it).map(([name, value]) => [
      h("code", null, name.replaceAll("_", "-")),
      shown(name, value),
    ]),
  );
}

function cluster({ cluster: it, server: { server_time_ms: now } }) {
  if (!it.cluster_enabled) return null;
  const owners = it.cluster_owners
    .split(",")
    .filter(Boolean)
    .map((one) => one.split("="));
  const states = new Map(
    it.cluster_states
      .split(",")
      .filter(Boolean)
      .map((one) => one.split("=")),
  );
  // Of a shard of another node, this is what its owner has told last.
  const log = (shard) => {
    if (!states.has(shard)) return "";
    const [head, lag] = [it.cluster_head[shard], it.cluster_lag[shard]].map(count);
    return `: ${states.get(shard)}, entry ${head}, lag ${lag}`;
  };
  const shards = h(
    "ul",
    { class: "shards" },
    owners.map(([shard, node]) =>
      h("li", { class: node === it.cluster_node ? "mine" : null }, `${shard} ${node}${log(shard)}`),
    ),
  );
  return card("Cluster", [
    ["This node", it.cluster_node],
    ["Nodes known", count(it.cluster_nodes)],
    ["Shards", count(it.cluster_shards)],
    ["Served here", count(it.cluster_shards_served)],
    ["Without an owner", count(it.cluster_shards_without_owner)],
    ["Suspended", count(it.cluster_shards_suspended)],
    ["Owners of the shards", shards],
    ["Take-overs", count(it.cluster_take_overs)],
    ["Handed over", count(it.cluster_moves)],
    ["Sessions lost", count(it.cluster_sessions_lost)],
    ["The engine is silent for", span(it.cluster_engine_silent)],
    ["The clock is off by", span(it.cluster_clock_off)],
    ["Time", moment(now)],
  ]);
}
