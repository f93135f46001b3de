// Does what the README of jackd shows, and compares what comes back.
//
// Called by scripts/beanstalkd-clients with the port of a server of its own: ids begin with 1, as
// in the README. Each function is a section of it, or the commands that it does not explain.
import assert from "node:assert/strict";
import Jackd from "jackd";
import YAML from "yaml";

const address = { host: "127.0.0.1", port: Number(process.argv[2]) };

async function connect() {
  const beanstalkd = new Jackd();
  return beanstalkd.connect(address);
}

async function takes(seconds, work) {
  const begun = performance.now();
  const result = await work();
  const passed = (performance.now() - begun) / 1000;
  assert(seconds - 0.01 <= passed && passed < seconds + 2, `${passed} s instead of ${seconds} s`);
  return result;
}

async function start(beanstalkd) {
  await beanstalkd.put("Hello!");
  const job = await beanstalkd.reserve();
  assert.deepEqual(job, { id: "1", payload: Buffer.from("Hello!") });
  await beanstalkd.delete(job.id);
  await assert.rejects(beanstalkd.delete(job.id), /^Error: NOT_FOUND/);
}

async function connecting() {
  const beanstalkd = new Jackd();
  await beanstalkd.connect(address);
  assert(beanstalkd.isConnected());
  const ended = new Promise((resolve) => beanstalkd.socket.once("close", resolve));
  await beanstalkd.disconnect();
  await ended;
  assert(!beanstalkd.isConnected());
}

// Version 2.2.2 sends a Buffer as JSON, although the README says otherwise.
async function addingJobs(beanstalkd) {
  const payloads = ["my long running job", "\r\n \0 crème brûlée 台灣", "x".repeat(65_535)];
  for (const payload of payloads) {
    const jobId = await beanstalkd.put(payload);
    const job = await beanstalkd.reserve();
    assert.equal(job.id, jobId);
    assert.equal(job.payload.toString(), payload);
    await beanstalkd.delete(job.id);
  }
  await beanstalkd.put({ foo: "bar" });
  const { id, payload } = await beanstalkd.reserve();
  assert.deepEqual(JSON.parse(payload.toString()), { foo: "bar" });
  await beanstalkd.delete(id);
  await assert.rejects(beanstalkd.put("x".repeat(65_536)), /^Error: JOB_TOO_BIG/);
}

async function optionsOfJobs(beanstalkd) {
  await takes(2, async () => {
    const jobId = await beanstalkd.put({ foo: "bar" }, { delay: 2, priority: 10, ttr: 600 });
    const stats = YAML.parse(await beanstalkd.statsJob(jobId));
    assert.equal(stats.state, "delayed");
    assert.deepEqual([stats.delay, stats.pri, stats.ttr], [2, 10, 600]);
    const urgent = await beanstalkd.put("urgent");
    assert.equal((await beanstalkd.reserve()).id, urgent);
    await beanstalkd.delete(urgent);
    await assert.rejects(beanstalkd.reserveWithTimeout(0), /^Error: TIMED_OUT/);
    assert.equal((await beanstalkd.reserveWithTimeout(10)).id, jobId);
    await beanstalkd.delete(jobId);
  });
}

async function tubes(beanstalkd) {
  assert.equal(await beanstalkd.use("awesome-tube"), "awesome-tube");
  assert.equal(await beanstalkd.listTubeUsed(), "awesome-tube");
  const jobId = await beanstalkd.put({ foo: "bar" });
  await assert.rejects(beanstalkd.reserveWithTimeout(0), /^Error: TIMED_OUT/);
  assert.equal(await beanstalkd.watch("awesome-tube"), 2);
  assert.equal(await beanstalkd.ignore("default"), 1);
  await assert.rejects(beanstalkd.ignore("awesome-tube"), /^Error: NOT_IGNORED/);
  assert.deepEqual(YAML.parse(await beanstalkd.listTubesWatched()), ["awesome-tube"]);
  assert.deepEqual(YAML.parse(await beanstalkd.listTubes()), ["default", "awesome-tube"]);
  assert.equal((await beanstalkd.reserve()).id, jobId);
  await beanstalkd.delete(jobId);
}

async function jobOperations(beanstalkd) {
  const jobId = await beanstalkd.put("again and again", { ttr: 2 });
  await beanstalkd.reserve();
  await takes(1, () => assert.rejects(beanstalkd.reserve(), /^Error: DEADLINE_SOON/));
  await beanstalkd.touch(jobId);
  await beanstalkd.release(jobId);
  assert.equal((await beanstalkd.peekReady()).id, jobId);
  await beanstalkd.reserve();
  await beanstalkd.release(jobId, { priority: 10, delay: 10 });
  assert.equal((await beanstalkd.peekDelayed()).id, jobId);
  await beanstalkd.kickJob(jobId);
  await beanstalkd.reserve();
  await beanstalkd.bury(jobId);
  assert.equal((await beanstalkd.peekBuried()).id, jobId);
  await beanstalkd.kickJob(jobId);
  await assert.rejects(beanstalkd.kickJob(jobId), /^Error: NOT_FOUND/);
  await beanstalkd.reserveJob(jobId);
  await beanstalkd.bury(jobId, 7);
  assert.equal(await beanstalkd.kick(10), 1);
  const stats = YAML.parse(await beanstalkd.statsJob(jobId));
  assert.deepEqual(
    [stats.pri, stats.reserves, stats.releases, stats.buries, stats.kicks],
    [7, 4, 2, 2, 3],
  );
  assert.equal((await beanstalkd.peek(jobId)).payload.toString(), "again and again");
  await beanstalkd.delete(jobId);
}

async function yamlCommands(beanstalkd) {
  const text = await beanstalkd.stats();
  assert.match(
    text,
    new RegExp(
      "^---\ncurrent-jobs-urgent: 0\ncurrent-jobs-ready: 0\ncurrent-jobs-reserved: 0\n" +
        "current-jobs-delayed: 0\ncurrent-jobs-buried: 0\n",
    ),
  );
  const { "total-jobs": totalJobs, "cmd-put": puts } = YAML.parse(text);
  // The one that was too big has made no job.
  assert.equal(totalJobs, 9);
  assert.equal(puts, 10);
  assert.equal(YAML.parse(await beanstalkd.statsTube("default"))["current-watching"], 1);
}

async function workers() {
  const producer = await connect();
  const consumers = await Promise.all([connect(), connect(), connect()]);
  const done = [];
  const consume = async (beanstalkd) => {
    for (;;) {
      const { id, payload } = await beanstalkd.reserve();
      await beanstalkd.delete(id);
      if (payload.toString() === "stop") return;
      done.push(Number(payload.toString()));
    }
  };
  const working = consumers.map(consume);
  for (let number = 0; number < 300; number++) await producer.put(String(number));
  for (const _ of consumers) await producer.put("stop", { priority: 1 });
  await Promise.all(working);
  done.sort((one, other) => one - other);
  assert.deepEqual(done, Array.from({ length: 300 }, (_, number) => number));
  await Promise.all([producer, ...consumers].map((client) => client.quit()));
}

const sections = { start, connecting, addingJobs, optionsOfJobs, tubes, jobOperations };
for (const [name, section] of Object.entries({ ...sections, yamlCommands, workers })) {
  const beanstalkd = await connect();
  await section(beanstalkd);
  await beanstalkd.quit();
  console.log("jackd:", name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`));
}
