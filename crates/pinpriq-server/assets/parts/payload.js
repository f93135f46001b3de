// Payloads, which are any bytes: as text, as JSON with line breaks, or in hexadecimal digits. They
// are only ever shown as text.

import { fill, h } from "../h.js";
import { bytesOf, Name, escaped } from "../names.js";
import { bytes as size } from "../format.js";
import { choices } from "./page.js";

const SHOWN_MAX = 256 * 1_024;
const HEX_MAX = 16 * 1_024;
const LINE_MAX = 200;

// A payload in one line.
export function preview(task) {
  const payload = Name.in(task, "payload");
  if (payload === null || payload.text === "") return "(empty)";
  const text = payload.text ?? escaped(bytesOf(payload.base64.slice(0, 400)));
  const line = text.slice(0, LINE_MAX).replace(/\s+/g, " ");
  return text.length > LINE_MAX ? `${line}…` : line;
}

// JSON with line breaks, or null if the text is none. Numbers stay as they were written.
export function pretty(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let [out, depth] = ["", 0];
  const line = () => `\n${"  ".repeat(depth)}`;
  tokens.forEach((token, at) => {
    if (token === "{" || token === "[") {
      depth += 1;
      const isEmpty = tokens[at + 1] === "}" || tokens[at + 1] === "]";
      out += isEmpty ? token : token + line();
    } else if (token === "}" || token === "]") {
      depth -= 1;
      const wasEmpty = tokens[at - 1] === "{" || tokens[at - 1] === "[";
      out += wasEmpty ? token : line() + token;
    } else if (token === ",") out += token + line();
    else if (token === ":") out += ": ";
    else out += token;
  });
  return out;
}

// Sixteen bytes on a line: where, the digits, and the printable ones.
export function hex(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const part = [...bytes.subarray(at, at + 16)];
    const digits = part
      .map((it) => it.toString(16).padStart(2, "0"))
      .join(" ")
      .padEnd(47);
    const text = part.map((it) => (it >= 32 && it < 127 ? String.fromCharCode(it) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${digits}  ${text}`);
  }
  return lines.join("\n");
}

// The whole payload, with a choice of forms.
export function payload(task) {
  const given = Name.in(task, "payload") ?? new Name("");
  const isText = given.text !== undefined;
  const bytes = isText ? new TextEncoder().encode(given.text) : bytesOf(given.base64);
  const json = isText && given.text.length <= SHOWN_MAX ? pretty(given.text) : null;
  const area = h("pre", { class: "payload", tabindex: "0" });
  const note = h("p", { class: "quiet" });
  const show = (kind) => {
    const most = kind === "hex" ? HEX_MAX : SHOWN_MAX;
    if (kind === "hex") fill(area, hex(bytes.subarray(0, HEX_MAX)));
    else if (kind === "json") fill(area, json);
    else
      fill(area, isText ? given.text.slice(0, SHOWN_MAX) : escaped(bytes.subarray(0, SHOWN_MAX)));
    area.setAttribute("aria-label", `Payload as ${kind}`);
    fill(
      note,
      `${size(bytes.length)}${isText ? "" : ", not UTF-8"}`,
      bytes.length > most ? `; the first ${size(most)} are shown` : "",
    );
  };
  const kinds = [["text", "Text"], json !== null && ["json", "JSON"], ["hex", "Hex"]].filter(
    Boolean,
  );
  const first = json !== null && /^\s*[[{]/.test(given.text) ? "json" : isText ? "text" : "hex";
  show(first);
  return h(
    "div",
    { class: "card" },
    h("div", { class: "toolbar" }, choices("Form of the payload", kinds, first, show).node, note),
    bytes.length === 0 ? h("p", { class: "quiet" }, "The payload is empty.") : area,
  );
}
