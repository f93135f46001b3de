// Does what the README of fivebeans describes, method by method, and compares what comes back; also
// its worker and its runner.
//
// Called by scripts/beanstalkd-clients with the port of a server of its own.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import fivebeans from "fivebeans";

const host = "127.0.0.1";
const port = Number(process.argv[2]);

const METHODS =
  "bury destroy ignore kick kick_job list_tube_used list_tubes list_tubes_watched pause_tube " +
  "peek peek_buried peek_delayed peek_ready put release reserve reserve_with_timeout stats " +
  "stats_job stats_tube touch use watch";

// A client whose methods return what they call back with.
async function connect() {
  const client = new fivebeans.client(host, port);
  const connected = once(client, "connect");
  client.connect();
  await connected;
  const called = { end: () => client.end() };
  for (const name of METHODS.split(" ")) {
    called[name] = (...words) =>
      new Promise((resolve, reject) => {
        client[name](...words, (error, ...results) => {
          if (error) reject(new Error(error));
          else resolve(results.length > 1 ? results : results[0]);
        });
      });
  }
  return called;
}

async function takes(seconds, work) {
  const begun = performance.now();
  await work();
  const passed = (performance.now() - begun) / 1000;
  assert(seconds - 0.01 <= passed && passed < seconds + 2, `${passed} s instead of ${seconds} s`);
}

const refuses = (promise, word) => assert.rejects(promise, { message: word });

async function producing(client) {
  assert.equal(await client.use("lifting"), "lifting");
  assert.equal(await client.list_tube_used(), "lifting");
  const bytes = Buffer.from(Uint8Array.from({ length: 256 }, (_, at) => at));
  const bodies = ["crème brûlée", bytes, Buffer.alloc(0), Buffer.alloc(65_535, "\r\n")];
  for (const body of bodies) {
    const id = await client.put(10, 0, 60, body);
    assert.deepEqual(await client.peek_ready(), [id, Buffer.from(body)]);
    assert.deepEqual(await client.peek(id), [id, Buffer.from(body)]);
    await client.destroy(id);
  }
  for (const nothing of ["peek_ready", "peek_delayed", "peek_buried"]) {
    await refuses(client[nothing](), "NOT_FOUND");
  }
  const later = await client.put(0, 3600, 60, "later");
  assert.deepEqual(await client.peek_delayed(), [later, Buffer.from("later")]);
  await client.destroy(later);
  await refuses(client.destroy(later), "NOT_FOUND");
  await refuses(client.put(0, 0, 60, Buffer.alloc(65_536)), "JOB_TOO_BIG");
}

async function consuming(client) {
  assert.equal(await client.watch("lifting"), "2");
  assert.deepEqual(await client.list_tubes_watched(), ["default", "lifting"]);
  assert.equal(await client.ignore("default"), "1");
  await refuses(client.ignore("lifting"), "NOT_IGNORED");
  await client.use("lifting");
  const least = await client.put(2, 0, 60, "least urgent");
  const most = await client.put(1, 0, 60, "most urgent");
  assert.deepEqual(await client.reserve(), [most, Buffer.from("most urgent")]);
  assert.deepEqual(await client.reserve_with_timeout(0), [least, Buffer.from("least urgent")]);
  await takes(1, () => refuses(client.reserve_with_timeout(1), "TIMED_OUT"));
  await client.touch(most);
  await client.release(most, 3, 0);
  await refuses(client.release(most, 3, 0), "NOT_FOUND");
  assert.equal((await client.stats_job(most)).pri, 3);
  await takes(1, async () => {
    await client.release(least, 0, 1);
    assert.equal((await client.stats_job(least)).state, "delayed");
    await client.destroy(most);
    assert.equal((await client.reserve_with_timeout(10))[0], least);
  });
  await client.bury(least, 5);
  assert.deepEqual(await client.peek_buried(), [least, Buffer.from("least urgent")]);
  assert.equal(await client.kick(10), "1");
  assert.equal(await client.kick(10), "0");
  await client.reserve();
  await client.bury(least, 5);
  await client.kick_job(least);
  await refuses(client.kick_job(least), "NOT_FOUND");
  await client.destroy(least);
}

async function statistics(client) {
  await client.use("lifting");
  const id = await client.put(0, 0, 60, "counted");
  const job = await client.stats_job(id);
  assert.deepEqual([job.id, job.tube, job.state], [Number(id), "lifting", "ready"]);
  const tube = await client.stats_tube("lifting");
  assert.equal(tube.name, "lifting");
  assert.deepEqual([tube["current-jobs-ready"], tube["current-using"]], [1, 1]);
  await refuses(client.stats_tube("not-in-use"), "NOT_FOUND");
  const all = await client.stats();
  assert.equal(all["current-jobs-ready"], 1);
  assert.equal(all["max-job-size"], 65_535);
  assert.deepEqual(await client.list_tubes(), ["default", "lifting"]);
  await client.watch("lifting");
  await takes(1, async () => {
    await client.pause_tube("lifting", 1);
    await refuses(client.reserve_with_timeout(0), "TIMED_OUT");
    assert.equal((await client.reserve())[0], id);
  });
  await client.destroy(id);
  // Several commands at once are answered in their order.
  const names = Array.from({ length: 100 }, (_, number) => `tube-${number}`);
  assert.deepEqual(await Promise.all(names.map((name) => client.use(name))), names);
}

async function worker(client) {
  const keys = [];
  const handlers = {
    emitkeys: {
      type: "emitkeys",
      work(payload, callback) {
        keys.push(...Object.keys(payload));
        callback("success");
      },
    },
    refuser: { type: "refuser", work: (_, callback) => callback("bury") },
    later: { type: "later", work: (_, callback) => callback("release", 3600) },
  };
  const beanworker = new fivebeans.worker({
    id: "worker_4",
    host,
    port,
    handlers,
    ignoreDefault: true,
    timeout: 1,
  });
  beanworker.on("error", (error) => assert.fail(error));
  const started = once(beanworker, "started");
  beanworker.start(["high", "medium", "low"]);
  await started;

  await client.use("medium");
  const job = (type) => JSON.stringify({ type, payload: { one: "bloop", two: "blooop" } });
  const ended = async (event, body) => {
    const seen = once(beanworker, event);
    const id = await client.put(0, 0, 60, body);
    assert.deepEqual(await seen, [id]);
    return id;
  };
  await ended("job.deleted", job("emitkeys"));
  assert.deepEqual(keys, ["one", "two"]);
  await ended("job.deleted", JSON.stringify(["medium", JSON.parse(job("emitkeys"))]));
  const buried = await ended("job.buried", job("refuser"));
  assert.equal((await client.peek_buried())[0], buried);
  const released = await ended("job.released", job("later"));
  assert.equal((await client.peek_delayed())[0], released);
  const stopped = once(beanworker, "stopped");
  beanworker.stop();
  await stopped;
}

async function runner(client) {
  const directory = await mkdtemp(path.join(tmpdir(), "fivebeans-"));
  // Version 1.5.0 looks for every handler from the working directory, and for the address at the
  // upper level of the file.
  const handler = path.relative(process.cwd(), path.join(directory, "holborn.cjs"));
  const config = path.join(directory, "config.yml");
  await writeFile(
    handler,
    'module.exports = () => ({ type: "holborn", work: (_, callback) => callback("success") });\n',
  );
  await writeFile(
    config,
    `host: "${host}"\nport: ${port}\nwatch:\n    - 'circle'\n` +
      `handlers:\n    - "${handler}"\nignoreDefault: true\ntimeout: 1\n`,
  );
  try {
    const beanrunner = new fivebeans.runner("worker_id_1", config);
    beanrunner.go();
    const deleted = once(beanrunner.worker, "job.deleted");
    await client.use("circle");
    const id = await client.put(0, 0, 60, JSON.stringify({ type: "holborn", payload: {} }));
    assert.deepEqual(await deleted, [id]);
    const stopped = once(beanrunner.worker, "stopped");
    beanrunner.worker.stop();
    await stopped;
  } finally {
    await rm(directory, { recursive: true });
  }
}

for (const section of [producing, consuming, statistics, worker, runner]) {
  const client = await connect();
  await section(client);
  client.end();
  console.log("fivebeans:", section.name);
}
