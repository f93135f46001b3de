// Runs the tests of fivebeans as its package has them, with the test runner of Node.
//
// Called by scripts/beanstalkd-clients with the port of a server of its own. The tests connect to
// port 11300, which leads to that server here. They are written for mocha, and find its functions.
"use strict";
const net = require("node:net");
const path = require("node:path");
const runner = require("node:test");

const PORT = Number(process.argv[2]);
const TESTS = 55;

// What cannot pass with any server.
const NOT_RUN = {
  "emits the error event on failure":
    "it expects the name of an error where Node has had a number since version 13",
};

const sockets = [];
const { createConnection } = net;
net.createConnection = (port, host) => {
  const socket = createConnection(port === 11300 ? PORT : port, host);
  sockets.push(socket);
  return socket;
};

// Mocha gives a function that has an argument what it must call at the end.
const mocha = { timeout() {} };
const adapted = (work) =>
  work.length === 0 ? () => work.call(mocha) : (_, done) => work.call(mocha, done);

let tests = 0;
global.describe = (name, work) => runner.describe(name, () => work.call(mocha));
global.before = (work) => runner.before(adapted(work));
global.after = (work) => runner.after(adapted(work));
global.it = (name, work) => {
  tests += 1;
  if (!work) return; // It only has a name.
  runner.it(name, { skip: NOT_RUN[name], timeout: 30_000 }, adapted(work));
};

// The tests read files below this directory, and leave connections open.
process.chdir(path.dirname(require.resolve("fivebeans")));
runner.describe("fivebeans", () => {
  for (const name of ["client", "worker", "runner"]) {
    require(path.resolve("test", `test-${name}.js`));
  }
  if (tests !== TESTS) throw new Error(`${tests} tests instead of ${TESTS}`);
  runner.after(() => sockets.forEach((socket) => socket.destroy()));
});
