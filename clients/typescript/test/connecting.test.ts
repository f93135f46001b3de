// How the client reaches servers, reads their replies, and gives up what it waits for.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client, ConnectionLost } from "../src/index.js";
import { placeOf } from "../src/addresses.js";
import { ErrorReply, MapBytes, Replies, type Reply, requestBytes } from "../src/resp.js";
import { Proxy } from "./proxy.js";
import { NO_OPENSSL, Server, withCertificate } from "./server.js";

let server: Server;

before(async () => {
  server = await Server.start();
});

after(async () => {
  await server?.stop();
});

test("everything_but_the_scheme_can_be_left_out", () => {
  const table = [
    ["pinpriq://", "127.0.0.1:7251", undefined, undefined],
    ["pinpriqs://", "127.0.0.1:7261", undefined, undefined],
    ["pinpriq://q.example/", "q.example:7251", undefined, undefined],
    ["redis://q.example:1", "q.example:1", undefined, undefined],
    ["rediss://[::1]", "::1:7261", undefined, undefined],
    ["pinpriq://ana@q:3", "q:3", "ana", undefined],
    ["pinpriq://:p%40ss@q:3", "q:3", undefined, "p@ss"],
    ["pinpriq://ana:a:b@c@q:3", "q:3", "ana", "a:b@c"],
    ["pinpriq://ana:b@q:3,[::1]:4,r", "q:3 ::1:4 r:7251", "ana", "b"],
  ] as const;
  for (const [url, places, user, password] of table) {
    const place = placeOf(url);
    const told = place.addresses.map(({ host, port }) => `${host}:${port}`).join(" ");
    assert.deepEqual([told, place.user, place.password], [places, user, password], url);
    assert.equal(place.isEncrypted, /^(pinpriqs|rediss):/.test(url), url);
  }
});

test("what_is_wrong_with_a_url_is_said_without_the_password", () => {
  const wrong = [
    "q.example:7251", "http://q", "pinpriq://a:secret@q:1/0", "redis://a:secret@q/1",
    "pinpriq://a:secret@q?db=1", "pinpriq://a:secret@q:port", "pinpriq://a:secret@q:70000",
    "pinpriq://a:secret@q:0", "pinpriq://a:secret@q:", "pinpriq://a:secret@::1:1",
    "pinpriq://a:secret@[::1", "pinpriq://a:secret@[::1]x", "pinpriq://a:secret%ff@q",
    "pinpriq://a:secret@q,r:x", "pinpriq://a:secret@q,", "redis://q:1,redis://r:1",
  ];
  for (const url of wrong) {
    assert.throws(() => new Client(url), (error: Error) => {
      const { message } = error;
      return /^the address of the server cannot/.test(message) && !/secret/.test(message);
    }, url);
  }
});

test("replies_are_read_in_pieces_of_any_size", () => {
  const bytes = Buffer.from(
    "+OK\r\n:-7\r\n,1.5\r\n,inf\r\n#t\r\n_\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*0\r\n" +
      ">2\r\n+told\r\n*1\r\n:1\r\n%1\r\n$1\r\nk\r\n*2\r\n:1\r\n~1\r\n+x\r\n-ERR no\r\n" +
      "!6\r\nERR no\r\n=6\r\ntxt:ab\r\n(12345678901234567890\r\n",
  );
  const expected: unknown[] = [
    "OK", -7, 1.5, Infinity, 1, null, "a\r\n", null, null, [], { k: [1, ["x"]] },
    "-ERR no", "-ERR no", "ab", 12345678901234567890,
  ];
  for (const size of [1, 2, 3, 7, bytes.length]) {
    const replies = new Replies();
    const all: Reply[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      all.push(...replies.add(bytes.subarray(at, at + size)));
    }
    assert.deepEqual(all.map(shown), expected, `in pieces of ${size}`);
  }
});

function shown(reply: Reply): unknown {
  if (Buffer.isBuffer(reply)) return reply.toString();
  if (reply instanceof MapBytes) return shown(reply.whole());
  if (reply instanceof ErrorReply) return `-${reply.message}`;
  if (Array.isArray(reply)) return reply.map(shown);
  if (reply === null || typeof reply !== "object") return reply;
  return Object.fromEntries(Object.entries(reply).map(([name, value]) => [name, shown(value)]));
}

test("members_of_a_task_are_read_when_they_are_asked_for", () => {
  const task = "%5\r\n$2\r\nid\r\n$2\r\n\r\n\r\n$3\r\nkey\r\n_\r\n" +
    "$6\r\ncounts\r\n%1\r\n$2\r\nid\r\n:7\r\n" +
    "$8\r\nfailures\r\n:-12\r\n$4\r\nlist\r\n*2\r\n*0\r\n$-1\r\n";
  const bytes = Buffer.from(`*2\r\n${task}${task}:1\r\n`);
  for (const size of [1, 7, bytes.length]) {
    const replies = new Replies();
    const all: Reply[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      all.push(...replies.add(bytes.subarray(at, at + size)));
    }
    const [tasks, one] = all as [MapBytes[], number];
    assert.deepEqual([tasks.length, one], [2, 1]);
    for (const map of tasks) {
      assert.deepEqual([map.text("id"), map.blob("id")], ["\r\n", Buffer.from("\r\n")]);
      assert.deepEqual([map.number("failures"), map.number("id")], [-12, undefined]);
      assert.deepEqual([map.text("key"), map.text("i")], [undefined, undefined]);
      const whole = { id: "\r\n", key: null, counts: { id: 7 }, failures: -12, list: [[], null] };
      assert.deepEqual(shown(map), whole);
    }
  }
});

test("bytes_that_are_no_resp_are_refused", () => {
  const maps = ["*1\r\n%1\r\nx\r\n", "*1\r\n%x\r\n"];
  for (const wrong of ["HTTP/1.1 400\r\n", "$x\r\n", ":\r\n", "*-2\r\n", ",nan?\r\n", ...maps]) {
    assert.throws(() => new Replies().add(Buffer.from(wrong)), /does not speak RESP/, wrong);
  }
  const words = ["PUT", Buffer.from([0xff]), "ü"];
  const sent = requestBytes(words).toString("latin1");
  assert.equal(sent, "*3\r\n$3\r\nPUT\r\n$1\r\n\xff\r\n$2\r\n\xc3\xbc\r\n");
});

test("server_that_speaks_something_else_is_named", async () => {
  const other = createServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  const url = `pinpriq://127.0.0.1:${port}`;
  await assert.rejects(Client.connect(url, { retryForMs: 200 }), /does not speak RESP/);
  other.close();
});

test("every_scheme_reaches_the_server", async () => {
  for (const scheme of ["pinpriq", "redis"]) {
    const client = await Client.connect(`${scheme}://127.0.0.1:${server.port}`);
    await client.ping();
    await client.close();
  }
});

test("client_goes_on_at_another_address", async () => {
  const gone = await Proxy.start(server.port);
  const proxy = await Proxy.start(server.port);
  const [first, second] = [new URL(gone.url).host, new URL(proxy.url).host];
  await gone.stop();
  const client = await Client.connect(`pinpriq://${first},${second},127.0.0.1:${server.port}`);
  await client.queue("moved").put("a");
  await proxy.stop();
  await client.queue("moved").put("b");
  assert.equal((await client.queue("moved").popMany(9)).length, 2);
  await client.close();
});

test("aborted_wait_asks_nothing_over_another_connection", async () => {
  const proxy = await Proxy.start(server.port);
  const client = await Client.connect(proxy.url);
  const stranger = await Client.connect(server.url);
  const [queue, watch] = [client.queue<string>("alone"), stranger.queue<string>("alone")];
  const takers = async (): Promise<unknown> => (await watch.stats())["takers"];
  const other = watch.take({ waitMs: 60_000 });
  const sent: string[] = [];
  proxy.onSent = (bytes) => void sent.push(bytes.toString());
  const control = new AbortController();
  const taken = queue.take({ waitMs: 60_000, signal: control.signal });
  while ((await takers()) !== 2);
  control.abort(new Error("enough"));
  await assert.rejects(taken, /enough/);
  while ((await takers()) !== 1);
  assert.ok(!sent.join("").includes("CLIENT"), sent.join(""));
  await queue.put("for the other");
  assert.equal((await other)?.payload, "for the other");
  await Promise.all([client.close(), stranger.close()]);
  await proxy.stop();
});

async function popsThatAreGivenUp(url: string, ca?: Buffer): Promise<void> {
  const client = await Client.connect(url, ca ? { tls: { ca } } : {});
  const queue = client.queue<number>("popped");
  const popped: number[] = [];
  const rounds = 100;
  for (let round = 0; round < rounds; round++) {
    const control = new AbortController();
    const pop = queue.pop({ waitMs: 60_000, signal: control.signal });
    while ((await queue.stats())["takers"] !== 1);
    const put = queue.put(round);
    if (round % 2 === 0) control.abort(new Error("enough"));
    else setImmediate(() => control.abort(new Error("enough")));
    const task = await pop.catch(() => null);
    await put;
    if (task) popped.push(task.payload);
    else popped.push(...(await queue.popMany(9)).map(({ payload }) => payload));
  }
  assert.deepEqual(popped, Array.from({ length: rounds }, (_, round) => round));
  await client.close();
}

test("pop_that_is_given_up_loses_nothing", () => popsThatAreGivenUp(server.url));

test("encrypted_pop_that_is_given_up_loses_nothing", { skip: NO_OPENSSL }, async () => {
  const encrypted = await Server.start(withCertificate);
  const ca = readFileSync(join(encrypted.directory, "cert.pem"));
  await popsThatAreGivenUp(`pinpriqs://127.0.0.1:${encrypted.encryptedPort}`, ca);
  await encrypted.stop();
});

test("request_that_cannot_leave_says_why", async () => {
  const nowhere = await Proxy.start(server.port);
  await nowhere.stop();
  await assert.rejects(Client.connect(nowhere.url, { retryForMs: 100 }), (error) => {
    return error instanceof ConnectionLost && /ECONNREFUSED/.test(error.message);
  });
});
