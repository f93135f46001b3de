// Keeps the samples of charts while the page is open, so that a view that is opened again shows
// what was seen before.

import { watch } from "./live.js";
import { placeShown } from "./names.js";

const SAMPLES_MAX = 900;
const PLACES_MAX = 20;

const known = new Map();

// Watches a place for a page: `push` gets each sample, also those from before, and `tell` those that
// are new.
export function history(page, place, push, tell) {
  const name = place ? `${place.member ? "lane" : "queue"} ${placeShown(place)}` : "";
  const samples = known.get(name) ?? [];
  known.delete(name);
  known.set(name, samples);
  if (known.size > PLACES_MAX) known.delete(known.keys().next().value);
  samples.forEach(push);
  page.watch(place, (told) => {
    samples.push(told);
    if (samples.length > SAMPLES_MAX) samples.shift();
    push(told);
    tell(told);
  });
}
