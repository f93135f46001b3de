// The settings of queues and the fields of tasks, as the server has them. Printed from its tables
// by `cargo test -p pinpriq-proto printed`.

export const SETTINGS = [
  {
    name: "ids",
    kind: "choice",
    options: ["sequence", "time64", "uuid", "given"],
    hint: "How ids come about; can be changed only while the queue is empty.",
  },
  {
    name: "ttl",
    kind: "span",
    hint: "How long a task lives that says nothing else.",
  },
  {
    name: "ttr",
    kind: "span",
    hint: "How long a lease lasts that says nothing else.",
  },
  {
    name: "afterack",
    kind: "choice",
    options: ["delete", "keep", "zombie"],
    hint: "What becomes of a task that was acknowledged.",
  },
  {
    name: "zombie",
    kind: "span",
    hint: "How long a finished task stays; with “zombie”.",
  },
  {
    name: "capacity",
    kind: "number",
    hint: "The most tasks that are not finished; a put beyond it is refused.",
  },
  {
    name: "attempts",
    kind: "number",
    hint: "How often a task may fail before it is buried or becomes a dead letter.",
  },
  {
    name: "backoff",
    kind: "span",
    hint: "How long a task waits after its first failure; after each further one, twice as long.",
  },
  {
    name: "backoffmax",
    kind: "span",
    hint: "The longest that a task waits after a failure.",
  },
  {
    name: "deadletter",
    hint: "The queue that gets tasks that have failed too often.",
  },
  {
    name: "onexpiry",
    kind: "choice",
    options: ["delete", "deadletter"],
    hint: "What becomes of a task whose TTL has passed.",
  },
  {
    name: "limit",
    kind: "number",
    hint: "The most tasks that are taken at once; to others the queue looks empty meanwhile.",
  },
  {
    name: "rate",
    hint: "How many tasks may be taken in a time.",
  },
  {
    name: "capacitybytes",
    kind: "number",
    hint: "The most bytes of payloads and keys of tasks that are not finished.",
  },
  {
    name: "overflow",
    kind: "choice",
    options: ["refuse", "evict"],
    hint: "What happens to a put that finds the queue full.",
  },
  {
    name: "releasefails",
    kind: "choice",
    options: ["off", "on"],
    hint: "Whether a release is a failure.",
  },
  {
    name: "costmax",
    kind: "number",
    hint: "The highest cost that a task may have.",
  },
  {
    name: "ranking",
    kind: "choice",
    options: ["strict", "fair", "ageing"],
    hint: "Whose turn it is among ready tasks.",
  },
  {
    name: "keylimit",
    kind: "number",
    hint: "How many tasks of one key may be taken at once.",
  },
  {
    name: "keyrate",
    hint: "What the tasks of one key that are taken may cost in a time.",
  },
  {
    name: "keyhold",
    kind: "choice",
    options: ["off", "on"],
    hint: "Whether a task that has failed holds back the others of its key.",
  },
  {
    name: "sharelimit",
    kind: "number",
    hint: "How many tasks of one share may be taken at once.",
  },
  {
    name: "sharerate",
    hint: "What the tasks of one share that are taken may cost in a time.",
  },
  {
    name: "sharecapacity",
    kind: "number",
    hint: "The most tasks of one share that are not finished; a put beyond it is refused.",
  },
  {
    name: "uses",
    hint: "The limits that it uses together with other queues.",
  },
  {
    name: "ageing",
    kind: "span",
    hint: "How much later a task goes for each step of its priority, if tasks are ageing.",
  },
  {
    name: "sharemetrics",
    kind: "number",
    hint: "How many shares have metrics of their own: those with most tasks.",
  },
];

export const FIELDS = [
  { name: "queue", kind: "text" },
  { name: "member", kind: "text" },
  { name: "id", kind: "text" },
  { name: "payload", kind: "text" },
  { name: "key", kind: "text" },
  { name: "share", kind: "text" },
  { name: "cost", kind: "number" },
  { name: "priority", kind: "number" },
  { name: "state", kind: "text" },
  { name: "attempts", kind: "number" },
  { name: "failures", kind: "number" },
  { name: "reason", kind: "text" },
  { name: "put_at", kind: "moment" },
  { name: "ttl_at", kind: "moment" },
  { name: "ready_at", kind: "moment" },
  { name: "lease_until", kind: "moment" },
  { name: "purge_at", kind: "moment" },
  { name: "client", kind: "number" },
  { name: "client_name", kind: "text" },
  { name: "client_address", kind: "text" },
  { name: "origin_queue", kind: "text" },
  { name: "origin_id", kind: "text" },
  { name: "origin_put_at", kind: "moment" },
  { name: "origin_attempts", kind: "number" },
  { name: "origin_failures", kind: "number" },
  { name: "origin_at", kind: "moment" },
  { name: "schedule", kind: "text" },
  { name: "slot", kind: "moment" },
  { name: "headers", kind: "text" },
  { name: "cancelled", kind: "text" },
  { name: "progress", kind: "text" },
  { name: "checkpoint", kind: "text" },
  { name: "held", kind: "text" },
];
