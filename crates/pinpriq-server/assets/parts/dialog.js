// Questions, forms and messages. A question names what would happen and to how many.

import { fill, freshId, h } from "../h.js";
import { field } from "./fields.js";

// Shows a sentence for a while.
export function say(sentence, isBad = false) {
  const toast = h("p", { class: ["toast", isBad && "bad"] }, sentence);
  document.getElementById("toasts").append(toast);
  setTimeout(() => toast.remove(), isBad ? 10_000 : 4_000);
}

// Does something, and tells the sentence of the refusal if it fails. Returns whether it was done.
export async function attempt(work, done) {
  try {
    const answer = await work();
    if (done) say(typeof done === "function" ? done(answer) : done);
    return true;
  } catch (error) {
    say(error.message, true);
    return false;
  }
}

// Opens a dialog with a form. `work` gets the values, and a function that shows a sentence
// meanwhile and returns whether the dialog is still open. Its error is shown in the dialog. The
// promise is true when it was done, and false when the dialog was left.
export function form({ title, text = [], fields = [], action, danger = false, work, done }) {
  const controls = fields.map(field);
  const error = h("p", { class: "form-error", role: "alert", hidden: true });
  const status = h("p", { class: "quiet", role: "status" });
  const heading = freshId("dialog");
  const submit = h("button", { type: "submit", class: danger ? "danger" : "primary" }, action);
  const cancel = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const inside = h(
    "form",
    { novalidate: true },
    h("h2", { id: heading }, title),
    [text].flat().map((it) => h("p", null, it)),
    controls.map((it) => it.node),
    error,
    status,
    h("div", { class: "buttons" }, cancel, submit),
  );
  const dialog = h("dialog", { "aria-labelledby": heading }, inside);
  return new Promise((resolve) => {
    let isDone = false;
    inside.addEventListener("submit", async (event) => {
      event.preventDefault();
      submit.disabled = true;
      try {
        const values = Object.fromEntries(controls.map((it) => [it.name, it.read()]));
        const answer = await work(values, (sentence) => {
          fill(status, sentence);
          return dialog.open;
        });
        isDone = true;
        dialog.close();
        if (done) say(typeof done === "function" ? done(answer, values) : done);
      } catch (wrong) {
        fill(status, "");
        fill(error, wrong.message);
        error.hidden = false;
        submit.disabled = false;
      }
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(isDone);
    });
    document.body.append(dialog);
    dialog.showModal();
    if (danger) cancel.focus();
  });
}

// Asks whether something that cannot be undone shall be done.
export const confirm = ({ title, text, action, work, done }) =>
  form({ title, text, action, danger: true, work, done });

// A button that does nothing more while its work is done. It keeps the focus.
export function button(label, work, { kind, title, disabled } = {}) {
  let isBusy = false;
  const press = async () => {
    if (isBusy) return;
    isBusy = true;
    try {
      await work();
    } catch (error) {
      say(error.message, true);
    } finally {
      isBusy = false;
    }
  };
  return h("button", { type: "button", class: kind, title, disabled, onclick: press }, label);
}
