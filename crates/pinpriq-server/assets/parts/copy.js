// Commands to copy, and what views show where there is nothing yet.

import { h } from "../h.js";
import { session } from "../session.js";
import { say } from "./dialog.js";

// A command with a button that copies it.
export function command(text) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied.");
    } catch {
      say("The browser does not allow copying. Select the command instead.");
    }
  };
  return h(
    "div",
    { class: "command" },
    h("pre", { tabindex: "0" }, h("code", null, text)),
    h(
      "button",
      { type: "button", class: "small", onclick: copy, "aria-label": `Copy the command ${text}` },
      "Copy",
    ),
  );
}

// A command of redis-cli, with the way to this server; null if it has no door for that.
export function redis(words) {
  const { resp_port: port, resp_tls: tls, user } = session() ?? {};
  if (!port) return null;
  const host = location.hostname.replace(/^\[|\]$/g, "");
  const steps = [
    "redis-cli",
    !["localhost", "127.0.0.1", "::1"].includes(host) && `-h ${host}`,
    `-p ${port}`,
    tls && "--tls",
    user && `--user ${quoted(user)} --askpass`,
    words,
  ];
  return command(steps.filter(Boolean).join(" "));
}

// What stands in place of something that is empty: why, and what to do next.
export const empty = (sentence, ...rest) =>
  h("div", { class: "empty" }, h("p", null, sentence), rest);

// An argument of a shell: quoted where it must be.
export const quoted = (text) =>
  /^[A-Za-z0-9_./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

// The address under which this page reached the server, for curl.
export const origin = () => location.origin;
