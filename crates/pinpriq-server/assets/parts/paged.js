// A table of things that the server lists page by page, and what turns the pages.

import { fill, h } from "../h.js";
import { read } from "../api.js";
import { plural } from "../format.js";
import { target } from "../names.js";
import { button } from "./dialog.js";

const PAGE = 100;

// Shows in `rows` what the list of this name has, each of which is called `word`.
export function paged(page, rows, list, word) {
  const cursors = ["0"];
  let cursor = "0";
  const refresh = async () => {
    const query = { count: PAGE, cursor: cursors[cursors.length - 1] };
    const answer = await read(target(["v1", list], { query }));
    if (page.isOver) return;
    cursor = answer.cursor;
    rows.show(answer[list]);
    const isWhole = cursor === "0" && cursors.length === 1;
    fill(told, isWhole ? plural(answer[list].length, word) : `page ${cursors.length}`);
    back.disabled = cursors.length === 1;
    next.disabled = cursor === "0";
    [back, next].forEach((it) => {
      it.hidden = isWhole;
    });
  };
  const turn = async (step) => {
    if (step > 0) cursors.push(cursor);
    else cursors.pop();
    await refresh().catch((error) => page.fail(error));
  };
  const told = h("p", { class: "told", role: "status" });
  const back = button("Previous", () => turn(-1), { kind: "small" });
  const next = button("Next", () => turn(1), { kind: "small" });
  const bar = h("div", { class: "toolbar" }, told, h("div", { class: "pager" }, back, next));
  return { bar, refresh };
}
