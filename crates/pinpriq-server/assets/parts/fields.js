// Fields of forms: a label, a control, a hint, and how the value is read.

import { freshId, h } from "../h.js";
import { readSpan, typedSpan } from "../format.js";

// Makes a field. Kinds: text, area, number, span (a duration), choice, check.
export function field({ name, label, kind = "text", value, hint, options, required = false }) {
  const id = freshId("field");
  const described = hint ? `${id}-hint` : null;
  const shared = {
    id,
    name,
    "aria-describedby": described,
    required,
    autocomplete: "off",
    spellcheck: "false",
  };
  const control = controlOf(kind, value, options, shared);
  const node = h(
    "div",
    { class: ["field", kind === "check" && "field-check"] },
    h("label", { for: id }, label),
    control,
    hint && h("p", { class: "hint", id: described }, hint),
  );
  const reader = () => readFrom(control, kind, label, required);
  return { name, node, control, read: reader };
}

function controlOf(kind, value, options, shared) {
  if (kind === "area") return h("textarea", { ...shared, rows: "5", value: value ?? "" });
  if (kind === "check") return h("input", { ...shared, type: "checkbox", checked: Boolean(value) });
  if (kind === "choice") {
    const one = ([it, text]) => h("option", { value: it, selected: it === value }, text);
    return h("select", shared, options.map(one));
  }
  const text = kind === "span" ? typedSpan(value) : (value ?? "");
  const mode = kind === "number" ? "numeric" : null;
  return h("input", { ...shared, type: "text", inputmode: mode, value: String(text) });
}

function readFrom(control, kind, label, required) {
  if (kind === "check") return control.checked;
  const text = control.value;
  if (required && text === "") throw new Error(`${label} is needed.`);
  if (kind === "span") {
    const ms = readSpan(text);
    if (Number.isNaN(ms)) throw new Error(`${label} is a duration such as 500 ms, 30 s or 5 min.`);
    return ms;
  }
  if (kind === "number") {
    const trimmed = text.trim();
    if (trimmed === "") return null;
    if (!/^[-+]?\d+$/.test(trimmed)) throw new Error(`${label} is a whole number.`);
    const number = Number(trimmed);
    return Number.isSafeInteger(number) ? number : BigInt(trimmed);
  }
  return text;
}
