// Signing in, on a server that has users. Nothing else is shown before that.

import { fill, h } from "../h.js";
import { change } from "../api.js";

// Shows the form in a node, and calls a function after the sign-in.
export function login(root, done) {
  const error = h("p", { class: "form-error", role: "alert", hidden: true });
  const shared = { required: true, spellcheck: "false", autocapitalize: "none" };
  const user = h("input", { ...shared, id: "user", type: "text", autocomplete: "username" });
  const password = h("input", {
    ...shared,
    id: "password",
    type: "password",
    autocomplete: "current-password",
  });
  const submit = h("button", { type: "submit", class: "primary" }, "Sign in");
  const form = h(
    "form",
    { class: "login card", novalidate: true },
    h("h1", { tabindex: "-1" }, "Sign in"),
    h("div", { class: "field" }, h("label", { for: "user" }, "User"), user),
    h("div", { class: "field" }, h("label", { for: "password" }, "Password or token"), password),
    error,
    h("div", { class: "buttons" }, submit),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    error.hidden = true;
    submit.disabled = true;
    try {
      await change("POST", "/v1/session", { user: user.value, password: password.value });
      done();
    } catch (wrong) {
      fill(error, `${wrong.message.charAt(0).toUpperCase()}${wrong.message.slice(1)}.`);
      error.hidden = false;
      submit.disabled = false;
      password.focus();
      password.select();
    }
  });
  document.title = "Sign in – pinpriq";
  fill(root, form);
  user.focus();
}
