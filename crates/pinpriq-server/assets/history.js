// Charts begin with what the server still knows of the last fifteen minutes, and go on with what
// comes.

import { past, watch } from "./live.js";

// Watches a place for a page: `push` gets each sample, also those from before, and `tell` those
// that are new.
export async function history(page, place, push, tell) {
  let waiting = [];
  page.onEnd(
    watch(
      place,
      (told) => {
        if (waiting) waiting.push(told);
        else push(told);
        tell(told);
      },
      (error) => page.fail(error),
    ),
  );
  const samples = await past(place);
  if (page.isOver) return;
  [...samples, ...waiting].forEach(push);
  waiting = null;
}
