// Users and encryption, against a real server.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Client, isRefused } from "../src/index.js";
import { NO_OPENSSL, program, Server, withCertificate } from "./server.js";

function withUser(directory: string): string[] {
  const users = join(directory, "users.toml");
  const rules = ["put:jobs", "take:jobs", "look:jobs"];
  const words = ["user", "add", "ana", ...rules, "--users", users];
  execFileSync(program(), words, { input: "long secret\n" });
  return ["--users", users];
}

test("user_signs_in_and_may_do_what_the_rules_say", async () => {
  const server = await Server.start(withUser);
  const client = await Client.connect(`redis://ana:long%20secret@127.0.0.1:${server.port}`);
  const queue = client.queue<string>("jobs");
  await queue.put("allowed");
  const others = client.queue<string>("others").put("forbidden");
  await assert.rejects(others, (error) => isRefused(error, "NOPERM"));
  await (await queue.take())?.ack();
  // A take can be given up without the right to end connections of others.
  const control = new AbortController();
  const taken = queue.take({ waitMs: 60_000, signal: control.signal });
  while ((await queue.stats())["takers"] !== 1);
  control.abort(new Error("enough"));
  await assert.rejects(taken, /enough/);
  await client.close();
  await server.stop();
});

test("wrong_password_is_refused_and_not_tried_again", async () => {
  const server = await Server.start(withUser);
  const wrong = Client.connect(`redis://ana:wrong@127.0.0.1:${server.port}`);
  await assert.rejects(wrong, (error) => isRefused(error, "WRONGPASS"));
  const stranger = await Client.connect(server.url).catch((error: unknown) => error);
  if (stranger instanceof Client) {
    await assert.rejects(stranger.queue("jobs").put(1), (error) => isRefused(error, "NOAUTH"));
    await stranger.close();
  } else {
    assert.ok(isRefused(stranger, "NOAUTH"));
  }
  await server.stop();
});

test("rediss_is_encrypted_and_checks_the_certificate", { skip: NO_OPENSSL }, async () => {
  const server = await Server.start(withCertificate);
  const url = `rediss://127.0.0.1:${server.encryptedPort}`;
  const ca = readFileSync(join(server.directory, "cert.pem"));
  const client = await Client.connect(url, { tls: { ca } });
  const queue = client.queue<string>("jobs");
  await queue.put("secret");
  assert.equal((await queue.take({ waitMs: 1_000 }))?.payload, "secret");
  await client.close();
  await assert.rejects(Client.connect(url, { retryForMs: 200 }), { name: "ConnectionLost" });
  await server.stop();
});
