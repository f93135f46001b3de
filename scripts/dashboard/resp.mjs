// A connection over RESP, on which commands do not wait for the replies of those before them.

import net from "node:net";

// The bytes of a command.
export function encode(words) {
  const parts = words.map((it) => `$${Buffer.byteLength(String(it))}\r\n${it}\r\n`).join("");
  return `*${words.length}\r\n${parts}`;
}

export class Resp {
  constructor(port) {
    this.asked = [];
    this.unread = Buffer.alloc(0);
    this.lost = null;
    this.socket = net.connect(Number(port), "127.0.0.1").setNoDelay(true);
    this.socket.on("data", (data) => this.receive(data));
    this.socket.on("error", (error) => this.lose(error));
    this.socket.on("close", () => this.lose(new Error("the connection over RESP is closed")));
  }

  async ask(...words) {
    const [reply] = await this.askAll([words]);
    return reply;
  }

  // The replies to all of these commands, which are sent at once.
  askAll(commands) {
    if (this.lost) return Promise.reject(this.lost);
    const replies = commands.map(
      () => new Promise((resolve, reject) => this.asked.push({ resolve, reject })),
    );
    this.socket.write(commands.map(encode).join(""));
    return Promise.all(replies);
  }

  close() {
    this.socket.destroy();
  }

  receive(data) {
    this.unread = Buffer.concat([this.unread, data]);
    let at = 0;
    for (let found = read(this.unread, at); found; found = read(this.unread, at)) {
      at = found.end;
      const { resolve, reject } = this.asked.shift();
      if (found.value instanceof Error) reject(found.value);
      else resolve(found.value);
    }
    this.unread = this.unread.subarray(at);
  }

  lose(error) {
    this.lost ??= error;
    this.asked.splice(0).forEach(({ reject }) => reject(this.lost));
  }
}

// The reply that begins here and where it ends, or null if it is not all there yet.
function read(bytes, at) {
  const stop = bytes.indexOf("\r\n", at);
  if (stop < 0) return null;
  const kind = String.fromCharCode(bytes[at]);
  const rest = bytes.toString("utf8", at + 1, stop);
  const end = stop + 2;
  if (kind === "+") return { value: rest, end };
  if (kind === ":") return { value: Number(rest), end };
  if (kind === "-") return { value: new Error(rest), end };
  if (rest === "-1") return { value: null, end };
  if (kind === "$") return readText(bytes, end, Number(rest));
  if (kind === "*") return readAll(bytes, end, Number(rest));
  throw new Error(`a reply begins with ${kind}`);
}

function readText(bytes, at, length) {
  const end = at + length + 2;
  return bytes.length < end ? null : { value: bytes.toString("utf8", at, at + length), end };
}

function readAll(bytes, at, number) {
  const value = [];
  let end = at;
  while (value.length < number) {
    const found = read(bytes, end);
    if (!found) return null;
    value.push(found.value);
    end = found.end;
  }
  return { value, end };
}
