// The package as users get it: packed, installed in both module formats, and the README as written.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Server } from "./server.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
// A block that takes longer has something open that keeps it from ending.
const BLOCK_MS_MAX = 60_000;
const USUAL_URL = "pinpriq://127.0.0.1:7251";
const COMPILER_OPTIONS = {
  target: "ES2022",
  lib: ["ES2022", "ESNext.Disposable"],
  module: "NodeNext",
  strict: true,
  noUncheckedIndexedAccess: true,
  types: ["node"],
};

interface Block {
  readonly language: string;
  readonly code: string;
}

let server: Server;
let directory: string;

before(async () => {
  server = await Server.start();
  directory = mkdtempSync(join(tmpdir(), "pinpriq-package-"));
  const own = pack();
  writeFileSync(join(directory, "package.json"), JSON.stringify({ type: "module" }));
  run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", own]);
  mkdirSync(join(directory, "node_modules/@types"));
  for (const name of ["@types/node", "undici-types"]) {
    symlinkSync(join(ROOT, "node_modules", name), join(directory, "node_modules", name));
  }
});

after(async () => {
  await server?.stop();
  if (directory) rmSync(directory, { recursive: true, force: true });
});

test("package_has_what_it_needs_and_no_more", () => {
  const lock = JSON.parse(readFileSync(join(directory, "package-lock.json"), "utf8")) as {
    packages: Record<string, unknown>;
  };
  const names = Object.keys(lock.packages).filter((path) => path.startsWith("node_modules/"));
  assert.deepEqual(names.sort(), ["node_modules/pinpriq"]);
});

test("esm_and_cjs_have_the_same_names", () => {
  const imported = names("import * as all from 'pinpriq';", "smoke.mjs");
  const required = names("const all = require('pinpriq');", "smoke.cjs");
  assert.ok(imported.includes("Client"));
  assert.deepEqual(required, imported);
});

test("folder_that_is_installed_as_it_is_gets_built", () => {
  const place = join(directory, "folder");
  for (const name of ["package.json", "package-lock.json", "src", "scripts"]) {
    cpSync(join(ROOT, name), join(place, name), { recursive: true });
  }
  for (const name of ["tsconfig.json", "tsconfig.esm.json", "tsconfig.cjs.json"]) {
    cpSync(join(ROOT, name), join(place, name));
  }
  // With what the build needs, so that nothing comes from the network.
  symlinkSync(join(ROOT, "node_modules"), join(place, "node_modules"));
  const user = join(directory, "user");
  mkdirSync(user);
  writeFileSync(join(user, "package.json"), "{}");
  run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--prefix", user, place]);
  const names = readdirSync(join(user, "node_modules/pinpriq/dist/esm"));
  assert.ok(names.includes("index.js") && names.includes("index.d.ts"), names.join());
});

test("program_that_traces_is_found_from_both_formats", () => {
  // A place of its own: the package could not import the API from where it is.
  const place = join(directory, "program");
  mkdirSync(join(place, "node_modules"), { recursive: true });
  linkOpenTelemetry(place);
  const body = `
    const exporter = new InMemorySpanExporter();
    const spanProcessors = [new SimpleSpanProcessor(exporter)];
    new NodeTracerProvider({ spanProcessors }).register();
    (async () => {
      const client = await Client.connect("${server.url}");
      await client.queue("program").put(1);
      const worker = client.queue("program").process(() => queueMicrotask(() => worker.stop()));
      await worker.finished;
      await client.close();
      const [put, attempt] = exporter.getFinishedSpans();
      const parent = attempt.parentSpanContext.spanId === put.spanContext().spanId;
      console.log(put.name, attempt.name, parent);
    })();
  `;
  const names = "{ InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor }";
  const sdk = "@opentelemetry/sdk-trace-node";
  const programs = {
    "program.mjs": `import { Client } from "pinpriq"; import ${names} from "${sdk}";`,
    "program.cjs": `const { Client } = require("pinpriq"); const ${names} = require("${sdk}");`,
  };
  for (const [file, load] of Object.entries(programs)) {
    writeFileSync(join(place, file), load + body);
    const said = run("node", [join(place, file)]);
    assert.equal(said, "put program process program true\n", file);
  }
});

test("types_are_found_in_both_formats", () => {
  const use = "const queue: Queue<number> = new Client().queue<number>('q');\nvoid queue;\n";
  const wrong = "// @ts-expect-error: the payload is a number\nvoid queue.put('text');\n";
  for (const file of ["types.mts", "types.cts"]) {
    const source = `import { Client, type Queue } from "pinpriq";\n${use}${wrong}`;
    writeFileSync(join(directory, file), source);
  }
  compile(["types.mts", "types.cts"], { skipLibCheck: false });
});

test("each_block_of_the_readme_runs", async () => {
  linkOpenTelemetry(directory);
  const blocks = blocksOf(readFileSync(join(ROOT, "README.md"), "utf8"));
  const programs = blocks.filter(({ language }) => language !== "sh");
  // What installs and tests the package is what this file is part of.
  const shell = blocks.filter(({ language }) => language === "sh").map(({ code }) => code.trim());
  assert.deepEqual(shell, ["npm install pinpriq", "npm test"]);
  const files = programs.map(({ language, code }, place) => {
    const file = `block-${place + 1}.${language === "ts" ? "ts" : "cjs"}`;
    assert.ok(code.includes(USUAL_URL), `${file} names no server`);
    writeFileSync(join(directory, file), code.replaceAll(USUAL_URL, server.url));
    return file;
  });
  compile(files.filter((file) => file.endsWith(".ts")), { skipLibCheck: true });
  for (const [place, file] of files.entries()) {
    const isEndless = programs[place]?.code.includes("stopOnSignals") ?? false;
    const printed = await runBlock(file.replace(/\.ts$/, ".js"), isEndless);
    assert.notEqual(printed, "", `${file} has printed nothing`);
  }
});

function linkOpenTelemetry(place: string): void {
  const scope = "node_modules/@opentelemetry";
  symlinkSync(join(ROOT, scope), join(place, scope));
}

// Packs what the build has made, and returns the path.
function pack(): string {
  const place = ["--pack-destination", directory];
  const arguments_ = ["pack", ROOT, ...place, "--silent", "--ignore-scripts"];
  return join(directory, run("npm", arguments_).trim().split("\n").at(-1) ?? "");
}

function run(command: string, arguments_: string[]): string {
  return execFileSync(command, arguments_, {
    cwd: directory,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
}

function names(load: string, file: string): string[] {
  writeFileSync(join(directory, file), `${load}\nconsole.log(Object.keys(all).sort().join());\n`);
  return run("node", [file]).trim().split(",");
}

function compile(files: readonly string[], options: { skipLibCheck: boolean }): void {
  const config = { compilerOptions: { ...COMPILER_OPTIONS, ...options }, files };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(config));
  try {
    run("node", [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.json"]);
  } catch (error) {
    assert.fail((error as { stdout: string }).stdout);
  }
}

function blocksOf(page: string): Block[] {
  return [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language, code]) => ({
    language: language ?? "",
    code: code ?? "",
  }));
}

// Runs a block to its end, and returns what it has printed. One that runs until a signal gets that
// after its first line.
async function runBlock(file: string, isEndless: boolean): Promise<string> {
  const child = spawn("node", [file], {
    cwd: directory,
    stdio: ["ignore", "pipe", "inherit"],
    signal: AbortSignal.timeout(BLOCK_MS_MAX),
  });
  const printed: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (isEndless && printed.length === 0) child.kill("SIGTERM");
    printed.push(line);
  });
  const [status] = (await once(child, "close")) as [number | null];
  assert.equal(status, 0, `${file} ended with ${status} after: ${printed.join("\n")}`);
  return printed.join("\n");
}
